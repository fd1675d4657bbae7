// See urlsession_redirects.h.
#if defined(__linux__)
#include "urlsession_redirects.h"

#include "urlsession_internal.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// A handle's state: bits beside the address of whoever hears its header lines. WITHIN and CROSSED stand on
// pinned handles only; HIDING: the last line was kept back.
enum { WITHIN = 1, CROSSED = 2, HIDING = 4, BITS = 7 };

// Foundation's own, one function for all its handles.
static _Atomic(curl_write_callback) foundations;

static uintptr_t state_of(CURL *easy) {
  char *state = NULL;
  return pp_easy_info(easy, CURLINFO_PRIVATE, &state) == CURLE_OK ? (uintptr_t)state : 0;
}

static bool set_state(CURL *easy, uintptr_t state) {
  return curl_easy_setopt(easy, CURLOPT_PRIVATE, (void *)state) == CURLE_OK;
}

static bool has_crossed(CURL *easy) { return state_of(easy) & CROSSED; }

void pp_redirects_set_listener(void *easy, void *listener) {
  if ((uintptr_t)listener & BITS) return;
  uintptr_t state = state_of(easy);
  set_state(easy, (uintptr_t)listener | (state & BITS));
  // Ours takes the handle for its argument; it is back with the next hop.
  if (state & CROSSED) curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, atomic_load(&foundations));
}

void pp_redirects_set_header_function(void *function) {
  atomic_store(&foundations, (curl_write_callback)function);
}

bool pp_redirects_mark(void *easy) {
  uintptr_t state = state_of(easy);
  if (!(state & ~(uintptr_t)BITS) || !atomic_load(&foundations)) return false;
  return state & (WITHIN | CROSSED) || set_state(easy, state | WITHIN);
}

// A 401's challenges are kept back, with the lines that such a field goes on in; all else is Foundation's.
static size_t receive_header(char *line, size_t size, size_t count, void *easy) {
  uintptr_t state = state_of(easy);
  size_t length = size * count;
  long status = 0;
  pp_easy_info(easy, CURLINFO_RESPONSE_CODE, (char **)&status);
  bool goes_on = length > 0 && (line[0] == ' ' || line[0] == '\t');
  bool hides = goes_on ? state & HIDING
                       : status == 401 && length >= 16 && curl_strnequal(line, "WWW-Authenticate", 16);
  if (hides != !!(state & HIDING)) set_state(easy, state ^ HIDING);
  if (hides) return length;
  return atomic_load(&foundations)(line, size, count, (void *)(state & ~(uintptr_t)BITS));
}

bool pp_redirects_hide_challenges(void *easy) {
  return !has_crossed(easy) ||
         (curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, receive_header) == CURLE_OK &&
          curl_easy_setopt(easy, CURLOPT_HEADERDATA, easy) == CURLE_OK);
}

bool pp_redirects_use_cookies(void *easy, const pp_session_options *options) {
  if (!has_crossed(easy)) return true;
  char *url = NULL;
  pp_easy_info(easy, CURLINFO_EFFECTIVE_URL, &url);
  char *cookies = url ? options->cookies(options->context, url) : NULL;
  bool is_set = curl_easy_setopt(easy, CURLOPT_COOKIE, cookies) == CURLE_OK;
  free(cookies);
  return is_set;
}

// Equal parts of two URLs; an unreadable URL equals none.
static bool agree(CURLU *a, CURLU *b, CURLUPart part) {
  char *first = NULL, *second = NULL;
  bool equal = !curl_url_get(a, part, &first, CURLU_DEFAULT_PORT) &&
               !curl_url_get(b, part, &second, CURLU_DEFAULT_PORT) &&
               curl_strequal(first, second);
  curl_free(first);
  curl_free(second);
  return equal;
}

static bool share_origin(const char *one, const char *other) {
  CURLU *a = curl_url(), *b = curl_url();
  bool equal = a && b && !curl_url_set(a, CURLUPART_URL, one, CURLU_NON_SUPPORT_SCHEME) &&
               !curl_url_set(b, CURLUPART_URL, other, CURLU_NON_SUPPORT_SCHEME) &&
               agree(a, b, CURLUPART_SCHEME) && agree(a, b, CURLUPART_HOST) &&
               agree(a, b, CURLUPART_PORT);
  curl_url_cleanup(a);
  curl_url_cleanup(b);
  return equal;
}

void pp_redirects_set_url(void *easy, const char *url) {
  uintptr_t state = state_of(easy);
  if (!(state & WITHIN)) return;
  char *last = NULL;
  if (url && pp_easy_info(easy, CURLINFO_EFFECTIVE_URL, &last) == CURLE_OK && last &&
      share_origin(last, url))
    return;
  set_state(easy, (state & ~(uintptr_t)WITHIN) | CROSSED);
}

static bool is_named(const char *line, const char *name) {
  size_t length = strlen(name);
  // Not by the locale: in a Turkish one AUTHORIZATION is another word.
  if (!curl_strnequal(line, name, length)) return false;
  const char *rest = line + length + strspn(line + length, " \t");
  return *rest == ':' || *rest == ';';
}

void pp_redirects_set_headers(void *easy, struct curl_slist *headers) {
  if (!headers || !has_crossed(easy)) return;
  static const char *const names[] = {"Authorization", "Cookie", "Proxy-Authorization", "Host"};
  for (struct curl_slist *line = headers; line; line = line->next)
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
      // libcurl passes over a line without a colon; the list is freed by its nodes, not by lengths.
      if (line->data && is_named(line->data, names[i])) {
        line->data[0] = 0;
        break;
      }
}
#endif

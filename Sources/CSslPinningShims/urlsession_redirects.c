// See urlsession_redirects.h.
#if defined(__linux__)
#include "urlsession_redirects.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

void pp_redirects_mark(struct pp_handle *h) {
  if (!h->has_crossed) h->is_within = true;
}

bool pp_redirects_use_cookies(const struct pp_handle *h, const pp_session_options *options) {
  if (!h->has_crossed) return true;
  char *url = NULL;
  pp_easy_info(h->easy, CURLINFO_EFFECTIVE_URL, &url);
  char *cookies = url ? options->cookies(options->context, url) : NULL;
  bool is_set = pp_easy_setopt(h->easy, CURLOPT_COOKIE, cookies) == CURLE_OK;
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

// The URL without user and password; NULL if it has none. An unreadable one is nothing to libcurl, either.
static char *without_password(const char *url) {
  CURLU *parts = curl_url();
  char *user = NULL, *password = NULL, *rest = NULL;
  if (parts && !curl_url_set(parts, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME)) {
    curl_url_get(parts, CURLUPART_USER, &user, 0);
    curl_url_get(parts, CURLUPART_PASSWORD, &password, 0);
    if ((user || password) && !curl_url_set(parts, CURLUPART_USER, NULL, 0) &&
        !curl_url_set(parts, CURLUPART_PASSWORD, NULL, 0))
      curl_url_get(parts, CURLUPART_URL, &rest, 0);
  }
  curl_free(user);
  curl_free(password);
  curl_url_cleanup(parts);
  return rest;
}

CURLcode pp_redirects_set_url(void *easy, const char *url) {
  struct pp_handle *h = pp_handle_of(easy);
  if (!h) return pp_easy_setopt(easy, CURLOPT_URL, url);
  char *last = NULL;
  bool stays = url && pp_easy_info(easy, CURLINFO_EFFECTIVE_URL, &last) == CURLE_OK && last &&
               share_origin(last, url);
  if (h->is_within && !stays) {
    h->is_within = false;
    h->has_crossed = true;
  }
  char *cleaned = url && h->has_crossed ? without_password(url) : NULL;
  // libcurl keeps a copy.
  CURLcode result = pp_easy_setopt(easy, CURLOPT_URL, cleaned ? cleaned : url);
  curl_free(cleaned);
  return result;
}

void pp_redirects_set_headers(void *easy, struct curl_slist *headers) {
  struct pp_handle *h = headers ? pp_handle_of(easy) : NULL;
  if (!h || !h->has_crossed) return;
  static const char *const names[] = {"Authorization", "Cookie", "Proxy-Authorization", "Host"};
  for (struct curl_slist *line = headers; line; line = line->next)
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
      // As in pp_handle_own_length.
      if (line->data && pp_is_named(line->data, names[i])) {
        line->data[0] = 0;
        break;
      }
}
#endif

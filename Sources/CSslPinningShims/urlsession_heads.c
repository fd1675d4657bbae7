// See urlsession_heads.h.
#if defined(__linux__)
#include "urlsession_heads.h"

#include "answer_bounds.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

// The most bytes of an answer's trailers: libcurl keeps them, and has no limit of its own for them.
#define MOST_TRAILERS (256 * 1024)
// The most lines and bytes of an answer's heads: Foundation takes a time for them that grows with the square, on the
// queue that all sessions of the process share.
#define MOST_LINES 500
#define MOST_HEAD (64 * 1024)
// The most cookies, as many as browsers must keep of a host (RFC 6265 section 6.1). Foundation writes its whole jar for each, and
// takes a comma for the end of one.
#define MOST_COOKIES 50
// The most digits of a body's length. Foundation ends the process where one does not fit its arithmetic.
#define MOST_DIGITS 15
// The longest status line, and the most bytes of lines beyond ASCII: what such characters cost grows with the square.
#define MOST_STATUS 1024
#define MOST_ODD (8 * 1024)
// The most bytes of a redirect's body: Foundation copies all that came at each piece.
#define MOST_REDIRECTED (1024 * 1024)

// Whether a line of a whole head, or behind it, is for Foundation; keeps account of where the head stands.
static bool goes_on(struct pp_handle *h, const char *line, size_t length, long status) {
  if (h->head == PP_HEAD_WHOLE &&
      !(h->asks_again && length >= 5 && memcmp(line, "HTTP/", 5) == 0))
    return false;
  h->head = PP_HEAD_BEGUN;
  if (length > 2 || (line[0] != '\r' && line[0] != '\n')) return true;
  // 1xx heads are followed by another one, but for 101 (RFC 9110 section 15.2).
  if (status >= 200 || status == 101) h->head = PP_HEAD_WHOLE;
  // libcurl drops its Expect then.
  h->asks_again = status == 417;
  return true;
}

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

// A field whose name is a token, right before its colon (RFC 9110 section 5.6.2, RFC 9112 section 5.1), without a CR (section 2.2):
// of others Foundation makes what it likes, cookies too.
static bool is_field(const char *line, size_t length) {
  static const char marks[] = "!#$%&'*+-.^_`|~";
  size_t end = 0;
  while (length > 0 && strchr("\r\n", line[length - 1])) length--;
  while (end < length && (isalnum((unsigned char)line[end]) || (line[end] && strchr(marks, line[end])))) end++;
  return end > 0 && end < length && line[end] == ':' && !memchr(line, '\r', length);
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A status line as RFC 9112 section 4 and libcurl's own of HTTP/2 have it: HTTP/d or HTTP/d.d, one space, three digits. In others libcurl
// reads the digits behind the version, and Foundation what stands between the first two spaces. The codes may differ, and the checks here
// go by libcurl's.
static bool is_status_line(const char *line, size_t length) {
  size_t at = strlen("HTTP/");
  if (length < at + 6 || memcmp(line, "HTTP/", at) != 0 || !is_digit(line[at++])) return false;
  if (line[at] == '.' && is_digit(line[at + 1])) at += 2;
  if (length < at + 5 || line[at] != ' ') return false;
  for (size_t i = at + 1; i < at + 4; i++)
    if (!is_digit(line[i])) return false;
  return line[at + 4] == ' ' || line[at + 4] == '\r' || line[at + 4] == '\n';
}

static bool names(const char *line, size_t length, const char *name) {
  size_t end = strlen(name);
  return length > end && curl_strnequal(line, name, end) && line[end] == ':';
}

// A body's length that is no number, or one of which nobody can wait for the end (RFC 9112 section 6.3 ends the connection,
// too). libcurl and Foundation read signs and more.
static bool is_no_length(const char *line, size_t length) {
  if (!names(line, length, "Content-Length")) return false;
  size_t at = (size_t)((char *)memchr(line, ':', length) - line) + 1, digits = 0;
  while (length > at && strchr(" \t\r\n", line[length - 1])) length--;
  while (at < length && is_blank(line[at])) at++;
  bool is_number = at < length;
  while (at < length && line[at] == '0') at++;
  while (at + digits < length && line[at + digits] >= '0' && line[at + digits] <= '9') digits++;
  return !is_number || at + digits < length || digits > MOST_DIGITS;
}

// How many cookies Foundation may find in a line, or in one that goes on in it: another one may follow a comma, which is also in
// dates and in values.
static int cookies_in(struct pp_handle *h, const char *line, size_t length) {
  bool goes_on = length > 0 && is_blank(line[0]);
  h->is_cookie = names(line, length, "Set-Cookie") || (goes_on && h->is_cookie);
  if (!h->is_cookie) return 0;
  int count = 1;
  for (size_t i = 0; i < length; i++) {
    if (line[i] != ',') continue;
    size_t name = i + 1;
    while (name < length && is_blank(line[name])) name++;
    size_t end = name;
    while (end < length && !strchr("=,; \t\r\n", line[end])) end++;
    while (end < length && is_blank(line[end])) end++;
    count += end > name && end < length && line[end] == '=';
  }
  return count;
}

static bool is_beyond_ascii(const char *line, size_t length) {
  for (size_t i = 0; i < length; i++)
    if ((unsigned char)line[i] >= 0x80) return true;
  return false;
}

// Whether a redirect leads to the same request (RFC 9110 section 15.4), whose body Foundation leaves behind: the app has that answer.
static bool wants_body(const struct pp_handle *h, long status) {
  return status != 303 && !(h->is_post && (status == 301 || status == 302));
}

// Whether a line sets no cookie that the session's jar must not take.
static bool is_for_jar(const struct pp_handle *h, const char *line, size_t length) {
  static const char name[] = "Set-Cookie";
  if (!names(line, length, name)) return true;
  const struct transfer *t = h->transfer;
  const pp_session_options *options = &t->session->options;
  char *url = NULL;
  pp_easy_info(h->easy, CURLINFO_EFFECTIVE_URL, &url);
  return url && options->takes_cookies(options->context, t->connection ? t->connection->proof : NULL, url,
                                       line + sizeof name, length - sizeof name);
}

// What is kept from Foundation: what is no field, with the lines that it goes on in, and such a line (section 5.2) that Foundation
// would take for a field of its own; a challenge beyond the first origin; a cookie beyond ASCII, which RFC 6265 section 4.1.1 bars and
// which ends the process, since Foundation counts bytes and steps in characters; more of such text than it reads in no time; a cookie
// that is not for the jar; and where a request's body is wanted.
static bool is_hidden(struct pp_handle *h, const char *line, size_t length, long status) {
  if (is_beyond_ascii(line, length)) {
    h->odd_bytes += length;
    if (h->is_cookie || h->odd_bytes > MOST_ODD) return true;
  }
  if (is_blank(line[0])) return h->hides || memchr(line, ':', length);
  return !is_field(line, length) ||
         !is_for_jar(h, line, length) ||
         (h->has_crossed && status == 401 && names(line, length, "WWW-Authenticate")) ||
         (pp_handle_has_body(h) && wants_body(h, status) && names(line, length, "Location"));
}

// Where the value of `Location: //host/path` begins; 0: the line is another one.
static size_t scheme_less(const char *line, size_t length) {
  size_t at = strlen("Location:");
  while (at < length && is_blank(line[at])) at++;
  return length > at + 1 && line[at] == '/' && line[at + 1] == '/' ? at : 0;
}

// That line with its scheme, as RFC 3986 section 5.2.2 resolves it. Foundation makes a URL of the host's decoded text otherwise, and
// ends the process if that is none. NULL: out of memory.
static char *with_scheme(const char *line, size_t length, size_t at, size_t *longer) {
  static const char before[] = "Location: https:";
  *longer = sizeof before - 1 + length - at;
  char *whole = malloc(*longer);
  if (!whole) return NULL;
  memcpy(whole, before, sizeof before - 1);
  memcpy(whole + sizeof before - 1, line + at, length - at);
  return whole;
}

static size_t receive_header(char *line, size_t size, size_t count, void *argument) {
  struct pp_handle *h = argument;
  size_t length = size * count;
  long status = 0;
  pp_easy_info(h->easy, CURLINFO_RESPONSE_CODE, (char **)&status);
  if (length == 0) return length;
  if (!goes_on(h, line, length, status)) {
    h->trailers += length;
    return h->trailers > MOST_TRAILERS ? 0 : length;
  }
  h->head_bytes += length;
  if (++h->head_lines > MOST_LINES || h->head_bytes > MOST_HEAD) return 0;
  bool is_status = !h->in_head, is_end = length <= 2 && (line[0] == '\r' || line[0] == '\n');
  h->in_head = !is_end;
  if (is_status && (length > MOST_STATUS || !is_status_line(line, length))) return 0;
  if (is_status) h->codings = 0, h->redirects = false, h->redirected = 0;
  h->codings += pp_codings(line, length);
  h->cookies += cookies_in(h, line, length);
  if (h->cookies > MOST_COOKIES || h->codings > 1 || is_no_length(line, length)) return 0;
  h->hides = !is_status && !is_end && is_hidden(h, line, length, status);
  if (h->hides) return length;
  h->is_location = names(line, length, "Location") || (h->is_location && is_blank(line[0]));
  // Whatever it goes on with in a further line.
  if (h->is_location && is_blank(line[0])) return length;
  if (!h->is_location || status / 100 != 3) return h->header_function(line, size, count, h->listener);
  h->redirects = true;
  size_t at = scheme_less(line, length);
  if (!at) return h->header_function(line, size, count, h->listener);
  char *whole = with_scheme(line, length, at, &size);
  bool is_taken = whole && h->header_function(whole, 1, size, h->listener) == size;
  free(whole);
  return is_taken ? length : 0;
}

static size_t receive_body(char *bytes, size_t size, size_t count, void *argument) {
  struct pp_handle *h = argument;
  pp_swelling before = h->swelling;
  if (h->redirects && pp_in_turn() && (h->redirected += size * count) > MOST_REDIRECTED) return 0;
  if (pp_body_ends(&h->swelling, size * count, h->easy, pp_easy_info)) return 0;
  size_t taken = h->write_function(bytes, size, count, h->writer);
  if (taken == CURL_WRITEFUNC_PAUSE) h->swelling = before;
  return taken;
}

static bool hear(struct pp_handle *h, curl_write_callback head, void *listener, curl_write_callback body,
                 void *writer) {
  return pp_easy_setopt(h->easy, CURLOPT_HEADERFUNCTION, head) == CURLE_OK &&
         pp_easy_setopt(h->easy, CURLOPT_HEADERDATA, listener) == CURLE_OK &&
         pp_easy_setopt(h->easy, CURLOPT_WRITEFUNCTION, body) == CURLE_OK &&
         pp_easy_setopt(h->easy, CURLOPT_WRITEDATA, writer) == CURLE_OK;
}

bool pp_heads_listen(struct pp_handle *h, const struct transfer *t) {
  if (!h || !h->listener || !h->header_function || !h->writer || !h->write_function) return false;
  h->head = PP_HEAD_NONE;
  h->hides = h->asks_again = h->is_cookie = h->is_location = h->in_head = false;
  h->trailers = h->head_bytes = 0;
  h->head_lines = h->cookies = 0;
  h->odd_bytes = 0;
  h->swelling = (pp_swelling){0};
  h->is_heard = true;
  h->transfer = t;
  return hear(h, receive_header, h, receive_body, h);
}

void pp_heads_leave(struct pp_handle *h) {
  if (!h || !h->is_heard) return;
  h->is_heard = false;
  h->transfer = NULL;
  hear(h, h->header_function, h->listener, h->write_function, h->writer);
}

CURL *pp_heads_give_up(CURL *easy) {
  struct pp_handle *h = pp_handle_of(easy);
  if (h && h->is_heard && h->head == PP_HEAD_NONE) pp_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
  return easy;
}

bool pp_heads_is_cut(CURL *easy) {
  struct pp_handle *h = pp_handle_of(easy);
  return h && h->is_heard && h->head == PP_HEAD_BEGUN;
}
#endif

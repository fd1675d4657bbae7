// See answer_bounds.h.
#if defined(__linux__)
#include "answer_bounds.h"

#include "endless_tls.h"

#include <curl/curl.h>
#include <string.h>

// A quarter of a second.
#define MOST_IN_A_TURN ((size_t)64 * 1024 * 1024)

static _Thread_local bool is_in_turn;
static _Thread_local uint64_t turn;
static _Thread_local size_t decoded;

void pp_turn_begin(void) {
  is_in_turn = true;
  turn++;
  decoded = 0;
  pp_tls_begin_turn();
}

void pp_turn_end(void) { is_in_turn = false; }

bool pp_in_turn(void) { return is_in_turn; }

uint64_t pp_turn(void) { return turn; }

static int64_t received(CURL *easy, pp_info_function info) {
  curl_off_t bytes = 0;
  info(easy, CURLINFO_SIZE_DOWNLOAD_T, (char **)&bytes);
  return bytes;
}

bool pp_body_ends(pp_swelling *swelling, size_t bytes, CURL *easy, pp_info_function info) {
  bool swells = pp_swells(swelling, bytes);
  if (!is_in_turn) return false;
  decoded += bytes;
  if (!swells && decoded <= MOST_IN_A_TURN) return false;
  return swells ? !pp_may_swell(swelling, received(easy, info)) : pp_body_swells(swelling, easy, info);
}

bool pp_body_swells(const pp_swelling *swelling, CURL *easy, pp_info_function info) {
  return pp_is_swollen(swelling, received(easy, info));
}

static bool is(const char *word, size_t length, const char *name) {
  return length == strlen(name) && curl_strnequal(word, name, length);
}

int pp_codings(const char *line, size_t length) {
  const char *colon = memchr(line, ':', length);
  size_t name = colon ? (size_t)(colon - line) : 0;
  if (!is(line, name, "Content-Encoding") && !is(line, name, "Transfer-Encoding")) return 0;
  int count = 0;
  for (size_t at = name + 1, end; at < length; at = end) {
    while (at < length && strchr(", \t\r\n", line[at])) at++;
    for (end = at; end < length && !strchr(", \t\r\n", line[end]);) end++;
    count += end > at && !is(line + at, end - at, "chunked") && !is(line + at, end - at, "identity");
  }
  return count;
}
#endif

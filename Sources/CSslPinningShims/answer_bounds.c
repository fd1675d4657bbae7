// See answer_bounds.h.
#if defined(__linux__)
#include "answer_bounds.h"

#include "endless_tls.h"

#include <curl/curl.h>
#include <stdatomic.h>
#include <string.h>

#define MOST_IN_A_TURN ((size_t)256 * 1024 * 1024)
// A read of gzip, which another transfer's turn must not take from this one.
#define OWN_IN_A_TURN ((size_t)20 * 1024 * 1024)

static atomic_uint_fast64_t turns;
static _Thread_local uint64_t turn;
static _Thread_local size_t decoded;

void pp_turn_begin(void) {
  pp_turn_end();
  pp_tls_begin_turn();
}

void pp_turn_end(void) {
  turn = atomic_fetch_add(&turns, 1) + 1;
  decoded = 0;
}

bool pp_turn_goes_on(pp_turn_share *share, size_t bytes) {
  if (share->turn != turn) *share = (pp_turn_share){.turn = turn};
  share->bytes += bytes;
  decoded += bytes;
  return decoded <= MOST_IN_A_TURN || share->bytes <= OWN_IN_A_TURN;
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

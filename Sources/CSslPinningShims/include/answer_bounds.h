// What an answer may have libcurl do while all others wait, beside what swelling.h says of a read.
#ifndef PP_ANSWER_BOUNDS_H
#define PP_ANSWER_BOUNDS_H
#include <stdbool.h>
#include <stddef.h>

#include <curl/curl.h>

#include "swelling.h"

// A turn of libcurl's on this thread: it reads, it may be a hundred times, and writes.
void pp_turn_begin(void);
void pp_turn_end(void);
bool pp_in_turn(void);
// The number of the present one, or of the last.
uint64_t pp_turn(void);

// Over HTTP/2, libcurl 7.88 loses bytes of other answers of the connection when a request is answered before the end of its body,
// which any body may be that flow control holds up. It also decodes and keeps what comes for a transfer that is paused, 64 MiB at
// most, and has the others wait. So bodies, streams, and what must not be sent twice go over HTTP/1.1, and their connections have this of CURLOPT_SSL_OPTIONS:
// libcurl would give one of HTTP/1.1 that is in use to another request, once the host has one of HTTP/2 (lib/url.c, ConnectionExists).
// What it allows it allows with TLS 1.0 alone, which is not spoken.
#define PP_APART ((long)CURLSSLOPT_ALLOW_BEAST)

typedef CURLcode (*pp_info_function)(CURL *easy, CURLINFO info, char **value);

// Whether an answer ends with these decoded bytes, since it swells too much (swelling.h). A connection of HTTP/2 may have a hundred: once
// 64 MiB were decoded in a turn, each ends that swells (pp_body_swells). None ends between turns, when a transfer goes on that was
// paused: curl_easy_pause drops what it cannot write, HTTP/2 goes on behind the gap, and Foundation ends the process.
bool pp_body_ends(pp_swelling *swelling, size_t bytes, CURL *easy, pp_info_function info);

// Whether it has swelled by more than text with much repetition does.
bool pp_body_swells(const pp_swelling *swelling, CURL *easy, pp_info_function info);

// How many codings a field of an answer's head names, beside the framing: of two, the first may make gigabytes of which the second
// leaves nothing.
int pp_codings(const char *line, size_t length);

#endif

// What an answer may have libcurl do while all others wait, beside what swelling.h says of a read.
#ifndef PP_ANSWER_BOUNDS_H
#define PP_ANSWER_BOUNDS_H
#include <stdbool.h>
#include <stddef.h>

#include "swelling.h"

// A turn of libcurl's on this thread begins: it may be a hundred reads and more.
void pp_turn_begin(void);

// It ended: what is written between turns, since a transfer goes on that was paused, is no part of it.
void pp_turn_end(void);

// Enters so many decoded bytes. False: beyond 256 MiB, which takes a second, of which this transfer had its part. Those that only
// come afterwards go on: libcurl drops what a transfer that was paused cannot write, and HTTP/2 would go on behind the gap.
bool pp_turn_goes_on(pp_turn_share *share, size_t bytes);

// How many codings a field of an answer's head names, beside the framing: of two, the first may make gigabytes of which the second
// leaves nothing.
int pp_codings(const char *line, size_t length);

#endif

// How much an answer may grow while it is decoded: as much as a read of gzip. One of brotli, or of gzip within gzip, may be
// gigabytes, and libcurl undoes it in one go: on the queue or the thread that all requests share, where nobody hears of a
// time-out or a cancel meanwhile.
#ifndef PP_SWELLING_H
#define PP_SWELLING_H
#if defined(__linux__)
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// libcurl reads 16 KiB at once, and with gzip two bits may stand for 258 bytes (RFC 1951 section 3.2.5): 16.5 MiB.
#define PP_MOST_AT_ONCE (20 * 1024 * 1024)

// Decoded bytes since it was last asked how many were received, and how many those were.
typedef struct {
  size_t decoded;
  int64_t received;
} pp_swelling;

// What one transfer had decoded in a turn of libcurl's (answer_bounds.h).
typedef struct {
  uint64_t turn;
  size_t bytes;
} pp_turn_share;

// Enters so many decoded bytes. True: it is to be asked.
static inline bool pp_swells(pp_swelling *s, size_t bytes) {
  s->decoded += bytes;
  return s->decoded > PP_MOST_AT_ONCE;
}

// Whether something was received meanwhile: if not, all of it is of one read.
static inline bool pp_was_read(pp_swelling *s, int64_t received) {
  bool was_read = received > s->received;
  *s = (pp_swelling){.received = received};
  return was_read;
}
#endif
#endif

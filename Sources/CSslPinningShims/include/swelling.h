// How much an answer may grow while it is decoded: a read by as much as gzip, and the whole beyond 32 MiB by a hundred times. A read
// of brotli, or of gzip within gzip, may be gigabytes, and libcurl undoes it in one go: on the queue or the thread that all
// requests share, where nobody hears of a time-out or a cancel meanwhile.
#ifndef PP_SWELLING_H
#define PP_SWELLING_H
#if defined(__linux__)
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// libcurl reads 16 KiB at once, and with gzip two bits may stand for 258 bytes (RFC 1951 section 3.2.5): 16.5 MiB.
#define PP_MOST_AT_ONCE (20 * 1024 * 1024)

// Text with much repetition is made thirty times as small by gzip.
#define PP_MOST_TIMES 100
#define PP_ALWAYS_TAKEN (32 * 1024 * 1024)

// All decoded bytes, and those since it was last asked how many were received, and how many those were.
typedef struct {
  int64_t total;
  size_t decoded;
  int64_t received;
} pp_swelling;

// Enters so many decoded bytes. True: it is to be asked.
static inline bool pp_swells(pp_swelling *s, size_t bytes) {
  s->total += bytes;
  s->decoded += bytes;
  return s->decoded > PP_MOST_AT_ONCE;
}

// Whether they may be so many, if so many were received: something meanwhile, or all of it is of one read.
static inline bool pp_may_swell(pp_swelling *s, int64_t received) {
  bool may = received > s->received && s->total <= PP_ALWAYS_TAKEN + PP_MOST_TIMES * received;
  s->decoded = 0;
  s->received = received;
  return may;
}

// Whether there is more of it than of text with much repetition.
static inline bool pp_is_swollen(const pp_swelling *s, int64_t received) {
  return s->total > 1024 * 1024 + PP_MOST_TIMES * received;
}
#endif
#endif

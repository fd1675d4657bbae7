// How much an answer may grow while it is decoded: as gzip can have what was received grow, and one read more. A read of
// brotli, or of gzip within gzip, may be gigabytes, and libcurl undoes it in one go: on the queue or the thread that all
// requests share, where nobody hears of a time-out or a cancel meanwhile.
#ifndef PP_SWELLING_H
#define PP_SWELLING_H
#include <curl/curl.h>
#include <stdbool.h>

// Of gzip: two bits may stand for 258 bytes (RFC 1951 section 3.2.5).
#define PP_MOST_GROWTH 1100
// libcurl reads 16 KiB at once, and counts those of a chunk once they are decoded.
#define PP_MOST_AT_ONCE (20 * 1024 * 1024)

static inline bool pp_may_swell(curl_off_t decoded) { return decoded > PP_MOST_AT_ONCE; }

static inline bool pp_is_swollen(curl_off_t decoded, curl_off_t received) {
  return pp_may_swell(decoded) && (decoded - PP_MOST_AT_ONCE) / PP_MOST_GROWTH > received;
}

#endif

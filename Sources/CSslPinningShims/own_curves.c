// See own_curves.h.
#if defined(__linux__)
#define _GNU_SOURCE  // memmem
#include "own_curves.h"

#include <string.h>

// id-ecPublicKey (RFC 5480 section 2.1.1), and SM2's own name for the same (GB/T 33560), which is a curve's name, too: then
// a key follows it, a BIT STRING.
static const unsigned char ec_key[] = {0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01};
static const unsigned char sm2[] = {0x2a, 0x81, 0x1c, 0xcf, 0x55, 0x01, 0x82, 0x2d};
enum { name_follows = 0x06, key_follows = 0x03 };

// Looked for as bytes: what is around them OpenSSL takes in many spellings, a name's bytes in this one alone.
static bool follows_another(const unsigned char *at, const unsigned char *end,
                            const unsigned char *name, size_t size, int other) {
  while ((at = memmem(at, (size_t)(end - at), name, size))) {
    at += size;
    if (at < end && *at != name_follows && *at != other) return true;
  }
  return false;
}

bool pp_brings_own_curve(const void *bytes, size_t count) {
  if (!bytes) return false;
  const unsigned char *start = bytes, *end = start + count;
  return follows_another(start, end, ec_key, sizeof ec_key, name_follows) ||
         follows_another(start, end, sm2, sizeof sm2, key_follows);
}
#endif

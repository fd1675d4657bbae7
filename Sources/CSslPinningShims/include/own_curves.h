// Keys in certificates and requests that bring a curve of their own.
//
// A key on an elliptic curve may come with the curve's numbers instead of its name. RFC 5480 section 2.1.1 forbids that in
// certificates, and no public CA signs such. OpenSSL looks for a point on that curve while it reads the key, long before
// anybody asks who signed it: with numbers chosen for that, a fifth of a second of a processor for 600 bytes. In a handshake that is on the thread
// that all connections share, and no time-out of the caller's is looked at meanwhile.
#ifndef PP_OWN_CURVES_H
#define PP_OWN_CURVES_H
#include <stdbool.h>
#include <stddef.h>

// Whether a key in these bytes, certificates or requests in DER with whatever is around them, has something else than a curve's name.
bool pp_brings_own_curve(const void *bytes, size_t count);

#endif

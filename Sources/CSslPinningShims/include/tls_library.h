// A library context of OpenSSL that knows the algorithms of TLS handshakes and no others.
//
// OpenSSL 3 looks through every key type and decoder that it has for each certificate that it reads:
// half of a handshake's work. Here the default provider stands behind a list, so that there is little
// to look through. Its implementations are the same ones.
#ifndef PP_TLS_LIBRARY_H
#define PP_TLS_LIBRARY_H

#if defined(__linux__)

#include <openssl/types.h>

// One of a few contexts, in turn: threads that work at the same time should not share one, since OpenSSL
// takes a lock for every algorithm that it looks up. NULL where OpenSSL has no default provider or no
// memory; NULL is also how OpenSSL's functions are told to use their own context.
//
// It lives as long as the process, and must not be freed: whatever thread used it refers to it until that
// thread has ended.
//
// Certificates read in it may be looked at but not judged: it does not know the keys that only a
// certificate far up in a chain may have.
OSSL_LIB_CTX *pp_tls_library(void);

#endif
#endif

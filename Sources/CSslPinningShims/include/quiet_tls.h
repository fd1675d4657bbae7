// Keeps a peer that left from ending the process.
//
// libcurl before 7.87 has OpenSSL write to the socket by itself, with write(2): where the peer has
// closed, that raises SIGPIPE, whose default is the end of the process. NOSIGNAL does not help, it only
// says that libcurl shall not ignore the signal for everybody. From 7.87 on libcurl writes for OpenSSL,
// with MSG_NOSIGNAL, and nothing here does anything.
#ifndef PP_QUIET_TLS_H
#define PP_QUIET_TLS_H
#include <openssl/ssl.h>
#include <stdbool.h>

// Every connection of this context writes with MSG_NOSIGNAL from its first byte on, whatever the
// thread and whoever drives it. False: out of memory.
bool pp_tls_quiet(SSL_CTX *context);

// What this context's info callback (SSL_CTX_set_info_callback) is then. Whoever sets another one calls
// it from there.
void pp_tls_quiet_hear(const SSL *ssl, int event, int value);

// How many contexts were prepared so far: for tests.
int pp_tls_quiet_count(void);

#endif

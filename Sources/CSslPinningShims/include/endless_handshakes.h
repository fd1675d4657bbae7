// Ends connections on which a server sends handshake messages without end.
//
// OpenSSL takes them in a loop that gives nothing back while there are bytes: a server that sends the same message over
// and over keeps the thread for as long as it likes, and no time-out of the caller's ends that. Up to TLS 1.2 it may ask
// for a handshake at any time (HelloRequest, RFC 5246 section 7.4.1.1), also during one, where clients ignore it. In TLS
// 1.3 it may change its key and hand out tickets as often as it likes (RFC 8446 section 4.6).
#ifndef PP_ENDLESS_HANDSHAKES_H
#define PP_ENDLESS_HANDSHAKES_H
#include <openssl/types.h>

// Has each connection of this client's context fail once its server asks for a second handshake during one, or sent more
// within a second than any handshake has: messages of it, and records with something else than application data.
// This is the context's message callback from then on.
void pp_tls_refuse_endless_handshakes(SSL_CTX *context);

#endif

// Ends handshakes that a server keeps from ending.
//
// Up to TLS 1.2 a server may ask for a handshake at any time (HelloRequest, RFC 5246 section 7.4.1.1), also
// during one, where clients ignore it. OpenSSL does so in a loop that gives nothing back while there are
// bytes: a server that sends these four over and over keeps the thread for as long as it likes, and no
// time-out of the caller's ends that.
#ifndef PP_HELLO_REQUESTS_H
#define PP_HELLO_REQUESTS_H
#include <openssl/types.h>

// Has each handshake of this client's context fail once the server asks for another one. What it asks for
// after a handshake is OpenSSL's to answer, as before. This is the context's message callback from then on.
void pp_tls_refuse_hello_requests(SSL_CTX *context);

#endif

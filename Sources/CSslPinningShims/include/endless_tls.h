// Keeps a server from holding the thread that reads from it, where no time-out of the caller's is looked at.
//
// - Up to TLS 1.2 a server may ask for a handshake at any time (HelloRequest, RFC 5246 section 7.4.1.1), also
//   during one, where clients ignore it. OpenSSL does so in a loop that gives nothing back while there are
//   bytes: a server that sends these four over and over keeps the thread for as long as it likes.
// - A message of a handshake may come in records of one byte, and up to 32 empty ones before each: a certificate of
//   100 KB in three million records, which OpenSSL reads in one go while they are there.
// - After a handshake, SSL_read handles what is no data (session tickets, key updates, HelloRequests) and reads
//   on, if the context says so, which is OpenSSL's default: a server that sends such faster than it is handled
//   keeps the thread, too.
// - libcurl reads on in the same way while frames of HTTP/2 come.
// - A certificate whose key brings a curve of its own takes OpenSSL a fifth of a second to read (own_curves.h): each of these
//   contexts fails a handshake with one.
// - A hundred kilobytes have room for four hundred certificates, each of which is read more than once: a hundred are the most.
// - Up to TLS 1.2 a server chooses the group of DHE, and OpenSSL takes one of 10 000 bits: more than a second. Here 4096 are the
//   most.
#ifndef PP_ENDLESS_TLS_H
#define PP_ENDLESS_TLS_H
#include <openssl/types.h>

// Has each handshake of this client's context fail once the server asks for another one, or it has more than 4096
// records, and SSL_read return (SSL_ERROR_WANT_READ) after each message that is no data. For sockets that do not
// block, and without read-ahead. This is the context's message callback from then on.
void pp_tls_refuse_endless(SSL_CTX *context);

// The same for connections that may speak HTTP/2, in a loop of libcurl's multi interface: it reads frames that are no
// answer (PING, say) for as long as there are any, without a look at a time-out, and no other connection has its turn.
// A connection that sends too many records in one turn is ended.
void pp_tls_read_in_turns(SSL_CTX *context);

// A turn of this thread begins: before each call that may read.
void pp_tls_begin_turn(void);

// The same as pp_tls_refuse_endless for a connection that another TLS connection runs inside of: what a record still
// has is on no socket, so SSL_read has to read on there. It fails instead once the server sent more within a second
// than any handshake has: messages of it, and records with something else than application data.
void pp_tls_refuse_floods(SSL_CTX *context);

#endif

// What every connection that is judged has in common, whoever dials it: a session's through the hook,
// or the loop of client_loop.h.
#ifndef PP_JUDGED_TLS_H
#define PP_JUDGED_TLS_H
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>

// What is known of an accepted connection. It outlives the connection for whoever holds it. Belongs to
// the thread that drives the connection.
typedef struct pp_judged {
  // NULL once it is freed.
  SSL *ssl;
  void *proof;
  void (*release)(void *proof);
  unsigned holders;
  // The peer said that nothing follows (close_notify): an end without it may be anybody's who is on
  // the way.
  bool was_ended;
  // Many requests at a time go over it (HTTP/2).
  bool is_shared;
  // Its socket; -1: not known.
  int socket;
  // A request went over it.
  bool was_used;
  // How often something came over it.
  uint64_t heard;
  // Whose request went onto it last; it holds the connection. NULL: nobody's who still does.
  CURL *user;
} pp_judged;

typedef int (*pp_verify_callback)(X509_STORE_CTX *store_context, void *argument);

// Has a new connection's SSL_CTX ask `verify` instead of verifying by itself, once and for all of
// the connection's life: no renegotiation, no resumption. A reference to `store` is taken.
CURLcode pp_judged_prepare(SSL_CTX *context, X509_STORE *store, pp_verify_callback verify,
                           void *argument);

// The connection whose handshake `store_context` is of; refused until pp_judged_end says otherwise.
SSL *pp_judged_begin(X509_STORE_CTX *store_context);

// Ends a verify callback with what it returns: 1 where the connection is accepted and owns its proof
// now. In every other case the proof, if there is one, is released.
int pp_judged_end(X509_STORE_CTX *store_context, SSL *ssl, bool accepted, void *proof,
                  void (*release)(void *));

// The connection behind this; NULL: it was never accepted here.
pp_judged *pp_judged_of(const struct curl_tlssessioninfo *info);

// Finds the accepted connection that a handle is on; NULL: none.
typedef pp_judged *(*pp_judged_search)(CURL *easy);

// Whether it carries one request at a time, and that of another handle is under way on it: libcurl may put two onto one of HTTP/1.1,
// once the host has one of HTTP/2 (answer_bounds.h), and each reads what it finds of both answers.
bool pp_judged_is_taken(const pp_judged *judged, CURL *easy, pp_judged_search search);

// For how many seconds libcurl remembers a name's addresses, save for a connection after a refusal: by itself a minute, for which whoever
// lied about them would go on after he has left.
#define PP_DNS_MEMORY 5L

// How many sockets are remembered: libcurl dials a name's addresses of both families at one time.
#define PP_SOCKETS 4

// Remembers a socket that was made, in the place of the oldest.
void pp_note_socket(int made[PP_SOCKETS], int socket);

// Finds the socket of a new connection among those that were made: that with this port of ours.
void pp_judged_find_socket(pp_judged *judged, const int made[PP_SOCKETS], int own_port);

// Whether the server has ended it since the last request, or said something that nobody asked for: mostly a close_notify, with or
// without the end of TCP behind it (RFC 8446 section 6.1). libcurl asks the socket alone for a byte, so it takes such a connection for
// alive, and what OpenSSL has read of a record's rest for the next answer. A request must be kept from it in time: once it was sent, it
// may have arrived, and must not be sent again.
bool pp_judged_is_over(const pp_judged *judged);

// How many bytes have come over it, whatever they are of; 0: it is NULL, or freed.
uint64_t pp_judged_received(const pp_judged *judged);

// What a connection of this colour, 0 to PP_COLOURS - 1, is opened with (CURLOPT_SSL_OPTIONS). libcurl gives a request none that was
// opened with something else.
long pp_colour_options(unsigned colour);

// Has `easy` hold `judged`, which may be NULL, instead of what it held.
void pp_judged_hold(pp_judged **held, pp_judged *judged, CURL *easy);
void pp_judged_let_go(pp_judged *judged);

#endif

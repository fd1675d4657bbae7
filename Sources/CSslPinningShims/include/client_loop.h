// One libcurl multi handle on epoll, and the transfers on it: the hot half of `data(for:)`.
//
// Threads: everything here belongs to the one thread that made the client, save `pp_client_post`.
// The callbacks run on that thread, inside libcurl, and must not block.
//
// What is decided, Swift decides: whether a connection may be used (`judge`, `confirm`), what goes
// up (`feed`). What is kept here are bytes: the response's head as it came, and its body.
#ifndef PP_CLIENT_LOOP_H
#define PP_CLIENT_LOOP_H

#include "swelling.h"

#include <curl/curl.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct pp_client pp_client;
typedef struct pp_exchange pp_exchange;

typedef struct pp_message {
  struct pp_message *next;
  void *object;
  size_t amount;
  int kind;
} pp_message;

typedef struct {
  uint8_t *bytes;
  size_t count, capacity;
} pp_buffer;

typedef struct {
  // Handed to every callback; outlives the client.
  void *context;
  // Judges a handshake in place of OpenSSL's own verification. True: `*proof` becomes the
  // connection's own, ended by `release_proof`.
  bool (*judge)(void *context, pp_exchange *exchange, X509_STORE_CTX *store_context, void **proof);
  void (*release_proof)(void *proof);
  // Asked before every request, on reused connections too. `proof` is NULL where the connection was
  // never judged here.
  bool (*confirm)(void *context, pp_exchange *exchange, void *proof);
  // Fills `bytes` with the next of a streamed body; 0 is its end, PP_FEED_LATER and PP_FEED_FAILED.
  long (*feed)(void *context, pp_exchange *exchange, void *bytes, size_t capacity);
  // The anchors that chains are validated against; a reference is taken.
  X509_STORE *store;
  // False only where names do not count (pinned keys alone).
  bool check_host;
  long most_connections;
  // Beyond so many, those that nobody uses are closed.
  long most_kept;
  // What this libcurl can do, as pp_libcurl_features tells it.
  unsigned libcurl_features;
} pp_client_options;

// CURL_VERSION_… bits of the libcurl at hand.
unsigned pp_libcurl_features(void);

// The newest version of HTTP that a libcurl with these features takes as an option (and CURL_HTTP_VERSION_…
// for it): one that was built without HTTP/2 refuses to be asked for it.
long pp_http_version(unsigned features);

#define PP_FEED_LATER (-1)
#define PP_FEED_FAILED (-2)

// How many colours connections have.
#define PP_COLOURS 8

// One easy handle with what it receives; used for one transfer after the other.
struct pp_exchange {
  CURL *easy;
  pp_client *client;
  void *owner;        // Swift's; NULL between transfers
  uint64_t serial;    // of the present transfer
  pp_buffer head;     // the final response's head as it came, without CONNECT's and 1xx ones
  pp_buffer body;
  size_t unread;      // bytes of a streamed body that nobody has taken yet
  size_t unread_limit;  // from there on the transfer is paused
  uint64_t turn;        // of libcurl's, in which it took something of the body
  size_t discarded;
  pp_swelling swelling;
  int codings;
  int status;
  int64_t sent;         // of its body, as libcurl counts
  int looks;            // how often libcurl called before it had a connection
  bool has_location;
  bool head_ended;      // a whole head, maybe a 1xx one
  bool head_complete;
  bool streams;         // body and head are handed over as they come
  bool follows;         // the body of an answer that leads elsewhere is dropped
  bool discards;
  bool may_repeat;      // whether libcurl may send it again where a kept connection turns out dead
  bool begun;           // a byte may have left
  bool repeat_refused;
  bool is_over;         // libcurl had put it onto a connection that the server has ended; nothing of it left
  bool is_crowded;      // libcurl had put it onto a connection that carries another's request; nothing of it left
  bool paused;          // by unread_limit
  bool upload_paused;   // by feed
  struct pp_judged *connection;  // that it is on, or was
  int sockets[4];       // that were made for it last (PP_SOCKETS)
  uint64_t heard;       // how often something had come over it when something came for this one
  bool is_chunked;      // its last chunk ends the body
  bool alive;           // bytes moved since somebody last cleared this
  bool is_running, is_news, is_plain;
  bool dials;           // a socket was made for it
  bool is_dialing;      // for a connection that is not there yet a name is looked up, or a socket was made
  bool has_proxies;     // the environment named some when the options were set
  struct pp_exchange *next_news;
  struct curl_slist *headers;
  struct curl_slist *addresses;  // of a name of this machine
  char error[CURL_ERROR_SIZE];
};

// NULL where something cannot be had. `options` is copied.
pp_client *pp_client_make(const pp_client_options *options);

// Closes every connection. All exchanges must have been freed.
void pp_client_close(pp_client *client);

// Frees what is left; from any thread, once nobody wakes it any more. Closes first where need be.
void pp_client_free(pp_client *client);

// Puts a message into the client's inbox and ends a wait, or the next one, early. From any thread.
// False: out of memory.
bool pp_client_post(pp_client *client, int kind, void *object, size_t amount);

// All messages so far, oldest first, each to be freed with free().
pp_message *pp_client_take(pp_client *client);

// Does what is due by libcurl's timers.
void pp_client_act(pp_client *client);

// Waits for sockets, timers or a message, at most `milliseconds` (negative: for ever), and acts. Spins
// for a moment first where something happened just now.
void pp_client_wait(pp_client *client, int milliseconds);

// The next finished transfer, to be stopped; NULL: none.
pp_exchange *pp_client_next_done(pp_client *client, CURLcode *code);

// The next streaming transfer with something new; NULL: none.
pp_exchange *pp_client_next_news(pp_client *client);

// Milliseconds of a clock that never goes back.
int64_t pp_client_now(void);

pp_exchange *pp_exchange_make(pp_client *client);
void pp_exchange_free(pp_exchange *exchange);

// Whether its easy handle must not carry another transfer. Then renewing makes another one, with the options
// of a plain GET; false: out of memory. Connections are the client's and stay.
bool pp_exchange_is_spent(const pp_exchange *exchange);
bool pp_exchange_renew(pp_exchange *exchange);

// Sets the options of a GET without a body or headers of its own; false: out of memory.
bool pp_exchange_reset(pp_exchange *exchange);

// Whether the options of the last request do not hold for a plain GET any more.
bool pp_exchange_needs_reset(const pp_exchange *exchange);

// The URL as parsed: what was judged is what is dialled.
CURLcode pp_exchange_set_url(pp_exchange *exchange, CURLU *url);

// Of these, one call for each; they hold until the next reset. `body` is copied.
CURLcode pp_exchange_set_method(pp_exchange *exchange, const char *method);
CURLcode pp_exchange_set_body(pp_exchange *exchange, const char *method, const void *body,
                              size_t count);
CURLcode pp_exchange_set_streamed_body(pp_exchange *exchange, const char *method, int64_t count);
CURLcode pp_exchange_add_header(pp_exchange *exchange, const char *line);
CURLcode pp_exchange_apply_headers(pp_exchange *exchange, bool own_encoding);
CURLcode pp_exchange_set_proxy(pp_exchange *exchange, const char *proxy);
CURLcode pp_exchange_use_fresh_connection(pp_exchange *exchange);
// Its connection is kept for nobody after this.
CURLcode pp_exchange_leave_connection(pp_exchange *exchange);
// A request was late: whether connections of its colour may be dead, for nothing came over its own meanwhile.
// That is kept for nobody then. `others_were_heard`: answers came over other kept ones.
bool pp_exchange_leave_silent_connection(pp_exchange *exchange, bool others_were_heard);
// Has the exchange use connections of this colour only, and open them so: 0 to PP_COLOURS - 1. That is how
// others are kept off a connection that libcurl still thinks well of. One that avoids HTTP/2 has connections of HTTP/1.1 apart.
CURLcode pp_exchange_set_colour(pp_exchange *exchange, unsigned colour, bool avoids_http2);
// Has the exchange wait for no connection that somebody else opens. libcurl does not look at the colour of
// one that is being made.
CURLcode pp_exchange_dial_itself(pp_exchange *exchange);
// Whether the connection that a request went onto is gone, and libcurl is about to send it again. It dials for
// that, or waits for somebody else's dial, and does not say so. Asked from time to time; true once for each
// loss.
bool pp_exchange_lost_connection(pp_exchange *exchange);
// For a head of so many bytes: libcurl 7.88 sends two of its buffers of one, and waits for ever.
CURLcode pp_exchange_make_room(pp_exchange *exchange, size_t head);
// Without it libcurl gives a connection up that is not there after 300 seconds.
CURLcode pp_exchange_wait_long(pp_exchange *exchange);

// Adds the exchange to the multi handle under a new serial; stopping takes it out, whatever it does.
bool pp_exchange_start(pp_exchange *exchange);
void pp_exchange_stop(pp_exchange *exchange);

// Whether nothing says that the answer to a request other than HEAD is whole: its connection's end is all
// that ends it, and the peer did not announce that (RFC 9112 section 9.8). Asked once the transfer is done.
bool pp_exchange_may_be_cut(const pp_exchange *exchange);

// Goes on with a paused transfer: `taken` bytes of its body were taken, or its feed has more.
void pp_exchange_resume(pp_exchange *exchange, size_t taken);

// Empties a buffer and hands its bytes over, to be freed with free().
void *pp_buffer_detach(pp_buffer *buffer);

// errno of the last failed connect, or 0.
long pp_exchange_os_error(pp_exchange *exchange);

// curl_url_get in a typed form; freed by curl_free.
char *pp_url_part(CURLU *url, CURLUPart part, unsigned flags);

#endif

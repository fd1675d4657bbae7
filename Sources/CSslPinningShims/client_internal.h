// What the loop and the transfers of client_loop.h share.
#ifndef PP_CLIENT_INTERNAL_H
#define PP_CLIENT_INTERNAL_H
#define CURL_DISABLE_TYPECHECK
#include "client_loop.h"
#include "judged_tls.h"

#include <stdatomic.h>

#define USER_AGENT "ssl-pinning"

// Of one descriptor: what libcurl wants to hear of, and what epoll was told.
struct pp_watch {
  uint8_t wanted, registered;
  bool is_kept;  // a connection's: libcurl tells us when it is closed
};

struct pp_client {
  CURLM *multi;
  pp_client_options options;
  int epoll, wake;
  int64_t timer_at;  // in microseconds; -1: none
  int spin_score;      // above 0: spinning pays
  unsigned turns;
  bool is_contended;   // others want this thread's processor
  long lost;           // how often it was taken away
  int64_t look_at;
  struct pp_watch *watches;
  size_t watch_count;
  uint64_t next_serial;
  pp_exchange *news, **news_end;
  _Atomic(pp_message *) inbox;  // newest first
  atomic_int sleeping;
  // What every plain request says where no proxy is about; NULL: each option by itself.
  struct curl_slist *plain_headers;
  // Whether this libcurl's easy handles are good for one transfer only.
  bool spends_handles;
};

// Whether the environment names proxies now. Asked with every request, as libcurl does for a session's.
bool pp_client_has_proxies(void);

// Room for one descriptor; NULL: out of memory.
struct pp_watch *pp_client_watch(pp_client *client, int descriptor);

// CURLOPT_RESOLVER_START_FUNCTION, CURLOPT_OPENSOCKETFUNCTION and CURLOPT_CLOSESOCKETFUNCTION.
int pp_client_begin_lookup(void *state, void *reserved, void *exchange);
curl_socket_t pp_client_open_socket(void *exchange, curlsocktype purpose, struct curl_sockaddr *to);
int pp_client_close_socket(void *client, curl_socket_t socket);

// Has the exchange hold the connection that it is on; NULL: none.
void pp_exchange_hold(pp_exchange *exchange, pp_judged *connection);

// CURLOPT_SSL_CTX_FUNCTION and CURLOPT_PREREQFUNCTION of an exchange.
CURLcode pp_exchange_prepare_tls(CURL *easy, void *tls_context, void *exchange);
int pp_exchange_before_request(void *exchange, char *peer, char *own, int peer_port, int own_port);

#endif

// The half of the hook that libcurl and OpenSSL ask for verdicts. See urlsession_hook.h.
#if defined(__linux__)
#include "judged_tls.h"
#include "urlsession_handles.h"
#include "urlsession_internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

// What a connection's SSL_CTX owns.
struct connection {
  struct session *session;
  CURL *easy;
  uint64_t transfer;
};

static int context_index = -1;
static pthread_once_t index_once = PTHREAD_ONCE_INIT;

static void free_connection(void *parent, void *pointer, CRYPTO_EX_DATA *data, int index, long argl,
                            void *argp) {
  (void)parent, (void)data, (void)index, (void)argl, (void)argp;
  struct connection *c = pointer;
  if (!c) return;
  pp_session_release_from_connection(c->session);
  free(c);
}

static void make_index(void) {
  context_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, free_connection);
}

pp_transfer pp_view(const struct transfer *t) {
  return (pp_transfer){
      .id = t->id,
      .scheme = t->scheme,
      .host = t->host,
      .port = t->port,
      .is_alone = t->is_alone,
      .refreshed = t->refreshed,
      .awaits_pins = t->parked && t->verdict == TO_REFRESH,
      .elapsed = pp_now() - t->started,
  };
}

double pp_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + now.tv_nsec / 1e9;
}

CURLcode pp_transfer_limit(const struct transfer *t, bool is_replay) {
  CURLcode code = pp_easy_setopt(t->easy, CURLOPT_DNS_CACHE_TIMEOUT, is_replay ? 0L : PP_DNS_MEMORY);
  if (code) return code;
  double left = t->timeout * 0.9 - (pp_now() - t->started);
  bool is_limited = is_replay && t->refreshed && t->timeout > 0;
  // 0 is libcurl's own limit.
  return pp_easy_setopt(t->easy, CURLOPT_CONNECTTIMEOUT_MS, !is_limited ? 0L : left > 0.001 ? (long)(left * 1000) : 1L);
}

void pp_note(struct transfer *t, pp_decision decision, const char *message) {
  t->verdict = decision == PP_RETRY && !t->is_alone ? TO_RETRY
               : decision == PP_REFRESH             ? TO_REFRESH
                                                    : REFUSED;
  // Colours come round: whoever meets a second connection that cannot be used gets the next one made.
  if (t->verdict == TO_RETRY && t->replayed) t->is_alone = true;
  snprintf(t->message, sizeof t->message, "%s", message);
}

// OpenSSL asks here instead of verifying by itself. Runs inside curl_multi_socket_action, on the
// queue of the session that opened the connection.
static int verify(X509_STORE_CTX *store_context, void *argument) {
  struct connection *c = argument;
  struct session *s = c->session;
  SSL *ssl = pp_judged_begin(store_context);
  struct transfer *t = pp_find_transfer(s, c->easy, c->transfer);
  // A handshake that outlives its transfer has nobody to carry a request for.
  if (!ssl || !t) return 0;
  char message[PP_MESSAGE_SIZE] = "";
  pp_transfer asked = pp_view(t);
  void *proof = NULL;
  pp_decision decision =
      s->options.judge(s->options.context, &asked, store_context, &proof, message);
  if (pp_judged_end(store_context, ssl, decision == PP_ACCEPT, proof, s->options.release_proof))
    return 1;
  if (decision == PP_ACCEPT) snprintf(message, sizeof message, "out of memory");
  pp_note(t, decision == PP_ACCEPT ? PP_REFUSE : decision, message);
  return 0;
}

// libcurl hands us the SSL_CTX of a new connection; a failure here fails the connection.
CURLcode pp_prepare_tls(CURL *easy, void *tls_context, void *argument) {
  struct transfer *t = argument;
  SSL_CTX *context = tls_context;
  pthread_once(&index_once, make_index);
  if (context_index < 0) return CURLE_OUT_OF_MEMORY;
  struct connection *c = calloc(1, sizeof *c);
  if (!c) return CURLE_OUT_OF_MEMORY;
  c->session = t->session;
  c->easy = easy;
  c->transfer = t->id;
  pp_session_retain_for_connection(t->session);
  if (!SSL_CTX_set_ex_data(context, context_index, c)) {
    free_connection(NULL, c, NULL, 0, 0, NULL);
    return CURLE_OUT_OF_MEMORY;
  }
  return pp_judged_prepare(context, t->session->options.store, verify, c);
}

static pp_judged *connection_of(CURL *easy) { return pp_judged_of(pp_tls_info(easy)); }

// How long a connection is silent until a request that is given up says something of it, in seconds. Foundation's shortest time-out is
// one, some of which is over when the request goes out. What is given up sooner the app has cancelled.
#define LONG_SILENCE 0.8

void pp_transfer_hold(struct transfer *t, pp_judged *connection) {
  // One that nobody else is on was closed before this, and counts as 0.
  bool is_silent = t->received > 0 && pp_judged_received(t->connection) == t->received;
  if (is_silent && pp_now() - t->sent >= LONG_SILENCE) pp_connections_leave(t);
  pp_judged_hold(&t->connection, connection, t->easy);
  t->received = pp_judged_received(connection), t->sent = pp_now();
}

static curl_socket_t open_socket(void *argument, curlsocktype purpose, struct curl_sockaddr *to) {
  (void)purpose;
  struct transfer *t = argument;
  int made = socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
  if (made >= 0) pp_note_socket(t->sockets, made);
  return made < 0 ? CURL_SOCKET_BAD : made;
}

// libcurl asks here before every request, on reused connections and HTTP/2 streams too.
int pp_before_request(void *argument, char *peer, char *own, int peer_port, int own_port) {
  (void)peer, (void)own, (void)peer_port;
  struct transfer *t = argument;
  struct session *s = t->session;
  struct pp_handle *handle = pp_handle_of(t->easy);
  pp_judged *connection = connection_of(t->easy);
  if (pp_transfer_is_lost(t)) return CURL_PREREQFUNC_ABORT;
  if (pp_judged_is_taken(connection, t->easy, connection_of)) {
    t->verdict = TO_PART, t->is_alone = true;
    handle->is_apart = true;
    return CURL_PREREQFUNC_ABORT;
  }
  pp_judged_find_socket(connection, t->sockets, own_port);
  if (pp_judged_is_over(connection)) {
    t->verdict = TO_PART, t->is_alone = t->is_instead = true;
    curl_easy_setopt(t->easy, CURLOPT_FORBID_REUSE, 1L);
    return CURL_PREREQFUNC_ABORT;
  }
  char message[PP_MESSAGE_SIZE] = "";
  pp_transfer asked = pp_view(t);
  pp_decision decision = s->options.confirm(s->options.context, &asked, connection ? connection->proof : NULL, message);
  if (decision == PP_ACCEPT) {
    pp_transfer_hold(t, connection);
    t->begun = true;
    return CURL_PREREQFUNC_OK;
  }
  pp_note(t, decision, message);
  // The replay, and others, may share the one that is made next. What is on this one goes on.
  if (decision == PP_RETRY && connection) pp_connections_leave(t);
  // One that is still being made would be given to the replay again.
  if (decision == PP_RETRY && !connection) t->is_alone = true;
  // Else a refused HTTP/2 connection stays in the pool.
  curl_easy_setopt(t->easy, CURLOPT_FORBID_REUSE, 1L);
  return CURL_PREREQFUNC_ABORT;
}

// Foundation ends the process where it cannot begin a body anew. What goes once needs not.
static int stay(void *argument, curl_off_t offset, int origin) {
  (void)argument, (void)offset, (void)origin;
  return CURL_SEEKFUNC_FAIL;
}

CURLcode pp_listen(struct transfer *t, CURL *easy) {
  CURLcode failed = 0;
#define SET(option, value) failed |= pp_easy_setopt(easy, option, value)
  if (t && !pp_handle_may_repeat(pp_handle_of(easy))) SET(CURLOPT_SEEKFUNCTION, stay);
  SET(CURLOPT_OPENSOCKETFUNCTION, t ? open_socket : NULL);
  SET(CURLOPT_OPENSOCKETDATA, t);
  // Foundation's would do no more than libcurl, by way of an object that may be about to go.
  SET(CURLOPT_CLOSESOCKETFUNCTION, NULL);
  SET(CURLOPT_SSL_CTX_FUNCTION, t ? pp_prepare_tls : NULL);
  SET(CURLOPT_SSL_CTX_DATA, t);
  SET(CURLOPT_PREREQFUNCTION, t ? pp_before_request : NULL);
  SET(CURLOPT_PREREQDATA, t);
#undef SET
  return failed;
}

bool pp_transfer_is_lost(struct transfer *t) {
  if (!t->begun || pp_handle_may_repeat(pp_handle_of(t->easy))) return false;
  t->verdict = LOST;
  snprintf(t->message, sizeof t->message, "the kept connection was dead");
  return true;
}

void pp_transfer_free(struct transfer *t) {
  pp_transfer_hold(t, NULL);
  curl_slist_free_all(t->addresses);
  free(t);
}

void pp_read_url(struct transfer *t) {
  t->scheme[0] = t->host[0] = 0;
  t->port = 0;
  char *url = NULL, *part = NULL;
  pp_easy_info(t->easy, CURLINFO_EFFECTIVE_URL, &url);
  CURLU *parsed = curl_url();
  if (url && parsed && !curl_url_set(parsed, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME)) {
    if (!curl_url_get(parsed, CURLUPART_SCHEME, &part, 0) && part) {
      snprintf(t->scheme, sizeof t->scheme, "%s", part);
      curl_free(part);
    }
    part = NULL;
    if (!curl_url_get(parsed, CURLUPART_HOST, &part, 0) && part) {
      // A name that does not fit is no name: it must not be judged by its beginning.
      if (strlen(part) < sizeof t->host) snprintf(t->host, sizeof t->host, "%s", part);
      curl_free(part);
    }
    part = NULL;
    if (!curl_url_get(parsed, CURLUPART_PORT, &part, CURLU_DEFAULT_PORT) && part) {
      t->port = atoi(part);
      curl_free(part);
    }
  }
  curl_url_cleanup(parsed);
}
#endif

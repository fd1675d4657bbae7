// Where libcurl and OpenSSL ask whether an exchange of client_loop.h may use a connection.
#if defined(__linux__)
#include "client_internal.h"
#include "judged_tls.h"

#include <pthread.h>

static int serial_index = -1;
static pthread_once_t index_once = PTHREAD_ONCE_INIT;

static void make_index(void) {
  serial_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, NULL);
}

// OpenSSL asks here instead of verifying by itself.
static int verify(X509_STORE_CTX *store_context, void *argument) {
  pp_exchange *x = argument;
  const pp_client_options *options = &x->client->options;
  SSL *ssl = pp_judged_begin(store_context);
  if (!ssl || !x->owner) return 0;
  // Exchanges are used again: a handshake that outlives its transfer is nobody's.
  uintptr_t serial = (uintptr_t)SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), serial_index);
  if (serial != (uintptr_t)x->serial) return 0;
  void *proof = NULL;
  bool accepted = options->judge(options->context, x, store_context, &proof);
  return pp_judged_end(store_context, ssl, accepted, proof, options->release_proof);
}

// libcurl hands us the SSL_CTX of a new connection; a failure here fails the connection.
CURLcode pp_exchange_prepare_tls(CURL *easy, void *tls_context, void *argument) {
  (void)easy;
  pp_exchange *x = argument;
  SSL_CTX *context = tls_context;
  pthread_once(&index_once, make_index);
  if (serial_index < 0 ||
      !SSL_CTX_set_ex_data(context, serial_index, (void *)(uintptr_t)x->serial))
    return CURLE_OUT_OF_MEMORY;
  // libcurl has OpenSSL give its buffers back after every record, to ask for them again with the
  // next. Connections are few here, requests many.
  SSL_CTX_clear_mode(context, SSL_MODE_RELEASE_BUFFERS);
  return pp_judged_prepare(context, x->client->options.store, verify, x);
}

static pp_judged *connection_of(CURL *easy) {
  struct curl_tlssessioninfo *info = NULL;
  if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &info) != CURLE_OK) return NULL;
  return pp_judged_of(info);
}

// Whether the request may go onto its connection.
static bool confirm(pp_exchange *x) {
  pp_exchange_hold(x, connection_of(x->easy));
  void *proof = x->connection ? x->connection->proof : NULL;
  return x->owner && x->client->options.confirm(x->client->options.context, x, proof);
}

bool pp_exchange_lost_connection(pp_exchange *x) {
  // What has an answer is not sent again.
  if (!x->begun || !x->connection || x->head.count > 0 || connection_of(x->easy) == x->connection)
    return false;
  pp_exchange_hold(x, NULL);
  return true;
}

// libcurl asks here before every request, on reused connections and HTTP/2 streams too.
int pp_exchange_before_request(void *argument, char *peer, char *own, int peer_port,
                               int own_port) {
  (void)peer, (void)own, (void)peer_port;
  pp_exchange *x = argument;
  pp_judged *connection = connection_of(x->easy);
  pp_judged_find_socket(connection, x->sockets, own_port);
  // What may have arrived must not be sent over another one either.
  x->is_over = (!x->begun || x->may_repeat) && pp_judged_is_over(connection);
  if (x->begun && !x->may_repeat) {
    x->repeat_refused = true;
  } else if (pp_judged_is_taken(connection, x->easy, connection_of)) {
    x->is_crowded = true;
    return CURL_PREREQFUNC_ABORT;
  } else if (!x->is_over && confirm(x)) {
    x->begun = true;
    x->is_dialing = false;
    return CURL_PREREQFUNC_OK;
  }
  // Else a refused HTTP/2 connection stays in the pool.
  pp_exchange_leave_connection(x);
  return CURL_PREREQFUNC_ABORT;
}

long pp_exchange_os_error(pp_exchange *x) {
  long number = 0;
  curl_easy_getinfo(x->easy, CURLINFO_OS_ERRNO, &number);
  return number;
}

char *pp_url_part(CURLU *url, CURLUPart part, unsigned flags) {
  char *text = NULL;
  return curl_url_get(url, part, &text, flags) == CURLUE_OK ? text : NULL;
}
#endif

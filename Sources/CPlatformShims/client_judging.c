// Where libcurl and OpenSSL ask whether an exchange of client_loop.h may use a connection.
#if defined(__linux__)
#include "client_internal.h"

#include <pthread.h>
#include <stdlib.h>

// What a judged SSL owns.
struct judged {
  void *proof;
  void (*release)(void *);
};

static int serial_index = -1, judged_index = -1;
static pthread_once_t indices_once = PTHREAD_ONCE_INIT;

static void free_judged(void *parent, void *pointer, CRYPTO_EX_DATA *data, int index, long argl,
                        void *argp) {
  (void)parent, (void)data, (void)index, (void)argl, (void)argp;
  struct judged *j = pointer;
  if (!j) return;
  j->release(j->proof);
  free(j);
}

static void make_indices(void) {
  serial_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, NULL);
  judged_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, free_judged);
}

// OpenSSL asks here instead of verifying by itself.
static int verify(X509_STORE_CTX *store_context, void *argument) {
  pp_exchange *x = argument;
  const pp_client_options *options = &x->client->options;
  SSL *ssl = X509_STORE_CTX_get_ex_data(store_context, SSL_get_ex_data_X509_STORE_CTX_idx());
  X509_STORE_CTX_set_error(store_context, X509_V_ERR_APPLICATION_VERIFICATION);
  if (!ssl || !x->owner) return 0;
  // Exchanges are used again: a handshake that outlives its transfer is nobody's.
  uintptr_t serial = (uintptr_t)SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), serial_index);
  if (serial != (uintptr_t)x->serial) return 0;
  struct judged *j = calloc(1, sizeof *j);
  if (!j) return 0;
  j->release = options->release_proof;
  bool accepted = options->judge(options->context, x, store_context, &j->proof);
  if (accepted && j->proof && SSL_set_ex_data(ssl, judged_index, j)) {
    X509_STORE_CTX_set_error(store_context, X509_V_OK);
    return 1;
  }
  if (j->proof) j->release(j->proof);
  free(j);
  X509_STORE_CTX_set_error(store_context, X509_V_ERR_APPLICATION_VERIFICATION);
  return 0;
}

// libcurl hands us the SSL_CTX of a new connection; a failure here fails the connection.
CURLcode pp_exchange_prepare_tls(CURL *easy, void *tls_context, void *argument) {
  (void)easy;
  pp_exchange *x = argument;
  SSL_CTX *context = tls_context;
  pthread_once(&indices_once, make_indices);
  if (serial_index < 0 || judged_index < 0) return CURLE_OUT_OF_MEMORY;
  if (!SSL_CTX_set_ex_data(context, serial_index, (void *)(uintptr_t)x->serial))
    return CURLE_OUT_OF_MEMORY;
  if (!SSL_CTX_set1_verify_cert_store(context, x->client->options.store))
    return CURLE_OUT_OF_MEMORY;
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
  SSL_CTX_set_cert_verify_callback(context, verify, x);
  // A renegotiation could change the peer after the verdict; a resumption skips the verdict.
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  // libcurl has OpenSSL give its buffers back after every record, to ask for them again with the
  // next. Connections are few here, requests many.
  SSL_CTX_clear_mode(context, SSL_MODE_RELEASE_BUFFERS);
  return CURLE_OK;
}

static void *proof_of(CURL *easy) {
  struct curl_tlssessioninfo *info = NULL;
  if (judged_index < 0 || curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &info) != CURLE_OK ||
      !info || info->backend != CURLSSLBACKEND_OPENSSL || !info->internals)
    return NULL;
  struct judged *j = SSL_get_ex_data(info->internals, judged_index);
  return j ? j->proof : NULL;
}

// libcurl asks here before every request, on reused connections and HTTP/2 streams too.
int pp_exchange_before_request(void *argument, char *peer, char *own, int peer_port,
                               int own_port) {
  (void)peer, (void)own, (void)peer_port, (void)own_port;
  pp_exchange *x = argument;
  if (x->begun && !x->may_repeat) {
    x->repeat_refused = true;
  } else if (x->owner &&
             x->client->options.confirm(x->client->options.context, x, proof_of(x->easy))) {
    x->begun = true;
    return CURL_PREREQFUNC_OK;
  }
  // Else a refused HTTP/2 connection stays in the pool.
  curl_easy_setopt(x->easy, CURLOPT_FORBID_REUSE, 1L);
  x->is_plain = false;
  return CURL_PREREQFUNC_ABORT;
}
#endif

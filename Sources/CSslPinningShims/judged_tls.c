#if defined(__linux__)
#define _GNU_SOURCE  // POLLRDHUP
#include "judged_tls.h"

#include "endless_tls.h"
#include "quiet_tls.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static int judged_index = -1;
static pthread_once_t index_once = PTHREAD_ONCE_INIT;

static void free_judged(void *parent, void *pointer, CRYPTO_EX_DATA *data, int index, long argl,
                        void *argp) {
  (void)parent, (void)data, (void)index, (void)argl, (void)argp;
  if (pointer) ((pp_judged *)pointer)->ssl = NULL;
  pp_judged_let_go(pointer);
}

static void make_index(void) {
  judged_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, free_judged);
}

static void hear(const SSL *ssl, int event, int value) {
  pp_tls_quiet_hear(ssl, event, value);
  if (event != SSL_CB_READ_ALERT || (value & 0xff) != SSL_AD_CLOSE_NOTIFY) return;
  pp_judged *judged = SSL_get_ex_data(ssl, judged_index);
  if (judged) judged->was_ended = true;
}

CURLcode pp_judged_prepare(SSL_CTX *context, X509_STORE *store, pp_verify_callback verify,
                           void *argument) {
  pthread_once(&index_once, make_index);
  if (judged_index < 0 || !SSL_CTX_set1_verify_cert_store(context, store) ||
      !pp_tls_quiet(context))
    return CURLE_OUT_OF_MEMORY;
  SSL_CTX_set_info_callback(context, hear);
  pp_tls_read_in_turns(context);
  SSL_CTX_set_read_ahead(context, 0);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
  SSL_CTX_set_cert_verify_callback(context, verify, argument);
  // A renegotiation could change the peer after the verdict; a resumption skips the verdict.
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  return CURLE_OK;
}

SSL *pp_judged_begin(X509_STORE_CTX *store_context) {
  X509_STORE_CTX_set_error(store_context, X509_V_ERR_APPLICATION_VERIFICATION);
  return X509_STORE_CTX_get_ex_data(store_context, SSL_get_ex_data_X509_STORE_CTX_idx());
}

static bool keep(SSL *ssl, void *proof, void (*release)(void *)) {
  pp_judged *j = calloc(1, sizeof *j);
  if (!j) return false;
  *j = (pp_judged){.ssl = ssl, .proof = proof, .release = release, .socket = -1, .holders = 1};
  if (SSL_set_ex_data(ssl, judged_index, j)) return true;
  free(j);
  return false;
}

int pp_judged_end(X509_STORE_CTX *store_context, SSL *ssl, bool accepted, void *proof,
                  void (*release)(void *)) {
  bool kept = accepted && proof && keep(ssl, proof, release);
  if (!kept && proof) release(proof);
  X509_STORE_CTX_set_error(store_context, kept ? X509_V_OK : X509_V_ERR_APPLICATION_VERIFICATION);
  return kept;
}

pp_judged *pp_judged_of(const struct curl_tlssessioninfo *info) {
  if (judged_index < 0 || !info || info->backend != CURLSSLBACKEND_OPENSSL || !info->internals)
    return NULL;
  pp_judged *judged = SSL_get_ex_data(info->internals, judged_index);
  if (judged && judged->heard == 0) {
    const unsigned char *protocol = NULL;
    unsigned count = 0;
    SSL_get0_alpn_selected(info->internals, &protocol, &count);
    judged->is_shared = count == 2 && memcmp(protocol, "h2", 2) == 0;
  }
  return judged;
}

bool pp_judged_is_taken(const pp_judged *judged, CURL *easy, pp_judged_search search) {
  return judged && !judged->is_shared && judged->user && judged->user != easy && search(judged->user) == judged;
}

void pp_judged_hold(pp_judged **held, pp_judged *judged, CURL *easy) {
  if (judged) judged->holders++;
  if (*held && (*held)->user == easy) (*held)->user = NULL;
  pp_judged_let_go(*held);
  *held = judged;
  if (judged) judged->user = easy, judged->was_used = true;
}

void pp_note_socket(int made[PP_SOCKETS], int socket) {
  memmove(made + 1, made, (PP_SOCKETS - 1) * sizeof *made);
  made[0] = socket;
}

void pp_judged_find_socket(pp_judged *judged, const int made[PP_SOCKETS], int own_port) {
  for (int i = 0; judged && !judged->was_used && judged->socket < 0 && i < PP_SOCKETS; i++) {
    union {
      struct sockaddr any;
      struct sockaddr_in v4;
      struct sockaddr_in6 v6;
    } own = {.any.sa_family = AF_UNSPEC};
    socklen_t size = sizeof own;
    if (getsockname(made[i], &own.any, &size)) continue;
    int port = own.any.sa_family == AF_INET    ? ntohs(own.v4.sin_port)
               : own.any.sa_family == AF_INET6 ? ntohs(own.v6.sin6_port)
                                               : -1;
    if (port == own_port) judged->socket = made[i];
  }
}

bool pp_judged_is_over(const pp_judged *judged) {
  if (!judged || !judged->was_used || judged->is_shared) return false;
  // It was read already, and TCP may be open behind it.
  if (judged->was_ended) return true;
  // The rest of a record whose beginning ended an answer: the socket has it no more.
  if (judged->ssl && SSL_pending(judged->ssl) > 0) return true;
  if (judged->socket < 0) return false;
  struct pollfd peer = {.fd = judged->socket, .events = POLLIN | POLLRDHUP};
  return poll(&peer, 1, 0) > 0;
}

uint64_t pp_judged_received(const pp_judged *judged) {
  return judged && judged->ssl ? BIO_number_read(SSL_get_rbio(judged->ssl)) : 0;
}

long pp_colour_options(unsigned colour) {
  // Of Windows alone: with OpenSSL they mean nothing, but for telling connections apart.
  static const long bits[] = {CURLSSLOPT_NO_REVOKE, CURLSSLOPT_REVOKE_BEST_EFFORT,
                              CURLSSLOPT_AUTO_CLIENT_CERT};
  long options = 0;
  for (unsigned i = 0; i < sizeof bits / sizeof *bits; i++)
    if (colour >> i & 1) options |= bits[i];
  return options;
}

void pp_judged_let_go(pp_judged *judged) {
  if (!judged || --judged->holders > 0) return;
  judged->release(judged->proof);
  free(judged);
}
#endif

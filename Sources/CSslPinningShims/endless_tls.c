// See endless_tls.h.
#if defined(__linux__)
#include "endless_tls.h"

#include <openssl/bio.h>
#include <openssl/ssl.h>

static void hear(int is_sent, int version, int type, const void *bytes, size_t count, SSL *ssl,
                 void *argument) {
  (void)version, (void)argument;
  if (is_sent || type != SSL3_RT_HANDSHAKE || count == 0 ||
      *(const unsigned char *)bytes != SSL3_MT_HELLO_REQUEST)
    return;
  if (SSL_is_init_finished(ssl) || SSL_get_state(ssl) == TLS_ST_CR_HELLO_REQ) return;
  // A callback cannot fail. So nothing more is received: the rest of a record, and then the end.
  BIO *ended = BIO_new(BIO_s_null());
  if (ended) SSL_set0_rbio(ssl, ended);
}

void pp_tls_refuse_endless(SSL_CTX *context) {
  SSL_CTX_set_msg_callback(context, hear);
  SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
}
#endif

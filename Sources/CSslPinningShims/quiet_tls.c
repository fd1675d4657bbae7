// See quiet_tls.h.
#if defined(__linux__)
#include "quiet_tls.h"

#include <openssl/bio.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/socket.h>

static BIO_METHOD *method;
static pthread_once_t method_once = PTHREAD_ONCE_INIT;
static atomic_int prepared;

static int descriptor_of(BIO *bio) { return (int)(intptr_t)BIO_get_data(bio); }

static int write_quietly(BIO *bio, const char *bytes, int count) {
  BIO_clear_retry_flags(bio);
  int sent = (int)send(descriptor_of(bio), bytes, (size_t)count, MSG_NOSIGNAL);
  if (sent <= 0 && BIO_sock_should_retry(sent)) BIO_set_retry_write(bio);
  return sent;
}

static long control(BIO *bio, int command, long number, void *out) {
  (void)number;
  switch (command) {
    case BIO_CTRL_FLUSH:
    case BIO_CTRL_DUP:
      return 1;
    case BIO_C_GET_FD:
      if (out) *(int *)out = descriptor_of(bio);
      return descriptor_of(bio);
    default:
      return 0;
  }
}

static void make_method(void) {
  int type = BIO_get_new_index();
  BIO_METHOD *made =
      type < 0 ? NULL : BIO_meth_new(type | BIO_TYPE_SOURCE_SINK | BIO_TYPE_DESCRIPTOR, "quiet");
  if (made && BIO_meth_set_write(made, write_quietly) && BIO_meth_set_ctrl(made, control)) {
    method = made;
  } else {
    BIO_meth_free(made);
  }
}

// The first news of a connection: its sockets are set, and nothing was written yet.
void pp_tls_quiet_hear(const SSL *asked, int event, int value) {
  (void)value;
  SSL *ssl = (SSL *)asked;
  BIO *present = SSL_get_wbio(ssl);
  if (event != SSL_CB_HANDSHAKE_START || !present || BIO_method_type(present) != BIO_TYPE_SOCKET)
    return;
  int descriptor = -1;
  BIO_get_fd(present, &descriptor);
  // Without memory for it there will be none for a handshake.
  BIO *quiet = descriptor < 0 ? NULL : BIO_new(method);
  if (!quiet) return;
  BIO_set_data(quiet, (void *)(intptr_t)descriptor);
  BIO_set_init(quiet, 1);
  SSL_set0_wbio(ssl, quiet);
}

bool pp_tls_quiet(SSL_CTX *context) {
  pthread_once(&method_once, make_method);
  if (!method) return false;
  SSL_CTX_set_info_callback(context, pp_tls_quiet_hear);
  atomic_fetch_add(&prepared, 1);
  return true;
}

int pp_tls_quiet_count(void) { return atomic_load(&prepared); }
#endif

// See endless_tls.h.
#if defined(__linux__)
#include "endless_tls.h"

#include "own_curves.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>

// A handshake has a dozen messages, and some servers cut their certificates into records of 512 bytes. A thousand cost
// some ten milliseconds.
enum { most_within_a_second = 1000 };

// OpenSSL takes some four hundred kilobytes of messages in a handshake. In records of one byte, with empty ones between,
// that would be millions. Measured: 182 for a chain of 90 KB in records of 512 bytes, the smallest that OpenSSL sends.
enum { most_in_a_handshake = 4096 };

// libcurl reads some two hundred records for each request of a connection and then goes back, and has a hundred
// requests on one. Measured: 6457 with a hundred streams in records of 1 KB.
enum { most_in_a_turn = 24576 };

// What a connection has had: the second, and how much in it. Its place is that of a pointer, so it is one number.
static int heard_index = -1;
// How many records a connection has had in its handshake.
static int shaken_index = -1;
static pthread_once_t index_once = PTHREAD_ONCE_INIT;

static void make_index(void) {
  heard_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
  shaken_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
}

static void end(SSL *ssl) {
  // A callback cannot fail. So nothing more is received: the rest of a record, and then the end.
  BIO *ended = BIO_new(BIO_s_null());
  if (ended) SSL_set0_rbio(ssl, ended);
}

static int is_too_long(SSL *ssl) {
  if (shaken_index < 0 || SSL_is_init_finished(ssl)) return 0;
  uintptr_t records = (uintptr_t)SSL_get_ex_data(ssl, shaken_index) + 1;
  SSL_set_ex_data(ssl, shaken_index, (void *)records);
  return records > most_in_a_handshake;
}

// A path of OpenSSL's has no more. It takes some four hundred small ones in its hundred kilobytes, and each is read again where the path
// is looked for.
enum { most_certificates = 100 };

// Whether a Certificate message (RFC 5246 section 7.4.2, RFC 8446 section 4.4.2) has more. Lengths that are wrong OpenSSL refuses.
static int are_too_many(const unsigned char *message, size_t count, int is_tls13) {
  size_t at = 4, number = 0;
  if (is_tls13 && at < count) at += 1 + (size_t)message[at];
  at += 3;
  while (at + 3 <= count && number <= most_certificates) {
    at += 3 + ((size_t)message[at] << 16 | (size_t)message[at + 1] << 8 | message[at + 2]);
    if (is_tls13 && at + 2 <= count) at += 2 + ((size_t)message[at] << 8 | message[at + 1]);
    number++;
  }
  return number > most_certificates;
}

// A callback cannot fail here either, and OpenSSL reads the message next. It is in the connection's own buffer: with lengths
// that are too large it is none.
static void spoil(const void *message, size_t count) {
  enum { header = 4, lengths = 4 };
  if (count >= header + lengths) memset((unsigned char *)message + header, 0xff, lengths);
}

static void hear(int is_sent, int version, int type, const void *bytes, size_t count, SSL *ssl,
                 void *argument) {
  (void)version, (void)argument;
  if (!is_sent && type == SSL3_RT_HEADER && is_too_long(ssl)) end(ssl);
  if (!is_sent && type == SSL3_RT_HANDSHAKE && count > 0 &&
      *(const unsigned char *)bytes == SSL3_MT_CERTIFICATE &&
      (pp_brings_own_curve(bytes, count) ||
       are_too_many(bytes, count, SSL_version(ssl) == TLS1_3_VERSION)))
    spoil(bytes, count);
  if (is_sent || type != SSL3_RT_HANDSHAKE || count == 0 ||
      *(const unsigned char *)bytes != SSL3_MT_HELLO_REQUEST)
    return;
  if (SSL_is_init_finished(ssl) || SSL_get_state(ssl) == TLS_ST_CR_HELLO_REQ) return;
  end(ssl);
}

// What is compressed would be read unseen.
static void refuse_compressed(SSL_CTX *context) {
#ifdef SSL_OP_NO_RX_CERTIFICATE_COMPRESSION
  SSL_CTX_set_options(context, SSL_OP_NO_RX_CERTIFICATE_COMPRESSION);
#endif
  (void)context;
}

// The largest group that servers have for DHE. One of 10 000 bits, which OpenSSL takes, costs a client more than a second.
enum { most_of_a_group = 4096 };

typedef int (*security)(const SSL *, const SSL_CTX *, int, int, int, void *, void *);
static security ordinary;

static int is_affordable(const SSL *ssl, const SSL_CTX *context, int operation, int bits, int number,
                         void *other, void *argument) {
  if (operation == SSL_SECOP_TMP_DH && other && EVP_PKEY_get_bits(other) > most_of_a_group) return 0;
  return ordinary(ssl, context, operation, bits, number, other, argument);
}

static void find_ordinary(void) {
  SSL_CTX *new = SSL_CTX_new(TLS_client_method());
  if (new) ordinary = SSL_CTX_get_security_callback(new);
  SSL_CTX_free(new);
}

static void limit_groups(SSL_CTX *context) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, find_ordinary);
  if (ordinary) SSL_CTX_set_security_callback(context, is_affordable);
}

void pp_tls_refuse_endless(SSL_CTX *context) {
  pthread_once(&index_once, make_index);
  refuse_compressed(context);
  limit_groups(context);
  SSL_CTX_set_msg_callback(context, hear);
  SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
}

// Of a record up to TLS 1.2 its header says what it has, of a later one its end does: there the header is always the
// same.
static int is_payload(int type, const void *bytes) {
  if (type != SSL3_RT_HEADER && type != SSL3_RT_INNER_CONTENT_TYPE)
    return type != SSL3_RT_HANDSHAKE;
  return *(const unsigned char *)bytes == SSL3_RT_APPLICATION_DATA;
}

static int is_too_much(SSL *ssl) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  uint32_t second = (uint32_t)now.tv_sec & 0xffff;
  uint32_t heard = (uint32_t)(uintptr_t)SSL_get_ex_data(ssl, heard_index);
  heard = heard >> 16 == second ? heard + 1 : second << 16 | 1;
  SSL_set_ex_data(ssl, heard_index, (void *)(uintptr_t)heard);
  return (heard & 0xffff) > most_within_a_second;
}

static void hear_and_count(int is_sent, int version, int type, const void *bytes, size_t count,
                           SSL *ssl, void *argument) {
  hear(is_sent, version, type, bytes, count, ssl, argument);
  if (!is_sent && count > 0 && !is_payload(type, bytes) && is_too_much(ssl)) end(ssl);
}

// How many records of one connection this thread has read without a look at anything else. A turn may read from
// several: none of them pays for another.
static _Thread_local struct {
  const SSL *from;
  unsigned records;
} turn;

static void hear_in_turn(int is_sent, int version, int type, const void *bytes, size_t count,
                         SSL *ssl, void *argument) {
  hear(is_sent, version, type, bytes, count, ssl, argument);
  if (is_sent || type != SSL3_RT_HEADER) return;
  // A connection that is new may have the place of one that was ended.
  if (turn.from != ssl || !SSL_is_init_finished(ssl)) turn.from = ssl, turn.records = 0;
  if (++turn.records > most_in_a_turn) end(ssl);
}

void pp_tls_begin_turn(void) { turn.from = NULL; }

void pp_tls_read_in_turns(SSL_CTX *context) {
  pp_tls_refuse_endless(context);
  SSL_CTX_set_msg_callback(context, hear_in_turn);
}

// Of who tunnels and whom the tunnel is to a key alone counts: nobody needs a long chain.
enum { most_of_a_chain = 16 * 1024 };

void pp_tls_refuse_floods(SSL_CTX *context) {
  pthread_once(&index_once, make_index);
  refuse_compressed(context);
  SSL_CTX_set_max_cert_list(context, most_of_a_chain);
  SSL_CTX_set_msg_callback(context, heard_index >= 0 ? hear_and_count : hear);
}
#endif

#include "tls_library.h"

#if defined(__linux__)

#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/provider.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

// What a client that offers TLS 1.0 to 1.3 with OpenSSL's default suites may need. Names as OpenSSL's own
// tables begin with them.
struct kind {
  int operation;
  const char *const *names;
  // A part of the property definition that is needed besides; NULL: none.
  const char *property;
};

static const char *const digests[] = {"SHA1",     "SHA2-224", "SHA2-256", "SHA2-384",
                                      "SHA2-512", "MD5",      "MD5-SHA1", NULL};
static const char *const ciphers[] = {"AES-128-GCM",
                                      "AES-256-GCM",
                                      "ChaCha20-Poly1305",
                                      "AES-128-CBC",
                                      "AES-256-CBC",
                                      "AES-128-CBC-HMAC-SHA1",
                                      "AES-256-CBC-HMAC-SHA1",
                                      "AES-128-CBC-HMAC-SHA256",
                                      "AES-256-CBC-HMAC-SHA256",
                                      // OpenSSL's own random numbers.
                                      "AES-256-CTR",
                                      NULL};
static const char *const macs[] = {"HMAC", NULL};
static const char *const kdfs[] = {"HKDF", "TLS13-KDF", "TLS1-PRF", NULL};
static const char *const exchanges[] = {"DH", "ECDH", "X25519", "X448", NULL};
// Each of them is asked for every certificate whether its key is one of these.
static const char *const keys[] = {"RSA",    "RSA-PSS", "EC", "ED25519", "ED448",
                                   "X25519", "X448",    "DH", "HMAC",    NULL};
static const char *const signatures[] = {"RSA", "ECDSA", "ED25519", "ED448", "HMAC", NULL};
static const char *const encryptions[] = {"RSA", NULL};
static const char *const decoders[] = {"EC", "RSA", "RSA-PSS", "ED25519", "ED448", NULL};

static const struct kind kinds[] = {
    {OSSL_OP_DIGEST, digests, NULL},
    {OSSL_OP_CIPHER, ciphers, NULL},
    {OSSL_OP_MAC, macs, NULL},
    {OSSL_OP_KDF, kdfs, NULL},
    {OSSL_OP_KEYEXCH, exchanges, NULL},
    {OSSL_OP_KEYMGMT, keys, NULL},
    {OSSL_OP_SIGNATURE, signatures, NULL},
    {OSSL_OP_ASYM_CIPHER, encryptions, NULL},
    {OSSL_OP_DECODER, decoders, "structure=SubjectPublicKeyInfo"},
};
#define KINDS (sizeof kinds / sizeof *kinds)
#define MOST 24

static OSSL_PROVIDER *whole;
// One more than there can be: the end is an empty entry.
static OSSL_ALGORITHM kept[KINDS][MOST + 1];

// Names are lists like "AES-256-GCM:id-aes256-GCM:2.16.840"; the first one counts.
static bool is_first(const char *name, const char *list) {
  size_t count = strlen(name);
  return strncmp(list, name, count) == 0 && (list[count] == '\0' || list[count] == ':');
}

static bool is_wanted(const struct kind *kind, const OSSL_ALGORITHM *algorithm) {
  if (kind->property != NULL && strstr(algorithm->property_definition, kind->property) == NULL) {
    return false;
  }
  for (const char *const *name = kind->names; *name != NULL; name++) {
    if (is_first(*name, algorithm->algorithm_names)) return true;
  }
  return false;
}

static const OSSL_ALGORITHM *query(void *context, int operation, int *may_change) {
  (void)context;
  *may_change = 0;
  for (size_t i = 0; i < KINDS; i++) {
    if (kinds[i].operation == operation) return kept[i];
  }
  if (operation != OSSL_OP_RAND) return NULL;
  return OSSL_PROVIDER_query_operation(whole, operation, may_change);
}

static int capabilities(void *context, const char *name, OSSL_CALLBACK *callback, void *argument) {
  (void)context;
  return OSSL_PROVIDER_get_capabilities(whole, name, callback, argument);
}

static const OSSL_DISPATCH functions[] = {
    {OSSL_FUNC_PROVIDER_QUERY_OPERATION, (void (*)(void))query},
    {OSSL_FUNC_PROVIDER_GET_CAPABILITIES, (void (*)(void))capabilities},
    {0, NULL}};

// The implementations are the default provider's, so they get its context.
static int start(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in, const OSSL_DISPATCH **out,
                 void **context) {
  (void)handle;
  (void)in;
  *out = functions;
  *context = OSSL_PROVIDER_get0_provider_ctx(whole);
  return 1;
}

// As many as there are threads that probe, and some for those of a configuration before.
#define CONTEXTS 8
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static OSSL_LIB_CTX *contexts[CONTEXTS];
static size_t turn;

// Lives as long as the process, in a context of its own that nobody else changes.
static void load(void) {
  OSSL_LIB_CTX *own = OSSL_LIB_CTX_new();
  if (own == NULL) return;
  OSSL_PROVIDER *loaded = OSSL_PROVIDER_load(own, "default");
  if (loaded == NULL) {
    OSSL_LIB_CTX_free(own);
    return;
  }
  for (size_t i = 0; i < KINDS; i++) {
    int may_change = 0;
    const OSSL_ALGORITHM *all =
        OSSL_PROVIDER_query_operation(loaded, kinds[i].operation, &may_change);
    size_t count = 0;
    for (; all != NULL && all->algorithm_names != NULL && count < MOST; all++) {
      if (is_wanted(&kinds[i], all)) kept[i][count++] = *all;
    }
  }
  whole = loaded;
}

static OSSL_LIB_CTX *make(void) {
  if (whole == NULL) load();
  if (whole == NULL) return NULL;
  OSSL_LIB_CTX *context = OSSL_LIB_CTX_new();
  if (context == NULL) return NULL;
  if (OSSL_PROVIDER_add_builtin(context, "pp-tls", start) == 1 &&
      OSSL_PROVIDER_load(context, "pp-tls") != NULL) {
    return context;
  }
  // Nobody has used it yet.
  OSSL_LIB_CTX_free(context);
  return NULL;
}

OSSL_LIB_CTX *pp_tls_library(void) {
  pthread_mutex_lock(&lock);
  OSSL_LIB_CTX **place = &contexts[turn++ % CONTEXTS];
  if (*place == NULL) *place = make();
  OSSL_LIB_CTX *context = *place;
  pthread_mutex_unlock(&lock);
  return context;
}

#endif

// See curl_shims.h.
#if defined(__linux__)
#include "curl_shims.h"

#include "endless_tls.h"
#include "localhost_names.h"
#include "quiet_tls.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <openssl/ssl.h>

static int verify(X509_STORE_CTX *store_context, void *argument) {
  const pp_fetch_trust *trust = argument;
  return trust->is_valid(store_context, trust->context) ? 1 : 0;
}

// Whether requests may go through a proxy that is spoken to over TLS.
static int has_secure_proxy(void) {
  static const char *const names[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *value = getenv(names[i]);
    if (value && strncasecmp(value, "https:", 6) == 0) return 1;
  }
  return 0;
}

static CURLcode use_trust(CURL *easy, void *tls_context, void *argument) {
  (void)easy;
  SSL_CTX *context = tls_context;
  const pp_fetch_trust *trust = argument;
  // Wins over whatever libcurl puts into the context's own store.
  if (!SSL_CTX_set1_verify_cert_store(context, trust->store) || !pp_tls_quiet(context))
    return CURLE_OUT_OF_MEMORY;
  pp_tls_refuse_endless(context);
  // One buffer of many messages would be read as one. And what a TLS proxy's record still has is on no socket: libcurl
  // would wait for more of it.
  SSL_CTX_set_read_ahead(context, 0);
  if (has_secure_proxy()) SSL_CTX_set_mode(context, SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_cert_verify_callback(context, verify, argument);
  return CURLE_OK;
}

CURLcode pp_easy_prepare_fetch(CURL *easy, const char *url, bool clear_text,
                               struct curl_slist *headers, long timeout_ms,
                               const pp_fetch_trust *trust) {
  CURLcode code;
#define SET(option, value)                                                     \
  if ((code = curl_easy_setopt(easy, option, value)) != CURLE_OK) return code
  SET(CURLOPT_URL, url);
  SET(CURLOPT_HTTPHEADER, headers);
  SET(CURLOPT_NOSIGNAL, 1L);
  SET(CURLOPT_TIMEOUT_MS, timeout_ms);
#if LIBCURL_VERSION_NUM >= 0x075700
  // Else neither the time-out nor a cancel ends a fetch whose name is still being looked up.
  // An older libcurl than the headers' does without.
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
  // HTTP/2 has frames that are no answer, and libcurl reads them for as long as they come without a look at the time:
  // a server that sends them without end would keep the thread. One request on one connection needs none of it.
  SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
  // What may go in clear text because it stays on this machine must not leave it for a proxy.
  if (clear_text) SET(CURLOPT_NOPROXY, "*");
  SET(CURLOPT_FOLLOWLOCATION, 1L);
  SET(CURLOPT_MAXREDIRS, 5L);
#if LIBCURL_VERSION_NUM >= 0x075500
  SET(CURLOPT_PROTOCOLS_STR, clear_text ? "http" : "https");
  SET(CURLOPT_REDIR_PROTOCOLS_STR, "https");
#else
  SET(CURLOPT_PROTOCOLS, (long)(clear_text ? CURLPROTO_HTTP : CURLPROTO_HTTPS));
  SET(CURLOPT_REDIR_PROTOCOLS, (long)CURLPROTO_HTTPS);
#endif
  SET(CURLOPT_SSL_VERIFYPEER, 1L);
  SET(CURLOPT_SSL_VERIFYHOST, 2L);
  SET(CURLOPT_CAINFO, NULL);
  SET(CURLOPT_CAPATH, NULL);
  SET(CURLOPT_SSL_CTX_FUNCTION, use_trust);
  SET(CURLOPT_SSL_CTX_DATA, trust);
  return CURLE_OK;
}

CURLcode pp_easy_find_localhost(CURL *easy, const char *url, struct curl_slist **kept) {
  CURLU *parsed = curl_url();
  if (!parsed) return CURLE_OUT_OF_MEMORY;
  // What cannot be read is not dialled either.
  CURLcode code = curl_url_set(parsed, CURLUPART_URL, url, 0)
                      ? CURLE_OK
                      : pp_localhost_resolve_url(easy, kept, parsed);
  curl_url_cleanup(parsed);
  return code;
}

CURLcode pp_easy_prepare_post(CURL *easy, const void *bytes, size_t count) {
  CURLcode code;
  SET(CURLOPT_POST, 1L);
  // The size first: without it the copy would end at the first zero byte.
  SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)count);
  SET(CURLOPT_COPYPOSTFIELDS, count ? (const char *)bytes : "");
  SET(CURLOPT_FOLLOWLOCATION, 0L);
  return CURLE_OK;
}

CURLcode pp_easy_stay(CURL *easy) {
  return curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
}

CURLcode pp_easy_set_callbacks(CURL *easy, void *context, pp_data_callback body,
                               pp_data_callback header, pp_progress_callback progress,
                               char *error) {
  CURLcode code;
  SET(CURLOPT_WRITEFUNCTION, body);
  SET(CURLOPT_WRITEDATA, context);
  SET(CURLOPT_HEADERFUNCTION, header);
  SET(CURLOPT_HEADERDATA, context);
  SET(CURLOPT_XFERINFOFUNCTION, progress);
  SET(CURLOPT_XFERINFODATA, context);
  SET(CURLOPT_NOPROGRESS, 0L);
  SET(CURLOPT_ERRORBUFFER, error);
#undef SET
  return CURLE_OK;
}

const char *pp_curl_tls_backend(void) {
  curl_version_info_data *info = curl_version_info(CURLVERSION_NOW);
  return info ? info->ssl_version : NULL;
}

const char *pp_told_words(const char *error) {
  return strstr(error, "proxy") && strchr(error, '@')
             ? "the proxy of the environment cannot be used; hint: https_proxy, http_proxy, all_proxy"
             : error;
}

long pp_easy_status(CURL *easy) {
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  return status;
}
#endif

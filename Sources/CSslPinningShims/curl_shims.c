// See curl_shims.h.
#if defined(__linux__)
#include "curl_shims.h"

#include "endless_handshakes.h"
#include "localhost_names.h"
#include "quiet_tls.h"

#include <openssl/ssl.h>

static int verify(X509_STORE_CTX *store_context, void *argument) {
  const pp_fetch_trust *trust = argument;
  return trust->is_valid(store_context, trust->context) ? 1 : 0;
}

static CURLcode use_trust(CURL *easy, void *tls_context, void *argument) {
  (void)easy;
  SSL_CTX *context = tls_context;
  const pp_fetch_trust *trust = argument;
  // Wins over whatever libcurl puts into the context's own store.
  if (!SSL_CTX_set1_verify_cert_store(context, trust->store) || !pp_tls_quiet(context))
    return CURLE_OUT_OF_MEMORY;
  pp_tls_refuse_endless_handshakes(context);
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

long pp_easy_status(CURL *easy) {
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  return status;
}
#endif

// See curl_shims.h.
#if defined(__linux__)
#include "curl_shims.h"

#include <openssl/ssl.h>

static CURLcode use_store(CURL *easy, void *tls_context, void *store) {
  (void)easy;
  // Wins over whatever libcurl puts into the context's own store.
  return SSL_CTX_set1_verify_cert_store((SSL_CTX *)tls_context, (X509_STORE *)store)
             ? CURLE_OK
             : CURLE_OUT_OF_MEMORY;
}

CURLcode pp_easy_prepare_fetch(CURL *easy, const char *url, bool clear_text,
                               struct curl_slist *headers, long timeout_ms, X509_STORE *store) {
  CURLcode code;
#define SET(option, value)                                                     \
  if ((code = curl_easy_setopt(easy, option, value)) != CURLE_OK) return code
  SET(CURLOPT_URL, url);
  SET(CURLOPT_HTTPHEADER, headers);
  SET(CURLOPT_NOSIGNAL, 1L);
  SET(CURLOPT_TIMEOUT_MS, timeout_ms);
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
  SET(CURLOPT_SSL_CTX_FUNCTION, use_store);
  SET(CURLOPT_SSL_CTX_DATA, store);
  return CURLE_OK;
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

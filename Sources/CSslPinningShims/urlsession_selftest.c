// Whether libcurl knows the options that the rules stand on. See urlsession_hook.h.
#if defined(__linux__)
#include "urlsession_internal.h"

const char *pp_hook_missing_option(void) {
  CURL *easy = curl_easy_init();
  if (!easy) return "curl_easy_init";
  const char *missing = NULL;
#define TRY(option, value)                                                     \
  if (!missing && curl_easy_setopt(easy, option, value) != CURLE_OK) missing = #option
  TRY(CURLOPT_SSL_CTX_FUNCTION, pp_prepare_tls);
  TRY(CURLOPT_PREREQFUNCTION, pp_before_request);
  TRY(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
#if LIBCURL_VERSION_NUM >= 0x075500
  TRY(CURLOPT_PROTOCOLS_STR, "https");
#endif
#undef TRY
  curl_easy_cleanup(easy);
  return missing;
}
#endif

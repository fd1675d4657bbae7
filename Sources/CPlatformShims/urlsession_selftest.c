// Whether this process can pin at all: are the functions interposed, and does libcurl know the
// options that the rules stand on? See urlsession_hook.h.
#if defined(__linux__)
#define _GNU_SOURCE
#include "urlsession_internal.h"

#include <dlfcn.h>

#undef curl_easy_getinfo
#undef curl_multi_setopt

const char *pp_hook_missing_symbol(void) {
  static const struct {
    const char *name;
    void *ours;
  } functions[] = {
      {"curl_multi_init", curl_multi_init},
      {"curl_multi_setopt", curl_multi_setopt},
      {"curl_multi_add_handle", curl_multi_add_handle},
      {"curl_multi_remove_handle", curl_multi_remove_handle},
      {"curl_multi_info_read", curl_multi_info_read},
      {"curl_multi_socket_action", curl_multi_socket_action},
      {"curl_multi_assign", curl_multi_assign},
      {"curl_multi_cleanup", curl_multi_cleanup},
      {"curl_easy_getinfo", curl_easy_getinfo},
      {"curl_easy_strerror", curl_easy_strerror},
  };
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    // The linker's view first: whom would another library call? Then: is there a real one behind?
    if (dlsym(RTLD_DEFAULT, functions[i].name) != functions[i].ours ||
        !dlsym(RTLD_NEXT, functions[i].name))
      return functions[i].name;
  }
  return NULL;
}

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

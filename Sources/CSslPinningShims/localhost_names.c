// See localhost_names.h.
#if defined(__linux__)
#define CURL_DISABLE_TYPECHECK
#include "localhost_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool pp_is_localhost(const char *host) {
  static const char name[] = "localhost";
  const size_t length = sizeof name - 1;
  size_t count = strlen(host);
  if (count > 0 && host[count - 1] == '.') count--;
  if (count < length || !curl_strnequal(host + count - length, name, length)) return false;
  return count == length || host[count - length - 1] == '.';
}

CURLcode pp_localhost_resolve(CURL *easy, struct curl_slist **kept, const char *host, int port) {
  struct curl_slist *old = *kept, *made = NULL;
  if (pp_is_localhost(host)) {
    char line[320];
    int length = snprintf(line, sizeof line, "%s:%d:127.0.0.1,[::1]", host, port);
    if (length > 0 && (size_t)length < sizeof line) made = curl_slist_append(NULL, line);
    if (!made) return CURLE_OUT_OF_MEMORY;
  }
  if (!old && !made) return CURLE_OK;
  CURLcode code = curl_easy_setopt(easy, CURLOPT_RESOLVE, made);
  *kept = made;
  curl_slist_free_all(old);
  return code;
}

CURLcode pp_localhost_resolve_url(CURL *easy, struct curl_slist **kept, CURLU *url) {
  char *host = NULL, *port = NULL;
  bool is_read = !curl_url_get(url, CURLUPART_HOST, &host, 0) &&
                 !curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
  CURLcode code =
      pp_localhost_resolve(easy, kept, is_read ? host : "", is_read ? atoi(port) : 0);
  curl_free(host);
  curl_free(port);
  return code;
}
#endif

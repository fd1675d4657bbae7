// See own_curl.h.
#define _GNU_SOURCE
#include "own_curl.h"

#include <curl/curl.h>
#include <dlfcn.h>

static size_t drop(char *bytes, size_t size, size_t count, void *context) {
  (void)bytes, (void)context;
  return size * count;
}

static int listener;

static size_t drop_line(char *bytes, size_t size, size_t count, void *context) {
  return context == &listener ? drop(bytes, size, count, context) : 0;
}

static CURL *prepare(const char *url, const char *anchors) {
  CURL *easy = curl_easy_init();
  if (!easy) return NULL;
  curl_easy_setopt(easy, CURLOPT_URL, url);
  curl_easy_setopt(easy, CURLOPT_CAINFO, anchors);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT, 30L);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, drop);
  curl_easy_setopt(easy, CURLOPT_PRIVATE, easy);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, drop_line);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &listener);
  return easy;
}

static long finish(CURL *easy, long code) {
  long status = 0;
  char *private = NULL;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private);
  if (private != (char *)easy) code = 1000;
  curl_easy_cleanup(easy);
  return code ? -code : status;
}

long own_curl_easy(const char *url, const char *anchors) {
  CURL *easy = prepare(url, anchors);
  return easy ? finish(easy, curl_easy_perform(easy)) : -1000;
}

long own_curl_multi(const char *url, const char *anchors) {
  CURL *easy = prepare(url, anchors);
  CURLM *multi = easy ? curl_multi_init() : NULL;
  if (!multi) return -1000;
  long code = -1;
  int running = 1, left;
  CURLMsg *message;
  curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, 4L);
  curl_multi_add_handle(multi, easy);
  while (running && !curl_multi_perform(multi, &running))
    curl_multi_poll(multi, NULL, 0, 100, NULL);
  while ((message = curl_multi_info_read(multi, &left))) code = message->data.result;
  curl_multi_remove_handle(multi, easy);
  curl_multi_cleanup(multi);
  return finish(easy, code);
}

const char *own_curl_tls(void) { return curl_version_info(CURLVERSION_NOW)->ssl_version; }

const char *own_curl_file(void) {
  Dl_info info;
  return dladdr((void *)curl_version_info, &info) ? info.dli_fname : "";
}

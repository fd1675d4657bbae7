// libcurl's variadic setters in the typed forms that Swift can call.
#ifndef PP_CURL_SHIMS_H
#define PP_CURL_SHIMS_H

#include <curl/curl.h>
#include <openssl/x509.h>
#include <stdbool.h>
#include <stdint.h>

typedef size_t (*pp_data_callback)(char *bytes, size_t size, size_t count, void *context);
typedef int (*pp_progress_callback)(void *context, curl_off_t total_down, curl_off_t down,
                                    curl_off_t total_up, curl_off_t up);

// What a fetched document's server is validated by, in place of OpenSSL's own verification.
typedef struct {
  X509_STORE *store;
  // Whether the chain is valid. Called inside the handshake; libcurl checks the name afterwards.
  bool (*is_valid)(X509_STORE_CTX *store_context, void *context);
  void *context;
} pp_fetch_trust;

// Prepares the fetch of one document: validated by `trust`, which outlives the transfer, bounded to
// `timeout_ms`, redirected to https only; `clear_text` lets the first URL be http. The first failing
// option's code is returned.
CURLcode pp_easy_prepare_fetch(CURL *easy, const char *url, bool clear_text,
                               struct curl_slist *headers, long timeout_ms,
                               const pp_fetch_trust *trust);

// Has a fetch ask nobody where a URL's host is, if it is a name of this machine; `*kept` as in
// localhost_names.h.
CURLcode pp_easy_find_localhost(CURL *easy, const char *url, struct curl_slist **kept);

// Makes a prepared fetch a POST of these bytes, which are copied; redirects are not followed then.
CURLcode pp_easy_prepare_post(CURL *easy, const void *bytes, size_t count);

// Has a prepared fetch take a redirect for an answer like any other.
CURLcode pp_easy_stay(CURL *easy);

// `error` has CURL_ERROR_SIZE bytes and outlives the transfer.
CURLcode pp_easy_set_callbacks(CURL *easy, void *context, pp_data_callback body,
                               pp_data_callback header, pp_progress_callback progress, char *error);

// What libcurl says of a failure, without a password: a proxy setting that it cannot use it repeats as a whole.
const char *pp_told_words(const char *error);

// The last response's status, or 0.
long pp_easy_status(CURL *easy);

// The TLS library behind libcurl, such as "OpenSSL/3.0.19"; NULL where there is none.
const char *pp_curl_tls_backend(void);

#endif

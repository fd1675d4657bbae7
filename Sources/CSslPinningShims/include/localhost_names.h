// `localhost` and the names below it are this machine (RFC 6761 section 6.3). libcurl knows `localhost`
// from 7.78 and the rest from 7.85 on, and neither with a dot at the end; what it does not know it asks
// the resolver for, and whoever answers that gets the connection.
#ifndef PP_LOCALHOST_NAMES_H
#define PP_LOCALHOST_NAMES_H

#include <curl/curl.h>
#include <stdbool.h>

// Whether a URL's host is such a name, in any case, with or without a dot at its end.
bool pp_is_localhost(const char *host);

// Tells a handle where this host and port are, where the host is such a name, and forgets what it was told
// last. `*kept` is NULL at first and outlives the transfer; then it is freed by curl_slist_free_all.
CURLcode pp_localhost_resolve(CURL *easy, struct curl_slist **kept, const char *host, int port);

// The same of a URL; what cannot be read names no host.
CURLcode pp_localhost_resolve_url(CURL *easy, struct curl_slist **kept, CURLU *url);

#endif

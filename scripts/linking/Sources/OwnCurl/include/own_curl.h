// One program text, used twice: linked into the program, and as a plugin with another libcurl.
#ifndef OWN_CURL_H
#define OWN_CURL_H

// Gets a URL by libcurl's easy and its multi interface; the status, or the negative error.
long own_curl_easy(const char *url, const char *anchors);
long own_curl_multi(const char *url, const char *anchors);

// The TLS library behind it, and the file that libcurl was loaded from.
const char *own_curl_tls(void);
const char *own_curl_file(void);

#endif

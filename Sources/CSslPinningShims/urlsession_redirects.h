// What a redirected request must not carry to another origin.
//
// Foundation takes a task's header fields along wherever it is redirected. One easy handle serves all
// hops of a task, so what was armed once and is given another URL is on its next hop. Where that one's
// scheme, host or port differ from the last one's, `Authorization`, `Cookie`, `Proxy-Authorization` and
// `Host` are blanked in the list that Foundation hands to libcurl, then and on every later hop, since
// Foundation's own request still has them. So are user and password of the URL: libcurl makes
// `Authorization` of them, and who redirects does not choose as whom the app signs in elsewhere.
#ifndef PP_URLSESSION_REDIRECTS_H
#define PP_URLSESSION_REDIRECTS_H
#include "urlsession_handles.h"

// The handle is about to carry a hop of a pinned session.
void pp_redirects_mark(struct pp_handle *handle);

// A hop that has left its first origin gets the cookies that its session has for where it goes, since it
// left the first one's behind. False: out of memory.
bool pp_redirects_use_cookies(const struct pp_handle *handle, const pp_session_options *options);

// Foundation sets an option of any handle, pinned or not: the first hands it on, the other is called before libcurl
// gets it.
CURLcode pp_redirects_set_url(void *easy, const char *url);
void pp_redirects_set_headers(void *easy, struct curl_slist *headers);

#endif

// What a redirected request must not carry to another origin.
//
// Foundation takes a task's header fields along wherever it is redirected. One easy handle serves all
// hops of a task, so what was armed once and is given another URL is on its next hop. Where that one's
// scheme, host or port differ from the last one's, `Authorization`, `Cookie`, `Proxy-Authorization` and
// `Host` are blanked in the list that Foundation hands to libcurl, then and on every later hop, since
// Foundation's own request still has them.
//
// A 401 there is the answer: its challenges are kept from Foundation, which would begin the task anew and
// send the password that it is given to the first host.
//
// The hop's state is CURLOPT_PRIVATE of the handle, which Foundation does not use: it needs no table, and
// goes with the handle.
#ifndef PP_URLSESSION_REDIRECTS_H
#define PP_URLSESSION_REDIRECTS_H
#include <stdbool.h>

#include "urlsession_hook.h"

struct curl_slist;

// The handle is about to carry a hop of a pinned session. False: it cannot be marked, or Foundation did not
// say through the hook who hears its header lines.
bool pp_redirects_mark(void *easy);

// A hop that has left its first origin tells Foundation of no challenge. False: it cannot be kept so.
bool pp_redirects_hide_challenges(void *easy);

// A hop that has left its first origin gets the cookies that its session has for where it goes, since it
// left the first one's behind. False: out of memory.
bool pp_redirects_use_cookies(void *easy, const pp_session_options *options);

// Foundation sets an option of any handle, pinned or not. Before libcurl gets it.
void pp_redirects_set_url(void *easy, const char *url);
void pp_redirects_set_headers(void *easy, struct curl_slist *headers);

// The same for CURLOPT_HEADERDATA and CURLOPT_HEADERFUNCTION, which it sets once, on a new handle.
void pp_redirects_set_listener(void *easy, void *listener);
void pp_redirects_set_header_function(void *function);

#endif

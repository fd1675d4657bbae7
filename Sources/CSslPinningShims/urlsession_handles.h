// What the hook knows of an easy handle, from the first time that somebody says who hears its answer
// until it is freed.
//
// It stands here and not on the handle, in CURLOPT_PRIVATE, say: in a program that the standard library is
// linked into, the app's own calls of libcurl, and ours, go through the same places as Foundation's. Such
// handles are listed, too, and nothing of theirs is touched but how they end; what one of them sets counts for it alone.
#ifndef PP_URLSESSION_HANDLES_H
#define PP_URLSESSION_HANDLES_H
#include "answer_bounds.h"
#include "urlsession_internal.h"

// How much of an answer's head Foundation has heard.
enum pp_head { PP_HEAD_NONE, PP_HEAD_BEGUN, PP_HEAD_WHOLE };

// Belongs to the thread that the handle belongs to.
struct pp_handle {
  CURL *easy;
  // As Foundation set them.
  void *listener, *writer;
  curl_write_callback header_function, write_function;
  // Of a pinned session's task: still within its first origin, or beyond it.
  bool is_within, has_crossed;
  // Whether ours hears its lines instead, and for which transfer.
  bool is_heard;
  const struct transfer *transfer;
  enum pp_head head;
  bool uploads, is_empty_upload, is_post;
  bool is_streamed; // a body of unknown length
  struct curl_slist *headers;
  bool is_safe;    // the method (RFC 9110 section 9.2.1)
  bool is_apart;   // for good: a redirect's next hop is asked for over HTTP/1.1 as well, with the same handle
  bool hides;      // the last line was kept back
  bool asks_again; // libcurl sends the request again after this head
  size_t trailers; // bytes behind the body
  size_t head_bytes;
  int head_lines;
  int cookies, codings;
  size_t odd_bytes; // of lines beyond ASCII
  bool in_head;     // behind a status line
  pp_swelling swelling;
  bool redirects;    // the answer leads elsewhere
  size_t redirected; // bytes of its body
  bool is_cookie;   // the last line sets some
  bool is_location; // the last line is that field, or goes on in it
  struct pp_handle *next;
};

// NULL: nobody said who hears it.
struct pp_handle *pp_handle_of(CURL *easy);

// What Foundation has it write to; NULL: nobody said.
const void *pp_handle_owner(CURL *easy);

// Before libcurl gets the option.
void pp_handle_set(CURL *easy, CURLoption option, void *value);

// Whether it carries, or carried, a pinned session's task. For the next hop of one, Foundation sets the size of its buffer again, and ends
// the process if libcurl refuses that: 7.88 keeps the buffer of a request whose connection carries others (HTTP/2), and has none of
// another size then. It is the same size.
bool pp_handle_is_pinned(CURL *easy);

// Whether it sends a body. A POST without one is an empty upload to Foundation.
bool pp_handle_has_body(const struct pp_handle *handle);

// Blanks the app's `Content-Length` and `Transfer-Encoding`: what is left of a longer body would be the next request on the
// connection, and its answer that one's. libcurl says the length that it sends, or sends a stream in chunks (RFC 9112 section 6).
void pp_handle_own_length(struct pp_handle *handle);

// Whether a line that is to be sent is a field of this name.
bool pp_is_named(const char *line, const char *name);

// Whether libcurl may send it again where a kept connection turns out dead (RFC 9112 section 9.3.1): a safe method without a body.
bool pp_handle_may_repeat(const struct pp_handle *handle);

// Has it use connections that are opened with these of CURLOPT_SSL_OPTIONS, and what must not be sent twice go over HTTP/1.1 on
// connections apart (PP_APART).
CURLcode pp_handle_keep_apart(struct pp_handle *handle, long options);

// Has a cancel during its name's look-up wait for nothing: it would keep all sessions of the process waiting, whoever's the handle
// is. An older libcurl does without. Returns the handle.
CURL *pp_handle_without_waiting(CURL *easy);

// The handle is about to be freed.
void pp_handle_forget(CURL *easy);

#endif

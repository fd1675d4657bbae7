// See urlsession_handles.h.
#if defined(__linux__)
#include "urlsession_handles.h"

#include "urlsession_heads.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LISTS 256

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pp_handle *lists[LISTS];

static struct pp_handle **place_of(CURL *easy) {
  // Handles are some kilobytes each.
  struct pp_handle **link = &lists[((uintptr_t)easy >> 4) % LISTS];
  while (*link && (*link)->easy != easy) link = &(*link)->next;
  return link;
}

struct pp_handle *pp_handle_of(CURL *easy) {
  pthread_mutex_lock(&lock);
  struct pp_handle *h = *place_of(easy);
  pthread_mutex_unlock(&lock);
  return h;
}

static struct pp_handle *listed(CURL *easy) {
  pthread_mutex_lock(&lock);
  struct pp_handle **link = place_of(easy), *h = *link;
  if (!h && (h = calloc(1, sizeof *h))) {
    h->easy = easy;
    *link = h;
  }
  pthread_mutex_unlock(&lock);
  if (h) pp_heads_leave(h);
  return h;
}

static bool is(const char *method, const char *name) { return method && curl_strequal(method, name); }

// Without memory it is not listed, and no pinned session takes it.
void pp_handle_set(CURL *easy, CURLoption option, void *value) {
  switch (option) {
    case CURLOPT_HEADERDATA: case CURLOPT_HEADERFUNCTION: case CURLOPT_WRITEDATA: case CURLOPT_WRITEFUNCTION:
    case CURLOPT_UPLOAD: case CURLOPT_INFILESIZE_LARGE: case CURLOPT_CUSTOMREQUEST:
    case CURLOPT_HTTPHEADER: break;
    default: return;
  }
  struct pp_handle *h = listed(easy);
  if (!h) return;
  switch (option) {
    case CURLOPT_HEADERDATA: h->listener = value; break;
    case CURLOPT_HEADERFUNCTION: h->header_function = (curl_write_callback)value; break;
    case CURLOPT_WRITEDATA: h->writer = value; break;
    case CURLOPT_WRITEFUNCTION: h->write_function = (curl_write_callback)value; break;
    case CURLOPT_UPLOAD: h->uploads = value != NULL; break;
    case CURLOPT_CUSTOMREQUEST:
      h->is_post = is(value, "POST");
      h->is_safe = is(value, "GET") || is(value, "HEAD") || is(value, "OPTIONS") || is(value, "TRACE");
      break;
    case CURLOPT_HTTPHEADER: h->headers = value; break;
    default:
      h->is_empty_upload = value == NULL;
      h->is_streamed = (intptr_t)value < 0;
      break;
  }
}

bool pp_handle_is_pinned(CURL *easy) {
  struct pp_handle *h = pp_handle_of(easy);
  return h && (h->is_within || h->has_crossed);
}

bool pp_handle_has_body(const struct pp_handle *h) {
  return h && h->uploads && !h->is_empty_upload;
}

bool pp_is_named(const char *line, const char *name) {
  size_t length = strlen(name);
  // Not by the locale: in a Turkish one AUTHORIZATION is another word.
  if (!curl_strnequal(line, name, length)) return false;
  const char *rest = line + length + strspn(line + length, " \t");
  return *rest == ':' || *rest == ';';
}

const void *pp_handle_owner(CURL *easy) {
  struct pp_handle *h = pp_handle_of(easy);
  return h ? h->writer : NULL;
}

void pp_handle_own_length(struct pp_handle *h) {
  // libcurl passes over a line without a colon; the list is freed by its nodes, not by lengths.
  for (struct curl_slist *line = h->headers; line; line = line->next)
    if (line->data && (pp_is_named(line->data, "Content-Length") || pp_is_named(line->data, "Transfer-Encoding")))
      line->data[0] = 0;
}

bool pp_handle_may_repeat(const struct pp_handle *h) { return h && h->is_safe && !pp_handle_has_body(h); }

CURLcode pp_handle_keep_apart(struct pp_handle *h, long options) {
  h->is_apart |= !pp_handle_may_repeat(h);
  CURLcode failed = pp_easy_setopt(h->easy, CURLOPT_SSL_OPTIONS, options | (h->is_apart ? PP_APART : 0L));
  if (h->is_apart) failed |= pp_easy_setopt(h->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
  return failed;
}

CURL *pp_handle_without_waiting(CURL *easy) {
#if LIBCURL_VERSION_NUM >= 0x075700
  pp_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
  return easy;
}

void pp_handle_forget(CURL *easy) {
  pthread_mutex_lock(&lock);
  struct pp_handle **link = place_of(easy), *h = *link;
  if (h) *link = h->next;
  pthread_mutex_unlock(&lock);
  free(h);
}
#endif

// See urlsession_hook.h for what this is and who calls it on which thread.
#if defined(__linux__)
#define _GNU_SOURCE
#include "answer_bounds.h"
#include "endless_tls.h"
#include "localhost_names.h"
#include "urlsession_heads.h"
#include "urlsession_internal.h"
#include "urlsession_redirects.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#undef curl_easy_getinfo
#undef curl_easy_setopt
#undef curl_multi_setopt

// The variadic functions hand their one argument on as a pointer, which is only right where every
// type that libcurl takes there is as wide as one.
_Static_assert(sizeof(void *) == sizeof(long) && sizeof(void *) == sizeof(curl_off_t),
               "the hook needs a 64-bit platform");

// A function that Foundation calls in libcurl's place, and libcurl's own behind it.
#define HOOKED(name) pp_hooked_##name
#define REAL(name) ((__typeof__(&name))pp_real(PP_##name))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct session *sessions;
static int session_count, transfer_count, connection_count;
static uint64_t next_id = 1;

static struct session *find_session(CURLM *multi) {
  for (struct session *s = sessions; s; s = s->next)
    if (s->mask == multi || s->multi == multi) return s;
  return NULL;
}

// libcurl's own handle, for a mask; any other handle is itself.
static CURLM *unmasked(CURLM *multi) {
  pthread_mutex_lock(&lock);
  struct session *s = find_session(multi);
  pthread_mutex_unlock(&lock);
  return s ? s->multi : multi;
}

static struct transfer *find_transfer(struct session *s, CURL *easy) {
  for (struct transfer *t = s->transfers; t; t = t->next)
    if (t->easy == easy) return t;
  return NULL;
}

static void release_session(struct session *s) {
  pthread_mutex_lock(&lock);
  bool last = --s->references == 0;
  if (last) session_count--;
  for (struct transfer *t = last ? s->transfers : NULL; t; t = t->next) transfer_count--;
  pthread_mutex_unlock(&lock);
  if (!last) return;
  if (s->is_adopted) {
    s->options.release(s->options.context);
    X509_STORE_free(s->options.store);
  }
  pp_lookout_give(s->lookout);
  while (s->transfers) {
    struct transfer *t = s->transfers;
    s->transfers = t->next;
    pp_transfer_free(t);
  }
  free(s->mask);
  free(s);
}

struct transfer *pp_find_transfer(struct session *s, CURL *easy, uint64_t id) {
  pthread_mutex_lock(&lock);
  struct transfer *t = find_transfer(s, easy);
  pthread_mutex_unlock(&lock);
  return t && t->id == id ? t : NULL;
}

void pp_session_retain_for_connection(struct session *s) {
  pthread_mutex_lock(&lock);
  s->references++;
  connection_count++;
  pthread_mutex_unlock(&lock);
}

void pp_session_release_from_connection(struct session *s) {
  pthread_mutex_lock(&lock);
  connection_count--;
  pthread_mutex_unlock(&lock);
  release_session(s);
}

struct curl_tlssessioninfo *pp_tls_info(CURL *easy) {
  struct curl_tlssessioninfo *info = NULL;
  return REAL(curl_easy_getinfo)(easy, CURLINFO_TLS_SSL_PTR, &info) == CURLE_OK ? info : NULL;
}

CURLcode pp_easy_info(CURL *easy, CURLINFO info, char **out) {
  return REAL(curl_easy_getinfo)(easy, info, out);
}

// --- Transfers ----------------------------------------------------------------------------------

// Puts the rules on an easy handle. Every option is one that the rules stand on, so one failure
// fails the whole.
static bool arm(struct transfer *t, bool is_replay) {
  CURL *h = t->easy;
  if (!pp_heads_listen(pp_handle_of(h), t)) return false;
  t->verdict = UNDECIDED;
  t->message[0] = t->error[0] = 0;
  CURLcode failed = pp_listen(t, h);
#define SET(option, value) failed |= curl_easy_setopt(h, option, value)
  SET(CURLOPT_SSL_VERIFYPEER, 1L);
  SET(CURLOPT_SSL_VERIFYHOST, t->session->options.check_host ? 2L : 0L);
  SET(CURLOPT_SSL_SESSIONID_CACHE, 0L);
  // The anchors are those of the session's store; what libcurl would load may not even exist.
  SET(CURLOPT_CAINFO, NULL);
  SET(CURLOPT_CAPATH, NULL);
#if LIBCURL_VERSION_NUM >= 0x075500
  SET(CURLOPT_PROTOCOLS_STR, "https");
  SET(CURLOPT_REDIR_PROTOCOLS_STR, "https");
#else
  SET(CURLOPT_PROTOCOLS, (long)CURLPROTO_HTTPS);
  SET(CURLOPT_REDIR_PROTOCOLS, (long)CURLPROTO_HTTPS);
#endif
  pp_handle_without_waiting(h);
  // Redirects are Foundation's, one transfer each: inside libcurl, the host would change unjudged.
  SET(CURLOPT_FOLLOWLOCATION, 0L);
  // Foundation takes the headers of a proxy's answer to CONNECT for those of the server's.
  SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  // With its own buffer left empty, Foundation asks curl_easy_strerror, where our text stands.
  SET(CURLOPT_ERRORBUFFER, t->error);
  SET(CURLOPT_FRESH_CONNECT, t->is_alone ? 1L : 0L);
  failed |= pp_localhost_resolve(h, &t->addresses, t->host, t->port);
  SET(CURLOPT_FORBID_REUSE, 0L);
  failed |= pp_connections_choose(t) | pp_transfer_limit(t, is_replay);
  pp_handle_own_length(pp_handle_of(h));
#undef SET
  return failed == 0;
}

static void disarm(CURL *h) {
  pp_heads_leave(pp_handle_of(h));
  curl_easy_setopt(h, CURLOPT_RESOLVE, NULL);
  curl_easy_setopt(h, CURLOPT_ERRORBUFFER, NULL);
  pp_listen(NULL, h);
}

static CURLMcode HOOKED(curl_multi_add_handle)(CURLM *multi, CURL *easy) {
  pthread_mutex_lock(&lock);
  struct session *s = find_session(multi);
  bool is_adopted = s && s->is_adopted;
  struct transfer *t = is_adopted ? find_transfer(s, easy) : NULL;
  if (is_adopted && !t && (t = calloc(1, sizeof *t))) {
    t->easy = easy;
    t->session = s;
    t->next = s->transfers;
    s->transfers = t;
    transfer_count++;
  }
  uint64_t last_id = t ? t->id : 0;
  bool was_pending = t && pp_was_pending(t);
  if (t) {
    t->id = next_id++;
    t->started = pp_now(), t->timeout = s->options.timeout;
    t->parked = t->ready = t->refreshed = t->replayed = t->is_alone = t->is_instead = t->begun = t->is_held = false;
  }
  pthread_mutex_unlock(&lock);
  if (!s) return REAL(curl_multi_add_handle)(multi, pp_handle_without_waiting(easy));
  if (!is_adopted) return CURLM_BAD_HANDLE;
  if (!t) return CURLM_OUT_OF_MEMORY;
  pp_lookout_show(s, easy);
  pp_transfer_hold(t, NULL);
  t->goes_once = !pp_handle_may_repeat(pp_handle_of(easy));
  pp_connections_keep(s);
  if (was_pending) s->options.ended(s->options.context, last_id, NULL);
  pp_read_url(t);
  if (!arm(t, false)) return CURLM_OUT_OF_MEMORY;
  struct pp_handle *handle = pp_handle_of(easy);
  pp_redirects_mark(handle);
  if (!pp_redirects_use_cookies(handle, &s->options)) return CURLM_OUT_OF_MEMORY;
  char message[PP_MESSAGE_SIZE] = "";
  pp_transfer asked = pp_view(t);
  pp_decision decision = s->options.admit(s->options.context, &asked, message);
  if (decision != PP_ACCEPT) {
    pp_note(t, PP_REFUSE, message);
    // Nothing can dial this, so the transfer fails in the ordinary way before a socket is made.
    if (pp_easy_setopt(easy, CURLOPT_URL, "refused://")) return CURLM_OUT_OF_MEMORY;
  } else if (pp_connections_hold_back(s, t)) {
    return CURLM_OK;
  }
  return REAL(curl_multi_add_handle)(s->multi, easy);
}

static CURLMcode HOOKED(curl_multi_remove_handle)(CURLM *multi, CURL *easy) {
  // Also right for a parked transfer: libcurl takes a second removal for done.
  CURLMcode result = REAL(curl_multi_remove_handle)(unmasked(multi), pp_heads_give_up(easy));
  pthread_mutex_lock(&lock);
  struct session *s = find_session(multi);
  struct transfer *t = NULL;
  for (struct transfer **link = s ? &s->transfers : NULL; link && *link; link = &(*link)->next) {
    if ((*link)->easy != easy) continue;
    t = *link;
    *link = t->next;
    transfer_count--;
    break;
  }
  pthread_mutex_unlock(&lock);
  if (!t) return result;
  pp_transfer_hold(t, NULL), pp_connections_keep(s);
  pp_lookout_show(s, easy);
  if (pp_was_pending(t)) s->options.ended(s->options.context, t->id, NULL);
  disarm(easy);
  struct transfer *next = pp_connections_next(s, t);
  // Fails for want of memory alone, and then nothing was sent: the task times out.
  if (next) REAL(curl_multi_add_handle)(s->multi, next->easy);
  pp_transfer_free(t);
  return result;
}

// Tells a redirect's next hop.
static CURLcode HOOKED(curl_easy_setopt)(CURL *easy, CURLoption option, ...) {
  va_list arguments;
  va_start(arguments, option);
  void *value = va_arg(arguments, void *);
  va_end(arguments);
  if (option == CURLOPT_URL) return pp_redirects_set_url(easy, value);
  if (option == CURLOPT_HTTPHEADER) pp_redirects_set_headers(easy, value);
  pp_handle_set(easy, option, value);
  CURLcode code = REAL(curl_easy_setopt)(easy, option, value);
  return option == CURLOPT_BUFFERSIZE && pp_handle_is_pinned(easy) ? CURLE_OK : code;
}

static void HOOKED(curl_easy_cleanup)(CURL *easy) {
  if (easy) pp_handle_forget(easy);
  REAL(curl_easy_cleanup)(easy);
}

// Foundation reads a file beside its upload, which may be over when it goes on: the error would end the process.
static CURLcode HOOKED(curl_easy_pause)(CURL *easy, int mask) {
  CURLcode code = REAL(curl_easy_pause)(easy, mask);
  return code == CURLE_BAD_FUNCTION_ARGUMENT && pp_handle_is_pinned(easy) ? CURLE_OK : code;
}

// --- Refusals, parking and replay ---------------------------------------------------------------

// The text of the refusal that curl_multi_info_read has just handed out on this thread, and whose.
static _Thread_local char refusal_text[PP_MESSAGE_SIZE];
static _Thread_local CURL *refused_handle;

// Takes a refused transfer out before Foundation hears of it. The session's look-out, which Foundation's own queue watches,
// is woken for the replay: so it happens on the right thread without anybody waiting.
static bool park(struct session *s, struct transfer *t) {
  if (REAL(curl_multi_remove_handle)(s->multi, t->easy) != CURLM_OK) return false;
  pthread_mutex_lock(&lock);
  t->parked = true;
  t->ready = false;
  t->replayed = true;
  if (t->verdict == TO_REFRESH) t->refreshed = true;
  pthread_mutex_unlock(&lock);
  pp_transfer parked = pp_view(t);
  parked.owner = pp_handle_owner(t->easy);
  s->options.parked(s->options.context, s->id, &parked);
  return true;
}

static void replay_ready(struct session *s) {
  eventfd_t ignored;
  eventfd_read(s->lookout->wake, &ignored);
  for (;;) {
    pthread_mutex_lock(&lock);
    struct transfer *t = s->transfers;
    while (t && !(t->parked && t->ready)) t = t->next;
    if (t) t->parked = t->ready = false;
    pthread_mutex_unlock(&lock);
    if (!t) return;
    pp_connections_keep(s);
    // Both can only fail for want of memory, and then nothing was sent: the task times out.
    if (arm(t, true)) REAL(curl_multi_add_handle)(s->multi, t->easy);
  }
}

static CURLMsg *HOOKED(curl_multi_info_read)(CURLM *multi, int *left) {
  CURLM *libcurls = unmasked(multi);
  for (;;) {
    CURLMsg *done = REAL(curl_multi_info_read)(libcurls, left);
    refusal_text[0] = 0;
    refused_handle = NULL;
    if (!done || done->msg != CURLMSG_DONE) return done;
    if (done->data.result == CURLE_OK) {
      if (!pp_heads_is_cut(done->easy_handle)) return done;
      done->data.result = CURLE_GOT_NOTHING;
      snprintf(refusal_text, sizeof refusal_text, "the connection ended within the answer's head");
      return done;
    }
    pthread_mutex_lock(&lock);
    struct session *s = find_session(multi);
    struct transfer *t = s ? find_transfer(s, done->easy_handle) : NULL;
    pthread_mutex_unlock(&lock);
    if (!t) return done;
    bool again = t->verdict == TO_RETRY || t->verdict == TO_PART ||
                 (t->verdict == TO_REFRESH && !t->refreshed);
    if (again && !pp_transfer_is_lost(t) && park(s, t)) continue;
    if (done->data.result == CURLE_SEND_FAIL_REWIND) pp_transfer_is_lost(t);
    if (t->verdict == LOST) done->data.result = CURLE_GOT_NOTHING;
    if (pp_was_pending(t) && t->verdict != REFUSED && t->verdict != LOST) {
      char message[PP_MESSAGE_SIZE] = "";
      s->options.ended(s->options.context, t->id, message);
      if (message[0]) pp_note(t, PP_REFUSE, message);
    }
    if (t->verdict == UNDECIDED) {
      // Not ours: what libcurl wrote into our buffer goes where it would have gone.
      snprintf(refusal_text, sizeof refusal_text, "%s", pp_told_words(t->error));
    } else {
      refused_handle = t->easy;
      snprintf(refusal_text, sizeof refusal_text, "%s",
               t->message[0] ? t->message : "refused by the pin policy");
    }
    return done;
  }
}

static const char *HOOKED(curl_easy_strerror)(CURLcode code) {
  return refusal_text[0] ? refusal_text : REAL(curl_easy_strerror)(code);
}

// A left-over of a second address's attempt would make Foundation say "cannot connect".
static CURLcode HOOKED(curl_easy_getinfo)(CURL *easy, CURLINFO info, ...) {
  va_list arguments;
  va_start(arguments, info);
  void *out = va_arg(arguments, void *);
  va_end(arguments);
  CURLcode result = REAL(curl_easy_getinfo)(easy, info, out);
  if (info == CURLINFO_OS_ERRNO && easy && easy == refused_handle && out) *(long *)out = 0;
  return result;
}

void pp_session_resume(uint64_t session, uint64_t transfer, double timeout) {
  pthread_mutex_lock(&lock);
  struct session *s = sessions;
  while (s && s->id != session) s = s->next;
  for (struct transfer *t = s ? s->transfers : NULL; t; t = t->next) {
    if (t->id != transfer || !t->parked || t->ready) continue;
    t->ready = true;
    if (timeout > 0) t->timeout = timeout;
    eventfd_write(s->lookout->wake, 1);
  }
  pthread_mutex_unlock(&lock);
}

static CURLMcode HOOKED(curl_multi_socket_action)(CURLM *multi, curl_socket_t socket, int events,
                                                  int *running) {
  pthread_mutex_lock(&lock);
  struct session *s = find_session(multi);
  pthread_mutex_unlock(&lock);
  if (s && socket == s->lookout->epoll) {
    socket = pp_lookout_ready(s), events = 0;
    if (socket == CURL_SOCKET_BAD) return CURLM_OK;
    if (socket == s->lookout->wake) {
      replay_ready(s);
      socket = CURL_SOCKET_TIMEOUT;
    }
  }
  pp_turn_begin();
  CURLMcode code = REAL(curl_multi_socket_action)(s ? s->multi : multi, socket, events, running);
  pp_turn_end();
  return code;
}

// Foundation files its watch of our descriptor with libcurl, which knows nothing of it.
static CURLMcode HOOKED(curl_multi_assign)(CURLM *multi, curl_socket_t socket, void *token) {
  pthread_mutex_lock(&lock);
  struct session *s = find_session(multi);
  pthread_mutex_unlock(&lock);
  if (!s || socket != s->lookout->epoll) return REAL(curl_multi_assign)(s ? s->multi : multi, socket, token);
  s->watch_token = token;
  return CURLM_OK;
}

// --- Sessions -----------------------------------------------------------------------------------

static _Thread_local struct {
  bool open;
  int handles;
  bool is_short;
  struct session *session;
} capture;

void pp_capture_begin(void) {
  memset(&capture, 0, sizeof capture);
  capture.open = true;
}

void *pp_capture_end(bool *is_short) {
  capture.open = false;
  *is_short = capture.is_short;
  struct session *s = capture.session;
  return capture.handles == 1 && s && s->socket_callback && pp_hook_holds() ? s->mask : NULL;
}

static CURLM *HOOKED(curl_multi_init)(void) {
  CURLM *multi = REAL(curl_multi_init)();
  if (!capture.open || !multi) return multi;
  capture.handles++;
  struct session *s = calloc(1, sizeof *s);
  void *mask = calloc(1, PP_MASK_SIZE);
  struct pp_lookout *lookout = s && mask ? pp_lookout_take() : NULL;
  if (!lookout) {
    capture.is_short = true;
    free(mask);
    free(s);
    return multi;
  }
  s->multi = multi;
  s->mask = mask;
  s->references = 1;
  s->lookout = lookout;
  pthread_mutex_lock(&lock);
  s->next = sessions;
  sessions = s;
  session_count++;
  pthread_mutex_unlock(&lock);
  capture.session = s;
  return mask;
}

static CURLMcode HOOKED(curl_multi_setopt)(CURLM *multi, CURLMoption option, ...) {
  va_list arguments;
  va_start(arguments, option);
  void *value = va_arg(arguments, void *);
  va_end(arguments);
  struct session *s = capture.open ? capture.session : NULL;
  if (s && multi == s->mask) {
    if (option == CURLMOPT_SOCKETFUNCTION) s->socket_callback = (curl_socket_callback)value, value = (void *)pp_lookout_change;
    if (option == CURLMOPT_SOCKETDATA) s->socket_data = value, value = s;
    if (option == CURLMOPT_MAX_HOST_CONNECTIONS) s->most = (long)value;
  }
  return REAL(curl_multi_setopt)(unmasked(multi), option, value);
}

uint64_t pp_session_adopt(void *multi, const pp_session_options *options) {
  struct session *s = capture.session;
  if (!s || !multi || s->mask != multi || s->is_adopted || !X509_STORE_up_ref(options->store))
    return 0;
  s->options = *options;
  pthread_mutex_lock(&lock);
  s->id = next_id++;
  s->is_adopted = true;
  pthread_mutex_unlock(&lock);
  return s->id;
}

static CURLMcode HOOKED(curl_multi_cleanup)(CURLM *multi) {
  pthread_mutex_lock(&lock);
  struct session *s = NULL;
  for (struct session **link = &sessions; *link; link = &(*link)->next) {
    if ((*link)->mask != multi && (*link)->multi != multi) continue;
    s = *link;
    *link = s->next;
    break;
  }
  pthread_mutex_unlock(&lock);
  // From libcurl 8.13 on, closing connections calls the socket callback. Foundation's would bring the object that is just
  // being destroyed back to life (swift-corelibs-foundation #5203); the look-out's has nothing to do with that.
  CURLMcode result = REAL(curl_multi_cleanup)(s ? s->multi : multi);
  if (s) release_session(s);
  return result;
}

#define ENTRY(name) [PP_##name] = {#name, (void *)HOOKED(name)},
const struct pp_hooked pp_hooked[PP_FUNCTION_COUNT] = {PP_FUNCTIONS(ENTRY)};
#undef ENTRY

void pp_hook_counts(int *session_total, int *transfer_total, int *connection_total) {
  pthread_mutex_lock(&lock);
  *session_total = session_count;
  *transfer_total = transfer_count;
  *connection_total = connection_count;
  pthread_mutex_unlock(&lock);
}
#endif

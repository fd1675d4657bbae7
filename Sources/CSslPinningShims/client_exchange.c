// The transfers of client_loop.h: their options, and where their bytes go.
#if defined(__linux__)
#include "answer_bounds.h"
#include "client_internal.h"
#include "localhost_names.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

// The most that is read of an answer whose body nobody will see, for the sake of its connection.
#define MOST_DISCARDED (64 * 1024)
// A head beyond this is an attack (libcurl's own limit is for one line).
#define LARGEST_HEAD (256 * 1024)
// Buffers above this are not kept for the next transfer.
#define LARGEST_KEPT (64 * 1024)
// How often libcurl may ask to go on before a request has a connection: only a proxy that talks on has it ask more.
#define MOST_LOOKS (64 * 1024)
// So much of a body that is read slowly is taken beyond its limit, if it is coded: it shows whether it swells.
#define MOST_AHEAD ((size_t)8 * 1024 * 1024)
// libcurl's own.
#define UPLOAD_BUFFER (64L * 1024)

static bool append(pp_buffer *buffer, const void *bytes, size_t count) {
  if (buffer->capacity - buffer->count < count) {
    size_t capacity = buffer->capacity ? buffer->capacity * 2 : 2048;
    while (capacity - buffer->count < count) capacity *= 2;
    uint8_t *grown = realloc(buffer->bytes, capacity);
    if (!grown) return false;
    buffer->bytes = grown;
    buffer->capacity = capacity;
  }
  memcpy(buffer->bytes + buffer->count, bytes, count);
  buffer->count += count;
  return true;
}

void *pp_buffer_detach(pp_buffer *buffer) {
  void *bytes = buffer->bytes;
  *buffer = (pp_buffer){0};
  return bytes;
}

static void empty(pp_buffer *buffer) {
  if (buffer->capacity > LARGEST_KEPT) free(pp_buffer_detach(buffer));
  buffer->count = 0;
}

static void announce(pp_exchange *x) {
  if (x->is_news) return;
  x->is_news = true;
  x->next_news = NULL;
  *x->client->news_end = x;
  x->client->news_end = &x->next_news;
}

static void renounce(pp_exchange *x) {
  if (!x->is_news) return;
  pp_client *client = x->client;
  pp_exchange **link = &client->news;
  while (*link && *link != x) link = &(*link)->next_news;
  if (*link) *link = x->next_news;
  client->news_end = &client->news;
  while (*client->news_end) client->news_end = &(*client->news_end)->next_news;
  x->is_news = false;
}

// --- What comes in ------------------------------------------------------------------------------

static void hear(pp_exchange *x) {
  x->alive = true;
  if (!x->connection) return;
  x->heard = ++x->connection->heard;
}

static bool starts_with(const char *bytes, size_t length, const char *name) {
  return length >= strlen(name) && curl_strnequal(bytes, name, strlen(name));
}

// Whether a field has a value behind its name and colon.
static bool has_value(const char *field, size_t length, size_t name) {
  while (length > name && strchr(" \t\r\n", field[length - 1])) length--;
  return length > name;
}

// The last coding is what frames a body (RFC 9112 section 6.3).
static bool ends_in_chunks(const char *field, size_t length) {
  static const char name[] = "chunked";
  const size_t count = sizeof name - 1;
  while (length > 0 && strchr(" \t\r\n", field[length - 1])) length--;
  return length >= count && curl_strnequal(field + length - count, name, count);
}

static bool leads_elsewhere(const pp_exchange *x) {
  switch (x->status) {
    case 301: case 302: case 303: case 307: case 308: return x->has_location;
    default: return false;
  }
}

static size_t receive_header(char *bytes, size_t size, size_t count, void *argument) {
  pp_exchange *x = argument;
  size_t length = size * count;
  hear(x);
  // What follows the body is no part of the head. It goes nowhere, but libcurl keeps it, without a limit.
  if (x->head_complete) {
    x->discarded += length;
    return x->discarded > LARGEST_HEAD ? 0 : length;
  }
  // Within a head it is a field like any other.
  if ((x->head.count == 0 || x->head_ended) && length >= 5 && memcmp(bytes, "HTTP/", 5) == 0) {
    x->head.count = 0;
    x->has_location = x->is_chunked = x->head_ended = false;
    const char *space = memchr(bytes, ' ', length);
    x->status = 0;
    for (const char *p = space ? space + 1 : bytes + length;
         p < bytes + length && *p >= '0' && *p <= '9' && x->status < 1000; p++)
      x->status = x->status * 10 + (*p - '0');
  }
  // An empty one leads nowhere: what comes with it is the answer. Of several one counts that is not empty, as
  // where they are read together.
  if (starts_with(bytes, length, "location:")) x->has_location |= has_value(bytes, length, 9);
  if (starts_with(bytes, length, "transfer-encoding:") && ends_in_chunks(bytes, length))
    x->is_chunked = true;
  if (x->head.count == 0) x->codings = 0;
  x->codings += pp_codings(bytes, length);
  if (x->codings > 1 || x->head.count + length > LARGEST_HEAD || !append(&x->head, bytes, length)) return 0;
  if (length <= 2 && (bytes[0] == '\r' || bytes[0] == '\n')) {
    x->head_ended = true;
    x->head_complete = x->status >= 200;
    x->discards = x->head_complete && x->follows && leads_elsewhere(x);
    if (x->streams && x->head_complete && !x->discards) announce(x);
  }
  return length;
}

static CURLcode information(CURL *easy, CURLINFO info, char **value) {
  return curl_easy_getinfo(easy, info, value);
}

static size_t receive_body(char *bytes, size_t size, size_t count, void *argument) {
  pp_exchange *x = argument;
  size_t length = size * count;
  hear(x);
  if (x->discards) {
    x->discarded += length;
    return x->discarded > MOST_DISCARDED ? 0 : length;
  }
  if (x->streams) {
    // libcurl goes on decoding what it has read when a write pauses, and copies what it keeps of that at each resume. So some of a coded
    // turn is taken beyond the limit, which tells what swells, and all that was kept is taken at once.
    if (x->unread >= x->unread_limit && pp_in_turn()) {
      bool is_much = x->unread - x->unread_limit >= MOST_AHEAD;
      if (is_much && pp_body_swells(&x->swelling, x->easy, information)) return 0;
      if (is_much || x->codings == 0 || x->turn != pp_turn()) {
        x->paused = true;
        return CURL_WRITEFUNC_PAUSE;
      }
    }
    x->turn = pp_turn();
    x->unread += length;
    announce(x);
  }
  if (pp_body_ends(&x->swelling, length, x->easy, information)) return 0;
  return append(&x->body, bytes, length) ? length : 0;
}

// --- What goes out ------------------------------------------------------------------------------

static size_t send_body(char *bytes, size_t size, size_t count, void *argument) {
  pp_exchange *x = argument;
  long filled = x->client->options.feed(x->client->options.context, x, bytes, size * count);
  if (filled == PP_FEED_LATER) {
    x->upload_paused = true;
    return CURL_READFUNC_PAUSE;
  }
  if (filled < 0) return CURL_READFUNC_ABORT;
  x->alive = true;
  return (size_t)filled;
}

// Behind a 407 libcurl reads what the proxy says byte by byte, for as long as there is any, without a look at a
// time-out. It calls here in between; a transfer that waits calls a few times a second.
static bool is_kept_by_proxy(pp_exchange *x) { return !x->begun && ++x->looks > MOST_LOOKS; }

static int watch_proxy(void *argument, curl_off_t to_come, curl_off_t came, curl_off_t to_send,
                       curl_off_t sent) {
  (void)to_come, (void)came, (void)to_send, (void)sent;
  return is_kept_by_proxy(argument);
}

// What libcurl takes up says nothing of what leaves: a body from memory it has as a whole.
static int watch_upload(void *argument, curl_off_t to_come, curl_off_t came, curl_off_t to_send,
                        curl_off_t sent) {
  (void)to_come, (void)came, (void)to_send;
  pp_exchange *x = argument;
  if (sent != x->sent) x->alive = true;
  x->sent = sent;
  return is_kept_by_proxy(x);
}

// libcurl rewinds a body to send it again; a streamed one is never sent twice.
static int seek_body(void *argument, curl_off_t offset, int origin) {
  (void)argument, (void)offset, (void)origin;
  return CURL_SEEKFUNC_FAIL;
}

// --- Options ------------------------------------------------------------------------------------

#define SET(option, value) failed |= curl_easy_setopt(x->easy, option, value)

static CURLcode watch(pp_exchange *x, curl_xferinfo_callback function) {
  CURLcode failed = 0;
  SET(CURLOPT_XFERINFOFUNCTION, function);
  SET(CURLOPT_XFERINFODATA, x);
  SET(CURLOPT_NOPROGRESS, 0L);
  return failed;
}

bool pp_exchange_reset(pp_exchange *x) {
  CURLcode failed = 0;
  const pp_client_options *options = &x->client->options;
  curl_easy_reset(x->easy);
  curl_slist_free_all(x->headers);
  curl_slist_free_all(x->addresses);
  x->headers = x->addresses = NULL;
  x->has_proxies = pp_client_has_proxies();
  SET(CURLOPT_PRIVATE, x);
  SET(CURLOPT_ERRORBUFFER, x->error);
  SET(CURLOPT_NOSIGNAL, 1L);
  SET(CURLOPT_DNS_CACHE_TIMEOUT, PP_DNS_MEMORY);
  SET(CURLOPT_WRITEFUNCTION, receive_body);
  SET(CURLOPT_WRITEDATA, x);
  SET(CURLOPT_HEADERFUNCTION, receive_header);
  SET(CURLOPT_HEADERDATA, x);
  SET(CURLOPT_RESOLVER_START_FUNCTION, pp_client_begin_lookup);
  SET(CURLOPT_RESOLVER_START_DATA, x);
  SET(CURLOPT_OPENSOCKETFUNCTION, pp_client_open_socket);
  SET(CURLOPT_OPENSOCKETDATA, x);
  SET(CURLOPT_CLOSESOCKETFUNCTION, pp_client_close_socket);
  SET(CURLOPT_CLOSESOCKETDATA, x->client);
  // The rules: chain and pins before a byte leaves, on every connection, and no resumption.
  SET(CURLOPT_SSL_CTX_FUNCTION, pp_exchange_prepare_tls);
  SET(CURLOPT_SSL_CTX_DATA, x);
  SET(CURLOPT_PREREQFUNCTION, pp_exchange_before_request);
  SET(CURLOPT_PREREQDATA, x);
  SET(CURLOPT_SSL_VERIFYPEER, 1L);
  SET(CURLOPT_SSL_VERIFYHOST, options->check_host ? 2L : 0L);
  SET(CURLOPT_SSL_SESSIONID_CACHE, 0L);
  SET(CURLOPT_CAINFO, NULL);
  SET(CURLOPT_CAPATH, NULL);
#if LIBCURL_VERSION_NUM >= 0x075500
  SET(CURLOPT_PROTOCOLS_STR, "https");
#else
  SET(CURLOPT_PROTOCOLS, (long)CURLPROTO_HTTPS);
#endif
  SET(CURLOPT_FOLLOWLOCATION, 0L);
  SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  SET(CURLOPT_HTTP_VERSION, pp_http_version(options->libcurl_features));
  SET(CURLOPT_PIPEWAIT, 1L);
  SET(CURLOPT_ACCEPT_ENCODING, "");
#if LIBCURL_VERSION_NUM >= 0x075700
  // A transfer that is taken out while its name is looked up would wait for the answer, and with it
  // every other on this loop. The thread that asks ends by itself.
  curl_easy_setopt(x->easy, CURLOPT_QUICK_EXIT, 1L);
#endif
  // libcurl says them to a proxy as well.
  if (x->client->plain_headers && !x->has_proxies) {
    SET(CURLOPT_HTTPHEADER, x->client->plain_headers);
  } else {
    SET(CURLOPT_USERAGENT, USER_AGENT);
  }
  // Else libcurl looks itself, and more often.
  if (!x->has_proxies) SET(CURLOPT_NOPROXY, "*");
  if (x->has_proxies) failed |= watch(x, watch_proxy);
  // libcurl allocates it for every request, and 64 KiB, its default, take a fifth of the request's
  // time: so much makes malloc tidy its heap. Bodies get the default.
  SET(CURLOPT_UPLOAD_BUFFERSIZE, 16384L);
  x->is_plain = failed == 0;
  return failed == 0;
}

bool pp_exchange_needs_reset(const pp_exchange *x) {
  return !x->is_plain || x->has_proxies != pp_client_has_proxies();
}

CURLcode pp_exchange_set_url(pp_exchange *x, CURLU *url) {
  CURLcode failed = pp_localhost_resolve_url(x->easy, &x->addresses, url);
  SET(CURLOPT_CURLU, url);
  return failed;
}

CURLcode pp_exchange_set_method(pp_exchange *x, const char *method) {
  CURLcode failed = 0;
  x->is_plain = false;
  if (strcmp(method, "HEAD") == 0) {
    SET(CURLOPT_NOBODY, 1L);
  } else {
    SET(CURLOPT_CUSTOMREQUEST, method);
  }
  return failed;
}

CURLcode pp_exchange_set_body(pp_exchange *x, const char *method, const void *body, size_t count) {
  CURLcode failed = count ? watch(x, watch_upload) : CURLE_OK;
  x->is_plain = false;
  SET(CURLOPT_POST, 1L);
  SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)count);
  SET(CURLOPT_COPYPOSTFIELDS, count ? body : "");
  if (count > 8192) SET(CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_BUFFER);
  SET(CURLOPT_CUSTOMREQUEST, method);
  return failed;
}

CURLcode pp_exchange_set_streamed_body(pp_exchange *x, const char *method, int64_t count) {
  CURLcode failed = watch(x, watch_upload);
  x->is_plain = false;
  SET(CURLOPT_UPLOAD, 1L);
  SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t)count);
  SET(CURLOPT_READFUNCTION, send_body);
  SET(CURLOPT_READDATA, x);
  SET(CURLOPT_SEEKFUNCTION, seek_body);
  SET(CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_BUFFER);
  SET(CURLOPT_CUSTOMREQUEST, method);
  return failed;
}

CURLcode pp_exchange_add_header(pp_exchange *x, const char *line) {
  struct curl_slist *grown = curl_slist_append(x->headers, line);
  if (!grown) return CURLE_OUT_OF_MEMORY;
  x->headers = grown;
  return CURLE_OK;
}

CURLcode pp_exchange_apply_headers(pp_exchange *x, bool own_encoding) {
  CURLcode failed = 0;
  x->is_plain = false;
  SET(CURLOPT_HTTPHEADER, x->headers);
  SET(CURLOPT_USERAGENT, USER_AGENT);
  if (own_encoding) SET(CURLOPT_ACCEPT_ENCODING, NULL);
  return failed;
}


CURLcode pp_exchange_set_proxy(pp_exchange *x, const char *proxy) {
  CURLcode failed = watch(x, watch_proxy);
  x->is_plain = false;
  SET(CURLOPT_PROXY, proxy);
  SET(CURLOPT_NOPROXY, NULL);
  SET(CURLOPT_USERAGENT, USER_AGENT);
  return failed;
}

CURLcode pp_exchange_make_room(pp_exchange *x, size_t head) {
  const size_t most = 2 * 1024 * 1024;  // libcurl's
  x->is_plain = false;
  long size = UPLOAD_BUFFER + (long)(head < most - UPLOAD_BUFFER ? head : most - UPLOAD_BUFFER);
  return curl_easy_setopt(x->easy, CURLOPT_UPLOAD_BUFFERSIZE, size);
}

CURLcode pp_exchange_wait_long(pp_exchange *x) {
  x->is_plain = false;
  return curl_easy_setopt(x->easy, CURLOPT_CONNECTTIMEOUT_MS, 3600000L);
}

CURLcode pp_exchange_use_fresh_connection(pp_exchange *x) {
  x->is_plain = false;
  CURLcode code = curl_easy_setopt(x->easy, CURLOPT_DNS_CACHE_TIMEOUT, 0L);
  return code ? code : curl_easy_setopt(x->easy, CURLOPT_FRESH_CONNECT, 1L);
}

CURLcode pp_exchange_leave_connection(pp_exchange *x) {
  x->is_plain = false;
  return curl_easy_setopt(x->easy, CURLOPT_FORBID_REUSE, 1L);
}

#undef SET

// --- Its connection -----------------------------------------------------------------------------

void pp_exchange_hold(pp_exchange *x, pp_judged *connection) {
  pp_judged_hold(&x->connection, connection, x->easy);
  x->heard = connection ? connection->heard : 0;
}

bool pp_exchange_leave_silent_connection(pp_exchange *x, bool others_were_heard) {
  if (!x->connection || x->heard != x->connection->heard) return false;
  pp_exchange_leave_connection(x);
  if (x->connection->is_shared) return true;
  // One that carries a single request ends with it. If it was just made, or an answer began, the network was
  // there.
  return !x->dials && x->head.count == 0 && !others_were_heard;
}

CURLcode pp_exchange_set_colour(pp_exchange *x, unsigned colour, bool avoids_http2) {
  long options = pp_colour_options(colour);
  x->is_plain = false;
  CURLcode failed = curl_easy_setopt(x->easy, CURLOPT_SSL_OPTIONS, options | (avoids_http2 ? PP_APART : 0));
  if (avoids_http2) failed |= curl_easy_setopt(x->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
  return failed;
}

CURLcode pp_exchange_dial_itself(pp_exchange *x) {
  x->is_plain = false;
  return curl_easy_setopt(x->easy, CURLOPT_PIPEWAIT, 0L);
}

bool pp_exchange_may_be_cut(const pp_exchange *x) {
  bool is_http1 = x->head.count > 5 && x->head.bytes[5] == '1';
  if (!is_http1 || x->is_chunked || x->discards || x->status == 204 || x->status == 304 ||
      !x->connection || x->connection->was_ended)
    return false;
  curl_off_t length = -1;
  curl_easy_getinfo(x->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  return length < 0;
}

// --- Life ---------------------------------------------------------------------------------------

pp_exchange *pp_exchange_make(pp_client *client) {
  pp_exchange *x = calloc(1, sizeof *x);
  if (!x) return NULL;
  x->client = client;
  x->easy = curl_easy_init();
  if (x->easy && pp_exchange_reset(x)) return x;
  pp_exchange_free(x);
  return NULL;
}

bool pp_exchange_is_spent(const pp_exchange *x) { return x->client->spends_handles; }

bool pp_exchange_renew(pp_exchange *x) {
  pp_exchange_hold(x, NULL);
  curl_easy_cleanup(x->easy);
  x->easy = curl_easy_init();
  return x->easy && pp_exchange_reset(x);
}

void pp_exchange_free(pp_exchange *x) {
  if (x->is_running) pp_exchange_stop(x);
  pp_exchange_hold(x, NULL);
  renounce(x);
  curl_easy_cleanup(x->easy);
  curl_slist_free_all(x->headers);
  curl_slist_free_all(x->addresses);
  free(x->head.bytes);
  free(x->body.bytes);
  free(x);
}

bool pp_exchange_start(pp_exchange *x) {
  renounce(x);
  empty(&x->head);
  empty(&x->body);
  pp_exchange_hold(x, NULL);
  x->serial = ++x->client->next_serial;
  x->status = 0;
  x->unread = x->discarded = 0;
  x->swelling = (pp_swelling){0};
  x->sent = 0;
  x->looks = 0;
  x->head_ended = false;
  x->has_location = x->head_complete = x->discards = x->begun = x->repeat_refused = false;
  x->is_crowded = x->is_over = false;
  x->paused = x->upload_paused = x->dials = x->is_dialing = false;
  x->alive = true;
  x->error[0] = 0;
  x->is_running = curl_multi_add_handle(x->client->multi, x->easy) == CURLM_OK;
  return x->is_running;
}

void pp_exchange_stop(pp_exchange *x) {
  if (!x->is_running) return;
  x->is_running = false;
  curl_multi_remove_handle(x->client->multi, x->easy);
}

void pp_exchange_resume(pp_exchange *x, size_t taken) {
  x->unread -= taken < x->unread ? taken : x->unread;
  if (!x->is_running) return;
  bool goes_on = x->upload_paused;
  x->upload_paused = false;
  if (x->paused && x->unread * 2 <= x->unread_limit) {
    x->paused = false;
    goes_on = true;
  }
  if (!goes_on) return;
  x->alive = true;
  // The other direction, where it is still paused, pauses again by itself.
  curl_easy_pause(x->easy, x->paused ? CURLPAUSE_RECV : CURLPAUSE_CONT);
}
#endif

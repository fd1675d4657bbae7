// See client_loop.h. epoll instead of curl_multi_poll: of thousands of transfers, a turn touches
// those that something happened to.
#if defined(__linux__)
#define _GNU_SOURCE
#include "answer_bounds.h"
#include "client_internal.h"
#include "endless_tls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

// The most events of one turn.
#define EVENTS 64
// How long a turn spins before it sleeps, in microseconds: about what waking up costs. Where it was in
// vain lately, a turn sleeps at once, and now and then one tries again.
#define SPIN 30
#define TRY_AGAIN 64
// How often it is asked whether others want the processor, and how long nobody spins if so.
#define LOOK_EVERY 5000
#define LEAVE_ALONE 20000

#if defined(__x86_64__)
#define PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define PAUSE() __asm__ __volatile__("yield")
#else
#define PAUSE() ((void)0)
#endif

static int64_t microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t pp_client_now(void) { return microseconds() / 1000; }

// --- Descriptors --------------------------------------------------------------------------------

struct pp_watch *pp_client_watch(pp_client *client, int descriptor) {
  if (descriptor < 0) return NULL;
  size_t index = (size_t)descriptor;
  if (index >= client->watch_count) {
    size_t count = index + 64;
    struct pp_watch *grown = realloc(client->watches, count * sizeof *grown);
    if (!grown) return NULL;
    memset(grown + client->watch_count, 0, (count - client->watch_count) * sizeof *grown);
    client->watches = grown;
    client->watch_count = count;
  }
  return &client->watches[index];
}

static void tell_epoll(pp_client *client, int descriptor, struct pp_watch *watch, uint8_t events) {
  if (watch->registered == events) return;
  struct epoll_event event = {.events = events, .data.fd = descriptor};
  int operation = events == 0              ? EPOLL_CTL_DEL
                  : watch->registered == 0 ? EPOLL_CTL_ADD
                                           : EPOLL_CTL_MOD;
  int failed = epoll_ctl(client->epoll, operation, descriptor, &event);
  if (failed && operation == EPOLL_CTL_ADD && errno == EEXIST)
    failed = epoll_ctl(client->epoll, EPOLL_CTL_MOD, descriptor, &event);
  if (failed && operation == EPOLL_CTL_MOD && errno == ENOENT)
    failed = epoll_ctl(client->epoll, EPOLL_CTL_ADD, descriptor, &event);
  watch->registered = failed ? 0 : events;
}

static int socket_changed(CURL *easy, curl_socket_t socket, int what, void *argument, void *data) {
  (void)easy, (void)data;
  pp_client *client = argument;
  struct pp_watch *watch = pp_client_watch(client, socket);
  if (!watch) return -1;
  watch->wanted = what == CURL_POLL_IN      ? EPOLLIN
                  : what == CURL_POLL_OUT   ? EPOLLOUT
                  : what == CURL_POLL_INOUT ? EPOLLIN | EPOLLOUT
                                            : 0;
  // Between two requests on one connection nothing is wanted for a moment. It stays registered:
  // two system calls saved for each request.
  if (watch->wanted == 0 && watch->is_kept && watch->registered == EPOLLIN) return 0;
  tell_epoll(client, socket, watch, watch->wanted);
  return 0;
}

curl_socket_t pp_client_open_socket(void *argument, curlsocktype purpose,
                                    struct curl_sockaddr *to) {
  (void)purpose;
  int made = socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
  pp_exchange *x = argument;
  x->dials = x->is_dialing = true;
  if (made >= 0) pp_note_socket(x->sockets, made);
  struct pp_watch *watch = made < 0 ? NULL : pp_client_watch(x->client, made);
  if (watch) *watch = (struct pp_watch){.is_kept = true};
  return made < 0 ? CURL_SOCKET_BAD : made;
}

int pp_client_begin_lookup(void *state, void *reserved, void *argument) {
  (void)state, (void)reserved;
  pp_exchange *x = argument;
  x->is_dialing = true;
  return 0;
}

int pp_client_close_socket(void *argument, curl_socket_t socket) {
  pp_client *client = argument;
  struct pp_watch *watch = pp_client_watch(client, socket);
  // Closing takes it out of epoll only where no child of a fork holds it open, too; then epoll would tell of
  // it for ever. Its number may mean another socket soon.
  if (watch && watch->registered) epoll_ctl(client->epoll, EPOLL_CTL_DEL, socket, NULL);
  if (watch) *watch = (struct pp_watch){0};
  return close(socket);
}

static int timer_changed(CURLM *multi, long milliseconds, void *argument) {
  (void)multi;
  pp_client *client = argument;
  client->timer_at = milliseconds < 0    ? -1
                     : milliseconds == 0 ? 0
                                         : microseconds() + (int64_t)milliseconds * 1000;
  return 0;
}

// --- The client ---------------------------------------------------------------------------------

// A setting of its own costs libcurl three times what a line of a list does, for every request: it
// formats the line, byte by byte, and then formats the request of the lines.
static struct curl_slist *make_plain_headers(unsigned known) {
  // As libcurl would list them for the encodings that it can undo.
  char encodings[64] = "Accept-Encoding: ";
  const size_t none = strlen(encodings);
  if (known & CURL_VERSION_LIBZ) strcat(encodings, "deflate, gzip, ");
  if (known & CURL_VERSION_BROTLI) strcat(encodings, "br, ");
  if (known & CURL_VERSION_ZSTD) strcat(encodings, "zstd, ");
  size_t length = strlen(encodings);
  if (length == none) return NULL;
  encodings[length - 2] = 0;
  struct curl_slist *first = curl_slist_append(NULL, "User-Agent: " USER_AGENT);
  if (first && curl_slist_append(first, encodings)) return first;
  curl_slist_free_all(first);
  return NULL;
}

unsigned pp_libcurl_features(void) {
  return (unsigned)curl_version_info(CURLVERSION_NOW)->features;
}

long pp_http_version(unsigned features) {
  return features & CURL_VERSION_HTTP2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1;
}

bool pp_client_has_proxies(void) {
  static const char *const names[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *value = getenv(names[i]);
    if (value && *value) return true;
  }
  return false;
}

// libcurl 7.83 to 8.2 frees the fields of a handle's last answer and keeps a pointer to one of them. It writes
// there if the next head's first field begins with a blank (curl 11620): a server could end the process.
static bool spends_handles(void) {
  unsigned version = curl_version_info(CURLVERSION_NOW)->version_num;
  return version >= 0x075300 && version < 0x080300;
}

pp_client *pp_client_make(const pp_client_options *options) {
  pp_client *client = calloc(1, sizeof *client);
  if (!client) return NULL;
  client->options = *options;
  client->options.store = NULL;
  client->spends_handles = spends_handles();
  client->timer_at = -1;
  client->news_end = &client->news;
  client->epoll = epoll_create1(EPOLL_CLOEXEC);
  client->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  client->multi = curl_multi_init();
  client->plain_headers = make_plain_headers(options->libcurl_features);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = client->wake};
  CURLMcode failed = 0;
#define SET(option, value) failed |= curl_multi_setopt(client->multi, option, value)
  if (client->multi) {
    SET(CURLMOPT_SOCKETFUNCTION, socket_changed);
    SET(CURLMOPT_SOCKETDATA, client);
    SET(CURLMOPT_TIMERFUNCTION, timer_changed);
    SET(CURLMOPT_TIMERDATA, client);
    SET(CURLMOPT_MAX_TOTAL_CONNECTIONS, options->most_connections);
    SET(CURLMOPT_MAXCONNECTS, options->most_kept);
    SET(CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
  }
#undef SET
  if (client->multi && !failed && client->epoll >= 0 && client->wake >= 0 &&
      epoll_ctl(client->epoll, EPOLL_CTL_ADD, client->wake, &event) == 0 &&
      X509_STORE_up_ref(options->store)) {
    client->options.store = options->store;
    return client;
  }
  pp_client_free(client);
  return NULL;
}

void pp_client_close(pp_client *client) {
  if (!client->multi) return;
  curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, NULL);
  curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, NULL);
  curl_multi_cleanup(client->multi);
  client->multi = NULL;
}

void pp_client_free(pp_client *client) {
  pp_client_close(client);
  if (client->epoll >= 0) close(client->epoll);
  if (client->wake >= 0) close(client->wake);
  for (pp_message *left = pp_client_take(client); left;) {
    pp_message *next = left->next;
    free(left);
    left = next;
  }
  X509_STORE_free(client->options.store);
  curl_slist_free_all(client->plain_headers);
  free(client->watches);
  free(client);
}

bool pp_client_post(pp_client *client, int kind, void *object, size_t amount) {
  pp_message *message = malloc(sizeof *message);
  if (!message) return false;
  *message = (pp_message){.object = object, .amount = amount, .kind = kind};
  pp_message *newest = atomic_load(&client->inbox);
  do {
    message->next = newest;
  } while (!atomic_compare_exchange_weak(&client->inbox, &newest, message));
  // Whoever finds the inbox empty wakes; the others' messages are found by the same turn.
  if (!newest && atomic_load(&client->sleeping)) eventfd_write(client->wake, 1);
  return true;
}

pp_message *pp_client_take(pp_client *client) {
  pp_message *newest = atomic_load(&client->inbox) ? atomic_exchange(&client->inbox, NULL) : NULL;
  pp_message *oldest = NULL;
  while (newest) {
    pp_message *next = newest->next;
    newest->next = oldest;
    oldest = newest;
    newest = next;
  }
  return oldest;
}

void pp_client_act(pp_client *client) {
  int running;
  // A timer may set the next one for at once; libcurl ends that by itself.
  for (int rounds = 0; rounds < 16 && client->timer_at >= 0; rounds++) {
    if (client->timer_at > 0 && client->timer_at > microseconds()) return;
    client->timer_at = -1;
    pp_turn_begin();
    curl_multi_socket_action(client->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    pp_turn_end();
  }
}

static void handle(pp_client *client, const struct epoll_event *events, int count) {
  int running;
  for (int i = 0; i < count; i++) {
    int descriptor = events[i].data.fd;
    if (descriptor == client->wake) {
      eventfd_t ignored;
      eventfd_read(client->wake, &ignored);
      continue;
    }
    struct pp_watch *watch = pp_client_watch(client, descriptor);
    if (!watch) continue;
    if (watch->wanted == 0) {
      // An idle connection that something came in on, most often its end. libcurl looks before it
      // uses it again.
      tell_epoll(client, descriptor, watch, 0);
      continue;
    }
    int mask = ((events[i].events & (EPOLLIN | EPOLLHUP)) ? CURL_CSELECT_IN : 0) |
               ((events[i].events & EPOLLOUT) ? CURL_CSELECT_OUT : 0) |
               ((events[i].events & EPOLLERR) ? CURL_CSELECT_ERR : 0);
    pp_turn_begin();
    curl_multi_socket_action(client->multi, descriptor, mask, &running);
    pp_turn_end();
  }
}

// Spinning is for processors that have nothing else to do: whoever is kept from one by it waits a
// hundred times longer than waking up takes. The scheduler tells, by taking ours away.
static bool may_spin(pp_client *client, int64_t now) {
  if (now >= client->look_at) {
    struct rusage usage;
    long lost = getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : client->lost + 1;
    client->is_contended = lost != client->lost;
    client->lost = lost;
    client->look_at = now + (client->is_contended ? LEAVE_ALONE : LOOK_EVERY);
  }
  return !client->is_contended &&
         (client->spin_score > 0 || ++client->turns % TRY_AGAIN == 0);
}

// Whether something came while spinning; `count`: how many events.
static bool spin(pp_client *client, int64_t since, struct epoll_event *events, int *count) {
  bool found = false;
  while (!found && microseconds() - since < SPIN) {
    for (int i = 0; i < 16; i++) PAUSE();
    *count = epoll_wait(client->epoll, events, EVENTS, 0);
    found = *count != 0 || atomic_load(&client->inbox);
  }
  client->spin_score += found ? 1 : -2;
  if (client->spin_score > 8) client->spin_score = 8;
  if (client->spin_score < 0) client->spin_score = 0;
  return found;
}

void pp_client_wait(pp_client *client, int milliseconds) {
  struct epoll_event events[EVENTS];
  int64_t now = microseconds();
  if (client->timer_at >= 0) {
    int64_t left = client->timer_at - now;
    int until = left <= 0 ? 0 : (int)(left / 1000 + 1);
    if (milliseconds < 0 || until < milliseconds) milliseconds = until;
  }
  int count = 0;
  if (milliseconds == 0 || atomic_load(&client->inbox)) {
    count = epoll_wait(client->epoll, events, EVENTS, 0);
  } else if (!may_spin(client, now) || !spin(client, now, events, &count)) {
    atomic_store(&client->sleeping, 1);
    int longest = atomic_load(&client->inbox) ? 0 : milliseconds;
    count = epoll_wait(client->epoll, events, EVENTS, longest);
    atomic_store(&client->sleeping, 0);
  }
  if (count > 0) handle(client, events, count);
  pp_client_act(client);
}

pp_exchange *pp_client_next_done(pp_client *client, CURLcode *code) {
  int left;
  for (CURLMsg *message; (message = curl_multi_info_read(client->multi, &left));) {
    if (message->msg != CURLMSG_DONE) continue;
    pp_exchange *exchange = NULL;
    *code = message->data.result;
    CURL *easy = message->easy_handle;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &exchange);
    if (exchange) return exchange;
  }
  return NULL;
}

pp_exchange *pp_client_next_news(pp_client *client) {
  pp_exchange *exchange = client->news;
  if (!exchange) return NULL;
  client->news = exchange->next_news;
  if (!client->news) client->news_end = &client->news;
  exchange->is_news = false;
  exchange->next_news = NULL;
  return exchange;
}
#endif

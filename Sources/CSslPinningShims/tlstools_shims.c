#define _GNU_SOURCE  // accept4
#include "tlstools_shims.h"

#if defined(__linux__)

#include <malloc.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <openssl/bio.h>

// The flag BIO_eof() reports; OpenSSL tells a truncation from a slow peer by it.
#define PP_BIO_SAW_END 0x800

// A client's whole last flight with its farewell; a longer one goes out in parts.
#define PP_HELD 1024

struct socket_state {
  int descriptor;
  int begun;                // how many bytes of `beginning` are filled
  unsigned char beginning[40];
  int holds;                // whether writes wait for the next read, or the end
  int held;                 // how many bytes of `waiting` wait
  unsigned char waiting[PP_HELD];
};

static int socket_of(BIO *bio) {
  return ((struct socket_state *)BIO_get_data(bio))->descriptor;
}

static void remember(struct socket_state *state, const char *bytes, ssize_t count) {
  for (ssize_t i = 0; i < count && state->begun < (int)sizeof state->beginning; i++) {
    state->beginning[state->begun++] = (unsigned char)bytes[i];
  }
}

static int would_block(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

// Sends what waits. False and errno where something is left.
static int send_waiting(struct socket_state *state) {
  int sent = 0;
  while (sent < state->held) {
    ssize_t more = send(state->descriptor, state->waiting + sent, (size_t)(state->held - sent),
                        MSG_NOSIGNAL);
    if (more <= 0) break;
    sent += (int)more;
  }
  state->held -= sent;
  if (state->held > 0 && sent > 0) memmove(state->waiting, state->waiting + sent, (size_t)state->held);
  return state->held == 0;
}

static int socket_write(BIO *bio, const char *bytes, int count) {
  struct socket_state *state = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  if (state->holds && count <= PP_HELD - state->held) {
    memcpy(state->waiting + state->held, bytes, (size_t)count);
    state->held += count;
    return count;
  }
  ssize_t sent =
      send_waiting(state) ? send(state->descriptor, bytes, (size_t)count, MSG_NOSIGNAL) : -1;
  if (sent < 0 && would_block(errno)) BIO_set_retry_write(bio);
  return (int)sent;
}

static int socket_read(BIO *bio, char *bytes, int count) {
  BIO_clear_retry_flags(bio);
  // The other side answers what it was told.
  if (!send_waiting(BIO_get_data(bio)) && would_block(errno)) {
    BIO_set_retry_write(bio);
    return -1;
  }
  ssize_t received = recv(socket_of(bio), bytes, (size_t)count, 0);
  if (received < 0 && would_block(errno)) BIO_set_retry_read(bio);
  if (received == 0) BIO_set_flags(bio, PP_BIO_SAW_END);
  remember(BIO_get_data(bio), bytes, received);
  return (int)received;
}

static long socket_control(BIO *bio, int command, long number, void *pointer) {
  (void)number;
  (void)pointer;
  switch (command) {
    case BIO_CTRL_FLUSH: return 1;
    case BIO_CTRL_EOF: return BIO_test_flags(bio, PP_BIO_SAW_END) != 0;
    default: return 0;
  }
}

static int socket_free(BIO *bio) {
  if (BIO_get_data(bio) != NULL) send_waiting(BIO_get_data(bio));
  free(BIO_get_data(bio));
  BIO_set_data(bio, NULL);
  return 1;
}

static pthread_once_t method_once = PTHREAD_ONCE_INIT;
static BIO_METHOD *method;

static void make_method(void) {
  BIO_METHOD *made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket, no SIGPIPE");
  if (made == NULL) return;
  BIO_meth_set_write(made, socket_write);
  BIO_meth_set_read(made, socket_read);
  BIO_meth_set_ctrl(made, socket_control);
  BIO_meth_set_destroy(made, socket_free);
  method = made;
}

BIO *pp_tls_socket_bio(int descriptor, int holds) {
  pthread_once(&method_once, make_method);
  BIO *bio = method != NULL ? BIO_new(method) : NULL;
  if (bio == NULL) return NULL;
  struct socket_state *state = calloc(1, sizeof *state);
  if (state == NULL) {
    BIO_free(bio);
    return NULL;
  }
  state->descriptor = descriptor;
  state->holds = holds;
  BIO_set_data(bio, state);
  BIO_set_init(bio, 1);
  return bio;
}

int pp_tls_beginning(BIO *bio, unsigned char *bytes, int capacity) {
  struct socket_state *state = bio != NULL ? BIO_get_data(bio) : NULL;
  if (state == NULL) return 0;
  int count = state->begun < capacity ? state->begun : capacity;
  memcpy(bytes, state->beginning, (size_t)count);
  return count;
}

int pp_tls_first_byte(BIO *bio) {
  struct socket_state *state = bio != NULL ? BIO_get_data(bio) : NULL;
  return state != NULL && state->begun > 0 ? state->beginning[0] : -1;
}

int pp_tls_event(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

int pp_tls_accept(int listener) {
  return accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

int pp_tls_poll(void) { return epoll_create1(EPOLL_CLOEXEC); }

int pp_tls_poll_add(int poll, int descriptor, uint64_t token) {
  struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET};
  event.data.u64 = token;
  return epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

int pp_tls_poll_wait(int poll, uint64_t *tokens, int capacity, int milliseconds) {
  struct epoll_event events[128];
  int most = capacity < 128 ? capacity : 128;
  int count = epoll_wait(poll, events, most, milliseconds);
  for (int i = 0; i < count; i++) tokens[i] = events[i].data.u64;
  return count > 0 ? count : 0;
}

void pp_memory_economise(int arenas, int large) {
#if defined(M_ARENA_MAX) && defined(M_MMAP_THRESHOLD)
  mallopt(M_ARENA_MAX, arenas);
  mallopt(M_MMAP_THRESHOLD, large);
#else
  (void)arenas, (void)large;
#endif
}

void pp_memory_give_back(void) {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

void pp_memory_hide(void) {
  const struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L);
}

bool pp_memory_is_hidden(void) { return prctl(PR_GET_DUMPABLE, 0L, 0L, 0L, 0L) == 0; }

#endif

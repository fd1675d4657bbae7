// See urlsession_lookout.h. All but taking and giving happens on the session's queue.
#if defined(__linux__)
#define _GNU_SOURCE
#include "urlsession_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

// The numbers of look-outs end before this: who starts another program may close each number up to the highest one.
#define END 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pp_lookout *unused;

// An ordinary session's socket may have spoilt its number for good. Sockets get the lowest that are free; so this takes the highest
// below the end.
static int moved_up(int descriptor) {
  struct rlimit limit;
  if (descriptor < 0 || getrlimit(RLIMIT_NOFILE, &limit)) return descriptor;
  for (int number = limit.rlim_cur < END ? (int)limit.rlim_cur - 1 : END - 1; number > descriptor; number--) {
    int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, number);
    if (moved >= 0) close(moved == number ? descriptor : moved);
    if (moved == number) return moved;
  }
  return descriptor;
}

static struct pp_lookout *make(void) {
  struct pp_lookout *made = calloc(1, sizeof *made);
  if (!made) return NULL;
  made->epoll = moved_up(epoll_create1(EPOLL_CLOEXEC));
  made->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = made->wake};
  if (made->epoll >= 0 && made->wake >= 0 && !epoll_ctl(made->epoll, EPOLL_CTL_ADD, made->wake, &event)) return made;
  if (made->epoll >= 0) close(made->epoll);
  if (made->wake >= 0) close(made->wake);
  free(made);
  return NULL;
}

struct pp_lookout *pp_lookout_take(void) {
  pthread_mutex_lock(&lock);
  struct pp_lookout *taken = unused;
  if (taken) unused = taken->next;
  pthread_mutex_unlock(&lock);
  return taken ? taken : make();
}

void pp_lookout_give(struct pp_lookout *lookout) {
  // Else whoever watches it still would be woken again and again.
  eventfd_t ignored;
  eventfd_read(lookout->wake, &ignored);
  pthread_mutex_lock(&lock);
  lookout->next = unused;
  unused = lookout;
  pthread_mutex_unlock(&lock);
}

void pp_lookout_show(struct session *s, CURL *easy) {
  bool is_wanted = s->transfers != NULL;
  if (is_wanted == s->is_watched) return;
  s->is_watched = is_wanted;
  void *token = s->watch_token;
  s->watch_token = NULL;
  s->socket_callback(easy, s->lookout->epoll, is_wanted ? CURL_POLL_IN : CURL_POLL_REMOVE, s->socket_data, token);
}

int pp_lookout_change(CURL *easy, curl_socket_t socket, int what, void *session, void *unused_data) {
  (void)easy, (void)unused_data;
  int epoll = ((const struct session *)session)->lookout->epoll;
  struct epoll_event event = {
      .events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0),
      .data.fd = socket,
  };
  if (what == CURL_POLL_REMOVE) {
    epoll_ctl(epoll, EPOLL_CTL_DEL, socket, NULL);
  } else if (epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event) && errno == EEXIST) {
    epoll_ctl(epoll, EPOLL_CTL_MOD, socket, &event);
  }
  // Where the kernel takes no more, the task times out: Foundation would end the process for an error.
  return 0;
}

curl_socket_t pp_lookout_ready(const struct session *s) {
  struct epoll_event event;
  return epoll_wait(s->lookout->epoll, &event, 1, 0) == 1 ? event.data.fd : CURL_SOCKET_BAD;
}
#endif

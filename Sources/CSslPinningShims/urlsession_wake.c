// See urlsession_wake.h.
#if defined(__linux__)
#include "urlsession_wake.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

// Descriptors that were given back while they were watched.
struct kept {
  int descriptor;
  bool is_free;
  struct kept *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept *all_kept;

int pp_wake_take(void) {
  int descriptor = -1;
  pthread_mutex_lock(&lock);
  for (struct kept *k = all_kept; k && descriptor < 0; k = k->next) {
    if (!k->is_free) continue;
    k->is_free = false;
    descriptor = k->descriptor;
  }
  pthread_mutex_unlock(&lock);
  return descriptor >= 0 ? descriptor : eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

void pp_wake_give(int descriptor, bool is_watched) {
  // Else its old watcher would be woken again and again.
  eventfd_t ignored;
  eventfd_read(descriptor, &ignored);
  pthread_mutex_lock(&lock);
  struct kept *k = all_kept;
  while (k && k->descriptor != descriptor) k = k->next;
  if (!k && is_watched && (k = malloc(sizeof *k))) {
    *k = (struct kept){descriptor, false, all_kept};
    all_kept = k;
  }
  if (k) k->is_free = true;
  pthread_mutex_unlock(&lock);
  if (!k && !is_watched) close(descriptor);
}
#endif

// How many connections a pinned session has, and which of them a request may use. See urlsession_hook.h.
#if defined(__linux__)
#include "urlsession_internal.h"

#include "client_loop.h"
#include "urlsession_handles.h"

#include <string.h>

#undef curl_multi_setopt
#define set_option ((__typeof__(&curl_multi_setopt))pp_real(PP_curl_multi_setopt))

// Hosts may share one: that costs the other one a handshake.
static uint8_t *colour_of(const struct transfer *t) {
  unsigned hash = (unsigned)t->port;
  for (const char *at = t->host; *at; at++) hash = hash * 31 + (unsigned char)*at;
  return &t->session->colours[hash % PP_COLOURED];
}

// The most colours of one host that were left and are in use.
static long left(const struct session *s) {
  unsigned in_use[PP_COLOURED] = {0};
  long most = 0;
  for (const struct transfer *t = s->transfers; t; t = t->next) {
    const uint8_t *now = colour_of(t);
    if (!t->connection || t->colour == *now) continue;
    unsigned *seen = &in_use[now - s->colours];
    *seen |= 1u << t->colour;
    long count = __builtin_popcount(*seen);
    if (count > most) most = count;
  }
  return most;
}

// What no app's burst needs; connections are descriptors.
#define MOST_KEPT 64

// By itself libcurl keeps four connections for each transfer of just then, so between two bursts hardly any. A new one
// costs a whole handshake and a verdict. So a session keeps those of its greatest burst.
//
// What goes once, a body most of all, has connections of its own (PP_APART), which are not to take all that the app allows to a host:
// nobody else would get one until a slow upload is over. So as many come on top of those, and more such requests than that wait.
//
// A transfer that must open a connection of its own (is_alone) counts as well: behind a slow proxy, long answers that begin together
// have one each. It does not count if it takes the place of a connection that the server has ended, which is closed.
//
// Connections that were left (pp_connections_leave) and are in use do not count among those that the app allows: one with a long
// stream on it would keep all other requests of its host waiting.
void pp_connections_keep(struct session *s) {
  long own = 0, once = 0;
  for (struct transfer *t = s->transfers; t; t = t->next) {
    own += 4;
    once += t->goes_once || (t->is_alone && !t->is_instead);
  }
  if (own > s->kept) s->kept = own < MOST_KEPT ? own : MOST_KEPT;
  set_option(s->multi, CURLMOPT_MAXCONNECTS, own > s->kept ? own : s->kept);
  if (s->most > 0)
    set_option(s->multi, CURLMOPT_MAX_HOST_CONNECTIONS, s->most + (once < s->most ? once : s->most) + left(s));
}

CURLcode pp_connections_choose(struct transfer *t) {
  t->colour = *colour_of(t);
  return pp_handle_keep_apart(pp_handle_of(t->easy), pp_colour_options(t->colour));
}

void pp_connections_leave(const struct transfer *t) {
  uint8_t *colour = colour_of(t);
  if (*colour == t->colour) *colour = (uint8_t)((*colour + 1) % PP_COLOURS);
}

static bool share_host(const struct transfer *one, const struct transfer *other) {
  return one->port == other->port && strcmp(one->host, other->host) == 0;
}

bool pp_connections_hold_back(struct session *s, struct transfer *t) {
  long others = 0;
  for (struct transfer *o = s->transfers; o && t->goes_once; o = o->next)
    others += o != t && o->goes_once && !o->is_held && share_host(o, t);
  t->is_held = s->most > 0 && others >= s->most;
  return t->is_held;
}

struct transfer *pp_connections_next(struct session *s, const struct transfer *ended) {
  struct transfer *longest = NULL;
  if (ended->is_held || !ended->goes_once) return NULL;
  // The newest comes first.
  for (struct transfer *t = s->transfers; t; t = t->next)
    if (t->is_held && share_host(t, ended)) longest = t;
  if (longest) longest->is_held = false;
  return longest;
}
#endif

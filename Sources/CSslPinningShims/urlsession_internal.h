// What the two halves of the hook share: the book-keeping of urlsession_hook.c and the judging of
// urlsession_judging.c.
#ifndef PP_URLSESSION_INTERNAL_H
#define PP_URLSESSION_INTERNAL_H
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include "curl_shims.h"
#include "judged_tls.h"
#include "urlsession_hook.h"
#include "urlsession_lookout.h"

// The functions of libcurl that Foundation reaches through the hook.
#define PP_FUNCTIONS(X)                                                        \
  X(curl_multi_init) X(curl_multi_setopt) X(curl_multi_add_handle)             \
  X(curl_multi_remove_handle) X(curl_multi_info_read)                          \
  X(curl_multi_socket_action) X(curl_multi_assign) X(curl_multi_cleanup)       \
  X(curl_easy_getinfo) X(curl_easy_setopt) X(curl_easy_strerror)                \
  X(curl_easy_cleanup) X(curl_easy_pause)

#define PP_NUMBER(name) PP_##name,
enum pp_function { PP_FUNCTIONS(PP_NUMBER) PP_FUNCTION_COUNT };
#undef PP_NUMBER

struct pp_hooked {
  const char *name;
  void *ours;
};
extern const struct pp_hooked pp_hooked[PP_FUNCTION_COUNT];

// The function of libcurl's behind a hooked one; only after pp_hook_bind found it.
void *pp_real(enum pp_function function);

// libcurl's own. Where the standard library is linked in, our calls by its name would arrive at the hook.
#define pp_easy_setopt ((__typeof__(&curl_easy_setopt))pp_real(PP_curl_easy_setopt))

// Whether all of Foundation's references still lead to the hook.
bool pp_hook_holds(void);

// How many groups of hosts have a colour of their own.
#define PP_COLOURED 64

// More than any libcurl's own handle.
#define PP_MASK_SIZE 8192

// TO_PART: it goes to another connection, and nothing of it was sent. LOST: it may have arrived over a connection that died.
enum verdict { UNDECIDED, REFUSED, TO_RETRY, TO_REFRESH, TO_PART, LOST };

struct session;

// One easy handle while it is in a multi handle of ours, or parked. Touched on the session's queue
// only, save `id`, `parked` and `ready`, which the lock guards.
struct transfer {
  CURL *easy;
  struct session *session;
  uint64_t id;
  enum verdict verdict;
  bool is_alone;   // takes no connection that stands
  bool is_instead; // so in place of a connection that the server has ended
  bool parked, ready, refreshed, replayed;
  double started, timeout;  // in seconds, of a clock that is never set; 0: no time-out
  bool begun;     // a byte may have left
  bool goes_once; // must not be sent twice (pp_handle_may_repeat)
  bool is_held;   // waits for the end of another such one, outside libcurl
  struct pp_judged *connection;  // that it is on, or was
  uint64_t received;             // what had come over that when it went out (pp_judged_received)
  double sent;                   // when that was, by the clock of `started`
  uint8_t colour;                // of the connections that it may use
  int sockets[PP_SOCKETS];       // that were made for it last
  int port;
  char scheme[16];
  char host[256];
  char error[CURL_ERROR_SIZE];
  char message[PP_MESSAGE_SIZE];
  struct curl_slist *addresses;  // of a name of this machine
  struct transfer *next;
};

// Whether a refusal of it waits for another verdict, or did.
static inline bool pp_was_pending(const struct transfer *t) {
  return t->verdict == TO_REFRESH || t->refreshed;
}

// One multi handle of ours. `references`: one for the list, one for each connection.
//
// Foundation is never shown libcurl's handle but the mask: zeroes, in which no libcurl sees a handle of
// its own. So a call that does not come through the hook moves nothing, instead of moving it unjudged.
struct session {
  CURLM *multi;
  void *mask;
  bool is_adopted;  // else it was made, and nothing may be sent on it
  uint64_t id;
  pp_session_options options;
  int references;
  struct transfer *transfers;
  uint8_t colours[PP_COLOURED];  // of the connections to a host: see pp_connections_choose
  long kept;  // connections, between transfers
  long most;  // to a host, as the app set it; 0: any number
  struct pp_lookout *lookout;
  bool is_watched;              // the look-out, by Foundation
  void *watch_token;            // of that, Foundation's own
  curl_socket_callback socket_callback;
  void *socket_data;
  struct session *next;
};

// What the callbacks are shown of a transfer.
pp_transfer pp_view(const struct transfer *t);

// Has the transfer hold the connection that it is on; NULL: none. If it waited in vain on another one, its host's requests leave that
// (pp_connections_leave).
void pp_transfer_hold(struct transfer *t, struct pp_judged *connection);

void pp_transfer_free(struct transfer *t);

// Has libcurl end a replay that is still without a verdict shortly before its time is over: Foundation, which would end it then, has
// words of its own, and nobody would hear what it was refused for. A replay looks the name up anew.
CURLcode pp_transfer_limit(const struct transfer *t, bool is_replay);

// Seconds of a clock that is never set.
double pp_now(void);

// Whether it went out and must not do so twice (RFC 9112 section 9.3.1): libcurl sends again what a kept connection died under,
// and Foundation gives it an empty body then. Its verdict is LOST.
bool pp_transfer_is_lost(struct transfer *t);

// Keeps a refusal with the transfer until libcurl hands the transfer back.
void pp_note(struct transfer *t, pp_decision decision, const char *message);

// A connection takes and gives back its reference to the session.
void pp_session_retain_for_connection(struct session *s);
void pp_session_release_from_connection(struct session *s);

// The transfer of this number, if the handle still carries it.
struct transfer *pp_find_transfer(struct session *s, CURL *easy, uint64_t id);

// Keeps as many connections between transfers as are worth it, and lets as many stand as may. Whenever a transfer comes or goes.
void pp_connections_keep(struct session *s);

// Before a transfer: has it use the connections of its host's colour only, and open them so.
CURLcode pp_connections_choose(struct transfer *t);

// Gives the transfer's host the next colour, unless another transfer did since this one began: later ones do not see the connections of
// this one's colour, which was silent, or is refused. libcurl puts all onto the one that stands first, which is never closed while any is
// on it. They are not to be taken off it before they are sent: libcurl 7.88 resets a stream for that which it never began, and a strict
// server ends what others wait on. Colours come round: a replay that meets a refused connection again goes alone.
void pp_connections_leave(const struct transfer *t);

// Whether the transfer is to wait for the end of another one that goes once, as it does.
bool pp_connections_hold_back(struct session *s, struct transfer *t);

// The one that waits longest for the end of `ended`; NULL: none.
struct transfer *pp_connections_next(struct session *s, const struct transfer *ended);

// Has Foundation watch the session's look-out while the session has transfers, and no longer: nothing can end the watch of a session that
// ends. Whenever a transfer comes or goes.
void pp_lookout_show(struct session *s, CURL *easy);

// CURLMOPT_SOCKETFUNCTION; its context is the session.
int pp_lookout_change(CURL *easy, curl_socket_t socket, int what, void *session, void *unused);

// The next descriptor with an event, a socket or `wake`, in turn; -1: none. One at a time, since all sessions share Foundation's queue.
curl_socket_t pp_lookout_ready(const struct session *s);

// libcurl's own curl_easy_getinfo, for CURLINFO_TLS_SSL_PTR.
struct curl_tlssessioninfo *pp_tls_info(CURL *easy);

// The same, for what is a text or a pointer.
CURLcode pp_easy_info(CURL *easy, CURLINFO info, char **out);

// Reads whom the transfer is for from its URL: never from SNI, which is empty for addresses.
void pp_read_url(struct transfer *t);

// CURLOPT_SSL_CTX_FUNCTION and CURLOPT_PREREQFUNCTION; the context of both is the transfer.
CURLcode pp_prepare_tls(CURL *easy, void *tls_context, void *transfer);
int pp_before_request(void *transfer, char *peer, char *own, int peer_port, int own_port);

// Has libcurl ask them, and for its sockets; with NULL no more.
CURLcode pp_listen(struct transfer *t, CURL *easy);

#endif

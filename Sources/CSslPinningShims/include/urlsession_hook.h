// Pinning for the URLSession of Foundation on Linux, which never asks about server trust.
//
// Foundation's networking calls the system's libcurl.so through the dynamic linker, by addresses that
// stand in its own image. `pp_hook_bind` puts functions of ours there, and touches nobody else's calls.
// They pass everything through, save for multi handles that were made inside a bracket of
// `pp_capture_begin` and `pp_capture_end` and then adopted by `pp_session_adopt`: there every transfer
// is judged before a byte of it leaves.
//
// Threads: Foundation drives each multi handle on a serial queue; the callbacks below run on it,
// inside libcurl, and must not block. Only `pp_session_resume` may be called from any thread.
#ifndef PP_URLSESSION_HOOK_H
#define PP_URLSESSION_HOOK_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Bytes of a refusal's text, its terminator included.
#define PP_MESSAGE_SIZE 512

typedef enum {
  PP_REFUSE = 0,
  PP_ACCEPT = 1,
  // Refuse this attempt, park the transfer, and replay it on another connection once the session is
  // told to resume it. For a connection that cannot be used any more: the host's later requests leave
  // it, too, and may share a newer one with the replay. A replay that meets such a one again gets one of
  // its own; means PP_REFUSE for that.
  PP_RETRY = 2,
  // The same for a key that newer pins might know; means PP_REFUSE once the transfer was parked for
  // that before. So a transfer is parked three times at most.
  PP_REFRESH = 3,
} pp_decision;

// One transfer as the URL names it. Valid during the callback only.
typedef struct {
  uint64_t id;          // never used twice in a process
  const char *scheme;   // lower case; empty where the URL cannot be read
  const char *host;     // as libcurl resolves it: no brackets removed, no case changed
  int port;
  bool is_alone;        // whether it had libcurl make a connection for it: there is no other chance
  bool refreshed;       // whether it was parked for newer pins, now or before
  bool awaits_pins;     // whether it is parked for them now
  double elapsed;       // seconds since it began
  const void *owner;    // what Foundation has libcurl write to; NULL but for `parked`
} pp_transfer;

typedef struct {
  // Owned by the session: released once, when its last connection is gone.
  void *context;
  void (*release)(void *context);
  // May a request to this URL leave at all? Asked before anything is dialled.
  pp_decision (*admit)(void *context, const pp_transfer *transfer, char *message);
  // Judges a handshake, in place of OpenSSL's own verification. On PP_ACCEPT, `*proof` becomes the
  // connection's proof and is owned by it.
  pp_decision (*judge)(void *context, const pp_transfer *transfer, X509_STORE_CTX *store_context,
                       void **proof, char *message);
  void (*release_proof)(void *proof);
  // Asked before every request, on reused connections too. `proof` is NULL where the connection was
  // never judged by this session.
  pp_decision (*confirm)(void *context, const pp_transfer *transfer, void *proof, char *message);
  // The transfer is parked; somebody calls `pp_session_resume` for it, once or more often.
  void (*parked)(void *context, uint64_t session, const pp_transfer *transfer);
  // A transfer for which PP_REFRESH was said has failed, or is gone, parked or not. `message`, which may be
  // NULL, becomes the refusal that it ends with: one that no other verdict followed, and that still stands.
  void (*ended)(void *context, uint64_t transfer, char *message);
  // The cookies that a request to this URL carries by itself, as a field's value, to be freed with
  // free(); NULL: none. Asked where a redirect has left the first origin.
  char *(*cookies)(void *context, const char *url);
  // Whether Foundation may keep the cookies of a `Set-Cookie` field's value, which is not terminated, and came for this
  // URL over the connection of this proof; NULL: over one that was never judged.
  bool (*takes_cookies)(void *context, void *proof, const char *url, const char *value, size_t length);
  // The anchors that chains are validated against; a reference is taken.
  X509_STORE *store;
  // Seconds after which Foundation ends a task that heard nothing; 0: never.
  double timeout;
  // False only where names do not count (pinned keys alone): libcurl's second name check is off.
  bool check_host;
} pp_session_options;

// Has the image that holds `foundation`, an address in Foundation's networking, call the hook, and
// keeps it so: to be asked for each session. False: it cannot be; `reason`, of PP_MESSAGE_SIZE bytes,
// says why.
bool pp_hook_bind(const void *foundation, char *reason);

// The name of the first libcurl option that the rules stand on and this libcurl does not know, or
// NULL: it knows all.
const char *pp_hook_missing_option(void);

// Opens and closes the bracket around the creation of a URLSession on this thread. The end returns
// the multi handle that was made, or NULL unless it was exactly one with a socket callback. `is_short`: whether
// no descriptor, or no memory, was left for it.
void pp_capture_begin(void);
void *pp_capture_end(bool *is_short);

// Takes a captured multi handle under the rules above; returns the session's number, or 0 when out
// of memory. On 0, `context` is not released.
uint64_t pp_session_adopt(void *multi, const pp_session_options *options);

// Replays a parked transfer; does nothing where it is no longer parked. From any thread. `timeout`: that of its
// request, in seconds; 0: it is the session's.
void pp_session_resume(uint64_t session, uint64_t transfer, double timeout);

// Live sessions, transfers and connections that the hook knows of: for tests of its book-keeping.
void pp_hook_counts(int *sessions, int *transfers, int *connections);

#endif

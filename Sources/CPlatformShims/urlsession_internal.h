// What the two halves of the hook share: the book-keeping of urlsession_hook.c and the judging of
// urlsession_judging.c.
#ifndef PP_URLSESSION_INTERNAL_H
#define PP_URLSESSION_INTERNAL_H
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include "urlsession_hook.h"

enum verdict { UNDECIDED, REFUSED, TO_RETRY, TO_REFRESH };

struct session;

// One easy handle while it is in a multi handle of ours, or parked. Touched on the session's queue
// only, save `id`, `parked` and `ready`, which the lock guards.
struct transfer {
  CURL *easy;
  struct session *session;
  uint64_t id;
  enum verdict verdict;
  int attempt;
  bool parked, ready, refreshed;
  int port;
  char scheme[16];
  char host[256];
  char error[CURL_ERROR_SIZE];
  char message[PP_MESSAGE_SIZE];
  struct transfer *next;
};

// One multi handle of ours. `references`: one for the list, one for each connection.
struct session {
  CURLM *multi;
  uint64_t id;
  pp_session_options options;
  int references;
  struct transfer *transfers;
  int parked_count;
  int wake_fd;
  bool watching;
  void *watch_token;
  curl_socket_callback socket_callback;
  void *socket_data;
  struct session *next;
};

// What the callbacks are shown of a transfer.
pp_transfer pp_view(const struct transfer *t);

// Keeps a refusal with the transfer until libcurl hands the transfer back.
void pp_note(struct transfer *t, pp_decision decision, const char *message);

// A connection takes and gives back its reference to the session.
void pp_session_retain_for_connection(struct session *s);
void pp_session_release_from_connection(struct session *s);

// The transfer of this number, if the handle still carries it.
struct transfer *pp_find_transfer(struct session *s, CURL *easy, uint64_t id);

// libcurl's own curl_easy_getinfo, for CURLINFO_TLS_SSL_PTR.
struct curl_tlssessioninfo *pp_tls_info(CURL *easy);

// CURLOPT_SSL_CTX_FUNCTION and CURLOPT_PREREQFUNCTION; the context of both is the transfer.
CURLcode pp_prepare_tls(CURL *easy, void *tls_context, void *transfer);
int pp_before_request(void *transfer, char *peer, char *own, int peer_port, int own_port);

#endif

// What Foundation hears of an answer on a pinned session, so that no server ends the process:
//
// - Foundation takes a trailer for the beginning of another head, and ends the process when that does not end.
//   So it hears of none.
// - Where a connection ends within a head, which anybody on the way can bring about, libcurl may call that a
//   success, and Foundation ends the process again. Such a transfer fails.
// - An answer with heads beyond 500 lines or 64 KiB fails: one of 250 KB kept all sessions of the process for a minute.
// - Nor does it hear all of a body that swells beyond what gzip makes of it (swelling.h): 3 KB of brotli did so, too.
// - Cookies that the session's jar must not take are kept back (`takes_cookies` of pp_session_options).
// - A 401 behind a redirect to another origin is the answer: its challenges are kept back, for Foundation would
//   begin the task anew and send the password that it is given to the first host.
#ifndef PP_URLSESSION_HEADS_H
#define PP_URLSESSION_HEADS_H
#include "urlsession_handles.h"

// Before this transfer. False: out of memory, or Foundation did not say through the hook who hears its lines, as
// where there is no handle.
bool pp_heads_listen(struct pp_handle *handle, const struct transfer *transfer);

// Foundation hears its handle itself again. Nothing happens where there is none.
void pp_heads_leave(struct pp_handle *handle);

// Before a transfer is taken out: if no answer began, its connection may be one that the network lost, which nobody
// says. Over HTTP/2 libcurl would keep it, and every request that follows would wait for its time-out. It does keep one that others
// are on: see pp_connections_leave.
//
// Returns the handle.
CURL *pp_heads_give_up(CURL *easy);

// Whether a transfer that libcurl calls a success ended within a head.
bool pp_heads_is_cut(CURL *easy);

#endif

// The one descriptor that Foundation watches for a session, in place of the sockets of libcurl.
//
// libdispatch, which watches for Foundation, keeps one record for each number of a descriptor. That of a socket whose peer hangs up while
// its watch ends can outlive the socket (Swift 6.3). Then no later socket of that number is ever watched, whoever's it is: its requests
// end with their time-out, and since the next one gets the same number, so do all of a session's that make a connection. So Foundation
// is shown a descriptor that never hangs up and is never closed, behind which the session's sockets are watched.
#ifndef PP_URLSESSION_LOOKOUT_H
#define PP_URLSESSION_LOOKOUT_H

struct pp_lookout {
  int epoll; // of the sockets and of `wake`
  int wake;  // a counter, at zero
  struct pp_lookout *next;
};

// One that no session has; NULL if none is to be had.
struct pp_lookout *pp_lookout_take(void);

// Gives it back, once libcurl has taken its sockets out. It is kept for the next session, since nobody knows when libdispatch has let go
// of it: a process has as many as it had sessions at a time.
void pp_lookout_give(struct pp_lookout *lookout);

#endif

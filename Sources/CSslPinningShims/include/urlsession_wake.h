// The descriptors that Foundation watches for the hook while transfers are parked.
#ifndef PP_URLSESSION_WAKE_H
#define PP_URLSESSION_WAKE_H

#include <stdbool.h>

// A non-blocking event counter that stands at zero; -1 where none is to be had.
int pp_wake_take(void);

// Gives a descriptor back. One that is still watched is not closed, since its number would become
// somebody else's file under the watcher's feet: it is kept for whoever takes one next, and from then
// on never closed.
void pp_wake_give(int descriptor, bool is_watched);

#endif

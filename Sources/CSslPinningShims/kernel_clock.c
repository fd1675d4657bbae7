// See kernel_clock.h.
#if defined(__linux__)
#include "kernel_clock.h"

#include <sys/timex.h>

bool pp_is_clock_synchronized(void) {
  struct timex state = {.modes = 0};
  // The flag and not the answer: that is an error also where a leap second is due.
  return adjtimex(&state) >= 0 && !(state.status & STA_UNSYNC);
}
#endif

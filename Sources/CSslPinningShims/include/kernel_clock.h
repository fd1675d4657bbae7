// Whether the kernel calls the machine's clock synchronised. The module map of glibc has no
// <sys/timex.h>, so Swift cannot ask by itself.
#ifndef PP_KERNEL_CLOCK_H
#define PP_KERNEL_CLOCK_H

#include <stdbool.h>

// Reads the state and changes nothing, which needs no privilege. False also where a sandbox forbids it.
bool pp_is_clock_synchronized(void);

#endif

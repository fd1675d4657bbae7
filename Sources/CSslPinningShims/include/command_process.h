#ifndef COMMAND_PROCESS_H
#define COMMAND_PROCESS_H

#if defined(__linux__)

#include <stddef.h>
#include <sys/types.h>

// Starts a program that is found in PATH, without a shell.
//
// - Its standard input is a file with `count` bytes of `message`, so it can be opened again as /dev/stdin.
// - It has a process group of its own, the signals' defaults, and no other descriptor of this process.
// - `*output` and `*errors` read what it writes; they do not block.
//
// Returns 0, or the errno of what went wrong: then nothing was started, and nothing has to be closed.
int pp_command_start(const char *const arguments[], const char *const environment[],
                     const void *message, size_t count, pid_t *process, int *output, int *errors);

// Whether the program has ended; it stays there to be waited for.
int pp_command_has_ended(pid_t process);

#endif
#endif

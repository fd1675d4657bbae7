#define _GNU_SOURCE  // memfd_create, pipe2, posix_spawn_file_actions_addclosefrom_np
#include "command_process.h"

#if defined(__linux__)

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int file_with(const void *message, size_t count) {
  int file = memfd_create("message", MFD_CLOEXEC);
  const char *rest = message;
  while (file >= 0 && count > 0) {
    ssize_t written = write(file, rest, count);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      int error = errno;
      close(file);
      errno = error;
      return -1;
    }
    rest += written;
    count -= (size_t)written;
  }
  if (file >= 0) lseek(file, 0, SEEK_SET);
  return file;
}

static int spawn(const char *const arguments[], const char *const environment[],
                 const int descriptors[3], pid_t *process) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  int error = posix_spawn_file_actions_init(&actions);
  if (error != 0) return error;
  error = posix_spawnattr_init(&attributes);
  if (error != 0) {
    posix_spawn_file_actions_destroy(&actions);
    return error;
  }
  for (int i = 0; i < 3 && error == 0; i++) {
    error = posix_spawn_file_actions_adddup2(&actions, descriptors[i], i);
  }
  if (error == 0) error = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  if (error == 0) {
    error = posix_spawnp(process, arguments[0], &actions, &attributes, (char *const *)arguments,
                         (char *const *)environment);
  }
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

int pp_command_start(const char *const arguments[], const char *const environment[],
                     const void *message, size_t count, pid_t *process, int *output, int *errors) {
  int out[2] = {-1, -1}, err[2] = {-1, -1};
  int error = 0;
  int in = file_with(message, count);
  if (in < 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) error = errno;
  if (error == 0) {
    const int descriptors[3] = {in, out[1], err[1]};
    error = spawn(arguments, environment, descriptors, process);
  }
  if (in >= 0) close(in);
  if (out[1] >= 0) close(out[1]);
  if (err[1] >= 0) close(err[1]);
  if (error != 0) {
    if (out[0] >= 0) close(out[0]);
    if (err[0] >= 0) close(err[0]);
    return error;
  }
  fcntl(out[0], F_SETFL, O_NONBLOCK);
  fcntl(err[0], F_SETFL, O_NONBLOCK);
  *output = out[0];
  *errors = err[0];
  return 0;
}

int pp_command_has_ended(pid_t process) {
  siginfo_t info;
  info.si_pid = 0;
  // Not waited for yet: until then its number, which is that of its group, is nobody else's.
  return waitid(P_PID, (id_t)process, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
}

#endif

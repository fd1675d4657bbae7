#ifndef TLSTOOLS_SHIMS_H
#define TLSTOOLS_SHIMS_H

#if defined(__linux__)

#include <stdbool.h>
#include <stdint.h>

/// A BIO over a connected socket whose writes never raise SIGPIPE (send with MSG_NOSIGNAL).
/// OpenSSL's own socket BIO uses write(2), and a peer that leaves would end the whole process.
/// The descriptor stays the caller's: freeing the BIO does not close it. NULL when out of memory.
///
/// Where it `holds`, what is written goes out with the next read, or when the BIO is freed: whoever says
/// little and listens, or leaves, says it at once. Nothing is told of a write that fails then.
struct bio_st *pp_tls_socket_bio(int descriptor, int holds);

/// Copies the first bytes that such a BIO received, at most 40; returns how many. What is no TLS is
/// told by them after OpenSSL has eaten and refused them.
int pp_tls_beginning(struct bio_st *bio, unsigned char *bytes, int capacity);

/// The first byte that such a BIO received; -1 before there was one.
int pp_tls_first_byte(struct bio_st *bio);

/// A non-blocking event counter, closed on exec: eventfd(2), which Glibc's module leaves out.
/// -1 and errno when there is none to be had.
int pp_tls_event(void);

/// The next connection of a listening socket, non-blocking and closed on exec: accept4(2).
/// -1 and errno when none waits.
int pp_tls_accept(int listener);

/// A new epoll(7), closed on exec; -1 and errno when there is none to be had.
int pp_tls_poll(void);

/// Tells `token` from now on whenever something new happens to `descriptor`: it can be read or written
/// again, it was connected, it failed. What did not change is not told twice. Ends when the descriptor
/// is closed. False and errno when that cannot be.
int pp_tls_poll_add(int poll, int descriptor, uint64_t token);

/// Waits at most `milliseconds` (-1: for ever); fills `tokens` and returns how many. 0 where nothing
/// happened or a signal came.
int pp_tls_poll_wait(int poll, uint64_t *tokens, int capacity, int milliseconds);

/// Has the allocator keep so many arenas at most, for threads that are yet to come, and give blocks of
/// `large` bytes and more back when they are freed: mallopt(3), which Glibc's module leaves out. Does
/// nothing where the allocator has no such settings.
void pp_memory_economise(int arenas, int large);

/// Has the allocator give back what is free: malloc_trim(3).
void pp_memory_give_back(void);

/// Has the kernel write no core dump of this process, and let no other process of its user read its memory:
/// PR_SET_DUMPABLE of prctl(2), which Swift cannot call, and RLIMIT_CORE of setrlimit(2).
void pp_memory_hide(void);

/// Whether the kernel does so: PR_GET_DUMPABLE.
bool pp_memory_is_hidden(void);

#endif
#endif

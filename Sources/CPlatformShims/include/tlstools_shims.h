#ifndef TLSTOOLS_SHIMS_H
#define TLSTOOLS_SHIMS_H

#if defined(__linux__)

/// A BIO over a connected socket whose writes never raise SIGPIPE (send with MSG_NOSIGNAL).
/// OpenSSL's own socket BIO uses write(2), and a peer that leaves would end the whole process.
/// The descriptor stays the caller's: freeing the BIO does not close it. NULL when out of memory.
struct bio_st *pp_tls_socket_bio(int descriptor);

/// Copies the first bytes that such a BIO received, at most 40; returns how many. What is no TLS is
/// told by them after OpenSSL has eaten and refused them.
int pp_tls_beginning(struct bio_st *bio, unsigned char *bytes, int capacity);

/// A non-blocking event counter, closed on exec: eventfd(2), which Glibc's module leaves out.
/// -1 and errno when there is none to be had.
int pp_tls_event(void);

/// The next connection of a listening socket, non-blocking and closed on exec: accept4(2).
/// -1 and errno when none waits.
int pp_tls_accept(int listener);

#endif
#endif

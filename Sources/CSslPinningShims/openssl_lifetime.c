// OpenSSL stays whole until the process is gone.
//
// By default `exit` takes OpenSSL apart while other threads still run: a request under way, a session of
// Foundation's, or a value that is let go on another thread then uses locks and tables that were freed.
// Nothing has to be taken apart for a process that ends; the system takes it all back.
//
// It counts only where nobody has used OpenSSL before, so it is said when the program is loaded. Hazard:
// where a library that is loaded earlier uses OpenSSL in a constructor of its own, its choice is kept.
#if defined(__linux__)
#include <openssl/crypto.h>

__attribute__((constructor)) static void keep_openssl(void) {
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
}
#endif

// C that Swift cannot say: the hook under URLSession, typed forms of variadic functions and macros.
// Everything here is for Linux; on Apple platforms the target is empty and nobody imports it.
#ifndef CPLATFORMSHIMS_H
#define CPLATFORMSHIMS_H
#if defined(__linux__)
#include "answer_bounds.h"
#include "client_loop.h"
#include "command_process.h"
#include "curl_shims.h"
#include "endless_tls.h"
#include "kernel_clock.h"
#include "localhost_names.h"
#include "own_curves.h"
#include "quiet_tls.h"
#include "tls_library.h"
#include "tlstools_shims.h"
#include "urlsession_hook.h"
#include "urlsession_lookout.h"
#endif
#endif

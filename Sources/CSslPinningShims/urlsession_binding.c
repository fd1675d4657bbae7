// Points Foundation's references to libcurl at the hook's functions, and at no others' references.
//
// - Only the image that holds Foundation's networking is touched: whatever else in the process uses a
//   libcurl, this one, another flavour or a second copy, calls what it was linked to.
// - The real functions are looked up as that image asks for them, name and version; what a slot holds
//   is never taken for one, since before the first call it leads back into the linker.
// - A slot may turn back: another thread's first call, resolved before and stored after our write.
//   So they are looked at again for every session, and no rule rests on them: see `mask` in
//   urlsession_internal.h.
#if defined(__linux__)
#define _GNU_SOURCE
#include "elf_image.h"
#include "urlsession_internal.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_SLOTS 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_found;
static struct pp_image foundation;
static struct {
  void **slot;
  int function;
} slots[MOST_SLOTS];
static int slot_count;
static void *real[PP_FUNCTION_COUNT];

void *pp_real(enum pp_function function) {
  void *found;
  // Stored before the slots were; a slot is no more than a jump, which orders no later load.
  while (!(found = __atomic_load_n(&real[function], __ATOMIC_ACQUIRE))) continue;
  return found;
}

static bool fail(char *reason, const char *format, const char *name) {
  snprintf(reason, PP_MESSAGE_SIZE, format, name);
  return false;
}

// --- The real functions -------------------------------------------------------------------------

struct wanted {
  const char *name;
  struct pp_reference found;
};

static bool find_name(void *context, const struct pp_reference *reference) {
  struct wanted *wanted = context;
  if (strcmp(reference->name, wanted->name) != 0) return true;
  wanted->found = *reference;
  return false;
}

#if defined(__GLIBC__)
static bool has_version(void *function, const char *name) {
  struct pp_image image;
  Dl_info info;
  ElfW(Sym) *symbol = NULL;
  if (!dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol || !info.dli_sname ||
      strcmp(info.dli_sname, name) != 0 || !pp_image_of(function, &image) || !image.versions)
    return false;
  return (image.versions[symbol - image.symbols] & 0x7fff) > VER_NDX_GLOBAL;
}
#endif

static void *look_up(void *scope, const struct pp_reference *reference) {
#if defined(__GLIBC__)
  if (reference->version) {
    // A reference with a version takes a function without one as well, if that stands first in the
    // order of libraries; dlvsym does not.
    void *first = dlsym(scope, reference->name);
    if (first && !has_version(first, reference->name)) return first;
    return dlvsym(scope, reference->name, reference->version);
  }
#endif
  return dlsym(scope, reference->name);
}

// What the dynamic linker binds the image's reference of this name to. A program that was linked for
// a fixed address may answer with its own stub, which leads to the slot: then its libraries are asked.
static void *bound(const struct pp_image *image, const char *name) {
  struct wanted wanted = {name, {0}};
  pp_image_each_reference(image, find_name, &wanted);
  if (!wanted.found.slot) return NULL;
  void *found = look_up(RTLD_DEFAULT, &wanted.found);
  if (found && !pp_image_holds(image, found)) return found;
  const char *library;
  for (size_t i = 0; (library = pp_image_needed(image, i)); i++) {
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) continue;
    found = look_up(handle, &wanted.found);
    dlclose(handle);
    if (found && !pp_image_holds(image, found)) return found;
  }
  return NULL;
}

// Else, when it is unloaded, slots would lead nowhere.
static bool stays_loaded(const struct pp_image *image) {
  return !*image->name || dlopen(image->name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

static bool find_real(char *reason) {
  struct pp_image libcurl, own;
  void *found[PP_FUNCTION_COUNT];
  for (int i = 0; i < PP_FUNCTION_COUNT; i++) {
    const char *name = pp_hooked[i].name;
    if (!(found[i] = bound(&foundation, name)))
      return fail(reason, "%s has nothing behind it; hint: link libcurl dynamically", name);
    if (i == 0 ? !pp_image_of(found[i], &libcurl) : !pp_image_holds(&libcurl, found[i]))
      return fail(reason, "%s is not the same libcurl's as the others", name);
  }
  // The hook sets options on Foundation's handles, and asks for the TLS library, with functions that
  // it is linked to itself.
  if (!pp_image_of(&slots, &own)) return fail(reason, "%s cannot be read", "this program's image");
  static const char *const ours[] = {"curl_easy_setopt", "curl_version_info"};
  for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
    void *function = bound(&own, ours[i]);
    if (!function || !pp_image_holds(&libcurl, function))
      return fail(reason, "%s is another libcurl's than Foundation's", ours[i]);
  }
  if (!stays_loaded(&libcurl) || !stays_loaded(&own) || !stays_loaded(&foundation))
    return fail(reason, "%s cannot be kept loaded", libcurl.name);
  for (int i = 0; i < PP_FUNCTION_COUNT; i++)
    __atomic_store_n(&real[i], found[i], __ATOMIC_RELEASE);
  return true;
}

// The rules rest on it that libcurl takes nothing for a handle that is none.
static bool knows_its_handles(char *reason) {
  static _Alignas(16) char none[PP_MASK_SIZE];
  CURL *easy = curl_easy_init();
  CURLMcode code =
      easy ? ((__typeof__(&curl_multi_add_handle))pp_real(PP_curl_multi_add_handle))(none, easy)
           : CURLM_OUT_OF_MEMORY;
  curl_easy_cleanup(easy);
  return code == CURLM_BAD_HANDLE ||
         fail(reason, "%s takes what is no handle of libcurl's", "curl_multi_add_handle");
}

// --- The slots ----------------------------------------------------------------------------------

static bool keep_slot(void *context, const struct pp_reference *reference) {
  bool *fits = context;
  for (int i = 0; i < PP_FUNCTION_COUNT; i++) {
    if (strcmp(reference->name, pp_hooked[i].name) != 0) continue;
    if (slot_count == MOST_SLOTS) return *fits = false;
    slots[slot_count].slot = reference->slot;
    slots[slot_count++].function = i;
  }
  return true;
}

static bool find_slots(char *reason) {
  bool fits = true;
  slot_count = 0;
  pp_image_each_reference(&foundation, keep_slot, &fits);
  if (!fits) return fail(reason, "Foundation refers to libcurl in too many places%s", "");
  for (int i = 0; i < PP_FUNCTION_COUNT; i++) {
    bool found = false;
    for (int j = 0; j < slot_count; j++) found |= slots[j].function == i;
    if (!found)
      return fail(reason, "Foundation does not call %s through the dynamic linker; "
                          "hint: link libcurl dynamically", pp_hooked[i].name);
  }
  return true;
}

static bool is_ours(int i) {
  return __atomic_load_n(slots[i].slot, __ATOMIC_ACQUIRE) == pp_hooked[slots[i].function].ours;
}

// Pages that the dynamic linker made read-only are opened for the one write.
static bool write_slot(int i) {
  void **slot = slots[i].slot;
  uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE);
  void *page = (void *)((uintptr_t)slot & ~(size - 1));
  int before = pp_image_protection(&foundation, slot);
  bool is_closed = !(before & PROT_WRITE);
  if (is_closed && mprotect(page, size, PROT_READ | PROT_WRITE) != 0) return false;
  __atomic_store_n(slot, pp_hooked[slots[i].function].ours, __ATOMIC_RELEASE);
  return !is_closed || mprotect(page, size, before) == 0;
}

static bool point_slots(char *reason) {
  for (int i = 0; i < slot_count; i++) {
    if (is_ours(i)) continue;
    const char *name = pp_hooked[slots[i].function].name;
    void *present = __atomic_load_n(slots[i].slot, __ATOMIC_ACQUIRE);
    // Not yet bound, or bound; anything else is somebody else's hook, and who comes first is unknown.
    if (present != real[slots[i].function] && !pp_image_holds(&foundation, present))
      return fail(reason, "%s was hooked by another library", name);
    if (!write_slot(i) || !is_ours(i)) return fail(reason, "%s cannot be hooked", name);
  }
  return true;
}

bool pp_hook_bind(const void *inside, char *reason) {
  pthread_mutex_lock(&lock);
  bool is_bound = is_found;
  if (!is_bound)
    is_bound = (pp_image_of(inside, &foundation) ||
                fail(reason, "%s cannot be found in memory", "Foundation's networking")) &&
               find_slots(reason) && find_real(reason) && knows_its_handles(reason);
  else if (!pp_image_holds(&foundation, inside))
    is_bound = fail(reason, "%s is there twice", "Foundation's networking");
  if (is_bound) {
    is_found = true;
    is_bound = point_slots(reason);
  }
  pthread_mutex_unlock(&lock);
  return is_bound;
}

bool pp_hook_holds(void) {
  pthread_mutex_lock(&lock);
  bool holds = is_found;
  for (int i = 0; holds && i < slot_count; i++) holds = is_ours(i);
  pthread_mutex_unlock(&lock);
  return holds;
}
#endif

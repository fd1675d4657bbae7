// One loaded ELF image and what it refers to in others.
//
// Reads only what the dynamic linker itself reads: program headers, the dynamic section, relocations,
// symbol names and versions. x86-64 and aarch64; elsewhere no image is found.
#ifndef PP_ELF_IMAGE_H
#define PP_ELF_IMAGE_H
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pp_image {
  const char *name;  // its path; empty for the program itself
  uintptr_t base;
  const ElfW(Phdr) *headers;
  size_t header_count;
  const ElfW(Sym) *symbols;
  const char *strings;
  size_t strings_size;
  const ElfW(Half) *versions;       // NULL where its symbols have none
  const ElfW(Verneed) *version_needs;
  size_t version_need_count;
  const ElfW(Dyn) *dynamic;
  struct {
    const ElfW(Rela) *first;
    size_t count;
  } tables[2];
};

// A place that the dynamic linker fills with a symbol's address, and calls go through.
struct pp_reference {
  void **slot;
  const char *name;
  const char *version;  // NULL: none was asked for
};

// The image whose loaded segments hold `address`; false where there is none, or it cannot be read.
bool pp_image_of(const void *address, struct pp_image *image);

bool pp_image_holds(const struct pp_image *image, const void *address);

// Calls `visit` for every reference to a named symbol until it returns false.
void pp_image_each_reference(const struct pp_image *image,
                             bool (*visit)(void *context, const struct pp_reference *reference),
                             void *context);

// The names of the libraries that the image asks for, one a call: `index` from 0 until NULL.
const char *pp_image_needed(const struct pp_image *image, size_t index);

// The protection (PROT_…) that the dynamic linker leaves on the page of `address`.
int pp_image_protection(const struct pp_image *image, const void *address);

#endif

// See elf_image.h.
#if defined(__linux__)
#define _GNU_SOURCE
#include "elf_image.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#define IS_REFERENCE(type)                                                     \
  ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT || (type) == R_X86_64_64)
#elif defined(__aarch64__)
#define IS_REFERENCE(type)                                                     \
  ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT || (type) == R_AARCH64_ABS64)
#else
#define IS_REFERENCE(type) ((void)(type), false)
#endif

bool pp_image_holds(const struct pp_image *image, const void *address) {
  uintptr_t wanted = (uintptr_t)address;
  for (size_t i = 0; i < image->header_count; i++) {
    const ElfW(Phdr) *h = &image->headers[i];
    if (h->p_type == PT_LOAD && wanted - (image->base + h->p_vaddr) < h->p_memsz) return true;
  }
  return false;
}

// glibc turns the addresses of the dynamic section into absolute ones in place; musl does not, nor
// does glibc where the section is read-only. NULL where neither reading lies in the image.
static const void *located(const struct pp_image *image, ElfW(Addr) value) {
  const void *absolute = (const void *)(uintptr_t)value;
  if (pp_image_holds(image, absolute)) return absolute;
  const void *relative = (const void *)(image->base + (uintptr_t)value);
  return pp_image_holds(image, relative) ? relative : NULL;
}

static bool read_dynamic(struct pp_image *image) {
  for (size_t i = 0; i < image->header_count; i++)
    if (image->headers[i].p_type == PT_DYNAMIC)
      image->dynamic = (const void *)(image->base + image->headers[i].p_vaddr);
  if (!image->dynamic) return false;
  ElfW(Xword) plt_type = DT_RELA;
  for (const ElfW(Dyn) *d = image->dynamic; d->d_tag != DT_NULL; d++) {
    switch (d->d_tag) {
    case DT_SYMTAB: image->symbols = located(image, d->d_un.d_ptr); break;
    case DT_STRTAB: image->strings = located(image, d->d_un.d_ptr); break;
    case DT_STRSZ: image->strings_size = d->d_un.d_val; break;
    case DT_VERSYM: image->versions = located(image, d->d_un.d_ptr); break;
    case DT_VERNEED: image->version_needs = located(image, d->d_un.d_ptr); break;
    case DT_VERNEEDNUM: image->version_need_count = d->d_un.d_val; break;
    case DT_RELA: image->tables[0].first = located(image, d->d_un.d_ptr); break;
    case DT_RELASZ: image->tables[0].count = d->d_un.d_val / sizeof(ElfW(Rela)); break;
    case DT_JMPREL: image->tables[1].first = located(image, d->d_un.d_ptr); break;
    case DT_PLTRELSZ: image->tables[1].count = d->d_un.d_val / sizeof(ElfW(Rela)); break;
    case DT_PLTREL: plt_type = d->d_un.d_val; break;
    default: break;
    }
  }
  return image->symbols && image->strings && plt_type == DT_RELA;
}

struct search {
  const void *address;
  struct pp_image *image;
};

static int visit_image(struct dl_phdr_info *info, size_t size, void *context) {
  (void)size;
  struct search *search = context;
  struct pp_image candidate = {.name = info->dlpi_name ? info->dlpi_name : "",
                               .base = info->dlpi_addr,
                               .headers = info->dlpi_phdr,
                               .header_count = info->dlpi_phnum};
  if (!pp_image_holds(&candidate, search->address)) return 0;
  *search->image = candidate;
  return 1;
}

bool pp_image_of(const void *address, struct pp_image *image) {
  struct search search = {address, image};
  return dl_iterate_phdr(visit_image, &search) == 1 && read_dynamic(image);
}

static const char *text(const struct pp_image *image, size_t offset) {
  return offset < image->strings_size ? image->strings + offset : "";
}

static const char *version_of(const struct pp_image *image, size_t symbol) {
  if (!image->versions || !image->version_needs) return NULL;
  unsigned wanted = image->versions[symbol] & 0x7fff;
  if (wanted <= VER_NDX_GLOBAL) return NULL;
  const char *at = (const char *)image->version_needs;
  for (size_t i = 0; i < image->version_need_count; i++) {
    const ElfW(Verneed) *need = (const void *)at;
    const char *entry = at + need->vn_aux;
    for (unsigned j = 0; j < need->vn_cnt; j++) {
      const ElfW(Vernaux) *version = (const void *)entry;
      if ((version->vna_other & 0x7fff) == wanted) return text(image, version->vna_name);
      entry += version->vna_next;
    }
    at += need->vn_next;
  }
  return NULL;
}

void pp_image_each_reference(const struct pp_image *image,
                             bool (*visit)(void *context, const struct pp_reference *reference),
                             void *context) {
  for (size_t table = 0; table < 2; table++) {
    const ElfW(Rela) *relocation = image->tables[table].first;
    for (size_t i = 0; relocation && i < image->tables[table].count; i++, relocation++) {
      size_t symbol = ELF64_R_SYM(relocation->r_info);
      if (!symbol || !IS_REFERENCE(ELF64_R_TYPE(relocation->r_info))) continue;
      void **slot = (void **)(image->base + relocation->r_offset);
      if ((uintptr_t)slot % sizeof *slot || !pp_image_holds(image, slot)) continue;
      struct pp_reference reference = {slot, text(image, image->symbols[symbol].st_name),
                                       version_of(image, symbol)};
      if (!visit(context, &reference)) return;
    }
  }
}

const char *pp_image_needed(const struct pp_image *image, size_t index) {
  for (const ElfW(Dyn) *d = image->dynamic; d->d_tag != DT_NULL; d++)
    if (d->d_tag == DT_NEEDED && index-- == 0) return text(image, d->d_un.d_val);
  return NULL;
}

int pp_image_protection(const struct pp_image *image, const void *address) {
  uintptr_t page_size = (uintptr_t)sysconf(_SC_PAGESIZE), mask = ~(page_size - 1);
  uintptr_t wanted = (uintptr_t)address;
  int protection = PROT_NONE;
  for (size_t i = 0; i < image->header_count; i++) {
    const ElfW(Phdr) *h = &image->headers[i];
    uintptr_t start = image->base + h->p_vaddr;
    if (h->p_type == PT_LOAD && wanted - start < h->p_memsz)
      protection = (h->p_flags & PF_R ? PROT_READ : 0) | (h->p_flags & PF_W ? PROT_WRITE : 0) |
                   (h->p_flags & PF_X ? PROT_EXEC : 0);
  }
  for (size_t i = 0; i < image->header_count; i++) {
    const ElfW(Phdr) *h = &image->headers[i];
    uintptr_t start = image->base + h->p_vaddr;
    // Whole pages only: what shares its page with ordinary data stays writable.
    if (h->p_type == PT_GNU_RELRO && wanted >= (start & mask) &&
        wanted < ((start + h->p_memsz) & mask))
      protection = PROT_READ;
  }
  return protection;
}
#endif

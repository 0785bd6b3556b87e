// Pages of machine code. See code_pages.h.
#include "base/code_pages.h"

#include <string.h>
#include <sys/mman.h>

void* rn_code_pages_new(const void* code, size_t size) {
  if (size == 0) return NULL;
  void* pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return NULL;
  memcpy(pages, code, size);
  if (mprotect(pages, size, PROT_READ | PROT_EXEC) == 0) return pages;
  munmap(pages, size);
  return NULL;
}

void rn_code_pages_free(void* pages, size_t size) {
  if (pages) munmap(pages, size);
}

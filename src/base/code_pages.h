// Memory for machine code that is made at run time. It is never writable and executable at once.
#ifndef RUNNEL_BASE_CODE_PAGES_H_
#define RUNNEL_BASE_CODE_PAGES_H_

#include <stddef.h>

// Copies |size| bytes of code to pages of their own that may be executed, read and not written.
// NULL if there is no memory, or if the system refuses such pages, as hardened ones do: callers
// have another way. Free it with rn_code_pages_free, which takes NULL.
void* rn_code_pages_new(const void* code, size_t size);
void rn_code_pages_free(void* pages, size_t size);

#endif  // RUNNEL_BASE_CODE_PAGES_H_

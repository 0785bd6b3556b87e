// Allocators: the caller says where memory comes from.
//
// An allocator is a small value: one function and its self pointer. A block is freed with the size
// it was allocated with. Every object that owns memory keeps its allocator. Allocators are
// thread-safe unless documented otherwise.
#ifndef RUNNEL_BASE_ALLOC_H_
#define RUNNEL_BASE_ALLOC_H_

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

// Tensor data and vector loops start at this boundary: a cache line, and the width of an AVX-512
// register.
#define RN_ALIGN 64

// The one operation. ptr NULL: allocate |new_size|. new_size 0: free. Otherwise move to |new_size|,
// keeping the common bytes. Returns NULL after a free, and when there is no memory (the old block
// then stays). Blocks are 16-byte aligned.
typedef void* (*rn_realloc_fn_t)(void* self, void* ptr, size_t old_size, size_t new_size);

typedef struct rn_allocator_t {
  rn_realloc_fn_t fn;
  void* self;
  bool is_far;  // the memory of a device: only the device's own work may touch the bytes
} rn_allocator_t;

// malloc and free.
rn_allocator_t rn_allocator_system(void);

// The allocator of the C API's constructors: the system allocator, unless a test replaced it to
// fail or count allocations. Replace it before anything else runs, in the only thread.
rn_allocator_t rn_allocator_default(void);
void rn_allocator_set_default_for_testing(rn_allocator_t allocator);

// Counts what passes through it to |base|. Fails the |fail_at|-th allocation (counted from 1; 0:
// none) and, if |fail_all_after|, every later one. Tests own it and read its fields.
typedef struct rn_counting_allocator_t {
  rn_allocator_t base;
  int64_t fail_at;
  bool fail_all_after;
  _Atomic int64_t allocations;  // calls that asked for memory
  _Atomic int64_t live_blocks;
  _Atomic int64_t live_bytes;
  _Atomic int64_t peak_bytes;
} rn_counting_allocator_t;
rn_allocator_t rn_allocator_counting(rn_counting_allocator_t* counting);

// out = a * b, out = a + b; false on overflow. Every size in the library is computed with these.
static inline bool rn_mul_ok(size_t a, size_t b, size_t* out) {
  return !__builtin_mul_overflow(a, b, out);
}
static inline bool rn_add_ok(size_t a, size_t b, size_t* out) {
  return !__builtin_add_overflow(a, b, out);
}
static inline bool rn_mul_i64_ok(int64_t a, int64_t b, int64_t* out) {
  return !__builtin_mul_overflow(a, b, out);
}
static inline bool rn_add_i64_ok(int64_t a, int64_t b, int64_t* out) {
  return !__builtin_add_overflow(a, b, out);
}

// |*out| = |size| bytes, unset. A size of 0 gives a valid pointer that must be freed with size 0.
RN_MUST_USE rn_status_t rn_alloc(rn_allocator_t allocator, size_t size, void** out);
RN_MUST_USE rn_status_t rn_alloc_zeroed(rn_allocator_t allocator, size_t size, void** out);
// count * size with the overflow checked; zeroed.
RN_MUST_USE rn_status_t rn_alloc_array(rn_allocator_t allocator, size_t count, size_t size,
                                       void** out);
// Frees what the functions above gave; NULL is fine.
void rn_free(rn_allocator_t allocator, void* ptr, size_t size);

// A zeroed object or array of the pointer's type: RN_NEW(allocator, &node).
#define RN_NEW(allocator, out) rn_alloc_zeroed((allocator), sizeof **(out), (void**)(out))
#define RN_NEW_ARRAY(allocator, count, out) \
  rn_alloc_array((allocator), (count), sizeof **(out), (void**)(out))
#define RN_FREE(allocator, ptr) rn_free((allocator), (ptr), sizeof *(ptr))
#define RN_FREE_ARRAY(allocator, ptr, count) \
  rn_free((allocator), (ptr), (size_t)(count) * sizeof *(ptr))

#endif  // RUNNEL_BASE_ALLOC_H_

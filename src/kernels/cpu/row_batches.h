// Work on rows that indices name, where a row may be named twice: scatters, sparse updates, sums of
// segments.
#ifndef RUNNEL_KERNELS_CPU_ROW_BATCHES_H_
#define RUNNEL_KERNELS_CPU_ROW_BATCHES_H_

#include "base/pool.h"
#include "tensor/tensor.h"

enum { RN_ROW_BATCH = 64 };

// Some of the indices: |rows| are their values and |places| where they stand, in rising order. At
// most RN_ROW_BATCH of them.
typedef void (*rn_row_batch_fn_t)(void* arg, const int64_t* rows, const int64_t* places, int count);

// Calls |body| until it has had every index in [0, limit); others are left out. Calls come from
// several threads, but a row's indices all go to one, in the order in which they stand: so the
// result does not depend on the number of threads. |row_ns| is about what a row takes.
void rn_row_batches(rn_pool_t* pool, const rn_tensor_t* indices, int64_t limit, double row_ns,
                    rn_row_batch_fn_t body, void* arg);

// Tells the processor that |size| bytes at |row| are about to be used. Of a long row it sees the
// rest coming.
static inline void rn_row_prefetch(const void* row, size_t size) {
  for (size_t at = 0; at < size && at < 512; at += 64) __builtin_prefetch((const char*)row + at, 1);
}

#endif  // RUNNEL_KERNELS_CPU_ROW_BATCHES_H_

// Runs work on rows selected by indices that may repeat: scatters, sparse updates, segment sums.
#ifndef RUNNEL_KERNELS_CPU_ROW_BATCHES_H_
#define RUNNEL_KERNELS_CPU_ROW_BATCHES_H_

#include "base/pool.h"
#include "tensor/tensor.h"

enum { RN_ROW_BATCH = 64 };

// Receives a batch of indices: |rows| are their values and |places| their positions, in ascending
// order. At most RN_ROW_BATCH per call.
typedef void (*rn_row_batch_fn_t)(void* arg, const int64_t* rows, const int64_t* places, int count);

// Calls |body| with every index in [0, limit); skips the others. Calls come from several threads,
// but all indices of one row go to one thread in order of position, so the result does not depend
// on the number of threads. |row_ns| is the approximate time per row.
void rn_row_batches(rn_pool_t* pool, const rn_tensor_t* indices, int64_t limit, double row_ns,
                    rn_row_batch_fn_t body, void* arg);

// Prefetches |size| bytes at |row|. The hardware prefetcher loads the rest of a long row.
static inline void rn_row_prefetch(const void* row, size_t size) {
  for (size_t at = 0; at < size && at < 512; at += 64) __builtin_prefetch((const char*)row + at, 1);
}

#endif  // RUNNEL_KERNELS_CPU_ROW_BATCHES_H_

// Arguments of segment.cu.
#ifndef RUNNEL_KERNELS_CUDA_MATH_SEGMENT_ARGS_H_
#define RUNNEL_KERNELS_CUDA_MATH_SEGMENT_ARGS_H_

#ifdef __cplusplus
#include "kernels/cuda/prelude.cuh"
#else
#include "kernels/cuda/launch.h"
#endif

// How rows of a segment are joined, and what becomes of the result.
enum { RN_SEGMENT_SUM, RN_SEGMENT_PROD, RN_SEGMENT_MAX, RN_SEGMENT_MIN };
enum { RN_SEGMENT_PLAIN, RN_SEGMENT_MEAN, RN_SEGMENT_SQRT_N };

// Ids in ascending order: plain ones, or keys of state/rows_args.h if |keys| is not NULL.
struct rn_segment_ids {
  const void* ids;
  const u64* keys;
  i64 count;
  i32 bits, id_size;  // of a key's place; bytes of an id
};

// starts[s], for s in [0, segments]: the first place with an id >= s.
struct rn_segment_starts_args {
  struct rn_segment_ids ids;
  i64* starts;
  i64 segments;
};

// out[s] = the rows at places [starts[s], starts[s + 1]) joined. The row of a place is the place in
// the order of the ids, and if |picks| is not NULL, what that has there.
struct rn_segment_args {
  struct rn_segment_ids ids;
  const i64* starts;
  const void* data;
  void* out;
  const void* picks;
  const u64* divisors;         // one per row of |data|, to scale it as |end| says; or NULL
  i64 segments, width, limit;  // |limit|: rows of |data|; others count as zeros
  i32 kind, end, pick_size;
  i32 from_empty;  // begin with |empty|, not with the first row
  u64 empty[2];    // the result of a segment without rows
};

// counts[id] += 1.
struct rn_segment_count_args {
  const void* ids;
  u64* counts;
  i64 count, limit;
  i32 id_size;
};

// Places where a new key begins: their number, the places and the rows.
struct rn_segment_unique_args {
  const u64* keys;
  i64* starts;
  i64* rows;
  i64* total;  // one number
  i64 count;
  i32 bits;
};

#endif  // RUNNEL_KERNELS_CUDA_MATH_SEGMENT_ARGS_H_

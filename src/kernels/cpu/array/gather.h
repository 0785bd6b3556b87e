// Index tensors: bounds checks, and conversion of index vectors to flat row numbers.
#ifndef RUNNEL_KERNELS_CPU_ARRAY_GATHER_H_
#define RUNNEL_KERNELS_CPU_ARRAY_GATHER_H_

#include "kernels/cpu/array.h"
#include "kernels/cpu/isa/gather.h"

const rn_gather_table_t* rn_gather_table(void);
// The table row for indices of |dtype| (int16, int32, int64).
static inline int rn_gather_type(rn_dtype_t dtype) {
  return dtype == RN_INT16 ? 0 : dtype == RN_INT32 ? 1 : 2;
}

// INVALID_ARGUMENT "indices[...] = x is not in [0, limit)" for the first index out of bounds.
RN_MUST_USE rn_status_t rn_check_indices(const rn_tensor_t* indices, int64_t limit);

// How to treat an index that is out of bounds.
typedef enum rn_bad_index_t { RN_BAD_INDEX_ERROR, RN_BAD_INDEX_IGNORE } rn_bad_index_t;
RN_MUST_USE rn_status_t rn_bad_index_init(const rn_kernel_init_t* init, rn_bad_index_t* out);

// Index vectors: the last dimension of |indices| addresses one place in the first |depth| axes of
// |shape|.
typedef struct rn_places_t {
  const rn_tensor_t* indices;
  rn_shape_t shape;
  int depth;
  int64_t count;               // number of places
  int64_t steps[RN_MAX_RANK];  // in rows: stride of each axis
  int64_t row;                 // elements per row: the product of the other axes
} rn_places_t;
void rn_places_init(rn_places_t* places, const rn_tensor_t* indices, rn_shape_t shape);
// The row number of place |i|; -1 if it is out of bounds.
static inline int64_t rn_place_at(const rn_places_t* places, int64_t i) {
  uint64_t row = 0;  // wraps around if a place is out of bounds
  bool bad = false;
  for (int d = 0; d < places->depth; ++d) {
    int64_t index = rn_int_at(places->indices, i * places->depth + d);
    bad = bad || index < 0 || index >= places->shape.dims[d];
    row += (uint64_t)index * (uint64_t)places->steps[d];
  }
  return bad ? -1 : (int64_t)row;
}
// INVALID_ARGUMENT "indices[i] = [..] does not index into <what> [..]<ending>" for place |i|.
RN_MUST_USE rn_status_t rn_place_error(const rn_kernel_ctx_t* ctx, const rn_places_t* places,
                                       int64_t i, const char* what, bool names_node);

// What Gather, GatherV2 and ResourceGather read and write: params seen as [batch, outer, limit,
// inner], indices as [batch, count].
typedef struct rn_gather_t {
  rn_tensor_t params;  // shared
  const rn_tensor_t* indices;
  rn_tensor_t* out;
  int64_t outer, limit, count, inner;
} rn_gather_t;
// The state of their kernels is an int64_t: batch_dims.
RN_MUST_USE rn_status_t rn_gather_init(const rn_kernel_init_t* init, void* state);
// Checks all but the indices and makes the output. The caller clears |params|.
RN_MUST_USE rn_status_t rn_gather_begin(rn_kernel_ctx_t* ctx, rn_gather_t* out);

// The same for GatherNd and ResourceGatherNd; their state is an rn_bad_index_t.
typedef struct rn_gather_nd_t {
  rn_tensor_t params;  // shared
  rn_places_t places;  // unset if |out| is empty
  rn_tensor_t* out;
} rn_gather_nd_t;
RN_MUST_USE rn_status_t rn_gather_nd_init(const rn_kernel_init_t* init, void* state);
RN_MUST_USE rn_status_t rn_gather_nd_begin(rn_kernel_ctx_t* ctx, rn_gather_nd_t* out);

#endif  // RUNNEL_KERNELS_CPU_ARRAY_GATHER_H_

// Index tensors: their bounds, and the flat places that rows of several indices stand for.
#ifndef RUNNEL_KERNELS_CPU_ARRAY_GATHER_H_
#define RUNNEL_KERNELS_CPU_ARRAY_GATHER_H_

#include "kernels/cpu/array.h"
#include "kernels/cpu/isa/gather.h"

const rn_gather_table_t* rn_gather_table(void);
// The table's row for indices of |dtype| (int16, int32, int64).
static inline int rn_gather_type(rn_dtype_t dtype) {
  return dtype == RN_INT16 ? 0 : dtype == RN_INT32 ? 1 : 2;
}

// INVALID_ARGUMENT "indices[...] = x is not in [0, limit)" for the first index that is not.
RN_MUST_USE rn_status_t rn_check_indices(const rn_tensor_t* indices, int64_t limit);

// What to do with an index that is out of bounds.
typedef enum rn_bad_index_t { RN_BAD_INDEX_ERROR, RN_BAD_INDEX_IGNORE } rn_bad_index_t;
RN_MUST_USE rn_status_t rn_bad_index_init(const rn_kernel_init_t* init, rn_bad_index_t* out);

// Indices of several axes: the last dimension of |indices| is one place in the first |depth| axes
// of |shape|.
typedef struct rn_places_t {
  const rn_tensor_t* indices;
  rn_shape_t shape;
  int depth;
  int64_t count;               // of places
  int64_t steps[RN_MAX_RANK];  // in rows: what one axis counts
  int64_t row;                 // elements of a row, the product of the other axes
} rn_places_t;
void rn_places_init(rn_places_t* places, const rn_tensor_t* indices, rn_shape_t shape);
// The row that place |i| stands for, -1 if it is out of bounds.
static inline int64_t rn_place_at(const rn_places_t* places, int64_t i) {
  uint64_t row = 0;  // wraps around for places that are out of bounds
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

#endif  // RUNNEL_KERNELS_CPU_ARRAY_GATHER_H_

// Checks of the segment reductions that need no values of the device, for kernels of any device.
#ifndef RUNNEL_KERNELS_CPU_MATH_SEGMENT_H_
#define RUNNEL_KERNELS_CPU_MATH_SEGMENT_H_

#include "kernels/cpu/array.h"

static inline rn_status_t rn_segment_check(const rn_tensor_t* data, const rn_tensor_t* ids) {
  if (data->rank < 1) return rn_invalid_argument("input must be at least rank 1");
  if (ids->rank != 1) return rn_invalid_argument("segment_ids should be a vector.");
  if (ids->count != rn_tensor_dim(data, 0))
    return rn_invalid_argument("segment_ids should be the same size as dimension 0 of input.");
  return RN_OK;
}

// The number of segments that sorted ids have whose last one is |last|.
static inline rn_status_t rn_segment_rows(int64_t last, int64_t* out_rows) {
  if (last < 0) return rn_invalid_argument("segment ids must be >= 0");
  if (last == INT64_MAX)
    return rn_invalid_argument("Expected a non-negative size, got -9223372036854775808");
  *out_rows = last + 1;
  return RN_OK;
}

static inline rn_status_t rn_unsorted_segment_check(const rn_tensor_t* data, const rn_tensor_t* ids,
                                                    const rn_tensor_t* number, int64_t* out_rows) {
  if (number->rank != 0)
    return rn_invalid_argument("num_segments should be a scalar, not shape %s",
                               rn_text_of(number).text);
  bool fits = data->rank >= ids->rank;
  for (int d = 0; fits && d < ids->rank; ++d)
    fits = rn_tensor_dim(data, d) == rn_tensor_dim(ids, d);
  if (!fits)
    return rn_invalid_argument("data.shape = %s does not start with segment_ids.shape = %s",
                               rn_text_of(data).text, rn_text_of(ids).text);
  *out_rows = rn_int_at(number, 0);
  if (*out_rows < 0)
    return rn_invalid_argument("Input num_segments == %lld must not be negative.",
                               (long long)*out_rows);
  return RN_OK;
}

// Makes output 0: |rows| rows shaped like those of |data| without its first |skipped| dimensions.
static inline rn_status_t rn_segment_output(rn_kernel_ctx_t* ctx, const rn_tensor_t* data,
                                            int skipped, int64_t rows, rn_tensor_t** out) {
  int64_t dims[RN_MAX_RANK + 1] = {rows};
  for (int d = skipped; d < data->rank; ++d) dims[d - skipped + 1] = rn_tensor_dim(data, d);
  return rn_output(ctx, 0, (rn_shape_t){data->rank - skipped + 1, dims}, out);
}

static inline rn_status_t rn_sparse_segment_check(const rn_tensor_t* data,
                                                  const rn_tensor_t* indices,
                                                  const rn_tensor_t* ids) {
  if (data->rank < 1) return rn_invalid_argument("Shape must be at least rank 1");
  if (indices->rank != 1) return rn_invalid_argument("indices should be a vector.");
  if (ids->rank != 1) return rn_invalid_argument("segment_ids should be a vector.");
  if (indices->count != ids->count)
    return rn_invalid_argument("segment_ids and indices should have same size.");
  return RN_OK;
}

// The input num_segments of SparseSegment*WithNumSegments.
static inline rn_status_t rn_sparse_segment_number(const rn_tensor_t* number, int64_t* out_rows) {
  if (number->rank != 0 && !(number->rank == 1 && number->count == 1))
    return rn_invalid_argument("num_segments should be a scalar, not shape %s",
                               rn_text_of(number).text);
  *out_rows = rn_int_at(number, 0);
  return *out_rows < 0 ? rn_invalid_argument("segment ids must be >= 0") : RN_OK;
}

// The input |name| of the gradients: the number of rows of the result.
static inline rn_status_t rn_sparse_segment_size(const rn_tensor_t* size, const char* name,
                                                 int64_t* out) {
  if (size->rank != 0) return rn_invalid_argument("%s should be a scalar.", name);
  *out = rn_int_at(size, 0);
  if (*out < 0)
    return rn_invalid_argument("Expected a non-negative size, got %lld", (long long)*out);
  return RN_OK;
}

#endif  // RUNNEL_KERNELS_CPU_MATH_SEGMENT_H_

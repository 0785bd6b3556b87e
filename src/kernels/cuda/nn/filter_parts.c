// Parts of gradients of filters: see filter_parts.h.
#include "kernels/cuda/nn/filter_parts.h"

#include "kernels/cuda/nn/conv_args.h"

#define WANTED_THREADS (1 << 16)
#define LEAST_PIECE 64

rn_status_t rn_filter_parts_begin(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, int64_t count,
                                  int64_t positions, rn_filter_parts_t* out) {
  rn_dtype_t sums = dtype == RN_HALF || dtype == RN_BFLOAT16 ? RN_FLOAT : dtype;
  int64_t parts = WANTED_THREADS / count + 1, most = positions / LEAST_PIECE + 1;
  if (parts > most) parts = most;
  *out = (rn_filter_parts_t){.piece = (positions + parts - 1) / parts};
  out->parts = (positions + out->piece - 1) / out->piece;
  return rn_temp(ctx, sums, (rn_shape_t){2, (int64_t[]){out->parts, count}}, &out->sums);
}

rn_status_t rn_filter_parts_end(const rn_kernel_ctx_t* ctx, rn_status_t status,
                                rn_filter_parts_t* parts, rn_tensor_t* result) {
  conv_sum_args args = {parts->sums.data, result->data, result->count, parts->parts};
  if (rn_ok(status))
    status = rn_cuda_each(ctx, rn_cuda_name("nn/conv/sum", result->dtype).text, result->count,
                          &args, sizeof args);
  rn_tensor_clear(&parts->sums);
  return status;
}

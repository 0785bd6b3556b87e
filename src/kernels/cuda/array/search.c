// LowerBound and UpperBound: places of values in sorted rows.
#include "kernels/cpu/array/begin.h"
#include "kernels/cuda/array/search_args.h"

static rn_status_t bound(rn_kernel_ctx_t* ctx, bool is_upper) {
  const rn_tensor_t *sorted = rn_in(ctx, 0), *values = rn_in(ctx, 1);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_bound_begin(ctx, &out));
  rn_cuda_search_args args = {.sorted = sorted->data,
                              .values = values->data,
                              .out = out->data,
                              .count = out->count,
                              .width = rn_tensor_dim(values, 1),
                              .length = rn_tensor_dim(sorted, 1),
                              .out_size = (i32)rn_dtype_size(out->dtype),
                              .is_upper = is_upper};
  return rn_cuda_each(ctx, rn_cuda_name("array/search/search", values->dtype).text, args.count,
                      &args, sizeof args);
}

static rn_status_t lower(rn_kernel_ctx_t* ctx) { return bound(ctx, false); }
static rn_status_t upper(rn_kernel_ctx_t* ctx) { return bound(ctx, true); }

#define ROW(name, function)                                                                     \
  {                                                                                             \
    .op = name, .device = "GPU", .types = {{"T", RN_TYPES_REAL}, {"out_type", RN_TYPES_INDEX}}, \
    .flags = RN_KERNEL_REPLAYS, .compute = function                                             \
  }
static const rn_kernel_def_t rows[] = {ROW("LowerBound", lower), ROW("UpperBound", upper)};
RN_KERNEL_FAMILY(cuda_search, rows);

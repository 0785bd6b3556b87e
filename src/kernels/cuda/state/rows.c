// Sorting places by row: see rows.h.
#include "kernels/cuda/state/rows.h"

#include "kernels/cpu/array.h"

static int bits_of(int64_t values) {
  int bits = 0;
  while (bits < 63 && (INT64_C(1) << bits) < values) ++bits;
  return bits;
}

static rn_status_t sort(rn_kernel_ctx_t* ctx, const struct rn_rows_sort_args* args) {
  const bool is_one = args->padded <= RN_ROWS_CHUNK;
  const int64_t chunk = is_one ? args->padded : RN_ROWS_CHUNK;
  rn_cuda_grid_t grid = {.x = (unsigned)(args->padded / chunk),
                         .block_x = chunk < 64         ? 32
                                    : chunk / 2 > 1024 ? 1024
                                                       : (unsigned)chunk / 2};
  RN_RETURN_IF_ERROR(rn_cuda_launch(ctx, "state/rows/rows_sort", grid, args, sizeof *args));
  for (int64_t size = 2 * chunk; size <= args->padded; size *= 2) {
    struct rn_rows_merge_args merge = {args->keys, args->padded, size, size / 2};
    for (; merge.distance >= chunk; merge.distance /= 2)
      RN_RETURN_IF_ERROR(
          rn_cuda_each(ctx, "state/rows/rows_step", args->padded / 2, &merge, sizeof merge));
    RN_RETURN_IF_ERROR(rn_cuda_launch(ctx, "state/rows/rows_merge", grid, &merge, sizeof merge));
  }
  return RN_OK;
}

void rn_cuda_rows_set_width(struct rn_rows_args* rows, int64_t width) {
  const int64_t divisor = width ? width : 1;
  rows->width = width;
  rows->is_wide = rows->count > INT32_MAX / divisor;
  if (!rows->is_wide) rows->divisor = rn_divisor((u32)divisor);
}

rn_status_t rn_cuda_rows(rn_kernel_ctx_t* ctx, const rn_tensor_t* indices, int depth,
                         rn_shape_t shape, rn_cuda_rows_t* out) {
  const int64_t count = depth ? indices->count / depth
                              : rn_dims_product(rn_tensor_dims(indices), 0, indices->rank - 1);
  const int64_t width = rn_dims_product(shape.dims, depth, shape.rank);
  int64_t rows = 1;
  struct rn_rows_sort_args args = {.indices = indices->data,
                                   .count = count,
                                   .padded = INT64_C(1) << bits_of(count),
                                   .depth = depth,
                                   .bits = bits_of(count),
                                   .index_size = (i32)rn_dtype_size(indices->dtype)};
  *out = (rn_cuda_rows_t){.args = {.count = count, .bits = args.bits}};
  if (depth > RN_ROWS_DEPTH) return rn_unimplemented("Index vectors of %d numbers on a GPU", depth);
  for (int d = depth - 1; d >= 0; --d) {
    args.limits[d] = shape.dims[d];
    args.steps[d] = rows;
    rows *= shape.dims[d];
  }
  if (args.bits + bits_of(rows) > 63)
    return rn_unimplemented("Updates of %lld of %lld rows on a GPU", (long long)count,
                            (long long)rows);
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_UINT64, (rn_shape_t){1, &args.padded}, &out->keys));
  args.keys = RN_DATA(&out->keys, u64);
  out->args.keys = args.keys;
  rn_cuda_rows_set_width(&out->args, width);
  rn_status_t status = sort(ctx, &args);
  if (!rn_ok(status)) rn_tensor_clear(&out->keys);
  return status;
}

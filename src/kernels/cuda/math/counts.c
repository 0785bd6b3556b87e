// Bucketize, HistogramFixedWidth, Bincount and DenseBincount, and Cross.
#include "kernels/cpu/math/counts.h"

#include "kernels/cpu/math/cross.h"
#include "kernels/cuda/loops.h"
#include "kernels/cuda/math/counts_args.h"

static rn_status_t bucketize(rn_kernel_ctx_t* ctx) {
  const rn_buckets_t* buckets = ctx->state;
  const rn_tensor_t* in = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(in), &out));
  int32_t done = 0;
  do {
    const int32_t left = buckets->count - done;
    struct rn_bucketize_args args = {
        .in = in->data,
        .out = out->data,
        .count = in->count,
        .is_first = done == 0,
        .limit_count = left < RN_BUCKETIZE_LIMITS ? left : RN_BUCKETIZE_LIMITS};
    if (left) memcpy(args.limits, buckets->limits + done, (size_t)args.limit_count * sizeof(float));
    RN_RETURN_IF_ERROR(rn_cuda_each(ctx, rn_cuda_name("math/counts/bucketize", in->dtype).text,
                                    in->count, &args, sizeof args));
    done += args.limit_count;
  } while (done < buckets->count);
  return RN_OK;
}

// Values that are NaN are not counted.
static rn_status_t histogram(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* values = rn_in(ctx, 0);
  struct rn_histogram_args args = {.in = values->data, .count = values->count};
  int64_t bins = 0;
  RN_RETURN_IF_ERROR(
      rn_histogram_check(rn_in(ctx, 1), rn_in(ctx, 2), &args.low, &args.step, &bins));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &bins}, &out));
  RN_RETURN_IF_ERROR(rn_cuda_zero(ctx, out));
  args.out = out->data;
  args.bins = bins;
  args.is_wide = out->dtype == RN_INT64;
  return rn_cuda_each(ctx, rn_cuda_name("math/counts/histogram", values->dtype).text, values->count,
                      &args, sizeof args);
}

static rn_status_t cross(rn_kernel_ctx_t* ctx) {
  static const rn_dtype_t unsigned_type[RN_DTYPE_COUNT] = {
      [RN_INT8] = RN_UINT8, [RN_INT16] = RN_UINT16, [RN_INT32] = RN_UINT32, [RN_INT64] = RN_UINT64};
  const rn_tensor_t *a = rn_in(ctx, 0), *b = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(rn_cross_check(a, b));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(a), &out));
  struct rn_cross_args args = {
      .a = a->data, .b = b->data, .out = out->data, .count = out->count / 3};
  const rn_dtype_t type = unsigned_type[a->dtype] ? unsigned_type[a->dtype] : a->dtype;
  return rn_cuda_each(ctx, rn_cuda_name("math/counts/cross", type).text, args.count, &args,
                      sizeof args);
}

#define COUNTED (RN_TYPES_INDEX | RN_T(FLOAT) | RN_T(DOUBLE))

static const rn_kernel_def_t rows[] = {
    {.op = "Bucketize",
     .device = "GPU",
     .types = {{"T", COUNTED}},
     .flags = RN_KERNEL_REPLAYS,
     .state_size = sizeof(rn_buckets_t),
     .init = rn_buckets_init,
     .destroy = rn_buckets_destroy,
     .compute = bucketize},
    {.op = "HistogramFixedWidth",
     .device = "GPU",
     .types = {{"T", COUNTED}},
     .host_args = RN_HOST_ARGS("value_range", "nbins"),
     .flags = RN_KERNEL_REPLAYS,
     .compute = histogram},
    {.op = "Cross",
     .device = "GPU",
     .types = {{"T", RN_TYPES_REAL}},
     .flags = RN_KERNEL_REPLAYS,
     .compute = cross},
};
RN_KERNEL_FAMILY(cuda_counts, rows);

// Bucketize, HistogramFixedWidth, Bincount and DenseBincount, and Cross.
#include "kernels/cpu/math/counts.h"

#include "kernels/cpu/math/cross.h"
#include "kernels/cuda/loops.h"
#include "kernels/cuda/math/counts_args.h"
#include "kernels/cuda/math/segment.h"

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

// The counts, in |bins|, as what |out| has.
static rn_status_t put_counts(rn_kernel_ctx_t* ctx, const rn_tensor_t* bins, bool is_binary,
                              rn_tensor_t* out) {
  rn_jit_program_t program;
  rn_jit_operand_t operand = {.address = (uintptr_t)bins->data};
  rn_jit_begin(&program, 0, 0);
  int count = rn_jit_input(&program, RN_INT64, RN_JIT_LINEAR, RN_JIT_FULL);
  if (is_binary)
    count = rn_jit_op2(&program, RN_SCALAR_MINIMUM, count, rn_jit_constant(&program, RN_INT64, 1));
  rn_jit_output(&program, count, out->dtype);
  return rn_cuda_run(ctx, &program, &(rn_jit_sizes_t){.count = out->count}, &operand, &out);
}

// Counts each of |rows| rows of |input| into a row of |size| bins. Values without a bin are
// skipped. Weights are sorted by bin and summed in order.
static rn_status_t count_rows(rn_kernel_ctx_t* ctx, int64_t rows, int64_t size, bool is_binary,
                              rn_tensor_t* out) {
  const rn_tensor_t *input = rn_in(ctx, 0), *weights = rn_in(ctx, 2);
  if (out->count == 0) return RN_OK;
  if (input->count == 0) return rn_cuda_zero(ctx, out);
  const bool is_weighted = weights->count && !is_binary;
  rn_tensor_t bins = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT64, rn_tensor_shape(is_weighted ? input : out), &bins));
  struct rn_bincount_args args = {.in = input->data,
                                  .bins = bins.data,
                                  .count = input->count,
                                  .columns = input->count / rows,
                                  .size = size,
                                  .is_wide = input->dtype == RN_INT64};
  rn_status_t status = is_weighted ? RN_OK : rn_cuda_zero(ctx, &bins);
  if (rn_ok(status))
    status = rn_cuda_each(ctx, is_weighted ? "math/counts/bins" : "math/counts/bincount",
                          input->count, &args, sizeof args);
  if (rn_ok(status))
    status = is_weighted ? rn_cuda_segment_sum(ctx, weights, &bins, out)
                         : put_counts(ctx, &bins, is_binary, out);
  rn_tensor_clear(&bins);
  return status;
}

static rn_status_t bincount(rn_kernel_ctx_t* ctx) {
  int64_t size = 0;
  RN_RETURN_IF_ERROR(rn_bincount_size(rn_in(ctx, 1), &size));
  RN_RETURN_IF_ERROR(rn_bincount_check(rn_in(ctx, 0), rn_in(ctx, 2)));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &size}, &out));
  return count_rows(ctx, 1, size, false, out);
}

static rn_status_t dense_init(const rn_kernel_init_t* init, void* state) {
  *(bool*)state = rn_init_bool(init, "binary_output");
  return RN_OK;
}

static rn_status_t dense_bincount(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  int64_t size = 0;
  RN_RETURN_IF_ERROR(rn_dense_bincount_check(input, rn_in(ctx, 1), rn_in(ctx, 2), &size));
  const bool has_rows = input->rank == 2;
  const int64_t rows = has_rows ? rn_tensor_dim(input, 0) : 1, dims[2] = {rows, size};
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(
      rn_output(ctx, 0, has_rows ? (rn_shape_t){2, dims} : (rn_shape_t){1, &size}, &out));
  return count_rows(ctx, rows, size, *(const bool*)ctx->state, out);
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
    {.op = "Bincount",
     .device = "GPU",
     .types = {{"T", COUNTED}},
     .host_args = RN_HOST_ARGS("size"),
     .flags = RN_KERNEL_REPLAYS,
     .compute = bincount},
    {.op = "DenseBincount",
     .device = "GPU",
     .types = {{"T", COUNTED}},
     .host_args = RN_HOST_ARGS("size"),
     .flags = RN_KERNEL_REPLAYS,
     .state_size = sizeof(bool),
     .init = dense_init,
     .compute = dense_bincount},
    {.op = "Cross",
     .device = "GPU",
     .types = {{"T", RN_TYPES_REAL}},
     .flags = RN_KERNEL_REPLAYS,
     .compute = cross},
};
RN_KERNEL_FAMILY(cuda_counts, rows);

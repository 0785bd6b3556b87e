// QuantizeAndDequantize in its versions. Limits are in host memory, as in stock.
#include "kernels/cpu/quant/quantize.h"

#include "kernels/cuda/quant/quantize_args.h"

// Stores the limits of inputs |at| and at + 1 on the device.
static rn_status_t store_limits(rn_kernel_ctx_t* ctx, int at, int64_t entries,
                                const rn_tensor_t* limits) {
  const char* name =
      limits->dtype == RN_FLOAT ? "quant/quantize/store_f32" : "quant/quantize/store_f64";
  rn_cuda_store_args args;
  for (int64_t done = 0; done < entries; done += args.count) {
    args.to = (char*)limits->data + (size_t)done * rn_dtype_size(limits->dtype);
    args.count = entries - done < RN_QUANTIZE_STORED ? entries - done : RN_QUANTIZE_STORED;
    for (int64_t i = 0; i < args.count; ++i)
      args.numbers[i] = rn_quantize_limit(ctx, at + (int)((done + i) % 2), (done + i) / 2);
    RN_RETURN_IF_ERROR(rn_cuda_each(ctx, name, args.count, &args, sizeof args));
  }
  return RN_OK;
}

// Computes the range of every slice.
static rn_status_t find_limits(rn_kernel_ctx_t* ctx, rn_dtype_t dtype,
                               rn_cuda_quantize_args* args) {
  int64_t parts = args->count / args->slices / (4 * RN_QUANTIZE_THREADS) + 1;
  if (parts > RN_QUANTIZE_PARTS) parts = RN_QUANTIZE_PARTS;
  const int64_t entries = 2 * args->slices * parts;
  rn_tensor_t partial = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, dtype, (rn_shape_t){1, &entries}, &partial));
  args->parts = parts;
  args->partial = partial.data;
  rn_cuda_grid_t grid = {
      .x = (unsigned)args->slices, .y = (unsigned)parts, .block_x = RN_QUANTIZE_THREADS};
  rn_status_t status = rn_cuda_launch(ctx, rn_cuda_name("quant/quantize/find_range", dtype).text,
                                      grid, args, sizeof *args);
  if (rn_ok(status))
    status = rn_cuda_each(ctx, rn_cuda_name("quant/quantize/join_ranges", dtype).text, args->slices,
                          args, sizeof *args);
  rn_tensor_clear(&partial);
  return status;
}

// Issues |kernel| after the limits, which are those of inputs |at| and at + 1 if there are any.
static rn_status_t run(rn_kernel_ctx_t* ctx, const char* kernel, int at,
                       const rn_quantize_slices_t* slices, rn_tensor_t* out,
                       rn_cuda_quantize_args* args) {
  const rn_quantize_t* state = ctx->state;
  if (out->count == 0) return RN_OK;
  args->out = out->data;
  args->count = out->count;
  args->slices = slices->count;
  args->inner = slices->inner;
  const bool is_one = state->has_range && (state->is_first || rn_in(ctx, at)->count <= 1);
  args->limit_step = is_one ? 0 : 2;
  const int64_t entries = is_one ? 2 : 2 * slices->count;
  rn_tensor_t limits = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, out->dtype, (rn_shape_t){1, &entries}, &limits));
  args->limits = limits.data;
  rn_status_t status = state->has_range ? store_limits(ctx, at, entries, &limits)
                                        : find_limits(ctx, out->dtype, args);
  if (rn_ok(status))
    status =
        rn_cuda_each(ctx, rn_cuda_name(kernel, out->dtype).text, out->count, args, sizeof *args);
  rn_tensor_clear(&limits);
  return status;
}

static rn_status_t quantize_compute(rn_kernel_ctx_t* ctx) {
  const rn_quantize_t* state = ctx->state;
  int64_t bits = 0;
  rn_quantize_slices_t slices;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_quantize_begin(ctx, &bits, &slices, &out));
  const int64_t negative = state->is_signed ? -(INT64_C(1) << (bits - 1)) + state->is_narrow : 0;
  const int64_t positive = (INT64_C(1) << (state->is_signed ? bits - 1 : bits)) - 1;
  rn_cuda_quantize_args args = {.x = rn_in(ctx, 0)->data,
                                .least = (double)negative,
                                .most = (double)positive,
                                .has_range = state->has_range,
                                .rounds_up = state->rounds_up};
  return run(ctx, "quant/quantize/quantize", 1, &slices, out, &args);
}

static rn_status_t gradient_compute(rn_kernel_ctx_t* ctx) {
  rn_quantize_slices_t slices;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_quantize_grad_begin(ctx, &slices, &out));
  rn_cuda_quantize_args args = {.x = rn_in(ctx, 1)->data, .dy = rn_in(ctx, 0)->data};
  return run(ctx, "quant/quantize/pass", 2, &slices, out, &args);
}

#define ROW(op_, compute_, ...)                                                                \
  {                                                                                            \
    .op = op_, .device = "GPU", .types = {{"T", RN_T(FLOAT) | RN_T(DOUBLE)}},                  \
    .flags = RN_KERNEL_REPLAYS, .state_size = sizeof(rn_quantize_t), .init = rn_quantize_init, \
    .compute = compute_, __VA_ARGS__                                                           \
  }
#define LIMITS .host_args = RN_HOST_ARGS("input_min", "input_max")
static const rn_kernel_def_t rows[] = {
    ROW("QuantizeAndDequantize", quantize_compute, .host_args = NULL),
    ROW("QuantizeAndDequantizeV2", quantize_compute, LIMITS),
    ROW("QuantizeAndDequantizeV3", quantize_compute,
        .host_args = RN_HOST_ARGS("input_min", "input_max", "num_bits")),
    ROW("QuantizeAndDequantizeV4", quantize_compute, LIMITS),
    ROW("QuantizeAndDequantizeV4Grad", gradient_compute, LIMITS),
};
RN_KERNEL_FAMILY(cuda_quantize, rows);

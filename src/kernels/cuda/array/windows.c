// Pad, MatrixBandPart, and patches of images and volumes as vectors.
#include "kernels/cpu/array.h"
#include "kernels/cpu/array/begin.h"
#include "kernels/cuda/array/produce.h"
#include "kernels/cuda/array/windows_args.h"

static rn_status_t band_part(rn_kernel_ctx_t* ctx) {
  rn_band_part_t band;
  RN_RETURN_IF_ERROR(rn_band_part_begin(ctx, &band));
  if (band.out->count == 0) return RN_OK;
  rn_cuda_band_args args = {.input = rn_in(ctx, 0)->data,
                            .out = band.out->data,
                            .count = band.out->count,
                            .below = band.below,
                            .above = band.above,
                            .rows = rn_cuda_divisor(band.rows),
                            .columns = rn_cuda_divisor(band.columns)};
  return rn_cuda_produce(ctx, "array/windows/band_part", (int64_t)rn_dtype_size(band.out->dtype),
                         args.count, &args, sizeof args);
}

static rn_status_t patches(rn_kernel_ctx_t* ctx) {
  rn_patches_view_t view;
  RN_RETURN_IF_ERROR(rn_patches_begin(ctx, &view));
  if (view.out->count == 0) return RN_OK;
  if (view.x->count == 0) return rn_cuda_zero(ctx, view.out);
  const int64_t size = (int64_t)rn_dtype_size(view.x->dtype);
  const int64_t unit = rn_cuda_unit(view.channels * size, view.x->data, view.out->data);
  rn_cuda_patches_args args = {.input = view.x->data,
                               .out = view.out->data,
                               .count = view.out->count * size / unit,
                               .channels = rn_cuda_divisor(view.channels * size / unit)};
  for (int d = 0; d < 3; ++d) {
    args.sizes[d] = rn_cuda_divisor(view.patches->sizes[d]);
    args.windows[d] = rn_cuda_divisor(view.windows[d]);
    args.in[d] = view.in[d];
    args.strides[d] = view.patches->strides[d];
    args.rates[d] = view.patches->rates[d];
    args.before[d] = view.before[d];
  }
  return rn_cuda_produce(ctx, "array/windows/patches", unit, args.count, &args, sizeof args);
}

// Dimensions of a padded tensor, innermost first; those that are not padded belong to their outer
// neighbour.
typedef struct pad_dims_t {
  int rank;
  int64_t in[RN_CUDA_PAD_RANK], out[RN_CUDA_PAD_RANK], before[RN_CUDA_PAD_RANK];
} pad_dims_t;

static bool collapse(const rn_tensor_t* input, const rn_tensor_t* paddings, const rn_tensor_t* out,
                     pad_dims_t* padded) {
  *padded = (pad_dims_t){.rank = 1, .in = {1}, .out = {1}};
  for (int d = input->rank - 1; d >= 0; --d) {
    const int last = padded->rank - 1;
    int64_t inner = padded->in[last], at = last;
    if (padded->in[last] != padded->out[last]) {
      if (padded->rank == RN_CUDA_PAD_RANK) return false;
      at = padded->rank++;
      inner = padded->in[at] = padded->out[at] = 1;
    }
    padded->in[at] *= rn_tensor_dim(input, d);
    padded->out[at] *= rn_tensor_dim(out, d);
    padded->before[at] = rn_int_at(paddings, 2 * d) * inner;
  }
  return true;
}

// One pass over the output. A tensor with many padded dimensions is filled and copied instead.
static rn_status_t pad(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_pad_begin(ctx, &out));
  pad_dims_t padded;
  if (input->count == 0 || out->count == input->count ||
      !collapse(input, rn_in(ctx, 1), out, &padded))
    return rn_pad_finish(ctx, out);
  const int64_t size = (int64_t)rn_dtype_size(out->dtype);
  const int64_t unit = rn_cuda_unit((padded.in[0] | padded.out[0] | padded.before[0]) * size,
                                    input->data, out->data);
  padded.in[0] = padded.in[0] * size / unit;
  padded.out[0] = padded.out[0] * size / unit;
  padded.before[0] = padded.before[0] * size / unit;
  rn_cuda_pad_args args = {.input = input->data,
                           .out = out->data,
                           .count = out->count * size / unit,
                           .rank = padded.rank};
  for (int d = 0; d < padded.rank; ++d) {
    args.sizes[padded.rank - 1 - d] = rn_cuda_divisor(padded.out[d]);
    args.in[padded.rank - 1 - d] = padded.in[d];
    args.before[padded.rank - 1 - d] = padded.before[d];
  }
  for (int64_t at = 0; ctx->kernel->input_count > 2 && at < 16; at += size)
    memcpy((char*)args.value + at, rn_in(ctx, 2)->data, (size_t)size);
  return rn_cuda_produce(ctx, "array/windows/pad", unit, args.count, &args, sizeof args);
}

#define PATCHES(name, types_)                                                          \
  {                                                                                    \
    .op = name, .device = "GPU", .types = {{"T", types_}}, .flags = RN_KERNEL_REPLAYS, \
    .state_size = sizeof(rn_patches_t), .init = rn_patches_init, .compute = patches    \
  }

static const rn_kernel_def_t rows[] = {
    {.op = "MatrixBandPart",
     .device = "GPU",
     .types = {{"T", RN_TYPES_NUMBERS | RN_T(BOOL)}},
     .host_args = RN_HOST_ARGS("num_lower", "num_upper"),
     .flags = RN_KERNEL_REPLAYS,
     .compute = band_part},
    {.op = "Pad",
     .device = "GPU",
     .types = {{"T", RN_TYPES_PLAIN}},
     .host_args = RN_HOST_ARGS("paddings"),
     .flags = RN_KERNEL_REPLAYS,
     .compute = pad},
    {.op = "PadV2",
     .device = "GPU",
     .types = {{"T", RN_TYPES_PLAIN}},
     .host_args = RN_HOST_ARGS("paddings", "constant_values"),
     .flags = RN_KERNEL_REPLAYS,
     .compute = pad},
    PATCHES("ExtractImagePatches", RN_TYPES_NUMBERS | RN_T(BOOL)),
    PATCHES("ExtractVolumePatches", RN_TYPES_REAL),
};
RN_KERNEL_FAMILY(cuda_windows, rows);

// MatrixBandPart, and patches of images and volumes as vectors.
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
    PATCHES("ExtractImagePatches", RN_TYPES_NUMBERS | RN_T(BOOL)),
    PATCHES("ExtractVolumePatches", RN_TYPES_REAL),
};
RN_KERNEL_FAMILY(cuda_windows, rows);

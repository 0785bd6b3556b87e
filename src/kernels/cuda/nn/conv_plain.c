// Convolutions by kernels of ours: see conv_plain.h.
#include "kernels/cuda/nn/conv_plain.h"

#include "kernels/cuda/array/scan.h"
#include "kernels/cuda/nn/conv_args.h"
#include "kernels/cuda/nn/filter_parts.h"

static conv_args args_of(const rn_cuda_conv_t* conv, const rn_cuda_conv_data_t* data) {
  conv_args args = {.x = data->x,
                    .w = data->w,
                    .y = data->y,
                    .in_depth = conv->in_depth,
                    .out_depth = conv->out_depth,
                    .groups = conv->groups,
                    .positions = conv->batch,
                    .is_channels_first = (i32)conv->is_channels_first};
  for (int a = 0; a < 3; ++a) {
    const rn_window_axis_t* axis = &conv->axes[a];
    args.axes[a] = (conv_axis_args){axis->in,       axis->filter, axis->stride,
                                    axis->dilation, axis->before, axis->out};
    args.positions *= axis->out;
  }
  return args;
}

static rn_status_t plain_filter(rn_kernel_ctx_t* ctx, conv_args* args, rn_tensor_t* out) {
  rn_filter_parts_t parts;
  RN_RETURN_IF_ERROR(rn_filter_parts_begin(ctx, out->dtype, out->count, args->positions, &parts));
  args->to = parts.sums.data;
  args->parts = parts.parts;
  args->piece = parts.piece;
  rn_status_t status = rn_cuda_each(ctx, rn_cuda_name("nn/conv/filter", out->dtype).text,
                                    parts.sums.count, args, sizeof *args);
  return rn_filter_parts_end(ctx, status, &parts, out);
}

// The kernels want plain filters.
rn_status_t rn_cuda_conv_plain(rn_kernel_ctx_t* ctx, const rn_cuda_conv_t* conv,
                               const rn_cuda_conv_data_t* data, rn_tensor_t* out) {
  rn_tensor_t filter = {0};
  rn_status_t status = RN_OK;
  conv_args args = args_of(conv, data);
  args.count = out->count;
  args.to = out->data;
  if (conv->kind == RN_CONV_FILTER) return plain_filter(ctx, &args, out);
  if (conv->filter == RN_CUDA_FILTER_TURNED) {
    int64_t size = rn_cuda_conv_filter_size(conv);
    RN_RETURN_IF_ERROR(rn_temp(ctx, out->dtype, (rn_shape_t){1, &size}, &filter));
    status = rn_cuda_conv_turn(ctx, conv, data->w, filter.data, true);
    args.w = filter.data;
  }
  const char* base = conv->kind == RN_CONV_FORWARD ? "nn/conv/forward" : "nn/conv/input";
  if (rn_ok(status))
    status = rn_cuda_each(ctx, rn_cuda_name(base, out->dtype).text, args.count, &args, sizeof args);
  rn_tensor_clear(&filter);
  return status;
}

rn_status_t rn_cuda_conv_compare(rn_kernel_ctx_t* ctx, const void* a, const rn_tensor_t* b,
                                 float* out) {
  const int64_t two = 2;
  rn_tensor_t most = {0};
  float read[2] = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){1, &two}, &most));
  conv_compare_args args = {.a = a, .b = b->data, .most = most.data, .count = b->count};
  rn_status_t status = rn_cuda_zero(ctx, &most);
  if (rn_ok(status)) status = rn_cuda_each(ctx, "nn/conv/compare", args.count, &args, sizeof args);
  if (rn_ok(status)) status = rn_cuda_read(ctx, most.data, sizeof read, read);
  *out = read[0] > 0 ? read[0] / read[1] : 0;
  rn_tensor_clear(&most);
  return status;
}

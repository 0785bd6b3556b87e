// Dilation2D and its gradients: dilation.cu has the device code.
#include "kernels/cpu/nn/dilation.h"

#include "kernels/cuda/launch.h"
#include "kernels/cuda/nn/dilation_args.h"
#include "kernels/cuda/nn/filter_parts.h"

static dilation_axis_args axis_of(const rn_window_axis_t* axis) {
  return (dilation_axis_args){axis->in,       axis->filter, axis->stride,
                              axis->dilation, axis->before, axis->out};
}

static rn_status_t args_of(const rn_kernel_ctx_t* ctx, const rn_dilation_t* sizes,
                           dilation_args* args) {
  const rn_tensor_t *x = rn_in(ctx, 0), *w = rn_in(ctx, 1);
  if (sizes->rows.filter * sizes->columns.filter > INT32_MAX)
    return rn_unimplemented("A filter of more than 2^31 elements on a GPU");
  *args = (dilation_args){.x = x->data,
                          .w = w->data,
                          .rows = axis_of(&sizes->rows),
                          .columns = axis_of(&sizes->columns),
                          .depth = sizes->depth,
                          .positions = rn_tensor_dim(x, 0) * sizes->rows.out * sizes->columns.out};
  return RN_OK;
}

static rn_status_t issue(const rn_kernel_ctx_t* ctx, const char* base, rn_dtype_t dtype,
                         int64_t count, const dilation_args* args) {
  return rn_cuda_each(ctx, rn_cuda_name(base, dtype).text, count, args, sizeof *args);
}

static rn_status_t forward_compute(rn_kernel_ctx_t* ctx) {
  rn_dilation_t sizes = {0};
  int64_t dims[4];
  RN_RETURN_IF_ERROR(rn_dilation_sizes(ctx, &sizes, dims));
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){4, dims}, &y));
  if (y->count == 0) return RN_OK;
  dilation_args args;
  RN_RETURN_IF_ERROR(args_of(ctx, &sizes, &args));
  args.to = y->data;
  args.count = y->count;
  return issue(ctx, "nn/dilation/forward", y->dtype, y->count, &args);
}

static rn_status_t sum_filter(rn_kernel_ctx_t* ctx, rn_tensor_t* out, dilation_args* args) {
  rn_filter_parts_t parts;
  RN_RETURN_IF_ERROR(rn_filter_parts_begin(ctx, out->dtype, out->count, args->positions, &parts));
  args->to = parts.sums.data;
  args->parts = parts.parts;
  args->piece = parts.piece;
  rn_status_t status = issue(ctx, "nn/dilation/filter", out->dtype, parts.sums.count, args);
  return rn_filter_parts_end(ctx, status, &parts, out);
}

// Finds the places of the maxima, then gathers.
static rn_status_t gradient_run(rn_kernel_ctx_t* ctx, bool is_input, rn_tensor_t* out,
                                dilation_args* args) {
  const rn_tensor_t* dy = rn_in(ctx, 2);
  args->count = dy->count;
  RN_RETURN_IF_ERROR(issue(ctx, "nn/dilation/forward", dy->dtype, dy->count, args));
  args->dy = dy->data;
  args->to = out->data;
  args->count = out->count;
  if (is_input) return issue(ctx, "nn/dilation/input", dy->dtype, out->count, args);
  return sum_filter(ctx, out, args);
}

static rn_status_t gradient(rn_kernel_ctx_t* ctx, bool is_input) {
  const rn_tensor_t* dy = rn_in(ctx, 2);
  rn_dilation_t sizes = {0};
  RN_RETURN_IF_ERROR(rn_dilation_gradient_sizes(ctx, &sizes));
  rn_tensor_t *out = NULL, places = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(rn_in(ctx, is_input ? 0 : 1)), &out));
  if (out->count == 0) return RN_OK;
  if (dy->count == 0) return rn_cuda_zero(ctx, out);
  dilation_args args;
  RN_RETURN_IF_ERROR(args_of(ctx, &sizes, &args));
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT32, rn_tensor_shape(dy), &places));
  args.places = places.data;
  rn_status_t status = gradient_run(ctx, is_input, out, &args);
  rn_tensor_clear(&places);
  return status;
}
static rn_status_t input_compute(rn_kernel_ctx_t* ctx) { return gradient(ctx, true); }
static rn_status_t filter_compute(rn_kernel_ctx_t* ctx) { return gradient(ctx, false); }

#define ROW(op_, compute_)                                                                     \
  {                                                                                            \
    .op = op_, .device = "GPU", .types = {{"T", RN_TYPES_FLOATS}}, .flags = RN_KERNEL_REPLAYS, \
    .state_size = sizeof(rn_window_attrs_t), .init = rn_dilation_init, .compute = compute_     \
  }
static const rn_kernel_def_t rows[] = {
    ROW("Dilation2D", forward_compute),
    ROW("Dilation2DBackpropInput", input_compute),
    ROW("Dilation2DBackpropFilter", filter_compute),
};
RN_KERNEL_FAMILY(cuda_dilation, rows);

// Convolutions and their gradients: by cuDNN, or by the kernels of conv.cu where it cannot.
#include <stdio.h>

#include "kernels/cpu/nn/conv3d.h"
#include "kernels/cpu/nn/depthwise.h"
#include "kernels/cpu/planner/conv_then.h"
#include "kernels/cuda/ahead.h"
#include "kernels/cuda/libs/cudnn.h"
#include "kernels/cuda/libs/cudnn_conv.h"
#include "kernels/cuda/loops.h"
#include "kernels/cuda/nn/conv_args.h"
#include "kernels/cuda/nn/conv_plain.h"
#include "kernels/cuda/nn/filter_parts.h"

typedef struct cuda_conv_state_t {
  rn_window_attrs_t attrs;
  rn_cuda_filter_t filter;
} cuda_conv_state_t;

// The order of a filter in memory: see step/turn_filters.c.
static rn_cuda_filter_t filter_order(const rn_kernel_init_t* init) {
  for (int32_t i = 0; i < init->extra_count; ++i)
    if (rn_str_is(init->extras[i].name, "_filter_is_turned")) return RN_CUDA_FILTER_TURNED;
  return RN_CUDA_FILTER_PLAIN;
}

static rn_status_t conv_init(const rn_kernel_init_t* init, void* state) {
  rn_cuda_open_ahead(init, rn_cudnn_open);
  ((cuda_conv_state_t*)state)->filter = filter_order(init);
  return rn_conv_attrs(init, &((cuda_conv_state_t*)state)->attrs);
}
static rn_status_t depthwise_init(const rn_kernel_init_t* init, void* state) {
  return rn_depthwise_attrs(init, &((cuda_conv_state_t*)state)->attrs);
}

// Bytes that the kernel copies at a time: several channels, where they and the addresses allow it.
static int64_t pad_unit(int64_t channels, const void* from, const void* to) {
  const uintptr_t both = (uintptr_t)from | (uintptr_t)to | (uintptr_t)channels;
  return both % 16 == 0 ? 16 : both % 8 == 0 ? 8 : both % 4 == 0 ? 4 : 2;
}

// Copies x to an image of other sizes: see conv_pad_args.
static rn_status_t pad(const rn_kernel_ctx_t* ctx, const rn_cuda_conv_t* conv, const void* from,
                       const int64_t from_sizes[3], void* to, const int64_t to_sizes[3],
                       const int64_t offsets[3]) {
  bool is_first = conv->is_channels_first;
  const int64_t item = (int64_t)rn_dtype_size((rn_dtype_t)conv->dtype);
  const int64_t channels = (is_first ? 1 : conv->in_depth) * item;
  const int64_t unit = pad_unit(channels, from, to), inner = channels / unit;
  conv_pad_args args = {
      .from = from, .to = to, .count = conv->batch * (is_first ? conv->in_depth : 1) * inner};
  for (int a = 0; a < 3; ++a) {
    args.sizes[a] = from_sizes[a];
    args.offsets[a] = offsets[a];
    args.divs[a] = rn_divisor((u32)to_sizes[a]);
    args.count *= to_sizes[a];
  }
  args.divs[3] = rn_divisor((u32)inner);
  args.is_wide = args.count > INT32_MAX;
  char name[32];
  snprintf(name, sizeof name, "nn/conv/pad_%d", (int)unit);
  return rn_cuda_each(ctx, name, args.count, &args, sizeof args);
}

// By cuDNN with an image that has the uneven part of the padding in itself.
static rn_status_t run_padded(rn_kernel_ctx_t* ctx, const rn_cuda_conv_t* conv,
                              rn_cuda_conv_data_t data, bool* out_done) {
  rn_cuda_conv_t even = *conv;
  int64_t small[3], large[3], offsets[3], back[3], count = conv->batch * conv->in_depth;
  bool is_even = true;
  for (int a = 0; a < 3; ++a) {
    rn_window_axis_t* axis = &even.axes[a];
    int64_t least = axis->before < axis->after ? axis->before : axis->after;
    small[a] = axis->in;
    offsets[a] = axis->before - least;
    back[a] = -offsets[a];
    axis->in += axis->before + axis->after - 2 * least;
    is_even = is_even && axis->before == axis->after;
    axis->before = axis->after = least;
    large[a] = axis->in;
    if (large[a] > INT32_MAX || !rn_mul_i64_ok(count, large[a], &count)) return RN_OK;
  }
  if (is_even || conv->in_depth > INT32_MAX) return RN_OK;
  rn_tensor_t image = {0};
  void* x = data.x;
  RN_RETURN_IF_ERROR(rn_cudnn_conv_temp(ctx, (rn_dtype_t)conv->dtype, count, &image));
  data.x = image.data;
  bool is_result = conv->kind == RN_CONV_INPUT;
  rn_status_t status = RN_OK;
  if (!is_result) status = pad(ctx, conv, x, small, image.data, large, offsets);
  if (rn_ok(status)) status = rn_cudnn_conv(ctx, &even, &data, out_done);
  if (rn_ok(status) && *out_done && is_result)
    status = pad(ctx, conv, image.data, large, x, small, back);
  rn_tensor_clear(&image);
  return status;
}

// Engines for the gradient of a filter accept uneven padding and compute something else.
static bool is_trusted(const rn_cuda_conv_t* conv) {
  bool is_even = true;
  for (int a = 0; a < 3; ++a) is_even &= conv->axes[a].before == conv->axes[a].after;
  return is_even || conv->kind != RN_CONV_FILTER;
}

static rn_status_t run(rn_kernel_ctx_t* ctx, const rn_cuda_conv_t* conv,
                       const rn_cuda_conv_data_t* data, rn_tensor_t* out) {
  rn_dtype_t dtype = (rn_dtype_t)conv->dtype;
  rn_cudnn_t* cudnn = NULL;
  bool done = false;
  RN_RETURN_IF_ERROR(rn_cudnn(ctx, &cudnn));
  if (cudnn && dtype != RN_INT32) {
    if (is_trusted(conv)) RN_RETURN_IF_ERROR(rn_cudnn_conv(ctx, conv, data, &done));
    if (!done) RN_RETURN_IF_ERROR(run_padded(ctx, conv, *data, &done));
  }
  return done ? RN_OK : rn_cuda_conv_plain(ctx, conv, data, out);
}

// Makes the output, |dims| with channels last for an image, and runs |conv| into it. |a| and |b|
// are what it reads.
static rn_status_t finish(rn_kernel_ctx_t* ctx, rn_cuda_conv_t* conv, const int64_t* dims,
                          const rn_tensor_t* a, const rn_tensor_t* b) {
  int rank = (int)conv->rank + 2;
  int64_t ordered[5];
  memcpy(ordered, dims, (size_t)rank * sizeof *dims);
  if (conv->is_channels_first && conv->kind != RN_CONV_FILTER) {
    ordered[1] = dims[rank - 1];
    for (int i = 2; i < rank; ++i) ordered[i] = dims[i - 1];
  }
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){rank, ordered}, &out));
  if (out->count == 0) return RN_OK;
  if (a->count == 0 || b->count == 0) return rn_cuda_zero(ctx, out);
  conv->dtype = out->dtype;
  rn_cuda_conv_data_t data = {.x = a->data, .w = b->data, .y = out->data};
  if (conv->kind == RN_CONV_INPUT)
    data = (rn_cuda_conv_data_t){.x = out->data, .w = a->data, .y = b->data};
  if (conv->kind == RN_CONV_FILTER)
    data = (rn_cuda_conv_data_t){.x = a->data, .w = out->data, .y = b->data};
  return run(ctx, conv, &data, out);
}

static const rn_window_axis_t single_plane = {
    .in = 1, .filter = 1, .stride = 1, .dilation = 1, .out = 1};

// Images.

static rn_cuda_conv_t conv_of(const rn_window_attrs_t* attrs, const rn_conv_t* conv) {
  return (rn_cuda_conv_t){.kind = conv->kind,
                          .is_channels_first = attrs->is_nchw,
                          .rank = 2,
                          .batch = conv->batch,
                          .in_depth = conv->in_depth,
                          .out_depth = conv->out_depth,
                          .groups = conv->groups,
                          .axes = {single_plane, conv->rows, conv->columns}};
}

static rn_status_t forward_compute(rn_kernel_ctx_t* ctx) {
  const cuda_conv_state_t* state = ctx->state;
  const rn_window_attrs_t* attrs = &state->attrs;
  const rn_tensor_t *x = rn_in(ctx, 0), *w = rn_in(ctx, 1);
  rn_conv_t sizes = {0};
  RN_RETURN_IF_ERROR(rn_conv_forward_sizes(attrs, x, w, &sizes));
  int64_t dims[4] = {sizes.batch, sizes.rows.out, sizes.columns.out, sizes.out_depth};
  bool is_empty = !dims[0] || !dims[1] || !dims[2] || !dims[3];
  if (x->count && !is_empty) {
    if (w->count == 0)
      return rn_invalid_argument(
          "filter must not have zero elements (i.e. all dimensions must be non-zero)");
    RN_RETURN_IF_ERROR(rn_conv_check_groups(&sizes));
  }
  rn_cuda_conv_t conv = conv_of(attrs, &sizes);
  conv.filter = state->filter;
  return finish(ctx, &conv, dims, x, w);
}

static rn_status_t input_compute(rn_kernel_ctx_t* ctx) {
  const cuda_conv_state_t* state = ctx->state;
  rn_conv_t sizes = {0};
  int64_t x[4];
  RN_RETURN_IF_ERROR(rn_conv_input_sizes(ctx, &state->attrs, x, &sizes));
  rn_cuda_conv_t conv = conv_of(&state->attrs, &sizes);
  conv.filter = state->filter;
  return finish(ctx, &conv, x, rn_in(ctx, 1), rn_in(ctx, 2));
}

static rn_status_t filter_compute(rn_kernel_ctx_t* ctx) {
  const rn_window_attrs_t* attrs = &((const cuda_conv_state_t*)ctx->state)->attrs;
  rn_conv_t sizes = {0};
  int64_t w[4];
  RN_RETURN_IF_ERROR(rn_conv_filter_sizes(ctx, attrs, w, &sizes));
  rn_cuda_conv_t conv = conv_of(attrs, &sizes);
  return finish(ctx, &conv, w, rn_in(ctx, 0), rn_in(ctx, 2));
}

// A convolution with the steps that follow it (step/fuse_conv.c).

typedef struct cuda_then_t {
  rn_conv_then_t then;
  rn_cuda_filter_t filter;
} cuda_then_t;

static rn_status_t then_init(const rn_kernel_init_t* init, void* state) {
  rn_cuda_open_ahead(init, rn_cudnn_open);
  cuda_then_t* own = state;
  own->filter = filter_order(init);
  return rn_conv_then_init(init, &own->then);
}

// Whether cuDNN can be asked for all steps: additions per channel and of a whole image, at most one
// each, then Relu. Fills in |conv| and |data|.
static bool as_epilogue(rn_kernel_ctx_t* ctx, const rn_conv_then_t* then, rn_cuda_conv_t* conv,
                        rn_cuda_conv_data_t* data) {
  for (int32_t i = 0; i < then->step_count; ++i) {
    if (conv->has_relu) return false;  // must be the last
    if (then->steps[i].code == RN_CONV_RELU) {
      conv->has_relu = 1;
      continue;
    }
    if (then->steps[i].code != RN_CONV_ADD) return false;
    const rn_tensor_t* operand = rn_in(ctx, then->steps[i].operand + 2);
    bool is_bias = operand->count == conv->out_depth;
    int64_t* has = is_bias ? &conv->has_bias : &conv->has_residual;
    if (*has || operand->count == 1) return false;
    *has = 1;
    *(is_bias ? &data->bias : &data->residual) = operand->data;
  }
  return then->step_count > 0;
}

// Runs the steps over |y| in one pass.
static rn_status_t follow(rn_kernel_ctx_t* ctx, const rn_conv_then_t* then, int64_t channels,
                          rn_tensor_t* y) {
  static const rn_scalar_code_t codes[] = {[RN_CONV_ADD] = RN_SCALAR_ADD,
                                           [RN_CONV_SUB] = RN_SCALAR_SUB,
                                           [RN_CONV_MUL] = RN_SCALAR_MUL,
                                           [RN_CONV_RELU] = RN_SCALAR_RELU,
                                           [RN_CONV_RELU6] = RN_SCALAR_RELU6};
  rn_jit_program_t program;
  rn_jit_operand_t operands[RN_CONV_MOST_STEPS + 1] = {{.address = (uintptr_t)y->data}};
  rn_jit_begin(&program, 1, 0);
  int value = rn_jit_input(&program, y->dtype, RN_JIT_LINEAR, RN_JIT_FULL), count = 1;
  for (int32_t i = 0; i < then->step_count; ++i) {
    int other = -1;
    if (then->steps[i].operand >= 0) {
      const rn_tensor_t* operand = rn_in(ctx, then->steps[i].operand + 2);
      rn_jit_access_t access = operand->count == 1          ? RN_JIT_SCALAR
                               : operand->count == y->count ? RN_JIT_LINEAR
                                                            : RN_JIT_ROW;
      operands[count++] =
          (rn_jit_operand_t){.address = (uintptr_t)operand->data, .period = channels};
      other = rn_jit_input(&program, operand->dtype, access, RN_JIT_FULL);
    }
    value = rn_jit_op2(&program, codes[then->steps[i].code], value, other);
  }
  rn_jit_output(&program, value, y->dtype);
  rn_jit_sizes_t sizes = {.count = y->count, .dims = {y->count}};
  return rn_cuda_run(ctx, &program, &sizes, operands, &y);
}

static rn_status_t then_compute(rn_kernel_ctx_t* ctx) {
  const cuda_then_t* own = ctx->state;
  const rn_conv_then_t* then = &own->then;
  rn_conv_t sizes = {0};
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_conv_then_begin(ctx, then, &sizes, &y));
  if (y->count == 0) return RN_OK;
  rn_cuda_conv_t plain = conv_of(&then->attrs, &sizes), whole = plain;
  rn_cuda_conv_data_t data = {.x = rn_in(ctx, 0)->data, .w = rn_in(ctx, 1)->data, .y = y->data};
  plain.dtype = whole.dtype = y->dtype;
  plain.filter = whole.filter = own->filter;
  bool done = false;
  if (as_epilogue(ctx, then, &whole, &data))
    RN_RETURN_IF_ERROR(rn_cudnn_conv(ctx, &whole, &data, &done));
  if (done) return RN_OK;
  RN_RETURN_IF_ERROR(run(ctx, &plain, &data, y));
  return then->step_count ? follow(ctx, then, sizes.out_depth, y) : RN_OK;
}

// Filters that several convolutions of a step want turned.

static rn_status_t turn_issue(const rn_kernel_ctx_t* ctx, rn_dtype_t from, rn_dtype_t to,
                              const conv_turn_many_args* args) {
  rn_cuda_grid_t grid = {.x = (unsigned)args->tiles, .block_x = 32, .block_y = 8};
  rn_cuda_name_t name = from == to ? rn_cuda_size_name("nn/conv/turn_many", to)
                                   : rn_cuda_name("nn/conv/turn_many_to", to);
  return args->tiles ? rn_cuda_launch(ctx, name.text, grid, args, sizeof *args) : RN_OK;
}

static rn_status_t turn_compute(rn_kernel_ctx_t* ctx) {
  conv_turn_many_args args = {.count = 0};
  rn_dtype_t from = rn_in(ctx, 0)->dtype, to = ctx->kernel->output_types[0];
  for (int i = 0; i < ctx->kernel->input_count; ++i) {
    const rn_tensor_t* filter = rn_in(ctx, i);
    rn_tensor_t* turned = NULL;
    RN_RETURN_IF_ERROR(rn_output(ctx, i, rn_tensor_shape(filter), &turned));
    if (filter->count == 0) continue;
    int64_t columns = rn_tensor_dim(filter, filter->rank - 1), rows = filter->count / columns;
    int64_t across = (columns + 31) / 32, tiles = across * ((rows + 31) / 32);
    if (rows > INT32_MAX || columns > INT32_MAX || tiles > INT32_MAX - args.tiles)
      return rn_unimplemented("Filters of more than 2^31 rows on a GPU");
    args.filters[args.count++] = (conv_turned_args){filter->data, turned->data, (i32)rows,
                                                    (i32)columns, args.tiles,   (i32)across};
    args.tiles += (i32)tiles;
    if (args.count < CONV_MOST_TURNED) continue;
    RN_RETURN_IF_ERROR(turn_issue(ctx, from, to, &args));
    args.count = args.tiles = 0;
  }
  return turn_issue(ctx, from, to, &args);
}

// Depthwise: one group per channel. The filter [rows, columns, depth, multiplier] is in memory what
// a convolution's [rows, columns, 1, depth * multiplier] is.

static rn_cuda_conv_t depthwise_of(const rn_window_attrs_t* attrs, rn_conv_kind_t kind,
                                   int64_t batch, const rn_depthwise_t* sizes) {
  return (rn_cuda_conv_t){.kind = kind,
                          .is_channels_first = attrs->is_nchw,
                          .rank = 2,
                          .batch = batch,
                          .in_depth = sizes->depth,
                          .out_depth = sizes->depth * sizes->multiplier,
                          .groups = sizes->depth,
                          .axes = {single_plane, sizes->rows, sizes->columns}};
}

static rn_status_t depthwise_compute(rn_kernel_ctx_t* ctx) {
  const rn_window_attrs_t* attrs = &((const cuda_conv_state_t*)ctx->state)->attrs;
  rn_depthwise_t sizes = {0};
  int64_t y[4];
  RN_RETURN_IF_ERROR(rn_depthwise_forward_sizes(ctx, attrs, y, &sizes));
  rn_cuda_conv_t conv = depthwise_of(attrs, RN_CONV_FORWARD, y[0], &sizes);
  return finish(ctx, &conv, y, rn_in(ctx, 0), rn_in(ctx, 1));
}

static rn_status_t depthwise_input_compute(rn_kernel_ctx_t* ctx) {
  const rn_window_attrs_t* attrs = &((const cuda_conv_state_t*)ctx->state)->attrs;
  rn_depthwise_t sizes = {0};
  int64_t x[4];
  RN_RETURN_IF_ERROR(rn_depthwise_input_sizes(ctx, attrs, x, &sizes));
  rn_cuda_conv_t conv = depthwise_of(attrs, RN_CONV_INPUT, x[0], &sizes);
  return finish(ctx, &conv, x, rn_in(ctx, 1), rn_in(ctx, 2));
}

static rn_status_t depthwise_filter_compute(rn_kernel_ctx_t* ctx) {
  const rn_window_attrs_t* attrs = &((const cuda_conv_state_t*)ctx->state)->attrs;
  rn_depthwise_t sizes = {0};
  int64_t w[4];
  RN_RETURN_IF_ERROR(rn_depthwise_filter_sizes(ctx, attrs, w, &sizes));
  rn_cuda_conv_t conv =
      depthwise_of(attrs, RN_CONV_FILTER, rn_tensor_dim(rn_in(ctx, 0), 0), &sizes);
  return finish(ctx, &conv, w, rn_in(ctx, 0), rn_in(ctx, 2));
}

// Volumes.

static rn_cuda_conv_t volume_of(const rn_conv3d_attrs_t* attrs, rn_conv_kind_t kind,
                                const rn_conv3d_t* sizes) {
  return (rn_cuda_conv_t){.kind = kind,
                          .is_channels_first = attrs->is_ncdhw,
                          .rank = 3,
                          .batch = sizes->batch,
                          .in_depth = sizes->in_depth,
                          .out_depth = sizes->out_depth,
                          .groups = 1,
                          .axes = {sizes->axes[0], sizes->axes[1], sizes->axes[2]}};
}

static rn_status_t volume_compute(rn_kernel_ctx_t* ctx) {
  rn_conv3d_t sizes = {0};
  RN_RETURN_IF_ERROR(rn_conv3d_forward_sizes(ctx, &sizes));
  rn_cuda_conv_t conv = volume_of(ctx->state, RN_CONV_FORWARD, &sizes);
  int64_t dims[5] = {sizes.batch, sizes.axes[0].out, sizes.axes[1].out, sizes.axes[2].out,
                     sizes.out_depth};
  return finish(ctx, &conv, dims, rn_in(ctx, 0), rn_in(ctx, 1));
}

static rn_status_t volume_gradient(rn_kernel_ctx_t* ctx, bool is_input) {
  const rn_conv3d_attrs_t* attrs = ctx->state;
  rn_conv3d_t sizes = {0};
  int64_t given[5], dims[5];
  RN_RETURN_IF_ERROR(rn_conv3d_gradient_sizes(ctx, is_input, given, &sizes));
  memcpy(dims, given, sizeof dims);
  if (is_input && attrs->is_ncdhw) {  // finish takes channels last
    for (int i = 1; i < 4; ++i) dims[i] = given[i + 1];
    dims[4] = given[1];
  }
  rn_cuda_conv_t conv = volume_of(attrs, is_input ? RN_CONV_INPUT : RN_CONV_FILTER, &sizes);
  return finish(ctx, &conv, dims, rn_in(ctx, is_input ? 1 : 0), rn_in(ctx, 2));
}
static rn_status_t volume_input_compute(rn_kernel_ctx_t* ctx) { return volume_gradient(ctx, true); }
static rn_status_t volume_filter_compute(rn_kernel_ctx_t* ctx) {
  return volume_gradient(ctx, false);
}

#define ROW(op_, types_, state_, init_, compute_)                                           \
  {                                                                                         \
    .op = op_, .device = "GPU", .types = {{"T", types_}}, .flags = RN_KERNEL_REPLAYS,       \
    .host_args = RN_HOST_ARGS("input_sizes", "filter_sizes"), .state_size = sizeof(state_), \
    .init = init_, .compute = compute_                                                      \
  }
#define IMAGES(op_, types_, compute_) ROW(op_, types_, cuda_conv_state_t, conv_init, compute_)
#define DEPTHWISE(op_, compute_) \
  ROW(op_, RN_TYPES_FLOATS, cuda_conv_state_t, depthwise_init, compute_)
#define VOLUMES(op_, init_, compute_) ROW(op_, RN_TYPES_FLOATS, rn_conv3d_attrs_t, init_, compute_)
static const rn_kernel_def_t rows[] = {
    {.op = "_ConvThen",
     .device = "GPU",
     .types = {{"T", RN_T(HALF) | RN_T(BFLOAT16) | RN_T(FLOAT)}},
     .flags = RN_KERNEL_REPLAYS,
     .state_size = sizeof(cuda_then_t),
     .init = then_init,
     .compute = then_compute},
    {.op = "_TurnFilters",
     .device = "GPU",
     .types = {{"From", RN_T(FLOAT)}, {"T", RN_T(HALF) | RN_T(BFLOAT16) | RN_T(FLOAT)}},
     .flags = RN_KERNEL_REPLAYS,
     .compute = turn_compute},
    {.op = "_TurnFilters",
     .device = "GPU",
     .types = {{"From", RN_T(HALF)}, {"T", RN_T(HALF)}},
     .flags = RN_KERNEL_REPLAYS,
     .compute = turn_compute},
    {.op = "_TurnFilters",
     .device = "GPU",
     .types = {{"From", RN_T(BFLOAT16)}, {"T", RN_T(BFLOAT16)}},
     .flags = RN_KERNEL_REPLAYS,
     .compute = turn_compute},
    IMAGES("Conv2D", RN_TYPES_FLOATS | RN_T(INT32), forward_compute),
    IMAGES("Conv2DBackpropInput", RN_TYPES_FLOATS | RN_T(INT32), input_compute),
    IMAGES("Conv2DBackpropFilter", RN_TYPES_FLOATS, filter_compute),
    DEPTHWISE("DepthwiseConv2dNative", depthwise_compute),
    DEPTHWISE("DepthwiseConv2dNativeBackpropInput", depthwise_input_compute),
    DEPTHWISE("DepthwiseConv2dNativeBackpropFilter", depthwise_filter_compute),
    VOLUMES("Conv3D", rn_conv3d_init, volume_compute),
    VOLUMES("Conv3DBackpropInputV2", rn_conv3d_gradient_init, volume_input_compute),
    VOLUMES("Conv3DBackpropFilterV2", rn_conv3d_gradient_init, volume_filter_compute),
};
RN_KERNEL_FAMILY(cuda_conv, rows);

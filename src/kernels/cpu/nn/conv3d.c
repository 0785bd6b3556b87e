// Conv3D and its gradients, by GEMM.
//
// The patches of one plane of the output are the rows of a matrix, [positions, patch]. For each
// plane
//   y = rows w,   the patches' gradient = y w',   w's gradient = rows' y.
// Gradients of w are added in the order of planes and volumes.
#include <inttypes.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/first_error.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/nn/conv3d.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

typedef enum conv3d_work_t { FORWARD, INPUT, FILTER } conv3d_work_t;

static rn_status_t read_attrs(const rn_kernel_init_t* init, rn_conv3d_attrs_t* state,
                              const char* format, const char* dilation) {
  const rn_attr_value_t *strides = rn_init_attr(init, "strides"),
                        *dilations = rn_init_attr(init, "dilations");
  bool has_format = rn_op_attr_index(init->op, RN_STR("data_format")) >= 0;
  state->is_ncdhw = has_format && !rn_str_is(rn_init_string(init, "data_format"), "NDHWC");
  if (state->is_ncdhw && init->is_host) return rn_invalid_argument("%s", format);
  if (strides->count != 5)
    return rn_invalid_argument("Sliding window strides field must specify 5 dimensions");
  int channels = state->is_ncdhw ? 1 : 4, first = state->is_ncdhw ? 2 : 1;
  if (strides->list_i[0] != 1 || strides->list_i[channels] != 1)
    return rn_invalid_argument(
        "Current implementation does not yet support strides in the batch and depth dimensions.");
  if (dilations->count != 5)
    return rn_invalid_argument("Dilation rates field must specify 5 dimensions");
  if (dilations->list_i[0] != 1 || dilations->list_i[channels] != 1)
    return rn_invalid_argument(
        "Current implementation does not yet support dilation rates in the batch and depth "
        "dimensions.");
  for (int i = 0; i < 3; ++i) {
    state->strides[i] = strides->list_i[first + i];
    state->dilations[i] = dilations->list_i[first + i];
    if (state->strides[i] <= 0)
      return rn_invalid_argument("Spatial strides should be larger than 0.");
    if (state->dilations[i] != 1 && init->is_host) return rn_invalid_argument("%s", dilation);
    if (state->dilations[i] <= 0)
      return rn_invalid_argument("Dilated rates should be larger than 0.");
  }
  state->padding =
      rn_str_is(rn_init_string(init, "padding"), "SAME") ? RN_PADDING_SAME : RN_PADDING_VALID;
  return RN_OK;
}

rn_status_t rn_conv3d_init(const rn_kernel_init_t* init, void* state) {
  return read_attrs(init, state,
                    "CPU implementation of Conv3D currently only supports the NHWC tensor format.",
                    "CPU implementation of Conv3D currently only supports dilated rates of 1.");
}
rn_status_t rn_conv3d_gradient_init(const rn_kernel_init_t* init, void* state) {
  static const char dilation[] =
      "Current CPU implementation does not yet support dilation rates larger than 1.";
  return read_attrs(init, state, "Conv3DBackprop on CPU only supports NDHWC.", dilation);
}

typedef struct conv_t {
  conv3d_work_t work;
  rn_dtype_t dtype;
  size_t item;
  rn_conv3d_t sizes;
  char *x, *w, *y;
  char* parts;  // gradients of w, one per volume
  rn_pool_t* pool;
  rn_status_t status;  // see rn_keep_first_error
} conv_t;

static int64_t in_size(const conv_t* conv) {
  return conv->sizes.axes[0].in * conv->sizes.axes[1].in * conv->sizes.axes[2].in *
         conv->sizes.in_depth;
}
static int64_t positions_of(const conv_t* conv) {
  return conv->sizes.axes[1].out * conv->sizes.axes[2].out;
}
static int64_t patch_of(const conv_t* conv) {
  return conv->sizes.axes[0].filter * conv->sizes.axes[1].filter * conv->sizes.axes[2].filter *
         conv->sizes.in_depth;
}

// Copies one row of pixels of a patch from the volume to the matrix, or, with |back|, adds it to
// the volume.
static void move_pixels(const conv_t* conv, char* row, int64_t column, char* matrix, bool back) {
  size_t pixel = (size_t)conv->sizes.in_depth * conv->item;
  const rn_window_axis_t* across = &conv->sizes.axes[2];
  int64_t first = column < 0 ? -column : 0, last = across->in - column;
  if (first > across->filter) first = across->filter;
  if (last > across->filter) last = across->filter;
  if (last < first) last = first;
  if (!row) first = last = across->filter;
  if (back) {
    if (last > first)
      rn_vector_run(RN_VECTOR_ADD, conv->dtype, row + (column + first) * (int64_t)pixel, 1,
                    matrix + (size_t)first * pixel, 1, row + (column + first) * (int64_t)pixel,
                    (last - first) * conv->sizes.in_depth);
    return;
  }
  memset(matrix, 0, (size_t)first * pixel);
  if (last > first)
    memcpy(matrix + (size_t)first * pixel, row + (column + first) * (int64_t)pixel,
           (size_t)(last - first) * pixel);
  memset(matrix + (size_t)last * pixel, 0, (size_t)(across->filter - last) * pixel);
}

// The patches of plane |plane| of the output.
static void walk(const conv_t* conv, char* x, int64_t plane, char* matrix, bool back) {
  const rn_window_axis_t *deep = &conv->sizes.axes[0], *down = &conv->sizes.axes[1],
                         *across = &conv->sizes.axes[2];
  size_t pixel = (size_t)conv->sizes.in_depth * conv->item;
  for (int64_t r = 0; r < down->out; ++r)
    for (int64_t c = 0; c < across->out; ++c)
      for (int64_t i = 0; i < deep->filter; ++i)
        for (int64_t j = 0; j < down->filter; ++j, matrix += (size_t)across->filter * pixel) {
          int64_t p = plane * deep->stride - deep->before + i;
          int64_t row = r * down->stride - down->before + j;
          bool inside = p >= 0 && p < deep->in && row >= 0 && row < down->in;
          char* at = inside ? x + (size_t)((p * down->in + row) * across->in) * pixel : NULL;
          move_pixels(conv, at, c * across->stride - across->before, matrix, back);
        }
}

static rn_status_t run_plane(const conv_t* conv, int64_t volume, int64_t plane, char* matrix,
                             char* temp) {
  int64_t positions = positions_of(conv), patch = patch_of(conv);
  char* x = conv->x + (size_t)(volume * in_size(conv)) * conv->item;
  char* y = conv->y + (size_t)((volume * conv->sizes.axes[0].out + plane) * positions *
                               conv->sizes.out_depth) *
                          conv->item;
  rn_gemm_t gemm = {.dtype = conv->dtype, .m = positions, .n = conv->sizes.out_depth, .k = patch};
  if (conv->work == INPUT) {
    gemm.n = patch, gemm.k = conv->sizes.out_depth;
    gemm.a = y, gemm.b = conv->w, gemm.c = matrix, gemm.transpose_b = true;
    RN_RETURN_IF_ERROR(rn_gemm(conv->pool, &gemm));
    walk(conv, x, plane, matrix, true);
    return RN_OK;
  }
  walk(conv, x, plane, matrix, false);
  gemm.a = matrix;
  if (conv->work == FORWARD) {
    gemm.b = conv->w, gemm.c = y;
    return rn_gemm(conv->pool, &gemm);
  }
  gemm.m = patch, gemm.k = positions, gemm.transpose_a = true;
  gemm.b = y, gemm.c = temp;
  RN_RETURN_IF_ERROR(rn_gemm(conv->pool, &gemm));
  int64_t size = patch * conv->sizes.out_depth;
  char* part = conv->parts + (size_t)(volume * size) * conv->item;
  if (plane == 0)
    memcpy(part, temp, (size_t)size * conv->item);
  else
    rn_vector_run(RN_VECTOR_ADD, conv->dtype, part, 1, temp, 1, part, size);
  return RN_OK;
}

// Planes of the output for FORWARD, otherwise volumes.
static rn_status_t run_range(const conv_t* conv, int64_t begin, int64_t end) {
  int64_t planes = conv->sizes.axes[0].out, patch = patch_of(conv), count = 0, bytes = 0;
  int64_t temp = conv->work == FILTER ? patch * conv->sizes.out_depth : 0;
  if (!rn_mul_i64_ok(positions_of(conv), patch, &count) || !rn_add_i64_ok(count, temp, &bytes) ||
      !rn_mul_i64_ok(bytes, (int64_t)conv->item, &bytes))
    return rn_out_of_memory();
  char* memory = NULL;
  RN_RETURN_IF_ERROR(rn_alloc(rn_allocator_default(), (size_t)bytes, (void**)&memory));
  char* behind = memory + (size_t)count * conv->item;
  rn_status_t status = RN_OK;
  if (conv->work != FORWARD) begin *= planes, end *= planes;
  for (int64_t i = begin; i < end && rn_ok(status); ++i)
    status = run_plane(conv, i / planes, i % planes, memory, behind);
  rn_free(rn_allocator_default(), memory, (size_t)bytes);
  return status;
}

static void run_piece(void* arg, int64_t begin, int64_t end) {
  conv_t* conv = arg;
  rn_status_t status = run_range(conv, begin, end);
  rn_keep_first_error(&conv->status, status);
}

static rn_status_t run_plain(rn_kernel_ctx_t* ctx, conv_t* conv) {
  int64_t w_size = patch_of(conv) * conv->sizes.out_depth, dims[2] = {conv->sizes.batch, w_size};
  rn_tensor_t parts = {0};
  conv->item = rn_dtype_size(conv->dtype);
  if (conv->work == INPUT)
    memset(conv->x, 0, (size_t)(conv->sizes.batch * in_size(conv)) * conv->item);
  if (conv->work == FILTER) {
    RN_RETURN_IF_ERROR(rn_temp(ctx, conv->dtype, (rn_shape_t){2, dims}, &parts));
    conv->parts = parts.data;
  }
  double each = 2.0 * (double)positions_of(conv) * (double)w_size;
  int64_t count =
      conv->work == FORWARD ? conv->sizes.batch * conv->sizes.axes[0].out : conv->sizes.batch;
  if (conv->work != FORWARD) each *= (double)conv->sizes.axes[0].out;
  if (count == 1) {  // then the GEMMs run in parallel
    conv->pool = rn_ctx_pool(ctx);
    run_piece(conv, 0, 1);
  } else {
    rn_pool_for(rn_ctx_pool(ctx), count, each > 1e6 ? 1 : (int64_t)(1e6 / (each + 1)) + 1,
                run_piece, conv);
  }
  if (conv->work == FILTER && rn_ok(conv->status)) {
    memcpy(conv->w, conv->parts, (size_t)w_size * conv->item);
    for (int64_t i = 1; i < conv->sizes.batch; ++i)
      rn_vector_run(RN_VECTOR_ADD, conv->dtype, conv->w, 1,
                    conv->parts + (size_t)(i * w_size) * conv->item, 1, conv->w, w_size);
  }
  rn_tensor_clear(&parts);
  return conv->status;
}

// Computes 16-bit floats in float and rounds once.
static rn_status_t run(rn_kernel_ctx_t* ctx, conv_t* conv) {
  if (conv->dtype != RN_HALF && conv->dtype != RN_BFLOAT16) return run_plain(ctx, conv);
  const rn_vector_table_t* table = rn_vector_table();
  bool is_half = conv->dtype == RN_HALF;
  int result = conv->work == FORWARD ? 2 : conv->work == INPUT ? 0 : 1;
  int64_t sizes[3] = {
      conv->sizes.batch * in_size(conv), patch_of(conv) * conv->sizes.out_depth,
      conv->sizes.batch * conv->sizes.axes[0].out * positions_of(conv) * conv->sizes.out_depth};
  int64_t total = sizes[0] + sizes[1] + sizes[2];
  rn_tensor_t temp = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){1, &total}, &temp));
  char* narrow[3] = {conv->x, conv->w, conv->y};
  float* wide[3] = {temp.data, (float*)temp.data + sizes[0],
                    (float*)temp.data + sizes[0] + sizes[1]};
  for (int i = 0; i < 3; ++i)
    if (i != result)
      (is_half ? table->widen_half : table->widen_bfloat16)((const void*)narrow[i], wide[i],
                                                            sizes[i]);
  conv->x = (char*)wide[0], conv->w = (char*)wide[1], conv->y = (char*)wide[2];
  conv->dtype = RN_FLOAT;
  rn_status_t status = run_plain(ctx, conv);
  if (rn_ok(status))
    (is_half ? table->narrow_half : table->narrow_bfloat16)(wide[result], (void*)narrow[result],
                                                            sizes[result]);
  rn_tensor_clear(&temp);
  return status;
}

// Reorders the dims of a tensor to channels last.
static void order(const rn_conv3d_attrs_t* attrs, const int64_t* dims, int64_t out[5]) {
  static const int places[2][5] = {{0, 1, 2, 3, 4}, {0, 2, 3, 4, 1}};
  for (int i = 0; i < 5; ++i) out[i] = dims[places[attrs->is_ncdhw][i]];
}

static rn_status_t measure(const rn_conv3d_attrs_t* attrs, const int64_t* x, const int64_t* w,
                           rn_conv3d_t* conv) {
  for (int i = 0; i < 3; ++i) {
    rn_window_attrs_t axis = {.padding = attrs->padding};
    axis.strides[1] = attrs->strides[i];
    axis.dilations[1] = attrs->dilations[i];
    RN_RETURN_IF_ERROR(rn_window_axis(&axis, 1, x[i + 1], w[i], &conv->axes[i]));
  }
  conv->batch = x[0];
  conv->in_depth = x[4];
  conv->out_depth = w[4];
  return RN_OK;
}

rn_status_t rn_conv3d_forward_sizes(const rn_kernel_ctx_t* ctx, rn_conv3d_t* out) {
  const rn_tensor_t *x = rn_in(ctx, 0), *w = rn_in(ctx, 1);
  if (x->rank != 5) return rn_invalid_argument("input must be 5-dimensional");
  if (w->rank != 5) return rn_invalid_argument("filter must be 5-dimensional");
  if (w->count == 0)
    return rn_invalid_argument(
        "filter must not have zero elements (i.e. all dimensions must be non-zero)");
  int64_t dims[5];
  order(ctx->state, rn_tensor_dims(x), dims);
  if (dims[4] != rn_tensor_dim(w, 3))
    return rn_invalid_argument("Number of channels in filter (%" PRId64
                               ") must match last dimension of input (%" PRId64 ")",
                               rn_tensor_dim(w, 3), dims[4]);
  return measure(ctx->state, dims, rn_tensor_dims(w), out);
}

rn_status_t rn_conv3d_forward(rn_kernel_ctx_t* ctx, const rn_conv3d_t* sizes, const rn_tensor_t* x,
                              const rn_tensor_t* w, rn_tensor_t* y) {
  conv_t conv = {.work = FORWARD,
                 .dtype = x->dtype,
                 .sizes = *sizes,
                 .x = x->data,
                 .w = w->data,
                 .y = y->data};
  if (y->count == 0) return RN_OK;
  if (x->count == 0) {
    memset(y->data, 0, rn_tensor_bytes(y));
    return RN_OK;
  }
  return run(ctx, &conv);
}

static rn_status_t forward_compute(rn_kernel_ctx_t* ctx) {
  rn_conv3d_t sizes = {0};
  RN_RETURN_IF_ERROR(rn_conv3d_forward_sizes(ctx, &sizes));
  const rn_window_axis_t* axes = sizes.axes;
  int64_t dims[5] = {sizes.batch, axes[0].out, axes[1].out, axes[2].out, sizes.out_depth};
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){5, dims}, &y));
  return rn_conv3d_forward(ctx, &sizes, rn_in(ctx, 0), rn_in(ctx, 1), y);
}

// Checks for both gradients: the sizes of x, w and y against each other, channels last.
static rn_status_t check_gradient(const rn_conv3d_attrs_t* attrs, const char* op, const int64_t* x,
                                  const int64_t* w, const rn_tensor_t* dy, rn_conv3d_t* conv) {
  if (dy->rank != 5) return rn_invalid_argument("out_backprop tensor must have 5 dimensions");
  int64_t y[5];
  order(attrs, rn_tensor_dims(dy), y);
  if (x[4] != w[3])
    return rn_invalid_argument(
        "input and filter_sizes must have the same number of channels. Got %" PRId64
        " for input and %" PRId64 " for filter_sizes",
        x[4], w[3]);
  if (y[4] != w[4])
    return rn_invalid_argument(
        "out_backprop and filter_sizes must have the same number of channels. Got %" PRId64
        " for out_backprop and %" PRId64 " for filter_sizes",
        y[4], w[4]);
  if (y[0] != x[0])
    return rn_invalid_argument(
        "%s: input and out_backprop must have the same batch size. Input batch: %" PRId64
        ", outbackprop batch: %" PRId64 ", batch_dim: 0",
        op, x[0], y[0]);
  RN_RETURN_IF_ERROR(measure(attrs, x, w, conv));
  for (int i = 0; i < 3; ++i) {
    const rn_window_axis_t* axis = &conv->axes[i];
    if (axis->out != y[i + 1])
      return rn_invalid_argument(
          "%s: Size of out_backprop doesn't match computed: actual = %" PRId64
          ", computed = %" PRId64 " spatial_dim: %d input: %" PRId64 " filter: %" PRId64
          " output: %" PRId64 " stride: %" PRId64 " dilation: %" PRId64,
          op, y[i + 1], axis->out, i + 1, axis->in, axis->filter, y[i + 1], axis->stride,
          axis->dilation);
  }
  return RN_OK;
}

static rn_status_t read_sizes(const rn_tensor_t* sizes, const char* name, int64_t out[5]) {
  if (sizes->count != 5) return rn_invalid_argument("%s tensor must have 5 dimensions", name);
  for (int i = 0; i < 5; ++i) {
    out[i] = rn_int_at(sizes, i);
    if (out[i] < 0) return rn_invalid_argument("Dimension %" PRId64 " must be >= 0", out[i]);
  }
  return RN_OK;
}

rn_status_t rn_conv3d_gradient_sizes(const rn_kernel_ctx_t* ctx, bool is_input, int64_t dims[5],
                                     rn_conv3d_t* out) {
  const rn_tensor_t *sizes = rn_in(ctx, is_input ? 0 : 1), *other = rn_in(ctx, is_input ? 1 : 0);
  const char* op = is_input ? "Conv3DBackpropInputOp" : "Conv3DBackpropFilterOp";
  int64_t ordered[5];
  if (sizes->dtype == other->dtype) {  // the first versions take a tensor of the result's shape
    if (rn_in(ctx, 0)->rank != 5) return rn_invalid_argument("input tensor must have 5 dimensions");
    if (rn_in(ctx, 1)->rank != 5)
      return rn_invalid_argument("filter_sizes tensor must have 5 dimensions");
    memcpy(dims, rn_tensor_dims(sizes), 5 * sizeof *dims);
    return check_gradient(ctx->state, op, rn_tensor_dims(rn_in(ctx, 0)),
                          rn_tensor_dims(rn_in(ctx, 1)), rn_in(ctx, 2), out);
  }
  if (sizes->rank != 1 && is_input)
    return rn_invalid_argument("shape must be a vector of {int32,int64}, got shape %s",
                               rn_text_of(sizes).text);
  if (sizes->rank != 1)
    return rn_invalid_argument("filter_sizes shape must be rank 1 but is rank %d", sizes->rank);
  RN_RETURN_IF_ERROR(read_sizes(sizes, is_input ? "input" : "filter_sizes", dims));
  if (other->rank != 5)
    return rn_invalid_argument("%s tensor must have 5 dimensions",
                               is_input ? "filter_sizes" : "input");
  order(ctx->state, is_input ? dims : rn_tensor_dims(other), ordered);
  return check_gradient(ctx->state, op, ordered, is_input ? rn_tensor_dims(other) : dims,
                        rn_in(ctx, 2), out);
}

static rn_status_t gradient(rn_kernel_ctx_t* ctx, conv3d_work_t work) {
  bool is_input = work == INPUT;
  const rn_tensor_t *other = rn_in(ctx, is_input ? 1 : 0), *y = rn_in(ctx, 2);
  conv_t conv = {.work = work, .dtype = y->dtype, .y = y->data};
  int64_t dims[5];
  RN_RETURN_IF_ERROR(rn_conv3d_gradient_sizes(ctx, is_input, dims, &conv.sizes));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){5, dims}, &out));
  if (out->count == 0) return RN_OK;
  if (y->count == 0 || other->count == 0) {
    memset(out->data, 0, rn_tensor_bytes(out));
    return RN_OK;
  }
  conv.x = is_input ? out->data : other->data;
  conv.w = is_input ? other->data : out->data;
  return run(ctx, &conv);
}

static rn_status_t input_compute(rn_kernel_ctx_t* ctx) { return gradient(ctx, INPUT); }
static rn_status_t filter_compute(rn_kernel_ctx_t* ctx) { return gradient(ctx, FILTER); }

#define ROW(op_, init_, compute_)                                                                \
  {                                                                                              \
    .op = op_, .device = "CPU", .types = {{"T", RN_TYPES_FLOATS}}, .flags = RN_KERNEL_EXPENSIVE, \
    .host_args = RN_HOST_ARGS("input_sizes", "filter_sizes"),                                    \
    .state_size = sizeof(rn_conv3d_attrs_t), .init = init_, .compute = compute_                  \
  }
static const rn_kernel_def_t rows[] = {
    ROW("Conv3D", rn_conv3d_init, forward_compute),
    ROW("Conv3DBackpropInput", rn_conv3d_gradient_init, input_compute),
    ROW("Conv3DBackpropFilter", rn_conv3d_gradient_init, filter_compute),
    ROW("Conv3DBackpropInputV2", rn_conv3d_gradient_init, input_compute),
    ROW("Conv3DBackpropFilterV2", rn_conv3d_gradient_init, filter_compute),
};
RN_KERNEL_FAMILY(cpu_conv3d, rows);

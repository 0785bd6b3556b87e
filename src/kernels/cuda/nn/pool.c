// Pooling and its gradients over images and volumes: pool.cu has the device code.
#include <stdio.h>

#include "kernels/cpu/nn/pooling.h"
#include "kernels/cpu/nn/pooling3d.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/nn/pool_args.h"

#define MOST_INDEX (INT64_C(1) << 31)
#define MOST_AXIS (INT64_C(1) << 29)  // sums of a few stay below 2^31

// A call: tensors are [outer, axes, inner].
typedef struct pool_t {
  rn_window_axis_t axes[3];
  int64_t outer, inner;
  bool is_volume;
} pool_t;

static const rn_window_axis_t single = {.in = 1, .filter = 1, .stride = 1, .dilation = 1, .out = 1};

static pool_t pool_of_image(const rn_pooling_attrs_t* state, int64_t batch,
                            const rn_pooling_t* sizes) {
  pool_t pool = {.axes = {single, sizes->rows, sizes->columns}, .outer = batch, .inner = 1};
  bool is_nchw = state->attrs.is_nchw, is_over_depth = sizes->depth == 1 && state->ksize[3] != 1;
  if (is_over_depth && is_nchw) {  // rows are the pixels, columns the channels
    pool.inner = sizes->rows.in;
    pool.axes[1] = single;
  } else if (is_nchw) {
    pool.outer *= sizes->depth;
  } else {
    pool.inner = sizes->depth;
  }
  return pool;
}

static pool_t pool_of_volume(const rn_pooling3d_attrs_t* state, const rn_pooling3d_t* sizes) {
  pool_t pool = {.outer = sizes->batch, .inner = sizes->depth, .is_volume = true};
  for (int a = 0; a < 3; ++a) {
    pool.axes[a] = sizes->axes[a];
    pool.axes[a].out = sizes->outs[a];
  }
  if (state->is_ncdhw) pool.outer *= sizes->depth, pool.inner = 1;
  return pool;
}

// Windows larger than what they can reach, and strides that nothing steps by, are made small.
static rn_status_t fill_axis(const rn_window_axis_t* axis, pool_axis_args* out) {
  int64_t reach = axis->in + axis->before;
  int64_t filter = axis->filter < reach ? axis->filter : reach;
  int64_t stride = axis->out > 1 ? axis->stride : 1;
  if (axis->in > MOST_AXIS || filter > MOST_AXIS || stride > MOST_AXIS || axis->out > MOST_AXIS ||
      axis->before > MOST_AXIS)
    return rn_unimplemented("A window over an axis of more than 2^29 elements on a GPU");
  *out = (pool_axis_args){(i32)axis->in,     (i32)filter,    (i32)stride,
                          (i32)axis->before, (i32)axis->out, rn_divisor((u32)stride)};
  return RN_OK;
}

// Issues |kernel| over the elements of x (|over_x|) or y. |args| has the addresses.
static rn_status_t issue(rn_kernel_ctx_t* ctx, const char* kernel, rn_dtype_t dtype,
                         const pool_t* pool, bool over_x, bool has_packs, pool_args* args) {
  int64_t pack = 16 / (int64_t)rn_dtype_size(dtype), count = pool->outer;
  uintptr_t addresses =
      (uintptr_t)args->x | (uintptr_t)args->pooled | (uintptr_t)args->dy | (uintptr_t)args->to;
  bool is_packed = has_packs && pool->inner % pack == 0 && addresses % 16 == 0;
  args->inner = is_packed ? pool->inner / pack : pool->inner;
  args->is_volume = pool->is_volume;
  int64_t sizes[4] = {0, 0, 0, args->inner};
  for (int a = 0; a < 3; ++a) {
    RN_RETURN_IF_ERROR(fill_axis(&pool->axes[a], &args->axes[a]));
    sizes[a] = over_x ? args->axes[a].in : args->axes[a].out;
  }
  if (args->inner >= MOST_INDEX) return rn_unimplemented("More than 2^31 channels on a GPU");
  for (int a = 0; a < 4; ++a) {
    args->divs[a] = rn_divisor((u32)sizes[a]);
    count *= sizes[a];
  }
  args->count = count;
  args->is_wide = count >= MOST_INDEX;
  char base[64];
  snprintf(base, sizeof base, "nn/pool/%s%s", kernel, is_packed ? "_pack" : "");
  return rn_cuda_each(ctx, rn_cuda_name(base, dtype).text, count, args, sizeof *args);
}

// MaxPool and AvgPool.

static rn_status_t max_with(rn_kernel_ctx_t* ctx, const rn_pooling_attrs_t* state) {
  const rn_tensor_t* x = rn_in(ctx, 0);
  rn_pooling_t sizes = {0};
  int64_t dims[4];
  RN_RETURN_IF_ERROR(rn_pooling_max_sizes(state, x, &sizes, dims));
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){4, dims}, &y));
  if (y->count == 0) return RN_OK;
  pool_t pool = pool_of_image(state, dims[0], &sizes);
  pool_args args = {.x = x->data, .to = y->data};
  return issue(ctx, "max", x->dtype, &pool, false, true, &args);
}
static rn_status_t max_compute(rn_kernel_ctx_t* ctx) { return max_with(ctx, ctx->state); }
static rn_status_t max_v2_compute(rn_kernel_ctx_t* ctx) {
  rn_pooling_attrs_t state;
  RN_RETURN_IF_ERROR(rn_pooling_read_v2(ctx, 1, &state));
  return max_with(ctx, &state);
}

static rn_status_t average_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* x = rn_in(ctx, 0);
  rn_pooling_t sizes = {0};
  int64_t dims[4];
  RN_RETURN_IF_ERROR(rn_pooling_average_sizes(ctx->state, x, &sizes, dims));
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){4, dims}, &y));
  if (y->count == 0) return RN_OK;
  pool_t pool = pool_of_image(ctx->state, dims[0], &sizes);
  pool_args args = {.x = x->data, .to = y->data};
  return issue(ctx, "average", x->dtype, &pool, false, true, &args);
}

// What MaxPoolGrad knows of its windows.
typedef struct pool_windows_t {
  bool are_apart;  // no element is in two of them
  bool cover_all;  // every element is in one
  bool are_large;  // the number of an element in one takes more than a byte
} pool_windows_t;

static pool_windows_t look_at_windows(const pool_t* pool) {
  pool_windows_t windows = {.are_apart = true, .cover_all = true};
  int64_t elements = 1;
  for (int a = 0; a < 3; ++a) {
    const rn_window_axis_t* axis = &pool->axes[a];
    int64_t filter =
        axis->filter < axis->in + axis->before ? axis->filter : axis->in + axis->before;
    if (axis->out > 1 && filter > axis->stride) windows.are_apart = false;
    if ((axis->out > 1 && filter < axis->stride) ||
        (axis->out - 1) * axis->stride + filter < axis->in + axis->before)
      windows.cover_all = false;
    elements = elements < 256 && filter < 256 ? elements * filter : 256;
  }
  windows.are_large = elements > UINT8_MAX;
  return windows;
}

// MaxPoolGrad: the thread of a window writes its gradients, if windows are apart; otherwise one
// kernel finds the place of each window's maximum, and then every element gathers.
static rn_status_t max_gradient_with(rn_kernel_ctx_t* ctx, const rn_pooling_attrs_t* state) {
  const rn_tensor_t *x = rn_in(ctx, 0), *dy = rn_in(ctx, 2);
  rn_pooling_t sizes = {0};
  RN_RETURN_IF_ERROR(rn_pooling_gradient_sizes(ctx, state, false, &sizes));
  rn_tensor_t *dx = NULL, places = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &dx));
  if (dx->count == 0) return RN_OK;
  if (dy->count == 0) return rn_cuda_zero(ctx, dx);
  pool_t pool = pool_of_image(state, rn_tensor_dim(x, 0), &sizes);
  const pool_windows_t windows = look_at_windows(&pool);
  if (windows.are_apart) {
    if (!windows.cover_all) RN_RETURN_IF_ERROR(rn_cuda_zero(ctx, dx));
    pool_args spread = {.x = x->data, .dy = dy->data, .to = dx->data};
    return issue(ctx, "max_spread", x->dtype, &pool, false, true, &spread);
  }
  rn_dtype_t number = windows.are_large ? RN_UINT32 : RN_UINT8;
  RN_RETURN_IF_ERROR(rn_temp(ctx, number, rn_tensor_shape(dy), &places));
  // Both kernels handle packs or both do not: places have the same layout either way.
  pool_args find = {.x = x->data, .to = places.data};
  pool_args gather = {.dy = dy->data, .places = places.data, .to = dx->data};
  rn_status_t status =
      issue(ctx, windows.are_large ? "place_wide" : "place", x->dtype, &pool, false, true, &find);
  if (rn_ok(status))
    status = issue(ctx, windows.are_large ? "max_gradient_wide" : "max_gradient", x->dtype, &pool,
                   true, true, &gather);
  rn_tensor_clear(&places);
  return status;
}
static rn_status_t max_gradient_compute(rn_kernel_ctx_t* ctx) {
  return max_gradient_with(ctx, ctx->state);
}
static rn_status_t max_gradient_v2_compute(rn_kernel_ctx_t* ctx) {
  rn_pooling_attrs_t state;
  RN_RETURN_IF_ERROR(rn_pooling_read_v2(ctx, 3, &state));
  RN_RETURN_IF_ERROR(rn_pooling_no_depth(&state, "MaxPoolingGrad"));
  return max_gradient_with(ctx, &state);
}

static rn_status_t second(rn_kernel_ctx_t* ctx, const pool_t* pool) {
  const rn_tensor_t *x = rn_in(ctx, 0), *pooled = rn_in(ctx, 1);
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(pooled), &y));
  if (y->count == 0) return RN_OK;
  pool_args args = {.x = x->data, .pooled = pooled->data, .dy = rn_in(ctx, 2)->data, .to = y->data};
  return issue(ctx, "second", x->dtype, pool, false, true, &args);
}
static rn_status_t max_second_compute(rn_kernel_ctx_t* ctx) {
  rn_pooling_t sizes = {0};
  RN_RETURN_IF_ERROR(rn_pooling_gradient_sizes(ctx, ctx->state, true, &sizes));
  pool_t pool = pool_of_image(ctx->state, rn_tensor_dim(rn_in(ctx, 0), 0), &sizes);
  return second(ctx, &pool);
}

static rn_status_t average_gradient_compute(rn_kernel_ctx_t* ctx) {
  const rn_pooling_attrs_t* state = ctx->state;
  const rn_tensor_t* dy = rn_in(ctx, 1);
  rn_pooling_t sizes = {0};
  int64_t dims[4];
  RN_RETURN_IF_ERROR(rn_pooling_average_gradient_sizes(ctx, state, dims, &sizes));
  rn_tensor_t* dx = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){4, dims}, &dx));
  if (dx->count == 0) return RN_OK;
  // The gradient may have fewer images than its input.
  if (dy->count == 0 || rn_tensor_dim(dy, 0) != dims[0]) RN_RETURN_IF_ERROR(rn_cuda_zero(ctx, dx));
  if (dy->count == 0) return RN_OK;
  pool_t pool = pool_of_image(state, rn_tensor_dim(dy, 0), &sizes);
  pool_args args = {.dy = dy->data, .to = dx->data};
  return issue(ctx, "average_gradient", dy->dtype, &pool, true, true, &args);
}

// With argmax: always channels last.

static rn_status_t argmax_compute(rn_kernel_ctx_t* ctx) {
  const rn_pooling_attrs_t* state = ctx->state;
  const rn_tensor_t* x = rn_in(ctx, 0);
  rn_pooling_t sizes = {0};
  int64_t dims[4];
  RN_RETURN_IF_ERROR(rn_pooling_argmax_sizes(state, x, &sizes, dims));
  rn_tensor_t *y = NULL, *argmax = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){4, dims}, &y));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, (rn_shape_t){4, dims}, &argmax));
  if (y->count == 0) return RN_OK;
  pool_t pool = pool_of_image(state, dims[0], &sizes);
  pool_args args = {.x = x->data,
                    .to = y->data,
                    .argmax = argmax->data,
                    .is_small = argmax->dtype == RN_INT32,
                    .includes_batch = state->include_batch};
  return issue(ctx, "argmax", x->dtype, &pool, false, false, &args);
}

static rn_status_t argmax_gradient_compute(rn_kernel_ctx_t* ctx) {
  const rn_pooling_attrs_t* state = ctx->state;
  const rn_tensor_t *x = rn_in(ctx, 0), *dy = rn_in(ctx, 1);
  rn_pooling_t sizes = {0};
  RN_RETURN_IF_ERROR(rn_pooling_argmax_gradient_sizes(ctx, state, &sizes));
  rn_tensor_t* dx = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &dx));
  if (dx->count == 0) return RN_OK;
  if (dy->count == 0) return rn_cuda_zero(ctx, dx);
  pool_t pool = pool_of_image(state, rn_tensor_dim(x, 0), &sizes);
  pool_args args = {.dy = dy->data,
                    .places = rn_in(ctx, 2)->data,
                    .to = dx->data,
                    .includes_batch = state->include_batch};
  RN_RETURN_IF_ERROR(issue(ctx, "argmax_gradient", x->dtype, &pool, true, false, &args));
  return issue(ctx, "argmax_strays", x->dtype, &pool, false, false, &args);
}

// Volumes.

static rn_status_t volume_forward(rn_kernel_ctx_t* ctx, const char* kernel) {
  const rn_tensor_t* x = rn_in(ctx, 0);
  rn_pooling3d_t sizes = {0};
  int64_t dims[5];
  RN_RETURN_IF_ERROR(rn_pooling3d_sizes(ctx, &sizes, dims));
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){5, dims}, &y));
  if (y->count == 0) return RN_OK;
  pool_t pool = pool_of_volume(ctx->state, &sizes);
  pool_args args = {.x = x->data, .to = y->data};
  return issue(ctx, kernel, x->dtype, &pool, false, true, &args);
}
static rn_status_t volume_max_compute(rn_kernel_ctx_t* ctx) { return volume_forward(ctx, "max"); }
static rn_status_t volume_average_compute(rn_kernel_ctx_t* ctx) {
  return volume_forward(ctx, "average");
}

static rn_status_t volume_max_gradient_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *x = rn_in(ctx, 0), *dy = rn_in(ctx, 2);
  rn_pooling3d_t sizes = {0};
  RN_RETURN_IF_ERROR(rn_pooling3d_gradient_sizes(ctx, false, &sizes));
  rn_tensor_t* dx = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &dx));
  if (dx->count == 0) return RN_OK;
  if (dy->count == 0) return rn_cuda_zero(ctx, dx);
  pool_t pool = pool_of_volume(ctx->state, &sizes);
  pool_args args = {.x = x->data, .pooled = rn_in(ctx, 1)->data, .dy = dy->data, .to = dx->data};
  return issue(ctx, "equal_gradient", x->dtype, &pool, true, true, &args);
}

static rn_status_t volume_second_compute(rn_kernel_ctx_t* ctx) {
  rn_pooling3d_t sizes = {0};
  RN_RETURN_IF_ERROR(rn_pooling3d_gradient_sizes(ctx, true, &sizes));
  pool_t pool = pool_of_volume(ctx->state, &sizes);
  return second(ctx, &pool);
}

static rn_status_t volume_average_gradient_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* dy = rn_in(ctx, 1);
  rn_pooling3d_t sizes = {0};
  int64_t dims[5];
  RN_RETURN_IF_ERROR(rn_pooling3d_average_gradient_sizes(ctx, dims, &sizes));
  rn_tensor_t* dx = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){5, dims}, &dx));
  if (dx->count == 0) return RN_OK;
  if (dy->count == 0) return rn_cuda_zero(ctx, dx);
  pool_t pool = pool_of_volume(ctx->state, &sizes);
  pool_args args = {.dy = dy->data, .to = dx->data};
  return issue(ctx, "average_gradient", dy->dtype, &pool, true, true, &args);
}

#define ROW(op_, types_, state_, init_, compute_)                            \
  {                                                                          \
    .op = op_, .device = "GPU", .types = types_, .flags = RN_KERNEL_REPLAYS, \
    .host_args = RN_HOST_ARGS("ksize", "strides", "orig_input_shape"),       \
    .state_size = sizeof(state_), .init = init_, .compute = compute_         \
  }
#define OF_FLOATS            \
  {                          \
    { "T", RN_TYPES_FLOATS } \
  }
#define IMAGES(op_, init_, compute_) \
  ROW(op_, OF_FLOATS, rn_pooling_attrs_t, rn_pooling_##init_, compute_)
#define VOLUMES(op_, compute_) \
  ROW(op_, OF_FLOATS, rn_pooling3d_attrs_t, rn_pooling3d_init, compute_)
// x and dy have one type, as in stock.
#define VOLUMES_OF_TWO(op_, type_, compute_)                                            \
  {                                                                                     \
    .op = op_, .device = "GPU", .types = {{"T", RN_T(type_)}, {"TInput", RN_T(type_)}}, \
    .flags = RN_KERNEL_REPLAYS, .state_size = sizeof(rn_pooling3d_attrs_t),             \
    .init = rn_pooling3d_init, .compute = compute_                                      \
  }
static const rn_kernel_def_t rows[] = {
    IMAGES("MaxPool", max_init, max_compute),
    IMAGES("MaxPoolV2", max_v2_init, max_v2_compute),
    IMAGES("MaxPoolGrad", max_gradient_init, max_gradient_compute),
    IMAGES("MaxPoolGradV2", max_v2_init, max_gradient_v2_compute),
    IMAGES("MaxPoolGradGrad", max_second_init, max_second_compute),
    IMAGES("MaxPoolWithArgmax", max_init, argmax_compute),
    IMAGES("MaxPoolGradWithArgmax", argmax_gradient_init, argmax_gradient_compute),
    IMAGES("AvgPool", average_init, average_compute),
    IMAGES("AvgPoolGrad", average_gradient_init, average_gradient_compute),
    VOLUMES("MaxPool3D", volume_max_compute),
    VOLUMES("AvgPool3D", volume_average_compute),
    VOLUMES("AvgPool3DGrad", volume_average_gradient_compute),
    VOLUMES("MaxPool3DGradGrad", volume_second_compute),
    VOLUMES_OF_TWO("MaxPool3DGrad", HALF, volume_max_gradient_compute),
    VOLUMES_OF_TWO("MaxPool3DGrad", BFLOAT16, volume_max_gradient_compute),
    VOLUMES_OF_TWO("MaxPool3DGrad", FLOAT, volume_max_gradient_compute),
    VOLUMES_OF_TWO("MaxPool3DGrad", DOUBLE, volume_max_gradient_compute),
};
RN_KERNEL_FAMILY(cuda_pool, rows);

// Convolutions of images that are first resized, then padded by their mirror image. The image that
// Conv2D sees is made in a temporary tensor, each pixel from up to four of the input's.
#include <inttypes.h>
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/image/resize.h"
#include "kernels/cpu/nn/conv.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

typedef struct padded_state_t {
  rn_window_attrs_t attrs;
  rn_resize_attrs_t resize;
  int32_t skipped;  // pixels at the edge that are not repeated: REFLECT 1, SYMMETRIC 0
  bool resizes;
  rn_conv_cache_t cache;
  bool has_cache;
} padded_state_t;

static rn_status_t padded_init(const rn_kernel_init_t* init, void* state) {
  padded_state_t* padded = state;
  padded->skipped = rn_str_is(rn_init_string(init, "mode"), "REFLECT");
  padded->resizes = rn_op_attr_index(init->op, RN_STR("resize_align_corners")) >= 0;
  if (padded->resizes) padded->resize.align_corners = rn_init_bool(init, "resize_align_corners");
  rn_conv_cache_init(&padded->cache);
  padded->has_cache = true;
  RN_RETURN_IF_ERROR(rn_window_init(init, "strides", &padded->attrs));
  if (padded->attrs.strides[0] != 1 || padded->attrs.strides[3] != 1)
    return rn_invalid_argument(
        "Current implementation does not yet support strides in the batch and depth dimensions.");
  return RN_OK;
}

static void padded_destroy(void* state) {
  padded_state_t* padded = state;
  if (padded->has_cache) rn_conv_cache_clear(&padded->cache);
}

// One axis of the images: |in| pixels become |resized|, then |before| and |after| are added.
typedef struct padded_axis_t {
  int64_t in, resized, before, after;
} padded_axis_t;

// Where a pixel comes from: between |low| and |high|, at |weight| of the way.
typedef struct padded_tap_t {
  int64_t low, high;
  float weight;
} padded_tap_t;

static int64_t padded_size(const padded_axis_t* axis) {
  return axis->before + axis->resized + axis->after;
}

static void find_taps(const padded_state_t* state, const padded_axis_t* axis, padded_tap_t* taps) {
  float scale = rn_resize_scale(&state->resize, axis->in, axis->resized);
  for (int64_t i = 0; i < padded_size(axis); ++i) {
    int64_t at = i - axis->before;
    if (at < 0) at = -at - 1 + state->skipped;
    if (at >= axis->resized) at = 2 * axis->resized - 1 - at - state->skipped;
    float place = axis->in == axis->resized ? (float)at : (float)at * scale;
    int64_t low = axis->in == axis->resized ? at : (int64_t)floorf(place);
    if (low > axis->in - 1) low = axis->in - 1;
    taps[i].low = low;
    taps[i].high = low + 1 < axis->in ? low + 1 : axis->in - 1;
    taps[i].weight = axis->in == axis->resized ? 0 : place - (float)low;
  }
}

// Makes the padded images from |x|; |down| and |across| are the taps of rows and columns.
#define FILL(T)                                                                               \
  static void fill_##T(const T* x, T* out, int64_t batch, const padded_axis_t axes[2],        \
                       int64_t depth, const padded_tap_t* down, const padded_tap_t* across) { \
    int64_t rows = padded_size(&axes[0]), columns = padded_size(&axes[1]);                    \
    for (int64_t b = 0; b < batch; ++b, x += axes[0].in * axes[1].in * depth)                 \
      for (int64_t r = 0; r < rows; ++r) {                                                    \
        const T* top = x + down[r].low * axes[1].in * depth;                                  \
        const T* bottom = x + down[r].high * axes[1].in * depth;                              \
        T up = (T)down[r].weight;                                                             \
        for (int64_t c = 0; c < columns; ++c, out += depth) {                                 \
          int64_t left = across[c].low * depth, right = across[c].high * depth;               \
          T over = (T)across[c].weight;                                                       \
          for (int64_t d = 0; d < depth; ++d) {                                               \
            T upper = top[left + d], lower = bottom[left + d];                                \
            if (over != 0) {                                                                  \
              upper += (top[right + d] - upper) * over;                                       \
              lower += (bottom[right + d] - lower) * over;                                    \
            }                                                                                 \
            out[d] = up != 0 ? upper + (lower - upper) * up : upper;                          \
          }                                                                                   \
        }                                                                                     \
      }                                                                                       \
  }
FILL(float)
FILL(double)

static rn_status_t read_size(const rn_tensor_t* size, padded_axis_t axes[2]) {
  if (size->rank != 1)
    return rn_invalid_argument("shape_t must be 1-dimensional%s", rn_text_of(size).text);
  if (size->count != 2)
    return rn_invalid_argument("shape_t must have two elements%s", rn_text_of(size).text);
  for (int i = 0; i < 2; ++i) axes[i].resized = RN_DATA(size, const int32_t)[i];
  if (axes[0].resized <= 0 || axes[1].resized <= 0)
    return rn_invalid_argument("output dimensions must be positive");
  return RN_OK;
}

static rn_status_t read_paddings(const rn_tensor_t* x, const rn_tensor_t* paddings, int skipped,
                                 padded_axis_t axes[2]) {
  if (paddings->rank != 2 || rn_tensor_dim(paddings, 1) != 2)
    return rn_invalid_argument("paddings must be a matrix with 2 columns: %s",
                               rn_text_of(paddings).text);
  if (rn_tensor_dim(paddings, 0) != 4)
    return rn_invalid_argument("paddings must have 4 rows, one per axis of the images: %s",
                               rn_text_of(paddings).text);
  for (int d = 0; d < 4; ++d) {
    int64_t before = rn_int_at(paddings, 2 * d), after = rn_int_at(paddings, 2 * d + 1);
    if (before < 0 || after < 0)
      return rn_invalid_argument("paddings must be non-negative: %" PRId64 " %" PRId64, before,
                                 after);
    int64_t size = d == 0 || d == 3 ? rn_tensor_dim(x, d) : axes[d - 1].resized;
    if (d == 1 || d == 2) axes[d - 1].before = before, axes[d - 1].after = after;
    if (before <= size - skipped && after <= size - skipped) continue;
    return skipped
               ? rn_invalid_argument("paddings must be less than the dimension size: %" PRId64
                                     ", %" PRId64 " not less than %" PRId64,
                                     before, after, size)
               : rn_invalid_argument("paddings must be no greater than the dimension size: %" PRId64
                                     ", %" PRId64 " greater than %" PRId64,
                                     before, after, size);
  }
  for (int d = 0; d < 4; d += 3)
    if (rn_int_at(paddings, 2 * d) || rn_int_at(paddings, 2 * d + 1))
      return rn_unimplemented("Padding of the batch or of the channels");
  return RN_OK;
}

// Checks the call and works out the sizes.
static rn_status_t measure(const rn_kernel_ctx_t* ctx, padded_axis_t axes[2], rn_conv_t* conv) {
  const padded_state_t* state = ctx->state;
  int at = state->resizes ? 2 : 1;
  const rn_tensor_t *x = rn_in(ctx, 0), *w = rn_in(ctx, at + 1);
  if (x->rank != 4)
    return rn_invalid_argument(state->resizes ? "input must be 4-dimensional%s"
                                              : "input must be 4-dimensional, got %s instead.",
                               rn_text_of(x).text);
  if (x->count == 0) return rn_invalid_argument("Input tensor can't be empty");
  for (int i = 0; i < 2; ++i) axes[i].in = axes[i].resized = rn_tensor_dim(x, i + 1);
  if (state->resizes) RN_RETURN_IF_ERROR(read_size(rn_in(ctx, 1), axes));
  RN_RETURN_IF_ERROR(read_paddings(x, rn_in(ctx, at), state->skipped, axes));
  if (w->rank != 4)
    return rn_invalid_argument("filter must be 4-dimensional: %s", rn_text_of(w).text);
  int64_t depth = rn_tensor_dim(x, 3);
  if (depth != rn_tensor_dim(w, 2))
    return rn_invalid_argument("input and filter must have the same depth: %" PRId64 " vs %" PRId64,
                               depth, rn_tensor_dim(w, 2));
  *conv = (rn_conv_t){.kind = RN_CONV_FORWARD,
                      .batch = rn_tensor_dim(x, 0),
                      .in_depth = depth,
                      .out_depth = rn_tensor_dim(w, 3),
                      .groups = 1};
  RN_RETURN_IF_ERROR(
      rn_window_axis(&state->attrs, 1, padded_size(&axes[0]), rn_tensor_dim(w, 0), &conv->rows));
  return rn_window_axis(&state->attrs, 2, padded_size(&axes[1]), rn_tensor_dim(w, 1),
                        &conv->columns);
}

// Fills |image| with |x|, resized and padded; both are float or double.
static rn_status_t fill(rn_kernel_ctx_t* ctx, const padded_axis_t axes[2], const rn_tensor_t* x,
                        rn_tensor_t* image) {
  const padded_state_t* state = ctx->state;
  int64_t rows = padded_size(&axes[0]), batch = rn_tensor_dim(x, 0), depth = rn_tensor_dim(x, 3);
  int64_t bytes = (rows + padded_size(&axes[1])) * (int64_t)sizeof(padded_tap_t);
  rn_tensor_t memory = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_UINT8, (rn_shape_t){1, &bytes}, &memory));
  padded_tap_t *down = memory.data, *across = down + rows;
  find_taps(state, &axes[0], down);
  find_taps(state, &axes[1], across);
  if (x->dtype == RN_FLOAT)
    fill_float(x->data, image->data, batch, axes, depth, down, across);
  else
    fill_double(x->data, image->data, batch, axes, depth, down, across);
  rn_tensor_clear(&memory);
  return RN_OK;
}

// Makes |*out|, floats or doubles with the values of |x|.
static rn_status_t widen(rn_kernel_ctx_t* ctx, const rn_tensor_t* x, rn_tensor_t* out) {
  if (x->dtype != RN_HALF && x->dtype != RN_BFLOAT16) return rn_tensor_share(x, out);
  const rn_vector_table_t* table = rn_vector_table();
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, rn_tensor_shape(x), out));
  (x->dtype == RN_HALF ? table->widen_half : table->widen_bfloat16)(x->data, out->data, x->count);
  return RN_OK;
}

// |y| is float or double, and so is the work.
static rn_status_t convolve(rn_kernel_ctx_t* ctx, const padded_axis_t axes[2],
                            const rn_conv_t* conv, const rn_tensor_t* x, const rn_tensor_t* w,
                            rn_tensor_t* y) {
  padded_state_t* state = ctx->state;
  int64_t dims[4] = {conv->batch, conv->rows.in, conv->columns.in, conv->in_depth};
  rn_tensor_t image = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, x->dtype, (rn_shape_t){4, dims}, &image));
  rn_status_t status = fill(ctx, axes, x, &image);
  if (rn_ok(status))
    status = rn_conv_run(ctx, &state->cache, x->dtype, conv,
                         (rn_conv_data_t){image.data, w->data, y->data});
  rn_tensor_clear(&image);
  return status;
}

static rn_status_t padded_compute(rn_kernel_ctx_t* ctx) {
  const padded_state_t* state = ctx->state;
  const rn_tensor_t *x = rn_in(ctx, 0), *w = rn_in(ctx, state->resizes ? 3 : 2);
  padded_axis_t axes[2] = {{0}};
  rn_conv_t conv;
  RN_RETURN_IF_ERROR(measure(ctx, axes, &conv));
  int64_t dims[4] = {conv.batch, conv.rows.out, conv.columns.out, conv.out_depth};
  rn_tensor_t *y = NULL, wide[3] = {{0}};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){4, dims}, &y));
  if (y->count == 0) return RN_OK;
  if (w->count == 0) {
    memset(y->data, 0, rn_tensor_bytes(y));
    return RN_OK;
  }
  rn_status_t status = widen(ctx, x, &wide[0]);
  if (rn_ok(status)) status = widen(ctx, w, &wide[1]);
  bool is_narrow = rn_ok(status) && wide[0].dtype != x->dtype;
  if (is_narrow) status = rn_temp(ctx, RN_FLOAT, (rn_shape_t){4, dims}, &wide[2]);
  if (rn_ok(status))
    status = convolve(ctx, axes, &conv, &wide[0], &wide[1], is_narrow ? &wide[2] : y);
  const rn_vector_table_t* table = rn_vector_table();
  if (rn_ok(status) && is_narrow)
    (x->dtype == RN_HALF ? table->narrow_half : table->narrow_bfloat16)(wide[2].data, y->data,
                                                                        y->count);
  for (int i = 0; i < 3; ++i) rn_tensor_clear(&wide[i]);
  return status;
}

#define ROW(op_)                                                                                 \
  {                                                                                              \
    .op = op_, .device = "CPU", .types = {{"T", RN_TYPES_FLOATS}}, .flags = RN_KERNEL_EXPENSIVE, \
    .host_args = RN_HOST_ARGS("size", "paddings"), .state_size = sizeof(padded_state_t),         \
    .init = padded_init, .destroy = padded_destroy, .compute = padded_compute                    \
  }
static const rn_kernel_def_t rows[] = {
    ROW("FusedPadConv2D"),
    ROW("FusedResizeAndPadConv2D"),
};
RN_KERNEL_FAMILY(cpu_conv_padded, rows);

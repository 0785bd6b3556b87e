// The ops that step/fuse_levels.c makes: convolutions and matmuls of 8-bit levels with what follows
// them, and floats to levels and back.
#include <math.h>

#include "base/sync.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/broadcasting.h"
#include "kernels/cpu/nn/window.h"
#include "kernels/cpu/quant/levels.h"
#include "kernels/kernel_rows.h"

typedef enum levels_kind_t { CONV, DEPTHWISE, MATMUL } levels_kind_t;

typedef struct levels_state_t {
  levels_kind_t kind;
  bool transposed, has_bias, has_addend, has_mutex;
  rn_window_attrs_t window;
  rn_levels_cpu_t cpu;
  rn_levels_scale_t x, addend, y;
  float low, high;
  rn_mutex_t mutex;             // guards the weights while they are packed
  rn_levels_weights_t weights;  // read-only once they are packed
} levels_state_t;

static rn_levels_scale_t range_of(const rn_kernel_init_t* init, const char* name) {
  const rn_attr_value_t* value = rn_init_attr(init, name);
  return value->count == 2 ? rn_levels_scale(value->list_f[0], value->list_f[1])
                           : (rn_levels_scale_t){0};
}

static rn_status_t then_init(const rn_kernel_init_t* init, void* arg) {
  levels_state_t* state = arg;
  rn_str_t kind = rn_init_string(init, "kind");
  state->kind = rn_str_is(kind, "conv") ? CONV : rn_str_is(kind, "matmul") ? MATMUL : DEPTHWISE;
  state->transposed = rn_init_bool(init, "transpose_b");
  state->has_bias = rn_init_int(init, "N") > 0;
  state->has_addend = rn_init_int(init, "M") > 0;
  state->x = range_of(init, "x_range");
  state->addend = range_of(init, "addend_range");
  state->y = range_of(init, "y_range");
  state->cpu = rn_levels_cpu();
  const rn_attr_value_t* limits = rn_init_attr(init, "limits");
  state->low = limits->count == 2 ? limits->list_f[0] : -INFINITY;
  state->high = limits->count == 2 ? limits->list_f[1] : INFINITY;
  rn_mutex_init(&state->mutex);
  state->has_mutex = true;
  return state->kind == MATMUL ? RN_OK : rn_window_init(init, "strides", &state->window);
}

static void then_destroy(void* arg) {
  levels_state_t* state = arg;
  rn_levels_weights_clear(&state->weights);
  if (state->has_mutex) rn_mutex_destroy(&state->mutex);
}

// The sizes of a call.
typedef struct levels_sizes_t {
  int64_t k, n;
  int64_t dims[4];  // of the result
  int rank;
} levels_sizes_t;

static rn_status_t misfit(const rn_tensor_t* x, const rn_tensor_t* w) {
  return rn_invalid_argument("Weights of %s do not fit an input of %s", rn_text_of(w).text,
                             rn_text_of(x).text);
}

static rn_status_t matmul_sizes(const levels_state_t* state, const rn_tensor_t* x,
                                const rn_tensor_t* w, levels_sizes_t* out,
                                rn_levels_product_t* product) {
  if (x->rank != 2 || w->rank != 2) return misfit(x, w);
  *out = (levels_sizes_t){.k = rn_tensor_dim(w, state->transposed ? 1 : 0),
                          .n = rn_tensor_dim(w, state->transposed ? 0 : 1),
                          .dims = {rn_tensor_dim(x, 0)},
                          .rank = 2};
  out->dims[1] = out->n;
  if (rn_tensor_dim(x, 1) != out->k) return misfit(x, w);
  rn_window_axis_t one = {.in = 1, .filter = 1, .stride = 1, .dilation = 1, .out = 1};
  product->rows_axis = product->columns_axis = one;
  product->in_depth = out->k;
  product->rows = out->dims[0];
  return RN_OK;
}

static rn_status_t conv_sizes(const levels_state_t* state, const rn_tensor_t* x,
                              const rn_tensor_t* w, levels_sizes_t* out,
                              rn_levels_product_t* product) {
  if (x->rank != 4 || w->rank != 4 || rn_tensor_dim(x, 3) != rn_tensor_dim(w, 2))
    return misfit(x, w);
  bool is_depthwise = state->kind == DEPTHWISE;
  if (is_depthwise && rn_tensor_dim(w, 3) != 1) return misfit(x, w);
  rn_window_axis_t *rows = &product->rows_axis, *columns = &product->columns_axis;
  RN_RETURN_IF_ERROR(
      rn_window_axis(&state->window, 1, rn_tensor_dim(x, 1), rn_tensor_dim(w, 0), rows));
  RN_RETURN_IF_ERROR(
      rn_window_axis(&state->window, 2, rn_tensor_dim(x, 2), rn_tensor_dim(w, 1), columns));
  product->in_depth = rn_tensor_dim(x, 3);
  int64_t taps = rows->filter * columns->filter;
  *out = (levels_sizes_t){.k = is_depthwise ? taps : taps * product->in_depth,
                          .n = rn_tensor_dim(w, is_depthwise ? 2 : 3),
                          .dims = {rn_tensor_dim(x, 0), rows->out, columns->out},
                          .rank = 4};
  out->dims[3] = out->n;
  product->rows = out->dims[0] * out->dims[1] * out->dims[2];
  return RN_OK;
}

// Packs the weights in the first call. They are constants: later calls have the same.
static rn_status_t pack(rn_kernel_ctx_t* ctx, const levels_sizes_t* sizes) {
  levels_state_t* state = ctx->state;
  const rn_tensor_t *w = rn_in(ctx, 1), *min = rn_in(ctx, 2), *max = rn_in(ctx, 3);
  if (min->count != sizes->n || max->count != sizes->n || sizes->k > RN_LEVELS_MOST_DEPTH)
    return misfit(min, w);
  rn_levels_pack_t pack = {.w = w,
                           .min = min->data,
                           .max = max->data,
                           .k = sizes->k,
                           .n = sizes->n,
                           .transposed = state->transposed,
                           .is_depthwise = state->kind == DEPTHWISE,
                           .cpu = state->cpu,
                           .x = state->x};
  rn_mutex_lock(&state->mutex);
  rn_status_t status = state->weights.packed ? RN_OK : rn_levels_pack(&pack, &state->weights);
  rn_mutex_unlock(&state->mutex);
  return status;
}

static rn_status_t then_compute(rn_kernel_ctx_t* ctx) {
  levels_state_t* state = ctx->state;
  const rn_tensor_t *x = rn_in(ctx, 0), *w = rn_in(ctx, 1);
  rn_levels_product_t product = {.cpu = state->cpu, .zero = (uint8_t)state->x.zero, .x = x->data};
  levels_sizes_t sizes;
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(state->kind == MATMUL ? matmul_sizes(state, x, w, &sizes, &product)
                                           : conv_sizes(state, x, w, &sizes, &product));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){sizes.rank, sizes.dims}, &y));
  if (y->count == 0) return RN_OK;
  if (w->count == 0) return misfit(x, w);
  const rn_tensor_t* bias = state->has_bias ? rn_in(ctx, 4) : NULL;
  const rn_tensor_t* addend = state->has_addend ? rn_in(ctx, 4 + state->has_bias) : NULL;
  if (bias && bias->count != sizes.n) return misfit(x, bias);
  if (addend && addend->count != y->count) return misfit(x, addend);
  RN_RETURN_IF_ERROR(pack(ctx, &sizes));
  bool adds_levels = addend && addend->dtype == RN_UINT8;
  product.weights = &state->weights;
  product.finish = (rn_levels_finish_t){.scale = state->weights.scale,
                                        .bias = bias ? bias->data : NULL,
                                        .addend = addend && !adds_levels ? addend->data : NULL,
                                        .addend_levels = adds_levels ? addend->data : NULL,
                                        .addend_scale = state->addend,
                                        .low = state->low,
                                        .high = state->high,
                                        .y = y->dtype == RN_FLOAT ? y->data : NULL,
                                        .y_levels = y->dtype == RN_FLOAT ? NULL : y->data,
                                        .to = state->y};
  return rn_levels_product(ctx, &product);
}

typedef struct convert_t {
  rn_levels_scale_t scale;
  const void* x;
  void* y;
} convert_t;

static rn_status_t convert_init(const rn_kernel_init_t* init, void* arg) {
  *(rn_levels_scale_t*)arg = range_of(init, "range");
  return RN_OK;
}

static void to_levels_piece(void* arg, int64_t begin, int64_t end) {
  const convert_t* c = arg;
  rn_levels_table()->to_levels(&c->scale, (const float*)c->x + begin, end - begin,
                               (uint8_t*)c->y + begin);
}

static void to_floats_piece(void* arg, int64_t begin, int64_t end) {
  const convert_t* c = arg;
  rn_levels_table()->to_floats(&c->scale, (const uint8_t*)c->x + begin, end - begin,
                               (float*)c->y + begin);
}

static rn_status_t convert_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* x = rn_in(ctx, 0);
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &y));
  convert_t convert = {.scale = *(rn_levels_scale_t*)ctx->state, .x = x->data, .y = y->data};
  rn_pool_for(rn_ctx_pool(ctx), x->count, RN_GRAIN_CHEAP,
              y->dtype == RN_FLOAT ? to_floats_piece : to_levels_piece, &convert);
  return RN_OK;
}

static const rn_kernel_def_t rows[] = {
    {.op = "_LevelsThen",
     .device = "CPU",
     .flags = RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(levels_state_t),
     .init = then_init,
     .destroy = then_destroy,
     .compute = then_compute},
    {.op = "_ToLevels",
     .device = "CPU",
     .state_size = sizeof(rn_levels_scale_t),
     .init = convert_init,
     .compute = convert_compute},
    {.op = "_FromLevels",
     .device = "CPU",
     .state_size = sizeof(rn_levels_scale_t),
     .init = convert_init,
     .compute = convert_compute},
};
RN_KERNEL_FAMILY(cpu_levels_then, rows);

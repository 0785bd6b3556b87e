// QuantizedMatMul and QuantizedConv2D.
#include <inttypes.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/nn/window.h"
#include "kernels/cpu/quant/quantized.h"
#include "kernels/cpu/quant/quantized_gemm.h"
#include "kernels/kernel_rows.h"

// The level that represents zero; it may lie outside the type.
static int32_t zero_of(rn_dtype_t dtype, rn_quant_limits_t limits) {
  return (int32_t)(uint64_t)rn_quant_level(dtype, 0, limits);
}

static rn_status_t finish(rn_kernel_ctx_t* ctx) {
  return rn_quant_set_limits(
      ctx, 1,
      rn_quant_product_limits(rn_in(ctx, 0)->dtype, rn_quant_limits_at(ctx, 2),
                              rn_in(ctx, 1)->dtype, rn_quant_limits_at(ctx, 4)));
}

// Matrices.

typedef struct quantized_products_matmul_t {
  bool transpose_a, transpose_b;
} quantized_products_matmul_t;

static rn_status_t matmul_init(const rn_kernel_init_t* init, void* state) {
  *(quantized_products_matmul_t*)state = (quantized_products_matmul_t){
      rn_init_bool(init, "transpose_a"), rn_init_bool(init, "transpose_b")};
  return RN_OK;
}

typedef struct quantized_products_matrix_t {
  const uint8_t* data;
  int64_t row, column, columns;  // strides, and the number of columns
} quantized_products_matrix_t;

static void matrix_row(const void* arg, int64_t row, int16_t* out) {
  const quantized_products_matrix_t* a = arg;
  const uint8_t* from = a->data + row * a->row;
  for (int64_t j = 0; j < a->columns; ++j) out[j] = from[j * a->column];
}

static rn_status_t check_matmul(const rn_kernel_ctx_t* ctx) {
  static const char* const names[] = {"min_a", "max_a", "min_b", "max_b"};
  for (int i = 0; i < 4; ++i) {
    const rn_tensor_t* limit = rn_in(ctx, 2 + i);
    if (i == 0 ? limit->rank != 0 : limit->count != 1)
      return rn_invalid_argument("%s must be a scalar, but got shape%s", names[i],
                                 rn_text_of(limit).text);
  }
  rn_quant_limits_t a = rn_quant_limits_at(ctx, 2), b = rn_quant_limits_at(ctx, 4);
  if (!(a.max > a.min)) return rn_invalid_argument("max_a must be larger than min_a.");
  if (!(b.max > b.min)) return rn_invalid_argument("max_b must be larger than min_b.");
  for (int i = 0; i < 2; ++i)
    if (rn_in(ctx, i)->rank != 2) return rn_invalid_argument("In[%d] is not a matrix", i);
  return RN_OK;
}

static rn_status_t matmul_compute(rn_kernel_ctx_t* ctx) {
  const quantized_products_matmul_t* state = ctx->state;
  RN_RETURN_IF_ERROR(check_matmul(ctx));
  const rn_tensor_t *a = rn_in(ctx, 0), *b = rn_in(ctx, 1);
  const bool ta = state->transpose_a, tb = state->transpose_b;
  rn_quant_gemm_t gemm = {.m = rn_tensor_dim(a, ta), .n = rn_tensor_dim(b, !tb)};
  gemm.k = rn_tensor_dim(a, !ta);
  if (gemm.k != rn_tensor_dim(b, tb))
    return rn_invalid_argument("Matrix size-incompatible: In[0]: %s, In[1]: %s", rn_text_of(a).text,
                               rn_text_of(b).text);
  int64_t dims[2] = {gemm.m, gemm.n};
  rn_tensor_t* c = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){2, dims}, &c));
  RN_RETURN_IF_ERROR(finish(ctx));
  if (gemm.k == 0 && c->count) memset(c->data, 0, rn_tensor_bytes(c));
  if (gemm.k == 0 || c->count == 0) return RN_OK;
  quantized_products_matrix_t rows = {a->data, ta ? 1 : gemm.k, ta ? gemm.m : 1, gemm.k};
  gemm.row = matrix_row;
  gemm.arg = &rows;
  gemm.b = b->data;
  gemm.b_row = tb ? 1 : gemm.n;
  gemm.b_column = tb ? gemm.k : 1;
  gemm.a_zero = zero_of(a->dtype, rn_quant_limits_at(ctx, 2));
  gemm.b_zero = zero_of(b->dtype, rn_quant_limits_at(ctx, 4));
  gemm.c = c->data;
  return rn_quant_gemm(ctx, &gemm);
}

// Images.

static rn_status_t conv_init(const rn_kernel_init_t* init, void* state) {
  rn_window_attrs_t* attrs = state;
  RN_RETURN_IF_ERROR(rn_window_init(init, "strides", attrs));
  RN_RETURN_IF_ERROR(rn_window_check_strides(attrs));
  if (attrs->dilations[1] != 1 || attrs->dilations[2] != 1)
    return rn_invalid_argument(
        "Current implementation only supports dilated rate as 1 in the row and column dimensions.");
  if (attrs->dilations[0] != 1 || attrs->dilations[3] != 1)
    return rn_invalid_argument(
        "Current implementation does not yet support dilations in the batch and depth dimensions.");
  return RN_OK;
}

typedef struct images_t {
  const uint8_t* x;
  rn_window_axis_t rows, columns;
  int64_t depth;
  int16_t outside;  // padding value: the level of zero
} images_t;

static void fill(int16_t* out, int64_t n, int16_t level) {
  for (int64_t i = 0; i < n; ++i) out[i] = level;
}

// The patch under the window at one position, row by row.
static void patch(const void* arg, int64_t place, int16_t* out) {
  const images_t* im = arg;
  int64_t column = place % im->columns.out, line = place / im->columns.out;
  int64_t row = line % im->rows.out, image = line / im->rows.out;
  int64_t top = row * im->rows.stride - im->rows.before, left, right;
  int64_t first = column * im->columns.stride - im->columns.before;
  rn_window_at(&im->columns, column, &left, &right);
  if (right < left) right = left;
  const int64_t width = im->columns.filter * im->depth;
  for (int64_t i = 0; i < im->rows.filter; ++i, out += width) {
    int64_t y = top + i;
    if (y < 0 || y >= im->rows.in || left == right) {
      fill(out, width, im->outside);
      continue;
    }
    const uint8_t* from = im->x + ((image * im->rows.in + y) * im->columns.in + left) * im->depth;
    int64_t begin = (left - first) * im->depth, n = (right - left) * im->depth;
    fill(out, begin, im->outside);
    for (int64_t j = 0; j < n; ++j) out[begin + j] = from[j];
    fill(out + begin + n, width - begin - n, im->outside);
  }
}

// For limits so far from zero that its level does not fit int16: multiplies one by one.
static void convolve(const images_t* im, const rn_quant_gemm_t* gemm) {
  const uint8_t* w = gemm->b;
  for (int64_t place = 0; place < gemm->m; ++place) {
    int64_t column = place % im->columns.out, line = place / im->columns.out;
    int64_t row = line % im->rows.out, image = line / im->rows.out, begin[2], end[2];
    rn_window_at(&im->rows, row, &begin[0], &end[0]);
    rn_window_at(&im->columns, column, &begin[1], &end[1]);
    int64_t top = row * im->rows.stride - im->rows.before;
    int64_t left = column * im->columns.stride - im->columns.before;
    for (int64_t n = 0; n < gemm->n; ++n) {
      uint32_t sum = 0;
      for (int64_t y = begin[0]; y < end[0]; ++y)
        for (int64_t i = begin[1] * im->depth; i < end[1] * im->depth; ++i) {
          int64_t k = (y - top) * im->columns.filter * im->depth + i - left * im->depth;
          uint8_t byte = w[k * gemm->n + n];
          int32_t level = gemm->b_is_signed ? (int8_t)byte : byte;
          uint32_t x = im->x[(image * im->rows.in + y) * im->columns.in * im->depth + i];
          sum += (x - (uint32_t)gemm->a_zero) * ((uint32_t)level - (uint32_t)gemm->b_zero);
        }
      gemm->c[place * gemm->n + n] = (int32_t)sum;
    }
  }
}

static rn_status_t check_conv(const rn_kernel_ctx_t* ctx) {
  static const char* const names[] = {"input",     "filter",     "min_input",
                                      "max_input", "min_filter", "max_filter"};
  for (int i = 0; i < 6; ++i)
    if (rn_in(ctx, i)->rank != (i < 2 ? 4 : 0))
      return rn_invalid_argument("%s must be rank %d but is rank %d", names[i], i < 2 ? 4 : 0,
                                 rn_in(ctx, i)->rank);
  const rn_tensor_t *x = rn_in(ctx, 0), *w = rn_in(ctx, 1);
  if (rn_tensor_dim(x, 3) != rn_tensor_dim(w, 2))
    return rn_invalid_argument("input and filter must have the same depth: %" PRId64 " vs %" PRId64,
                               rn_tensor_dim(x, 3), rn_tensor_dim(w, 2));
  if (x->count == 0 || w->count == 0)
    return rn_invalid_argument("Invalid input: Shapes dimension cannot be 0.");
  return RN_OK;
}

static rn_status_t conv_compute(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(check_conv(ctx));
  const rn_tensor_t *x = rn_in(ctx, 0), *w = rn_in(ctx, 1);
  const int64_t *x_dims = rn_tensor_dims(x), *w_dims = rn_tensor_dims(w);
  images_t images = {.x = x->data, .depth = x_dims[3]};
  RN_RETURN_IF_ERROR(rn_window_axis(ctx->state, 1, x_dims[1], w_dims[0], &images.rows));
  RN_RETURN_IF_ERROR(rn_window_axis(ctx->state, 2, x_dims[2], w_dims[1], &images.columns));
  int64_t dims[4] = {x_dims[0], images.rows.out, images.columns.out, w_dims[3]};
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){4, dims}, &y));
  RN_RETURN_IF_ERROR(finish(ctx));
  if (y->count == 0) return RN_OK;
  rn_quant_gemm_t gemm = {.m = y->count / w_dims[3],
                          .n = w_dims[3],
                          .k = w->count / w_dims[3],
                          .row = patch,
                          .arg = &images,
                          .b = w->data,
                          .b_row = w_dims[3],
                          .b_column = 1,
                          .b_is_signed = w->dtype == RN_QINT8,
                          .c = y->data};
  gemm.a_zero = zero_of(x->dtype, rn_quant_limits_at(ctx, 2));
  gemm.b_zero = zero_of(w->dtype, rn_quant_limits_at(ctx, 4));
  // Zero may not be a level: above the levels stock takes the low byte, below them it adds nothing.
  images.outside = (int16_t)(gemm.a_zero < 0 ? gemm.a_zero : (uint8_t)gemm.a_zero);
  if (gemm.a_zero < INT16_MIN) {
    convolve(&images, &gemm);
    return RN_OK;
  }
  return rn_quant_gemm(ctx, &gemm);
}

static const rn_kernel_def_t rows[] = {
    {.op = "QuantizedMatMul",
     .device = "CPU",
     .types = {{"T1", RN_T(QUINT8)}, {"T2", RN_T(QUINT8)}, {"Toutput", RN_T(QINT32)}},
     .flags = RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(quantized_products_matmul_t),
     .init = matmul_init,
     .compute = matmul_compute},
    {.op = "QuantizedConv2D",
     .device = "CPU",
     .types = {{"Tinput", RN_T(QUINT8)},
               {"Tfilter", RN_T(QUINT8) | RN_T(QINT8)},
               {"out_type", RN_T(QINT32)}},
     .flags = RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(rn_window_attrs_t),
     .init = conv_init,
     .compute = conv_compute},
};
RN_KERNEL_FAMILY(cpu_quantized_products, rows);

// GRU cells (Cho et al., 2014): one step, forward and backward.
#include "kernels/cpu/ctc_rnn/gru.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/float_args.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

static rn_status_t check_ranks(const rn_kernel_ctx_t* ctx) {
  static const char* const names[] = {"x",   "h_prev", "w_ru", "w_c", "b_ru",
                                      "b_c", "r",      "u",    "c",   "d_h"};
  for (int i = 0; i < ctx->kernel->input_count; ++i) {
    int rank = i == 4 || i == 5 ? 1 : 2;
    if (rn_in(ctx, i)->rank != rank)
      return rn_invalid_argument("Rank of %s must be %d, got %d", names[i], rank,
                                 rn_in(ctx, i)->rank);
  }
  return RN_OK;
}

rn_status_t rn_gru_check(const rn_kernel_ctx_t* ctx, rn_gru_size_t* out) {
  RN_RETURN_IF_ERROR(check_ranks(ctx));
  rn_gru_size_t size = {rn_tensor_dim(rn_in(ctx, 0), 0), rn_tensor_dim(rn_in(ctx, 0), 1),
                        rn_tensor_dim(rn_in(ctx, 1), 1)};
  int64_t rows, gates;
  if (!rn_mul_i64_ok(size.cell, 2, &gates) || !rn_add_i64_ok(size.input, size.cell, &rows))
    return rn_invalid_argument("cell_size is too large: %lld", (long long)size.cell);
  const struct {
    int input, axis;
    const char *what, *from;
    int64_t should;
  } dims[] = {
      {1, 0, "h_prev.dims(0)", "batch_size", size.batch},
      {2, 0, "w_ru.dim_size(0)", "input_size + cell_size", rows},
      {2, 1, "w_ru.dim_size(1)", "cell_size * 2", gates},
      {3, 0, "w_c.dim_size(0)", "input_size + cell_size", rows},
      {3, 1, "w_c.dim_size(1)", "cell_size", size.cell},
      {4, 0, "b_ru.dim_size(0)", "cell_size * 2", gates},
      {5, 0, "b_c.dim_size(0)", "cell_size", size.cell},
      {6, 0, "r.dims(0)", "batch_size", size.batch},
      {6, 1, "r.dims(1)", "cell_size", size.cell},
      {7, 0, "u.dims(0)", "batch_size", size.batch},
      {7, 1, "u.dims(1)", "cell_size", size.cell},
      {8, 0, "c.dims(0)", "batch_size", size.batch},
      {8, 1, "c.dims(1)", "cell_size", size.cell},
      {9, 0, "d_h.dims(0)", "batch_size", size.batch},
      {9, 1, "d_h.dims(1)", "cell_size", size.cell},
  };
  for (size_t i = 0; i < sizeof dims / sizeof *dims; ++i) {
    if (dims[i].input >= ctx->kernel->input_count) break;
    int64_t is = rn_tensor_dim(rn_in(ctx, dims[i].input), dims[i].axis);
    if (is != dims[i].should)
      return rn_invalid_argument("%s != %s: %lld vs. %lld", dims[i].what, dims[i].from,
                                 (long long)is, (long long)dims[i].should);
  }
  *out = size;
  return RN_OK;
}

// |out| = |a|, rows of length |k|, times rows [first, first + k) of |w|, which has |n| columns.
static rn_status_t multiply(rn_kernel_ctx_t* ctx, int64_t m, int64_t n, int64_t k, const float* a,
                            const float* w, float* out) {
  if (k == 0) {
    memset(out, 0, (size_t)(m * n) * sizeof *out);
    return RN_OK;
  }
  return rn_gemm(rn_ctx_pool(ctx),
                 &(rn_gemm_t){.dtype = RN_FLOAT, .m = m, .n = n, .k = k, .a = a, .b = w, .c = out});
}

static rn_status_t multiply_back(rn_kernel_ctx_t* ctx, int64_t m, int64_t n, int64_t k,
                                 const float* a, const float* w, float* out) {
  if (n == 0) return RN_OK;
  return rn_gemm(rn_ctx_pool(ctx), &(rn_gemm_t){.dtype = RN_FLOAT,
                                                .transpose_b = true,
                                                .m = m,
                                                .n = n,
                                                .k = k,
                                                .a = a,
                                                .b = w,
                                                .c = out});
}

static void vector(rn_vector_code_t code, float* values, int64_t n) {
  rn_vector_table()->fn[RN_FLOAT][code](values, 1, NULL, 0, values, n);
}

static rn_status_t forward(rn_float_args_t* floats, rn_gru_size_t s) {
  rn_kernel_ctx_t* ctx = floats->ctx;
  const float* in[6];
  float *out[4], *from_x, *from_h;
  int64_t dims[2] = {s.batch, s.cell}, plane = s.batch * s.cell;
  for (int i = 0; i < 6; ++i) RN_RETURN_IF_ERROR(rn_float_args_in(floats, i, &in[i]));
  for (int o = 0; o < 4; ++o)
    RN_RETURN_IF_ERROR(rn_float_args_out(floats, o, (rn_shape_t){2, dims}, &out[o]));
  if (plane == 0) return RN_OK;
  RN_RETURN_IF_ERROR(rn_float_args_temp(floats, 2 * plane, &from_x));
  RN_RETURN_IF_ERROR(rn_float_args_temp(floats, 2 * plane, &from_h));
  const float *h = in[1], *w_ru = in[2], *w_c = in[3], *b_ru = in[4], *b_c = in[5];
  float *r = out[0], *u = out[1], *c = out[2];
  RN_RETURN_IF_ERROR(multiply(ctx, s.batch, 2 * s.cell, s.input, in[0], w_ru, from_x));
  RN_RETURN_IF_ERROR(
      multiply(ctx, s.batch, 2 * s.cell, s.cell, h, w_ru + s.input * 2 * s.cell, from_h));
  for (int64_t row = 0; row < s.batch; ++row)
    for (int64_t k = 0; k < s.cell; ++k) {
      int64_t at = 2 * row * s.cell + k;
      r[row * s.cell + k] = from_x[at] + from_h[at] + b_ru[k];
      u[row * s.cell + k] = from_x[at + s.cell] + from_h[at + s.cell] + b_ru[s.cell + k];
    }
  vector(RN_VECTOR_SIGMOID, r, plane);
  vector(RN_VECTOR_SIGMOID, u, plane);
  float* reset = out[3];  // first r * h_prev, then the output
  for (int64_t n = 0; n < plane; ++n) reset[n] = h[n] * r[n];
  RN_RETURN_IF_ERROR(multiply(ctx, s.batch, s.cell, s.input, in[0], w_c, from_x));
  RN_RETURN_IF_ERROR(multiply(ctx, s.batch, s.cell, s.cell, reset, w_c + s.input * s.cell, from_h));
  for (int64_t row = 0; row < s.batch; ++row)
    for (int64_t k = 0; k < s.cell; ++k) {
      int64_t n = row * s.cell + k;
      c[n] = from_x[n] + from_h[n] + b_c[k];
    }
  vector(RN_VECTOR_TANH, c, plane);
  for (int64_t n = 0; n < plane; ++n) out[3][n] = u[n] * h[n] + (1 - u[n]) * c[n];
  return RN_OK;
}

static rn_status_t back(rn_float_args_t* floats, rn_gru_size_t s) {
  rn_kernel_ctx_t* ctx = floats->ctx;
  const float* in[10];
  float *dx, *dh_prev, *dc, *dru, *more_x, *reset;
  int64_t x_dims[2] = {s.batch, s.input}, dims[2] = {s.batch, s.cell};
  int64_t gate_dims[2] = {s.batch, 2 * s.cell}, plane = s.batch * s.cell;
  for (int i = 0; i < 10; ++i) RN_RETURN_IF_ERROR(rn_float_args_in(floats, i, &in[i]));
  RN_RETURN_IF_ERROR(rn_float_args_out(floats, 0, (rn_shape_t){2, x_dims}, &dx));
  RN_RETURN_IF_ERROR(rn_float_args_out(floats, 1, (rn_shape_t){2, dims}, &dh_prev));
  RN_RETURN_IF_ERROR(rn_float_args_out(floats, 2, (rn_shape_t){2, dims}, &dc));
  RN_RETURN_IF_ERROR(rn_float_args_out(floats, 3, (rn_shape_t){2, gate_dims}, &dru));
  memset(dx, 0, (size_t)(s.batch * s.input) * sizeof *dx);
  if (plane == 0) return RN_OK;
  RN_RETURN_IF_ERROR(rn_float_args_temp(floats, s.batch * s.input, &more_x));
  RN_RETURN_IF_ERROR(rn_float_args_temp(floats, plane, &reset));
  const float *h = in[1], *w_ru = in[2], *w_c = in[3];
  const float *r = in[6], *u = in[7], *c = in[8], *dh = in[9];
  for (int64_t n = 0; n < plane; ++n) dc[n] = dh[n] * (1 - u[n]) * (1 - c[n] * c[n]);
  RN_RETURN_IF_ERROR(multiply_back(ctx, s.batch, s.input, s.cell, dc, w_c, dx));
  RN_RETURN_IF_ERROR(
      multiply_back(ctx, s.batch, s.cell, s.cell, dc, w_c + s.input * s.cell, reset));
  for (int64_t row = 0; row < s.batch; ++row)
    for (int64_t k = 0; k < s.cell; ++k) {
      int64_t n = row * s.cell + k;
      dru[2 * row * s.cell + k] = reset[n] * h[n] * r[n] * (1 - r[n]);
      dru[(2 * row + 1) * s.cell + k] = dh[n] * (h[n] - c[n]) * u[n] * (1 - u[n]);
    }
  RN_RETURN_IF_ERROR(multiply_back(ctx, s.batch, s.input, 2 * s.cell, dru, w_ru, more_x));
  RN_RETURN_IF_ERROR(
      multiply_back(ctx, s.batch, s.cell, 2 * s.cell, dru, w_ru + s.input * 2 * s.cell, dh_prev));
  for (int64_t n = 0; n < s.batch * s.input; ++n) dx[n] += more_x[n];
  for (int64_t n = 0; n < plane; ++n) dh_prev[n] += reset[n] * r[n] + dh[n] * u[n];
  return RN_OK;
}

static rn_status_t cell(rn_kernel_ctx_t* ctx) {
  rn_gru_size_t size;
  RN_RETURN_IF_ERROR(rn_gru_check(ctx, &size));
  rn_float_args_t floats = {.ctx = ctx};
  return rn_float_args_end(&floats, forward(&floats, size));
}

static rn_status_t cell_grad(rn_kernel_ctx_t* ctx) {
  rn_gru_size_t size;
  RN_RETURN_IF_ERROR(rn_gru_check(ctx, &size));
  rn_float_args_t floats = {.ctx = ctx};
  return rn_float_args_end(&floats, back(&floats, size));
}

static const rn_kernel_def_t rows[] = {
    {.op = "GRUBlockCell", .device = "CPU", .flags = RN_KERNEL_EXPENSIVE, .compute = cell},
    {.op = "GRUBlockCellGrad", .device = "CPU", .flags = RN_KERNEL_EXPENSIVE, .compute = cell_grad},
};
RN_KERNEL_FAMILY(cpu_gru, rows);

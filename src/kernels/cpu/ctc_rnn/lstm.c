// LSTM cells, forward pass and checks. See lstm.h.
#include "kernels/cpu/ctc_rnn/lstm.h"

#include <stdio.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

#define GRAIN 16384  // gate values per piece of work

static bool has_attr(const rn_kernel_init_t* init, const char* name) {
  return rn_op_attr_index(init->op, rn_str(name)) >= 0;
}

rn_status_t rn_lstm_init(const rn_kernel_init_t* init, void* state) {
  rn_lstm_t* lstm = state;
  lstm->has_peephole = rn_init_bool(init, "use_peephole");
  if (has_attr(init, "forget_bias")) lstm->forget_bias = rn_init_float(init, "forget_bias");
  if (has_attr(init, "cell_clip")) lstm->cell_clip = rn_init_float(init, "cell_clip");
  // V2 stores the forget gate before the new values.
  bool is_second = rn_str_ends_with(rn_str(init->op->name), RN_STR("V2"));
  lstm->ci = is_second ? 2 : 1;
  lstm->f = is_second ? 1 : 2;
  lstm->o = 3;
  return RN_OK;
}

static rn_status_t differ(const char* what, int64_t is, const char* from, int64_t should) {
  return rn_invalid_argument("%s != %s: %lld vs. %lld", what, from, (long long)is,
                             (long long)should);
}

static rn_status_t check_dim(const rn_tensor_t* tensor, const char* what, int axis,
                             const char* from, int64_t should) {
  int64_t is = axis < tensor->rank ? rn_tensor_dim(tensor, axis) : -1;
  return is == should ? RN_OK : differ(what, is, from, should);
}

// Checks the sizes of all inputs after x.
static rn_status_t check_rest(const rn_kernel_ctx_t* ctx, int first, const rn_lstm_size_t* size) {
  int64_t gates, rows;
  if (!rn_mul_i64_ok(size->cell, 4, &gates) || !rn_add_i64_ok(size->input, size->cell, &rows))
    return rn_invalid_argument("cell_size is too large: %lld", (long long)size->cell);
  RN_RETURN_IF_ERROR(check_dim(rn_in(ctx, first), "cs_prev.dims(0)", 0, "batch_size", size->batch));
  RN_RETURN_IF_ERROR(
      check_dim(rn_in(ctx, first + 1), "h_prev.dims(0)", 0, "batch_size", size->batch));
  RN_RETURN_IF_ERROR(
      check_dim(rn_in(ctx, first + 1), "h_prev.dims(1)", 1, "cell_size", size->cell));
  RN_RETURN_IF_ERROR(
      check_dim(rn_in(ctx, first + 2), "w.dim_size(0)", 0, "input_size + cell_size", rows));
  RN_RETURN_IF_ERROR(check_dim(rn_in(ctx, first + 2), "w.dim_size(1)", 1, "cell_size * 4", gates));
  return check_dim(rn_in(ctx, first + 6), "b.dim_size(0)", 0, "cell_size * 4", gates);
}

static rn_status_t check_peepholes(const rn_kernel_ctx_t* ctx, int first, int64_t cell) {
  static const char* const names[] = {"wci.dim_size(0)", "wcf.dim_size(0)", "wco.dim_size(0)"};
  for (int i = 0; i < 3; ++i)
    RN_RETURN_IF_ERROR(check_dim(rn_in(ctx, first + i), names[i], 0, "cell_size", cell));
  return RN_OK;
}

rn_status_t rn_lstm_check_cell(const rn_kernel_ctx_t* ctx, rn_lstm_size_t* out) {
  const rn_lstm_t* lstm = ctx->state;
  static const char* const names[] = {"x", "cs_prev", "h_prev", "w"};
  for (int i = 0; i < 4; ++i)
    if (i != 2 && rn_in(ctx, i)->rank != 2)
      return rn_invalid_argument("%s must be rank 2 but is rank %d.", names[i],
                                 rn_in(ctx, i)->rank);
  static const char* const vectors[] = {"wci_tensor", "wcf_tensor", "wco_tensor"};
  const rn_tensor_t* state = rn_in(ctx, 1);
  *out = (rn_lstm_size_t){.time = 1,
                          .steps = 1,
                          .batch = rn_tensor_dim(rn_in(ctx, 0), 0),
                          .input = rn_tensor_dim(rn_in(ctx, 0), 1),
                          .cell = rn_tensor_dim(rn_in(ctx, 1), 1)};
  RN_RETURN_IF_ERROR(check_rest(ctx, 1, out));
  if (state->count == 0)
    return rn_invalid_argument("cs_prev_tensor is empty, has shape: (%lld,%lld).",
                               (long long)rn_tensor_dim(state, 0),
                               (long long)rn_tensor_dim(state, 1));
  for (int i = 0; i < 3; ++i)
    if (rn_in(ctx, 4 + i)->rank != 1)
      return rn_invalid_argument("%s must be rank 1 but is rank %d.", vectors[i],
                                 rn_in(ctx, 4 + i)->rank);
  if (rn_in(ctx, 7)->rank != 1)
    return rn_invalid_argument("b_tensor must be rank 1 but is rank %d.", rn_in(ctx, 7)->rank);
  if (rn_in(ctx, 2)->rank != 2)
    return rn_invalid_argument("h_prev must be rank 2 but is rank %d.", rn_in(ctx, 2)->rank);
  return lstm->has_peephole ? check_peepholes(ctx, 4, out->cell) : RN_OK;
}

rn_status_t rn_lstm_check_block(const rn_kernel_ctx_t* ctx, rn_lstm_size_t* out) {
  const rn_lstm_t* lstm = ctx->state;
  static const struct {
    const char* name;
    int rank;
  } args[] = {{"seq_len_max", 0}, {"x", 3},   {"cs_prev", 2}, {"h_prev", 2}, {"w", 2},
              {"wci", 1},         {"wcf", 1}, {"wco", 1},     {"b", 1}};
  const rn_tensor_t* steps = rn_in(ctx, 0);
  if (steps->rank != 0)
    return rn_invalid_argument("`seq_len_max_tensor` must be rank 0 but is rank %d", steps->rank);
  for (int i = 1; i < 9; ++i)
    if (rn_in(ctx, i)->rank != args[i].rank)
      return rn_invalid_argument("%s must be %dD", args[i].name, args[i].rank);
  const rn_tensor_t* x = rn_in(ctx, 1);
  *out = (rn_lstm_size_t){.time = rn_tensor_dim(x, 0),
                          .batch = rn_tensor_dim(x, 1),
                          .input = rn_tensor_dim(x, 2),
                          .cell = rn_tensor_dim(rn_in(ctx, 2), 1),
                          .steps = rn_int_at(steps, 0)};
  RN_RETURN_IF_ERROR(check_rest(ctx, 2, out));
  if (lstm->has_peephole) RN_RETURN_IF_ERROR(check_peepholes(ctx, 5, out->cell));
  if (out->steps < 0 || out->steps > out->time)
    return rn_invalid_argument("seq_len_max must be between 0 and %lld, but is %lld",
                               (long long)out->time, (long long)out->steps);
  return RN_OK;
}

rn_status_t rn_lstm_args_in(rn_float_args_t* floats, int first, rn_lstm_args_t* out) {
  const float** all[] = {&out->x,   &out->cs_prev, &out->h_prev, &out->w,
                         &out->wci, &out->wcf,     &out->wco,    &out->b};
  for (int i = 0; i < 8; ++i) RN_RETURN_IF_ERROR(rn_float_args_in(floats, first + i, all[i]));
  return RN_OK;
}

// One step: from the gate contributions of x and h, which are computed separately, to the cell's
// outputs.
typedef struct lstm_step_t {
  const rn_lstm_t* lstm;
  const rn_lstm_args_t* args;
  rn_lstm_size_t size;
  const float *from_x, *from_h, *cs_prev;
  float *i, *cs, *f, *o, *ci, *co, *h;
} lstm_step_t;

static void vector(rn_vector_code_t code, float* values, int64_t n) {
  rn_vector_table()->fn[RN_FLOAT][code](values, 1, NULL, 0, values, n);
}

// Gate |gate| of the rows before its activation.
static void sum_gate(const lstm_step_t* s, int gate, float bias, const float* peephole,
                     const float* cells, float* out, int64_t begin, int64_t end) {
  int64_t cell = s->size.cell;
  const float* b = s->args->b + gate * cell;
  for (int64_t row = begin; row < end; ++row) {
    const float* x = s->from_x + (4 * row + gate) * cell;
    const float* h = s->from_h + (4 * row + gate) * cell;
    float* to = out + row * cell;
    for (int64_t k = 0; k < cell; ++k) to[k] = x[k] + h[k] + b[k] + bias;
    if (!peephole) continue;
    const float* c = cells + row * cell;
    for (int64_t k = 0; k < cell; ++k) to[k] += c[k] * peephole[k];
  }
}

static void step_rows(void* arg, int64_t begin, int64_t end) {
  const lstm_step_t* s = arg;
  const rn_lstm_t* lstm = s->lstm;
  int64_t cell = s->size.cell, from = begin * cell, n = (end - begin) * cell;
  bool peeps = lstm->has_peephole;
  sum_gate(s, lstm->i, 0, peeps ? s->args->wci : NULL, s->cs_prev, s->i, begin, end);
  sum_gate(s, lstm->f, lstm->forget_bias, peeps ? s->args->wcf : NULL, s->cs_prev, s->f, begin,
           end);
  sum_gate(s, lstm->ci, 0, NULL, NULL, s->ci, begin, end);
  vector(RN_VECTOR_SIGMOID, s->i + from, n);
  vector(RN_VECTOR_SIGMOID, s->f + from, n);
  vector(RN_VECTOR_TANH, s->ci + from, n);
  float clip = lstm->cell_clip;
  for (int64_t k = from; k < from + n; ++k) {
    float cs = s->ci[k] * s->i[k] + s->cs_prev[k] * s->f[k];
    if (clip > 0) cs = cs > clip ? clip : cs < -clip ? -clip : cs;
    s->cs[k] = s->co[k] = cs;
  }
  sum_gate(s, lstm->o, 0, peeps ? s->args->wco : NULL, s->cs, s->o, begin, end);
  vector(RN_VECTOR_SIGMOID, s->o + from, n);
  vector(RN_VECTOR_TANH, s->co + from, n);
  for (int64_t k = from; k < from + n; ++k) s->h[k] = s->co[k] * s->o[k];
}

static rn_status_t forward(rn_float_args_t* floats, const rn_lstm_args_t* args, rn_lstm_size_t size,
                           rn_shape_t shape) {
  rn_kernel_ctx_t* ctx = floats->ctx;
  rn_pool_t* pool = rn_ctx_pool(ctx);
  float *out[7], *from_x, *from_h;
  for (int o = 0; o < 7; ++o) RN_RETURN_IF_ERROR(rn_float_args_out(floats, o, shape, &out[o]));
  int64_t rows = size.steps * size.batch, plane = size.batch * size.cell;
  if (plane == 0 || size.time == 0) return RN_OK;
  RN_RETURN_IF_ERROR(rn_float_args_temp(floats, 4 * size.cell * rows, &from_x));
  RN_RETURN_IF_ERROR(rn_float_args_temp(floats, 4 * plane, &from_h));
  // The contribution of the inputs depends on no earlier step: one GEMM for all steps.
  if (size.input == 0)
    memset(from_x, 0, (size_t)(4 * size.cell * rows) * sizeof *from_x);
  else if (rows > 0)
    RN_RETURN_IF_ERROR(rn_gemm(pool, &(rn_gemm_t){.dtype = RN_FLOAT,
                                                  .m = rows,
                                                  .n = 4 * size.cell,
                                                  .k = size.input,
                                                  .a = args->x,
                                                  .b = args->w,
                                                  .c = from_x}));
  for (int64_t t = 0; t < size.steps; ++t) {
    const float* h_prev = t ? out[6] + (t - 1) * plane : args->h_prev;
    RN_RETURN_IF_ERROR(rn_gemm(pool, &(rn_gemm_t){.dtype = RN_FLOAT,
                                                  .m = size.batch,
                                                  .n = 4 * size.cell,
                                                  .k = size.cell,
                                                  .a = h_prev,
                                                  .b = args->w + size.input * 4 * size.cell,
                                                  .c = from_h}));
    int64_t at = t * plane;
    lstm_step_t step = {.lstm = ctx->state,
                        .args = args,
                        .size = size,
                        .from_x = from_x + 4 * at,
                        .from_h = from_h,
                        .cs_prev = t ? out[1] + at - plane : args->cs_prev,
                        .i = out[0] + at,
                        .cs = out[1] + at,
                        .f = out[2] + at,
                        .o = out[3] + at,
                        .ci = out[4] + at,
                        .co = out[5] + at,
                        .h = out[6] + at};
    rn_pool_for(pool, size.batch, GRAIN / (4 * size.cell) + 1, step_rows, &step);
  }
  for (int o = 0; o < 7; ++o)
    memset(out[o] + size.steps * plane, 0,
           (size_t)((size.time - size.steps) * plane) * sizeof(float));
  return RN_OK;
}

static rn_status_t cell(rn_kernel_ctx_t* ctx) {
  rn_lstm_size_t size;
  RN_RETURN_IF_ERROR(rn_lstm_check_cell(ctx, &size));
  rn_float_args_t floats = {.ctx = ctx};
  rn_lstm_args_t args;
  rn_status_t status = rn_lstm_args_in(&floats, 0, &args);
  int64_t dims[2] = {size.batch, size.cell};
  if (rn_ok(status)) status = forward(&floats, &args, size, (rn_shape_t){2, dims});
  return rn_float_args_end(&floats, status);
}

static rn_status_t block(rn_kernel_ctx_t* ctx) {
  rn_lstm_size_t size;
  RN_RETURN_IF_ERROR(rn_lstm_check_block(ctx, &size));
  rn_float_args_t floats = {.ctx = ctx};
  rn_lstm_args_t args;
  rn_status_t status = rn_lstm_args_in(&floats, 1, &args);
  int64_t dims[3] = {size.time, size.batch, size.cell};
  if (rn_ok(status)) status = forward(&floats, &args, size, (rn_shape_t){3, dims});
  return rn_float_args_end(&floats, status);
}

static const rn_kernel_def_t rows[] = {
    RN_LSTM_ROW("LSTMBlockCell", cell),
    RN_LSTM_ROW("BlockLSTM", block),
    RN_LSTM_ROW("BlockLSTMV2", block),
};
RN_KERNEL_FAMILY(cpu_lstm, rows);

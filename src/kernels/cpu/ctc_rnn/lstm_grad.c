// LSTM cells, backward pass. See lstm.h.
#include "kernels/cpu/array.h"
#include "kernels/cpu/ctc_rnn/lstm.h"
#include "kernels/cpu/gemm.h"
#include "kernels/kernel_rows.h"

void rn_lstm_step_back(const rn_lstm_t* lstm, const rn_lstm_args_t* args, rn_lstm_size_t size,
                       const rn_lstm_step_t* s) {
  int64_t cell = size.cell;
  bool peeps = lstm->has_peephole;
  for (int64_t row = 0; row < size.batch; ++row) {
    int64_t at = row * cell;
    float* gates = s->gates + 4 * at;
    for (int64_t k = 0; k < cell; ++k) {
      int64_t n = at + k;
      float i = s->i[n], f = s->f[n], o = s->o[n], ci = s->ci[n], co = s->co[n];
      float dh = s->h_grad[n] + (s->h_next ? s->h_next[n] : 0);
      float dcs = s->cs_grad[n] + (s->cs_next ? s->cs_next[n] : 0);
      float d_o = o * (1 - o) * dh * co;
      dcs += (1 - co * co) * dh * o;
      if (peeps) dcs += d_o * args->wco[k];
      float dci = (1 - ci * ci) * dcs * i;
      float df = f * (1 - f) * dcs * s->cs_prev[n];
      float di = i * (1 - i) * dcs * ci;
      gates[lstm->i * cell + k] = di;
      gates[lstm->ci * cell + k] = dci;
      gates[lstm->f * cell + k] = df;
      gates[lstm->o * cell + k] = d_o;
      float before = dcs * f;
      if (peeps) {
        before += di * args->wci[k] + df * args->wcf[k];
        s->wci_grad[k] += di * s->cs_prev[n];
        s->wcf_grad[k] += df * s->cs_prev[n];
        s->wco_grad[k] += d_o * s->cs[n];
      }
      s->cs_prev_grad[n] = before;
    }
  }
}

// Allocates three zero vectors as outputs |first| and on.
static rn_status_t peephole_outputs(rn_float_args_t* floats, int first, int64_t cell,
                                    float* out[3]) {
  for (int i = 0; i < 3; ++i) {
    RN_RETURN_IF_ERROR(rn_float_args_out(floats, first + i, (rn_shape_t){1, &cell}, &out[i]));
    memset(out[i], 0, (size_t)cell * sizeof(float));
  }
  return RN_OK;
}

// A single cell.
static rn_status_t check_matrix(const rn_tensor_t* tensor, const char* rows, const char* columns,
                                const rn_lstm_size_t* size) {
  if (tensor->rank != 2)
    return rn_invalid_argument("%s must be a matrix, but has rank %d", rows, tensor->rank);
  if (rn_tensor_dim(tensor, 0) != size->batch)
    return rn_invalid_argument("%s != batch_size: %lld vs. %lld", rows,
                               (long long)rn_tensor_dim(tensor, 0), (long long)size->batch);
  if (rn_tensor_dim(tensor, 1) != size->cell)
    return rn_invalid_argument("%s != cell_size: %lld vs. %lld", columns,
                               (long long)rn_tensor_dim(tensor, 1), (long long)size->cell);
  return RN_OK;
}

static rn_status_t cell_back(rn_float_args_t* floats, rn_lstm_size_t size) {
  rn_lstm_args_t args;
  RN_RETURN_IF_ERROR(rn_lstm_args_in(floats, 0, &args));
  const float* in[8];
  for (int i = 0; i < 8; ++i) RN_RETURN_IF_ERROR(rn_float_args_in(floats, 8 + i, &in[i]));
  int64_t dims[2] = {size.batch, size.cell}, gate_dims[2] = {size.batch, 4 * size.cell};
  float *before, *gates, *peepholes[3];
  RN_RETURN_IF_ERROR(rn_float_args_out(floats, 0, (rn_shape_t){2, dims}, &before));
  RN_RETURN_IF_ERROR(rn_float_args_out(floats, 1, (rn_shape_t){2, gate_dims}, &gates));
  RN_RETURN_IF_ERROR(peephole_outputs(floats, 2, size.cell, peepholes));
  rn_lstm_step_t step = {.cs_prev = args.cs_prev,
                         .i = in[0],
                         .cs = in[1],
                         .f = in[2],
                         .o = in[3],
                         .ci = in[4],
                         .co = in[5],
                         .cs_grad = in[6],
                         .h_grad = in[7],
                         .gates = gates,
                         .cs_prev_grad = before,
                         .wci_grad = peepholes[0],
                         .wcf_grad = peepholes[1],
                         .wco_grad = peepholes[2]};
  rn_lstm_step_back(floats->ctx->state, &args, size, &step);
  return RN_OK;
}

rn_status_t rn_lstm_check_cell_grad(const rn_kernel_ctx_t* ctx, rn_lstm_size_t* out) {
  // Stock's messages: they call f by the name of i.
  static const char* const names[][2] = {
      {"i.dim_size(0)", "i.dim_size(1)"},
      {"cs.dim_size(0)", "cs.dim_size(1)"},
      {"f.dim_size(0)", "i.dim_size(1)"},
      {"o.dim_size(0)", "o.dim_size(1)"},
      {"ci.dim_size(0)", "ci.dim_size(1)"},
      {"co.dim_size(0)", "co.dim_size(1)"},
      {"cs_grad_tensor.dims(0)", "cs_grad_tensor.dims(1)"},
      {"h_grad_tensor.dims(0)", "h_grad_tensor.dims(1)"},
  };
  RN_RETURN_IF_ERROR(rn_lstm_check_cell(ctx, out));
  for (int i = 0; i < 8; ++i)
    RN_RETURN_IF_ERROR(check_matrix(rn_in(ctx, 8 + i), names[i][0], names[i][1], out));
  return RN_OK;
}

static rn_status_t cell_grad(rn_kernel_ctx_t* ctx) {
  rn_lstm_size_t size;
  RN_RETURN_IF_ERROR(rn_lstm_check_cell_grad(ctx, &size));
  rn_float_args_t floats = {.ctx = ctx};
  return rn_float_args_end(&floats, cell_back(&floats, size));
}

// A whole sequence.
typedef struct back_t {
  rn_lstm_args_t args;
  rn_lstm_size_t size;
  const float* in[9];  // i, cs, f, o, ci, co, h, cs_grad, h_grad
  float *x_grad, *cs_prev_grad, *h_prev_grad, *w_grad, *peepholes[3], *b_grad;
  float* gates;   // steps x batch x 4 cell
  float* before;  // steps x batch x cell: the h at the start of each step
} back_t;

// Runs the sequence backwards; leaves the gradients of the initial cell state and output.
static rn_status_t back_steps(rn_kernel_ctx_t* ctx, back_t* b) {
  rn_lstm_size_t size = b->size;
  int64_t plane = size.batch * size.cell;
  for (int64_t t = size.steps - 1; t >= 0; --t) {
    int64_t at = t * plane;
    bool is_last = t == size.steps - 1;
    rn_lstm_step_t step = {.cs_prev = t ? b->in[1] + at - plane : b->args.cs_prev,
                           .i = b->in[0] + at,
                           .cs = b->in[1] + at,
                           .f = b->in[2] + at,
                           .o = b->in[3] + at,
                           .ci = b->in[4] + at,
                           .co = b->in[5] + at,
                           .cs_grad = b->in[7] + at,
                           .h_grad = b->in[8] + at,
                           .cs_next = is_last ? NULL : b->cs_prev_grad,
                           .h_next = is_last ? NULL : b->h_prev_grad,
                           .gates = b->gates + 4 * at,
                           .cs_prev_grad = b->cs_prev_grad,
                           .wci_grad = b->peepholes[0],
                           .wcf_grad = b->peepholes[1],
                           .wco_grad = b->peepholes[2]};
    rn_lstm_step_back(ctx->state, &b->args, size, &step);
    RN_RETURN_IF_ERROR(
        rn_gemm(rn_ctx_pool(ctx), &(rn_gemm_t){.dtype = RN_FLOAT,
                                               .transpose_b = true,
                                               .m = size.batch,
                                               .n = size.cell,
                                               .k = 4 * size.cell,
                                               .a = b->gates + 4 * at,
                                               .b = b->args.w + size.input * 4 * size.cell,
                                               .c = b->h_prev_grad}));
    memcpy(b->before + at, t ? b->in[6] + at - plane : b->args.h_prev,
           (size_t)plane * sizeof(float));
  }
  return RN_OK;
}

// The matmuls that depend on no order: one each for all steps.
static rn_status_t back_products(rn_kernel_ctx_t* ctx, back_t* b) {
  rn_lstm_size_t size = b->size;
  int64_t rows = size.steps * size.batch, width = 4 * size.cell;
  rn_gemm_t product = {
      .dtype = RN_FLOAT, .n = width, .k = rows, .b = b->gates, .transpose_a = true};
  if (size.input > 0) {
    RN_RETURN_IF_ERROR(rn_gemm(rn_ctx_pool(ctx), &(rn_gemm_t){.dtype = RN_FLOAT,
                                                              .transpose_b = true,
                                                              .m = rows,
                                                              .n = size.input,
                                                              .k = width,
                                                              .a = b->gates,
                                                              .b = b->args.w,
                                                              .c = b->x_grad}));
    product.m = size.input;
    product.a = b->args.x;
    product.c = b->w_grad;
    RN_RETURN_IF_ERROR(rn_gemm(rn_ctx_pool(ctx), &product));
  }
  product.m = size.cell;
  product.a = b->before;
  product.c = b->w_grad + size.input * width;
  RN_RETURN_IF_ERROR(rn_gemm(rn_ctx_pool(ctx), &product));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t k = 0; k < width; ++k) b->b_grad[k] += b->gates[row * width + k];
  return RN_OK;
}

static rn_status_t zeroed_output(rn_float_args_t* floats, int o, int like, float** out) {
  const rn_tensor_t* tensor = rn_in(floats->ctx, like);
  RN_RETURN_IF_ERROR(rn_float_args_out(floats, o, rn_tensor_shape(tensor), out));
  memset(*out, 0, (size_t)tensor->count * sizeof(float));
  return RN_OK;
}

static rn_status_t block_back(rn_float_args_t* floats, rn_lstm_size_t size) {
  back_t b = {.size = size};
  RN_RETURN_IF_ERROR(rn_lstm_args_in(floats, 1, &b.args));
  for (int i = 0; i < 9; ++i) RN_RETURN_IF_ERROR(rn_float_args_in(floats, 9 + i, &b.in[i]));
  float** outs[] = {&b.x_grad,       &b.cs_prev_grad, &b.h_prev_grad,  &b.w_grad,
                    &b.peepholes[0], &b.peepholes[1], &b.peepholes[2], &b.b_grad};
  for (int o = 0; o < 8; ++o) RN_RETURN_IF_ERROR(zeroed_output(floats, o, o + 1, outs[o]));
  int64_t plane = size.batch * size.cell;
  if (plane == 0 || size.steps == 0) return RN_OK;
  RN_RETURN_IF_ERROR(rn_float_args_temp(floats, size.steps * plane * 4, &b.gates));
  RN_RETURN_IF_ERROR(rn_float_args_temp(floats, size.steps * plane, &b.before));
  RN_RETURN_IF_ERROR(back_steps(floats->ctx, &b));
  return back_products(floats->ctx, &b);
}

rn_status_t rn_lstm_check_block_grad(const rn_kernel_ctx_t* ctx, rn_lstm_size_t* out) {
  static const char* const names[] = {"i", "cs", "f", "o", "ci", "co", "h", "cs_grad", "h_grad"};
  if (rn_in(ctx, 1)->rank != 3)
    return rn_invalid_argument("x must be rank 3 but is rank %d", rn_in(ctx, 1)->rank);
  RN_RETURN_IF_ERROR(rn_lstm_check_block(ctx, out));
  int64_t dims[3] = {out->time, out->batch, out->cell};
  for (int i = 0; i < 9; ++i) {
    const rn_tensor_t* tensor = rn_in(ctx, 9 + i);
    if (tensor->rank != 3)
      return rn_invalid_argument("%s must be rank 3. Received: %d", names[i], tensor->rank);
    if (!rn_shape_eq(rn_tensor_shape(tensor), (rn_shape_t){3, dims}))
      return rn_invalid_argument("%s must have the shape %s, but has %s", names[i],
                                 rn_shape_text((rn_shape_t){3, dims}).text,
                                 rn_text_of(tensor).text);
  }
  return RN_OK;
}

static rn_status_t block_grad(rn_kernel_ctx_t* ctx) {
  rn_lstm_size_t size;
  RN_RETURN_IF_ERROR(rn_lstm_check_block_grad(ctx, &size));
  rn_float_args_t floats = {.ctx = ctx};
  return rn_float_args_end(&floats, block_back(&floats, size));
}

static const rn_kernel_def_t rows[] = {
    RN_LSTM_ROW("LSTMBlockCellGrad", cell_grad),
    RN_LSTM_ROW("BlockLSTMGrad", block_grad),
    RN_LSTM_ROW("BlockLSTMGradV2", block_grad),
};
RN_KERNEL_FAMILY(cpu_lstm_grad, rows);

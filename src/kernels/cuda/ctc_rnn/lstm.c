// LSTM cells, single steps and sequences, forward: cells.cu has what follows the matrix products.
#include "kernels/cuda/ctc_rnn/lstm.h"

#include "kernels/cuda/math/matmul.h"

// |outs| are i, cs, f, o, ci, co, h of all steps; |in| are x, cs_prev, h_prev, w, wci, wcf, wco, b.
// |gates| has the products of x and w, to which each step adds those of h.
static rn_status_t steps(rn_kernel_ctx_t* ctx, rn_lstm_size_t size, const float* const in[8],
                         float* gates, float* const outs[7]) {
  const rn_lstm_t* lstm = ctx->state;
  const int64_t plane = size.batch * size.cell;
  const bool peeps = lstm->has_peephole;
  for (int64_t t = 0; t < size.steps; ++t) {
    const int64_t at = t * plane;
    rn_cuda_matmul_t product = {.dtype = RN_FLOAT,
                                .m = size.batch,
                                .n = 4 * size.cell,
                                .k = size.cell,
                                .a = t ? outs[6] + at - plane : in[2],
                                .b = in[3] + size.input * 4 * size.cell,
                                .c = gates + 4 * at,
                                .beta = 1};
    RN_RETURN_IF_ERROR(rn_cuda_matmul(ctx, &product));
    rn_cuda_lstm_args args = {.gates = gates + 4 * at,
                              .cs_prev = t ? outs[1] + at - plane : in[1],
                              .wci = peeps ? in[4] : NULL,
                              .wcf = peeps ? in[5] : NULL,
                              .wco = peeps ? in[6] : NULL,
                              .b = in[7],
                              .i = outs[0] + at,
                              .cs = outs[1] + at,
                              .f = outs[2] + at,
                              .o = outs[3] + at,
                              .ci = outs[4] + at,
                              .co = outs[5] + at,
                              .h = outs[6] + at,
                              .batch = size.batch,
                              .cell = size.cell,
                              .forget_bias = lstm->forget_bias,
                              .clip = lstm->cell_clip,
                              .at_i = lstm->i,
                              .at_ci = lstm->ci,
                              .at_f = lstm->f,
                              .at_o = lstm->o};
    RN_RETURN_IF_ERROR(rn_cuda_each(ctx, "ctc_rnn/cells/lstm", plane, &args, sizeof args));
  }
  return RN_OK;
}

// |first| is the number of the input x.
static rn_status_t forward_in(rn_float_args_t* floats, rn_lstm_size_t size, int first,
                              rn_shape_t shape) {
  rn_kernel_ctx_t* ctx = floats->ctx;
  float* outs[7];
  const float* in[8];
  for (int o = 0; o < 7; ++o)
    RN_RETURN_IF_ERROR(rn_cuda_floats_out(floats, o, shape, size.steps < size.time, &outs[o]));
  const int64_t rows = size.steps * size.batch;
  if (rows == 0 || size.cell == 0) return RN_OK;
  for (int i = 0; i < 8; ++i) RN_RETURN_IF_ERROR(rn_cuda_floats_in(floats, first + i, &in[i]));
  rn_tensor_t gates = {0};
  RN_RETURN_IF_ERROR(
      rn_temp(ctx, RN_FLOAT, (rn_shape_t){2, (int64_t[]){rows, 4 * size.cell}}, &gates));
  // The contribution of the inputs depends on no earlier step: one product for all steps.
  rn_cuda_matmul_t product = {.dtype = RN_FLOAT,
                              .m = rows,
                              .n = 4 * size.cell,
                              .k = size.input,
                              .a = in[0],
                              .b = in[3],
                              .c = gates.data};
  rn_status_t status = size.input ? rn_cuda_matmul(ctx, &product) : rn_cuda_zero(ctx, &gates);
  if (rn_ok(status)) status = steps(ctx, size, in, gates.data, outs);
  rn_tensor_clear(&gates);
  return status;
}

static rn_status_t forward(rn_kernel_ctx_t* ctx, rn_lstm_size_t size, int first, rn_shape_t shape) {
  rn_float_args_t floats = {.ctx = ctx};
  return rn_cuda_floats_end(&floats, forward_in(&floats, size, first, shape));
}

static rn_status_t cell(rn_kernel_ctx_t* ctx) {
  rn_lstm_size_t size;
  RN_RETURN_IF_ERROR(rn_lstm_check_cell(ctx, &size));
  const int64_t dims[2] = {size.batch, size.cell};
  return forward(ctx, size, 0, (rn_shape_t){2, dims});
}

static rn_status_t block(rn_kernel_ctx_t* ctx) {
  rn_lstm_size_t size;
  RN_RETURN_IF_ERROR(rn_lstm_check_block(ctx, &size));
  const int64_t dims[3] = {size.time, size.batch, size.cell};
  return forward(ctx, size, 1, (rn_shape_t){3, dims});
}

static const rn_kernel_def_t rows[] = {
    RN_CUDA_LSTM_ROW("LSTMBlockCell", NULL, cell),
    RN_CUDA_LSTM_ROW("BlockLSTM", RN_HOST_ARGS("seq_len_max"), block),
    RN_CUDA_LSTM_ROW("BlockLSTMV2", RN_HOST_ARGS("seq_len_max"), block),
};
RN_KERNEL_FAMILY(cuda_lstm, rows);

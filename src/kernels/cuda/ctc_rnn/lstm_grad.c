// LSTM cells, backward.
#include "kernels/cuda/ctc_rnn/lstm.h"
#include "kernels/cuda/math/matmul.h"

static rn_status_t step_back(rn_kernel_ctx_t* ctx, rn_cuda_lstm_back_args* args,
                             const rn_lstm_size_t* size, const float* const peepholes[3]) {
  const rn_lstm_t* lstm = ctx->state;
  args->batch = size->batch;
  args->cell = size->cell;
  args->at_i = lstm->i;
  args->at_ci = lstm->ci;
  args->at_f = lstm->f;
  args->at_o = lstm->o;
  if (lstm->has_peephole)
    args->wci = peepholes[0], args->wcf = peepholes[1], args->wco = peepholes[2];
  RN_RETURN_IF_ERROR(
      rn_cuda_each(ctx, "ctc_rnn/cells/lstm_back", size->batch * size->cell, args, sizeof *args));
  if (!lstm->has_peephole) return RN_OK;
  return rn_cuda_each(ctx, "ctc_rnn/cells/lstm_peepholes", size->cell, args, sizeof *args);
}

static rn_status_t cell_grad_in(rn_float_args_t* floats) {
  rn_kernel_ctx_t* ctx = floats->ctx;
  rn_lstm_size_t size;
  RN_RETURN_IF_ERROR(rn_lstm_check_cell_grad(ctx, &size));
  const int64_t dims[2] = {size.batch, size.cell}, gate_dims[2] = {size.batch, 4 * size.cell};
  const float *in[16], *peepholes[3];
  for (int i = 0; i < 16; ++i) RN_RETURN_IF_ERROR(rn_cuda_floats_in(floats, i, &in[i]));
  for (int i = 0; i < 3; ++i) peepholes[i] = in[4 + i];
  rn_cuda_lstm_back_args args = {.cs_prev = in[1],
                                 .i = in[8],
                                 .cs = in[9],
                                 .f = in[10],
                                 .o = in[11],
                                 .ci = in[12],
                                 .co = in[13],
                                 .cs_grad = in[14],
                                 .h_grad = in[15]};
  const rn_shape_t vector = {1, &size.cell};
  RN_RETURN_IF_ERROR(
      rn_cuda_floats_out(floats, 0, (rn_shape_t){2, dims}, true, &args.cs_prev_grad));
  RN_RETURN_IF_ERROR(rn_cuda_floats_out(floats, 1, (rn_shape_t){2, gate_dims}, true, &args.gates));
  RN_RETURN_IF_ERROR(rn_cuda_floats_out(floats, 2, vector, true, &args.wci_grad));
  RN_RETURN_IF_ERROR(rn_cuda_floats_out(floats, 3, vector, true, &args.wcf_grad));
  RN_RETURN_IF_ERROR(rn_cuda_floats_out(floats, 4, vector, true, &args.wco_grad));
  return step_back(ctx, &args, &size, peepholes);
}

static rn_status_t cell_grad(rn_kernel_ctx_t* ctx) {
  rn_float_args_t floats = {.ctx = ctx};
  return rn_cuda_floats_end(&floats, cell_grad_in(&floats));
}

// A whole sequence.
typedef struct cuda_lstm_back_t {
  rn_lstm_size_t size;
  const float* in[18];  // the inputs
  float* outs[8];       // gradients of x, cs_prev, h_prev, w, wci, wcf, wco, b
  float* gates;         // steps x batch x 4 cell
} cuda_lstm_back_t;

// Runs the sequence backwards; leaves the gradients of the initial cell state and output.
static rn_status_t back_steps(rn_kernel_ctx_t* ctx, cuda_lstm_back_t* b) {
  const rn_lstm_size_t size = b->size;
  const int64_t plane = size.batch * size.cell;
  for (int64_t t = size.steps - 1; t >= 0; --t) {
    const int64_t at = t * plane;
    const bool is_last = t == size.steps - 1;
    rn_cuda_lstm_back_args args = {.cs_prev = t ? b->in[10] + at - plane : b->in[2],
                                   .i = b->in[9] + at,
                                   .cs = b->in[10] + at,
                                   .f = b->in[11] + at,
                                   .o = b->in[12] + at,
                                   .ci = b->in[13] + at,
                                   .co = b->in[14] + at,
                                   .cs_grad = b->in[16] + at,
                                   .h_grad = b->in[17] + at,
                                   .cs_next = is_last ? NULL : b->outs[1],
                                   .h_next = is_last ? NULL : b->outs[2],
                                   .gates = b->gates + 4 * at,
                                   .cs_prev_grad = b->outs[1],
                                   .wci_grad = b->outs[4],
                                   .wcf_grad = b->outs[5],
                                   .wco_grad = b->outs[6]};
    RN_RETURN_IF_ERROR(step_back(ctx, &args, &size, &b->in[5]));
    rn_cuda_matmul_t product = {.dtype = RN_FLOAT,
                                .transpose_b = true,
                                .m = size.batch,
                                .n = size.cell,
                                .k = 4 * size.cell,
                                .a = b->gates + 4 * at,
                                .b = b->in[4] + size.input * 4 * size.cell,
                                .c = b->outs[2]};
    RN_RETURN_IF_ERROR(rn_cuda_matmul(ctx, &product));
  }
  return RN_OK;
}

// The products that depend on no order: those of x for all steps at once. The h before a step is
// that of the step before, so all but the first are one product too.
static rn_status_t back_products(rn_kernel_ctx_t* ctx, cuda_lstm_back_t* b) {
  const rn_lstm_size_t size = b->size;
  const int64_t rows = size.steps * size.batch, width = 4 * size.cell;
  rn_cuda_matmul_t product = {.dtype = RN_FLOAT,
                              .transpose_a = true,
                              .m = size.cell,
                              .n = width,
                              .k = size.batch,
                              .a = b->in[3],
                              .b = b->gates,
                              .c = b->outs[3] + size.input * width};
  RN_RETURN_IF_ERROR(rn_cuda_matmul(ctx, &product));
  if (size.steps > 1) {
    product.k = rows - size.batch;
    product.a = b->in[15];
    product.b = b->gates + size.batch * width;
    product.beta = 1;
    RN_RETURN_IF_ERROR(rn_cuda_matmul(ctx, &product));
  }
  if (size.input > 0) {
    rn_cuda_matmul_t inputs = {.dtype = RN_FLOAT,
                               .transpose_b = true,
                               .m = rows,
                               .n = size.input,
                               .k = width,
                               .a = b->gates,
                               .b = b->in[4],
                               .c = b->outs[0]};
    RN_RETURN_IF_ERROR(rn_cuda_matmul(ctx, &inputs));
    product = (rn_cuda_matmul_t){.dtype = RN_FLOAT,
                                 .transpose_a = true,
                                 .m = size.input,
                                 .n = width,
                                 .k = rows,
                                 .a = b->in[1],
                                 .b = b->gates,
                                 .c = b->outs[3]};
    RN_RETURN_IF_ERROR(rn_cuda_matmul(ctx, &product));
  }
  rn_cuda_lstm_sums_args sums = {b->gates, b->outs[7], rows, width};
  return rn_cuda_each(ctx, "ctc_rnn/cells/lstm_bias", width, &sums, sizeof sums);
}

static rn_status_t block_grad_in(rn_float_args_t* floats) {
  rn_kernel_ctx_t* ctx = floats->ctx;
  cuda_lstm_back_t b = {0};
  RN_RETURN_IF_ERROR(rn_lstm_check_block_grad(ctx, &b.size));
  for (int i = 1; i < 18; ++i) RN_RETURN_IF_ERROR(rn_cuda_floats_in(floats, i, &b.in[i]));
  for (int o = 0; o < 8; ++o)
    RN_RETURN_IF_ERROR(
        rn_cuda_floats_out(floats, o, rn_tensor_shape(rn_in(ctx, o + 1)), true, &b.outs[o]));
  const int64_t dims[3] = {b.size.steps, b.size.batch, 4 * b.size.cell};
  if (b.size.steps == 0 || b.size.batch == 0 || b.size.cell == 0) return RN_OK;
  rn_tensor_t gates = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){3, dims}, &gates));
  b.gates = gates.data;
  rn_status_t status = back_steps(ctx, &b);
  if (rn_ok(status)) status = back_products(ctx, &b);
  rn_tensor_clear(&gates);
  return status;
}

static rn_status_t block_grad(rn_kernel_ctx_t* ctx) {
  rn_float_args_t floats = {.ctx = ctx};
  return rn_cuda_floats_end(&floats, block_grad_in(&floats));
}

static const rn_kernel_def_t rows[] = {
    RN_CUDA_LSTM_ROW("LSTMBlockCellGrad", NULL, cell_grad),
    RN_CUDA_LSTM_ROW("BlockLSTMGrad", RN_HOST_ARGS("seq_len_max"), block_grad),
    RN_CUDA_LSTM_ROW("BlockLSTMGradV2", RN_HOST_ARGS("seq_len_max"), block_grad),
};
RN_KERNEL_FAMILY(cuda_lstm_grad, rows);

// GRU cells, forward and backward: cells.cu has what is between the matrix products.
#include "kernels/cpu/ctc_rnn/gru.h"

#include "kernels/cuda/ctc_rnn/cells_args.h"
#include "kernels/cuda/math/matmul.h"

// |out| = |a|, rows of length |k|, times |w|, of |n| columns; added to |out| if |adds|.
static rn_status_t multiply(rn_kernel_ctx_t* ctx, int64_t m, int64_t n, int64_t k, const float* a,
                            const float* w, bool adds, float* out) {
  rn_cuda_matmul_t product = {
      .dtype = RN_FLOAT, .m = m, .n = n, .k = k, .a = a, .b = w, .c = out, .beta = adds ? 1 : 0};
  return k ? rn_cuda_matmul(ctx, &product) : RN_OK;
}
// The same with |w| transposed.
static rn_status_t multiply_back(rn_kernel_ctx_t* ctx, int64_t m, int64_t n, int64_t k,
                                 const float* a, const float* w, bool adds, float* out) {
  rn_cuda_matmul_t product = {.dtype = RN_FLOAT,
                              .transpose_b = true,
                              .m = m,
                              .n = n,
                              .k = k,
                              .a = a,
                              .b = w,
                              .c = out,
                              .beta = adds ? 1 : 0};
  return n ? rn_cuda_matmul(ctx, &product) : RN_OK;
}

static rn_status_t forward(rn_kernel_ctx_t* ctx, rn_gru_size_t s, rn_cuda_gru_args* args,
                           float* gates, float* sums) {
  const float *x = rn_in(ctx, 0)->data, *w_ru = rn_in(ctx, 2)->data, *w_c = rn_in(ctx, 3)->data;
  const int64_t plane = s.batch * s.cell;
  const float* h_w = w_ru + s.input * 2 * s.cell;
  RN_RETURN_IF_ERROR(multiply(ctx, s.batch, 2 * s.cell, s.cell, args->h_prev, h_w, false, gates));
  RN_RETURN_IF_ERROR(multiply(ctx, s.batch, 2 * s.cell, s.input, x, w_ru, true, gates));
  RN_RETURN_IF_ERROR(rn_cuda_each(ctx, "ctc_rnn/cells/gru_gates", plane, args, sizeof *args));
  RN_RETURN_IF_ERROR(
      multiply(ctx, s.batch, s.cell, s.cell, args->reset, w_c + s.input * s.cell, false, sums));
  RN_RETURN_IF_ERROR(multiply(ctx, s.batch, s.cell, s.input, x, w_c, true, sums));
  return rn_cuda_each(ctx, "ctc_rnn/cells/gru_state", plane, args, sizeof *args);
}

static rn_status_t cell(rn_kernel_ctx_t* ctx) {
  rn_gru_size_t s;
  RN_RETURN_IF_ERROR(rn_gru_check(ctx, &s));
  const int64_t dims[2] = {s.batch, s.cell}, scratch_dims[3] = {4, s.batch, s.cell};
  rn_tensor_t *outs[4], scratch = {0};
  for (int o = 0; o < 4; ++o)
    RN_RETURN_IF_ERROR(rn_output(ctx, o, (rn_shape_t){2, dims}, &outs[o]));
  const int64_t plane = s.batch * s.cell;
  if (plane == 0) return RN_OK;
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){3, scratch_dims}, &scratch));
  float *gates = scratch.data, *sums = gates + 2 * plane;
  rn_cuda_gru_args args = {.gates = gates,
                           .sums = sums,
                           .h_prev = rn_in(ctx, 1)->data,
                           .b_ru = rn_in(ctx, 4)->data,
                           .b_c = rn_in(ctx, 5)->data,
                           .r = outs[0]->data,
                           .u = outs[1]->data,
                           .c = outs[2]->data,
                           .h = outs[3]->data,
                           .reset = sums + plane,
                           .batch = s.batch,
                           .cell = s.cell};
  rn_status_t status = forward(ctx, s, &args, gates, sums);
  rn_tensor_clear(&scratch);
  return status;
}

static rn_status_t back(rn_kernel_ctx_t* ctx, rn_gru_size_t s, rn_cuda_gru_back_args* args,
                        float* reset, float* dx) {
  const float *w_ru = rn_in(ctx, 2)->data, *w_c = rn_in(ctx, 3)->data;
  const int64_t plane = s.batch * s.cell;
  RN_RETURN_IF_ERROR(rn_cuda_each(ctx, "ctc_rnn/cells/gru_back_state", plane, args, sizeof *args));
  RN_RETURN_IF_ERROR(multiply_back(ctx, s.batch, s.input, s.cell, args->dc, w_c, false, dx));
  RN_RETURN_IF_ERROR(
      multiply_back(ctx, s.batch, s.cell, s.cell, args->dc, w_c + s.input * s.cell, false, reset));
  RN_RETURN_IF_ERROR(rn_cuda_each(ctx, "ctc_rnn/cells/gru_back_gates", plane, args, sizeof *args));
  RN_RETURN_IF_ERROR(multiply_back(ctx, s.batch, s.input, 2 * s.cell, args->dru, w_ru, true, dx));
  return multiply_back(ctx, s.batch, s.cell, 2 * s.cell, args->dru, w_ru + s.input * 2 * s.cell,
                       true, args->dh_prev);
}

static rn_status_t cell_grad(rn_kernel_ctx_t* ctx) {
  rn_gru_size_t s;
  RN_RETURN_IF_ERROR(rn_gru_check(ctx, &s));
  const int64_t columns[4] = {s.input, s.cell, s.cell, 2 * s.cell};
  rn_tensor_t *outs[4], reset = {0};
  for (int o = 0; o < 4; ++o) {
    const int64_t dims[2] = {s.batch, columns[o]};
    RN_RETURN_IF_ERROR(rn_output(ctx, o, (rn_shape_t){2, dims}, &outs[o]));
  }
  const int64_t dims[2] = {s.batch, s.cell};
  if (s.batch * s.cell == 0) return rn_cuda_zero(ctx, outs[0]);
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){2, dims}, &reset));
  rn_cuda_gru_back_args args = {.h_prev = rn_in(ctx, 1)->data,
                                .r = rn_in(ctx, 6)->data,
                                .u = rn_in(ctx, 7)->data,
                                .c = rn_in(ctx, 8)->data,
                                .dh = rn_in(ctx, 9)->data,
                                .reset = reset.data,
                                .dc = outs[2]->data,
                                .dru = outs[3]->data,
                                .dh_prev = outs[1]->data,
                                .batch = s.batch,
                                .cell = s.cell};
  rn_status_t status = back(ctx, s, &args, reset.data, outs[0]->data);
  rn_tensor_clear(&reset);
  return status;
}

#define ROW(op_, compute_) \
  { .op = op_, .device = "GPU", .flags = RN_KERNEL_REPLAYS, .compute = compute_ }
static const rn_kernel_def_t rows[] = {
    ROW("GRUBlockCell", cell),
    ROW("GRUBlockCellGrad", cell_grad),
};
RN_KERNEL_FAMILY(cuda_gru, rows);

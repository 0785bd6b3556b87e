// Softmax, LogSoftmax and the cross entropies: a row is read once and kept in registers.
#include "kernels/cpu/nn/softmax.h"

#include "kernels/cuda/loops.h"
#include "kernels/cuda/nn/softmax_args.h"

typedef struct cuda_softmax_t {
  bool is_log;
} cuda_softmax_t;

static rn_status_t softmax_init(const rn_kernel_init_t* init, void* state) {
  ((cuda_softmax_t*)state)->is_log = rn_str_is(rn_str(init->op->name), "LogSoftmax");
  return RN_OK;
}

// A row's logits less their maximum, the sum of their exponentials, and their share in it. There is
// one division per row.
typedef struct shifted_t {
  int logits, sum, share;
} shifted_t;

static shifted_t shift(rn_jit_program_t* program, int x) {
  shifted_t shifted;
  shifted.logits = rn_jit_op2(program, RN_SCALAR_SUB, x, rn_jit_reduce(program, RN_JIT_MAX, x));
  int exps = rn_jit_op1(program, RN_SCALAR_EXP, shifted.logits);
  shifted.sum = rn_jit_reduce(program, RN_JIT_SUM, exps);
  shifted.share = rn_jit_op2(program, RN_SCALAR_MUL, exps,
                             rn_jit_op1(program, RN_SCALAR_RECIPROCAL, shifted.sum));
  return shifted;
}

static rn_jit_sizes_t rows_of(int64_t rows, int64_t columns) {
  return (rn_jit_sizes_t){.count = rows * columns,
                          .outer = rows,
                          .reduced = columns,
                          .inner = 1,
                          .dims = {rows, columns}};
}

static rn_status_t softmax(rn_kernel_ctx_t* ctx) {
  const cuda_softmax_t* state = ctx->state;
  const rn_tensor_t* logits = rn_in(ctx, 0);
  RN_RETURN_IF_ERROR(rn_softmax_check(logits));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output_like(ctx, 0, 0, &out));
  if (out->count == 0) return RN_OK;
  rn_jit_program_t program;
  rn_jit_operand_t operand = {.address = (uintptr_t)logits->data};
  rn_jit_begin(&program, 0, 0);
  shifted_t row =
      shift(&program, rn_jit_input(&program, logits->dtype, RN_JIT_LINEAR, RN_JIT_FULL));
  int result = state->is_log ? rn_jit_op2(&program, RN_SCALAR_SUB, row.logits,
                                          rn_jit_op1(&program, RN_SCALAR_LOG, row.sum))
                             : row.share;
  rn_jit_output(&program, result, out->dtype);
  int64_t columns = rn_tensor_dim(logits, logits->rank - 1);
  rn_jit_sizes_t sizes = rows_of(out->count / columns, columns);
  return rn_cuda_run(ctx, &program, &sizes, &operand, &out);
}

// |in| as a matrix of |sizes|, to which it broadcasts.
static int matrix(rn_jit_program_t* program, const rn_tensor_t* in, const rn_jit_sizes_t* sizes,
                  rn_jit_operand_t* operand) {
  int64_t rows = in->rank == 2 ? rn_tensor_dim(in, 0) : 1;
  int64_t columns = in->rank ? rn_tensor_dim(in, in->rank - 1) : 1;
  *operand = (rn_jit_operand_t){.address = (uintptr_t)in->data,
                                .strides = {rows == 1 ? 0 : columns, columns == 1 ? 0 : 1}};
  rn_jit_access_t access = in->count == sizes->count ? RN_JIT_LINEAR : RN_JIT_STRIDED;
  return rn_jit_input(program, in->dtype, access, RN_JIT_FULL);
}

static rn_status_t cross_entropy(rn_kernel_ctx_t* ctx) {
  int64_t dims[2] = {0};
  RN_RETURN_IF_ERROR(rn_cross_entropy_check(rn_in(ctx, 0), rn_in(ctx, 1), dims));
  rn_tensor_t *loss = NULL, *gradient = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, dims}, &loss));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, (rn_shape_t){2, dims}, &gradient));
  if (dims[0] == 0) return RN_OK;
  if (dims[1] == 0) return rn_cuda_zero(ctx, loss);
  rn_jit_program_t program, *p = &program;
  rn_jit_operand_t operands[2];
  rn_jit_sizes_t sizes = rows_of(dims[0], dims[1]);
  rn_jit_begin(p, 2, 0);
  int logits = matrix(p, rn_in(ctx, 0), &sizes, &operands[0]);
  int labels = matrix(p, rn_in(ctx, 1), &sizes, &operands[1]);
  shifted_t row = shift(p, logits);
  int distance = rn_jit_op2(p, RN_SCALAR_SUB, rn_jit_op1(p, RN_SCALAR_LOG, row.sum), row.logits);
  int losses = rn_jit_op2(p, RN_SCALAR_MUL, labels, distance);
  rn_jit_output(p, rn_jit_reduce(p, RN_JIT_SUM, losses), loss->dtype);
  rn_jit_output(p, rn_jit_op2(p, RN_SCALAR_SUB, row.share, labels), gradient->dtype);
  return rn_cuda_run(ctx, p, &sizes, operands, (rn_tensor_t* const[]){loss, gradient});
}

// Labels that are no class give NaN, as on stock's GPUs.
static rn_status_t sparse_cross_entropy(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *logits = rn_in(ctx, 0), *labels = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(rn_sparse_cross_entropy_check(logits, labels));
  rn_tensor_t *loss = NULL, *gradient = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(labels), &loss));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, rn_tensor_shape(logits), &gradient));
  if (labels->count == 0) return RN_OK;
  softmax_args args = {.logits = logits->data,
                       .labels = labels->data,
                       .loss = loss->data,
                       .gradient = gradient->data,
                       .rows = labels->count,
                       .columns = rn_tensor_dim(logits, 1),
                       .has_wide_labels = labels->dtype == RN_INT64};
  bool is_short = args.columns <= 32 * SOFTMAX_KEPT;
  rn_cuda_name_t name = rn_cuda_name(
      is_short ? "nn/softmax/sparse_by_warps" : "nn/softmax/sparse_by_blocks", logits->dtype);
  int64_t blocks = is_short ? (args.rows + 3) / 4 : args.rows, most = 1 << 20;
  rn_cuda_grid_t grid = {.x = (unsigned)(blocks < most ? blocks : most),
                         .block_x = is_short ? 128 : 512};
  return rn_cuda_launch(ctx, name.text, grid, &args, sizeof args);
}

// What step/split_losses.c left of it.
static rn_status_t sparse_rows(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *logits = rn_in(ctx, 0), *labels = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(rn_sparse_cross_entropy_check(logits, labels));
  rn_tensor_t* out[3] = {NULL};
  int64_t dims[2] = {labels->count, 1};
  for (int o = 0; o < 3; ++o)
    RN_RETURN_IF_ERROR(rn_output(ctx, o, (rn_shape_t){o ? 2 : 1, dims}, &out[o]));
  if (labels->count == 0) return RN_OK;
  softmax_rows_args args = {.of = {.logits = logits->data,
                                   .labels = labels->data,
                                   .loss = out[0]->data,
                                   .rows = labels->count,
                                   .columns = rn_tensor_dim(logits, 1),
                                   .has_wide_labels = labels->dtype == RN_INT64},
                            .log_sum = out[1]->data,
                            .label = out[2]->data};
  const int64_t most = 1 << 20;
  rn_cuda_grid_t grid = {.x = (unsigned)(labels->count < most ? labels->count : most),
                         .block_x = 512};
  return rn_cuda_launch(ctx, rn_cuda_name("nn/softmax/sparse_rows", logits->dtype).text, grid,
                        &args, sizeof args);
}

#define ROW(name, function)                                                                     \
  {                                                                                             \
    .op = name, .device = "GPU", .types = {{"T", RN_TYPES_FLOATS}}, .flags = RN_KERNEL_REPLAYS, \
    .state_size = sizeof(cuda_softmax_t), .init = softmax_init, .compute = function             \
  }

static const rn_kernel_def_t rows[] = {
    ROW("Softmax", softmax),
    ROW("LogSoftmax", softmax),
    ROW("SoftmaxCrossEntropyWithLogits", cross_entropy),
    ROW("SparseSoftmaxCrossEntropyWithLogits", sparse_cross_entropy),
    {.op = "_SparseCrossEntropy",
     .device = "GPU",
     .types = {{"T", RN_T(HALF) | RN_T(BFLOAT16) | RN_T(FLOAT)}},
     .flags = RN_KERNEL_REPLAYS,
     .compute = sparse_rows},
};
RN_KERNEL_FAMILY(cuda_softmax, rows);

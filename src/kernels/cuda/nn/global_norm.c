// BatchNormWithGlobalNormalization, whose mean and variance are inputs, and its gradient.
#include "kernels/cpu/nn/global_norm.h"

#include "kernels/cuda/loops.h"

// 1 / sqrt(variance + epsilon).
static int inverse_of(rn_jit_program_t* p, const rn_kernel_ctx_t* ctx, int variance) {
  const rn_global_norm_t* state = ctx->state;
  int epsilon = rn_jit_constant(p, rn_in(ctx, 0)->dtype, state->epsilon);
  return rn_jit_op1(p, RN_SCALAR_RSQRT, rn_jit_op2(p, RN_SCALAR_ADD, variance, epsilon));
}

// Input |i| of the kernel as input |*count| of the program: the image, or a vector per channel.
static int add_input(rn_jit_program_t* p, const rn_kernel_ctx_t* ctx, int i,
                     rn_jit_operand_t* operands) {
  const rn_tensor_t* in = rn_in(ctx, i);
  operands[p->input_count] =
      (rn_jit_operand_t){.address = (uintptr_t)in->data, .period = rn_tensor_dim(in, in->rank - 1)};
  return rn_jit_input(p, in->dtype, in->rank == 4 ? RN_JIT_LINEAR : RN_JIT_ROW, RN_JIT_FULL);
}

static rn_status_t norm(rn_kernel_ctx_t* ctx) {
  const rn_global_norm_t* state = ctx->state;
  RN_RETURN_IF_ERROR(rn_global_norm_check(ctx));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(rn_in(ctx, 0)), &out));
  if (out->count == 0) return RN_OK;
  rn_jit_program_t program, *p = &program;
  rn_jit_operand_t operands[5];
  rn_jit_begin(p, 0, 0);
  int x = add_input(p, ctx, 0, operands), mean = add_input(p, ctx, 1, operands);
  int scale = inverse_of(p, ctx, add_input(p, ctx, 2, operands));
  int beta = add_input(p, ctx, 3, operands);
  if (state->scales) scale = rn_jit_op2(p, RN_SCALAR_MUL, scale, add_input(p, ctx, 4, operands));
  int shift = rn_jit_op2(p, RN_SCALAR_SUB, beta, rn_jit_op2(p, RN_SCALAR_MUL, mean, scale));
  rn_jit_output(p, rn_jit_op3(p, RN_SCALAR_MULTIPLY_ADD, x, scale, shift), out->dtype);
  return rn_cuda_run(ctx, p, &(rn_jit_sizes_t){.count = out->count}, operands, &out);
}

// dx = dy * scale.
static rn_status_t image_gradient(rn_kernel_ctx_t* ctx, rn_tensor_t* dx) {
  const rn_global_norm_t* state = ctx->state;
  rn_jit_program_t program, *p = &program;
  rn_jit_operand_t operands[3];
  rn_jit_begin(p, 0, 0);
  int dy = add_input(p, ctx, 4, operands);
  int scale = inverse_of(p, ctx, add_input(p, ctx, 2, operands));
  if (state->scales) scale = rn_jit_op2(p, RN_SCALAR_MUL, scale, add_input(p, ctx, 3, operands));
  rn_jit_output(p, rn_jit_op2(p, RN_SCALAR_MUL, dy, scale), dx->dtype);
  return rn_cuda_run(ctx, p, &(rn_jit_sizes_t){.count = dx->count}, operands, &dx);
}

// An input of one element per channel, for what comes after the sums.
static int add_vector(rn_jit_program_t* p, const rn_tensor_t* in, rn_jit_operand_t* operands) {
  operands[p->input_count] = (rn_jit_operand_t){.address = (uintptr_t)in->data};
  return rn_jit_input(p, in->dtype, RN_JIT_LINEAR, RN_JIT_REDUCED);
}

// The gradients of mean, variance, beta and gamma come from the sums of dy and of dy (x - mean).
static rn_status_t vector_gradients(rn_kernel_ctx_t* ctx, rn_tensor_t* const* out) {
  const rn_global_norm_t* state = ctx->state;
  const rn_tensor_t* image = rn_in(ctx, 0);
  const rn_dtype_t dtype = image->dtype;
  rn_jit_program_t program, *p = &program;
  rn_jit_operand_t operands[5];
  rn_jit_begin(p, 0, 0);
  int x = add_input(p, ctx, 0, operands), mean = add_input(p, ctx, 1, operands);
  int dy = add_input(p, ctx, 4, operands);
  int sum = rn_jit_reduce(p, RN_JIT_SUM, dy);
  int product = rn_jit_op2(p, RN_SCALAR_MUL, dy, rn_jit_op2(p, RN_SCALAR_SUB, x, mean));
  int products = rn_jit_reduce(p, RN_JIT_SUM, product);
  int inverse = inverse_of(p, ctx, add_vector(p, rn_in(ctx, 2), operands)), scale = inverse;
  if (state->scales)
    scale = rn_jit_op2(p, RN_SCALAR_MUL, inverse, add_vector(p, rn_in(ctx, 3), operands));
  int square = rn_jit_op2(p, RN_SCALAR_MUL, scale, rn_jit_op1(p, RN_SCALAR_SQUARE, inverse));
  int half = rn_jit_op2(p, RN_SCALAR_MUL, products, rn_jit_constant(p, dtype, -0.5));
  rn_jit_output(p, rn_jit_op2(p, RN_SCALAR_MUL, rn_jit_op1(p, RN_SCALAR_NEG, sum), scale), dtype);
  rn_jit_output(p, rn_jit_op2(p, RN_SCALAR_MUL, half, square), dtype);
  rn_jit_output(p, sum, dtype);
  if (state->scales) rn_jit_output(p, rn_jit_op2(p, RN_SCALAR_MUL, products, inverse), dtype);
  const int64_t depth = rn_tensor_dim(image, 3);
  rn_jit_sizes_t sizes = {
      .count = image->count, .outer = 1, .reduced = image->count / depth, .inner = depth};
  RN_RETURN_IF_ERROR(rn_cuda_run(ctx, p, &sizes, operands, out));
  return state->scales ? RN_OK : rn_cuda_zero(ctx, out[3]);
}

static rn_status_t norm_gradient(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(rn_global_norm_grad_check(ctx));
  rn_tensor_t* out[5] = {NULL};
  for (int i = 0; i < 5; ++i)
    RN_RETURN_IF_ERROR(rn_output(ctx, i, rn_tensor_shape(rn_in(ctx, i ? 1 : 0)), &out[i]));
  for (int i = 1; i < 5 && out[0]->count == 0; ++i) RN_RETURN_IF_ERROR(rn_cuda_zero(ctx, out[i]));
  if (out[0]->count == 0) return RN_OK;
  RN_RETURN_IF_ERROR(image_gradient(ctx, out[0]));
  return vector_gradients(ctx, out + 1);
}

#define ROW(name, function)                                                                 \
  {                                                                                         \
    .op = name, .device = "GPU", .types = {{"T", RN_T(HALF) | RN_T(FLOAT) | RN_T(DOUBLE)}}, \
    .flags = RN_KERNEL_REPLAYS, .state_size = sizeof(rn_global_norm_t),                     \
    .init = rn_global_norm_init, .compute = function                                        \
  }

static const rn_kernel_def_t rows[] = {
    ROW("BatchNormWithGlobalNormalization", norm),
    ROW("BatchNormWithGlobalNormalizationGrad", norm_gradient),
};
RN_KERNEL_FAMILY(cuda_global_norm, rows);

// BiasAdd, its gradient, and L2Loss.
#include "kernels/cpu/nn/bias.h"

#include "kernels/cuda/ahead.h"
#include "kernels/cuda/jit/shapes.h"
#include "kernels/cuda/loops.h"

static rn_status_t bias_init(const rn_kernel_init_t* init, void* state) {
  RN_RETURN_IF_ERROR(rn_bias_init(init, state));
  rn_cuda_rehearse(init, state);
  return RN_OK;
}

static rn_status_t add(rn_kernel_ctx_t* ctx) {
  const rn_bias_state_t* state = ctx->state;
  const rn_tensor_t *x = rn_in(ctx, 0), *bias = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(rn_bias_check(x, bias, state->is_nchw));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output_like(ctx, 0, 0, &out));
  if (out->count == 0) return RN_OK;
  const rn_bias_view_t view = rn_bias_view(x, state->is_nchw);
  const rn_shape_t shapes[] = {{3, (const int64_t[]){view.outer, view.channels, view.inner}},
                               {3, (const int64_t[]){1, view.channels, 1}}};
  rn_jit_view_t space;
  rn_jit_operand_t operands[2] = {{0}, {0}};
  RN_RETURN_IF_ERROR(rn_jit_broadcast(shapes[0], shapes, 2, &space, operands));
  rn_jit_program_t program;
  int values[2];
  rn_jit_begin(&program, space.rank, 0);
  for (int k = 0; k < 2; ++k) {
    operands[k].address = (uintptr_t)rn_in(ctx, k)->data;
    values[k] = rn_jit_input(&program, x->dtype, space.access[k], RN_JIT_FULL);
  }
  rn_jit_output(&program, rn_jit_op2(&program, RN_SCALAR_ADD, values[0], values[1]), out->dtype);
  return rn_cuda_run(ctx, &program, &space.sizes, operands, &out);
}

static rn_status_t add_gradient(rn_kernel_ctx_t* ctx) {
  const rn_bias_state_t* state = ctx->state;
  const rn_tensor_t* dy = rn_in(ctx, 0);
  RN_RETURN_IF_ERROR(rn_bias_grad_check(dy));
  const rn_bias_view_t view = rn_bias_view(dy, state->is_nchw);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &view.channels}, &out));
  if (dy->count == 0) return rn_cuda_zero(ctx, out);
  rn_jit_view_t space;
  rn_jit_operand_t operand = {0};
  const int64_t dims[] = {view.outer, view.channels, view.inner};
  RN_RETURN_IF_ERROR(
      rn_jit_reduction((rn_shape_t){3, dims}, (const bool[]){true, false, true}, &space, &operand));
  operand.address = (uintptr_t)dy->data;
  rn_jit_program_t program;
  rn_jit_begin(&program, space.rank, 0);
  int x = rn_jit_input(&program, dy->dtype, space.access[0], RN_JIT_FULL);
  rn_jit_output(&program, rn_jit_reduce(&program, RN_JIT_SUM, x), out->dtype);
  return rn_cuda_run(ctx, &program, &space.sizes, &operand, &out);
}

// Half the sum of squares.
static rn_status_t loss(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* in = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  rn_jit_program_t program;
  rn_jit_operand_t operand = {.address = (uintptr_t)in->data};
  rn_jit_begin(&program, 0, 0);
  int x = rn_jit_input(&program, in->dtype, RN_JIT_LINEAR, RN_JIT_FULL);
  int sum = rn_jit_reduce(&program, RN_JIT_SUM, rn_jit_op1(&program, RN_SCALAR_SQUARE, x));
  int half = rn_jit_constant(&program, in->dtype, 0.5);
  rn_jit_output(&program, rn_jit_op2(&program, RN_SCALAR_MUL, sum, half), out->dtype);
  rn_jit_sizes_t sizes = {.count = in->count, .outer = 1, .reduced = in->count, .inner = 1};
  return rn_cuda_run(ctx, &program, &sizes, &operand, &out);
}

static const rn_kernel_def_t rows[] = {
    {.op = "BiasAdd",
     .device = "GPU",
     .types = {{"T", RN_TYPES_NUMBERS}},
     .flags = RN_KERNEL_REPLAYS | RN_KERNEL_IN_PLACE,
     .state_size = sizeof(rn_bias_state_t),
     .init = bias_init,
     .compute = add},
    {.op = "BiasAddV1",
     .device = "GPU",
     .types = {{"T", RN_TYPES_NUMBERS}},
     .flags = RN_KERNEL_REPLAYS | RN_KERNEL_IN_PLACE,
     .state_size = sizeof(rn_bias_state_t),
     .compute = add},
    {.op = "BiasAddGrad",
     .device = "GPU",
     .types = {{"T", RN_TYPES_NUMBERS}},
     .flags = RN_KERNEL_REPLAYS,
     .state_size = sizeof(rn_bias_state_t),
     .init = bias_init,
     .compute = add_gradient},
    {.op = "L2Loss",
     .device = "GPU",
     .types = {{"T", RN_TYPES_FLOATS}},
     .flags = RN_KERNEL_REPLAYS,
     .compute = loss},
};
RN_KERNEL_FAMILY(cuda_bias, rows);

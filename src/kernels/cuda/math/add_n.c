// AddN: the sum of many tensors, each read once.
#include "kernels/cpu/broadcasting.h"
#include "kernels/cuda/loops.h"

// Tensors per program. More are summed piece by piece.
#define PIECE 32

// out = the sum of inputs [begin, end). If |first| is one of the inputs, |out| holds that one, or
// the sum so far: it is added, and the input is skipped.
static rn_status_t add_piece(rn_kernel_ctx_t* ctx, int first, int begin, int end,
                             rn_tensor_t* out) {
  rn_jit_program_t program;
  rn_jit_operand_t operands[PIECE + 1] = {{.address = (uintptr_t)out->data}};
  rn_jit_begin(&program, 0, 0);
  int count = 0, sum = -1;
  if (first >= 0) sum = rn_jit_input(&program, out->dtype, RN_JIT_LINEAR, RN_JIT_FULL), count = 1;
  for (int i = begin; i < end; ++i) {
    if (i == first) continue;
    operands[count++].address = (uintptr_t)rn_in(ctx, i)->data;
    int x = rn_jit_input(&program, out->dtype, RN_JIT_LINEAR, RN_JIT_FULL);
    sum = sum < 0 ? x : rn_jit_op2(&program, RN_SCALAR_ADD, sum, x);
  }
  rn_jit_output(&program, sum, out->dtype);
  return rn_cuda_run(ctx, &program, &(rn_jit_sizes_t){.count = out->count}, operands, &out);
}

static rn_status_t add_n(rn_kernel_ctx_t* ctx) {
  const int inputs = ctx->kernel->input_count;
  const rn_tensor_t* shape = rn_in(ctx, 0);
  for (int i = 1; i < inputs; ++i)
    if (!rn_tensor_same_shape(shape, rn_in(ctx, i))) return rn_same_shape_error(ctx, i);
  rn_tensor_t* out = NULL;
  uint64_t all = inputs < 64 ? (UINT64_C(1) << inputs) - 1 : UINT64_MAX;
  RN_RETURN_IF_ERROR(rn_output_in_place(ctx, 0, all, rn_tensor_shape(shape), &out));
  if (out->count == 0) return RN_OK;
  // If there are several pieces and the output is one of the inputs, that one comes first.
  int first = -1;
  for (int i = 0; i < inputs && (inputs > PIECE || inputs == 1); ++i)
    if (rn_in(ctx, i)->data == out->data) first = i;
  if (inputs == 1 && first == 0) return RN_OK;
  for (int i = 0; i < inputs; i += PIECE) {
    RN_RETURN_IF_ERROR(add_piece(ctx, first, i, i + PIECE < inputs ? i + PIECE : inputs, out));
    if (first < 0) first = 0;
  }
  return RN_OK;
}

#define ROW(name)                                                     \
  {                                                                   \
    .op = name, .device = "GPU", .types = {{"T", RN_TYPES_NUMBERS}},  \
    .flags = RN_KERNEL_REPLAYS | RN_KERNEL_IN_PLACE, .compute = add_n \
  }
static const rn_kernel_def_t rows[] = {ROW("AddN"), ROW("AccumulateNV2")};
RN_KERNEL_FAMILY(cuda_add_n, rows);

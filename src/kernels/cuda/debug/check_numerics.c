// CheckNumerics: a reduction on the card, for whose result the host waits. Not replayed.
#include "kernels/cpu/debug/check_numerics.h"

#include "kernels/cuda/array/scan.h"
#include "kernels/cuda/loops.h"

// Three bytes in |found|: whether |x| has NaN, positive and negative infinities.
static rn_status_t find(rn_kernel_ctx_t* ctx, const rn_tensor_t* x, rn_tensor_t* found) {
  rn_jit_program_t program;
  rn_jit_operand_t operand = {.address = (uintptr_t)x->data, .period = 1};
  rn_jit_sizes_t sizes = {.count = x->count, .outer = 1, .reduced = x->count, .inner = 1};
  rn_jit_begin(&program, 1, 0);
  int value = rn_jit_input(&program, x->dtype, RN_JIT_LINEAR, RN_JIT_FULL);
  int zero = rn_jit_constant(&program, x->dtype, 0);
  int is_inf = rn_jit_op1(&program, RN_SCALAR_IS_INF, value);
  int signs[2] = {rn_jit_op2(&program, RN_SCALAR_GREATER, value, zero),
                  rn_jit_op2(&program, RN_SCALAR_LESS, value, zero)};
  int odd[3] = {rn_jit_op1(&program, RN_SCALAR_IS_NAN, value),
                rn_jit_op2(&program, RN_SCALAR_LOGICAL_AND, is_inf, signs[0]),
                rn_jit_op2(&program, RN_SCALAR_LOGICAL_AND, is_inf, signs[1])};
  rn_tensor_t parts[3];
  rn_tensor_t* outputs[3];
  for (int i = 0; i < 3; ++i) {
    rn_jit_output(&program, rn_jit_reduce(&program, RN_JIT_ANY, odd[i]), RN_BOOL);
    parts[i] = *found;
    parts[i].data = (char*)found->data + i;
    outputs[i] = &parts[i];
  }
  return rn_cuda_run(ctx, &program, &sizes, &operand, outputs);
}

static rn_status_t check_numerics(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* x = rn_in(ctx, 0);
  if (x->count == 0) return rn_forward(ctx, 0, 0);
  const int64_t entries = 3;
  rn_tensor_t found = {0};
  bool odd[3] = {false};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_BOOL, (rn_shape_t){1, &entries}, &found));
  rn_status_t status = find(ctx, x, &found);
  if (rn_ok(status)) status = rn_cuda_read(ctx, found.data, sizeof odd, odd);
  rn_tensor_clear(&found);
  RN_RETURN_IF_ERROR(status);
  RN_RETURN_IF_ERROR(rn_check_numerics_report(ctx->state, (rn_odd_t){odd[0], odd[1], odd[2]}));
  return rn_forward(ctx, 0, 0);
}

#define ROW(name)                                                                                \
  {                                                                                              \
    .op = name, .device = "GPU", .types = {{"T", RN_TYPES_FLOATS}}, .flags = RN_KERNEL_FORWARDS, \
    .state_size = sizeof(rn_check_numerics_t), .init = rn_check_numerics_init,                   \
    .destroy = rn_check_numerics_destroy, .compute = check_numerics                              \
  }
static const rn_kernel_def_t rows[] = {ROW("CheckNumerics"), ROW("CheckNumericsV2")};
RN_KERNEL_FAMILY(cuda_check_numerics, rows);

// AssignAdd and AssignSub, of references and of resources: programs of one operation that write
// into the variable's own buffer.
#include "kernels/cpu/array.h"
#include "kernels/cpu/state/variable.h"
#include "kernels/cuda/loops.h"

static rn_status_t update_init(const rn_kernel_init_t* init, void* state) {
  *(rn_scalar_code_t*)state = strstr(init->op->name, "Sub") ? RN_SCALAR_SUB : RN_SCALAR_ADD;
  return RN_OK;
}

static rn_status_t update_locked(rn_kernel_ctx_t* ctx, rn_variable_t* variable) {
  RN_RETURN_IF_ERROR(rn_variable_check_update_locked(ctx, variable));
  const rn_tensor_t* value = rn_in(ctx, 1);
  if (value->count == 0) return RN_OK;
  rn_tensor_t* into = &variable->value;
  const rn_jit_operand_t operands[] = {{.address = (uintptr_t)into->data, .period = 1},
                                       {.address = (uintptr_t)value->data, .period = 1}};
  const rn_jit_sizes_t sizes = {.count = value->count, .dims = {value->count}};
  rn_jit_program_t program;
  rn_jit_begin(&program, 1, 0);
  int old = rn_jit_input(&program, value->dtype, RN_JIT_LINEAR, RN_JIT_FULL);
  int more = rn_jit_input(&program, value->dtype, RN_JIT_LINEAR, RN_JIT_FULL);
  rn_jit_output(&program, rn_jit_op2(&program, *(rn_scalar_code_t*)ctx->state, old, more),
                value->dtype);
  return rn_cuda_run(ctx, &program, &sizes, operands, &into);
}

static rn_status_t update(rn_kernel_ctx_t* ctx) { return rn_variable_update(ctx, update_locked); }

#define UPDATE(name, attr)                                                                        \
  {                                                                                               \
    .op = name, .device = "GPU", .types = {{attr, RN_TYPES_NUMBERS}}, .flags = RN_KERNEL_REPLAYS, \
    .state_size = sizeof(rn_scalar_code_t), .init = update_init, .compute = update                \
  }
static const rn_kernel_def_t rows[] = {
    UPDATE("AssignAdd", "T"),
    UPDATE("AssignSub", "T"),
    UPDATE("AssignAddVariableOp", "dtype"),
    UPDATE("AssignSubVariableOp", "dtype"),
};
RN_KERNEL_FAMILY(cuda_assign, rows);

// Building programs: see program.h.
#include "kernels/cuda/jit/program.h"

void rn_jit_begin(rn_jit_program_t* program, int rank, unsigned flags) {
  program->rank = (uint8_t)rank;
  program->flags = (uint8_t)flags;
  program->input_count = program->output_count = program->reduction_count = 0;
  program->passes = 0;
  program->value_count = 0;
  program->complaint = rank < 0 || rank > RN_JIT_MAX_RANK ? "the rank is over the limit" : NULL;
}

static int fail(rn_jit_program_t* program, const char* complaint) {
  if (!program->complaint) program->complaint = complaint;
  return -1;
}

// A new value without operands, or NULL.
static rn_jit_value_t* add(rn_jit_program_t* program, rn_jit_value_kind_t kind, rn_dtype_t dtype,
                           unsigned code) {
  if (program->complaint) return NULL;
  if (program->value_count == RN_JIT_MAX_VALUES) {
    fail(program, "there are too many values");
    return NULL;
  }
  if (!rn_scalar_type_name(dtype)) {
    fail(program, "a value has a type that loops do not have");
    return NULL;
  }
  rn_jit_value_t* value = &program->values[program->value_count++];
  memset(value, 0, sizeof *value);
  value->kind = (uint8_t)kind;
  value->dtype = (uint8_t)dtype;
  value->space = RN_JIT_REDUCED;
  value->code = (uint16_t)code;
  for (int i = 0; i < RN_JIT_MAX_OPERANDS; ++i) value->operands[i] = -1;
  return value;
}

static int last(const rn_jit_program_t* program) { return program->value_count - 1; }

static bool is_value(const rn_jit_program_t* program, int value) {
  return value >= 0 && value < program->value_count;
}

static void use(rn_jit_program_t* program, rn_jit_value_t* value, int index, int operand) {
  const rn_jit_value_t* source = &program->values[operand];
  value->operands[index] = (int16_t)operand;
  if (source->space > value->space) value->space = source->space;
  if (source->passes > value->passes) value->passes = source->passes;
}

int rn_jit_input(rn_jit_program_t* program, rn_dtype_t dtype, rn_jit_access_t access,
                 rn_jit_space_t space) {
  if (program->input_count == RN_JIT_MAX_INPUTS) return fail(program, "there are too many inputs");
  if (access == RN_JIT_SCALAR || access == RN_JIT_HOST) space = RN_JIT_REDUCED;
  if (space == RN_JIT_REDUCED && access > RN_JIT_HOST)
    return fail(program, "an input of the reduced space is broadcast");
  if (access == RN_JIT_STRIDED && program->rank == 0)
    return fail(program, "a strided input needs a space with dimensions");
  rn_jit_value_t* value = add(program, RN_JIT_INPUT, dtype, program->input_count);
  if (!value) return -1;
  value->space = (uint8_t)space;
  program->inputs[program->input_count++] =
      (rn_jit_input_t){(uint8_t)dtype, (uint8_t)access, (uint8_t)space};
  return last(program);
}

int rn_jit_constant(rn_jit_program_t* program, rn_dtype_t dtype, double number) {
  rn_jit_value_t* value = add(program, RN_JIT_CONSTANT, dtype, 0);
  if (!value) return -1;
  value->number = number;
  return last(program);
}

int rn_jit_op(rn_jit_program_t* program, rn_scalar_code_t code, const int* operands) {
  const rn_scalar_op_t* op = rn_scalar_op(code);
  for (int i = 0; i < op->operands; ++i)
    if (!is_value(program, operands[i])) return fail(program, "an operand does not exist");
  const bool selects = code == RN_SCALAR_SELECT;
  const rn_dtype_t dtype = program->values[operands[selects]].dtype;
  for (int i = 0; i < op->operands; ++i)
    if (program->values[operands[i]].dtype != (selects && i == 0 ? RN_BOOL : dtype))
      return fail(program, "operands have different types");
  const rn_dtype_t result = rn_scalar_result(code, dtype);
  if (result == RN_INVALID) return fail(program, "an operation is not defined for its type");
  rn_jit_value_t* value = add(program, RN_JIT_OP, result, code);
  if (!value) return -1;
  for (int i = 0; i < op->operands; ++i) use(program, value, i, operands[i]);
  return last(program);
}

int rn_jit_cast(rn_jit_program_t* program, int operand, rn_dtype_t dtype) {
  if (!is_value(program, operand)) return fail(program, "an operand does not exist");
  if (program->values[operand].dtype == dtype) return operand;
  rn_jit_value_t* value = add(program, RN_JIT_CAST, dtype, 0);
  if (!value) return -1;
  use(program, value, 0, operand);
  return last(program);
}

int rn_jit_reduce(rn_jit_program_t* program, rn_jit_reduction_t kind, int operand) {
  if (!is_value(program, operand)) return fail(program, "an operand does not exist");
  const rn_jit_value_t* source = &program->values[operand];
  if (source->space != RN_JIT_FULL) return fail(program, "a reduced value cannot be reduced again");
  if (program->reduction_count == RN_JIT_MAX_REDUCTIONS)
    return fail(program, "there are too many reductions");
  const bool is_logical = kind == RN_JIT_ANY || kind == RN_JIT_ALL;
  const bool finds = kind == RN_JIT_ARG_MAX || kind == RN_JIT_ARG_MIN;
  const bool is_float = rn_dtype_is_floating(source->dtype);
  if (is_logical != (source->dtype == RN_BOOL) || (kind == RN_JIT_VARIANCE && !is_float) ||
      ((kind == RN_JIT_MAX || kind == RN_JIT_MIN || finds) && rn_dtype_is_complex(source->dtype)))
    return fail(program, "a reduction is not defined for its type");
  rn_jit_value_t* value = add(program, RN_JIT_REDUCE, finds ? RN_INT64 : source->dtype, kind);
  if (!value) return -1;
  use(program, value, 0, operand);
  value->space = RN_JIT_REDUCED;
  ++value->passes;
  ++program->reduction_count;
  if (value->passes > program->passes) program->passes = value->passes;
  return last(program);
}

void rn_jit_output(rn_jit_program_t* program, int value, rn_dtype_t dtype) {
  value = rn_jit_cast(program, value, dtype);
  if (program->complaint) return;
  if (program->output_count == RN_JIT_MAX_OUTPUTS) {
    fail(program, "there are too many outputs");
  } else {
    program->outputs[program->output_count++] = (int16_t)value;
  }
}

rn_status_t rn_jit_check(const rn_jit_program_t* program) {
  if (program->complaint)
    return rn_invalid_argument("The loop program is invalid: %s", program->complaint);
  if (program->output_count == 0)
    return rn_invalid_argument("The loop program is invalid: it has no output");
  for (int i = 0; program->reduction_count == 0 && i < program->input_count; ++i)
    if (program->inputs[i].access == RN_JIT_LINEAR && program->inputs[i].space == RN_JIT_REDUCED)
      return rn_invalid_argument(
          "The loop program is invalid: it reads a reduced input but reduces nothing");
  return RN_OK;
}

void rn_jit_mark_live(const rn_jit_program_t* program, bool* live) {
  for (int i = 0; i < program->value_count; ++i) live[i] = program->values[i].kind == RN_JIT_REDUCE;
  for (int i = 0; i < program->output_count; ++i) live[program->outputs[i]] = true;
  for (int i = program->value_count - 1; i >= 0; --i)
    for (int k = 0; live[i] && k < RN_JIT_MAX_OPERANDS; ++k)
      if (program->values[i].operands[k] >= 0) live[program->values[i].operands[k]] = true;
}

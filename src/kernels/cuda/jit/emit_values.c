// Emits the values of programs, their loads and their stores. See emitter.h.
#include "kernels/cuda/jit/emitter.h"

const char* rn_jit_type(rn_dtype_t dtype) { return rn_scalar_type_name(dtype); }

void rn_jit_close(const rn_jit_emitter_t* e, rn_jit_set_t* set) {
  for (int i = e->program->value_count - 1; i >= 0; --i) {
    if (e->have.has[i]) set->has[i] = false;
    if (!set->has[i]) continue;
    // A reduction ends a pass: its operand is needed in an earlier one.
    for (int k = 0; k < RN_JIT_MAX_OPERANDS; ++k) {
      const int operand = rn_jit_value(e, i)->operands[k];
      if (operand >= 0 && rn_jit_value(e, i)->kind != RN_JIT_REDUCE && !e->kept.has[i])
        set->has[operand] = true;
    }
  }
}

// A number of the source, exactly.
static void emit_constant(rn_jit_emitter_t* e, const rn_jit_value_t* value) {
  const rn_dtype_t dtype = value->dtype;
  uint64_t bits;
  memcpy(&bits, &value->number, sizeof bits);
  if (dtype == RN_BOOL)
    rn_strbuf_printf(e->out, "%s", value->number != 0 ? "true" : "false");
  else if (rn_dtype_is_integer(rn_dtype_stored(dtype)))
    rn_strbuf_printf(e->out, "%s(%lldll)", rn_jit_type(dtype), (long long)value->number);
  else
    rn_strbuf_printf(e->out, "rn_of<%s>(rn_real_of<rn_of<%s>>(rn_double_from_bits(0x%llxull)))",
                     rn_jit_type(dtype), rn_jit_type(dtype), (unsigned long long)bits);
}

static void emit_op(rn_jit_emitter_t* e, const rn_jit_value_t* value) {
  const rn_scalar_op_t* op = rn_scalar_op(value->code);
  const int typed = value->code == RN_SCALAR_SELECT;  // the operand that gives the type
  rn_strbuf_printf(e->out, "rn_op_%s<%s>(", op->function,
                   rn_jit_type(rn_jit_value(e, value->operands[typed])->dtype));
  for (int i = 0; i < op->operands; ++i)
    rn_strbuf_printf(e->out, "%sv%d", i ? ", " : "", value->operands[i]);
  rn_strbuf_printf(e->out, ")");
}

static void emit_value(rn_jit_emitter_t* e, int index, const char* suffix) {
  const rn_jit_value_t* value = rn_jit_value(e, index);
  const char* type = rn_jit_type(value->dtype);
  if (e->kept.has[index]) {
    rn_strbuf_printf(e->out, "const rn_of<%s> v%d = z%d%s.at[v];\n", type, index, index, suffix);
    return;
  }
  const bool rounds = value->kind == RN_JIT_OP && (e->program->flags & RN_JIT_ROUNDS) &&
                      (value->dtype == RN_HALF || value->dtype == RN_BFLOAT16);
  rn_strbuf_printf(e->out, "const rn_of<%s> v%d = ", type, index);
  if (rounds) rn_strbuf_printf(e->out, "rn_round_to<%s>(", type);
  if (value->kind == RN_JIT_INPUT)
    rn_strbuf_printf(e->out, "rn_of<%s>(x%d%s.at[v])", type, value->code, suffix);
  else if (value->kind == RN_JIT_CONSTANT)
    emit_constant(e, value);
  else if (value->kind == RN_JIT_CAST)
    rn_strbuf_printf(e->out, "rn_cast<%s, %s>(v%d)", type,
                     rn_jit_type(rn_jit_value(e, value->operands[0])->dtype), value->operands[0]);
  else
    emit_op(e, value);
  rn_strbuf_printf(e->out, "%s;\n", rounds ? ")" : "");
}

void rn_jit_emit_values(rn_jit_emitter_t* e, const rn_jit_set_t* set, const char* suffix) {
  for (int i = 0; i < e->program->value_count; ++i) {
    if (!set->has[i] || e->have.has[i]) continue;
    emit_value(e, i, suffix);
    e->have.has[i] = true;
  }
}

int rn_jit_next_read(const rn_jit_emitter_t* e, const rn_jit_set_t* set, int input) {
  for (int i = 0; i < e->program->value_count; ++i) {
    const rn_jit_value_t* value = rn_jit_value(e, i);
    if (set->has[i] && value->kind == RN_JIT_INPUT && value->space == RN_JIT_FULL &&
        value->code > input)
      return value->code;
  }
  return -1;
}

// The number of ROW and COLUMN inputs, or of STRIDED ones, before |input|.
static int count_before(const rn_jit_emitter_t* e, int input, bool strided) {
  int count = 0;
  for (int i = 0; i < input; ++i) {
    const int access = e->program->inputs[i].access;
    count += strided ? access == RN_JIT_STRIDED : access == RN_JIT_ROW || access == RN_JIT_COLUMN;
  }
  return count;
}

// Where the element i + v of |input| is.
static void emit_place(rn_jit_emitter_t* e, int input, const char* at) {
  const int access = e->program->inputs[input].access;
  if (access == RN_JIT_LINEAR)
    rn_strbuf_printf(e->out, "%s", at);
  else if (access == RN_JIT_STRIDED)
    rn_strbuf_printf(e->out, "%s_offset%d(args, %s)", e->name, input, at);
  else
    rn_strbuf_printf(e->out, "%s(%s, args.by[%d])",
                     access == RN_JIT_ROW ? "rn_remainder" : "rn_quotient", at,
                     e->layout.first_period + count_before(e, input, false));
}

void rn_jit_emit_load(rn_jit_emitter_t* e, int input, int vector, const char* suffix) {
  const int access = e->program->inputs[input].access;
  const char* type = rn_jit_type(e->program->inputs[input].dtype);
  const bool whole = e->variant->whole || vector == 1;
  rn_strbuf_t* out = e->out;
  const bool is_unit = vector > 1 && (e->variant->unit >> input & 1);
  const bool is_flat = vector > 1 && (e->variant->flat >> input & 1);
  if (access == RN_JIT_LINEAR || (access == RN_JIT_ROW && whole) || is_unit) {
    rn_strbuf_printf(out, "x%d%s = rn_load<%s, %d>(p%d + ", input, suffix, type, vector, input);
    emit_place(e, input, "i");
    rn_strbuf_printf(out, ");\n");
  } else if ((access == RN_JIT_COLUMN && whole) || is_flat) {
    rn_strbuf_printf(out, "x%d%s = rn_splat<%s, %d>(p%d[", input, suffix, type, vector, input);
    emit_place(e, input, "i");
    rn_strbuf_printf(out, "]);\n");
  } else if (access == RN_JIT_STRIDED && whole) {
    rn_strbuf_printf(out, "{ const %s* from = p%d + ", type, input);
    emit_place(e, input, "i");
    const int last = (count_before(e, input, true) + 1) * e->program->rank - 1;
    rn_strbuf_printf(out, ";\n#pragma unroll\nfor (int v = 0; v < %d; ++v) ", vector);
    rn_strbuf_printf(out, "x%d%s.at[v] = from[v * args.stride[%d]]; }\n", input, suffix, last);
  } else {
    rn_strbuf_printf(out, "\n#pragma unroll\nfor (int v = 0; v < %d; ++v) x%d%s.at[v] = p%d[",
                     vector, input, suffix, input);
    emit_place(e, input, "i + v");
    rn_strbuf_printf(out, "];\n");
  }
}

void rn_jit_emit_loads(rn_jit_emitter_t* e, const rn_jit_set_t* set, int vector) {
  for (int k = rn_jit_next_read(e, set, -1); k >= 0; k = rn_jit_next_read(e, set, k)) {
    rn_strbuf_printf(e->out, "rn_vec<%s, %d> x%d; ", rn_jit_type(e->program->inputs[k].dtype),
                     vector, k);
    rn_jit_emit_load(e, k, vector, "");
  }
}

void rn_jit_emit_pointers(rn_jit_emitter_t* e) {
  int host = 0;
  for (int i = 0; i < e->program->input_count; ++i) {
    const rn_jit_input_t* input = &e->program->inputs[i];
    const char* type = rn_jit_type(input->dtype);
    if (input->access == RN_JIT_HOST) {
      rn_strbuf_printf(e->out, "%s h%d; RN_COPY_BYTES(&h%d, &args.host[%d], sizeof h%d);\n", type,
                       i, i, 2 * host++, i);
      continue;
    }
    rn_strbuf_printf(e->out, "const %s* const p%d = (const %s*)args.data[%d];\n", type, i, type, i);
  }
  for (int i = 0; i < e->program->output_count; ++i) {
    const char* type = rn_jit_type(rn_jit_value(e, e->program->outputs[i])->dtype);
    rn_strbuf_printf(e->out, "%s* const q%d = (%s*)args.data[%d];\n", type, i, type,
                     e->program->input_count + i);
  }
  for (int i = 0; i < e->program->value_count; ++i) {
    const rn_jit_value_t* value = rn_jit_value(e, i);
    if (value->kind != RN_JIT_INPUT || value->space == RN_JIT_FULL || !e->live.has[i]) continue;
    const int access = e->program->inputs[value->code].access;
    if (access == RN_JIT_LINEAR) continue;
    rn_strbuf_printf(e->out, "const rn_of<%s> v%d = rn_of<%s>(%s%d);\n", rn_jit_type(value->dtype),
                     i, rn_jit_type(value->dtype), access == RN_JIT_HOST ? "h" : "*p", value->code);
    e->have.has[i] = true;
  }
}

void rn_jit_emit_stored(rn_jit_emitter_t* e, int output) {
  const int value = e->program->outputs[output];
  rn_strbuf_printf(e->out, "%s(v%d)", rn_jit_type(rn_jit_value(e, value)->dtype), value);
}

void rn_jit_emit_result(rn_jit_emitter_t* e, int output, int vector) {
  const int value = e->program->outputs[output];
  rn_strbuf_printf(e->out, "rn_vec<%s, %d> y%d;\n", rn_jit_type(rn_jit_value(e, value)->dtype),
                   vector, output);
}

void rn_jit_emit_result_element(rn_jit_emitter_t* e, int output) {
  rn_strbuf_printf(e->out, "y%d.at[v] = ", output);
  rn_jit_emit_stored(e, output);
  rn_strbuf_printf(e->out, ";\n");
}

void rn_jit_emit_store(rn_jit_emitter_t* e, int output, int vector) {
  const int value = e->program->outputs[output];
  rn_strbuf_printf(e->out, "rn_save<%s, %d>(q%d + i, y%d);\n",
                   rn_jit_type(rn_jit_value(e, value)->dtype), vector, output, output);
}

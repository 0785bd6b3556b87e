// Keys, the frame of emitted sources, and pointwise loops. See emit.h.
#include "kernels/cuda/jit/emit.h"

#include "base/hash.h"
#include "kernels/cuda/jit/emitter.h"

rn_jit_key_t rn_jit_key(const rn_jit_program_t* program, const rn_jit_variant_t* variant,
                        const rn_jit_target_t* target, uint64_t headers) {
  // Everything that the code depends on, one field after the other: padding is not hashed.
  char bytes[64 + sizeof *variant + RN_JIT_MAX_INPUTS * 3 + RN_JIT_MAX_OUTPUTS * 2 +
             RN_JIT_MAX_VALUES * 20];
  size_t size = 0;
#define PUT(field) (memcpy(bytes + size, &(field), sizeof(field)), size += sizeof(field))
  PUT(headers);
  PUT(target->architecture);
  const uint64_t device = rn_str_hash(rn_str(target->device));
  PUT(device);
  PUT(*variant);
  PUT(program->rank);
  PUT(program->flags);
  PUT(program->input_count);
  PUT(program->output_count);
  for (int i = 0; i < program->input_count; ++i) PUT(program->inputs[i]);
  for (int i = 0; i < program->output_count; ++i) PUT(program->outputs[i]);
  for (int i = 0; i < program->value_count; ++i) {
    const rn_jit_value_t* value = &program->values[i];
    PUT(value->kind);
    PUT(value->dtype);
    PUT(value->code);
    PUT(value->operands);
    PUT(value->number);
  }
#undef PUT
  static const uint64_t keys[2][2] = {{1, 2}, {3, 4}};
  const rn_str_t text = rn_str_n(bytes, size);
  return (rn_jit_key_t){{rn_sip_hash64(text, keys[0]), rn_sip_hash64(text, keys[1])}};
}

static void emit_includes(rn_jit_emitter_t* e) {
  bool special = false, complex = false;
  for (int i = 0; i < e->program->value_count; ++i) {
    const rn_jit_value_t* value = rn_jit_value(e, i);
    if (!e->live.has[i]) continue;
    special |= value->kind == RN_JIT_OP && rn_scalar_op(value->code)->is_special;
    complex |= rn_dtype_is_complex(value->dtype);
  }
  rn_strbuf_printf(e->out, "#include \"prelude.cuh\"\n#include \"scalar_ops.cuh\"\n");
  if (special) rn_strbuf_printf(e->out, "#include \"special_ops.cuh\"\n");
  if (complex) rn_strbuf_printf(e->out, "#include \"complex_ops.cuh\"\n");
  rn_strbuf_printf(e->out, "#include \"loops.cuh\"\n");
}

static void emit_args(rn_jit_emitter_t* e) {
  const rn_jit_layout_t* layout = &e->layout;
  const bool wide = e->variant->wide;
  rn_strbuf_printf(e->out, "struct %s_args {\nvoid* data[%d];\n", e->name, layout->data);
  if (layout->host) rn_strbuf_printf(e->out, "u64 host[%d];\n", layout->host);
  rn_strbuf_printf(e->out, "i64 size[%d];\n", layout->size);
  if (layout->stride)
    rn_strbuf_printf(e->out, "%s stride[%d];\n", wide ? "i64" : "i32", layout->stride);
  if (layout->by) rn_strbuf_printf(e->out, "%s by[%d];\n", wide ? "i64" : "rn_div32", layout->by);
  rn_strbuf_printf(e->out, "};\ntypedef %s %s_index;\n", wide ? "i64" : "u32", e->name);
}

// One function per STRIDED input: the place of element i. The divisions are the same for all, and
// the compiler shares them.
static void emit_offsets(rn_jit_emitter_t* e) {
  const int rank = e->program->rank;
  int stride = 0;
  for (int k = 0; k < e->program->input_count; ++k) {
    if (e->program->inputs[k].access != RN_JIT_STRIDED) continue;
    rn_strbuf_printf(e->out,
                     "RN_DEVICE %s %s_offset%d(const %s_args& args, %s_index i) {\n"
                     "%s at = 0;\n%s_index next;\n",
                     e->variant->wide ? "i64" : "i32", e->name, k, e->name, e->name,
                     e->variant->wide ? "i64" : "i32", e->name);
    for (int d = rank - 1; d > 0; --d)
      rn_strbuf_printf(e->out,
                       "next = rn_quotient(i, args.by[%d]);\n"
                       "at += (i - next * rn_divisor_of(args.by[%d])) * args.stride[%d];\n"
                       "i = next;\n",
                       d - 1, d - 1, stride + d);
    rn_strbuf_printf(e->out, "return at + i * args.stride[%d];\n}\n", stride);
    stride += rank;
  }
}

// The loop's body for |vector| elements from element i on.
static void emit_pointwise_body(rn_jit_emitter_t* e, int vector) {
  const rn_jit_set_t outside = e->have;
  rn_jit_set_t set = {{false}};
  for (int i = 0; i < e->program->output_count; ++i) set.has[e->program->outputs[i]] = true;
  rn_jit_close(e, &set);
  rn_jit_emit_loads(e, &set, vector);
  for (int i = 0; i < e->program->output_count; ++i) rn_jit_emit_result(e, i, vector);
  rn_strbuf_printf(e->out, "#pragma unroll\nfor (int v = 0; v < %d; ++v) {\n", vector);
  rn_jit_emit_values(e, &set, "");
  for (int i = 0; i < e->program->output_count; ++i) rn_jit_emit_result_element(e, i);
  rn_strbuf_printf(e->out, "}\n");
  for (int i = 0; i < e->program->output_count; ++i) rn_jit_emit_store(e, i, vector);
  e->have = outside;
}

static void emit_pointwise(rn_jit_emitter_t* e) {
  const int vector = e->variant->vector;
  rn_strbuf_printf(e->out, "RN_KERNEL(%s, %s_args) {\ntypedef %s_index index;\n", e->name, e->name,
                   e->name);
  rn_jit_emit_pointers(e);
  rn_strbuf_printf(e->out,
                   "const index count = (index)args.size[0], step = (index)rn_threads();\n"
                   "const index whole = count / %d;\n"
                   "for (index c = (index)rn_thread(); c < whole; c += step) {\n"
                   "const index i = c * %d;\n",
                   vector, vector);
  emit_pointwise_body(e, vector);
  rn_strbuf_printf(e->out, "}\n");
  if (vector > 1) {  // the elements after the last whole access
    rn_strbuf_printf(e->out,
                     "for (index i = whole * %d + (index)rn_thread(); i < count; i += step) {\n",
                     vector);
    emit_pointwise_body(e, 1);
    rn_strbuf_printf(e->out, "}\n");
  }
  rn_strbuf_printf(e->out, "}\n");
}

rn_status_t rn_jit_emit(const rn_jit_program_t* program, const rn_jit_variant_t* variant,
                        const char* name, rn_strbuf_t* out) {
  RN_RETURN_IF_ERROR(rn_jit_check(program));
  rn_jit_emitter_t e = {
      .program = program, .variant = variant, .name = name ? name : "rn_jit", .out = out};
  rn_jit_layout(program, variant, &e.layout);
  rn_jit_mark_live(program, e.live.has);
  emit_includes(&e);
  emit_args(&e);
  emit_offsets(&e);
  if (variant->schedule == RN_JIT_POINTWISE)
    emit_pointwise(&e);
  else if (variant->schedule == RN_JIT_COLUMNS)
    rn_jit_emit_columns(&e);
  else
    rn_jit_emit_rows(&e);
  if (variant->split) rn_jit_emit_finish(&e);
  return rn_strbuf_status(out);
}

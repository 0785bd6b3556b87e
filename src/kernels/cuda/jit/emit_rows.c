// Kernels for reductions over rows: inner is 1. See emitter.h.
#include "kernels/cuda/jit/emitter.h"

// Whether output |k| covers the full space and is stored in |pass|.
static bool stores(const rn_jit_emitter_t* e, int k, int pass) {
  const rn_jit_value_t* value = rn_jit_value(e, e->program->outputs[k]);
  return value->space == RN_JIT_FULL && value->passes == pass;
}

void rn_jit_want_pass(const rn_jit_emitter_t* e, int pass, rn_jit_set_t* set) {
  memset(set, 0, sizeof *set);
  RN_JIT_EACH_REDUCTION(e, i)
  if (rn_jit_value(e, i)->passes == pass + 1) set->has[rn_jit_value(e, i)->operands[0]] = true;
  for (int k = 0; k < e->program->output_count; ++k)
    if (stores(e, k, pass)) set->has[e->program->outputs[k]] = true;
  rn_jit_close(e, set);
}

void rn_jit_emit_reductions(rn_jit_emitter_t* e) {
  static const char* const kinds[] = {"sum", "mean", "prod",    "max",     "min",
                                      "any", "all",  "arg_max", "arg_min", "variance"};
  RN_JIT_EACH_REDUCTION(e, i) {
    const rn_jit_value_t* value = rn_jit_value(e, i);
    rn_strbuf_printf(e->out, "typedef rn_reduce_%s<%s> r%d;\n", kinds[value->code],
                     rn_jit_type(rn_jit_value(e, value->operands[0])->dtype), i);
  }
}

void rn_jit_emit_ended(rn_jit_emitter_t* e, int reduction, const char* suffix) {
  const rn_jit_value_t* value = rn_jit_value(e, reduction);
  const char* type = rn_jit_type(value->dtype);
  const bool rounds = e->program->flags & RN_JIT_ROUNDS;
  rn_strbuf_printf(e->out, "const rn_of<%s> v%d = %s%s%sr%d::end(a%d%s, args.size[%d])%s;\n", type,
                   reduction, rounds ? "rn_round_to<" : "", rounds ? type : "", rounds ? ">(" : "",
                   reduction, reduction, suffix, RN_JIT_SIZE_REDUCED, rounds ? ")" : "");
  e->have.has[reduction] = true;
}

// The values of the reduced space that |pass| passes allow.
static void emit_reduced_values(rn_jit_emitter_t* e, int passes) {
  rn_jit_set_t set = {{false}};
  for (int i = 0; i < e->program->value_count; ++i) {
    const rn_jit_value_t* value = rn_jit_value(e, i);
    set.has[i] = e->live.has[i] && value->space == RN_JIT_REDUCED && value->passes == passes &&
                 value->kind != RN_JIT_REDUCE;
  }
  rn_jit_emit_values(e, &set, "");
}

static void emit_reduced_inputs(rn_jit_emitter_t* e) {
  for (int i = 0; i < e->program->value_count; ++i) {
    const rn_jit_value_t* value = rn_jit_value(e, i);
    if (value->kind != RN_JIT_INPUT || value->space == RN_JIT_FULL || !e->live.has[i] ||
        e->have.has[i])
      continue;
    rn_strbuf_printf(e->out, "const rn_of<%s> v%d = rn_of<%s>(p%d[in_row ? row : 0]);\n",
                     rn_jit_type(value->dtype), i, rn_jit_type(value->dtype), value->code);
    e->have.has[i] = true;
  }
}

void rn_jit_emit_pass_body(rn_jit_emitter_t* e, int pass, const rn_jit_set_t* set,
                           const rn_jit_set_t* fresh, const char* suffix, const char* sum_suffix) {
  const int vector = e->variant->vector;
  const bool masked = *suffix;
  for (int k = 0; k < e->program->output_count; ++k)
    if (stores(e, k, pass)) rn_jit_emit_result(e, k, vector);
  rn_strbuf_printf(e->out, "#pragma unroll\nfor (int v = 0; v < %d; ++v) {\n", vector);
  rn_jit_emit_values(e, set, suffix);
  for (int i = 0; fresh && i < e->program->value_count; ++i)
    if (fresh->has[i]) rn_strbuf_printf(e->out, "z%d%s.at[v] = v%d;\n", i, suffix, i);
  RN_JIT_EACH_REDUCTION(e, i) {
    const rn_jit_value_t* value = rn_jit_value(e, i);
    if (value->passes != pass + 1) continue;
    const bool finds = value->code == RN_JIT_ARG_MAX || value->code == RN_JIT_ARG_MIN;
    const char* place = e->variant->schedule == RN_JIT_COLUMNS ? ", row" : ", j + v";
    rn_strbuf_printf(e->out, "%sa%d%s = r%d::add(a%d%s, v%d%s);\n", masked ? "if (in) " : "", i,
                     sum_suffix, i, i, sum_suffix, value->operands[0], finds ? place : "");
  }
  for (int k = 0; k < e->program->output_count; ++k)
    if (stores(e, k, pass)) rn_jit_emit_result_element(e, k);
  rn_strbuf_printf(e->out, "}\n%s", masked ? "if (in) {\n" : "");
  for (int k = 0; k < e->program->output_count; ++k)
    if (stores(e, k, pass)) rn_jit_emit_store(e, k, vector);
  rn_strbuf_printf(e->out, "%s", masked ? "}\n" : "");
}

// "for" over what a thread keeps: chunk k begins at element i, and is part of the row if |in|.
static void emit_kept_loop(rn_jit_emitter_t* e) {
  rn_strbuf_printf(e->out,
                   "#pragma unroll\nfor (int k = 0; k < %d; ++k) {\n"
                   "const index j = (lane + k * width) * %d, i = row * n + j;\n"
                   "const bool in = j < to;\n",
                   e->variant->kept, e->variant->vector);
}

static void emit_kept_loads(rn_jit_emitter_t* e) {
  const int vector = e->variant->vector;
  const rn_jit_set_t* all = &e->live;
  for (int k = rn_jit_next_read(e, all, -1); k >= 0; k = rn_jit_next_read(e, all, k))
    rn_strbuf_printf(e->out, "rn_vec<%s, %d> x%d[%d];\n", rn_jit_type(e->program->inputs[k].dtype),
                     vector, k, e->variant->kept);
  emit_kept_loop(e);
  for (int k = rn_jit_next_read(e, all, -1); k >= 0; k = rn_jit_next_read(e, all, k)) {
    const char* type = rn_jit_type(e->program->inputs[k].dtype);
    rn_strbuf_printf(e->out, "x%d[k] = rn_splat<%s, %d>(%s(0));\nif (in) {\n", k, type, vector,
                     type);
    rn_jit_emit_load(e, k, vector, "[k]");
    rn_strbuf_printf(e->out, "}\n");
  }
  rn_strbuf_printf(e->out, "}\n");
}

// Joins the sums of a pass over the threads of the row, and declares the results.
static void emit_join(rn_jit_emitter_t* e, int pass) {
  const bool by_lanes = e->variant->schedule == RN_JIT_ROWS_BY_LANES;
  int place = 0, count = 0;
  RN_JIT_EACH_REDUCTION(e, i) {
    const bool ends = rn_jit_value(e, i)->passes == pass + 1;
    if (ends && by_lanes)
      rn_strbuf_printf(e->out, "a%d = rn_over_lanes<r%d, %d>(a%d);\n", i, i, e->variant->lanes, i);
    else if (ends)
      rn_strbuf_printf(e->out, "rn_leave_sum<r%d>(a%d, shared + %d);\n", i, i, RN_JIT_SLOT * place);
    ++place;
    count += ends;
  }
  if (!by_lanes && count) rn_strbuf_printf(e->out, "__syncthreads();\n");
  place = 0;
  RN_JIT_EACH_REDUCTION(e, i) {
    const bool ends = rn_jit_value(e, i)->passes == pass + 1;
    if (ends && !by_lanes)
      rn_strbuf_printf(e->out, "a%d = rn_join_sums<r%d>(shared + %d);\n", i, i,
                       RN_JIT_SLOT * place);
    ++place;
    if (ends && !e->variant->split) rn_jit_emit_ended(e, i, "");
  }
}

// Bytes per thread that inputs and values may keep: three quarters of the registers of a thread in
// the largest block.
#define MAX_KEPT_BYTES 192

static size_t register_bytes(rn_dtype_t dtype) {
  const size_t size = rn_dtype_size(rn_dtype_stored(dtype));
  return size < 4 ? 4 : size;
}

// Whether one more value of |dtype| fits into the registers beside what is kept already.
static bool fits(const rn_jit_emitter_t* e, const rn_jit_set_t* fresh, rn_dtype_t dtype) {
  size_t bytes = register_bytes(dtype);
  for (int i = 0; i < e->program->value_count; ++i) {
    const rn_jit_value_t* value = rn_jit_value(e, i);
    const bool is_input = value->kind == RN_JIT_INPUT && value->space == RN_JIT_FULL;
    if ((is_input && e->live.has[i]) || e->kept.has[i] || fresh->has[i])
      bytes += register_bytes(value->dtype);
  }
  bytes *= (size_t)e->variant->kept * e->variant->vector;
  // Blocks of ROWS_BY_LANES are small: their threads have four times as many registers.
  return bytes <= (e->variant->schedule == RN_JIT_ROWS_BY_LANES ? 2 : 1) * MAX_KEPT_BYTES;
}

// Declares z for the costly values of |set| that a later pass needs, too, and marks them.
static void emit_kept_values(rn_jit_emitter_t* e, int pass, const rn_jit_set_t* set,
                             rn_jit_set_t* out) {
  rn_jit_set_t later = {{false}};
  memset(out, 0, sizeof *out);
  if (!e->variant->kept) return;
  for (int next = pass + 1; next <= e->program->passes; ++next) {
    rn_jit_set_t again;
    rn_jit_want_pass(e, next, &again);
    for (int i = 0; i < e->program->value_count; ++i) later.has[i] |= again.has[i];
  }
  for (int i = 0; i < e->program->value_count; ++i) {
    const rn_jit_value_t* value = rn_jit_value(e, i);
    if (!set->has[i] || !later.has[i] || value->kind != RN_JIT_OP || e->kept.has[i] ||
        value->space != RN_JIT_FULL || !rn_scalar_is_costly(value->code) ||
        !fits(e, out, value->dtype))
      continue;
    out->has[i] = true;
    rn_strbuf_printf(e->out, "rn_vec<rn_of<%s>, %d> z%d[%d];\n", rn_jit_type(value->dtype),
                     e->variant->vector, i, e->variant->kept);
  }
}

static void emit_pass(rn_jit_emitter_t* e, int pass) {
  const int vector = e->variant->vector;
  rn_jit_set_t set;
  rn_jit_want_pass(e, pass, &set);
  RN_JIT_EACH_REDUCTION(e, i)
  if (rn_jit_value(e, i)->passes == pass + 1)
    rn_strbuf_printf(e->out, "r%d::sum a%d = r%d::start();\n", i, i, i);
  rn_jit_set_t fresh;
  emit_kept_values(e, pass, &set, &fresh);
  const rn_jit_set_t outside = e->have;
  if (e->variant->kept) {
    emit_kept_loop(e);
    rn_jit_emit_pass_body(e, pass, &set, &fresh, "[k]", "");
  } else {
    rn_strbuf_printf(
        e->out,
        "#pragma unroll 4\nfor (index j = from + lane * %d; j < to; j += width * %d) {\n"
        "const index i = row * n + j;\n",
        vector, vector);
    rn_jit_emit_loads(e, &set, vector);
    rn_jit_emit_pass_body(e, pass, &set, &fresh, "", "");
  }
  rn_strbuf_printf(e->out, "}\n");
  e->have = outside;
  for (int i = 0; i < e->program->value_count; ++i) e->kept.has[i] |= fresh.has[i];
  emit_join(e, pass);
}

static void emit_row_loop(rn_jit_emitter_t* e) {
  if (e->variant->schedule == RN_JIT_ROWS_BY_LANES) {
    const int lanes = e->variant->lanes;
    rn_strbuf_printf(e->out,
                     "const index lane = threadIdx.x %% %d, width = %d, per_block = blockDim.x / "
                     "%d;\nfor (index first = blockIdx.x * per_block; first < rows; first += "
                     "gridDim.x * per_block) {\nconst index row = first + threadIdx.x / %d;\n"
                     "const bool in_row = row < rows;\nconst index from = 0, to = in_row ? n : 0;"
                     "\n",
                     lanes, lanes, lanes, lanes);
    return;
  }
  rn_strbuf_printf(e->out,
                   "RN_SHARED(unsigned char, shared);\n"
                   "const index lane = threadIdx.x, width = blockDim.x;\n"
                   "const bool in_row = true;\n");
  if (e->variant->split)
    rn_strbuf_printf(e->out,
                     "const index chunk = (index)args.size[%d], chunks = (index)args.size[%d];\n"
                     "for (index unit = blockIdx.x; unit < rows * chunks; unit += gridDim.x) {\n"
                     "const index row = unit / chunks, from = (unit %% chunks) * chunk;\n"
                     "const index to = n - from < chunk ? n : from + chunk;\n",
                     RN_JIT_SIZE_CHUNK, RN_JIT_SIZE_CHUNKS);
  else
    rn_strbuf_printf(e->out,
                     "for (index row = blockIdx.x; row < rows; row += gridDim.x) {\n"
                     "const index from = 0, to = n;\n");
}

// What one thread stores per row.
static void emit_row_end(rn_jit_emitter_t* e) {
  rn_strbuf_printf(e->out, "if (lane == 0 && in_row) {\n");
  int place = 0;
  RN_JIT_EACH_REDUCTION(e, i) {
    if (e->variant->split)
      rn_strbuf_printf(e->out, "((r%d::sum*)((char*)args.data[%d] + args.size[%d]))[unit] = a%d;\n",
                       i, e->layout.data - 1, RN_JIT_SIZE_PLACES + place, i);
    ++place;
  }
  for (int k = 0; !e->variant->split && k < e->program->output_count; ++k) {
    if (rn_jit_value(e, e->program->outputs[k])->space == RN_JIT_FULL) continue;
    rn_strbuf_printf(e->out, "q%d[row] = ", k);
    rn_jit_emit_stored(e, k);
    rn_strbuf_printf(e->out, ";\n");
  }
  rn_strbuf_printf(e->out, "}\n");
}

void rn_jit_emit_rows(rn_jit_emitter_t* e) {
  // Blocks of 1024 threads have 64 registers per thread; without the bound the compiler may use
  // more, and the launch fails.
  if (e->variant->schedule == RN_JIT_ROWS_BY_BLOCKS)
    rn_strbuf_printf(e->out,
                     "#ifndef RN_EMULATED\nextern \"C\" __global__ void __launch_bounds__(1024) "
                     "%s(const __grid_constant__ %s_args args);\n#endif\n",
                     e->name, e->name);
  rn_strbuf_printf(e->out, "RN_KERNEL(%s, %s_args) {\ntypedef %s_index index;\n", e->name, e->name,
                   e->name);
  rn_jit_emit_reductions(e);
  rn_jit_emit_pointers(e);
  rn_strbuf_printf(e->out, "const index n = (index)args.size[%d], rows = (index)args.size[%d];\n",
                   RN_JIT_SIZE_REDUCED, RN_JIT_SIZE_OUTER);
  emit_row_loop(e);
  emit_reduced_inputs(e);
  emit_reduced_values(e, 0);
  if (e->variant->kept) emit_kept_loads(e);
  for (int pass = 0; pass <= e->program->passes; ++pass) {
    rn_jit_set_t set;
    rn_jit_want_pass(e, pass, &set);
    bool has_work = false;
    for (int i = 0; i < e->program->value_count; ++i) has_work |= set.has[i];
    if (has_work) emit_pass(e, pass);
    if (!e->variant->split) emit_reduced_values(e, pass + 1);
  }
  emit_row_end(e);
  if (e->variant->schedule == RN_JIT_ROWS_BY_BLOCKS) rn_strbuf_printf(e->out, "__syncthreads();\n");
  rn_strbuf_printf(e->out, "}\n}\n");
}

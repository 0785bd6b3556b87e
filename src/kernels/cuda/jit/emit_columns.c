// Kernels for reductions over columns, and the second kernel of reductions in two stages. See
// emitter.h.
//
// A block is threads x by y: x along the columns, y down the reduced axis. The sums of its y
// threads are joined in shared memory, in halves.
#include <stdio.h>

#include "kernels/cuda/jit/emitter.h"

static void emit_frame(rn_jit_emitter_t* e, const char* name) {
  rn_strbuf_printf(e->out, "RN_KERNEL(%s, %s_args) {\ntypedef %s_index index;\n", name, e->name,
                   e->name);
  rn_jit_emit_reductions(e);
  rn_jit_emit_pointers(e);
  rn_strbuf_printf(
      e->out,
      "RN_SHARED(unsigned char, shared);\n"
      "const index n = (index)args.size[%d], inner = (index)args.size[%d];\n"
      "const index total = (index)args.size[%d] * inner;\n"
      "const index chunk = (index)args.size[%d], chunks = (index)args.size[%d];\n"
      "const u32 threads = blockDim.x * blockDim.y, thread = threadIdx.y * blockDim.x + "
      "threadIdx.x;\n",
      RN_JIT_SIZE_REDUCED, RN_JIT_SIZE_INNER, RN_JIT_SIZE_OUTER, RN_JIT_SIZE_CHUNK,
      RN_JIT_SIZE_CHUNKS);
}

static void emit_sums(rn_jit_emitter_t* e, int vector) {
  RN_JIT_EACH_REDUCTION(e, i)
  rn_strbuf_printf(e->out,
                   "r%d::sum a%d[%d];\n#pragma unroll\nfor (int v = 0; v < %d; ++v) a%d[v] = "
                   "r%d::start();\n",
                   i, i, vector, vector, i, i);
}

// Inputs of the reduced space, for the |vector| columns from q on.
static void emit_column_inputs(rn_jit_emitter_t* e, int vector) {
  for (int i = 0; i < e->program->value_count; ++i) {
    const rn_jit_value_t* value = rn_jit_value(e, i);
    if (value->kind != RN_JIT_INPUT || value->space == RN_JIT_FULL || !e->live.has[i] ||
        e->program->inputs[value->code].access != RN_JIT_LINEAR)
      continue;
    rn_strbuf_printf(e->out,
                     "rn_vec<%s, %d> x%d;\n#pragma unroll\nfor (int v = 0; v < %d; ++v) "
                     "x%d.at[v] = p%d[in_tile ? q + v : 0];\n",
                     rn_jit_type(value->dtype), vector, value->code, vector, value->code,
                     value->code);
  }
}

// Joins the sums down the block; afterwards the threads with y 0 have them.
static void emit_column_join(rn_jit_emitter_t* e, int vector) {
  rn_strbuf_printf(e->out, "u32 at = 0;\n");
  RN_JIT_EACH_REDUCTION(e, i)
  rn_strbuf_printf(e->out,
                   "r%d::sum* const s%d = (r%d::sum*)(shared + at);\n"
                   "at += (threads * %d * (u32)sizeof(r%d::sum) + 15) / 16 * 16;\n"
                   "#pragma unroll\nfor (int v = 0; v < %d; ++v) s%d[thread * %d + v] = a%d[v];\n",
                   i, i, i, vector, i, vector, i, vector, i);
  rn_strbuf_printf(e->out,
                   "__syncthreads();\nfor (u32 half = blockDim.y / 2; half > 0; half /= 2) {\n"
                   "if (threadIdx.y < half) {\nconst u32 other = thread + half * blockDim.x;\n"
                   "#pragma unroll\nfor (int v = 0; v < %d; ++v) {\n",
                   vector);
  RN_JIT_EACH_REDUCTION(e, i)
  rn_strbuf_printf(e->out,
                   "s%d[thread * %d + v] = r%d::join(s%d[thread * %d + v], s%d[other * %d + v]);\n",
                   i, vector, i, i, vector, i, vector);
  rn_strbuf_printf(e->out, "}\n}\n__syncthreads();\n}\n");
}

// Stores the outputs of the reduced space, for column q + v.
static void emit_column_results(rn_jit_emitter_t* e, int vector) {
  const rn_jit_set_t outside = e->have;
  rn_strbuf_printf(e->out,
                   "if (threadIdx.y == 0 && in_tile) {\n#pragma unroll\nfor (int v = 0; v < %d; "
                   "++v) {\n",
                   vector);
  RN_JIT_EACH_REDUCTION(e, i) {
    rn_strbuf_printf(e->out, "a%d[v] = s%d[thread * %d + v];\n", i, i, vector);
    rn_jit_emit_ended(e, i, "[v]");
  }
  rn_jit_set_t set = {{false}};
  for (int k = 0; k < e->program->output_count; ++k)
    if (rn_jit_value(e, e->program->outputs[k])->space == RN_JIT_REDUCED)
      set.has[e->program->outputs[k]] = true;
  rn_jit_close(e, &set);
  rn_jit_emit_values(e, &set, "");
  for (int k = 0; k < e->program->output_count; ++k) {
    if (rn_jit_value(e, e->program->outputs[k])->space == RN_JIT_FULL) continue;
    rn_strbuf_printf(e->out, "q%d[q + v] = ", k);
    rn_jit_emit_stored(e, k);
    rn_strbuf_printf(e->out, ";\n");
  }
  rn_strbuf_printf(e->out, "}\n}\n");
  e->have = outside;
}

// Leaves the sums of a piece in the workspace, [outer, chunks, inner].
static void emit_column_partials(rn_jit_emitter_t* e, int vector) {
  rn_strbuf_printf(e->out,
                   "if (threadIdx.y == 0 && in_tile) {\n#pragma unroll\nfor (int v = 0; v < %d; "
                   "++v) {\n",
                   vector);
  int place = 0;
  RN_JIT_EACH_REDUCTION(e, i)
  rn_strbuf_printf(e->out,
                   "((r%d::sum*)((char*)args.data[%d] + args.size[%d]))[(o * chunks + piece) * "
                   "inner + c + v] = s%d[thread * %d + v];\n",
                   i, e->layout.data - 1, RN_JIT_SIZE_PLACES + place++, i, vector);
  rn_strbuf_printf(e->out, "}\n}\n");
}

void rn_jit_emit_columns(rn_jit_emitter_t* e) {
  const int vector = e->variant->vector;
  emit_frame(e, e->name);
  rn_strbuf_printf(e->out,
                   "const index wide = blockDim.x * %d, tiles = (total + wide - 1) / wide;\n"
                   "for (index unit = blockIdx.x; unit < tiles * chunks; unit += gridDim.x) {\n"
                   "const index piece = unit / tiles, q = (unit - piece * tiles) * wide + "
                   "threadIdx.x * %d;\n"
                   "const bool in_tile = q < total;\n"
                   "const index o = q / inner, c = q - o * inner, from = piece * chunk;\n"
                   "const index to = !in_tile ? 0 : n - from < chunk ? n : from + chunk;\n",
                   vector, vector);
  emit_column_inputs(e, vector);
  emit_sums(e, vector);
  const rn_jit_set_t outside = e->have;
  rn_jit_set_t set;
  rn_jit_want_pass(e, 0, &set);
  rn_strbuf_printf(e->out,
                   "#pragma unroll 4\n"
                   "for (index row = from + threadIdx.y; row < to; row += blockDim.y) {\n"
                   "const index i = (o * n + row) * inner + c;\n");
  rn_jit_emit_loads(e, &set, vector);
  rn_jit_emit_pass_body(e, 0, &set, NULL, "", "[v]");
  rn_strbuf_printf(e->out, "}\n");
  e->have = outside;
  emit_column_join(e, vector);
  if (e->variant->split)
    emit_column_partials(e, vector);
  else
    emit_column_results(e, vector);
  rn_strbuf_printf(e->out, "__syncthreads();\n}\n}\n");
}

void rn_jit_emit_finish(rn_jit_emitter_t* e) {
  char name[128];
  snprintf(name, sizeof name, "%s_finish", e->name);
  memset(&e->have, 0, sizeof e->have);
  emit_frame(e, name);
  rn_strbuf_printf(e->out,
                   "(void)n, (void)chunk;\n"
                   "const index tiles = (total + blockDim.x - 1) / blockDim.x;\n"
                   "for (index tile = blockIdx.x; tile < tiles; tile += gridDim.x) {\n"
                   "const index q = tile * blockDim.x + threadIdx.x;\n"
                   "const bool in_tile = q < total;\n"
                   "const index o = q / inner, c = q - o * inner, to = in_tile ? chunks : 0;\n");
  emit_column_inputs(e, 1);
  emit_sums(e, 1);
  rn_strbuf_printf(e->out,
                   "#pragma unroll 4\nfor (index k = threadIdx.y; k < to; k += blockDim.y) {\n"
                   "const index i = (o * chunks + k) * inner + c;\n");
  int place = 0;
  RN_JIT_EACH_REDUCTION(e, i)
  rn_strbuf_printf(e->out,
                   "a%d[0] = r%d::join(a%d[0], ((const r%d::sum*)((const char*)args.data[%d] + "
                   "args.size[%d]))[i]);\n",
                   i, i, i, i, e->layout.data - 1, RN_JIT_SIZE_PLACES + place++);
  rn_strbuf_printf(e->out, "}\n");
  emit_column_join(e, 1);
  emit_column_results(e, 1);
  rn_strbuf_printf(e->out, "__syncthreads();\n}\n}\n");
}

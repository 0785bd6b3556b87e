// What the emitters of the loop compiler share; private to this folder.
//
// In emitted text, values are v<number>, inputs' pointers p<number>, several elements of an input
// x<number>, of an output y<number>, of a value that later passes read again z<value>, and a
// reduction's type and sum r<value> and a<value>.
#ifndef RUNNEL_KERNELS_CUDA_JIT_EMITTER_H_
#define RUNNEL_KERNELS_CUDA_JIT_EMITTER_H_

#include "kernels/cuda/jit/emit.h"

// Which values: one flag per value of the program.
typedef struct rn_jit_set_t {
  bool has[RN_JIT_MAX_VALUES];
} rn_jit_set_t;

typedef struct rn_jit_emitter_t {
  const rn_jit_program_t* program;
  const rn_jit_variant_t* variant;
  const char* name;  // of the kernel, and the prefix of what is declared outside it
  rn_jit_layout_t layout;
  rn_jit_set_t live;
  rn_jit_set_t have;  // declared in the scope that is being emitted
  rn_jit_set_t kept;  // values that an earlier pass left in z<value>
  rn_strbuf_t* out;
} rn_jit_emitter_t;

static inline const rn_jit_value_t* rn_jit_value(const rn_jit_emitter_t* e, int value) {
  return &e->program->values[value];
}

#define RN_JIT_EACH_REDUCTION(e, i)                   \
  for (int i = 0; i < (e)->program->value_count; ++i) \
    if (rn_jit_value(e, i)->kind == RN_JIT_REDUCE && (e)->live.has[i])

// "float": the element type of |dtype|, which loops have.
const char* rn_jit_type(rn_dtype_t dtype);

// Adds to |set| what its members need that is not declared yet.
void rn_jit_close(const rn_jit_emitter_t* e, rn_jit_set_t* set);
// Declares the members of a closed set in order; inputs of the full space from x<number><suffix>,
// element v.
void rn_jit_emit_values(rn_jit_emitter_t* e, const rn_jit_set_t* set, const char* suffix);
// The number of an input of the full space that |set| reads, after |input|; -1 at the end. Start at
// -1.
int rn_jit_next_read(const rn_jit_emitter_t* e, const rn_jit_set_t* set, int input);
// "x3 = …;": |vector| elements of an input of the full space, from element i on.
void rn_jit_emit_load(rn_jit_emitter_t* e, int input, int vector, const char* suffix);
// Declares and loads what |set| reads: "rn_vec<float, 4> x3 = …;".
void rn_jit_emit_loads(rn_jit_emitter_t* e, const rn_jit_set_t* set, int vector);
// Declares pointers to all operands, and loads what is the same for all elements.
void rn_jit_emit_pointers(rn_jit_emitter_t* e);
// Declares y<number> for output |output|, sets its element v, and stores it from element i on.
void rn_jit_emit_result(rn_jit_emitter_t* e, int output, int vector);
void rn_jit_emit_result_element(rn_jit_emitter_t* e, int output);
void rn_jit_emit_store(rn_jit_emitter_t* e, int output, int vector);
// An output's value as its element type, for a store.
void rn_jit_emit_stored(rn_jit_emitter_t* e, int output);

// What |pass| computes for its reductions and outputs, closed.
void rn_jit_want_pass(const rn_jit_emitter_t* e, int pass, rn_jit_set_t* set);
// Names the types of all reductions.
void rn_jit_emit_reductions(rn_jit_emitter_t* e);
// Declares a reduction's value from its sum a<value><suffix>.
void rn_jit_emit_ended(rn_jit_emitter_t* e, int reduction, const char* suffix);
// The values, sums and stores of |pass| for the elements from i on, once their inputs are loaded to
// x<number><suffix>. With a suffix, elements take part only if |in|. The values of |fresh|, which
// may be NULL, are left in z<value><suffix>.
void rn_jit_emit_pass_body(rn_jit_emitter_t* e, int pass, const rn_jit_set_t* set,
                           const rn_jit_set_t* fresh, const char* suffix, const char* sum_suffix);

// The kernels of programs with reductions.
void rn_jit_emit_rows(rn_jit_emitter_t* e);
void rn_jit_emit_columns(rn_jit_emitter_t* e);
void rn_jit_emit_finish(rn_jit_emitter_t* e);

#endif  // RUNNEL_KERNELS_CUDA_JIT_EMITTER_H_

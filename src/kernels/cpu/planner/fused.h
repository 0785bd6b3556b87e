// Fused chains: several elementwise operations in one pass over memory.
//
// A program is a list of steps over numbered operands: first the inputs, then temporaries, then the
// outputs. Each step is a vector function (vector.h) from operands to an operand. The runner takes
// the arrays block by block and does all steps on a block while it is in the first-level cache:
// temporaries never reach memory. Every step is the very function that the op alone would call, and
// 16-bit floats are rounded after each, so a fused chain gives the bits of the ops one by one.
#ifndef RUNNEL_KERNELS_CPU_PLANNER_FUSED_H_
#define RUNNEL_KERNELS_CPU_PLANNER_FUSED_H_

#include "base/pool.h"
#include "kernels/cpu/vector.h"

#define RN_FUSED_TEMPORARIES 8  // what fits into the first-level cache beside inputs and outputs
#define RN_FUSED_OPERANDS 64    // inputs, temporaries and outputs together

typedef struct rn_fused_step_t {
  uint16_t code;  // rn_vector_code_t
  int16_t a, b;   // operands; |b| is -1 for functions of one argument
  int16_t out;    // a temporary or an output; may be |a| or |b|
} rn_fused_step_t;

// Borrows its steps. Temporaries may be written again once nobody needs what they held.
typedef struct rn_fused_t {
  rn_dtype_t dtype;  // of all operands
  int16_t inputs, temporaries, outputs;
  int32_t step_count;
  const rn_fused_step_t* steps;
} rn_fused_t;

// Whether every step has a function for the type, names operands that exist and reads none before
// it is written, and every output is written. INVALID_ARGUMENT says what is wrong. Check once, when
// the program is made.
RN_MUST_USE rn_status_t rn_fused_check(const rn_fused_t* program);

// Whether output |output| (from 0) may lie in the memory of input |input|: true if nothing reads
// the input after the output's first write.
bool rn_fused_may_share(const rn_fused_t* program, int output, int input);

// Runs a checked program over |n| elements. |in| and |in_steps| are by input (step 0: one number
// for all), |out| by output, n elements each; they overlap as rn_fused_may_share allows, or not at
// all.
void rn_fused_run(rn_pool_t* pool, const rn_fused_t* program, const void* const* in,
                  const int* in_steps, void* const* out, int64_t n);

// Operands that are columns of matrices: those of a row lie side by side, a row's first |step|
// elements behind that of the row before.
typedef struct rn_fused_rows_t {
  int64_t rows, columns;
  const int64_t *in_rows, *out_rows;  // steps from row to row
} rn_fused_rows_t;

// The same over rows of columns; |in| and |out| are where the first row begins. Nothing overlaps.
void rn_fused_run_rows(rn_pool_t* pool, const rn_fused_t* program, const rn_fused_rows_t* rows,
                       const void* const* in, const int* in_steps, void* const* out);

#endif  // RUNNEL_KERNELS_CPU_PLANNER_FUSED_H_

// Fused chains: several elementwise operations in one pass over memory.
//
// A program is a list of steps over numbered operands: first the inputs, then temporaries, then the
// outputs. Each step applies a vector function (vector.h) to operands and writes an operand. The
// runner processes the arrays in blocks and runs all steps on a block while it is in the L1 cache;
// temporaries never reach memory. Each step calls the same function as the op on its own, or is
// part of a loop with the same formulas (fused_code.h), and 16-bit floats are rounded after each,
// so a fused chain gives the same bits as the separate ops.
#ifndef RUNNEL_KERNELS_CPU_PLANNER_FUSED_H_
#define RUNNEL_KERNELS_CPU_PLANNER_FUSED_H_

#include "base/pool.h"
#include "kernels/cpu/vector.h"

#define RN_FUSED_TEMPORARIES 8     // as many as fit the L1 cache beside inputs and outputs
#define RN_FUSED_OPERANDS 64       // inputs, temporaries and outputs
#define RN_FUSED_BLOCK_BYTES 4096  // per operand, at most

typedef struct rn_fused_step_t {
  uint16_t code;  // rn_vector_code_t
  int16_t a, b;   // operands; |b| is -1 for unary functions
  int16_t out;    // a temporary or an output; may be |a| or |b|
} rn_fused_step_t;

// Borrows its steps and its code. A temporary may be reused once its value is no longer needed.
typedef struct rn_fused_t {
  rn_dtype_t dtype;  // of all operands
  int16_t inputs, temporaries, outputs;
  int32_t step_count;
  const rn_fused_step_t* steps;
  const struct rn_fused_code_t* code;  // NULL: none
} rn_fused_t;

// Checks that every step has a function for the type, uses operands that exist and were written
// before, and that every output is written. INVALID_ARGUMENT describes the problem. Call it once,
// when the program is created.
RN_MUST_USE rn_status_t rn_fused_check(const rn_fused_t* program);

// Whether output |output| (from 0) may share the memory of input |input|: true if nothing reads the
// input after the output's first write.
bool rn_fused_may_share(const rn_fused_t* program, int output, int input);

// Runs a checked program over |n| elements. |in| and |in_steps| are per input (step 0: one number
// for all), |out| per output, n elements each; they may overlap only as rn_fused_may_share allows.
void rn_fused_run(rn_pool_t* pool, const rn_fused_t* program, const void* const* in,
                  const int* in_steps, void* const* out, int64_t n);

// Operands that are columns of matrices: elements of a row are contiguous, and rows are |step|
// elements apart.
typedef struct rn_fused_rows_t {
  int64_t rows, columns;
  const int64_t *in_rows, *out_rows;  // row strides
} rn_fused_rows_t;

// The same over rows of columns; |in| and |out| point to the first row. Nothing may overlap.
void rn_fused_run_rows(rn_pool_t* pool, const rn_fused_t* program, const rn_fused_rows_t* rows,
                       const void* const* in, const int* in_steps, void* const* out);

#endif  // RUNNEL_KERNELS_CPU_PLANNER_FUSED_H_

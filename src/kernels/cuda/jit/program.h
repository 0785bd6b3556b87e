// Small programs over tensors, which the loop compiler turns into one GPU kernel.
//
// A program runs once per element of an iteration space, row-major, whose sizes are not part of it:
// they are given at launch. Inputs are read at the element by one of five kinds of access; values
// are made from inputs and earlier values by the scalar operations of scalar_ops.h; outputs are
// written in the order of the space.
//
// A program with reductions sees its space as [outer, reduced, inner]. rn_jit_reduce makes a value
// that has one element per [outer, inner]: it lives in the reduced space. An operation whose
// operands all live in the reduced space does too; one that mixes both spaces lives in the full
// space, where reduced values are broadcast. So a softmax is
//
//   int x = rn_jit_input(&p, RN_FLOAT, RN_JIT_LINEAR, RN_JIT_FULL);
//   int top = rn_jit_reduce(&p, RN_JIT_MAX, x);
//   int e = rn_jit_op1(&p, RN_SCALAR_EXP, rn_jit_op2(&p, RN_SCALAR_SUB, x, top));
//   rn_jit_output(&p, rn_jit_op2(&p, RN_SCALAR_DIV, e, rn_jit_reduce(&p, RN_JIT_SUM, e)),
//   RN_FLOAT);
//
// and runs in three passes over a row: a pass computes what the passes before it allow and ends
// with its reductions.
//
// Programs are plain data: copy them, keep them on the stack. A builder function that fails marks
// the program and returns -1, which every later call accepts; rn_jit_check reports the first
// failure.
#ifndef RUNNEL_KERNELS_CUDA_JIT_PROGRAM_H_
#define RUNNEL_KERNELS_CUDA_JIT_PROGRAM_H_

#include "kernels/cuda/jit/scalar_ops.h"

#define RN_JIT_MAX_RANK 8
#define RN_JIT_MAX_INPUTS 64
#define RN_JIT_MAX_OUTPUTS 16
#define RN_JIT_MAX_VALUES 256
#define RN_JIT_MAX_OPERANDS 4
#define RN_JIT_MAX_REDUCTIONS 8

// How an input is read at element i of the space.
typedef enum rn_jit_access_t {
  RN_JIT_LINEAR,   // element i
  RN_JIT_SCALAR,   // its only element
  RN_JIT_HOST,     // a number that the launch passes by value
  RN_JIT_ROW,      // element i % period: broadcast along leading dimensions
  RN_JIT_COLUMN,   // element i / period: broadcast along trailing dimensions
  RN_JIT_STRIDED,  // at the sum of coordinate * stride over the space's dimensions
} rn_jit_access_t;

typedef enum rn_jit_space_t {
  RN_JIT_REDUCED,  // one element per [outer, inner]; also what has one element in all
  RN_JIT_FULL,
} rn_jit_space_t;

// Sums of half and bfloat16 are computed in float, integer sums in their own type (they wrap).
// Integer means are computed from 64-bit sums. The order of the additions depends on sizes and on
// the card, never on timing. Empty sums are 0, products 1, extremes the infinity or the limit of
// the type; the mean of nothing is NaN, or 0 for integers.
typedef enum rn_jit_reduction_t {
  RN_JIT_SUM,
  RN_JIT_MEAN,
  RN_JIT_PROD,
  RN_JIT_MAX,  // NaN if any operand is
  RN_JIT_MIN,
  RN_JIT_ANY,  // bools
  RN_JIT_ALL,
  // The place along the reduced axis, an int64: of the first element that is greater (less) than
  // all before it, 0 if none is greater than the least finite number. NaN is never found.
  RN_JIT_ARG_MAX,
  RN_JIT_ARG_MIN,
  // The mean of the squared distances from the mean, of floats. One pass, and no digits are lost
  // where the mean is large: sums are of distances from an element.
  RN_JIT_VARIANCE,
} rn_jit_reduction_t;

typedef enum rn_jit_value_kind_t {
  RN_JIT_INPUT,
  RN_JIT_CONSTANT,
  RN_JIT_OP,
  RN_JIT_CAST,
  RN_JIT_REDUCE,
} rn_jit_value_kind_t;

typedef struct rn_jit_value_t {
  uint8_t kind;    // rn_jit_value_kind_t
  uint8_t dtype;   // rn_dtype_t
  uint8_t space;   // rn_jit_space_t
  uint8_t passes;  // how many passes must be over before this value can be computed
  uint16_t code;   // of RN_JIT_OP: rn_scalar_code_t; RN_JIT_REDUCE: its kind; RN_JIT_INPUT: which
  int16_t operands[RN_JIT_MAX_OPERANDS];  // -1 where there is none
  double number;                          // of RN_JIT_CONSTANT
} rn_jit_value_t;

typedef struct rn_jit_input_t {
  uint8_t dtype, access, space;
} rn_jit_input_t;

enum {
  // Rounds every 16-bit result to its type, as separate ops would. Without it, results stay in
  // float within a program, and only casts and outputs round: faster, and closer to the exact
  // value.
  RN_JIT_ROUNDS = 1,
  // No multiply-add contraction: products round before they are added, as on the CPU. Without it
  // the compiler contracts, as PyTorch's does.
  RN_JIT_NO_FMA = 2,
  // Divisions and square roots of floats within 2 units in the last place instead of exactly
  // rounded, in a fifth of the instructions; for kernels that would otherwise not keep up with
  // memory.
  RN_JIT_FAST_DIVISION = 4,
};

typedef struct rn_jit_program_t {
  uint8_t rank;  // of the space; only STRIDED inputs need it
  uint8_t flags;
  uint8_t input_count, output_count, reduction_count;
  uint8_t passes;         // passes that end with a reduction
  const char* complaint;  // the first failure, a literal; NULL: none
  int value_count;
  rn_jit_input_t inputs[RN_JIT_MAX_INPUTS];
  int16_t outputs[RN_JIT_MAX_OUTPUTS];  // values
  rn_jit_value_t values[RN_JIT_MAX_VALUES];
} rn_jit_program_t;

// Starts an empty program over a space of |rank| dimensions. O(1): leaves the arrays unset.
void rn_jit_begin(rn_jit_program_t* program, int rank, unsigned flags);

// Each returns the number of the new value. Inputs of the reduced space are LINEAR, SCALAR or HOST;
// SCALAR and HOST inputs live in the reduced space whatever |space| says.
int rn_jit_input(rn_jit_program_t* program, rn_dtype_t dtype, rn_jit_access_t access,
                 rn_jit_space_t space);
// |number| becomes part of the source: for attributes, not for what changes from step to step.
int rn_jit_constant(rn_jit_program_t* program, rn_dtype_t dtype, double number);
// Operands have the types that rn_scalar_check wants; their number is the operation's.
int rn_jit_op(rn_jit_program_t* program, rn_scalar_code_t code, const int* operands);
static inline int rn_jit_op1(rn_jit_program_t* program, rn_scalar_code_t code, int a) {
  return rn_jit_op(program, code, (const int[]){a, -1, -1, -1});
}
static inline int rn_jit_op2(rn_jit_program_t* program, rn_scalar_code_t code, int a, int b) {
  return rn_jit_op(program, code, (const int[]){a, b, -1, -1});
}
static inline int rn_jit_op3(rn_jit_program_t* program, rn_scalar_code_t code, int a, int b,
                             int c) {
  return rn_jit_op(program, code, (const int[]){a, b, c, -1});
}
// |value| itself if it has the type already. Rounds, and treats what is out of range, as Cast does.
int rn_jit_cast(rn_jit_program_t* program, int value, rn_dtype_t dtype);
// Reduces a value of the full space.
int rn_jit_reduce(rn_jit_program_t* program, rn_jit_reduction_t kind, int value);
// Stores |value|, cast to |dtype|. The output has the elements of the value's space, one after the
// other. A program without reductions has one space only: numbers are stored over all of it.
void rn_jit_output(rn_jit_program_t* program, int value, rn_dtype_t dtype);

// INVALID_ARGUMENT with the builder's first failure, or if there is no output.
RN_MUST_USE rn_status_t rn_jit_check(const rn_jit_program_t* program);

// Whether each value is needed by an output or a reduction; dead ones are not emitted.
void rn_jit_mark_live(const rn_jit_program_t* program, bool* live);

#endif  // RUNNEL_KERNELS_CUDA_JIT_PROGRAM_H_

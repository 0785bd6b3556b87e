// Elementwise loops that do not fit vector.h: those whose result type differs from the operand
// type, and those that stock defines for integers only. Compiled once per ISA level.
#ifndef RUNNEL_KERNELS_CPU_LOOPS_H_
#define RUNNEL_KERNELS_CPU_LOOPS_H_

#include "kernels/cpu/broadcasting.h"

typedef enum rn_loop_code_t {
  // Two numbers to a bool.
  RN_LOOP_EQUAL,
  RN_LOOP_NOT_EQUAL,
  RN_LOOP_LESS,
  RN_LOOP_LESS_EQUAL,
  RN_LOOP_GREATER,
  RN_LOOP_GREATER_EQUAL,
  RN_LOOP_APPROXIMATE_EQUAL,  // |arg| is a const float*: the tolerance
  // A float to a bool.
  RN_LOOP_IS_NAN,
  RN_LOOP_IS_INF,
  RN_LOOP_IS_FINITE,
  // Bools; listed under RN_BOOL.
  RN_LOOP_LOGICAL_AND,
  RN_LOOP_LOGICAL_OR,
  RN_LOOP_LOGICAL_NOT,
  // Integers. Shift counts are clamped to [0, bits - 1].
  RN_LOOP_BITWISE_AND,
  RN_LOOP_BITWISE_OR,
  RN_LOOP_BITWISE_XOR,
  RN_LOOP_INVERT,
  RN_LOOP_LEFT_SHIFT,
  RN_LOOP_RIGHT_SHIFT,
  RN_LOOP_POPULATION_COUNT,  // result is uint8
  // Floats, doubles and int32; what is divided by the integer 0 is 0.
  RN_LOOP_FLOOR_DIV,
  RN_LOOP_TRUNCATE_DIV,
  // int32.
  RN_LOOP_FLOOR_MOD,
  RN_LOOP_TRUNCATE_MOD,
  // Floats.
  RN_LOOP_LEAKY_RELU,       // |arg| is a const float*: alpha
  RN_LOOP_LEAKY_RELU_GRAD,  // operands: gradients, features
  // Real numbers: value, lower bound, upper bound. The lower bound wins if they cross.
  RN_LOOP_CLIP,
  RN_LOOP_COUNT,
} rn_loop_code_t;

typedef struct rn_loops_t {
  rn_run_fn_t fn[RN_LOOP_COUNT][RN_DTYPE_COUNT];
  // condition, then, else; indexed by log2 of the element size: 1 to 16 bytes
  rn_run_fn_t select[5];
} rn_loops_t;

// Conversions, by source and destination type; NULL where unsupported.
typedef struct rn_casts_t {
  rn_run_fn_t fn[RN_DTYPE_COUNT][RN_DTYPE_COUNT];
} rn_casts_t;

// The tables for this CPU's ISA level.
const rn_loops_t* rn_loops(void);
const rn_casts_t* rn_casts(void);

#endif  // RUNNEL_KERNELS_CPU_LOOPS_H_

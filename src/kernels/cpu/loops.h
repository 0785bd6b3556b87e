// Loops over runs of elements that are not in vector.h: those that give another type than they
// take, or that stock has for integers only. Compiled for each generation of processor.
#ifndef RUNNEL_KERNELS_CPU_LOOPS_H_
#define RUNNEL_KERNELS_CPU_LOOPS_H_

#include "kernels/cpu/broadcasting.h"

typedef enum rn_loop_code_t {
  // Two numbers give a bool.
  RN_LOOP_EQUAL,
  RN_LOOP_NOT_EQUAL,
  RN_LOOP_LESS,
  RN_LOOP_LESS_EQUAL,
  RN_LOOP_GREATER,
  RN_LOOP_GREATER_EQUAL,
  RN_LOOP_APPROXIMATE_EQUAL,  // |arg| is a const float*: the tolerance
  // A float gives a bool.
  RN_LOOP_IS_NAN,
  RN_LOOP_IS_INF,
  RN_LOOP_IS_FINITE,
  // Bools, under RN_BOOL.
  RN_LOOP_LOGICAL_AND,
  RN_LOOP_LOGICAL_OR,
  RN_LOOP_LOGICAL_NOT,
  // Integers. A shift by less than 0 is by 0, by more than the bits there are, by all but one.
  RN_LOOP_BITWISE_AND,
  RN_LOOP_BITWISE_OR,
  RN_LOOP_BITWISE_XOR,
  RN_LOOP_INVERT,
  RN_LOOP_LEFT_SHIFT,
  RN_LOOP_RIGHT_SHIFT,
  RN_LOOP_POPULATION_COUNT,  // gives uint8
  // Floats and doubles.
  RN_LOOP_FLOOR_DIV,
  RN_LOOP_TRUNCATE_DIV,
  // Floats.
  RN_LOOP_LEAKY_RELU,       // |arg| is a const float*: alpha
  RN_LOOP_LEAKY_RELU_GRAD,  // gradients, features
  // Real numbers: value, least, most. The least wins.
  RN_LOOP_CLIP,
  RN_LOOP_COUNT,
} rn_loop_code_t;

typedef struct rn_loops_t {
  rn_run_fn_t fn[RN_LOOP_COUNT][RN_DTYPE_COUNT];
  // condition, then, else; by the base-2 logarithm of the element's size: 1 to 16 bytes
  rn_run_fn_t select[5];
} rn_loops_t;

// Conversions, by source and destination; NULL where there is none.
typedef struct rn_casts_t {
  rn_run_fn_t fn[RN_DTYPE_COUNT][RN_DTYPE_COUNT];
} rn_casts_t;

// The best tables for this processor.
const rn_loops_t* rn_loops(void);
const rn_casts_t* rn_casts(void);

#endif  // RUNNEL_KERNELS_CPU_LOOPS_H_

// The formulas of cheap vector functions (isa/vector.c), as instructions for fused_code.c.
#ifndef RUNNEL_KERNELS_CPU_PLANNER_FUSED_FORMULAS_H_
#define RUNNEL_KERNELS_CPU_PLANNER_FUSED_FORMULAS_H_

#include "kernels/cpu/vector.h"

// What an instruction reads and writes: the arguments, two registers for values in between, the
// result, constants. The result may be an argument's register: it is written last.
typedef enum rn_formula_value_t {
  RN_FORMULA_X,
  RN_FORMULA_Y,
  RN_FORMULA_T,
  RN_FORMULA_U,
  RN_FORMULA_RESULT,
  RN_FORMULA_CONSTANTS,
  RN_FORMULA_0 = RN_FORMULA_CONSTANTS,
  RN_FORMULA_1,
  RN_FORMULA_6,
  RN_FORMULA_HALF,
  RN_FORMULA_SIGN,  // -0.0
  RN_FORMULA_VALUES,
} rn_formula_value_t;

typedef enum rn_formula_kind_t {
  RN_FORMULA_END,
  RN_FORMULA_ARITHMETIC,  // how: rn_x86_op_t
  RN_FORMULA_ROUND,       // how: rn_x86_rounding_t
  RN_FORMULA_COMPARE,     // how: rn_x86_relation_t; sets the mask
  RN_FORMULA_KEEP,        // a where the mask is set, else 0
  RN_FORMULA_CHOOSE,      // a where the mask is set, else b
} rn_formula_kind_t;

typedef struct rn_formula_t {
  uint8_t kind, how, out, a, b;
} rn_formula_t;

// The instructions of |code|, ended by RN_FORMULA_END; NULL if it has no formula.
const rn_formula_t* rn_formula_of(uint16_t code);

double rn_formula_constant(rn_formula_value_t value);

#endif  // RUNNEL_KERNELS_CPU_PLANNER_FUSED_FORMULAS_H_

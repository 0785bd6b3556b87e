// Formulas as instructions. See fused_formulas.h.
#include "kernels/cpu/planner/fused_formulas.h"

#include "kernels/cpu/planner/x86_code.h"

#define X RN_FORMULA_X
#define Y RN_FORMULA_Y
#define T RN_FORMULA_T
#define U RN_FORMULA_U
#define OUT RN_FORMULA_RESULT
#define ZERO RN_FORMULA_0
#define ONE RN_FORMULA_1
#define SIX RN_FORMULA_6
#define HALF RN_FORMULA_HALF
#define SIGN RN_FORMULA_SIGN

#define ADD(out, a, b) \
  { RN_FORMULA_ARITHMETIC, RN_X86_ADD, out, a, b }
#define SUB(out, a, b) \
  { RN_FORMULA_ARITHMETIC, RN_X86_SUB, out, a, b }
#define MUL(out, a, b) \
  { RN_FORMULA_ARITHMETIC, RN_X86_MUL, out, a, b }
#define DIV(out, a, b) \
  { RN_FORMULA_ARITHMETIC, RN_X86_DIV, out, a, b }
#define ROOT(out, a) \
  { RN_FORMULA_ARITHMETIC, RN_X86_SQRT, out, a, a }
#define NEGATE(out, a) \
  { RN_FORMULA_ARITHMETIC, RN_X86_XOR, out, SIGN, a }
#define SIZE(out, a) \
  { RN_FORMULA_ARITHMETIC, RN_X86_AND_NOT, out, SIGN, a }
#define ROUND(to, out, a) \
  { RN_FORMULA_ROUND, RN_X86_##to, out, a, a }
#define COMPARE(relation, a, b) \
  { RN_FORMULA_COMPARE, RN_X86_##relation, T, a, b }
#define KEEP(out, a) \
  { RN_FORMULA_KEEP, 0, out, a, a }
#define CHOOSE(out, a, b) \
  { RN_FORMULA_CHOOSE, 0, out, a, b }

#define MOST 5  // instructions, with the end

// clang-format off
static const rn_formula_t formulas[RN_VECTOR_COUNT][MOST] = {
    [RN_VECTOR_NEG] = {NEGATE(OUT, X)},
    [RN_VECTOR_ABS] = {SIZE(OUT, X)},
    [RN_VECTOR_SQUARE] = {MUL(OUT, X, X)},
    [RN_VECTOR_SQRT] = {ROOT(OUT, X)},
    [RN_VECTOR_RECIPROCAL] = {DIV(OUT, ONE, X)},
    [RN_VECTOR_INV] = {DIV(OUT, ONE, X)},
    [RN_VECTOR_ROUND] = {ROUND(TO_EVEN, OUT, X)},
    [RN_VECTOR_RINT] = {ROUND(TO_EVEN, OUT, X)},
    [RN_VECTOR_FLOOR] = {ROUND(DOWN, OUT, X)},
    [RN_VECTOR_CEIL] = {ROUND(UP, OUT, X)},
    [RN_VECTOR_RELU] = {COMPARE(NOT_LESS, X, ZERO), KEEP(OUT, X)},
    [RN_VECTOR_RELU6] = {COMPARE(NOT_LESS, X, ZERO), KEEP(T, X),
                         COMPARE(GREATER, X, SIX), CHOOSE(OUT, SIX, T)},
    [RN_VECTOR_SOFTSIGN] = {SIZE(T, X), ADD(T, ONE, T), DIV(OUT, X, T)},
    [RN_VECTOR_ADD] = {ADD(OUT, X, Y)},
    [RN_VECTOR_ADD_V2] = {ADD(OUT, X, Y)},
    [RN_VECTOR_SUB] = {SUB(OUT, X, Y)},
    [RN_VECTOR_MUL] = {MUL(OUT, X, Y)},
    [RN_VECTOR_REAL_DIV] = {DIV(OUT, X, Y)},
    [RN_VECTOR_MAXIMUM] = {COMPARE(GREATER, X, Y), CHOOSE(T, X, Y),
                           COMPARE(UNORDERED, X, X), CHOOSE(OUT, X, T)},
    [RN_VECTOR_MINIMUM] = {COMPARE(LESS, X, Y), CHOOSE(T, X, Y),
                           COMPARE(UNORDERED, X, X), CHOOSE(OUT, X, T)},
    [RN_VECTOR_SQUARED_DIFFERENCE] = {SUB(T, X, Y), MUL(OUT, T, T)},
    [RN_VECTOR_DIV_NO_NAN] = {DIV(T, X, Y), COMPARE(NOT_EQUAL, Y, ZERO), KEEP(OUT, T)},
    [RN_VECTOR_MUL_NO_NAN] = {MUL(T, X, Y), COMPARE(NOT_EQUAL, Y, ZERO), KEEP(OUT, T)},
    [RN_VECTOR_XDIVY] = {DIV(T, X, Y), COMPARE(NOT_EQUAL, X, ZERO), KEEP(OUT, T)},
    [RN_VECTOR_RELU_GRAD] = {MUL(T, X, ZERO), COMPARE(GREATER, Y, ZERO), CHOOSE(OUT, X, T)},
    [RN_VECTOR_SIGMOID_GRAD] = {MUL(T, Y, X), SUB(U, ONE, X), MUL(OUT, T, U)},
    [RN_VECTOR_TANH_GRAD] = {MUL(T, X, X), SUB(T, ONE, T), MUL(OUT, Y, T)},
    [RN_VECTOR_SQRT_GRAD] = {MUL(T, Y, HALF), DIV(T, T, X),
                             COMPARE(NOT_EQUAL, Y, ZERO), KEEP(OUT, T)},
    [RN_VECTOR_ELU_GRAD] = {ADD(T, Y, ONE), MUL(T, T, X),
                            COMPARE(LESS, Y, ZERO), CHOOSE(OUT, T, X)},
};
// clang-format on

const rn_formula_t* rn_formula_of(uint16_t code) {
  return code < RN_VECTOR_COUNT && formulas[code][0].kind != RN_FORMULA_END ? formulas[code] : NULL;
}

double rn_formula_constant(rn_formula_value_t value) {
  static const double constants[] = {0, 1, 6, 0.5, -0.0};
  return constants[value - RN_FORMULA_CONSTANTS];
}

// Elementwise arithmetic: one loop per operation, type and ISA level.
//
// A vector function computes out[i] = op(a[i], b[i]) for n elements. All elementwise kernels on the
// CPU use these, including fused chains, so that fusion changes no bits. An operand with step 0
// instead of 1 is one number for all elements. Unary functions ignore b. |out| may be |a| or |b|,
// but must not otherwise overlap them.
#ifndef RUNNEL_KERNELS_CPU_VECTOR_H_
#define RUNNEL_KERNELS_CPU_VECTOR_H_

#include "tensor/tensor.h"

// X(enumerator, op, number of inputs): operations whose result has the type of their operands.
// Float only:
#define RN_VECTOR_FLOAT_OPS(X)            \
  X(SQRT, "Sqrt", 1)                      \
  X(RSQRT, "Rsqrt", 1)                    \
  X(RECIPROCAL, "Reciprocal", 1)          \
  X(INV, "Inv", 1)                        \
  X(EXP, "Exp", 1)                        \
  X(EXPM1, "Expm1", 1)                    \
  X(LOG, "Log", 1)                        \
  X(LOG1P, "Log1p", 1)                    \
  X(TANH, "Tanh", 1)                      \
  X(SIGMOID, "Sigmoid", 1)                \
  X(SIN, "Sin", 1)                        \
  X(COS, "Cos", 1)                        \
  X(TAN, "Tan", 1)                        \
  X(ASIN, "Asin", 1)                      \
  X(ACOS, "Acos", 1)                      \
  X(ATAN, "Atan", 1)                      \
  X(SINH, "Sinh", 1)                      \
  X(COSH, "Cosh", 1)                      \
  X(ASINH, "Asinh", 1)                    \
  X(ACOSH, "Acosh", 1)                    \
  X(ATANH, "Atanh", 1)                    \
  X(ERF, "Erf", 1)                        \
  X(ERFC, "Erfc", 1)                      \
  X(FLOOR, "Floor", 1)                    \
  X(CEIL, "Ceil", 1)                      \
  X(RINT, "Rint", 1)                      \
  X(SOFTPLUS, "Softplus", 1)              \
  X(SOFTSIGN, "Softsign", 1)              \
  X(ELU, "Elu", 1)                        \
  X(SELU, "Selu", 1)                      \
  X(REAL_DIV, "RealDiv", 2)               \
  X(ATAN2, "Atan2", 2)                    \
  X(POW, "Pow", 2)                        \
  X(DIV_NO_NAN, "DivNoNan", 2)            \
  X(MUL_NO_NAN, "MulNoNan", 2)            \
  X(XLOGY, "Xlogy", 2)                    \
  X(XDIVY, "Xdivy", 2)                    \
  X(XLOG1PY, "Xlog1py", 2)                \
  X(SIGMOID_GRAD, "SigmoidGrad", 2)       \
  X(TANH_GRAD, "TanhGrad", 2)             \
  X(SQRT_GRAD, "SqrtGrad", 2)             \
  X(RSQRT_GRAD, "RsqrtGrad", 2)           \
  X(RECIPROCAL_GRAD, "ReciprocalGrad", 2) \
  X(INV_GRAD, "InvGrad", 2)               \
  X(SOFTPLUS_GRAD, "SoftplusGrad", 2)     \
  X(SOFTSIGN_GRAD, "SoftsignGrad", 2)     \
  X(ELU_GRAD, "EluGrad", 2)               \
  X(SELU_GRAD, "SeluGrad", 2)

// Floats and integers:
#define RN_VECTOR_NUMBER_OPS(X)                 \
  X(NEG, "Neg", 1)                              \
  X(ABS, "Abs", 1)                              \
  X(SIGN, "Sign", 1)                            \
  X(SQUARE, "Square", 1)                        \
  X(ROUND, "Round", 1)                          \
  X(RELU, "Relu", 1)                            \
  X(RELU6, "Relu6", 1)                          \
  X(ADD, "Add", 2)                              \
  X(ADD_V2, "AddV2", 2)                         \
  X(SUB, "Sub", 2)                              \
  X(MUL, "Mul", 2)                              \
  X(MAXIMUM, "Maximum", 2)                      \
  X(MINIMUM, "Minimum", 2)                      \
  X(SQUARED_DIFFERENCE, "SquaredDifference", 2) \
  X(RELU_GRAD, "ReluGrad", 2)                   \
  X(RELU6_GRAD, "Relu6Grad", 2)

#define RN_VECTOR_OPS(X) RN_VECTOR_FLOAT_OPS(X) RN_VECTOR_NUMBER_OPS(X)

typedef enum rn_vector_code_t {
  RN_VECTOR_NONE = 0,
#define RN_VECTOR_ENUM(enumerator, op, arity) RN_VECTOR_##enumerator,
  RN_VECTOR_OPS(RN_VECTOR_ENUM)
#undef RN_VECTOR_ENUM
      RN_VECTOR_COUNT,
} rn_vector_code_t;

typedef void (*rn_vector_fn_t)(const void* a, int a_step, const void* b, int b_step, void* out,
                               int64_t n);

// Converts n elements between a 16-bit float type and float.
typedef void (*rn_widen_fn_t)(const uint16_t* in, float* out, int64_t n);
typedef void (*rn_narrow_fn_t)(const float* in, uint16_t* out, int64_t n);

// The functions of one ISA level. One row per type: float, double, int8 … uint64; NULL where stock
// has no kernel. For half, some; the others are computed in float, like those of bfloat16.
typedef struct rn_vector_table_t {
  const char* name;
  rn_vector_fn_t fn[RN_DTYPE_COUNT][RN_VECTOR_COUNT];
  rn_widen_fn_t widen_half, widen_bfloat16;
  rn_narrow_fn_t narrow_half, narrow_bfloat16;
} rn_vector_table_t;

// The table for this CPU's ISA level, chosen once.
const rn_vector_table_t* rn_vector_table(void);

// Whether an element costs about ten times as much as an addition.
bool rn_vector_is_costly(rn_vector_code_t code);

// Elements per block of a pass over memory; a few such blocks fit into the L1 cache.
#define RN_VECTOR_BLOCK 1024

// Computes |code| over whole arrays of |dtype|, including 16-bit floats (converted to float in
// blocks).
void rn_vector_run(rn_vector_code_t code, rn_dtype_t dtype, const void* a, int a_step,
                   const void* b, int b_step, void* out, int64_t n);

#endif  // RUNNEL_KERNELS_CPU_VECTOR_H_

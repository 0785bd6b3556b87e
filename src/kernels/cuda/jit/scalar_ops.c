// See scalar_ops.h.
#include "kernels/cuda/jit/scalar_ops.h"

#include "kernels/kernel_rows.h"

#define PRECISE (RN_T(FLOAT) | RN_T(DOUBLE))
#define FLOATS RN_TYPES_FLOATS
#define REAL RN_TYPES_REAL
#define NUMBERS RN_TYPES_NUMBERS
#define COMPLEX RN_TYPES_COMPLEX
#define INEXACT (RN_TYPES_FLOATS | RN_TYPES_COMPLEX)
#define WHOLE (RN_TYPES_INTS | RN_TYPES_UINTS)
#define TRUTH RN_T(BOOL)
#define EQUATED (RN_TYPES_NUMBERS | RN_TYPES_QUANTISED | RN_T(BOOL))
#define SELECTED (RN_TYPES_NUMBERS | RN_TYPES_QUANTISED | RN_T(BOOL))
#define BASIC false
#define SPECIAL true

static const rn_scalar_op_t ops[] = {
#define X(code, operands_, types, result_, where, function_) \
  [RN_SCALAR_##code] = {.function = #function_,              \
                        .operands = operands_,               \
                        .result = RN_SCALAR_GIVES_##result_, \
                        .is_special = where,                 \
                        .dtypes = types},
#include "kernels/cuda/jit/scalar_ops.def"
#undef X
};

const rn_scalar_op_t* rn_scalar_op(rn_scalar_code_t code) { return &ops[code]; }

bool rn_scalar_is_costly(rn_scalar_code_t code) {
  return (code >= RN_SCALAR_EXP && code <= RN_SCALAR_SIGMOID) || code == RN_SCALAR_ELU ||
         code == RN_SCALAR_SELU || code == RN_SCALAR_SOFTPLUS || code == RN_SCALAR_SOFTPLUS_GRAD ||
         code == RN_SCALAR_POW || code == RN_SCALAR_XLOGY || code == RN_SCALAR_XLOG1PY ||
         code == RN_SCALAR_ATAN2 || ops[code].is_special;
}

// TensorFlow's names, sorted.
static const struct {
  const char* name;
  rn_scalar_code_t code;
} names[] = {
    {"Abs", RN_SCALAR_ABS},
    {"Acos", RN_SCALAR_ACOS},
    {"Acosh", RN_SCALAR_ACOSH},
    {"Add", RN_SCALAR_ADD},
    {"AddV2", RN_SCALAR_ADD},
    {"Angle", RN_SCALAR_ANGLE},
    {"ApproximateEqual", RN_SCALAR_APPROXIMATE_EQUAL},
    {"Asin", RN_SCALAR_ASIN},
    {"Asinh", RN_SCALAR_ASINH},
    {"Atan", RN_SCALAR_ATAN},
    {"Atan2", RN_SCALAR_ATAN2},
    {"Atanh", RN_SCALAR_ATANH},
    {"BesselI0", RN_SCALAR_BESSEL_I0},
    {"BesselI0e", RN_SCALAR_BESSEL_I0E},
    {"BesselI1", RN_SCALAR_BESSEL_I1},
    {"BesselI1e", RN_SCALAR_BESSEL_I1E},
    {"BesselJ0", RN_SCALAR_BESSEL_J0},
    {"BesselJ1", RN_SCALAR_BESSEL_J1},
    {"BesselK0", RN_SCALAR_BESSEL_K0},
    {"BesselK0e", RN_SCALAR_BESSEL_K0E},
    {"BesselK1", RN_SCALAR_BESSEL_K1},
    {"BesselK1e", RN_SCALAR_BESSEL_K1E},
    {"BesselY0", RN_SCALAR_BESSEL_Y0},
    {"BesselY1", RN_SCALAR_BESSEL_Y1},
    {"Betainc", RN_SCALAR_BETAINC},
    {"BiasAdd", RN_SCALAR_ADD},
    {"BiasAddV1", RN_SCALAR_ADD},
    {"BitwiseAnd", RN_SCALAR_BITWISE_AND},
    {"BitwiseOr", RN_SCALAR_BITWISE_OR},
    {"BitwiseXor", RN_SCALAR_BITWISE_XOR},
    {"Ceil", RN_SCALAR_CEIL},
    {"ClipByValue", RN_SCALAR_CLIP},
    {"Complex", RN_SCALAR_COMPLEX},
    {"ComplexAbs", RN_SCALAR_COMPLEX_ABS},
    {"Conj", RN_SCALAR_CONJ},
    {"Cos", RN_SCALAR_COS},
    {"Cosh", RN_SCALAR_COSH},
    {"Dawsn", RN_SCALAR_DAWSN},
    {"Digamma", RN_SCALAR_DIGAMMA},
    {"Div", RN_SCALAR_DIV},
    {"DivNoNan", RN_SCALAR_DIV_NO_NAN},
    {"Elu", RN_SCALAR_ELU},
    {"EluGrad", RN_SCALAR_ELU_GRAD},
    {"Equal", RN_SCALAR_EQUAL},
    {"Erf", RN_SCALAR_ERF},
    {"Erfc", RN_SCALAR_ERFC},
    {"Erfinv", RN_SCALAR_ERFINV},
    {"Exp", RN_SCALAR_EXP},
    {"Expint", RN_SCALAR_EXPINT},
    {"Expm1", RN_SCALAR_EXPM1},
    {"Floor", RN_SCALAR_FLOOR},
    {"FloorDiv", RN_SCALAR_FLOOR_DIV},
    {"FloorMod", RN_SCALAR_FLOOR_MOD},
    {"FresnelCos", RN_SCALAR_FRESNEL_COS},
    {"FresnelSin", RN_SCALAR_FRESNEL_SIN},
    {"Greater", RN_SCALAR_GREATER},
    {"GreaterEqual", RN_SCALAR_GREATER_EQUAL},
    {"Igamma", RN_SCALAR_IGAMMA},
    {"IgammaGradA", RN_SCALAR_IGAMMA_GRAD_A},
    {"Igammac", RN_SCALAR_IGAMMAC},
    {"Imag", RN_SCALAR_IMAGINARY_PART},
    {"Inv", RN_SCALAR_RECIPROCAL},
    {"InvGrad", RN_SCALAR_RECIPROCAL_GRAD},
    {"Invert", RN_SCALAR_INVERT},
    {"IsFinite", RN_SCALAR_IS_FINITE},
    {"IsInf", RN_SCALAR_IS_INF},
    {"IsNan", RN_SCALAR_IS_NAN},
    {"LeakyRelu", RN_SCALAR_LEAKY_RELU},
    {"LeakyReluGrad", RN_SCALAR_LEAKY_RELU_GRAD},
    {"LeftShift", RN_SCALAR_LEFT_SHIFT},
    {"Less", RN_SCALAR_LESS},
    {"LessEqual", RN_SCALAR_LESS_EQUAL},
    {"Lgamma", RN_SCALAR_LGAMMA},
    {"Log", RN_SCALAR_LOG},
    {"Log1p", RN_SCALAR_LOG1P},
    {"LogicalAnd", RN_SCALAR_LOGICAL_AND},
    {"LogicalNot", RN_SCALAR_LOGICAL_NOT},
    {"LogicalOr", RN_SCALAR_LOGICAL_OR},
    {"Maximum", RN_SCALAR_MAXIMUM},
    {"Minimum", RN_SCALAR_MINIMUM},
    {"Mod", RN_SCALAR_MOD},
    {"Mul", RN_SCALAR_MUL},
    {"MulNoNan", RN_SCALAR_MUL_NO_NAN},
    {"Ndtri", RN_SCALAR_NDTRI},
    {"Neg", RN_SCALAR_NEG},
    {"NextAfter", RN_SCALAR_NEXT_AFTER},
    {"NotEqual", RN_SCALAR_NOT_EQUAL},
    {"Polygamma", RN_SCALAR_POLYGAMMA},
    {"PopulationCount", RN_SCALAR_POPULATION_COUNT},
    {"Pow", RN_SCALAR_POW},
    {"RandomGammaGrad", RN_SCALAR_RANDOM_GAMMA_GRAD},
    {"Real", RN_SCALAR_REAL_PART},
    {"RealDiv", RN_SCALAR_DIV},
    {"Reciprocal", RN_SCALAR_RECIPROCAL},
    {"ReciprocalGrad", RN_SCALAR_RECIPROCAL_GRAD},
    {"Relu", RN_SCALAR_RELU},
    {"Relu6", RN_SCALAR_RELU6},
    {"Relu6Grad", RN_SCALAR_RELU6_GRAD},
    {"ReluGrad", RN_SCALAR_RELU_GRAD},
    {"RightShift", RN_SCALAR_RIGHT_SHIFT},
    {"Rint", RN_SCALAR_RINT},
    {"Round", RN_SCALAR_ROUND},
    {"Rsqrt", RN_SCALAR_RSQRT},
    {"RsqrtGrad", RN_SCALAR_RSQRT_GRAD},
    {"Select", RN_SCALAR_SELECT},
    {"SelectV2", RN_SCALAR_SELECT},
    {"Selu", RN_SCALAR_SELU},
    {"SeluGrad", RN_SCALAR_SELU_GRAD},
    {"Sigmoid", RN_SCALAR_SIGMOID},
    {"SigmoidGrad", RN_SCALAR_SIGMOID_GRAD},
    {"Sign", RN_SCALAR_SIGN},
    {"Sin", RN_SCALAR_SIN},
    {"Sinh", RN_SCALAR_SINH},
    {"Softplus", RN_SCALAR_SOFTPLUS},
    {"SoftplusGrad", RN_SCALAR_SOFTPLUS_GRAD},
    {"Softsign", RN_SCALAR_SOFTSIGN},
    {"SoftsignGrad", RN_SCALAR_SOFTSIGN_GRAD},
    {"Spence", RN_SCALAR_SPENCE},
    {"Sqrt", RN_SCALAR_SQRT},
    {"SqrtGrad", RN_SCALAR_SQRT_GRAD},
    {"Square", RN_SCALAR_SQUARE},
    {"SquaredDifference", RN_SCALAR_SQUARED_DIFFERENCE},
    {"Sub", RN_SCALAR_SUB},
    {"Tan", RN_SCALAR_TAN},
    {"Tanh", RN_SCALAR_TANH},
    {"TanhGrad", RN_SCALAR_TANH_GRAD},
    {"TruncateDiv", RN_SCALAR_TRUNCATE_DIV},
    {"TruncateMod", RN_SCALAR_MOD},
    {"Xdivy", RN_SCALAR_XDIVY},
    {"Xlog1py", RN_SCALAR_XLOG1PY},
    {"Xlogy", RN_SCALAR_XLOGY},
    {"Zeta", RN_SCALAR_ZETA},
};

rn_scalar_code_t rn_scalar_find(const char* name) {
  size_t low = 0, high = sizeof names / sizeof *names;
  while (low < high) {
    size_t middle = (low + high) / 2;
    int order = strcmp(name, names[middle].name);
    if (order == 0) return names[middle].code;
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return RN_SCALAR_COUNT;
}

rn_dtype_t rn_scalar_result(rn_scalar_code_t code, rn_dtype_t dtype) {
  if (!rn_dtypes_has(ops[code].dtypes, dtype)) return RN_INVALID;
  switch (ops[code].result) {
    case RN_SCALAR_GIVES_BOOL:
      return RN_BOOL;
    case RN_SCALAR_GIVES_UINT8:
      return RN_UINT8;
    case RN_SCALAR_GIVES_REAL:
      return dtype == RN_COMPLEX64 ? RN_FLOAT : RN_DOUBLE;
    case RN_SCALAR_GIVES_COMPLEX:
      return dtype == RN_FLOAT ? RN_COMPLEX64 : RN_COMPLEX128;
    default:
      return dtype;
  }
}

const char* rn_scalar_type_name(rn_dtype_t dtype) {
  static const char* const type_names[RN_DTYPE_COUNT] = {
      [RN_HALF] = "rn_half",
      [RN_BFLOAT16] = "rn_bfloat16",
      [RN_FLOAT] = "float",
      [RN_DOUBLE] = "double",
      [RN_INT8] = "i8",
      [RN_INT16] = "i16",
      [RN_INT32] = "i32",
      [RN_INT64] = "i64",
      [RN_UINT8] = "u8",
      [RN_UINT16] = "u16",
      [RN_UINT32] = "u32",
      [RN_UINT64] = "u64",
      [RN_BOOL] = "bool",
      [RN_COMPLEX64] = "rn_complex64",
      [RN_COMPLEX128] = "rn_complex128",
  };
  rn_dtype_t stored = rn_dtype_stored(dtype);
  return stored > 0 && stored < RN_DTYPE_COUNT ? type_names[stored] : NULL;
}

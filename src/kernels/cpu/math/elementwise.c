// The operations of vector.h as kernels: unary, or binary with broadcasting.
#include "kernels/cpu/broadcasting.h"
#include "kernels/cpu/math/operands.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

typedef struct elementwise_t {
  rn_vector_fn_t fn;  // NULL for most operations on 16-bit floats
  rn_vector_code_t code;
  rn_dtype_t dtype;
  int64_t grain;
} elementwise_t;

static rn_status_t elementwise_init(const rn_kernel_init_t* init, rn_vector_code_t code,
                                    elementwise_t* state) {
  state->code = code;
  state->dtype = rn_dtype_base(init->input_types[0]);
  state->fn = rn_vector_table()->fn[state->dtype][code];
  state->grain = rn_vector_is_costly(code) ? RN_GRAIN_COSTLY : RN_GRAIN_CHEAP;
  return RN_OK;
}

static inline void apply(const elementwise_t* state, const void* a, int a_step, const void* b,
                         int b_step, void* out, int64_t n) {
  if (state->fn)
    state->fn(a, a_step, b, b_step, out, n);
  else
    rn_vector_run(state->code, state->dtype, a, a_step, b, b_step, out, n);
}

static void unary_run(void* arg, const void* const* in, const int* steps, void* out, int64_t n) {
  apply(arg, in[0], steps[0], NULL, 0, out, n);
}

static void binary_run(void* arg, const void* const* in, const int* steps, void* out, int64_t n) {
  apply(arg, in[0], steps[0], in[1], steps[1], out, n);
}

static rn_status_t unary(rn_kernel_ctx_t* ctx) {
  elementwise_t* state = ctx->state;
  const rn_tensor_t* input = rn_in(ctx, 0);
  if (input->count > state->grain)
    return rn_elementwise_compute(ctx, 1, 1, state->grain, unary_run, state);
  rn_tensor_t* output;
  RN_RETURN_IF_ERROR(rn_output_like(ctx, 0, 0, &output));
  if (input->count) apply(state, input->data, 1, NULL, 0, output->data, input->count);
  return RN_OK;
}

// Operands of equal shape.
static rn_status_t binary_same(rn_kernel_ctx_t* ctx, elementwise_t* state) {
  const rn_tensor_t *a = rn_in(ctx, 0), *b = rn_in(ctx, 1);
  if (a->count > state->grain)
    return rn_elementwise_compute(ctx, 2, 3, state->grain, binary_run, state);
  rn_tensor_t* output;
  RN_RETURN_IF_ERROR(rn_output_in_place(ctx, 0, 3, rn_tensor_shape(a), &output));
  if (a->count) apply(state, a->data, 1, b->data, 1, output->data, a->count);
  return RN_OK;
}

static rn_status_t binary(rn_kernel_ctx_t* ctx) {
  if ((rn_in(ctx, 0)->rank | rn_in(ctx, 1)->rank) == 0 ||
      rn_tensor_same_shape(rn_in(ctx, 0), rn_in(ctx, 1)))
    return binary_same(ctx, ctx->state);
  elementwise_t* state = ctx->state;
  return rn_broadcast_compute(ctx, 2, 3, state->grain, binary_run, state);
}

// Gradients of activations: no broadcasting.
static rn_status_t binary_of_one_shape(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(rn_check_one_shape(ctx));
  return binary_same(ctx, ctx->state);
}

static rn_status_t binary_of_one_count(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(rn_check_one_count(ctx));
  return binary_same(ctx, ctx->state);
}

// X(enumerator, op, compute, types)
#define KERNELS(X)                                                                     \
  X(SQRT, "Sqrt", unary, RN_TYPES_FLOATS)                                              \
  X(RSQRT, "Rsqrt", unary, RN_TYPES_FLOATS)                                            \
  X(RECIPROCAL, "Reciprocal", unary, RN_TYPES_FLOATS)                                  \
  X(INV, "Inv", unary, RN_TYPES_FLOATS)                                                \
  X(EXP, "Exp", unary, RN_TYPES_FLOATS)                                                \
  X(EXPM1, "Expm1", unary, RN_TYPES_FLOATS)                                            \
  X(LOG, "Log", unary, RN_TYPES_FLOATS)                                                \
  X(LOG1P, "Log1p", unary, RN_TYPES_FLOATS)                                            \
  X(TANH, "Tanh", unary, RN_TYPES_FLOATS)                                              \
  X(SIGMOID, "Sigmoid", unary, RN_TYPES_FLOATS)                                        \
  X(SIN, "Sin", unary, RN_TYPES_FLOATS)                                                \
  X(COS, "Cos", unary, RN_TYPES_FLOATS)                                                \
  X(TAN, "Tan", unary, RN_TYPES_FLOATS)                                                \
  X(ASIN, "Asin", unary, RN_TYPES_FLOATS)                                              \
  X(ACOS, "Acos", unary, RN_TYPES_FLOATS)                                              \
  X(ATAN, "Atan", unary, RN_TYPES_FLOATS)                                              \
  X(SINH, "Sinh", unary, RN_TYPES_FLOATS)                                              \
  X(COSH, "Cosh", unary, RN_TYPES_FLOATS)                                              \
  X(ASINH, "Asinh", unary, RN_TYPES_FLOATS)                                            \
  X(ACOSH, "Acosh", unary, RN_TYPES_FLOATS)                                            \
  X(ATANH, "Atanh", unary, RN_TYPES_FLOATS)                                            \
  X(ERF, "Erf", unary, RN_TYPES_FLOATS)                                                \
  X(ERFC, "Erfc", unary, RN_TYPES_FLOATS)                                              \
  X(FLOOR, "Floor", unary, RN_TYPES_FLOATS)                                            \
  X(CEIL, "Ceil", unary, RN_TYPES_FLOATS)                                              \
  X(RINT, "Rint", unary, RN_T(FLOAT) | RN_T(DOUBLE))                                   \
  X(SOFTPLUS, "Softplus", unary, RN_TYPES_FLOATS)                                      \
  X(SOFTSIGN, "Softsign", unary, RN_TYPES_FLOATS)                                      \
  X(ELU, "Elu", unary, RN_TYPES_FLOATS)                                                \
  X(SELU, "Selu", unary, RN_TYPES_FLOATS)                                              \
  X(REAL_DIV, "RealDiv", binary, RN_TYPES_FLOATS)                                      \
  X(REAL_DIV, "Div", binary, RN_TYPES_FLOATS)                                          \
  X(ATAN2, "Atan2", binary, RN_TYPES_FLOATS)                                           \
  X(POW, "Pow", binary, RN_TYPES_FLOATS)                                               \
  X(DIV_NO_NAN, "DivNoNan", binary, RN_TYPES_FLOATS)                                   \
  X(MUL_NO_NAN, "MulNoNan", binary, RN_TYPES_FLOATS)                                   \
  X(XLOGY, "Xlogy", binary, RN_TYPES_FLOATS)                                           \
  X(XLOG1PY, "Xlog1py", binary, RN_TYPES_FLOATS)                                       \
  X(XDIVY, "Xdivy", binary, RN_TYPES_FLOATS)                                           \
  X(SIGMOID_GRAD, "SigmoidGrad", binary_of_one_count, RN_TYPES_FLOATS)                 \
  X(TANH_GRAD, "TanhGrad", binary_of_one_count, RN_TYPES_FLOATS)                       \
  X(SQRT_GRAD, "SqrtGrad", binary_of_one_count, RN_TYPES_FLOATS)                       \
  X(RSQRT_GRAD, "RsqrtGrad", binary_of_one_count, RN_TYPES_FLOATS)                     \
  X(RECIPROCAL_GRAD, "ReciprocalGrad", binary_of_one_count, RN_TYPES_FLOATS)           \
  X(INV_GRAD, "InvGrad", binary_of_one_count, RN_TYPES_FLOATS)                         \
  X(SOFTPLUS_GRAD, "SoftplusGrad", binary_of_one_shape, RN_TYPES_FLOATS)               \
  X(SOFTSIGN_GRAD, "SoftsignGrad", binary_of_one_shape, RN_TYPES_FLOATS)               \
  X(ELU_GRAD, "EluGrad", binary_of_one_shape, RN_TYPES_FLOATS)                         \
  X(SELU_GRAD, "SeluGrad", binary_of_one_shape, RN_TYPES_FLOATS)                       \
  X(NEG, "Neg", unary, RN_TYPES_FLOATS | RN_TYPES_INTS)                                \
  X(ABS, "Abs", unary, RN_TYPES_FLOATS | RN_TYPES_INTS)                                \
  X(SIGN, "Sign", unary, RN_TYPES_FLOATS | RN_TYPES_INTS)                              \
  X(SQUARE, "Square", unary, RN_TYPES_REAL)                                            \
  X(ROUND, "Round", unary, RN_TYPES_FLOATS | RN_TYPES_INDEX)                           \
  X(RELU, "Relu", unary, RN_TYPES_REAL)                                                \
  X(RELU6, "Relu6", unary, RN_TYPES_REAL)                                              \
  X(ADD, "Add", binary, RN_TYPES_FLOATS | RN_TYPES_INTS | RN_T(UINT8))                 \
  X(ADD_V2, "AddV2", binary, RN_TYPES_REAL)                                            \
  X(SUB, "Sub", binary, RN_TYPES_REAL)                                                 \
  X(MUL, "Mul", binary, RN_TYPES_REAL)                                                 \
  X(MAXIMUM, "Maximum", binary, RN_TYPES_REAL)                                         \
  X(MINIMUM, "Minimum", binary, RN_TYPES_REAL)                                         \
  X(SQUARED_DIFFERENCE, "SquaredDifference", binary, RN_TYPES_FLOATS | RN_TYPES_INDEX) \
  X(RELU_GRAD, "ReluGrad", binary_of_one_shape, RN_TYPES_REAL)                         \
  X(RELU6_GRAD, "Relu6Grad", binary_of_one_shape, RN_TYPES_REAL)

#define INIT(enumerator, op, arity)                                                 \
  static rn_status_t init_##enumerator(const rn_kernel_init_t* init, void* state) { \
    return elementwise_init(init, RN_VECTOR_##enumerator, state);                   \
  }
RN_VECTOR_OPS(INIT)

#define ROW(enumerator, name, function, set) \
  {.op = name,                               \
   .device = "CPU",                          \
   .types = {{"T", set}},                    \
   .flags = RN_KERNEL_IN_PLACE,              \
   .vector_op = RN_VECTOR_##enumerator,      \
   .state_size = sizeof(elementwise_t),      \
   .init = init_##enumerator,                \
   .compute = function},

static const rn_kernel_def_t rows[] = {KERNELS(ROW)};
RN_KERNEL_FAMILY(cpu_elementwise, rows);

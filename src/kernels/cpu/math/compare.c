// Comparisons, logical and bitwise ops, computed by the loops of loops.h.
#include "kernels/cpu/array.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/math/operands.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

typedef struct compare_loop_t {
  rn_run_fn_t fn;
  float number;  // tolerance or alpha
  bool allows_other_shapes, differs;
} compare_loop_t;

static rn_status_t loop_init(const rn_kernel_init_t* init, rn_loop_code_t code,
                             compare_loop_t* state) {
  state->fn = rn_loops()->fn[code][rn_dtype_base(init->input_types[0])];
  return RN_OK;
}

static rn_status_t unary(rn_kernel_ctx_t* ctx) {
  compare_loop_t* state = ctx->state;
  return rn_elementwise_compute(ctx, 1, 1, RN_GRAIN_CHEAP, state->fn, &state->number);
}

static rn_status_t binary(rn_kernel_ctx_t* ctx) {
  compare_loop_t* state = ctx->state;
  return rn_broadcast_compute(ctx, 2, 3, RN_GRAIN_CHEAP, state->fn, &state->number);
}

// 16-bit quotients are rounded before the floor: 2.1 / 0.35 is 6 in bfloat16. Computed in float,
// block by block.
static void quotients(rn_loop_code_t code, bool is_half, const void* const* in, const int* steps,
                      uint16_t* out, int64_t n) {
  const rn_vector_table_t* table = rn_vector_table();
  const rn_widen_fn_t widen = is_half ? table->widen_half : table->widen_bfloat16;
  const rn_narrow_fn_t narrow = is_half ? table->narrow_half : table->narrow_bfloat16;
  const uint16_t *a = in[0], *b = in[1];
  const float one = 1;
  float x[RN_VECTOR_BLOCK], y[RN_VECTOR_BLOCK];
  if (n > 0 && !steps[0]) widen(a, x, 1);
  if (n > 0 && !steps[1]) widen(b, y, 1);
  for (int64_t start = 0; start < n; start += RN_VECTOR_BLOCK) {
    const int64_t count = n - start < RN_VECTOR_BLOCK ? n - start : RN_VECTOR_BLOCK;
    if (steps[0]) widen(a + start, x, count);
    if (steps[1]) widen(b + start, y, count);
    float quotient[RN_VECTOR_BLOCK];
    table->fn[RN_FLOAT][RN_VECTOR_REAL_DIV](x, steps[0], y, steps[1], quotient, count);
    narrow(quotient, out + start, count);
    widen(out + start, quotient, count);
    rn_loops()->fn[code][RN_FLOAT](NULL, (const void*[]){quotient, &one}, (const int[]){1, 0},
                                   quotient, count);
    narrow(quotient, out + start, count);
  }
}

#define QUOTIENTS(name, code, is_half)                                                         \
  static void name(void* arg, const void* const* in, const int* steps, void* out, int64_t n) { \
    (void)arg;                                                                                 \
    quotients(code, is_half, in, steps, out, n);                                               \
  }
QUOTIENTS(floor_half, RN_LOOP_FLOOR_DIV, true)
QUOTIENTS(floor_bfloat16, RN_LOOP_FLOOR_DIV, false)
QUOTIENTS(truncate_half, RN_LOOP_TRUNCATE_DIV, true)
QUOTIENTS(truncate_bfloat16, RN_LOOP_TRUNCATE_DIV, false)

static rn_status_t quotient_init(const rn_kernel_init_t* init, rn_loop_code_t code,
                                 compare_loop_t* state) {
  const rn_dtype_t dtype = rn_dtype_base(init->input_types[0]);
  const bool is_floor = code == RN_LOOP_FLOOR_DIV;
  RN_RETURN_IF_ERROR(loop_init(init, code, state));
  if (dtype == RN_HALF) state->fn = is_floor ? floor_half : truncate_half;
  if (dtype == RN_BFLOAT16) state->fn = is_floor ? floor_bfloat16 : truncate_bfloat16;
  return RN_OK;
}

static rn_status_t clip(rn_kernel_ctx_t* ctx) {
  compare_loop_t* state = ctx->state;
  RN_RETURN_IF_ERROR(rn_check_clip(ctx));
  return rn_broadcast_compute(ctx, 3, 7, RN_GRAIN_CHEAP, state->fn, NULL);
}

static rn_status_t leaky_relu_grad(rn_kernel_ctx_t* ctx) {
  compare_loop_t* state = ctx->state;
  RN_RETURN_IF_ERROR(rn_check_one_shape(ctx));
  return rn_elementwise_compute(ctx, 2, 3, RN_GRAIN_CHEAP, state->fn, &state->number);
}

static rn_status_t approximate_equal(rn_kernel_ctx_t* ctx) {
  compare_loop_t* state = ctx->state;
  RN_RETURN_IF_ERROR(rn_check_approximate_equal(ctx));
  return rn_elementwise_compute(ctx, 2, 0, RN_GRAIN_CHEAP, state->fn, &state->number);
}

static rn_status_t alpha_init(const rn_kernel_init_t* init, rn_loop_code_t code,
                              compare_loop_t* state) {
  state->number = rn_init_float(init, "alpha");
  return loop_init(init, code, state);
}

static rn_status_t tolerance_init(const rn_kernel_init_t* init, rn_loop_code_t code,
                                  compare_loop_t* state) {
  state->number = rn_init_float(init, "tolerance");
  return loop_init(init, code, state);
}

static bool strings_equal(const rn_tstring_t* a, const rn_tstring_t* b) {
  return rn_str_eq(rn_tstring_view(a), rn_tstring_view(b));
}

static void strings_are_equal(void* arg, const void* const* in, const int* steps, void* out,
                              int64_t n) {
  (void)arg;
  const rn_tstring_t *a = in[0], *b = in[1];
  for (int64_t i = 0; i < n; ++i)
    ((bool*)out)[i] = strings_equal(&a[steps[0] ? i : 0], &b[steps[1] ? i : 0]);
}

static void strings_differ(void* arg, const void* const* in, const int* steps, void* out,
                           int64_t n) {
  (void)arg;
  const rn_tstring_t *a = in[0], *b = in[1];
  for (int64_t i = 0; i < n; ++i)
    ((bool*)out)[i] = !strings_equal(&a[steps[0] ? i : 0], &b[steps[1] ? i : 0]);
}

static rn_status_t equality_init(const rn_kernel_init_t* init, rn_loop_code_t code,
                                 compare_loop_t* state) {
  state->differs = code == RN_LOOP_NOT_EQUAL;
  state->allows_other_shapes = !rn_init_bool(init, "incompatible_shape_error");
  RN_RETURN_IF_ERROR(loop_init(init, code, state));
  if (rn_dtype_base(init->input_types[0]) == RN_STRING)
    state->fn = state->differs ? strings_differ : strings_are_equal;
  return RN_OK;
}

static rn_status_t equality(rn_kernel_ctx_t* ctx) {
  const compare_loop_t* state = ctx->state;
  if (state->allows_other_shapes) {
    rn_broadcast_t broadcast;
    const rn_tensor_t* in[] = {rn_in(ctx, 0), rn_in(ctx, 1)};
    if (!rn_broadcast_make(in, 2, &broadcast)) {
      rn_tensor_t* output;
      RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &output));
      *RN_DATA(output, bool) = state->differs;
      return RN_OK;
    }
  }
  return binary(ctx);
}

#define ORDERED RN_TYPES_REAL
#define EQUATED (RN_TYPES_NUMBERS | RN_TYPES_QUANTISED | RN_T(BOOL) | RN_T(STRING))
#define WHOLE (RN_TYPES_INTS | RN_TYPES_UINTS)
#define CLIPPED (RN_TYPES_FLOATS | RN_TYPES_INTS | RN_T(UINT8) | RN_T(UINT16))

// X(code, op, init, compute, types)
#define KERNELS(X)                                                                  \
  X(EQUAL, "Equal", equality_init, equality, EQUATED)                               \
  X(NOT_EQUAL, "NotEqual", equality_init, equality, EQUATED)                        \
  X(LESS, "Less", loop_init, binary, ORDERED)                                       \
  X(LESS_EQUAL, "LessEqual", loop_init, binary, ORDERED)                            \
  X(GREATER, "Greater", loop_init, binary, ORDERED)                                 \
  X(GREATER_EQUAL, "GreaterEqual", loop_init, binary, ORDERED)                      \
  X(APPROXIMATE_EQUAL, "ApproximateEqual", tolerance_init, approximate_equal,       \
    RN_T(FLOAT) | RN_T(DOUBLE))                                                     \
  X(IS_NAN, "IsNan", loop_init, unary, RN_TYPES_FLOATS)                             \
  X(IS_INF, "IsInf", loop_init, unary, RN_TYPES_FLOATS)                             \
  X(IS_FINITE, "IsFinite", loop_init, unary, RN_TYPES_FLOATS)                       \
  X(BITWISE_AND, "BitwiseAnd", loop_init, binary, WHOLE)                            \
  X(BITWISE_OR, "BitwiseOr", loop_init, binary, WHOLE)                              \
  X(BITWISE_XOR, "BitwiseXor", loop_init, binary, WHOLE)                            \
  X(INVERT, "Invert", loop_init, unary, WHOLE)                                      \
  X(LEFT_SHIFT, "LeftShift", loop_init, binary, WHOLE)                              \
  X(RIGHT_SHIFT, "RightShift", loop_init, binary, WHOLE)                            \
  X(POPULATION_COUNT, "PopulationCount", loop_init, unary, WHOLE)                   \
  X(FLOOR_DIV, "FloorDiv", quotient_init, binary, RN_TYPES_FLOATS)                  \
  X(TRUNCATE_DIV, "TruncateDiv", quotient_init, binary, RN_TYPES_FLOATS)            \
  X(LEAKY_RELU, "LeakyRelu", alpha_init, unary, RN_TYPES_FLOATS)                    \
  X(LEAKY_RELU_GRAD, "LeakyReluGrad", alpha_init, leaky_relu_grad, RN_TYPES_FLOATS) \
  X(CLIP, "ClipByValue", loop_init, clip, CLIPPED)
// The same for ops without a type attribute.
#define LOGIC_KERNELS(X)                             \
  X(LOGICAL_AND, "LogicalAnd", loop_init, binary, 0) \
  X(LOGICAL_OR, "LogicalOr", loop_init, binary, 0)   \
  X(LOGICAL_NOT, "LogicalNot", loop_init, unary, 0)

#define INIT(code, name, function, compute, set)                              \
  static rn_status_t init_##code(const rn_kernel_init_t* init, void* state) { \
    return function(init, RN_LOOP_##code, state);                             \
  }
KERNELS(INIT)
LOGIC_KERNELS(INIT)

#define ROW(code, name, function, compute_, set) \
  {.op = name,                                   \
   .device = "CPU",                              \
   .types = {{set ? "T" : NULL, set}},           \
   .flags = RN_KERNEL_IN_PLACE,                  \
   .state_size = sizeof(compare_loop_t),         \
   .init = init_##code,                          \
   .compute = compute_},

static const rn_kernel_def_t rows[] = {KERNELS(ROW) LOGIC_KERNELS(ROW)};
RN_KERNEL_FAMILY(cpu_compare, rows);

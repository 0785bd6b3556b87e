// Every scalar operation of the loop compiler, in every type, against the CPU's kernel of the same
// op: one row per op. Casts between all pairs of types. What is compared is the formulas; the
// functions of the C library that the emulated card uses differ from the GPU's in the last bits.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "eager/eager.h"
#include "jit_card.h"
#include "tensor/float16.h"

#define COUNT 1024
#define MAX_CASES 256

// Where the operands come from.
typedef enum domain_t {
  ANY,       // special values and numbers of all sizes
  MODERATE,  // [-8, 8]
  POSITIVE,  // (0, 20]
  UNIT,      // [-1, 1]
  GAMMA,     // first and second operand in (0, 20]
  BETA,      // two in (0, 10], the third in [0, 1]
  DIVISION,  // the second operand is not 0 if it is an integer
  POWER,     // whole exponents from 0 to 5, bases in [-8, 8]; of floats, positive bases
  ORDER,     // first operand a small whole number, second positive
} domain_t;

// |ulps| are units in the last place of the type that may differ; of complex numbers, of the larger
// part.
typedef struct scalar_row_t {
  const char* op;
  int ulps;
  domain_t domain;
} scalar_row_t;

static const scalar_row_t rows[] = {
    {"Abs", 0, ANY},
    {"Acos", 3, UNIT},
    {"Acosh", 3, POSITIVE},
    {"Add", 0, ANY},
    {"AddV2", 0, ANY},
    {"Angle", 3, MODERATE},
    {"ApproximateEqual", 0, ANY},
    {"Asin", 3, UNIT},
    {"Asinh", 3, MODERATE},
    {"Atan", 3, ANY},
    {"Atan2", 3, ANY},
    {"Atanh", 3, UNIT},
    {"BesselI0", 2, MODERATE},
    {"BesselI0e", 2, ANY},
    {"BesselI1", 2, MODERATE},
    {"BesselI1e", 2, ANY},
    {"BesselJ0", 2, ANY},
    {"BesselJ1", 2, ANY},
    {"BesselK0", 2, MODERATE},
    {"BesselK0e", 2, ANY},
    {"BesselK1", 2, MODERATE},
    {"BesselK1e", 2, ANY},
    {"BesselY0", 2, ANY},
    {"BesselY1", 2, ANY},
    {"Betainc", 8, BETA},
    {"BitwiseAnd", 0, ANY},
    {"BitwiseOr", 0, ANY},
    {"BitwiseXor", 0, ANY},
    {"Ceil", 0, ANY},
    {"ClipByValue", 0, ANY},
    {"Complex", 0, ANY},
    {"ComplexAbs", 2, MODERATE},
    {"Conj", 0, ANY},
    {"Cos", 3, MODERATE},
    {"Cosh", 3, MODERATE},
    {"Dawsn", 4, ANY},
    {"Digamma", 4, MODERATE},
    {"Div", 3, DIVISION},
    {"DivNoNan", 3, MODERATE},
    {"Elu", 3, ANY},
    {"EluGrad", 0, ANY},
    {"Equal", 0, ANY},
    {"Erf", 3, ANY},
    {"Erfc", 4, MODERATE},
    {"Erfinv", 4, UNIT},
    {"Exp", 3, MODERATE},
    {"Expint", 4, POSITIVE},
    {"Expm1", 3, MODERATE},
    {"Floor", 0, ANY},
    {"FloorDiv", 0, DIVISION},
    {"FloorMod", 0, DIVISION},
    {"FresnelCos", 16, MODERATE},
    {"FresnelSin", 16, MODERATE},
    {"Greater", 0, ANY},
    {"GreaterEqual", 0, ANY},
    {"Igamma", 8, GAMMA},
    {"IgammaGradA", 16, GAMMA},
    {"Igammac", 8, GAMMA},
    {"Imag", 0, ANY},
    {"Inv", 3, MODERATE},
    {"InvGrad", 3, MODERATE},
    {"Invert", 0, ANY},
    {"IsFinite", 0, ANY},
    {"IsInf", 0, ANY},
    {"IsNan", 0, ANY},
    {"LeakyRelu", 0, ANY},
    {"LeakyReluGrad", 0, ANY},
    {"LeftShift", 0, ANY},
    {"Less", 0, ANY},
    {"LessEqual", 0, ANY},
    {"Lgamma", 4, ANY},
    {"Log", 3, POSITIVE},
    {"Log1p", 3, POSITIVE},
    {"LogicalAnd", 0, ANY},
    {"LogicalNot", 0, ANY},
    {"LogicalOr", 0, ANY},
    {"Maximum", 0, ANY},
    {"Minimum", 0, ANY},
    {"Mod", 0, DIVISION},
    {"Mul", 2, MODERATE},
    {"MulNoNan", 2, MODERATE},
    {"Ndtri", 4, UNIT},
    {"Neg", 0, ANY},
    {"NextAfter", 0, MODERATE},
    {"NotEqual", 0, ANY},
    {"Polygamma", 16, ORDER},
    {"PopulationCount", 0, ANY},
    {"Pow", 16, POWER},
    {"RandomGammaGrad", 16, GAMMA},
    {"Real", 0, ANY},
    {"RealDiv", 3, MODERATE},
    {"Reciprocal", 3, MODERATE},
    {"ReciprocalGrad", 3, MODERATE},
    {"Relu", 0, ANY},
    {"Relu6", 0, ANY},
    {"Relu6Grad", 0, ANY},
    {"ReluGrad", 0, ANY},
    {"RightShift", 0, ANY},
    {"Rint", 0, ANY},
    {"Round", 0, ANY},
    {"Rsqrt", 3, POSITIVE},
    {"RsqrtGrad", 4, MODERATE},
    {"SelectV2", 0, ANY},
    {"Selu", 3, ANY},
    {"SeluGrad", 0, ANY},
    {"Sigmoid", 4, MODERATE},
    {"SigmoidGrad", 4, MODERATE},
    {"Sign", 2, ANY},
    {"Sin", 3, MODERATE},
    {"Sinh", 3, MODERATE},
    {"Softplus", 4, ANY},
    {"SoftplusGrad", 4, MODERATE},
    {"Softsign", 0, ANY},
    {"SoftsignGrad", 2, MODERATE},
    {"Spence", 4, POSITIVE},
    {"Sqrt", 3, POSITIVE},
    {"SqrtGrad", 3, MODERATE},
    {"Square", 2, MODERATE},
    {"SquaredDifference", 3, MODERATE},
    {"Sub", 0, ANY},
    {"Tan", 4, MODERATE},
    {"Tanh", 4, MODERATE},
    {"TanhGrad", 4, MODERATE},
    {"TruncateDiv", 0, DIVISION},
    {"TruncateMod", 0, DIVISION},
    {"Xdivy", 3, MODERATE},
    {"Xlog1py", 4, POSITIVE},
    {"Xlogy", 4, POSITIVE},
    {"Zeta", 16, GAMMA},
};

static rn_eager_t* cpu;
static card_t card;

static void setup(void) {
  rn_eager_options_t options = {0};
  rn_session_options_init(&options.session);
  options.session.intra_threads = options.session.inter_threads = 1;
  card_must(rn_eager_create(&options, rn_env_system(), rn_allocator_default(), &cpu));
  card_open(&card);
}
static void teardown(void) {
  card_close(&card);
  rn_eager_release(cpu);
}
TestSuite(scalar_ops, .init = setup, .fini = teardown, .timeout = 300);

static uint64_t random_state = 12345;
static double uniform(void) {  // [0, 1)
  random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
  return (double)(random_state >> 11) * 0x1p-53;
}

static double any_number(int i) {
  static const double special[] = {0,   -0.0, 1,    -1,       2,         -2,      0.5,  -0.5, 1.5,
                                   2.5, 3.5,  -1.5, INFINITY, -INFINITY, NAN,     6,    7,    1e-3,
                                   100, -100, 20,   -20,      14,        1e4,     -1e4, 3,    -3,
                                   127, -128, 255,  0.1,      0.25,      0.99999, 1e-6, 40,   -40};
  const int count = sizeof special / sizeof *special;
  if (i < count * count) return special[uniform() < 0.5 ? i % count : (int)(uniform() * count)];
  return (uniform() - 0.5) * 64;
}

// Element |i| of operand |k|.
static double make_number(domain_t domain, int k, int i, bool is_float) {
  switch (domain) {
    case MODERATE:
      return (uniform() - 0.5) * 16;
    case POSITIVE:
      return uniform() * 20 + 1e-3;
    case UNIT:
      return uniform() * 2 - 1;
    case GAMMA:
      return uniform() * 20 + 1e-2 + (k == 0);
    case BETA:
      return k == 2 ? uniform() : uniform() * 10 + 1e-2;
    case POWER:
      return k ? floor(uniform() * 6) : is_float ? uniform() * 8 + 0.01 : (uniform() - 0.5) * 16;
    case ORDER:
      return k ? uniform() * 20 + 1e-2 : floor(uniform() * 4);
    case DIVISION:
      if (k && !is_float) {
        double y = floor((uniform() - 0.5) * 40);
        return y == 0 ? -1 : y;
      }
      return any_number(i);
    default:
      return any_number(i);
  }
}

static bool is_whole(rn_dtype_t dtype) { return rn_dtype_is_integer(dtype); }

static void put(rn_dtype_t dtype, void* data, int i, double re, double im) {
  const int64_t whole = isfinite(re) ? (int64_t)re : 77;
  const bool is_unsigned = dtype == RN_UINT8 || dtype == RN_UINT16 || dtype == RN_UINT32;
  switch (dtype) {
    case RN_FLOAT:
      ((float*)data)[i] = (float)re;
      break;
    case RN_DOUBLE:
      ((double*)data)[i] = re;
      break;
    case RN_HALF:
      ((uint16_t*)data)[i] = rn_float_to_half((float)re);
      break;
    case RN_BFLOAT16:
      ((uint16_t*)data)[i] = rn_float_to_bfloat16((float)re);
      break;
    case RN_BOOL:
      ((uint8_t*)data)[i] = re > 0;
      break;
    case RN_COMPLEX64:
      ((float*)data)[2 * i] = (float)re, ((float*)data)[2 * i + 1] = (float)im;
      break;
    case RN_COMPLEX128:
      ((double*)data)[2 * i] = re, ((double*)data)[2 * i + 1] = im;
      break;
    default:
      memcpy((char*)data + (size_t)i * rn_dtype_size(dtype),
             &(int64_t){is_unsigned && whole < 0 ? -whole : whole}, rn_dtype_size(dtype));
  }
}

// Real numbers per element: 2 of complex types.
static int parts_of(rn_dtype_t dtype) { return rn_dtype_is_complex(dtype) ? 2 : 1; }

static double get(rn_dtype_t dtype, const void* data, int i) {
  switch (dtype) {
    case RN_FLOAT:
    case RN_COMPLEX64:
      return ((const float*)data)[i];
    case RN_DOUBLE:
    case RN_COMPLEX128:
      return ((const double*)data)[i];
    case RN_HALF:
      return rn_half_to_float(((const uint16_t*)data)[i]);
    case RN_BFLOAT16:
      return rn_bfloat16_to_float(((const uint16_t*)data)[i]);
    default:
      return 0;
  }
}

static double epsilon_of(rn_dtype_t dtype) {
  switch (dtype) {
    case RN_HALF:
      return 0x1p-10;
    case RN_BFLOAT16:
      return 0x1p-7;
    case RN_FLOAT:
    case RN_COMPLEX64:
      return 0x1p-23;
    default:
      return 0x1p-52;
  }
}

static bool same_number(double a, double b, double tolerance) {
  if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
  return a == b || fabs(a - b) <= tolerance;
}

// Numbers below the smallest normal float count as zero: the CPU's kernels flush them.
static double flushed(double x) { return fabs(x) < 0x1p-126 ? 0 : x; }

static void compare(const char* what, rn_dtype_t dtype, int ulps, const void* value,
                    const void* expected) {
  if (!rn_dtype_is_floating(dtype) && !rn_dtype_is_complex(dtype)) {
    for (int i = 0; i < COUNT; ++i) {
      const size_t size = rn_dtype_size(dtype), at = (size_t)i * size;
      cr_expect(memcmp((const char*)value + at, (const char*)expected + at, size) == 0,
                "%s, element %d differs", what, i);
    }
    return;
  }
  const int parts = parts_of(dtype);
  for (int i = 0; i < COUNT; ++i) {
    double size = 0, a[2], b[2];
    for (int k = 0; k < parts; ++k) {
      a[k] = flushed(get(dtype, value, parts * i + k));
      b[k] = flushed(get(dtype, expected, parts * i + k));
      if (fabs(b[k]) > size && isfinite(b[k])) size = fabs(b[k]);
    }
    const double tolerance = ulps * epsilon_of(dtype) * size;
    for (int k = 0; k < parts; ++k)
      cr_expect(same_number(a[k], b[k], tolerance), "%s, element %d: %.17g instead of %.17g", what,
                i, a[k], b[k]);
  }
}

static rn_eager_handle_t* make_handle(rn_dtype_t dtype, const void* data) {
  rn_tensor_t tensor = {0};
  const int64_t dims[] = {COUNT};
  rn_eager_handle_t* handle = NULL;
  card_must(rn_tensor_create(rn_allocator_default(), dtype, (rn_shape_t){1, dims}, &tensor));
  memcpy(tensor.data, data, COUNT * rn_dtype_size(dtype));
  card_must(rn_eager_handle_create(&tensor, &handle));
  rn_tensor_clear(&tensor);
  return handle;
}

// Runs the CPU's kernel. False if there is none for these types.
static bool run_on_cpu(const char* name, const rn_dtype_t* dtypes, const void* const* in, int count,
                       const char* attr, rn_dtype_t result, void* out) {
  rn_eager_op_t* op = NULL;
  int32_t room = 1;
  rn_eager_handle_t* output = NULL;
  card_must(rn_eager_op_create(cpu, rn_str(name), &op));
  if (attr) {
    const rn_attr_value_t value = {.kind = RN_ATTR_TYPE, .type = result};
    rn_eager_op_set_attr(op, rn_str(attr), &value);
  }
  for (int k = 0; k < count; ++k) {
    rn_eager_handle_t* handle = make_handle(dtypes[k], in[k]);
    card_must(rn_eager_op_add_input(op, handle));
    rn_eager_handle_release(handle);
  }
  rn_status_t status = rn_eager_execute(op, &output, &room);
  const bool has_kernel = rn_ok(status);
  if (has_kernel) {
    const rn_tensor_t* value = NULL;
    card_must(rn_eager_handle_value(output, &value));
    cr_assert_eq(value->dtype, result, "%s gives %s", name, rn_dtype_name(value->dtype));
    memcpy(out, value->data, COUNT * rn_dtype_size(result));
    rn_eager_handle_release(output);
  } else {
    const rn_code_t code = rn_status_code(status);
    cr_assert(code == RN_CODE_NOT_FOUND || code == RN_CODE_UNIMPLEMENTED ||
                  strstr(rn_status_message(status), "not in the list of allowed values"),
              "%s of %s: %s", name, rn_dtype_name(dtypes[0]), rn_status_message(status));
  }
  rn_status_free(status);
  rn_eager_op_destroy(op);
  return has_kernel;
}

typedef struct scalar_case_t {
  char what[64];
  rn_dtype_t result;
  int ulps;
  void* in[3];
  void* expected;
} scalar_case_t;

static card_case_t cases[MAX_CASES];
static scalar_case_t checks[MAX_CASES];

static void* make_data(rn_dtype_t dtype) { return calloc(COUNT, rn_dtype_size(dtype)); }

static bool makes_complex(rn_scalar_code_t code) {
  return rn_scalar_op(code)->result == RN_SCALAR_GIVES_COMPLEX;
}
static bool makes_real(rn_scalar_code_t code) {
  return rn_scalar_op(code)->result == RN_SCALAR_GIVES_REAL;
}

// Adds |row| in |dtype| as case |at|; false if one of the sides has no such operation.
static bool add_case(const scalar_row_t* row, rn_dtype_t dtype, int at) {
  const rn_scalar_code_t code = rn_scalar_find(row->op);
  cr_assert_neq(code, RN_SCALAR_COUNT, "%s", row->op);
  const rn_dtype_t result = rn_scalar_result(code, dtype);
  if (result == RN_INVALID) return false;
  card_case_t* test = &cases[at];
  scalar_case_t* check = &checks[at];
  // The attribute is not an input of the op.
  const bool has_attr = code == RN_SCALAR_LEAKY_RELU || code == RN_SCALAR_LEAKY_RELU_GRAD ||
                        code == RN_SCALAR_APPROXIMATE_EQUAL;
  const int count = rn_scalar_op(code)->operands - has_attr;
  rn_dtype_t dtypes[3] = {dtype, dtype, dtype};
  if (code == RN_SCALAR_SELECT) dtypes[0] = RN_BOOL;
  memset(check, 0, sizeof *check);
  memset(test, 0, sizeof *test);
  check->expected = make_data(result);
  for (int k = 0; k < count; ++k) {
    check->in[k] = make_data(dtypes[k]);
    // Infinite parts of complex numbers are left to the formulas.
    const bool is_plain =
        rn_dtype_is_complex(dtype) && (row->domain == ANY || row->domain == DIVISION);
    const domain_t domain = is_plain ? MODERATE : row->domain;
    for (int i = 0; i < COUNT; ++i)
      put(dtypes[k], check->in[k], i, make_number(domain, k, i, !is_whole(dtype)),
          (uniform() - 0.5) * 4);
  }
  if (!run_on_cpu(row->op, dtypes, (const void* const*)check->in, count,
                  makes_real(code) || makes_complex(code) ? "Tout" : NULL, result, check->expected))
    return false;
  rn_jit_program_t* program = &test->program;
  rn_jit_begin(program, 0, RN_JIT_NO_FMA);
  int operands[4] = {-1, -1, -1, -1};
  for (int k = 0; k < count; ++k) {
    operands[k] = rn_jit_input(program, dtypes[k], RN_JIT_LINEAR, RN_JIT_FULL);
    test->in[k] = check->in[k];
    test->in_bytes[k] = COUNT * rn_dtype_size(dtypes[k]);
  }
  if (has_attr)
    operands[count] =
        rn_jit_constant(program, dtype, code == RN_SCALAR_APPROXIMATE_EQUAL ? 1e-5f : 0.2f);
  rn_jit_output(program, rn_jit_op(program, code, operands), result);
  test->sizes.count = COUNT;
  test->out[0] = make_data(result);
  test->out_bytes[0] = COUNT * rn_dtype_size(result);
  snprintf(check->what, sizeof check->what, "%s of %s", row->op, rn_dtype_name(dtype));
  check->result = result;
  check->ulps = row->ulps;
  return true;
}

static void run_cases(int count) {
  card_run(&card, cases, count);
  for (int i = 0; i < count; ++i) {
    compare(checks[i].what, checks[i].result, checks[i].ulps, cases[i].out[0], checks[i].expected);
    for (int k = 0; k < 3; ++k) free(checks[i].in[k]);
    free(checks[i].expected);
    free(cases[i].out[0]);
  }
}

static int run_type(rn_dtype_t dtype) {
  int count = 0;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) count += add_case(&rows[i], dtype, count);
  run_cases(count);
  return count;
}

#define TYPE_TEST(name, dtype, least)                         \
  Test(scalar_ops, name) {                                    \
    const int count = run_type(dtype);                        \
    cr_assert_geq(count, least, "only %d operations", count); \
  }
TYPE_TEST(float_type, RN_FLOAT, 110)
TYPE_TEST(double_type, RN_DOUBLE, 110)
TYPE_TEST(half_type, RN_HALF, 75)
TYPE_TEST(bfloat16_type, RN_BFLOAT16, 60)
TYPE_TEST(complex64_type, RN_COMPLEX64, 40)
TYPE_TEST(complex128_type, RN_COMPLEX128, 40)
TYPE_TEST(int8_type, RN_INT8, 25)
TYPE_TEST(int16_type, RN_INT16, 25)
TYPE_TEST(int32_type, RN_INT32, 25)
TYPE_TEST(int64_type, RN_INT64, 25)
TYPE_TEST(uint8_type, RN_UINT8, 20)
TYPE_TEST(uint16_type, RN_UINT16, 20)
TYPE_TEST(uint32_type, RN_UINT32, 20)
TYPE_TEST(uint64_type, RN_UINT64, 20)
TYPE_TEST(bool_type, RN_BOOL, 5)

// Values by mpmath, of 40 digits, which both devices must come close to.
static const struct {
  const char* op;
  double x, y, value;
} exact[] = {
    {"BesselJ0", 8.0, 0, 0.17165080713755390609},
    {"BesselJ1", 8.0, 0, 0.23463634685391462438},
    {"BesselY0", 8.0, 0, 0.22352148938756622053},
    {"BesselY1", 8.0, 0, -0.15806046173124749426},
    {"BesselJ0", 9.5, 0, -0.1939287476874223554},
    {"BesselJ1", 9.5, 0, 0.16126443075752985095},
    {"BesselY0", 9.5, 0, 0.17121062620272384487},
    {"BesselY1", 9.5, 0, 0.20317989938720766824},
    {"BesselJ0", 12.25, 0, 0.10093061051051510067},
    {"BesselJ1", 12.25, 0, -0.20035719875585499474},
    {"BesselY0", 12.25, 0, -0.20430162610894733601},
    {"BesselY1", 12.25, 0, -0.10933907409580198779},
    {"BesselJ0", 20.0, 0, 0.16702466434058315473},
    {"BesselJ1", 20.0, 0, 0.066833124175850045579},
    {"BesselY0", 20.0, 0, 0.062640596809383831162},
    {"BesselY1", 20.0, 0, -0.16551161436252129586},
    {"BesselJ0", 33.25, 0, 0.06945446912869488207},
    {"BesselJ1", 33.25, 0, 0.12072547111649002507},
    {"BesselY0", 33.25, 0, 0.11966776733586656539},
    {"BesselY1", 33.25, 0, -0.067663201363426152487},
    {"BesselJ0", 47.0, 0, -0.071248789901806190803},
    {"BesselJ1", 47.0, 0, 0.091268764240007885609},
    {"BesselY0", 47.0, 0, 0.09202144091971848505},
    {"BesselY1", 47.0, 0, 0.072231659660478083056},
    {"BesselJ0", 100.5, 0, 0.05443657381441359099},
    {"BesselJ1", 100.5, 0, -0.057791123996932020593},
    {"BesselY0", 100.5, 0, -0.058061227570355748507},
    {"BesselY1", 100.5, 0, -0.054726102094683486458},
    {"BesselJ0", 10000.0, 0, -0.0070961603533888014773},
    {"BesselJ1", 10000.0, 0, 0.0036474507555295803441},
    {"BesselY0", 10000.0, 0, 0.0036478055589866058867},
    {"BesselY1", 10000.0, 0, 0.007096342752536495135},
    {"Igammac", 0.25, 3.5, 0.0027650519944801160294},
    {"Igamma", 3.75, 0.5, 0.0030309093116296686988},
    {"Igammac", 7.5, 18.0, 0.0017678047536236312735},
    {"Igamma", 9.25, 4.0, 0.016922895943366815945},
    {"Igammac", 14.5, 30.25, 0.00053501526716761655959},
    {"Igamma", 19.75, 2.0, 1.1526766427798749581e-13},
    {"Igammac", 19.75, 41.0, 0.000083501886871978774654},
    {"Igamma", 29.5, 8.0, 4.1112019235322835728e-9},
    {"Igamma", 64.0, 40.0, 0.00028656627466535498715},
    {"Igammac", 250.0, 310.0, 0.00019383355388099422603},
    {"Igammac", 1.3815381, 2.6070948, 0.13440407839465646321},
    {"Igammac", 1.0977, 2.1535, 0.13588229374379439158},
    {"Igammac", 2.25, 2.96875, 0.25626682777014356587},
    {"Igammac", 12.5, 12.75, 0.43465088438071061188},
};

Test(scalar_ops, known_values_of_doubles) {
  enum { KNOWN = sizeof exact / sizeof *exact };
  for (int i = 0; i < KNOWN; ++i) {
    const scalar_row_t row = {exact[i].op, 8, GAMMA};
    cr_assert(add_case(&row, RN_DOUBLE, i));
    double* const of_cpu = checks[i].expected;
    for (int k = 0; k < COUNT; ++k) {
      ((double*)checks[i].in[0])[k] = exact[i].x;
      if (checks[i].in[1]) ((double*)checks[i].in[1])[k] = exact[i].y;
    }
    const rn_dtype_t dtypes[] = {RN_DOUBLE, RN_DOUBLE};
    cr_assert(run_on_cpu(row.op, dtypes, (const void* const*)checks[i].in, 1 + !!checks[i].in[1],
                         NULL, RN_DOUBLE, of_cpu));
    cr_expect(same_number(of_cpu[0], exact[i].value, 8 * 0x1p-52 * fabs(exact[i].value)),
              "CPU: %s of %g, %g: %.17g instead of %.17g", row.op, exact[i].x, exact[i].y,
              of_cpu[0], exact[i].value);
    for (int k = 0; k < COUNT; ++k) of_cpu[k] = exact[i].value;
  }
  run_cases(KNOWN);
}

// Only what programs use internally is without a row.
Test(scalar_ops, every_code_has_a_row, .init = NULL, .fini = NULL) {
  bool has[RN_SCALAR_COUNT] = {[RN_SCALAR_MULTIPLY_ADD] = true};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) has[rn_scalar_find(rows[i].op)] = true;
  for (int i = 0; i < RN_SCALAR_COUNT; ++i)
    cr_expect(has[i], "%s has no row", rn_scalar_op(i)->function);
}

Test(scalar_ops, casts) {
  static const rn_dtype_t types[] = {RN_HALF,   RN_BFLOAT16, RN_FLOAT, RN_DOUBLE,    RN_INT8,
                                     RN_INT16,  RN_INT32,    RN_INT64, RN_UINT8,     RN_UINT16,
                                     RN_UINT32, RN_UINT64,   RN_BOOL,  RN_COMPLEX64, RN_COMPLEX128};
  static const double far[] = {3e9,          -3e9,  1e10,   -1e10,      1e19,          -1e19,
                               1e30,         -1e30, 65520,  2147483648, -2147483649.0, 9.3e18,
                               4294967295.0, 0.999, -0.999, 300,        -300};
  const int type_count = sizeof types / sizeof *types, far_count = sizeof far / sizeof *far;
  int count = 0;
  for (int a = 0; a < type_count; ++a) {
    for (int b = 0; b < type_count; ++b) {
      if (a == b) continue;
      const rn_dtype_t from = types[a], to = types[b];
      card_case_t* test = &cases[count];
      scalar_case_t* check = &checks[count];
      memset(test, 0, sizeof *test);
      memset(check, 0, sizeof *check);
      check->in[0] = make_data(from);
      check->expected = make_data(to);
      for (int i = 0; i < COUNT; ++i)
        put(from, check->in[0], i,
            i < far_count && !is_whole(from) ? far[i] : make_number(ANY, 0, i, true), 1.5);
      cr_assert(
          run_on_cpu("Cast", &from, (const void* const*)check->in, 1, "DstT", to, check->expected));
      rn_jit_begin(&test->program, 0, 0);
      rn_jit_output(&test->program, rn_jit_input(&test->program, from, RN_JIT_LINEAR, RN_JIT_FULL),
                    to);
      test->in[0] = check->in[0];
      test->in_bytes[0] = COUNT * rn_dtype_size(from);
      test->sizes.count = COUNT;
      test->out[0] = make_data(to);
      test->out_bytes[0] = COUNT * rn_dtype_size(to);
      check->result = to;
      snprintf(check->what, sizeof check->what, "%s to %s", rn_dtype_name(from), rn_dtype_name(to));
      ++count;
    }
  }
  run_cases(count);
}

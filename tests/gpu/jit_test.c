// The loop compiler's loops: accesses, schedules, reductions and several passes, against plain
// loops in C. Scalar operations are in scalar_ops_test.c.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "jit_card.h"
#include "tensor/float16.h"

#define MAX_CASES 64
#define MAX_COUNT (1 << 17)

static card_t card;
static card_case_t cases[MAX_CASES];
static float numbers[MAX_COUNT];

static void setup(void) {
  card_open(&card);
  uint32_t state = 1;
  for (int i = 0; i < MAX_COUNT; ++i) {
    state = state * 1664525 + 1013904223;
    numbers[i] = (float)(int32_t)state * 0x1p-29f;  // [-4, 4)
  }
}
static void teardown(void) { card_close(&card); }
TestSuite(jit, .init = setup, .fini = teardown, .timeout = 300);

static void add_input(card_case_t* test, const void* data, size_t bytes) {
  int k = 0;
  while (test->in[k]) ++k;
  test->in[k] = data;
  test->in_bytes[k] = bytes;
}

static float* add_output(card_case_t* test, int64_t count) {
  int k = 0;
  while (test->out[k]) ++k;
  test->out_bytes[k] = (size_t)count * sizeof(float);
  test->out[k] = calloc((size_t)count + 1, sizeof(float));
  return test->out[k];
}

static bool near(double value, double expected, double tolerance) {
  if (isnan(expected)) return isnan(value);
  if (isinf(expected)) return value == expected;
  return fabs(value - expected) <= tolerance * (1 + fabs(expected));
}
#define CHECK(value, expected, tolerance, what, index)                                        \
  cr_assert(near(value, expected, tolerance), "%s, element %lld: %.9g instead of %.9g", what, \
            (long long)(index), (double)(value), (double)(expected))

// y = tanh(linear + row - column * scalar + strided), z = host * y.
static void add_accesses(card_case_t* test) {
  rn_jit_program_t* p = &test->program;
  rn_jit_begin(p, 3, 0);
  int linear = rn_jit_input(p, RN_FLOAT, RN_JIT_LINEAR, RN_JIT_FULL);
  int row = rn_jit_input(p, RN_FLOAT, RN_JIT_ROW, RN_JIT_FULL);
  int column = rn_jit_input(p, RN_FLOAT, RN_JIT_COLUMN, RN_JIT_FULL);
  int scalar = rn_jit_input(p, RN_FLOAT, RN_JIT_SCALAR, RN_JIT_FULL);
  int strided = rn_jit_input(p, RN_FLOAT, RN_JIT_STRIDED, RN_JIT_FULL);
  int host = rn_jit_input(p, RN_FLOAT, RN_JIT_HOST, RN_JIT_FULL);
  int sum = rn_jit_op2(p, RN_SCALAR_ADD, linear, row);
  sum = rn_jit_op2(p, RN_SCALAR_SUB, sum, rn_jit_op2(p, RN_SCALAR_MUL, column, scalar));
  int y = rn_jit_op1(p, RN_SCALAR_TANH, rn_jit_op2(p, RN_SCALAR_ADD, sum, strided));
  rn_jit_output(p, y, RN_FLOAT);
  rn_jit_output(p, rn_jit_op2(p, RN_SCALAR_MUL, host, y), RN_FLOAT);
}

Test(jit, accesses) {
  static const struct {
    int64_t dims[3];
    size_t shift;
    bool wide;
  } shapes[] = {{{4, 8, 16}, 0, false},  {{3, 5, 7}, 0, false},   {{2, 9, 12}, 4, false},
                {{1, 1, 1}, 0, false},   {{40, 25, 13}, 0, true}, {{64, 32, 20}, 8, true},
                {{20, 30, 64}, 0, false}};
  const int count = sizeof shapes / sizeof *shapes;
  float *y[8], *z[8];
  const float factor = 2.5f;
  for (int i = 0; i < count; ++i) {
    card_case_t* test = &cases[i];
    const int64_t* d = shapes[i].dims;
    const int64_t n = d[0] * d[1] * d[2];
    add_accesses(test);
    test->sizes = (rn_jit_sizes_t){.count = n, .dims = {d[0], d[1], d[2]}};
    test->shift = shapes[i].shift;
    test->is_wide = shapes[i].wide;
    for (int k = 0; k < 5; ++k) add_input(test, numbers + 100 * k, (size_t)n * sizeof(float));
    test->inputs[1].period = d[2];
    test->inputs[2].period = d[2];
    // The first two dimensions are transposed, the last is reversed.
    test->inputs[4].strides[0] = d[2];
    test->inputs[4].strides[1] = d[0] * d[2];
    test->inputs[4].strides[2] = 1;
    memcpy(test->inputs[5].number, &factor, sizeof factor);
    y[i] = add_output(test, n), z[i] = add_output(test, n);
  }
  card_run(&card, cases, count);
  for (int i = 0; i < count; ++i) {
    const int64_t* d = shapes[i].dims;
    for (int64_t at = 0; at < d[0] * d[1] * d[2]; ++at) {
      const int64_t c = at % d[2], b = at / d[2] % d[1], a = at / d[2] / d[1];
      double expected = tanh((double)numbers[at] + numbers[100 + c] -
                             (double)numbers[200 + at / d[2]] * numbers[300] +
                             numbers[400 + a * d[2] + b * d[0] * d[2] + c]);
      CHECK(y[i][at], expected, 2e-6, "accesses", at);
      CHECK(z[i][at], expected * factor, 5e-6, "accesses, second output", at);
    }
  }
}

// One sum, one maximum and, of a product with the input of the reduced space, one mean; the
// product itself is stored too.
static void add_reduction(card_case_t* test) {
  rn_jit_program_t* p = &test->program;
  rn_jit_begin(p, 0, 0);
  int x = rn_jit_input(p, RN_FLOAT, RN_JIT_LINEAR, RN_JIT_FULL);
  int scale = rn_jit_input(p, RN_FLOAT, RN_JIT_LINEAR, RN_JIT_REDUCED);
  int product = rn_jit_op2(p, RN_SCALAR_MUL, x, scale);
  rn_jit_output(p, rn_jit_reduce(p, RN_JIT_SUM, x), RN_FLOAT);
  rn_jit_output(p, rn_jit_reduce(p, RN_JIT_MAX, x), RN_FLOAT);
  int mean = rn_jit_reduce(p, RN_JIT_MEAN, product);
  rn_jit_output(p, rn_jit_op2(p, RN_SCALAR_ADD, mean, scale), RN_FLOAT);
  rn_jit_output(p, product, RN_FLOAT);
}

static void check_reduction(const card_case_t* test, int index) {
  const int64_t n = test->sizes.reduced, inner = test->sizes.inner;
  const float *sums = test->out[0], *maxima = test->out[1], *means = test->out[2],
              *products = test->out[3];
  for (int64_t q = 0; q < test->sizes.outer * inner; ++q) {
    const int64_t o = q / inner, c = q % inner;
    const double scale = numbers[77 + q];
    double sum = 0, max = -INFINITY, mean = 0;
    for (int64_t r = 0; r < n; ++r) {
      const int64_t at = (o * n + r) * inner + c;
      const double x = numbers[at];
      sum += x;
      mean += x * scale;
      if (x > max) max = x;
      CHECK(products[at], x * scale, 1e-6, "product", at);
    }
    char what[100];
    snprintf(what, sizeof what, "case %d, [%lld, %lld, %lld]", index, (long long)test->sizes.outer,
             (long long)n, (long long)inner);
    CHECK(sums[q], sum, 1e-4, what, q);
    CHECK(maxima[q], max, 0, what, q);
    CHECK(means[q], (n ? mean / (double)n : NAN) + scale, 1e-5, what, q);
  }
}

Test(jit, reductions) {
  static const int64_t shapes[][3] = {
      {5, 3, 1},    {100, 10, 1},   {64, 128, 1},  {33, 1000, 1}, {7, 1, 1},
      {3, 4000, 1}, {1, 70001, 1},  {2, 20000, 1}, {600, 5, 1},   {40, 2048, 1},
      {1, 100, 32}, {1, 4096, 8},   {3, 50, 7},    {1, 5, 3000},  {20, 40, 64},
      {1, 1, 5},    {1, 1000, 100}, {4, 0, 3},     {9, 0, 1},     {2, 3000, 3},
  };
  const int count = sizeof shapes / sizeof *shapes;
  for (int i = 0; i < count; ++i) {
    card_case_t* test = &cases[i];
    add_reduction(test);
    const int64_t o = shapes[i][0], n = shapes[i][1], inner = shapes[i][2];
    test->sizes =
        (rn_jit_sizes_t){.count = o * n * inner, .outer = o, .reduced = n, .inner = inner};
    test->is_wide = i % 7 == 6;
    add_input(test, numbers, (size_t)(o * n * inner) * sizeof(float));
    add_input(test, numbers + 77, (size_t)(o * inner) * sizeof(float));
    for (int k = 0; k < 4; ++k) add_output(test, k == 3 ? o * n * inner : o * inner);
  }
  card_run(&card, cases, count);
  bool seen[4] = {false}, has_split_rows = false, has_split_columns = false;
  for (int i = 0; i < count; ++i) {
    const rn_jit_variant_t* variant = &cases[i].grid.variant;
    seen[variant->schedule] = true;
    has_split_columns |= variant->split && variant->schedule == RN_JIT_COLUMNS;
    has_split_rows |= variant->split && variant->schedule == RN_JIT_ROWS_BY_BLOCKS;
    check_reduction(&cases[i], i);
  }
  cr_assert(seen[RN_JIT_ROWS_BY_LANES] && seen[RN_JIT_ROWS_BY_BLOCKS] && seen[RN_JIT_COLUMNS] &&
            has_split_rows && has_split_columns);
}

// Softmax and layer norm (with a row of factors) over rows.
static void add_softmax(rn_jit_program_t* p, rn_dtype_t dtype) {
  rn_jit_begin(p, 0, 0);
  int x = rn_jit_input(p, dtype, RN_JIT_LINEAR, RN_JIT_FULL);
  int top = rn_jit_reduce(p, RN_JIT_MAX, x);
  int e = rn_jit_op1(p, RN_SCALAR_EXP, rn_jit_op2(p, RN_SCALAR_SUB, x, top));
  rn_jit_output(p, rn_jit_op2(p, RN_SCALAR_DIV, e, rn_jit_reduce(p, RN_JIT_SUM, e)), dtype);
}
static void add_layer_norm(rn_jit_program_t* p) {
  rn_jit_begin(p, 0, 0);
  int x = rn_jit_input(p, RN_FLOAT, RN_JIT_LINEAR, RN_JIT_FULL);
  int gamma = rn_jit_input(p, RN_FLOAT, RN_JIT_ROW, RN_JIT_FULL);
  int mean = rn_jit_reduce(p, RN_JIT_MEAN, x);
  int away = rn_jit_op2(p, RN_SCALAR_SUB, x, mean);
  int variance = rn_jit_reduce(p, RN_JIT_MEAN, rn_jit_op1(p, RN_SCALAR_SQUARE, away));
  int shifted = rn_jit_op2(p, RN_SCALAR_ADD, variance, rn_jit_constant(p, RN_FLOAT, 1e-3));
  int scale = rn_jit_op1(p, RN_SCALAR_RSQRT, shifted);
  int y = rn_jit_op2(p, RN_SCALAR_MUL, rn_jit_op2(p, RN_SCALAR_MUL, away, scale), gamma);
  rn_jit_output(p, y, RN_FLOAT);
  rn_jit_output(p, mean, RN_FLOAT);
}

static void check_softmax(const card_case_t* test, bool is_half) {
  const int64_t n = test->sizes.reduced;
  for (int64_t o = 0; o < test->sizes.outer; ++o) {
    double sum = 0;
    const float* x = numbers + o * n;
#define AS_READ(k) (is_half ? rn_half_to_float(rn_float_to_half(x[k])) : x[k])
    for (int64_t k = 0; k < n; ++k) sum += exp(AS_READ(k));
    for (int64_t k = 0; k < n; ++k) {
      const double y = is_half ? rn_half_to_float(((const uint16_t*)test->out[0])[o * n + k])
                               : ((const float*)test->out[0])[o * n + k];
      char what[48];
      snprintf(what, sizeof what, "softmax of [%lld, %lld]", (long long)test->sizes.outer,
               (long long)n);
      CHECK(y, exp(AS_READ(k)) / sum, is_half ? 5e-4 : 1e-6, what, o * n + k);
    }
  }
}

static void check_layer_norm(const card_case_t* test) {
  const int64_t n = test->sizes.reduced;
  for (int64_t o = 0; o < test->sizes.outer; ++o) {
    const float* x = numbers + o * n;
    double mean = 0, variance = 0;
    for (int64_t k = 0; k < n; ++k) mean += x[k] / (double)n;
    for (int64_t k = 0; k < n; ++k) variance += (x[k] - mean) * (x[k] - mean) / (double)n;
    CHECK(((const float*)test->out[1])[o], mean, 1e-5, "mean", o);
    for (int64_t k = 0; k < n; ++k)
      CHECK(((const float*)test->out[0])[o * n + k],
            (x[k] - mean) / sqrt(variance + 1e-3) * numbers[5 + k], 2e-5, "layer norm", o * n + k);
  }
}

Test(jit, several_passes) {
  static const int64_t shapes[][2] = {{100, 10},  {60, 3},   {64, 128},  {9, 1000}, {5, 4096},
                                      {1, 70001}, {40, 777}, {3, 16384}, {300, 1}};
  static uint16_t halves[MAX_COUNT];
  for (int i = 0; i < MAX_COUNT; ++i) halves[i] = rn_float_to_half(numbers[i]);
  const int count = sizeof shapes / sizeof *shapes;
  for (int i = 0; i < 3 * count; ++i) {
    card_case_t* test = &cases[i];
    const int64_t o = shapes[i / 3][0], n = shapes[i / 3][1];
    test->sizes = (rn_jit_sizes_t){.count = o * n, .outer = o, .reduced = n, .inner = 1};
    if (i % 3 == 2)
      add_layer_norm(&test->program);
    else
      add_softmax(&test->program, i % 3 ? RN_HALF : RN_FLOAT);
    add_input(test, i % 3 == 1 ? (const void*)halves : numbers,
              (size_t)(o * n) * (i % 3 == 1 ? 2 : 4));
    add_output(test, o * n);
    if (i % 3 == 1) test->out_bytes[0] /= 2;
    if (i % 3 != 2) continue;
    add_input(test, numbers + 5, (size_t)n * sizeof(float));
    test->inputs[1].period = n;
    add_output(test, o);
  }
  card_run(&card, cases, 3 * count);
  bool has_kept = false, has_read_again = false;
  for (int i = 0; i < 3 * count; ++i) {
    if (i % 3 == 2)
      check_layer_norm(&cases[i]);
    else
      check_softmax(&cases[i], i % 3 == 1);
    has_kept |= cases[i].grid.variant.kept > 0;
    has_read_again |= cases[i].grid.variant.kept == 0;
  }
  cr_assert(has_kept && has_read_again);
}

// Every kind of reduction in |dtype| over [outer, reduced, inner] of small whole numbers, whose
// sums and products are exact in float.
#define TYPED_ROWS 6
#define TYPED_LENGTH 37

static int64_t small_number(rn_jit_reduction_t kind, int64_t i) {
  if (kind == RN_JIT_PROD) return i % 11 == 3 ? -1 : i % 9 == 0 ? 2 : 1;
  return i * 7 % 5 - (i % 3 == 0);  // [-1, 4]
}

static void put_small(rn_dtype_t dtype, void* data, int64_t i, int64_t x) {
  switch (dtype) {
    case RN_FLOAT:
      ((float*)data)[i] = (float)x;
      break;
    case RN_DOUBLE:
      ((double*)data)[i] = (double)x;
      break;
    case RN_HALF:
      ((uint16_t*)data)[i] = rn_float_to_half((float)x);
      break;
    case RN_BFLOAT16:
      ((uint16_t*)data)[i] = rn_float_to_bfloat16((float)x);
      break;
    case RN_COMPLEX64:
      ((float*)data)[2 * i] = (float)x, ((float*)data)[2 * i + 1] = (float)-x;
      break;
    case RN_BOOL:
      ((uint8_t*)data)[i] = x > 3;
      break;
    default:
      memcpy((char*)data + (size_t)i * rn_dtype_size(dtype), &x, rn_dtype_size(dtype));
  }
}

static void make_expected(rn_dtype_t dtype, rn_jit_reduction_t kind, int64_t inner, void* out) {
  for (int64_t q = 0; q < TYPED_ROWS * inner; ++q) {
    int64_t sum = 0, product = 1, max = INT64_MIN, min = INT64_MAX, any = 0;
    for (int64_t r = 0; r < TYPED_LENGTH; ++r) {
      int64_t x = small_number(kind, (q / inner * TYPED_LENGTH + r) * inner + q % inner);
      if (dtype == RN_UINT8) x = (uint8_t)x;  // the number that the bytes are
      sum += x;
      product = (int64_t)((uint64_t)product * (uint64_t)x);
      if (x > max) max = x;
      if (x < min) min = x;
      any |= x > 3;
    }
    const int64_t results[] = {sum, sum / TYPED_LENGTH, product, max, min, any ? 4 : 0, 0};
    put_small(dtype, out, q, results[kind]);
    const float mean = (float)sum / TYPED_LENGTH;
    if (kind == RN_JIT_MEAN && dtype == RN_FLOAT) ((float*)out)[q] = mean;
    if (kind == RN_JIT_MEAN && dtype == RN_DOUBLE) ((double*)out)[q] = (double)sum / TYPED_LENGTH;
    if (kind == RN_JIT_MEAN && dtype == RN_HALF) ((uint16_t*)out)[q] = rn_float_to_half(mean);
    if (kind == RN_JIT_MEAN && dtype == RN_BFLOAT16)
      ((uint16_t*)out)[q] = rn_float_to_bfloat16(mean);
  }
}

Test(jit, reductions_of_all_types) {
  static const rn_dtype_t types[] = {RN_FLOAT, RN_DOUBLE, RN_HALF,  RN_BFLOAT16,  RN_INT8,
                                     RN_INT32, RN_INT64,  RN_UINT8, RN_COMPLEX64, RN_BOOL};
  const int type_count = sizeof types / sizeof *types;
  rn_jit_reduction_t kinds[MAX_CASES];
  int count = 0;
  for (int i = 0; i < type_count * 7; ++i) {
    const rn_dtype_t dtype = types[i / 7];
    const rn_jit_reduction_t kind = i % 7;
    const int64_t inner = i % 2 ? 1 : 4, n = TYPED_ROWS * TYPED_LENGTH * inner;
    const bool is_logical = kind == RN_JIT_ANY || kind == RN_JIT_ALL;
    if (is_logical != (dtype == RN_BOOL) || count == MAX_CASES) continue;
    if (dtype == RN_COMPLEX64 && kind != RN_JIT_SUM) continue;
    card_case_t* test = &cases[count];
    kinds[count++] = kind;
    void* data = calloc((size_t)n, rn_dtype_size(dtype));
    for (int64_t k = 0; k < n; ++k) put_small(dtype, data, k, small_number(kind, k));
    rn_jit_program_t* p = &test->program;
    rn_jit_begin(p, 0, 0);
    rn_jit_output(p, rn_jit_reduce(p, kind, rn_jit_input(p, dtype, RN_JIT_LINEAR, RN_JIT_FULL)),
                  dtype);
    test->sizes =
        (rn_jit_sizes_t){.count = n, .outer = TYPED_ROWS, .reduced = TYPED_LENGTH, .inner = inner};
    add_input(test, data, (size_t)n * rn_dtype_size(dtype));
    test->out_bytes[0] = (size_t)(TYPED_ROWS * inner) * rn_dtype_size(dtype);
    test->out[0] = calloc(1, test->out_bytes[0]);
  }
  card_run(&card, cases, count);
  for (int i = 0; i < count; ++i) {
    const rn_dtype_t dtype = cases[i].program.inputs[0].dtype;
    void* expected = calloc(1, cases[i].out_bytes[0]);
    make_expected(dtype, kinds[i], cases[i].sizes.inner, expected);
    cr_expect(memcmp(expected, cases[i].out[0], cases[i].out_bytes[0]) == 0,
              "reduction %d of %s over inner %lld", kinds[i], rn_dtype_name(dtype),
              (long long)cases[i].sizes.inner);
    free(expected);
  }
}

// Without an input of the space: a fill.
Test(jit, numbers_over_the_space) {
  card_case_t* test = &cases[0];
  rn_jit_program_t* p = &test->program;
  rn_jit_begin(p, 0, 0);
  int number = rn_jit_input(p, RN_FLOAT, RN_JIT_SCALAR, RN_JIT_FULL);
  rn_jit_output(p, rn_jit_op2(p, RN_SCALAR_ADD, number, rn_jit_constant(p, RN_FLOAT, 0.1)),
                RN_FLOAT);
  test->sizes.count = 1001;
  add_input(test, numbers, sizeof(float));
  float* out = add_output(test, 1001);
  card_run(&card, cases, 1);
  for (int i = 0; i < 1001; ++i) cr_assert(out[i] == numbers[0] + 0.1f);
}

// Places of the extremes, with ties and NaN; the place of nothing is 0.
Test(jit, places_of_extremes) {
  static const int64_t shapes[][3] = {{20, 33, 1},  {3, 5000, 1}, {1, 50000, 1}, {1, 400, 40},
                                      {2, 9000, 3}, {6, 7, 5},    {5, 1, 1},     {4, 0, 1}};
  static float rough[MAX_COUNT];
  for (int i = 0; i < MAX_COUNT; ++i)
    rough[i] = i % 13 == 5 ? NAN : i % 33 == 7 ? INFINITY : rintf(numbers[i] * 4);
  for (int i = 0; i < 33; ++i) rough[i] = NAN;  // a row of nothing else
  const int count = sizeof shapes / sizeof *shapes;
  for (int i = 0; i < count; ++i) {
    card_case_t* test = &cases[i];
    const int64_t o = shapes[i][0], n = shapes[i][1], inner = shapes[i][2];
    rn_jit_program_t* p = &test->program;
    rn_jit_begin(p, 0, 0);
    int x = rn_jit_input(p, RN_FLOAT, RN_JIT_LINEAR, RN_JIT_FULL);
    rn_jit_output(p, rn_jit_reduce(p, RN_JIT_ARG_MAX, x), RN_INT64);
    rn_jit_output(p, rn_jit_reduce(p, RN_JIT_ARG_MIN, x), RN_INT32);
    test->sizes =
        (rn_jit_sizes_t){.count = o * n * inner, .outer = o, .reduced = n, .inner = inner};
    add_input(test, rough, (size_t)(o * n * inner) * sizeof(float));
    add_output(test, 2 * o * inner);
    add_output(test, o * inner);
  }
  card_run(&card, cases, count);
  for (int i = 0; i < count; ++i) {
    const int64_t n = shapes[i][1], inner = shapes[i][2];
    for (int64_t q = 0; q < shapes[i][0] * inner; ++q) {
      int64_t most = 0, least = 0;
      float max = -3.402823466e38f, min = 3.402823466e38f;
      for (int64_t r = 0; r < n; ++r) {
        const float x = rough[(q / inner * n + r) * inner + q % inner];
        if (x > max) max = x, most = r;
        if (x < min) min = x, least = r;
      }
      cr_assert_eq(((const int64_t*)cases[i].out[0])[q], most, "case %d, maximum %lld", i,
                   (long long)q);
      cr_assert_eq(((const int32_t*)cases[i].out[1])[q], least, "case %d, minimum %lld", i,
                   (long long)q);
    }
  }
}

// Variances of numbers whose mean is a thousand times as large as their spread.
Test(jit, variances) {
  static const int64_t shapes[][3] = {{20, 33, 1},  {3, 5000, 1}, {1, 100000, 1}, {1, 400, 40},
                                      {2, 9000, 3}, {5, 1, 1},    {4, 0, 1},      {1, 3000, 8}};
  static float shifted[MAX_COUNT];
  static double doubles[MAX_COUNT];
  for (int i = 0; i < MAX_COUNT; ++i) doubles[i] = shifted[i] = 4000 + numbers[i];
  const int count = sizeof shapes / sizeof *shapes;
  for (int i = 0; i < 2 * count; ++i) {
    card_case_t* test = &cases[i];
    const bool is_double = i % 2;
    const rn_dtype_t dtype = is_double ? RN_DOUBLE : RN_FLOAT;
    const int64_t o = shapes[i / 2][0], n = shapes[i / 2][1], inner = shapes[i / 2][2];
    rn_jit_program_t* p = &test->program;
    rn_jit_begin(p, 0, 0);
    int x = rn_jit_input(p, dtype, RN_JIT_LINEAR, RN_JIT_FULL);
    rn_jit_output(p, rn_jit_reduce(p, RN_JIT_VARIANCE, x), dtype);
    test->sizes =
        (rn_jit_sizes_t){.count = o * n * inner, .outer = o, .reduced = n, .inner = inner};
    add_input(test, is_double ? (const void*)doubles : shifted,
              (size_t)(o * n * inner) * rn_dtype_size(dtype));
    add_output(test, (is_double ? 2 : 1) * o * inner);
  }
  card_run(&card, cases, 2 * count);
  for (int i = 0; i < 2 * count; ++i) {
    const int64_t n = shapes[i / 2][1], inner = shapes[i / 2][2];
    for (int64_t q = 0; q < shapes[i / 2][0] * inner; ++q) {
      const double* x = doubles + q / inner * n * inner + q % inner;
      double mean = 0, variance = n ? 0 : NAN;
      for (int64_t r = 0; r < n; ++r) mean += x[r * inner] / (double)n;
      for (int64_t r = 0; r < n; ++r) variance += (x[r * inner] - mean) * (x[r * inner] - mean);
      if (n) variance /= (double)n;
      if (i % 2)
        CHECK(((const double*)cases[i].out[0])[q], variance, 1e-12, "variance of doubles", q);
      else
        CHECK(((const float*)cases[i].out[0])[q], variance, 1e-4, "variance of floats", q);
    }
  }
}

// A bias per channel of [batch, channels, places] is one element per access; an operand without the
// batch's halves is one access.
Test(jit, strided_neighbours) {
  static const int64_t shapes[][3] = {{3, 5, 8}, {2, 7, 16}, {4, 3, 12}};
  for (int i = 0; i < 3; ++i) {
    card_case_t* test = &cases[i];
    const int64_t* d = shapes[i];
    const int64_t n = d[0] * d[1] * d[2];
    rn_jit_program_t* p = &test->program;
    rn_jit_begin(p, 3, 0);
    int x = rn_jit_input(p, RN_FLOAT, RN_JIT_LINEAR, RN_JIT_FULL);
    int bias = rn_jit_input(p, RN_FLOAT, RN_JIT_STRIDED, RN_JIT_FULL);
    int other = rn_jit_input(p, RN_FLOAT, RN_JIT_STRIDED, RN_JIT_FULL);
    rn_jit_output(p, rn_jit_op3(p, RN_SCALAR_MULTIPLY_ADD, x, bias, other), RN_FLOAT);
    test->sizes = (rn_jit_sizes_t){.count = n, .dims = {d[0], d[1], d[2]}};
    for (int k = 0; k < 3; ++k) add_input(test, numbers + 64 * k, 2 * (size_t)n * sizeof(float));
    test->inputs[1].strides[1] = 1;
    test->inputs[2].strides[0] = 2 * d[2];
    test->inputs[2].strides[2] = 1;
    add_output(test, n);
  }
  card_run(&card, cases, 3);
  for (int i = 0; i < 3; ++i) {
    const int64_t* d = shapes[i];
    cr_expect(cases[i].grid.variant.flat == 2 && cases[i].grid.variant.unit == 4);
    for (int64_t at = 0; at < d[0] * d[1] * d[2]; ++at) {
      const int64_t c = at % d[2], b = at / d[2] % d[1], a = at / d[2] / d[1];
      CHECK(((const float*)cases[i].out[0])[at],
            (double)numbers[at] * numbers[64 + b] + numbers[128 + a * 2 * d[2] + c], 1e-6,
            "strided neighbours", at);
    }
  }
}

// Random programs of the loop compiler against an interpreter; RUNNEL_TEST_SEED chooses them.
// Values are int32, which wrap, so results are exact in any order of the additions.
#include <criterion/criterion.h>
#include <stdio.h>

#include "jit_card.h"

#define PROGRAMS 40
#define MAX_COUNT 6000
#define DATA (4 * MAX_COUNT)

static card_case_t cases[PROGRAMS];
static int32_t data[DATA];
static uint64_t state;

static int pick(int n) {  // [0, n)
  state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
  return (int)((state >> 33) % (uint64_t)n);
}

// One array per value, as large as its space.
typedef struct interpreter_t {
  const card_case_t* test;
  int32_t* arrays[RN_JIT_MAX_VALUES];
} interpreter_t;

static int64_t column_of(const rn_jit_sizes_t* sizes, int64_t i) {
  return i / sizes->inner / sizes->reduced * sizes->inner + i % sizes->inner;
}

static int32_t read_input(const card_case_t* test, int k, int64_t i) {
  const int32_t* from = test->in[k];
  const rn_jit_operand_t* operand = &test->inputs[k];
  const int64_t* dims = test->sizes.dims;
  switch (test->program.inputs[k].access) {
    case RN_JIT_LINEAR:
      return from[i];
    case RN_JIT_ROW:
      return from[i % operand->period];
    case RN_JIT_COLUMN:
      return from[i / operand->period];
    case RN_JIT_STRIDED:
      return from[i % dims[2] * operand->strides[2] + i / dims[2] % dims[1] * operand->strides[1] +
                  i / dims[2] / dims[1] * operand->strides[0]];
    case RN_JIT_HOST:
      return (int32_t)operand->number[0];
    default:
      return from[0];
  }
}

static int32_t apply(rn_scalar_code_t code, const int32_t* x) {
  switch (code) {
    case RN_SCALAR_ADD:
      return (int32_t)((uint32_t)x[0] + (uint32_t)x[1]);
    case RN_SCALAR_SUB:
      return (int32_t)((uint32_t)x[0] - (uint32_t)x[1]);
    case RN_SCALAR_MUL:
      return (int32_t)((uint32_t)x[0] * (uint32_t)x[1]);
    case RN_SCALAR_MAXIMUM:
      return x[0] > x[1] ? x[0] : x[1];
    default:
      return (int32_t)(0u - (uint32_t)x[0]);
  }
}
static const rn_scalar_code_t codes[] = {RN_SCALAR_ADD, RN_SCALAR_SUB, RN_SCALAR_MUL,
                                         RN_SCALAR_MAXIMUM, RN_SCALAR_NEG};

static int32_t element(const interpreter_t* in, int value, bool is_full, int64_t at) {
  const rn_jit_program_t* p = &in->test->program;
  const bool widens = is_full && p->values[value].space == RN_JIT_REDUCED;
  if (widens) at = p->reduction_count ? column_of(&in->test->sizes, at) : 0;
  return in->arrays[value][at];
}

static void reduce(const interpreter_t* in, const rn_jit_value_t* value, int32_t* out) {
  const rn_jit_sizes_t* sizes = &in->test->sizes;
  for (int64_t q = 0; q < sizes->outer * sizes->inner; ++q) {
    uint32_t sum = 0;
    int32_t max = INT32_MIN, min = INT32_MAX;
    for (int64_t r = 0; r < sizes->reduced; ++r) {
      const int64_t o = q / sizes->inner, c = q % sizes->inner;
      const int32_t x = in->arrays[value->operands[0]][(o * sizes->reduced + r) * sizes->inner + c];
      sum += (uint32_t)x;
      if (x > max) max = x;
      if (x < min) min = x;
    }
    out[q] = value->code == RN_JIT_SUM ? (int32_t)sum : value->code == RN_JIT_MAX ? max : min;
  }
}

static void interpret(interpreter_t* in, int i) {
  const rn_jit_program_t* p = &in->test->program;
  const rn_jit_value_t* value = &p->values[i];
  const rn_jit_sizes_t* sizes = &in->test->sizes;
  const bool is_full = value->space == RN_JIT_FULL;
  const int64_t n = is_full ? sizes->count : p->reduction_count ? sizes->outer * sizes->inner : 1;
  int32_t* out = in->arrays[i] = calloc((size_t)n + 1, sizeof *out);
  if (value->kind == RN_JIT_REDUCE) {
    reduce(in, value, out);
    return;
  }
  for (int64_t at = 0; at < n; ++at) {
    if (value->kind == RN_JIT_INPUT) out[at] = read_input(in->test, value->code, at);
    if (value->kind == RN_JIT_CONSTANT) out[at] = (int32_t)value->number;
    if (value->kind != RN_JIT_OP) continue;
    int32_t operands[2] = {0};
    for (int k = 0; k < rn_scalar_op(value->code)->operands; ++k)
      operands[k] = element(in, value->operands[k], is_full, at);
    out[at] = apply(value->code, operands);
  }
}

static void check(const card_case_t* test, int number) {
  interpreter_t in = {.test = test};
  for (int i = 0; i < test->program.value_count; ++i) interpret(&in, i);
  for (int k = 0; k < test->program.output_count; ++k) {
    const int value = test->program.outputs[k];
    const bool is_full =
        test->program.values[value].space == RN_JIT_FULL || !test->program.reduction_count;
    const int64_t n = is_full ? test->sizes.count : test->sizes.outer * test->sizes.inner;
    for (int64_t at = 0; at < n; ++at) {
      const int32_t found = ((const int32_t*)test->out[k])[at],
                    expected = element(&in, value, is_full, at);
      cr_assert(found == expected,
                "program %d, output %d, element %lld: %d instead of %d ([%lld, %lld, %lld], "
                "schedule %d)",
                number, k, (long long)at, found, expected, (long long)test->sizes.outer,
                (long long)test->sizes.reduced, (long long)test->sizes.inner,
                test->grid.variant.schedule);
    }
  }
  for (int i = 0; i < test->program.value_count; ++i) free(in.arrays[i]);
}

static void make_sizes(rn_jit_sizes_t* sizes) {
  static const int64_t lengths[] = {1, 2, 3, 4, 7, 8, 12, 16, 31, 32, 40, 64, 100};
  const int count = sizeof lengths / sizeof *lengths;
  do {
    sizes->outer = lengths[pick(count)];
    sizes->reduced = pick(4) ? lengths[pick(count)] : 1000 + pick(3000);
    sizes->inner = pick(2) ? 1 : lengths[pick(count)];
    sizes->count = sizes->outer * sizes->reduced * sizes->inner;
  } while (sizes->count > MAX_COUNT);
  sizes->dims[0] = sizes->outer, sizes->dims[1] = sizes->reduced, sizes->dims[2] = sizes->inner;
}

static int add_input(card_case_t* test, bool reduces) {
  rn_jit_program_t* p = &test->program;
  const int k = p->input_count;
  const rn_jit_access_t access = pick(6);
  const bool is_reduced = reduces && access == RN_JIT_LINEAR && pick(4) == 0;
  const rn_jit_sizes_t* sizes = &test->sizes;
  rn_jit_operand_t* operand = &test->inputs[k];
  test->in[k] = data + pick(MAX_COUNT);
  test->in_bytes[k] = 3 * (size_t)MAX_COUNT * sizeof *data;
  operand->period = pick(2) ? 1 + pick(50) : sizes->inner * (pick(2) ? sizes->reduced : 1);
  // Dimensions in another order, or broadcast.
  const int64_t strides[4][3] = {{sizes->reduced * sizes->inner, sizes->inner, 1},
                                 {1, sizes->outer * sizes->inner, sizes->outer},
                                 {sizes->inner, 0, 1},
                                 {0, 1, 0}};
  memcpy(operand->strides, strides[pick(4)], sizeof *strides);
  operand->number[0] = (uint32_t)pick(1000);
  return rn_jit_input(p, RN_INT32, access, is_reduced ? RN_JIT_REDUCED : RN_JIT_FULL);
}

static void make_program(card_case_t* test) {
  rn_jit_program_t* p = &test->program;
  memset(test, 0, sizeof *test);
  make_sizes(&test->sizes);
  const bool reduces = pick(4) != 0;
  // Only rows allow what needs a reduction's result over the full space.
  const bool is_single = test->sizes.inner != 1;
  rn_jit_begin(p, 3, 0);
  for (int i = 1 + pick(5); i > 0; --i) add_input(test, reduces);
  rn_jit_constant(p, RN_INT32, pick(100) - 50);
  rn_jit_input(p, RN_INT32, RN_JIT_LINEAR, RN_JIT_FULL);
  test->in[p->input_count - 1] = data;
  test->in_bytes[p->input_count - 1] = MAX_COUNT * sizeof *data;
  for (int i = 4 + pick(20); i > 0; --i) {
    const int a = pick(p->value_count), b = pick(p->value_count);
    const rn_jit_value_t* value = &p->values[a];
    const bool may_reduce =
        value->space == RN_JIT_FULL && p->reduction_count < 4 && (!is_single || value->passes == 0);
    if (reduces && may_reduce && pick(5) == 0)
      rn_jit_reduce(p, (const rn_jit_reduction_t[]){RN_JIT_SUM, RN_JIT_MAX, RN_JIT_MIN}[pick(3)],
                    a);
    else
      rn_jit_op2(p, codes[pick(5)], a, b);
  }
  if (reduces && !p->reduction_count) rn_jit_reduce(p, RN_JIT_SUM, p->input_count);
  for (int tries = 0; tries < 20 || !p->output_count; ++tries) {
    const int i = p->value_count - 1 - pick(p->value_count);
    const rn_jit_value_t* value = &p->values[i];
    const bool fits = !is_single || value->space == RN_JIT_REDUCED || value->passes == 0;
    if (fits && p->output_count < 4) rn_jit_output(p, i, RN_INT32);
  }
  for (int k = 0; k < p->output_count; ++k) {
    test->out_bytes[k] = (size_t)(p->values[p->outputs[k]].space == RN_JIT_FULL || !reduces
                                      ? test->sizes.count
                                      : test->sizes.outer * test->sizes.inner) *
                         sizeof(int32_t);
    test->out[k] = calloc(1, test->out_bytes[k]);
  }
  test->shift = pick(4) ? 0 : 4 * (size_t)(1 + pick(3));
  test->is_wide = pick(6) == 0;
  test->processors = pick(2) ? 1 : 132;
}

Test(jit_random, programs, .timeout = 300) {
  card_t card;
  card_open(&card);
  const char* seed = getenv("RUNNEL_TEST_SEED");
  state = seed ? strtoull(seed, NULL, 10) : 1;
  for (int i = 0; i < DATA; ++i) data[i] = pick(2001) - 1000;
  for (int i = 0; i < PROGRAMS; ++i) make_program(&cases[i]);
  card_run(&card, cases, PROGRAMS);
  for (int i = 0; i < PROGRAMS; ++i) check(&cases[i], i);
  card_close(&card);
}

// Machine code of fused chains: random programs give the bits that the steps' functions give, for
// every length, with and without flushing of denormals; and code is made where it should be.
#include "kernels/cpu/planner/fused_code.h"

#include <criterion/criterion.h>
#include <math.h>

#include "../support/status.h"
#include "base/denormals.h"
#include "kernels/cpu/isa.h"

enum { MOST = 3000, INPUTS = 14, OUTPUTS = 3, STEPS = 40 };

static uint64_t next(uint64_t* state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return *state >> 33;
}
static int below(uint64_t* state, int n) { return (int)(next(state) % (uint64_t)n); }

// Numbers of all sizes, and one in four special.
static double number(uint64_t* state) {
  static const double specials[] = {0.0,    -0.0,   NAN,     INFINITY, -INFINITY, 1e-40,
                                    -1e-40, 1e-310, -1e-310, 3.4e38,   -3.4e38,   6,
                                    1,      0.5,    -1,      5.5,      -2.5,      1e300};
  if (below(state, 4) == 0) return specials[below(state, sizeof specials / sizeof *specials)];
  return ldexp((double)below(state, 2000001) / 1000000 - 1, below(state, 12) - 4);
}

static void set(rn_dtype_t dtype, void* data, int64_t i, double value) {
  if (dtype == RN_FLOAT)
    ((float*)data)[i] = (float)value;
  else
    ((double*)data)[i] = value;
}

// NaNs are equal: which of two NaNs an addition passes on is not defined.
static bool same(rn_dtype_t dtype, const void* a, const void* b, int64_t i) {
  if (dtype == RN_FLOAT) {
    const float x = ((const float*)a)[i], y = ((const float*)b)[i];
    return memcmp(&x, &y, sizeof x) == 0 || (isnan(x) && isnan(y));
  }
  const double x = ((const double*)a)[i], y = ((const double*)b)[i];
  return memcmp(&x, &y, sizeof x) == 0 || (isnan(x) && isnan(y));
}

typedef struct code_case_t {
  rn_fused_t program;
  rn_fused_step_t steps[STEPS];
  uint64_t scalars;
} code_case_t;

static bool is_unary(uint16_t code) {
  switch (code) {
#define ARITY(enumerator, op, count) \
  case RN_VECTOR_##enumerator:       \
    return count == 1;
    RN_VECTOR_OPS(ARITY)
#undef ARITY
  }
  return false;
}

// Draws a program: steps read anything written before, also outputs, and write any operand.
static void draw(uint64_t* state, rn_dtype_t dtype, code_case_t* drawn) {
  rn_fused_t* program = &drawn->program;
  *program = (rn_fused_t){.dtype = dtype, .steps = drawn->steps};
  program->inputs = (int16_t)(1 + below(state, INPUTS));
  program->temporaries = (int16_t)below(state, RN_FUSED_TEMPORARIES + 1);
  program->outputs = (int16_t)(1 + below(state, OUTPUTS));
  program->step_count = program->outputs + 1 + below(state, STEPS - OUTPUTS - 1);
  drawn->scalars = next(state) & next(state) & ((UINT64_C(1) << program->inputs) - 1);
  int written[RN_FUSED_OPERANDS], count = 0;
  for (int i = 0; i < program->inputs; ++i) written[count++] = i;
  for (int i = 0; i < program->step_count; ++i) {
    rn_fused_step_t* step = &drawn->steps[i];
    step->code = (uint16_t)(1 + below(state, RN_VECTOR_COUNT - 1));
    if (below(state, 3) > 0) step->code = (uint16_t)(RN_VECTOR_NEG + below(state, 14));
    step->a = (int16_t)written[below(state, count)];
    step->b = is_unary(step->code) ? -1 : (int16_t)written[below(state, count)];
    const int places = program->temporaries + program->outputs, last = program->step_count - i;
    const int place = last <= program->outputs ? places - last : below(state, places);
    step->out = (int16_t)(program->inputs + place);
    bool is_new = true;
    for (int w = 0; w < count; ++w) is_new &= written[w] != step->out;
    if (is_new) written[count++] = step->out;
  }
}

typedef struct arrays_t {
  void* in[INPUTS];
  void *out[OUTPUTS], *want[OUTPUTS];
} arrays_t;

static void check(code_case_t* drawn, const arrays_t* arrays, int64_t n, size_t width,
                  int* out_made) {
  rn_fused_t* program = &drawn->program;
  int in_steps[INPUTS];
  for (int i = 0; i < program->inputs; ++i) in_steps[i] = !(drawn->scalars >> i & 1);
  OK(rn_fused_check(program));
  rn_fused_code_t* code = NULL;
  OK(rn_fused_code_create(rn_allocator_system(), program, drawn->scalars, width, &code));
  *out_made += code != NULL;
  const void* in[INPUTS];
  memcpy(in, arrays->in, sizeof in);
  program->code = NULL;
  rn_fused_run(NULL, program, in, in_steps, arrays->want, n);
  program->code = code;
  rn_fused_run(NULL, program, in, in_steps, arrays->out, n);
  for (int k = 0; k < program->outputs; ++k)
    for (int64_t i = 0; i < n; ++i)
      cr_assert(same(program->dtype, arrays->out[k], arrays->want[k], i),
                "element %lld of %lld of output %d, %zu bytes wide", (long long)i, (long long)n, k,
                width);
  rn_fused_code_destroy(code);
}

static void check_random(rn_dtype_t dtype, size_t width, uint64_t seed) {
  arrays_t arrays;
  const size_t bytes = MOST * sizeof(double);
  for (int i = 0; i < INPUTS; ++i) arrays.in[i] = malloc(bytes);
  for (int i = 0; i < OUTPUTS; ++i) arrays.out[i] = malloc(bytes), arrays.want[i] = malloc(bytes);
  uint64_t state = seed;
  for (int i = 0; i < INPUTS; ++i)
    for (int64_t k = 0; k < MOST; ++k) set(dtype, arrays.in[i], k, number(&state));
  int made = 0;
  for (int round = 0; round < 400; ++round) {
    code_case_t drawn;
    draw(&state, dtype, &drawn);
    const uint64_t mode = round % 2 ? rn_denormals_flush() : 0;
    check(&drawn, &arrays, round % 4 ? below(&state, 300) : below(&state, MOST), width, &made);
    if (round % 2) rn_denormals_restore(mode);
  }
  cr_assert_gt(made, 200);
  for (int i = 0; i < INPUTS; ++i) free(arrays.in[i]);
  for (int i = 0; i < OUTPUTS; ++i) free(arrays.out[i]), free(arrays.want[i]);
}

// Every width that the processor has, not only that of its functions.
static bool has_width(size_t width) {
#ifdef __x86_64__
  if (width == 64) return rn_fused_code_width() == 64;
  return rn_fused_code_width() > 0;
#else
  (void)width;
  return false;
#endif
}

Test(fused_code, same_bits) {
  for (size_t width = 32; width <= 64; width *= 2) {
    if (!has_width(width)) continue;
    check_random(RN_FLOAT, width, 1);
    check_random(RN_DOUBLE, width, 2);
  }
}

// Each function that has a formula, alone twice in a row so that it becomes a loop.
Test(fused_code, same_bits_of_every_function) {
  arrays_t arrays = {{0}, {0}, {0}};
  uint64_t state = 3;
  for (int i = 0; i < 2; ++i) arrays.in[i] = malloc(MOST * sizeof(double));
  arrays.out[0] = malloc(MOST * sizeof(double)), arrays.want[0] = malloc(MOST * sizeof(double));
  for (int t = 0; t < 2; ++t) {
    const rn_dtype_t dtype = t ? RN_DOUBLE : RN_FLOAT;
    for (int i = 0; i < 2; ++i)
      for (int64_t k = 0; k < MOST; ++k) set(dtype, arrays.in[i], k, number(&state));
    for (uint16_t op = 1; op < RN_VECTOR_COUNT; ++op)
      for (int kind = 0; kind < 16; ++kind) {  // scalars, widths, flushing
        const size_t width = kind & 4 ? 64 : 32;
        if (!has_width(width)) continue;
        code_case_t drawn = {.scalars = (uint64_t)(kind % 4 == 3 ? 0 : kind % 4)};
        const int16_t b = is_unary(op) ? -1 : 1;
        drawn.steps[0] = (rn_fused_step_t){op, 0, b, 2};
        drawn.steps[1] = (rn_fused_step_t){RN_VECTOR_NEG, 2, -1, 3};
        drawn.program = (rn_fused_t){dtype, 2, 1, 1, 2, drawn.steps, NULL};
        int made = 0;
        const uint64_t mode = kind & 8 ? rn_denormals_flush() : 0;
        check(&drawn, &arrays, MOST - 7, width, &made);
        if (kind & 8) rn_denormals_restore(mode);
      }
  }
  for (int i = 0; i < 2; ++i) free(arrays.in[i]);
  free(arrays.out[0]), free(arrays.want[0]);
}

// (x * s + y) relu | tanh | - x: the first three steps are a loop, the last is alone.
Test(fused_code, parts) {
  static const rn_fused_step_t steps[] = {
      {RN_VECTOR_MUL, 0, 2, 3},   {RN_VECTOR_ADD_V2, 3, 1, 3}, {RN_VECTOR_RELU, 3, -1, 3},
      {RN_VECTOR_TANH, 3, -1, 3}, {RN_VECTOR_SUB, 3, 0, 4},
  };
  rn_fused_t program = {RN_FLOAT, 3, 1, 1, 5, steps, NULL};
  rn_fused_code_t* code = NULL;
  OK(rn_fused_code_create(rn_allocator_system(), &program, 4, rn_fused_code_width(), &code));
  if (rn_fused_code_width() == 0) {
    cr_assert_null(code);
    return;
  }
  cr_assert_not_null(code);
  cr_assert_eq(code->part_count, 2);
  cr_assert(code->parts[0].is_loop && code->parts[0].first == 0 && code->parts[0].end == 3);
  cr_assert(!code->parts[1].is_loop && code->parts[1].first == 3 && code->parts[1].end == 5);
  // Other operands than the code was made for run without it.
  float x[64], y[64], s[64], out[64], want[64];
  for (int i = 0; i < 64; ++i) x[i] = (float)i / 8 - 4, y[i] = (float)i / 16 - 2, s[i] = (float)i;
  const void* in[] = {x, y, s};
  rn_fused_run(NULL, &program, in, (const int[]){1, 1, 1}, (void*[]){want}, 64);
  program.code = code;
  rn_fused_run(NULL, &program, in, (const int[]){1, 1, 1}, (void*[]){out}, 64);
  cr_assert_arr_eq(out, want, sizeof out);
  rn_fused_code_destroy(code);
}

Test(fused_code, none_for_single_steps) {
  static const rn_fused_step_t steps[] = {{RN_VECTOR_MUL, 0, 0, 1}};
  rn_fused_t program = {RN_FLOAT, 1, 0, 1, 1, steps, NULL};
  rn_fused_code_t* code = NULL;
  OK(rn_fused_code_create(rn_allocator_system(), &program, 0, rn_fused_code_width(), &code));
  cr_assert_null(code);
}

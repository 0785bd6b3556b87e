// Fused elementwise chains: the same bits as the single ops, for any number of threads; and
// programs that are rejected.
#include "kernels/cpu/planner/fused.h"

#include <criterion/criterion.h>

#include "../support/status.h"

enum { COUNT = 70001 };

// ((x * s + y) relu tanh) - x, and its square; operands: x y s | t0 t1 | difference square
static const rn_fused_step_t steps[] = {
    {RN_VECTOR_MUL, 0, 2, 3},   {RN_VECTOR_ADD_V2, 3, 1, 3}, {RN_VECTOR_RELU, 3, -1, 4},
    {RN_VECTOR_TANH, 4, -1, 4}, {RN_VECTOR_SUB, 4, 0, 5},    {RN_VECTOR_SQUARE, 5, -1, 6},
};

static rn_fused_t program_of(rn_dtype_t dtype) {
  return (rn_fused_t){dtype, 3, 2, 2, sizeof steps / sizeof *steps, steps, NULL};
}

static void fill(rn_dtype_t dtype, void* data, int64_t n, int seed) {
  for (int64_t i = 0; i < n; ++i) {
    double value = (double)((i * 7919 + seed) % 1013) / 300 - 1.5;
    if (dtype == RN_FLOAT) ((float*)data)[i] = (float)value;
    if (dtype == RN_DOUBLE) ((double*)data)[i] = value;
    if (dtype == RN_HALF) ((uint16_t*)data)[i] = (uint16_t)(0x3000 + (i * 31 + seed) % 4000);
    if (dtype == RN_BFLOAT16) ((uint16_t*)data)[i] = (uint16_t)(0x3e00 + (i * 31 + seed) % 300);
  }
}

static void check_bits(rn_dtype_t dtype, int threads) {
  size_t bytes = COUNT * rn_dtype_size(dtype);
  char *x = malloc(bytes), *y = malloc(bytes), *s = malloc(bytes);
  char *a = malloc(bytes), *b = malloc(bytes), *want_a = malloc(bytes), *want_b = malloc(bytes);
  fill(dtype, x, COUNT, 1);
  fill(dtype, y, COUNT, 2);
  fill(dtype, s, 1, 700);
  rn_vector_run(RN_VECTOR_MUL, dtype, x, 1, s, 0, want_a, COUNT);
  rn_vector_run(RN_VECTOR_ADD_V2, dtype, want_a, 1, y, 1, want_a, COUNT);
  rn_vector_run(RN_VECTOR_RELU, dtype, want_a, 1, NULL, 0, want_a, COUNT);
  rn_vector_run(RN_VECTOR_TANH, dtype, want_a, 1, NULL, 0, want_a, COUNT);
  rn_vector_run(RN_VECTOR_SUB, dtype, want_a, 1, x, 1, want_a, COUNT);
  rn_vector_run(RN_VECTOR_SQUARE, dtype, want_a, 1, NULL, 0, want_b, COUNT);
  rn_pool_t* pool = NULL;
  OK(rn_pool_create(rn_allocator_system(), threads, &pool));
  rn_fused_t program = program_of(dtype);
  OK(rn_fused_check(&program));
  rn_fused_run(pool, &program, (const void*[]){x, y, s}, (const int[]){1, 1, 0}, (void*[]){a, b},
               COUNT);
  cr_assert_arr_eq(a, want_a, bytes);
  cr_assert_arr_eq(b, want_b, bytes);
  // In the place of an input that nothing reads afterwards.
  cr_assert(rn_fused_may_share(&program, 0, 0) && rn_fused_may_share(&program, 1, 1));
  rn_fused_run(pool, &program, (const void*[]){x, y, s}, (const int[]){1, 1, 0}, (void*[]){x, y},
               COUNT);
  cr_assert_arr_eq(x, want_a, bytes);
  cr_assert_arr_eq(y, want_b, bytes);
  rn_pool_destroy(pool);
  free(x), free(y), free(s), free(a), free(b), free(want_a), free(want_b);
}

Test(fused, same_bits) {
  static const rn_dtype_t types[] = {RN_FLOAT, RN_DOUBLE, RN_HALF, RN_BFLOAT16};
  for (int i = 0; i < 4; ++i)
    for (int threads = 1; threads <= 8; threads *= 2) check_bits(types[i], threads);
}

Test(fused, few_elements) {
  rn_fused_t program = program_of(RN_FLOAT);
  float x[3] = {1, -2, 3}, y[3] = {0, 0, 1}, s = 2, a[3], b[3];
  for (int n = 0; n <= 3; ++n) {
    memset(a, 0, sizeof a);
    rn_fused_run(NULL, &program, (const void*[]){x, y, &s}, (const int[]){1, 1, 0}, (void*[]){a, b},
                 n);
    for (int i = n; i < 3; ++i) cr_assert_eq(a[i], 0);
  }
  cr_assert_eq(a[1], 2);
  cr_assert_eq(b[1], 4);
}

static void check_refused(rn_fused_t program) {
  rn_status_t status = rn_fused_check(&program);
  cr_expect_eq(rn_status_code(status), RN_CODE_INVALID_ARGUMENT);
  rn_status_free(status);
}

Test(fused, bad_programs) {
  rn_fused_t program = program_of(RN_STRING);
  check_refused(program);  // no functions
  program = program_of(RN_FLOAT);
  program.step_count = 5;
  check_refused(program);  // an output is not written
  program = program_of(RN_FLOAT);
  program.temporaries = RN_FUSED_TEMPORARIES + 1;
  check_refused(program);
  program = program_of(RN_FLOAT);
  program.inputs = 60;
  check_refused(program);  // too many operands
  static const rn_fused_step_t bad[][1] = {
      {{RN_VECTOR_ADD, 0, 2, 1}},    // reads what is not written
      {{RN_VECTOR_ADD, 0, -1, 1}},   // a second argument is missing
      {{RN_VECTOR_NEG, -1, -1, 1}},  // a first argument is missing
      {{RN_VECTOR_NEG, 0, 0, 1}},    // a second argument too many
      {{RN_VECTOR_NEG, 0, -1, 0}},   // writes to an input
      {{RN_VECTOR_NEG, 0, -1, 2}},   // writes to nowhere
      {{RN_VECTOR_COUNT, 0, 0, 1}},  // no such function
      {{RN_VECTOR_NONE, 0, 0, 1}},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i)
    check_refused((rn_fused_t){RN_FLOAT, 1, 0, 1, 1, bad[i], NULL});
}

Test(fused, sharing_waits_for_the_last_reader) {
  // The output is written first, and the input read again after it.
  static const rn_fused_step_t late[] = {{RN_VECTOR_NEG, 0, -1, 1}, {RN_VECTOR_MUL, 1, 0, 1}};
  rn_fused_t program = {RN_FLOAT, 1, 0, 1, 2, late, NULL};
  OK(rn_fused_check(&program));
  cr_assert(!rn_fused_may_share(&program, 0, 0));
}

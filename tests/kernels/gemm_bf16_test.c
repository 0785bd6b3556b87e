// Products of bfloat16: by tiles and by pairs, against sums in double, with odd sizes, all
// transposes and one to eight threads. Skipped where the processor has no such instructions.
#include "kernels/cpu/gemm_bf16.h"

#include <criterion/criterion.h>
#include <math.h>

#include "../support/status.h"
#include "tensor/float16.h"

static uint32_t seed = 1;

static uint32_t next(uint32_t below) {
  seed = seed * 1664525u + 1013904223u;
  return (seed >> 8) % below;
}

static uint16_t* matrix(int64_t count, bool is_whole) {
  uint16_t* data = malloc((size_t)count * sizeof *data);
  cr_assert(data);
  for (int64_t i = 0; i < count; ++i)
    data[i] =
        rn_float_to_bfloat16(is_whole ? (float)next(9) - 4 : (float)next(1 << 20) / (1 << 19) - 1);
  return data;
}

static rn_gemm_t product_of(int64_t m, int64_t n, int64_t k, int transposes, bool is_whole) {
  return (rn_gemm_t){.dtype = RN_BFLOAT16,
                     .transpose_a = transposes & 1,
                     .transpose_b = transposes >> 1,
                     .m = m,
                     .n = n,
                     .k = k,
                     .a = matrix(m * k, is_whole),
                     .b = matrix(k * n, is_whole),
                     .c = matrix(m * n, false)};
}

static void free_product(rn_gemm_t* g) {
  free((void*)g->a);
  free((void*)g->b);
  free(g->c);
}

static double element(const void* data, bool is_transposed, int64_t rows, int64_t columns,
                      int64_t i, int64_t j) {
  const uint16_t* at = data;
  return rn_bfloat16_to_float(at[is_transposed ? j * rows + i : i * columns + j]);
}

// Whole numbers must be exact but for the last rounding; of others, each sum may be off by what
// adding in float may lose.
static void check(const rn_gemm_t* g, bool is_whole) {
  const uint16_t* c = g->c;
  for (int64_t i = 0; i < g->m; ++i)
    for (int64_t j = 0; j < g->n; ++j) {
      double sum = 0, size = 0;
      for (int64_t p = 0; p < g->k; ++p) {
        double term = element(g->a, g->transpose_a, g->m, g->k, i, p) *
                      element(g->b, g->transpose_b, g->k, g->n, p, j);
        sum += term;
        size += fabs(term);
      }
      uint16_t got = c[i * g->n + j];
      double error = fabs((double)rn_bfloat16_to_float(got) - sum);
      if (is_whole)
        cr_assert_eq(got, rn_float_to_bfloat16((float)sum), "[%ld, %ld] of %ld x %ld x %ld",
                     (long)i, (long)j, (long)g->m, (long)g->n, (long)g->k);
      else
        cr_assert_leq(error, fabs(sum) * 0x1p-8 + size * 0x1p-22, "[%ld, %ld] of %ld x %ld x %ld",
                      (long)i, (long)j, (long)g->m, (long)g->n, (long)g->k);
    }
}

// The ways of this processor: all of them, not only the fastest. Returns their number.
static int ways_here(rn_bf16_way_t ways[2]) {
  rn_bf16_way_t best = rn_bf16_way();
  if (!best.multiply) return 0;
  ways[0] = best;
  if (!best.uses_tiles) return 1;
  ways[1] = (rn_bf16_way_t){.table = best.table, .multiply = best.table->multiply_pairs};
  return 2;
}

static const int64_t sizes[][3] = {{1, 1, 1},      {1, 17, 33},    {3, 5, 7},     {16, 16, 32},
                                   {17, 33, 65},   {32, 32, 64},   {31, 64, 512}, {33, 65, 513},
                                   {2, 300, 1000}, {70, 1, 130},   {64, 130, 31}, {257, 70, 96},
                                   {300, 530, 40}, {260, 66, 1100}};
enum { SIZES = sizeof sizes / sizeof *sizes };

Test(gemm_bf16, odd_sizes) {
  rn_bf16_way_t ways[2];
  int count = ways_here(ways);
  if (!count) cr_skip_test("no instructions for bfloat16");
  rn_pool_t* pool = NULL;
  OK(rn_pool_create_on(rn_allocator_default(), 3, 3, &pool));
  for (int w = 0; w < count; ++w)
    for (int s = 0; s < SIZES; ++s)
      for (int variant = 0; variant < 8; ++variant) {
        bool is_whole = variant & 1;
        rn_gemm_t g = product_of(sizes[s][0], sizes[s][1], sizes[s][2], variant >> 1, is_whole);
        OK(rn_gemm_bf16(pool, &ways[w], &g));
        check(&g, is_whole);
        free_product(&g);
      }
  rn_pool_destroy(pool);
}

Test(gemm_bf16, threads_change_no_bits) {
  rn_bf16_way_t ways[2];
  int count = ways_here(ways);
  if (!count) cr_skip_test("no instructions for bfloat16");
  for (int w = 0; w < count; ++w) {
    rn_gemm_t g = product_of(700, 333, 1300, 0, false);
    uint16_t *first = g.c, *second = matrix(700 * 333, false);
    for (int threads = 1; threads <= 8; threads += threads) {
      rn_pool_t* pool = NULL;
      OK(rn_pool_create_on(rn_allocator_default(), threads, threads, &pool));
      g.c = threads == 1 ? first : second;
      OK(rn_gemm_bf16(pool, &ways[w], &g));
      rn_pool_destroy(pool);
      if (threads > 1) cr_assert_arr_eq(first, second, 700 * 333 * sizeof *first);
    }
    g.c = first;
    free(second);
    free_product(&g);
  }
}

Test(gemm_bf16, nan_and_infinity_stay_in_their_rows) {
  rn_bf16_way_t ways[2];
  int count = ways_here(ways);
  if (!count) cr_skip_test("no instructions for bfloat16");
  for (int w = 0; w < count; ++w) {
    rn_gemm_t g = product_of(18, 20, 37, 0, true);
    ((uint16_t*)g.a)[3 * 37 + 36] = 0x7fc0;
    ((uint16_t*)g.a)[17 * 37] = 0x7f80;
    OK(rn_gemm_bf16(NULL, &ways[w], &g));
    for (int64_t i = 0; i < 18; ++i)
      for (int64_t j = 0; j < 20; ++j) {
        float y = rn_bfloat16_to_float(((uint16_t*)g.c)[i * 20 + j]);
        if (i == 3) cr_assert(isnan(y));
        if (i == 17) cr_assert(!isfinite(y));
        if (i != 3 && i != 17) cr_assert(isfinite(y));
      }
    free_product(&g);
  }
}

// How products are divided into pieces: every element belongs to one piece, large products have
// wide blocks and read panels that all share, small ones a piece for each thread.
#include "kernels/cpu/gemm_grid.h"

#include <criterion/criterion.h>

#include "tensor/dtype.h"

enum { STRIP = 64 };

static rn_gemm_grid_t grid_of(int64_t m, int64_t n, int64_t k, int threads) {
  rn_gemm_part_t part = {.m = m,
                         .n = n,
                         .k = k,
                         .a_row = k,
                         .a_column = 1,
                         .b_row = n,
                         .b_column = 1,
                         .c_row = n,
                         .way = RN_GEMM_BLOCKS};
  return rn_gemm_divide(&part, sizeof(float), STRIP, threads);
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// The elements of all blocks.
static int64_t covered(const rn_gemm_grid_t* grid, int64_t m, int64_t n) {
  int64_t blocks = grid->whole, count = 0;
  if (grid->parts) blocks += (grid->pieces - grid->whole) / grid->parts;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t row = b / grid->across * grid->rows, column = b % grid->across * grid->columns;
    if (row < m) count += least(grid->rows, m - row) * least(grid->columns, n - column);
  }
  return count;
}

Test(gemm_grid, covers_the_product) {
  static const int64_t sizes[] = {24, 100, 128, 500, 768, 1000, 1024, 2048, 3072};
  const size_t count = sizeof sizes / sizeof *sizes;
  for (int threads = 1; threads <= 64; threads += 1 + threads / 2)
    for (size_t i = 0; i < count * count * count; ++i) {
      const int64_t m = sizes[i % count], n = sizes[i / count % count];
      const int64_t k = sizes[i / count / count];
      rn_gemm_grid_t grid = grid_of(m, n, k, threads);
      cr_assert_eq(covered(&grid, m, n), m * n, "%lld x %lld x %lld, %d threads", (long long)m,
                   (long long)n, (long long)k, threads);
      if (grid.shares_panels && grid.across > 1) cr_assert_eq(grid.columns % STRIP, 0);
    }
}

// Blocks of half a strip would read A once for every 32 columns.
Test(gemm_grid, large_products_have_wide_blocks) {
  for (int threads = 8; threads <= 32; threads *= 2)
    for (int64_t size = 1024; size <= 4096; size *= 2) {
      rn_gemm_grid_t grid = grid_of(size, size, size, threads);
      cr_assert(grid.shares_panels);
      cr_assert_geq(grid.columns, 2 * STRIP);
      cr_assert_geq(grid.pieces, threads);
    }
}

Test(gemm_grid, few_rows_keep_all_threads_busy) {
  static const int64_t columns[] = {500, 768, 3072};
  for (size_t i = 0; i < 3; ++i) {
    rn_gemm_grid_t grid = grid_of(128, columns[i], 768, 16);
    cr_assert_geq(grid.pieces, 16);
    cr_assert_not(grid.shares_panels);
  }
}

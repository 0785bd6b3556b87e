// Batch normalization loops. Sums run over blocks of rows, so that long ones stay accurate.
#include "kernels/cpu/isa/norm.h"

#include <math.h>

#include "kernels/cpu/isa/isa.h"

#define BLOCK_ROWS 64
#define WIDE 256  // columns summed at a time

// Sums |TERM|, of row r and column c, over the rows.
#define SUM_COLUMNS(TERM)                                                                    \
  for (int64_t first = 0; first < columns; first += WIDE) {                                  \
    int64_t n = columns - first < WIDE ? columns - first : WIDE;                             \
    for (int64_t c = 0; c < n; ++c) sums[first + c] = 0;                                     \
    for (int64_t start = 0; start < rows; start += BLOCK_ROWS) {                             \
      int64_t end = start + BLOCK_ROWS < rows ? start + BLOCK_ROWS : rows;                   \
      float part[WIDE] = {0};                                                                \
      for (int64_t r = start; r < end; ++r)                                                  \
        for (int64_t c = 0; c < n; ++c) part[c] += TERM(r * columns + first + c, first + c); \
      for (int64_t c = 0; c < n; ++c) sums[first + c] += part[c];                            \
    }                                                                                        \
  }

static void squares(const float* x, const float* mean, int64_t rows, int64_t columns,
                    float* restrict sums) {
#define TERM(at, c) ((x[at] - mean[c]) * (x[at] - mean[c]))
  SUM_COLUMNS(TERM)
#undef TERM
}

static void products(const float* dy, const float* x, const float* mean, int64_t rows,
                     int64_t columns, float* restrict sums) {
#define TERM(at, c) (dy[at] * (x[at] - mean[c]))
  SUM_COLUMNS(TERM)
#undef TERM
}

static void apply(const float* x, const float* mean, const float* scale, const float* offset,
                  float* y, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r, x += columns, y += columns)
    RN_IVDEP for (int64_t c = 0; c < columns; ++c) y[c] = (x[c] - mean[c]) * scale[c] + offset[c];
}

static void gradient(const float* dy, const float* x, const float* mean, const float* dy_mean,
                     const float* slope, const float* scale, float* dx, int64_t rows,
                     int64_t columns) {
  for (int64_t r = 0; r < rows; ++r, x += columns, dy += columns, dx += columns)
    RN_IVDEP for (int64_t c = 0; c < columns; ++c) dx[c] =
        (dy[c] - dy_mean[c] - (x[c] - mean[c]) * slope[c]) * scale[c];
}

static void factors(const float* scale, const float* variance, float epsilon, int64_t columns,
                    float* restrict out) {
  for (int64_t c = 0; c < columns; ++c) out[c] = scale[c] / sqrtf(variance[c] + epsilon);
}

const rn_norm_fns_t RN_ISA_NAME(rn_norm_)[1] = {{squares, products, apply, gradient, factors}};

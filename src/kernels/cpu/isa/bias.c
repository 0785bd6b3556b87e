// Adding a bias to rows, and summing rows for its gradient.
#include "kernels/cpu/isa/bias.h"

#include "kernels/cpu/isa/isa.h"

#define LANES 32       // partial sums per long row
#define BLOCK_ROWS 64  // rows summed on their own before joining the total
#define WIDE 256       // columns summed at a time

// Treats short rows as fewer, longer ones, to fill the registers.
#define BIAS(T, S)                                                                           \
  static void add_##S(const void* x_, const void* bias_, void* out_, int64_t rows,           \
                      int64_t columns) {                                                     \
    const T* x = x_;                                                                         \
    const T* bias = bias_;                                                                   \
    T* out = out_;                                                                           \
    for (int64_t r = 0; r < rows; ++r, x += columns, out += columns)                         \
      RN_IVDEP for (int64_t c = 0; c < columns; ++c) out[c] = (T)(x[c] + bias[c]);           \
  }                                                                                          \
  static void sum_##S(const void* x_, int64_t n, void* out) {                                \
    const T* x = x_;                                                                         \
    T total = 0;                                                                             \
    for (int64_t start = 0; start < n; start += BLOCK_ROWS * LANES) {                        \
      int64_t end = start + BLOCK_ROWS * LANES < n ? start + BLOCK_ROWS * LANES : n;         \
      T lane[LANES] = {0};                                                                   \
      int64_t i = start;                                                                     \
      for (; i + LANES <= end; i += LANES)                                                   \
        for (int j = 0; j < LANES; ++j) lane[j] = (T)(lane[j] + x[i + j]);                   \
      for (int j = 0; i + j < end; ++j) lane[j] = (T)(lane[j] + x[i + j]);                   \
      for (int width = LANES / 2; width; width /= 2)                                         \
        for (int j = 0; j < width; ++j) lane[j] = (T)(lane[j] + lane[j + width]);            \
      total = (T)(total + lane[0]);                                                          \
    }                                                                                        \
    *(T*)out = total;                                                                        \
  }                                                                                          \
  static void sum_wide_##S(const T* x, int64_t rows, int64_t columns, int64_t n, T* sums) {  \
    for (int64_t c = 0; c < n; ++c) sums[c] = 0;                                             \
    for (int64_t start = 0; start < rows; start += BLOCK_ROWS) {                             \
      int64_t end = start + BLOCK_ROWS < rows ? start + BLOCK_ROWS : rows;                   \
      T part[WIDE] = {0};                                                                    \
      for (int64_t r = start; r < end; ++r)                                                  \
        for (int64_t c = 0; c < n; ++c) part[c] = (T)(part[c] + x[r * columns + c]);         \
      for (int64_t c = 0; c < n; ++c) sums[c] = (T)(sums[c] + part[c]);                      \
    }                                                                                        \
  }                                                                                          \
  static void sum_rows_##S(const void* x_, int64_t rows, int64_t columns, void* sums_) {     \
    const T* x = x_;                                                                         \
    T* sums = sums_;                                                                         \
    int64_t merged = columns < WIDE / 4 ? WIDE / 2 / columns : 1, together = rows / merged;  \
    if (merged > 1 && together > 0) {                                                        \
      T wide[WIDE];                                                                          \
      sum_wide_##S(x, together, merged* columns, merged* columns, wide);                     \
      for (int64_t c = 0; c < columns; ++c) {                                                \
        T total = 0;                                                                         \
        for (int64_t i = 0; i < merged; ++i) total = (T)(total + wide[i * columns + c]);     \
        for (int64_t r = together * merged; r < rows; ++r)                                   \
          total = (T)(total + x[r * columns + c]);                                           \
        sums[c] = total;                                                                     \
      }                                                                                      \
      return;                                                                                \
    }                                                                                        \
    for (int64_t c = 0; c < columns; c += WIDE)                                              \
      sum_wide_##S(x + c, rows, columns, columns - c < WIDE ? columns - c : WIDE, sums + c); \
  }

BIAS(float, f32)
BIAS(double, f64)
BIAS(uint8_t, u8)
BIAS(uint16_t, u16)
BIAS(uint32_t, u32)
BIAS(uint64_t, u64)

#define SQUARES(T, S)                                                                \
  static void sum_squares_##S(const void* x_, int64_t n, void* out) {                \
    const T* x = x_;                                                                 \
    T total = 0;                                                                     \
    for (int64_t start = 0; start < n; start += BLOCK_ROWS * LANES) {                \
      int64_t end = start + BLOCK_ROWS * LANES < n ? start + BLOCK_ROWS * LANES : n; \
      T lane[LANES] = {0};                                                           \
      int64_t i = start;                                                             \
      for (; i + LANES <= end; i += LANES)                                           \
        for (int j = 0; j < LANES; ++j) lane[j] += x[i + j] * x[i + j];              \
      for (int j = 0; i + j < end; ++j) lane[j] += x[i + j] * x[i + j];              \
      for (int width = LANES / 2; width; width /= 2)                                 \
        for (int j = 0; j < width; ++j) lane[j] += lane[j + width];                  \
      total += lane[0];                                                              \
    }                                                                                \
    *(T*)out = total;                                                                \
  }
SQUARES(float, f32)
SQUARES(double, f64)

#define FIELDS(S) .add = add_##S, .sum_rows = sum_rows_##S, .sum = sum_##S

const rn_bias_fns_t RN_ISA_NAME(rn_bias_)[RN_DTYPE_COUNT] = {
    [RN_FLOAT] = {FIELDS(f32), .sum_squares = sum_squares_f32},
    [RN_DOUBLE] = {FIELDS(f64), .sum_squares = sum_squares_f64},
    [RN_UINT8] = {FIELDS(u8)},
    [RN_UINT16] = {FIELDS(u16)},
    [RN_UINT32] = {FIELDS(u32)},
    [RN_UINT64] = {FIELDS(u64)},
};

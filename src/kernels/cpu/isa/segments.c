// Rows of floats combined in registers. See segments.h.
#include "kernels/cpu/isa/segments.h"

#include <stdbool.h>

#include "kernels/cpu/isa/isa.h"

#define INLINE static inline __attribute__((always_inline))
// Registers of columns at a time.
enum { GROUP = 4 };

// |count| registers of columns, or |rest| elements of one. OP combines the accumulator x and the
// row y; |pairs|: by even and odd rows.
#define COLUMNS(name, pairs, OP)                                                      \
  INLINE void columns_##name(const float* in, int64_t rows, int64_t width, int count, \
                             int64_t rest, float* out) {                              \
    vf32_t sums[2][GROUP];                                                            \
    RN_UNROLL for (int k = 0; k < count; ++k) {                                       \
      sums[0][k] = READ(in + k * F32_WIDTH);                                          \
      if ((pairs) && rows > 1) sums[1][k] = READ(in + width + k * F32_WIDTH);         \
    }                                                                                 \
    const int64_t step = (pairs) ? 2 : 1;                                             \
    int64_t r = step;                                                                 \
    for (; r + step <= rows; r += step)                                               \
      RN_UNROLL for (int s = 0; s < ((pairs) ? 2 : 1); ++s)                           \
          RN_UNROLL for (int k = 0; k < count; ++k) {                                 \
        const vf32_t x = sums[s][k], y = READ(in + (r + s) * width + k * F32_WIDTH);  \
        sums[s][k] = OP;                                                              \
      }                                                                               \
    RN_UNROLL for (int k = 0; k < count; ++k) {                                       \
      if ((pairs) && r < rows) {                                                      \
        const vf32_t x = sums[0][k], y = READ(in + r * width + k * F32_WIDTH);        \
        sums[0][k] = OP;                                                              \
      }                                                                               \
      if ((pairs) && rows > 1) {                                                      \
        const vf32_t x = sums[0][k], y = sums[1][k];                                  \
        sums[0][k] = OP;                                                              \
      }                                                                               \
      if (rest)                                                                       \
        F32_STORE_N(out, sums[0][k], rest);                                           \
      else                                                                            \
        F32_STORE(out + k * F32_WIDTH, sums[0][k]);                                   \
    }                                                                                 \
  }                                                                                   \
  static void name(const float* in, int64_t rows, int64_t width, float* out) {        \
    int64_t c = 0;                                                                    \
    for (; c + GROUP * F32_WIDTH <= width; c += GROUP * F32_WIDTH)                    \
      columns_##name(in + c, rows, width, GROUP, 0, out + c);                         \
    for (; c + F32_WIDTH <= width; c += F32_WIDTH)                                    \
      columns_##name(in + c, rows, width, 1, 0, out + c);                             \
    if (c < width) columns_##name(in + c, rows, width, 1, width - c, out + c);        \
  }
#define READ(p) (rest ? F32_LOAD_N(p, rest) : F32_LOAD(p))
COLUMNS(sum, true, x + y)
COLUMNS(product, true, x* y)
COLUMNS(max, false, F32_MAX(x, y))
COLUMNS(min, false, F32_MIN(x, y))

const rn_segment_fns_t RN_ISA_NAME(rn_segments_) = {sum, product, max, min};

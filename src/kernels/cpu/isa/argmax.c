// See kernels/cpu/isa/argmax.h. The search starts from the smallest finite number, so only greater
// ones are found.
#include "kernels/cpu/isa/argmax.h"

#include <float.h>

#include "kernels/cpu/isa/isa.h"
#include "tensor/float16.h"

#define BLOCK 1024
#define LANES 64

// Finds a row's extreme block by block, in lanes; searches only a block that improves on the best
// for the position.
#define FIND(name, T, A, LOAD, BETTER, START)                                          \
  static void line_##name(const T* in, int64_t n, int64_t* out) {                      \
    A best = START;                                                                    \
    int64_t place = 0;                                                                 \
    for (int64_t at = 0; at < n; at += BLOCK) {                                        \
      int64_t end = at + BLOCK < n ? at + BLOCK : n, i = at;                           \
      A block = best;                                                                  \
      if (end - at >= LANES) {                                                         \
        A lanes[LANES];                                                                \
        for (int j = 0; j < LANES; ++j) lanes[j] = best;                               \
        for (; i + LANES <= end; i += LANES)                                           \
          for (int j = 0; j < LANES; ++j) {                                            \
            const A x = LOAD(in[i + j]), y = lanes[j];                                 \
            lanes[j] = BETTER ? x : y;                                                 \
          }                                                                            \
        for (int half = LANES / 2; half > 0; half /= 2)                                \
          for (int j = 0; j < half; ++j) {                                             \
            const A x = lanes[j + half], y = lanes[j];                                 \
            lanes[j] = BETTER ? x : y;                                                 \
          }                                                                            \
        block = lanes[0];                                                              \
      }                                                                                \
      for (; i < end; ++i) {                                                           \
        const A x = LOAD(in[i]), y = block;                                            \
        block = BETTER ? x : y;                                                        \
      }                                                                                \
      if (block == best) continue;                                                     \
      best = block;                                                                    \
      for (place = at; !(LOAD(in[place]) == best); ++place) {                          \
      }                                                                                \
    }                                                                                  \
    *out = place;                                                                      \
  }                                                                                    \
  static void arg_##name(const void* in_, int64_t rows, int64_t stride, int64_t width, \
                         int64_t* out) {                                               \
    const T* in = in_;                                                                 \
    if (stride == 1) {                                                                 \
      line_##name(in, rows, out);                                                      \
      return;                                                                          \
    }                                                                                  \
    A best[RN_ARGMAX_COLUMNS];                                                         \
    for (int64_t j = 0; j < width; ++j) {                                              \
      best[j] = START;                                                                 \
      out[j] = 0;                                                                      \
    }                                                                                  \
    for (int64_t r = 0; r < rows; ++r, in += stride)                                   \
      for (int64_t j = 0; j < width; ++j) {                                            \
        const A x = LOAD(in[j]), y = best[j];                                          \
        best[j] = BETTER ? x : y;                                                      \
        out[j] = BETTER ? r : out[j];                                                  \
      }                                                                                \
  }

#define SAME(v) (v)
#define HALF(v) rn_half_to_float(v)
#define BF16(v) rn_bfloat16_to_float(v)
#define BOTH(S, T, A, LOAD, LOWEST, HIGHEST) \
  FIND(max_##S, T, A, LOAD, (x > y), LOWEST) \
  FIND(min_##S, T, A, LOAD, (x < y), HIGHEST)
BOTH(half, uint16_t, float, HALF, -65504.0f, 65504.0f)
BOTH(bf16, uint16_t, float, BF16, -0x1.fep127f, 0x1.fep127f)
BOTH(f32, float, float, SAME, -FLT_MAX, FLT_MAX)
BOTH(f64, double, double, SAME, -DBL_MAX, DBL_MAX)
BOTH(i8, int8_t, int8_t, SAME, INT8_MIN, INT8_MAX)
BOTH(i16, int16_t, int16_t, SAME, INT16_MIN, INT16_MAX)
BOTH(i32, int32_t, int32_t, SAME, INT32_MIN, INT32_MAX)
BOTH(i64, int64_t, int64_t, SAME, INT64_MIN, INT64_MAX)
BOTH(u8, uint8_t, uint8_t, SAME, 0, UINT8_MAX)
BOTH(u16, uint16_t, uint16_t, SAME, 0, UINT16_MAX)
BOTH(u32, uint32_t, uint32_t, SAME, 0, UINT32_MAX)
BOTH(u64, uint64_t, uint64_t, SAME, 0, UINT64_MAX)

#define ROW(way)                                                                                  \
  {                                                                                               \
    [RN_HALF] = arg_##way##_half, [RN_BFLOAT16] = arg_##way##_bf16, [RN_FLOAT] = arg_##way##_f32, \
    [RN_DOUBLE] = arg_##way##_f64, [RN_INT8] = arg_##way##_i8, [RN_INT16] = arg_##way##_i16,      \
    [RN_INT32] = arg_##way##_i32, [RN_INT64] = arg_##way##_i64, [RN_UINT8] = arg_##way##_u8,      \
    [RN_UINT16] = arg_##way##_u16, [RN_UINT32] = arg_##way##_u32, [RN_UINT64] = arg_##way##_u64,  \
    [RN_BOOL] = arg_##way##_u8                                                                    \
  }

const rn_argmax_table_t RN_ISA_NAME(rn_argmax_table_) = {{ROW(max), ROW(min)}};

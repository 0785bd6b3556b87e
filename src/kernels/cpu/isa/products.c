// Sums of matmuls, one block at a time: see products.h.
//
// The sums of a block are in a buffer that stays in the L1 cache; a product is accumulated in
// registers and then added to them. So the bits are those of separate products added up, but no
// product is written to memory.
#include "kernels/cpu/isa/products.h"

#include <string.h>

#include "kernels/cpu/isa/isa.h"

#if defined(RN_ISA_avx512)
#define TILE_ROWS 6
#define TILE_REGISTERS 4
#elif defined(RN_ISA_avx2)
#define TILE_ROWS 4
#define TILE_REGISTERS 3
#else
#define TILE_ROWS 4
#define TILE_REGISTERS 3
#endif

#define LINE 64  // bytes per cache line: prefetched during the products

#define EACH                                                  \
  _Pragma("GCC unroll 8") for (int i = 0; i < TILE_ROWS; ++i) \
      _Pragma("GCC unroll 4") for (int j = 0; j < TILE_REGISTERS; ++j)

#define PRODUCTS(T, V, W, S, LOAD, STORE, SET1, FMA)                                               \
  /* One term of one tile; prefetches one line per step, from |ahead| on. */                       \
  static void term_##S(const T* a, const T* b, T* total, int32_t k, bool is_first,                 \
                       const T* ahead) {                                                           \
    V sum[TILE_ROWS][TILE_REGISTERS];                                                              \
    EACH sum[i][j] = SET1(0);                                                                      \
    for (int32_t p = 0; p < k; ++p, a += TILE_ROWS, b += TILE_REGISTERS * W) {                     \
      __builtin_prefetch(ahead + p * (LINE / (int)sizeof(T)));                                     \
      V right[TILE_REGISTERS];                                                                     \
      _Pragma("GCC unroll 4") for (int j = 0; j < TILE_REGISTERS; ++j) right[j] = LOAD(b + j * W); \
      _Pragma("GCC unroll 8") for (int i = 0; i < TILE_ROWS; ++i) {                                \
        const V left = SET1(a[i]);                                                                 \
        _Pragma("GCC unroll 4") for (int j = 0; j < TILE_REGISTERS; ++j) sum[i][j] =               \
            FMA(left, right[j], sum[i][j]);                                                        \
      }                                                                                            \
    }                                                                                              \
    EACH {                                                                                         \
      T* to = total + (i * TILE_REGISTERS + j) * W;                                                \
      if (!is_first) sum[i][j] = LOAD(to) + sum[i][j];                                             \
      STORE(to, sum[i][j]);                                                                        \
    }                                                                                              \
  }                                                                                                \
  static void products_##S(const rn_products_block_t* block) {                                     \
    enum { strip = TILE_REGISTERS * W };                                                           \
    T total[RN_PRODUCTS_TILES * TILE_ROWS * strip] __attribute__((aligned(64)));                   \
    const T *a = block->a, *b = block->b;                                                          \
    for (int64_t i = 0; block->descent && i < block->rows; ++i)                                    \
      for (int64_t j = 0; j < block->columns; j += LINE / (int64_t)sizeof(T))                      \
        __builtin_prefetch((const T*)block->c + i * block->c_row + j, 1, 2);                       \
    const T* start = block->c;                                                                     \
    for (int64_t i = 0; block->adds && i < block->rows; ++i, start += block->c_row)                \
      memcpy(total + i * strip, start, (size_t)block->columns * sizeof(T));                        \
    for (int32_t t = 0; t < block->count; ++t) {                                                   \
      int32_t k = block->ks[t];                                                                    \
      for (int64_t i = 0; i < block->rows; i += TILE_ROWS)                                         \
        term_##S(a + i / TILE_ROWS * block->a_tile, b, total + i * strip, k,                       \
                 t == 0 && !block->adds,                                                           \
                 b + k * strip + i / TILE_ROWS * k * (LINE / (int)sizeof(T)));                     \
      a += k * TILE_ROWS;                                                                          \
      b += k * strip;                                                                              \
    }                                                                                              \
    T* c = block->c;                                                                               \
    const T* from = total;                                                                         \
    for (int64_t i = 0; i < block->rows; ++i, c += block->c_row, from += strip) {                  \
      if (block->descent) {                                                                        \
        const T alpha = *(const T*)block->descent;                                                 \
        for (int64_t j = 0; j < block->columns; ++j) c[j] = c[j] - alpha * from[j];                \
      } else {                                                                                     \
        for (int64_t j = 0; j < block->columns; ++j) c[j] = from[j];                               \
      }                                                                                            \
    }                                                                                              \
  }

// C -= alpha * (a b) for a column a and a row b. Each product is rounded as term_##S rounds it: as
// the sum of 0 and one term. Rows of C are read and written in order.
#define AHEAD 1024  // bytes of C to prefetch ahead
#define OUTER(T, V, W, S, X)                                                             \
  static void outer_##S(const void* a_, const void* b_, void* c_, int64_t m, int64_t n,  \
                        const void* alpha) {                                             \
    const T *a = a_, *b = b_;                                                            \
    T* c = c_;                                                                           \
    const V rate = X##_SET1(*(const T*)alpha), zero = X##_SET1(0);                       \
    for (int64_t i = 0; i < m; ++i, c += n) {                                            \
      const V left = X##_SET1(a[i]);                                                     \
      int64_t j = 0;                                                                     \
      for (; j + 4 * W <= n; j += 4 * W) {                                               \
        _Pragma("GCC unroll 4") for (int r = 0; r < 4; ++r) {                            \
          __builtin_prefetch((char*)(c + j + r * W) + AHEAD, 1);                         \
          const V product = X##_FMA(left, X##_LOAD(b + j + r * W), zero);                \
          X##_STORE(c + j + r * W, X##_LOAD(c + j + r * W) - rate * product);            \
        }                                                                                \
      }                                                                                  \
      for (; j + W <= n; j += W)                                                         \
        X##_STORE(c + j, X##_LOAD(c + j) - rate * X##_FMA(left, X##_LOAD(b + j), zero)); \
      if (j < n) {                                                                       \
        const V product = X##_FMA(left, X##_LOAD_N(b + j, n - j), zero);                 \
        X##_STORE_N(c + j, X##_LOAD_N(c + j, n - j) - rate * product, n - j);            \
      }                                                                                  \
    }                                                                                    \
  }

PRODUCTS(float, vf32_t, F32_WIDTH, f32, F32_LOAD, F32_STORE, F32_SET1, F32_FMA)
PRODUCTS(double, vf64_t, F64_WIDTH, f64, F64_LOAD, F64_STORE, F64_SET1, F64_FMA)
OUTER(float, vf32_t, F32_WIDTH, f32, F32)
OUTER(double, vf64_t, F64_WIDTH, f64, F64)

const rn_products_table_t RN_ISA_NAME(rn_products_) = {
    .tile_rows = TILE_ROWS,
    .strip_bytes = TILE_REGISTERS * F32_WIDTH * (int)sizeof(float),
    .f32 = products_f32,
    .f64 = products_f64,
    .outer_f32 = outer_f32,
    .outer_f64 = outer_f64,
};

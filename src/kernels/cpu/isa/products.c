// Sums of matrix products, a tile at a time: see products.h.
//
// Two sets of registers: the product under way, and the sum of those before it. So the bits are
// those of products that were written out and added, and nothing is written out.
#include "kernels/cpu/isa/products.h"

#include "kernels/cpu/isa/isa.h"

#if defined(RN_ISA_avx512)
#define TILE_ROWS 6
#define F64_FMA(a, b, c) _mm512_fmadd_pd(a, b, c)
#elif defined(RN_ISA_avx2)
#define TILE_ROWS 3
#define F64_FMA(a, b, c) _mm256_fmadd_pd(a, b, c)
#else
#define TILE_ROWS 3
#define F64_FMA(a, b, c) ((a) * (b) + (c))
#endif
#define TILE_REGISTERS 2

#define EACH                                                  \
  _Pragma("GCC unroll 8") for (int i = 0; i < TILE_ROWS; ++i) \
      _Pragma("GCC unroll 2") for (int j = 0; j < TILE_REGISTERS; ++j)

#define PRODUCTS(T, V, W, S, LOAD, STORE, SET1, FMA)                                       \
  static void products_##S(const rn_products_part_t* part) {                               \
    const T *a = part->a, *b = part->b;                                                    \
    V total[TILE_ROWS][TILE_REGISTERS], sum[TILE_ROWS][TILE_REGISTERS];                    \
    for (int32_t t = 0; t < part->count; ++t) {                                            \
      EACH sum[i][j] = SET1(0);                                                            \
      for (int32_t p = 0; p < part->ks[t]; ++p, a += TILE_ROWS, b += TILE_REGISTERS * W) { \
        V right[TILE_REGISTERS];                                                           \
        _Pragma("GCC unroll 2") for (int j = 0; j < TILE_REGISTERS; ++j) right[j] =        \
            LOAD(b + j * W);                                                               \
        _Pragma("GCC unroll 8") for (int i = 0; i < TILE_ROWS; ++i) {                      \
          const V left = SET1(a[i]);                                                       \
          _Pragma("GCC unroll 2") for (int j = 0; j < TILE_REGISTERS; ++j) sum[i][j] =     \
              FMA(left, right[j], sum[i][j]);                                              \
        }                                                                                  \
      }                                                                                    \
      if (t == 0) {                                                                        \
        EACH total[i][j] = sum[i][j];                                                      \
      } else {                                                                             \
        EACH total[i][j] = total[i][j] + sum[i][j];                                        \
      }                                                                                    \
    }                                                                                      \
    T* c = part->c;                                                                        \
    if (part->descent) {                                                                   \
      const V alpha = SET1(*(const T*)part->descent);                                      \
      EACH {                                                                               \
        T* to = c + i * part->c_row + j * W;                                               \
        STORE(to, LOAD(to) - alpha * total[i][j]);                                         \
      }                                                                                    \
    } else {                                                                               \
      EACH STORE(c + i * part->c_row + j * W, total[i][j]);                                \
    }                                                                                      \
  }

PRODUCTS(float, vf32_t, F32_WIDTH, f32, F32_LOAD, F32_STORE, F32_SET1, F32_FMA)
PRODUCTS(double, vf64_t, F64_WIDTH, f64, F64_LOAD, F64_STORE, F64_SET1, F64_FMA)

const rn_products_table_t RN_ISA_NAME(rn_products_) = {
    .tile = {TILE_ROWS, TILE_REGISTERS* F32_WIDTH*(int)sizeof(float)},
    .f32 = products_f32,
    .f64 = products_f64,
};

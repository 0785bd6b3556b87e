// Matrix products by plain loops, for the types that no library does: rows of B, scaled, added to
// rows of C.
#include "kernels/cpu/isa/gemm.h"

#include <complex.h>

#include "kernels/cpu/isa/isa.h"

// Rows [begin, end) of C. A is m x k, B is k x n, both plain row-major (gemm.c transposes
// beforehand). Blocks of B stay in the cache while four rows of C are built from them.
#define BLOCK_K 64
#define BLOCK_N 512

#define ROWS(T, S)                                                                           \
  static void rows_##S(const void* a_, const void* b_, void* c_, int64_t begin, int64_t end, \
                       int64_t n, int64_t k) {                                               \
    const T* a = a_;                                                                         \
    const T* b = b_;                                                                         \
    T* c = c_;                                                                               \
    for (int64_t i = begin * n; i < end * n; ++i) c[i] = 0;                                  \
    for (int64_t j0 = 0; j0 < n; j0 += BLOCK_N) {                                            \
      int64_t j1 = j0 + BLOCK_N < n ? j0 + BLOCK_N : n;                                      \
      for (int64_t p0 = 0; p0 < k; p0 += BLOCK_K) {                                          \
        int64_t p1 = p0 + BLOCK_K < k ? p0 + BLOCK_K : k;                                    \
        for (int64_t i = begin; i < end; ++i) {                                              \
          T* row = c + i * n;                                                                \
          for (int64_t p = p0; p < p1; ++p) {                                                \
            const T x = a[i * k + p];                                                        \
            const T* other = b + p * n;                                                      \
            for (int64_t j = j0; j < j1; ++j) row[j] += x * other[j];                        \
          }                                                                                  \
        }                                                                                    \
      }                                                                                      \
    }                                                                                        \
  }

ROWS(float, f32)
ROWS(double, f64)
ROWS(uint8_t, u8)
ROWS(uint16_t, u16)
ROWS(uint32_t, u32)
ROWS(uint64_t, u64)
ROWS(float complex, c64)
ROWS(double complex, c128)

const rn_gemm_rows_fn_t RN_ISA_NAME(rn_gemm_rows_)[RN_DTYPE_COUNT] = {
    [RN_FLOAT] = rows_f32,  [RN_DOUBLE] = rows_f64,    [RN_INT8] = rows_u8,
    [RN_INT16] = rows_u16,  [RN_INT32] = rows_u32,     [RN_INT64] = rows_u64,
    [RN_UINT8] = rows_u8,   [RN_UINT16] = rows_u16,    [RN_UINT32] = rows_u32,
    [RN_UINT64] = rows_u64, [RN_COMPLEX64] = rows_c64, [RN_COMPLEX128] = rows_c128,
};

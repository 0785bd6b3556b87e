// Matrix products: register tiles for float and double, plain loops for the other types.
//
// A tile is a few rows of A against a few registers' width of B, summed up over k in registers. B
// is read where it lies if its rows are short, else a panel of it (or of its transpose) is copied
// first. Every element of C is the same chain of operations, wherever its tile begins, so that
// cutting a product into parts changes no bit.
#include "kernels/cpu/isa/gemm.h"

#include <complex.h>
#include <string.h>

#include "kernels/cpu/isa/isa.h"

#if defined(RN_ISA_avx512)
#define TILE_ROWS 6
#define TILE_REGISTERS 4
#define F64_FMA(a, b, c) _mm512_fmadd_pd(a, b, c)
typedef __mmask16 m32_t;
typedef __mmask8 m64_t;
#define F32_MASK(n) ((__mmask16)((1u << (n)) - 1))
#define F64_MASK(n) ((__mmask8)((1u << (n)) - 1))
#define F32_LOAD_M(p, m) _mm512_maskz_loadu_ps(m, p)
#define F64_LOAD_M(p, m) _mm512_maskz_loadu_pd(m, p)
#define F32_STORE_M(p, m, v) _mm512_mask_storeu_ps(p, m, v)
#define F64_STORE_M(p, m, v) _mm512_mask_storeu_pd(p, m, v)
#elif defined(RN_ISA_avx2)
#define TILE_ROWS 4
#define TILE_REGISTERS 3
#define F64_FMA(a, b, c) _mm256_fmadd_pd(a, b, c)
typedef __m256i m32_t;
typedef __m256i m64_t;
static const int32_t mask_bits[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
#define F32_MASK(n) _mm256_loadu_si256((const void*)(mask_bits + 8 - (n)))
#define F64_MASK(n) _mm256_loadu_si256((const void*)(mask_bits + 8 - 2 * (n)))
#define F32_LOAD_M(p, m) _mm256_maskload_ps(p, m)
#define F64_LOAD_M(p, m) _mm256_maskload_pd(p, m)
#define F32_STORE_M(p, m, v) _mm256_maskstore_ps(p, m, v)
#define F64_STORE_M(p, m, v) _mm256_maskstore_pd(p, m, v)
#else
#define TILE_ROWS 4
#define TILE_REGISTERS 3
#define F64_FMA(a, b, c) ((a) * (b) + (c))
typedef int64_t m32_t;
typedef int64_t m64_t;
#define F32_MASK(n) (n)
#define F64_MASK(n) (n)
#define F32_LOAD_M(p, m) F32_LOAD_N(p, m)
#define F64_LOAD_M(p, m) F64_LOAD_N(p, m)
#define F32_STORE_M(p, m, v) F32_STORE_N(p, v, m)
#define F64_STORE_M(p, m, v) F64_STORE_N(p, v, m)
#endif

// Depth of a panel: with a tile's width of B it stays in the second-level cache.
#define PANEL_K 256
// Rows of C from which copying B pays.
#define PACK_ROWS 24
// Elements of a row of B up to which it is read in place, whatever the rows of C.
#define SHORT_ROW 256

#define INLINE static inline __attribute__((always_inline))

// c[j] = the sum of the elements of v[j], for |count| of four.
#if defined(RN_ISA_avx512) || defined(RN_ISA_avx2)
INLINE void fold_f32(const vf32_t* v, float* c, int count) {
  __m256 half[4];
  for (int j = 0; j < 4; ++j)
#ifdef RN_ISA_avx512
    half[j] = _mm256_add_ps(_mm512_castps512_ps256(v[j]), _mm512_extractf32x8_ps(v[j], 1));
#else
    half[j] = v[j];
#endif
  __m256 pairs = _mm256_hadd_ps(_mm256_hadd_ps(half[0], half[1]), _mm256_hadd_ps(half[2], half[3]));
  __m128 sums = _mm_add_ps(_mm256_castps256_ps128(pairs), _mm256_extractf128_ps(pairs, 1));
  if (count == 4)
    _mm_storeu_ps(c, sums);
  else
    *c = _mm_cvtss_f32(sums);
}
INLINE void fold_f64(const vf64_t* v, double* c, int count) {
  __m256d half[4];
  for (int j = 0; j < 4; ++j)
#ifdef RN_ISA_avx512
    half[j] = _mm256_add_pd(_mm512_castpd512_pd256(v[j]), _mm512_extractf64x4_pd(v[j], 1));
#else
    half[j] = v[j];
#endif
  for (int j = 0; j < count; j += 2) {
    __m256d pairs = _mm256_hadd_pd(half[j], half[j + 1]);
    __m128d sums = _mm_add_pd(_mm256_castpd256_pd128(pairs), _mm256_extractf128_pd(pairs, 1));
    if (count == 4)
      _mm_storeu_pd(c + j, sums);
    else
      *c = _mm_cvtsd_f64(sums);
  }
}
#else
#define FOLD(T, V, W, S, STORE)                       \
  INLINE void fold_##S(const V* v, T* c, int count) { \
    for (int j = 0; j < count; ++j) {                 \
      T lane[W], sum = 0;                             \
      STORE(lane, v[j]);                              \
      for (int i = 0; i < W; ++i) sum += lane[i];     \
      c[j] = sum;                                     \
    }                                                 \
  }
FOLD(float, vf32_t, F32_WIDTH, f32, F32_STORE)
FOLD(double, vf64_t, F64_WIDTH, f64, F64_STORE)
#endif

// |masked|: the last register of B and C has |mask| of its elements only.
#define TILE(T, V, M, W, S, LOAD, STORE, SET1, FMA, LOAD_M, STORE_M, MASK)                        \
  INLINE void tile_##S(int rows, int registers, bool masked, const T* a, int64_t a_row,           \
                       int64_t a_column, const T* b, int64_t b_row, T* c, int64_t c_row,          \
                       int64_t k, bool add, M mask) {                                             \
    V sum[2 * TILE_ROWS][TILE_REGISTERS];                                                         \
    int last = registers - 1;                                                                     \
    _Pragma("GCC unroll 16") for (int i = 0; i < rows; ++i)                                       \
        _Pragma("GCC unroll 8") for (int j = 0; j < registers; ++j) {                             \
      const T* from = c + i * c_row + j * W;                                                      \
      sum[i][j] = !add ? SET1(0) : masked && j == last ? LOAD_M(from, mask) : LOAD(from);         \
    }                                                                                             \
    for (int64_t p = 0; p < k; ++p, a += a_column, b += b_row) {                                  \
      V right[TILE_REGISTERS];                                                                    \
      _Pragma("GCC unroll 8") for (int j = 0; j < registers; ++j) right[j] =                      \
          masked && j == last ? LOAD_M(b + j * W, mask) : LOAD(b + j * W);                        \
      _Pragma("GCC unroll 16") for (int i = 0; i < rows; ++i) {                                   \
        const V left = SET1(a[i * a_row]);                                                        \
        _Pragma("GCC unroll 8") for (int j = 0; j < registers; ++j) sum[i][j] =                   \
            FMA(left, right[j], sum[i][j]);                                                       \
      }                                                                                           \
    }                                                                                             \
    _Pragma("GCC unroll 16") for (int i = 0; i < rows; ++i)                                       \
        _Pragma("GCC unroll 8") for (int j = 0; j < registers; ++j) {                             \
      T* to = c + i * c_row + j * W;                                                              \
      if (masked && j == last)                                                                    \
        STORE_M(to, mask, sum[i][j]);                                                             \
      else                                                                                        \
        STORE(to, sum[i][j]);                                                                     \
    }                                                                                             \
  }                                                                                               \
  /* All rows of A against |registers| of B. */                                                   \
  INLINE void strip_##S(int registers, bool masked, const T* a, int64_t a_row, int64_t a_column,  \
                        const T* b, int64_t b_row, T* c, int64_t c_row, int64_t m, int64_t k,     \
                        bool add, M mask) {                                                       \
    int64_t i = 0;                                                                                \
    /* A narrow strip needs more rows to keep the multipliers busy. */                            \
    if (registers == 1)                                                                           \
      for (; i + 2 * TILE_ROWS <= m; i += 2 * TILE_ROWS)                                          \
        tile_##S(2 * TILE_ROWS, 1, masked, a + i * a_row, a_row, a_column, b, b_row,              \
                 c + i * c_row, c_row, k, add, mask);                                             \
    for (; i + TILE_ROWS <= m; i += TILE_ROWS)                                                    \
      tile_##S(TILE_ROWS, registers, masked, a + i * a_row, a_row, a_column, b, b_row,            \
               c + i * c_row, c_row, k, add, mask);                                               \
    for (; i + 2 <= m; i += 2)                                                                    \
      tile_##S(2, registers, masked, a + i * a_row, a_row, a_column, b, b_row, c + i * c_row,     \
               c_row, k, add, mask);                                                              \
    if (i < m)                                                                                    \
      tile_##S(1, registers, masked, a + i * a_row, a_row, a_column, b, b_row, c + i * c_row,     \
               c_row, k, add, mask);                                                              \
  }                                                                                               \
  static void strip_any_##S(int64_t columns, const T* a, int64_t a_row, int64_t a_column,         \
                            const T* b, int64_t b_row, T* c, int64_t c_row, int64_t m, int64_t k, \
                            bool add) {                                                           \
    int registers = (int)((columns + W - 1) / W);                                                 \
    int rest = (int)(columns - (registers - 1) * W);                                              \
    if (registers == TILE_REGISTERS && rest == W) {                                               \
      strip_##S(TILE_REGISTERS, false, a, a_row, a_column, b, b_row, c, c_row, m, k, add,         \
                MASK(1));                                                                         \
      return;                                                                                     \
    }                                                                                             \
    const M mask = MASK(rest);                                                                    \
    if (registers == 1)                                                                           \
      strip_##S(1, true, a, a_row, a_column, b, b_row, c, c_row, m, k, add, mask);                \
    else if (registers == 2)                                                                      \
      strip_##S(2, true, a, a_row, a_column, b, b_row, c, c_row, m, k, add, mask);                \
    else if (registers == 3)                                                                      \
      strip_##S(3, true, a, a_row, a_column, b, b_row, c, c_row, m, k, add, mask);                \
    else                                                                                          \
      strip_##S(TILE_REGISTERS, true, a, a_row, a_column, b, b_row, c, c_row, m, k, add, mask);   \
  }                                                                                               \
  /* One row of C over many registers of B: enough sums under way to hide the latency. */         \
  static void row_##S(const T* a, int64_t a_column, const T* b, int64_t b_row, T* c, int64_t n,   \
                      int64_t k) {                                                                \
    int64_t j = 0;                                                                                \
    for (; j + 8 * W <= n; j += 8 * W) {                                                          \
      V sum[8];                                                                                   \
      _Pragma("GCC unroll 8") for (int r = 0; r < 8; ++r) sum[r] = SET1(0);                       \
      const T* from = b + j;                                                                      \
      for (int64_t p = 0; p < k; ++p, from += b_row) {                                            \
        const V left = SET1(a[p * a_column]);                                                     \
        _Pragma("GCC unroll 8") for (int r = 0; r < 8; ++r) sum[r] =                              \
            FMA(left, LOAD(from + r * W), sum[r]);                                                \
      }                                                                                           \
      _Pragma("GCC unroll 8") for (int r = 0; r < 8; ++r) STORE(c + j + r * W, sum[r]);           \
    }                                                                                             \
    for (; j < n; j += TILE_REGISTERS * W)                                                        \
      strip_any_##S(n - j < TILE_REGISTERS * W ? n - j : TILE_REGISTERS * W, a, 0, a_column,      \
                    b + j, b_row, c + j, 0, 1, k, false);                                         \
  }                                                                                               \
  /* Columns of B lie along memory: products of rows with rows, four at a time. */                \
  INLINE void dot_##S(int count, const T* a, const T* b, int64_t b_column, T* c, int64_t k) {     \
    V sum[4], more[4];                                                                            \
    _Pragma("GCC unroll 4") for (int j = 0; j < 4; ++j) sum[j] = more[j] = SET1(0);               \
    int64_t p = 0;                                                                                \
    for (; p + 2 * W <= k; p += 2 * W) {                                                          \
      const V left = LOAD(a + p), right = LOAD(a + p + W);                                        \
      _Pragma("GCC unroll 4") for (int j = 0; j < count; ++j) {                                   \
        sum[j] = FMA(left, LOAD(b + j * b_column + p), sum[j]);                                   \
        more[j] = FMA(right, LOAD(b + j * b_column + p + W), more[j]);                            \
      }                                                                                           \
    }                                                                                             \
    for (; p < k; p += W) {                                                                       \
      int rest = k - p < W ? (int)(k - p) : W;                                                    \
      const M mask = MASK(rest);                                                                  \
      const V left = LOAD_M(a + p, mask);                                                         \
      _Pragma("GCC unroll 4") for (int j = 0; j < count; ++j) sum[j] =                            \
          FMA(left, LOAD_M(b + j * b_column + p, mask), sum[j]);                                  \
    }                                                                                             \
    _Pragma("GCC unroll 4") for (int j = 0; j < 4; ++j) sum[j] += more[j];                        \
    fold_##S(sum, c, count);                                                                      \
  }                                                                                               \
  static void dots_##S(const rn_gemm_part_t* g) {                                                 \
    const T *a = g->a, *b = g->b;                                                                 \
    T* c = g->c;                                                                                  \
    int64_t j = 0;                                                                                \
    for (; j + 4 <= g->n; j += 4)                                                                 \
      for (int64_t i = 0; i < g->m; ++i)                                                          \
        dot_##S(4, a + i * g->a_row, b + j * g->b_column, g->b_column, c + i * g->c_row + j,      \
                g->k);                                                                            \
    for (; j < g->n; ++j)                                                                         \
      for (int64_t i = 0; i < g->m; ++i)                                                          \
        dot_##S(1, a + i * g->a_row, b + j * g->b_column, g->b_column, c + i * g->c_row + j,      \
                g->k);                                                                            \
  }                                                                                               \
  static void pack_##S(const T* b, int64_t b_row, int64_t b_column, int64_t k, int64_t columns,   \
                       T* panel) {                                                                \
    if (b_column == 1) {                                                                          \
      for (int64_t p = 0; p < k; ++p, panel += TILE_REGISTERS * W, b += b_row)                    \
        memcpy(panel, b, (size_t)columns * sizeof *b);                                            \
      return;                                                                                     \
    }                                                                                             \
    /* Sixteen rows of the panel at a time stay in the first-level cache. */                      \
    for (int64_t p0 = 0; p0 < k; p0 += 16) {                                                      \
      int64_t p1 = p0 + 16 < k ? p0 + 16 : k;                                                     \
      for (int64_t j = 0; j < columns; ++j)                                                       \
        for (int64_t p = p0; p < p1; ++p)                                                         \
          panel[p * (TILE_REGISTERS * W) + j] = b[p * b_row + j * b_column];                      \
    }                                                                                             \
  }                                                                                               \
  /* B as it lies: a few rows of C at a time, so that C is written in order. */                   \
  static void in_place_##S(const rn_gemm_part_t* g) {                                             \
    const T *a = g->a, *b = g->b;                                                                 \
    T* c = g->c;                                                                                  \
    int64_t step = g->k < 16 ? TILE_ROWS : 8 * TILE_ROWS;                                         \
    for (int64_t i = 0; i < g->m; i += step) {                                                    \
      int64_t m = g->m - i < step ? g->m - i : step;                                              \
      for (int64_t j = 0; j < g->n; j += TILE_REGISTERS * W) {                                    \
        int64_t columns = g->n - j < TILE_REGISTERS * W ? g->n - j : TILE_REGISTERS * W;          \
        strip_any_##S(columns, a + i * g->a_row, g->a_row, g->a_column, b + j, g->b_row,          \
                      c + i * g->c_row + j, g->c_row, m, g->k, false);                            \
      }                                                                                           \
    }                                                                                             \
  }                                                                                               \
  static void gemm_##S(const rn_gemm_part_t* g) {                                                 \
    const T *a = g->a, *b = g->b;                                                                 \
    T* c = g->c;                                                                                  \
    bool is_plain = g->b_column == 1;                                                             \
    if (g->m == 1 && is_plain) {                                                                  \
      row_##S(a, g->a_column, b, g->b_row, c, g->n, g->k);                                        \
      return;                                                                                     \
    }                                                                                             \
    if (!is_plain && g->a_column == 1 && (g->m <= 4 || g->n == 1)) {                              \
      dots_##S(g);                                                                                \
      return;                                                                                     \
    }                                                                                             \
    if (is_plain && (g->m < PACK_ROWS || g->b_row <= SHORT_ROW || g->k <= 8)) {                   \
      in_place_##S(g);                                                                            \
      return;                                                                                     \
    }                                                                                             \
    T panel[PANEL_K * TILE_REGISTERS * W] __attribute__((aligned(64)));                           \
    for (int64_t j = 0; j < g->n; j += TILE_REGISTERS * W) {                                      \
      int64_t columns = g->n - j < TILE_REGISTERS * W ? g->n - j : TILE_REGISTERS * W;            \
      for (int64_t p = 0; p < g->k; p += PANEL_K) {                                               \
        int64_t k = g->k - p < PANEL_K ? g->k - p : PANEL_K;                                      \
        pack_##S(b + p * g->b_row + j * g->b_column, g->b_row, g->b_column, k, columns, panel);   \
        strip_any_##S(columns, a + p * g->a_column, g->a_row, g->a_column, panel,                 \
                      TILE_REGISTERS * W, c + j, g->c_row, g->m, k, p > 0);                       \
      }                                                                                           \
    }                                                                                             \
  }

TILE(float, vf32_t, m32_t, F32_WIDTH, f32, F32_LOAD, F32_STORE, F32_SET1, F32_FMA, F32_LOAD_M,
     F32_STORE_M, F32_MASK)
TILE(double, vf64_t, m64_t, F64_WIDTH, f64, F64_LOAD, F64_STORE, F64_SET1, F64_FMA, F64_LOAD_M,
     F64_STORE_M, F64_MASK)

// Rows of B, scaled, added to rows of C. Blocks of B stay in the cache meanwhile.
#define BLOCK_K 64
#define BLOCK_N 512

// |AS| keeps products of small integers unsigned, where int would overflow.
#define ROWS(T, S, AS)                                                        \
  static void gemm_##S(const rn_gemm_part_t* g) {                             \
    const T *a = g->a, *b = g->b;                                             \
    T* c = g->c;                                                              \
    for (int64_t i = 0; i < g->m; ++i)                                        \
      for (int64_t j = 0; j < g->n; ++j) c[i * g->c_row + j] = 0;             \
    for (int64_t j0 = 0; j0 < g->n; j0 += BLOCK_N) {                          \
      int64_t j1 = j0 + BLOCK_N < g->n ? j0 + BLOCK_N : g->n;                 \
      for (int64_t p0 = 0; p0 < g->k; p0 += BLOCK_K) {                        \
        int64_t p1 = p0 + BLOCK_K < g->k ? p0 + BLOCK_K : g->k;               \
        for (int64_t i = 0; i < g->m; ++i) {                                  \
          T* row = c + i * g->c_row;                                          \
          for (int64_t p = p0; p < p1; ++p) {                                 \
            const T x = a[i * g->a_row + p * g->a_column];                    \
            const T* other = b + p * g->b_row;                                \
            for (int64_t j = j0; j < j1; ++j) row[j] += (T)(AS x * other[j]); \
          }                                                                   \
        }                                                                     \
      }                                                                       \
    }                                                                         \
  }

ROWS(uint8_t, u8, 1u *)
ROWS(uint16_t, u16, 1u *)
ROWS(uint32_t, u32, )
ROWS(uint64_t, u64, )
ROWS(float complex, c64, )
ROWS(double complex, c128, )

const rn_gemm_fn_t RN_ISA_NAME(rn_gemm_)[RN_DTYPE_COUNT] = {
    [RN_FLOAT] = gemm_f32,  [RN_DOUBLE] = gemm_f64,    [RN_INT8] = gemm_u8,
    [RN_INT16] = gemm_u16,  [RN_INT32] = gemm_u32,     [RN_INT64] = gemm_u64,
    [RN_UINT8] = gemm_u8,   [RN_UINT16] = gemm_u16,    [RN_UINT32] = gemm_u32,
    [RN_UINT64] = gemm_u64, [RN_COMPLEX64] = gemm_c64, [RN_COMPLEX128] = gemm_c128,
};

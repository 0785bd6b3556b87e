// GEMM: register tiles for float and double, plain loops for the other types.
//
// B is read unpacked if its rows are short; otherwise blocks of it (or of its transpose) are packed
// into panels first. gemm_tiles.h has the tiles.
#include "kernels/cpu/isa/gemm.h"

#include <string.h>

#include "kernels/cpu/isa/isa.h"

// UNROLLS: whether whole tiles unroll several steps.
#if defined(RN_ISA_avx512)
#define TILE_ROWS 6
#define TILE_REGISTERS 4
#define UNROLLS 1
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
#define UNROLLS 1
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
#define UNROLLS 0
typedef int64_t m32_t;
typedef int64_t m64_t;
#define F32_MASK(n) (n)
#define F64_MASK(n) (n)
#define F32_LOAD_M(p, m) F32_LOAD_N(p, m)
#define F64_LOAD_M(p, m) F64_LOAD_N(p, m)
#define F32_STORE_M(p, m, v) F32_STORE_N(p, v, m)
#define F64_STORE_M(p, m, v) F64_STORE_N(p, v, m)
#endif

#define BLOCK_BYTES RN_GEMM_BLOCK_BYTES
#define BLOCK_DEPTH RN_GEMM_BLOCK_DEPTH
#define BLOCK_ROWS RN_GEMM_BLOCK_ROWS
// Up to this many rows of C, panels are read once, this many bytes at a time: together with as many
// prefetched bytes and the sums they fit the L1 cache.
#define LOW_ROWS 48
#define LOW_BYTES (16 << 10)
// One row times panels: strips at a time, for enough independent sums to hide the latency, and rows
// of a strip to prefetch ahead.
#define PANEL_STRIPS 2
#define PANEL_ROWS_AHEAD 12
// Rows of B to fetch ahead when narrow strips of it are packed.
#define PACKED_ROWS_AHEAD 8
// Rows of B longer than this are read unpacked this many at a time: as many streams as recent CPUs
// track.
#define LONG_ROW_BYTES 1024
#define LONG_ROWS 32
// The byte stride within a row of A up to which A is read unpacked. Beyond it each element is on a
// page of its own, and they evict each other from the cache.
#define NEAR_BYTES 3584

// Rows of B to prefetch ahead of those being packed: fewer than the ways of the L1 cache, because
// all may be a multiple of a page apart.
#define ROWS_AHEAD 8

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
// Transposes a square of floats: loads four rows at a time into the quarters of a register, then
// transposes within the quarters.
#if defined(RN_ISA_avx512)
INLINE __m512 quarters_f32(const float* from, int64_t step) {
  __m512 v = _mm512_broadcast_f32x4(_mm_loadu_ps(from));
  v = _mm512_mask_broadcast_f32x4(v, 0x00f0, _mm_loadu_ps(from + 4 * step));
  v = _mm512_mask_broadcast_f32x4(v, 0x0f00, _mm_loadu_ps(from + 8 * step));
  return _mm512_mask_broadcast_f32x4(v, 0xf000, _mm_loadu_ps(from + 12 * step));
}
#define UNPACK_LO_PD(a, b) \
  _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)))
#define UNPACK_HI_PD(a, b) \
  _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)))
#define UNPACK_LO_PS(a, b) _mm512_unpacklo_ps(a, b)
#define UNPACK_HI_PS(a, b) _mm512_unpackhi_ps(a, b)
#define HAS_TURN 1
#elif defined(RN_ISA_avx2)
INLINE __m256 quarters_f32(const float* from, int64_t step) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from)),
                              _mm_loadu_ps(from + 4 * step), 1);
}
#define UNPACK_LO_PD(a, b) \
  _mm256_castpd_ps(_mm256_unpacklo_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)))
#define UNPACK_HI_PD(a, b) \
  _mm256_castpd_ps(_mm256_unpackhi_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)))
#define UNPACK_LO_PS(a, b) _mm256_unpacklo_ps(a, b)
#define UNPACK_HI_PS(a, b) _mm256_unpackhi_ps(a, b)
#define HAS_TURN 1
#endif
#ifdef HAS_TURN
INLINE void turn_f32(const float* from, int64_t step, float* to, int64_t to_step) {
  for (int c = 0; c < F32_WIDTH; c += 4, to += 4 * to_step) {
    const vf32_t r0 = quarters_f32(from + c, step), r1 = quarters_f32(from + step + c, step);
    const vf32_t r2 = quarters_f32(from + 2 * step + c, step);
    const vf32_t r3 = quarters_f32(from + 3 * step + c, step);
    const vf32_t low = UNPACK_LO_PS(r0, r1), high = UNPACK_HI_PS(r0, r1);
    const vf32_t low2 = UNPACK_LO_PS(r2, r3), high2 = UNPACK_HI_PS(r2, r3);
    F32_STORE(to, UNPACK_LO_PD(low, low2));
    F32_STORE(to + to_step, UNPACK_HI_PD(low, low2));
    F32_STORE(to + 2 * to_step, UNPACK_LO_PD(high, high2));
    F32_STORE(to + 3 * to_step, UNPACK_HI_PD(high, high2));
  }
}
#define TURN turn_f32
#endif

// Only for float, the type that networks use.
#if UNROLLS
#define HAS_LOW 1
#endif
#define T float
#define V vf32_t
#define M m32_t
#define W F32_WIDTH
#define NAME(x) x##_f32
#define LOAD F32_LOAD
#define STORE F32_STORE
#define SET1 F32_SET1
#define FMA F32_FMA
#define LOAD_M F32_LOAD_M
#define STORE_M F32_STORE_M
#define MASK F32_MASK
#include "kernels/cpu/isa/gemm_tiles.h"

#define T double
#define V vf64_t
#define M m64_t
#define W F64_WIDTH
#define NAME(x) x##_f64
#define LOAD F64_LOAD
#define STORE F64_STORE
#define SET1 F64_SET1
#define FMA F64_FMA
#define LOAD_M F64_LOAD_M
#define STORE_M F64_STORE_M
#define MASK F64_MASK
#include "kernels/cpu/isa/gemm_tiles.h"

// Adds scaled rows of B to rows of C. Blocks of B stay in the cache.
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

const rn_gemm_table_t RN_ISA_NAME(rn_gemm_) = {
    .strip_bytes = TILE_REGISTERS * F32_WIDTH * (int)sizeof(float),
    .pack_f32 = pack_f32,
    .pack_f64 = pack_f64,
    .fn =
        {
            [RN_FLOAT] = gemm_f32,
            [RN_DOUBLE] = gemm_f64,
            [RN_INT8] = gemm_u8,
            [RN_INT16] = gemm_u16,
            [RN_INT32] = gemm_u32,
            [RN_INT64] = gemm_u64,
            [RN_UINT8] = gemm_u8,
            [RN_UINT16] = gemm_u16,
            [RN_UINT32] = gemm_u32,
            [RN_UINT64] = gemm_u64,
        },
};

// Conversion of floats to levels and back, and products of levels.
//
// Products work on pairs: one instruction multiplies two 16-bit numbers by two others and adds both
// products to a 32-bit sum.
#include "kernels/cpu/isa/quantized.h"

#include "kernels/cpu/isa/isa.h"

#if defined(RN_ISA_avx512)
typedef __m512i vi32_t;
#define I32_WIDTH 16
#define I32_LOAD(p) _mm512_loadu_si512(p)
#define I32_STORE(p, v) _mm512_storeu_si512(p, v)
#define I32_SET1(x) _mm512_set1_epi32(x)
#define I32_ADD_PAIRS(c, a, b) _mm512_add_epi32(c, _mm512_madd_epi16(a, b))
#define I32_OF(v) _mm512_cvttps_epi32(v)
#define F32_OF(v) _mm512_cvtepi32_ps(v)
#elif defined(RN_ISA_avx2)
typedef __m256i vi32_t;
#define I32_WIDTH 8
#define I32_LOAD(p) _mm256_loadu_si256((const __m256i*)(p))
#define I32_STORE(p, v) _mm256_storeu_si256((__m256i*)(p), v)
#define I32_SET1(x) _mm256_set1_epi32(x)
#define I32_ADD_PAIRS(c, a, b) _mm256_add_epi32(c, _mm256_madd_epi16(a, b))
#define I32_OF(v) _mm256_cvttps_epi32(v)
#define F32_OF(v) _mm256_cvtepi32_ps(v)
#elif defined(__x86_64__)
typedef __m128i vi32_t;
#define I32_WIDTH 4
#define I32_LOAD(p) _mm_loadu_si128((const __m128i*)(p))
#define I32_STORE(p, v) _mm_storeu_si128((__m128i*)(p), v)
#define I32_SET1(x) _mm_set1_epi32(x)
#define I32_ADD_PAIRS(c, a, b) _mm_add_epi32(c, _mm_madd_epi16(a, b))
#define I32_OF(v) _mm_cvttps_epi32(v)
#define F32_OF(v) _mm_cvtepi32_ps(v)
#else
typedef int32x4_t vi32_t;
#define I32_WIDTH 4
#define I32_LOAD(p) vld1q_s32((const int32_t*)(p))
#define I32_STORE(p, v) vst1q_s32((int32_t*)(p), v)
#define I32_SET1(x) vdupq_n_s32(x)
static inline int32x4_t add_pairs(int32x4_t c, int32x4_t a, int32x4_t b) {
  int16x8_t x = vreinterpretq_s16_s32(a), y = vreinterpretq_s16_s32(b);
  int32x4_t low = vmull_s16(vget_low_s16(x), vget_low_s16(y));
  return vaddq_s32(c, vpaddq_s32(low, vmull_high_s16(x, y)));
}
#define I32_ADD_PAIRS(c, a, b) add_pairs(c, a, b)
#define I32_OF(v) vcvtq_s32_f32(v)
#define F32_OF(v) vcvtq_f32_s32(v)
#endif

#define STRIP (2 * I32_WIDTH)

static inline __attribute__((always_inline)) vf32_t rounded(vf32_t x,
                                                            rn_quant_rounding_t rounding) {
  const vf32_t whole = F32_SET1(0x1p23f);  // from here on floats are integers
  vf32_t size = F32_ABS(x), result;
  if (rounding == RN_QUANT_EVEN)
    result = (size + whole) - whole;
  else if (rounding == RN_QUANT_AWAY)
    // The largest float below 0.5: adding 0.5 itself would round up numbers just below 0.5.
    result = F32_OF(I32_OF(size + F32_SET1(0x1.fffffep-2f)));
  else
    result = F32_OF(I32_OF(size));
  result = F32_IF_LESS(size, whole, result, size);
  return F32_IF_LESS(x, F32_SET1(0), F32_SET1(0) - result, result);
}

static inline __attribute__((always_inline)) vi32_t level(const rn_quant_in_t* q, vf32_t x,
                                                          rn_quant_rounding_t rounding) {
  // If x is NaN, MAX returns the other operand.
  x = F32_MIN(F32_MAX(x, F32_SET1(q->low)), F32_SET1(q->high));
  x = rounded((x - F32_SET1(q->sub)) * F32_SET1(q->scale) + F32_SET1(q->add), rounding);
  x = F32_MAX(x - F32_SET1(q->shift), F32_SET1(q->least));
  return I32_OF(F32_MIN(x, F32_SET1(q->most)));
}

static inline __attribute__((always_inline)) void levels_as(const rn_quant_in_t* how,
                                                            const float* x, int64_t n, int32_t* out,
                                                            rn_quant_rounding_t rounding) {
  int64_t i = 0;
  for (; i + F32_WIDTH <= n; i += F32_WIDTH)
    I32_STORE(out + i, level(how, F32_LOAD(x + i), rounding));
  if (i == n) return;
  int32_t rest[F32_WIDTH];
  I32_STORE(rest, level(how, F32_LOAD_N(x + i, n - i), rounding));
  for (int64_t j = i; j < n; ++j) out[j] = rest[j - i];
}

static void levels(const rn_quant_in_t* how, const float* x, int64_t n, int32_t* out) {
  if (how->rounding == RN_QUANT_AWAY)
    levels_as(how, x, n, out, RN_QUANT_AWAY);
  else if (how->rounding == RN_QUANT_EVEN)
    levels_as(how, x, n, out, RN_QUANT_EVEN);
  else
    levels_as(how, x, n, out, RN_QUANT_DOWN);
}

static void values(const rn_quant_out_t* how, float* inout, int64_t n) {
  const rn_quant_out_t q = *how;
  RN_IVDEP for (int64_t i = 0; i < n; ++i) inout[i] = (inout[i] + q.add) * q.scale + q.base;
}

static inline int32_t pair_at(const int16_t* p) {
  int32_t pair;
  __builtin_memcpy(&pair, p, sizeof pair);
  return pair;
}

static inline __attribute__((always_inline)) void tile(const rn_quant_strip_t* s, const int16_t* a,
                                                       int32_t* c, int rows) {
  vi32_t sum[RN_QUANT_TILE_ROWS][2];
  for (int r = 0; r < rows; ++r) sum[r][0] = sum[r][1] = I32_SET1(0);
  const int16_t* b = s->b;
  for (int64_t k = 0; k < s->depth; ++k, b += 2 * STRIP) {
    vi32_t left = I32_LOAD(b), right = I32_LOAD(b + STRIP);
    for (int r = 0; r < rows; ++r) {
      vi32_t pair = I32_SET1(pair_at(a + 2 * (r * s->a_step + k)));
      sum[r][0] = I32_ADD_PAIRS(sum[r][0], pair, left);
      sum[r][1] = I32_ADD_PAIRS(sum[r][1], pair, right);
    }
  }
  for (int r = 0; r < rows; ++r) {
    int32_t out[STRIP];
    I32_STORE(out, sum[r][0]);
    I32_STORE(out + I32_WIDTH, sum[r][1]);
    for (int64_t j = 0; j < s->columns; ++j)
      c[r * s->c_step + j] = (int32_t)((uint32_t)c[r * s->c_step + j] + (uint32_t)out[j]);
  }
}

static void multiply(const rn_quant_strip_t* s) {
  int64_t row = 0;
  for (; row + RN_QUANT_TILE_ROWS <= s->rows; row += RN_QUANT_TILE_ROWS)
    tile(s, s->a + 2 * row * s->a_step, s->c + row * s->c_step, RN_QUANT_TILE_ROWS);
  for (; row < s->rows; ++row) tile(s, s->a + 2 * row * s->a_step, s->c + row * s->c_step, 1);
}

const rn_quant_table_t RN_ISA_NAME(rn_quant_) = {levels, values, STRIP, multiply};

// What a source in this folder needs to be compiled for several ISA levels: names with the level's
// suffix, registers, and the matching functions of SLEEF. The build defines RN_ISA
// (cmake/isa.cmake).
#ifndef RUNNEL_KERNELS_CPU_ISA_ISA_H_
#define RUNNEL_KERNELS_CPU_ISA_ISA_H_

#include <sleef.h>
#include <stdint.h>

#define RN_ISA_CAT_(a, b) a##b
#define RN_ISA_CAT(a, b) RN_ISA_CAT_(a, b)
#define RN_ISA_NAME(prefix) RN_ISA_CAT(prefix, RN_ISA)
#define RN_ISA_STRING_(a) #a
#define RN_ISA_STRING2(a) RN_ISA_STRING_(a)
#define RN_ISA_STRING RN_ISA_STRING2(RN_ISA)

#if defined(RN_ISA_avx512)
#include <immintrin.h>
typedef __m512 vf32_t;
typedef __m512d vf64_t;
#define F32_WIDTH 16
#define F64_WIDTH 8
#define F32_LOAD(p) _mm512_loadu_ps(p)
#define F32_STORE(p, v) _mm512_storeu_ps(p, v)
#define F64_LOAD(p) _mm512_loadu_pd(p)
#define F64_STORE(p, v) _mm512_storeu_pd(p, v)
#define SLEEF_F32(name, accuracy) Sleef_##name##f16_##accuracy##avx512f
#define SLEEF_F64(name, accuracy) Sleef_##name##d8_##accuracy##avx512f
// A register's width of 16-bit floats, as floats.
#define F32_LOAD_HALF(p) _mm512_cvtph_ps(_mm256_loadu_si256((const void*)(p)))
#define F32_STORE_HALF(p, v) _mm256_storeu_si256((void*)(p), _mm512_cvtps_ph(v, 0))
// Loads the first n elements, 0 < n < width; the others are 0.
#define F32_LOAD_N(p, n) _mm512_maskz_loadu_ps((__mmask16)((1u << (n)) - 1), p)
#define F32_STORE_N(p, v, n) _mm512_mask_storeu_ps(p, (__mmask16)((1u << (n)) - 1), v)
#define F64_LOAD_N(p, n) _mm512_maskz_loadu_pd((__mmask8)((1u << (n)) - 1), p)
#define F64_STORE_N(p, v, n) _mm512_mask_storeu_pd(p, (__mmask8)((1u << (n)) - 1), v)
#define F32_SET1(c) _mm512_set1_ps(c)
#define F64_SET1(c) _mm512_set1_pd(c)
#define F32_FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define F64_FMA(a, b, c) _mm512_fmadd_pd(a, b, c)
#define F32_MIN(a, b) _mm512_min_ps(a, b)
#define F32_MAX(a, b) _mm512_max_ps(a, b)
#define F32_ABS(a) _mm512_abs_ps(a)
#define F32_RINT(a) _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define F32_IF_LESS(a, b, x, y) _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x)
#define F32_SCALE(a, n) _mm512_scalef_ps(a, n)
#define F64_IF_LESS(a, b, x, y) _mm512_mask_blend_pd(_mm512_cmp_pd_mask(a, b, _CMP_LT_OQ), y, x)
#define F64_ABS(a) _mm512_abs_pd(a)
// Whether any element of a is less than the same element of b.
#define F32_ANY_LESS(a, b) (_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ) != 0)
#define F64_ANY_LESS(a, b) (_mm512_cmp_pd_mask(a, b, _CMP_LT_OQ) != 0)
#elif defined(RN_ISA_avx2)
#include <immintrin.h>
typedef __m256 vf32_t;
typedef __m256d vf64_t;
#define F32_WIDTH 8
#define F64_WIDTH 4
#define F32_LOAD(p) _mm256_loadu_ps(p)
#define F32_STORE(p, v) _mm256_storeu_ps(p, v)
#define F64_LOAD(p) _mm256_loadu_pd(p)
#define F64_STORE(p, v) _mm256_storeu_pd(p, v)
#define SLEEF_F32(name, accuracy) Sleef_##name##f8_##accuracy##avx2
#define SLEEF_F64(name, accuracy) Sleef_##name##d4_##accuracy##avx2
#define F32_LOAD_HALF(p) _mm256_cvtph_ps(_mm_loadu_si128((const void*)(p)))
#define F32_STORE_HALF(p, v) _mm_storeu_si128((void*)(p), _mm256_cvtps_ph(v, 0))
#define F32_SET1(c) _mm256_set1_ps(c)
#define F64_SET1(c) _mm256_set1_pd(c)
#define F32_FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define F64_FMA(a, b, c) _mm256_fmadd_pd(a, b, c)
#define F32_MIN(a, b) _mm256_min_ps(a, b)
#define F32_MAX(a, b) _mm256_max_ps(a, b)
#define F32_ABS(a) _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a)
#define F32_RINT(a) _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define F32_IF_LESS(a, b, x, y) _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ))
#define F64_IF_LESS(a, b, x, y) _mm256_blendv_pd(y, x, _mm256_cmp_pd(a, b, _CMP_LT_OQ))
#define F64_ABS(a) _mm256_andnot_pd(_mm256_set1_pd(-0.0), a)
#define F32_ANY_LESS(a, b) (_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_LT_OQ)) != 0)
#define F64_ANY_LESS(a, b) (_mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_LT_OQ)) != 0)
#elif defined(__x86_64__)
#include <emmintrin.h>
typedef __m128 vf32_t;
typedef __m128d vf64_t;
#define F32_WIDTH 4
#define F64_WIDTH 2
#define F32_LOAD(p) _mm_loadu_ps(p)
#define F32_STORE(p, v) _mm_storeu_ps(p, v)
#define F64_LOAD(p) _mm_loadu_pd(p)
#define F64_STORE(p, v) _mm_storeu_pd(p, v)
#define SLEEF_F32(name, accuracy) Sleef_##name##f4_##accuracy##sse2
#define SLEEF_F64(name, accuracy) Sleef_##name##d2_##accuracy##sse2
#define F32_SET1(c) _mm_set1_ps(c)
#define F64_SET1(c) _mm_set1_pd(c)
#define F32_FMA(a, b, c) ((a) * (b) + (c))
#define F64_FMA(a, b, c) ((a) * (b) + (c))
#define F32_MIN(a, b) _mm_min_ps(a, b)
#define F32_MAX(a, b) _mm_max_ps(a, b)
#define F32_ABS(a) _mm_andnot_ps(_mm_set1_ps(-0.0f), a)
// SSE2 has no instruction for it: adding 1.5 * 2^23 rounds off the fraction. |a| < 2^22.
#define F32_RINT(a) (((a) + _mm_set1_ps(0x1.8p23f)) - _mm_set1_ps(0x1.8p23f))
#define F32_IF_LESS(a, b, x, y) \
  _mm_or_ps(_mm_and_ps(_mm_cmplt_ps(a, b), x), _mm_andnot_ps(_mm_cmplt_ps(a, b), y))
#define F64_IF_LESS(a, b, x, y) \
  _mm_or_pd(_mm_and_pd(_mm_cmplt_pd(a, b), x), _mm_andnot_pd(_mm_cmplt_pd(a, b), y))
#define F64_ABS(a) _mm_andnot_pd(_mm_set1_pd(-0.0), a)
#define F32_ANY_LESS(a, b) (_mm_movemask_ps(_mm_cmplt_ps(a, b)) != 0)
#define F64_ANY_LESS(a, b) (_mm_movemask_pd(_mm_cmplt_pd(a, b)) != 0)
#elif defined(__aarch64__)
#include <arm_neon.h>
typedef float32x4_t vf32_t;
typedef float64x2_t vf64_t;
#define F32_WIDTH 4
#define F64_WIDTH 2
#define F32_LOAD(p) vld1q_f32(p)
#define F32_STORE(p, v) vst1q_f32(p, v)
#define F64_LOAD(p) vld1q_f64(p)
#define F64_STORE(p, v) vst1q_f64(p, v)
#define SLEEF_F32(name, accuracy) Sleef_##name##f4_##accuracy##advsimd
#define SLEEF_F64(name, accuracy) Sleef_##name##d2_##accuracy##advsimd
#define F32_SET1(c) vdupq_n_f32(c)
#define F64_SET1(c) vdupq_n_f64(c)
#define F32_FMA(a, b, c) vfmaq_f32(c, a, b)
#define F64_FMA(a, b, c) vfmaq_f64(c, a, b)
// As on x86: the second operand if either is NaN.
#define F32_MIN(a, b) vbslq_f32(vcltq_f32(a, b), a, b)
#define F32_MAX(a, b) vbslq_f32(vcgtq_f32(a, b), a, b)
#define F32_ABS(a) vabsq_f32(a)
#define F32_RINT(a) vrndnq_f32(a)
#define F32_IF_LESS(a, b, x, y) vbslq_f32(vcltq_f32(a, b), x, y)
#define F64_IF_LESS(a, b, x, y) vbslq_f64(vcltq_f64(a, b), x, y)
#define F64_ABS(a) vabsq_f64(a)
#define F32_ANY_LESS(a, b) (vmaxvq_u32(vcltq_f32(a, b)) != 0)
#define F64_ANY_LESS(a, b) (vmaxvq_u32(vreinterpretq_u32_u64(vcltq_f64(a, b))) != 0)
#else
#error "no vector registers known for this processor"
#endif

#ifndef F32_LOAD_N
// Loads the first n elements, 0 < n < width; the others are 0.
static inline vf32_t f32_load_n(const float* p, int64_t n) {
  float all[F32_WIDTH] = {0};
  for (int64_t i = 0; i < n; ++i) all[i] = p[i];
  return F32_LOAD(all);
}
static inline void f32_store_n(float* p, vf32_t v, int64_t n) {
  float all[F32_WIDTH];
  F32_STORE(all, v);
  for (int64_t i = 0; i < n; ++i) p[i] = all[i];
}
static inline vf64_t f64_load_n(const double* p, int64_t n) {
  double all[F64_WIDTH] = {0};
  for (int64_t i = 0; i < n; ++i) all[i] = p[i];
  return F64_LOAD(all);
}
static inline void f64_store_n(double* p, vf64_t v, int64_t n) {
  double all[F64_WIDTH];
  F64_STORE(all, v);
  for (int64_t i = 0; i < n; ++i) p[i] = all[i];
}
#define F32_LOAD_N(p, n) f32_load_n(p, n)
#define F32_STORE_N(p, v, n) f32_store_n(p, v, n)
#define F64_LOAD_N(p, n) f64_load_n(p, n)
#define F64_STORE_N(p, v, n) f64_store_n(p, v, n)
#endif

// Marks a loop whose iterations are independent, which the compiler cannot know: the output is one
// of the inputs or does not overlap them.
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed"  // some loops stay scalar; that is fine
#define RN_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#define RN_UNROLL _Pragma("unroll")  // a short loop over registers, whole
#else
#define RN_IVDEP _Pragma("GCC ivdep")
#define RN_UNROLL _Pragma("GCC unroll 8")
#endif

#endif  // RUNNEL_KERNELS_CPU_ISA_ISA_H_

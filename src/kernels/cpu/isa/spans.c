// The loops of spans.h.
#include "kernels/cpu/isa/spans.h"

#include <complex.h>
#include <string.h>

#include "kernels/cpu/isa/isa.h"

static void int32_range(int32_t start, int32_t step, int32_t* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    out[i] = (int32_t)((uint32_t)start + (uint32_t)i * (uint32_t)step);
}

static void float_range(float start, float step, int32_t first, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = start + (float)(first + (int32_t)i) * step;
}

enum { BLOCK = 128 };

static int64_t count_larger(const float* in, int64_t n, float than, int64_t enough) {
  int64_t larger = 0;
  for (int64_t begin = 0; begin < n && larger < enough; begin += BLOCK) {
    const int32_t count = (int32_t)(n - begin < BLOCK ? n - begin : BLOCK);
    int32_t more = 0, odd = 0;
    for (int32_t i = 0; i < count; ++i) {
      const float x = in[begin + i];
      more += x > than;
      odd += !(x - x == 0);  // infinite or NaN
    }
    if (odd) return -1;
    larger += more;
  }
  return larger;
}

#define COUNT_SET(name, T)                                                               \
  static int64_t name(const T* in, int64_t n) {                                          \
    int64_t set = 0;                                                                     \
    for (int64_t begin = 0; begin < n; begin += BLOCK) {                                 \
      const int32_t count = (int32_t)(n - begin < BLOCK ? n - begin : BLOCK);            \
      uint8_t some = 0;                                                                  \
      for (int32_t i = 0; i < count; ++i) some = (uint8_t)(some + (in[begin + i] != 0)); \
      set += some;                                                                       \
    }                                                                                    \
    return set;                                                                          \
  }
COUNT_SET(count_set_bytes, uint8_t)
COUNT_SET(count_set_floats, float)

static void extremes(const float* in, int64_t n, float* out_least, float* out_most) {
  enum { LANES = 4 };
  vf32_t least[LANES], most[LANES];
  RN_UNROLL for (int j = 0; j < LANES; ++j) least[j] = most[j] = F32_SET1(in[0]);
  int64_t i = 0;
  for (; i + LANES * F32_WIDTH <= n; i += LANES * F32_WIDTH)
    RN_UNROLL for (int j = 0; j < LANES; ++j) {
      const vf32_t x = F32_LOAD(in + i + j * F32_WIDTH);
      least[j] = F32_MIN(x, least[j]);  // a NaN leaves them as they are
      most[j] = F32_MAX(x, most[j]);
    }
  RN_UNROLL for (int j = 1; j < LANES; ++j) {
    least[0] = F32_MIN(least[j], least[0]);
    most[0] = F32_MAX(most[j], most[0]);
  }
  float all[2][F32_WIDTH];
  F32_STORE(all[0], least[0]);
  F32_STORE(all[1], most[0]);
  for (int j = 1; j < F32_WIDTH; ++j) {
    all[0][0] = all[0][j] < all[0][0] ? all[0][j] : all[0][0];
    all[1][0] = all[1][j] > all[1][0] ? all[1][j] : all[1][0];
  }
  for (; i < n; ++i) {
    all[0][0] = in[i] < all[0][0] ? in[i] : all[0][0];
    all[1][0] = in[i] > all[1][0] ? in[i] : all[1][0];
  }
  *out_least = all[0][0];
  *out_most = all[1][0];
}

static bool to_bins(const float* in, double low, double step, int32_t bins, int32_t* out,
                    int64_t n) {
  const double last = bins - 1;
  int32_t odd = 0;
  for (int64_t i = 0; i < n; ++i) {
    double place = ((double)in[i] - low) / step;
    odd |= in[i] != in[i];
    place = place > 0 ? place : 0;  // also NaN
    out[i] = (int32_t)(place < last ? place : last);
  }
  return !odd;
}

static inline float limited(float x, float low, float high) {
  x = x > high ? high : x;
  return x < low ? low : x;
}

static void to_levels(const rn_span_levels_t* levels, const float* in, float* out, int64_t n) {
  const rn_span_levels_t l = *levels;
  if (l.divides) {
    RN_IVDEP for (int64_t i = 0; i < n; ++i) {
      const float above = limited(in[i], l.least, l.most) - l.least;
      out[i] = __builtin_floorf(above / l.scale - l.zero + 0.5f) * l.scale;
    }
    return;
  }
  RN_IVDEP for (int64_t i = 0; i < n; ++i) {
    const float above = limited(in[i], l.least, l.most) - l.least;
    out[i] = __builtin_floorf(above * l.inverse - l.zero + 0.5f) * l.scale;
  }
}

static void to_rounded(const rn_span_rounding_t* rounding, const float* in, float* out, int64_t n) {
  const rn_span_rounding_t r = *rounding;
  if (r.rounds_up) {
    RN_IVDEP for (int64_t i = 0; i < n; ++i) {
      const float x = limited(in[i], r.low, r.high) * r.scale;
      out[i] = __builtin_floorf(x + 0.5f) * r.inverse;
    }
    return;
  }
  RN_IVDEP for (int64_t i = 0; i < n; ++i) {
    const float x = limited(in[i], r.low, r.high) * r.scale;
    out[i] = __builtin_rintf(x) * r.inverse;
  }
}

static bool window_norms(const float* in, int64_t n, int64_t radius, float alpha, float bias,
                         float* out) {
  enum { MOST = 1024, WIDEST = 8 };
  float squares[MOST + 2 * WIDEST + F32_WIDTH];
  if (n > MOST || radius > WIDEST) return false;
  for (int64_t i = 0; i < radius; ++i) squares[i] = 0;
  for (int64_t i = 0; i < n; ++i) squares[radius + i] = in[i] * in[i];
  for (int64_t i = 0; i < radius + F32_WIDTH; ++i) squares[radius + n + i] = 0;
  for (int64_t i = 0; i < n; i += F32_WIDTH) {
    vf32_t sum = F32_LOAD(squares + i);
    for (int64_t k = 1; k <= 2 * radius; ++k) sum += F32_LOAD(squares + i + k);
    sum = F32_SET1(bias) + F32_SET1(alpha) * sum;
    if (i + F32_WIDTH <= n)
      F32_STORE(out + i, sum);
    else
      F32_STORE_N(out + i, sum, n - i);
  }
  return true;
}

static void raise_to_sums(const float* a, const float* b, float* best, int64_t n) {
  RN_IVDEP for (int64_t i = 0; i < n; ++i) {
    const float sum = a[i] + b[i];
    best[i] = sum > best[i] ? sum : best[i];
  }
}

// Products of infinities are infinite, as in C: where both parts are NaN, the compiler's function
// decides.
static void complex_mul(const float* a, const float* b, float* out, int64_t n) {
  const float _Complex *x = (const float _Complex*)a, *y = (const float _Complex*)b;
  float _Complex* to = (float _Complex*)out;
  int64_t i = 0;
#if defined(RN_ISA_avx2) || defined(RN_ISA_avx512)
  for (; i + 4 <= n; i += 4) {
    const __m256 u = _mm256_loadu_ps(a + 2 * i), v = _mm256_loadu_ps(b + 2 * i);
    const __m256 by_imaginary = _mm256_mul_ps(_mm256_movehdup_ps(u), _mm256_permute_ps(v, 0xb1));
    const __m256 w = _mm256_addsub_ps(_mm256_mul_ps(_mm256_moveldup_ps(u), v), by_imaginary);
    const int nans = _mm256_movemask_ps(_mm256_cmp_ps(w, w, _CMP_UNORD_Q));
    if (nans & nans >> 1 & 0x55) {
      float _Complex exact[4];
      for (int j = 0; j < 4; ++j) exact[j] = x[i + j] * y[i + j];
      memcpy(out + 2 * i, exact, sizeof exact);
    } else {
      _mm256_storeu_ps(out + 2 * i, w);
    }
  }
#endif
  for (; i < n; ++i) to[i] = x[i] * y[i];
}

static void complex_conj(const float* in, float* out, int64_t n) {
  const uint64_t* from = (const void*)in;
  uint64_t* to = (void*)out;
  RN_IVDEP for (int64_t i = 0; i < n; ++i) to[i] = from[i] ^ UINT64_C(1) << 63;
}

static void complex_split(const float* in, float* real, float* imaginary, int64_t n) {
  if (real)
    for (int64_t i = 0; i < n; ++i) real[i] = in[2 * i];
  if (imaginary)
    for (int64_t i = 0; i < n; ++i) imaginary[i] = in[2 * i + 1];
}

static void complex_join(const float* real, const float* imaginary, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    out[2 * i] = real[i];
    out[2 * i + 1] = imaginary[i];
  }
}

const rn_spans_t RN_ISA_NAME(rn_spans_) = {
    .int32_range = int32_range,
    .float_range = float_range,
    .count_larger = count_larger,
    .count_set_bytes = count_set_bytes,
    .count_set_floats = count_set_floats,
    .extremes = extremes,
    .to_bins = to_bins,
    .to_levels = to_levels,
    .to_rounded = to_rounded,
    .window_norms = window_norms,
    .raise_to_sums = raise_to_sums,
    .complex_mul = complex_mul,
    .complex_conj = complex_conj,
    .complex_split = complex_split,
    .complex_join = complex_join,
};

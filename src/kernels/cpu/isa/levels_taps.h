// Depthwise convolutions of 8-bit levels; part of levels.c.
#ifndef RUNNEL_KERNELS_CPU_ISA_LEVELS_TAPS_H_
#define RUNNEL_KERNELS_CPU_ISA_LEVELS_TAPS_H_

#include <stdbool.h>

#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/levels.h"

#define INLINE static inline __attribute__((always_inline))

static void depthwise_pixel(const rn_levels_taps_t* d, int64_t shift, int32_t* sums) {
  const int64_t channels = d->channels, taps = d->taps;
  const uint8_t* const* x = d->x;
  int64_t c = 0;
#if defined(RN_ISA_avx512)
  for (; c < channels; c += 32) {
    const int64_t left = channels - c;
    const __mmask16 first = (__mmask16)(left >= 16 ? 0xffff : (1u << left) - 1);
    const __mmask16 second = (__mmask16)(left >= 32  ? 0xffff
                                         : left > 16 ? (1u << (left - 16)) - 1
                                                     : 0);
    __m512i low = _mm512_maskz_loadu_epi32(first, d->start + c);
    __m512i high = _mm512_maskz_loadu_epi32(second, d->start + c + 16);
    for (int64_t t = 0; t < taps; ++t) {
      const uint32_t* w = d->w + t * channels + c;
      const uint8_t* from = x[t] + shift + c;
      __m512i a = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(first, from));
      __m512i b = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(second, from + 16));
      low = _mm512_add_epi32(low, _mm512_madd_epi16(a, _mm512_maskz_loadu_epi32(first, w)));
      high = _mm512_add_epi32(high, _mm512_madd_epi16(b, _mm512_maskz_loadu_epi32(second, w + 16)));
    }
    _mm512_mask_storeu_epi32(sums + c, first, low);
    _mm512_mask_storeu_epi32(sums + c + 16, second, high);
  }
#elif defined(RN_ISA_avx2)
  for (; c + 8 <= channels; c += 8) {
    __m256i sum = _mm256_loadu_si256((const __m256i*)(d->start + c));
    for (int64_t t = 0; t < taps; ++t) {
      __m256i a = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)(x[t] + shift + c)));
      __m256i b = _mm256_loadu_si256((const __m256i*)(d->w + t * channels + c));
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
    }
    _mm256_storeu_si256((__m256i*)(sums + c), sum);
  }
#endif
  for (; c < channels; ++c) {
    int32_t sum = d->start[c];
    for (int64_t t = 0; t < taps; ++t) sum += x[t][shift + c] * (int16_t)d->w[t * channels + c];
    sums[c] = sum;
  }
}

static void depthwise(const rn_levels_taps_t* d, int32_t* sums) {
  for (int64_t p = 0; p < d->pixels; ++p) depthwise_pixel(d, p * d->step, sums + p * d->channels);
}

#if defined(RN_ISA_avx512)

#define VNNI __attribute__((target("avx512vnni")))

// Four taps of 64 channels: bytes [tap][channel] become groups of four taps. |whole|: there are 64
// channels, so that no load and no store needs a mask.
typedef struct levels_quads_t {
  __m512i of[4];
} levels_quads_t;

VNNI INLINE levels_quads_t quads_at(const uint8_t* const* x, int64_t taps, int64_t tap, int64_t at,
                                    bool whole, __mmask64 mask) {
  __m512i four[4];
  for (int i = 0; i < 4; ++i) {  // weights beyond the last tap are zero
    const uint8_t* from = x[tap + i < taps ? tap + i : 0] + at;
    four[i] = whole ? _mm512_loadu_si512(from) : _mm512_maskz_loadu_epi8(mask, from);
  }
  const __m512i low = _mm512_unpacklo_epi8(four[0], four[1]);
  const __m512i high = _mm512_unpackhi_epi8(four[0], four[1]);
  const __m512i next_low = _mm512_unpacklo_epi8(four[2], four[3]);
  const __m512i next_high = _mm512_unpackhi_epi8(four[2], four[3]);
  return (levels_quads_t){
      {_mm512_unpacklo_epi16(low, next_low), _mm512_unpackhi_epi16(low, next_low),
       _mm512_unpacklo_epi16(high, next_high), _mm512_unpackhi_epi16(high, next_high)}};
}

// Lanes of 16 bytes: [register][lane] becomes [lane][register], which is the order of channels.
VNNI INLINE void store_quads(const rn_levels_taps_t* d, int64_t c, bool whole, const __m512i* sum,
                             int32_t* sums) {
  const __m512i a = _mm512_shuffle_i32x4(sum[0], sum[1], 0x44);
  const __m512i b = _mm512_shuffle_i32x4(sum[2], sum[3], 0x44);
  const __m512i e = _mm512_shuffle_i32x4(sum[0], sum[1], 0xee);
  const __m512i f = _mm512_shuffle_i32x4(sum[2], sum[3], 0xee);
  const __m512i all[4] = {_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd),
                          _mm512_shuffle_i32x4(e, f, 0x88), _mm512_shuffle_i32x4(e, f, 0xdd)};
  for (int i = 0; i < 4; ++i) {
    const int64_t at = c + 16 * i, left = d->channels - at;
    if (whole) {
      const __m512i start = _mm512_loadu_si512(d->start + at);
      _mm512_storeu_si512(sums + at, _mm512_add_epi32(all[i], start));
      continue;
    }
    if (left <= 0) return;
    const __mmask16 mask = (__mmask16)(left >= 16 ? 0xffff : (1u << left) - 1);
    const __m512i start = _mm512_maskz_loadu_epi32(mask, d->start + at);
    _mm512_mask_storeu_epi32(sums + at, mask, _mm512_add_epi32(all[i], start));
  }
}

// All pixels of 64 channels from |c| on, or of those that are left. |groups| of four taps: a
// constant where weights should stay in registers.
VNNI INLINE void depthwise_wide(const rn_levels_taps_t* d, int64_t c, int64_t groups, bool whole,
                                int32_t* sums) {
  const int64_t left = d->channels - c;
  const __mmask64 mask = whole ? ~(__mmask64)0 : ((__mmask64)1 << left) - 1;
  const int8_t* w = d->fours + c * 4 * groups;
  for (int64_t p = 0; p < d->pixels; ++p) {
    __m512i sum[4];
    for (int i = 0; i < 4; ++i) sum[i] = _mm512_setzero_si512();
    for (int64_t g = 0; g < groups; ++g) {
      const levels_quads_t quads = quads_at(d->x, d->taps, 4 * g, p * d->step + c, whole, mask);
      for (int i = 0; i < 4; ++i)
        sum[i] = _mm512_dpbusd_epi32(sum[i], quads.of[i],
                                     _mm512_loadu_si512(w + g * 256 + (int64_t)i * 64));
    }
    store_quads(d, c, whole, sum, sums + p * d->channels);
  }
}

// The same for up to 32 channels.
VNNI INLINE void depthwise_narrow(const rn_levels_taps_t* d, int64_t c, int64_t groups,
                                  int32_t* sums) {
  const int64_t left = d->channels - c;
  const __mmask32 mask = left >= 32 ? ~(__mmask32)0 : ((__mmask32)1 << left) - 1;
  const int8_t* w = d->fours + c * 4 * groups;
  for (int64_t p = 0; p < d->pixels; ++p) {
    __m256i sum[4], four[4];
    for (int i = 0; i < 4; ++i) sum[i] = _mm256_setzero_si256();
    for (int64_t g = 0; g < groups; ++g) {
      for (int i = 0; i < 4; ++i)
        four[i] = _mm256_maskz_loadu_epi8(
            mask, d->x[4 * g + i < d->taps ? 4 * g + i : 0] + p * d->step + c);
      const __m256i low = _mm256_unpacklo_epi8(four[0], four[1]);
      const __m256i high = _mm256_unpackhi_epi8(four[0], four[1]);
      const __m256i next_low = _mm256_unpacklo_epi8(four[2], four[3]);
      const __m256i next_high = _mm256_unpackhi_epi8(four[2], four[3]);
      const __m256i* weights = (const __m256i*)(w + g * 128);
#define SUM(i, quad) sum[i] = _mm256_dpbusd_epi32(sum[i], quad, _mm256_loadu_si256(weights + (i)))
      SUM(0, _mm256_unpacklo_epi16(low, next_low));
      SUM(1, _mm256_unpackhi_epi16(low, next_low));
      SUM(2, _mm256_unpacklo_epi16(high, next_high));
      SUM(3, _mm256_unpackhi_epi16(high, next_high));
#undef SUM
    }
    const __m256i all[4] = {_mm256_permute2x128_si256(sum[0], sum[1], 0x20),
                            _mm256_permute2x128_si256(sum[2], sum[3], 0x20),
                            _mm256_permute2x128_si256(sum[0], sum[1], 0x31),
                            _mm256_permute2x128_si256(sum[2], sum[3], 0x31)};
    for (int i = 0; i < 4; ++i) {
      const int64_t at = c + 8 * i, rest = d->channels - at;
      if (rest <= 0) break;
      const __mmask8 some = (__mmask8)(rest >= 8 ? 0xff : (1u << rest) - 1);
      const __m256i start = _mm256_maskz_loadu_epi32(some, d->start + at);
      _mm256_mask_storeu_epi32(sums + p * d->channels + at, some, _mm256_add_epi32(all[i], start));
    }
  }
}

VNNI INLINE void depthwise_groups(const rn_levels_taps_t* d, int64_t groups, int32_t* sums) {
  int64_t c = 0;
  for (; d->channels - c >= RN_LEVELS_TAP_CHANNELS; c += RN_LEVELS_TAP_CHANNELS)
    depthwise_wide(d, c, groups, true, sums);
  if (d->channels - c > 32)
    depthwise_wide(d, c, groups, false, sums);
  else if (c < d->channels)
    depthwise_narrow(d, c, groups, sums);
}

VNNI static void depthwise_vnni(const rn_levels_taps_t* d, int32_t* sums) {
  if (d->taps == 9)
    depthwise_groups(d, 3, sums);
  else
    depthwise_groups(d, rn_levels_fours(d->taps), sums);
}

#endif

#endif  // RUNNEL_KERNELS_CPU_ISA_LEVELS_TAPS_H_

// Loops over spans of elements that belong to one op each, for one ISA level; kernels/cpu/spans.c
// selects them. |out| is an input or does not overlap it.
#ifndef RUNNEL_KERNELS_CPU_ISA_SPANS_H_
#define RUNNEL_KERNELS_CPU_ISA_SPANS_H_

#include <stdbool.h>
#include <stdint.h>

#include "kernels/cpu/isa.h"

// FakeQuant's levels: floor(steps - zero + 0.5) * scale, where the steps of x, limited to
// [least, most], are (x - least) / scale, or (x - least) * inverse. The lower bound wins.
typedef struct rn_span_levels_t {
  float least, most, scale, inverse, zero;
  bool divides;
} rn_span_levels_t;

// round(x * scale) * inverse, of x limited to [low, high]; the lower bound wins. Ties go up or to
// even.
typedef struct rn_span_rounding_t {
  float low, high, scale, inverse;
  bool rounds_up;
} rn_span_rounding_t;

typedef struct rn_spans_t {
  // out[i] = start + i * step, wrapping around.
  void (*int32_range)(int32_t start, int32_t step, int32_t* out, int64_t n);
  // out[i] = start + (first + i) * step.
  void (*float_range)(float start, float step, int32_t first, float* out, int64_t n);
  // How many numbers are larger than |than|, counted until there are |enough|; -1 if one of those
  // looked at is not finite.
  int64_t (*count_larger)(const float* in, int64_t n, float than, int64_t enough);
  // How many numbers are not zero.
  int64_t (*count_set_bytes)(const uint8_t* in, int64_t n);
  int64_t (*count_set_floats)(const float* in, int64_t n);
  // The least and the largest of n > 0 numbers; a first NaN stays, others are passed over.
  void (*extremes)(const float* in, int64_t n, float* out_least, float* out_most);
  // The bins of a histogram: (x - low) / step, limited to [0, bins). False if there is a NaN.
  bool (*to_bins)(const float* in, double low, double step, int32_t bins, int32_t* out, int64_t n);
  void (*to_levels)(const rn_span_levels_t* levels, const float* in, float* out, int64_t n);
  void (*to_rounded)(const rn_span_rounding_t* rounding, const float* in, float* out, int64_t n);
  // out[c] = bias + alpha * the sum of squares of the elements at most |radius| away from c. False
  // if there are too many of either.
  bool (*window_norms)(const float* in, int64_t n, int64_t radius, float alpha, float bias,
                       float* out);
  // best = the larger of best and a + b.
  void (*raise_to_sums)(const float* a, const float* b, float* best, int64_t n);
  // Pairs of a real and an imaginary part, n of them.
  void (*complex_mul)(const float* a, const float* b, float* out, int64_t n);
  void (*complex_conj)(const float* in, float* out, int64_t n);
  void (*complex_split)(const float* in, float* real, float* imaginary, int64_t n);  // or NULL
  void (*complex_join)(const float* real, const float* imaginary, float* out, int64_t n);
} rn_spans_t;
RN_ISA_DECLARE(rn_spans_t, rn_spans_);

#endif  // RUNNEL_KERNELS_CPU_ISA_SPANS_H_

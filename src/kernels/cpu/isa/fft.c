// Fourier transforms: see fft.h.
#include "kernels/cpu/isa/fft.h"

#include <string.h>

#include "kernels/cpu/isa/isa.h"

#define LANES RN_FFT_LANES

typedef float v8f32_t __attribute__((vector_size(32)));
typedef double v4f64_t __attribute__((vector_size(32)));
// The same at any address.
typedef float v8f32_any_t __attribute__((vector_size(32), aligned(4), may_alias));
typedef double v4f64_any_t __attribute__((vector_size(32), aligned(8), may_alias));
#define LOW32(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define HIGH32(a, b) __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define LOW64(a, b) __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define HIGH64(a, b) __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#define LOW128(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define HIGH128(a, b) __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15)

// Transposes a block.
static inline void turn_f32(v8f32_t* v) {
  v8f32_t a[8], b[8];
  RN_UNROLL for (int i = 0; i < 8; i += 2) {
    a[i] = LOW32(v[i], v[i + 1]);
    a[i + 1] = HIGH32(v[i], v[i + 1]);
  }
  RN_UNROLL for (int i = 0; i < 8; i += 4) RN_UNROLL for (int k = 0; k < 2; ++k) {
    b[i + 2 * k] = LOW64(a[i + k], a[i + 2 + k]);
    b[i + 2 * k + 1] = HIGH64(a[i + k], a[i + 2 + k]);
  }
  RN_UNROLL for (int i = 0; i < 4; ++i) {
    v[i] = LOW128(b[i], b[i + 4]);
    v[i + 4] = HIGH128(b[i], b[i + 4]);
  }
}

static inline void turn_f64(v4f64_t* v) {
  v4f64_t a = __builtin_shufflevector(v[0], v[1], 0, 4, 2, 6);
  v4f64_t b = __builtin_shufflevector(v[0], v[1], 1, 5, 3, 7);
  v4f64_t c = __builtin_shufflevector(v[2], v[3], 0, 4, 2, 6);
  v4f64_t d = __builtin_shufflevector(v[2], v[3], 1, 5, 3, 7);
  v[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
  v[1] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
  v[2] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
  v[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

#define T float
#define V v8f32_t
#define V_ANY v8f32_any_t
#define WIDE 8
#define REVERSED(v) __builtin_shufflevector(v, v, 7, 6, 5, 4, 3, 2, 1, 0)
#define N(name) name##_f32
#include "kernels/cpu/isa/fft_body.h"
#undef T
#undef V
#undef V_ANY
#undef WIDE
#undef REVERSED
#undef N

#define T double
#define V v4f64_t
#define V_ANY v4f64_any_t
#define WIDE 4
#define REVERSED(v) __builtin_shufflevector(v, v, 3, 2, 1, 0)
#define N(name) name##_f64
#include "kernels/cpu/isa/fft_body.h"

#define ROW(S)                                                                         \
  {                                                                                    \
    run_##S, split_##S, join_##S, scale_##S, turn_in_##S, turn_out_##S, from_half_##S, \
        to_half_##S, mirror_##S                                                        \
  }
const rn_fft_fns_t RN_ISA_NAME(rn_fft_)[RN_FFT_WIDTHS] = {
    [RN_FFT_FLOAT] = ROW(f32),
    [RN_FFT_DOUBLE] = ROW(f64),
};

// Subtracts matrix products from rows: decompositions spend their time here.
#include "kernels/cpu/isa/linalg.h"

#include <complex.h>
#include <math.h>

#include "kernels/cpu/isa/isa.h"

// Columns processed at a time: with four rows of B they fit the L1 cache.
#define STRIP 512

// Four rows of B at a time, so that a row of C is loaded and stored a quarter as often.
#define REAL(T, S)                                                                    \
  static void strip_##S(const rn_subtract_t* p, int64_t i, int64_t from, int64_t n) { \
    T* c = (T*)p->c + i * p->c_row + from;                                            \
    const T* a = (const T*)p->a + i * p->a_row;                                       \
    const T* b = (const T*)p->b + from;                                               \
    int64_t k = 0;                                                                    \
    for (; k + 4 <= p->k; k += 4) {                                                   \
      T a0 = a[k * p->a_column], a1 = a[(k + 1) * p->a_column];                       \
      T a2 = a[(k + 2) * p->a_column], a3 = a[(k + 3) * p->a_column];                 \
      const T *b0 = b + k * p->b_row, *b1 = b0 + p->b_row, *b2 = b1 + p->b_row,       \
              *b3 = b2 + p->b_row;                                                    \
      RN_IVDEP for (int64_t j = 0; j < n; ++j) c[j] -=                                \
          a0 * b0[j] + a1 * b1[j] + (a2 * b2[j] + a3 * b3[j]);                        \
    }                                                                                 \
    for (; k < p->k; ++k) {                                                           \
      T a0 = a[k * p->a_column];                                                      \
      const T* b0 = b + k * p->b_row;                                                 \
      RN_IVDEP for (int64_t j = 0; j < n; ++j) c[j] -= a0 * b0[j];                    \
    }                                                                                 \
  }                                                                                   \
  static double size_##S(T x) { return fabs((double)x); }                             \
  static bool root_##S(void* x) {                                                     \
    T* value = x;                                                                     \
    if (!(*value > 0)) return false;                                                  \
    *value = (T)sqrt((double)*value);                                                 \
    return true;                                                                      \
  }                                                                                   \
  static T conjugate_##S(T x) { return x; }

// Complex numbers as pairs of R, so that the products vectorize.
#define COMPLEX(T, R, S)                                                                \
  static void strip_##S(const rn_subtract_t* p, int64_t i, int64_t from, int64_t n) {   \
    R* c = (R*)((T*)p->c + i * p->c_row + from);                                        \
    const R* a = (const R*)((const T*)p->a + i * p->a_row);                             \
    for (int64_t k = 0; k < p->k; ++k) {                                                \
      R re = a[2 * k * p->a_column], im = a[2 * k * p->a_column + 1];                   \
      const R* b = (const R*)((const T*)p->b + k * p->b_row + from);                    \
      if (p->conjugate_a) im = -im;                                                     \
      RN_IVDEP for (int64_t j = 0; j < n; ++j) {                                        \
        R x = re * b[2 * j] - im * b[2 * j + 1], y = re * b[2 * j + 1] + im * b[2 * j]; \
        c[2 * j] -= x;                                                                  \
        c[2 * j + 1] -= y;                                                              \
      }                                                                                 \
    }                                                                                   \
  }                                                                                     \
  static double size_##S(T x) { return hypot((double)creal(x), (double)cimag(x)); }     \
  static bool root_##S(void* x) {                                                       \
    T* value = x;                                                                       \
    if (!(creal(*value) > 0)) return false;                                             \
    *value = (R)sqrt((double)creal(*value));                                            \
    return true;                                                                        \
  }                                                                                     \
  static T conjugate_##S(T x) { return (T)conj(x); }

#define FUNCTIONS(T, S)                                                                            \
  static void subtract_##S(const rn_subtract_t* p) {                                               \
    for (int64_t from = 0; from < p->n; from += STRIP)                                             \
      for (int64_t i = 0; i < p->m; ++i)                                                           \
        strip_##S(p, i, from, p->n - from < STRIP ? p->n - from : STRIP);                          \
  }                                                                                                \
  /* The first, if it is NaN, so that NaN propagates. */                                           \
  static int64_t largest_##S(const void* x, int64_t stride, int64_t count) {                       \
    int64_t best = 0;                                                                              \
    double size = size_##S(((const T*)x)[0]);                                                      \
    for (int64_t i = 1; i < count; ++i) {                                                          \
      double other = size_##S(((const T*)x)[i * stride]);                                          \
      if (other > size) size = other, best = i;                                                    \
    }                                                                                              \
    return best;                                                                                   \
  }                                                                                                \
  static void divide_##S(void* x, int64_t stride, int64_t count, const void* by, bool conjugate) { \
    T divisor = *(const T*)by, *to = x;                                                            \
    if (conjugate) divisor = conjugate_##S(divisor);                                               \
    for (int64_t i = 0; i < count; ++i) to[i * stride] /= divisor;                                 \
  }                                                                                                \
  static void multiply_##S(void* x, const void* by) { *(T*)x *= *(const T*)by; }                   \
  static bool is_zero_##S(const void* x) { return *(const T*)x == 0; }                             \
  static bool is_nan_##S(const void* x) { return *(const T*)x != *(const T*)x; }                   \
  static void set_##S(void* x, double value) { *(T*)x = (T)value; }                                \
  static void adjoint_##S(void* out, const void* in, int64_t n) {                                  \
    for (int64_t i = 0; i < n; ++i)                                                                \
      for (int64_t j = 0; j < n; ++j)                                                              \
        ((T*)out)[j * n + i] = conjugate_##S(((const T*)in)[i * n + j]);                           \
  }

REAL(float, f32)
REAL(double, f64)
COMPLEX(float _Complex, float, c64)
COMPLEX(double _Complex, double, c128)
FUNCTIONS(float, f32)
FUNCTIONS(double, f64)
FUNCTIONS(float _Complex, c64)
FUNCTIONS(double _Complex, c128)

#define ROW(S)                                                                               \
  {                                                                                          \
    subtract_##S, largest_##S, divide_##S, multiply_##S, is_zero_##S, is_nan_##S, root_##S, adjoint_##S, \
        set_##S                                                                              \
  }
const rn_linalg_fns_t RN_ISA_NAME(rn_linalg_)[RN_DTYPE_COUNT] = {
    [RN_FLOAT] = ROW(f32),
    [RN_DOUBLE] = ROW(f64),
    [RN_COMPLEX64] = ROW(c64),
    [RN_COMPLEX128] = ROW(c128),
};

// Subtracts matrix products from rows: decompositions spend their time here.
#include "kernels/cpu/isa/linalg.h"

#include <complex.h>
#include <math.h>

#include "kernels/cpu/isa/isa.h"

// Columns processed at a time by complex products: with a row of B they fit the L1 cache.
#define STRIP 512
// Registers per row of a tile, and rows of a tile.
#define WIDE 4
#define TALL 4
// Rows of B beyond which its strips are used by all rows of C, one strip after the other.
#define MANY 8

// A tile of C stays in registers over all of k. Each element is the same chain of operations
// wherever its tile begins, so no partitioning changes a bit. |rest|: elements of the last
// register, 0 for all. Tiles of four rows are two registers wide: these sums fit the registers of
// all levels.
#define TILE(T, S, V, W, LOAD, STORE, SET1, LOAD_N, STORE_N)                                      \
  static inline __attribute__((always_inline)) void tile_##S(                                     \
      const rn_subtract_t* p, int64_t i, int64_t j, int rows, int registers, int64_t rest) {      \
    V sum[TALL][WIDE];                                                                            \
    T* c = (T*)p->c + i * p->c_row + j;                                                           \
    const T* a = (const T*)p->a + i * p->a_row;                                                   \
    const T* b = (const T*)p->b + j;                                                              \
    RN_UNROLL for (int r = 0; r < rows; ++r) RN_UNROLL for (int x = 0; x < registers; ++x) {      \
      const T* from = c + r * p->c_row + x * W;                                                   \
      sum[r][x] = rest && x == registers - 1 ? LOAD_N(from, rest) : LOAD(from);                   \
    }                                                                                             \
    for (int64_t k = 0; k < p->k; ++k, a += p->a_column, b += p->b_row) {                         \
      V right[WIDE];                                                                              \
      RN_UNROLL for (int x = 0; x < registers; ++x) right[x] =                                    \
          rest && x == registers - 1 ? LOAD_N(b + x * W, rest) : LOAD(b + x * W);                 \
      RN_UNROLL for (int r = 0; r < rows; ++r) {                                                  \
        const V left = SET1(a[r * p->a_row]);                                                     \
        RN_UNROLL for (int x = 0; x < registers; ++x) sum[r][x] -= left * right[x];               \
      }                                                                                           \
    }                                                                                             \
    RN_UNROLL for (int r = 0; r < rows; ++r) RN_UNROLL for (int x = 0; x < registers; ++x) {      \
      T* to = c + r * p->c_row + x * W;                                                           \
      if (rest && x == registers - 1)                                                             \
        STORE_N(to, sum[r][x], rest);                                                             \
      else                                                                                        \
        STORE(to, sum[r][x]);                                                                     \
    }                                                                                             \
  }                                                                                               \
  /* Rows of C in tiles, from column |j| on. */                                                   \
  static inline __attribute__((always_inline)) void columns_##S(                                  \
      const rn_subtract_t* p, int64_t begin, int64_t end, int64_t j, int registers,               \
      int64_t rest) {                                                                             \
    int64_t i = begin;                                                                            \
    for (; i + TALL <= end; i += TALL) tile_##S(p, i, j, TALL, registers, rest);                  \
    for (; i < end; ++i) tile_##S(p, i, j, 1, registers, rest);                                   \
  }                                                                                               \
  static void rows_##S(const rn_subtract_t* p, int64_t begin, int64_t end) {                      \
    int64_t j = 0, n = p->n;                                                                      \
    for (; j + 2 * W <= n; j += 2 * W) columns_##S(p, begin, end, j, 2, 0);                       \
    if (n - j > W)                                                                                \
      columns_##S(p, begin, end, j, 2, n - j - W);                                                \
    else if (n - j == W)                                                                          \
      columns_##S(p, begin, end, j, 1, 0);                                                        \
    else if (n > j)                                                                               \
      columns_##S(p, begin, end, j, 1, n - j);                                                    \
  }                                                                                               \
  /* One row of C by rows |k| to |k| + 3 of B, which are read from front to back. */              \
  static void four_##S(const rn_subtract_t* p, int64_t i, int64_t k) {                            \
    T* c = (T*)p->c + i * p->c_row;                                                               \
    const T* a = (const T*)p->a + i * p->a_row + k * p->a_column;                                 \
    const T a0 = a[0], a1 = a[p->a_column], a2 = a[2 * p->a_column], a3 = a[3 * p->a_column];     \
    const T *b0 = (const T*)p->b + k * p->b_row, *b1 = b0 + p->b_row, *b2 = b1 + p->b_row,        \
            *b3 = b2 + p->b_row;                                                                  \
    RN_IVDEP for (int64_t j = 0; j < p->n; ++j) c[j] =                                            \
        c[j] - a0 * b0[j] - a1 * b1[j] - a2 * b2[j] - a3 * b3[j];                                 \
  }                                                                                               \
  static void subtract_##S(const rn_subtract_t* p) {                                              \
    if (p->m < TALL && p->k > MANY) {                                                             \
      rn_subtract_t rest = *p;                                                                    \
      const int64_t fours = p->k / 4 * 4;                                                         \
      for (int64_t i = 0; i < p->m; ++i)                                                          \
        for (int64_t k = 0; k < fours; k += 4) four_##S(p, i, k);                                 \
      rest.k -= fours;                                                                            \
      rest.a = (const T*)p->a + fours * p->a_column;                                              \
      rest.b = (const T*)p->b + fours * p->b_row;                                                 \
      rows_##S(&rest, 0, p->m);                                                                   \
    } else if (p->k <= MANY) {                                                                    \
      for (int64_t i = 0; i < p->m; i += TALL) rows_##S(p, i, i + TALL < p->m ? i + TALL : p->m); \
    } else {                                                                                      \
      rows_##S(p, 0, p->m);                                                                       \
    }                                                                                             \
  }                                                                                               \
  static void rotate_##S(void* x_data, void* y_data, double c_, double s_, int64_t n) {           \
    T *x = x_data, *y = y_data;                                                                   \
    const T c = (T)c_, s = (T)s_;                                                                 \
    RN_IVDEP for (int64_t i = 0; i < n; ++i) {                                                    \
      T old = y[i];                                                                               \
      y[i] = s * x[i] + c * old;                                                                  \
      x[i] = c * x[i] - s * old;                                                                  \
    }                                                                                             \
  }

// Sums over a row, in as many parts as the widest register has elements; the parts are added in
// order.
#define PARTS 16
#define DOTS(T, S)                                                                       \
  static void dots_##S(const void* a_data, int64_t a_row, const void* x_data, int64_t m, \
                       int64_t n, void* out) {                                           \
    const T *a = a_data, *x = x_data;                                                    \
    for (int64_t i = 0; i < m; ++i, a += a_row) {                                        \
      T part[PARTS] = {0}, sum = 0;                                                      \
      int64_t j = 0;                                                                     \
      for (; j + PARTS <= n; j += PARTS)                                                 \
        for (int p = 0; p < PARTS; ++p) part[p] += a[j + p] * x[j + p];                  \
      for (; j < n; ++j) sum += a[j] * x[j];                                             \
      for (int p = 0; p < PARTS; ++p) sum += part[p];                                    \
      ((T*)out)[i] = sum;                                                                \
    }                                                                                    \
  }

#define REAL(T, S)                                        \
  static double size_##S(T x) { return fabs((double)x); } \
  static bool root_##S(void* x) {                         \
    T* value = x;                                         \
    if (!(*value > 0)) return false;                      \
    *value = (T)sqrt((double)*value);                     \
    return true;                                          \
  }                                                       \
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
  static T conjugate_##S(T x) { return (T)conj(x); }                                    \
  static void subtract_##S(const rn_subtract_t* p) {                                    \
    for (int64_t from = 0; from < p->n; from += STRIP)                                  \
      for (int64_t i = 0; i < p->m; ++i)                                                \
        strip_##S(p, i, from, p->n - from < STRIP ? p->n - from : STRIP);               \
  }                                                                                     \
  static void rotate_##S(void* x_data, void* y_data, double c_, double s_, int64_t n) { \
    R *x = x_data, *y = y_data;                                                         \
    const R c = (R)c_, s = (R)s_;                                                       \
    RN_IVDEP for (int64_t i = 0; i < 2 * n; ++i) {                                      \
      R old = y[i];                                                                     \
      y[i] = s * x[i] + c * old;                                                        \
      x[i] = c * x[i] - s * old;                                                        \
    }                                                                                   \
  }

#define FUNCTIONS(T, S)                                                                            \
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
    for (int64_t i = 0; stride == 1 && i < count; ++i) to[i] /= divisor;                           \
    for (int64_t i = 0; stride != 1 && i < count; ++i) to[i * stride] /= divisor;                  \
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

TILE(float, f32, vf32_t, F32_WIDTH, F32_LOAD, F32_STORE, F32_SET1, F32_LOAD_N, F32_STORE_N)
TILE(double, f64, vf64_t, F64_WIDTH, F64_LOAD, F64_STORE, F64_SET1, F64_LOAD_N, F64_STORE_N)
REAL(float, f32)
REAL(double, f64)
DOTS(float, f32)
DOTS(double, f64)
DOTS(float _Complex, c64)
DOTS(double _Complex, c128)
COMPLEX(float _Complex, float, c64)
COMPLEX(double _Complex, double, c128)
FUNCTIONS(float, f32)
FUNCTIONS(double, f64)
FUNCTIONS(float _Complex, c64)
FUNCTIONS(double _Complex, c128)

#define ROW(S)                                                                              \
  {                                                                                         \
    subtract_##S, largest_##S, divide_##S, multiply_##S, is_zero_##S, is_nan_##S, root_##S, \
        adjoint_##S, set_##S, dots_##S, rotate_##S                                          \
  }
const rn_linalg_fns_t RN_ISA_NAME(rn_linalg_)[RN_DTYPE_COUNT] = {
    [RN_FLOAT] = ROW(f32),
    [RN_DOUBLE] = ROW(f64),
    [RN_COMPLEX64] = ROW(c64),
    [RN_COMPLEX128] = ROW(c128),
};

// Between matrices by rows and what cuSOLVER makes of matrices by columns.
#include "linalg/numbers.cuh"

#include "linalg/large_args.h"

template <typename T>
RN_DEVICE void turn(const turn_args& args) {
  RN_EACH(at, args.rows * args.columns) {
    const i64 i = at / args.columns, j = at % args.columns;
    const T x = ((const T*)args.from)[j * args.from_row + i];
    ((T*)args.to)[i * args.to_row + j] = args.upper_only && j < i ? T(0)
                                         : args.conjugates        ? conj_of(x)
                                                                  : x;
  }
}

RN_KERNEL(pivots, pivots_args) {
  RN_EACH(i, args.n) {
    args.to[i] = (i32)(args.from[i] - 1);
    if (i == 0 && *args.info) *args.is_singular = 1;
  }
}

template <typename T>
RN_DEVICE void values(const values_args& args) {
  typedef typename real_of<T>::type R;
  RN_EACH(i, args.n) {
    const R x = ((const R*)args.from)[i];
    if (*args.info || !(x - x == 0)) *args.has_failed = 1;
    ((T*)args.to)[i] = T(x);
  }
}

#define X(name, T)                                         \
  RN_KERNEL(turn_##name, turn_args) { turn<T>(args); }     \
  RN_KERNEL(values_##name, values_args) { values<T>(args); }
X(f32, float)
X(f64, double)
X(c64, rn_complex64)
X(c128, rn_complex128)
#undef X

// Cholesky and LU factors, determinants, and solutions of triangular systems: a block per matrix,
// which stays in global memory. Of large matrices, these kernels factor panels and invert blocks of
// the diagonal; the rest is products (blocked.c).
#include "linalg/numbers.cuh"

#include "linalg/solve_args.h"

template <typename T>
RN_DEVICE T not_a_number() {
  typename real_of<T>::type zero = 0;
  return T(zero / zero);
}

template <typename T>
RN_DEVICE void cholesky(const cholesky_args& args) {
  const i64 n = args.n, row = args.row;
  const T* a = (const T*)args.a + blockIdx.x * n * n;
  T* l = (T*)args.l + blockIdx.x * args.stride;
  for (i64 i = row_of_threads(); args.a && i < n; i += rows_of_threads())
    for (i64 j = lane(); j < n; j += 32) l[i * row + j] = j <= i ? a[i * n + j] : T(0);
  bool is_positive = true;
  for (i64 k = 0; k < n && is_positive; ++k) {
    __syncthreads();
    typename real_of<T>::type pivot = re_of(l[k * row + k]);
    is_positive = pivot > 0;
    __syncthreads();
    pivot = sqrt(pivot);
    for (i64 i = k + threadIdx.x; i < n; i += blockDim.x)
      l[i * row + k] = i == k ? T(pivot) : divide(l[i * row + k], T(pivot));
    __syncthreads();
    for (i64 i = k + 1 + row_of_threads(); i < n; i += rows_of_threads()) {
      const T factor = l[i * row + k];
      for (i64 j = k + 1 + lane(); j <= i; j += 32)
        l[i * row + j] = l[i * row + j] - factor * conj_of(l[j * row + k]);
    }
  }
  if (is_positive) return;
  if (args.has_failed) {
    if (threadIdx.x == 0) args.has_failed[blockIdx.x] = 1;
    return;
  }
  __syncthreads();
  for (i64 i = row_of_threads(); i < n; i += rows_of_threads())
    for (i64 j = lane(); j <= i; j += 32) l[i * row + j] = not_a_number<T>();
}

template <typename T>
RN_DEVICE void finish_cholesky(const finish_cholesky_args& args) {
  RN_EACH(at, args.stack * args.n * args.n) {
    const i64 row = at / args.n, i = row % args.n, j = at % args.n;
    if (j > i)
      ((T*)args.l)[at] = T(0);
    else if (args.has_failed[row / args.n])
      ((T*)args.l)[at] = not_a_number<T>();
  }
}

template <typename T>
RN_DEVICE void copy(const copy_args& args) {
  const i64 n = args.n;
  RN_EACH(at, args.stack * n * n) {
    const i64 row = at / n, i = row % n, j = at % n;
    const T* from = (const T*)args.from + row / n * n * n;
    ((T*)args.to)[at] = !args.from        ? T(i == j ? 1 : 0)
                        : args.is_adjoint ? conj_of(from[j * n + i])
                                          : from[i * n + j];
  }
}

// The row at or below k with the largest element of column k, by the first warp; lane 0 has the
// result. A NaN in row k stays there.
template <typename T>
RN_DEVICE int find_pivot(const T* a, i64 n, i64 k) {
  typename real_of<T>::type best = lane() ? -1 : size_of(a[k * n + k]);
  int row = (int)k;
  for (i64 i = k + lane(); i < n; i += 32) {
    typename real_of<T>::type size = size_of(a[i * n + k]);
    if (size > best) best = size, row = (int)i;
  }
  for (int step = 16; step > 0; step /= 2) {
    typename real_of<T>::type other = __shfl_xor_sync(0xffffffffu, best, step);
    int other_row = __shfl_xor_sync(0xffffffffu, row, step);
    if (other > best || (other == best && other_row < row)) best = other, row = other_row;
  }
  return row;
}

template <typename T>
RN_DEVICE void exchange_elements(T* x, T* y) {
  T old = *x;
  *x = *y;
  *y = old;
}

template <typename T>
RN_DEVICE void factor(const factor_args& args) {
  __shared__ int chosen;
  const i64 n = args.n, first = args.first, last = first + args.columns;
  T* a = (T*)args.lu + blockIdx.x * n * n;
  i32* pivots = args.pivots + blockIdx.x * n;
  for (i64 k = first; k < last; ++k) {
    __syncthreads();
    if (threadIdx.x < 32) {
      int row = find_pivot(a, n, k);
      if (threadIdx.x == 0) chosen = pivots[k] = row;
    }
    __syncthreads();
    if (chosen != k)
      for (i64 j = first + threadIdx.x; j < last; j += blockDim.x)
        exchange_elements(&a[k * n + j], &a[chosen * n + j]);
    __syncthreads();
    const T pivot = a[k * n + k];
    if (is_zero(pivot)) {
      if (threadIdx.x == 0) *args.is_singular = 1;
      continue;
    }
    for (i64 i = k + 1 + threadIdx.x; i < n; i += blockDim.x)
      a[i * n + k] = divide(a[i * n + k], pivot);
    __syncthreads();
    for (i64 i = k + 1 + row_of_threads(); i < n; i += rows_of_threads()) {
      const T times = a[i * n + k];
      for (i64 j = k + 1 + lane(); j < last; j += 32)
        a[i * n + j] = a[i * n + j] - times * a[k * n + j];
    }
  }
}

template <typename T>
RN_DEVICE void exchange(const exchange_args& args) {
  const i64 column = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= args.columns || (column >= args.skip && column < args.skip_end)) return;
  for (i64 z = blockIdx.y; z < args.stack; z += gridDim.y) {
    T* x = (T*)args.x + z * args.n * args.columns + column;
    for (i64 k = args.first; k < args.last; ++k) {
      const i64 other = args.pivots[z * args.n + k];
      if (other != k) exchange_elements(&x[k * args.columns], &x[other * args.columns]);
    }
  }
}

template <typename T>
RN_DEVICE void determinant(const determinant_args& args) {
  typedef typename real_of<T>::type R;
  RN_EACH(z, args.stack) {
    const T* lu = (const T*)args.lu + z * args.n * args.n;
    const i32* pivots = args.pivots + z * args.n;
    T product = T(1);
    double logs = 0;
    for (i64 k = 0; k < args.n; ++k) {
      T pivot = lu[k * args.n + k];
      if (pivots[k] != k) product = T(0) - product;
      if (args.logs) {
        logs += log((double)size_of(pivot));
        pivot = direction_of(pivot);
      }
      product = product * pivot;
    }
    ((T*)args.out)[z] = product;
    if (args.logs) ((T*)args.logs)[z] = T((R)logs);
  }
}

template <typename I>
RN_DEVICE void permutation(const permutation_args& args) {
  RN_EACH(z, args.stack) {
    I* rows = (I*)args.out + z * args.n;
    for (i64 k = 0; k < args.n; ++k) rows[k] = (I)k;
    for (i64 k = 0; k < args.n; ++k)
      exchange_elements(&rows[k], &rows[args.pivots[z * args.n + k]]);
  }
}
RN_KERNEL(permutation_i32, permutation_args) { permutation<i32>(args); }
RN_KERNEL(permutation_i64, permutation_args) { permutation<i64>(args); }

// One column of X := A^-1 X per lane.
template <typename T>
RN_DEVICE void solve_triangle(const solve_args& args, const T* a, T* x, i64 column) {
  const i64 n = args.n, columns = args.columns;
  const bool is_adjoint = args.is_adjoint != 0, is_lower = (args.is_lower != 0) != is_adjoint;
  const i64 row_step = is_adjoint ? 1 : args.a_row, column_step = is_adjoint ? args.a_row : 1;
  for (i64 s = 0; s < n; ++s) {
    const i64 k = is_lower ? s : n - 1 - s;
    __syncthreads();
    if (!args.has_unit_diagonal && row_of_threads() == 0 && column < columns) {
      T diagonal = a[k * args.a_row + k];
      x[k * columns + column] =
          divide(x[k * columns + column], is_adjoint ? conj_of(diagonal) : diagonal);
    }
    __syncthreads();
    if (column >= columns) continue;
    const T known = x[k * columns + column];
    const i64 from = is_lower ? k + 1 : 0, to = is_lower ? n : k;
    for (i64 i = from + row_of_threads(); i < to; i += rows_of_threads()) {
      T times = a[i * row_step + k * column_step];
      if (is_adjoint) times = conj_of(times);
      x[i * columns + column] = x[i * columns + column] - times * known;
    }
  }
}

template <typename T>
RN_DEVICE void solve_piece(const solve_args& args, i64 piece) {
  const i64 n = args.n, columns = args.columns, column = piece * RN_SOLVE_COLUMNS + lane();
  const T* a = (const T*)args.a + blockIdx.x * args.a_stride;
  const T* b = (const T*)args.b + (args.b ? blockIdx.x * args.b_stride : 0);
  T* x = (T*)args.x + blockIdx.x * args.x_stride;
  if (column < columns)
    for (i64 i = row_of_threads(); i < n; i += rows_of_threads())
      x[i * columns + column] = args.b ? b[i * columns + column] : T(i == column ? 1 : 0);
  solve_triangle(args, a, x, column);
}

template <typename T>
RN_DEVICE void solve(const solve_args& args) {
  for (i64 piece = blockIdx.y; piece < args.pieces; piece += gridDim.y) solve_piece<T>(args, piece);
}

#define X(name, T)                                                                      \
  RN_KERNEL(cholesky_##name, cholesky_args) { cholesky<T>(args); }                      \
  RN_KERNEL(finish_cholesky_##name, finish_cholesky_args) { finish_cholesky<T>(args); } \
  RN_KERNEL(copy_##name, copy_args) { copy<T>(args); }                                  \
  RN_KERNEL(factor_##name, factor_args) { factor<T>(args); }                            \
  RN_KERNEL(exchange_##name, exchange_args) { exchange<T>(args); }                      \
  RN_KERNEL(determinant_##name, determinant_args) { determinant<T>(args); }             \
  RN_KERNEL(solve_##name, solve_args) { solve<T>(args); }
X(f32, float)
X(f64, double)
X(c64, rn_complex64)
X(c128, rn_complex128)
#undef X

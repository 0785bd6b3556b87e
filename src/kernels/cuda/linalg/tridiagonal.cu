// Tridiagonal systems and products. One block solves one system: its first thread eliminates, all
// of them update the columns of the right-hand side. The same steps as on the CPU
// (kernels/cpu/linalg/banded_body.h), in the same order.
#include "linalg/numbers.cuh"

#include "linalg/tridiagonal_args.h"

// How one step of the elimination changes the rows i and i + 1 of the right-hand side.
template <typename T>
struct elimination_step {
  T factor;
  int swaps, fails;
};

template <typename T>
struct tridiagonal_system {
  const T *upper, *diagonal, *lower;
  T *u, *x;
  i64 n, columns;
};

// Rows of U have up to three numbers, since a row exchange moves one more column in. |scale| is the
// size of row i.
template <typename T>
RN_DEVICE elimination_step<T> eliminate_row(const tridiagonal_system<T>& s, i64 i, bool perturbs,
                                            double* scale) {
  T *a = s.u + 3 * i, *b = a + 3;
  const T right = i + 2 < s.n ? s.upper[i + 1] : T(0), down = s.lower[i + 1];
  const T middle = s.diagonal[i + 1];
  const double below = (double)size_of(down);
  const double next = below + (double)size_of(middle) + (double)size_of(right);
  const double size = (double)size_of(a[0]);
  const bool stays = perturbs ? below == 0 || (size != 0 && below / next <= size / *scale)
                              : size >= below;
  elimination_step<T> step = {T(0), !stays, stays && size == 0 && !perturbs};
  if (step.fails) return step;
  if (stays) {
    step.factor = below == 0 ? T(0) : divide(down, a[0]);
    b[0] = middle - step.factor * a[1];
    b[1] = right;
    *scale = next;
  } else {
    const T first = a[1];
    step.factor = divide(a[0], down);
    a[0] = down, a[1] = middle, a[2] = right;
    b[0] = first - step.factor * middle;
    b[1] = T(0) - step.factor * right;
  }
  b[2] = T(0);
  return step;
}

template <typename T>
RN_DEVICE void update_rows(const tridiagonal_system<T>& s, i64 i, const elimination_step<T>& step) {
  T *row = s.x + i * s.columns, *next = row + s.columns;
  for (i64 j = threadIdx.x; j < s.columns; j += blockDim.x) {
    const T old = row[j];
    if (step.swaps) {
      row[j] = next[j];
      next[j] = old - step.factor * row[j];
    } else {
      next[j] = next[j] - step.factor * old;
    }
  }
}

// False if a pivot is 0.
template <typename T>
RN_DEVICE bool eliminate(const tridiagonal_system<T>& s, bool perturbs) {
  __shared__ elimination_step<T> step;
  double scale = 0;
  if (threadIdx.x == 0) {
    s.u[0] = s.diagonal[0], s.u[1] = s.n > 1 ? s.upper[0] : T(0), s.u[2] = T(0);
    scale = (double)size_of(s.u[0]) + (double)size_of(s.u[1]);
  }
  for (i64 i = 0; i + 1 < s.n; ++i) {
    if (threadIdx.x == 0) step = eliminate_row(s, i, perturbs, &scale);
    __syncthreads();
    if (step.fails) return false;
    update_rows(s, i, step);
    __syncthreads();
  }
  __syncthreads();
  return perturbs || !is_zero(s.u[3 * (s.n - 1)]);
}

// Raises a pivot by multiples of |by| until no quotient overflows.
template <typename T>
RN_DEVICE T perturb(T pivot, const T* row, i64 columns, double by, double least) {
  double most = 0;
  for (i64 j = 0; j < columns; ++j) most = fmax(most, (double)size_of(row[j]));
  by = fmax(fabs(by), least);
  if (signbit(re_of(pivot))) by = -by;
  while (size_of(pivot) < 1 && (is_zero(pivot) || most * least > (double)size_of(pivot))) {
    pivot = pivot + T((typename real_of<T>::type)by);
    by *= 2;
  }
  return pivot;
}

// X := U^-1 X. Columns do not depend on each other, unless a pivot looks at all of them.
template <typename T>
RN_DEVICE void substitute(const tridiagonal_system<T>& s, const tridiagonal_solve_args& args) {
  double most = 0;
  for (i64 k = 0; args.perturbs && k < 3 * s.n; ++k) most = fmax(most, (double)size_of(s.u[k]));
  for (i64 i = s.n - 1; i >= 0; --i) {
    T *row = s.x + i * s.columns, *u = s.u + 3 * i;
    for (i64 j = threadIdx.x; j < s.columns; j += blockDim.x) {
      if (i + 1 < s.n) row[j] = row[j] - u[1] * row[j + s.columns];
      if (i + 2 < s.n) row[j] = row[j] - u[2] * row[j + 2 * s.columns];
    }
    T pivot = u[0];
    if (args.perturbs) {
      __syncthreads();
      pivot = perturb(pivot, row, s.columns, args.epsilon * most, args.least);
      __syncthreads();
    }
    for (i64 j = threadIdx.x; j < s.columns; j += blockDim.x) row[j] = divide(row[j], pivot);
  }
}

// Thomas: elimination without row exchanges. Every thread computes the pivots for its columns.
template <typename T>
RN_DEVICE bool solve_plain(const tridiagonal_system<T>& s) {
  T pivot = s.diagonal[0];
  for (i64 i = 0; i < s.n; ++i) {
    T* row = s.x + i * s.columns;
    if (i) pivot = s.diagonal[i] - s.lower[i] * s.u[i - 1];
    if (is_zero(pivot)) return false;
    for (i64 j = threadIdx.x; j < s.columns; j += blockDim.x) {
      if (i) row[j] = row[j] - s.lower[i] * row[j - s.columns];
      row[j] = divide(row[j], pivot);
    }
    if (threadIdx.x == 0) s.u[i] = divide(s.upper[i], pivot);
    __syncthreads();
  }
  for (i64 i = s.n - 2; i >= 0; --i)
    for (i64 j = threadIdx.x; j < s.columns; j += blockDim.x)
      s.x[i * s.columns + j] = s.x[i * s.columns + j] - s.u[i] * s.x[(i + 1) * s.columns + j];
  return true;
}

template <typename T>
RN_DEVICE void solve(const tridiagonal_solve_args& args) {
  typename real_of<T>::type zero = 0;
  const i64 n = args.n, count = n * args.columns;
  for (i64 z = blockIdx.x; z < args.stack; z += gridDim.x) {
    const T* a = (const T*)args.a + z * 3 * n;
    const tridiagonal_system<T> s = {a,
                                     a + n,
                                     a + 2 * n,
                                     (T*)args.u + z * 3 * n,
                                     (T*)args.x + z * count,
                                     n,
                                     args.columns};
    for (i64 k = threadIdx.x; k < count; k += blockDim.x)
      s.x[k] = ((const T*)args.b)[z * count + k];
    __syncthreads();
    bool is_regular = args.pivots ? eliminate(s, args.perturbs != 0) : solve_plain(s);
    if (is_regular && args.pivots) substitute(s, args);
    __syncthreads();
    for (i64 k = threadIdx.x; !is_regular && k < count; k += blockDim.x) s.x[k] = T(zero / zero);
    __syncthreads();
  }
}

template <typename T>
RN_DEVICE void multiply(const tridiagonal_multiply_args& args) {
  const i64 n = args.n, columns = args.columns;
  RN_EACH(at, args.stack * n * columns) {
    const i64 row = at / columns, i = row % n;
    const T* x = (const T*)args.x + at;
    T y = ((const T*)args.a[1])[row] * x[0];
    if (i + 1 < n) y = y + ((const T*)args.a[0])[row] * x[columns];
    if (i) y = y + ((const T*)args.a[2])[row] * x[-columns];
    ((T*)args.y)[at] = y;
  }
}

#define X(name, T)                                                             \
  RN_KERNEL(solve_##name, tridiagonal_solve_args) { solve<T>(args); }          \
  RN_KERNEL(multiply_##name, tridiagonal_multiply_args) { multiply<T>(args); }
X(f32, float)
X(f64, double)
X(c64, rn_complex64)
X(c128, rn_complex128)
#undef X

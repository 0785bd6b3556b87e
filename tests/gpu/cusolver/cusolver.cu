// Factors for the emulated cuSOLVER, by one thread and the simplest algorithms.
#include "linalg/numbers.cuh"

#include "cusolver_args.h"

template <typename T>
struct columns {
  T* data;
  i64 step;
  RN_DEVICE T& operator()(i64 i, i64 j) const { return data[j * step + i]; }
};

template <typename T>
RN_DEVICE void potrf(const emulated_solver_args& args, columns<T> a) {
  typedef typename real_of<T>::type R;
  *args.info = 0;
  for (i64 j = 0; j < args.n && !*args.info; ++j)
    for (i64 i = 0; i <= j; ++i) {
      T sum = a(i, j);
      for (i64 k = 0; k < i; ++k) sum = sum - conj_of(a(k, i)) * a(k, j);
      if (i < j)
        a(i, j) = divide(sum, a(i, i));
      else if (re_of(sum) > 0)
        a(i, j) = T((R)sqrt((double)re_of(sum)));
      else
        *args.info = (i32)j + 1;
    }
}

template <typename T>
RN_DEVICE void getrf(const emulated_solver_args& args, columns<T> a) {
  *args.info = 0;
  for (i64 k = 0; k < args.n; ++k) {
    i64 best = k;
    for (i64 i = k + 1; i < args.n; ++i)
      if (size_of(a(i, k)) > size_of(a(best, k))) best = i;
    args.pivots[k] = best + 1;
    for (i64 j = 0; j < args.n; ++j) {
      const T x = a(k, j);
      a(k, j) = a(best, j);
      a(best, j) = x;
    }
    if (is_zero(a(k, k))) {
      if (!*args.info) *args.info = (i32)k + 1;
      continue;
    }
    for (i64 i = k + 1; i < args.n; ++i) a(i, k) = divide(a(i, k), a(k, k));
    for (i64 j = k + 1; j < args.n; ++j)
      for (i64 i = k + 1; i < args.n; ++i) a(i, j) = a(i, j) - a(i, k) * a(k, j);
  }
}

// Column j of I - tau v v*, v being column k of |a| from row k on, with a 1 that is not stored.
template <typename T>
RN_DEVICE void reflect(columns<T> a, i64 m, i64 k, T tau, columns<T> to, i64 j) {
  T sum = to(k, j);
  for (i64 i = k + 1; i < m; ++i) sum = sum + conj_of(a(i, k)) * to(i, j);
  sum = tau * sum;
  to(k, j) = to(k, j) - sum;
  for (i64 i = k + 1; i < m; ++i) to(i, j) = to(i, j) - a(i, k) * sum;
}

template <typename T>
RN_DEVICE void geqrf(const emulated_solver_args& args, columns<T> a) {
  typedef typename real_of<T>::type R;
  T* tau = (T*)args.b;
  *args.info = 0;
  for (i64 k = 0; k < args.n && k < args.m; ++k) {
    R tail = 0;
    for (i64 i = k + 1; i < args.m; ++i) tail += square_of(a(i, k));
    const T first = a(k, k);
    tau[k] = T(0);
    if (tail == 0) continue;
    R beta = (R)sqrt((double)(square_of(first) + tail));
    if (re_of(first) >= 0) beta = -beta;
    tau[k] = divide(T(beta) - first, T(beta));
    for (i64 i = k + 1; i < args.m; ++i) a(i, k) = divide(a(i, k), first - T(beta));
    a(k, k) = T(beta);
    for (i64 j = k + 1; j < args.n; ++j) reflect(a, args.m, k, conj_of(tau[k]), a, j);
  }
}

// Backwards: column k is no longer needed as a reflector when it becomes one of Q.
template <typename T>
RN_DEVICE void orgqr(const emulated_solver_args& args, columns<T> a) {
  const T* tau = (const T*)args.b;
  *args.info = 0;
  for (i64 j = args.k; j < args.n; ++j)
    for (i64 i = 0; i < args.m; ++i) a(i, j) = T(i == j ? 1 : 0);
  for (i64 k = args.k - 1; k >= 0; --k) {
    for (i64 j = k + 1; j < args.n; ++j) reflect(a, args.m, k, tau[k], a, j);
    for (i64 i = k + 1; i < args.m; ++i) a(i, k) = T(0) - tau[k] * a(i, k);
    a(k, k) = T(1) - tau[k];
    for (i64 i = 0; i < k; ++i) a(i, k) = T(0);
  }
}

// One-sided Jacobi rotations of the columns of |a|, and of |v|, until they are orthogonal.
template <typename T>
RN_DEVICE void orthogonalize(columns<T> a, i64 m, i64 n, columns<T> v) {
  bool moves = true;
  for (int sweep = 0; moves && sweep < 60; ++sweep) {
    moves = false;
    for (i64 p = 0; p < n; ++p)
      for (i64 q = p + 1; q < n; ++q) {
        double alpha = 0, beta = 0;
        T gamma = T(0);
        for (i64 i = 0; i < m; ++i) {
          alpha += (double)square_of(a(i, p));
          beta += (double)square_of(a(i, q));
          gamma = gamma + conj_of(a(i, p)) * a(i, q);
        }
        const double size = (double)size_of(gamma);
        const double epsilon = sizeof(typename real_of<T>::type) == 8 ? 1e-15 : 1e-7;
        if (size <= epsilon * sqrt(alpha * beta) || size == 0) continue;
        moves = true;
        typedef typename real_of<T>::type R;
        const double zeta = (beta - alpha) / (2 * size);
        const double t = (zeta < 0 ? -1 : 1) / (fabs(zeta) + sqrt(1 + zeta * zeta));
        const double c = 1 / sqrt(1 + t * t);
        const T s = T((R)(c * t / size)) * gamma;
        for (i64 i = 0; i < m + n; ++i) {
          T& x = i < m ? a(i, p) : v(i - m, p);
          T& y = i < m ? a(i, q) : v(i - m, q);
          const T old = x;
          x = T((R)c) * old - conj_of(s) * y;
          y = s * old + T((R)c) * y;
        }
      }
  }
}

template <typename T>
RN_DEVICE void set_identity(columns<T> v, i64 n) {
  for (i64 at = 0; at < n * n; ++at) v(at % n, at / n) = T(at % n == at / n ? 1 : 0);
}

template <typename R>
RN_DEVICE bool has_nan(const R* numbers, i64 n) {
  for (i64 i = 0; i < n; ++i)
    if (!(numbers[i] - numbers[i] == 0)) return true;
  return false;
}

// Exchanges columns until |values| are in order.
template <typename T, typename R>
RN_DEVICE void sort(R* values, i64 n, double sign, columns<T> a, i64 a_rows, columns<T> b,
                    i64 b_rows) {
  for (i64 k = 0; k < n; ++k) {
    i64 best = k;
    for (i64 j = k + 1; j < n; ++j)
      if (sign * (double)values[j] < sign * (double)values[best]) best = j;
    const R value = values[k];
    values[k] = values[best];
    values[best] = value;
    for (i64 i = 0; i < a_rows + b_rows; ++i) {
      T& x = i < a_rows ? a(i, k) : b(i - a_rows, k);
      T& y = i < a_rows ? a(i, best) : b(i - a_rows, best);
      const T old = x;
      x = y;
      y = old;
    }
  }
}

// The self-adjoint matrix is moved until it is positive, so that its singular values are its
// eigenvalues, and its right vectors, in the workspace |v|, its vectors.
template <typename T>
RN_DEVICE void syevd(const emulated_solver_args& args, columns<T> a) {
  typedef typename real_of<T>::type R;
  const i64 n = args.n;
  R* values = (R*)args.b;
  double shift = 0;
  for (i64 j = 0; j < n; ++j)
    for (i64 i = 0; i <= j; ++i) {
      if (i == j) a(i, i) = T(re_of(a(i, i)));
      a(j, i) = conj_of(a(i, j));
    }
  for (i64 j = 0; j < n; ++j) {
    double sum = 0;
    for (i64 i = 0; i < n; ++i) sum += (double)size_of(a(i, j));
    shift = sum > shift ? sum : shift;
  }
  for (i64 j = 0; j < n; ++j) a(j, j) = a(j, j) + T((R)shift);
  const columns<T> v = {(T*)args.v, n};
  set_identity(v, n);
  orthogonalize(a, n, n, v);
  for (i64 j = 0; j < n; ++j) {
    double sum = 0;
    for (i64 i = 0; i < n; ++i) sum += (double)square_of(a(i, j));
    values[j] = (R)(sqrt(sum) - shift);
  }
  *args.info = has_nan(values, n);
  sort(values, n, 1, v, n, v, 0);
  for (i64 j = 0; args.wants_vectors && j < n; ++j)
    for (i64 i = 0; i < n; ++i) a(i, j) = v(i, j);
}

// The rest of an orthonormal basis: unit vectors without what lies in the columns before.
template <typename T>
RN_DEVICE void complete(columns<T> u, i64 m, i64 from, i64 to) {
  typedef typename real_of<T>::type R;
  for (i64 j = from, unit = 0; j < to && unit < m; ++unit) {
    for (i64 i = 0; i < m; ++i) u(i, j) = T(i == unit ? 1 : 0);
    for (int again = 0; again < 2; ++again)
      for (i64 k = 0; k < j; ++k) {
        T sum = T(0);
        for (i64 i = 0; i < m; ++i) sum = sum + conj_of(u(i, k)) * u(i, j);
        for (i64 i = 0; i < m; ++i) u(i, j) = u(i, j) - sum * u(i, k);
      }
    double size = 0;
    for (i64 i = 0; i < m; ++i) size += (double)square_of(u(i, j));
    if (size < 1e-3) continue;
    for (i64 i = 0; i < m; ++i) u(i, j) = u(i, j) * T((R)(1 / sqrt(size)));
    ++j;
  }
}

template <typename T>
RN_DEVICE void gesvd(const emulated_solver_args& args, columns<T> a) {
  typedef typename real_of<T>::type R;
  const i64 m = args.m, n = args.n;
  R* values = (R*)args.b;
  const columns<T> v = {(T*)args.v, n};
  set_identity(v, n);
  orthogonalize(a, m, n, v);
  for (i64 j = 0; j < n; ++j) {
    double sum = 0;
    for (i64 i = 0; i < m; ++i) sum += (double)square_of(a(i, j));
    values[j] = (R)sqrt(sum);
  }
  *args.info = has_nan(values, n);
  sort(values, n, -1, a, m, v, n);
  if (!args.wants_vectors) return;
  const columns<T> u = {(T*)args.u, m};
  for (i64 j = 0; j < n; ++j)
    for (i64 i = 0; i < m; ++i) u(i, j) = divide(a(i, j), T(values[j]));
  complete(u, m, n, args.u_columns);
}

template <typename T>
RN_DEVICE void solve(const emulated_solver_args& args) {
  const columns<T> a = {(T*)args.a, args.m};
  switch (args.op) {
    case EMULATED_POTRF:
      return potrf(args, a);
    case EMULATED_GETRF:
      return getrf(args, a);
    case EMULATED_GEQRF:
      return geqrf(args, a);
    case EMULATED_ORGQR:
      return orgqr(args, a);
    case EMULATED_SYEVD:
      return syevd(args, a);
    default:
      return gesvd(args, a);
  }
}

RN_KERNEL(emulated_solver, emulated_solver_args) {
  if (args.type == 0) solve<float>(args);
  if (args.type == 1) solve<double>(args);
  if (args.type == 4) solve<rn_complex64>(args);
  if (args.type == 5) solve<rn_complex128>(args);
}

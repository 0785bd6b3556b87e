// QR, eigenvalues of self-adjoint matrices, and singular values: a block per matrix. All types are
// computed in double precision, real or complex, as on the CPU.
//
// Eigenvalues and singular values come from Jacobi rotations: a round rotates n / 2 pairs of rows
// or columns, none of which share a member, so that all threads have work. A block does all rounds
// of a matrix. Large matrices take one launch or three per round instead: begin, rounds, end.
#include "linalg/numbers.cuh"

#include "linalg/decompose_args.h"

#define EPSILON 2.220446049250313e-16
#define SMALLEST 2.2250738585072014e-308
#define ALL_LANES 0xffffffffu

// Numbers as they are stored and as they are computed with.
RN_DEVICE double wide(rn_half x) { return (double)(float)x; }
RN_DEVICE double wide(float x) { return (double)x; }
RN_DEVICE double wide(double x) { return x; }
RN_DEVICE rn_complex128 wide(rn_complex64 x) { return {(double)x.re, (double)x.im}; }
RN_DEVICE rn_complex128 wide(rn_complex128 x) { return x; }
RN_DEVICE void narrow(double x, rn_half* to) { *to = rn_half((float)x); }
RN_DEVICE void narrow(double x, float* to) { *to = (float)x; }
RN_DEVICE void narrow(double x, double* to) { *to = x; }
RN_DEVICE void narrow(rn_complex128 x, rn_complex64* to) { *to = {(float)x.re, (float)x.im}; }
RN_DEVICE void narrow(rn_complex128 x, rn_complex128* to) { *to = x; }

RN_DEVICE double not_a_number() {
  double zero = 0;
  return zero / zero;
}
RN_DEVICE bool is_finite(double x) { return x - x == 0; }

// Sums over a warp and a block, in an order that depends on the number of threads only.
RN_DEVICE double warp_sum(double x) {
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(ALL_LANES, x, step);
  return x;
}
RN_DEVICE rn_complex128 warp_sum(rn_complex128 x) { return {warp_sum(x.re), warp_sum(x.im)}; }

RN_DEVICE double block_sum(double x) {
  __shared__ double parts[32];
  x = warp_sum(x);
  __syncthreads();
  if (lane() == 0) parts[row_of_threads()] = x;
  __syncthreads();
  x = 0;
  for (int i = 0; i < rows_of_threads(); ++i) x += parts[i];
  return x;
}
// Infinity if any is not finite.
RN_DEVICE double block_max(double x) {
  __shared__ double parts[32];
  if (!is_finite(x)) x = 1 / 0.0;
  for (int step = 16; step > 0; step /= 2) x = fmax(x, __shfl_xor_sync(ALL_LANES, x, step));
  __syncthreads();
  if (lane() == 0) parts[row_of_threads()] = x;
  __syncthreads();
  x = 0;
  for (int i = 0; i < rows_of_threads(); ++i) x = fmax(x, parts[i]);
  return x;
}

// The largest size of |count| numbers.
template <typename T>
RN_DEVICE double largest_of(const T* a, i64 count) {
  double most = 0;
  for (i64 i = threadIdx.x; i < count; i += blockDim.x) {
    double size = (double)size_of(wide(a[i]));
    if (!(size <= most)) most = is_finite(size) ? size : 1 / 0.0;
  }
  return block_max(most);
}

// One column of C := (I - tau v v*) C. v has its first element, a 1, not stored.
template <typename C>
RN_DEVICE void reflect_column(const C* v, i64 step, i64 m, C tau, C* c, i64 width) {
  C sum = c[0];
  for (i64 i = 1; i < m; ++i) sum = sum + conj_of(v[i * step]) * c[i * width];
  sum = tau * sum;
  c[0] = c[0] - sum;
  for (i64 i = 1; i < m; ++i) c[i * width] = c[i * width] - v[i * step] * sum;
}

// A = Q R in place: R on and above the diagonal, reflectors below. The diagonal of R has the signs
// opposite to those of the original, as in stock.
template <typename C>
RN_DEVICE void qr_in_place(C* a, i64 m, i64 n, C* tau) {
  for (i64 k = 0; k < n && k < m; ++k) {
    __syncthreads();
    double tail = 0;
    for (i64 i = k + 1 + threadIdx.x; i < m; i += blockDim.x) tail += square_of(a[i * n + k]);
    tail = block_sum(tail);
    const C first = a[k * n + k];
    double beta = re_of(first);
    C factor = C(0);
    if (tail > SMALLEST || square_of(first) - beta * beta > SMALLEST) {
      beta = sqrt(square_of(first) + tail);
      if (re_of(first) >= 0) beta = -beta;
      factor = conj_of(divide(C(beta) - first, C(beta)));
    }
    const bool reflects = !is_zero(factor);
    __syncthreads();
    for (i64 i = k + 1 + threadIdx.x; i < m; i += blockDim.x)
      a[i * n + k] = reflects ? divide(a[i * n + k], first - C(beta)) : C(0);
    if (threadIdx.x == 0) {
      a[k * n + k] = C(beta);
      tau[k] = factor;
    }
    __syncthreads();
    if (!reflects) continue;
    for (i64 j = k + 1 + threadIdx.x; j < n; j += blockDim.x)
      reflect_column(a + k * n + k, n, m - k, factor, a + k * n + j, n);
  }
  __syncthreads();
}

// The first |width| columns of Q from |count| reflectors. No column needs another.
template <typename C>
RN_DEVICE void form_q(const C* a, i64 m, i64 n, i64 count, const C* tau, C* q, i64 width) {
  for (i64 j = threadIdx.x; j < width; j += blockDim.x) {
    for (i64 i = 0; i < m; ++i) q[i * width + j] = C(i == j ? 1 : 0);
    for (i64 k = count - 1; k >= 0; --k)
      if (!is_zero(tau[k]))
        reflect_column(a + k * n + k, n, m - k, conj_of(tau[k]), q + k * width + j, width);
  }
  __syncthreads();
}

template <typename T, typename C>
RN_DEVICE void load(const T* from, C* to, i64 count) {
  for (i64 i = threadIdx.x; i < count; i += blockDim.x) to[i] = wide(from[i]);
}
template <typename T, typename C>
RN_DEVICE void store(const C* from, T* to, i64 count) {
  for (i64 i = threadIdx.x; i < count; i += blockDim.x) narrow(from[i], &to[i]);
}

template <typename T, typename C>
RN_DEVICE void qr_one(const decompose_args& args, i64 z, C* a) {
  const i64 m = args.m, n = args.n, least = m < n ? m : n, width = args.is_full ? m : least;
  C *q = a + m * n, *tau = q + m * width;
  load((const T*)args.a + z * m * n, a, m * n);
  qr_in_place(a, m, n, tau);
  form_q(a, m, n, least, tau, q, width);
  store(q, (T*)args.outs[0] + z * m * width, m * width);
  T* r = (T*)args.outs[1] + z * width * n;
  for (i64 at = threadIdx.x; at < width * n; at += blockDim.x)
    narrow(at % n < at / n ? C(0) : a[at], &r[at]);
}

// The pair that is number |i| of round |round| of a tournament of |n| players; false if one of them
// is not there, as n is odd.
RN_DEVICE bool pair_of(i64 n, i64 round, i64 i, i64* p, i64* q) {
  const u32 others = (u32)((n + 1) / 2 * 2 - 1);
  const u32 x = i == 0 ? others : (u32)(round + i) % others;
  const u32 y = (u32)(round + others - i) % others;
  *p = x < y ? x : y;
  *q = x < y ? y : x;
  return *q < n;
}

// x and y become c x - s conj(phase) y and s phase x + c y.
template <typename C>
RN_DEVICE void rotate(C* x, C* y, double c, C s) {
  C old = *x;
  *x = C(c) * old - conj_of(s) * *y;
  *y = s * old + C(c) * *y;
}

// The rotation that makes gamma 0 between alpha and beta; s includes the phase of gamma.
template <typename C>
RN_DEVICE void find_rotation(double alpha, double beta, C gamma, double size, double* c, C* s) {
  double zeta = (beta - alpha) / (2 * size);
  double t = (zeta < 0 ? -1 : 1) / (fabs(zeta) + sqrt(1 + zeta * zeta));
  *c = 1 / sqrt(1 + t * t);
  *s = C(*c * t / size) * gamma;
}

// The scratch of an eigenvalue decomposition.
template <typename C>
struct eigen_parts {
  C *a, *v;
  C* rotations;  // c and s of each pair
  double* d;     // eigenvalues
  double* scale;
  i64* order;  // the rank of each
};
template <typename C>
RN_DEVICE eigen_parts<C> eigen_scratch(void* scratch, i64 n) {
  eigen_parts<C> parts;
  parts.a = (C*)scratch;
  parts.v = parts.a + n * n;
  parts.rotations = parts.v + n * n;
  parts.d = (double*)(parts.rotations + n + 1);
  parts.scale = parts.d + n;
  parts.order = (i64*)(parts.scale + 1);
  return parts;
}

#define EIGEN_TOLERANCE (EPSILON / 16)

// The rotation of pair |i|. Returns whether it is one.
template <typename C>
RN_DEVICE bool eigen_angle(const eigen_parts<C>& parts, i64 n, i64 round, i64 i) {
  i64 p, q;
  double c = 1;
  C s = C(0);
  bool moves = false;
  if (pair_of(n, round, i, &p, &q)) {
    const C gamma = parts.a[p * n + q];
    const double size = size_of(gamma);
    moves = size > EIGEN_TOLERANCE;
    if (moves)
      find_rotation(re_of(parts.a[p * n + p]), re_of(parts.a[q * n + q]), gamma, size, &c, &s);
  }
  parts.rotations[2 * i] = C(c);
  parts.rotations[2 * i + 1] = s;
  return moves;
}

// J* A: columns |first|, |first| + |step| ... of the rows of pair |i|. The rotation of rows is the
// conjugate of that of columns.
template <typename C>
RN_DEVICE void eigen_rows(const eigen_parts<C>& parts, i64 n, i64 round, i64 i, i64 first,
                          i64 step) {
  i64 p, q;
  const C s = parts.rotations[2 * i + 1];
  if (!pair_of(n, round, i, &p, &q) || is_zero(s)) return;
  const double c = re_of(parts.rotations[2 * i]);
  for (i64 j = first; j < n; j += step)
    rotate(&parts.a[p * n + j], &parts.a[q * n + j], c, conj_of(s));
}

// A J and V J: rows |first|, |first| + |step| ... of the columns of pair |i|.
template <typename C>
RN_DEVICE void eigen_columns(const eigen_parts<C>& parts, i64 n, i64 round, i64 i, i64 first,
                             i64 step, bool wants_vectors) {
  i64 p, q;
  const C s = parts.rotations[2 * i + 1];
  if (!pair_of(n, round, i, &p, &q) || is_zero(s)) return;
  const double c = re_of(parts.rotations[2 * i]);
  for (i64 row = first; row < n; row += step) {
    rotate(&parts.a[row * n + p], &parts.a[row * n + q], c, s);
    if (wants_vectors) rotate(&parts.v[row * n + p], &parts.v[row * n + q], c, s);
  }
}

// How many of |n| values come before value |i|, in ascending (sign 1) or descending (-1) order.
RN_DEVICE i64 rank_of(const double* values, i64 n, i64 i, double sign) {
  i64 rank = 0;
  for (i64 j = 0; j < n; ++j) {
    double x = sign * values[j], y = sign * values[i];
    rank += x < y || (x == y && j < i);
  }
  return rank;
}

// Loads a matrix, scaled to a largest element of 1. False if it has a number that is not finite.
template <typename T, typename C>
RN_DEVICE bool eigen_begin(const decompose_args& args, i64 z, const eigen_parts<C>& parts) {
  const i64 n = args.n;
  const T* from = (const T*)args.a + z * n * n;
  double scale = 0;  // of the lower triangle, which alone is read
  for (i64 at = threadIdx.x; at < n * n; at += blockDim.x) {
    const i64 i = at / n, j = at % n;
    const C x = j <= i ? wide(from[at]) : conj_of(wide(from[j * n + i]));
    parts.a[at] = i == j ? C(re_of(x)) : x;
    parts.v[at] = C(i == j ? 1 : 0);
    const double size = size_of(x);
    if (!(size <= scale)) scale = is_finite(size) ? size : 1 / 0.0;
  }
  scale = block_max(scale);
  const bool is_good = is_finite(scale);
  if (!is_good && threadIdx.x == 0) *args.has_failed = 1;
  if (!is_good || scale == 0) scale = 1;
  for (i64 at = threadIdx.x; at < n * n; at += blockDim.x)
    parts.a[at] = is_good ? C(1 / scale) * parts.a[at] : C(0);
  if (threadIdx.x == 0) *parts.scale = scale;
  __syncthreads();
  return is_good;
}

template <typename T, typename C>
RN_DEVICE void eigen_end(const decompose_args& args, i64 z, const eigen_parts<C>& parts) {
  const i64 n = args.n;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) parts.d[i] = re_of(parts.a[i * n + i]);
  __syncthreads();
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
    const i64 rank = rank_of(parts.d, n, i, 1);
    parts.order[i] = rank;
    narrow(C(parts.d[i] * *parts.scale), (T*)args.outs[0] + z * n + rank);
  }
  __syncthreads();
  for (i64 at = threadIdx.x; args.outs[1] && at < n * n; at += blockDim.x)
    narrow(parts.v[at], (T*)args.outs[1] + (z * n + at / n) * n + parts.order[at % n]);
}

template <typename T, typename C>
RN_DEVICE void eigen_one(const decompose_args& args, i64 z, C* scratch) {
  const i64 n = args.n, pairs = (n + 1) / 2, rounds = pairs * 2 - 1;
  const eigen_parts<C> parts = eigen_scratch<C>(scratch, n);
  if (!eigen_begin<T>(args, z, parts)) return;
  bool moves = n > 1;
  for (int sweep = 0; moves && sweep < RN_DECOMPOSE_SWEEPS; ++sweep) {
    bool moved = false;
    for (i64 round = 0; round < rounds; ++round) {
      for (i64 i = threadIdx.x; i < pairs; i += blockDim.x)
        moved |= eigen_angle(parts, n, round, i);
      __syncthreads();
      for (i64 i = row_of_threads(); i < pairs; i += rows_of_threads())
        eigen_rows(parts, n, round, i, lane(), 32);
      __syncthreads();
      for (i64 i = lane(); i < pairs; i += 32)
        eigen_columns(parts, n, round, i, row_of_threads(), rows_of_threads(), args.outs[1] != 0);
      __syncthreads();
    }
    moves = __syncthreads_or(moved);
  }
  eigen_end<T>(args, z, parts);
}

// Threads that work on one pair together.
struct one_warp {
  RN_DEVICE static int first() { return lane(); }
  RN_DEVICE static int count() { return 32; }
  template <typename C>
  RN_DEVICE static C sum(C x) {
    return warp_sum(x);
  }
};
struct one_block {
  RN_DEVICE static int first() { return (int)threadIdx.x; }
  RN_DEVICE static int count() { return (int)blockDim.x; }
  RN_DEVICE static double sum(double x) { return block_sum(x); }
};

// Makes rows p and q of |bt| orthogonal and turns those of |vt| likewise. False if they are
// orthogonal already.
template <typename Group, typename C>
RN_DEVICE bool separate(C* p, C* q, i64 m, C* vp, C* vq, i64 n) {
  double alpha = 0, beta = 0;
  C gamma = C(0);
  for (i64 i = Group::first(); i < m; i += Group::count()) {
    alpha += square_of(p[i]);
    beta += square_of(q[i]);
    gamma = gamma + conj_of(p[i]) * q[i];
  }
  alpha = Group::sum(alpha), beta = Group::sum(beta), gamma = Group::sum(gamma);
  const double size = size_of(gamma);
  if (!(size > 4 * EPSILON * sqrt(alpha) * sqrt(beta)) || size < SMALLEST) return false;
  double c;
  C s;
  find_rotation(alpha, beta, gamma, size, &c, &s);
  for (i64 i = Group::first(); i < m; i += Group::count()) rotate(&p[i], &q[i], c, s);
  for (i64 i = Group::first(); i < n; i += Group::count()) rotate(&vp[i], &vq[i], c, s);
  return true;
}

// The parts of the scratch of a singular value decomposition of a tall matrix.
template <typename C>
struct svd_parts {
  C *bt, *vt, *u, *reflectors, *tau;
  double* s;   // by row of |bt|
  i64* order;  // the rows in descending order of s
  double* scale;
};
// Of a matrix of m x n, m not less than n.
RN_DEVICE svd_parts<double> svd_scratch(void* scratch, i64 m, i64 n) {
  svd_parts<double> parts;
  parts.bt = (double*)scratch;
  parts.vt = parts.bt + m * n;
  parts.reflectors = parts.vt + n * n;
  parts.tau = parts.reflectors + m * n;
  parts.s = parts.tau + n;
  parts.order = (i64*)(parts.s + n);
  parts.scale = parts.s + 2 * n;
  parts.u = parts.scale + 1;
  return parts;
}

// U, m x width: directions without a singular value are chosen freely.
template <typename C>
RN_DEVICE void form_u(const svd_parts<C>& parts, i64 m, i64 n, i64 width) {
  const double most = n ? parts.s[parts.order[0]] : 0;
  i64 rank = 0;
  while (rank < n && parts.s[parts.order[rank]] > EPSILON * (double)m * most) ++rank;
  for (i64 at = threadIdx.x; at < m * rank; at += blockDim.x) {
    const i64 k = parts.order[at % rank];
    parts.reflectors[at] = C(1 / parts.s[k]) * parts.bt[k * m + at / rank];
  }
  __syncthreads();
  if (rank < width) {
    qr_in_place(parts.reflectors, m, rank, parts.tau);
    form_q(parts.reflectors, m, rank, rank, parts.tau, parts.u, width);
  }
  for (i64 at = threadIdx.x; at < m * rank; at += blockDim.x) {
    const i64 k = parts.order[at % rank];
    parts.u[at / rank * width + at % rank] = C(1 / parts.s[k]) * parts.bt[k * m + at / rank];
  }
  __syncthreads();
}

template <typename C>
RN_DEVICE void singular_sweeps(const svd_parts<C>& parts, i64 m, i64 n) {
  const i64 pairs = (n + 1) / 2, rounds = pairs * 2 - 1;
  bool moves = n > 1;
  for (int sweep = 0; moves && sweep < RN_DECOMPOSE_SWEEPS; ++sweep) {
    bool moved = false;
    for (i64 round = 0; round < rounds; ++round) {
      for (i64 i = row_of_threads(); i < pairs; i += rows_of_threads()) {
        i64 p, q;
        if (pair_of(n, round, i, &p, &q))
          moved |= separate<one_warp>(parts.bt + p * m, parts.bt + q * m, m, parts.vt + p * n,
                                      parts.vt + q * n, n);
      }
      __syncthreads();
    }
    moves = __syncthreads_or(moved);
  }
}

// The singular values are the lengths of the rows.
template <typename C>
RN_DEVICE void sort_rows(const svd_parts<C>& parts, i64 m, i64 n) {
  for (i64 k = row_of_threads(); k < n; k += rows_of_threads()) {
    double sum = 0;
    for (i64 i = lane(); i < m; i += 32) sum += square_of(parts.bt[k * m + i]);
    sum = warp_sum(sum);
    if (lane() == 0) parts.s[k] = sqrt(sum);
  }
  __syncthreads();
  for (i64 k = threadIdx.x; k < n; k += blockDim.x) parts.order[rank_of(parts.s, n, k, -1)] = k;
  __syncthreads();
}

template <typename T>
RN_DEVICE void fill_nan(void* out, i64 z, i64 count) {
  for (i64 i = threadIdx.x; out && i < count; i += blockDim.x)
    narrow(not_a_number(), (T*)out + z * count + i);
}

// A wide matrix is decomposed as its transpose, whose vectors change places. For real types, the
// only ones that stock has on a GPU.
struct svd_sizes {
  bool is_tall;
  i64 m, n, width;  // of the tall matrix; columns of U
};
RN_DEVICE svd_sizes sizes_of(const decompose_args& args) {
  const bool is_tall = args.m >= args.n;
  const i64 m = is_tall ? args.m : args.n, n = is_tall ? args.n : args.m;
  return {is_tall, m, n, args.is_full ? m : n};
}

// Loads a matrix, scaled to a largest element of 1; zeros if it has a number that is not finite,
// and the scale is infinite then.
template <typename T>
RN_DEVICE void singular_begin(const decompose_args& args, i64 z, const svd_parts<double>& parts) {
  const svd_sizes sizes = sizes_of(args);
  const i64 m = sizes.m, n = sizes.n;
  const T* a = (const T*)args.a + z * m * n;
  double scale = largest_of(a, m * n);
  if (scale == 0) scale = 1;
  for (i64 at = threadIdx.x; at < m * n; at += blockDim.x)
    parts.bt[at] = is_finite(scale) ? wide(a[sizes.is_tall ? at % m * n + at / m : at]) / scale : 0;
  for (i64 at = threadIdx.x; at < n * n; at += blockDim.x) parts.vt[at] = at / n == at % n;
  if (threadIdx.x == 0) *parts.scale = scale;
  __syncthreads();
}

template <typename T>
RN_DEVICE void singular_end(const decompose_args& args, i64 z, const svd_parts<double>& parts) {
  const svd_sizes sizes = sizes_of(args);
  const i64 m = sizes.m, n = sizes.n, width = sizes.width;
  void *u = args.outs[sizes.is_tall ? 1 : 2], *v = args.outs[sizes.is_tall ? 2 : 1];
  const double scale = *parts.scale;
  if (!is_finite(scale)) {
    fill_nan<T>(args.outs[0], z, n);
    fill_nan<T>(u, z, m * width);
    fill_nan<T>(v, z, n * n);
    return;
  }
  sort_rows(parts, m, n);
  for (i64 k = threadIdx.x; k < n; k += blockDim.x)
    narrow(parts.s[parts.order[k]] * scale, (T*)args.outs[0] + z * n + k);
  if (!u) return;
  form_u(parts, m, n, width);
  store(parts.u, (T*)u + z * m * width, m * width);
  for (i64 at = threadIdx.x; at < n * n; at += blockDim.x)
    narrow(parts.vt[parts.order[at % n] * n + at / n], (T*)v + z * n * n + at);
}

template <typename T>
RN_DEVICE void singular_one(const decompose_args& args, i64 z, double* scratch) {
  const svd_sizes sizes = sizes_of(args);
  const svd_parts<double> parts = svd_scratch(scratch, sizes.m, sizes.n);
  singular_begin<T>(args, z, parts);
  if (is_finite(*parts.scale)) singular_sweeps(parts, sizes.m, sizes.n);
  singular_end<T>(args, z, parts);
}

// Every block takes matrices until none is left.
#define RN_DECOMPOSE(name, C, call)                                 \
  RN_KERNEL(name, decompose_args) {                                 \
    C* scratch = (C*)args.scratch + blockIdx.x * args.scratch_size; \
    for (i64 z = blockIdx.x; z < args.stack; z += gridDim.x) {      \
      call(args, z, scratch);                                       \
      __syncthreads();                                              \
    }                                                               \
  }
#define COMMA ,
RN_DECOMPOSE(qr_f16, double, qr_one<rn_half COMMA double>)
RN_DECOMPOSE(qr_f32, double, qr_one<float COMMA double>)
RN_DECOMPOSE(qr_f64, double, qr_one<double COMMA double>)
RN_DECOMPOSE(qr_c128, rn_complex128, qr_one<rn_complex128 COMMA rn_complex128>)
RN_DECOMPOSE(eigen_f32, double, eigen_one<float COMMA double>)
RN_DECOMPOSE(eigen_f64, double, eigen_one<double COMMA double>)
RN_DECOMPOSE(eigen_c64, rn_complex128, eigen_one<rn_complex64 COMMA rn_complex128>)
RN_DECOMPOSE(eigen_c128, rn_complex128, eigen_one<rn_complex128 COMMA rn_complex128>)
RN_DECOMPOSE(singular_f32, double, singular_one<float>)
RN_DECOMPOSE(singular_f64, double, singular_one<double>)

// Large matrices, one block per matrix: what comes before the rounds and after them.
#define RN_DECOMPOSE_ENDS(name, T, C, what, parts_of)               \
  RN_KERNEL(what##_begin_##name, decompose_args) {                  \
    C* scratch = (C*)args.scratch + blockIdx.x * args.scratch_size; \
    what##_begin<T>(args, blockIdx.x, parts_of);                    \
  }                                                                 \
  RN_KERNEL(what##_end_##name, decompose_args) {                    \
    C* scratch = (C*)args.scratch + blockIdx.x * args.scratch_size; \
    what##_end<T>(args, blockIdx.x, parts_of);                      \
  }
#define EIGEN(C) eigen_scratch<C>(scratch, args.n)
RN_DECOMPOSE_ENDS(f32, float, double, eigen, EIGEN(double))
RN_DECOMPOSE_ENDS(f64, double, double, eigen, EIGEN(double))
RN_DECOMPOSE_ENDS(c64, rn_complex64, rn_complex128, eigen, EIGEN(rn_complex128))
RN_DECOMPOSE_ENDS(c128, rn_complex128, rn_complex128, eigen, EIGEN(rn_complex128))
#define SINGULAR svd_scratch(scratch, sizes_of(args).m, sizes_of(args).n)
RN_DECOMPOSE_ENDS(f32, float, double, singular, SINGULAR)
RN_DECOMPOSE_ENDS(f64, double, double, singular, SINGULAR)

// One round: the angles of all pairs, then rows, then columns. blockIdx.y is the matrix.
#define RN_EIGEN_ROUND(name, C)                                                                    \
  RN_KERNEL(eigen_angles_##name, round_args) {                                                     \
    C* scratch = (C*)args.scratch + blockIdx.y * args.scratch_size;                                \
    const eigen_parts<C> parts = eigen_scratch<C>(scratch, args.n);                                \
    RN_EACH(i, (args.n + 1) / 2) {                                                                 \
      if (eigen_angle(parts, args.n, args.round, i)) *args.moves = 1;                              \
    }                                                                                              \
  }                                                                                                \
  RN_KERNEL(eigen_rows_##name, round_args) {                                                       \
    C* scratch = (C*)args.scratch + blockIdx.y * args.scratch_size;                                \
    const eigen_parts<C> parts = eigen_scratch<C>(scratch, args.n);                                \
    for (i64 i = blockIdx.x; i < (args.n + 1) / 2; i += gridDim.x)                                 \
      eigen_rows(parts, args.n, args.round, i, threadIdx.x, blockDim.x);                           \
  }                                                                                                \
  RN_KERNEL(eigen_columns_##name, round_args) {                                                    \
    C* scratch = (C*)args.scratch + blockIdx.y * args.scratch_size;                                \
    const eigen_parts<C> parts = eigen_scratch<C>(scratch, args.n);                                \
    for (i64 i = threadIdx.x; i < (args.n + 1) / 2; i += blockDim.x)                               \
      eigen_columns(parts, args.n, args.round, i, blockIdx.x, gridDim.x, args.wants_vectors != 0); \
  }
RN_EIGEN_ROUND(f64, double)
RN_EIGEN_ROUND(c128, rn_complex128)

// One pair per block.
RN_KERNEL(singular_round_f64, round_args) {
  const i64 m = args.m, n = args.n;
  double* scratch = (double*)args.scratch + blockIdx.y * args.scratch_size;
  const svd_parts<double> parts = svd_scratch(scratch, m, n);
  for (i64 i = blockIdx.x; i < (n + 1) / 2; i += gridDim.x) {
    i64 p, q;
    if (!pair_of(n, args.round, i, &p, &q)) continue;
    bool moves = separate<one_block>(parts.bt + p * m, parts.bt + q * m, m, parts.vt + p * n,
                                     parts.vt + q * n, n);
    if (moves && threadIdx.x == 0) *args.moves = 1;
  }
}

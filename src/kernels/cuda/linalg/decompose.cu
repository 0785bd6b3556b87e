// QR, eigenvalues of self-adjoint matrices, and singular values: a block per matrix. All types are
// computed in double precision, real or complex, as on the CPU.
//
// Eigenvalues and singular values come from Jacobi rotations: a round rotates n / 2 pairs of rows
// or columns, none of which share a member, so that all threads have work.
#include "linalg/numbers.cuh"

#include "linalg/decompose_args.h"

#define EPSILON 2.220446049250313e-16
#define SMALLEST 2.2250738585072014e-308
#define MAX_SWEEPS 40
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

// One round of two-sided rotations. Returns whether this thread rotated.
template <typename C>
RN_DEVICE bool eigen_round(C* a, C* v, C* rotations, i64 n, i64 round, double tolerance) {
  const i64 pairs = (n + 1) / 2;
  bool moved = false;
  for (i64 i = threadIdx.x; i < pairs; i += blockDim.x) {
    i64 p, q;
    double c = 1;
    C s = C(0);
    if (pair_of(n, round, i, &p, &q)) {
      const C gamma = a[p * n + q];
      const double size = size_of(gamma);
      if (size > tolerance) {
        find_rotation(re_of(a[p * n + p]), re_of(a[q * n + q]), gamma, size, &c, &s);
        moved = true;
      }
    }
    rotations[2 * i] = C(c);
    rotations[2 * i + 1] = s;
  }
  __syncthreads();
  // J* A: rows. The rotation of rows is the conjugate of that of columns.
  for (i64 i = row_of_threads(); i < pairs; i += rows_of_threads()) {
    i64 p, q;
    const C s = rotations[2 * i + 1];
    if (!pair_of(n, round, i, &p, &q) || is_zero(s)) continue;
    for (i64 j = lane(); j < n; j += 32)
      rotate(&a[p * n + j], &a[q * n + j], re_of(rotations[2 * i]), conj_of(s));
  }
  __syncthreads();
  for (i64 i = lane(); i < pairs; i += 32) {
    i64 p, q;
    const C s = rotations[2 * i + 1];
    if (!pair_of(n, round, i, &p, &q) || is_zero(s)) continue;
    const double c = re_of(rotations[2 * i]);
    for (i64 row = row_of_threads(); row < n; row += rows_of_threads()) {
      rotate(&a[row * n + p], &a[row * n + q], c, s);
      if (v) rotate(&v[row * n + p], &v[row * n + q], c, s);
    }
  }
  __syncthreads();
  return moved;
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

template <typename T, typename C>
RN_DEVICE void eigen_one(const decompose_args& args, i64 z, C* a) {
  const i64 n = args.n;
  const T* from = (const T*)args.a + z * n * n;
  C *v = a + n * n, *rotations = v + n * n;
  double* d = (double*)(rotations + n + 1);
  double scale = 0;  // of the lower triangle, which alone is read
  for (i64 at = threadIdx.x; at < n * n; at += blockDim.x) {
    const i64 i = at / n, j = at % n;
    const C x = j <= i ? wide(from[at]) : conj_of(wide(from[j * n + i]));
    a[at] = i == j ? C(re_of(x)) : x;
    v[at] = C(i == j ? 1 : 0);
    const double size = size_of(x);
    if (!(size <= scale)) scale = is_finite(size) ? size : 1 / 0.0;
  }
  scale = block_max(scale);
  if (!is_finite(scale)) {
    if (threadIdx.x == 0) *args.has_failed = 1;
    return;
  }
  if (scale == 0) scale = 1;
  for (i64 at = threadIdx.x; at < n * n; at += blockDim.x) a[at] = C(1 / scale) * a[at];
  __syncthreads();
  const i64 rounds = (n + 1) / 2 * 2 - 1;
  bool moves = n > 1;
  for (int sweep = 0; moves && sweep < MAX_SWEEPS; ++sweep) {
    bool moved = false;
    for (i64 round = 0; round < rounds; ++round)
      moved |= eigen_round(a, args.outs[1] ? v : (C*)0, rotations, n, round, EPSILON / 16);
    moves = __syncthreads_or(moved);
  }
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) d[i] = re_of(a[i * n + i]);
  __syncthreads();
  for (i64 at = threadIdx.x; at < n * n; at += blockDim.x) {
    const i64 row = at / n, i = at % n;
    const bool is_value = row == 0;
    if (!is_value && !args.outs[1]) break;
    const i64 rank = rank_of(d, n, i, 1);
    if (is_value) narrow(C(d[i] * scale), (T*)args.outs[0] + z * n + rank);
    if (args.outs[1]) narrow(v[at], (T*)args.outs[1] + (z * n + row) * n + rank);
  }
}

// Makes rows p and q of |bt| orthogonal, by one warp, and turns those of |vt| likewise. False if
// they are orthogonal already.
template <typename C>
RN_DEVICE bool separate(C* p, C* q, i64 m, C* vp, C* vq, i64 n) {
  double alpha = 0, beta = 0;
  C gamma = C(0);
  for (i64 i = lane(); i < m; i += 32) {
    alpha += square_of(p[i]);
    beta += square_of(q[i]);
    gamma = gamma + conj_of(p[i]) * q[i];
  }
  alpha = warp_sum(alpha), beta = warp_sum(beta), gamma = warp_sum(gamma);
  const double size = size_of(gamma);
  if (!(size > 4 * EPSILON * sqrt(alpha) * sqrt(beta)) || size < SMALLEST) return false;
  double c;
  C s;
  find_rotation(alpha, beta, gamma, size, &c, &s);
  for (i64 i = lane(); i < m; i += 32) rotate(&p[i], &q[i], c, s);
  for (i64 i = lane(); i < n; i += 32) rotate(&vp[i], &vq[i], c, s);
  return true;
}

// The parts of the scratch of a singular value decomposition of a tall matrix.
template <typename C>
struct svd_parts {
  C *bt, *vt, *u, *reflectors, *tau;
  double* s;   // by row of |bt|
  i64* order;  // the rows in descending order of s
};

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
RN_DEVICE void singular_values(const svd_parts<C>& parts, i64 m, i64 n) {
  const i64 pairs = (n + 1) / 2, rounds = pairs * 2 - 1;
  bool moves = n > 1;
  for (int sweep = 0; moves && sweep < MAX_SWEEPS; ++sweep) {
    bool moved = false;
    for (i64 round = 0; round < rounds; ++round) {
      for (i64 i = row_of_threads(); i < pairs; i += rows_of_threads()) {
        i64 p, q;
        if (pair_of(n, round, i, &p, &q))
          moved |= separate(parts.bt + p * m, parts.bt + q * m, m, parts.vt + p * n,
                            parts.vt + q * n, n);
      }
      __syncthreads();
    }
    moves = __syncthreads_or(moved);
  }
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
template <typename T>
RN_DEVICE void singular_one(const decompose_args& args, i64 z, double* scratch) {
  const bool is_tall = args.m >= args.n;
  const i64 m = is_tall ? args.m : args.n, n = is_tall ? args.n : args.m;
  const i64 width = args.is_full ? m : n;
  const T* a = (const T*)args.a + z * m * n;
  void *u_out = args.outs[is_tall ? 1 : 2], *v_out = args.outs[is_tall ? 2 : 1];
  svd_parts<double> parts;
  parts.bt = scratch;
  parts.vt = parts.bt + m * n;
  parts.reflectors = parts.vt + n * n;
  parts.tau = parts.reflectors + m * n;
  parts.s = parts.tau + n;
  parts.order = (i64*)(parts.s + n);
  parts.u = parts.s + 2 * n;
  double scale = largest_of(a, m * n);
  if (!is_finite(scale)) {
    fill_nan<T>(args.outs[0], z, n);
    fill_nan<T>(u_out, z, m * width);
    fill_nan<T>(v_out, z, n * n);
    return;
  }
  if (scale == 0) scale = 1;
  for (i64 at = threadIdx.x; at < m * n; at += blockDim.x)
    parts.bt[at] = wide(a[is_tall ? at % m * n + at / m : at]) / scale;
  for (i64 at = threadIdx.x; at < n * n; at += blockDim.x) parts.vt[at] = at / n == at % n;
  __syncthreads();
  singular_values(parts, m, n);
  for (i64 k = threadIdx.x; k < n; k += blockDim.x)
    narrow(parts.s[parts.order[k]] * scale, (T*)args.outs[0] + z * n + k);
  if (!u_out) return;
  form_u(parts, m, n, width);
  store(parts.u, (T*)u_out + z * m * width, m * width);
  for (i64 at = threadIdx.x; at < n * n; at += blockDim.x)
    narrow(parts.vt[parts.order[at % n] * n + at / n], (T*)v_out + z * n * n + at);
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

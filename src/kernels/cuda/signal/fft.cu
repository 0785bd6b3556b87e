// Fourier transforms, for machines without cuFFT and for more axes than it takes: Stockham passes
// of radix 4, 2 or any prime, out of place, one launch each.
#include "linalg/numbers.cuh"

#include "signal/fft_args.h"

// exp(-2 pi i k / n) for 0 <= k < n. The angle is reduced to the first octant in integers, so that
// no digits are lost.
template <typename R>
RN_DEVICE rn_complex<R> root(i64 k, i64 n) {
  i64 t = 8 * k;  // the angle is pi t / (4 n)
  R sign_re = 1, sign_im = -1;
  if (t > 4 * n) t = 8 * n - t, sign_im = 1;
  if (t > 2 * n) t = 4 * n - t, sign_re = -1;
  const bool swaps = t > n;
  if (swaps) t = 2 * n - t;
  const R angle = (R)(0.78539816339744830962 * ((double)t / (double)n));
  const R c = cos(angle), s = sin(angle);
  return {sign_re * (swaps ? s : c), sign_im * (swaps ? c : s)};
}

// As the number type of the other side: a real number becomes complex, or loses its imaginary part.
template <typename R>
RN_DEVICE void convert(R x, bool, R scale, rn_complex<R>* out) {
  *out = {x * scale, 0};
}
template <typename R>
RN_DEVICE void convert(rn_complex<R> x, bool conjugates, R scale, rn_complex<R>* out) {
  *out = {x.re * scale, (conjugates ? -x.im : x.im) * scale};
}
template <typename R>
RN_DEVICE void convert(rn_complex<R> x, bool, R scale, R* out) {
  *out = x.re * scale;
}
template <typename R>
RN_DEVICE void convert(R x, bool, R scale, R* out) {
  *out = x * scale;
}

template <typename From, typename To>
RN_DEVICE void move(const fft_move_args& args) {
  typedef typename real_of<From>::type R;
  RN_EACH(at, args.count) {
    i64 rest = at, from = 0, step = 1;
    bool is_inside = true;
    for (int d = args.rank - 1; d >= 0; --d) {
      const i64 i = rest % args.dims[d];
      rest /= args.dims[d];
      is_inside = is_inside && i < args.from_dims[d];
      from += i * step;
      step *= args.from_dims[d];
    }
    const From x = is_inside ? ((const From*)args.from)[from] : From(0);
    convert(x, args.conjugates != 0, (R)args.scale, (To*)args.to + at);
  }
}

template <typename T>
RN_DEVICE void mirror(const fft_mirror_args& args) {
  const i64 n = args.n, half = n / 2 + 1;
  RN_EACH(at, args.rows * n) {
    const i64 row = at / n, i = at % n;
    const T* from = (const T*)args.from + row * half;
    T x = i < half ? from[i] : conj_of(from[n - i]);
    // These count as real, as in the transforms that never read their imaginary parts.
    if (i == 0 || 2 * i == n) x.im = 0;
    ((T*)args.to)[at] = x;
  }
}

// y[p, t] = root(p t / sub) sum_k x[p + k m] root(k t / radix), one output per turn.
template <typename T>
RN_DEVICE void pass(const fft_pass_args& args) {
  typedef typename real_of<T>::type R;
  const i64 width = args.width, r = args.radix, m = args.sub / r;
  RN_EACH(at, args.outer * args.sub * width) {
    const i64 q = at % width, row = at / width, t = row % r, p = row / r % m, o = row / r / m;
    const T* x = (const T*)args.x + o * args.sub * width + q;
    T sum = T(0, 0);
    for (i64 k = 0, turn = 0; k < r; ++k, turn = (turn + t) % r)
      sum = sum + x[(p + k * m) * width] * root<R>(turn, r);
    ((T*)args.y)[at] = sum * root<R>(p * t, args.sub);
  }
}

template <typename T>
RN_DEVICE void pass2(const fft_pass_args& args) {
  typedef typename real_of<T>::type R;
  const i64 width = args.width, m = args.sub / 2;
  RN_EACH(at, args.outer * m * width) {
    const i64 q = at % width, row = at / width, p = row % m, o = row / m;
    const T* x = (const T*)args.x + (o * args.sub + p) * width + q;
    T* y = (T*)args.y + (o * args.sub + 2 * p) * width + q;
    const T a = x[0], b = x[m * width];
    y[0] = a + b;
    y[width] = (a - b) * root<R>(p, args.sub);
  }
}

template <typename T>
RN_DEVICE void pass4(const fft_pass_args& args) {
  typedef typename real_of<T>::type R;
  const i64 width = args.width, m = args.sub / 4;
  RN_EACH(at, args.outer * m * width) {
    const i64 q = at % width, row = at / width, p = row % m, o = row / m;
    const T* x = (const T*)args.x + (o * args.sub + p) * width + q;
    T* y = (T*)args.y + (o * args.sub + 4 * p) * width + q;
    const T a = x[0], b = x[m * width], c = x[2 * m * width], d = x[3 * m * width];
    const T even = a + c, odd = a - c, sum = b + d, turned = {b.im - d.im, d.re - b.re};
    const T w = root<R>(p, args.sub), w2 = root<R>(2 * p, args.sub);
    y[0] = even + sum;
    y[width] = (odd + turned) * w;
    y[2 * width] = (even - sum) * w2;
    y[3 * width] = (odd - turned) * (w * w2);
  }
}

// exp(-pi i j^2 / n).
template <typename R>
RN_DEVICE rn_complex<R> chirp(i64 j, i64 n) {
  return root<R>(j * j % (2 * n), 2 * n);
}

template <typename T>
RN_DEVICE void chirp_in(const fft_chirp_args& args) {
  typedef typename real_of<T>::type R;
  RN_EACH(at, args.outer * args.m * args.inner) {
    const i64 i = at % args.inner, row = at / args.inner, j = row % args.m, o = row / args.m;
    const T* x = (const T*)args.x + (o * args.n + j) * args.inner + i;
    ((T*)args.y)[at] = j < args.n ? *x * chirp<R>(j, args.n) : T(0, 0);
  }
}

template <typename T>
RN_DEVICE void chirp_filter(const fft_chirp_args& args) {
  typedef typename real_of<T>::type R;
  RN_EACH(at, args.m) {
    const i64 j = at < args.n ? at : args.m - at;
    ((T*)args.y)[at] = j < args.n ? conj_of(chirp<R>(j, args.n)) : T(0, 0);
  }
}

// The conjugate of the product: the transform of that is the conjugate of what goes back.
template <typename T>
RN_DEVICE void chirp_product(const fft_chirp_args& args) {
  RN_EACH(at, args.outer * args.m * args.inner)
  ((T*)args.y)[at] =
      conj_of(((const T*)args.x)[at] * ((const T*)args.filter)[at / args.inner % args.m]);
}

template <typename T>
RN_DEVICE void chirp_out(const fft_chirp_args& args) {
  typedef typename real_of<T>::type R;
  const R scale = 1 / (R)args.m;
  RN_EACH(at, args.outer * args.n * args.inner) {
    const i64 i = at % args.inner, row = at / args.inner, j = row % args.n, o = row / args.n;
    const T x = conj_of(((const T*)args.x)[(o * args.m + j) * args.inner + i]);
    ((T*)args.y)[at] = T(x.re * scale, x.im * scale) * chirp<R>(j, args.n);
  }
}

#define X(name, real, T, R)                                                      \
  RN_KERNEL(move_##name##_##name, fft_move_args) { move<T, T>(args); }           \
  RN_KERNEL(move_##real##_##real, fft_move_args) { move<R, R>(args); }           \
  RN_KERNEL(move_##real##_##name, fft_move_args) { move<R, T>(args); }           \
  RN_KERNEL(move_##name##_##real, fft_move_args) { move<T, R>(args); }           \
  RN_KERNEL(mirror_##name, fft_mirror_args) { mirror<T>(args); }                 \
  RN_KERNEL(pass_##name, fft_pass_args) { pass<T>(args); }                       \
  RN_KERNEL(pass2_##name, fft_pass_args) { pass2<T>(args); }                     \
  RN_KERNEL(pass4_##name, fft_pass_args) { pass4<T>(args); }                     \
  RN_KERNEL(chirp_in_##name, fft_chirp_args) { chirp_in<T>(args); }              \
  RN_KERNEL(chirp_filter_##name, fft_chirp_args) { chirp_filter<T>(args); }      \
  RN_KERNEL(chirp_product_##name, fft_chirp_args) { chirp_product<T>(args); }    \
  RN_KERNEL(chirp_out_##name, fft_chirp_args) { chirp_out<T>(args); }
X(c64, f32, rn_complex64, float)
X(c128, f64, rn_complex128, double)
#undef X

// Truncated normal numbers with their own bounds, by rejection (Robert, "Simulation of truncated
// normal variables", 1995): the methods of kernels/cpu/random/bounded.c. As on stock's GPUs, each
// number has its own part of the stream; on the CPU a number goes on where the one before ended.
#include "kernels/cuda/random/philox.cuh"
//
#include "kernels/cuda/jit/scalar_ops.cuh"

#define MOST_TRIES 1000  // per number; the last try is then accepted
#define WIDE 1.3         // standard deviations within the bounds for plain normal sampling

// Rounds a result to the type.
template <typename T>
RN_DEVICE rn_of<T> r(rn_of<T> x) {
  return rn_round_to<T>(x);
}

template <typename T>
RN_DEVICE int uniforms(rn_philox* at, rn_of<T>* out) {
  uint4 w = rn_philox_next(at);
  const u32 words[4] = {w.x, w.y, w.z, w.w};
  for (int i = 0; i < 4; ++i)
    out[i] =
        sizeof(T) == 2 ? (float)(words[i] & 0x3FF) * (1.0f / 1024) : rn_word_to_float(words[i]);
  return 4;
}
template <>
RN_DEVICE int uniforms<double>(rn_philox* at, double* out) {
  uint4 w = rn_philox_next(at);
  out[0] = rn_words_to_double(w.x, w.y);
  out[1] = rn_words_to_double(w.z, w.w);
  return 2;
}

// In standard deviations from the mean.
template <typename T>
struct bounds {
  rn_of<T> low, high;
};

template <typename T>
RN_DEVICE rn_of<T> from_normal(bounds<T> b, rn_philox* at) {
  for (int tries = 0;;) {
    rn_of<T> x[4];
    int n = rn_normals(at, x);
    for (int i = 0; i < n; ++i) {
      rn_of<T> z = r<T>(x[i]);
      if ((z >= b.low && z <= b.high) || ++tries > MOST_TRIES) return z;
    }
  }
}

template <typename T>
RN_DEVICE rn_of<T> from_even(bounds<T> b, rn_philox* at) {
  typedef rn_of<T> V;
  V width = r<T>(b.high - b.low), plus = b.low < 0 ? V(0) : r<T>(b.low * b.low);
  for (int tries = 0;;) {
    V x[4], u[4];
    int n = uniforms<T>(at, x);
    uniforms<T>(at, u);
    for (int i = 0; i < n; ++i) {
      V z = r<T>(r<T>(x[i] * width) + b.low), g = r<T>(r<T>(plus - r<T>(z * z)) / 2);
      if (u[i] <= r<T>(exp(g)) || ++tries >= MOST_TRIES) return z;
    }
  }
}

template <typename T>
RN_DEVICE rn_of<T> root(rn_of<T> low) {
  return r<T>(sqrt(r<T>(r<T>(low * low) + 4)));
}

template <typename T>
RN_DEVICE rn_of<T> from_tail(bounds<T> b, rn_philox* at) {
  typedef rn_of<T> V;
  V alpha = r<T>(r<T>(b.low + root<T>(b.low)) / 2);
  for (int tries = 0;;) {
    V x[4];
    int n = uniforms<T>(at, x);
    for (int i = 0; i < n; i += 2) {
      V z = r<T>(r<T>(-r<T>(log(x[i])) / alpha) + b.low);
      V d = r<T>(b.low < alpha ? alpha - z : b.low - alpha);
      V g = r<T>(exp(r<T>(r<T>(-d * d) / 2)));
      if ((x[i + 1] <= g && z < b.high) || ++tries >= MOST_TRIES) return z;
    }
  }
}

template <typename T>
RN_DEVICE rn_of<T> draw(bounds<T> b, rn_philox* at) {
  typedef rn_of<T> V;
  V rooted = root<T>(b.low), wide = r<T>(V(WIDE));
  V share = r<T>(r<T>(b.low * r<T>(b.low - rooted)) / 4);
  V cutoff = r<T>(r<T>(2 * r<T>(exp(r<T>(V(0.5) + share)))) / r<T>(b.low + rooted));
  if ((b.low < -wide && b.high >= 0) || (b.high > wide && b.low <= 0)) return from_normal<T>(b, at);
  return r<T>(b.high - b.low) < cutoff ? from_even<T>(b, at) : from_tail<T>(b, at);
}

// Parameters that make no sense give NaN.
template <typename T>
RN_DEVICE rn_of<T> number(const rn_bounded_args& args, i64 set, rn_philox* at) {
  typedef rn_of<T> V;
  V p[4];
  for (int k = 0; k < 4; ++k) p[k] = V(((const T*)args.parameters[k])[args.is_scalar[k] ? 0 : set]);
  V mean = p[0], deviation = p[1], low = p[2], high = p[3];
  if (!(deviation > 0 && low < high && (isfinite(low) || isfinite(high)))) return rn_nan<V>();
  if ((isinf(low) && low < 0) || high < mean) {
    low = p[3];
    high = p[2];
    deviation = -deviation;
  }
  bounds<T> b = {r<T>(r<T>(low - mean) / deviation), r<T>(r<T>(high - mean) / deviation)};
  return r<T>(r<T>(draw<T>(b, at) * deviation) + mean);
}

template <typename T>
RN_DEVICE void numbers(const rn_bounded_args& args) {
  const rn_philox start = rn_random_begin(args.at);
  RN_EACH(i, args.count) {
    rn_philox at = start;
    rn_philox_skip(&at, (u64)i * (2 * MOST_TRIES));
    ((T*)args.out)[i] = T(number<T>(args, i / args.batch, &at));
  }
  rn_random_end(args.at);
}

#define BOUNDED(type, T) \
  RN_KERNEL(bounded_##type, rn_bounded_args) { numbers<T>(args); }
BOUNDED(f32, float)
BOUNDED(f64, double)
BOUNDED(f16, rn_half)

// Cumsum, Cumprod and CumulativeLogsumexp. 16-bit floats are summed as float.
//
// scan_lines has one thread per line, scan_rows, for lines of neighbouring elements, one block per
// line or tile of it. Both add in an order that depends on sizes alone.
#include "kernels/cuda/math/scan_args.h"

template <typename T_>
struct plain {
  typedef T_ T;
  typedef typename rn_sum_of<T>::type sum;
  static RN_DEVICE sum start(const rn_scan_args& args) { return sum(args.is_product ? 1 : 0); }
  static RN_DEVICE sum join(const rn_scan_args& args, sum a, sum b) {
    return args.is_product ? sum(a * b) : sum(a + b);
  }
};

// log(exp(a) + exp(b)) without overflow.
template <typename T_>
struct log_sum_exp {
  typedef T_ T;
  typedef double sum;
  static RN_DEVICE double start(const rn_scan_args&) {
    return (double)rn_float_from_bits(0xff800000u);
  }
  static RN_DEVICE double join(const rn_scan_args& args, double a, double b) {
    double high = a > b ? a : b, low = a > b ? b : a;
    if (a != a || b != b) return a + b;
    if (high == start(args) || high == -start(args)) return high;
    return high + log1p(exp(low - high));
  }
};

template <typename T, typename S>
RN_DEVICE T stored(S value) {
  return T(value);
}
template <>
RN_DEVICE rn_half stored(double value) {
  return rn_half((float)value);
}
template <>
RN_DEVICE rn_bfloat16 stored(double value) {
  return rn_bfloat16((float)value);
}

template <typename P>
RN_DEVICE void lines(const rn_scan_args& args) {
  typedef typename P::T T;
  typedef typename P::sum S;
  RN_EACH(line, args.outer * args.inner) {
    i64 outer = line / args.inner;
    i64 at = outer * args.size * args.inner + (line - outer * args.inner), step = args.inner;
    if (args.reverse) at += (args.size - 1) * step, step = -step;
    S sum = P::start(args);
    for (i64 i = 0; i < args.size; ++i, at += step) {
      S next = P::join(args, sum, S(static_cast<const T*>(args.in)[at]));
      static_cast<T*>(args.out)[at] = stored<T>(args.exclusive ? sum : next);
      sum = next;
    }
  }
}

// What the threads before this one have, and in |*total| what all have.
template <typename P>
RN_DEVICE typename P::sum before(const rn_scan_args& args, typename P::sum own,
                                 typename P::sum (*shared)[RN_SCAN_BLOCK],
                                 typename P::sum* total) {
  const int t = threadIdx.x;
  int from = 0;
  shared[0][t] = own;
  __syncthreads();
  for (int distance = 1; distance < RN_SCAN_BLOCK; distance *= 2, from ^= 1) {
    typename P::sum sum = shared[from][t];
    if (t >= distance) sum = P::join(args, shared[from][t - distance], sum);
    shared[from ^ 1][t] = sum;
    __syncthreads();
  }
  typename P::sum result = t ? shared[from][t - 1] : P::start(args);
  *total = shared[from][RN_SCAN_BLOCK - 1];
  __syncthreads();
  return result;
}

#define ITEMS 4  // elements per thread and turn

template <typename P>
RN_DEVICE void rows(const rn_scan_args& args) {
  typedef typename P::T T;
  typedef typename P::sum S;
  __shared__ __align__(16) unsigned char bytes[2 * RN_SCAN_BLOCK * sizeof(S)];
  S(*shared)[RN_SCAN_BLOCK] = reinterpret_cast<S(*)[RN_SCAN_BLOCK]>(bytes);
  for (i64 block = blockIdx.x; block < args.outer * args.tiles; block += gridDim.x) {
    const i64 row = block / args.tiles, begin = (block - row * args.tiles) * args.tile;
    const i64 end = begin + args.tile < args.size ? begin + args.tile : args.size;
    const T* in = static_cast<const T*>(args.in) + row * args.size;
    T* out = static_cast<T*>(args.out) + row * args.size;
    S* carries = static_cast<S*>(args.carries);
    S carry = carries && !args.only_sums ? carries[block] : P::start(args);
    for (i64 base = begin; base < end; base += RN_SCAN_BLOCK * ITEMS) {
      const i64 first = base + threadIdx.x * ITEMS;
      S own = P::start(args), kept[ITEMS], total;
      for (int k = 0; k < ITEMS; ++k) {
        const i64 i = first + k;
        if (i < end) kept[k] = S(in[args.reverse ? args.size - 1 - i : i]);
        if (i < end) own = P::join(args, own, kept[k]);
      }
      S sum = P::join(args, carry, before<P>(args, own, shared, &total));
      for (int k = 0; k < ITEMS && first + k < end && !args.only_sums; ++k) {
        const i64 i = first + k;
        S next = P::join(args, sum, kept[k]);
        out[args.reverse ? args.size - 1 - i : i] = stored<T>(args.exclusive ? sum : next);
        sum = next;
      }
      carry = P::join(args, carry, total);
    }
    if (args.only_sums && threadIdx.x == 0) carries[block] = carry;
  }
}

#define KERNELS(policy, prefix, name)                                              \
  RN_KERNEL(prefix##_lines_##name, rn_scan_args) { lines<policy>(args); } \
  RN_KERNEL(prefix##_rows_##name, rn_scan_args) { rows<policy>(args); }
KERNELS(plain<float>, scan, f32)
KERNELS(plain<double>, scan, f64)
KERNELS(plain<rn_half>, scan, f16)
KERNELS(plain<rn_bfloat16>, scan, bf16)
KERNELS(plain<rn_complex64>, scan, c64)
KERNELS(plain<rn_complex128>, scan, c128)
KERNELS(plain<u8>, scan, u8)
KERNELS(plain<u16>, scan, u16)
KERNELS(plain<u32>, scan, u32)
KERNELS(plain<u64>, scan, u64)
KERNELS(log_sum_exp<float>, log_scan, f32)
KERNELS(log_sum_exp<double>, log_scan, f64)
KERNELS(log_sum_exp<rn_half>, log_scan, f16)
KERNELS(log_sum_exp<rn_bfloat16>, log_scan, bf16)

// QuantizeAndDequantize: rounds floats to the levels of an integer of given bits, and back.
#include "kernels/cuda/quant/quantize_args.h"

// Rounded before anything is added to it.
RN_DEVICE float product(float a, float b) { return __fmul_rn(a, b); }
RN_DEVICE double product(double a, double b) { return __dmul_rn(a, b); }
RN_DEVICE float largest(float) { return 3.402823466e38f; }
RN_DEVICE double largest(double) { return 1.7976931348623157e308; }
RN_DEVICE float nearest(float x) { return rintf(x); }
RN_DEVICE double nearest(double x) { return rint(x); }
RN_DEVICE float below(float x) { return floorf(x); }
RN_DEVICE double below(double x) { return floor(x); }

// Comparisons as on the CPU: a slice that begins with NaN has no range, other NaN do not count.
template <typename T>
RN_DEVICE void widen(T* range, T low, T high) {
  range[0] = low < range[0] ? low : range[0];
  range[1] = high > range[1] ? high : range[1];
}

// Block (slice, part) finds the range of its part of a slice.
template <typename T>
RN_DEVICE void find_range(const rn_cuda_quantize_args& args) {
  __shared__ T ranges[RN_QUANTIZE_THREADS][2];
  const T* x = static_cast<const T*>(args.x);
  const i64 slice = blockIdx.x, part = blockIdx.y, size = args.count / args.slices;
  T* own = ranges[threadIdx.x];
  own[0] = own[1] = x[slice * args.inner];
  for (i64 k = part * blockDim.x + threadIdx.x; k < size; k += args.parts * blockDim.x) {
    T value = x[(k / args.inner * args.slices + slice) * args.inner + k % args.inner];
    widen(own, value, value);
  }
  __syncthreads();
  for (unsigned half = RN_QUANTIZE_THREADS / 2; half > 0; half /= 2) {
    if (threadIdx.x < half)
      widen(own, ranges[threadIdx.x + half][0], ranges[threadIdx.x + half][1]);
    __syncthreads();
  }
  T* to = static_cast<T*>(args.partial) + 2 * (slice * args.parts + part);
  if (threadIdx.x < 2) to[threadIdx.x] = ranges[0][threadIdx.x];
}

template <typename T>
RN_DEVICE void join_ranges(const rn_cuda_quantize_args& args) {
  RN_EACH(slice, args.slices) {
    const T* partial = static_cast<const T*>(args.partial) + 2 * slice * args.parts;
    T range[2] = {partial[0], partial[1]};
    for (i64 part = 1; part < args.parts; ++part)
      widen(range, partial[2 * part], partial[2 * part + 1]);
    static_cast<T*>(args.limits)[2 * slice] = range[0];
    static_cast<T*>(args.limits)[2 * slice + 1] = range[1];
  }
}

// Widens the range so that 0 is a level, without moving the side that determines the scale.
template <typename T>
RN_DEVICE void quantize(const rn_cuda_quantize_args& args) {
  RN_EACH(i, args.count) {
    const T* limits =
        static_cast<const T*>(args.limits) + i / args.inner % args.slices * args.limit_step;
    T min = limits[0], max = limits[1], scale, inverse;
    const T least = (T)args.least, most = (T)args.most;
    T from_min = least * min > 0 ? least / min : largest(min);
    T from_max = most * max > 0 ? most / max : largest(max);
    if (from_min < from_max) {
      scale = from_min, inverse = min / least, max = most * inverse;
    } else {
      scale = from_max, inverse = max / most, min = least * inverse;
    }
    T x = static_cast<const T*>(args.x)[i];
    if (args.has_range && x > max) x = max;
    if (args.has_range && x < min) x = min;  // wins: a range below 0 has no levels
    x = product(x, scale);
    static_cast<T*>(args.out)[i] = (args.rounds_up ? below(x + (T)0.5) : nearest(x)) * inverse;
  }
}

template <typename T>
RN_DEVICE void pass(const rn_cuda_quantize_args& args) {
  RN_EACH(i, args.count) {
    const T* limits =
        static_cast<const T*>(args.limits) + i / args.inner % args.slices * args.limit_step;
    T x = static_cast<const T*>(args.x)[i], dy = static_cast<const T*>(args.dy)[i];
    static_cast<T*>(args.out)[i] = dy * (x >= limits[0] && x <= limits[1] ? 1 : 0);
  }
}

template <typename T>
RN_DEVICE void store(const rn_cuda_store_args& args) {
  RN_EACH(i, args.count) static_cast<T*>(args.to)[i] = (T)args.numbers[i];
}

#define QUANTIZE(T, name)                                                        \
  RN_KERNEL(find_range_##name, rn_cuda_quantize_args) { find_range<T>(args); }   \
  RN_KERNEL(join_ranges_##name, rn_cuda_quantize_args) { join_ranges<T>(args); } \
  RN_KERNEL(quantize_##name, rn_cuda_quantize_args) { quantize<T>(args); }       \
  RN_KERNEL(pass_##name, rn_cuda_quantize_args) { pass<T>(args); }               \
  RN_KERNEL(store_##name, rn_cuda_store_args) { store<T>(args); }
QUANTIZE(float, f32)
QUANTIZE(double, f64)

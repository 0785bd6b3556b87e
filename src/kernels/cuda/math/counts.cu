// Bucketize, HistogramFixedWidth, the counts of Bincount, and Cross. Counts are integers, so the
// order of atomic additions does not matter.
#include "kernels/cuda/math/counts_args.h"

template <typename T>
RN_DEVICE void bucketize(const rn_bucketize_args& args) {
  RN_EACH(i, args.count) {
    double value = (double)static_cast<const T*>(args.in)[i];
    int low = 0, high = args.limit_count;
    while (low < high) {
      int middle = low + (high - low) / 2;
      if (value < (double)args.limits[middle])
        high = middle;
      else
        low = middle + 1;
    }
    args.out[i] = args.is_first ? low : args.out[i] + low;
  }
}

template <typename T>
RN_DEVICE void histogram(const rn_histogram_args& args) {
  RN_EACH(i, args.count) {
    double place = ((double)static_cast<const T*>(args.in)[i] - args.low) / args.step;
    if (place != place) continue;
    i64 bin = place < 0 ? 0 : place >= (double)args.bins ? args.bins - 1 : (i64)place;
    if (args.is_wide)
      atomicAdd(static_cast<u64*>(args.out) + bin, 1ull);
    else
      atomicAdd(static_cast<i32*>(args.out) + bin, 1);
  }
}

#define COUNTS(T, name)                                                      \
  RN_KERNEL(bucketize_##name, rn_bucketize_args) { bucketize<T>(args); } \
  RN_KERNEL(histogram_##name, rn_histogram_args) { histogram<T>(args); }
COUNTS(i32, i32)
COUNTS(i64, i64)
COUNTS(float, f32)
COUNTS(double, f64)

// Signed integers wrap around, as unsigned ones do.
template <typename T, typename W>
RN_DEVICE void cross(const rn_cross_args& args) {
  RN_EACH(i, args.count) {
    const T *a = static_cast<const T*>(args.a) + 3 * i, *b = static_cast<const T*>(args.b) + 3 * i;
    T* out = static_cast<T*>(args.out) + 3 * i;
    const W a0 = W(a[0]), a1 = W(a[1]), a2 = W(a[2]), b0 = W(b[0]), b1 = W(b[1]), b2 = W(b[2]);
    out[0] = T(a1 * b2 - a2 * b1);
    out[1] = T(a2 * b0 - a0 * b2);
    out[2] = T(a0 * b1 - a1 * b0);
  }
}
#define CROSS(T, W, name) \
  RN_KERNEL(cross_##name, rn_cross_args) { cross<T, W>(args); }
CROSS(float, float, f32)
CROSS(double, double, f64)
CROSS(rn_half, float, f16)
CROSS(rn_bfloat16, float, bf16)
CROSS(u8, u32, u8)
CROSS(u16, u32, u16)
CROSS(u32, u32, u32)
CROSS(u64, u64, u64)

// The bin of value |i|, or -1.
RN_DEVICE i64 bin_of(const rn_bincount_args& args, i64 i) {
  i64 value = args.is_wide ? static_cast<const i64*>(args.in)[i] : static_cast<const i32*>(args.in)[i];
  return value >= 0 && value < args.size ? i / args.columns * args.size + value : -1;
}
RN_KERNEL(bincount, rn_bincount_args) {
  RN_EACH(i, args.count) {
    i64 bin = bin_of(args, i);
    if (bin >= 0) atomicAdd(static_cast<u64*>(args.bins) + bin, 1ull);
  }
}
// The number of the bin of each value, for weights that are summed by it.
RN_KERNEL(bins, rn_bincount_args) {
  RN_EACH(i, args.count) static_cast<i64*>(args.bins)[i] = bin_of(args, i);
}

// Places of values in sorted rows.
#include "kernels/cuda/array/search_args.h"

template <typename T>
struct compared {
  typedef T type;
};
template <>
struct compared<rn_half> {
  typedef float type;
};
template <>
struct compared<rn_bfloat16> {
  typedef float type;
};

template <typename T>
RN_DEVICE void search(const rn_cuda_search_args& args) {
  typedef typename compared<T>::type C;
  RN_EACH(i, args.count) {
    const T* row = static_cast<const T*>(args.sorted) + i / args.width * args.length;
    const C value = (C) static_cast<const T*>(args.values)[i];
    i64 low = 0, high = args.length;
    while (low < high) {
      i64 middle = low + (high - low) / 2;
      C found = (C)row[middle];
      if (args.is_upper ? !(value < found) : found < value)
        low = middle + 1;
      else
        high = middle;
    }
    if (args.out_size == 4)
      static_cast<i32*>(args.out)[i] = (i32)low;
    else
      static_cast<i64*>(args.out)[i] = low;
  }
}
#define SEARCH(T, name) \
  RN_KERNEL(search_##name, rn_cuda_search_args) { search<T>(args); }
SEARCH(rn_half, f16)
SEARCH(rn_bfloat16, bf16)
SEARCH(float, f32)
SEARCH(double, f64)
SEARCH(i8, i8)
SEARCH(i16, i16)
SEARCH(i32, i32)
SEARCH(i64, i64)
SEARCH(u8, u8)
SEARCH(u16, u16)
SEARCH(u32, u32)
SEARCH(u64, u64)

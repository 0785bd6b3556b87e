// Copies between orders of axes, for Einsum.
#include "prelude.cuh"

#include "linalg/einsum_args.h"

struct __align__(16) rn_16_bytes {
  u64 words[2];
};

template <typename T>
RN_DEVICE void copy(const einsum_copy_args& args) {
  RN_EACH(i, args.count) {
    i64 from = 0, to = 0, wide = i;
    u32 rest = (u32)i;
    for (int d = args.rank - 1; d >= 0; --d) {
      i64 at;
      if (args.is_wide) {
        i64 next = wide / args.sizes[d];
        at = wide - next * args.sizes[d];
        wide = next;
      } else {
        u32 next = rn_div(rest, args.by[d]);
        at = rest - next * args.by[d].divisor;
        rest = next;
      }
      from += at * args.from_strides[d];
      to += at * args.to_strides[d];
    }
    ((T*)args.to)[to] = ((const T*)args.from)[from];
  }
}

RN_KERNEL(copy_2, einsum_copy_args) { copy<u16>(args); }
RN_KERNEL(copy_4, einsum_copy_args) { copy<u32>(args); }
RN_KERNEL(copy_8, einsum_copy_args) { copy<u64>(args); }
RN_KERNEL(copy_16, einsum_copy_args) { copy<rn_16_bytes>(args); }

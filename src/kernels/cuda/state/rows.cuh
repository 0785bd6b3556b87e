// Walking along sorted places: see rows_args.h.
#ifndef RUNNEL_KERNELS_CUDA_STATE_ROWS_CUH_
#define RUNNEL_KERNELS_CUDA_STATE_ROWS_CUH_

#include "kernels/cuda/state/rows_args.h"

// Work item |t| of count * width as a sorted place and a column.
RN_DEVICE void rn_rows_split(const rn_rows_args& rows, i64 t, i64* place, i64* column) {
  *place = rows.is_wide ? t / rows.width : (i64)rn_div((u32)t, rows.divisor);
  *column = t - *place * rows.width;
}

// The row at sorted place |s| if it is the row's first, else -1.
RN_DEVICE i64 rn_rows_first(const rn_rows_args& rows, i64 s) {
  u64 key = rows.keys[s];
  if (key == RN_ROWS_BAD) return -1;
  u64 row = key >> rows.bits;
  return s > 0 && rows.keys[s - 1] >> rows.bits == row ? -1 : (i64)row;
}

#define RN_ROWS_AHEAD 4  // updates that are loaded before the first of them is applied

// Calls apply(update) with the elements of |updates| in |column| at the places of |row|, which
// begin at sorted place |s|, in order.
template <typename T, typename F>
RN_DEVICE void rn_rows_walk(const rn_rows_args& rows, i64 row, i64 s, i64 column, const T* updates,
                            F apply) {
  u64 mask = (1ull << rows.bits) - 1;
  for (;;) {
    T loaded[RN_ROWS_AHEAD];
    int n = 0;
    for (; n < RN_ROWS_AHEAD && s < rows.count; ++n, ++s) {
      u64 key = rows.keys[s];
      if ((i64)(key >> rows.bits) != row) break;
      loaded[n] = updates[(i64)(key & mask) * rows.width + column];
    }
    for (int i = 0; i < RN_ROWS_AHEAD; ++i)
      if (i < n) apply(loaded[i]);
    if (n < RN_ROWS_AHEAD) return;
  }
}

#endif  // RUNNEL_KERNELS_CUDA_STATE_ROWS_CUH_

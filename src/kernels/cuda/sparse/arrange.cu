// Sparse tensors rearranged: sorted, reshaped, cut, joined, empty rows filled.
#include "kernels/cuda/array/scan.cuh"

#include "kernels/cuda/sparse/arrange_args.h"

// to[j] = from[i], elements of |size| bytes; zero if |from| is NULL. The values are a small part of
// what these kernels move, so one kernel for all sizes will do.
template <typename Unit>
RN_DEVICE void move_unit(void* to, i64 j, const void* from, i64 i) {
  static_cast<Unit*>(to)[j] = from ? static_cast<const Unit*>(from)[i] : Unit();
}
RN_DEVICE void move_value(int size, void* to, i64 j, const void* from, i64 i) {
  switch (size) {
    case 1:
      return move_unit<u8>(to, j, from, i);
    case 2:
      return move_unit<u16>(to, j, from, i);
    case 4:
      return move_unit<u32>(to, j, from, i);
    case 8:
      return move_unit<u64>(to, j, from, i);
    default:
      return move_unit<uint4>(to, j, from, i);
  }
}

// Indices are not checked: the position that they give wraps around.
RN_KERNEL(reshape, rn_cuda_sparse_reshape_args) {
  RN_EACH(i, args.count) {
    u64 sum = 0;
    for (int d = 0; d < args.rank; ++d)
      sum = sum * (u64)args.sizes[d] + (u64)args.from[i * args.rank + d];
    i64 place = (i64)sum;
    for (int d = 0; d < args.new_rank; ++d) {
      args.to[i * args.new_rank + d] = place / args.steps[d];
      place %= args.steps[d];
    }
  }
}

RN_KERNEL(shift, rn_cuda_sparse_shift_args) {
  RN_EACH(n, args.count)
  args.to[n] = args.from[n] + (n % args.rank == args.axis ? args.offset : 0);
}

RN_KERNEL(box_flags, rn_cuda_sparse_box_args) {
  RN_EACH(i, args.count) {
    bool is_within = true;
    for (int d = 0; d < args.rank; ++d) {
      i64 at = args.indices[i * args.rank + d];
      is_within =
          is_within && at >= args.start[d] && (u64)at - (u64)args.start[d] < (u64)args.size[d];
    }
    args.flags[i] = is_within;
  }
}

RN_KERNEL(box, rn_cuda_sparse_box_args) {
  rn_each_flag(args.scan, [&](i64 i, i64 number) {
    for (int d = 0; d < args.rank; ++d)
      args.out_indices[number * args.rank + d] = args.indices[i * args.rank + d] - args.start[d];
    move_value(args.value_size, args.out_values, number, args.values, i);
  });
}

// A value whose index is out of bounds becomes a zero at the origin.
RN_KERNEL(sorted, rn_cuda_sparse_sort_args) {
  const u64 mask = ((u64)1 << args.rows.bits) - 1;
  RN_EACH(k, args.rows.count) {
    const u64 key = args.rows.keys[k];
    const bool is_bad = key == RN_ROWS_BAD;
    const i64 place = (i64)(key & mask);
    for (int d = 0; d < args.rank; ++d)
      args.out_indices[k * args.rank + d] = is_bad ? 0 : args.indices[place * args.rank + d];
    move_value(args.value_size, args.out_values, k, is_bad ? nullptr : args.values, place);
  }
}

// The first of |count| sorted numbers that is not less than |value|.
template <typename T>
RN_DEVICE i64 lower_bound(const T* numbers, i64 count, T value) {
  i64 low = 0, high = count;
  while (low < high) {
    i64 middle = low + (high - low) / 2;
    if (numbers[middle] < value)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

RN_KERNEL(fill_flags, rn_cuda_sparse_fill_args) {
  RN_EACH(i, args.count) {
    i64 row = args.indices[i * args.rank];
    if (row >= 0 && row < args.row_count)
      args.flags[row] = 0;
    else
      atomicMin(args.bad, (u64)i);
  }
}
RN_KERNEL(fill_empty, rn_cuda_sparse_fill_args) {
  rn_each_flag(args.scan, [&](i64 row, i64 number) { args.empty[number] = row; });
}
// Value number k in the order of rows comes after as many defaults as there are empty rows before.
RN_KERNEL(fill_values, rn_cuda_sparse_fill_args) {
  const u64 mask = ((u64)1 << args.rows.bits) - 1;
  RN_EACH(k, args.count) {
    const u64 key = args.rows.keys[k];
    if (key == RN_ROWS_BAD) continue;
    const i64 i = (i64)(key & mask), row = (i64)(key >> args.rows.bits);
    const i64 at = k + lower_bound(args.empty, args.empty_count, row);
    for (int d = 0; d < args.rank; ++d)
      args.out_indices[at * args.rank + d] = args.indices[i * args.rank + d];
    move_value(args.value_size, args.out_values, at, args.values, i);
    args.map[i] = at;
  }
}
RN_KERNEL(fill_defaults, rn_cuda_sparse_fill_args) {
  RN_EACH(e, args.empty_count) {
    const i64 row = args.empty[e];
    const i64 at = e + lower_bound(args.rows.keys, args.count, (u64)row << args.rows.bits);
    for (int d = 0; d < args.rank; ++d) args.out_indices[at * args.rank + d] = d == 0 ? row : 0;
    move_value(args.value_size, args.out_values, at, args.fallback, 0);
  }
}

// Places out of bounds give zeros.
RN_KERNEL(fill_grad, rn_cuda_sparse_fill_grad_args) {
  RN_EACH(i, args.count) {
    const i64 from = args.map[i];
    const bool is_there = from >= 0 && from < args.dy_count;
    if (is_there) args.seen[from] = 1;
    move_value(args.value_size, args.values, i, is_there ? args.dy : nullptr, from);
  }
}

#define SUM_THREADS 256
// The sum of what no place names, in one order: one block.
template <typename T, typename Sum>
RN_DEVICE void fill_rest(const rn_cuda_sparse_fill_grad_args& args) {
  __shared__ Sum sums[SUM_THREADS];
  Sum sum = Sum();
  for (i64 i = threadIdx.x; i < args.dy_count; i += SUM_THREADS)
    if (!args.seen[i]) sum = sum + (Sum) static_cast<const T*>(args.dy)[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (u32 step = SUM_THREADS / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) sums[threadIdx.x] = sums[threadIdx.x] + sums[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) *static_cast<T*>(args.fallback) = (T)sums[0];
}

// Less, equal or greater: |index| less |start|, and a taken index.
RN_DEVICE int compare(const rn_cuda_sparse_slice_grad_args& args, i64 i, i64 t) {
  for (int d = 0; d < args.rank; ++d) {
    i64 at = args.indices[i * args.rank + d] - args.start[d];
    i64 other = args.taken[t * args.rank + d];
    if (at != other) return at < other ? -1 : 1;
  }
  return 0;
}
// Taken indices are sorted, as those of the slice were.
RN_KERNEL(slice_grad, rn_cuda_sparse_slice_grad_args) {
  RN_EACH(i, args.count) {
    i64 low = 0, high = args.taken_count;
    while (low < high) {
      i64 middle = low + (high - low) / 2;
      if (compare(args, i, middle) > 0)
        low = middle + 1;
      else
        high = middle;
    }
    const bool is_taken = low < args.taken_count && compare(args, i, low) == 0;
    move_value(args.value_size, args.out, i, is_taken ? args.dy : nullptr, low);
  }
}

#define REST(name, T, Sum) \
  RN_KERNEL(fill_rest_##name, rn_cuda_sparse_fill_grad_args) { fill_rest<T, Sum>(args); }
REST(f16, rn_half, float)
REST(bf16, rn_bfloat16, float)
REST(f32, float, float)
REST(f64, double, double)
REST(c64, rn_complex64, rn_complex64)
REST(c128, rn_complex128, rn_complex128)
REST(1, u8, u32)  // integers wrap around
REST(2, u16, u32)
REST(4, u32, u32)
REST(8, u64, u64)

// Updates of rows by index: combine_<type>, and assign_<size> for what only moves elements.
#include "kernels/cuda/prelude.cuh"
//
#include "kernels/cuda/jit/scalar_ops.cuh"
#include "kernels/cuda/state/rows.cuh"
#include "kernels/cuda/state/scatter_args.h"

template <typename T>
RN_DEVICE rn_of<T> extreme(i32 op, rn_of<T> x, rn_of<T> y) {
  if (op == RN_SCATTER_MIN) return y < x ? y : x;
  return x < y ? y : x;
}
template <>
RN_DEVICE rn_complex64 extreme<rn_complex64>(i32, rn_complex64 x, rn_complex64) {
  return x;
}
template <>
RN_DEVICE rn_complex128 extreme<rn_complex128>(i32, rn_complex128 x, rn_complex128) {
  return x;
}

template <typename T>
RN_DEVICE rn_of<T> combine(i32 op, rn_of<T> x, rn_of<T> y) {
  switch (op) {
    case RN_SCATTER_ADD:
      return rn_op_add<T>(x, y);
    case RN_SCATTER_SUB:
      return rn_op_sub<T>(x, y);
    case RN_SCATTER_MUL:
      return rn_op_mul<T>(x, y);
    case RN_SCATTER_DIV:
      return rn_op_div<T>(x, y);
    default:
      return extreme<T>(op, x, y);
  }
}
template <>
RN_DEVICE bool combine<bool>(i32 op, bool x, bool y) {
  if (op == RN_SCATTER_ADD || op == RN_SCATTER_MAX) return x || y;
  return op == RN_SCATTER_SUB ? x != y : x && y;
}

template <typename T>
RN_DEVICE void combine_rows(const rn_scatter_args& args) {
  typedef rn_of<T> V;
  const rn_rows_args& rows = args.rows;
  RN_EACH(t, rows.count * rows.width) {
    i64 place, column;
    rn_rows_split(rows, t, &place, &column);
    i64 row = rn_rows_first(rows, place);
    if (row < 0) continue;
    T* into = (T*)args.into + row * rows.width + column;
    V value = V(*into);
    if (args.is_scalar) {
      V update = V(*(const T*)args.updates);
      for (; place < rows.count && (i64)(rows.keys[place] >> rows.bits) == row; ++place)
        value = rn_round_to<T>(combine<T>(args.op, value, update));
    } else {
      rn_rows_walk(rows, row, place, column, (const T*)args.updates, [&](T update) {
        value = rn_round_to<T>(combine<T>(args.op, value, V(update)));
      });
    }
    *into = T(value);
  }
}

#define COMBINE(type, T) \
  RN_KERNEL(combine_##type, rn_scatter_args) { combine_rows<T>(args); }
COMBINE(f32, float)
COMBINE(f64, double)
COMBINE(f16, rn_half)
COMBINE(bf16, rn_bfloat16)
COMBINE(i8, i8)
COMBINE(i16, i16)
COMBINE(i32, i32)
COMBINE(i64, i64)
COMBINE(u8, u8)
COMBINE(u16, u16)
COMBINE(u32, u32)
COMBINE(u64, u64)
COMBINE(c64, rn_complex64)
COMBINE(c128, rn_complex128)
COMBINE(b8, bool)

// The last of a row's updates wins.
template <typename T>
RN_DEVICE void assign_rows(const rn_scatter_args& args) {
  const rn_rows_args& rows = args.rows;
  const u64 mask = (1ull << rows.bits) - 1;
  RN_EACH(t, rows.count * rows.width) {
    i64 place, column;
    rn_rows_split(rows, t, &place, &column);
    u64 key = rows.keys[place];
    if (key == RN_ROWS_BAD) continue;
    u64 row = key >> rows.bits;
    if (place + 1 < rows.count && rows.keys[place + 1] >> rows.bits == row) continue;
    i64 from = args.is_scalar ? 0 : (i64)(key & mask) * rows.width + column;
    ((T*)args.into)[(i64)row * rows.width + column] = ((const T*)args.updates)[from];
  }
}

#define ASSIGN(size, T) \
  RN_KERNEL(assign_##size, rn_scatter_args) { assign_rows<T>(args); }
ASSIGN(1, u8)
ASSIGN(2, u16)
ASSIGN(4, u32)
ASSIGN(8, u64)
ASSIGN(16, uint4)

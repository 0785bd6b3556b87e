// Dilation2D, the maximum over a window of image plus filter, and its gradients, which go to the
// first maximum. One thread per element of the result; gradients gather by the stored places of the
// maxima.
#include "prelude.cuh"

#include "nn/dilation_args.h"

RN_DEVICE bool dilation_in(const dilation_axis_args& axis, i64 out, i64 f, i64* in) {
  *in = out * axis.stride - axis.before + f * axis.dilation;
  return *in >= 0 && *in < axis.in;
}

template <typename T>
RN_DEVICE void dilation_forward(const dilation_args& args) {
  typedef typename rn_sum_of<T>::type S;
  const dilation_axis_args &rows = args.rows, &columns = args.columns;
  RN_EACH(i, args.count) {
    i64 channel = i % args.depth, c = i / args.depth % columns.out;
    i64 r = i / args.depth / columns.out % rows.out, n = i / args.depth / columns.out / rows.out;
    S best = (S)(sizeof(S) == 8 ? -1.7976931348623157e+308 : -3.40282346638528860e+38);
    i32 place = -1;
    for (i64 a = 0; a < rows.filter; ++a) {
      i64 row, column;
      if (!dilation_in(rows, r, a, &row)) continue;
      for (i64 b = 0; b < columns.filter; ++b) {
        if (!dilation_in(columns, c, b, &column)) continue;
        i64 x = ((n * rows.in + row) * columns.in + column) * args.depth + channel;
        i64 at = a * columns.filter + b;
        S sum = (S)((const T*)args.x)[x] + (S)((const T*)args.w)[at * args.depth + channel];
        if (sum > best || place < 0) best = sum, place = (i32)at;
      }
    }
    if (args.places)
      args.places[i] = place;
    else
      ((T*)args.to)[i] = (T)best;
  }
}

template <typename T>
RN_DEVICE void dilation_input(const dilation_args& args) {
  typedef typename rn_sum_of<T>::type S;
  const dilation_axis_args &rows = args.rows, &columns = args.columns;
  RN_EACH(i, args.count) {
    i64 channel = i % args.depth, c = i / args.depth % columns.in;
    i64 r = i / args.depth / columns.in % rows.in, n = i / args.depth / columns.in / rows.in;
    S sum = 0;
    for (i64 a = 0; a < rows.filter; ++a) {
      i64 row = r + rows.before - a * rows.dilation;
      if (row < 0 || row % rows.stride || row / rows.stride >= rows.out) continue;
      for (i64 b = 0; b < columns.filter; ++b) {
        i64 column = c + columns.before - b * columns.dilation;
        if (column < 0 || column % columns.stride || column / columns.stride >= columns.out)
          continue;
        i64 y = (n * rows.out + row / rows.stride) * columns.out + column / columns.stride;
        y = y * args.depth + channel;
        if (args.places[y] == (i32)(a * columns.filter + b)) sum += (S)((const T*)args.dy)[y];
      }
    }
    ((T*)args.to)[i] = (T)sum;
  }
}

// Sums over a piece of the positions each; nn/conv/sum adds the parts.
template <typename T>
RN_DEVICE void dilation_filter(const dilation_args& args) {
  typedef typename rn_sum_of<T>::type S;
  RN_EACH(e, args.count * args.parts) {
    i64 i = e % args.count, begin = e / args.count * args.piece, end = begin + args.piece;
    i32 own = (i32)(i / args.depth);
    S sum = 0;
    for (i64 k = begin; k < end && k < args.positions; ++k) {
      i64 y = k * args.depth + i % args.depth;
      if (args.places[y] == own) sum += (S)((const T*)args.dy)[y];
    }
    ((S*)args.to)[e] = sum;
  }
}

#define DILATION(N, T)                                                  \
  RN_KERNEL(forward_##N, dilation_args) { dilation_forward<T>(args); }  \
  RN_KERNEL(input_##N, dilation_args) { dilation_input<T>(args); }      \
  RN_KERNEL(filter_##N, dilation_args) { dilation_filter<T>(args); }
DILATION(f16, rn_half)
DILATION(bf16, rn_bfloat16)
DILATION(f32, float)
DILATION(f64, double)

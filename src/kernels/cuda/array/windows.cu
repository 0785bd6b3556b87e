// Padding, and parts of matrices and images: bands of diagonals, and patches as vectors.
#include "kernels/cuda/array/produce.cuh"

#include "kernels/cuda/array/windows_args.h"

template <typename Unit, typename I>
RN_DEVICE void band_part(const rn_cuda_band_args& args) {
  const Unit* input = static_cast<const Unit*>(args.input);
  rn_produce(static_cast<Unit*>(args.out), (I)args.count, [&](I i) {
    I column, row;
    rn_split(rn_split(i, args.columns, &column), args.rows, &row);
    i64 diagonal = (i64)column - (i64)row;
    bool is_in =
        (args.below < 0 || -diagonal <= args.below) && (args.above < 0 || diagonal <= args.above);
    return is_in ? input[i] : rn_zero<Unit>();
  });
}
RN_PRODUCE(band_part, rn_cuda_band_args, band_part)

template <typename Unit, typename I>
RN_DEVICE void patches(const rn_cuda_patches_args& args) {
  const Unit* input = static_cast<const Unit*>(args.input);
  rn_produce(static_cast<Unit*>(args.out), (I)args.count, [&](I i) {
    I channel, at[3], window[3];
    I rest = rn_split(i, args.channels, &channel);
    for (int d = 2; d >= 0; --d) rest = rn_split(rest, args.sizes[d], &at[d]);
    for (int d = 2; d >= 0; --d) rest = rn_split(rest, args.windows[d], &window[d]);
    i64 place = rest;  // the entry of the batch
    bool is_in = true;
    for (int d = 0; d < 3; ++d) {
      i64 x = (i64)window[d] * args.strides[d] - args.before[d] + (i64)at[d] * args.rates[d];
      is_in = is_in && x >= 0 && x < args.in[d];
      place = place * args.in[d] + x;
    }
    return is_in ? input[place * args.channels.wide + channel] : rn_zero<Unit>();
  });
}
RN_PRODUCE(patches, rn_cuda_patches_args, patches)

template <typename Unit, typename I>
RN_DEVICE void pad(const rn_cuda_pad_args& args) {
  const Unit* input = static_cast<const Unit*>(args.input);
  const Unit value = *reinterpret_cast<const Unit*>(args.value);
  rn_produce(static_cast<Unit*>(args.out), (I)args.count, [&](I i) {
    i64 place = 0, step = 1;
    bool is_in = true;
    for (int d = args.rank - 1; d >= 0; --d) {
      I at;
      i = rn_split(i, args.sizes[d], &at);
      i64 x = (i64)at - args.before[d];
      is_in = is_in && x >= 0 && x < args.in[d];
      place += x * step;
      step *= args.in[d];
    }
    return is_in ? input[place] : value;
  });
}
RN_PRODUCE(pad, rn_cuda_pad_args, pad)

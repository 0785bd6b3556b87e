// Gathers, one-hot vectors and reversed sequences: elements chosen by indices in device memory.
// An index out of range reads nothing.
#include "kernels/cuda/array/produce.cuh"

#include "kernels/cuda/array/indexed_args.h"

template <typename Unit, typename I>
RN_DEVICE void gather(const rn_cuda_gather_args& args) {
  const Unit* params = static_cast<const Unit*>(args.params);
  rn_produce(static_cast<Unit*>(args.out), (I)args.count, [&](I i) {
    I column, k;
    I block = rn_split(rn_split(i, args.row, &column), args.indices_count, &k);
    i64 batch = rn_quotient(block, args.outer);
    i64 index = rn_index_at(args.indices, batch * args.indices_count.wide + k, args.index_size);
    bool is_in = index >= 0 && index < args.limit;
    return is_in ? params[((i64)block * args.limit + index) * args.row.wide + column]
                 : rn_zero<Unit>();
  });
}
RN_PRODUCE(gather, rn_cuda_gather_args, gather)

template <typename Unit, typename I>
RN_DEVICE void gather_nd(const rn_cuda_gather_nd_args& args) {
  const Unit* params = static_cast<const Unit*>(args.params);
  rn_produce(static_cast<Unit*>(args.out), (I)args.count, [&](I i) {
    I column;
    i64 place = rn_split(i, args.row, &column), row = 0;
    bool is_in = true;
    for (int d = 0; d < args.depth; ++d) {
      i64 index = rn_index_at(args.indices, place * args.depth + d, args.index_size);
      is_in = is_in && index >= 0 && index < args.limits[d];
      row += index * args.steps[d];
    }
    return is_in ? params[row * args.row.wide + column] : rn_zero<Unit>();
  });
}
RN_PRODUCE(gather_nd, rn_cuda_gather_nd_args, gather_nd)

template <typename Unit, typename I>
RN_DEVICE void one_hot(const rn_cuda_one_hot_args& args) {
  const Unit on = *static_cast<const Unit*>(args.on), off = *static_cast<const Unit*>(args.off);
  rn_produce(static_cast<Unit*>(args.out), (I)args.count, [&](I i) {
    I inner, at;
    i64 outer = rn_split(rn_split(i, args.inner, &inner), args.depth, &at);
    i64 index = rn_index_at(args.indices, outer * args.inner.wide + inner, args.index_size);
    if (args.is_unsigned) index &= 255;
    return index == (i64)at ? on : off;
  });
}
RN_PRODUCE(one_hot, rn_cuda_one_hot_args, one_hot)

template <typename Unit, typename I>
RN_DEVICE void reverse_sequence(const rn_cuda_reverse_args& args) {
  const Unit* input = static_cast<const Unit*>(args.input);
  rn_produce(static_cast<Unit*>(args.out), (I)args.count, [&](I i) {
    I at, batch;
    rn_split(rn_quotient(i, args.seq_step), args.seq, &at);
    rn_split(rn_quotient(i, args.batch_step), args.batches, &batch);
    i64 length = rn_index_at(args.lengths, batch, args.index_size);
    if (length > args.seq.wide) length = args.seq.wide;
    i64 from = (i64)at < length ? length - 1 - (i64)at : (i64)at;
    return input[(i64)i + (from - (i64)at) * args.seq_step.wide];
  });
}
RN_PRODUCE(reverse_sequence, rn_cuda_reverse_args, reverse_sequence)

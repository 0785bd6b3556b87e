// CSR matrices: pointers from indices, conversions, transposes and products with dense matrices.
#include "kernels/cuda/linalg/numbers.cuh"

#include "kernels/cuda/sparse/csr_args.h"

RN_KERNEL(count, rn_cuda_csr_count_args) {
  RN_EACH(i, args.entries) {
    const i64* at = args.indices + i * args.rank;
    const i64 b = args.rank == 3 ? at[0] : 0, row = at[args.rank - 2], column = at[args.rank - 1];
    if (b < 0 || b >= args.count || row < 0 || row >= args.height || column < 0 ||
        column >= args.width || column > 0x7fffffff || (args.rank == 3 && i > 0 && at[-3] > b)) {
      *args.is_bad = 1;
      continue;
    }
    atomicAdd(&args.rows[b * (args.height + 1) + row + 1], 1);
    args.columns[i] = (i32)column;
  }
}

// Each thread sums up its piece of the rows, then writes the sums up to each row of it.
RN_KERNEL(sum, rn_cuda_csr_sum_args) {
  __shared__ i32 sums[RN_CSR_THREADS];
  const i64 piece = (args.height + RN_CSR_THREADS - 1) / RN_CSR_THREADS;
  const i64 first = 1 + (i64)threadIdx.x * piece;
  const i64 last = first + piece < args.height + 1 ? first + piece : args.height + 1;
  for (i64 b = blockIdx.x; b < args.count; b += gridDim.x) {
    i32* rows = args.rows + b * (args.height + 1);
    i32 sum = 0;
    for (i64 r = first; r < last; ++r) sum += rows[r];
    __syncthreads();
    sums[threadIdx.x] = sum;
    __syncthreads();
    sum = 0;
    for (u32 t = 0; t < threadIdx.x; ++t) sum += sums[t];
    for (i64 r = first; r < last; ++r) rows[r] = sum += rows[r];
    if (args.totals && threadIdx.x == RN_CSR_THREADS - 1) args.totals[b] = sum;
  }
}

// Indices out of bounds are reported by |count|.
template <typename Unit>
RN_DEVICE void take(const rn_cuda_csr_take_args& args) {
  RN_EACH(i, args.entries) {
    const i64* at = args.indices + i * args.rank;
    i64 place = 0;
    bool is_there = true;
    for (int d = 0; d < args.rank; ++d) {
      is_there = is_there && at[d] >= 0 && at[d] < args.sizes[d];
      place = place * args.sizes[d] + at[d];
    }
    if (is_there) ((Unit*)args.values)[i] = ((const Unit*)args.dense)[place];
  }
}
RN_KERNEL(take_4, rn_cuda_csr_take_args) { take<u32>(args); }
RN_KERNEL(take_8, rn_cuda_csr_take_args) { take<u64>(args); }
RN_KERNEL(take_16, rn_cuda_csr_take_args) { take<uint4>(args); }

// Entries [*first, *last) are those of row |at| of the batch, which is row |*row| of matrix |*b|.
RN_DEVICE void entries_of(const rn_cuda_csr_matrices& in, i64 at, i64* b, i64* row, i64* first,
                          i64* last) {
  *b = at / in.height;
  *row = at - *b * in.height;
  const i32* rows = in.rows + *b * (in.height + 1) + *row;
  *first = (i64)in.starts[*b] + rows[0];
  *last = (i64)in.starts[*b] + rows[1];
}

template <typename Unit>
RN_DEVICE void to_dense(const rn_cuda_csr_dense_args& args) {
  RN_EACH(at, args.in.count * args.in.height) {
    i64 b, row, first, last;
    entries_of(args.in, at, &b, &row, &first, &last);
    Unit* out = (Unit*)args.out + at * args.in.width;
    for (i64 k = first; k < last; ++k) out[args.in.columns[k]] = ((const Unit*)args.in.values)[k];
  }
}
RN_KERNEL(to_dense_4, rn_cuda_csr_dense_args) { to_dense<u32>(args); }
RN_KERNEL(to_dense_8, rn_cuda_csr_dense_args) { to_dense<u64>(args); }
RN_KERNEL(to_dense_16, rn_cuda_csr_dense_args) { to_dense<uint4>(args); }

RN_KERNEL(to_indices, rn_cuda_csr_indices_args) {
  RN_EACH(at, args.in.count * args.in.height) {
    i64 b, row, first, last;
    entries_of(args.in, at, &b, &row, &first, &last);
    for (i64 k = first; k < last; ++k) {
      i64* out = args.out + k * args.rank;
      if (args.rank == 3) *out++ = b;
      out[0] = row;
      out[1] = args.in.columns[k];
    }
  }
}

template <typename T>
RN_DEVICE void matmul(const rn_cuda_csr_matmul_args& args) {
  RN_EACH(i, args.a.count * args.a.height * args.n) {
    const i64 at = i / args.n, j = i - at * args.n;
    i64 b, row, first, last;
    entries_of(args.a, at, &b, &row, &first, &last);
    const T *values = (const T*)args.a.values,
            *right = (const T*)args.b + b * args.b_steps[0] + j * args.b_steps[2];
    T sum = T(0);
    for (i64 k = first; k < last; ++k) {
      const T y = right[args.a.columns[k] * args.b_steps[1]];
      sum = sum + values[k] * (args.conjugates_b ? conj_of(y) : y);
    }
    ((T*)args.out)[b * args.out_steps[0] + row * args.out_steps[1] + j * args.out_steps[2]] =
        args.conjugates_out ? conj_of(sum) : sum;
  }
}

RN_KERNEL(turn, rn_cuda_csr_turn_args) {
  RN_EACH(at, args.in.count * args.in.height) {
    i64 b, row, first, last;
    entries_of(args.in, at, &b, &row, &first, &last);
    for (i64 k = first; k < last; ++k) {
      args.rows[k] = (i32)row;
      args.keys[k] = b * args.in.width + args.in.columns[k];
    }
  }
}

template <typename T>
RN_DEVICE void place(const rn_cuda_csr_place_args& args) {
  RN_EACH(i, args.sorted.count) {
    const u64 key = args.sorted.keys[i];
    const i64 from = (i64)(key & ((1ull << args.sorted.bits) - 1));
    const i64 at = (i64)(key >> args.sorted.bits), b = at / args.height;
    const T value = ((const T*)args.from_values)[from];
    args.columns[i] = args.from_rows[from];
    ((T*)args.values)[i] = args.conjugates ? conj_of(value) : value;
    atomicAdd(&args.rows[at + b + 1], 1);
  }
}

template <typename T>
RN_DEVICE void scale(const rn_cuda_csr_scale_args& args) {
  RN_EACH(at, args.in.count * args.in.height) {
    i64 b, row, first, last;
    entries_of(args.in, at, &b, &row, &first, &last);
    const T factor = ((const T*)args.factors)[b * args.step];
    for (i64 k = first; k < last; ++k)
      ((T*)args.values)[k] = ((const T*)args.in.values)[k] * factor;
  }
}

template <typename T>
RN_DEVICE void softmax(const rn_cuda_csr_softmax_args& args) {
  const T* in = (const T*)args.in.values;
  T* out = (T*)args.values;
  RN_EACH(at, args.in.count * args.in.height) {
    i64 b, row, first, last;
    T most = T(0), sum = T(0);
    entries_of(args.in, at, &b, &row, &first, &last);
    for (i64 k = first; k < last; ++k) most = k == first || in[k] > most ? in[k] : most;
    for (i64 k = first; k < last; ++k) sum += out[k] = exp(in[k] - most);
    for (i64 k = first; k < last; ++k) out[k] /= sum;
  }
}

// The first of entries [first, last) in |column|; |last| if there is none. It is often |guess|.
RN_DEVICE i64 find_column(const i32* columns, i64 first, i64 last, i32 column, i64 guess) {
  if (guess < last && columns[guess] == column) return guess;
  while (first < last && columns[first] != column) ++first;
  return first;
}

template <typename T>
RN_DEVICE void softmax_grad(const rn_cuda_csr_softmax_args& args) {
  const T *in = (const T*)args.in.values, *grad = (const T*)args.grad.values;
  T* out = (T*)args.values;
  RN_EACH(at, args.in.count * args.in.height) {
    i64 b, row, first, last, from, to;
    T sum = T(0);
    entries_of(args.in, at, &b, &row, &first, &last);
    entries_of(args.grad, at, &b, &row, &from, &to);
    for (i64 k = first; k < last; ++k) {
      const i64 p = find_column(args.grad.columns, from, to, args.in.columns[k], from + k - first);
      out[k] = p < to ? grad[p] : T(0);
      sum += in[k] * out[k];
    }
    for (i64 k = first; k < last; ++k) out[k] = in[k] * (out[k] - sum);
  }
}

RN_KERNEL(add_count, rn_cuda_csr_add_args) {
  RN_EACH(at, args.a.count * args.a.height) {
    i64 b, row, first, last, from, to;
    entries_of(args.a, at, &b, &row, &first, &last);
    entries_of(args.b, at, &b, &row, &from, &to);
    i32 count = (i32)(last - first);
    for (i64 p = from; p < to; ++p)
      count +=
          find_column(args.a.columns, first, last, args.b.columns[p], first + p - from) == last;
    args.rows[at + b + 1] = count;
  }
}

template <typename T>
RN_DEVICE void add(const rn_cuda_csr_add_args& args) {
  const T alpha = *(const T*)args.alpha, beta = *(const T*)args.beta;
  const T *x = (const T*)args.a.values, *y = (const T*)args.b.values;
  RN_EACH(at, args.a.count * args.a.height) {
    i64 b, row, first, last, from, to;
    entries_of(args.a, at, &b, &row, &first, &last);
    entries_of(args.b, at, &b, &row, &from, &to);
    i64 end = (i64)args.starts[b] + args.rows[at + b];
    T* values = (T*)args.values + end;
    for (i64 k = first; k < last; ++k, ++end) {
      args.columns[end] = args.a.columns[k];
      values[k - first] = alpha * x[k];
    }
    for (i64 p = from; p < to; ++p) {
      const i64 k = find_column(args.a.columns, first, last, args.b.columns[p], first + p - from);
      if (k < last) {
        values[k - first] = values[k - first] + beta * y[p];
        continue;
      }
      args.columns[end] = args.b.columns[p];
      ((T*)args.values)[end++] = beta * y[p];
    }
  }
}

#define REAL(name, T)                                                       \
  RN_KERNEL(softmax_##name, rn_cuda_csr_softmax_args) { softmax<T>(args); } \
  RN_KERNEL(softmax_grad_##name, rn_cuda_csr_softmax_args) { softmax_grad<T>(args); }
REAL(f32, float)
REAL(f64, double)

#define X(name, T)                                                       \
  RN_KERNEL(scale_##name, rn_cuda_csr_scale_args) { scale<T>(args); }    \
  RN_KERNEL(add_##name, rn_cuda_csr_add_args) { add<T>(args); }          \
  RN_KERNEL(matmul_##name, rn_cuda_csr_matmul_args) { matmul<T>(args); } \
  RN_KERNEL(place_##name, rn_cuda_csr_place_args) { place<T>(args); }
X(f32, float)
X(f64, double)
X(c64, rn_complex64)
X(c128, rn_complex128)
#undef X

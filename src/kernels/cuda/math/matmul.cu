// Matrix products of any type, size and stride: for cards without cuBLASLt, and for what it does
// not compute.
//
// A block computes a tile of C. It goes along k in slices: while it multiplies one slice from
// shared memory, the next one is on its way into registers.
#include "prelude.cuh"

#include "math/matmul_args.h"

#define TILE RN_MATMUL_TILE
#define SLICE RN_MATMUL_SLICE
#define OWN 4                                     // rows and columns of C per thread
#define LOADS (TILE * SLICE / RN_MATMUL_THREADS)  // elements of a slice per thread
#define PITCH RN_MATMUL_PITCH

#ifdef RN_EMULATED
#define RN_UNROLL(times)
#else
#define RN_PRAGMA(text) _Pragma(#text)
#define RN_UNROLL(times) RN_PRAGMA(unroll times)  // more only makes the code larger
#endif

template <typename T>
RN_DEVICE T conjugate_of(T x) {
  return x;
}
template <typename R>
RN_DEVICE rn_complex<R> conjugate_of(rn_complex<R> x) {
  return {x.re, -x.im};
}

// Integers and complex numbers have no activation.
template <typename T>
RN_DEVICE T activate(T x, i32) {
  return x;
}
// Not inlined: a thread calls it for each of its elements.
template <typename R>
__device__ __noinline__ R gelu(R x) {
  R inner = R(0.7978845608028654) * (x + R(0.044715) * x * x * x);
  return R(0.5) * x * (R(1) + R(tanh(inner)));
}
template <typename R>
RN_DEVICE R activate_real(R x, i32 activation) {
  if (activation == RN_MATMUL_RELU) return x < R(0) ? R(0) : x;
  return activation == RN_MATMUL_GELU ? gelu(x) : x;
}
RN_DEVICE float activate(float x, i32 activation) { return activate_real(x, activation); }
RN_DEVICE double activate(double x, i32 activation) { return activate_real(x, activation); }

// A view of op(A) or op(B) by its rows along m or n and its depth along k.
template <typename In>
struct rn_side {
  const In* data;
  i64 rows, depth;           // sizes
  i64 row_step, depth_step;  // strides
  i64 first;                 // row of the tile
  bool conjugates;
};

// Which element of a slice the thread's load |i| is: neighbouring threads read neighbouring
// addresses.
template <typename In>
RN_DEVICE void place_of(const rn_side<In>& side, int i, int* row, int* depth) {
  int at = (int)threadIdx.x + i * RN_MATMUL_THREADS;
  bool along_depth = side.depth_step == 1 && side.row_step != 1;
  *row = along_depth ? at / SLICE : at % TILE;
  *depth = along_depth ? at % SLICE : at / TILE;
}

template <typename In, typename Sum>
RN_DEVICE void load_slice(const rn_side<In>& side, i64 from, Sum* registers) {
  for (int i = 0; i < LOADS; ++i) {
    int row, depth;
    place_of(side, i, &row, &depth);
    i64 r = side.first + row, d = from + depth;
    Sum value = Sum(0);
    if (r < side.rows && d < side.depth)
      value = Sum(side.data[r * side.row_step + d * side.depth_step]);
    registers[i] = side.conjugates ? conjugate_of(value) : value;
  }
}

template <typename In, typename Sum>
RN_DEVICE void store_slice(const rn_side<In>& side, const Sum* registers, Sum* shared) {
  for (int i = 0; i < LOADS; ++i) {
    int row, depth;
    place_of(side, i, &row, &depth);
    shared[depth * PITCH + row] = registers[i];
  }
}

template <typename Out, typename Sum>
RN_DEVICE void store_tile(const matmul_args& args, i64 z, i64 row, i64 column,
                          const Sum (*sums)[OWN]) {
  Out* c = (Out*)args.c + z * args.c_stride;
  const Out* d = (const Out*)args.d + z * args.c_stride;
  const Out* bias = (const Out*)args.bias;
  for (int i = 0; i < OWN; ++i) {
    for (int j = 0; j < OWN; ++j) {
      if (row + i >= args.m || column + j >= args.n) continue;
      const i64 at = (row + i) * args.c_row + column + j;
      Sum value = sums[i][j];
      if (args.alpha != 1) value = Sum(args.alpha) * value;
      if (args.beta != 0) value = value + Sum(args.beta) * Sum(d[at]);
      if (bias) value = value + Sum(bias[column + j]);
      c[at] = Out(activate(value, args.activation));
    }
  }
}

template <typename In, typename Sum, typename Out>
RN_DEVICE void multiply_tile(const matmul_args& args, i64 z, Sum* a_slice, Sum* b_slice) {
  const int x = (int)threadIdx.x % (TILE / OWN) * OWN, y = (int)threadIdx.x / (TILE / OWN) * OWN;
  const i64 first_row = (i64)(blockIdx.x / (u32)args.tiles) * TILE;
  const i64 first_column = (i64)(blockIdx.x % (u32)args.tiles) * TILE;
  rn_side<In> a = {(const In*)args.a + z * args.a_stride,
                   args.m,
                   args.k,
                   args.a_row,
                   args.a_column,
                   first_row,
                   args.conjugate_a != 0};
  rn_side<In> b = {(const In*)args.b + z * args.b_stride,
                   args.n,
                   args.k,
                   args.b_column,
                   args.b_row,
                   first_column,
                   args.conjugate_b != 0};
  Sum sums[OWN][OWN], next_a[LOADS], next_b[LOADS];
  for (int i = 0; i < OWN; ++i)
    for (int j = 0; j < OWN; ++j) sums[i][j] = Sum(0);
  load_slice(a, 0, next_a);
  load_slice(b, 0, next_b);
  for (i64 from = 0; from < args.k; from += SLICE) {
    __syncthreads();
    store_slice(a, next_a, a_slice);
    store_slice(b, next_b, b_slice);
    __syncthreads();
    load_slice(a, from + SLICE, next_a);
    load_slice(b, from + SLICE, next_b);
    RN_UNROLL(4)
    for (int d = 0; d < SLICE; ++d)
      for (int i = 0; i < OWN; ++i)
        for (int j = 0; j < OWN; ++j)
          sums[i][j] = sums[i][j] + a_slice[d * PITCH + y + i] * b_slice[d * PITCH + x + j];
  }
  store_tile<Out>(args, z, first_row + y, first_column + x, sums);
}

template <typename In, typename Sum, typename Out>
RN_DEVICE void multiply(const matmul_args& args) {
  RN_SHARED(Sum, slices);
  for (i64 z = blockIdx.y; z < args.batch; z += gridDim.y)
    multiply_tile<In, Sum, Out>(args, z, slices, slices + SLICE * PITCH);
}

// Bias and activation of a product that is in C already.
template <typename Sum, typename Out>
RN_DEVICE void finish(const matmul_args& args) {
  const i64 rows = args.m * args.batch;
  RN_UNROLL(1)
  RN_EACH(i, rows * args.n) {
    i64 row = i / args.n, column = i % args.n;
    Out* at = (Out*)args.c + row / args.m * args.c_stride + row % args.m * args.c_row + column;
    Sum value = Sum(*at);
    if (args.bias) value = value + Sum(((const Out*)args.bias)[column]);
    *at = Out(activate(value, args.activation));
  }
}

#define X(name, In, Sum, Out) \
  RN_KERNEL(multiply_##name, matmul_args) { multiply<In, Sum, Out>(args); }
X(f16, rn_half, float, rn_half)
X(bf16, rn_bfloat16, float, rn_bfloat16)
X(f32, float, float, float)
X(f64, double, double, double)
X(c64, rn_complex64, rn_complex64, rn_complex64)
X(c128, rn_complex128, rn_complex128, rn_complex128)
X(i8, i8, i32, i32)
X(i32, i32, i32, i32)
X(i64, i64, i64, i64)
#undef X
#define X(name, Sum, Out) \
  RN_KERNEL(finish_##name, matmul_args) { finish<Sum, Out>(args); }
X(f16, float, rn_half)
X(bf16, float, rn_bfloat16)
X(f32, float, float)
X(f64, double, double)
#undef X

// Attention: y = softmax(scale q k^T) v, without writing the scores to memory, and its gradients.
//
// A block has a tile of rows of one head in shared memory and walks over the other side, tile by
// tile. Each warp owns 16 M rows. The scores of a tile stay in registers; their rows are shifted by
// the largest score so far, and what was summed before is corrected when a larger one comes.
// Backwards, the scores are computed again: once by queries, for dq, and once by keys, for dk and
// dv. So every sum has a fixed order.
#include "prelude.cuh"
//
#include "mma.cuh"
#include "nn/attention_args.h"

#define WARPS (RN_ATTENTION_THREADS / 32)
#define LOG2_E 1.4426950408889634f

RN_DEVICE float minus_infinity() { return rn_float_from_bits(0xff800000u); }

// The type of the operands, and how they are multiplied.
template <typename T_>
struct by_tf32 {
  typedef T_ T;
  static RN_DEVICE float round(float x) { return rn_tf32(x); }
  static RN_DEVICE void multiply(float (&c)[4], const float (&a)[4], const float (&b)[2]) {
    rn_mma(c, a, b);
  }
};
struct by_floats {
  typedef float T;
  static RN_DEVICE float round(float x) { return x; }
  static RN_DEVICE void multiply(float (&c)[4], const float (&a)[4], const float (&b)[2]) {
    rn_mma_exact(c, a, b);
  }
};

template <typename T, int COUNT>
struct alignas(COUNT * sizeof(T)) few {
  T items[COUNT];
};

// A tile has DEPTH columns and PITCH floats between its rows: lanes of a warp then read different
// banks.
#define PITCH(depth) ((depth) + 4)

template <typename T>
RN_DEVICE T* matrix_of(const attention_args& args, const rn_attention_side& side, i32 z) {
  return (T*)side.data + z / args.heads * side.batch + z % args.heads * side.head;
}

// Reads |ROWS| rows from |first| on into shared memory. Rows from |limit| on, and columns beyond the
// head's, are zero. Not inlined: it is called often.
template <typename P, int DEPTH, int ROWS>
__device__ __noinline__ void load_tile(const attention_args& args, const rn_attention_side& side,
                                       i32 z, i32 first, i32 limit, float* tile) {
  typedef typename P::T T;
  const T* from = matrix_of<T>(args, side, z);
#pragma unroll 4
  for (int i = (int)threadIdx.x; i < ROWS * DEPTH / 4; i += RN_ATTENTION_THREADS) {
    const int row = i / (DEPTH / 4), column = i % (DEPTH / 4) * 4;
    few<float, 4> values = {{0, 0, 0, 0}};
    if (first + row < limit && column < args.depth) {
      const T* at = from + (first + row) * side.row_step + column;
      few<T, 4> read;
      if (args.is_vector)
        read = *(const few<T, 4>*)at;
      else
        for (int j = 0; j < 4; ++j) read.items[j] = column + j < args.depth ? at[j] : T(0);
      for (int j = 0; j < 4; ++j) values.items[j] = P::round(float(read.items[j]));
    }
    *(few<float, 4>*)(tile + row * PITCH(DEPTH) + column) = values;
  }
}

// c = x y^T, of the warp's rows of x and N rows of y.
template <typename P, int M, int N, int DEPTH>
RN_DEVICE void multiply(const float* x, const float* y, float (&c)[M][N / 8][4]) {
  const int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int n = 0; n < N / 8; ++n)
      for (int i = 0; i < 4; ++i) c[m][n][i] = 0;
#pragma unroll
  for (int k = 0; k < DEPTH; k += 8) {
    float a[M][4];
#pragma unroll
    for (int m = 0; m < M; ++m)
      for (int i = 0; i < 4; ++i)
        a[m][i] = x[(m * 16 + g + i % 2 * 8) * PITCH(DEPTH) + k + t + i / 2 * 4];
#pragma unroll
    for (int n = 0; n < N / 8; ++n) {
      const float* from = y + (n * 8 + g) * PITCH(DEPTH) + k + t;
      const float b[2] = {from[0], from[4]};
#pragma unroll
      for (int m = 0; m < M; ++m)
        P::multiply(c[m][n], a[m], b);
    }
  }
}

// sum += p z, of the warp's rows of p, as |multiply| left them, and N rows of z. Column 2t of eight
// columns of p counts as column t of A, and 2t + 1 as t + 4; the rows of z are taken alike.
template <typename P, int M, int N, int DEPTH>
RN_DEVICE void accumulate(const float (&p)[M][N / 8][4], const float* z,
                          float (&sum)[M][DEPTH / 8][4]) {
  const int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
#pragma unroll
  for (int k = 0; k < N / 8; ++k) {
    float a[M][4];
#pragma unroll
    for (int m = 0; m < M; ++m)
      for (int i = 0; i < 4; ++i) a[m][i] = P::round(p[m][k][i % 2 * 2 + i / 2]);
#pragma unroll
    for (int n = 0; n < DEPTH / 8; ++n) {
      const float* from = z + (k * 8 + 2 * t) * PITCH(DEPTH) + n * 8 + g;
      const float b[2] = {from[0], from[PITCH(DEPTH)]};
#pragma unroll
      for (int m = 0; m < M; ++m)
        P::multiply(sum[m][n], a[m], b);
    }
  }
}

// The row and the column of element |i| of a lane's part of a product.
RN_DEVICE int row_at(int m, int i) {
  return m * 16 + (int)threadIdx.x % 32 / 4 + i / 2 * 8;
}
RN_DEVICE int column_at(int n, int i) { return n * 8 + (int)threadIdx.x % 4 * 2 + i % 2; }

// The last key that a query sees.
RN_DEVICE i32 last_key(const attention_args& args, i32 query) {
  if (query >= args.queries) return -1;
  return args.mask_kind == RN_MASK_CAUSAL && query < args.keys ? query : args.keys - 1;
}

// Adds the mask to scores. |by_keys|: rows are keys and columns are queries.
template <typename T, int M, int N, bool by_keys, typename Read>
RN_DEVICE void add_mask(const attention_args& args, i32 z, i32 row, i32 column,
                        float (&scores)[M][N / 8][4], const T* mask, Read read) {
  mask += z / args.mask_heads * args.mask_batch;
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int n = 0; n < N / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const i32 r = row + row_at(m, i), c = column + column_at(n, i);
        const i32 query = by_keys ? c : r, key = by_keys ? r : c;
        if (query < args.queries && key < args.keys)
          scores[m][n][i] += read(mask[query * args.mask_query + key * args.mask_key]);
      }
}

// What belongs to the query of an element: of the lane's rows, or |by_keys| of a column of the tile,
// of which PLACE are apart.
template <bool by_keys, int PLACE>
RN_DEVICE int place_of(int m, int n, int i) {
  return by_keys ? column_at(n, i) * PLACE : m * 2 + i / 2;
}

// Turns products q k^T into scores, in logarithms to base 2. |last| has the last keys of queries.
template <typename T, int M, int N, bool by_keys, int PLACE>
RN_DEVICE void score(const attention_args& args, i32 z, i32 row, i32 column, const i32* last,
                     float (&p)[M][N / 8][4]) {
  const float scale = args.scale * LOG2_E;
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int n = 0; n < N / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const i32 key = by_keys ? row + row_at(m, i) : column + column_at(n, i);
        const i32 end = last[place_of<by_keys, PLACE>(m, n, i)];
        p[m][n][i] = key <= end ? p[m][n][i] * scale : minus_infinity();
      }
  if (args.mask_kind == RN_MASK_BOOL)
    add_mask<u8, M, N, by_keys>(args, z, row, column, p, (const u8*)args.mask,
                                [](u8 x) { return x ? 0.0f : minus_infinity(); });
  if (args.mask_kind == RN_MASK_ADD)
    add_mask<T, M, N, by_keys>(args, z, row, column, p, (const T*)args.mask,
                               [](T x) { return float(x) * LOG2_E; });
}

RN_DEVICE float over_quad(float value, bool is_max) {
#pragma unroll
  for (int with = 1; with < 4; with *= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, value, with);
    value = is_max ? (other > value ? other : value) : value + other;
  }
  return value;
}

// Writes the warp's rows times a factor per row.
template <typename T, int M, int DEPTH>
RN_DEVICE void store(const attention_args& args, const rn_attention_side& side, i32 z, i32 first,
                     i32 limit, const float (&sum)[M][DEPTH / 8][4], const float (&factor)[M][2]) {
  T* to = matrix_of<T>(args, side, z);
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const i32 row = first + row_at(m, 2 * half);
      if (row >= limit) continue;
#pragma unroll
      for (int n = 0; n < DEPTH / 8; ++n) {
        const int column = column_at(n, 0);
        T* at = to + row * side.row_step + column;
        const T x = T(sum[m][n][2 * half] * factor[m][half]);
        const T y = T(sum[m][n][2 * half + 1] * factor[m][half]);
        if (column + 1 < args.depth && args.is_vector) {
          *(few<T, 2>*)at = {{x, y}};
        } else {
          if (column < args.depth) at[0] = x;
          if (column + 1 < args.depth) at[1] = y;
        }
      }
    }
}

// What the rows of a warp have summed up so far.
template <int M, int DEPTH>
struct running {
  float top[M][2], total[M][2];
  float sum[M][DEPTH / 8][4];
};

// Turns scores into their exponentials, less the largest of the row so far.
template <int M, int N, int DEPTH>
RN_DEVICE void shift(float (&scores)[M][N / 8][4], running<M, DEPTH>& rows) {
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float top = rows.top[m][half], total = 0;
#pragma unroll
      for (int n = 0; n < N / 8; ++n)
        for (int i = 2 * half; i < 2 * half + 2; ++i)
          top = scores[m][n][i] > top ? scores[m][n][i] : top;
      top = over_quad(top, true);
      const float zero = top == minus_infinity() ? 0 : top;  // nothing but masked scores so far
      const float before = exp2f(rows.top[m][half] - zero);
#pragma unroll
      for (int n = 0; n < N / 8; ++n)
        for (int i = 2 * half; i < 2 * half + 2; ++i)
          total += scores[m][n][i] = exp2f(scores[m][n][i] - zero);
      rows.top[m][half] = top;
      rows.total[m][half] = rows.total[m][half] * before + total;
#pragma unroll
      for (int n = 0; n < DEPTH / 8; ++n)
        for (int i = 2 * half; i < 2 * half + 2; ++i) rows.sum[m][n][i] *= before;
    }
}

template <int M, int DEPTH>
RN_DEVICE void clear(float (&sum)[M][DEPTH / 8][4]) {
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int n = 0; n < DEPTH / 8; ++n)
      for (int i = 0; i < 4; ++i) sum[m][n][i] = 0;
}

template <typename P, int DEPTH, int M, int N>
RN_DEVICE void forward(const attention_args& args) {
  typedef typename P::T T;
  RN_SHARED(float, q);
  constexpr int ROWS = WARPS * 16 * M, pitch = PITCH(DEPTH);
  const int warp = (int)threadIdx.x / 32;
  float *k = q + ROWS * pitch, *v = k + N * pitch;
  const i32 z = (i32)blockIdx.x / args.tiles, first = (i32)blockIdx.x % args.tiles * ROWS;
  const i32 own = first + warp * 16 * M;
  running<M, DEPTH> rows;
  i32 last[M * 2];
  clear<M, DEPTH>(rows.sum);
#pragma unroll
  for (int m = 0; m < M; ++m)
    for (int half = 0; half < 2; ++half) {
      rows.top[m][half] = minus_infinity(), rows.total[m][half] = 0;
      last[m * 2 + half] = last_key(args, own + row_at(m, 2 * half));
    }
  load_tile<P, DEPTH, ROWS>(args, args.q, z, first, args.queries, q);
  for (i32 from = 0; from < args.keys; from += N) {
    if (args.mask_kind == RN_MASK_CAUSAL && from >= first + ROWS) break;
    __syncthreads();
    load_tile<P, DEPTH, N>(args, args.k, z, from, args.keys, k);
    load_tile<P, DEPTH, N>(args, args.v, z, from, args.keys, v);
    __syncthreads();
    float p[M][N / 8][4];
    multiply<P, M, N, DEPTH>(q + warp * 16 * M * pitch, k, p);
    score<T, M, N, false, 1>(args, z, own, from, last, p);
    shift<M, N, DEPTH>(p, rows);
    accumulate<P, M, N, DEPTH>(p, v, rows.sum);
  }
  float factor[M][2];
#pragma unroll
  for (int m = 0; m < M; ++m)
    for (int half = 0; half < 2; ++half) {
      const float total = over_quad(rows.total[m][half], false);
      const i32 row = own + row_at(m, 2 * half);
      factor[m][half] = 1 / total;  // NaN times 0 if a row is masked altogether, as by Softmax
      if (threadIdx.x % 4 == 0 && row < args.queries && args.sums)
        args.sums[(i64)z * args.queries + row] = rows.top[m][half] + log2f(total);
    }
  store<T, M, DEPTH>(args, args.y, z, own, args.queries, rows.sum, factor);
}

// Turns scores into their shares in the softmax, and products dy v^T into the gradients of the
// scores. |sums| and |deltas| are those of the queries.
template <int M, int N, bool by_keys, int PLACE>
RN_DEVICE void differentiate(const float* sums, const float* deltas, float (&p)[M][N / 8][4],
                             float (&dp)[M][N / 8][4]) {
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int n = 0; n < N / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int at = place_of<by_keys, PLACE>(m, n, i);
        p[m][n][i] = exp2f(p[m][n][i] - sums[at]);
        dp[m][n][i] = p[m][n][i] * (dp[m][n][i] - deltas[at]);
      }
}

// The gradient of q; also leaves |deltas| for that of k and v.
template <typename P, int DEPTH, int M, int N>
RN_DEVICE void by_queries(const attention_args& args) {
  typedef typename P::T T;
  RN_SHARED(float, q);
  constexpr int ROWS = WARPS * 16 * M, pitch = PITCH(DEPTH);
  const int warp = (int)threadIdx.x / 32;
  float *dy = q + ROWS * pitch, *k = dy + ROWS * pitch, *v = k + N * pitch;
  const i32 z = (i32)blockIdx.x / args.tiles, first = (i32)blockIdx.x % args.tiles * ROWS;
  const i32 own = first + warp * 16 * M;
  load_tile<P, DEPTH, ROWS>(args, args.q, z, first, args.queries, q);
  load_tile<P, DEPTH, ROWS>(args, args.dy, z, first, args.queries, dy);
  float sums[M * 2], deltas[M * 2], factor[M][2], sum[M][DEPTH / 8][4];
  i32 last[M * 2];
  clear<M, DEPTH>(sum);
  const T* y = matrix_of<T>(args, args.y, z);
  const T* given = matrix_of<T>(args, args.dy, z);
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const i32 row = own + row_at(m, 2 * half);
      float delta = 0;
      for (i32 d = (i32)threadIdx.x % 4; row < args.queries && d < args.depth; d += 4)
        delta += float(y[row * args.y.row_step + d]) * float(given[row * args.dy.row_step + d]);
      delta = over_quad(delta, false);
      const i64 at = (i64)z * args.queries + row;
      if (row < args.queries && threadIdx.x % 4 == 0) args.deltas[at] = delta;
      deltas[m * 2 + half] = delta;
      sums[m * 2 + half] = row < args.queries ? args.sums[at] : 0;
      last[m * 2 + half] = last_key(args, row);
      factor[m][half] = args.scale;
    }
  for (i32 from = 0; from < args.keys; from += N) {
    if (args.mask_kind == RN_MASK_CAUSAL && from >= first + ROWS) break;
    __syncthreads();
    load_tile<P, DEPTH, N>(args, args.k, z, from, args.keys, k);
    load_tile<P, DEPTH, N>(args, args.v, z, from, args.keys, v);
    __syncthreads();
    float p[M][N / 8][4], dp[M][N / 8][4];
    multiply<P, M, N, DEPTH>(q + warp * 16 * M * pitch, k, p);
    multiply<P, M, N, DEPTH>(dy + warp * 16 * M * pitch, v, dp);
    score<T, M, N, false, 1>(args, z, own, from, last, p);
    differentiate<M, N, false, 1>(sums, deltas, p, dp);
    accumulate<P, M, N, DEPTH>(dp, k, sum);
  }
  store<T, M, DEPTH>(args, args.dq, z, own, args.queries, sum, factor);
}

// The gradients of k and v.
template <typename P, int DEPTH, int M, int N>
RN_DEVICE void by_keys(const attention_args& args) {
  typedef typename P::T T;
  RN_SHARED(float, k);
  constexpr int ROWS = WARPS * 16 * M, pitch = PITCH(DEPTH);
  const int warp = (int)threadIdx.x / 32;
  float *v = k + ROWS * pitch, *q = v + ROWS * pitch, *dy = q + N * pitch;
  // In what rows of q have behind their columns.
  float *sums = q + DEPTH, *deltas = sums + 1;
  i32* last = (i32*)(deltas + 1);
  const i32 z = (i32)blockIdx.x / args.tiles, first = (i32)blockIdx.x % args.tiles * ROWS;
  const i32 own = first + warp * 16 * M;
  float dk[M][DEPTH / 8][4], dv[M][DEPTH / 8][4], scale[M][2], one[M][2];
  clear<M, DEPTH>(dk);
  clear<M, DEPTH>(dv);
  for (int m = 0; m < M; ++m)
    for (int half = 0; half < 2; ++half) scale[m][half] = args.scale, one[m][half] = 1;
  load_tile<P, DEPTH, ROWS>(args, args.k, z, first, args.keys, k);
  load_tile<P, DEPTH, ROWS>(args, args.v, z, first, args.keys, v);
  for (i32 from = args.mask_kind == RN_MASK_CAUSAL ? first / N * N : 0; from < args.queries;
       from += N) {
    __syncthreads();
    load_tile<P, DEPTH, N>(args, args.q, z, from, args.queries, q);
    load_tile<P, DEPTH, N>(args, args.dy, z, from, args.queries, dy);
    for (int i = (int)threadIdx.x; i < N; i += RN_ATTENTION_THREADS) {
      const i64 at = (i64)z * args.queries + from + i;
      sums[i * pitch] = from + i < args.queries ? args.sums[at] : 0;
      deltas[i * pitch] = from + i < args.queries ? args.deltas[at] : 0;
      last[i * pitch] = last_key(args, from + i);
    }
    __syncthreads();
    float p[M][N / 8][4], dp[M][N / 8][4];
    multiply<P, M, N, DEPTH>(k + warp * 16 * M * pitch, q, p);
    multiply<P, M, N, DEPTH>(v + warp * 16 * M * pitch, dy, dp);
    score<T, M, N, true, pitch>(args, z, own, from, last, p);
    differentiate<M, N, true, pitch>(sums, deltas, p, dp);
    accumulate<P, M, N, DEPTH>(p, dy, dv);
    accumulate<P, M, N, DEPTH>(dp, q, dk);
  }
  store<T, M, DEPTH>(args, args.dk, z, own, args.keys, dk, scale);
  store<T, M, DEPTH>(args, args.dv, z, own, args.keys, dv, one);
}

// M and N so that the sums of a thread fit into its registers.
#define KERNELS(type, P)                                                                \
  RN_KERNEL(forward_64_##type, attention_args) { forward<P, 64, 2, 64>(args); }         \
  RN_KERNEL(forward_128_##type, attention_args) { forward<P, 128, 1, 32>(args); }       \
  RN_KERNEL(by_queries_64_##type, attention_args) { by_queries<P, 64, 2, 32>(args); }   \
  RN_KERNEL(by_queries_128_##type, attention_args) { by_queries<P, 128, 1, 32>(args); } \
  RN_KERNEL(by_keys_64_##type, attention_args) { by_keys<P, 64, 1, 64>(args); }         \
  RN_KERNEL(by_keys_128_##type, attention_args) { by_keys<P, 128, 1, 32>(args); }
KERNELS(f32, by_tf32<float>)
KERNELS(exact_f32, by_floats)
KERNELS(f16, by_tf32<rn_half>)
KERNELS(bf16, by_tf32<rn_bfloat16>)

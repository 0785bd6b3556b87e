// What emitted loops are made of: accesses of several elements at once, and reductions over the
// threads of a warp and a block. Included after scalar_ops.cuh.
#ifndef RUNNEL_KERNELS_CUDA_JIT_LOOPS_CUH_
#define RUNNEL_KERNELS_CUDA_JIT_LOOPS_CUH_

// N neighbouring elements, moved by accesses of up to 16 bytes.
template <typename T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) rn_vec {
  T at[N];
};

template <typename T, int N>
RN_DEVICE rn_vec<T, N> rn_load(const T* from) {
  return *reinterpret_cast<const rn_vec<T, N>*>(from);
}
template <typename T, int N>
RN_DEVICE void rn_save(T* to, const rn_vec<T, N>& values) {
  *reinterpret_cast<rn_vec<T, N>*>(to) = values;
}
template <typename T, int N>
RN_DEVICE rn_vec<T, N> rn_splat(T value) {
  rn_vec<T, N> values;
#pragma unroll
  for (int v = 0; v < N; ++v) values.at[v] = value;
  return values;
}

// Quotients by numbers known before the launch, for 32-bit and 64-bit indices.
RN_DEVICE u32 rn_quotient(u32 value, rn_div32 by) { return rn_div(value, by); }
RN_DEVICE u32 rn_remainder(u32 value, rn_div32 by) {
  return value - rn_div(value, by) * by.divisor;
}
RN_DEVICE i64 rn_quotient(i64 value, i64 by) { return value / by; }
RN_DEVICE i64 rn_remainder(i64 value, i64 by) { return value % by; }
RN_DEVICE u32 rn_divisor_of(rn_div32 by) { return by.divisor; }
RN_DEVICE i64 rn_divisor_of(i64 by) { return by; }

// Reductions: |sum| is the type that is accumulated, |start| the value of nothing, |add| takes one
// operand, |join| two sums, and |end| makes the result from the sum of n operands. All are
// commutative, so that a butterfly of shuffles gives every lane the same bits.
template <typename T>
struct rn_reduce_sum {
  typedef rn_of<T> sum;
  static RN_DEVICE sum start() { return sum(0); }
  static RN_DEVICE sum join(sum a, sum b) { return rn_op_add<T>(a, b); }
  static RN_DEVICE sum add(sum a, rn_of<T> x) { return join(a, x); }
  static RN_DEVICE rn_of<T> end(sum a, i64) { return a; }
};
template <typename T>
struct rn_reduce_prod {
  typedef rn_of<T> sum;
  static RN_DEVICE sum start() { return sum(1); }
  static RN_DEVICE sum join(sum a, sum b) { return rn_op_mul<T>(a, b); }
  static RN_DEVICE sum add(sum a, rn_of<T> x) { return join(a, x); }
  static RN_DEVICE rn_of<T> end(sum a, i64) { return a; }
};
template <typename T>
struct rn_reduce_max {
  typedef rn_of<T> sum;
  static RN_DEVICE sum start() { return rn_limits<T>::least(); }
  static RN_DEVICE sum join(sum a, sum b) { return rn_op_maximum<T>(a, b); }
  static RN_DEVICE sum add(sum a, rn_of<T> x) { return join(a, x); }
  static RN_DEVICE rn_of<T> end(sum a, i64) { return a; }
};
template <typename T>
struct rn_reduce_min {
  typedef rn_of<T> sum;
  static RN_DEVICE sum start() { return rn_limits<T>::most(); }
  static RN_DEVICE sum join(sum a, sum b) { return rn_op_minimum<T>(a, b); }
  static RN_DEVICE sum add(sum a, rn_of<T> x) { return join(a, x); }
  static RN_DEVICE rn_of<T> end(sum a, i64) { return a; }
};
template <typename T>
struct rn_reduce_any {
  typedef bool sum;
  static RN_DEVICE sum start() { return false; }
  static RN_DEVICE sum join(sum a, sum b) { return a || b; }
  static RN_DEVICE sum add(sum a, bool x) { return a || x; }
  static RN_DEVICE bool end(sum a, i64) { return a; }
};
template <typename T>
struct rn_reduce_all {
  typedef bool sum;
  static RN_DEVICE sum start() { return true; }
  static RN_DEVICE sum join(sum a, sum b) { return a && b; }
  static RN_DEVICE sum add(sum a, bool x) { return a && x; }
  static RN_DEVICE bool end(sum a, i64) { return a; }
};
// Floats are divided in their type, integers from a 64-bit sum.
template <typename T, typename W = typename rn_mean_of<T>::type>
struct rn_reduce_mean {
  typedef W sum;
  static RN_DEVICE sum start() { return sum(0); }
  static RN_DEVICE sum join(sum a, sum b) { return rn_op_add<W>(a, b); }
  static RN_DEVICE sum add(sum a, rn_of<T> x) { return join(a, sum(x)); }
  static RN_DEVICE rn_of<T> end(sum a, i64 n) {
    return rn_of<T>(rn_op_div<W>(a, W(rn_real_of<W>(n))));
  }
};

// Where the extreme is: the first of those that |BETTER| prefers.
template <typename V>
struct rn_found {
  V value;
  i64 place;
};
#define RN_REDUCE_FIND(name, BETTER, START)                                          \
  template <typename T>                                                              \
  struct rn_reduce_##name {                                                          \
    typedef rn_found<rn_of<T>> sum;                                                  \
    static RN_DEVICE sum start() { return {START, 0}; }                              \
    static RN_DEVICE sum join(sum a, sum b) {                                        \
      return b.value BETTER a.value || (b.value == a.value && b.place < a.place) ? b : a; \
    }                                                                                \
    static RN_DEVICE sum add(sum a, rn_of<T> x, i64 place) {                         \
      return x BETTER a.value ? sum{x, place} : a;                                   \
    }                                                                                \
    static RN_DEVICE i64 end(sum a, i64) { return a.place; }                         \
  };
RN_REDUCE_FIND(arg_max, >, rn_limits<T>::least_finite())
RN_REDUCE_FIND(arg_min, <, rn_limits<T>::most_finite())

// Variance: sums of distances from a pivot, the first element that a thread meets. Joining two
// moves both to the common mean. Rounds every step, so that the order of two sums does not matter.
RN_DEVICE float rn_times(float a, float b) { return __fmul_rn(a, b); }
RN_DEVICE double rn_times(double a, double b) { return __dmul_rn(a, b); }
template <typename V>
struct rn_spread {
  V count, pivot, sum, squares;
};
template <typename T>
struct rn_reduce_variance {
  typedef rn_of<T> V;
  typedef rn_spread<V> sum;
  static RN_DEVICE sum start() { return {V(0), V(0), V(0), V(0)}; }
  static RN_DEVICE sum add(sum a, V x) {
    V pivot = a.count == 0 ? x : a.pivot, d = x - pivot;
    return {a.count + 1, pivot, a.sum + d, a.squares + d * d};
  }
  static RN_DEVICE V spread(sum a) {
    V rest = a.squares - rn_times(a.sum, a.sum / a.count);
    return rest < 0 ? V(0) : rest;  // NaN stays
  }
  static RN_DEVICE sum join(sum a, sum b) {
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    V n = a.count + b.count, mean_a = a.pivot + a.sum / a.count, mean_b = b.pivot + b.sum / b.count;
    V away = mean_b - mean_a, mean = (rn_times(mean_a, a.count) + rn_times(mean_b, b.count)) / n;
    V squares = rn_times(rn_times(away, away), rn_times(a.count, b.count) / n);
    return {n, mean, V(0), spread(a) + spread(b) + squares};
  }
  static RN_DEVICE V end(sum a, i64) { return spread(a) / a.count; }
};

#ifdef RN_EMULATED
#define RN_COPY_BYTES __builtin_memcpy
#else
#define RN_COPY_BYTES memcpy
#endif

// |value| of the lane whose number differs in the bits of |mask|.
template <typename A>
RN_DEVICE A rn_shuffle(A value, int mask) {
  u32 words[(sizeof(A) + 3) / 4] = {0};
  memcpy(words, &value, sizeof(A));
#pragma unroll
  for (u32 i = 0; i < sizeof words / 4; ++i)
    words[i] = __shfl_xor_sync(0xffffffffu, words[i], mask);
  memcpy(&value, words, sizeof(A));
  return value;
}

// The reduction over |LANES| neighbouring lanes, a power of 2, in every one of them. All lanes of
// the warp must call it.
template <typename R, int LANES>
RN_DEVICE typename R::sum rn_over_lanes(typename R::sum sum) {
#pragma unroll
  for (int mask = LANES / 2; mask > 0; mask /= 2) sum = R::join(sum, rn_shuffle(sum, mask));
  return sum;
}

// The reduction over a block of whole warps, in two steps with a barrier between them: every warp
// leaves its sum in |shared|, one place per warp; then every thread joins them.
template <typename R>
RN_DEVICE void rn_leave_sum(typename R::sum sum, void* shared) {
  sum = rn_over_lanes<R, 32>(sum);
  if (threadIdx.x % 32 == 0) static_cast<typename R::sum*>(shared)[threadIdx.x / 32] = sum;
}
template <typename R>
RN_DEVICE typename R::sum rn_join_sums(const void* shared) {
  u32 lane = threadIdx.x % 32;
  typename R::sum sum = R::start();
  if (lane < blockDim.x / 32) sum = static_cast<const typename R::sum*>(shared)[lane];
  return rn_over_lanes<R, 32>(sum);
}

#endif  // RUNNEL_KERNELS_CUDA_JIT_LOOPS_CUH_

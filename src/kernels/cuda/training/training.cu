// Optimizer updates: <rule>_<type> for all elements of many tensors, rows_<rule>_<type> for rows.
#include "kernels/cuda/prelude.cuh"
//
#include "kernels/cuda/jit/scalar_ops.cuh"
//
#include "kernels/cuda/jit/complex_ops.cuh"
#include "kernels/cuda/state/rows.cuh"
#include "kernels/cuda/training/rules.cuh"
#include "kernels/cuda/training/training_args.h"

// 16 bytes of elements.
template <typename T>
struct alignas(16) pack {
  enum { width = 16 / sizeof(T) };
  T items[width];
};

// So many elements of another size.
template <typename T, int count>
struct alignas(sizeof(T) * count) group {
  T items[count];
};

template <typename R, typename T, typename Args>
RN_DEVICE void load_numbers(const Args& args, rn_of<T>* h) {
  typedef rn_of<T> V;
  for (int i = 0; i < R::numbers; ++i)
    h[i] = i == args.integer ? V(rn_real_of<V>(*(const i64*)args.numbers[i]))
                             : V(*(const T*)args.numbers[i]);
}

// One chunk of one update.
template <typename R, typename T>
struct piece {
  T* v[R::variables];
  const void* g;
  int type;  // RN_GRADIENT_... of |g|
  i64 count;
  bool is_aligned;  // all arrays are at multiples of 16 bytes
};

template <typename T>
RN_DEVICE T gradient_at(const void* g, int, i64 i) {
  return ((const T*)g)[i];
}
template <>
RN_DEVICE float gradient_at<float>(const void* g, int type, i64 i) {
  if (type == RN_GRADIENT_HALF) return float(((const rn_half*)g)[i]);
  if (type == RN_GRADIENT_BFLOAT16) return float(((const rn_bfloat16*)g)[i]);
  return ((const float*)g)[i];
}

template <typename G>
RN_DEVICE pack<float> widen(const void* g, i64 at) {
  const group<G, pack<float>::width> from = ((const group<G, pack<float>::width>*)g)[at];
  pack<float> to;
  for (int i = 0; i < pack<float>::width; ++i) to.items[i] = float(from.items[i]);
  return to;
}
template <typename T>
RN_DEVICE pack<T> gradients_at(const void* g, int, i64 at) {
  return ((const pack<T>*)g)[at];
}
template <>
RN_DEVICE pack<float> gradients_at<float>(const void* g, int type, i64 at) {
  if (type == RN_GRADIENT_HALF) return widen<rn_half>(g, at);
  if (type == RN_GRADIENT_BFLOAT16) return widen<rn_bfloat16>(g, at);
  return ((const pack<float>*)g)[at];
}

template <typename R, typename T>
RN_DEVICE piece<R, T> piece_of(const rn_updates_args& args, i32 chunk) {
  const int words = RN_UPDATES_ENTRY + R::variables;
  int low = 0, high = args.count;  // the entry is in [low, high)
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (i32) args.table[middle * words] <= chunk ? low = middle : high = middle;
  }
  const int at = low * words;
  const i64 size = RN_UPDATES_CHUNK / (i64)sizeof(T);
  const i64 begin = (chunk - (i32)args.table[at]) * size, left = (i64)args.table[at + 1] - begin;
  u64 addresses = args.table[at + 2];
  piece<R, T> p;
  p.type = (int)(args.table[at] >> 32);
  const i64 element = p.type == RN_GRADIENT_SAME ? (i64)sizeof(T) : 2;
  p.g = (const char*)args.table[at + 2] + begin * element;
  for (int k = 0; k < R::variables; ++k) {
    const u64 address = args.table[at + RN_UPDATES_ENTRY + k];
    addresses |= address;
    p.v[k] = (T*)address + begin;
  }
  p.count = left < size ? left : size;
  p.is_aligned = addresses % 16 == 0;
  return p;
}

template <typename R, typename T>
RN_DEVICE void update_pack(const piece<R, T>& p, const rn_of<T>* h, int flags, i64 at) {
  typedef rn_of<T> V;
  pack<T> v[R::variables], g = gradients_at<T>(p.g, p.type, at);
  for (int k = 0; k < R::variables; ++k) v[k] = ((const pack<T>*)p.v[k])[at];
  for (int i = 0; i < pack<T>::width; ++i) {
    V one[R::variables];
    for (int k = 0; k < R::variables; ++k) one[k] = V(v[k].items[i]);
    R::apply(one, V(g.items[i]), h, flags);
    for (int k = 0; k < R::variables; ++k) v[k].items[i] = T(one[k]);
  }
  for (int k = 0; k < R::variables; ++k) ((pack<T>*)p.v[k])[at] = v[k];
}

// A block takes chunk after chunk, whichever update they belong to.
template <typename R, typename T>
RN_DEVICE void dense(const rn_updates_args& args) {
  typedef rn_of<T> V;
  V h[R::numbers];
  load_numbers<R, T>(args, h);
  for (i32 chunk = (i32)blockIdx.x; chunk < args.chunks; chunk += (i32)gridDim.x) {
    const piece<R, T> p = piece_of<R, T>(args, chunk);
    const i64 packs = p.is_aligned ? p.count / pack<T>::width : 0;
    for (i64 at = threadIdx.x; at < packs; at += blockDim.x)
      update_pack<R, T>(p, h, args.flags, at);
    for (i64 i = packs * pack<T>::width + threadIdx.x; i < p.count; i += blockDim.x) {
      V v[R::variables];
      for (int k = 0; k < R::variables; ++k) v[k] = V(p.v[k][i]);
      R::apply(v, V(gradient_at<T>(p.g, p.type, i)), h, args.flags);
      for (int k = 0; k < R::variables; ++k) p.v[k][i] = T(v[k]);
    }
  }
}

// A row that occurs several times is updated as often, and rounded each time, as on the CPU.
template <typename R, typename T>
RN_DEVICE void sparse(const rn_training_args& args) {
  typedef rn_of<T> V;
  V h[R::numbers];
  load_numbers<R, T>(args, h);
  RN_EACH(t, args.rows.count * args.rows.width) {
    i64 place, column;
    rn_rows_split(args.rows, t, &place, &column);
    i64 row = rn_rows_first(args.rows, place);
    if (row < 0) continue;
    i64 at = row * args.rows.width + column;
    V v[R::variables];
    for (int k = 0; k < R::variables; ++k) v[k] = V(((const T*)args.variables[k])[at]);
    rn_rows_walk(args.rows, row, place, column, (const T*)args.gradient, [&](T g) {
      R::apply(v, V(g), h, args.flags);
      for (int k = 0; k < R::variables; ++k) v[k] = V(T(v[k]));
    });
    for (int k = 0; k < R::variables; ++k) ((T*)args.variables[k])[at] = T(v[k]);
  }
}

#define DENSE(rule, type, T) \
  RN_KERNEL(rule##_##type, rn_updates_args) { dense<rule<rn_of<T>>, T>(args); }
#define SPARSE(rule, type, T) \
  RN_KERNEL(rows_##rule##_##type, rn_training_args) { sparse<rule<rn_of<T>>, T>(args); }
#define REAL(KIND, rule)   \
  KIND(rule, f32, float)   \
  KIND(rule, f64, double)  \
  KIND(rule, f16, rn_half) \
  KIND(rule, bf16, rn_bfloat16)
#define ANY(KIND, rule)         \
  REAL(KIND, rule)              \
  KIND(rule, c64, rn_complex64) \
  KIND(rule, c128, rn_complex128)

ANY(DENSE, gradient_descent)
ANY(DENSE, momentum)
ANY(DENSE, keras_momentum)
ANY(DENSE, adam)
ANY(DENSE, adagrad)
ANY(DENSE, adagrad_v2)
ANY(DENSE, adadelta)
ANY(DENSE, rms_prop)
ANY(DENSE, centered_rms_prop)
REAL(DENSE, adam_amsgrad)
REAL(DENSE, ada_max)
REAL(DENSE, adagrad_da)
REAL(DENSE, ftrl)
REAL(DENSE, ftrl_v2)
REAL(DENSE, add_sign)
REAL(DENSE, power_sign)
REAL(DENSE, proximal_gradient_descent)
REAL(DENSE, proximal_adagrad)
REAL(SPARSE, keras_momentum)
REAL(SPARSE, adagrad)
REAL(SPARSE, adagrad_v2)
REAL(SPARSE, adadelta)
REAL(SPARSE, ftrl)
REAL(SPARSE, ftrl_v2)
REAL(SPARSE, proximal_adagrad)

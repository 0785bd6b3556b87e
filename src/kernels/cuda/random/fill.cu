// Tensors of uniform, normal and integer random numbers. One thread makes what one Philox block
// gives: four numbers, or two of eight bytes; group g comes from block g.
#include "kernels/cuda/random/philox.cuh"

template <typename T>
struct group {
  enum { size = sizeof(T) == 8 ? 2 : 4 };
};

template <typename T>
struct uniform {
  static RN_DEVICE void make(const rn_random_fill_args&, const u32* w, T* out) {
    for (int i = 0; i < 4; ++i) out[i] = T(rn_word_to_float(w[i]));
  }
};
template <>
struct uniform<double> {
  static RN_DEVICE void make(const rn_random_fill_args&, const u32* w, double* out) {
    for (int i = 0; i < 2; ++i) out[i] = rn_words_to_double(w[2 * i], w[2 * i + 1]);
  }
};
// As many random bits as the type's fraction has: all of these numbers are exact.
template <>
struct uniform<rn_half> {
  static RN_DEVICE void make(const rn_random_fill_args&, const u32* w, rn_half* out) {
    for (int i = 0; i < 4; ++i) out[i] = rn_half((float)(w[i] & 0x3FF) * (1.0f / 1024));
  }
};
template <>
struct uniform<rn_bfloat16> {
  static RN_DEVICE void make(const rn_random_fill_args&, const u32* w, rn_bfloat16* out) {
    for (int i = 0; i < 4; ++i) out[i] = rn_bfloat16((float)(w[i] & 0x7F) * (1.0f / 128));
  }
};

template <typename T>
struct normal {
  static RN_DEVICE void make(const rn_random_fill_args&, const u32* w, T* out) {
    float pairs[4];
    rn_normal_pair(w[0], w[1], pairs);
    rn_normal_pair(w[2], w[3], pairs + 2);
    for (int i = 0; i < 4; ++i) out[i] = T(pairs[i]);
  }
};
template <>
struct normal<double> {
  static RN_DEVICE void make(const rn_random_fill_args&, const u32* w, double* out) {
    rn_normal_pair(make_uint4(w[0], w[1], w[2], w[3]), out);
  }
};

template <typename T>
struct integers;
template <>
struct integers<u32> {
  static RN_DEVICE void make(const rn_random_fill_args& args, const u32* w, u32* out) {
    for (int i = 0; i < 4; ++i) out[i] = (u32)args.low + w[i] % (u32)args.range;
  }
};
template <>
struct integers<u64> {
  static RN_DEVICE void make(const rn_random_fill_args& args, const u32* w, u64* out) {
    for (int i = 0; i < 2; ++i)
      out[i] = args.low + (w[2 * i] | (u64)w[2 * i + 1] << 32) % args.range;
  }
};

template <typename T>
struct bits;
template <>
struct bits<u32> {
  static RN_DEVICE void make(const rn_random_fill_args&, const u32* w, u32* out) {
    for (int i = 0; i < 4; ++i) out[i] = w[i];
  }
};
template <>
struct bits<u64> {
  static RN_DEVICE void make(const rn_random_fill_args&, const u32* w, u64* out) {
    for (int i = 0; i < 2; ++i) out[i] = w[2 * i] | (u64)w[2 * i + 1] << 32;
  }
};

// A group, stored in one access.
template <typename T>
struct alignas(sizeof(T) * group<T>::size) numbers {
  T items[group<T>::size];
};

template <typename T>
RN_DEVICE void store(const rn_random_fill_args& args, i64 g, const numbers<T>& made) {
  T* out = (T*)args.out + g * group<T>::size;
  i64 left = args.count - g * group<T>::size;
  if (args.is_aligned && left >= group<T>::size) {
    *(numbers<T>*)out = made;
    return;
  }
  for (int i = 0; i < group<T>::size; ++i)
    if (i < left) out[i] = made.items[i];
}

template <template <typename> class D, typename T>
RN_DEVICE void fill(const rn_random_fill_args& args) {
  const rn_philox start = rn_random_begin(args.at);
  RN_EACH(g, (args.count + group<T>::size - 1) / group<T>::size) {
    rn_philox at = start;
    rn_philox_skip(&at, (u64)g);
    uint4 block = rn_philox_words(at);
    u32 words[4] = {block.x, block.y, block.z, block.w};
    numbers<T> made;
    D<T>::make(args, words, made.items);
    store<T>(args, g, made);
  }
  rn_random_end(args.at);
}

// Normal numbers within two standard deviations. Others are drawn again, so each group has words
// enough of its own.
template <typename T, typename V>
RN_DEVICE void truncated(const rn_random_fill_args& args) {
  const rn_philox start = rn_random_begin(args.at);
  RN_EACH(g, (args.count + group<T>::size - 1) / group<T>::size) {
    rn_philox at = start;
    rn_philox_skip(&at, (u64)g * (group<T>::size * 256 / 4));
    numbers<T> made;
    int count = 0;
    while (count < group<T>::size) {
      V drawn[4];
      int n = rn_normals(&at, drawn);
      for (int i = 0; i < n; ++i)
        if (count < group<T>::size && fabs(drawn[i]) < V(2)) made.items[count++] = T(drawn[i]);
    }
    store<T>(args, g, made);
  }
  rn_random_end(args.at);
}

#define FILL(kind, type, T) \
  RN_KERNEL(kind##_##type, rn_random_fill_args) { fill<kind, T>(args); }
#define TRUNCATED(type, T, V) \
  RN_KERNEL(truncated_##type, rn_random_fill_args) { truncated<T, V>(args); }
FILL(uniform, f32, float)
FILL(uniform, f64, double)
FILL(uniform, f16, rn_half)
FILL(uniform, bf16, rn_bfloat16)
FILL(normal, f32, float)
FILL(normal, f64, double)
FILL(normal, f16, rn_half)
FILL(normal, bf16, rn_bfloat16)
TRUNCATED(f32, float, float)
TRUNCATED(f64, double, double)
TRUNCATED(f16, rn_half, float)
TRUNCATED(bf16, rn_bfloat16, float)
FILL(integers, 4, u32)
FILL(integers, 8, u64)
FILL(bits, 4, u32)
FILL(bits, 8, u64)

RN_KERNEL(take, rn_random_take_args) {
  if (rn_thread() != 0) return;
  rn_philox next = {args.state[0], args.state[1], args.state[2]};
  if (args.out) {
    args.out[0] = next.block;
    args.out[1] = next.stream;
    args.out[2] = next.key;
  }
  rn_philox_skip(&next, args.advance);
  args.state[0] = next.block;
  args.state[1] = next.stream;
}

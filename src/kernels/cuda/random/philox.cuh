// Philox 4x32-10 on the device: the numbers of kernels/cpu/random/philox.h.
#ifndef RUNNEL_KERNELS_CUDA_RANDOM_PHILOX_CUH_
#define RUNNEL_KERNELS_CUDA_RANDOM_PHILOX_CUH_

#include "kernels/cuda/random/random_args.h"

struct rn_philox {
  u64 block, stream, key;
};

RN_DEVICE void rn_philox_skip(rn_philox* at, u64 blocks) {
  at->block += blocks;
  at->stream += at->block < blocks;
}

// The four words at |at|.
RN_DEVICE uint4 rn_philox_words(const rn_philox& at) {
  u32 c0 = (u32)at.block, c1 = (u32)(at.block >> 32);
  u32 c2 = (u32)at.stream, c3 = (u32)(at.stream >> 32);
  u32 k0 = (u32)at.key, k1 = (u32)(at.key >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    u32 a = __umulhi(c0, 0xD2511F53u), b = __umulhi(c2, 0xCD9E8D57u);
    u32 low_a = c0 * 0xD2511F53u, low_b = c2 * 0xCD9E8D57u;
    c0 = b ^ c1 ^ k0;
    c2 = a ^ c3 ^ k1;
    c1 = low_b;
    c3 = low_a;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return make_uint4(c0, c1, c2, c3);
}
RN_DEVICE uint4 rn_philox_next(rn_philox* at) {
  uint4 words = rn_philox_words(*at);
  rn_philox_skip(at, 1);
  return words;
}

// A kernel begins with the position and ends with moving it on.
RN_DEVICE rn_philox rn_random_begin(const rn_random_at& at) {
  if (!at.counter) return {at.numbers[0], at.numbers[1], at.numbers[2]};
  return {at.counter[0], at.counter[1], at.key[0]};
}
RN_DEVICE void rn_random_end(const rn_random_at& at) {
  if (!at.state) return;
  __syncthreads();  // all threads of the block have read the position
  if (threadIdx.x != 0) return;
  __threadfence();
  u32 last = gridDim.x - 1;
  if (atomicInc((u32*)&at.state[3], last) != last) return;
  rn_philox next = {at.state[0], at.state[1], 0};
  rn_philox_skip(&next, at.advance);
  at.state[0] = next.block;
  at.state[1] = next.stream;
}

// Bits as numbers in [0, 1).
RN_DEVICE float rn_word_to_float(u32 word) {
  return rn_float_from_bits(0x3F800000u | (word & 0x7FFFFFu)) - 1.0f;
}
RN_DEVICE double rn_words_to_double(u32 high, u32 low) {
  u64 bits = 0x3FFull << 52 | (u64)(high & 0xFFFFFu) << 32 | low;
  return __longlong_as_double((i64)bits) - 1.0;
}

// Two normal numbers from two uniform ones (Box and Muller, 1958).
RN_DEVICE void rn_normal_pair(u32 x0, u32 x1, float* out) {
  float u = fmaxf(rn_word_to_float(x0), 1.0e-7f), s, c;
  sincosf((float)(6.28318530717958647692 * (double)rn_word_to_float(x1)), &s, &c);
  float radius = sqrtf(-2.0f * logf(u));
  out[0] = s * radius;
  out[1] = c * radius;
}
RN_DEVICE void rn_normal_pair(const uint4& x, double* out) {
  double u = fmax(rn_words_to_double(x.x, x.y), 1.0e-7), s, c;
  sincos(6.28318530717958647692 * rn_words_to_double(x.z, x.w), &s, &c);
  double radius = sqrt(-2.0 * log(u));
  out[0] = s * radius;
  out[1] = c * radius;
}
// The normal numbers of a block: four floats or two doubles. Returns how many.
RN_DEVICE int rn_normals(rn_philox* at, float* out) {
  uint4 words = rn_philox_next(at);
  rn_normal_pair(words.x, words.y, out);
  rn_normal_pair(words.z, words.w, out + 2);
  return 4;
}
RN_DEVICE int rn_normals(rn_philox* at, double* out) {
  rn_normal_pair(rn_philox_next(at), out);
  return 2;
}

// Doubles in [0, 1), one at a time, each block's second one first, as rejection samplers use them.
struct rn_random_doubles {
  rn_philox* philox;
  double first;
  bool has_first;
};
RN_DEVICE double rn_random_double(rn_random_doubles* doubles) {
  doubles->has_first = !doubles->has_first;
  if (!doubles->has_first) return doubles->first;
  uint4 words = rn_philox_next(doubles->philox);
  doubles->first = rn_words_to_double(words.x, words.y);
  return rn_words_to_double(words.z, words.w);
}

#endif  // RUNNEL_KERNELS_CUDA_RANDOM_PHILOX_CUH_

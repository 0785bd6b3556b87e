// Philox 4x32-10: encrypts a counter to four words at a time (Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", 2011). Any block can be computed without the previous ones, so a
// stream does not depend on which thread computes which part.
#ifndef RUNNEL_KERNELS_CPU_RANDOM_PHILOX_H_
#define RUNNEL_KERNELS_CPU_RANDOM_PHILOX_H_

#include "base/env.h"
#include "base/sync.h"

#define RN_PHILOX_ROUNDS 10
#define RN_PHILOX_KEY_A UINT32_C(0x9E3779B9)
#define RN_PHILOX_KEY_B UINT32_C(0xBB67AE85)
#define RN_PHILOX_MUL_A UINT32_C(0xD2511F53)
#define RN_PHILOX_MUL_B UINT32_C(0xCD9E8D57)

// A position in a stream. |block| counts blocks of four words within |stream|.
typedef struct rn_philox_t {
  uint64_t key;
  uint64_t block;   // low half of the counter
  uint64_t stream;  // high half
} rn_philox_t;

// Seeds as TensorFlow does: the first seed is the key, the second the upper half of the counter.
static inline rn_philox_t rn_philox(uint64_t seed, uint64_t seed2) {
  return (rn_philox_t){.key = seed, .stream = seed2};
}

// From the seed attributes; (0, 0) requests a unique stream.
static inline rn_philox_t rn_philox_seeded(const rn_env_t* env, int64_t seed, int64_t seed2) {
  if (seed == 0 && seed2 == 0) return rn_philox(env->random(env->self), env->random(env->self));
  return rn_philox((uint64_t)seed, (uint64_t)seed2);
}

static inline void rn_philox_skip(rn_philox_t* philox, uint64_t blocks) {
  philox->block += blocks;
  philox->stream += philox->block < blocks;
}

// The four words at the current position.
static inline void rn_philox_words(const rn_philox_t* philox, uint32_t out[4]) {
  uint32_t c0 = (uint32_t)philox->block, c1 = (uint32_t)(philox->block >> 32);
  uint32_t c2 = (uint32_t)philox->stream, c3 = (uint32_t)(philox->stream >> 32);
  uint32_t k0 = (uint32_t)philox->key, k1 = (uint32_t)(philox->key >> 32);
  for (int round = 0; round < RN_PHILOX_ROUNDS; ++round) {
    uint64_t a = (uint64_t)c0 * RN_PHILOX_MUL_A, b = (uint64_t)c2 * RN_PHILOX_MUL_B;
    c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
    c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
    c1 = (uint32_t)b;
    c3 = (uint32_t)a;
    k0 += RN_PHILOX_KEY_A;
    k1 += RN_PHILOX_KEY_B;
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

static inline void rn_philox_next(rn_philox_t* philox, uint32_t out[4]) {
  rn_philox_words(philox, out);
  rn_philox_skip(philox, 1);
}

// Reads one word at a time.
typedef struct rn_philox_single_t {
  rn_philox_t philox;
  uint32_t words[4];
  int used;  // 4 if none are left
} rn_philox_single_t;

static inline rn_philox_single_t rn_philox_single(rn_philox_t philox) {
  return (rn_philox_single_t){.philox = philox, .used = 4};
}

static inline uint32_t rn_philox_word(rn_philox_single_t* single) {
  if (single->used == 4) {
    rn_philox_next(&single->philox, single->words);
    single->used = 0;
  }
  return single->words[single->used++];
}

// Draws a number below |n|, each with the same probability; any number if |n| is 0.
static inline uint32_t rn_philox_below(rn_philox_single_t* single, uint32_t n) {
  if ((n & (n - 1)) == 0) return rn_philox_word(single) & (n - 1);
  uint32_t skewed = UINT32_MAX % n + 1, value;
  do value = rn_philox_word(single);
  while (value < skewed);
  return value % n;
}

// Skips |words| words.
static inline void rn_philox_single_skip(rn_philox_single_t* single, uint64_t words) {
  uint64_t left = (uint64_t)(4 - single->used);
  if (words <= left) {
    single->used += (int)words;
    return;
  }
  words -= left;
  rn_philox_skip(&single->philox, words / 4);
  single->used = 4;
  if (words % 4) {
    rn_philox_next(&single->philox, single->words);
    single->used = (int)(words % 4);
  }
}

// Converts bits to numbers in [0, 1).
static inline float rn_word_to_float(uint32_t word) {
  union {
    uint32_t bits;
    float value;
  } u = {.bits = UINT32_C(0x3F800000) | (word & UINT32_C(0x7FFFFF))};
  return u.value - 1.0f;
}
static inline double rn_words_to_double(uint32_t high, uint32_t low) {
  union {
    uint64_t bits;
    double value;
  } u = {.bits = UINT64_C(0x3FF) << 52 | (uint64_t)(high & UINT32_C(0xFFFFF)) << 32 | low};
  return u.value - 1.0;
}

// A kernel's stream, of which each call takes a part. |mutex| guards |philox|.
typedef struct rn_random_stream_t {
  rn_mutex_t mutex;
  rn_philox_t philox;
} rn_random_stream_t;

static inline rn_philox_t rn_random_stream_reserve(rn_random_stream_t* stream, uint64_t blocks) {
  rn_mutex_lock(&stream->mutex);
  rn_philox_t part = stream->philox;
  rn_philox_skip(&stream->philox, blocks);
  rn_mutex_unlock(&stream->mutex);
  return part;
}

#endif  // RUNNEL_KERNELS_CPU_RANDOM_PHILOX_H_

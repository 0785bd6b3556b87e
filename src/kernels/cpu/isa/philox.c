// Philox in bulk. See philox.h.
//
// A register holds one word of several counters, each in the low half of a 64-bit lane, because
// that is where CPUs multiply 32 x 32 bits to 64. The upper halves do not matter until the words
// are combined.
#include "kernels/cpu/isa/philox.h"

#include "kernels/cpu/isa/isa.h"

#if defined(RN_ISA_avx512)
#define LANES 8
#define SETS 4
#elif defined(RN_ISA_avx2)
#define LANES 4
#define SETS 2
#else
#define LANES 2
#define SETS 2
#endif
#define BLOCKS (LANES * SETS)  // generated at a time

typedef uint64_t v64_t __attribute__((vector_size(LANES * 8)));
typedef uint32_t v32_t __attribute__((vector_size(LANES * 8)));
typedef float vf_t __attribute__((vector_size(LANES * 8)));

// The product of the low halves, per lane.
static inline v64_t multiply(v64_t a, uint32_t factor) {
#if defined(RN_ISA_avx512)
  return (v64_t)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64(factor));
#elif defined(RN_ISA_avx2)
  return (v64_t)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x(factor));
#elif defined(__x86_64__)
  return (v64_t)_mm_mul_epu32((__m128i)a, _mm_set1_epi64x(factor));
#else
  return (v64_t)vmull_n_u32(vmovn_u64((uint64x2_t)a), factor);
#endif
}

// Lane 2j has block j of a set, lane 2j + 1 block LANES / 2 + j, so that combining neighbours puts
// the words in order.
#if LANES == 8
#define ORDER \
  { 0, 4, 1, 5, 2, 6, 3, 7 }
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14)
#define ODD(a, b) __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15)
#elif LANES == 4
#define ORDER \
  { 0, 2, 1, 3 }
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 4, 2, 6)
#define ODD(a, b) __builtin_shufflevector(a, b, 1, 5, 3, 7)
#else
#define ORDER \
  { 0, 1 }
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 2)
#define ODD(a, b) __builtin_shufflevector(a, b, 1, 3)
#endif

typedef struct words_t {
  v32_t part[2 * SETS];  // in storage order
} words_t;

// The words of BLOCKS blocks from |at| on, none of which carries into the upper half of the
// counter.
static inline words_t make(const rn_philox_t* at) {
  const v64_t order = ORDER;
  v64_t c0[SETS], c1[SETS], c2[SETS], c3[SETS];
  for (int s = 0; s < SETS; ++s) {
    c0[s] = order + (at->block + (uint64_t)(s * LANES));
    c1[s] = c0[s] >> 32;
    c2[s] = (v64_t){0} + at->stream;
    c3[s] = c2[s] >> 32;
  }
  uint32_t k0 = (uint32_t)at->key, k1 = (uint32_t)(at->key >> 32);
  for (int round = 0; round < RN_PHILOX_ROUNDS; ++round) {
    for (int s = 0; s < SETS; ++s) {
      v64_t a = multiply(c0[s], RN_PHILOX_MUL_A), b = multiply(c2[s], RN_PHILOX_MUL_B);
      c0[s] = b >> 32 ^ c1[s] ^ k0;
      c2[s] = a >> 32 ^ c3[s] ^ k1;
      c1[s] = b;
      c3[s] = a;
    }
    k0 += RN_PHILOX_KEY_A;
    k1 += RN_PHILOX_KEY_B;
  }
  words_t words;
  for (int s = 0; s < SETS; ++s) {
    v64_t low = (c0[s] & UINT32_MAX) | c1[s] << 32, high = (c2[s] & UINT32_MAX) | c3[s] << 32;
    words.part[2 * s] = (v32_t)EVEN(low, high);
    words.part[2 * s + 1] = (v32_t)ODD(low, high);
  }
  return words;
}

static inline bool can_make(const rn_philox_t* at, int64_t blocks) {
  return blocks >= BLOCKS && at->block <= UINT64_MAX - BLOCKS;
}

static void words(const rn_philox_t* philox, uint32_t* out, int64_t blocks) {
  rn_philox_t at = *philox;
  while (can_make(&at, blocks)) {
    words_t made = make(&at);
    memcpy(out, &made, sizeof made);
    rn_philox_skip(&at, BLOCKS);
    blocks -= BLOCKS;
    out += 4 * BLOCKS;
  }
  for (; blocks > 0; --blocks, out += 4) rn_philox_next(&at, out);
}

static void floats(const rn_philox_t* philox, float* out, int64_t blocks) {
  rn_philox_t at = *philox;
  while (can_make(&at, blocks)) {
    words_t made = make(&at);
    for (int p = 0; p < 2 * SETS; ++p) {
      vf_t value = (vf_t)((made.part[p] & 0x7FFFFF) | 0x3F800000) - 1.0f;
      memcpy(out + p * 2 * LANES, &value, sizeof value);
    }
    rn_philox_skip(&at, BLOCKS);
    blocks -= BLOCKS;
    out += 4 * BLOCKS;
  }
  for (; blocks > 0; --blocks, out += 4) {
    uint32_t four[4];
    rn_philox_next(&at, four);
    for (int w = 0; w < 4; ++w) out[w] = rn_word_to_float(four[w]);
  }
}

const rn_philox_table_t RN_ISA_NAME(rn_philox_table_) = {words, floats};

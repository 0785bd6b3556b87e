// Philox in bulk: LANES counters side by side. See philox.h.
#include "kernels/cpu/isa/philox.h"

#include "kernels/cpu/isa/isa.h"

#define LANES 16

typedef struct lanes_t {
  uint32_t word[4][LANES];
} lanes_t;

static inline void rounds(lanes_t* c, uint64_t key) {
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  for (int round = 0; round < RN_PHILOX_ROUNDS; ++round) {
    for (int i = 0; i < LANES; ++i) {
      uint64_t a = (uint64_t)c->word[0][i] * RN_PHILOX_MUL_A;
      uint64_t b = (uint64_t)c->word[2][i] * RN_PHILOX_MUL_B;
      c->word[0][i] = (uint32_t)(b >> 32) ^ c->word[1][i] ^ k0;
      c->word[2][i] = (uint32_t)(a >> 32) ^ c->word[3][i] ^ k1;
      c->word[1][i] = (uint32_t)b;
      c->word[3][i] = (uint32_t)a;
    }
    k0 += RN_PHILOX_KEY_A;
    k1 += RN_PHILOX_KEY_B;
  }
}

static inline void start(lanes_t* c, const rn_philox_t* at) {
  for (int i = 0; i < LANES; ++i) {
    uint64_t block = at->block + (uint64_t)i;
    uint64_t stream = at->stream + (block < at->block);
    c->word[0][i] = (uint32_t)block;
    c->word[1][i] = (uint32_t)(block >> 32);
    c->word[2][i] = (uint32_t)stream;
    c->word[3][i] = (uint32_t)(stream >> 32);
  }
}

static void words(const rn_philox_t* philox, uint32_t* out, int64_t blocks) {
  rn_philox_t at = *philox;
  lanes_t c;
  for (; blocks >= LANES; blocks -= LANES, out += 4 * LANES) {
    start(&c, &at);
    rounds(&c, at.key);
    for (int i = 0; i < LANES; ++i)
      for (int w = 0; w < 4; ++w) out[4 * i + w] = c.word[w][i];
    rn_philox_skip(&at, LANES);
  }
  for (; blocks > 0; --blocks, out += 4) rn_philox_next(&at, out);
}

static void floats(const rn_philox_t* philox, float* out, int64_t blocks) {
  rn_philox_t at = *philox;
  lanes_t c;
  for (; blocks >= LANES; blocks -= LANES, out += 4 * LANES) {
    start(&c, &at);
    rounds(&c, at.key);
    for (int i = 0; i < LANES; ++i)
      for (int w = 0; w < 4; ++w) out[4 * i + w] = rn_word_to_float(c.word[w][i]);
    rn_philox_skip(&at, LANES);
  }
  for (; blocks > 0; --blocks, out += 4) {
    uint32_t four[4];
    rn_philox_next(&at, four);
    for (int w = 0; w < 4; ++w) out[w] = rn_word_to_float(four[w]);
  }
}

const rn_philox_table_t RN_ISA_NAME(rn_philox_table_) = {words, floats};

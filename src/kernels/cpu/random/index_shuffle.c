// RandomIndexShuffle: the place of an index in a random permutation that is never stored.
//
// The permutation is a block cipher: Simon with a fixed key size and few rounds, on blocks just
// large enough for the largest index. A result beyond that is encrypted again until it fits
// ("cycle walking"), which takes few steps because at most three of four blocks are too large, or
// the block is the smallest.
#include "kernels/cpu/random/index_shuffle.h"

#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/kernel_rows.h"

#define LEAST_BITS 16  // of a block
#define MOST_ROUNDS 64

typedef struct index_shuffle_t {
  int64_t rounds;
} index_shuffle_t;

static rn_status_t shuffle_init(const rn_kernel_init_t* init, void* state) {
  ((index_shuffle_t*)state)->rounds = rn_init_int(init, "rounds");
  return RN_OK;
}

// Words of |bits| bits.
typedef struct cipher_t {
  int bits, rounds;
  uint64_t mask;
  uint64_t keys[MOST_ROUNDS];
} cipher_t;

static uint64_t rotate(const cipher_t* c, uint64_t word, int left) {
  return ((word << left) | (word >> (c->bits - left))) & c->mask;
}

static void cipher_begin(cipher_t* c, int block_bits, const uint32_t seed[3], int rounds) {
  uint64_t z = UINT64_C(0x7369f885192c0ef5);
  c->bits = block_bits / 2;
  c->rounds = rounds;
  c->mask = (UINT64_C(1) << c->bits) - 1;
  z &= c->mask;
  for (int i = 0; i < 3 && i < rounds; ++i) c->keys[i] = seed[i] & c->mask;
  for (int i = 3; i < rounds; ++i, z >>= 1) {
    uint64_t last = c->keys[i - 1];
    c->keys[i] = (UINT64_C(0xfffffffc) ^ (z & 1) ^ c->keys[i - 3] ^ rotate(c, last, c->bits - 3) ^
                  rotate(c, last, c->bits - 4)) &
                 c->mask;
  }
}

static uint64_t feistel(const cipher_t* c, uint64_t x) {
  return (rotate(c, x, 1) & rotate(c, x, 8 % c->bits)) ^ rotate(c, x, 2);
}

static uint64_t encrypt(const cipher_t* c, uint64_t block) {
  uint64_t left = (block >> c->bits) & c->mask, right = block & c->mask;
  for (int i = 0; i + 1 < c->rounds; i += 2) {
    left ^= feistel(c, right) ^ c->keys[i];
    right ^= feistel(c, left) ^ c->keys[i + 1];
  }
  return left << c->bits | right;
}

// The number of bits of a block, computed with stock's rounding.
static int block_bits(uint64_t most) {
  int bits = (int)ceil(log2((double)most));
  bits += bits % 2;
  return bits < LEAST_BITS ? LEAST_BITS : bits;
}

uint64_t rn_index_shuffle(uint64_t index, const uint32_t seed[3], uint64_t most, int rounds) {
  cipher_t cipher;
  if (most == 0) return 0;
  cipher_begin(&cipher, block_bits(most), seed, rounds);
  do index = encrypt(&cipher, index);
  while (index > most);
  return index;
}

static rn_status_t check(const rn_kernel_ctx_t* ctx, int64_t count) {
  const rn_tensor_t *index = rn_in(ctx, 0), *seed = rn_in(ctx, 1), *most = rn_in(ctx, 2);
  int64_t rounds = ((const index_shuffle_t*)ctx->state)->rounds;
  if (index->rank > 1 || (index->rank == 1 && index->count != count))
    return rn_invalid_argument("Index bust be a scalar or vector.");
  if (!(seed->rank == 1 && seed->count == 3) &&
      !(seed->rank == 2 && rn_tensor_dim(seed, 0) == count && rn_tensor_dim(seed, 1) == 3))
    return rn_invalid_argument(
        "Seed must be a vector of size [3] or a matrix of size [%lld, 3] but got %s.",
        (long long)count, rn_text_of(seed).text);
  if (most->rank > 1 || (most->rank == 1 && most->count != count))
    return rn_invalid_argument(
        "Maxval must be a scalar or a vector of the same size as index but got %s",
        rn_text_of(most).text);
  if (rounds < 4 || rounds % 2 != 0 || rounds > MOST_ROUNDS)
    return rn_invalid_argument("Rounds must be even and in [4, %d], but is %lld", MOST_ROUNDS,
                               (long long)rounds);
  return RN_OK;
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static rn_status_t shuffle(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *index = rn_in(ctx, 0), *seed = rn_in(ctx, 1), *most = rn_in(ctx, 2);
  int64_t count = larger(larger(index->count, most->count), seed->count / 3);
  RN_RETURN_IF_ERROR(check(ctx, count));
  int rank = index->rank == 0 && seed->rank == 1 && most->rank == 0 ? 0 : 1;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){rank, &count}, &out));
  for (int64_t i = 0; i < out->count; ++i) {
    uint64_t own = (uint64_t)rn_int_at(index, index->rank ? i : 0);
    uint64_t limit = (uint64_t)rn_int_at(most, most->rank ? i : 0);
    bool is_signed = most->dtype == RN_INT32 || most->dtype == RN_INT64;
    if (is_signed && (int64_t)own < 0)
      return rn_invalid_argument("index must be >= 0 but was %lld", (long long)own);
    if (is_signed && (int64_t)limit < 0)
      return rn_invalid_argument("max_index must be >= 0 but was %lld", (long long)limit);
    if (own > limit)
      return rn_invalid_argument("max_index must be >= index, but %llu < %llu",
                                 (unsigned long long)limit, (unsigned long long)own);
    uint32_t words[3];
    for (int k = 0; k < 3; ++k)
      words[k] = (uint32_t)rn_int_at(seed, (seed->rank == 2 ? 3 * i : 0) + k);
    uint64_t place =
        rn_index_shuffle(own, words, limit, (int)((const index_shuffle_t*)ctx->state)->rounds);
    if (rn_dtype_size(out->dtype) == 4)
      RN_DATA(out, uint32_t)[i] = (uint32_t)place;
    else
      RN_DATA(out, uint64_t)[i] = place;
  }
  return RN_OK;
}

static const rn_kernel_def_t rows[] = {
    {.op = "RandomIndexShuffle",
     .device = "CPU",
     .state_size = sizeof(index_shuffle_t),
     .init = shuffle_init,
     .compute = shuffle},
};
RN_KERNEL_FAMILY(cpu_index_shuffle, rows);

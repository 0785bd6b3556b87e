// See cache_key.h.
//
// A key is a row of pieces: a head; per output, its name's address in the signature; per input, a
// head and its bytes, or per string its length and its bytes. One function walks over the pieces of
// a request, whatever is done with them, so that hash, copy and comparison cannot disagree.
#include "serve/model/cache_key.h"

#include "tensor/tstring.h"

// Odd numbers with as many ones as zeros, from the fractions of square roots.
#define KEY_A UINT64_C(0x9e3779b97f4a7c15)
#define KEY_B UINT64_C(0x6a09e667f3bcc909)
#define KEY_C UINT64_C(0xbb67ae8584caa73b)
#define KEY_D UINT64_C(0x3c6ef372fe94f82b)

typedef struct cache_walk_t {
  enum { WALK_HASH, WALK_WRITE, WALK_COMPARE } what;
  uint64_t hash;
  size_t size;
  char* to;
  const char* from;
  bool is_equal;
} cache_walk_t;

static uint64_t word(const char* at) {
  uint64_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

// Both halves of a product: every bit of the factors moves many of them.
static uint64_t fold(uint64_t a, uint64_t b) {
  unsigned __int128 product = (unsigned __int128)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

// Several times as fast as the hashes of base/hash.h, because four products are under way at once;
// inputs are long, and a hit should cost no more than a copy of them.
static uint64_t hash_bytes(uint64_t seed, const char* data, size_t size) {
  uint64_t a = seed ^ KEY_A, b = seed ^ KEY_B, c = seed ^ KEY_C, d = seed ^ KEY_D;
  const char* end = data + size;
  for (; end - data >= 64; data += 64) {
    a = fold(word(data) ^ KEY_B, word(data + 8) ^ a);
    b = fold(word(data + 16) ^ KEY_C, word(data + 24) ^ b);
    c = fold(word(data + 32) ^ KEY_D, word(data + 40) ^ c);
    d = fold(word(data + 48) ^ KEY_A, word(data + 56) ^ d);
  }
  a = fold(a ^ b, c ^ KEY_D) ^ fold(d ^ KEY_A, size ^ KEY_B);
  for (; end - data >= 8; data += 8) a = fold(word(data) ^ KEY_C, a ^ KEY_B);
  char rest[8] = {0};
  if (end > data) memcpy(rest, data, (size_t)(end - data));
  return fold(word(rest) ^ KEY_D, a ^ KEY_A);
}

static void piece(cache_walk_t* walk, const void* data, size_t size) {
  switch (walk->what) {
    case WALK_HASH:
      walk->hash = hash_bytes(walk->hash, data, size);
      walk->size += size;
      break;
    case WALK_WRITE:
      if (size) memcpy(walk->to, data, size);
      walk->to += size;
      break;
    case WALK_COMPARE:
      walk->is_equal = walk->is_equal && (!size || !memcmp(walk->from, data, size));
      walk->from += size;
      break;
  }
}

static void walk_input(cache_walk_t* walk, const rn_tensor_t* value) {
  int64_t head[2 + RN_INLINE_DIMS] = {value->dtype, value->rank};
  int few = value->rank <= RN_INLINE_DIMS ? value->rank : 0;
  memcpy(head + 2, rn_tensor_dims(value), (size_t)few * sizeof *head);
  piece(walk, head, (size_t)(2 + few) * sizeof *head);
  if (value->rank > few) piece(walk, rn_tensor_dims(value), value->rank * sizeof(int64_t));
  if (value->dtype != RN_STRING) {
    piece(walk, value->data, rn_tensor_bytes(value));
    return;
  }
  // A comparison that has failed must not go on: the lengths are those of other strings.
  for (int64_t i = 0; i < value->count && (walk->is_equal || walk->what != WALK_COMPARE); ++i) {
    rn_str_t text = rn_tstring_view(&RN_DATA(value, rn_tstring_t)[i]);
    piece(walk, &text.size, sizeof text.size);
    piece(walk, text.data, text.size);
  }
}

static void walk_key(cache_walk_t* walk, const rn_predict_t* predict) {
  struct {
    const rn_version_t* version;
    int signature, outputs;
  } head = {predict->version, predict->signature_index, predict->output_count};
  piece(walk, &head, sizeof head);
  for (int i = 0; i < predict->output_count; ++i)
    piece(walk, &predict->outputs[i].name.data, sizeof predict->outputs[i].name.data);
  for (int i = 0; i < predict->input_count; ++i) {
    walk_input(walk, &predict->inputs[i].value);
    if (walk->what == WALK_COMPARE && !walk->is_equal) return;
  }
}

uint64_t rn_cache_key_hash(const rn_predict_t* predict, uint64_t seed, size_t* out_size) {
  cache_walk_t walk = {.what = WALK_HASH, .hash = seed};
  walk_key(&walk, predict);
  *out_size = walk.size;
  return walk.hash;
}

void rn_cache_key_write(const rn_predict_t* predict, char* to) {
  cache_walk_t walk = {.what = WALK_WRITE, .to = to};
  walk_key(&walk, predict);
}

bool rn_cache_key_equals(const rn_predict_t* predict, const char* key) {
  cache_walk_t walk = {.what = WALK_COMPARE, .from = key, .is_equal = true};
  walk_key(&walk, predict);
  return walk.is_equal;
}

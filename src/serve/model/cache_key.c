// See cache_key.h.
//
// A key is a row of pieces: a head; per output, its name's address in the signature; per input, a
// head and its bytes, or per string its length and its bytes. One function walks over the pieces of
// a request, whatever is done with them, so that hash, copy and comparison cannot disagree.
#include "serve/model/cache_key.h"

#include "base/hash.h"
#include "tensor/tstring.h"

typedef struct cache_walk_t {
  enum { WALK_HASH, WALK_WRITE, WALK_COMPARE } what;
  uint64_t hash;
  size_t size;
  char* to;
  const char* from;
  bool is_equal;
} cache_walk_t;

static void piece(cache_walk_t* walk, const void* data, size_t size) {
  switch (walk->what) {
    case WALK_HASH:
      walk->hash =
          (walk->hash ^ rn_farm_fingerprint64(rn_str_n(data, size))) * UINT64_C(0x9e3779b97f4a7c15);
      walk->hash ^= walk->hash >> 32;
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

uint64_t rn_cache_key_hash(const rn_predict_t* predict, size_t* out_size) {
  cache_walk_t walk = {.what = WALK_HASH};
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

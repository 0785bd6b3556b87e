// Dense tables: empty buckets contain the empty key, removed ones the deleted key. Hashes and
// probing order are stock's, so that an export equals stock's.
#include "base/hash.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/lookup/store.h"
#include "kernels/cpu/move.h"
#include "tensor/tstring.h"

typedef struct lookup_dense_t {
  rn_lookup_table_t base;
  int64_t first_buckets;
  double max_load;
  rn_tensor_t empty, deleted;  // keys; unset until rn_lookup_dense_begin
  rn_tensor_t keys, values;    // [buckets, key width], [buckets, value width]
  int64_t buckets;             // a power of two
  int64_t count;               // of used buckets
} lookup_dense_t;

static void destroy(rn_lookup_table_t* table) {
  lookup_dense_t* t = (lookup_dense_t*)table;
  rn_tensor_clear(&t->empty);
  rn_tensor_clear(&t->deleted);
  rn_tensor_clear(&t->keys);
  rn_tensor_clear(&t->values);
  RN_FREE(table->allocator, t);
}

static bool is_key(const lookup_dense_t* t, const rn_tensor_t* a, int64_t i, const rn_tensor_t* b,
                   int64_t j) {
  int64_t width = t->base.key_width;
  for (int64_t k = 0; k < width; ++k)
    if (!rn_lookup_same(a, i * width + k, b, j * width + k)) return false;
  return true;
}

static bool is_free(const lookup_dense_t* t, const rn_tensor_t* keys, int64_t i) {
  return is_key(t, keys, i, &t->empty, 0) || is_key(t, keys, i, &t->deleted, 0);
}

static uint64_t hash_element(const rn_tensor_t* keys, int64_t i) {
  if (keys->dtype != RN_STRING) return (uint64_t)rn_int_at(keys, i);
  return rn_murmur_hash64(rn_tstring_view(&RN_DATA(keys, const rn_tstring_t)[i]), RN_HASH64_SEED);
}

static uint64_t hash_key(const lookup_dense_t* t, const rn_tensor_t* keys, int64_t i) {
  int64_t width = t->base.key_width;
  if (width == 1) return hash_element(keys, i);
  uint64_t hash = 0;
  for (int64_t k = 0; k < width; ++k)
    hash ^= hash_element(keys, i * width + k) + UINT64_C(0x9e3779b97f4a7800) + (hash << 10) +
            (hash >> 4);
  return hash;
}

// The bucket of key |i|, or -1; then |*out_place| is where to insert it, -1 if the table is full.
static int64_t bucket_of(const lookup_dense_t* t, const rn_tensor_t* keys, int64_t i,
                         int64_t* out_place) {
  int64_t mask = t->buckets - 1, at = (int64_t)(hash_key(t, keys, i) & (uint64_t)mask);
  *out_place = -1;
  for (int64_t tries = 1; tries <= t->buckets; ++tries) {
    if (is_key(t, &t->keys, at, keys, i)) return at;
    bool is_empty = is_key(t, &t->keys, at, &t->empty, 0);
    if (*out_place < 0 && (is_empty || is_key(t, &t->keys, at, &t->deleted, 0))) *out_place = at;
    if (is_empty) return -1;
    at = (at + tries) & mask;
  }
  return -1;
}

static rn_status_t copy_key(const lookup_dense_t* t, const rn_tensor_t* from, int64_t i,
                            const rn_tensor_t* to, int64_t j) {
  int64_t width = t->base.key_width;
  return rn_move_row(t->base.key, rn_lookup_element(from, i * width),
                     rn_lookup_element(to, j * width), width);
}

static rn_status_t copy_value(const lookup_dense_t* t, const rn_tensor_t* from, int64_t i,
                              const rn_tensor_t* to, int64_t j) {
  int64_t width = t->base.width;
  return rn_move_row(t->base.value, rn_lookup_element(from, i * width),
                     rn_lookup_element(to, j * width), width);
}

static rn_status_t check_key(const lookup_dense_t* t, const rn_tensor_t* keys, int64_t i) {
  bool is_empty = is_key(t, keys, i, &t->empty, 0);
  if (is_empty || is_key(t, keys, i, &t->deleted, 0))
    return rn_invalid_argument("Using the %s_key as a table key is not allowed",
                               is_empty ? "empty" : "deleted");
  return RN_OK;
}

static rn_status_t rebucket(lookup_dense_t* t, int64_t buckets);

static rn_status_t set(lookup_dense_t* t, const rn_tensor_t* keys, const rn_tensor_t* values,
                       int64_t i) {
  int64_t place, at = bucket_of(t, keys, i, &place);
  if (at < 0 && place < 0) {  // no empty bucket is left: reclaim the deleted ones
    RN_RETURN_IF_ERROR(rebucket(t, t->buckets));
    at = bucket_of(t, keys, i, &place);
  }
  if (at < 0 && place < 0) return rn_internal("Internal error in MutableDenseHashTable insert");
  if (at < 0) {
    at = place;
    RN_RETURN_IF_ERROR(copy_key(t, keys, i, &t->keys, at));
    ++t->count;
  }
  return copy_value(t, values, i, &t->values, at);
}

static rn_status_t new_buckets(const lookup_dense_t* t, rn_dtype_t dtype, int64_t buckets,
                               int64_t width, rn_tensor_t* out) {
  return rn_tensor_create(t->base.allocator, dtype, (rn_shape_t){2, (int64_t[]){buckets, width}},
                          out);
}

// Moves all entries to |buckets| new ones.
static rn_status_t rebucket(lookup_dense_t* t, int64_t buckets) {
  lookup_dense_t old = *t;
  rn_tensor_t keys = {0}, values = {0};
  rn_status_t status = new_buckets(t, t->base.key, buckets, t->base.key_width, &keys);
  if (rn_ok(status)) status = new_buckets(t, t->base.value, buckets, t->base.width, &values);
  for (int64_t i = 0; rn_ok(status) && i < buckets; ++i)
    status = copy_key(t, &t->empty, 0, &keys, i);
  if (rn_ok(status)) {
    rn_move_zero(NULL, t->base.value, values.data, values.count);
    t->keys = keys;
    t->values = values;
    t->buckets = buckets;
    t->count = 0;
    for (int64_t i = 0; rn_ok(status) && i < old.buckets; ++i)
      if (!is_free(t, &old.keys, i)) status = set(t, &old.keys, &old.values, i);
    if (!rn_ok(status)) *t = old;
  }
  rn_tensor_clear(rn_ok(status) ? &old.keys : &keys);
  rn_tensor_clear(rn_ok(status) ? &old.values : &values);
  return status;
}

// Makes space for |more| entries.
static rn_status_t grow(lookup_dense_t* t, int64_t more) {
  int64_t buckets = t->buckets ? t->buckets : t->first_buckets;
  while ((double)(t->count + more) > (double)buckets * t->max_load)
    if (!rn_mul_i64_ok(buckets, 2, &buckets)) return rn_out_of_memory();
  return buckets == t->buckets ? RN_OK : rebucket(t, buckets);
}

static rn_status_t ready(lookup_dense_t* t) {
  if (!rn_tensor_is_set(&t->empty)) return rn_failed_precondition("Table not initialized.");
  return t->buckets ? RN_OK : rebucket(t, t->first_buckets);
}

// The number of keys: the first dimension, whatever the others are.
static rn_status_t count_keys(const lookup_dense_t* t, const rn_tensor_t* keys, int64_t* out) {
  int64_t count = keys->rank ? rn_tensor_dim(keys, 0) : 1;
  *out = count;
  if (keys->count == count * t->base.key_width) return RN_OK;
  int64_t dims[2] = {count, t->base.key_width};
  rn_shape_t wanted = {1 + t->base.key_shape.rank, dims};
  return rn_invalid_argument("Expected key shape %s got %s", rn_shape_text(wanted).text,
                             rn_text_of(keys).text);
}

static rn_status_t find(rn_lookup_table_t* table, const rn_tensor_t* keys,
                        const rn_tensor_t* fallback, rn_tensor_t* values) {
  lookup_dense_t* t = (lookup_dense_t*)table;
  bool is_one = fallback->count == table->width;
  int64_t count, place;
  RN_RETURN_IF_ERROR(ready(t));
  RN_RETURN_IF_ERROR(count_keys(t, keys, &count));
  for (int64_t i = 0; i < count; ++i) {
    RN_RETURN_IF_ERROR(check_key(t, keys, i));
    int64_t at = bucket_of(t, keys, i, &place);
    RN_RETURN_IF_ERROR(at >= 0 ? copy_value(t, &t->values, at, values, i)
                               : copy_value(t, fallback, is_one ? 0 : i, values, i));
  }
  return RN_OK;
}

static rn_status_t insert(rn_lookup_table_t* table, const rn_tensor_t* keys,
                          const rn_tensor_t* values) {
  lookup_dense_t* t = (lookup_dense_t*)table;
  int64_t count;
  RN_RETURN_IF_ERROR(ready(t));
  RN_RETURN_IF_ERROR(count_keys(t, keys, &count));
  RN_RETURN_IF_ERROR(grow(t, count));
  for (int64_t i = 0; i < count; ++i) {
    RN_RETURN_IF_ERROR(check_key(t, keys, i));
    RN_RETURN_IF_ERROR(set(t, keys, values, i));
  }
  return RN_OK;
}

static rn_status_t take_out(rn_lookup_table_t* table, const rn_tensor_t* keys) {
  lookup_dense_t* t = (lookup_dense_t*)table;
  int64_t count, place;
  RN_RETURN_IF_ERROR(ready(t));
  RN_RETURN_IF_ERROR(count_keys(t, keys, &count));
  for (int64_t i = 0; i < count; ++i) {
    RN_RETURN_IF_ERROR(check_key(t, keys, i));
    int64_t at = bucket_of(t, keys, i, &place);
    if (at < 0) continue;
    RN_RETURN_IF_ERROR(copy_key(t, &t->deleted, 0, &t->keys, at));
    --t->count;
  }
  return RN_OK;
}

static int64_t count_taken(const lookup_dense_t* t, const rn_tensor_t* keys, int64_t count) {
  int64_t taken = 0;
  for (int64_t i = 0; i < count; ++i) taken += !is_free(t, keys, i);
  return taken;
}

// Takes buckets as exported; rehashes if their number is not a valid table size.
static rn_status_t import(rn_lookup_table_t* table, const rn_tensor_t* keys,
                          const rn_tensor_t* values) {
  lookup_dense_t* t = (lookup_dense_t*)table;
  int64_t count;
  RN_RETURN_IF_ERROR(ready(t));
  rn_shape_t wanted = {2, (int64_t[]){keys->rank ? rn_tensor_dim(keys, 0) : 1, table->width}};
  if (!rn_shape_eq(wanted, rn_tensor_shape(values)))
    return rn_invalid_argument("Expected shape %s for value, got %s", rn_shape_text(wanted).text,
                               rn_text_of(values).text);
  RN_RETURN_IF_ERROR(count_keys(t, keys, &count));
  rn_tensor_clear(&t->keys);
  rn_tensor_clear(&t->values);
  t->buckets = t->count = 0;
  int64_t taken = count_taken(t, keys, count);
  if (count < 4 || (count & (count - 1)) != 0) {
    RN_RETURN_IF_ERROR(grow(t, taken));
    for (int64_t i = 0; i < count; ++i)
      if (!is_free(t, keys, i)) RN_RETURN_IF_ERROR(set(t, keys, values, i));
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(rebucket(t, count));
  for (int64_t i = 0; i < count; ++i) {
    RN_RETURN_IF_ERROR(copy_key(t, keys, i, &t->keys, i));
    RN_RETURN_IF_ERROR(copy_value(t, values, i, &t->values, i));
  }
  t->count = taken;
  return RN_OK;
}

static int64_t size(const rn_lookup_table_t* table) {
  return ((const lookup_dense_t*)table)->count;
}

static rn_status_t copy(rn_lookup_table_t* table, rn_allocator_t memory, rn_tensor_t* out_keys,
                        rn_tensor_t* out_values) {
  lookup_dense_t* t = (lookup_dense_t*)table;
  RN_RETURN_IF_ERROR(ready(t));
  RN_RETURN_IF_ERROR(rn_tensor_create(memory, table->key, rn_tensor_shape(&t->keys), out_keys));
  RN_RETURN_IF_ERROR(
      rn_tensor_create(memory, table->value, rn_tensor_shape(&t->values), out_values));
  RN_RETURN_IF_ERROR(rn_move_row(table->key, t->keys.data, out_keys->data, t->keys.count));
  return rn_move_row(table->value, t->values.data, out_values->data, t->values.count);
}

static const rn_lookup_store_t store = {.destroy = destroy,
                                        .find = find,
                                        .insert = insert,
                                        .import = import,
                                        .remove = take_out,
                                        .size = size,
                                        .copy = copy};

rn_status_t rn_lookup_dense_create(rn_allocator_t allocator, rn_str_t name, rn_dtype_t key,
                                   rn_dtype_t value, int64_t buckets, double max_load,
                                   rn_lookup_table_t** out) {
  lookup_dense_t* t = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &t));
  t->first_buckets = buckets;
  t->max_load = max_load;
  rn_status_t status = rn_lookup_table_init(&t->base, &store, allocator, name, key, value);
  if (rn_ok(status))
    *out = &t->base;
  else
    rn_object_release(&t->base.resource.object);
  return status;
}

static rn_status_t begin(lookup_dense_t* t, const rn_tensor_t* empty, const rn_tensor_t* deleted) {
  if (rn_tensor_is_set(&t->empty)) return RN_OK;
  t->base.key_width = empty->count;
  if (is_key(t, empty, 0, deleted, 0))
    return rn_invalid_argument("Empty and deleted keys cannot be equal");
  rn_tensor_clear(&t->deleted);
  RN_RETURN_IF_ERROR(rn_tensor_keep(deleted, t->base.allocator, &t->deleted));
  RN_RETURN_IF_ERROR(rn_tensor_keep(empty, t->base.allocator, &t->empty));
  t->base.key_shape = rn_tensor_shape(&t->empty);
  return RN_OK;
}

bool rn_lookup_table_is_dense(const rn_lookup_table_t* table) { return table->store == &store; }

rn_status_t rn_lookup_dense_begin(rn_lookup_table_t* table, const rn_tensor_t* empty,
                                  const rn_tensor_t* deleted) {
  if (!rn_lookup_table_is_dense(table))
    return rn_invalid_argument("The table '%.*s' is not a dense table", (int)table->name_size,
                               table->name);
  rn_mutex_lock(&table->mutex);
  rn_status_t status = begin((lookup_dense_t*)table, empty, deleted);
  rn_mutex_unlock(&table->mutex);
  return status;
}

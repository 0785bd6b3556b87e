// Tables from keys to values: see lookup_table.h.
//
// Keys and values lie in two growing tensors, entry after entry; an index by open addressing says
// where a key's entry is. A removed entry's place is taken by the last.
#include "kernels/cpu/lookup_table.h"

#include "kernels/cpu/array.h"
#include "kernels/cpu/move.h"
#include "tensor/tstring.h"

struct rn_lookup_table_t {
  rn_resource_t resource;
  rn_allocator_t allocator;
  char* name;  // Owned
  size_t name_size;
  rn_dtype_t key, value;
  bool is_fixed;
  bool has_shape;           // rn_lookup_table_set_shape was called
  rn_shape_t shape;         // of a value; Owned
  int64_t width;            // its number of elements
  rn_mutex_t mutex;         // guards what follows
  rn_tensor_t reserved[2];  // empty, deleted: keys that are refused; unset: none
  bool is_initialized;
  rn_tensor_t keys, values;  // room for |capacity| entries
  int64_t count, capacity;
  int64_t* index;  // Owned; entry + 1, 0: free; 2 * capacity of them
};

static void table_destroy(rn_object_t* object) {
  rn_lookup_table_t* table = (rn_lookup_table_t*)object;
  rn_tensor_clear(&table->keys);
  rn_tensor_clear(&table->values);
  for (int i = 0; i < 2; ++i) rn_tensor_clear(&table->reserved[i]);
  RN_FREE_ARRAY(table->allocator, (int64_t*)table->shape.dims, (size_t)table->shape.rank);
  if (table->index) RN_FREE_ARRAY(table->allocator, table->index, 2 * table->capacity);
  if (table->name) rn_free(table->allocator, table->name, table->name_size + 1);
  rn_mutex_destroy(&table->mutex);
  RN_FREE(table->allocator, table);
}

rn_status_t rn_lookup_table_create(rn_allocator_t allocator, rn_str_t name, rn_dtype_t key,
                                   rn_dtype_t value, bool is_fixed, rn_lookup_table_t** out) {
  *out = NULL;
  rn_lookup_table_t* table = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &table));
  table->resource = (rn_resource_t){.object = {.refs = 1, .destroy = table_destroy},
                                    .type = RN_LOOKUP_TABLE_TYPE};
  table->allocator = allocator;
  table->key = key;
  table->value = value;
  table->is_fixed = is_fixed;
  table->width = 1;
  table->name_size = name.size;
  rn_mutex_init(&table->mutex);
  rn_status_t status = rn_str_dup(allocator, name, &table->name);
  if (!rn_ok(status)) {
    rn_object_release(&table->resource.object);
    return status;
  }
  *out = table;
  return RN_OK;
}

rn_resource_t* rn_lookup_table_resource(rn_lookup_table_t* table) { return &table->resource; }
rn_dtype_t rn_lookup_table_key(const rn_lookup_table_t* table) { return table->key; }
rn_dtype_t rn_lookup_table_value(const rn_lookup_table_t* table) { return table->value; }
bool rn_lookup_table_is_fixed(const rn_lookup_table_t* table) { return table->is_fixed; }

rn_shape_t rn_lookup_table_shape(const rn_lookup_table_t* table) { return table->shape; }

rn_status_t rn_lookup_table_set_shape(rn_lookup_table_t* table, rn_shape_t shape) {
  int64_t count = 0, *dims = NULL;
  if (!rn_shape_is_full(shape) || !rn_shape_count(shape, &count))
    return rn_invalid_argument("The values of a table must have a shape that is known");
  rn_mutex_lock(&table->mutex);
  rn_status_t status = RN_OK;
  if (table->has_shape) {
    if (!rn_shape_eq(table->shape, shape))
      status = rn_invalid_argument("Conflicting value shapes of table '%.*s'",
                                   (int)table->name_size, table->name);
  } else {
    status = RN_NEW_ARRAY(table->allocator, (size_t)shape.rank, &dims);
    if (rn_ok(status)) {
      if (shape.rank) memcpy(dims, shape.dims, (size_t)shape.rank * sizeof *dims);
      table->shape = (rn_shape_t){shape.rank, dims};
      table->width = count;
      table->has_shape = true;
    }
  }
  rn_mutex_unlock(&table->mutex);
  return status;
}

rn_status_t rn_lookup_table_reserve(rn_lookup_table_t* table, const rn_tensor_t* empty,
                                    const rn_tensor_t* deleted) {
  const rn_tensor_t* keys[2] = {empty, deleted};
  rn_status_t status = RN_OK;
  rn_mutex_lock(&table->mutex);
  for (int i = 0; i < 2; ++i)
    if (rn_ok(status) && keys[i] && !rn_tensor_is_set(&table->reserved[i]))
      status = rn_tensor_keep(keys[i], table->allocator, &table->reserved[i]);
  rn_mutex_unlock(&table->mutex);
  return status;
}

static uint64_t hash_bytes(const char* data, size_t size) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);  // FNV-1a
  for (size_t i = 0; i < size; ++i) hash = (hash ^ (uint8_t)data[i]) * UINT64_C(0x100000001b3);
  return hash;
}

static uint64_t hash_at(const rn_tensor_t* keys, int64_t i) {
  uint64_t hash;
  if (keys->dtype == RN_STRING) {
    rn_str_t text = rn_tstring_view(&RN_DATA(keys, const rn_tstring_t)[i]);
    hash = hash_bytes(text.data, text.size);
  } else {
    hash = (uint64_t)rn_int_at(keys, i);
  }
  hash = (hash ^ hash >> 32) * UINT64_C(0x9E3779B97F4A7C15);
  return hash ^ hash >> 29;
}

static bool same(const rn_tensor_t* a, int64_t i, const rn_tensor_t* b, int64_t j) {
  if (a->dtype != RN_STRING) return rn_int_at(a, i) == rn_int_at(b, j);
  return rn_str_eq(rn_tstring_view(&RN_DATA(a, const rn_tstring_t)[i]),
                   rn_tstring_view(&RN_DATA(b, const rn_tstring_t)[j]));
}

// The slot of the index that has key |i|, or the free one where it would go.
static int64_t slot_of(const rn_lookup_table_t* table, const rn_tensor_t* keys, int64_t i) {
  int64_t mask = 2 * table->capacity - 1, at = (int64_t)(hash_at(keys, i) & (uint64_t)mask);
  while (table->index[at] && !same(&table->keys, table->index[at] - 1, keys, i))
    at = (at + 1) & mask;
  return at;
}

// The entry of key |i|; -1: there is none.
static int64_t entry_of(const rn_lookup_table_t* table, const rn_tensor_t* keys, int64_t i) {
  return table->count ? table->index[slot_of(table, keys, i)] - 1 : -1;
}

static rn_status_t larger(rn_lookup_table_t* table, rn_tensor_t* tensor, rn_dtype_t dtype,
                          int64_t capacity, int64_t width) {
  rn_tensor_t made = {0};
  int64_t total;
  if (!rn_mul_i64_ok(capacity, width, &total)) return rn_out_of_memory();
  RN_RETURN_IF_ERROR(rn_tensor_create(table->allocator, dtype, (rn_shape_t){1, &total}, &made));
  rn_status_t status =
      table->count ? rn_move_row(dtype, tensor->data, made.data, table->count * width) : RN_OK;
  if (!rn_ok(status)) {
    rn_tensor_clear(&made);
    return status;
  }
  rn_tensor_clear(tensor);
  *tensor = made;
  return RN_OK;
}

static rn_status_t grow(rn_lookup_table_t* table) {
  if (table->count < table->capacity) return RN_OK;
  int64_t capacity = table->capacity ? table->capacity * 2 : 16;
  int64_t* index = NULL;
  RN_RETURN_IF_ERROR(larger(table, &table->keys, table->key, capacity, 1));
  RN_RETURN_IF_ERROR(larger(table, &table->values, table->value, capacity, table->width));
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(table->allocator, (size_t)(2 * capacity), &index));
  if (table->index) RN_FREE_ARRAY(table->allocator, table->index, 2 * table->capacity);
  table->index = index;
  table->capacity = capacity;
  for (int64_t i = 0; i < table->count; ++i) index[slot_of(table, &table->keys, i)] = i + 1;
  return RN_OK;
}

static char* element(const rn_tensor_t* tensor, int64_t i) {
  return RN_DATA(tensor, char) + (size_t)i * rn_dtype_size(tensor->dtype);
}

// Value |i| of |tensor|, which holds values of the table.
static char* value_at(const rn_lookup_table_t* table, const rn_tensor_t* tensor, int64_t i) {
  return element(tensor, i * table->width);
}

static rn_status_t check_key(const rn_lookup_table_t* table, const rn_tensor_t* keys, int64_t i,
                             int reserved_count) {
  for (int k = 0; k < reserved_count; ++k)
    if (rn_tensor_is_set(&table->reserved[k]) && same(&table->reserved[k], 0, keys, i))
      return rn_invalid_argument("Using the %s_key as a table key is not allowed",
                                 k ? "deleted" : "empty");
  return RN_OK;
}

static rn_status_t set_locked(rn_lookup_table_t* table, const rn_tensor_t* keys,
                              const rn_tensor_t* values, int64_t i) {
  RN_RETURN_IF_ERROR(check_key(table, keys, i, 2));
  RN_RETURN_IF_ERROR(grow(table));
  int64_t slot = slot_of(table, keys, i);
  if (!table->index[slot]) {
    RN_RETURN_IF_ERROR(
        rn_move_row(table->key, element(keys, i), element(&table->keys, table->count), 1));
    table->index[slot] = ++table->count;
  }
  return rn_move_row(table->value, value_at(table, values, i),
                     value_at(table, &table->values, table->index[slot] - 1), table->width);
}

static rn_status_t uninitialized(void) { return rn_failed_precondition("Table not initialized."); }

static rn_status_t find_locked(rn_lookup_table_t* table, const rn_tensor_t* keys,
                               const rn_tensor_t* fallback, rn_tensor_t* values) {
  if (table->is_fixed && !table->is_initialized) return uninitialized();
  bool is_one = fallback->count == table->width;
  for (int64_t i = 0; i < keys->count; ++i) {
    RN_RETURN_IF_ERROR(check_key(table, keys, i, 2));
    int64_t entry = entry_of(table, keys, i);
    const char* from = entry >= 0 ? value_at(table, &table->values, entry)
                                  : value_at(table, fallback, is_one ? 0 : i);
    RN_RETURN_IF_ERROR(rn_move_row(table->value, from, value_at(table, values, i), table->width));
  }
  return RN_OK;
}

rn_status_t rn_lookup_table_find(rn_lookup_table_t* table, const rn_tensor_t* keys,
                                 const rn_tensor_t* fallback, rn_tensor_t* values) {
  rn_mutex_lock(&table->mutex);
  rn_status_t status = find_locked(table, keys, fallback, values);
  rn_mutex_unlock(&table->mutex);
  return status;
}

static void clear_locked(rn_lookup_table_t* table) {
  if (table->index) RN_FREE_ARRAY(table->allocator, table->index, 2 * table->capacity);
  rn_tensor_clear(&table->keys);
  rn_tensor_clear(&table->values);
  table->index = NULL;
  table->count = table->capacity = 0;
}

rn_status_t rn_lookup_table_insert(rn_lookup_table_t* table, const rn_tensor_t* keys,
                                   const rn_tensor_t* values, bool clears) {
  rn_status_t status = RN_OK;
  rn_mutex_lock(&table->mutex);
  if (clears) clear_locked(table);
  for (int64_t i = 0; rn_ok(status) && i < keys->count; ++i)
    status = set_locked(table, keys, values, i);
  rn_mutex_unlock(&table->mutex);
  return status;
}

static bool is_same_value(const rn_tensor_t* a, int64_t i, const rn_tensor_t* b, int64_t j) {
  if (a->dtype == RN_STRING) return same(a, i, b, j);
  return !memcmp(element(a, i), element(b, j), rn_dtype_size(a->dtype));
}

static void print_element(rn_strbuf_t* text, const rn_tensor_t* tensor, int64_t i) {
  switch (tensor->dtype) {
    case RN_STRING:
      rn_strbuf_printf(text, "%.*s",
                       RN_STR_ARGS(rn_tstring_view(&RN_DATA(tensor, const rn_tstring_t)[i])));
      break;
    case RN_FLOAT:
      rn_strbuf_printf(text, "%g", (double)RN_DATA(tensor, const float)[i]);
      break;
    case RN_DOUBLE:
      rn_strbuf_printf(text, "%g", RN_DATA(tensor, const double)[i]);
      break;
    case RN_BOOL:
      rn_strbuf_printf(text, "%d", RN_DATA(tensor, const bool)[i]);
      break;
    default:
      rn_strbuf_printf(text, "%lld", (long long)rn_int_at(tensor, i));
  }
}

// Key |i| has the value of |entry| and would get another.
static rn_status_t duplicate(const rn_lookup_table_t* table, const rn_tensor_t* keys,
                             const rn_tensor_t* values, int64_t i, int64_t entry) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, table->allocator);
  rn_strbuf_printf(&text, "HashTable has different value for same key. Key ");
  print_element(&text, keys, i);
  rn_strbuf_printf(&text, " has ");
  print_element(&text, &table->values, entry);
  rn_strbuf_printf(&text, " and trying to add value ");
  print_element(&text, values, i);
  rn_status_t status = rn_strbuf_status(&text);
  if (rn_ok(status)) status = rn_failed_precondition("%.*s", RN_STR_ARGS(rn_strbuf_view(&text)));
  rn_strbuf_clear(&text);
  return status;
}

static rn_status_t initialize_locked(rn_lookup_table_t* table, const rn_tensor_t* keys,
                                     const rn_tensor_t* values) {
  if (table->is_initialized) {
    if (table->count == keys->count) return RN_OK;
    return rn_failed_precondition(
        "Table was already initialized with different data: it has %lld entries, not %lld",
        (long long)table->count, (long long)keys->count);
  }
  for (int64_t i = 0; i < keys->count; ++i) {
    int64_t entry = entry_of(table, keys, i);
    if (entry >= 0 && !is_same_value(&table->values, entry, values, i))
      return duplicate(table, keys, values, i, entry);
    RN_RETURN_IF_ERROR(set_locked(table, keys, values, i));
  }
  table->is_initialized = true;
  return RN_OK;
}

rn_status_t rn_lookup_table_initialize(rn_lookup_table_t* table, const rn_tensor_t* keys,
                                       const rn_tensor_t* values) {
  rn_mutex_lock(&table->mutex);
  rn_status_t status = initialize_locked(table, keys, values);
  if (!rn_ok(status) && !table->is_initialized) clear_locked(table);
  rn_mutex_unlock(&table->mutex);
  return status;
}

// Takes slot |slot| out of the index: those behind it that it had pushed on move up.
static void free_slot(rn_lookup_table_t* table, int64_t slot) {
  int64_t mask = 2 * table->capacity - 1;
  table->index[slot] = 0;
  for (int64_t at = (slot + 1) & mask; table->index[at]; at = (at + 1) & mask) {
    int64_t entry = table->index[at];
    table->index[at] = 0;
    table->index[slot_of(table, &table->keys, entry - 1)] = entry;
  }
}

static rn_status_t remove_locked(rn_lookup_table_t* table, const rn_tensor_t* keys, int64_t i) {
  int64_t entry = entry_of(table, keys, i), last = table->count - 1;
  if (entry < 0) return RN_OK;
  free_slot(table, slot_of(table, keys, i));
  if (entry != last) {
    table->index[slot_of(table, &table->keys, last)] = entry + 1;
    RN_RETURN_IF_ERROR(
        rn_move_row(table->key, element(&table->keys, last), element(&table->keys, entry), 1));
    RN_RETURN_IF_ERROR(rn_move_row(table->value, value_at(table, &table->values, last),
                                   value_at(table, &table->values, entry), table->width));
  }
  --table->count;
  return RN_OK;
}

rn_status_t rn_lookup_table_remove(rn_lookup_table_t* table, const rn_tensor_t* keys) {
  rn_status_t status = RN_OK;
  rn_mutex_lock(&table->mutex);
  for (int64_t i = 0; rn_ok(status) && i < keys->count; ++i) status = remove_locked(table, keys, i);
  rn_mutex_unlock(&table->mutex);
  return status;
}

rn_status_t rn_lookup_table_size(rn_lookup_table_t* table, int64_t* out) {
  rn_mutex_lock(&table->mutex);
  *out = table->count;
  rn_mutex_unlock(&table->mutex);
  return RN_OK;
}

static rn_status_t export_one(rn_lookup_table_t* table, rn_allocator_t memory,
                              const rn_tensor_t* from, rn_dtype_t dtype, rn_shape_t shape,
                              rn_tensor_t* out) {
  int64_t dims[RN_MAX_RANK + 1] = {table->count};
  if (shape.rank) memcpy(dims + 1, shape.dims, (size_t)shape.rank * sizeof *dims);
  RN_RETURN_IF_ERROR(rn_tensor_create(memory, dtype, (rn_shape_t){shape.rank + 1, dims}, out));
  return out->count ? rn_move_row(dtype, from->data, out->data, out->count) : RN_OK;
}

rn_status_t rn_lookup_table_export(rn_lookup_table_t* table, rn_allocator_t memory,
                                   rn_tensor_t* out_keys, rn_tensor_t* out_values) {
  rn_mutex_lock(&table->mutex);
  rn_status_t status = RN_OK;
  if (table->is_fixed && !table->is_initialized)
    status = rn_aborted("HashTable is not initialized.");
  if (rn_ok(status))
    status = export_one(table, memory, &table->keys, table->key, RN_SHAPE_SCALAR, out_keys);
  if (rn_ok(status))
    status = export_one(table, memory, &table->values, table->value, table->shape, out_values);
  rn_mutex_unlock(&table->mutex);
  return status;
}

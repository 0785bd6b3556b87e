// The standard table: keys and values are stored in two growing tensors, one entry after the other;
// an open-addressing index maps keys to entries. The last entry takes the place of a removed one.
#include "kernels/cpu/array.h"
#include "kernels/cpu/lookup/store.h"
#include "kernels/cpu/move.h"
#include "tensor/tstring.h"

typedef struct lookup_entries_t {
  rn_lookup_table_t base;
  bool is_initialized;
  rn_tensor_t keys, values;  // space for |capacity| entries
  int64_t count, capacity;
  int64_t* index;  // Owned; entry + 1, or 0 if free; 2 * capacity slots
} lookup_entries_t;

static void forget(lookup_entries_t* table) {
  if (table->index) RN_FREE_ARRAY(table->base.allocator, table->index, 2 * table->capacity);
  rn_tensor_clear(&table->keys);
  rn_tensor_clear(&table->values);
  table->index = NULL;
  table->count = table->capacity = 0;
}

static void destroy(rn_lookup_table_t* base) {
  forget((lookup_entries_t*)base);
  RN_FREE(base->allocator, (lookup_entries_t*)base);
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

// The index slot of key |i|, or the free one where it belongs.
static int64_t slot_of(const lookup_entries_t* table, const rn_tensor_t* keys, int64_t i) {
  int64_t mask = 2 * table->capacity - 1, at = (int64_t)(hash_at(keys, i) & (uint64_t)mask);
  while (table->index[at] && !rn_lookup_same(&table->keys, table->index[at] - 1, keys, i))
    at = (at + 1) & mask;
  return at;
}

// The entry of key |i|; -1 if there is none.
static int64_t entry_of(const lookup_entries_t* table, const rn_tensor_t* keys, int64_t i) {
  return table->count ? table->index[slot_of(table, keys, i)] - 1 : -1;
}

static rn_status_t larger(lookup_entries_t* table, rn_tensor_t* tensor, rn_dtype_t dtype,
                          int64_t capacity, int64_t width) {
  rn_tensor_t made = {0};
  int64_t total;
  if (!rn_mul_i64_ok(capacity, width, &total)) return rn_out_of_memory();
  RN_RETURN_IF_ERROR(
      rn_tensor_create(table->base.allocator, dtype, (rn_shape_t){1, &total}, &made));
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

static rn_status_t grow(lookup_entries_t* table) {
  if (table->count < table->capacity) return RN_OK;
  int64_t capacity = table->capacity ? table->capacity * 2 : 16;
  int64_t* index = NULL;
  RN_RETURN_IF_ERROR(larger(table, &table->keys, table->base.key, capacity, 1));
  RN_RETURN_IF_ERROR(larger(table, &table->values, table->base.value, capacity, table->base.width));
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(table->base.allocator, (size_t)(2 * capacity), &index));
  if (table->index) RN_FREE_ARRAY(table->base.allocator, table->index, 2 * table->capacity);
  table->index = index;
  table->capacity = capacity;
  for (int64_t i = 0; i < table->count; ++i) index[slot_of(table, &table->keys, i)] = i + 1;
  return RN_OK;
}

// Value |i| of |tensor|, which holds values of the table.
static char* value_at(const lookup_entries_t* table, const rn_tensor_t* tensor, int64_t i) {
  return rn_lookup_element(tensor, i * table->base.width);
}

static rn_status_t set(lookup_entries_t* table, const rn_tensor_t* keys, const rn_tensor_t* values,
                       int64_t i) {
  RN_RETURN_IF_ERROR(grow(table));
  int64_t slot = slot_of(table, keys, i);
  if (!table->index[slot]) {
    RN_RETURN_IF_ERROR(rn_move_row(table->base.key, rn_lookup_element(keys, i),
                                   rn_lookup_element(&table->keys, table->count), 1));
    table->index[slot] = ++table->count;
  }
  return rn_move_row(table->base.value, value_at(table, values, i),
                     value_at(table, &table->values, table->index[slot] - 1), table->base.width);
}

static bool is_same_value(const rn_tensor_t* a, int64_t i, const rn_tensor_t* b, int64_t j) {
  if (a->dtype == RN_STRING) return rn_lookup_same(a, i, b, j);
  return !memcmp(rn_lookup_element(a, i), rn_lookup_element(b, j), rn_dtype_size(a->dtype));
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

// The error for key |i|, which has the value of |entry| and would get a different one.
static rn_status_t duplicate(const lookup_entries_t* table, const rn_tensor_t* keys,
                             const rn_tensor_t* values, int64_t i, int64_t entry) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, table->base.allocator);
  rn_strbuf_printf(&text, "HashTable has different value for same key. Key ");
  print_element(&text, keys, i);
  rn_strbuf_printf(&text, " has ");
  print_element(&text, &table->values, entry);
  rn_strbuf_printf(&text, " and trying to add value ");
  print_element(&text, values, i);
  return rn_status_from_buf(RN_CODE_FAILED_PRECONDITION, &text);
}

static rn_status_t fill(lookup_entries_t* table, const rn_tensor_t* keys,
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
    RN_RETURN_IF_ERROR(set(table, keys, values, i));
  }
  table->is_initialized = true;
  return RN_OK;
}

// Removes |slot| from the index and moves up the slots that it had displaced.
static void free_slot(lookup_entries_t* table, int64_t slot) {
  int64_t mask = 2 * table->capacity - 1;
  table->index[slot] = 0;
  for (int64_t at = (slot + 1) & mask; table->index[at]; at = (at + 1) & mask) {
    int64_t entry = table->index[at];
    table->index[at] = 0;
    table->index[slot_of(table, &table->keys, entry - 1)] = entry;
  }
}

static rn_status_t remove_one(lookup_entries_t* table, const rn_tensor_t* keys, int64_t i) {
  int64_t entry = entry_of(table, keys, i), last = table->count - 1;
  if (entry < 0) return RN_OK;
  free_slot(table, slot_of(table, keys, i));
  if (entry != last) {
    table->index[slot_of(table, &table->keys, last)] = entry + 1;
    RN_RETURN_IF_ERROR(rn_move_row(table->base.key, rn_lookup_element(&table->keys, last),
                                   rn_lookup_element(&table->keys, entry), 1));
    RN_RETURN_IF_ERROR(rn_move_row(table->base.value, value_at(table, &table->values, last),
                                   value_at(table, &table->values, entry), table->base.width));
  }
  --table->count;
  return RN_OK;
}

static rn_status_t export_one(lookup_entries_t* table, rn_allocator_t memory,
                              const rn_tensor_t* from, rn_dtype_t dtype, rn_shape_t shape,
                              rn_tensor_t* out) {
  int64_t dims[RN_MAX_RANK + 1] = {table->count};
  if (shape.rank) memcpy(dims + 1, shape.dims, (size_t)shape.rank * sizeof *dims);
  RN_RETURN_IF_ERROR(rn_tensor_create(memory, dtype, (rn_shape_t){shape.rank + 1, dims}, out));
  return out->count ? rn_move_row(dtype, from->data, out->data, out->count) : RN_OK;
}

static rn_status_t find(rn_lookup_table_t* base, const rn_tensor_t* keys,
                        const rn_tensor_t* fallback, rn_tensor_t* values) {
  lookup_entries_t* table = (lookup_entries_t*)base;
  if (base->is_fixed && !table->is_initialized)
    return rn_failed_precondition("Table not initialized.");
  bool is_one = fallback->count == base->width;
  for (int64_t i = 0; i < keys->count; ++i) {
    int64_t entry = entry_of(table, keys, i);
    const char* from = entry >= 0 ? value_at(table, &table->values, entry)
                                  : value_at(table, fallback, is_one ? 0 : i);
    RN_RETURN_IF_ERROR(rn_move_row(base->value, from, value_at(table, values, i), base->width));
  }
  return RN_OK;
}

static rn_status_t insert(rn_lookup_table_t* base, const rn_tensor_t* keys,
                          const rn_tensor_t* values) {
  for (int64_t i = 0; i < keys->count; ++i)
    RN_RETURN_IF_ERROR(set((lookup_entries_t*)base, keys, values, i));
  return RN_OK;
}

static rn_status_t import(rn_lookup_table_t* base, const rn_tensor_t* keys,
                          const rn_tensor_t* values) {
  lookup_entries_t* table = (lookup_entries_t*)base;
  if (!base->is_fixed) {
    forget(table);
    return insert(base, keys, values);
  }
  rn_status_t status = fill(table, keys, values);
  if (!rn_ok(status) && !table->is_initialized) forget(table);
  return status;
}

static rn_status_t take_out(rn_lookup_table_t* base, const rn_tensor_t* keys) {
  for (int64_t i = 0; i < keys->count; ++i)
    RN_RETURN_IF_ERROR(remove_one((lookup_entries_t*)base, keys, i));
  return RN_OK;
}

static int64_t size(const rn_lookup_table_t* base) {
  return ((const lookup_entries_t*)base)->count;
}

static rn_status_t copy(rn_lookup_table_t* base, rn_allocator_t memory, rn_tensor_t* out_keys,
                        rn_tensor_t* out_values) {
  lookup_entries_t* table = (lookup_entries_t*)base;
  if (base->is_fixed && !table->is_initialized) return rn_aborted("HashTable is not initialized.");
  RN_RETURN_IF_ERROR(export_one(table, memory, &table->keys, base->key, RN_SHAPE_SCALAR, out_keys));
  return export_one(table, memory, &table->values, base->value, base->shape, out_values);
}

static const rn_lookup_store_t store = {.destroy = destroy,
                                        .find = find,
                                        .insert = insert,
                                        .import = import,
                                        .remove = take_out,
                                        .size = size,
                                        .copy = copy};

rn_status_t rn_lookup_table_create(rn_allocator_t allocator, rn_str_t name, rn_dtype_t key,
                                   rn_dtype_t value, bool is_fixed, rn_lookup_table_t** out) {
  lookup_entries_t* table = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &table));
  rn_status_t status = rn_lookup_table_init(&table->base, &store, allocator, name, key, value);
  table->base.is_fixed = is_fixed;
  if (rn_ok(status))
    *out = &table->base;
  else
    rn_object_release(&table->base.resource.object);
  return status;
}

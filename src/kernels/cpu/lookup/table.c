// What all kinds of lookup tables share (table.h). entries.c and dense.c implement the storage.
#include "kernels/cpu/lookup/table.h"

#include "kernels/cpu/array.h"
#include "kernels/cpu/lookup/store.h"
#include "tensor/tstring.h"

static void table_destroy(rn_object_t* object) {
  rn_lookup_table_t* table = (rn_lookup_table_t*)object;
  RN_FREE_ARRAY(table->allocator, (int64_t*)table->shape.dims, (size_t)table->shape.rank);
  if (table->name) rn_free(table->allocator, table->name, table->name_size + 1);
  rn_mutex_destroy(&table->mutex);
  table->store->destroy(table);
}

rn_status_t rn_lookup_table_init(rn_lookup_table_t* table, const rn_lookup_store_t* store,
                                 rn_allocator_t allocator, rn_str_t name, rn_dtype_t key,
                                 rn_dtype_t value) {
  table->resource = (rn_resource_t){.object = {.refs = 1, .destroy = table_destroy},
                                    .type = RN_LOOKUP_TABLE_TYPE};
  table->store = store;
  table->allocator = allocator;
  table->key = key;
  table->value = value;
  table->key_width = table->width = 1;
  table->name_size = name.size;
  rn_mutex_init(&table->mutex);
  return rn_str_dup(allocator, name, &table->name);
}

rn_resource_t* rn_lookup_table_resource(rn_lookup_table_t* table) { return &table->resource; }
rn_dtype_t rn_lookup_table_key(const rn_lookup_table_t* table) { return table->key; }
rn_dtype_t rn_lookup_table_value(const rn_lookup_table_t* table) { return table->value; }
bool rn_lookup_table_is_fixed(const rn_lookup_table_t* table) { return table->is_fixed; }
rn_shape_t rn_lookup_table_key_shape(const rn_lookup_table_t* table) { return table->key_shape; }
rn_shape_t rn_lookup_table_shape(const rn_lookup_table_t* table) { return table->shape; }

rn_status_t rn_lookup_table_set_shape(rn_lookup_table_t* table, rn_shape_t shape) {
  int64_t count = 0, *dims = NULL;
  if (!rn_shape_is_full(shape) || !rn_shape_count(shape, &count))
    return rn_invalid_argument("The values of a table must have a known shape");
  rn_mutex_lock(&table->mutex);
  rn_status_t status = RN_OK;
  if (!table->has_shape) {
    status = RN_NEW_ARRAY(table->allocator, (size_t)shape.rank, &dims);
    if (rn_ok(status)) {
      if (shape.rank) memcpy(dims, shape.dims, (size_t)shape.rank * sizeof *dims);
      table->shape = (rn_shape_t){shape.rank, dims};
      table->width = count;
      table->has_shape = true;
    }
  } else if (!rn_shape_eq(table->shape, shape)) {
    status = rn_invalid_argument("Conflicting value shapes of table '%.*s'", (int)table->name_size,
                                 table->name);
  }
  rn_mutex_unlock(&table->mutex);
  return status;
}

bool rn_lookup_same(const rn_tensor_t* a, int64_t i, const rn_tensor_t* b, int64_t j) {
  if (a->dtype != RN_STRING) return rn_int_at(a, i) == rn_int_at(b, j);
  return rn_str_eq(rn_tstring_view(&RN_DATA(a, const rn_tstring_t)[i]),
                   rn_tstring_view(&RN_DATA(b, const rn_tstring_t)[j]));
}

// Calls the store with the mutex held.
#define ALONE(call)               \
  rn_mutex_lock(&table->mutex);   \
  rn_status_t status = (call);    \
  rn_mutex_unlock(&table->mutex); \
  return status

rn_status_t rn_lookup_table_find(rn_lookup_table_t* table, const rn_tensor_t* keys,
                                 const rn_tensor_t* fallback, rn_tensor_t* values) {
  ALONE(table->store->find(table, keys, fallback, values));
}
rn_status_t rn_lookup_table_insert(rn_lookup_table_t* table, const rn_tensor_t* keys,
                                   const rn_tensor_t* values) {
  ALONE(table->store->insert(table, keys, values));
}
rn_status_t rn_lookup_table_import(rn_lookup_table_t* table, const rn_tensor_t* keys,
                                   const rn_tensor_t* values) {
  ALONE(table->store->import(table, keys, values));
}
rn_status_t rn_lookup_table_remove(rn_lookup_table_t* table, const rn_tensor_t* keys) {
  ALONE(table->store->remove(table, keys));
}
rn_status_t rn_lookup_table_export(rn_lookup_table_t* table, rn_allocator_t memory,
                                   rn_tensor_t* out_keys, rn_tensor_t* out_values) {
  ALONE(table->store->copy(table, memory, out_keys, out_values));
}

int64_t rn_lookup_table_size(rn_lookup_table_t* table) {
  rn_mutex_lock(&table->mutex);
  int64_t size = table->store->size(table);
  rn_mutex_unlock(&table->mutex);
  return size;
}

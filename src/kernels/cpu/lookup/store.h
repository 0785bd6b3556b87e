// The storage interface of lookup tables, implemented by entries.c and dense.c.
#ifndef RUNNEL_KERNELS_CPU_LOOKUP_STORE_H_
#define RUNNEL_KERNELS_CPU_LOOKUP_STORE_H_

#include "kernels/cpu/lookup/table.h"

// Called with the table's mutex held. The caller has checked the types, and that there is one value
// per key.
typedef struct rn_lookup_store_t {
  void (*destroy)(rn_lookup_table_t* table);  // frees the storage and the table itself
  rn_status_t (*find)(rn_lookup_table_t* table, const rn_tensor_t* keys,
                      const rn_tensor_t* fallback, rn_tensor_t* values);
  rn_status_t (*insert)(rn_lookup_table_t* table, const rn_tensor_t* keys,
                        const rn_tensor_t* values);
  rn_status_t (*import)(rn_lookup_table_t* table, const rn_tensor_t* keys,
                        const rn_tensor_t* values);
  rn_status_t (*remove)(rn_lookup_table_t* table, const rn_tensor_t* keys);
  int64_t (*size)(const rn_lookup_table_t* table);
  rn_status_t (*copy)(rn_lookup_table_t* table, rn_allocator_t memory, rn_tensor_t* out_keys,
                      rn_tensor_t* out_values);
} rn_lookup_store_t;

struct rn_lookup_table_t {
  rn_resource_t resource;
  const rn_lookup_store_t* store;
  rn_allocator_t allocator;
  char* name;  // Owned
  size_t name_size;
  rn_dtype_t key, value;
  bool is_fixed;
  bool has_shape;        // rn_lookup_table_set_shape was called
  rn_shape_t key_shape;  // of a key; set by the store
  rn_shape_t shape;      // of a value; Owned
  int64_t key_width;     // elements per key and per value
  int64_t width;
  rn_mutex_t mutex;  // guards the storage
};

// Initializes |table|, zeroed memory of |allocator|, as a table of scalars; on failure, too,
// releasing it destroys it.
RN_MUST_USE rn_status_t rn_lookup_table_init(rn_lookup_table_t* table,
                                             const rn_lookup_store_t* store,
                                             rn_allocator_t allocator, rn_str_t name,
                                             rn_dtype_t key, rn_dtype_t value);
// Whether element |i| of |a| equals element |j| of |b|: integers or strings.
bool rn_lookup_same(const rn_tensor_t* a, int64_t i, const rn_tensor_t* b, int64_t j);
static inline char* rn_lookup_element(const rn_tensor_t* tensor, int64_t i) {
  return RN_DATA(tensor, char) + (size_t)i * rn_dtype_size(tensor->dtype);
}

#endif  // RUNNEL_KERNELS_CPU_LOOKUP_STORE_H_

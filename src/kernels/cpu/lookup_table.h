// Tables from keys to values, kept as resources: those that are filled once and those that change.
#ifndef RUNNEL_KERNELS_CPU_LOOKUP_TABLE_H_
#define RUNNEL_KERNELS_CPU_LOOKUP_TABLE_H_

#include "framework/kernel.h"

#define RN_LOOKUP_TABLE_TYPE "LookupTable"

typedef struct rn_lookup_table_t rn_lookup_table_t;

// A table of scalars. |is_fixed|: it is filled once, and found empty before that is an error.
RN_MUST_USE rn_status_t rn_lookup_table_create(rn_allocator_t allocator, rn_str_t name,
                                               rn_dtype_t key, rn_dtype_t value, bool is_fixed,
                                               rn_lookup_table_t** out);
// Before the first use: values are tensors of |shape|, which is full. A second time it must be the
// same.
RN_MUST_USE rn_status_t rn_lookup_table_set_shape(rn_lookup_table_t* table, rn_shape_t shape);
rn_shape_t rn_lookup_table_shape(const rn_lookup_table_t* table);
// Keys that stand for something else in the client's eyes and are refused: scalars of the key's
// type; NULL: none. Those that are set already stay.
RN_MUST_USE rn_status_t rn_lookup_table_reserve(rn_lookup_table_t* table, const rn_tensor_t* empty,
                                                const rn_tensor_t* deleted);
rn_resource_t* rn_lookup_table_resource(rn_lookup_table_t* table);
rn_dtype_t rn_lookup_table_key(const rn_lookup_table_t* table);
rn_dtype_t rn_lookup_table_value(const rn_lookup_table_t* table);
bool rn_lookup_table_is_fixed(const rn_lookup_table_t* table);

// Any thread may call these. Types have been checked; counts agree.
//
// |values|[i] becomes the value of |keys|[i], or the default: its only value, or its i-th.
RN_MUST_USE rn_status_t rn_lookup_table_find(rn_lookup_table_t* table, const rn_tensor_t* keys,
                                             const rn_tensor_t* fallback, rn_tensor_t* values);
// Sets values; |clears| forgets all others first.
RN_MUST_USE rn_status_t rn_lookup_table_insert(rn_lookup_table_t* table, const rn_tensor_t* keys,
                                               const rn_tensor_t* values, bool clears);
// Fills a fixed table. Filling it again with the same number of entries does nothing; a key with
// two values is an error.
RN_MUST_USE rn_status_t rn_lookup_table_initialize(rn_lookup_table_t* table,
                                                   const rn_tensor_t* keys,
                                                   const rn_tensor_t* values);
RN_MUST_USE rn_status_t rn_lookup_table_remove(rn_lookup_table_t* table, const rn_tensor_t* keys);
RN_MUST_USE rn_status_t rn_lookup_table_size(rn_lookup_table_t* table, int64_t* out);
// All entries, as new tensors.
RN_MUST_USE rn_status_t rn_lookup_table_export(rn_lookup_table_t* table, rn_allocator_t memory,
                                               rn_tensor_t* out_keys, rn_tensor_t* out_values);

#endif  // RUNNEL_KERNELS_CPU_LOOKUP_TABLE_H_

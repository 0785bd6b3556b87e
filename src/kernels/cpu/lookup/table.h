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
// The dense kind: keys and values lie in buckets, |buckets| at first, which is a power of two, and
// twice as many when more than |max_load| of them are taken; those that are free or free again are
// told by two keys that nothing else may have. What is exported and imported are the buckets.
RN_MUST_USE rn_status_t rn_lookup_dense_create(rn_allocator_t allocator, rn_str_t name,
                                               rn_dtype_t key, rn_dtype_t value, int64_t buckets,
                                               double max_load, rn_lookup_table_t** out);
// The two keys of a dense table, scalars or vectors of one shape, before anything else is done with
// it. Those that it has already stay. INVALID_ARGUMENT if |table| is of the other kind.
RN_MUST_USE rn_status_t rn_lookup_dense_begin(rn_lookup_table_t* table, const rn_tensor_t* empty,
                                              const rn_tensor_t* deleted);

// Before the first use: values are tensors of |shape|, which is full. A second time it must be the
// same.
RN_MUST_USE rn_status_t rn_lookup_table_set_shape(rn_lookup_table_t* table, rn_shape_t shape);
rn_shape_t rn_lookup_table_key_shape(const rn_lookup_table_t* table);
rn_shape_t rn_lookup_table_shape(const rn_lookup_table_t* table);  // of a value
rn_resource_t* rn_lookup_table_resource(rn_lookup_table_t* table);
rn_dtype_t rn_lookup_table_key(const rn_lookup_table_t* table);
rn_dtype_t rn_lookup_table_value(const rn_lookup_table_t* table);
bool rn_lookup_table_is_fixed(const rn_lookup_table_t* table);
bool rn_lookup_table_is_dense(const rn_lookup_table_t* table);

// Any thread may call these. Types have been checked; counts agree.
//
// |values|[i] becomes the value of |keys|[i], or the default: its only value, or its i-th.
RN_MUST_USE rn_status_t rn_lookup_table_find(rn_lookup_table_t* table, const rn_tensor_t* keys,
                                             const rn_tensor_t* fallback, rn_tensor_t* values);
RN_MUST_USE rn_status_t rn_lookup_table_insert(rn_lookup_table_t* table, const rn_tensor_t* keys,
                                               const rn_tensor_t* values);
// Forgets everything; then has what was exported. Fills a fixed table: doing that again with the
// same number of entries does nothing; a key with two values is an error.
RN_MUST_USE rn_status_t rn_lookup_table_import(rn_lookup_table_t* table, const rn_tensor_t* keys,
                                               const rn_tensor_t* values);
RN_MUST_USE rn_status_t rn_lookup_table_remove(rn_lookup_table_t* table, const rn_tensor_t* keys);
int64_t rn_lookup_table_size(rn_lookup_table_t* table);
// All that there is, as new tensors.
RN_MUST_USE rn_status_t rn_lookup_table_export(rn_lookup_table_t* table, rn_allocator_t memory,
                                               rn_tensor_t* out_keys, rn_tensor_t* out_values);

#endif  // RUNNEL_KERNELS_CPU_LOOKUP_TABLE_H_

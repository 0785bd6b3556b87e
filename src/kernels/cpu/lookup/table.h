// Lookup tables as resources: those filled once and mutable ones.
#ifndef RUNNEL_KERNELS_CPU_LOOKUP_TABLE_H_
#define RUNNEL_KERNELS_CPU_LOOKUP_TABLE_H_

#include "framework/kernel.h"

#define RN_LOOKUP_TABLE_TYPE "LookupTable"

typedef struct rn_lookup_table_t rn_lookup_table_t;

// A table of scalars. With |is_fixed| it is filled once, and using it before that is an error.
RN_MUST_USE rn_status_t rn_lookup_table_create(rn_allocator_t allocator, rn_str_t name,
                                               rn_dtype_t key, rn_dtype_t value, bool is_fixed,
                                               rn_lookup_table_t** out);
// A dense table: keys and values are stored in buckets. It starts with |buckets|, a power of two,
// and doubles when more than |max_load| of them are used. Two reserved keys mark empty and deleted
// buckets. Export and import work on the buckets.
RN_MUST_USE rn_status_t rn_lookup_dense_create(rn_allocator_t allocator, rn_str_t name,
                                               rn_dtype_t key, rn_dtype_t value, int64_t buckets,
                                               double max_load, rn_lookup_table_t** out);
// Sets the two reserved keys of a dense table, scalars or vectors of one shape, before any other
// use. Keys that are already set stay. INVALID_ARGUMENT if |table| is not dense.
RN_MUST_USE rn_status_t rn_lookup_dense_begin(rn_lookup_table_t* table, const rn_tensor_t* empty,
                                              const rn_tensor_t* deleted);

// Called before the first use: values are tensors of |shape|, which is fully defined. Later calls
// must pass the same shape.
RN_MUST_USE rn_status_t rn_lookup_table_set_shape(rn_lookup_table_t* table, rn_shape_t shape);
rn_shape_t rn_lookup_table_key_shape(const rn_lookup_table_t* table);
rn_shape_t rn_lookup_table_shape(const rn_lookup_table_t* table);  // of a value
rn_resource_t* rn_lookup_table_resource(rn_lookup_table_t* table);
rn_dtype_t rn_lookup_table_key(const rn_lookup_table_t* table);
rn_dtype_t rn_lookup_table_value(const rn_lookup_table_t* table);
bool rn_lookup_table_is_fixed(const rn_lookup_table_t* table);
bool rn_lookup_table_is_dense(const rn_lookup_table_t* table);

// These may be called from any thread. The caller has checked types and counts.
//
// |values|[i] becomes the value of |keys|[i], or the default: its only value, or its i-th.
RN_MUST_USE rn_status_t rn_lookup_table_find(rn_lookup_table_t* table, const rn_tensor_t* keys,
                                             const rn_tensor_t* fallback, rn_tensor_t* values);
RN_MUST_USE rn_status_t rn_lookup_table_insert(rn_lookup_table_t* table, const rn_tensor_t* keys,
                                               const rn_tensor_t* values);
// Replaces the content by exported entries. Fills a fixed table: repeating that with the same
// number of entries does nothing; a key with two values is an error.
RN_MUST_USE rn_status_t rn_lookup_table_import(rn_lookup_table_t* table, const rn_tensor_t* keys,
                                               const rn_tensor_t* values);
RN_MUST_USE rn_status_t rn_lookup_table_remove(rn_lookup_table_t* table, const rn_tensor_t* keys);
int64_t rn_lookup_table_size(rn_lookup_table_t* table);
// All entries, as new tensors.
RN_MUST_USE rn_status_t rn_lookup_table_export(rn_lookup_table_t* table, rn_allocator_t memory,
                                               rn_tensor_t* out_keys, rn_tensor_t* out_values);

// How a text file becomes entries: columns that are keys and values, or one of these.
enum { RN_LOOKUP_WHOLE_LINE = -2, RN_LOOKUP_LINE_NUMBER = -1 };
typedef struct rn_lookup_file_t {
  int64_t key, value;
  int64_t lines;   // RN_UNKNOWN for all
  int64_t offset;  // of line numbers
  char delimiter;
} rn_lookup_file_t;
// Fills a fixed table from the lines of the file |name|.
RN_MUST_USE rn_status_t rn_lookup_table_fill(rn_kernel_ctx_t* ctx, rn_lookup_table_t* table,
                                             const rn_lookup_file_t* format, rn_str_t name);

#endif  // RUNNEL_KERNELS_CPU_LOOKUP_TABLE_H_

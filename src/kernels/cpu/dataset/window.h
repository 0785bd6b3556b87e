// Rows of elements in memory, and datasets of them.
#ifndef RUNNEL_KERNELS_CPU_DATASET_WINDOW_H_
#define RUNNEL_KERNELS_CPU_DATASET_WINDOW_H_

#include "base/vec.h"
#include "kernels/cpu/dataset/data.h"

typedef struct rn_data_rows_t {
  rn_allocator_t allocator;
  int32_t component_count;
  RN_VEC(rn_tensor_t*) list;  // Owned rows
} rn_data_rows_t;

// Moves |row| in.
RN_MUST_USE rn_status_t rn_data_rows_push(rn_data_rows_t* rows, rn_tensor_t* row);
void rn_data_rows_drop(rn_data_rows_t* rows, size_t count);  // from the front
void rn_data_rows_clear(rn_data_rows_t* rows);
void rn_data_rows_save(const rn_data_rows_t* rows, rn_data_writer_t* writer);
RN_MUST_USE rn_status_t rn_data_rows_restore(rn_data_rows_t* rows, rn_data_reader_t* reader,
                                             const rn_dtype_t* types, rn_tensor_t* scratch);

// A dataset of |count| shared rows: |component_count| components from |first| on, whose types
// |like| has there. The caller owns it.
RN_MUST_USE rn_status_t rn_data_rows_dataset(const rn_dataset_t* like, int32_t first,
                                             int32_t component_count, rn_tensor_t* const* rows,
                                             int64_t count, rn_dataset_t** out);

// The element signature of a dataset in a saved state. The caller initializes and clears its arena.
typedef struct rn_data_elements_t {
  rn_arena_t arena;
  int32_t count;
  rn_dtype_t* types;
  rn_shape_t* shapes;
} rn_data_elements_t;
void rn_data_elements_put(rn_data_writer_t* writer, const rn_dataset_t* dataset);
RN_MUST_USE rn_status_t rn_data_elements_take(rn_data_reader_t* reader, rn_data_elements_t* out);

// The dataset of rows in the scalar |tensor|, borrowed; NULL if it is not one. The others write it
// to a saved state and read it back.
const rn_dataset_t* rn_data_rows_of(const rn_tensor_t* tensor);
void rn_data_rows_put(rn_data_writer_t* writer, const rn_dataset_t* rows);
RN_MUST_USE rn_status_t rn_data_rows_take(rn_data_reader_t* reader, rn_tensor_t* out);

#endif  // RUNNEL_KERNELS_CPU_DATASET_WINDOW_H_

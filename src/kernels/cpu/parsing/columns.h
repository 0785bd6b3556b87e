// Columns: the features that ParseExample and related ops extract, and the tensors they become.
//
// A column is one key in one form. Found features are stored in a table of rows (messages) by
// columns. Columns are measured together, given outputs, and filled row by row by several threads.
#ifndef RUNNEL_KERNELS_CPU_PARSING_COLUMNS_H_
#define RUNNEL_KERNELS_CPU_PARSING_COLUMNS_H_

#include "kernels/cpu/parsing/example.h"

typedef enum rn_column_form_t {
  RN_COLUMN_SPARSE,  // indices, values, shape
  RN_COLUMN_DENSE,   // the same shape for all rows
  RN_COLUMN_PADDED,  // as long as the longest row, padded with the default
  RN_COLUMN_RAGGED,  // values, row splits
} rn_column_form_t;

typedef struct rn_column_t {
  rn_str_t key;
  rn_column_form_t form;
  rn_dtype_t dtype;
  rn_shape_t shape;             // dense forms: of one row; the first dim is unknown if padded
  int64_t size;                 // dense: values per row; padded: values per stride
  const rn_tensor_t* fallback;  // dense forms; empty if the feature is required
  rn_dtype_t split_type;        // ragged
  int out[3];                   // output indices, in the order above
  // Set by rn_columns_measure:
  int64_t total;   // values in all rows
  int64_t widest;  // values in the longest row
  rn_tensor_t* to[3];
} rn_column_t;

// Sets shape, size and fallback of the |i|-th dense column, and whether it is padded.
// INVALID_ARGUMENT, with stock's message, if shape and default are incompatible.
RN_MUST_USE rn_status_t rn_column_set_dense(rn_column_t* column, int i, rn_shape_t shape,
                                            const rn_tensor_t* fallback);

typedef struct rn_columns_t {
  rn_column_t* list;  // Borrowed
  int32_t count;
  int64_t rows;
  bool is_scalar;       // one row; outputs lack the row dimension
  rn_feature_t* found;  // [rows, count], with counts set
} rn_columns_t;

// Adds up what was found, allocates each column's outputs, and assigns each feature's values their
// place.
RN_MUST_USE rn_status_t rn_columns_measure(rn_columns_t* columns, rn_kernel_ctx_t* ctx);
// Writes the outputs with several threads. |bytes| is the size of the input, for splitting the
// work.
RN_MUST_USE rn_status_t rn_columns_fill(rn_columns_t* columns, rn_kernel_ctx_t* ctx, size_t bytes);

// Whether all output shapes are known in advance: then columns can be measured before anything is
// parsed and filled row by row.
bool rn_columns_are_fixed(const rn_columns_t* columns);
bool rn_columns_fill_row(const rn_columns_t* columns, int64_t row);  // false if out of memory

// Strings come from the C library's heap and return to it with the step. If they are at its end,
// the heap releases the pages each time, and the next step faults them in again. Allocating and
// freeing a block of their size makes the heap keep that much.
void rn_columns_keep_heap(const rn_columns_t* columns, size_t bytes);

// Rows per piece of work, given the total bytes of all rows.
int64_t rn_columns_grain(int64_t rows, size_t bytes);
// Writes |count| copies of a scalar value; false if out of memory.
bool rn_column_repeat(const rn_tensor_t* value, int64_t count, void* out);

#endif  // RUNNEL_KERNELS_CPU_PARSING_COLUMNS_H_

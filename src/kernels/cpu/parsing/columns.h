// Columns: what ParseExample and its kin are asked for, and the tensors that they become.
//
// A column is one key in one form. Found features stand in a table of rows (messages) by columns;
// columns are measured together, given outputs, and filled row by row, by several threads.
#ifndef RUNNEL_KERNELS_CPU_PARSING_COLUMNS_H_
#define RUNNEL_KERNELS_CPU_PARSING_COLUMNS_H_

#include "kernels/cpu/parsing/example.h"

typedef enum rn_column_form_t {
  RN_COLUMN_SPARSE,  // indices, values, shape
  RN_COLUMN_DENSE,   // one shape for all
  RN_COLUMN_PADDED,  // as long as the longest, filled up with the default
  RN_COLUMN_RAGGED,  // values, row splits
} rn_column_form_t;

typedef struct rn_column_t {
  rn_str_t key;
  rn_column_form_t form;
  rn_dtype_t dtype;
  rn_shape_t shape;             // dense forms: of one row; the first is unknown if padded
  int64_t size;                 // dense: values of a row; padded: of one stride
  const rn_tensor_t* fallback;  // dense forms; empty: the feature must be there
  rn_dtype_t split_type;        // ragged
  int out[3];                   // numbers of the outputs, in the order above
  // Set by rn_columns_measure:
  int64_t total;   // values of all rows
  int64_t widest;  // values of the longest row
  rn_tensor_t* to[3];
} rn_column_t;

// Sets shape, size and fallback of a dense column, the |i|-th of them, and whether it is padded.
// INVALID_ARGUMENT, with stock's words, if shape and default do not go together.
RN_MUST_USE rn_status_t rn_column_set_dense(rn_column_t* column, int i, rn_shape_t shape,
                                            const rn_tensor_t* fallback);

typedef struct rn_columns_t {
  rn_column_t* list;  // Borrowed
  int32_t count;
  int64_t rows;
  bool is_scalar;       // one row, and outputs without the dimension of rows
  rn_feature_t* found;  // [rows, count], features counted
} rn_columns_t;

// Adds up what was found, gives each column its outputs, and says where each feature's values go.
RN_MUST_USE rn_status_t rn_columns_measure(rn_columns_t* columns, rn_kernel_ctx_t* ctx);
// Writes the outputs, by several threads. |bytes| is how much there is to read, for the cut.
RN_MUST_USE rn_status_t rn_columns_fill(rn_columns_t* columns, rn_kernel_ctx_t* ctx, size_t bytes);

// Whether no output's shape depends on what is found: such columns may be measured before anything
// was, and filled row by row.
bool rn_columns_are_fixed(const rn_columns_t* columns);
bool rn_columns_fill_row(const rn_columns_t* columns, int64_t row);  // false: no memory

// The bytes of strings come from the C library's heap and go back to it with the step. When they
// lie at its end, it gives the pages back each time and has them faulted in again by the next step.
// A block of their size, taken and freed, makes it keep that much instead.
void rn_columns_keep_heap(const rn_columns_t* columns, size_t bytes);

// Rows that one thread takes at a time, when a row has so many bytes on average.
int64_t rn_columns_grain(int64_t rows, size_t bytes);
// |count| copies of a scalar value; false when memory is short.
bool rn_column_repeat(const rn_tensor_t* value, int64_t count, void* out);

#endif  // RUNNEL_KERNELS_CPU_PARSING_COLUMNS_H_

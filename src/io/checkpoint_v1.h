// Checkpoints in the V1 format: tables (table.h) that hold the tensors themselves.
//
//   ""    a SavedTensorSlices whose meta lists name, shape, type and slices of every tensor
//   key   (rn_slice_key of name and slice) a SavedTensorSlices whose data has the values, in a
//         TensorProto without type and shape: packed typed lists
//
// A tensor may be spread over several files, each with its own list; a pattern matches them all.
// The writer holds values in memory until the file is written, since keys must ascend.
#ifndef RUNNEL_IO_CHECKPOINT_V1_H_
#define RUNNEL_IO_CHECKPOINT_V1_H_

#include "base/fs.h"
#include "io/slice.h"
#include "tensor/tensor.h"

typedef struct rn_v1_tensor_t {
  rn_str_t name;  // NUL-terminated
  rn_dtype_t dtype;
  rn_shape_t shape;
} rn_v1_tensor_t;

// Reading. A reader is immutable; any number of threads may use it.
typedef struct rn_v1_reader_t rn_v1_reader_t;

// Opens all files that match |pattern|; NOT_FOUND if there are none, DATA_LOSS if one is damaged or
// not a table.
RN_MUST_USE rn_status_t rn_v1_reader_open(const rn_env_t* env, const char* pattern,
                                          rn_v1_reader_t** out);
void rn_v1_reader_close(rn_v1_reader_t* reader);  // NULL is fine
// The tensors, in the order of their names. Borrowed from the reader.
size_t rn_v1_count(const rn_v1_reader_t* reader);
const rn_v1_tensor_t* rn_v1_tensor(const rn_v1_reader_t* reader, size_t i);
const rn_v1_tensor_t* rn_v1_find(const rn_v1_reader_t* reader, rn_str_t name);  // or NULL
// Reads |slice| of the tensor (NULL for all of it) into |out|, a new tensor from |allocator|.
// INVALID_ARGUMENT if the stored slices do not cover it.
RN_MUST_USE rn_status_t rn_v1_read(const rn_v1_reader_t* reader, const rn_v1_tensor_t* tensor,
                                   const rn_slice_t* slice, rn_allocator_t allocator,
                                   rn_tensor_t* out);

// Writing. One thread.
typedef struct rn_v1_writer_t rn_v1_writer_t;

RN_MUST_USE rn_status_t rn_v1_writer_create(const rn_env_t* env, const char* path,
                                            rn_v1_writer_t** out);
void rn_v1_writer_destroy(rn_v1_writer_t* writer);  // NULL is fine
// Adds |tensor| as |slice| of the tensor |name| of |shape|. Fails with TensorFlow's message for
// types that the format has no list for.
RN_MUST_USE rn_status_t rn_v1_writer_add(rn_v1_writer_t* writer, rn_str_t name, rn_shape_t shape,
                                         rn_slice_t slice, const rn_tensor_t* tensor);
// Writes the file atomically: readers see the complete old or new file, also after a crash.
RN_MUST_USE rn_status_t rn_v1_writer_finish(rn_v1_writer_t* writer);

#endif  // RUNNEL_IO_CHECKPOINT_V1_H_

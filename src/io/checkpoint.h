// A checkpoint of either format, for whoever only wants tensors by name.
#ifndef RUNNEL_IO_CHECKPOINT_H_
#define RUNNEL_IO_CHECKPOINT_H_

#include "io/bundle.h"
#include "io/checkpoint_v1.h"

// Does not change after it was opened; any number of threads may use it.
typedef struct rn_checkpoint_t rn_checkpoint_t;

typedef struct rn_checkpoint_tensor_t {
  rn_str_t name;  // NUL-terminated
  rn_dtype_t dtype;
  rn_shape_t shape;
} rn_checkpoint_tensor_t;

// Opens the checkpoint under |prefix|, or else the files of the first format that match it.
// NOT_FOUND if there are neither, DATA_LOSS if it is damaged.
RN_MUST_USE rn_status_t rn_checkpoint_open(const rn_env_t* env, const char* prefix,
                                           rn_checkpoint_t** out);
void rn_checkpoint_close(rn_checkpoint_t* checkpoint);  // NULL is fine
// The bundle, or NULL if it is of the first format. Borrowed.
rn_bundle_reader_t* rn_checkpoint_bundle(const rn_checkpoint_t* checkpoint);

// The tensors in the order of their names; lent by the checkpoint.
size_t rn_checkpoint_count(const rn_checkpoint_t* checkpoint);
rn_checkpoint_tensor_t rn_checkpoint_tensor(const rn_checkpoint_t* checkpoint, size_t i);
// False if there is no tensor |name|.
bool rn_checkpoint_find(const rn_checkpoint_t* checkpoint, rn_str_t name,
                        rn_checkpoint_tensor_t* out);
// A new tensor with the values of |name|; NOT_FOUND in TensorFlow's words. |pool| may be NULL.
RN_MUST_USE rn_status_t rn_checkpoint_read(const rn_checkpoint_t* checkpoint, rn_str_t name,
                                           rn_pool_t* pool, rn_allocator_t allocator,
                                           rn_tensor_t* out);
// Reads everything and compares checksums. |*out_bytes| counts what was read.
RN_MUST_USE rn_status_t rn_checkpoint_verify(const rn_checkpoint_t* checkpoint, rn_pool_t* pool,
                                             int64_t* out_bytes);
// The same step by step, for whoever shows how far it is: |*inout_at| begins with 0.
RN_MUST_USE rn_status_t rn_checkpoint_verify_next(const rn_checkpoint_t* checkpoint,
                                                  rn_pool_t* pool, size_t* inout_at,
                                                  int64_t* inout_bytes, bool* out_is_over);

#endif  // RUNNEL_IO_CHECKPOINT_H_

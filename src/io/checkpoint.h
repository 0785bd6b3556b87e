// Reads tensors by name from a checkpoint of either format.
#ifndef RUNNEL_IO_CHECKPOINT_H_
#define RUNNEL_IO_CHECKPOINT_H_

#include "io/bundle.h"
#include "io/checkpoint_v1.h"

// Immutable; any number of threads may use it.
typedef struct rn_checkpoint_t rn_checkpoint_t;

typedef struct rn_checkpoint_tensor_t {
  rn_str_t name;  // NUL-terminated
  rn_dtype_t dtype;
  rn_shape_t shape;
} rn_checkpoint_tensor_t;

// Opens the checkpoint under |prefix|, or else the V1 files that match it. NOT_FOUND if there are
// neither, DATA_LOSS if it is damaged.
RN_MUST_USE rn_status_t rn_checkpoint_open(const rn_env_t* env, const char* prefix,
                                           rn_checkpoint_t** out);
void rn_checkpoint_close(rn_checkpoint_t* checkpoint);  // NULL is fine
// The bundle, or NULL for a V1 checkpoint. Borrowed.
rn_bundle_reader_t* rn_checkpoint_bundle(const rn_checkpoint_t* checkpoint);

// The tensors, sorted by name. Borrowed from the checkpoint.
size_t rn_checkpoint_count(const rn_checkpoint_t* checkpoint);
rn_checkpoint_tensor_t rn_checkpoint_tensor(const rn_checkpoint_t* checkpoint, size_t i);
// False if there is no tensor |name|.
bool rn_checkpoint_find(const rn_checkpoint_t* checkpoint, rn_str_t name,
                        rn_checkpoint_tensor_t* out);
// Makes a tensor with the values of |name|. NOT_FOUND, with TensorFlow's message, if there is none.
// |pool| may be NULL.
RN_MUST_USE rn_status_t rn_checkpoint_read(const rn_checkpoint_t* checkpoint, rn_str_t name,
                                           rn_pool_t* pool, rn_allocator_t allocator,
                                           rn_tensor_t* out);
// Reads everything and verifies checksums. |*out_bytes| gets the number of bytes read.
RN_MUST_USE rn_status_t rn_checkpoint_verify(const rn_checkpoint_t* checkpoint, rn_pool_t* pool,
                                             int64_t* out_bytes);
// The same one entry at a time, for callers that show progress; |*inout_at| starts at 0.
RN_MUST_USE rn_status_t rn_checkpoint_verify_next(const rn_checkpoint_t* checkpoint,
                                                  rn_pool_t* pool, size_t* inout_at,
                                                  int64_t* inout_bytes, bool* out_is_over);

#endif  // RUNNEL_IO_CHECKPOINT_H_

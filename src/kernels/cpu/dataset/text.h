// Strings without copies: data read from files goes into batches as it is.
//
// Such a string is a scalar tensor whose bytes lie in the tensor's own buffer, in the device's
// memory instead of the C library's heap. A tensor of several strings retains the buffers of those
// put into it. To all other code both are ordinary string tensors, whose elements have the form
// VIEW.
#ifndef RUNNEL_KERNELS_CPU_DATASET_TEXT_H_
#define RUNNEL_KERNELS_CPU_DATASET_TEXT_H_

#include "tensor/tensor.h"
#include "tensor/tstring.h"

// A scalar that holds a copy of |text|.
RN_MUST_USE rn_status_t rn_data_text_create(rn_allocator_t memory, rn_str_t text, rn_tensor_t* out);
// The same in a chunk of memory that many strings share, |*inout_chunk|, which is created or
// replaced as needed and belongs to the caller. Use it for strings with similar lifetimes: each
// retains the whole chunk.
typedef struct rn_data_chunk_t rn_data_chunk_t;
RN_MUST_USE rn_status_t rn_data_text_create_in(rn_data_chunk_t** inout_chunk, rn_allocator_t memory,
                                               rn_str_t text, rn_tensor_t* out);
void rn_data_chunk_release(rn_data_chunk_t* chunk);  // NULL is fine
// A scalar view of |text|, which lies in |block|. The tensor borrows |*string|, which must stay
// valid until rn_data_texts_put copies it and retains the block.
void rn_data_text_view(rn_buffer_t* block, rn_str_t text, rn_tstring_t* string, rn_tensor_t* out);
// A tensor of empty strings to put strings into.
RN_MUST_USE rn_status_t rn_data_texts_create(rn_allocator_t memory, rn_shape_t shape,
                                             rn_tensor_t* out);
// Puts the strings of |element| into |texts| from index |place| on: moved or shared where possible,
// copied otherwise.
RN_MUST_USE rn_status_t rn_data_texts_put(rn_tensor_t* texts, int64_t place, rn_tensor_t* element);
// Moves the first |count| strings of |from| to |to|, with the buffers they need;
// rn_data_texts_create made both.
void rn_data_texts_move(rn_tensor_t* from, rn_tensor_t* to, int64_t count);

#endif  // RUNNEL_KERNELS_CPU_DATASET_TEXT_H_

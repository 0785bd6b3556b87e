// Texts without copies: what is read from files goes into batches as it stands.
//
// A text of this kind is a tensor of one string whose bytes lie in the tensor's own buffer, from
// the device's memory instead of the C library's heap. A tensor of several keeps the buffers of
// those that were put into it. To everybody else both are ordinary string tensors, whose elements
// are of the form VIEW.
#ifndef RUNNEL_KERNELS_CPU_DATASET_TEXT_H_
#define RUNNEL_KERNELS_CPU_DATASET_TEXT_H_

#include "tensor/tensor.h"
#include "tensor/tstring.h"

// A scalar of a copy of |text|.
RN_MUST_USE rn_status_t rn_data_text_create(rn_allocator_t memory, rn_str_t text, rn_tensor_t* out);
// The same in a piece of memory that many texts share, |*inout_chunk|, which is made or replaced as
// needed and belongs to the caller. For texts that live about equally long: each holds all of it.
typedef struct rn_data_chunk_t rn_data_chunk_t;
RN_MUST_USE rn_status_t rn_data_text_create_in(rn_data_chunk_t** inout_chunk, rn_allocator_t memory,
                                               rn_str_t text, rn_tensor_t* out);
void rn_data_chunk_release(rn_data_chunk_t* chunk);  // NULL is fine
// A scalar of |text|, which lies in |block| and stays there. The tensor borrows |*string|, which
// must stay until it has been put into texts: rn_data_texts_put keeps the block and copies it.
void rn_data_text_view(rn_buffer_t* block, rn_str_t text, rn_tstring_t* string, rn_tensor_t* out);
// A tensor of empty strings that texts can be put into.
RN_MUST_USE rn_status_t rn_data_texts_create(rn_allocator_t memory, rn_shape_t shape,
                                             rn_tensor_t* out);
// The strings of |element| become those of |texts| from |place| on; they are moved or shared where
// that can be, copied otherwise.
RN_MUST_USE rn_status_t rn_data_texts_put(rn_tensor_t* texts, int64_t place, rn_tensor_t* element);
// The first |count| strings of |from| become those of |to|, with what they need; both are made by
// rn_data_texts_create.
void rn_data_texts_move(rn_tensor_t* from, rn_tensor_t* to, int64_t count);

#endif  // RUNNEL_KERNELS_CPU_DATASET_TEXT_H_

// TensorProtos in messages: large tensors are sent from their own buffers, and received ones stay
// in the message's buffer.
#ifndef RUNNEL_NET_TENSOR_CODEC_H_
#define RUNNEL_NET_TENSOR_CODEC_H_

#include "net/message.h"
#include "tensor/tensor_proto.h"

// A message under construction. The first failure is kept, so one check at the end suffices.
typedef struct rn_encoder_t {
  rn_message_t* message;
  rn_strbuf_t head;  // bytes that are not in the message yet
  rn_status_t status;
} rn_encoder_t;
void rn_encoder_open(rn_encoder_t* encoder, rn_message_t* message);
// Moves the rest into the message; returns the first failure.
RN_MUST_USE rn_status_t rn_encoder_close(rn_encoder_t* encoder);
// Writes a TensorProto as field |number|.
void rn_encode_tensor(rn_encoder_t* encoder, uint32_t number, const rn_tensor_t* tensor);
// Writes a NamedTensorProto, or an entry of a map<string, TensorProto>, as field |number|. |form|
// is CONTENT or TYPED: packed lists of floats are as quick as bytes, those of integers are not.
void rn_encode_named_tensor(rn_encoder_t* encoder, uint32_t number, rn_str_t name,
                            const rn_tensor_t* tensor, rn_tensor_form_t form);
// Writes the elements of a tensor of a plain type as a bytes field.
void rn_encode_bytes(rn_encoder_t* encoder, uint32_t number, const rn_tensor_t* tensor);

// Decodes a TensorProto. The tensor may share |buffer|, which holds the bytes; NULL: it must copy.
// |max_bytes| limits tensors that are larger than their message, as in rn_tensor_from_proto.
#define RN_TENSOR_ANY_SIZE (SIZE_MAX / 4)
RN_MUST_USE rn_status_t rn_decode_tensor(rn_str_t bytes, rn_buffer_t* buffer, size_t max_bytes,
                                         rn_allocator_t allocator, rn_tensor_t* out);

// The offset of the first tensor's content in a message, if it is large: an rn_align_fn_t.
size_t rn_align_content(rn_str_t head, size_t size);

#endif  // RUNNEL_NET_TENSOR_CODEC_H_

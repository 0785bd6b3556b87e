// Converts resource and variant tensors to and from messages. Private to tensor_proto.c and
// object_proto.c.
#ifndef RUNNEL_TENSOR_OBJECT_PROTO_H_
#define RUNNEL_TENSOR_OBJECT_PROTO_H_

#include "tensor/tensor_proto.h"

// Fills in the elements of |tensor|, whose type and shape are set.
RN_MUST_USE rn_status_t rn_objects_from_proto(const rn_pb_TensorProto_t* proto, size_t max_bytes,
                                              rn_allocator_t allocator, rn_tensor_t* tensor);
// Writes the elements as a typed list or as content.
RN_MUST_USE rn_status_t rn_objects_to_proto(const rn_tensor_t* tensor, bool is_content,
                                            rn_arena_t* arena, rn_pb_TensorProto_t* out);

// In tensor_proto.c: makes the error "Cannot parse tensor from proto: …".
RN_MUST_USE rn_status_t rn_tensor_proto_error(const rn_pb_TensorProto_t* proto);
// Splits the content of |count| elements that are not plain: all lengths as varints, then all
// bytes. False if malformed.
bool rn_tensor_content_split(rn_str_t content, size_t count, rn_str_t* items);

#endif  // RUNNEL_TENSOR_OBJECT_PROTO_H_

// Resource and variant tensors to and from messages: the part of tensor_proto.c that knows objects.
// For these two files only.
#ifndef RUNNEL_TENSOR_OBJECT_PROTO_H_
#define RUNNEL_TENSOR_OBJECT_PROTO_H_

#include "tensor/tensor_proto.h"

// |tensor| has type and shape, and becomes whole.
RN_MUST_USE rn_status_t rn_objects_from_proto(const rn_pb_TensorProto_t* proto, size_t max_bytes,
                                              rn_allocator_t allocator, rn_tensor_t* tensor);
// As a typed list, or as content.
RN_MUST_USE rn_status_t rn_objects_to_proto(const rn_tensor_t* tensor, bool is_content,
                                            rn_arena_t* arena, rn_pb_TensorProto_t* out);

// Of tensor_proto.c: "Cannot parse tensor from proto: …".
RN_MUST_USE rn_status_t rn_tensor_proto_error(const rn_pb_TensorProto_t* proto);
// Content of |count| elements that are not plain: all lengths as varints, then all bytes. False if
// it is not that.
bool rn_tensor_content_split(rn_str_t content, size_t count, rn_str_t* items);

#endif  // RUNNEL_TENSOR_OBJECT_PROTO_H_

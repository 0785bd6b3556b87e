// Converts tensors, shapes and handles to and from messages.
#ifndef RUNNEL_TENSOR_TENSOR_PROTO_H_
#define RUNNEL_TENSOR_TENSOR_PROTO_H_

#include "proto/resource_handle.pb.h"
#include "proto/tensor.pb.h"
#include "proto/tensor_shape.pb.h"
#include "tensor/handle.h"
#include "tensor/tensor.h"

// Reads a partial shape; its dims are in |arena|. INVALID_ARGUMENT, with TensorFlow's message, if
// there are too many dims, one is below -1, the number of elements overflows, or an unknown rank
// has dims.
RN_MUST_USE rn_status_t rn_shape_from_proto(const rn_pb_TensorShapeProto_t* proto,
                                            rn_arena_t* arena, rn_shape_t* out);
// Overwrites |*out|; its dims are in |arena|.
RN_MUST_USE rn_status_t rn_shape_to_proto(rn_shape_t shape, rn_arena_t* arena,
                                          rn_pb_TensorShapeProto_t* out);

// |*out| borrows the handle's strings; the rest is in |arena|.
RN_MUST_USE rn_status_t rn_handle_to_proto(const rn_handle_t* handle, rn_arena_t* arena,
                                           rn_pb_ResourceHandleProto_t* out);
// Makes a handle without a resource.
RN_MUST_USE rn_status_t rn_handle_from_proto(const rn_pb_ResourceHandleProto_t* proto,
                                             rn_allocator_t allocator, rn_handle_t** out);

// Makes a tensor with a buffer from |allocator|. Values come from tensor_content, which must have
// exactly the bytes of the shape, or else from the typed list: its last value repeats to fill the
// shape (zeros if it is empty), and surplus values are ignored. Nothing is allocated before the
// sizes are known; a tensor of more than |max_bytes| (elements and the bytes of strings) is
// RESOURCE_EXHAUSTED, since a message of a few bytes can ask for any size. Bytes of the message are
// copied. Handles come without their resources (tensor/handle.h); variants of kinds that
// tensor/variant.h does not list are UNIMPLEMENTED.
RN_MUST_USE rn_status_t rn_tensor_from_proto(const rn_pb_TensorProto_t* proto, size_t max_bytes,
                                             rn_allocator_t allocator, rn_tensor_t* out);

typedef enum rn_tensor_form_t {
  RN_TENSOR_AUTO,     // typed list for strings and for one element, else bytes: as in attributes
  RN_TENSOR_CONTENT,  // bytes
  RN_TENSOR_TYPED,    // typed list
} rn_tensor_form_t;

// Fills in |*out|, which borrows the tensor's bytes where possible; the rest is in |arena|.
// References, and variants of kinds without messages, are UNIMPLEMENTED.
RN_MUST_USE rn_status_t rn_tensor_to_proto(const rn_tensor_t* tensor, rn_tensor_form_t form,
                                           rn_arena_t* arena, rn_pb_TensorProto_t* out);

// The same as bytes: appends the message to |out|.
RN_MUST_USE rn_status_t rn_tensor_put_proto(const rn_tensor_t* tensor, rn_tensor_form_t form,
                                            rn_strbuf_t* out);
// Makes a tensor of the bytes of a message, as rn_tensor_from_proto.
RN_MUST_USE rn_status_t rn_tensor_take_proto(rn_str_t bytes, size_t max_bytes,
                                             rn_allocator_t allocator, rn_tensor_t* out);

#endif  // RUNNEL_TENSOR_TENSOR_PROTO_H_

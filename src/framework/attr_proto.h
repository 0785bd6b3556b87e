// Converts attribute values to and from messages.
#ifndef RUNNEL_FRAMEWORK_ATTR_PROTO_H_
#define RUNNEL_FRAMEWORK_ATTR_PROTO_H_

#include "framework/attr.h"
#include "proto/attr_value.pb.h"

// |*out| is in |arena| and keeps no pointer into the message. Tensor buffers come from the arena's
// allocator, take at most |max_bytes| each, and are released with rn_attr_value_clear. An empty
// list has kind RN_ATTR_INT; the attributes of a function are sorted by name. Types and names are
// not checked. INVALID_ARGUMENT, with |*out| zeroed, for a message without a value, a list of mixed
// kinds, and invalid shapes or tensors.
RN_MUST_USE rn_status_t rn_attr_value_from_proto(const rn_pb_AttrValue_t* proto, size_t max_bytes,
                                                 rn_arena_t* arena, rn_attr_value_t* out);

// |*out| borrows from |value| and |arena|.
RN_MUST_USE rn_status_t rn_attr_value_to_proto(const rn_attr_value_t* value, rn_arena_t* arena,
                                               rn_pb_AttrValue_t* out);

#endif  // RUNNEL_FRAMEWORK_ATTR_PROTO_H_

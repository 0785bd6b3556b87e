// Attribute values to and from their messages.
#ifndef RUNNEL_FRAMEWORK_ATTR_PROTO_H_
#define RUNNEL_FRAMEWORK_ATTR_PROTO_H_

#include "framework/attr.h"
#include "proto/attr_value.pb.h"

// |*out| lies in |arena| and keeps no pointer into the message. Buffers of tensors come from the
// arena's allocator and are released with rn_attr_value_clear; each tensor may have |max_bytes| at
// most. A list with no element has kind RN_ATTR_INT; the attributes of a function come by ascending
// name. Types and names are taken as they are. INVALID_ARGUMENT, with |*out| zeroed, for a message
// with no value, for a list of mixed kinds, and for what shapes and tensors refuse.
RN_MUST_USE rn_status_t rn_attr_value_from_proto(const rn_pb_AttrValue_t* proto, size_t max_bytes,
                                                 rn_arena_t* arena, rn_attr_value_t* out);

// |*out| borrows from |value| and |arena|.
RN_MUST_USE rn_status_t rn_attr_value_to_proto(const rn_attr_value_t* value, rn_arena_t* arena,
                                               rn_pb_AttrValue_t* out);

#endif  // RUNNEL_FRAMEWORK_ATTR_PROTO_H_

// Decodes bytes into a message. Checks every limit before it allocates memory.
//
// doc/invariants.md: invariant 12.
#ifndef RUNNEL_WIRE_DECODE_H_
#define RUNNEL_WIRE_DECODE_H_

#include "wire/message.h"

// Limits on what a message may cost. A zero field means its default; NULL limits mean all defaults.
typedef struct rn_pb_limits_t {
  uint32_t max_depth;      // of nested messages; default RN_PB_DEFAULT_DEPTH
  size_t max_bytes;        // of the whole message; default 2 GiB - 1, the format's own limit
  size_t max_arena_bytes;  // for the result; default 16 MiB plus 64 per byte of input
  // If false, strings and bytes point into the input, which must outlive the message. If true, they
  // point into a copy of the input in the arena.
  bool copy_bytes;
} rn_pb_limits_t;

// |limits| for an input of |size| bytes, with every default filled in.
rn_pb_limits_t rn_pb_limits_fill(const rn_pb_limits_t* limits, size_t size);

// Decodes |bytes| into a new message of type |desc| in |arena|. Skips unknown fields and known ones
// of another wire type. For a repeated singular field, the last scalar wins and messages are
// merged. Strings need not be UTF-8. On failure |*out_message| is NULL and the arena may hold
// leftovers: INVALID_ARGUMENT with the offset for malformed bytes or nesting beyond the limit,
// RESOURCE_EXHAUSTED beyond a size limit.
RN_MUST_USE rn_status_t rn_pb_decode(const rn_pb_message_desc_t* desc, rn_str_t bytes,
                                     const rn_pb_limits_t* limits, rn_arena_t* arena,
                                     void** out_message);

// RN_PB_DECODE(GraphDef, bytes, limits, arena, &graph) with `rn_pb_GraphDef_t* graph`.
#define RN_PB_DECODE(type, bytes, limits, arena, out)            \
  rn_pb_decode(&rn_pb_##type##_desc, (bytes), (limits), (arena), \
               (void**)(1 ? (out) : (rn_pb_##type##_t**)NULL))

#endif  // RUNNEL_WIRE_DECODE_H_

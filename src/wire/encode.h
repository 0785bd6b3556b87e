// Encodes a message: fields by ascending number, zeros omitted, as in proto3.
#ifndef RUNNEL_WIRE_ENCODE_H_
#define RUNNEL_WIRE_ENCODE_H_

#include "wire/message.h"

typedef struct rn_pb_encode_options_t {
  // Sort map entries by key and write each key once, so equal messages give equal bytes. Otherwise
  // entries are written in the order they are in.
  bool sort_maps;
} rn_pb_encode_options_t;

// Appends |message|, a struct of type |desc|, to |out|. |options| may be NULL. On failure |out| has
// its old size.
RN_MUST_USE rn_status_t rn_pb_encode(const rn_pb_message_desc_t* desc, const void* message,
                                     const rn_pb_encode_options_t* options, rn_strbuf_t* out);

// RN_PB_ENCODE(GraphDef, graph, options, out) with `rn_pb_GraphDef_t* graph`.
#define RN_PB_ENCODE(type, message, options, out) \
  rn_pb_encode(&rn_pb_##type##_desc, 1 ? (message) : (rn_pb_##type##_t*)NULL, (options), (out))

#endif  // RUNNEL_WIRE_ENCODE_H_

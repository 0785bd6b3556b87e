// Protocol-buffer messages as JSON, with the names of the .proto files. Enums are names, map
// entries are in the order of their keys, wrappers are what they wrap, and infinite numbers are
// strings.
#ifndef RUNNEL_SERVE_FRONT_JSON_PROTO_H_
#define RUNNEL_SERVE_FRONT_JSON_PROTO_H_

#include "wire/message.h"

typedef enum rn_json_form_t {
  // As protobuf prints them with defaults: one field per line, indented by one per level; 64-bit
  // integers are strings, bytes base64; messages, optional fields and oneofs only if they are set.
  RN_JSON_LINES,
  // On one line, with every field; 64-bit integers are numbers, and bytes are strings.
  RN_JSON_COMPACT,
} rn_json_form_t;

// Appends |message|, a struct of type |desc|. INVALID_ARGUMENT if it is nested too deeply.
RN_MUST_USE rn_status_t rn_json_put_message(rn_strbuf_t* out, const rn_pb_message_desc_t* desc,
                                            const void* message, rn_json_form_t form);

#endif  // RUNNEL_SERVE_FRONT_JSON_PROTO_H_

// Protocol-buffer messages as JSON, as protobuf prints them with the names of the .proto files and
// with fields that have their defaults.
#ifndef RUNNEL_SERVE_FRONT_JSON_PROTO_H_
#define RUNNEL_SERVE_FRONT_JSON_PROTO_H_

#include "wire/message.h"

// Appends |message|, a struct of type |desc|: one field per line, indented by one per level, below
// |indent| levels. 64-bit integers and infinite numbers are strings, bytes base64, enums names;
// map entries are in the order of their keys, and wrappers are what they wrap. INVALID_ARGUMENT if
// it is nested too deeply.
RN_MUST_USE rn_status_t rn_json_put_message(rn_strbuf_t* out, const rn_pb_message_desc_t* desc,
                                            const void* message, int indent);

#endif  // RUNNEL_SERVE_FRONT_JSON_PROTO_H_

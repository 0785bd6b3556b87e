// Prints and parses the text format of messages.
#ifndef RUNNEL_WIRE_TEXT_H_
#define RUNNEL_WIRE_TEXT_H_

#include "wire/decode.h"
#include "wire/message.h"

// Appends |message|, a struct of type |desc|, to |out|: one field per line, indented by two, fields
// by ascending number, map entries by ascending key, enums by name. On failure |out| has its old
// size.
RN_MUST_USE rn_status_t rn_pb_print(const rn_pb_message_desc_t* desc, const void* message,
                                    rn_strbuf_t* out);
// The same on one line: `name: "x" attr { key: "T" value { type: DT_FLOAT } }`.
RN_MUST_USE rn_status_t rn_pb_print_short(const rn_pb_message_desc_t* desc, const void* message,
                                          rn_strbuf_t* out);

// Parses |text| into a new message of type |desc| in |arena|, which keeps no pointer into |text|.
// Reads fields with `{}` or `<>`, lists `[a, b]`, adjacent strings, escapes, `#` comments, enums by
// name or number, decimal, hexadecimal and octal integers, inf and nan. An unknown field is an
// error. On failure |*out_message| is NULL and the status gives line:column.
RN_MUST_USE rn_status_t rn_pb_parse(const rn_pb_message_desc_t* desc, rn_str_t text,
                                    const rn_pb_limits_t* limits, rn_arena_t* arena,
                                    void** out_message);

// Appends |text| to |out| with the multi-line strings of ApiDef files converted: `field: <<END` and
// the lines up to one that starts with END become quoted strings, one per line, so that line
// numbers do not change.
RN_MUST_USE rn_status_t rn_pb_text_from_multiline(rn_str_t text, rn_strbuf_t* out);

#endif  // RUNNEL_WIRE_TEXT_H_

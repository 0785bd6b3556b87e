// Fields of messages described by a descriptor: a FileDescriptorSet given as bytes or in a file, or
// one of the messages built into the library.
#ifndef RUNNEL_KERNELS_CPU_PARSING_PROTO_FIELDS_H_
#define RUNNEL_KERNELS_CPU_PARSING_PROTO_FIELDS_H_

#include "framework/kernel.h"
#include "wire/message.h"
#include "wire/scan.h"

#define RN_PROTO_GROUP 10  // the type of a group in a descriptor

typedef struct rn_proto_field_t {
  uint32_t number;
  uint8_t type;  // rn_pb_type_t, or RN_PROTO_GROUP
  uint8_t wire;  // wire type of one element
  bool is_repeated, is_packed;
  int32_t place;      // index among the requested names
  uint64_t fallback;  // default of a single number: an integer, or the bits of a double
  rn_str_t text;      // default of a string
} rn_proto_field_t;

typedef struct rn_proto_fields_t {
  rn_arena_t arena;  // holds the rest
  rn_proto_field_t* items;
  int32_t count;
  rn_str_t message;       // its full name
  const rn_str_t* names;  // as requested
  rn_str_t set;           // the FileDescriptorSet; empty if |table| describes the message
  bool is_text;           // messages are in text format
  const rn_pb_message_desc_t* table;  // see rn_proto_fields_table
} rn_proto_fields_t;

// Finds the fields |names| of |message|, in that order. |source| is "" or "local://", "bytes://"
// followed by a serialized FileDescriptorSet, or the path of a file with one. |out| must be
// cleared, even after a failure.
RN_MUST_USE rn_status_t rn_proto_fields_find(const rn_kernel_init_t* init, rn_str_t source,
                                             rn_str_t message, const rn_str_t* names, int32_t count,
                                             rn_proto_fields_t* out);
void rn_proto_fields_clear(rn_proto_fields_t* fields);
// Whether the field can be converted from and to |dtype|.
bool rn_proto_field_fits(const rn_proto_field_t* field, rn_dtype_t dtype);
const char* rn_proto_field_type_name(const rn_proto_field_t* field);  // "int32": the C++ name

// Creates |fields->table|, which tells how to parse and encode the message, if it does not exist. A
// group in it is a message whose wire type is RN_PB_WIRE_GROUP.
RN_MUST_USE rn_status_t rn_proto_fields_table(rn_proto_fields_t* fields);

// Reads serialized descriptors. Field |number| of a message as a string, empty if absent; or as a
// number, if present.
rn_str_t rn_proto_text_in(rn_str_t bytes, uint32_t number);
bool rn_proto_number_in(rn_str_t bytes, uint32_t number, uint64_t* out);
// Finds the message or enum |name|, with its package, and its file.
bool rn_proto_find_type(rn_str_t set, rn_str_t name, bool wants_enum, rn_str_t* out,
                        rn_str_t* out_file);
// Like rn_pb_scan_next, and reads groups, too: their bytes include both tags. A tag that ends a
// group outside of one is malformed.
bool rn_proto_scan_next(rn_pb_scan_t* scan, rn_pb_field_t* out);
uint8_t rn_proto_wire_of(uint8_t type);  // RN_PB_WIRE_GROUP if there is no such type

#endif  // RUNNEL_KERNELS_CPU_PARSING_PROTO_FIELDS_H_

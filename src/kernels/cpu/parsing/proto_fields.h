// Fields of messages that a descriptor describes: a FileDescriptorSet in bytes or in a file, or one
// of the messages that the library itself knows.
#ifndef RUNNEL_KERNELS_CPU_PARSING_PROTO_FIELDS_H_
#define RUNNEL_KERNELS_CPU_PARSING_PROTO_FIELDS_H_

#include "framework/kernel.h"
#include "wire/message.h"

typedef struct rn_proto_field_t {
  uint32_t number;
  uint8_t type;  // rn_pb_type_t, or 10 for a group
  uint8_t wire;  // of one element
  bool is_repeated, is_packed;
  int32_t place;      // among the names that were asked for
  uint64_t fallback;  // what a single number is when it is absent: an integer, or bits of a double
  rn_str_t text;      // the same of a string
} rn_proto_field_t;

typedef struct rn_proto_fields_t {
  rn_arena_t arena;  // what the rest is made of
  rn_proto_field_t* items;
  int32_t count;
  rn_str_t message;                   // its full name
  const rn_str_t* names;              // as asked for
  rn_str_t set;                       // the FileDescriptorSet; empty: |table| describes the message
  bool is_text;                       // messages come in text form
  const rn_pb_message_desc_t* table;  // see rn_proto_fields_table
} rn_proto_fields_t;

// The fields |names| of |message| by |source|: "" or "local://", "bytes://" and a serialized
// FileDescriptorSet, or the path of a file with one. In the order of |names|. |out| must be
// cleared, also after a failure.
RN_MUST_USE rn_status_t rn_proto_fields_find(const rn_kernel_init_t* init, rn_str_t source,
                                             rn_str_t message, const rn_str_t* names, int32_t count,
                                             rn_proto_fields_t* out);
void rn_proto_fields_clear(rn_proto_fields_t* fields);
// Whether values of |dtype| may go into and come out of the field.
bool rn_proto_field_fits(const rn_proto_field_t* field, rn_dtype_t dtype);
const char* rn_proto_field_type_name(const rn_proto_field_t* field);  // "int32": as C++ has it

// Makes |fields->table|, which says how the message is parsed and encoded, if it is not there yet.
// Fields of groups are not in it.
RN_MUST_USE rn_status_t rn_proto_fields_table(rn_proto_fields_t* fields);

// Descriptors in their bytes. Field |number| of a message: its text, empty if it has none; its
// number, if it has one.
rn_str_t rn_proto_text_in(rn_str_t bytes, uint32_t number);
bool rn_proto_number_in(rn_str_t bytes, uint32_t number, uint64_t* out);
// The message or enum |name|, with its package, and the file that it is in.
bool rn_proto_find_type(rn_str_t set, rn_str_t name, bool wants_enum, rn_str_t* out,
                        rn_str_t* out_file);
uint8_t rn_proto_wire_of(uint8_t type);  // RN_PB_WIRE_GROUP if there is no such type

#endif  // RUNNEL_KERNELS_CPU_PARSING_PROTO_FIELDS_H_

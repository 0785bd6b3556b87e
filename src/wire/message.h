// Messages: tables that describe the layout of a protocol-buffer message in a C struct.
//
// tools/protogen turns proto/*.proto into plain structs and one constant table per message;
// decoding, encoding and the text format all use these tables. In a generated struct
//   - a scalar or enum is a value (an enum is an int32_t: messages may hold any number);
//   - a string or bytes field is a rn_str_t, {NULL, 0} when absent;
//   - a message is a pointer, NULL when absent;
//   - a repeated field is {items, count, capacity}; |items| holds messages by value;
//   - a map is a repeated field of {key, value} structs, in the order of the input. A repeated
//     key is kept, and its last entry counts: see rn_pb_map_unique. A message value of a
//     decoded or parsed map is never NULL;
//   - a oneof is a union behind `int32_t <name>_case`, the number of the field that is set or 0;
//   - an `optional` scalar has a `bool has_<name>` beside it.
// A zeroed struct is the empty message. Structs own nothing: what they point to is in an arena, in
// the bytes they were decoded from, or wherever the code that filled them put it.
#ifndef RUNNEL_WIRE_MESSAGE_H_
#define RUNNEL_WIRE_MESSAGE_H_

#include "base/arena.h"
#include "base/str.h"

// Wire types.
enum {
  RN_PB_WIRE_VARINT = 0,
  RN_PB_WIRE_64 = 1,
  RN_PB_WIRE_LENGTH = 2,
  RN_PB_WIRE_GROUP = 3,
  RN_PB_WIRE_END_GROUP = 4,
  RN_PB_WIRE_32 = 5,
};

// X(enumerator, number in descriptor.proto, word in .proto files, C type, wire type)
#define RN_PB_TYPES(X)                                          \
  X(DOUBLE, 1, "double", double, RN_PB_WIRE_64)                 \
  X(FLOAT, 2, "float", float, RN_PB_WIRE_32)                    \
  X(INT64, 3, "int64", int64_t, RN_PB_WIRE_VARINT)              \
  X(UINT64, 4, "uint64", uint64_t, RN_PB_WIRE_VARINT)           \
  X(INT32, 5, "int32", int32_t, RN_PB_WIRE_VARINT)              \
  X(FIXED64, 6, "fixed64", uint64_t, RN_PB_WIRE_64)             \
  X(FIXED32, 7, "fixed32", uint32_t, RN_PB_WIRE_32)             \
  X(BOOL, 8, "bool", bool, RN_PB_WIRE_VARINT)                   \
  X(STRING, 9, "string", rn_str_t, RN_PB_WIRE_LENGTH)           \
  X(MESSAGE, 11, "message", rn_pb_message_t, RN_PB_WIRE_LENGTH) \
  X(BYTES, 12, "bytes", rn_str_t, RN_PB_WIRE_LENGTH)            \
  X(UINT32, 13, "uint32", uint32_t, RN_PB_WIRE_VARINT)          \
  X(ENUM, 14, "enum", int32_t, RN_PB_WIRE_VARINT)               \
  X(SFIXED32, 15, "sfixed32", int32_t, RN_PB_WIRE_32)           \
  X(SFIXED64, 16, "sfixed64", int64_t, RN_PB_WIRE_64)           \
  X(SINT32, 17, "sint32", int32_t, RN_PB_WIRE_VARINT)           \
  X(SINT64, 18, "sint64", int64_t, RN_PB_WIRE_VARINT)

typedef enum rn_pb_type_t {
#define RN_PB_TYPE_ENUM(enumerator, number, word, ctype, wire) RN_PB_##enumerator = number,
  RN_PB_TYPES(RN_PB_TYPE_ENUM)
#undef RN_PB_TYPE_ENUM
} rn_pb_type_t;

// Generic views of the fields of a generated struct. The generated types differ only in the type
// that they point to, hence may_alias.
typedef void* __attribute__((may_alias)) rn_pb_message_t;
typedef struct __attribute__((may_alias)) rn_pb_list_t {
  void* items;
  uint32_t count;
  uint32_t
      capacity;  // allocated elements of |items|; used by decoder and parser, may otherwise be 0
} rn_pb_list_t;

#define RN_PB_LIST(type) \
  struct {               \
    type* items;         \
    uint32_t count;      \
    uint32_t capacity;   \
  }

enum {
  RN_PB_REPEATED = 1,
  RN_PB_PACKED = 2,     // encoded packed; either form is decoded
  RN_PB_MAP = 4,        // repeated, and |sub| is a map entry
  RN_PB_ONEOF = 8,      // |presence| is the offset of the int32_t case
  RN_PB_OPTIONAL = 16,  // |presence| is the offset of a bool
};

typedef struct rn_pb_enum_value_t {
  const char* name;
  int32_t number;
} rn_pb_enum_value_t;

typedef struct rn_pb_enum_desc_t {
  const char* name;  // full: "tensorflow.DataType"
  const rn_pb_enum_value_t* values;
  size_t count;
} rn_pb_enum_desc_t;

typedef struct rn_pb_field_desc_t {
  const char* name;
  const void* sub;  // rn_pb_message_desc_t of a MESSAGE, rn_pb_enum_desc_t of an ENUM
  uint32_t number;
  uint16_t offset;
  uint16_t presence;
  uint8_t type;  // rn_pb_type_t
  uint8_t wire;  // of one element
  uint8_t
      size;  // bytes of one element; if 0, |sub|->size (in a list) or a pointer (single message)
  uint8_t flags;
} rn_pb_field_desc_t;

typedef struct rn_pb_message_desc_t {
  const char* name;                  // full: "tensorflow.GraphDef"
  const rn_pb_field_desc_t* fields;  // by ascending number
  const uint8_t* index;              // field number -> index into |fields| + 1; 0 if none
  uint16_t field_count;
  uint16_t index_size;  // higher numbers are searched for in |fields|
  uint32_t size;        // of the struct
  bool is_map_entry;    // fields are key = 1, value = 2, both always written
} rn_pb_message_desc_t;

// A .proto file as reflection gives it to clients.
typedef struct rn_pb_file_desc_t {
  const char* name;      // "serving_predict.proto"
  const uint8_t* bytes;  // |size| bytes: a serialized FileDescriptorProto
  size_t size;
  const int16_t* imports;    // indices in the list of files, then -1
  const char* const* names;  // full names of its messages, enums, services and methods, then NULL
} rn_pb_file_desc_t;

// Upper bound on nesting, whatever the caller allows: decoder, encoder and text format recurse.
#define RN_PB_MAX_DEPTH 1000
// Default limit on nesting, that of other implementations.
#define RN_PB_DEFAULT_DEPTH 100

// The field by its number or name; NULL if the message has none.
const rn_pb_field_desc_t* rn_pb_find_field(const rn_pb_message_desc_t* desc, uint32_t number);
const rn_pb_field_desc_t* rn_pb_find_field_by_name(const rn_pb_message_desc_t* desc, rn_str_t name);

// A message of any type, as bytes; the text format prints its content.
#define RN_PB_ANY "google.protobuf.Any"
// The message that |url| ("type.googleapis.com/tensorflow.GraphDef") names; NULL if there is none.
const rn_pb_message_desc_t* rn_pb_find_by_url(rn_str_t url);

// The name of |number|, the first one if there are several; NULL if there is none.
const char* rn_pb_enum_name(const rn_pb_enum_desc_t* desc, int32_t number);
bool rn_pb_enum_number(const rn_pb_enum_desc_t* desc, rn_str_t name, int32_t* out_number);

// Bytes of one element of |field|.
static inline size_t rn_pb_element_size(const rn_pb_field_desc_t* field) {
  return field->size ? field->size : ((const rn_pb_message_desc_t*)field->sub)->size;
}

// Whether the field is set: a proto3 scalar if it is not zero (-0.0 counts as set), a list if it is
// not empty, any other field if present.
bool rn_pb_is_set(const rn_pb_field_desc_t* field, const void* message);

// The entries of the map |list| (a field whose entry type is |entry|) by ascending key; of repeated
// keys, only the later entry. |*out_entries| is an array of |*out_count| pointers in |arena|.
RN_MUST_USE rn_status_t rn_pb_map_sorted(const rn_pb_message_desc_t* entry,
                                         const rn_pb_list_t* list, rn_arena_t* arena,
                                         const void*** out_entries, size_t* out_count);

// Removes entries whose key occurs again later; the others keep their order. |scratch| is used for
// long maps only.
RN_MUST_USE rn_status_t rn_pb_map_unique(const rn_pb_message_desc_t* entry, rn_pb_list_t* list,
                                         rn_arena_t* scratch);

#endif  // RUNNEL_WIRE_MESSAGE_H_

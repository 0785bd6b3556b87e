// Message tables for a FileDescriptorSet, in the format of wire/message.h: structs that no program
// declares, laid out here. What is parsed into them is encoded again at once.
//
//   DescriptorProto      options 7: map_entry 7
//   FieldDescriptorProto oneof_index 9, proto3_optional 17
#include <stdlib.h>

#include "kernels/cpu/parsing/proto_fields.h"
#include "wire/scan.h"

#define MAX_TYPES 4096
#define MAX_DEPTH 100  // nesting of types

// A table that exists or is being built: messages may contain themselves.
typedef struct made_t {
  rn_str_t name;
  rn_pb_message_desc_t* table;
} made_t;

typedef struct proto_tables_maker_t {
  rn_arena_t* arena;
  rn_str_t set;
  made_t* made;
  size_t count;
  int depth;
} proto_tables_maker_t;

static rn_status_t text_of(proto_tables_maker_t* maker, rn_str_t text, const char** out) {
  rn_str_t kept;
  RN_RETURN_IF_ERROR(rn_arena_str(maker->arena, text, &kept));
  *out = kept.data;
  return RN_OK;
}

static size_t count_in(rn_str_t bytes, uint32_t number) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  size_t count = 0;
  while (rn_pb_scan_next(&scan, &field))
    count += field.number == number && field.wire == RN_PB_WIRE_LENGTH;
  return count;
}

static rn_status_t make_enum(proto_tables_maker_t* maker, rn_str_t name, const void** out) {
  rn_str_t bytes = RN_STR(""), file;
  rn_pb_enum_desc_t* table = NULL;
  rn_pb_enum_value_t* values = NULL;
  (void)rn_proto_find_type(maker->set, name, true, &bytes, &file);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(maker->arena, 1, &table));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(maker->arena, count_in(bytes, 2), &values));
  RN_RETURN_IF_ERROR(text_of(maker, name, &table->name));
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t value;
  while (rn_pb_scan_next(&scan, &value)) {
    if (value.number != 2 || value.wire != RN_PB_WIRE_LENGTH) continue;
    uint64_t number = 0;
    (void)rn_proto_number_in(value.bytes, 2, &number);
    values[table->count].number = (int32_t)number;
    RN_RETURN_IF_ERROR(
        text_of(maker, rn_proto_text_in(value.bytes, 1), &values[table->count].name));
    table->count++;
  }
  table->values = values;
  *out = table;
  return RN_OK;
}

static size_t size_of(uint8_t type) {
  switch (type) {
#define SIZE(enumerator, number, word, ctype, wire) \
  case number:                                      \
    return sizeof(ctype);
    RN_PB_TYPES(SIZE)
#undef SIZE
    default:
      return 0;
  }
}

static rn_status_t make_message(proto_tables_maker_t* maker, rn_str_t name,
                                rn_pb_message_desc_t** out);

// Reserves |size| bytes at the end of a struct.
static bool place(uint32_t* at, size_t size, uint16_t* out) {
  size_t align = size > 8 ? 8 : size;
  size_t from = (*at + align - 1) / align * align;
  if (from + size > UINT16_MAX) return false;
  *out = (uint16_t)from;
  *at = (uint32_t)(from + size);
  return true;
}

// Whether a single value of zero differs from an absent one.
static bool has_presence(rn_str_t bytes, rn_str_t file) {
  uint64_t value = 0;
  rn_str_t syntax = rn_proto_text_in(file, 12);
  return !syntax.size || rn_str_is(syntax, "proto2") || rn_proto_number_in(bytes, 9, &value) ||
         rn_proto_number_in(bytes, 17, &value);
}

static rn_status_t make_field(proto_tables_maker_t* maker, rn_str_t bytes, rn_str_t file,
                              rn_pb_message_desc_t* table, rn_pb_field_desc_t* out) {
  uint64_t number = 0, label = 1, type = 0, packed = 0;
  (void)rn_proto_number_in(bytes, 3, &number);
  (void)rn_proto_number_in(bytes, 4, &label);
  (void)rn_proto_number_in(bytes, 5, &type);
  rn_str_t syntax = rn_proto_text_in(file, 12), sub = rn_proto_text_in(bytes, 6);
  out->number = (uint32_t)number;
  bool is_group = type == RN_PROTO_GROUP;
  out->type = is_group ? RN_PB_MESSAGE : type <= 18 ? (uint8_t)type : 0;
  out->wire = is_group ? RN_PB_WIRE_GROUP : rn_proto_wire_of(out->type);
  if (!size_of(out->type) || number == 0 || number > UINT32_MAX >> 3) return RN_OK;
  RN_RETURN_IF_ERROR(text_of(maker, rn_proto_text_in(bytes, 1), &out->name));
  bool is_message = out->type == RN_PB_MESSAGE;
  size_t size = size_of(out->type);
  if (label == 3) {
    out->flags = RN_PB_REPEATED;
    bool is_packed = rn_proto_number_in(rn_proto_text_in(bytes, 8), 2, &packed)
                         ? packed != 0
                         : syntax.size && !rn_str_is(syntax, "proto2");
    if (is_packed && !is_message && out->wire != RN_PB_WIRE_LENGTH) out->flags |= RN_PB_PACKED;
  } else if (!is_message && has_presence(bytes, file)) {
    out->flags = RN_PB_OPTIONAL;
  }
  out->size = is_message && label == 3 ? 0 : (uint8_t)size;
  bool fits = place(&table->size, label == 3 ? sizeof(rn_pb_list_t) : size, &out->offset);
  if (fits && out->flags & RN_PB_OPTIONAL) fits = place(&table->size, sizeof(bool), &out->presence);
  if (!fits) return rn_unimplemented("A message has too many fields: %s", table->name);
  if (out->type == RN_PB_ENUM) return make_enum(maker, sub, &out->sub);
  if (!is_message) return RN_OK;
  rn_pb_message_desc_t* inner = NULL;
  RN_RETURN_IF_ERROR(make_message(maker, sub, &inner));
  out->sub = inner;
  if (inner->is_map_entry && label == 3) out->flags |= RN_PB_MAP;
  return RN_OK;
}

static int by_number(const void* a, const void* b) {
  uint32_t x = ((const rn_pb_field_desc_t*)a)->number, y = ((const rn_pb_field_desc_t*)b)->number;
  return x < y ? -1 : x > y;
}

static rn_status_t fill_message(proto_tables_maker_t* maker, rn_str_t bytes, rn_str_t file,
                                rn_pb_message_desc_t* table) {
  rn_pb_field_desc_t* fields = NULL;
  size_t room = count_in(bytes, 2);
  if (room > UINT16_MAX) return rn_unimplemented("A message has too many fields: %s", table->name);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(maker->arena, room, &fields));
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  while (rn_pb_scan_next(&scan, &field)) {
    if (field.number != 2 || field.wire != RN_PB_WIRE_LENGTH) continue;
    rn_pb_field_desc_t* made = &fields[table->field_count];
    RN_RETURN_IF_ERROR(make_field(maker, field.bytes, file, table, made));
    if (made->name)
      table->field_count++;
    else
      *made = (rn_pb_field_desc_t){0};
  }
  qsort(fields, table->field_count, sizeof *fields, by_number);
  table->fields = fields;
  table->size = table->size ? (table->size + 7) / 8 * 8 : 8;
  uint64_t is_entry = 0;
  (void)rn_proto_number_in(rn_proto_text_in(bytes, 7), 7, &is_entry);
  table->is_map_entry = is_entry && table->field_count == 2 && fields[0].number == 1 &&
                        fields[1].number == 2 &&
                        !((fields[0].flags | fields[1].flags) & RN_PB_REPEATED);
  return RN_OK;
}

static rn_status_t make_message(proto_tables_maker_t* maker, rn_str_t name,
                                rn_pb_message_desc_t** out) {
  rn_str_t bytes = RN_STR(""), file = RN_STR("");
  if (name.size && name.data[0] == '.') name = rn_str_n(name.data + 1, name.size - 1);
  for (size_t i = 0; i < maker->count; ++i) {
    *out = maker->made[i].table;
    if (rn_str_eq(maker->made[i].name, name)) return RN_OK;
  }
  if (maker->count == MAX_TYPES || maker->depth == MAX_DEPTH)
    return rn_unimplemented("A message nests too many types: %.*s", RN_STR_ARGS(name));
  if (!rn_proto_find_type(maker->set, name, false, &bytes, &file))
    return rn_invalid_argument("No descriptor found for message type %.*s", RN_STR_ARGS(name));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(maker->arena, 1, out));
  maker->made[maker->count++] = (made_t){name, *out};
  // An Any is parsed by its own rules into the library's own struct.
  if (rn_str_is(name, RN_PB_ANY)) {
    **out = *rn_pb_find_by_url(RN_STR("type.googleapis.com/" RN_PB_ANY));
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(text_of(maker, name, &(*out)->name));
  maker->depth++;
  rn_status_t status = fill_message(maker, bytes, file, *out);
  maker->depth--;
  return status;
}

rn_status_t rn_proto_fields_table(rn_proto_fields_t* fields) {
  if (fields->table) return RN_OK;
  proto_tables_maker_t maker = {.arena = &fields->arena, .set = fields->set};
  rn_pb_message_desc_t* table = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&fields->arena, MAX_TYPES, &maker.made));
  RN_RETURN_IF_ERROR(make_message(&maker, fields->message, &table));
  fields->table = table;
  return RN_OK;
}

// Descriptors, read field by field from their bytes.
//
//   FileDescriptorSet    file 1
//   FileDescriptorProto  package 2, message_type 4, enum_type 5, syntax 12
//   DescriptorProto      name 1, field 2, nested_type 3, enum_type 4
//   FieldDescriptorProto name 1, number 3, label 4, type 5, type_name 6, default_value 7, options 8
//   EnumDescriptorProto  name 1, value 2: name 1, number 2
#include "kernels/cpu/parsing/proto_fields.h"

#include <math.h>

#include "base/fs.h"
#include "wire/scan.h"

#define MAX_SOURCE ((size_t)64 << 20)  // of a descriptor file
#define MAX_NESTING 32
#define MAX_GROUPS 100  // that one may be in another

rn_str_t rn_proto_text_in(rn_str_t bytes, uint32_t number) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  rn_str_t found = RN_STR("");
  while (rn_pb_scan_next(&scan, &field))
    if (field.number == number && field.wire == RN_PB_WIRE_LENGTH) found = field.bytes;
  return found;
}

bool rn_proto_number_in(rn_str_t bytes, uint32_t number, uint64_t* out) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  bool is_found = false;
  while (rn_pb_scan_next(&scan, &field))
    if (field.number == number && field.wire == RN_PB_WIRE_VARINT) {
      *out = field.value;
      is_found = true;
    }
  return is_found;
}

// The rest of |path| ("p.M.N") after |name| ("p.M") and a dot; false if it does not start that way.
static bool strip(rn_str_t path, rn_str_t name, rn_str_t* out_rest) {
  if (name.size > path.size || (name.size && memcmp(path.data, name.data, name.size))) return false;
  if (name.size == path.size) {
    *out_rest = RN_STR("");
    return true;
  }
  if (name.size && path.data[name.size] != '.') return false;
  size_t from = name.size ? name.size + 1 : 0;
  *out_rest = rn_str_n(path.data + from, path.size - from);
  return true;
}

// Finds |path| among the messages (field |messages|) and enums (field |enums|) of |bytes|, and
// within them. |wants_enum| selects enums.
static bool find_type(rn_str_t bytes, uint32_t messages, uint32_t enums, rn_str_t path,
                      bool wants_enum, int depth, rn_str_t* out) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  if (depth > MAX_NESTING) return false;
  while (rn_pb_scan_next(&scan, &field)) {
    bool is_enum = field.number == enums;
    rn_str_t rest;
    if (field.wire != RN_PB_WIRE_LENGTH || (field.number != messages && !is_enum)) continue;
    rn_str_t name = rn_proto_text_in(field.bytes, 1);
    if (!name.size || !strip(path, name, &rest)) continue;
    if (rest.size == 0 && is_enum == wants_enum) {
      *out = field.bytes;
      return true;
    }
    if (rest.size && !is_enum && find_type(field.bytes, 3, 4, rest, wants_enum, depth + 1, out))
      return true;
  }
  return false;
}

bool rn_proto_find_type(rn_str_t set, rn_str_t name, bool wants_enum, rn_str_t* out,
                        rn_str_t* out_file) {
  rn_pb_scan_t scan = rn_pb_scan(set);
  rn_pb_field_t file;
  if (name.size && name.data[0] == '.') name = rn_str_n(name.data + 1, name.size - 1);
  while (rn_pb_scan_next(&scan, &file)) {
    rn_str_t rest;
    if (file.number != 1 || file.wire != RN_PB_WIRE_LENGTH) continue;
    *out_file = file.bytes;
    if (strip(name, rn_proto_text_in(file.bytes, 2), &rest) && rest.size &&
        find_type(file.bytes, 4, 5, rest, wants_enum, 0, out))
      return true;
  }
  return false;
}

static uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static uint64_t parse_unsigned(rn_str_t text) {
  uint64_t value = 0;
  for (size_t i = 0; i < text.size && text.data[i] >= '0' && text.data[i] <= '9'; ++i)
    value = value * 10 + (uint64_t)(text.data[i] - '0');
  return value;
}

static uint64_t enum_number(rn_str_t bytes, rn_str_t name) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t value;
  uint64_t number = 0;
  bool is_first = true;
  while (rn_pb_scan_next(&scan, &value)) {
    if (value.number != 2 || value.wire != RN_PB_WIRE_LENGTH) continue;
    bool is_wanted = name.size ? rn_str_eq(rn_proto_text_in(value.bytes, 1), name) : is_first;
    is_first = false;
    if (is_wanted && !rn_proto_number_in(value.bytes, 2, &number)) number = 0;
    if (is_wanted) return number;
  }
  return number;
}

// Parses the default value, a string in the descriptor. An enum without one defaults to its first
// value.
static void read_default(rn_str_t set, rn_str_t text, rn_str_t type_name, rn_proto_field_t* field) {
  rn_str_t found, file;
  double real = 0;
  int64_t whole = 0;
  switch (field->type) {
    case RN_PB_DOUBLE:
    case RN_PB_FLOAT:
      if (!rn_str_to_f64(text, &real))
        real = rn_str_is(text, "inf")    ? INFINITY
               : rn_str_is(text, "-inf") ? -INFINITY
               : rn_str_is(text, "nan")  ? NAN
                                         : 0;
      field->fallback = bits_of(real);
      break;
    case RN_PB_BOOL:
      field->fallback = rn_str_is(text, "true");
      break;
    case RN_PB_ENUM:
      if (rn_proto_find_type(set, type_name, true, &found, &file))
        field->fallback = enum_number(found, text);
      break;
    default:
      field->text = text;
      field->fallback = rn_str_to_i64(text, &whole) ? (uint64_t)whole : parse_unsigned(text);
  }
}

uint8_t rn_proto_wire_of(uint8_t type) {
  switch (type) {
#define WIRE(enumerator, number, word, ctype, wire) \
  case number:                                      \
    return wire;
    RN_PB_TYPES(WIRE)
#undef WIRE
    default:
      return RN_PB_WIRE_GROUP;
  }
}

static void read_field(rn_str_t set, rn_str_t file, rn_str_t bytes, rn_proto_field_t* out) {
  uint64_t number = 0, label = 1, type = 0, packed = 0;
  rn_str_t syntax = rn_proto_text_in(file, 12);
  (void)rn_proto_number_in(bytes, 3, &number);
  (void)rn_proto_number_in(bytes, 4, &label);
  (void)rn_proto_number_in(bytes, 5, &type);
  out->number = (uint32_t)number;
  out->type = type > 0 && type <= 18 ? (uint8_t)type : RN_PROTO_GROUP;
  out->wire = rn_proto_wire_of(out->type);
  out->is_repeated = label == 3;
  // Repeated numbers are packed if the file says so or is newer than proto2.
  out->is_packed = out->is_repeated && out->wire != RN_PB_WIRE_LENGTH &&
                   (rn_proto_number_in(rn_proto_text_in(bytes, 8), 2, &packed)
                        ? packed != 0
                        : syntax.size && !rn_str_is(syntax, "proto2"));
  if (!out->is_repeated)
    read_default(set, rn_proto_text_in(bytes, 7), rn_proto_text_in(bytes, 6), out);
}

static bool find_field(rn_str_t set, rn_str_t file, rn_str_t message, rn_str_t name,
                       rn_proto_field_t* out) {
  rn_pb_scan_t scan = rn_pb_scan(message);
  rn_pb_field_t field;
  while (rn_pb_scan_next(&scan, &field)) {
    if (field.number != 2 || field.wire != RN_PB_WIRE_LENGTH) continue;
    if (!rn_str_eq(rn_proto_text_in(field.bytes, 1), name)) continue;
    read_field(set, file, field.bytes, out);
    return out->number > 0;
  }
  return false;
}

// For a message built into the library.
static bool find_local(const rn_pb_message_desc_t* message, rn_str_t name, rn_proto_field_t* out) {
  const rn_pb_field_desc_t* field = rn_pb_find_field_by_name(message, name);
  if (!field) return false;
  out->number = field->number;
  out->type = field->type;
  out->wire = field->wire;
  out->is_repeated = field->flags & RN_PB_REPEATED;
  out->is_packed = field->flags & RN_PB_PACKED;
  return true;
}

static rn_status_t not_a_set(rn_str_t source) {
  return rn_invalid_argument(
      "Source does not represent serialized file descriptor set proto. This may be due to a "
      "missing "
      "dependency on the file containing REGISTER_DESCRIPTOR_POOL(\"%.*s\", ...);",
      RN_STR_ARGS(source));
}

bool rn_proto_scan_next(rn_pb_scan_t* scan, rn_pb_field_t* out) {
  uint32_t open[MAX_GROUPS];  // numbers of the groups that have begun
  int depth = 0;
  const char* start = scan->next;
  *out = (rn_pb_field_t){0};
  if (start != scan->end && (*start & 7) != RN_PB_WIRE_GROUP &&
      (*start & 7) != RN_PB_WIRE_END_GROUP)
    return rn_pb_scan_next(scan, out);
  do {
    uint64_t tag = 0;
    rn_pb_scan_t ahead = *scan;
    bool is_tag = ahead.next != ahead.end && rn_pb_scan_varint(&ahead, &tag);
    uint32_t wire = (uint32_t)tag & 7, number = (uint32_t)(tag >> 3);
    if (!is_tag || (wire != RN_PB_WIRE_GROUP && wire != RN_PB_WIRE_END_GROUP)) {
      if (!rn_pb_scan_next(scan, out)) break;
      continue;
    }
    bool begins = wire == RN_PB_WIRE_GROUP;
    scan->is_bad = tag < 8 || tag > UINT32_MAX ||
                   (begins ? depth == MAX_GROUPS : depth == 0 || open[depth - 1] != number);
    if (scan->is_bad) break;
    scan->next = ahead.next;
    if (begins)
      open[depth++] = number;
    else
      --depth;
    *out = (rn_pb_field_t){.number = number,
                           .wire = RN_PB_WIRE_GROUP,
                           .bytes = rn_str_n(start, (size_t)(scan->next - start))};
  } while (depth && !scan->is_bad);
  if (!depth) return !scan->is_bad && scan->next != start;
  scan->is_bad = true;
  out->wire = RN_PB_WIRE_GROUP;
  return false;
}

static bool is_message(rn_str_t bytes) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  while (rn_pb_scan_next(&scan, &field)) {
  }
  return !scan.is_bad && bytes.size > 0;
}

// Reads the FileDescriptorSet into the arena.
static rn_status_t read_source(const rn_kernel_init_t* init, rn_str_t source, rn_arena_t* arena,
                               rn_str_t* out) {
  const rn_str_t prefix = RN_STR("bytes://");
  rn_status_t status = RN_OK;
  if (rn_str_starts_with(source, prefix)) {
    status =
        rn_arena_str(arena, rn_str_n(source.data + prefix.size, source.size - prefix.size), out);
  } else {
    rn_strbuf_t content;
    rn_str_t path;
    RN_RETURN_IF_ERROR(rn_arena_str(arena, source, &path));
    rn_strbuf_init(&content, init->allocator);
    status = rn_fs_read(init->env, path.data, MAX_SOURCE, &content);
    rn_code_t code = rn_status_code(status);
    if (rn_ok(status)) status = rn_arena_str(arena, rn_strbuf_view(&content), out);
    rn_strbuf_clear(&content);
    // A missing file is reported as an unknown source; an unreadable one by its own error.
    if (code == RN_CODE_NOT_FOUND || code == RN_CODE_FAILED_PRECONDITION) {
      rn_status_free(status);
      return not_a_set(source);
    }
  }
  RN_RETURN_IF_ERROR(status);
  return is_message(*out) ? RN_OK : not_a_set(source);
}

rn_status_t rn_proto_fields_find(const rn_kernel_init_t* init, rn_str_t source, rn_str_t message,
                                 const rn_str_t* names, int32_t count, rn_proto_fields_t* out) {
  bool is_local = source.size == 0 || rn_str_is(source, "local://");
  const rn_pb_message_desc_t* table = is_local ? rn_pb_find_by_url(message) : NULL;
  rn_str_t set = RN_STR(""), file = RN_STR(""), found = RN_STR("");
  rn_str_t* kept = NULL;
  *out = (rn_proto_fields_t){0};
  rn_arena_init(&out->arena, init->allocator);
  if (!is_local) RN_RETURN_IF_ERROR(read_source(init, source, &out->arena, &set));
  if (is_local ? !table : !rn_proto_find_type(set, message, false, &found, &file))
    return rn_invalid_argument("No descriptor found for message type %.*s", RN_STR_ARGS(message));
  RN_RETURN_IF_ERROR(rn_arena_str(&out->arena, message, &out->message));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&out->arena, (size_t)count + 1, &out->items));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&out->arena, (size_t)count + 1, &kept));
  for (int32_t i = 0; i < count; ++i) {
    out->items[i].place = i;
    RN_RETURN_IF_ERROR(rn_arena_str(&out->arena, names[i], &kept[i]));
    if (is_local ? !find_local(table, names[i], &out->items[i])
                 : !find_field(set, file, found, names[i], &out->items[i]))
      return rn_invalid_argument("Unknown field: %.*s in message type %.*s", RN_STR_ARGS(names[i]),
                                 RN_STR_ARGS(message));
  }
  out->count = count;
  out->names = kept;
  out->set = set;
  out->table = table;
  return RN_OK;
}

void rn_proto_fields_clear(rn_proto_fields_t* fields) {
  if (fields->arena.allocator.fn) rn_arena_clear(&fields->arena);
  *fields = (rn_proto_fields_t){0};
}

bool rn_proto_field_fits(const rn_proto_field_t* field, rn_dtype_t dtype) {
  switch (field->type) {
    case RN_PB_DOUBLE:
      return dtype == RN_DOUBLE;
    case RN_PB_FLOAT:
      return dtype == RN_FLOAT || dtype == RN_DOUBLE;
    case RN_PB_INT64:
    case RN_PB_SINT64:
    case RN_PB_SFIXED64:
      return dtype == RN_INT64;
    case RN_PB_UINT64:
    case RN_PB_FIXED64:
      return dtype == RN_UINT64;
    case RN_PB_INT32:
    case RN_PB_SINT32:
    case RN_PB_SFIXED32:
      return dtype == RN_INT32 || dtype == RN_INT64;
    case RN_PB_UINT32:
    case RN_PB_FIXED32:
      return dtype == RN_UINT32 || dtype == RN_UINT64;
    case RN_PB_BOOL:
      return dtype == RN_BOOL;
    case RN_PB_ENUM:
      return dtype == RN_INT32;
    default:
      return dtype == RN_STRING;
  }
}

const char* rn_proto_field_type_name(const rn_proto_field_t* field) {
  switch (field->type) {
    case RN_PB_DOUBLE:
      return "double";
    case RN_PB_FLOAT:
      return "float";
    case RN_PB_INT64:
    case RN_PB_SINT64:
    case RN_PB_SFIXED64:
      return "int64";
    case RN_PB_UINT64:
    case RN_PB_FIXED64:
      return "uint64";
    case RN_PB_INT32:
    case RN_PB_SINT32:
    case RN_PB_SFIXED32:
      return "int32";
    case RN_PB_UINT32:
    case RN_PB_FIXED32:
      return "uint32";
    case RN_PB_BOOL:
      return "bool";
    case RN_PB_ENUM:
      return "enum";
    case RN_PB_STRING:
    case RN_PB_BYTES:
      return "string";
    default:
      return "message";
  }
}

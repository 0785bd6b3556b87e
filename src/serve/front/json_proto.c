// See json_proto.h.
#include "serve/front/json_proto.h"

#include <math.h>

#include "serve/front/json.h"

static rn_status_t put_fields(rn_strbuf_t* out, const rn_pb_message_desc_t* desc,
                              const void* message, int indent);

static void put_line(rn_strbuf_t* out, int indent) {
  rn_strbuf_append(out, RN_STR("\n"));
  for (int i = 0; i < indent; ++i) rn_strbuf_append(out, RN_STR(" "));
}

// JSON proper has no infinities: they are strings.
static void put_real(rn_strbuf_t* out, double value, bool is_float) {
  bool is_quoted = !isfinite(value);
  if (is_quoted) rn_strbuf_append(out, RN_STR("\""));
  if (is_float)
    rn_json_put_float(out, (float)value);
  else
    rn_json_put_double(out, value);
  if (is_quoted) rn_strbuf_append(out, RN_STR("\""));
}

static void put_enum(rn_strbuf_t* out, const rn_pb_field_desc_t* field, int32_t number) {
  const char* name = rn_pb_enum_name(field->sub, number);
  if (name)
    rn_json_put_string(out, rn_str(name));
  else
    rn_json_put_int(out, number);
}

static void put_scalar(rn_strbuf_t* out, const rn_pb_field_desc_t* field, const char* slot) {
  switch (field->type) {
    case RN_PB_DOUBLE:
      put_real(out, *(const double*)slot, false);
      break;
    case RN_PB_FLOAT:
      put_real(out, (double)*(const float*)slot, true);
      break;
    case RN_PB_STRING:
      rn_json_put_string(out, *(const rn_str_t*)slot);
      break;
    case RN_PB_BYTES:
      rn_json_put_base64(out, *(const rn_str_t*)slot);
      break;
    case RN_PB_BOOL:
      rn_strbuf_append(out, *(const bool*)slot ? RN_STR("true") : RN_STR("false"));
      break;
    case RN_PB_INT64:
    case RN_PB_SINT64:
    case RN_PB_SFIXED64:
      rn_strbuf_printf(out, "\"%lld\"", (long long)*(const int64_t*)slot);
      break;
    case RN_PB_UINT64:
    case RN_PB_FIXED64:
      rn_strbuf_printf(out, "\"%llu\"", (unsigned long long)*(const uint64_t*)slot);
      break;
    case RN_PB_UINT32:
    case RN_PB_FIXED32:
      rn_json_put_int(out, *(const uint32_t*)slot);
      break;
    case RN_PB_ENUM:
      put_enum(out, field, *(const int32_t*)slot);
      break;
    default:
      rn_json_put_int(out, *(const int32_t*)slot);
  }
}

// Appends one element; for a message, |slot| is the message itself, NULL if it is empty.
static rn_status_t put_element(rn_strbuf_t* out, const rn_pb_field_desc_t* field, const char* slot,
                               int indent) {
  if (field->type == RN_PB_MESSAGE && slot) return put_fields(out, field->sub, slot, indent);
  if (slot)
    put_scalar(out, field, slot);
  else
    rn_strbuf_append(out, RN_STR("{}"));
  return RN_OK;
}

static const char* slot_of(const rn_pb_field_desc_t* field, const void* message) {
  const char* slot = (const char*)message + field->offset;
  return field->type == RN_PB_MESSAGE && !(field->flags & RN_PB_REPEATED)
             ? *(const rn_pb_message_t*)slot
             : slot;
}

// The key of a map is a string whatever its type.
static void put_key(rn_strbuf_t* out, const rn_pb_field_desc_t* field, const char* slot) {
  bool is_quoted = field->type == RN_PB_STRING || field->type == RN_PB_INT64 ||
                   field->type == RN_PB_SINT64 || field->type == RN_PB_SFIXED64 ||
                   field->type == RN_PB_UINT64 || field->type == RN_PB_FIXED64;
  if (!is_quoted) rn_strbuf_append(out, RN_STR("\""));
  put_scalar(out, field, slot);
  rn_strbuf_append(out, is_quoted ? RN_STR(": ") : RN_STR("\": "));
}

static rn_status_t put_map(rn_strbuf_t* out, const rn_pb_field_desc_t* field,
                           const rn_pb_list_t* list, int indent) {
  const rn_pb_message_desc_t* entry = field->sub;
  const void** entries = NULL;
  size_t count = 0;
  rn_arena_t scratch;
  rn_arena_init(&scratch, out->allocator);
  rn_status_t status = rn_pb_map_sorted(entry, list, &scratch, &entries, &count);
  rn_strbuf_append(out, RN_STR("{"));
  for (size_t i = 0; i < count && rn_ok(status); ++i) {
    if (i) rn_strbuf_append(out, RN_STR(","));
    put_line(out, indent + 1);
    put_key(out, &entry->fields[0], slot_of(&entry->fields[0], entries[i]));
    status =
        put_element(out, &entry->fields[1], slot_of(&entry->fields[1], entries[i]), indent + 1);
  }
  if (count) put_line(out, indent);
  rn_strbuf_append(out, RN_STR("}"));
  rn_arena_clear(&scratch);
  return status;
}

static rn_status_t put_list(rn_strbuf_t* out, const rn_pb_field_desc_t* field,
                            const rn_pb_list_t* list, int indent) {
  rn_strbuf_append(out, RN_STR("["));
  for (size_t i = 0; i < list->count; ++i) {
    if (i) rn_strbuf_append(out, RN_STR(","));
    put_line(out, indent + 1);
    RN_RETURN_IF_ERROR(put_element(
        out, field, (const char*)list->items + i * rn_pb_element_size(field), indent + 1));
  }
  if (list->count) put_line(out, indent);
  rn_strbuf_append(out, RN_STR("]"));
  return RN_OK;
}

// google.protobuf.Int64Value and its kin.
static bool is_wrapper(const rn_pb_message_desc_t* desc) {
  rn_str_t name = rn_str(desc->name);
  return desc->field_count == 1 && rn_str_starts_with(name, RN_STR("google.protobuf.")) &&
         rn_str_ends_with(name, RN_STR("Value"));
}

// Whether a field that is not set is printed nevertheless: those that cannot tell.
static bool has_default(const rn_pb_field_desc_t* field) {
  if (field->flags & RN_PB_REPEATED) return true;
  return field->type != RN_PB_MESSAGE && !(field->flags & (RN_PB_ONEOF | RN_PB_OPTIONAL));
}

static rn_status_t put_fields(rn_strbuf_t* out, const rn_pb_message_desc_t* desc,
                              const void* message, int indent) {
  if (indent > RN_PB_MAX_DEPTH) return rn_invalid_argument("%s: nested too deep", desc->name);
  if (is_wrapper(desc)) {
    put_scalar(out, &desc->fields[0], slot_of(&desc->fields[0], message));
    return RN_OK;
  }
  bool is_first = true;
  rn_strbuf_append(out, RN_STR("{"));
  for (size_t i = 0; i < desc->field_count; ++i) {
    const rn_pb_field_desc_t* field = &desc->fields[i];
    if (!has_default(field) && !rn_pb_is_set(field, message)) continue;
    if (!is_first) rn_strbuf_append(out, RN_STR(","));
    is_first = false;
    put_line(out, indent + 1);
    rn_strbuf_printf(out, "\"%s\": ", field->name);
    const char* slot = slot_of(field, message);
    if (field->flags & RN_PB_MAP)
      RN_RETURN_IF_ERROR(put_map(out, field, (const rn_pb_list_t*)slot, indent + 1));
    else if (field->flags & RN_PB_REPEATED)
      RN_RETURN_IF_ERROR(put_list(out, field, (const rn_pb_list_t*)slot, indent + 1));
    else
      RN_RETURN_IF_ERROR(put_element(out, field, slot, indent + 1));
  }
  if (!is_first) put_line(out, indent);
  rn_strbuf_append(out, RN_STR("}"));
  return RN_OK;
}

rn_status_t rn_json_put_message(rn_strbuf_t* out, const rn_pb_message_desc_t* desc,
                                const void* message, int indent) {
  RN_RETURN_IF_ERROR(put_fields(out, desc, message, indent));
  return rn_strbuf_status(out);
}

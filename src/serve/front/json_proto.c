// See json_proto.h.
#include "serve/front/json_proto.h"

#include <math.h>

#include "serve/front/json.h"

typedef struct json_writer_t {
  rn_strbuf_t* out;
  bool is_compact;
} json_writer_t;

static rn_status_t put_fields(const json_writer_t* json, const rn_pb_message_desc_t* desc,
                              const void* message, int indent);

static void put_line(const json_writer_t* json, int indent) {
  if (json->is_compact) return;
  rn_strbuf_append(json->out, RN_STR("\n"));
  for (int i = 0; i < indent; ++i) rn_strbuf_append(json->out, RN_STR(" "));
}

static void put_colon(const json_writer_t* json) {
  rn_strbuf_append(json->out, json->is_compact ? RN_STR(":") : RN_STR(": "));
}

// JSON proper has no infinities: they are strings.
static void put_real(const json_writer_t* json, double value, bool is_float) {
  bool is_quoted = !isfinite(value);
  if (is_quoted) rn_strbuf_append(json->out, RN_STR("\""));
  if (is_float)
    rn_json_put_float(json->out, (float)value);
  else
    rn_json_put_double(json->out, value);
  if (is_quoted) rn_strbuf_append(json->out, RN_STR("\""));
}

static void put_enum(const json_writer_t* json, const rn_pb_field_desc_t* field, int32_t number) {
  const char* name = rn_pb_enum_name(field->sub, number);
  if (name)
    rn_json_put_string(json->out, rn_str(name));
  else
    rn_json_put_int(json->out, number);
}

static void put_scalar(const json_writer_t* json, const rn_pb_field_desc_t* field,
                       const char* slot) {
  switch (field->type) {
    case RN_PB_DOUBLE:
      put_real(json, *(const double*)slot, false);
      break;
    case RN_PB_FLOAT:
      put_real(json, (double)*(const float*)slot, true);
      break;
    case RN_PB_STRING:
      rn_json_put_string(json->out, *(const rn_str_t*)slot);
      break;
    case RN_PB_BYTES:
      if (json->is_compact)
        rn_json_put_string(json->out, *(const rn_str_t*)slot);
      else
        rn_json_put_base64(json->out, *(const rn_str_t*)slot);
      break;
    case RN_PB_BOOL:
      rn_strbuf_append(json->out, *(const bool*)slot ? RN_STR("true") : RN_STR("false"));
      break;
    case RN_PB_INT64:
    case RN_PB_SINT64:
    case RN_PB_SFIXED64:
      rn_strbuf_printf(json->out, json->is_compact ? "%lld" : "\"%lld\"",
                       (long long)*(const int64_t*)slot);
      break;
    case RN_PB_UINT64:
    case RN_PB_FIXED64:
      rn_strbuf_printf(json->out, json->is_compact ? "%llu" : "\"%llu\"",
                       (unsigned long long)*(const uint64_t*)slot);
      break;
    case RN_PB_UINT32:
    case RN_PB_FIXED32:
      rn_json_put_int(json->out, *(const uint32_t*)slot);
      break;
    case RN_PB_ENUM:
      put_enum(json, field, *(const int32_t*)slot);
      break;
    default:
      rn_json_put_int(json->out, *(const int32_t*)slot);
  }
}

// Appends one element; for a message, |slot| is the message itself, NULL if it is empty.
static rn_status_t put_element(const json_writer_t* json, const rn_pb_field_desc_t* field,
                               const char* slot, int indent) {
  if (field->type == RN_PB_MESSAGE && slot) return put_fields(json, field->sub, slot, indent);
  if (slot)
    put_scalar(json, field, slot);
  else
    rn_strbuf_append(json->out, RN_STR("{}"));
  return RN_OK;
}

static const char* slot_of(const rn_pb_field_desc_t* field, const void* message) {
  const char* slot = (const char*)message + field->offset;
  return field->type == RN_PB_MESSAGE && !(field->flags & RN_PB_REPEATED)
             ? *(const rn_pb_message_t*)slot
             : slot;
}

// The key of a map is a string whatever its type.
static void put_key(const json_writer_t* json, const rn_pb_field_desc_t* field, const char* slot) {
  bool is_wide = field->type == RN_PB_INT64 || field->type == RN_PB_SINT64 ||
                 field->type == RN_PB_SFIXED64 || field->type == RN_PB_UINT64 ||
                 field->type == RN_PB_FIXED64;
  bool is_quoted = field->type == RN_PB_STRING || (is_wide && !json->is_compact);
  if (!is_quoted) rn_strbuf_append(json->out, RN_STR("\""));
  put_scalar(json, field, slot);
  if (!is_quoted) rn_strbuf_append(json->out, RN_STR("\""));
  put_colon(json);
}

static rn_status_t put_map(const json_writer_t* json, const rn_pb_field_desc_t* field,
                           const rn_pb_list_t* list, int indent) {
  const rn_pb_message_desc_t* entry = field->sub;
  const void** entries = NULL;
  size_t count = 0;
  rn_arena_t scratch;
  rn_arena_init(&scratch, json->out->allocator);
  rn_status_t status = rn_pb_map_sorted(entry, list, &scratch, &entries, &count);
  rn_strbuf_append(json->out, RN_STR("{"));
  for (size_t i = 0; i < count && rn_ok(status); ++i) {
    if (i) rn_strbuf_append(json->out, RN_STR(","));
    put_line(json, indent + 1);
    put_key(json, &entry->fields[0], slot_of(&entry->fields[0], entries[i]));
    status =
        put_element(json, &entry->fields[1], slot_of(&entry->fields[1], entries[i]), indent + 1);
  }
  if (count) put_line(json, indent);
  rn_strbuf_append(json->out, RN_STR("}"));
  rn_arena_clear(&scratch);
  return status;
}

static rn_status_t put_list(const json_writer_t* json, const rn_pb_field_desc_t* field,
                            const rn_pb_list_t* list, int indent) {
  rn_strbuf_append(json->out, RN_STR("["));
  for (size_t i = 0; i < list->count; ++i) {
    if (i) rn_strbuf_append(json->out, RN_STR(","));
    put_line(json, indent + 1);
    RN_RETURN_IF_ERROR(put_element(
        json, field, (const char*)list->items + i * rn_pb_element_size(field), indent + 1));
  }
  if (list->count) put_line(json, indent);
  rn_strbuf_append(json->out, RN_STR("]"));
  return RN_OK;
}

// google.protobuf.Int64Value and its kin.
static bool is_wrapper(const rn_pb_message_desc_t* desc) {
  rn_str_t name = rn_str(desc->name);
  return desc->field_count == 1 && rn_str_starts_with(name, RN_STR("google.protobuf.")) &&
         rn_str_ends_with(name, RN_STR("Value"));
}

// Whether an unset field is printed: one that has no presence, and every field in the compact form.
static bool has_default(const json_writer_t* json, const rn_pb_field_desc_t* field) {
  if (json->is_compact) return true;
  if (field->flags & RN_PB_REPEATED) return true;
  return field->type != RN_PB_MESSAGE && !(field->flags & (RN_PB_ONEOF | RN_PB_OPTIONAL));
}

static rn_status_t put_fields(const json_writer_t* json, const rn_pb_message_desc_t* desc,
                              const void* message, int indent) {
  if (indent > RN_PB_MAX_DEPTH) return rn_invalid_argument("%s: nested too deep", desc->name);
  if (is_wrapper(desc)) {
    put_scalar(json, &desc->fields[0], slot_of(&desc->fields[0], message));
    return RN_OK;
  }
  bool is_first = true;
  rn_strbuf_append(json->out, RN_STR("{"));
  for (size_t i = 0; i < desc->field_count; ++i) {
    const rn_pb_field_desc_t* field = &desc->fields[i];
    if (!has_default(json, field) && !rn_pb_is_set(field, message)) continue;
    if (!is_first) rn_strbuf_append(json->out, RN_STR(","));
    is_first = false;
    put_line(json, indent + 1);
    rn_json_put_string(json->out, rn_str(field->name));
    put_colon(json);
    const char* slot = slot_of(field, message);
    if (field->flags & RN_PB_MAP)
      RN_RETURN_IF_ERROR(put_map(json, field, (const rn_pb_list_t*)slot, indent + 1));
    else if (field->flags & RN_PB_REPEATED)
      RN_RETURN_IF_ERROR(put_list(json, field, (const rn_pb_list_t*)slot, indent + 1));
    else
      RN_RETURN_IF_ERROR(put_element(json, field, slot, indent + 1));
  }
  if (!is_first) put_line(json, indent);
  rn_strbuf_append(json->out, RN_STR("}"));
  return RN_OK;
}

rn_status_t rn_json_put_message(rn_strbuf_t* out, const rn_pb_message_desc_t* desc,
                                const void* message, rn_json_form_t form) {
  const json_writer_t json = {out, form == RN_JSON_COMPACT};
  RN_RETURN_IF_ERROR(put_fields(&json, desc, message, 0));
  return rn_strbuf_status(out);
}

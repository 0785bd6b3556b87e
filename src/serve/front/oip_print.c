// Messages of the Open Inference Protocol as JSON, for its REST form. See oip_info.h.
#include "serve/front/json.h"
#include "serve/front/oip_info.h"

static void print_value(const rn_pb_field_desc_t* field, const void* value, rn_strbuf_t* out) {
  switch (field->type) {
    case RN_PB_STRING:
    case RN_PB_BYTES:
      rn_json_put_string(out, *(const rn_str_t*)value);
      break;
    case RN_PB_BOOL:
      rn_strbuf_append(out, *(const bool*)value ? RN_STR("true") : RN_STR("false"));
      break;
    case RN_PB_INT32:
      rn_json_put_int(out, *(const int32_t*)value);
      break;
    case RN_PB_ENUM: {
      const char* name = rn_pb_enum_name(field->sub, *(const int32_t*)value);
      rn_json_put_string(out, rn_str(name ? name : ""));
      break;
    }
    case RN_PB_INT64:
      rn_json_put_int(out, *(const int64_t*)value);
      break;
    case RN_PB_UINT64:
      rn_strbuf_printf(out, "%llu", (unsigned long long)*(const uint64_t*)value);
      break;
    default:  // the messages that are printed have no others
      rn_oip_print(field->sub, value, out);
  }
}

static void print_items(const rn_pb_field_desc_t* field, const rn_pb_list_t* list,
                        rn_strbuf_t* out) {
  rn_strbuf_append(out, RN_STR("["));
  for (uint32_t i = 0; i < list->count; ++i) {
    if (i) rn_strbuf_append(out, RN_STR(","));
    print_value(field, (const char*)list->items + i * rn_pb_element_size(field), out);
  }
  rn_strbuf_append(out, RN_STR("]"));
}

void rn_oip_print(const rn_pb_message_desc_t* desc, const void* message, rn_strbuf_t* out) {
  rn_strbuf_append(out, RN_STR("{"));
  bool is_first = true;
  for (uint16_t i = 0; message && i < desc->field_count; ++i) {
    const rn_pb_field_desc_t* field = &desc->fields[i];
    const char* at = (const char*)message + field->offset;
    if (!is_first) rn_strbuf_append(out, RN_STR(","));
    is_first = false;
    rn_json_put_string(out, rn_str(field->name));
    rn_strbuf_append(out, RN_STR(":"));
    if (field->flags & RN_PB_REPEATED)
      print_items(field, (const rn_pb_list_t*)at, out);
    else if (field->type == RN_PB_MESSAGE)
      rn_oip_print(field->sub, *(void* const*)at, out);
    else
      print_value(field, at, out);
  }
  rn_strbuf_append(out, RN_STR("}"));
}

void rn_oip_print_list(const rn_pb_message_desc_t* desc, const void* items, uint32_t count,
                       rn_strbuf_t* out) {
  rn_strbuf_append(out, RN_STR("["));
  for (uint32_t i = 0; i < count; ++i) {
    if (i) rn_strbuf_append(out, RN_STR(","));
    rn_oip_print(desc, (const char*)items + (size_t)i * desc->size, out);
  }
  rn_strbuf_append(out, RN_STR("]"));
}

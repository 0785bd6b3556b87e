// The wire format is described at the head of decode.c.
#include "wire/encode.h"

#include "wire/writer.h"

typedef struct rn_pb_encoder_t {
  rn_strbuf_t* out;
  bool sort_maps;
  uint32_t depth;  // nesting levels left
} rn_pb_encoder_t;

void rn_pb_end_long(rn_strbuf_t* buf, size_t mark) {
  size_t length = buf->size - mark;
  char prefix[RN_PB_MAX_VARINT];
  size_t more = (size_t)(rn_pb_varint_to(prefix, length) - prefix) - 1;
  if (!rn_strbuf_reserve(buf, more)) return;
  memmove(buf->data + mark + more, buf->data + mark, length);
  memcpy(buf->data + mark - 1, prefix, more + 1);
  rn_pb_written(buf, buf->data + buf->size + more);
}

static rn_status_t write_message(rn_pb_encoder_t* e, const rn_pb_message_desc_t* desc,
                                 const void* message);

// A scalar's varint.
static uint64_t varint_of(uint8_t type, const char* slot) {
  switch (type) {
    case RN_PB_INT64:
    case RN_PB_UINT64:
      return *(const uint64_t*)slot;
    case RN_PB_UINT32:
      return *(const uint32_t*)slot;
    case RN_PB_BOOL:
      return *(const bool*)slot;
    case RN_PB_SINT32:
      return (uint32_t)rn_pb_zigzag(*(const int32_t*)slot);
    case RN_PB_SINT64:
      return rn_pb_zigzag(*(const int64_t*)slot);
    default:  // negative ones are sign-extended
      return (uint64_t)(int64_t) * (const int32_t*)slot;
  }
}

// Writes one element with its tag; for a message, |slot| is the message itself.
static rn_status_t write_element(rn_pb_encoder_t* e, const rn_pb_field_desc_t* field,
                                 const char* slot) {
  switch (field->wire) {
    case RN_PB_WIRE_VARINT:
      rn_pb_put_uint(e->out, field->number, varint_of(field->type, slot));
      return RN_OK;
    case RN_PB_WIRE_64: {
      uint64_t bits;
      memcpy(&bits, slot, sizeof bits);
      rn_pb_put_fixed64(e->out, field->number, bits);
      return RN_OK;
    }
    case RN_PB_WIRE_32: {
      uint32_t bits;
      memcpy(&bits, slot, sizeof bits);
      rn_pb_put_fixed32(e->out, field->number, bits);
      return RN_OK;
    }
    default:
      break;
  }
  if (field->type != RN_PB_MESSAGE) {
    rn_pb_put_str(e->out, field->number, *(const rn_str_t*)slot);
    return RN_OK;
  }
  if (field->wire == RN_PB_WIRE_GROUP) {
    rn_pb_put_varint(e->out, (uint64_t)field->number << 3 | RN_PB_WIRE_GROUP);
    if (slot) RN_RETURN_IF_ERROR(write_message(e, field->sub, slot));
    rn_pb_put_varint(e->out, (uint64_t)field->number << 3 | RN_PB_WIRE_END_GROUP);
    return RN_OK;
  }
  size_t mark = rn_pb_begin(e->out, field->number);
  if (slot) RN_RETURN_IF_ERROR(write_message(e, field->sub, slot));
  rn_pb_end(e->out, mark);
  return RN_OK;
}

static void write_packed(rn_pb_encoder_t* e, const rn_pb_field_desc_t* field,
                         const rn_pb_list_t* list) {
  const char* items = list->items;
  if (field->wire != RN_PB_WIRE_VARINT) {
    rn_pb_put_str(e->out, field->number, rn_str_n(items, (size_t)list->count * field->size));
    return;
  }
  size_t mark = rn_pb_begin(e->out, field->number);
  for (uint32_t i = 0; i < list->count; ++i) {
    rn_pb_put_varint(e->out, varint_of(field->type, items + (size_t)i * field->size));
  }
  rn_pb_end(e->out, mark);
}

static rn_status_t write_sorted_map(rn_pb_encoder_t* e, const rn_pb_field_desc_t* field,
                                    const rn_pb_list_t* list) {
  rn_arena_t scratch;
  rn_arena_init(&scratch, e->out->allocator);
  const void** entries = NULL;
  size_t count = 0;
  rn_status_t status = rn_pb_map_sorted(field->sub, list, &scratch, &entries, &count);
  for (size_t i = 0; i < count && rn_ok(status); ++i) {
    status = write_element(e, field, entries[i]);
  }
  rn_arena_clear(&scratch);
  return status;
}

static rn_status_t write_list(rn_pb_encoder_t* e, const rn_pb_field_desc_t* field,
                              const rn_pb_list_t* list) {
  if (field->flags & RN_PB_PACKED) {
    write_packed(e, field, list);
    return RN_OK;
  }
  if (field->flags & RN_PB_MAP && e->sort_maps && list->count > 1) {
    return write_sorted_map(e, field, list);
  }
  size_t size = rn_pb_element_size(field);
  for (uint32_t i = 0; i < list->count; ++i) {
    RN_RETURN_IF_ERROR(write_element(e, field, (const char*)list->items + i * size));
  }
  return RN_OK;
}

static rn_status_t write_message(rn_pb_encoder_t* e, const rn_pb_message_desc_t* desc,
                                 const void* message) {
  if (e->depth == 0) return rn_invalid_argument("%s: nested too deep", desc->name);
  --e->depth;
  for (size_t i = 0; i < desc->field_count; ++i) {
    const rn_pb_field_desc_t* field = &desc->fields[i];
    if (!desc->is_map_entry && !rn_pb_is_set(field, message)) continue;
    const char* slot = (const char*)message + field->offset;
    if (field->flags & RN_PB_REPEATED) {
      RN_RETURN_IF_ERROR(write_list(e, field, (const rn_pb_list_t*)slot));
    } else {
      if (field->type == RN_PB_MESSAGE) slot = *(const rn_pb_message_t*)slot;
      RN_RETURN_IF_ERROR(write_element(e, field, slot));
    }
  }
  ++e->depth;
  return RN_OK;
}

rn_status_t rn_pb_encode(const rn_pb_message_desc_t* desc, const void* message,
                         const rn_pb_encode_options_t* options, rn_strbuf_t* out) {
  size_t before = out->size;
  rn_pb_encoder_t encoder = {
      .out = out, .sort_maps = options && options->sort_maps, .depth = RN_PB_MAX_DEPTH};
  rn_status_t status = write_message(&encoder, desc, message);
  if (rn_ok(status)) status = rn_strbuf_status(out);
  if (!rn_ok(status) && out->data) rn_pb_written(out, out->data + before);
  return status;
}

// DecodeProto and EncodeProto: each requested field is a tensor whose last dimension is its
// repetitions.
#include <stdlib.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/move.h"
#include "kernels/cpu/parsing/proto_fields.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"
#include "wire/encode.h"
#include "wire/scan.h"
#include "wire/text.h"
#include "wire/writer.h"

static rn_status_t find_fields(const rn_kernel_init_t* init, rn_proto_fields_t* out) {
  const rn_attr_value_t* names = rn_init_attr(init, "field_names");
  return rn_proto_fields_find(init, rn_init_string(init, "descriptor_source"),
                              rn_init_string(init, "message_type"), names->list_s,
                              (int32_t)names->count, out);
}

static void fields_destroy(void* state) { rn_proto_fields_clear(state); }

// Decoding.

static rn_status_t decode_init(const rn_kernel_init_t* init, void* state) {
  rn_proto_fields_t* fields = state;
  const rn_attr_value_t* types = rn_init_attr(init, "output_types");
  rn_str_t format = rn_init_string(init, "message_format");
  RN_RETURN_IF_ERROR(find_fields(init, fields));
  if (types->count != fields->count)
    return rn_invalid_argument("field_names and output_types attributes must have the same length");
  for (int32_t i = 0; i < fields->count; ++i)
    if (!rn_proto_field_fits(&fields->items[i], types->list_type[i]))
      return rn_invalid_argument("Unexpected output type for %.*s.%.*s: %s to %s",
                                 RN_STR_ARGS(fields->message), RN_STR_ARGS(fields->names[i]),
                                 rn_proto_field_type_name(&fields->items[i]),
                                 rn_dtype_proto_name(types->list_type[i]));
  fields->is_text = rn_str_is(format, "text");
  if (fields->is_text) return rn_proto_fields_table(fields);
  return rn_str_is(format, "binary") ? RN_OK
                                     : rn_invalid_argument("format must be one of binary or text");
}

static int64_t unzigzag(uint64_t value) { return (int64_t)(value >> 1) ^ -(int64_t)(value & 1); }

// Decodes |raw|, the value on the wire, to an integer.
static int64_t whole_of(const rn_proto_field_t* field, uint64_t raw) {
  switch (field->type) {
    case RN_PB_INT32:
    case RN_PB_SFIXED32:
    case RN_PB_ENUM:
      return (int32_t)(uint32_t)raw;
    case RN_PB_UINT32:
    case RN_PB_FIXED32:
      return (int64_t)(uint32_t)raw;
    case RN_PB_SINT32:
      return (int32_t)unzigzag((uint32_t)raw);
    case RN_PB_SINT64:
      return unzigzag(raw);
    case RN_PB_BOOL:
      return raw != 0;
    default:
      return (int64_t)raw;
  }
}

static void put_real(rn_tensor_t* out, int64_t i, double value) {
  if (out->dtype == RN_FLOAT)
    RN_DATA(out, float)[i] = (float)value;
  else
    RN_DATA(out, double)[i] = value;
}

static void put_whole(rn_tensor_t* out, int64_t i, int64_t value) {
  switch (out->dtype) {
    case RN_BOOL:
      RN_DATA(out, bool)[i] = value != 0;
      break;
    case RN_INT32:
    case RN_UINT32:
      RN_DATA(out, uint32_t)[i] = (uint32_t)value;
      break;
    default:
      RN_DATA(out, int64_t)[i] = value;
  }
}

static void put_number(const rn_proto_field_t* field, uint64_t raw, rn_tensor_t* out, int64_t i) {
  if (field->type == RN_PB_DOUBLE) {
    double value;
    memcpy(&value, &raw, sizeof value);
    put_real(out, i, value);
  } else if (field->type == RN_PB_FLOAT) {
    uint32_t bits = (uint32_t)raw;
    float value;
    memcpy(&value, &bits, sizeof value);
    put_real(out, i, value);
  } else {
    put_whole(out, i, whole_of(field, raw));
  }
}

static rn_status_t put_text(rn_tensor_t* out, int64_t i, rn_str_t text) {
  return rn_tstring_assign(&RN_DATA(out, rn_tstring_t)[i], text.data, text.size)
             ? RN_OK
             : rn_out_of_memory();
}

// The next element of a packed list.
static bool next_packed(const rn_proto_field_t* field, rn_pb_scan_t* scan, uint64_t* out) {
  if (scan->next == scan->end || scan->is_bad) return false;
  if (field->wire == RN_PB_WIRE_VARINT) return rn_pb_scan_varint(scan, out);
  return rn_pb_scan_fixed(scan, field->wire == RN_PB_WIRE_64 ? 8 : 4, out);
}

// Where to store a message's elements, or, without outputs, only their counts. An element of a
// field that is not repeated replaces the previous one.
typedef struct sink_t {
  int32_t* sizes;        // one per field
  rn_tensor_t** values;  // NULL to count only
  int64_t message;
} sink_t;

static rn_status_t take_element(const rn_proto_field_t* field, uint64_t raw, rn_str_t bytes,
                                const sink_t* sink) {
  int32_t* size = &sink->sizes[field->place];
  int32_t at = field->is_repeated ? *size : 0;
  if (*size == INT32_MAX) return rn_invalid_argument("A field has too many elements");
  *size = at + 1;
  if (!sink->values) return RN_OK;
  rn_tensor_t* out = sink->values[field->place];
  int64_t i = sink->message * rn_tensor_dim(out, out->rank - 1) + at;
  if (field->wire == RN_PB_WIRE_LENGTH || field->wire == RN_PB_WIRE_GROUP)
    return put_text(out, i, bytes);
  put_number(field, raw, out, i);
  return RN_OK;
}

// Names what a bad field, which |found| describes as far as it goes, made impossible.
static rn_status_t malformed(const rn_pb_field_t* found) {
  return rn_data_loss(found && found->wire == RN_PB_WIRE_GROUP
                          ? "Failed skipping unrequested field"
                          : "CountFields: Failed to consume entire buffer");
}

static rn_status_t take_field(const rn_proto_field_t* field, const rn_pb_field_t* found,
                              const sink_t* sink) {
  uint64_t raw = 0;
  if (found->wire == field->wire) return take_element(field, found->value, found->bytes, sink);
  // Numbers may come packed whatever the descriptor says; other wire types are skipped.
  if (found->wire != RN_PB_WIRE_LENGTH) return RN_OK;
  if (field->type == RN_PROTO_GROUP) return rn_data_loss("TYPE_GROUP encountered as packed");
  rn_pb_scan_t scan = rn_pb_scan(found->bytes);
  while (next_packed(field, &scan, &raw))
    RN_RETURN_IF_ERROR(take_element(field, raw, RN_STR(""), sink));
  return scan.is_bad ? malformed(NULL) : RN_OK;
}

static rn_status_t take_message(const rn_proto_fields_t* fields, rn_str_t bytes,
                                const sink_t* sink) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t found;
  memset(sink->sizes, 0, (size_t)fields->count * sizeof *sink->sizes);
  while (rn_proto_scan_next(&scan, &found))
    for (int32_t i = 0; i < fields->count; ++i) {
      if (fields->items[i].number != found.number) continue;
      RN_RETURN_IF_ERROR(take_field(&fields->items[i], &found, sink));
      break;  // a field requested twice goes to the first
    }
  return scan.is_bad ? malformed(&found) : RN_OK;
}

// Allocates outputs for the longest list, at least one element, filled with the defaults.
static rn_status_t output_field(rn_kernel_ctx_t* ctx, const rn_proto_field_t* field,
                                int32_t longest, rn_tensor_t** out) {
  const rn_tensor_t* in = rn_in(ctx, 0);
  int64_t dims[RN_MAX_RANK];
  memcpy(dims, rn_tensor_dims(in), (size_t)in->rank * sizeof *dims);
  dims[in->rank] = longest > 1 ? longest : 1;
  RN_RETURN_IF_ERROR(
      rn_output(ctx, field->place + 1, (rn_shape_t){(int16_t)(in->rank + 1), dims}, out));
  rn_move_zero(NULL, (*out)->dtype, (*out)->data, (*out)->count);
  if (field->is_repeated) return RN_OK;
  for (int64_t i = 0; i < (*out)->count; ++i) {
    if ((*out)->dtype == RN_STRING) {
      RN_RETURN_IF_ERROR(put_text(*out, i, field->text));
    } else if (field->type == RN_PB_FLOAT || field->type == RN_PB_DOUBLE) {
      double value;
      memcpy(&value, &field->fallback, sizeof value);
      put_real(*out, i, value);
    } else {
      put_whole(*out, i, (int64_t)field->fallback);
    }
  }
  return RN_OK;
}

// Parses a message in text format to its bytes, in |arena|.
static rn_status_t parse_text(const rn_proto_fields_t* fields, rn_str_t text, rn_arena_t* arena,
                              rn_strbuf_t* buf, rn_str_t* out) {
  void* message = NULL;
  rn_status_t status = rn_pb_parse(fields->table, text, NULL, arena, &message);
  if (rn_status_code(status) == RN_CODE_RESOURCE_EXHAUSTED) return status;
  if (!rn_ok(status)) {
    rn_status_t bad = rn_data_loss("Unable to parse text protobuf; %s", rn_status_message(status));
    rn_status_free(status);
    return bad;
  }
  buf->size = 0;
  RN_RETURN_IF_ERROR(rn_pb_encode(fields->table, message, NULL, buf));
  return rn_arena_str(arena, rn_strbuf_view(buf), out);
}

static rn_status_t parse_texts(const rn_proto_fields_t* fields, rn_str_t* messages, int64_t count,
                               rn_arena_t* arena) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, arena->allocator);
  rn_status_t status = RN_OK;
  for (int64_t m = 0; rn_ok(status) && m < count; ++m)
    status = parse_text(fields, messages[m], arena, &buf, &messages[m]);
  rn_strbuf_clear(&buf);
  return status;
}

static rn_status_t decode_in(rn_kernel_ctx_t* ctx, rn_arena_t* arena) {
  const rn_proto_fields_t* fields = ctx->state;
  const rn_tensor_t* in = rn_in(ctx, 0);
  rn_str_t* messages = NULL;
  int32_t *longest = NULL, *scratch = NULL;
  rn_tensor_t *sizes = NULL, **values = NULL;
  int64_t dims[RN_MAX_RANK];
  if (in->count == 0) return rn_invalid_argument("Bufs argument must contain at least one value");
  if (in->rank >= RN_MAX_RANK)
    return rn_invalid_argument("Messages of rank %d have too many dimensions", in->rank);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)in->count, &messages));
  for (int64_t m = 0; m < in->count; ++m)
    messages[m] = rn_tstring_view(&RN_DATA(in, const rn_tstring_t)[m]);
  if (fields->is_text) RN_RETURN_IF_ERROR(parse_texts(fields, messages, in->count, arena));
  size_t room = (size_t)fields->count + 1;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, room, &longest));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, room, &scratch));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, room, &values));
  memcpy(dims, rn_tensor_dims(in), (size_t)in->rank * sizeof *dims);
  dims[in->rank] = fields->count;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){(int16_t)(in->rank + 1), dims}, &sizes));
  for (int64_t m = 0; m < in->count; ++m) {
    int32_t* own = fields->count ? RN_DATA(sizes, int32_t) + m * fields->count : scratch;
    sink_t sink = {own, NULL, m};
    RN_RETURN_IF_ERROR(take_message(fields, messages[m], &sink));
    for (int32_t i = 0; i < fields->count; ++i)
      if (own[i] > longest[i]) longest[i] = own[i];
  }
  for (int32_t i = 0; i < fields->count; ++i)
    RN_RETURN_IF_ERROR(output_field(ctx, &fields->items[i], longest[i], &values[i]));
  for (int64_t m = 0; m < in->count; ++m) {
    sink_t sink = {scratch, values, m};
    RN_RETURN_IF_ERROR(take_message(fields, messages[m], &sink));
  }
  return RN_OK;
}

static rn_status_t decode_proto(rn_kernel_ctx_t* ctx) {
  rn_arena_t arena;
  rn_arena_init(&arena, ctx->kernel->allocator);
  rn_status_t status = decode_in(ctx, &arena);
  rn_arena_clear(&arena);
  return status;
}

// Encoding.

static int by_number(const void* a, const void* b) {
  const rn_proto_field_t *x = a, *y = b;
  if (x->number != y->number) return x->number < y->number ? -1 : 1;
  return x->place - y->place;
}

static rn_status_t encode_init(const rn_kernel_init_t* init, void* state) {
  rn_proto_fields_t* fields = state;
  RN_RETURN_IF_ERROR(find_fields(init, fields));
  if (rn_init_attr(init, "Tinput_types")->count != fields->count)
    return rn_invalid_argument("Length of inputs list must match field_names");
  qsort(fields->items, (size_t)fields->count, sizeof *fields->items, by_number);
  return RN_OK;
}

static uint64_t raw_number(const rn_proto_field_t* field, const rn_tensor_t* in, int64_t i) {
  if (field->type == RN_PB_FLOAT || field->type == RN_PB_DOUBLE) {
    double value =
        in->dtype == RN_FLOAT ? RN_DATA(in, const float)[i] : RN_DATA(in, const double)[i];
    float small = (float)value;
    uint32_t bits = 0;
    uint64_t wide = 0;
    memcpy(&bits, &small, sizeof bits);
    memcpy(&wide, &value, sizeof wide);
    return field->type == RN_PB_FLOAT ? bits : wide;
  }
  int64_t value = in->dtype == RN_BOOL ? RN_DATA(in, const bool)[i] : rn_int_at(in, i);
  switch (field->type) {
    case RN_PB_INT32:
    case RN_PB_ENUM:
      return (uint64_t)(int64_t)(int32_t)value;
    case RN_PB_UINT32:
    case RN_PB_FIXED32:
    case RN_PB_SFIXED32:
      return (uint32_t)value;
    case RN_PB_SINT32:
      return (uint32_t)rn_pb_zigzag((int32_t)value);
    case RN_PB_SINT64:
      return rn_pb_zigzag(value);
    default:
      return (uint64_t)value;
  }
}

static void write_raw(const rn_proto_field_t* field, uint64_t raw, rn_strbuf_t* buf) {
  if (field->wire == RN_PB_WIRE_VARINT)
    rn_pb_put_varint(buf, raw);
  else
    rn_strbuf_append_n(buf, &raw, field->wire == RN_PB_WIRE_64 ? 8 : 4);
}

static void write_tag(const rn_proto_field_t* field, uint32_t wire, rn_strbuf_t* buf) {
  rn_pb_put_varint(buf, (uint64_t)field->number << 3 | wire);
}

static void write_field(const rn_proto_field_t* field, const rn_tensor_t* in, int64_t from,
                        int64_t count, rn_strbuf_t* buf, rn_strbuf_t* list) {
  if (field->is_packed) {
    list->size = 0;
    for (int64_t i = 0; i < count; ++i) write_raw(field, raw_number(field, in, from + i), list);
    if (list->failed) buf->failed = true;
    rn_pb_put_str(buf, field->number, rn_strbuf_view(list));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    if (field->wire == RN_PB_WIRE_LENGTH) {
      rn_pb_put_str(buf, field->number,
                    rn_tstring_view(&RN_DATA(in, const rn_tstring_t)[from + i]));
    } else if (field->wire == RN_PB_WIRE_GROUP) {
      write_tag(field, RN_PB_WIRE_GROUP, buf);
      rn_strbuf_append(buf, rn_tstring_view(&RN_DATA(in, const rn_tstring_t)[from + i]));
      write_tag(field, RN_PB_WIRE_END_GROUP, buf);
    } else {
      write_tag(field, field->wire, buf);
      write_raw(field, raw_number(field, in, from + i), buf);
    }
  }
}

// Each input is [messages..., repetitions], and sizes is [messages..., fields].
static rn_status_t check_inputs(rn_kernel_ctx_t* ctx, const rn_proto_fields_t* fields) {
  const rn_tensor_t* sizes = rn_in(ctx, 0);
  rn_shape_t common = {0, NULL};
  for (int32_t f = 0; f < fields->count; ++f) {
    const rn_proto_field_t* field = &fields->items[f];
    const rn_tensor_t* in = rn_in(ctx, field->place + 1);
    rn_str_t name = fields->names[field->place];
    if (in->rank < 2)
      return rn_invalid_argument(
          "Invalid shape for field %.*s.  Saw shape %s but it should be at least a matrix.",
          RN_STR_ARGS(name), rn_text_of(in).text);
    if (!rn_proto_field_fits(field, in->dtype))
      return rn_invalid_argument(
          "Incompatible type for field %.*s.  Saw dtype: %s but field type is: %s",
          RN_STR_ARGS(name), rn_dtype_name(in->dtype), rn_proto_field_type_name(field));
    rn_shape_t messages = {(int16_t)(in->rank - 1), rn_tensor_dims(in)};
    if (common.dims && !rn_shape_eq(common, messages))
      return rn_invalid_argument("Values must match up to the last dimension");
    common = messages;
  }
  if (!common.dims) return RN_OK;
  int64_t dims[RN_MAX_RANK];
  memcpy(dims, common.dims, (size_t)common.rank * sizeof *dims);
  dims[common.rank] = fields->count;
  rn_shape_t wanted = {(int16_t)(common.rank + 1), dims};
  if (rn_shape_eq(rn_tensor_shape(sizes), wanted)) return RN_OK;
  return rn_invalid_argument(
      "sizes should be batch_size + [len(field_names)].  Saw: %s but expected: %s",
      rn_text_of(sizes).text, rn_shape_text(wanted).text);
}

static rn_status_t encode_message(rn_kernel_ctx_t* ctx, int64_t m, rn_strbuf_t* buf,
                                  rn_strbuf_t* list) {
  const rn_proto_fields_t* fields = ctx->state;
  buf->size = 0;
  for (int32_t f = 0; f < fields->count; ++f) {
    const rn_proto_field_t* field = &fields->items[f];
    const rn_tensor_t* in = rn_in(ctx, field->place + 1);
    int64_t size = rn_int_at(rn_in(ctx, 0), m * fields->count + field->place);
    int64_t room = rn_tensor_dim(in, in->rank - 1);
    if (size > room)
      return rn_invalid_argument(
          "Size to write must not be larger than value tensor; but saw: %lld > %lld at message "
          "%lld field %d",
          (long long)size, (long long)room, (long long)m, field->place);
    if (size > 0) write_field(field, in, m * room, size, buf, list);
  }
  return rn_strbuf_status(buf);
}

static rn_status_t encode_proto(rn_kernel_ctx_t* ctx) {
  const rn_proto_fields_t* fields = ctx->state;
  const rn_tensor_t* sizes = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  rn_strbuf_t buf, list;
  RN_RETURN_IF_ERROR(check_inputs(ctx, fields));
  if (sizes->rank < 1) return rn_invalid_argument("sizes must be at least a vector");
  rn_shape_t shape = {(int16_t)(sizes->rank - 1), rn_tensor_dims(sizes)};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, &out));
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  rn_strbuf_init(&list, ctx->kernel->allocator);
  rn_status_t status = RN_OK;
  for (int64_t m = 0; m < out->count && rn_ok(status); ++m) {
    status = encode_message(ctx, m, &buf, &list);
    if (rn_ok(status)) status = put_text(out, m, rn_strbuf_view(&buf));
  }
  rn_strbuf_clear(&buf);
  rn_strbuf_clear(&list);
  return status;
}

#define ROW(name, init_, compute_)                                                       \
  {                                                                                      \
    .op = name, .device = "CPU", .state_size = sizeof(rn_proto_fields_t), .init = init_, \
    .destroy = fields_destroy, .compute = compute_                                       \
  }

static const rn_kernel_def_t rows[] = {
    ROW("DecodeProtoV2", decode_init, decode_proto),
    ROW("EncodeProto", encode_init, encode_proto),
};
RN_KERNEL_FAMILY(cpu_proto, rows);

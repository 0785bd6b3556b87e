// See tensor_codec.h.
#include "net/tensor_codec.h"

#include "proto/named_tensor.pb.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/scan.h"
#include "wire/writer.h"

// Bytes of at least this size are referenced, not copied.
#define LARGE 4096

void rn_encoder_open(rn_encoder_t* encoder, rn_message_t* message) {
  *encoder = (rn_encoder_t){.message = message};
  rn_strbuf_init(&encoder->head, message->allocator);
}

static void flush(rn_encoder_t* encoder) {
  if (rn_ok(encoder->status)) encoder->status = rn_strbuf_status(&encoder->head);
  if (rn_ok(encoder->status))
    encoder->status = rn_message_add(encoder->message, rn_strbuf_view(&encoder->head));
  encoder->head.size = 0;
}

rn_status_t rn_encoder_close(rn_encoder_t* encoder) {
  flush(encoder);
  rn_strbuf_clear(&encoder->head);
  rn_status_t status = encoder->status;
  encoder->status = RN_OK;
  return status;
}

// Typed lists that, packed, have the layout of a tensor: the field, and its type. Booleans may be
// written in it only: a sender may encode true as any number.
static const struct typed_list_t {
  uint32_t field;
  rn_dtype_t dtype;
} lists[] = {{rn_pb_TensorProto_float_val_field, RN_FLOAT},
             {rn_pb_TensorProto_double_val_field, RN_DOUBLE},
             {rn_pb_TensorProto_scomplex_val_field, RN_COMPLEX64},
             {rn_pb_TensorProto_dcomplex_val_field, RN_COMPLEX128},
             {rn_pb_TensorProto_bool_val_field, RN_BOOL}};

// The type whose list in field |number| can be read as it is; RN_INVALID: none.
static rn_dtype_t type_of_list(uint32_t number) {
  for (size_t i = 0; i < sizeof lists / sizeof *lists; ++i)
    if (lists[i].field == number && lists[i].dtype != RN_BOOL) return lists[i].dtype;
  return RN_INVALID;
}

// The field that the bytes of |tensor| can be written to as they are; 0: none.
static uint32_t field_of(const rn_tensor_t* tensor, rn_tensor_form_t form) {
  if (tensor->is_ref || !rn_dtype_is_plain(tensor->dtype)) return 0;
  if (form == RN_TENSOR_CONTENT) return rn_pb_TensorProto_tensor_content_field;
  for (size_t i = 0; i < sizeof lists / sizeof *lists; ++i)
    if (lists[i].dtype == (rn_dtype_t)tensor->dtype) return lists[i].field;
  return 0;
}

// Type, shape and the header of the bytes.
static void put_tensor_head(rn_strbuf_t* out, const rn_tensor_t* tensor, uint32_t field,
                            size_t content) {
  rn_pb_put_uint(out, rn_pb_TensorProto_dtype_field, tensor->dtype);
  size_t shape = rn_pb_begin(out, rn_pb_TensorProto_tensor_shape_field);
  for (int i = 0; i < tensor->rank; ++i) {
    size_t dim = rn_pb_begin(out, rn_pb_TensorShapeProto_dim_field);
    if (rn_tensor_dim(tensor, i))
      rn_pb_put_uint(out, rn_pb_TensorShapeProto_Dim_size_field,
                     (uint64_t)rn_tensor_dim(tensor, i));
    rn_pb_end(out, dim);
  }
  rn_pb_end(out, shape);
  rn_pb_put_length(out, field, content);
}

// The bytes themselves, last in a message.
static void put_content(rn_encoder_t* encoder, const rn_tensor_t* tensor, size_t size) {
  rn_str_t bytes = rn_str_n(tensor->data, size);
  flush(encoder);
  if (!rn_ok(encoder->status)) return;
  encoder->status = tensor->buffer ? rn_message_lend(encoder->message, tensor->buffer, bytes)
                                   : rn_message_add(encoder->message, bytes);
}

// A tensor whose bytes are not those of a field, through its message.
static rn_status_t put_other(rn_strbuf_t* out, const rn_tensor_t* tensor, rn_tensor_form_t form) {
  rn_arena_t arena;
  rn_pb_TensorProto_t proto;
  rn_arena_init(&arena, out->allocator);
  rn_status_t status = rn_tensor_to_proto(tensor, form, &arena, &proto);
  if (rn_ok(status)) status = RN_PB_ENCODE(TensorProto, &proto, NULL, out);
  rn_arena_clear(&arena);
  return status;
}

// Field |number|, a TensorProto; or, if |name| is given, a NamedTensorProto with one.
static void put_small(rn_encoder_t* encoder, uint32_t number, const rn_str_t* name,
                      const rn_tensor_t* tensor, rn_tensor_form_t form) {
  rn_strbuf_t* out = &encoder->head;
  size_t named = name ? rn_pb_begin(out, number) : 0;
  if (name && name->size) rn_pb_put_str(out, rn_pb_NamedTensorProto_name_field, *name);
  size_t body = rn_pb_begin(out, name ? rn_pb_NamedTensorProto_tensor_field : number);
  uint32_t field = field_of(tensor, form);
  if (field) {
    size_t size = rn_tensor_bytes(tensor);
    put_tensor_head(out, tensor, field, size);
    rn_strbuf_append(out, rn_str_n(tensor->data, size));
  } else {
    encoder->status = put_other(out, tensor, form);
  }
  rn_pb_end(out, body);
  if (name) rn_pb_end(out, named);
}

// The same for a tensor whose bytes stay where they are, so that all lengths come before them.
static void put_large(rn_encoder_t* encoder, uint32_t number, const rn_str_t* name,
                      const rn_tensor_t* tensor, rn_tensor_form_t form) {
  rn_strbuf_t body;
  rn_strbuf_init(&body, encoder->message->allocator);
  size_t content = rn_tensor_bytes(tensor);
  put_tensor_head(&body, tensor, field_of(tensor, form), content);
  encoder->status = rn_strbuf_status(&body);
  size_t size = body.size + content;
  if (name) {
    size_t inner = rn_pb_length_size(size);
    size_t named = name->size ? rn_pb_length_size(name->size) : 0;
    rn_pb_put_length(&encoder->head, number, named + inner);
    if (named) rn_pb_put_str(&encoder->head, rn_pb_NamedTensorProto_name_field, *name);
    number = rn_pb_NamedTensorProto_tensor_field;
  }
  rn_pb_put_length(&encoder->head, number, size);
  rn_strbuf_append(&encoder->head, rn_strbuf_view(&body));
  put_content(encoder, tensor, content);
  rn_strbuf_clear(&body);
}

static void put_tensor(rn_encoder_t* encoder, uint32_t number, const rn_str_t* name,
                       const rn_tensor_t* tensor, rn_tensor_form_t form) {
  if (!rn_ok(encoder->status)) return;
  bool is_large = field_of(tensor, form) && rn_tensor_bytes(tensor) >= LARGE;
  (is_large ? put_large : put_small)(encoder, number, name, tensor, form);
}

void rn_encode_tensor(rn_encoder_t* encoder, uint32_t number, const rn_tensor_t* tensor) {
  put_tensor(encoder, number, NULL, tensor, RN_TENSOR_CONTENT);
}

void rn_encode_named_tensor(rn_encoder_t* encoder, uint32_t number, rn_str_t name,
                            const rn_tensor_t* tensor, rn_tensor_form_t form) {
  put_tensor(encoder, number, &name, tensor, form);
}

void rn_encode_bytes(rn_encoder_t* encoder, uint32_t number, const rn_tensor_t* tensor) {
  if (!rn_ok(encoder->status)) return;
  size_t size = rn_tensor_bytes(tensor);
  rn_pb_put_length(&encoder->head, number, size);
  if (size < LARGE)
    rn_strbuf_append(&encoder->head, rn_str_n(tensor->data, size));
  else
    put_content(encoder, tensor, size);
}

// What a scan of a TensorProto finds.
typedef struct parts_t {
  uint64_t dtype;
  int64_t dims[RN_MAX_RANK];
  int rank;
  rn_str_t content;  // the elements as they are in memory: tensor_content or a packed list
} parts_t;

static bool scan_shape(rn_str_t bytes, parts_t* parts) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t dim;
  while (rn_pb_scan_next(&scan, &dim)) {
    if (dim.number != rn_pb_TensorShapeProto_dim_field || dim.wire != RN_PB_WIRE_LENGTH ||
        parts->rank == RN_MAX_RANK)
      return false;
    parts->dims[parts->rank++] =
        (int64_t)rn_field_value(dim.bytes, rn_pb_TensorShapeProto_Dim_size_field);
  }
  return !scan.is_bad;
}

// False if the tensor must be read through its message.
static bool scan_tensor(rn_str_t bytes, parts_t* parts) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  rn_dtype_t list = RN_INVALID;
  bool has_shape = false;
  while (rn_pb_scan_next(&scan, &field)) {
    if (field.wire == RN_PB_WIRE_VARINT && field.number == rn_pb_TensorProto_dtype_field) {
      parts->dtype = field.value;
    } else if (field.wire == RN_PB_WIRE_VARINT &&
               field.number == rn_pb_TensorProto_version_number_field) {
      continue;
    } else if (field.wire != RN_PB_WIRE_LENGTH) {
      return false;
    } else if (field.number == rn_pb_TensorProto_tensor_shape_field && !has_shape) {
      has_shape = true;
      if (!scan_shape(field.bytes, parts)) return false;
    } else if (!parts->content.size && (field.number == rn_pb_TensorProto_tensor_content_field ||
                                        type_of_list(field.number) != RN_INVALID)) {
      parts->content = field.bytes;
      list = type_of_list(field.number);
    } else {
      return false;
    }
  }
  return !scan.is_bad && parts->content.size && parts->dtype < RN_DTYPE_COUNT &&
         rn_dtype_is_plain((rn_dtype_t)parts->dtype) &&
         (list == RN_INVALID || list == (rn_dtype_t)parts->dtype);
}

// Reads a tensor whose elements are in the message as they are in memory: in place if they are
// many, by a copy otherwise. False if it is not such a tensor; then |*out| is unset.
static bool read_plain(rn_str_t bytes, rn_buffer_t* buffer, rn_allocator_t allocator,
                       rn_tensor_t* out, rn_status_t* out_status) {
  parts_t parts;
  parts.dtype = RN_INVALID;
  parts.rank = 0;
  parts.content = RN_STR("");
  if (!scan_tensor(bytes, &parts)) return false;
  rn_dtype_t dtype = (rn_dtype_t)parts.dtype;
  rn_shape_t shape = {parts.rank, parts.dims};
  if (!rn_shape_is_full(shape)) return false;
  rn_tensor_t tensor;
  rn_status_t status = rn_tensor_init(&tensor, dtype, shape);
  if (!rn_ok(status)) {
    rn_status_free(status);
    return false;
  }
  if (rn_tensor_bytes(&tensor) != parts.content.size) {
    rn_tensor_clear(&tensor);
    return false;
  }
  if (buffer && parts.content.size >= LARGE &&
      (uintptr_t)parts.content.data % rn_dtype_size(dtype) == 0) {
    rn_buffer_retain(buffer);
    tensor.buffer = buffer;
    tensor.data = (char*)parts.content.data;
    *out = tensor;
    return true;
  }
  rn_tensor_clear(&tensor);
  *out_status = rn_tensor_create(allocator, dtype, shape, out);
  if (rn_ok(*out_status)) memcpy(out->data, parts.content.data, parts.content.size);
  return true;
}

rn_status_t rn_decode_tensor(rn_str_t bytes, rn_buffer_t* buffer, size_t max_bytes,
                             rn_allocator_t allocator, rn_tensor_t* out) {
  *out = (rn_tensor_t){0};
  rn_status_t status = RN_OK;
  if (read_plain(bytes, buffer, allocator, out, &status)) return status;
  return rn_tensor_take_proto(bytes, max_bytes, allocator, out);
}

// Finds the start of the content by a walk up to the end of the head. A field that extends beyond
// the head is the content, or a message around it; that of the Open Inference Protocol has its raw
// contents outside of other messages.
#define RAW_INPUT_CONTENTS 7
size_t rn_align_content(rn_str_t head, size_t size) {
  (void)size;
  rn_pb_scan_t scan = rn_pb_scan(head);
  bool is_inside = false;
  while (scan.next < scan.end) {
    uint64_t tag, length;
    if (!rn_pb_scan_varint(&scan, &tag)) return 0;
    uint32_t number = (uint32_t)(tag >> 3), wire = tag & 7;
    if (wire == RN_PB_WIRE_VARINT) {
      if (!rn_pb_scan_varint(&scan, &length)) return 0;
      continue;
    }
    if (wire == RN_PB_WIRE_64 && scan.end - scan.next >= 8) {
      scan.next += 8;
      continue;
    }
    if (wire != RN_PB_WIRE_LENGTH || !rn_pb_scan_varint(&scan, &length)) return 0;
    bool goes_on = length > (uint64_t)(scan.end - scan.next);
    if (goes_on &&
        (number == rn_pb_TensorProto_tensor_content_field || type_of_list(number) != RN_INVALID ||
         (number == RAW_INPUT_CONTENTS && !is_inside)))
      return (size_t)(scan.next - head.data);
    if (!goes_on) scan.next += length;
    is_inside |= goes_on;
  }
  return 0;
}

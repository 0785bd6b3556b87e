// Converts tensors and shapes to and from messages.
#include "tensor/tensor_proto.h"

#include "tensor/object_proto.h"
#include "tensor/tstring.h"
#include "wire/encode.h"
#include "wire/text.h"
#include "wire/writer.h"

#define ERROR_TEXT_MAX 1024  // the most characters of a message quoted in an error

// Shapes.

// Makes the error "Shape [2,?] <what>", with the dims of the message.
static rn_status_t shape_error(const rn_pb_TensorShapeProto_t* proto, const char* what) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_default());
  for (uint32_t i = 0; i < proto->dim.count && i <= RN_MAX_RANK; ++i) {
    if (i) rn_strbuf_append(&text, RN_STR(","));
    if (proto->dim.items[i].size == RN_UNKNOWN) {
      rn_strbuf_append(&text, RN_STR("?"));
    } else {
      rn_strbuf_printf(&text, "%lld", (long long)proto->dim.items[i].size);
    }
  }
  rn_status_t status =
      rn_invalid_argument("Shape [%.*s] %s", RN_STR_ARGS(rn_strbuf_view(&text)), what);
  rn_strbuf_clear(&text);
  return status;
}

static rn_status_t check_dims(const rn_pb_TensorShapeProto_t* proto, bool partial) {
  if (proto->dim.count > RN_MAX_RANK) return shape_error(proto, "has too many dimensions");
  int64_t count = 1;
  for (uint32_t i = 0; i < proto->dim.count; ++i) {
    int64_t size = proto->dim.items[i].size;
    if (size < RN_UNKNOWN && partial) {
      return shape_error(proto, "has dimensions with values below -1 (where -1 means unknown)");
    }
    if (size < 0 && !partial) return shape_error(proto, "is not fully defined");
    if (size == RN_UNKNOWN || count == RN_UNKNOWN) {
      count = RN_UNKNOWN;
    } else if (!rn_mul_i64_ok(count, size, &count)) {
      return shape_error(proto, "is too large (more than 2**63 - 1 entries)");
    }
  }
  return RN_OK;
}

rn_status_t rn_shape_from_proto(const rn_pb_TensorShapeProto_t* proto, rn_arena_t* arena,
                                rn_shape_t* out) {
  *out = RN_SHAPE_UNKNOWN;
  if (proto->unknown_rank) {
    if (proto->dim.count == 0) return RN_OK;
    return rn_invalid_argument("An unknown shape must not have any dimensions set.");
  }
  RN_RETURN_IF_ERROR(check_dims(proto, true));
  int64_t* dims = NULL;
  if (proto->dim.count) RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, proto->dim.count, &dims));
  for (uint32_t i = 0; i < proto->dim.count; ++i) dims[i] = proto->dim.items[i].size;
  *out = (rn_shape_t){(int32_t)proto->dim.count, dims};
  return RN_OK;
}

rn_status_t rn_shape_to_proto(rn_shape_t shape, rn_arena_t* arena, rn_pb_TensorShapeProto_t* out) {
  *out = (rn_pb_TensorShapeProto_t){.unknown_rank = !rn_shape_has_rank(shape)};
  if (shape.rank <= 0) return RN_OK;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)shape.rank, &out->dim.items));
  for (int32_t i = 0; i < shape.rank; ++i) out->dim.items[i].size = shape.dims[i];
  out->dim.count = out->dim.capacity = (uint32_t)shape.rank;
  return RN_OK;
}

// The typed list that holds the values of a type.

typedef enum values_kind_t {
  VALUES_NONE,    // we read no list for this type
  VALUES_AS_IS,   // the list has the memory layout of a tensor
  VALUES_NARROW,  // each element is the low bits of an int32_t
  VALUES_STRING,
} values_kind_t;

typedef struct values_t {
  values_kind_t kind;
  const void* items;
  size_t count;  // of elements
} values_t;

// The types whose field has the memory layout of a tensor: (type, field, items per element).
#define RN_AS_THEY_ARE(X)          \
  X(RN_FLOAT, float_val, 1)        \
  X(RN_DOUBLE, double_val, 1)      \
  X(RN_INT32, int_val, 1)          \
  X(RN_QINT32, int_val, 1)         \
  X(RN_INT64, int64_val, 1)        \
  X(RN_BOOL, bool_val, 1)          \
  X(RN_UINT32, uint32_val, 1)      \
  X(RN_UINT64, uint64_val, 1)      \
  X(RN_COMPLEX64, scomplex_val, 2) \
  X(RN_COMPLEX128, dcomplex_val, 2)

static values_t values_of(const rn_pb_TensorProto_t* proto) {
  switch (proto->dtype) {
#define RN_AS_IS(dtype, field, per_element) \
  case dtype:                               \
    return (values_t){VALUES_AS_IS, proto->field.items, proto->field.count / (per_element)};
    RN_AS_THEY_ARE(RN_AS_IS)
#undef RN_AS_IS
    case RN_STRING:
      return (values_t){VALUES_STRING, proto->string_val.items, proto->string_val.count};
    case RN_HALF:
    case RN_BFLOAT16:
      return (values_t){VALUES_NARROW, proto->half_val.items, proto->half_val.count};
    case RN_FLOAT8_E5M2:
    case RN_FLOAT8_E4M3FN:
    case RN_FLOAT8_E4M3FNUZ:
    case RN_FLOAT8_E4M3B11FNUZ:
    case RN_FLOAT8_E5M2FNUZ:
      return (values_t){VALUES_AS_IS, proto->float8_val.data, proto->float8_val.size};
    case RN_RESOURCE:
    case RN_VARIANT:
      return (values_t){VALUES_NONE, NULL, 0};
    default:  // the small integers, quantised or not
      return (values_t){VALUES_NARROW, proto->int_val.items, proto->int_val.count};
  }
}

// The bits of a type narrower than a byte, sign-extended if it is signed.
static int32_t narrow(rn_dtype_t dtype, int32_t value) {
  uint32_t low = (uint32_t)value;
  switch (dtype) {
    case RN_INT4:
      return (int32_t)(low << 28) >> 28;
    case RN_INT2:
      return (int32_t)(low << 30) >> 30;
    case RN_UINT4:
      return (int32_t)(low & 15);
    case RN_UINT2:
      return (int32_t)(low & 3);
    default:
      return value;
  }
}

// Repeats element |have| - 1 up to |count| elements of |size| bytes; fills with zeros if |have| is
// 0.
static void fill_with_last(char* data, size_t have, size_t count, size_t size) {
  if (have == 0) {
    memset(data, 0, count * size);
    return;
  }
  const char* last = data + (have - 1) * size;
  size_t done = 1, wanted = count - have + 1;  // the last one and those that follow
  while (done < wanted) {
    size_t more = done < wanted - done ? done : wanted - done;
    memcpy(data + (have - 1 + done) * size, last, more * size);
    done += more;
  }
}

static void copy_values(const values_t* values, rn_tensor_t* tensor) {
  size_t size = rn_dtype_size(tensor->dtype), count = (size_t)tensor->count;
  size_t have = values->count < count ? values->count : count;
  char* data = tensor->data;
  if (values->kind == VALUES_AS_IS) {
    if (have) memcpy(data, values->items, have * size);
  } else {
    const int32_t* items = values->items;
    for (size_t i = 0; i < have; ++i) {
      int32_t value = narrow(tensor->dtype, items[i]);
      memcpy(data + i * size, &value, size);  // little-endian: the low bytes
    }
  }
  if (have < count) fill_with_last(data, have, count, size);
}

static rn_status_t copy_strings(const rn_str_t* items, size_t have, rn_tensor_t* tensor) {
  rn_tstring_t* strings = tensor->data;
  for (size_t i = 0; i < (size_t)tensor->count && have; ++i) {
    rn_str_t str = items[i < have ? i : have - 1];
    if (!rn_tstring_assign(&strings[i], str.data, str.size)) return rn_out_of_memory();
  }
  return RN_OK;
}

// Computes the bytes of all strings of a tensor of |count| elements; false on overflow.
static bool string_bytes(const rn_str_t* items, size_t have, size_t count, size_t* out) {
  size_t total = 0, rest = 0;
  for (size_t i = 0; i < have && i < count; ++i) {
    if (!rn_add_ok(total, items[i].size, &total)) return false;
  }
  if (have && have < count) {
    if (!rn_mul_ok(items[have - 1].size, count - have, &rest)) return false;
  }
  return rn_add_ok(total, rest, out);
}

bool rn_tensor_content_split(rn_str_t content, size_t count, rn_str_t* items) {
  const uint8_t* p = (const uint8_t*)content.data;
  const uint8_t* end = p + content.size;
  for (size_t i = 0; i < count; ++i) {
    uint64_t size = 0;
    unsigned shift = 0;
    uint8_t byte = 0x80;
    for (; byte >= 0x80 && shift < 35; shift += 7) {
      if (p == end) return false;
      byte = *p++;
      size |= (uint64_t)(byte & 0x7f) << shift;
    }
    if (byte >= 0x80 || size > UINT32_MAX) return false;
    items[i].size = (size_t)size;
  }
  for (size_t i = 0; i < count; ++i) {
    if (items[i].size > (size_t)(end - p)) return false;
    items[i].data = (const char*)p;
    p += items[i].size;
  }
  return p == end;
}

rn_status_t rn_tensor_proto_error(const rn_pb_TensorProto_t* proto) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_default());
  rn_pb_TensorProto_t shown = *proto;
  bool cut = shown.tensor_content.size > ERROR_TEXT_MAX / 4;
  if (cut) shown.tensor_content.size = ERROR_TEXT_MAX / 4;
  rn_status_free(rn_pb_print(&rn_pb_TensorProto_desc, &shown, &text));
  rn_str_t view = rn_strbuf_view(&text);
  cut |= view.size > ERROR_TEXT_MAX;
  if (view.size > ERROR_TEXT_MAX) view.size = ERROR_TEXT_MAX;
  rn_status_t status = rn_invalid_argument("Cannot parse tensor from proto: %.*s%s",
                                           RN_STR_ARGS(view), cut ? "..." : "");
  rn_strbuf_clear(&text);
  return status;
}

static rn_status_t too_large(const rn_tensor_t* shape, size_t max_bytes) {
  return rn_resource_exhausted(
      "A TensorProto asks for %lld elements of type %s, more than the %zu "
      "bytes allowed",
      (long long)shape->count, rn_dtype_name(shape->dtype), max_bytes);
}

static rn_status_t read_strings(const rn_pb_TensorProto_t* proto, values_t values, size_t max_bytes,
                                rn_allocator_t allocator, rn_tensor_t* tensor) {
  size_t count = (size_t)tensor->count, bytes = 0;
  rn_str_t* split = NULL;
  rn_status_t status = RN_OK;
  if (proto->tensor_content.size) {
    // Each string takes at least one byte, so the table is at most a multiple of the input.
    if (count > proto->tensor_content.size) return rn_tensor_proto_error(proto);
    RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, count, &split));
    if (!rn_tensor_content_split(proto->tensor_content, count, split))
      status = rn_tensor_proto_error(proto);
    values = (values_t){VALUES_STRING, split, count};
  }
  size_t room = max_bytes - rn_tensor_bytes(tensor);
  if (rn_ok(status) && (!string_bytes(values.items, values.count, count, &bytes) || bytes > room)) {
    status = too_large(tensor, max_bytes);
  }
  if (rn_ok(status)) {
    rn_shape_t shape = rn_tensor_shape(tensor);
    rn_tensor_t full = {0};
    status = rn_tensor_create(allocator, RN_STRING, shape, &full);
    if (rn_ok(status)) status = copy_strings(values.items, values.count, &full);
    rn_tensor_clear(tensor);
    *tensor = full;
  }
  if (split) RN_FREE_ARRAY(allocator, split, count);
  return status;
}

static rn_status_t read_plain(const rn_pb_TensorProto_t* proto, values_t values,
                              rn_allocator_t allocator, rn_tensor_t* tensor) {
  rn_str_t content = proto->tensor_content;
  if (content.size && content.size != rn_tensor_bytes(tensor)) return rn_tensor_proto_error(proto);
  RN_RETURN_IF_ERROR(
      rn_buffer_create(allocator, tensor->dtype, rn_tensor_bytes(tensor), &tensor->buffer));
  tensor->data = tensor->buffer->data;
  if (!content.size) {
    copy_values(&values, tensor);
  } else if (tensor->dtype == RN_BOOL) {
    // Our bools are 0 or 1, whatever the message holds.
    for (size_t i = 0; i < content.size; ++i) RN_DATA(tensor, bool)[i] = content.data[i] != 0;
  } else {
    memcpy(tensor->data, content.data, content.size);
  }
  return RN_OK;
}

rn_status_t rn_tensor_from_proto(const rn_pb_TensorProto_t* proto, size_t max_bytes,
                                 rn_allocator_t allocator, rn_tensor_t* out) {
  *out = (rn_tensor_t){0};
  if (!rn_dtype_is_valid(proto->dtype) || rn_dtype_is_ref(proto->dtype))
    return rn_tensor_proto_error(proto);
  int64_t dims[RN_MAX_RANK];
  rn_shape_t shape = RN_SHAPE_SCALAR;
  if (proto->tensor_shape) {
    // Ignores unknown_rank: without dims, such a tensor is a scalar.
    RN_RETURN_IF_ERROR(check_dims(proto->tensor_shape, false));
    shape = (rn_shape_t){(int32_t)proto->tensor_shape->dim.count, dims};
    for (int32_t i = 0; i < shape.rank; ++i) dims[i] = proto->tensor_shape->dim.items[i].size;
  }
  RN_RETURN_IF_ERROR(rn_tensor_init(out, proto->dtype, shape));
  values_t values = values_of(proto);
  rn_status_t status = RN_OK;
  if (rn_tensor_bytes(out) > max_bytes) {
    status = too_large(out, max_bytes);
  } else if (values.kind == VALUES_NONE) {
    status = rn_objects_from_proto(proto, max_bytes, allocator, out);
  } else if (values.kind == VALUES_STRING) {
    status = read_strings(proto, values, max_bytes, allocator, out);
  } else {
    status = read_plain(proto, values, allocator, out);
  }
  if (!rn_ok(status)) rn_tensor_clear(out);
  return status;
}

// Tensors to messages.

static rn_status_t string_content(const rn_tensor_t* tensor, rn_arena_t* arena, rn_str_t* out) {
  const rn_tstring_t* strings = tensor->data;
  size_t total = 0, lengths = 0;
  if (!rn_mul_ok((size_t)tensor->count, RN_PB_MAX_VARINT, &lengths)) return rn_out_of_memory();
  total = lengths;
  for (int64_t i = 0; i < tensor->count; ++i) {
    if (!rn_add_ok(total, rn_tstring_view(&strings[i]).size, &total)) return rn_out_of_memory();
  }
  void* data = NULL;
  RN_RETURN_IF_ERROR(rn_arena_alloc(arena, total, &data));
  char* p = data;
  for (int64_t i = 0; i < tensor->count; ++i) {
    p = rn_pb_varint_to(p, rn_tstring_view(&strings[i]).size);
  }
  for (int64_t i = 0; i < tensor->count; ++i) {
    rn_str_t str = rn_tstring_view(&strings[i]);
    if (str.size) memcpy(p, str.data, str.size);
    p += str.size;
  }
  *out = rn_str_n(data, (size_t)(p - (char*)data));
  return RN_OK;
}

static rn_status_t string_values(const rn_tensor_t* tensor, rn_arena_t* arena,
                                 rn_pb_TensorProto_t* out) {
  size_t count = (size_t)tensor->count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &out->string_val.items));
  for (size_t i = 0; i < count; ++i) {
    out->string_val.items[i] = rn_tstring_view(&RN_DATA(tensor, rn_tstring_t)[i]);
  }
  out->string_val.count = out->string_val.capacity = (uint32_t)count;
  return RN_OK;
}

// Widens elements of small types to int32_t: their value, or the bits of a half.
static rn_status_t widened_values(const rn_tensor_t* tensor, rn_arena_t* arena,
                                  rn_pb_TensorProto_t* out) {
  size_t count = (size_t)tensor->count;
  int32_t* items = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &items));
  for (size_t i = 0; i < count; ++i) {
    switch (tensor->dtype) {
      case RN_INT16:
      case RN_QINT16:
        items[i] = RN_DATA(tensor, int16_t)[i];
        break;
      case RN_UINT16:
      case RN_QUINT16:
      case RN_HALF:
      case RN_BFLOAT16:
        items[i] = RN_DATA(tensor, uint16_t)[i];
        break;
      case RN_INT8:
      case RN_QINT8:
      case RN_INT4:
      case RN_INT2:
        items[i] = RN_DATA(tensor, int8_t)[i];
        break;
      default:
        items[i] = RN_DATA(tensor, uint8_t)[i];
    }
  }
  bool is_half = tensor->dtype == RN_HALF || tensor->dtype == RN_BFLOAT16;
  rn_pb_list_t* list = (rn_pb_list_t*)(is_half ? (void*)&out->half_val : (void*)&out->int_val);
  *list = (rn_pb_list_t){items, (uint32_t)count, (uint32_t)count};
  return RN_OK;
}

static rn_status_t typed_values(const rn_tensor_t* tensor, rn_arena_t* arena,
                                rn_pb_TensorProto_t* out) {
  uint32_t count = (uint32_t)tensor->count;
  switch (tensor->dtype) {
#define RN_AS_IS(dtype, field, per_element)                         \
  case dtype:                                                       \
    out->field.items = tensor->data;                                \
    out->field.count = out->field.capacity = count * (per_element); \
    return RN_OK;
    RN_AS_THEY_ARE(RN_AS_IS)
#undef RN_AS_IS
    case RN_STRING:
      return string_values(tensor, arena, out);
    case RN_FLOAT8_E5M2:
    case RN_FLOAT8_E4M3FN:
    case RN_FLOAT8_E4M3FNUZ:
    case RN_FLOAT8_E4M3B11FNUZ:
    case RN_FLOAT8_E5M2FNUZ:
      out->float8_val = rn_str_n(tensor->data, count);
      return RN_OK;
    default:
      return widened_values(tensor, arena, out);
  }
}

rn_status_t rn_tensor_to_proto(const rn_tensor_t* tensor, rn_tensor_form_t form, rn_arena_t* arena,
                               rn_pb_TensorProto_t* out) {
  *out = (rn_pb_TensorProto_t){.dtype = tensor->dtype};
  bool is_object = tensor->dtype == RN_RESOURCE || tensor->dtype == RN_VARIANT;
  if (tensor->is_ref)
    return rn_unimplemented("A %s reference tensor has no TensorProto",
                            rn_dtype_name(tensor->dtype));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &out->tensor_shape));
  RN_RETURN_IF_ERROR(rn_shape_to_proto(rn_tensor_shape(tensor), arena, out->tensor_shape));
  if (tensor->count == 0) return RN_OK;
  if (form == RN_TENSOR_AUTO)
    form = tensor->count > 1 && tensor->dtype != RN_STRING ? RN_TENSOR_CONTENT : RN_TENSOR_TYPED;
  if (form == RN_TENSOR_CONTENT) {
    if (is_object) return rn_objects_to_proto(tensor, true, arena, out);
    if (tensor->dtype == RN_STRING) return string_content(tensor, arena, &out->tensor_content);
    out->tensor_content = rn_str_n(tensor->data, rn_tensor_bytes(tensor));
    return RN_OK;
  }
  // A list has a 32-bit count and at most two numbers per element.
  if (tensor->count > UINT32_MAX / 2) {
    return rn_resource_exhausted("A tensor of %lld elements is too large for a TensorProto",
                                 (long long)tensor->count);
  }
  return is_object ? rn_objects_to_proto(tensor, false, arena, out)
                   : typed_values(tensor, arena, out);
}

rn_status_t rn_tensor_put_proto(const rn_tensor_t* tensor, rn_tensor_form_t form,
                                rn_strbuf_t* out) {
  rn_pb_TensorProto_t proto;
  rn_arena_t arena;
  rn_arena_init(&arena, out->allocator);
  rn_status_t status = rn_tensor_to_proto(tensor, form, &arena, &proto);
  if (rn_ok(status)) status = RN_PB_ENCODE(TensorProto, &proto, NULL, out);
  rn_arena_clear(&arena);
  return status;
}

rn_status_t rn_tensor_take_proto(rn_str_t bytes, size_t max_bytes, rn_allocator_t allocator,
                                 rn_tensor_t* out) {
  rn_pb_TensorProto_t* proto = NULL;
  rn_arena_t arena;
  rn_arena_init(&arena, allocator);
  rn_status_t status = RN_PB_DECODE(TensorProto, bytes, NULL, &arena, &proto);
  if (rn_ok(status)) status = rn_tensor_from_proto(proto, max_bytes, allocator, out);
  rn_arena_clear(&arena);
  return status;
}

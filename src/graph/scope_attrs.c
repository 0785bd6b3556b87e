// The generic builder's attributes and constants. Values are copied into the scope, so the caller's
// arrays may be freed at once.
#include <math.h>

#include "graph/build.h"

static rn_status_t copy_array(rn_scope_t* scope, const void* items, int count, size_t size,
                              void** out) {
  if (count < 0) return rn_invalid_argument("A list of %d values", count);
  RN_RETURN_IF_ERROR(rn_arena_alloc_array(rn_scope_scratch(scope), (size_t)count, size, out));
  if (count) memcpy(*out, items, (size_t)count * size);
  return RN_OK;
}

static rn_status_t copy_shape(rn_scope_t* scope, const int64_t* dims, int rank, rn_shape_t* out) {
  if (rank > RN_MAX_RANK) return rn_invalid_argument("A shape of rank %d", rank);
  return rn_shape_copy(rn_scope_scratch(scope), (rn_shape_t){rank < 0 ? RN_UNKNOWN : rank, dims},
                       out);
}

// Adds the value, or records the error of making it.
static void add(rn_scope_t* scope, const char* name, rn_status_t status, rn_attr_value_t value) {
  if (rn_ok(status)) {
    rn_scope_add_attr(scope, name, &value);
  } else {
    rn_scope_fail(scope, status);
  }
}

void rn_op_attr_bytes(rn_scope_t* scope, const char* name, rn_str_t value) {
  if (!rn_scope_can_add(scope)) return;
  rn_attr_value_t attr = {.kind = RN_ATTR_STRING};
  rn_status_t status = rn_arena_str(rn_scope_scratch(scope), value, &attr.s);
  add(scope, name, status, attr);
}

RN_API void rn_op_attr_string(rn_scope_t* scope, const char* name, const char* value) {
  rn_op_attr_bytes(scope, name, rn_str(value));
}

RN_API void rn_op_attr_int(rn_scope_t* scope, const char* name, int64_t value) {
  if (!rn_scope_can_add(scope)) return;
  add(scope, name, RN_OK, (rn_attr_value_t){.kind = RN_ATTR_INT, .i = value});
}

RN_API void rn_op_attr_float(rn_scope_t* scope, const char* name, float value) {
  if (!rn_scope_can_add(scope)) return;
  add(scope, name, RN_OK, (rn_attr_value_t){.kind = RN_ATTR_FLOAT, .f = value});
}

RN_API void rn_op_attr_bool(rn_scope_t* scope, const char* name, bool value) {
  if (!rn_scope_can_add(scope)) return;
  add(scope, name, RN_OK, (rn_attr_value_t){.kind = RN_ATTR_BOOL, .b = value});
}

RN_API void rn_op_attr_type(rn_scope_t* scope, const char* name, int dtype) {
  if (!rn_scope_can_add(scope)) return;
  add(scope, name, RN_OK, (rn_attr_value_t){.kind = RN_ATTR_TYPE, .type = dtype});
}

RN_API void rn_op_attr_shape(rn_scope_t* scope, const char* name, const int64_t* dims, int rank) {
  if (!rn_scope_can_add(scope)) return;
  rn_attr_value_t attr = {.kind = RN_ATTR_SHAPE};
  rn_status_t status = copy_shape(scope, dims, rank, &attr.shape);
  add(scope, name, status, attr);
}

static rn_status_t make_tensor(rn_scope_t* scope, int dtype, rn_shape_t shape, const void* data,
                               const rn_tensor_t** out) {
  if (!rn_dtype_is_valid(dtype) || !rn_dtype_is_plain(dtype)) {
    return rn_invalid_argument("A constant of type %s cannot be made from bytes",
                               rn_dtype_name(dtype));
  }
  rn_tensor_t* tensor = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(rn_scope_scratch(scope), &tensor));
  RN_RETURN_IF_ERROR(rn_tensor_create(rn_scope_graph(scope)->allocator, dtype, shape, tensor));
  size_t bytes = rn_tensor_bytes(tensor);
  if (bytes) memcpy(tensor->data, data, bytes);
  *out = tensor;
  return RN_OK;
}

RN_API void rn_op_attr_tensor(rn_scope_t* scope, const char* name, int dtype, const int64_t* dims,
                              int rank, const void* data) {
  if (!rn_scope_can_add(scope)) return;
  rn_attr_value_t attr = {.kind = RN_ATTR_TENSOR};
  rn_status_t status = make_tensor(scope, dtype, (rn_shape_t){rank, dims}, data, &attr.tensor);
  add(scope, name, status, attr);
}

static rn_status_t make_func(rn_scope_t* scope, const char* name, const rn_func_attr_t** out) {
  rn_func_attr_t* func = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(rn_scope_scratch(scope), &func));
  *out = func;
  return rn_arena_str(rn_scope_scratch(scope), rn_str(name), &func->name);
}

RN_API void rn_op_attr_func(rn_scope_t* scope, const char* name, const char* function) {
  if (!rn_scope_can_add(scope)) return;
  rn_attr_value_t attr = {.kind = RN_ATTR_FUNC};
  rn_status_t status = make_func(scope, function, &attr.func);
  add(scope, name, status, attr);
}

static rn_attr_value_t list_of(rn_attr_kind_t kind, int count, const void* items) {
  return (rn_attr_value_t){.kind = (uint8_t)kind, .is_list = true, .count = count, .list_i = items};
}

// Adds a list of |count| plain values of |size| bytes each.
static void add_list(rn_scope_t* scope, const char* name, rn_attr_kind_t kind, const void* values,
                     int count, size_t size) {
  if (!rn_scope_can_add(scope)) return;
  void* copy = NULL;
  rn_status_t status = copy_array(scope, values, count, size, &copy);
  add(scope, name, status, list_of(kind, count, copy));
}

RN_API void rn_op_attr_int_list(rn_scope_t* scope, const char* name, const int64_t* values,
                                int count) {
  add_list(scope, name, RN_ATTR_INT, values, count, sizeof *values);
}

RN_API void rn_op_attr_float_list(rn_scope_t* scope, const char* name, const float* values,
                                  int count) {
  add_list(scope, name, RN_ATTR_FLOAT, values, count, sizeof *values);
}

RN_API void rn_op_attr_bool_list(rn_scope_t* scope, const char* name, const bool* values,
                                 int count) {
  add_list(scope, name, RN_ATTR_BOOL, values, count, sizeof *values);
}

_Static_assert(sizeof(int) == sizeof(rn_dtype_t), "lists of types are lists of ints");

RN_API void rn_op_attr_type_list(rn_scope_t* scope, const char* name, const int* values,
                                 int count) {
  add_list(scope, name, RN_ATTR_TYPE, values, count, sizeof *values);
}

RN_API void rn_op_attr_string_list(rn_scope_t* scope, const char* name, const char* const* values,
                                   int count) {
  if (!rn_scope_can_add(scope)) return;
  rn_str_t* copy = NULL;
  rn_status_t status = count < 0 ? rn_invalid_argument("A list of %d values", count)
                                 : RN_ARENA_ARRAY(rn_scope_scratch(scope), (size_t)count, &copy);
  for (int i = 0; rn_ok(status) && i < count; i++) {
    status = rn_arena_str(rn_scope_scratch(scope), rn_str(values[i]), &copy[i]);
  }
  add(scope, name, status, list_of(RN_ATTR_STRING, count, copy));
}

RN_API void rn_op_attr_shape_list(rn_scope_t* scope, const char* name, const int64_t* const* dims,
                                  const int* ranks, int count) {
  if (!rn_scope_can_add(scope)) return;
  rn_shape_t* copy = NULL;
  rn_status_t status = count < 0 ? rn_invalid_argument("A list of %d values", count)
                                 : RN_ARENA_ARRAY(rn_scope_scratch(scope), (size_t)count, &copy);
  for (int i = 0; rn_ok(status) && i < count; i++) {
    status = copy_shape(scope, dims[i], ranks[i], &copy[i]);
  }
  add(scope, name, status, list_of(RN_ATTR_SHAPE, count, copy));
}

RN_API void rn_op_attr_func_list(rn_scope_t* scope, const char* name, const char* const* functions,
                                 int count) {
  if (!rn_scope_can_add(scope)) return;
  const rn_func_attr_t** copy = NULL;
  rn_status_t status = count < 0 ? rn_invalid_argument("A list of %d values", count)
                                 : RN_ARENA_ARRAY(rn_scope_scratch(scope), (size_t)count, &copy);
  for (int i = 0; rn_ok(status) && i < count; i++)
    status = make_func(scope, functions[i], &copy[i]);
  add(scope, name, status, list_of(RN_ATTR_FUNC, count, copy));
}

RN_API rn_edge_t rn_const(rn_scope_t* scope, int dtype, const int64_t* dims, int rank,
                          const void* data) {
  rn_op_begin(scope, "Const");
  rn_op_attr_type(scope, "dtype", dtype);
  rn_op_attr_tensor(scope, "value", dtype, dims, rank, data);
  return (rn_edge_t){rn_op_finish(scope), 0};
}

RN_API rn_edge_t rn_const_float(rn_scope_t* scope, float value) {
  return rn_const(scope, RN_FLOAT, NULL, 0, &value);
}

RN_API rn_edge_t rn_const_int32(rn_scope_t* scope, int32_t value) {
  return rn_const(scope, RN_INT32, NULL, 0, &value);
}

RN_API rn_edge_t rn_const_int32_list(rn_scope_t* scope, const int32_t* values, int count) {
  int64_t dim = count;
  return rn_const(scope, RN_INT32, &dim, 1, values);
}

// The 16 high bits, rounded to the nearest, ties to even.
static uint16_t to_bfloat16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (isnan(value)) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

// IEEE 754 binary16, rounded to the nearest, ties to even.
static uint16_t to_half(float value) {
  uint16_t sign = signbit(value) ? 0x8000 : 0;
  double size = fabs((double)value);
  if (isnan(value)) return sign | 0x7E00;
  if (size >= 65520.0) return sign | 0x7C00;
  // Units in the last place: 2^-24 for numbers below 2^-14, else 2^-10 of the power of two below.
  int exponent = size < 0x1p-14 ? -14 : ilogb(size);
  double units = nearbyint(ldexp(size, 10 - exponent));
  return (uint16_t)(sign | (uint16_t)(units + (size < 0x1p-14 ? 0 : (exponent + 14) * 1024)));
}

// Writes |value| as |dtype| into the 16 bytes at |out|; false if the type has no such number.
static bool convert(int dtype, double value, void* out) {
#define CONVERT(enumerator, type)          \
  case RN_##enumerator: {                  \
    type converted = (type)value;          \
    memcpy(out, &converted, sizeof(type)); \
    return true;                           \
  }
#define CONVERT_INT(enumerator, type, min, max)                             \
  case RN_##enumerator: {                                                   \
    if (!(value >= (double)min && value < (double)max + 1.0)) return false; \
    type converted = (type)value;                                           \
    memcpy(out, &converted, sizeof(type));                                  \
    return true;                                                            \
  }
  float narrow = (float)value;
  uint16_t bits;
  switch (dtype) {
    CONVERT(FLOAT, float)
    CONVERT(DOUBLE, double)
    CONVERT(BOOL, bool)
    CONVERT_INT(INT8, int8_t, INT8_MIN, INT8_MAX)
    CONVERT_INT(INT16, int16_t, INT16_MIN, INT16_MAX)
    CONVERT_INT(INT32, int32_t, INT32_MIN, INT32_MAX)
    CONVERT_INT(INT64, int64_t, INT64_MIN, INT64_MAX)
    CONVERT_INT(UINT8, uint8_t, 0, UINT8_MAX)
    CONVERT_INT(UINT16, uint16_t, 0, UINT16_MAX)
    CONVERT_INT(UINT32, uint32_t, 0, UINT32_MAX)
    CONVERT_INT(UINT64, uint64_t, 0, UINT64_MAX)
    CONVERT_INT(QINT8, int8_t, INT8_MIN, INT8_MAX)
    CONVERT_INT(QUINT8, uint8_t, 0, UINT8_MAX)
    CONVERT_INT(QINT16, int16_t, INT16_MIN, INT16_MAX)
    CONVERT_INT(QUINT16, uint16_t, 0, UINT16_MAX)
    CONVERT_INT(QINT32, int32_t, INT32_MIN, INT32_MAX)
    case RN_COMPLEX64:  // the imaginary part is 0
      memcpy(out, &narrow, sizeof narrow);
      return true;
    case RN_COMPLEX128:
      memcpy(out, &value, sizeof value);
      return true;
    case RN_HALF:
      bits = to_half(narrow);
      memcpy(out, &bits, sizeof bits);
      return true;
    case RN_BFLOAT16:
      bits = to_bfloat16(narrow);
      memcpy(out, &bits, sizeof bits);
      return true;
    default:
      return false;
  }
#undef CONVERT_INT
#undef CONVERT
}

RN_API rn_edge_t rn_const_scalar(rn_scope_t* scope, int dtype, double value) {
  _Alignas(16) char bytes[16] = {0};
  if (!rn_scope_ok(scope)) return RN_NO_EDGE;
  if (!convert(dtype, value, bytes)) {
    rn_scope_fail(
        scope, rn_invalid_argument("A scalar constant cannot be of type %s", rn_dtype_name(dtype)));
    return RN_NO_EDGE;
  }
  return rn_const(scope, dtype, NULL, 0, bytes);
}

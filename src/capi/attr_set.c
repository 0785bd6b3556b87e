// Sets attributes of an operation under construction.
#include "capi/description.h"
#include "framework/attr_proto.h"
#include "proto/attr_value.pb.h"
#include "tensor/tensor_proto.h"

// Whether |desc| and |name| are usable; if only the name is missing, sets the error of |desc|.
static bool usable(TF_OperationDescription* desc, const char* name, const char* function) {
  if (!desc) return false;
  if (name) return true;
  rn_desc_fail(desc, rn_capi_null(function, "attr_name"));
  return false;
}
#define USABLE(desc, name) usable((desc), (name), __func__)

// Whether |count| and |values| are a valid list.
static bool is_list(TF_OperationDescription* desc, const char* name, const void* values,
                    int count) {
  if (count >= 0 && (values || count == 0)) return true;
  rn_desc_fail(desc, rn_invalid_argument("Attribute '%s' of node '%s' has a bad list of %d values",
                                         name, desc->name.data, count));
  return false;
}

static void add(TF_OperationDescription* desc, const char* name, rn_status_t status,
                rn_attr_value_t value) {
  if (rn_ok(status)) status = rn_desc_add_attr(desc, name, &value);
  rn_desc_fail(desc, status);
}

#define LIST(attr_kind, n, member, pointer) \
  (rn_attr_value_t) { .kind = (attr_kind), .is_list = true, .count = (n), .member = (pointer) }

void TF_SetAttrString(TF_OperationDescription* desc, const char* attr_name, const void* value,
                      size_t length) {
  if (!USABLE(desc, attr_name)) return;
  rn_str_t copy = {0};
  rn_status_t status = value || length == 0 ? rn_desc_copy(desc, rn_str_n(value, length), &copy)
                                            : RN_CAPI_NULL("value");
  add(desc, attr_name, status, (rn_attr_value_t){.kind = RN_ATTR_STRING, .s = copy});
}

void TF_SetAttrStringList(TF_OperationDescription* desc, const char* attr_name,
                          const void* const* values, const size_t* lengths, int num_values) {
  if (!USABLE(desc, attr_name) || !is_list(desc, attr_name, values, num_values) ||
      !is_list(desc, attr_name, lengths, num_values))
    return;
  rn_str_t* list = NULL;
  rn_status_t status = rn_desc_alloc(desc, (size_t)num_values, sizeof *list, (void**)&list);
  for (int i = 0; rn_ok(status) && i < num_values; ++i) {
    status = values[i] || lengths[i] == 0
                 ? rn_desc_copy(desc, rn_str_n(values[i], lengths[i]), &list[i])
                 : RN_CAPI_NULL("values[i]");
  }
  if (strcmp(attr_name, RN_COLOCATION_ATTR) == 0) {
    if (rn_ok(status)) status = rn_desc_set_colocations(desc, num_values, list);
    rn_desc_fail(desc, status);
    return;
  }
  add(desc, attr_name, status, LIST(RN_ATTR_STRING, num_values, list_s, list));
}

void TF_SetAttrInt(TF_OperationDescription* desc, const char* attr_name, int64_t value) {
  if (!USABLE(desc, attr_name)) return;
  add(desc, attr_name, RN_OK, (rn_attr_value_t){.kind = RN_ATTR_INT, .i = value});
}

void TF_SetAttrFloat(TF_OperationDescription* desc, const char* attr_name, float value) {
  if (!USABLE(desc, attr_name)) return;
  add(desc, attr_name, RN_OK, (rn_attr_value_t){.kind = RN_ATTR_FLOAT, .f = value});
}

void TF_SetAttrBool(TF_OperationDescription* desc, const char* attr_name, unsigned char value) {
  if (!USABLE(desc, attr_name)) return;
  add(desc, attr_name, RN_OK, (rn_attr_value_t){.kind = RN_ATTR_BOOL, .b = value != 0});
}

void TF_SetAttrType(TF_OperationDescription* desc, const char* attr_name, TF_DataType value) {
  if (!USABLE(desc, attr_name)) return;
  add(desc, attr_name, RN_OK, (rn_attr_value_t){.kind = RN_ATTR_TYPE, .type = (rn_dtype_t)value});
}

// Converts a list of numbers to the library's type.
#define SET_LIST(function, client_t, own_t, attr_kind, member, convert)                        \
  void function(TF_OperationDescription* desc, const char* attr_name, const client_t* values,  \
                int num_values) {                                                              \
    if (!USABLE(desc, attr_name) || !is_list(desc, attr_name, values, num_values)) return;     \
    own_t* list = NULL;                                                                        \
    rn_status_t status = rn_desc_alloc(desc, (size_t)num_values, sizeof *list, (void**)&list); \
    for (int i = 0; rn_ok(status) && i < num_values; ++i) list[i] = convert(values[i]);        \
    add(desc, attr_name, status, LIST(attr_kind, num_values, member, list));                   \
  }
#define AS_IT_IS(value) (value)
#define AS_BOOL(value) ((value) != 0)
#define AS_TYPE(value) ((rn_dtype_t)(value))
SET_LIST(TF_SetAttrIntList, int64_t, int64_t, RN_ATTR_INT, list_i, AS_IT_IS)
SET_LIST(TF_SetAttrFloatList, float, float, RN_ATTR_FLOAT, list_f, AS_IT_IS)
SET_LIST(TF_SetAttrBoolList, unsigned char, bool, RN_ATTR_BOOL, list_b, AS_BOOL)
SET_LIST(TF_SetAttrTypeList, TF_DataType, rn_dtype_t, RN_ATTR_TYPE, list_type, AS_TYPE)

void TF_SetAttrPlaceholder(TF_OperationDescription* desc, const char* attr_name,
                           const char* placeholder) {
  if (!USABLE(desc, attr_name)) return;
  rn_str_t copy = {0};
  rn_status_t status =
      placeholder ? rn_desc_copy(desc, rn_str(placeholder), &copy) : RN_CAPI_NULL("placeholder");
  add(desc, attr_name, status, (rn_attr_value_t){.kind = RN_ATTR_PLACEHOLDER, .s = copy});
}

void TF_SetAttrFuncName(TF_OperationDescription* desc, const char* attr_name, const char* value,
                        size_t length) {
  if (!USABLE(desc, attr_name)) return;
  rn_func_attr_t* func = NULL;
  rn_status_t status =
      value ? rn_desc_alloc(desc, 1, sizeof *func, (void**)&func) : RN_CAPI_NULL("value");
  if (rn_ok(status)) {
    *func = (rn_func_attr_t){0};
    status = rn_desc_copy(desc, rn_str_n(value, length), &func->name);
  }
  add(desc, attr_name, status, (rn_attr_value_t){.kind = RN_ATTR_FUNC, .func = func});
}

// Negative dims of any value mean unknown, as in stock.
static rn_status_t copy_shape(TF_OperationDescription* desc, const int64_t* dims, int num_dims,
                              rn_shape_t* out) {
  *out = RN_SHAPE_UNKNOWN;
  if (num_dims < 0) return RN_OK;
  if (num_dims > 0 && !dims) return rn_invalid_argument("The dimensions of a shape are missing");
  if (num_dims > RN_MAX_RANK) {
    return rn_invalid_argument("Shape has %d dimensions; at most %d are allowed", num_dims,
                               RN_MAX_RANK);
  }
  int64_t* copy = NULL;
  RN_RETURN_IF_ERROR(rn_desc_alloc(desc, (size_t)num_dims, sizeof *copy, (void**)&copy));
  for (int i = 0; i < num_dims; ++i) copy[i] = dims[i] < 0 ? RN_UNKNOWN : dims[i];
  *out = (rn_shape_t){num_dims, copy};
  return RN_OK;
}

void TF_SetAttrShape(TF_OperationDescription* desc, const char* attr_name, const int64_t* dims,
                     int num_dims) {
  if (!USABLE(desc, attr_name)) return;
  rn_shape_t shape;
  rn_status_t status = copy_shape(desc, dims, num_dims, &shape);
  add(desc, attr_name, status, (rn_attr_value_t){.kind = RN_ATTR_SHAPE, .shape = shape});
}

void TF_SetAttrShapeList(TF_OperationDescription* desc, const char* attr_name,
                         const int64_t* const* dims, const int* num_dims, int num_shapes) {
  if (!USABLE(desc, attr_name) || !is_list(desc, attr_name, dims, num_shapes) ||
      !is_list(desc, attr_name, num_dims, num_shapes))
    return;
  rn_shape_t* list = NULL;
  rn_status_t status = rn_desc_alloc(desc, (size_t)num_shapes, sizeof *list, (void**)&list);
  for (int i = 0; rn_ok(status) && i < num_shapes; ++i) {
    status = copy_shape(desc, dims[i], num_dims[i], &list[i]);
  }
  add(desc, attr_name, status, LIST(RN_ATTR_SHAPE, num_shapes, list_shape, list));
}

// The functions below have a status parameter; a failure changes nothing.

static rn_status_t check(TF_OperationDescription* desc, const char* name, const char* function) {
  if (!desc) return rn_capi_null(function, "desc");
  return name ? RN_OK : rn_capi_null(function, "attr_name");
}

void TF_SetAttrTensorShapeProto(TF_OperationDescription* desc, const char* attr_name,
                                const void* proto, size_t proto_len, TF_Status* status) {
  rn_attr_value_t value = {.kind = RN_ATTR_SHAPE};
  rn_status_t outcome = check(desc, attr_name, __func__);
  if (rn_ok(outcome)) {
    outcome = rn_capi_parse_shape(rn_str_n(proto, proto_len), &desc->arena, &value.shape);
  }
  if (rn_ok(outcome)) outcome = rn_desc_add_attr(desc, attr_name, &value);
  rn_capi_set(status, outcome);
}

static rn_status_t shape_proto_list(TF_OperationDescription* desc, const char* attr_name,
                                    const void* const* protos, const size_t* lengths, int count) {
  if (count < 0 || (count > 0 && (!protos || !lengths))) {
    return rn_invalid_argument("Attribute '%s' has a bad list of %d shapes", attr_name, count);
  }
  rn_shape_t* list = NULL;
  RN_RETURN_IF_ERROR(rn_desc_alloc(desc, (size_t)count, sizeof *list, (void**)&list));
  for (int i = 0; i < count; ++i) {
    rn_status_t status =
        rn_capi_parse_shape(rn_str_n(protos[i], lengths[i]), &desc->arena, &list[i]);
    if (!rn_ok(status)) return rn_status_annotate(status, " at index %d", i);
  }
  rn_attr_value_t value = LIST(RN_ATTR_SHAPE, count, list_shape, list);
  return rn_desc_add_attr(desc, attr_name, &value);
}

void TF_SetAttrTensorShapeProtoList(TF_OperationDescription* desc, const char* attr_name,
                                    const void* const* protos, const size_t* proto_lens,
                                    int num_shapes, TF_Status* status) {
  rn_status_t outcome = check(desc, attr_name, __func__);
  if (rn_ok(outcome)) {
    outcome = shape_proto_list(desc, attr_name, protos, proto_lens, num_shapes);
  }
  rn_capi_set(status, outcome);
}

// Copies the value, so that later writes of the client do not reach the graph.
static rn_status_t copy_tensor(TF_OperationDescription* desc, const TF_Tensor* tensor,
                               rn_tensor_t** out) {
  if (!tensor) return rn_invalid_argument("A tensor attribute must not be NULL");
  if (tensor->tensor.dtype == RN_RESOURCE || tensor->tensor.dtype == RN_VARIANT) {
    return rn_unimplemented("A tensor of type %s cannot be an attribute",
                            rn_dtype_name(tensor->tensor.dtype));
  }
  RN_RETURN_IF_ERROR(rn_desc_alloc(desc, 1, sizeof **out, (void**)out));
  return rn_tensor_copy(&tensor->tensor, rn_capi_allocator(), *out);
}

// |desc| owns the value only if it was added.
static rn_status_t add_tensor(TF_OperationDescription* desc, const char* name,
                              rn_attr_value_t* value) {
  int32_t before = desc->attr_count;
  rn_status_t status = rn_desc_add_attr(desc, name, value);
  if (desc->attr_count == before) rn_attr_value_clear(value);
  return status;
}

void TF_SetAttrTensor(TF_OperationDescription* desc, const char* attr_name, TF_Tensor* value,
                      TF_Status* status) {
  rn_tensor_t* copy = NULL;
  rn_status_t outcome = check(desc, attr_name, __func__);
  if (rn_ok(outcome)) outcome = copy_tensor(desc, value, &copy);
  if (rn_ok(outcome)) {
    rn_attr_value_t attr = {.kind = RN_ATTR_TENSOR, .tensor = copy};
    outcome = add_tensor(desc, attr_name, &attr);
  }
  rn_capi_set(status, outcome);
}

static rn_status_t tensor_list(TF_OperationDescription* desc, const char* attr_name,
                               TF_Tensor* const* values, int count) {
  if (count < 0 || (count > 0 && !values)) {
    return rn_invalid_argument("Attribute '%s' has a bad list of %d tensors", attr_name, count);
  }
  rn_tensor_t** list = NULL;
  RN_RETURN_IF_ERROR(rn_desc_alloc(desc, (size_t)count, sizeof *list, (void**)&list));
  rn_attr_value_t value = LIST(RN_ATTR_TENSOR, 0, list_tensor, (const rn_tensor_t* const*)list);
  for (int i = 0; i < count; ++i) {
    rn_status_t status = copy_tensor(desc, values[i], &list[i]);
    if (!rn_ok(status)) {
      rn_attr_value_clear(&value);
      return status;
    }
    value.count = i + 1;
  }
  return add_tensor(desc, attr_name, &value);
}

void TF_SetAttrTensorList(TF_OperationDescription* desc, const char* attr_name,
                          TF_Tensor* const* values, int num_values, TF_Status* status) {
  rn_status_t outcome = check(desc, attr_name, __func__);
  if (rn_ok(outcome)) outcome = tensor_list(desc, attr_name, values, num_values);
  rn_capi_set(status, outcome);
}

static rn_status_t set_class_proto(TF_OperationDescription* desc, rn_str_t bytes) {
  rn_pb_AttrValue_t* proto = NULL;
  rn_status_t status =
      RN_PB_DECODE(AttrValue, bytes, &(rn_pb_limits_t){.copy_bytes = true}, &desc->arena, &proto);
  if (rn_status_code(status) == RN_CODE_INVALID_ARGUMENT) {
    rn_status_free(status);
    return rn_invalid_argument("Unparseable AttrValue proto");
  }
  if (!rn_ok(status)) return status;
  if (proto->value_case == 0) return rn_desc_set_colocations(desc, 0, NULL);
  if (proto->value_case != rn_pb_AttrValue_list_field) {
    return rn_invalid_argument("Expected \"list\" field for \"" RN_COLOCATION_ATTR "\" attribute");
  }
  return rn_desc_set_colocations(desc, (int)proto->list->s.count, proto->list->s.items);
}

static rn_status_t value_proto(TF_OperationDescription* desc, const char* attr_name,
                               rn_str_t bytes) {
  if (!bytes.data && bytes.size) return rn_capi_null("TF_SetAttrValueProto", "proto");
  if (strcmp(attr_name, RN_COLOCATION_ATTR) == 0) return set_class_proto(desc, bytes);
  rn_attr_value_t value;
  RN_RETURN_IF_ERROR(rn_capi_parse_attr(bytes, &desc->arena, &value));
  return add_tensor(desc, attr_name, &value);
}

void TF_SetAttrValueProto(TF_OperationDescription* desc, const char* attr_name, const void* proto,
                          size_t proto_len, TF_Status* status) {
  rn_status_t outcome = check(desc, attr_name, __func__);
  if (rn_ok(outcome)) outcome = value_proto(desc, attr_name, rn_str_n(proto, proto_len));
  rn_capi_set(status, outcome);
}

rn_status_t rn_capi_parse_shape(rn_str_t bytes, rn_arena_t* arena, rn_shape_t* out) {
  rn_pb_TensorShapeProto_t* proto = NULL;
  *out = RN_SHAPE_UNKNOWN;
  rn_status_t status = bytes.data || !bytes.size
                           ? RN_PB_DECODE(TensorShapeProto, bytes, NULL, arena, &proto)
                           : rn_invalid_argument("no bytes");
  if (rn_ok(status)) return rn_shape_from_proto(proto, arena, out);
  if (rn_status_code(status) != RN_CODE_INVALID_ARGUMENT) return status;
  rn_status_free(status);
  return rn_invalid_argument("Unparseable TensorShapeProto");
}

rn_status_t rn_capi_parse_attr(rn_str_t bytes, rn_arena_t* arena, rn_attr_value_t* out) {
  rn_pb_AttrValue_t* proto = NULL;
  rn_status_t status = RN_PB_DECODE(AttrValue, bytes, NULL, arena, &proto);
  if (rn_ok(status)) {
    return rn_attr_value_from_proto(proto, RN_CAPI_MAX_TENSOR_BYTES, arena, out);
  }
  if (rn_status_code(status) != RN_CODE_INVALID_ARGUMENT) return status;
  rn_status_free(status);
  return rn_invalid_argument("Unparseable AttrValue proto");
}

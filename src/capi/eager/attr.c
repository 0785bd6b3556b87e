// Attributes of eager ops. Executing the op reports invalid ones.
#include "capi/eager/eager.h"

static bool usable(TFE_Op* op, const char* name, const void* values, int64_t count) {
  if (!op) return false;
  if (name && count >= 0 && (values || count == 0)) return true;
  rn_eager_op_fail(rn_capi_eager_op(op),
                   name ? rn_invalid_argument("Attribute '%s' has a bad list of %lld values", name,
                                              (long long)count)
                        : rn_capi_null("TFE_OpSetAttr", "attr_name"));
  return false;
}

static void set(TFE_Op* op, const char* name, rn_attr_value_t value) {
  if (usable(op, name, name, 1)) rn_eager_op_set_attr(rn_capi_eager_op(op), rn_str(name), &value);
}

#define LIST(attr_kind, n, member, pointer) \
  (rn_attr_value_t) { .kind = (attr_kind), .is_list = true, .count = (n), .member = (pointer) }

void TFE_OpSetAttrString(TFE_Op* op, const char* attr_name, const void* value, size_t length) {
  if (!usable(op, attr_name, value, length > INT64_MAX ? -1 : (int64_t)length)) return;
  set(op, attr_name, (rn_attr_value_t){.kind = RN_ATTR_STRING, .s = rn_str_n(value, length)});
}

void TFE_OpSetAttrInt(TFE_Op* op, const char* attr_name, int64_t value) {
  set(op, attr_name, (rn_attr_value_t){.kind = RN_ATTR_INT, .i = value});
}

void TFE_OpSetAttrFloat(TFE_Op* op, const char* attr_name, float value) {
  set(op, attr_name, (rn_attr_value_t){.kind = RN_ATTR_FLOAT, .f = value});
}

void TFE_OpSetAttrBool(TFE_Op* op, const char* attr_name, unsigned char value) {
  set(op, attr_name, (rn_attr_value_t){.kind = RN_ATTR_BOOL, .b = value != 0});
}

void TFE_OpSetAttrType(TFE_Op* op, const char* attr_name, TF_DataType value) {
  set(op, attr_name, (rn_attr_value_t){.kind = RN_ATTR_TYPE, .type = (rn_dtype_t)value});
}

// Copies dims into |arena|; any negative dim means unknown.
static rn_status_t make_shape(rn_arena_t* arena, const int64_t* dims, int num_dims,
                              rn_shape_t* out) {
  *out = RN_SHAPE_UNKNOWN;
  if (num_dims < 0) return RN_OK;
  if (num_dims > RN_MAX_RANK)
    return rn_invalid_argument(
        "Value specified for `%s` has %d dimensions which is over the limit of %d.", "shape",
        num_dims, RN_MAX_RANK);
  if (num_dims > 0 && !dims) return rn_invalid_argument("The dimensions of a shape are missing");
  int64_t* copy = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)num_dims, &copy));
  for (int i = 0; i < num_dims; ++i) copy[i] = dims[i] < 0 ? RN_UNKNOWN : dims[i];
  *out = (rn_shape_t){num_dims, copy};
  return RN_OK;
}

void TFE_OpSetAttrShape(TFE_Op* op, const char* attr_name, const int64_t* dims, int num_dims,
                        TF_Status* out_status) {
  rn_attr_value_t value = {.kind = RN_ATTR_SHAPE};
  rn_arena_t arena;
  rn_arena_init(&arena, rn_capi_allocator());
  rn_status_t outcome = !op          ? RN_CAPI_NULL("op")
                        : !attr_name ? RN_CAPI_NULL("attr_name")
                                     : make_shape(&arena, dims, num_dims, &value.shape);
  if (rn_ok(outcome)) set(op, attr_name, value);
  rn_arena_clear(&arena);
  rn_capi_set(out_status, outcome);
}

static rn_status_t make_shapes(rn_arena_t* arena, const int64_t** dims, const int* num_dims,
                               int count, rn_shape_t** out) {
  if (count < 0 || (count > 0 && (!dims || !num_dims)))
    return rn_invalid_argument("A bad list of %d shapes", count);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)count, out));
  for (int i = 0; i < count; ++i)
    RN_RETURN_IF_ERROR(make_shape(arena, dims[i], num_dims[i], &(*out)[i]));
  return RN_OK;
}

void TFE_OpSetAttrShapeList(TFE_Op* op, const char* attr_name, const int64_t** dims,
                            const int* num_dims, int num_values, TF_Status* out_status) {
  rn_shape_t* shapes = NULL;
  rn_arena_t arena;
  rn_arena_init(&arena, rn_capi_allocator());
  rn_status_t outcome = !op          ? RN_CAPI_NULL("op")
                        : !attr_name ? RN_CAPI_NULL("attr_name")
                                     : make_shapes(&arena, dims, num_dims, num_values, &shapes);
  if (rn_ok(outcome)) set(op, attr_name, LIST(RN_ATTR_SHAPE, num_values, list_shape, shapes));
  rn_arena_clear(&arena);
  rn_capi_set(out_status, outcome);
}

void TFE_OpSetAttrTensor(TFE_Op* op, const char* attr_name, TF_Tensor* tensor, TF_Status* status) {
  rn_status_t outcome = !op                                             ? RN_CAPI_NULL("op")
                        : !attr_name                                    ? RN_CAPI_NULL("attr_name")
                        : !tensor || !rn_tensor_is_set(&tensor->tensor) ? RN_CAPI_NULL("tensor")
                                                                        : RN_OK;
  if (rn_ok(outcome))
    set(op, attr_name, (rn_attr_value_t){.kind = RN_ATTR_TENSOR, .tensor = &tensor->tensor});
  rn_capi_set(status, outcome);
}

// Converts a list of numbers to the library's type.
#define SET_LIST(function, client_t, own_t, attr_kind, member, convert)                      \
  void function(TFE_Op* op, const char* attr_name, const client_t* values, int num_values) { \
    if (!usable(op, attr_name, values, num_values)) return;                                  \
    own_t* list = NULL;                                                                      \
    rn_status_t status = RN_NEW_ARRAY(rn_capi_allocator(), (size_t)num_values, &list);       \
    for (int i = 0; rn_ok(status) && i < num_values; ++i) list[i] = convert(values[i]);      \
    if (rn_ok(status)) set(op, attr_name, LIST(attr_kind, num_values, member, list));        \
    if (rn_ok(status)) RN_FREE_ARRAY(rn_capi_allocator(), list, num_values);                 \
    rn_eager_op_fail(rn_capi_eager_op(op), status);                                          \
  }
#define AS_IT_IS(value) (value)
#define AS_BOOL(value) ((value) != 0)
#define AS_TYPE(value) ((rn_dtype_t)(value))
SET_LIST(TFE_OpSetAttrIntList, int64_t, int64_t, RN_ATTR_INT, list_i, AS_IT_IS)
SET_LIST(TFE_OpSetAttrFloatList, float, float, RN_ATTR_FLOAT, list_f, AS_IT_IS)
SET_LIST(TFE_OpSetAttrBoolList, unsigned char, bool, RN_ATTR_BOOL, list_b, AS_BOOL)
SET_LIST(TFE_OpSetAttrTypeList, TF_DataType, rn_dtype_t, RN_ATTR_TYPE, list_type, AS_TYPE)

void TFE_OpSetAttrStringList(TFE_Op* op, const char* attr_name, const void* const* values,
                             const size_t* lengths, int num_values) {
  if (!usable(op, attr_name, values, num_values) || !usable(op, attr_name, lengths, num_values))
    return;
  rn_str_t* list = NULL;
  rn_status_t status = RN_NEW_ARRAY(rn_capi_allocator(), (size_t)num_values, &list);
  for (int i = 0; rn_ok(status) && i < num_values; ++i)
    list[i] = rn_str_n(values[i], values[i] ? lengths[i] : 0);
  if (rn_ok(status)) {
    set(op, attr_name, LIST(RN_ATTR_STRING, num_values, list_s, list));
    RN_FREE_ARRAY(rn_capi_allocator(), list, num_values);
  }
  rn_eager_op_fail(rn_capi_eager_op(op), status);
}

// --- Functions: a name, and the attributes of the op |value|.

void TFE_OpSetAttrFunctionName(TFE_Op* op, const char* attr_name, const char* data, size_t length) {
  if (!usable(op, attr_name, data, length > INT64_MAX ? -1 : (int64_t)length)) return;
  rn_func_attr_t func = {.name = rn_str_n(data, length)};
  set(op, attr_name, (rn_attr_value_t){.kind = RN_ATTR_FUNC, .func = &func});
}

typedef struct collector_t {
  rn_arena_t* arena;
  rn_attr_t* attrs;
  int32_t count;
} collector_t;

static rn_status_t count_attr(void* arg, rn_str_t name, const rn_attr_value_t* value) {
  (void)name;
  (void)value;
  ++*(int32_t*)arg;
  return RN_OK;
}

static rn_status_t collect_attr(void* arg, rn_str_t name, const rn_attr_value_t* value) {
  collector_t* collector = arg;
  collector->attrs[collector->count++] = (rn_attr_t){name, *value};
  return RN_OK;
}

// Borrows from |value|.
static rn_status_t make_func(rn_arena_t* arena, const TFE_Op* value, const rn_func_attr_t** out) {
  const rn_eager_op_t* op = rn_capi_eager_op(value);
  if (!op || !rn_eager_op_def(op)) return rn_capi_null("TFE_OpSetAttrFunction", "value");
  int32_t count = 0;
  collector_t collector = {.arena = arena};
  rn_func_attr_t* func = NULL;
  RN_RETURN_IF_ERROR(rn_eager_op_each_attr(op, count_attr, &count));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)count, &collector.attrs));
  RN_RETURN_IF_ERROR(rn_eager_op_each_attr(op, collect_attr, &collector));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &func));
  *func = (rn_func_attr_t){rn_str(rn_eager_op_def(op)->name), count, collector.attrs};
  *out = func;
  return RN_OK;
}

void TFE_OpSetAttrFunction(TFE_Op* op, const char* attr_name, const TFE_Op* value) {
  if (!usable(op, attr_name, value, 1)) return;
  const rn_func_attr_t* func = NULL;
  rn_arena_t arena;
  rn_arena_init(&arena, rn_capi_allocator());
  rn_status_t status = make_func(&arena, value, &func);
  if (rn_ok(status)) set(op, attr_name, (rn_attr_value_t){.kind = RN_ATTR_FUNC, .func = func});
  rn_arena_clear(&arena);
  rn_eager_op_fail(rn_capi_eager_op(op), status);
}

void TFE_OpSetAttrFunctionList(TFE_Op* op, const char* attr_name, const TFE_Op** value,
                               int num_values) {
  if (!usable(op, attr_name, value, num_values)) return;
  const rn_func_attr_t** list = NULL;
  rn_arena_t arena;
  rn_arena_init(&arena, rn_capi_allocator());
  rn_status_t status = RN_ARENA_ARRAY(&arena, (size_t)num_values, &list);
  for (int i = 0; rn_ok(status) && i < num_values; ++i)
    status = make_func(&arena, value[i], &list[i]);
  if (rn_ok(status)) set(op, attr_name, LIST(RN_ATTR_FUNC, num_values, list_func, list));
  rn_arena_clear(&arena);
  rn_eager_op_fail(rn_capi_eager_op(op), status);
}

void TFE_OpSetAttrValueProto(const TFE_Op* op, const char* attr_name, const void* proto,
                             size_t proto_len, TF_Status* status) {
  rn_attr_value_t value = {0};
  rn_arena_t arena;
  rn_arena_init(&arena, rn_capi_allocator());
  rn_status_t outcome = !op          ? RN_CAPI_NULL("op")
                        : !attr_name ? RN_CAPI_NULL("attr_name")
                        : !proto && proto_len
                            ? RN_CAPI_NULL("proto")
                            : rn_capi_parse_attr(rn_str_n(proto, proto_len), &arena, &value);
  if (rn_ok(outcome)) {
    rn_eager_op_set_attr(rn_capi_eager_op(op), rn_str(attr_name), &value);
    rn_attr_value_clear(&value);
  } else if (op && attr_name && rn_status_code(outcome) == RN_CODE_INVALID_ARGUMENT) {
    rn_status_free(outcome);
    outcome = rn_invalid_argument("Unparseable AttrValue proto");
  }
  rn_arena_clear(&arena);
  rn_capi_set(status, outcome);
}

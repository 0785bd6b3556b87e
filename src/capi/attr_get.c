// Reading the attributes of an operation.
#include "capi/internal.h"
#include "framework/attr_proto.h"
#include "proto/attr_value.pb.h"
#include "proto/tensor_shape.pb.h"
#include "wire/writer.h"

// Another thread may replace attributes, so readers hold the graph's lock.
typedef struct attr_get_reader_t {
  rn_node_t* node;
  const rn_attr_value_t* value;
} attr_get_reader_t;

typedef enum missing_t { MISSING_NOT_FOUND, MISSING_INVALID } missing_t;

// Stock has two messages for it, depending on the function.
static rn_status_t missing_attr(const rn_node_t* node, const char* name, missing_t missing) {
  if (missing == MISSING_INVALID) {
    return rn_invalid_argument("Operation '%s' has no attr named '%s'.", node->name.data, name);
  }
  return rn_not_found("No attr named '%s' in NodeDef:\n\t [[{{node %s}}]]", name, node->name.data);
}

// On success the lock is held; close_reader releases it.
static rn_status_t open_reader(TF_Operation* oper, const char* name, const char* function,
                               missing_t missing, attr_get_reader_t* out) {
  if (!oper) return rn_capi_null(function, "oper");
  if (!name) return rn_capi_null(function, "attr_name");
  out->node = rn_capi_node(oper);
  rn_mutex_lock(&out->node->graph->mutex);
  out->value = rn_node_attr(out->node, rn_str(name));
  if (out->value) return RN_OK;
  rn_mutex_unlock(&out->node->graph->mutex);
  return missing_attr(out->node, name, missing);
}

static void close_reader(const attr_get_reader_t* reader) {
  rn_mutex_unlock(&reader->node->graph->mutex);
}

static rn_status_t expect(const rn_attr_value_t* value, rn_attr_kind_t kind, bool is_list) {
  if (value->kind == kind && value->is_list == is_list) return RN_OK;
  if (is_list && value->is_list && value->count == 0) return RN_OK;  // an empty list has no kind
  return rn_invalid_argument("AttrValue had value with type '%s' when '%s' expected",
                             rn_attr_kind_name(value->kind, value->is_list),
                             rn_attr_kind_name(kind, is_list));
}

static rn_status_t expect_list(const rn_attr_value_t* value, const char* name, rn_attr_kind_t kind,
                               const char* dot) {
  if (!value->is_list) return rn_invalid_argument("Value for '%s' is not a list%s", name, dot);
  return expect(value, kind, true);
}

static int shorter(int a, int b) { return a < b ? a : b; }

// Bytes of strings or dims of shapes; -1 for kinds without a size.
static int64_t total_size(const rn_attr_value_t* value) {
  if (!value->is_list) {
    if (value->kind == RN_ATTR_STRING) return (int64_t)value->s.size;
    return value->kind == RN_ATTR_SHAPE ? value->shape.rank : -1;
  }
  bool has_size = value->kind == RN_ATTR_STRING || value->kind == RN_ATTR_SHAPE;
  if (!has_size || value->count == 0) return -1;
  int64_t total = 0;
  for (int i = 0; i < value->count; ++i) {
    if (value->kind == RN_ATTR_STRING) {
      total += (int64_t)value->list_s[i].size;
    } else if (rn_shape_has_rank(value->list_shape[i])) {
      total += value->list_shape[i].rank;
    }
  }
  return total;
}

TF_AttrMetadata TF_OperationGetAttrMetadata(TF_Operation* oper, const char* attr_name,
                                            TF_Status* status) {
  attr_get_reader_t r;
  TF_AttrMetadata metadata = {0};
  if (!rn_capi_ok(status, open_reader(oper, attr_name, __func__, MISSING_INVALID, &r))) {
    return metadata;
  }
  metadata.is_list = r.value->is_list;
  metadata.list_size = r.value->is_list ? r.value->count : -1;
  metadata.type = (TF_AttrType)r.value->kind;
  metadata.total_size = total_size(r.value);
  if (r.value->is_list && r.value->count == 0) {
    // An empty list from outside does not have a kind; the definition does.
    int index = rn_op_attr_index(r.node->op, rn_str(attr_name));
    if (index >= 0) metadata.type = (TF_AttrType)r.node->op->attrs[index].kind;
  }
  close_reader(&r);
  return metadata;
}

#define GET_SCALAR(function, client_t, attr_kind, member)                                        \
  void function(TF_Operation* oper, const char* attr_name, client_t* value, TF_Status* status) { \
    attr_get_reader_t r;                                                                         \
    rn_status_t outcome = value ? open_reader(oper, attr_name, #function, MISSING_NOT_FOUND, &r) \
                                : RN_CAPI_NULL("value");                                         \
    if (!rn_ok(outcome)) {                                                                       \
      rn_capi_set(status, outcome);                                                              \
      return;                                                                                    \
    }                                                                                            \
    outcome = expect(r.value, attr_kind, false);                                                 \
    if (rn_ok(outcome)) *value = (client_t)r.value->member;                                      \
    close_reader(&r);                                                                            \
    rn_capi_set(status, outcome);                                                                \
  }
GET_SCALAR(TF_OperationGetAttrInt, int64_t, RN_ATTR_INT, i)
GET_SCALAR(TF_OperationGetAttrFloat, float, RN_ATTR_FLOAT, f)
GET_SCALAR(TF_OperationGetAttrBool, unsigned char, RN_ATTR_BOOL, b)
GET_SCALAR(TF_OperationGetAttrType, TF_DataType, RN_ATTR_TYPE, type)

#define GET_LIST(function, client_t, attr_kind, member)                                            \
  void function(TF_Operation* oper, const char* attr_name, client_t* values, int max_values,       \
                TF_Status* status) {                                                               \
    attr_get_reader_t r;                                                                           \
    if (!rn_capi_ok(status, open_reader(oper, attr_name, #function, MISSING_INVALID, &r))) return; \
    rn_status_t outcome = expect_list(r.value, attr_name, attr_kind, ".");                         \
    int count = rn_ok(outcome) ? shorter(r.value->count, max_values) : 0;                          \
    if (count > 0 && !values) outcome = RN_CAPI_NULL("values");                                    \
    for (int i = 0; rn_ok(outcome) && i < count; ++i) values[i] = (client_t)r.value->member[i];    \
    close_reader(&r);                                                                              \
    rn_capi_set(status, outcome);                                                                  \
  }
GET_LIST(TF_OperationGetAttrIntList, int64_t, RN_ATTR_INT, list_i)
GET_LIST(TF_OperationGetAttrFloatList, float, RN_ATTR_FLOAT, list_f)
GET_LIST(TF_OperationGetAttrBoolList, unsigned char, RN_ATTR_BOOL, list_b)
GET_LIST(TF_OperationGetAttrTypeList, TF_DataType, RN_ATTR_TYPE, list_type)

void TF_OperationGetAttrString(TF_Operation* oper, const char* attr_name, void* value,
                               size_t max_length, TF_Status* status) {
  attr_get_reader_t r;
  if (!rn_capi_ok(status, open_reader(oper, attr_name, __func__, MISSING_INVALID, &r))) return;
  rn_status_t outcome = RN_OK;
  if (r.value->kind != RN_ATTR_STRING || r.value->is_list) {
    outcome = rn_invalid_argument("Attribute '%s' is not a string", attr_name);
  } else {
    size_t size = r.value->s.size < max_length ? r.value->s.size : max_length;
    if (size && !value) outcome = RN_CAPI_NULL("value");
    if (size && value) memcpy(value, r.value->s.data, size);
  }
  close_reader(&r);
  rn_capi_set(status, outcome);
}

static rn_status_t copy_strings(const rn_attr_value_t* value, void** values, size_t* lengths,
                                int count, char* storage, size_t room) {
  if (count > 0 && (!values || !lengths || !storage)) {
    return rn_invalid_argument("TF_OperationGetAttrStringList needs room for its results");
  }
  for (int i = 0; i < count; ++i) {
    rn_str_t s = value->list_s[i];
    if (s.size > room) {
      return rn_invalid_argument("Not enough storage to hold the requested list of strings");
    }
    values[i] = storage;
    lengths[i] = s.size;
    if (s.size) memcpy(storage, s.data, s.size);
    storage += s.size;
    room -= s.size;
  }
  return RN_OK;
}

void TF_OperationGetAttrStringList(TF_Operation* oper, const char* attr_name, void** values,
                                   size_t* lengths, int max_values, void* storage,
                                   size_t storage_size, TF_Status* status) {
  attr_get_reader_t r;
  RN_CAPI_CLEAR(values, max_values);
  RN_CAPI_CLEAR(lengths, max_values);
  if (!rn_capi_ok(status, open_reader(oper, attr_name, __func__, MISSING_INVALID, &r))) return;
  rn_status_t outcome = expect_list(r.value, attr_name, RN_ATTR_STRING, "");
  if (rn_ok(outcome)) {
    outcome = copy_strings(r.value, values, lengths, shorter(r.value->count, max_values), storage,
                           storage_size);
  }
  close_reader(&r);
  rn_capi_set(status, outcome);
}

void TF_OperationGetAttrShape(TF_Operation* oper, const char* attr_name, int64_t* value,
                              int num_dims, TF_Status* status) {
  attr_get_reader_t r;
  if (!rn_capi_ok(status, open_reader(oper, attr_name, __func__, MISSING_NOT_FOUND, &r))) return;
  rn_status_t outcome = expect(r.value, RN_ATTR_SHAPE, false);
  int count = rn_ok(outcome) ? shorter(r.value->shape.rank, num_dims) : 0;
  if (count > 0 && !value) outcome = RN_CAPI_NULL("value");
  for (int i = 0; rn_ok(outcome) && i < count; ++i) value[i] = r.value->shape.dims[i];
  close_reader(&r);
  rn_capi_set(status, outcome);
}

static rn_status_t copy_shapes(const rn_attr_value_t* value, int64_t** dims, int* num_dims,
                               int count, int64_t* storage, int room) {
  if (count > 0 && (!dims || !num_dims)) {
    return rn_invalid_argument("TF_OperationGetAttrShapeList needs room for its results");
  }
  for (int i = 0; i < count; ++i) {
    rn_shape_t shape = value->list_shape[i];
    num_dims[i] = shape.rank;
    dims[i] = rn_shape_has_rank(shape) ? storage : NULL;
    if (shape.rank <= 0) continue;
    if (shape.rank > room || !storage) {
      return rn_invalid_argument("Not enough storage to hold the requested list of shapes");
    }
    for (int d = 0; d < shape.rank; ++d) *storage++ = shape.dims[d];
    room -= shape.rank;
  }
  return RN_OK;
}

void TF_OperationGetAttrShapeList(TF_Operation* oper, const char* attr_name, int64_t** dims,
                                  int* num_dims, int num_shapes, int64_t* storage, int storage_size,
                                  TF_Status* status) {
  attr_get_reader_t r;
  RN_CAPI_CLEAR(dims, num_shapes);
  RN_CAPI_CLEAR(num_dims, num_shapes);
  if (!rn_capi_ok(status, open_reader(oper, attr_name, __func__, MISSING_NOT_FOUND, &r))) return;
  rn_status_t outcome = expect(r.value, RN_ATTR_SHAPE, true);
  if (rn_ok(outcome)) {
    outcome = copy_shapes(r.value, dims, num_dims, shorter(r.value->count, num_shapes), storage,
                          storage_size);
  }
  close_reader(&r);
  rn_capi_set(status, outcome);
}

void rn_capi_write_shape(rn_strbuf_t* buf, rn_shape_t shape) {
  if (!rn_shape_has_rank(shape)) {
    rn_pb_put_uint(buf, rn_pb_TensorShapeProto_unknown_rank_field, 1);
    return;
  }
  for (int i = 0; i < shape.rank; ++i) {
    size_t mark = rn_pb_begin(buf, rn_pb_TensorShapeProto_dim_field);
    if (shape.dims[i]) {
      rn_pb_put_uint(buf, rn_pb_TensorShapeProto_Dim_size_field, (uint64_t)shape.dims[i]);
    }
    rn_pb_end(buf, mark);
  }
}

void TF_OperationGetAttrTensorShapeProto(TF_Operation* oper, const char* attr_name,
                                         TF_Buffer* value, TF_Status* status) {
  attr_get_reader_t r;
  if (!rn_capi_ok(status, open_reader(oper, attr_name, __func__, MISSING_INVALID, &r))) return;
  rn_status_t outcome = RN_OK;
  if (r.value->kind != RN_ATTR_SHAPE || r.value->is_list) {
    outcome = rn_invalid_argument("Value for '%s' is not a shape.", attr_name);
  } else {
    rn_strbuf_t buf;
    rn_strbuf_init(&buf, rn_capi_allocator());
    rn_capi_write_shape(&buf, r.value->shape);
    outcome = rn_capi_buffer_take(&buf, value);
  }
  close_reader(&r);
  rn_capi_set(status, outcome);
}

static rn_status_t shape_protos(const rn_attr_value_t* value, TF_Buffer** values, int count) {
  if (count > 0 && !values) {
    return rn_capi_null("TF_OperationGetAttrTensorShapeProtoList", "values");
  }
  rn_status_t status = RN_OK;
  int made = 0;
  for (; rn_ok(status) && made < count; ++made) {
    rn_strbuf_t buf;
    rn_strbuf_init(&buf, rn_capi_allocator());
    rn_capi_write_shape(&buf, value->list_shape[made]);
    status = rn_capi_buffer_make(&buf, &values[made]);
  }
  if (rn_ok(status)) return RN_OK;
  for (int i = 0; i < made; ++i) {
    TF_DeleteBuffer(values[i]);
    values[i] = NULL;
  }
  return status;
}

void TF_OperationGetAttrTensorShapeProtoList(TF_Operation* oper, const char* attr_name,
                                             TF_Buffer** values, int max_values,
                                             TF_Status* status) {
  attr_get_reader_t r;
  RN_CAPI_CLEAR(values, max_values);
  if (!rn_capi_ok(status, open_reader(oper, attr_name, __func__, MISSING_INVALID, &r))) return;
  rn_status_t outcome = expect_list(r.value, attr_name, RN_ATTR_SHAPE, "");
  if (rn_ok(outcome)) {
    outcome = shape_protos(r.value, values, shorter(r.value->count, max_values));
  }
  close_reader(&r);
  rn_capi_set(status, outcome);
}

// A copy, since the client may write to it.
static rn_status_t copy_tensor(const rn_tensor_t* tensor, TF_Tensor** out) {
  rn_tensor_t copy = {0};
  *out = NULL;
  RN_RETURN_IF_ERROR(rn_tensor_copy(tensor, rn_capi_allocator(), &copy));
  return rn_capi_tensor_wrap(&copy, out);
}

void TF_OperationGetAttrTensor(TF_Operation* oper, const char* attr_name, TF_Tensor** value,
                               TF_Status* status) {
  attr_get_reader_t r;
  if (value) *value = NULL;
  rn_status_t outcome =
      value ? open_reader(oper, attr_name, __func__, MISSING_NOT_FOUND, &r) : RN_CAPI_NULL("value");
  if (!rn_capi_ok(status, outcome)) return;
  outcome = expect(r.value, RN_ATTR_TENSOR, false);
  if (rn_ok(outcome)) outcome = copy_tensor(r.value->tensor, value);
  close_reader(&r);
  rn_capi_set(status, outcome);
}

void TF_OperationGetAttrTensorList(TF_Operation* oper, const char* attr_name, TF_Tensor** values,
                                   int max_values, TF_Status* status) {
  attr_get_reader_t r;
  RN_CAPI_CLEAR(values, max_values);
  if (!rn_capi_ok(status, open_reader(oper, attr_name, __func__, MISSING_NOT_FOUND, &r))) return;
  rn_status_t outcome = expect(r.value, RN_ATTR_TENSOR, true);
  int count = rn_ok(outcome) ? shorter(r.value->count, max_values) : 0;
  if (count > 0 && !values) outcome = RN_CAPI_NULL("values");
  int made = 0;
  for (; rn_ok(outcome) && made < count; ++made) {
    outcome = copy_tensor(r.value->list_tensor[made], &values[made]);
  }
  for (int i = 0; !rn_ok(outcome) && i < made; ++i) {
    TF_DeleteTensor(values[i]);
    values[i] = NULL;
  }
  close_reader(&r);
  rn_capi_set(status, outcome);
}

rn_status_t rn_capi_write_attr(rn_strbuf_t* buf, const rn_attr_value_t* value) {
  rn_pb_AttrValue_t proto = {0};
  rn_arena_t arena;
  rn_arena_init(&arena, rn_capi_allocator());
  rn_status_t status = rn_attr_value_to_proto(value, &arena, &proto);
  if (rn_ok(status)) status = rn_capi_encode(&rn_pb_AttrValue_desc, &proto, buf);
  rn_arena_clear(&arena);
  return status;
}

void TF_OperationGetAttrValueProto(TF_Operation* oper, const char* attr_name,
                                   TF_Buffer* output_attr_value, TF_Status* status) {
  attr_get_reader_t r;
  if (!rn_capi_ok(status, open_reader(oper, attr_name, __func__, MISSING_INVALID, &r))) return;
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_capi_allocator());
  rn_status_t outcome = rn_capi_write_attr(&buf, r.value);
  close_reader(&r);
  if (rn_ok(outcome)) outcome = rn_capi_buffer_take(&buf, output_attr_value);
  rn_strbuf_clear(&buf);
  rn_capi_set(status, outcome);
}

int TF_OperationGetNumAttrs(TF_Operation* oper) {
  if (!oper) return 0;
  rn_node_t* node = rn_capi_node(oper);
  rn_mutex_lock(&node->graph->mutex);
  int count = node->op->attr_count + node->extra_count;
  rn_mutex_unlock(&node->graph->mutex);
  return count;
}

// The name of attribute |i|, counting those of the definition, then the others. {NULL, 0} if there
// is none.
static rn_str_t attr_name_locked(const rn_node_t* node, int i) {
  if (i < 0) return (rn_str_t){0};
  if (i < node->op->attr_count) return rn_str(node->op->attrs[i].name);
  i -= node->op->attr_count;
  return i < node->extra_count ? node->extras[i].name : (rn_str_t){0};
}

int TF_OperationGetAttrNameLength(TF_Operation* oper, int i) {
  if (!oper) return -1;
  rn_node_t* node = rn_capi_node(oper);
  rn_mutex_lock(&node->graph->mutex);
  rn_str_t name = attr_name_locked(node, i);
  rn_mutex_unlock(&node->graph->mutex);
  return name.data ? (int)name.size : -1;
}

void TF_OperationGetAttrName(TF_Operation* oper, int i, char* output, TF_Status* status) {
  if (!oper || !output) {
    rn_capi_set(status, RN_CAPI_NULL(oper ? "output" : "oper"));
    return;
  }
  rn_node_t* node = rn_capi_node(oper);
  rn_mutex_lock(&node->graph->mutex);
  rn_str_t name = attr_name_locked(node, i);
  rn_status_t outcome =
      name.data ? RN_OK
                : rn_out_of_range("Operation only has %d attributes, can't get the %dth",
                                  node->op->attr_count + node->extra_count, i);
  if (name.size) memcpy(output, name.data, name.size);
  rn_mutex_unlock(&node->graph->mutex);
  rn_capi_set(status, outcome);
}

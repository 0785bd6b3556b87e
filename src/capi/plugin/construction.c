// What a plug-in's kernel may query during construction: its attributes.
#include "capi/plugin/kernel.h"
#include "framework/attr_proto.h"
#include "kernels/cpu/array.h"
#include "proto/node_def.pb.h"
#include "tensorflow/c/kernels_experimental.h"

void TF_OpKernelConstruction_Failure(TF_OpKernelConstruction* ctx, TF_Status* status) {
  if (!ctx) return;
  // A NULL status means that the plug-in could not allocate one.
  rn_status_t failure = status ? rn_capi_status_of(status) : rn_out_of_memory();
  if (rn_ok(failure)) failure = rn_internal("A kernel failed to build and gave no reason");
  ctx->failure = rn_status_join(ctx->failure, failure);
}

TF_StringView TF_OpKernelConstruction_GetName(TF_OpKernelConstruction* ctx) {
  if (!ctx) return (TF_StringView){0};
  return (TF_StringView){ctx->init->node.data, ctx->init->node.size};
}

const rn_attr_value_t* rn_construction_attr(const TF_OpKernelConstruction* ctx, const char* name) {
  const rn_kernel_init_t* init = ctx->init;
  int index = rn_op_attr_index(init->op, rn_str(name));
  if (index >= 0) return &init->attrs[index];
  for (int i = 0; i < init->extra_count; ++i) {
    if (rn_str_is(init->extras[i].name, name)) return &init->extras[i].value;
  }
  return NULL;
}

// The attribute, which must be there.
static rn_status_t find(TF_OpKernelConstruction* ctx, const char* name,
                        const rn_attr_value_t** out) {
  *out = NULL;
  if (!ctx) return rn_invalid_argument("The construction of a kernel is NULL");
  if (!name) return rn_invalid_argument("The name of an attribute is NULL");
  *out = rn_construction_attr(ctx, name);
  if (*out) return RN_OK;
  return rn_not_found("No attr named '%s' in NodeDef:\n\t [[{{node %.*s}}]]", name,
                      RN_STR_ARGS(ctx->init->node));
}

// The attribute, which must be there and of the kind asked for.
static rn_status_t get(TF_OpKernelConstruction* ctx, const char* name, rn_attr_kind_t kind,
                       bool is_list, const void* room, const rn_attr_value_t** out) {
  RN_RETURN_IF_ERROR(find(ctx, name, out));
  bool is_empty = is_list && (*out)->is_list && (*out)->count == 0;
  if (!is_empty && ((*out)->kind != kind || (*out)->is_list != is_list)) {
    return rn_invalid_argument(
        "AttrValue had value with type '%s' when '%s' expected\n\t for attr '%s'",
        rn_attr_kind_name((*out)->kind, (*out)->is_list), rn_attr_kind_name(kind, is_list), name);
  }
  if (!room && !is_empty) {
    return rn_invalid_argument("There is no room for the value of attribute '%s'", name);
  }
  return RN_OK;
}

void TF_OpKernelConstruction_GetAttrSize(TF_OpKernelConstruction* ctx, const char* attr_name,
                                         int32_t* list_size, int32_t* total_size,
                                         TF_Status* status) {
  const rn_attr_value_t* value;
  if (list_size) *list_size = -1;
  if (total_size) *total_size = -1;
  if (!rn_capi_ok(status, find(ctx, attr_name, &value))) return;
  int64_t total = -1;
  int count = value->is_list ? value->count : 1;
  if (value->kind == RN_ATTR_STRING || value->kind == RN_ATTR_SHAPE) total = 0;
  for (int i = 0; total >= 0 && i < count; ++i) {
    if (value->kind == RN_ATTR_STRING) {
      total += (int64_t)(value->is_list ? value->list_s[i] : value->s).size;
    } else {
      int rank = (value->is_list ? value->list_shape[i] : value->shape).rank;
      total += rank > 0 ? rank : 0;
    }
  }
  if (!value->is_list && value->kind == RN_ATTR_SHAPE) total = value->shape.rank;
  if (list_size && value->is_list) *list_size = value->count;
  if (total_size) *total_size = total > INT32_MAX ? INT32_MAX : (int32_t)total;
}

#define GET_SCALAR(suffix, client_t, attr_kind, member)                                        \
  void TF_OpKernelConstruction_GetAttr##suffix(                                                \
      TF_OpKernelConstruction* ctx, const char* attr_name, client_t* val, TF_Status* status) { \
    const rn_attr_value_t* value;                                                              \
    if (!rn_capi_ok(status, get(ctx, attr_name, attr_kind, false, val, &value))) return;       \
    *val = (client_t)value->member;                                                            \
  }
GET_SCALAR(Type, TF_DataType, RN_ATTR_TYPE, type)
GET_SCALAR(Int64, int64_t, RN_ATTR_INT, i)
GET_SCALAR(Float, float, RN_ATTR_FLOAT, f)
GET_SCALAR(Bool, TF_Bool, RN_ATTR_BOOL, b)

#define GET_LIST(suffix, client_t, attr_kind, member)                                            \
  void TF_OpKernelConstruction_GetAttr##suffix##List(TF_OpKernelConstruction* ctx,               \
                                                     const char* attr_name, client_t* vals,      \
                                                     int max_vals, TF_Status* status) {          \
    const rn_attr_value_t* value;                                                                \
    if (!rn_capi_ok(status, get(ctx, attr_name, attr_kind, true, vals, &value))) return;         \
    for (int i = 0; i < value->count && i < max_vals; ++i) vals[i] = (client_t)value->member[i]; \
  }
GET_LIST(Type, TF_DataType, RN_ATTR_TYPE, list_type)
GET_LIST(Int64, int64_t, RN_ATTR_INT, list_i)
GET_LIST(Float, float, RN_ATTR_FLOAT, list_f)
GET_LIST(Bool, TF_Bool, RN_ATTR_BOOL, list_b)

static rn_status_t narrow(int64_t value, const char* name, int32_t* out) {
  if (value < INT32_MIN || value > INT32_MAX) {
    return rn_invalid_argument("Attr %s has value %lld out of range for an int32", name,
                               (long long)value);
  }
  *out = (int32_t)value;
  return RN_OK;
}

void TF_OpKernelConstruction_GetAttrInt32(TF_OpKernelConstruction* ctx, const char* attr_name,
                                          int32_t* val, TF_Status* status) {
  const rn_attr_value_t* value;
  rn_status_t outcome = get(ctx, attr_name, RN_ATTR_INT, false, val, &value);
  if (rn_ok(outcome)) outcome = narrow(value->i, attr_name, val);
  rn_capi_set(status, outcome);
}

void TF_OpKernelConstruction_GetAttrInt32List(TF_OpKernelConstruction* ctx, const char* attr_name,
                                              int32_t* vals, int max_vals, TF_Status* status) {
  const rn_attr_value_t* value;
  rn_status_t outcome = get(ctx, attr_name, RN_ATTR_INT, true, vals, &value);
  for (int i = 0; rn_ok(outcome) && i < value->count && i < max_vals; ++i) {
    outcome = narrow(value->list_i[i], attr_name, &vals[i]);
  }
  rn_capi_set(status, outcome);
}

void TF_OpKernelConstruction_GetAttrString(TF_OpKernelConstruction* ctx, const char* attr_name,
                                           char* val, size_t max_length, TF_Status* status) {
  const rn_attr_value_t* value;
  // An empty string needs no space.
  const void* room = val || max_length == 0 ? (const void*)attr_name : NULL;
  if (!rn_capi_ok(status, get(ctx, attr_name, RN_ATTR_STRING, false, room, &value))) return;
  size_t size = value->s.size < max_length ? value->s.size : max_length;
  if (size) memcpy(val, value->s.data, size);
}

void TF_OpKernelConstruction_GetAttrStringList(TF_OpKernelConstruction* ctx, const char* attr_name,
                                               char** values, size_t* lengths, int max_values,
                                               void* storage, size_t storage_size,
                                               TF_Status* status) {
  const rn_attr_value_t* value;
  const void* room = values && lengths && storage ? storage : NULL;
  rn_status_t outcome = get(ctx, attr_name, RN_ATTR_STRING, true, room, &value);
  char* next = storage;
  for (int i = 0; rn_ok(outcome) && i < value->count && i < max_values; ++i) {
    rn_str_t s = value->list_s[i];
    if (s.size > storage_size) {
      outcome = rn_invalid_argument("Not enough storage to hold the requested list of strings");
      break;
    }
    values[i] = next;
    lengths[i] = s.size;
    if (s.size) memcpy(next, s.data, s.size);
    next += s.size;
    storage_size -= s.size;
  }
  rn_capi_set(status, outcome);
}

static rn_status_t copy_tensor(const rn_tensor_t* tensor, TF_Tensor** out) {
  rn_tensor_t copy = {0};
  RN_RETURN_IF_ERROR(rn_tensor_copy(tensor, rn_capi_allocator(), &copy));
  return rn_capi_tensor_wrap(&copy, out);
}

void TF_OpKernelConstruction_GetAttrTensor(TF_OpKernelConstruction* ctx, const char* attr_name,
                                           TF_Tensor** val, TF_Status* status) {
  const rn_attr_value_t* value;
  if (val) *val = NULL;
  rn_status_t outcome = get(ctx, attr_name, RN_ATTR_TENSOR, false, val, &value);
  if (rn_ok(outcome)) outcome = copy_tensor(value->tensor, val);
  rn_capi_set(status, outcome);
}

void TF_OpKernelConstruction_GetAttrTensorList(TF_OpKernelConstruction* ctx, const char* attr_name,
                                               TF_Tensor** vals, int max_values,
                                               TF_Status* status) {
  const rn_attr_value_t* value;
  rn_status_t outcome = get(ctx, attr_name, RN_ATTR_TENSOR, true, vals, &value);
  int made = 0;
  for (; rn_ok(outcome) && made < value->count && made < max_values; ++made) {
    vals[made] = NULL;
    outcome = copy_tensor(value->list_tensor[made], &vals[made]);
  }
  for (int i = 0; !rn_ok(outcome) && i < made; ++i) {
    TF_DeleteTensor(vals[i]);
    vals[i] = NULL;
  }
  rn_capi_set(status, outcome);
}

TF_Buffer* TF_OpKernelConstruction_GetAttrFunction(TF_OpKernelConstruction* ctx,
                                                   const char* attr_name, TF_Status* status) {
  const rn_attr_value_t* value;
  TF_Buffer* buffer = NULL;
  rn_pb_AttrValue_t proto = {0};
  rn_strbuf_t buf;
  rn_arena_t arena;
  rn_strbuf_init(&buf, rn_capi_allocator());
  rn_arena_init(&arena, rn_capi_allocator());
  rn_status_t outcome = get(ctx, attr_name, RN_ATTR_FUNC, false, &buf, &value);
  if (rn_ok(outcome)) outcome = rn_attr_value_to_proto(value, &arena, &proto);
  if (rn_ok(outcome)) outcome = rn_capi_encode(&rn_pb_NameAttrList_desc, proto.func, &buf);
  if (rn_ok(outcome)) outcome = rn_capi_buffer_make(&buf, &buffer);
  rn_strbuf_clear(&buf);
  rn_arena_clear(&arena);
  rn_capi_set(status, outcome);
  return buffer;
}

void TF_OpKernelConstruction_GetAttrTensorShape(TF_OpKernelConstruction* ctx, const char* attr_name,
                                                int64_t* dims, size_t num_dims, TF_Status* status) {
  const rn_attr_value_t* value;
  const void* room = num_dims > 0 ? (const void*)dims : attr_name;
  rn_status_t outcome = get(ctx, attr_name, RN_ATTR_SHAPE, false, room, &value);
  if (rn_ok(outcome) && !rn_shape_is_full(value->shape))
    outcome = rn_invalid_argument("Attr %s is %s, which is not known in full", attr_name,
                                  rn_shape_text(value->shape).text);
  if (rn_ok(outcome) && (size_t)value->shape.rank != num_dims)
    outcome = rn_invalid_argument("Expected rank is %zu but actual rank is %d", num_dims,
                                  value->shape.rank);
  for (size_t i = 0; rn_ok(outcome) && i < num_dims; ++i) dims[i] = value->shape.dims[i];
  rn_capi_set(status, outcome);
}

bool TF_OpKernelConstruction_HasAttr(TF_OpKernelConstruction* ctx, const char* attr_name,
                                     TF_Status* status) {
  if (!ctx || !attr_name) {
    rn_capi_set(status, RN_CAPI_NULL(ctx ? "attr_name" : "ctx"));
    return false;
  }
  rn_capi_set(status, RN_OK);
  return rn_construction_attr(ctx, attr_name) != NULL;
}

static rn_status_t add_attr(rn_pb_NodeDef_t* node, rn_str_t name, const rn_attr_value_t* value,
                            rn_arena_t* arena) {
  rn_pb_NodeDef_AttrEntry_t* entry = &node->attr.items[node->attr.count];
  entry->key = name;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &entry->value));
  RN_RETURN_IF_ERROR(rn_attr_value_to_proto(value, arena, entry->value));
  node->attr.count++;
  return RN_OK;
}

// Leaves out control inputs: kernels do not see them.
static rn_status_t node_def(const rn_kernel_init_t* init, rn_arena_t* arena, rn_strbuf_t* buf) {
  rn_pb_NodeDef_t node = {
      .name = init->node, .op = rn_str(init->op->name), .device = init->device_name};
  size_t count = (size_t)init->op->attr_count + (size_t)init->extra_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &node.attr.items));
  for (int i = 0; i < init->op->attr_count; ++i) {
    RN_RETURN_IF_ERROR(add_attr(&node, rn_str(init->op->attrs[i].name), &init->attrs[i], arena));
  }
  for (int i = 0; i < init->extra_count; ++i) {
    RN_RETURN_IF_ERROR(add_attr(&node, init->extras[i].name, &init->extras[i].value, arena));
  }
  size_t inputs = (size_t)init->input_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, inputs, &node.input.items));
  for (size_t i = 0; i < inputs; ++i)
    RN_RETURN_IF_ERROR(rn_plugin_source_name(&init->sources[i], arena, &node.input.items[i]));
  node.input.count = node.input.capacity = (uint32_t)inputs;
  return rn_capi_encode(&rn_pb_NodeDef_desc, &node, buf);
}

TF_Buffer* TF_OpKernelConstruction_GetNodeDef(TF_OpKernelConstruction* ctx, TF_Status* status) {
  TF_Buffer* buffer = NULL;
  rn_strbuf_t buf;
  rn_arena_t arena;
  rn_strbuf_init(&buf, rn_capi_allocator());
  rn_arena_init(&arena, rn_capi_allocator());
  rn_status_t outcome = ctx ? node_def(ctx->init, &arena, &buf) : RN_CAPI_NULL("ctx");
  if (rn_ok(outcome)) outcome = rn_capi_buffer_make(&buf, &buffer);
  rn_strbuf_clear(&buf);
  rn_arena_clear(&arena);
  rn_capi_set(status, outcome);
  return buffer;
}

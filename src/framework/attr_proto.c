// Converts attribute values to and from messages.
//
// Counts grow with the elements, so that rn_attr_value_clear can clear a half-built value.
#include "framework/attr_proto.h"

#include "tensor/tensor_proto.h"

// State of one conversion.
typedef struct attr_proto_reader_t {
  rn_arena_t* arena;
  size_t max_bytes;
} attr_proto_reader_t;

static rn_status_t read_tensor(attr_proto_reader_t* r, const rn_pb_TensorProto_t* proto,
                               const rn_tensor_t** out) {
  rn_tensor_t* tensor = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(r->arena, &tensor));
  RN_RETURN_IF_ERROR(rn_tensor_from_proto(proto, r->max_bytes, r->arena->allocator, tensor));
  *out = tensor;
  return RN_OK;
}

static rn_status_t read_func(attr_proto_reader_t* r, const rn_pb_NameAttrList_t* proto,
                             const rn_func_attr_t** out) {
  rn_func_attr_t* func = NULL;
  const void** entries = NULL;
  size_t count = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(r->arena, &func));
  RN_RETURN_IF_ERROR(rn_arena_str(r->arena, proto->name, &func->name));
  RN_RETURN_IF_ERROR(rn_pb_map_sorted(&rn_pb_NameAttrList_AttrEntry_desc,
                                      (const rn_pb_list_t*)&proto->attr, r->arena, &entries,
                                      &count));
  rn_attr_t* attrs = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(r->arena, count, &attrs));
  func->attrs = attrs;
  *out = func;  // from here on the caller clears what is there
  for (size_t i = 0; i < count; ++i) {
    const rn_pb_NameAttrList_AttrEntry_t* entry = entries[i];
    static const rn_pb_AttrValue_t none = {0};
    RN_RETURN_IF_ERROR(rn_arena_str(r->arena, entry->key, &attrs[i].name));
    RN_RETURN_IF_ERROR(rn_attr_value_from_proto(entry->value ? entry->value : &none, r->max_bytes,
                                                r->arena, &attrs[i].value));
    ++func->attr_count;
  }
  return RN_OK;
}

// The kind of the list's elements.
static rn_status_t list_kind(const rn_pb_AttrValue_ListValue_t* list, uint8_t* out_kind,
                             uint32_t* out_count) {
  const struct {
    rn_attr_kind_t kind;
    uint32_t count;
  } rows[] = {{RN_ATTR_STRING, list->s.count},      {RN_ATTR_INT, list->i.count},
              {RN_ATTR_FLOAT, list->f.count},       {RN_ATTR_BOOL, list->b.count},
              {RN_ATTR_TYPE, list->type.count},     {RN_ATTR_SHAPE, list->shape.count},
              {RN_ATTR_TENSOR, list->tensor.count}, {RN_ATTR_FUNC, list->func.count}};
  *out_kind = RN_ATTR_INT;
  *out_count = 0;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    if (rows[i].count == 0) continue;
    if (*out_count) {
      return rn_invalid_argument("AttrValue had values of type '%s' and of type '%s' in one list",
                                 rn_attr_kind_name(*out_kind, true),
                                 rn_attr_kind_name(rows[i].kind, true));
    }
    *out_kind = (uint8_t)rows[i].kind;
    *out_count = rows[i].count;
  }
  if (*out_count > INT32_MAX) return rn_invalid_argument("AttrValue list is too long");
  return RN_OK;
}

static rn_status_t copy_items(attr_proto_reader_t* r, const void* items, uint32_t count,
                              size_t size, const void** out) {
  void* copy = NULL;
  RN_RETURN_IF_ERROR(rn_arena_alloc_array(r->arena, count, size, &copy));
  memcpy(copy, items, count * size);
  *out = copy;
  return RN_OK;
}

// Converts the elements of a list one by one.
static rn_status_t read_elements(attr_proto_reader_t* r, const rn_pb_AttrValue_ListValue_t* list,
                                 uint32_t count, rn_attr_value_t* out) {
  union {
    rn_str_t* s;
    rn_shape_t* shape;
    const rn_tensor_t** tensor;
    const rn_func_attr_t** func;
    void* any;
  } to = {0};
  size_t size = out->kind == RN_ATTR_STRING  ? sizeof *to.s
                : out->kind == RN_ATTR_SHAPE ? sizeof *to.shape
                                             : sizeof(void*);
  RN_RETURN_IF_ERROR(rn_arena_alloc_array(r->arena, count, size, &to.any));
  switch (out->kind) {
    case RN_ATTR_STRING:
      out->list_s = to.s;
      for (uint32_t i = 0; i < count; ++i, ++out->count) {
        RN_RETURN_IF_ERROR(rn_arena_str(r->arena, list->s.items[i], &to.s[i]));
      }
      return RN_OK;
    case RN_ATTR_SHAPE:
      out->list_shape = to.shape;
      for (uint32_t i = 0; i < count; ++i, ++out->count) {
        RN_RETURN_IF_ERROR(rn_shape_from_proto(&list->shape.items[i], r->arena, &to.shape[i]));
      }
      return RN_OK;
    case RN_ATTR_TENSOR:
      out->list_tensor = to.tensor;
      for (uint32_t i = 0; i < count; ++i, ++out->count) {
        RN_RETURN_IF_ERROR(read_tensor(r, &list->tensor.items[i], &to.tensor[i]));
      }
      return RN_OK;
    default:
      out->list_func = to.func;
      for (uint32_t i = 0; i < count; ++i) {
        rn_status_t status = read_func(r, &list->func.items[i], &to.func[i]);
        if (to.func[i]) ++out->count;  // count half-built ones, so that they are cleared too
        RN_RETURN_IF_ERROR(status);
      }
      return RN_OK;
  }
}

static rn_status_t read_list(attr_proto_reader_t* r, const rn_pb_AttrValue_ListValue_t* list,
                             rn_attr_value_t* out) {
  uint32_t count = 0;
  out->is_list = true;
  RN_RETURN_IF_ERROR(list_kind(list, &out->kind, &count));
  if (count == 0) return RN_OK;
  rn_status_t status = RN_OK;
  const void* items = NULL;
  switch (out->kind) {
    case RN_ATTR_INT:
      status = copy_items(r, list->i.items, count, sizeof(int64_t), &items);
      out->list_i = items;
      break;
    case RN_ATTR_FLOAT:
      status = copy_items(r, list->f.items, count, sizeof(float), &items);
      out->list_f = items;
      break;
    case RN_ATTR_BOOL:
      status = copy_items(r, list->b.items, count, sizeof(bool), &items);
      out->list_b = items;
      break;
    case RN_ATTR_TYPE:
      status = copy_items(r, list->type.items, count, sizeof(rn_dtype_t), &items);
      out->list_type = items;
      break;
    default:
      return read_elements(r, list, count, out);
  }
  if (rn_ok(status)) out->count = (int32_t)count;
  return status;
}

static rn_status_t read_value(attr_proto_reader_t* r, const rn_pb_AttrValue_t* proto,
                              rn_attr_value_t* out) {
  // A message member of the oneof that is set but NULL is the empty message.
  static const rn_pb_TensorShapeProto_t no_shape = {0};
  static const rn_pb_TensorProto_t no_tensor = {0};
  static const rn_pb_AttrValue_ListValue_t no_list = {0};
  static const rn_pb_NameAttrList_t no_func = {0};
  switch (proto->value_case) {
    case rn_pb_AttrValue_s_field:
      out->kind = RN_ATTR_STRING;
      return rn_arena_str(r->arena, proto->s, &out->s);
    case rn_pb_AttrValue_placeholder_field:
      out->kind = RN_ATTR_PLACEHOLDER;
      return rn_arena_str(r->arena, proto->placeholder, &out->s);
    case rn_pb_AttrValue_i_field:
      out->kind = RN_ATTR_INT;
      out->i = proto->i;
      return RN_OK;
    case rn_pb_AttrValue_f_field:
      out->kind = RN_ATTR_FLOAT;
      out->f = proto->f;
      return RN_OK;
    case rn_pb_AttrValue_b_field:
      out->kind = RN_ATTR_BOOL;
      out->b = proto->b;
      return RN_OK;
    case rn_pb_AttrValue_type_field:
      out->kind = RN_ATTR_TYPE;
      out->type = proto->type;
      return RN_OK;
    case rn_pb_AttrValue_shape_field:
      out->kind = RN_ATTR_SHAPE;
      return rn_shape_from_proto(proto->shape ? proto->shape : &no_shape, r->arena, &out->shape);
    case rn_pb_AttrValue_tensor_field:
      out->kind = RN_ATTR_TENSOR;
      return read_tensor(r, proto->tensor ? proto->tensor : &no_tensor, &out->tensor);
    case rn_pb_AttrValue_list_field:
      return read_list(r, proto->list ? proto->list : &no_list, out);
    case rn_pb_AttrValue_func_field:
      out->kind = RN_ATTR_FUNC;
      return read_func(r, proto->func ? proto->func : &no_func, &out->func);
    default:
      return rn_invalid_argument("AttrValue missing value");
  }
}

rn_status_t rn_attr_value_from_proto(const rn_pb_AttrValue_t* proto, size_t max_bytes,
                                     rn_arena_t* arena, rn_attr_value_t* out) {
  attr_proto_reader_t reader = {.arena = arena, .max_bytes = max_bytes};
  *out = (rn_attr_value_t){0};
  rn_status_t status = read_value(&reader, proto, out);
  if (rn_ok(status)) return RN_OK;
  bool has_buffers = out->is_list ? out->count > 0
                                  : (out->kind == RN_ATTR_TENSOR && out->tensor) ||
                                        (out->kind == RN_ATTR_FUNC && out->func);
  if (has_buffers) rn_attr_value_clear(out);
  *out = (rn_attr_value_t){0};
  return status;
}

// Values to messages.

static rn_status_t write_func(const rn_func_attr_t* func, rn_arena_t* arena,
                              rn_pb_NameAttrList_t* out) {
  size_t count = (size_t)func->attr_count;
  *out = (rn_pb_NameAttrList_t){.name = func->name};
  if (count == 0) return RN_OK;
  rn_pb_AttrValue_t* values = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &values));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &out->attr.items));
  for (size_t i = 0; i < count; ++i) {
    out->attr.items[i].key = func->attrs[i].name;
    out->attr.items[i].value = &values[i];
    RN_RETURN_IF_ERROR(rn_attr_value_to_proto(&func->attrs[i].value, arena, &values[i]));
  }
  out->attr.count = out->attr.capacity = (uint32_t)count;
  return RN_OK;
}

// Borrows |from|, |n| elements, as the repeated field |list|.
#define RN_BORROW(list, from, n)                    \
  do {                                              \
    (list).items = (void*)(from);                   \
    (list).count = (list).capacity = (uint32_t)(n); \
  } while (0)

static rn_status_t write_list(const rn_attr_value_t* value, rn_arena_t* arena,
                              rn_pb_AttrValue_ListValue_t* out) {
  size_t count = (size_t)value->count;
  if (count == 0) return RN_OK;
  switch (value->kind) {
    case RN_ATTR_STRING:
    case RN_ATTR_PLACEHOLDER:
      RN_BORROW(out->s, value->list_s, count);
      return RN_OK;
    case RN_ATTR_INT:
      RN_BORROW(out->i, value->list_i, count);
      return RN_OK;
    case RN_ATTR_FLOAT:
      RN_BORROW(out->f, value->list_f, count);
      return RN_OK;
    case RN_ATTR_BOOL:
      RN_BORROW(out->b, value->list_b, count);
      return RN_OK;
    case RN_ATTR_TYPE:
      RN_BORROW(out->type, value->list_type, count);
      return RN_OK;
    case RN_ATTR_SHAPE:
      RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &out->shape.items));
      for (; out->shape.count < count; ++out->shape.count) {
        uint32_t i = out->shape.count;
        RN_RETURN_IF_ERROR(rn_shape_to_proto(value->list_shape[i], arena, &out->shape.items[i]));
      }
      return RN_OK;
    case RN_ATTR_TENSOR:
      RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &out->tensor.items));
      for (; out->tensor.count < count; ++out->tensor.count) {
        uint32_t i = out->tensor.count;
        RN_RETURN_IF_ERROR(rn_tensor_to_proto(value->list_tensor[i], RN_TENSOR_AUTO, arena,
                                              &out->tensor.items[i]));
      }
      return RN_OK;
    default:
      RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &out->func.items));
      for (; out->func.count < count; ++out->func.count) {
        uint32_t i = out->func.count;
        RN_RETURN_IF_ERROR(write_func(value->list_func[i], arena, &out->func.items[i]));
      }
      return RN_OK;
  }
}

rn_status_t rn_attr_value_to_proto(const rn_attr_value_t* value, rn_arena_t* arena,
                                   rn_pb_AttrValue_t* out) {
  *out = (rn_pb_AttrValue_t){0};
  if (value->is_list) {
    out->value_case = rn_pb_AttrValue_list_field;
    RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &out->list));
    return write_list(value, arena, out->list);
  }
  switch (value->kind) {
    case RN_ATTR_STRING:
      out->value_case = rn_pb_AttrValue_s_field;
      out->s = value->s;
      return RN_OK;
    case RN_ATTR_PLACEHOLDER:
      out->value_case = rn_pb_AttrValue_placeholder_field;
      out->placeholder = value->s;
      return RN_OK;
    case RN_ATTR_INT:
      out->value_case = rn_pb_AttrValue_i_field;
      out->i = value->i;
      return RN_OK;
    case RN_ATTR_FLOAT:
      out->value_case = rn_pb_AttrValue_f_field;
      out->f = value->f;
      return RN_OK;
    case RN_ATTR_BOOL:
      out->value_case = rn_pb_AttrValue_b_field;
      out->b = value->b;
      return RN_OK;
    case RN_ATTR_TYPE:
      out->value_case = rn_pb_AttrValue_type_field;
      out->type = value->type;
      return RN_OK;
    case RN_ATTR_SHAPE:
      out->value_case = rn_pb_AttrValue_shape_field;
      RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &out->shape));
      return rn_shape_to_proto(value->shape, arena, out->shape);
    case RN_ATTR_TENSOR:
      out->value_case = rn_pb_AttrValue_tensor_field;
      RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &out->tensor));
      return rn_tensor_to_proto(value->tensor, RN_TENSOR_AUTO, arena, out->tensor);
    case RN_ATTR_FUNC:
      out->value_case = rn_pb_AttrValue_func_field;
      RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &out->func));
      return write_func(value->func, arena, out->func);
    default:
      return rn_internal("An attribute value of kind %d", value->kind);
  }
}

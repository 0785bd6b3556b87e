// Attribute values: comparing, printing and copying them.
#include "framework/attr.h"

#include <inttypes.h>
#include <stdio.h>

#include "tensor/print.h"
#include "tensor/tstring.h"

const char* rn_attr_kind_name(rn_attr_kind_t kind, bool is_list) {
  static const char* const names[][2] = {
#define NAMES(enumerator, word, number) [number] = {word, "list(" word ")"},
      RN_ATTR_KINDS(NAMES)
#undef NAMES
  };
  size_t index = (size_t)kind;
  return index < sizeof names / sizeof *names ? names[index][is_list] : "unknown";
}

static bool tensor_eq(const rn_tensor_t* a, const rn_tensor_t* b) {
  if (a->dtype != b->dtype || a->is_ref != b->is_ref || !rn_tensor_same_shape(a, b)) return false;
  if (a->data == b->data || a->count == 0) return true;
  if (!a->data || !b->data) return false;
  if (a->dtype != RN_STRING) return memcmp(a->data, b->data, rn_tensor_bytes(a)) == 0;
  for (int64_t i = 0; i < a->count; i++) {
    if (!rn_str_eq(rn_tstring_view(&RN_DATA(a, rn_tstring_t)[i]),
                   rn_tstring_view(&RN_DATA(b, rn_tstring_t)[i]))) {
      return false;
    }
  }
  return true;
}

static const rn_attr_t* find_attr(const rn_func_attr_t* func, rn_str_t name) {
  for (int32_t i = 0; i < func->attr_count; i++) {
    if (rn_str_eq(func->attrs[i].name, name)) return &func->attrs[i];
  }
  return NULL;
}

// Attributes are a set: their order does not matter.
static bool func_eq(const rn_func_attr_t* a, const rn_func_attr_t* b) {
  if (!rn_str_eq(a->name, b->name) || a->attr_count != b->attr_count) return false;
  for (int32_t i = 0; i < a->attr_count; i++) {
    const rn_attr_t* other = find_attr(b, a->attrs[i].name);
    if (!other || !rn_attr_value_eq(&a->attrs[i].value, &other->value)) return false;
  }
  return true;
}

// The i-th element of a list as a value of its own; a value that is no list is its only element.
static rn_attr_value_t element(const rn_attr_value_t* value, int32_t i) {
  if (!value->is_list) return *value;
  rn_attr_value_t one = {.kind = value->kind};
  switch ((rn_attr_kind_t)value->kind) {
    case RN_ATTR_STRING:
    case RN_ATTR_PLACEHOLDER:
      one.s = value->list_s[i];
      break;
    case RN_ATTR_INT:
      one.i = value->list_i[i];
      break;
    case RN_ATTR_FLOAT:
      one.f = value->list_f[i];
      break;
    case RN_ATTR_BOOL:
      one.b = value->list_b[i];
      break;
    case RN_ATTR_TYPE:
      one.type = value->list_type[i];
      break;
    case RN_ATTR_SHAPE:
      one.shape = value->list_shape[i];
      break;
    case RN_ATTR_TENSOR:
      one.tensor = value->list_tensor[i];
      break;
    case RN_ATTR_FUNC:
      one.func = value->list_func[i];
      break;
  }
  return one;
}

static bool element_eq(const rn_attr_value_t* a, const rn_attr_value_t* b) {
  switch ((rn_attr_kind_t)a->kind) {
    case RN_ATTR_STRING:
    case RN_ATTR_PLACEHOLDER:
      return rn_str_eq(a->s, b->s);
    case RN_ATTR_INT:
      return a->i == b->i;
    case RN_ATTR_FLOAT:  // by its bits, as in a serialised message: NaN equals itself, 0 not -0
      return memcmp(&a->f, &b->f, sizeof a->f) == 0;
    case RN_ATTR_BOOL:
      return a->b == b->b;
    case RN_ATTR_TYPE:
      return a->type == b->type;
    case RN_ATTR_SHAPE:
      return rn_shape_eq(a->shape, b->shape);
    case RN_ATTR_TENSOR:
      return tensor_eq(a->tensor, b->tensor);
    case RN_ATTR_FUNC:
      return func_eq(a->func, b->func);
  }
  return false;
}

bool rn_attr_value_eq(const rn_attr_value_t* a, const rn_attr_value_t* b) {
  if (a->is_list != b->is_list) return false;
  // An empty list from a message has lost its kind.
  if (a->is_list && a->count == 0 && b->count == 0) return true;
  if (a->kind != b->kind || (a->is_list && a->count != b->count)) return false;
  int32_t count = a->is_list ? a->count : 1;
  for (int32_t i = 0; i < count; i++) {
    rn_attr_value_t left = element(a, i), right = element(b, i);
    if (!element_eq(&left, &right)) return false;
  }
  return true;
}

// Prints a string quoted and escaped; omits the middle of a long one.
static void print_string(rn_strbuf_t* buf, rn_str_t str) {
  enum { LONG = 80, SHOWN = 10 };
  rn_strbuf_append(buf, RN_STR("\""));
  size_t start = buf->size;
  rn_print_escaped(buf, str, false);
  size_t size = buf->size - start;
  if (size >= LONG && !buf->failed) {
    memcpy(buf->data + start + SHOWN, "...", 3);
    memmove(buf->data + start + SHOWN + 3, buf->data + start + size - SHOWN, SHOWN);
    buf->size = start + 2 * SHOWN + 3;
  }
  rn_strbuf_append(buf, RN_STR("\""));
}

static void print_tensor(rn_strbuf_t* buf, const rn_tensor_t* tensor) {
  rn_strbuf_printf(buf, "Tensor<type: %s shape: ", rn_dtype_name(tensor->dtype));
  rn_shape_print(buf, rn_tensor_shape(tensor));
  rn_strbuf_append(buf, RN_STR(" values: "));
  rn_print_values(buf, tensor, 3);
  rn_strbuf_append(buf, RN_STR(">"));
}

// Prints name[a=1, b=DT_FLOAT], attributes sorted by name.
static void print_func(rn_strbuf_t* buf, const rn_func_attr_t* func) {
  rn_strbuf_append(buf, func->name);
  rn_strbuf_append(buf, RN_STR("["));
  const rn_attr_t* last = NULL;
  for (int32_t n = 0; n < func->attr_count; n++) {
    const rn_attr_t* next = NULL;
    for (int32_t i = 0; i < func->attr_count; i++) {
      const rn_attr_t* attr = &func->attrs[i];
      if ((!last || rn_str_compare(attr->name, last->name) > 0) &&
          (!next || rn_str_compare(attr->name, next->name) < 0)) {
        next = attr;
      }
    }
    if (!next) break;  // a name occurred twice
    if (n) rn_strbuf_append(buf, RN_STR(", "));
    rn_strbuf_append(buf, next->name);
    rn_strbuf_append(buf, RN_STR("="));
    rn_attr_value_print(buf, &next->value);
    last = next;
  }
  rn_strbuf_append(buf, RN_STR("]"));
}

static void print_element(rn_strbuf_t* buf, const rn_attr_value_t* value) {
  switch ((rn_attr_kind_t)value->kind) {
    case RN_ATTR_STRING:
      print_string(buf, value->s);
      return;
    case RN_ATTR_PLACEHOLDER:
      rn_strbuf_append(buf, RN_STR("$"));
      rn_strbuf_append(buf, value->s);
      return;
    case RN_ATTR_INT:
      rn_strbuf_printf(buf, "%" PRId64, value->i);
      return;
    case RN_ATTR_FLOAT:
      rn_print_float(buf, value->f);
      return;
    case RN_ATTR_BOOL:
      rn_strbuf_append(buf, value->b ? RN_STR("true") : RN_STR("false"));
      return;
    case RN_ATTR_TYPE:
      rn_strbuf_append(buf, rn_str(rn_dtype_proto_name(value->type)));
      return;
    case RN_ATTR_SHAPE:
      rn_shape_print(buf, value->shape);
      return;
    case RN_ATTR_TENSOR:
      print_tensor(buf, value->tensor);
      return;
    case RN_ATTR_FUNC:
      print_func(buf, value->func);
      return;
  }
  rn_strbuf_append(buf, RN_STR("<Unknown AttrValue type>"));
}

void rn_attr_value_print(rn_strbuf_t* buf, const rn_attr_value_t* value) {
  enum { LONG = 30, SHOWN = 5 };  // only the two ends of a long list are printed
  if (!value->is_list) {
    print_element(buf, value);
    return;
  }
  rn_strbuf_append(buf, RN_STR("["));
  for (int32_t i = 0; i < value->count; i++) {
    if (i) rn_strbuf_append(buf, RN_STR(", "));
    if (value->count >= LONG && i == SHOWN) {
      rn_strbuf_append(buf, RN_STR("..., "));
      i = value->count - SHOWN;
    }
    rn_attr_value_t one = element(value, i);
    print_element(buf, &one);
  }
  rn_strbuf_append(buf, RN_STR("]"));
}

static rn_status_t copy_func(rn_arena_t* arena, const rn_func_attr_t* func,
                             const rn_func_attr_t** out);

static rn_status_t copy_tensor(rn_arena_t* arena, const rn_tensor_t* tensor,
                               const rn_tensor_t** out) {
  rn_tensor_t* copy = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &copy));
  RN_RETURN_IF_ERROR(rn_tensor_keep(tensor, arena->allocator, copy));
  *out = copy;
  return RN_OK;
}

static rn_status_t copy_element(rn_arena_t* arena, rn_attr_value_t* inout) {
  switch ((rn_attr_kind_t)inout->kind) {
    case RN_ATTR_STRING:
    case RN_ATTR_PLACEHOLDER:
      return rn_arena_str(arena, inout->s, &inout->s);
    case RN_ATTR_SHAPE:
      return rn_shape_copy(arena, inout->shape, &inout->shape);
    case RN_ATTR_TENSOR:
      return copy_tensor(arena, inout->tensor, &inout->tensor);
    case RN_ATTR_FUNC:
      return copy_func(arena, inout->func, &inout->func);
    default:
      return RN_OK;
  }
}

static size_t element_size(rn_attr_kind_t kind) {
  switch (kind) {
    case RN_ATTR_STRING:
    case RN_ATTR_PLACEHOLDER:
      return sizeof(rn_str_t);
    case RN_ATTR_INT:
      return sizeof(int64_t);
    case RN_ATTR_FLOAT:
      return sizeof(float);
    case RN_ATTR_BOOL:
      return sizeof(bool);
    case RN_ATTR_TYPE:
      return sizeof(rn_dtype_t);
    case RN_ATTR_SHAPE:
      return sizeof(rn_shape_t);
    case RN_ATTR_TENSOR:
      return sizeof(rn_tensor_t*);
    case RN_ATTR_FUNC:
      return sizeof(rn_func_attr_t*);
  }
  return 0;
}

// Every member of the value's union starts at its beginning, so an element of a list is the first
// |element_size| bytes of the union.
static rn_status_t copy_list(rn_arena_t* arena, const rn_attr_value_t* value,
                             rn_attr_value_t* out) {
  size_t size = element_size((rn_attr_kind_t)value->kind);
  char* items = NULL;
  RN_RETURN_IF_ERROR(
      rn_arena_alloc_array(arena, (size_t)value->count, size ? size : 1, (void**)&items));
  *out = (rn_attr_value_t){.kind = value->kind, .is_list = true, .list_i = (int64_t*)items};
  for (int32_t i = 0; i < value->count; i++) {
    rn_attr_value_t one = element(value, i);
    rn_status_t status = copy_element(arena, &one);
    if (!rn_ok(status)) {
      rn_attr_value_clear(out);  // of the elements so far
      return status;
    }
    memcpy(items + (size_t)i * size, &one.s, size);
    out->count = i + 1;
  }
  return RN_OK;
}

static void clear_func(const rn_func_attr_t* func) {
  for (int32_t i = 0; i < func->attr_count; i++) {
    rn_attr_value_clear((rn_attr_value_t*)&func->attrs[i].value);
  }
}

static rn_status_t copy_func(rn_arena_t* arena, const rn_func_attr_t* func,
                             const rn_func_attr_t** out) {
  rn_func_attr_t* copy = NULL;
  rn_attr_t* attrs = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &copy));
  RN_RETURN_IF_ERROR(rn_arena_str(arena, func->name, &copy->name));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)func->attr_count, &attrs));
  copy->attrs = attrs;
  for (int32_t i = 0; i < func->attr_count; i++) {
    rn_status_t status = rn_arena_str(arena, func->attrs[i].name, &attrs[i].name);
    if (rn_ok(status)) {
      status = rn_attr_value_copy(arena, &func->attrs[i].value, &attrs[i].value);
    }
    if (!rn_ok(status)) {
      clear_func(copy);  // the attributes so far
      return status;
    }
    copy->attr_count = i + 1;
  }
  *out = copy;
  return RN_OK;
}

rn_status_t rn_attr_value_copy(rn_arena_t* arena, const rn_attr_value_t* value,
                               rn_attr_value_t* out) {
  rn_attr_value_t copy = *value;
  rn_status_t status = value->is_list ? copy_list(arena, value, &copy) : copy_element(arena, &copy);
  *out = rn_ok(status) ? copy : (rn_attr_value_t){.kind = RN_ATTR_INT};
  return status;
}

void rn_attr_value_clear(rn_attr_value_t* value) {
  int32_t count = value->is_list ? value->count : 1;
  for (int32_t i = 0; i < count; i++) {
    if (value->kind == RN_ATTR_TENSOR) {
      const rn_tensor_t* tensor = value->is_list ? value->list_tensor[i] : value->tensor;
      if (tensor) rn_tensor_clear((rn_tensor_t*)tensor);
    } else if (value->kind == RN_ATTR_FUNC) {
      const rn_func_attr_t* func = value->is_list ? value->list_func[i] : value->func;
      if (func) clear_func(func);
    } else {
      break;
    }
  }
  *value = (rn_attr_value_t){.kind = RN_ATTR_INT};
}

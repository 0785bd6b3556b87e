// Function objects: a FunctionDef and its signature as an op. See library.h.
#include "graph/library.h"

#include <stdatomic.h>

#include "framework/attr_proto.h"
#include "wire/decode.h"
#include "wire/encode.h"

static rn_status_t copy_text(rn_arena_t* arena, rn_str_t str, const char** out) {
  rn_str_t copy;
  RN_RETURN_IF_ERROR(rn_arena_str(arena, str, &copy));
  *out = copy.data;
  return RN_OK;
}

static rn_status_t find_attr(const rn_op_def_t* op, rn_str_t name, int16_t* out) {
  *out = -1;
  if (!name.size) return RN_OK;
  int index = rn_op_attr_index(op, name);
  *out = (int16_t)index;
  if (index >= 0) return RN_OK;
  return rn_invalid_argument("Function '%s' has no attr named '%.*s'", op->name, RN_STR_ARGS(name));
}

static rn_status_t make_args(rn_arena_t* arena, const rn_op_def_t* op,
                             const rn_pb_OpDef_ArgDef_t* args, uint32_t count,
                             const rn_arg_def_t** out) {
  rn_arg_def_t* made = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &made));
  for (uint32_t i = 0; i < count; i++) {
    rn_arg_def_t* arg = &made[i];
    RN_RETURN_IF_ERROR(copy_text(arena, args[i].name, &arg->name));
    RN_RETURN_IF_ERROR(find_attr(op, args[i].type_attr, &arg->type_attr));
    RN_RETURN_IF_ERROR(find_attr(op, args[i].number_attr, &arg->number_attr));
    RN_RETURN_IF_ERROR(find_attr(op, args[i].type_list_attr, &arg->type_list_attr));
    arg->type = args[i].type;
    arg->is_ref = args[i].is_ref;
    if (arg->type_attr < 0 && arg->type_list_attr < 0 && !rn_dtype_is_valid(arg->type)) {
      return rn_invalid_argument("Argument '%s' of function '%s' has no type", arg->name, op->name);
    }
  }
  *out = made;
  return RN_OK;
}

// "list(int)" and "int" as kind and form.
static bool parse_kind(rn_str_t word, rn_attr_def_t* out) {
  for (int kind = RN_ATTR_STRING; kind <= RN_ATTR_FUNC; kind++) {
    for (int is_list = 0; is_list < 2; is_list++) {
      if (!rn_str_is(word, rn_attr_kind_name((rn_attr_kind_t)kind, is_list))) continue;
      out->kind = (uint8_t)kind;
      out->is_list = is_list;
      return true;
    }
  }
  return false;
}

static rn_status_t make_attr(rn_arena_t* arena, const rn_pb_OpDef_AttrDef_t* def,
                             rn_attr_def_t* out) {
  RN_RETURN_IF_ERROR(copy_text(arena, def->name, &out->name));
  if (!parse_kind(def->type, out)) {
    return rn_invalid_argument("Attr '%s' of a function has the unknown type '%.*s'", out->name,
                               RN_STR_ARGS(def->type));
  }
  out->has_minimum = def->has_minimum;
  out->minimum = def->minimum;
  if (!def->default_value) return RN_OK;
  // Nothing releases the buffers of a definition, so defaults that hold tensors are dropped, and
  // calls must give the attribute.
  bool holds_buffers = out->kind == RN_ATTR_TENSOR || out->kind == RN_ATTR_FUNC;
  if (holds_buffers) return RN_OK;
  out->has_default = true;
  return rn_attr_value_from_proto(def->default_value, 0, arena, &out->default_value);
}

// Makes an op from the signature. Whatever runs it finds the function by the op's name.
static rn_status_t make_op(rn_arena_t* arena, const rn_pb_OpDef_t* signature,
                           const rn_op_def_t** out) {
  rn_op_def_t* op = NULL;
  rn_attr_def_t* attrs = NULL;
  uint32_t inputs = signature->input_arg.count, outputs = signature->output_arg.count;
  if (inputs > INT16_MAX || outputs > INT16_MAX || signature->attr.count > INT16_MAX) {
    return rn_invalid_argument("Function '%.*s' has too many arguments",
                               RN_STR_ARGS(signature->name));
  }
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &op));
  RN_RETURN_IF_ERROR(copy_text(arena, signature->name, &op->name));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, signature->attr.count, &attrs));
  op->attrs = attrs;
  for (uint32_t i = 0; i < signature->attr.count; i++) {
    RN_RETURN_IF_ERROR(make_attr(arena, &signature->attr.items[i], &attrs[i]));
    op->attr_count++;
  }
  RN_RETURN_IF_ERROR(make_args(arena, op, signature->input_arg.items, inputs, &op->inputs));
  RN_RETURN_IF_ERROR(make_args(arena, op, signature->output_arg.items, outputs, &op->outputs));
  op->summary = "";
  op->input_count = (int16_t)inputs;
  op->output_count = (int16_t)outputs;
  op->flags = signature->is_stateful ? RN_OP_STATEFUL : 0;
  op->role = RN_ROLE_FUNCTION;
  op->shape = rn_shape_fn_unknown;
  *out = op;
  return RN_OK;
}

// Whether the function asks not to be inlined.
static bool asks_noinline(const rn_pb_FunctionDef_t* def) {
  for (uint32_t i = 0; i < def->attr.count; i++) {
    const rn_pb_FunctionDef_AttrEntry_t* attr = &def->attr.items[i];
    if (rn_str_is(attr->key, "_noinline") && attr->value &&
        attr->value->value_case == rn_pb_AttrValue_b_field) {
      return attr->value->b;
    }
  }
  return false;
}

static rn_status_t fill(rn_function_t* function, const rn_pb_FunctionDef_t* def) {
  static const rn_pb_OpDef_t none = {0};
  const rn_pb_OpDef_t* signature = def->signature ? def->signature : &none;
  rn_arena_t* arena = &function->arena;
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, function->allocator);
  rn_pb_encode_options_t sorted = {.sort_maps = true};
  rn_status_t status = RN_PB_ENCODE(FunctionDef, def, &sorted, &bytes);
  if (rn_ok(status)) status = rn_arena_str(arena, rn_strbuf_view(&bytes), &function->bytes);
  rn_strbuf_clear(&bytes);
  RN_RETURN_IF_ERROR(status);
  RN_RETURN_IF_ERROR(rn_arena_str(arena, signature->name, &function->name));
  function->is_noinline = asks_noinline(def);
  return make_op(arena, signature, &function->op);
}

rn_status_t rn_function_from_def(rn_allocator_t allocator, const rn_pb_FunctionDef_t* def,
                                 rn_function_t** out) {
  *out = NULL;
  rn_function_t* function = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &function));
  atomic_init(&function->refs, 1);
  function->allocator = allocator;
  rn_arena_init(&function->arena, allocator);
  rn_status_t status = fill(function, def);
  if (!rn_ok(status)) {
    rn_function_release(function);
    return status;
  }
  *out = function;
  return RN_OK;
}

rn_status_t rn_function_parse(rn_allocator_t allocator, rn_str_t bytes, rn_function_t** out) {
  *out = NULL;
  rn_arena_t scratch;
  rn_arena_init(&scratch, allocator);
  rn_pb_FunctionDef_t* def = NULL;
  rn_status_t status = RN_PB_DECODE(FunctionDef, bytes, NULL, &scratch, &def);
  if (rn_ok(status)) status = rn_function_from_def(allocator, def, out);
  rn_arena_clear(&scratch);
  return status;
}

void rn_function_retain(rn_function_t* function) {
  atomic_fetch_add_explicit(&function->refs, 1, memory_order_relaxed);
}

void rn_function_release(rn_function_t* function) {
  if (!function || atomic_fetch_sub_explicit(&function->refs, 1, memory_order_acq_rel) != 1) return;
  rn_arena_clear(&function->arena);
  RN_FREE(function->allocator, function);
}

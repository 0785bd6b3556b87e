// Op descriptions: collect name, device, inputs and attributes call by call.
#include <unistd.h>

#include "eager/internal.h"
#include "framework/anonymous.h"

const rn_op_def_t* rn_eager_find_def(rn_eager_t* eager, rn_str_t name) {
  const rn_op_def_t* def = rn_op_find(name);
  if (def) return def;
  rn_function_t* function = rn_graph_get_function(eager->library, name);
  def = function ? function->op : NULL;
  rn_function_release(function);  // the library retains it
  return def;
}

rn_status_t rn_eager_no_such_op(rn_str_t name) {
  char host[256] = "localhost";
  if (gethostname(host, sizeof host - 1) != 0) memcpy(host, "localhost", sizeof "localhost");
  return rn_not_found(
      "'%.*s' is neither a type of a primitive operation nor a name of a function registered in "
      "binary running on %s. Make sure the operation or function is registered in the binary "
      "running in this process.",
      RN_STR_ARGS(name), host);
}

static void clear_attrs(rn_eager_op_t* op) {
  if (!op->has_tensors) return;
  for (int i = 0; i < op->def->attr_count; ++i)
    if (op->attrs[i].kind != RN_EAGER_UNSET) rn_attr_value_clear(&op->attrs[i]);
  for (size_t i = 0; i < op->extras.count; ++i) rn_attr_value_clear(&op->extras.items[i].value);
  op->has_tensors = false;
}

static void clear(rn_eager_op_t* op) {
  for (int32_t i = 0; i < op->input_count; ++i) rn_eager_handle_release(op->inputs[i]);
  op->input_count = op->arg_count = 0;
  op->has_special = false;
  op->is_anonymous = false;
  if (op->def) clear_attrs(op);
  op->extras.count = 0;
  rn_function_release(op->function);
  op->function = NULL;
  op->def = NULL;
  op->device = NULL;
  op->device_name.size = 0;
  op->cancel = NULL;
  rn_status_free(op->status);
  op->status = RN_OK;
  if (op->arena.chunks) rn_arena_clear(&op->arena);
}

// Allocates the arrays that the definition determines: attributes, lengths of arguments.
static rn_status_t make_room(rn_eager_op_t* op) {
  const rn_op_def_t* def = op->def;
  op->attrs = op->few_attrs;
  op->lengths = op->few_lengths;
  if (def->attr_count > RN_EAGER_FEW)
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&op->arena, (size_t)def->attr_count, &op->attrs));
  if (def->input_count > RN_EAGER_FEW)
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&op->arena, (size_t)def->input_count, &op->lengths));
  for (int i = 0; i < def->attr_count; ++i) op->attrs[i].kind = RN_EAGER_UNSET;
  op->knows_lengths = true;
  return RN_OK;
}

static rn_status_t name_op(rn_eager_op_t* op, rn_str_t name) {
  op->def = rn_op_find(name);
  if (!op->def) {
    op->function = rn_graph_get_function(op->eager->library, name);
    if (!op->function) return rn_eager_no_such_op(name);
    op->def = op->function->op;
  }
  rn_status_t status = make_room(op);
  if (!rn_ok(status)) op->def = NULL;
  return status;
}

rn_status_t rn_eager_op_create(rn_eager_t* eager, rn_str_t name, rn_eager_op_t** out) {
  *out = NULL;
  rn_allocator_t allocator = eager->allocator;
  rn_eager_op_t* op = NULL;
  RN_RETURN_IF_ERROR(rn_alloc(allocator, sizeof *op, (void**)&op));
  memset(op, 0, offsetof(rn_eager_op_t, few_inputs));
  op->eager = eager;
  op->inputs = op->few_inputs;
  op->input_capacity = RN_EAGER_FEW;
  rn_arena_init(&op->arena, allocator);
  rn_strbuf_init(&op->device_name, allocator);
  rn_status_t status = name_op(op, name);
  if (!rn_ok(status)) {
    rn_eager_op_destroy(op);
    return status;
  }
  *out = op;
  return RN_OK;
}

void rn_eager_op_destroy(rn_eager_op_t* op) {
  if (!op) return;
  rn_allocator_t allocator = op->arena.allocator;
  clear(op);
  if (op->device_name.data) rn_strbuf_clear(&op->device_name);
  rn_vec_free(&op->extras, allocator);
  if (op->inputs != op->few_inputs) RN_FREE_ARRAY(allocator, op->inputs, op->input_capacity);
  RN_FREE(allocator, op);
}

// A failed reset leaves a description that can only be reset or destroyed.
rn_status_t rn_eager_op_reset(rn_eager_op_t* op, rn_str_t name, rn_str_t device) {
  clear(op);
  RN_RETURN_IF_ERROR(name_op(op, name));
  return rn_eager_op_set_device(op, device);
}

rn_eager_t* rn_eager_op_context(const rn_eager_op_t* op) { return op->eager; }
const rn_op_def_t* rn_eager_op_def(const rn_eager_op_t* op) { return op->def; }

rn_status_t rn_eager_op_set_device(rn_eager_op_t* op, rn_str_t device) {
  op->device_name.size = 0;
  op->device = NULL;
  if (device.size == 0) return RN_OK;
  if (!rn_eager_device_canonical(device, &op->device_name)) {
    op->device_name.size = 0;
    return rn_invalid_argument(
        "Malformed device specification '%.*s' in eager op: Name: %s\nDevice Name: []\nDevice: "
        "[]\nAttrs: \n",
        RN_STR_ARGS(device), op->def ? op->def->name : "");
  }
  return rn_strbuf_status(&op->device_name);
}

const char* rn_eager_op_device(const rn_eager_op_t* op) {
  return op->device_name.size ? op->device_name.data : "";
}

static rn_status_t grow_inputs(rn_eager_op_t* op, int64_t needed) {
  if (needed > INT32_MAX / 2) return rn_invalid_argument("Too many inputs");
  int32_t capacity = op->input_capacity;
  while (capacity < needed) capacity *= 2;
  rn_eager_handle_t** grown = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(op->eager->allocator, (size_t)capacity, &grown));
  memcpy(grown, op->inputs, (size_t)op->input_count * sizeof *grown);
  if (op->inputs != op->few_inputs)
    RN_FREE_ARRAY(op->eager->allocator, op->inputs, op->input_capacity);
  op->inputs = grown;
  op->input_capacity = capacity;
  return RN_OK;
}

static rn_status_t not_described(void) {
  return rn_failed_precondition("The op has no name: it could not be reset");
}

rn_status_t rn_eager_op_add_input(rn_eager_op_t* op, rn_eager_handle_t* input) {
  if (!op->def) return not_described();
  if (op->input_count == op->input_capacity)
    RN_RETURN_IF_ERROR(grow_inputs(op, (int64_t)op->input_count + 1));
  if (op->arg_count < op->def->input_count) {
    const rn_arg_def_t* arg = &op->def->inputs[op->arg_count];
    if (arg->number_attr >= 0 || arg->type_list_attr >= 0) op->knows_lengths = false;
    op->lengths[op->arg_count++] = RN_ARG_SINGLE;
  }
  rn_eager_handle_retain(input);
  op->inputs[op->input_count++] = input;
  op->has_special |= input->special != NULL;
  return RN_OK;
}

rn_status_t rn_eager_op_add_list(rn_eager_op_t* op, rn_eager_handle_t* const* inputs,
                                 int32_t count) {
  if (!op->def) return not_described();
  int64_t total = (int64_t)op->input_count + count;
  if (total > op->input_capacity) RN_RETURN_IF_ERROR(grow_inputs(op, total));
  if (op->arg_count < op->def->input_count) op->lengths[op->arg_count++] = count;
  for (int32_t i = 0; i < count; ++i) {
    rn_eager_handle_retain(inputs[i]);
    op->inputs[op->input_count++] = inputs[i];
    op->has_special |= inputs[i]->special != NULL;
  }
  return RN_OK;
}

int32_t rn_eager_op_input_count(const rn_eager_op_t* op) { return op->input_count; }
rn_eager_handle_t* rn_eager_op_input(const rn_eager_op_t* op, int32_t i) {
  return i >= 0 && i < op->input_count ? op->inputs[i] : NULL;
}

void rn_eager_op_fail(rn_eager_op_t* op, rn_status_t status) {
  op->status = rn_status_join(op->status, status);
}

// The first given argument that determines attribute |attr|; -1 if none does, for example after a
// list that was given tensor by tensor, whose end is unknown. Sets |*out_first|, if not NULL, to
// its first input.
static int32_t implying_arg(const rn_eager_op_t* op, int attr, int32_t* out_first) {
  int32_t first = 0;
  for (int32_t i = 0; i < op->arg_count; ++i) {
    const rn_arg_def_t* arg = &op->def->inputs[i];
    bool is_list = arg->number_attr >= 0 || arg->type_list_attr >= 0;
    if (is_list && op->lengths[i] == RN_ARG_SINGLE) return -1;
    int32_t length = op->lengths[i] == RN_ARG_SINGLE ? 1 : op->lengths[i];
    if (out_first) *out_first = first;
    if ((arg->type_attr == attr && length > 0) || arg->number_attr == attr ||
        arg->type_list_attr == attr)
      return i;
    first += length;
  }
  return -1;
}

// Adds an entry for an attribute that the definition does not have.
static rn_status_t add_extra(rn_eager_op_t* op, rn_str_t name, rn_attr_value_t** out) {
  rn_attr_t extra = {.value.kind = RN_ATTR_INT};
  RN_RETURN_IF_ERROR(rn_arena_str(&op->arena, name, &extra.name));
  RN_RETURN_IF_ERROR(rn_vec_push(&op->extras, op->eager->allocator, extra));
  *out = &op->extras.items[op->extras.count - 1].value;
  return RN_OK;
}

// As in stock, the first value of an attribute wins, whether the client set it or an input implied
// it.
static rn_status_t set_attr(rn_eager_op_t* op, rn_str_t name, const rn_attr_value_t* value) {
  if (!op->def) return not_described();
  if (rn_eager_op_has_attr(op, name)) return RN_OK;
  int index = rn_op_attr_index(op->def, name);
  if (index >= 0 && implying_arg(op, index, NULL) >= 0) return RN_OK;
  rn_attr_value_t* slot = index >= 0 ? &op->attrs[index] : NULL;
  if (!slot) RN_RETURN_IF_ERROR(add_extra(op, name, &slot));
  bool is_plain = !value->is_list && value->kind >= RN_ATTR_INT && value->kind <= RN_ATTR_TYPE;
  rn_attr_value_t copy = *value;
  if (!is_plain) {
    RN_RETURN_IF_ERROR(rn_attr_value_copy(&op->arena, value, &copy));
    op->has_tensors |= value->kind == RN_ATTR_TENSOR || value->kind == RN_ATTR_FUNC;
  }
  *slot = copy;
  op->is_anonymous |= value->kind == RN_ATTR_STRING && !value->is_list &&
                      rn_str_is(value->s, RN_ANONYMOUS_NAME) && rn_str_is(name, "shared_name");
  return RN_OK;
}

void rn_eager_op_set_attr(rn_eager_op_t* op, rn_str_t name, const rn_attr_value_t* value) {
  rn_eager_op_fail(op, set_attr(op, name, value));
}

bool rn_eager_op_has_attr(const rn_eager_op_t* op, rn_str_t name) {
  int index = op->def ? rn_op_attr_index(op->def, name) : -1;
  if (index >= 0) return op->attrs[index].kind != RN_EAGER_UNSET;
  for (size_t i = 0; i < op->extras.count; ++i)
    if (rn_str_eq(op->extras.items[i].name, name)) return true;
  return false;
}

// Infers attribute |attr| from the inputs; false if they do not determine it. |types| can hold the
// types of all inputs.
static bool is_implied(const rn_eager_op_t* op, int attr, rn_dtype_t* types, rn_attr_value_t* out) {
  int32_t first = 0, at = implying_arg(op, attr, &first);
  if (at < 0) return false;
  const rn_arg_def_t* arg = &op->def->inputs[at];
  rn_eager_handle_t* const* input = op->inputs + first;
  int32_t length = op->lengths[at] == RN_ARG_SINGLE ? 1 : op->lengths[at];
  if (arg->type_attr == attr) {
    *out = (rn_attr_value_t){.kind = RN_ATTR_TYPE, .type = input[0]->dtype};
  } else if (arg->number_attr == attr) {
    *out = (rn_attr_value_t){.kind = RN_ATTR_INT, .i = length};
  } else {
    for (int32_t j = 0; j < length; ++j) types[j] = input[j]->dtype;
    *out = (rn_attr_value_t){
        .kind = RN_ATTR_TYPE, .is_list = true, .count = length, .list_type = types};
  }
  return true;
}

rn_status_t rn_eager_op_each_attr(const rn_eager_op_t* op, rn_eager_see_attr_t see, void* arg) {
  if (!op->def) return not_described();
  for (int i = 0; i < op->def->attr_count; ++i)
    if (op->attrs[i].kind != RN_EAGER_UNSET)
      RN_RETURN_IF_ERROR(see(arg, rn_str(op->def->attrs[i].name), &op->attrs[i]));
  for (size_t i = 0; i < op->extras.count; ++i)
    RN_RETURN_IF_ERROR(see(arg, op->extras.items[i].name, &op->extras.items[i].value));
  return RN_OK;
}

rn_status_t rn_eager_op_each_implied(const rn_eager_op_t* op, bool with_defaults,
                                     rn_eager_see_attr_t see, void* arg) {
  if (!op->def) return not_described();
  rn_dtype_t few_types[RN_EAGER_FEW], *types = few_types;
  rn_status_t status = RN_OK;
  if (op->input_count > RN_EAGER_FEW)
    RN_RETURN_IF_ERROR(RN_NEW_ARRAY(op->eager->allocator, (size_t)op->input_count, &types));
  for (int i = 0; rn_ok(status) && i < op->def->attr_count; ++i) {
    const rn_attr_def_t* def = &op->def->attrs[i];
    rn_attr_value_t value;
    if (op->attrs[i].kind != RN_EAGER_UNSET) continue;
    if (is_implied(op, i, types, &value))
      status = see(arg, rn_str(def->name), &value);
    else if (with_defaults && def->has_default)
      status = see(arg, rn_str(def->name), &def->default_value);
  }
  if (types != few_types) RN_FREE_ARRAY(op->eager->allocator, types, op->input_count);
  return status;
}

// Infers attribute |attr| from the given arguments; false if they do not determine it.
static bool length_from_inputs(const rn_eager_op_t* op, int attr, int32_t* out) {
  if (!op->knows_lengths) return false;
  for (int32_t i = 0; i < op->arg_count; ++i) {
    const rn_arg_def_t* arg = &op->def->inputs[i];
    if (op->lengths[i] == RN_ARG_SINGLE ||
        (arg->number_attr != attr && arg->type_list_attr != attr))
      continue;
    *out = op->lengths[i];
    return true;
  }
  return false;
}

static rn_status_t length_from_attr(const rn_eager_op_t* op, int attr, int32_t* out) {
  const rn_attr_value_t* value = &op->attrs[attr];
  const rn_attr_def_t* def = &op->def->attrs[attr];
  if (value->kind == RN_EAGER_UNSET) {
    if (length_from_inputs(op, attr, out)) return RN_OK;
    if (!def->has_default) return rn_not_found("No attr named '%s' in NodeDef:", def->name);
    value = &def->default_value;
  }
  *out = value->is_list ? value->count : (int32_t)value->i;
  return RN_OK;
}

rn_status_t rn_eager_op_length(const rn_eager_op_t* op, rn_str_t name, bool is_output,
                               int32_t* out) {
  *out = -1;
  if (!op->def) return not_described();
  const rn_arg_def_t* args = is_output ? op->def->outputs : op->def->inputs;
  int count = is_output ? op->def->output_count : op->def->input_count;
  for (int i = 0; i < count; ++i) {
    const rn_arg_def_t* arg = &args[i];
    if (!rn_str_is(name, arg->name)) continue;
    int attr = arg->number_attr >= 0 ? arg->number_attr : arg->type_list_attr;
    if (attr >= 0) return length_from_attr(op, attr, out);
    *out = 1;
    return RN_OK;
  }
  return rn_invalid_argument("%s '%.*s' not found", is_output ? "Output" : "Input",
                             RN_STR_ARGS(name));
}

void rn_eager_cancel_hold(rn_eager_cancel_t* cancel) {
  if (cancel) cancel->holds++;
}
void rn_eager_cancel_release(rn_eager_cancel_t* cancel) {
  if (cancel && cancel->holds-- == 0 && cancel->free_fn) cancel->free_fn(cancel);
}
void rn_eager_op_set_cancel(rn_eager_op_t* op, rn_eager_cancel_t* cancel) { op->cancel = cancel; }
rn_eager_cancel_t* rn_eager_op_cancel(const rn_eager_op_t* op) { return op->cancel; }

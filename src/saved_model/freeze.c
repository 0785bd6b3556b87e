// Freezing: see freeze.h.
#include "saved_model/freeze.h"

#include "framework/internal_ops.h"
#include "framework/kernel.h"
#include "framework/resource.h"
#include "saved_model/freeze_pins.h"
#include "saved_model/freeze_tables.h"
#include "step/ir_export.h"
#include "step/make.h"

// Folded constants may be as large as a message.
#define MAX_FOLDED_BYTES INT32_MAX

typedef struct freeze_t {
  rn_session_t* session;
  rn_ir_t* ir;
  RN_VEC(int32_t) changed;  // nodes whose outputs were handles and now are values
  bool* is_changed;         // by node
  size_t node_count;        // when |is_changed| was made
} freeze_t;

static rn_str_t text_attr(const rn_ir_node_t* node, const char* name) {
  const rn_attr_value_t* value = rn_ir_attr(node, rn_str(name));
  return value ? value->s : RN_STR("");
}

static rn_status_t find_value(const freeze_t* f, const rn_ir_node_t* node, rn_tensor_t* out) {
  rn_str_t name = text_attr(node, "shared_name");
  if (!name.size) name = node->name;
  const rn_device_t* device = rn_session_device(f->session, 0);
  rn_resource_t* resource = NULL;
  rn_status_t status = rn_resources_get(device->resources, text_attr(node, "container"), name,
                                        RN_VARIABLE_TYPE, NULL, NULL, &resource);
  if (rn_ok(status)) {
    rn_variable_t* variable = (rn_variable_t*)resource;
    rn_mutex_lock(&variable->mutex);
    if (rn_tensor_is_set(&variable->value)) status = rn_tensor_share(&variable->value, out);
    rn_mutex_unlock(&variable->mutex);
    rn_object_release(&resource->object);
  } else {
    rn_status_free(status);
    status = RN_OK;
  }
  if (rn_ok(status) && !rn_tensor_is_set(out))
    return rn_failed_precondition("The variable '%.*s' has no value to freeze", RN_STR_ARGS(name));
  return status;
}

static rn_status_t freeze_variable(freeze_t* f, int32_t index) {
  rn_tensor_t value = {0};
  rn_ir_node_t* node = &f->ir->nodes.items[index];
  RN_RETURN_IF_ERROR(find_value(f, node, &value));
  RN_RETURN_IF_ERROR(rn_ir_own_constant(f->ir, &value, node));
  node->extra_count = 0;
  f->is_changed[index] = true;
  return rn_vec_push(&f->changed, f->ir->allocator, index);
}

// Copies the attributes of |node| with its type attribute |name| set to |type|.
static rn_status_t retype(freeze_t* f, rn_ir_node_t* node, const char* name, rn_dtype_t type) {
  const rn_attr_t given[] = {{rn_str(name), {.type = type}}, RN_ATTRS_END};
  if (rn_op_attr_index(node->op, rn_str(name)) < 0)
    return rn_internal("%s has no attribute %s", node->op->name, name);
  return rn_ir_make_attrs(f->ir, node->op, node, given, &node->attrs);
}

static rn_status_t become_identity(freeze_t* f, rn_ir_node_t* node) {
  const rn_attr_t given[] = {{RN_STR("T"), {.type = node->types[0]}}, RN_ATTRS_END};
  node->op = rn_op_identity();
  node->extra_count = 0;
  return rn_ir_make_attrs(f->ir, node->op, NULL, given, &node->attrs);
}

// ResourceGather(handle, indices) becomes GatherV2(value, indices, axis).
static rn_status_t become_gather(freeze_t* f, int32_t index) {
  const rn_op_def_t* op = rn_op_find(RN_STR("GatherV2"));
  if (!op) return rn_unimplemented("this library lacks GatherV2");
  rn_ir_node_t* node = &f->ir->nodes.items[index];
  const rn_attr_value_t* attrs = NULL;
  rn_ir_edge_t* inputs = NULL;
  const rn_attr_t given[] = {{RN_STR("Tparams"), {.type = node->types[0]}},
                             {RN_STR("Taxis"), {.type = RN_INT32}},
                             RN_ATTRS_END};
  RN_RETURN_IF_ERROR(rn_ir_make_attrs(f->ir, op, node, given, &attrs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&f->ir->arena, 3, &inputs));
  int64_t batch_dims = rn_ir_attr(node, RN_STR("batch_dims"))->i;
  rn_tensor_t axis = {0};
  rn_str_t name;
  RN_RETURN_IF_ERROR(rn_arena_printf(&f->ir->arena, &name, "%.*s/axis", RN_STR_ARGS(node->name)));
  RN_RETURN_IF_ERROR(rn_tensor_create(f->ir->allocator, RN_INT32, RN_SHAPE_SCALAR, &axis));
  *RN_DATA(&axis, int32_t) = (int32_t)batch_dims;
  inputs[0] = node->inputs[0];
  inputs[1] = node->inputs[1];
  RN_RETURN_IF_ERROR(rn_ir_add_constant(f->ir, name, &axis, &inputs[2].node));
  node = &f->ir->nodes.items[index];
  node->op = op;
  node->attrs = attrs;
  node->extra_count = 0;
  node->inputs = inputs;
  node->input_count = 3;
  return RN_OK;
}

// Changes a node that forwards handles into one that forwards values.
static rn_status_t pass_value(freeze_t* f, int32_t index, rn_dtype_t type, rn_shape_t shape) {
  rn_ir_node_t* node = &f->ir->nodes.items[index];
  if (f->is_changed[index]) return RN_OK;
  RN_RETURN_IF_ERROR(retype(f, node, "T", type));
  for (int32_t o = 0; o < node->output_count; ++o) {
    if (rn_dtype_base(node->types[o]) != RN_RESOURCE) continue;
    node->types[o] = type;
    node->shapes[o] = shape;
  }
  f->is_changed[index] = true;
  return rn_vec_push(&f->changed, f->ir->allocator, index);
}

static rn_status_t change_reader(freeze_t* f, int32_t index, int32_t input, rn_dtype_t type,
                                 rn_shape_t shape) {
  rn_ir_node_t* node = &f->ir->nodes.items[index];
  switch (node->op->role) {
    case RN_ROLE_IDENTITY:
    case RN_ROLE_ENTER:
    case RN_ROLE_EXIT:
    case RN_ROLE_SWITCH:
    case RN_ROLE_MERGE:
    case RN_ROLE_NEXT_ITERATION:
      return pass_value(f, index, type, shape);
    default:
      break;
  }
  if (rn_ir_is_op(node, "ReadVariableOp")) return become_identity(f, node);
  if (rn_ir_is_op(node, "ResourceGather") && input == 0) return become_gather(f, index);
  if (rn_ir_is_op(node, "DisableCopyOnRead")) {
    node->is_removed = true;
    return RN_OK;
  }
  return rn_failed_precondition(
      "The graph cannot be frozen: '%.*s' (%s) wants the variable itself, not its value",
      RN_STR_ARGS(node->name), node->op->name);
}

// Rewrites the nodes that read an output of |source|, which was a handle.
static rn_status_t change_readers(freeze_t* f, int32_t source) {
  for (size_t n = 0; n < f->node_count; ++n) {
    const rn_ir_node_t* node = &f->ir->nodes.items[n];
    for (int32_t i = 0; !node->is_removed && node->feed < 0 && i < node->input_count; ++i) {
      if (node->inputs[i].node != source) continue;
      const rn_ir_node_t* from = &f->ir->nodes.items[source];
      RN_RETURN_IF_ERROR(change_reader(f, (int32_t)n, i, from->types[node->inputs[i].output],
                                       from->shapes[node->inputs[i].output]));
      node = &f->ir->nodes.items[n];
    }
  }
  return RN_OK;
}

// Reference variables: a node that reads the value stays unchanged; a node that needs the reference
// is an error.
static rn_status_t check_references(freeze_t* f, int32_t variable) {
  for (size_t n = 0; n < f->node_count; ++n) {
    const rn_ir_node_t* node = &f->ir->nodes.items[n];
    for (int32_t i = 0; !node->is_removed && i < node->input_count; ++i)
      if (node->inputs[i].node == variable && node->feed < 0 && rn_ir_wants_ref(node, i))
        return rn_failed_precondition("The graph cannot be frozen: '%.*s' (%s) changes '%.*s'",
                                      RN_STR_ARGS(node->name), node->op->name,
                                      RN_STR_ARGS(f->ir->nodes.items[variable].name));
  }
  return RN_OK;
}

static rn_status_t freeze_variables(freeze_t* f) {
  rn_ir_t* ir = f->ir;
  f->node_count = ir->nodes.count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, f->node_count + 1, &f->is_changed));
  for (size_t n = 0; n < f->node_count; ++n) {
    const rn_ir_node_t* node = &ir->nodes.items[n];
    if (node->is_removed || node->feed >= 0) continue;
    bool is_handle = rn_ir_is_op(node, "VarHandleOp");
    if (rn_ir_is_op(node, "Variable") || rn_ir_is_op(node, "VariableV2")) {
      RN_RETURN_IF_ERROR(check_references(f, (int32_t)n));
      RN_RETURN_IF_ERROR(freeze_variable(f, (int32_t)n));
      --f->changed.count;  // its readers already read the value
    } else if (is_handle) {
      RN_RETURN_IF_ERROR(freeze_variable(f, (int32_t)n));
    }
  }
  while (f->changed.count)
    RN_RETURN_IF_ERROR(change_readers(f, f->changed.items[--f->changed.count]));
  return RN_OK;
}

// Reads of variables had to run even if their values were unused, because variables are state. They
// are constants now, so drops those reads. Keeps the first |asked|.
static void drop_targets(rn_ir_t* ir, int32_t asked) {
  int32_t count = asked;
  for (int32_t i = asked; i < ir->target_count; ++i) {
    const rn_ir_node_t* node = &ir->nodes.items[ir->targets[i]];
    bool has_effects = !node->is_removed && node->feed < 0 && node->op->flags & RN_OP_STATEFUL;
    if (has_effects) ir->targets[count++] = ir->targets[i];
  }
  ir->target_count = count;
}

static rn_status_t work(freeze_t* f, const rn_freeze_options_t* options, int32_t asked) {
  rn_ir_t* ir = f->ir;
  rn_calls_options_t calls = {.keeps_calls = options->keeps_calls, .lowering = RN_LOWER_ALWAYS};
  if (!options->keeps_calls) RN_RETURN_IF_ERROR(rn_pass_inline_calls(ir, &calls));
  if (!options->keeps_variables) {
    RN_RETURN_IF_ERROR(freeze_variables(f));
    drop_targets(ir, asked);
  }
  rn_device_t* cpu = (rn_device_t*)rn_session_device(f->session, 0);
  rn_step_t step;
  rn_session_step_init(f->session, &step);
  if (!options->keeps_constants) {
    RN_RETURN_IF_ERROR(rn_ir_sweep(ir));
    RN_RETURN_IF_ERROR(rn_pass_drop_control_edges(ir));
    RN_RETURN_IF_ERROR(rn_pass_infer_shapes(ir));
    RN_RETURN_IF_ERROR(rn_pass_simplify(ir));
    RN_RETURN_IF_ERROR(rn_pass_merge_equal_nodes(ir));
    RN_RETURN_IF_ERROR(rn_pass_fold_constants(ir, cpu, step.env, step.env->pool, MAX_FOLDED_BYTES));
  }
  if (options->folds_batch_norms) RN_RETURN_IF_ERROR(rn_pass_fold_batch_norms(ir));
  return rn_ir_sweep(ir);
}

// Passes, then the names of the outputs, then the message.
static rn_status_t make(freeze_t* f, const rn_freeze_options_t* options,
                        const rn_signature_t* signature, rn_strbuf_t* out) {
  rn_freeze_pins_t pins;
  RN_RETURN_IF_ERROR(rn_freeze_pins_note(f->ir, signature, &pins));
  RN_RETURN_IF_ERROR(work(f, options, signature->target_count));
  RN_RETURN_IF_ERROR(rn_freeze_pins_apply(f->ir, options, &pins));
  return rn_ir_export(f->ir, options->input_names, options->output_names, out);
}

rn_status_t rn_freeze(rn_session_t* session, const rn_freeze_options_t* options, rn_strbuf_t* out,
                      rn_str_t* out_fill) {
  rn_arena_t arena;
  rn_arena_init(&arena, rn_session_graph(session)->allocator);
  rn_signature_t signature = {.feeds = options->inputs, .feed_count = options->input_count};
  freeze_t f = {.session = session};
  rn_node_t* fill = NULL;
  rn_status_t status = rn_freeze_fetches(options, &arena, &signature);
  if (rn_ok(status) && !options->keeps_variables)
    status = rn_freeze_tables(session, &signature, &fill);
  *out_fill = fill ? fill->name : RN_STR("");
  signature.targets = &fill;
  signature.target_count = fill ? 1 : 0;
  if (rn_ok(status)) status = rn_ir_create(rn_session_graph(session), &signature, &f.ir);
  if (rn_ok(status)) status = make(&f, options, &signature, out);
  if (f.ir) rn_vec_free(&f.changed, f.ir->allocator);
  rn_ir_destroy(f.ir);
  rn_arena_clear(&arena);
  return status;
}

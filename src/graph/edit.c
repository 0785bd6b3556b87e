// Changes control inputs and attributes of existing nodes. See edit.h.
#include "graph/edit.h"

#include "graph/build.h"

static rn_status_t add_control_locked(rn_node_t* node, rn_node_t* control) {
  for (size_t i = 0; i < node->controls.count; ++i) {
    if (node->controls.items[i] == control) return RN_OK;
  }
  if (node->controls.count == node->controls.capacity) {
    size_t room = node->controls.capacity * 2 + 2;
    rn_node_t** grown = NULL;
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&node->graph->arena, room, &grown));
    if (node->controls.count) {
      memcpy(grown, node->controls.items, node->controls.count * sizeof *grown);
    }
    node->controls.items = grown;
    node->controls.capacity = room;
  }
  RN_RETURN_IF_ERROR(rn_node_add_control_consumer(control, node));
  node->controls.items[node->controls.count++] = control;
  return RN_OK;
}

rn_status_t rn_node_add_control(rn_node_t* node, rn_node_t* control) {
  rn_mutex_lock(&node->graph->mutex);
  rn_status_t status = add_control_locked(node, control);
  rn_mutex_unlock(&node->graph->mutex);
  return status;
}

static void remove_consumer_locked(rn_node_t* node, const rn_node_t* consumer) {
  size_t kept = 0;
  for (size_t i = 0; i < node->control_consumers.count; ++i) {
    rn_node_t* other = node->control_consumers.items[i];
    if (other != consumer) node->control_consumers.items[kept++] = other;
  }
  node->control_consumers.count = kept;
}

void rn_node_clear_controls(rn_node_t* node) {
  rn_mutex_lock(&node->graph->mutex);
  for (size_t i = 0; i < node->controls.count; ++i) {
    remove_consumer_locked(node->controls.items[i], node);
  }
  node->controls.count = 0;
  rn_mutex_unlock(&node->graph->mutex);
}

rn_status_t rn_node_set_device(rn_node_t* node, rn_str_t device) {
  rn_str_t copy;
  rn_mutex_lock(&node->graph->mutex);
  rn_status_t status = rn_arena_str(&node->graph->arena, device, &copy);
  if (rn_ok(status)) node->device = copy;
  rn_mutex_unlock(&node->graph->mutex);
  return status;
}

// Whether attribute |index| of the op determines the number or types of inputs or outputs.
static bool is_structural(const rn_op_def_t* op, int index) {
  for (int i = 0; i < op->input_count + op->output_count; ++i) {
    const rn_arg_def_t* arg =
        i < op->input_count ? &op->inputs[i] : &op->outputs[i - op->input_count];
    if (arg->type_attr == index || arg->number_attr == index || arg->type_list_attr == index) {
      return true;
    }
  }
  return false;
}

static bool same_tensor_type(const rn_attr_value_t* a, const rn_attr_value_t* b) {
  if (a->kind != RN_ATTR_TENSOR || a->is_list || b->is_list) return true;
  return a->tensor->dtype == b->tensor->dtype && rn_tensor_same_shape(a->tensor, b->tensor);
}

// Whether |value| extends the list of types |slot|.
static bool is_longer_list(const rn_attr_value_t* slot, const rn_attr_value_t* value) {
  if (!slot->is_list || !value->is_list || value->kind != RN_ATTR_TYPE ||
      value->count < slot->count)
    return false;
  for (int i = 0; i < slot->count; ++i)
    if (slot->list_type[i] != value->list_type[i]) return false;
  return true;
}

// Replaces an attribute that the op defines; the node must stay valid.
static rn_status_t replace_defined_locked(rn_node_t* node, int index,
                                          const rn_attr_value_t* value) {
  rn_attr_value_t* slot = &node->attrs[index];
  const char* name = node->op->attrs[index].name;
  if (rn_attr_value_eq(slot, value)) return RN_OK;
  // TF_AddWhileInputHack extends the types of a While with its inputs.
  if (node->op->role == RN_ROLE_WHILE && strcmp(name, "T") == 0 && is_longer_list(slot, value))
    return RN_OK;
  if (value->kind != slot->kind || value->is_list != slot->is_list ||
      !same_tensor_type(slot, value) || is_structural(node->op, index)) {
    return rn_invalid_argument(
        "Attribute '%s' of operation '%s' decides what the operation takes and gives; it cannot be "
        "changed any more",
        name, node->name.data);
  }
  rn_attr_value_t old = *slot, copy;
  RN_RETURN_IF_ERROR(rn_node_copy_value(node, value, &copy));
  *slot = copy;
  rn_status_t status = rn_node_complete_attrs(node);
  if (rn_ok(status)) status = rn_node_infer_locked(node);
  if (!rn_ok(status)) {
    *slot = old;
    old = copy;
  }
  rn_attr_value_clear(&old);
  return status;
}

static rn_attr_t* find_extra(rn_node_t* node, rn_str_t name) {
  for (int i = 0; i < node->extra_count; ++i) {
    if (rn_str_eq(node->extras[i].name, name)) return &node->extras[i];
  }
  return NULL;
}

static rn_status_t replace_extra_locked(rn_node_t* node, rn_str_t name,
                                        const rn_attr_value_t* value) {
  rn_attr_value_t copy;
  rn_attr_t* extra = find_extra(node, name);
  if (extra) {
    RN_RETURN_IF_ERROR(rn_node_copy_value(node, value, &copy));
    rn_attr_value_clear(&extra->value);
    extra->value = copy;
    return RN_OK;
  }
  rn_attr_t* grown = NULL;
  rn_arena_t* arena = &node->graph->arena;
  size_t count = (size_t)node->extra_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count + 1, &grown));
  if (count) memcpy(grown, node->extras, count * sizeof *grown);
  RN_RETURN_IF_ERROR(rn_arena_str(arena, name, &grown[count].name));
  RN_RETURN_IF_ERROR(rn_node_copy_value(node, value, &grown[count].value));
  node->extras = grown;
  node->extra_count++;
  return RN_OK;
}

rn_status_t rn_node_set_attr(rn_node_t* node, rn_str_t name, const rn_attr_value_t* value) {
  rn_mutex_lock(&node->graph->mutex);
  int index = rn_op_attr_index(node->op, name);
  rn_status_t status = index >= 0 ? replace_defined_locked(node, index, value)
                                  : replace_extra_locked(node, name, value);
  rn_mutex_unlock(&node->graph->mutex);
  return status;
}

rn_status_t rn_node_clear_attr(rn_node_t* node, rn_str_t name) {
  if (rn_op_attr_index(node->op, name) >= 0) {
    return rn_invalid_argument(
        "Attribute '%.*s' belongs to the definition of op %s and cannot be cleared",
        RN_STR_ARGS(name), node->op->name);
  }
  rn_mutex_lock(&node->graph->mutex);
  rn_attr_t* extra = find_extra(node, name);
  if (extra) {
    rn_attr_value_clear(&extra->value);
    rn_attr_t* last = &node->extras[--node->extra_count];
    memmove(extra, extra + 1, (size_t)(last - extra) * sizeof *extra);
  }
  rn_mutex_unlock(&node->graph->mutex);
  return RN_OK;
}

// Datasets made out of others: see remake.h.
#include "kernels/cpu/dataset/remake.h"

static const rn_attr_value_t* attr_for(const rn_data_change_t* change, const rn_attr_def_t* def) {
  for (int32_t i = 0; i < change->attr_count; ++i)
    if (rn_str_is(change->attrs[i].name, def->name)) return &change->attrs[i].value;
  const rn_attr_value_t* value = rn_data_attr(change->like, def->name);
  if (value) return value;
  return def->has_default ? &def->default_value : NULL;
}

static rn_status_t make_node(const rn_data_change_t* change, const rn_op_def_t* op,
                             const rn_data_kind_t* kind, int32_t input_count,
                             rn_data_node_t** out) {
  const rn_data_node_t* like = change->like->node;
  rn_attr_value_t* attrs = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(like->allocator, (size_t)op->attr_count, &attrs));
  rn_status_t status = RN_OK;
  for (int i = 0; rn_ok(status) && i < op->attr_count; ++i) {
    const rn_attr_value_t* value = attr_for(change, &op->attrs[i]);
    if (value)
      attrs[i] = *value;
    else
      status = rn_internal("A %s has no attribute '%s'", like->op->name, op->attrs[i].name);
  }
  rn_kernel_init_t init = {.op = op,
                           .node = like->name,
                           .attrs = attrs,
                           .input_count = input_count,
                           .device_name = like->device,
                           .allocator = like->allocator,
                           .host_memory = like->memory,
                           .functions = change->functions ? change->functions : like->functions};
  if (rn_ok(status)) status = rn_data_node_create(&init, kind, out);
  RN_FREE_ARRAY(like->allocator, attrs, op->attr_count);
  return status;
}

rn_status_t rn_data_remake(const rn_data_change_t* change, const rn_tensor_t* const* inputs,
                           int32_t input_count, rn_dataset_t** out) {
  const rn_op_def_t* op = rn_op_find(rn_str(change->op));
  const rn_data_kind_t* kind = rn_data_kind_of(change->op);
  rn_data_node_t* node = NULL;
  *out = NULL;
  if (!op || !kind) return rn_internal("%s makes no dataset", change->op);
  RN_RETURN_IF_ERROR(make_node(change, op, kind, input_count, &node));
  rn_status_t status = rn_dataset_create(node, kind, change->like->host, inputs, out);
  rn_object_release(&node->object);
  return status;
}

rn_status_t rn_data_with_inputs(rn_dataset_t* dataset, const rn_tensor_t* changed,
                                rn_dataset_t** out) {
  rn_data_node_t* node = dataset->node;
  const rn_tensor_t** inputs = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(node->allocator, (size_t)node->input_count, &inputs));
  for (int32_t i = 0; i < node->input_count; ++i)
    inputs[i] = rn_tensor_is_set(&changed[i]) ? &changed[i] : &dataset->inputs[i];
  rn_status_t status = rn_dataset_create(node, dataset->kind, dataset->host, inputs, out);
  RN_FREE_ARRAY(node->allocator, inputs, node->input_count);
  return status;
}

rn_dataset_t* rn_data_in(const rn_tensor_t* tensor) {
  rn_dataset_t* dataset = NULL;
  if (tensor->dtype != RN_VARIANT || tensor->rank != 0) return NULL;
  rn_status_t status = rn_dataset_of(tensor, &dataset);
  rn_status_free(status);
  return dataset;
}

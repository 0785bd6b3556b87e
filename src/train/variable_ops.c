// Nodes over variables of either kind.
#include "train/store.h"
#include "train/words.h"

static bool is_usable(rn_scope_t* scope, const rn_var_t* variable) {
  if (!rn_scope_ok(scope)) return false;
  if (variable) return rn_is_edge(scope, variable->handle, variable->name, "the handle");
  rn_refuse(scope, "A variable is missing");
  return false;
}

RN_API rn_edge_t rn_var_read_after(rn_scope_t* scope, const rn_var_t* variable, rn_node_t* node) {
  if (!is_usable(scope, variable)) return RN_NO_EDGE;
  rn_op_begin(scope, variable->is_resource ? "ReadVariableOp" : "Identity");
  rn_op_input(scope, variable->handle);
  if (variable->is_resource) rn_op_attr_type(scope, "dtype", variable->dtype);
  if (node) rn_op_control(scope, node);
  return (rn_edge_t){rn_op_finish(scope), 0};
}

RN_API rn_edge_t rn_var_read(rn_scope_t* scope, const rn_var_t* variable) {
  return rn_var_read_after(scope, variable, NULL);
}

RN_API rn_node_t* rn_var_assign(rn_scope_t* scope, const rn_var_t* variable, rn_edge_t value) {
  if (!is_usable(scope, variable)) return NULL;
  if (variable->is_resource) return rn_AssignVariableOp(scope, variable->handle, value);
  return rn_Assign(scope, variable->handle, value).node;
}

RN_API rn_node_t* rn_var_add(rn_scope_t* scope, const rn_var_t* variable, rn_edge_t value) {
  if (!is_usable(scope, variable)) return NULL;
  if (variable->is_resource) return rn_AssignAddVariableOp(scope, variable->handle, value);
  return rn_AssignAdd(scope, variable->handle, value).node;
}

RN_API rn_node_t* rn_var_subtract(rn_scope_t* scope, const rn_var_t* variable, rn_edge_t value) {
  if (!is_usable(scope, variable)) return NULL;
  if (variable->is_resource) return rn_AssignSubVariableOp(scope, variable->handle, value);
  return rn_AssignSub(scope, variable->handle, value).node;
}

static rn_edge_t gather(rn_scope_t* scope, const rn_var_t* variable, rn_edge_t indices) {
  if (variable->is_resource)
    return rn_ResourceGather(scope, variable->handle, indices, variable->dtype);
  return rn_GatherV2(scope, variable->handle, indices, rn_const_int32(scope, 0));
}

// The gather runs on the variable's device, and so do nodes that are colocated with it.
RN_API rn_edge_t rn_var_gather(rn_scope_t* scope, const rn_var_t* variable, rn_edge_t indices) {
  if (!is_usable(scope, variable)) return RN_NO_EDGE;
  rn_str_t there = variable->handle.node->device, here = rn_scope_device(scope);
  if (!there.size || rn_str_eq(there, here)) return gather(scope, variable, indices);
  char* kept = NULL;
  rn_status_t status = rn_str_dup(rn_scope_allocator(scope), here, &kept);
  if (!rn_ok(status)) {
    rn_scope_fail(scope, status);
    return RN_NO_EDGE;
  }
  size_t size = here.size + 1;
  rn_scope_set_device(scope, there.data);
  rn_edge_t rows = gather(scope, variable, indices);
  rn_scope_set_device(scope, kept);
  rn_free(rn_scope_allocator(scope), kept, size);
  return rows;
}

RN_API rn_node_t* rn_var_scatter_add(rn_scope_t* scope, const rn_var_t* variable, rn_edge_t indices,
                                     rn_edge_t rows) {
  if (!is_usable(scope, variable)) return NULL;
  if (variable->is_resource) return rn_ResourceScatterAdd(scope, variable->handle, indices, rows);
  return rn_ScatterAdd(scope, variable->handle, indices, rows).node;
}

RN_API rn_node_t* rn_group(rn_scope_t* scope, rn_node_t* const* nodes, int count) {
  if (!rn_scope_ok(scope)) return NULL;
  if (count < 0 || (count > 0 && !nodes)) {
    rn_refuse(scope, "rn_group: the list of nodes is NULL");
    return NULL;
  }
  rn_op_begin(scope, "NoOp");
  for (int i = 0; i < count; ++i)
    if (nodes[i]) rn_op_control(scope, nodes[i]);
  return rn_op_finish(scope);
}

RN_API rn_node_t* rn_initialize_variables(rn_scope_t* scope, const char* collection) {
  const rn_collected_t* items;
  int count = rn_collection(scope, collection, &items);
  rn_scope_name_next(scope, "init");
  rn_op_begin(scope, "NoOp");
  for (int i = 0; i < count; ++i)
    if (items[i].variable) rn_op_control(scope, items[i].variable->init);
  return rn_op_finish(scope);
}

RN_API rn_node_t* rn_group_collection(rn_scope_t* scope, const char* collection) {
  const rn_collected_t* items;
  int count = rn_collection(scope, collection, &items);
  rn_op_begin(scope, "NoOp");
  for (int i = 0; i < count; ++i) rn_op_control(scope, items[i].edge.node);
  return rn_op_finish(scope);
}

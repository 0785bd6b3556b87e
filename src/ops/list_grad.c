// Gradient rules of lists, maps and composites of tensors. The gradient of a list is a list;
// elements without a gradient are unset.
#include "ops/rules.h"

static int element_dtype(rn_grad_t* g) { return rn_grad_attr(g, "element_dtype")->type; }

// The shape of |tensor| without its first dimension, as a vector.
static rn_edge_t row_shape(rn_grad_t* g, rn_edge_t tensor) {
  rn_shape_t known = rn_grad_shape(g, tensor);
  if (rn_shape_is_full(known) && known.rank > 0)
    return rn_rule_ints(g, RN_INT32, known.dims + 1, known.rank - 1);
  int64_t one = 1, rest = RN_UNKNOWN;
  return rn_Slice(g->scope, rn_rule_shape(g, tensor, RN_INT32), rn_rule_ints(g, RN_INT32, &one, 1),
                  rn_rule_ints(g, RN_INT32, &rest, 1));
}

static rn_edge_t list_element_shape(rn_grad_t* g, rn_edge_t list) {
  return rn_TensorListElementShape(g->scope, list, RN_INT32);
}

RN_RULE(list_push_back) {
  rn_edge_t shape = rn_rule_shape(g, rn_grad_in(g, 1), RN_INT32);
  rn_TensorListPopBack_out_t popped =
      rn_TensorListPopBack(g->scope, rn_grad_dy(g, 0), shape, element_dtype(g));
  rn_grad_to(g, 0, popped.output_handle);
  rn_grad_to(g, 1, popped.tensor);
  return RN_OK;
}

RN_RULE(list_pop_back) {
  rn_grad_to(g, 0, rn_TensorListPushBack(g->scope, rn_grad_dy(g, 0), rn_grad_dy(g, 1)));
  return RN_OK;
}

RN_RULE(list_stack) {
  rn_edge_t dy = rn_grad_dy(g, 0);
  rn_grad_to(g, 0, rn_TensorListFromTensor(g->scope, dy, row_shape(g, dy)));
  return RN_OK;
}

RN_RULE(list_from_tensor) {
  rn_edge_t tensor = rn_grad_in(g, 0);
  int64_t rows =
      rn_shape_has_rank(rn_grad_shape(g, tensor)) ? rn_grad_shape(g, tensor).dims[0] : RN_UNKNOWN;
  rn_grad_to(g, 0,
             rn_TensorListStack(g->scope, rn_grad_dy(g, 0), row_shape(g, tensor), element_dtype(g),
                                .num_elements = RN_SET(rows)));
  return RN_OK;
}

RN_RULE(list_concat) {
  rn_grad_to(g, 0,
             rn_TensorListSplit(g->scope, rn_grad_dy(g, 0), list_element_shape(g, rn_grad_in(g, 0)),
                                rn_grad_out(g, 1)));
  return RN_OK;
}

// The parts may have any length.
RN_RULE(list_split) {
  int64_t any = RN_UNKNOWN;
  rn_edge_t parts[2] = {rn_rule_ints(g, RN_INT32, &any, 1), row_shape(g, rn_grad_in(g, 0))};
  rn_edge_t shape = rn_ConcatV2(g->scope, parts, 2, rn_const_int32(g->scope, 0));
  rn_TensorListConcatV2_out_t joined =
      rn_TensorListConcatV2(g->scope, rn_grad_dy(g, 0), shape, rn_grad_in(g, 2), element_dtype(g));
  rn_grad_to(g, 0, joined.tensor);
  return RN_OK;
}

RN_RULE(list_get_item) {
  rn_edge_t list = rn_grad_in(g, 0);
  rn_edge_t blank = rn_TensorListReserve(g->scope, list_element_shape(g, list),
                                         rn_TensorListLength(g->scope, list), element_dtype(g));
  rn_grad_to(g, 0, rn_TensorListSetItem(g->scope, blank, rn_grad_in(g, 1), rn_grad_dy(g, 0)));
  return RN_OK;
}

RN_RULE(list_set_item) {
  rn_edge_t dy = rn_grad_dy(g, 0), index = rn_grad_in(g, 1), item = rn_grad_in(g, 2);
  if (rn_grad_wants(g, 0)) {
    rn_edge_t rest = rn_TensorListSetItem(g->scope, dy, index, rn_ZerosLike(g->scope, item));
    if (rn_grad_attr_bool(g, "resize_if_index_out_of_bounds"))
      rest = rn_TensorListResize(g->scope, rest, rn_TensorListLength(g->scope, rn_grad_in(g, 0)));
    rn_grad_to(g, 0, rest);
  }
  if (rn_grad_wants(g, 2))
    rn_grad_to(g, 2,
               rn_TensorListGetItem(g->scope, dy, index, rn_rule_shape(g, item, RN_INT32),
                                    element_dtype(g)));
  return RN_OK;
}

RN_RULE(list_resize) {
  rn_grad_to(g, 0,
             rn_TensorListResize(g->scope, rn_grad_dy(g, 0),
                                 rn_TensorListLength(g->scope, rn_grad_in(g, 0))));
  return RN_OK;
}

// An element that was gathered twice should get both gradients, but lists have no scatter-add;
// assumes that indices are distinct.
RN_RULE(list_gather) {
  rn_edge_t dy = rn_grad_dy(g, 0), indices = rn_grad_in(g, 1);
  rn_edge_t count = rn_TensorListLength(g->scope, rn_grad_in(g, 0));
  rn_edge_t shape = row_shape(g, dy);
  if (element_dtype(g) == RN_VARIANT) {
    rn_grad_to(g, 0, rn_TensorListScatterV2(g->scope, dy, indices, shape, count));
    return RN_OK;
  }
  int64_t flat = RN_UNKNOWN;
  if (rn_rule_rank(g, indices) != 1)
    indices = rn_Reshape(g->scope, indices, rn_rule_ints(g, RN_INT32, &flat, 1));
  rn_edge_t sums = rn_UnsortedSegmentSum(g->scope, dy, indices, count);
  rn_grad_to(g, 0, rn_TensorListFromTensor(g->scope, sums, shape));
  return RN_OK;
}

RN_RULE(list_scatter) {
  rn_edge_t tensor = rn_grad_in(g, 0);
  rn_grad_to(g, 0,
             rn_TensorListGather(g->scope, rn_grad_dy(g, 0), rn_grad_in(g, 1), row_shape(g, tensor),
                                 element_dtype(g)));
  return RN_OK;
}

RN_RULE(list_scatter_into) {
  rn_edge_t dy = rn_grad_dy(g, 0), tensor = rn_grad_in(g, 1), indices = rn_grad_in(g, 2);
  if (rn_grad_wants(g, 0))
    rn_grad_to(g, 0,
               rn_TensorListScatterIntoExistingList(g->scope, dy, rn_ZerosLike(g->scope, tensor),
                                                    indices));
  if (rn_grad_wants(g, 1))
    rn_grad_to(g, 1,
               rn_TensorListGather(g->scope, dy, indices, row_shape(g, tensor), element_dtype(g)));
  return RN_OK;
}

// Maps. The gradient of a map is a map; a key without a gradient is not in it.
RN_RULE(map_lookup) {
  rn_edge_t empty = rn_EmptyTensorMap(g->scope);
  rn_grad_to(g, 0, rn_TensorMapInsert(g->scope, empty, rn_grad_in(g, 1), rn_grad_dy(g, 0)));
  return RN_OK;
}

RN_RULE(map_insert) {
  rn_scope_t* s = g->scope;
  rn_edge_t dy = rn_grad_dy(g, 0), key = rn_grad_in(g, 1), value = rn_grad_in(g, 2);
  int dtype = rn_edge_dtype(value);
  rn_edge_t has = rn_TensorMapHasKey(s, dy, key);
  rn_Switch_out_t map = rn_Switch(s, dy, has);
  if (rn_grad_wants(g, 0)) {
    rn_edge_t maps[2] = {map.output_false, rn_TensorMapErase(s, map.output_true, key, dtype)};
    rn_grad_to(g, 0, rn_Merge(s, maps, 2).output);
  }
  if (rn_grad_wants(g, 2)) {
    rn_edge_t zeros = rn_ZerosLike(s, rn_Switch(s, value, has).output_false);
    rn_edge_t values[2] = {zeros, rn_TensorMapLookup(s, map.output_true, key, dtype)};
    rn_grad_to(g, 2, rn_Merge(s, values, 2).output);
  }
  return RN_OK;
}

RN_RULE(map_erase) { return rn_rule_pass(g, 0, 0); }

// Composite tensors.
RN_RULE(composite_from_components) {
  rn_edge_t first = RN_RULE_ALIKE(g, "CompositeTensorVariantToComponents", rn_grad_dy(g, 0));
  for (int i = 0; i < g->input_count; ++i) rn_grad_to(g, i, (rn_edge_t){first.node, i});
  return RN_OK;
}

// A component without a gradient keeps its value.
RN_RULE(composite_to_components) {
  rn_edge_t* components = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(g->arena, (size_t)g->output_count, &components));
  for (int i = 0; i < g->output_count; ++i)
    components[i] = rn_grad_has_dy(g, i) ? rn_grad_dy(g, i) : rn_grad_out(g, i);
  rn_grad_to(
      g, 0, rn_rule_alike_(g, "CompositeTensorVariantFromComponents", g->output_count, components));
  return RN_OK;
}

// Steps as clients see them: see step_parts.h.
#include "session/step_parts.h"

#include "framework/internal_ops.h"
#include "step/ir_export.h"
#include "step/make.h"
#include "wire/writer.h"

static rn_status_t end_attrs(rn_ir_t* ir, const rn_op_def_t* op, rn_dtype_t dtype, int64_t number,
                             const rn_attr_value_t** out) {
  const rn_attr_t given[] = {{RN_STR("T"), {.type = rn_dtype_base(dtype)}},
                             {RN_STR("index"), {.i = number}},
                             RN_ATTRS_END};
  return rn_ir_make_attrs(ir, op, NULL, given, out);
}

// How many of |edges| come before edge |i| in the order of their names.
static int32_t rank_of(const rn_edge_t* edges, int32_t count, int32_t i) {
  int32_t rank = 0;
  for (int32_t k = 0; k < count; ++k) {
    int order = rn_edge_compare(edges[k], edges[i]);
    rank += order < 0 || (order == 0 && k < i);
  }
  return rank;
}

static rn_status_t add_args(rn_ir_t* ir, const rn_signature_t* signature) {
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    rn_ir_node_t* node = &ir->nodes.items[n];
    if (node->is_removed || node->feed < 0) continue;
    node->op = rn_op_arg();
    node->name = rn_ir_source_name(ir, node);
    node->constant = NULL;
    node->extra_count = node->input_count = node->control_count = 0;
    RN_RETURN_IF_ERROR(end_attrs(ir, node->op, node->types[0],
                                 rank_of(signature->feeds, signature->feed_count, node->feed),
                                 &node->attrs));
  }
  return RN_OK;
}

static rn_status_t add_retvals(rn_ir_t* ir, const rn_signature_t* signature, rn_device_t* client) {
  for (int32_t i = 0; i < ir->fetch_count; ++i) {
    rn_ir_edge_t fetch = ir->fetches[i];
    rn_edge_t named = signature->fetches[i];
    if (fetch.node < 0) continue;
    int32_t index, rank = rank_of(signature->fetches, signature->fetch_count, i);
    rn_ir_node_t node = {.op = rn_op_retval(), .feed = -1, .device = client, .input_count = 1};
    RN_RETURN_IF_ERROR(rn_arena_printf(&ir->arena, &node.name, "_retval_%.*s_%d_%d",
                                       RN_STR_ARGS(named.node->name), named.index, rank));
    RN_RETURN_IF_ERROR(RN_ARENA_NEW(&ir->arena, &node.inputs));
    node.inputs[0] = fetch;
    RN_RETURN_IF_ERROR(
        end_attrs(ir, node.op, ir->nodes.items[fetch.node].types[fetch.output], rank, &node.attrs));
    RN_RETURN_IF_ERROR(rn_ir_add(ir, &node, &index));
  }
  ir->fetch_count = 0;  // what is fetched may be in another part
  return RN_OK;
}

static rn_status_t fill(rn_ir_t* ir, const rn_planner_t* planner, const rn_signature_t* signature) {
  rn_place_options_t place = planner->place;
  place.log_placement = false;  // the step has said where its nodes are
  RN_RETURN_IF_ERROR(rn_pass_inline_calls(ir, &planner->calls));
  RN_RETURN_IF_ERROR(rn_place(ir, &place));
  RN_RETURN_IF_ERROR(rn_partition(ir, &place));
  RN_RETURN_IF_ERROR(add_args(ir, signature));
  return add_retvals(ir, signature, planner->place.devices[0]);
}

rn_status_t rn_step_parts_create(const rn_planner_t* planner, rn_graph_t* graph,
                                 const rn_signature_t* signature, rn_ir_t** out) {
  *out = NULL;
  rn_ir_t* ir = NULL;
  RN_RETURN_IF_ERROR(rn_ir_create(graph, signature, &ir));
  rn_status_t status = fill(ir, planner, signature);
  if (rn_ok(status))
    *out = ir;
  else
    rn_ir_destroy(ir);
  return status;
}

// Writes the nodes on |device|; those of others are hidden meanwhile.
static rn_status_t write_part(rn_ir_t* ir, const rn_device_t* device, uint32_t number,
                              rn_strbuf_t* out) {
  bool* hidden = NULL;
  size_t left = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, ir->nodes.count + 1, &hidden));
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    rn_ir_node_t* node = &ir->nodes.items[n];
    hidden[n] = !node->is_removed && node->device != device;
    node->is_removed |= hidden[n];
    if (node->is_removed) continue;
    node->requested_device = device->name;
    left++;
  }
  rn_status_t status = RN_OK;
  if (left) {
    size_t mark = rn_pb_begin(out, number);
    status = rn_ir_export_part(ir, false, out);
    rn_pb_end(out, mark);
  }
  for (size_t n = 0; n < ir->nodes.count; ++n)
    if (hidden[n]) ir->nodes.items[n].is_removed = false;
  return status;
}

rn_status_t rn_step_parts_write_graphs(rn_ir_t* parts, const rn_planner_t* planner, uint32_t number,
                                       rn_strbuf_t* out) {
  for (int d = 0; d < planner->place.device_count; ++d)
    RN_RETURN_IF_ERROR(write_part(parts, planner->place.devices[d], number, out));
  return RN_OK;
}

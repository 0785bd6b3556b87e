// The partition graphs of a step: see partition_graphs.h.
#include "session/partition_graphs.h"

#include "proto/config.pb.h"
#include "step/ir_export.h"
#include "wire/writer.h"

// Writes the nodes on |device|; those of others are hidden meanwhile.
static rn_status_t write_part(rn_ir_t* ir, const rn_device_t* device, rn_strbuf_t* out) {
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
    size_t mark = rn_pb_begin(out, rn_pb_RunMetadata_partition_graphs_field);
    status = rn_ir_export(ir, NULL, NULL, out);
    rn_pb_end(out, mark);
  }
  for (size_t n = 0; n < ir->nodes.count; ++n)
    if (hidden[n]) ir->nodes.items[n].is_removed = false;
  return status;
}

rn_status_t rn_partition_graphs_write(const rn_planner_t* planner, rn_graph_t* graph,
                                      const rn_signature_t* signature, rn_strbuf_t* out) {
  rn_ir_t* ir = NULL;
  RN_RETURN_IF_ERROR(rn_ir_create(graph, signature, &ir));
  rn_status_t status = rn_pass_inline_calls(ir, &planner->calls);
  if (rn_ok(status)) status = rn_place(ir, &planner->place);
  if (rn_ok(status)) status = rn_partition(ir, &planner->place);
  ir->fetch_count = 0;  // what is fetched may be in another part
  for (int d = 0; rn_ok(status) && d < planner->place.device_count; ++d)
    status = write_part(ir, planner->place.devices[d], out);
  rn_ir_destroy(ir);
  return status;
}

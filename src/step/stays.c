// See stays.h.
#include "step/stays.h"

// Ops that look at a variable and leave it as it is.
static bool only_reads(const rn_ir_node_t* node) {
  static const char* const readers[] = {
      "ReadVariableOp",     "ResourceGather",    "ResourceGatherNd", "VariableShape",
      "VarIsInitializedOp", "DisableCopyOnRead", "LookupTableFindV2"};
  for (size_t i = 0; i < sizeof readers / sizeof *readers; ++i)
    if (strcmp(node->op->name, readers[i]) == 0) return true;
  return false;
}

bool rn_ir_changes_variables(const rn_ir_t* ir) {
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &ir->nodes.items[n];
    if (node->is_removed || only_reads(node)) continue;
    for (int32_t i = 0; i < node->input_count; ++i) {
      if (node->inputs[i].node < 0) continue;
      const rn_ir_node_t* source = rn_ir_node(ir, node->inputs[i].node);
      if (rn_dtype_base(source->types[node->inputs[i].output]) == RN_RESOURCE) return true;
    }
  }
  return false;
}

bool rn_ir_stays(const rn_ir_t* ir, rn_ir_edge_t edge, bool has_writers) {
  const rn_ir_node_t* source = rn_ir_node(ir, edge.node);
  if (source->feed >= 0) return false;
  if (source->constant) return edge.output == 0;
  return rn_ir_is_op(source, "_KeptCast") ||
         (!has_writers && rn_ir_is_op(source, "ReadVariableOp"));
}

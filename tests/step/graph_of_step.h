// The graph of one step, for tests of passes over it.
#ifndef RUNNEL_TESTS_STEP_GRAPH_OF_STEP_H_
#define RUNNEL_TESTS_STEP_GRAPH_OF_STEP_H_

#include "framework/kernel.h"
#include "step/ir.h"
#include "util.h"

// What a pass gets to see of |step|: nodes with the kernels that placement gives them. The caller
// destroys it.
static RT_UNUSED rn_ir_t* graph_of_step(rt_t* rt, rt_step_t* step) {
  cr_assert(rn_scope_ok(rt->s), "%s", rn_scope_message(rt->s));
  rn_signature_t signature = rt_signature(step);
  rn_ir_t* ir = NULL;
  OK(rn_ir_create(rt->graph, &signature, &ir));
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    rn_ir_node_t* node = &ir->nodes.items[n];
    if (node->feed < 0) node->kernel = rn_kernel_find(node->op, node->attrs, NULL, "CPU");
  }
  return ir;
}

// How many nodes of |op| are left.
static RT_UNUSED int count_nodes(const rn_ir_t* ir, const char* op) {
  int count = 0;
  for (size_t n = 0; n < ir->nodes.count; ++n)
    count += !ir->nodes.items[n].is_removed && strcmp(ir->nodes.items[n].op->name, op) == 0;
  return count;
}

#endif  // RUNNEL_TESTS_STEP_GRAPH_OF_STEP_H_

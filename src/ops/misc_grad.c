// Gradient rules of batches of calls: what one op joins, the other divides.
#include <stdio.h>

#include "graph/graph.h"
#include "ops/rules.h"

// The name of the resource in which the steps of a gradient meet: |prefix|, the node and |suffix|.
static const char* shared_name(rn_grad_t* g, const char* prefix, const char* suffix) {
  rn_str_t name = {0};
  rn_status_t status = rn_arena_printf(g->arena, &name, "%s_gradient_%.*s%s", prefix,
                                       RN_STR_ARGS(g->node->name), suffix);
  if (rn_ok(status)) return name.data;
  rn_status_free(status);
  return NULL;
}

RN_RULE(batch) {
  int count = g->output_count - 2;
  rn_edge_t table = rn_grad_out(g, count), id = rn_grad_out(g, count + 1);
  for (int i = 0; i < count; ++i) {
    if (!rn_grad_has_dy(g, i)) continue;
    char number[16];
    snprintf(number, sizeof number, "_%d", i);
    const char* name = shared_name(g, "batch", number);
    if (!name) return rn_out_of_memory();
    rn_grad_to(g, i,
               rn_Unbatch(g->scope, rn_grad_dy(g, i), table, id,
                          rn_grad_attr(g, "grad_timeout_micros")->i, .shared_name = name));
  }
  return RN_OK;
}

RN_RULE(unbatch) {
  const char* name = shared_name(g, "unbatch", "");
  if (!name) return rn_out_of_memory();
  rn_grad_to(g, 0,
             rn_UnbatchGrad(g->scope, rn_grad_in(g, 0), rn_grad_in(g, 1), rn_grad_dy(g, 0),
                            rn_grad_in(g, 2), .shared_name = name));
  return RN_OK;
}

// Homes of stateful nodes: see homes.h.
#include "place/homes.h"

void rn_homes_init(rn_homes_t* homes, rn_allocator_t allocator, rn_graph_t* graph,
                   const rn_calls_options_t* calls) {
  *homes = (rn_homes_t){.graph = graph, .calls = *calls};
  rn_mutex_init(&homes->mutex);
  rn_map_init(&homes->devices, allocator);
  rn_arena_init(&homes->arena, allocator);
}

void rn_homes_clear(rn_homes_t* homes) {
  if (!homes->graph) return;
  rn_map_clear(&homes->devices);
  rn_arena_clear(&homes->arena);
  rn_mutex_destroy(&homes->mutex);
}

rn_status_t rn_homes_record(rn_homes_t* homes, const rn_ir_t* ir) {
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &ir->nodes.items[n];
    if (node->is_removed || node->feed >= 0 || !(node->op->flags & RN_OP_STATEFUL) ||
        !node->device || rn_map_get(&homes->devices, node->name))
      continue;
    rn_str_t name;
    RN_RETURN_IF_ERROR(rn_arena_str(&homes->arena, node->name, &name));
    RN_RETURN_IF_ERROR(rn_map_put(&homes->devices, name, node->device));
  }
  return RN_OK;
}

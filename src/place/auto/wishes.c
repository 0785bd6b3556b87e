// Automatic placement in a session: see wishes.h.
#include "place/auto/wishes.h"

#include "graph/import.h"
#include "place/homes.h"

rn_status_t rn_auto_place_create(rn_allocator_t allocator, rn_auto_place_t** out) {
  *out = NULL;
  rn_auto_place_t* automatic = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &automatic));
  automatic->allocator = allocator;
  rn_arena_init(&automatic->arena, allocator);
  rn_map_init(&automatic->wishes.devices, allocator);
  rn_status_t status = rn_costs_create(allocator, &automatic->costs);
  if (!rn_ok(status)) {
    rn_auto_place_destroy(automatic);
    return status;
  }
  *out = automatic;
  return RN_OK;
}

void rn_auto_place_destroy(rn_auto_place_t* automatic) {
  if (!automatic) return;
  rn_costs_destroy(automatic->costs);
  rn_map_clear(&automatic->wishes.devices);
  rn_vec_free(&automatic->traces, automatic->allocator);
  rn_arena_clear(&automatic->arena);
  RN_FREE(automatic->allocator, automatic);
}

rn_status_t rn_auto_search(rn_ir_t* ir, const rn_place_options_t* place, rn_costs_t* costs,
                           const rn_fleet_options_t* fleet, bool crosses,
                           const rn_search_options_t* options, rn_arena_t* arena,
                           rn_auto_result_t* out) {
  rn_place_options_t plain = *place;
  plain.homes = NULL;
  plain.wishes = NULL;
  plain.automatic = NULL;
  plain.log_placement = false;
  RN_RETURN_IF_ERROR(rn_place(ir, &plain));
  RN_RETURN_IF_ERROR(
      rn_fleet_create(place->devices, place->device_count, costs, fleet, arena, &out->fleet));
  RN_RETURN_IF_ERROR(
      rn_step_work_create(ir, place, &out->fleet, costs, crosses, arena, &out->step));
  rn_search_options_t search = *options;
  search.start = out->step.start;
  return rn_search(&out->step.work, &out->fleet, &search, arena, &out->search);
}

// The nodes that |names| lists; |*out_count| is -1 if one of them does not exist (yet).
static rn_status_t find_nodes(const rn_auto_place_t* automatic, rn_graph_t* graph,
                              rn_arena_t* scratch, rn_node_t*** out, int32_t* out_count) {
  rn_str_t rest = automatic->step;
  size_t most = 1;
  for (size_t i = 0; i < rest.size; ++i) most += rest.data[i] == ',';
  *out_count = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(scratch, most, out));
  while (rest.size) {
    rn_str_t name = rn_str_trim(rn_str_split(&rest, ','));
    name = rn_tensor_id_parse(name).name;
    if (!name.size) continue;
    rn_node_t* node = rn_graph_find(graph, name);
    if (!node) {
      *out_count = -1;
      return RN_OK;
    }
    (*out)[(*out_count)++] = node;
  }
  return RN_OK;
}

static rn_status_t find_all(rn_graph_t* graph, rn_arena_t* scratch, rn_node_t*** out,
                            int32_t* out_count) {
  rn_mutex_lock(&graph->mutex);
  size_t count = graph->nodes.count;
  rn_status_t status = RN_ARENA_ARRAY(scratch, count + 1, out);
  if (rn_ok(status) && count) memcpy(*out, graph->nodes.items, count * sizeof **out);
  rn_mutex_unlock(&graph->mutex);
  *out_count = (int32_t)count;
  return status;
}

static rn_status_t keep_wishes(rn_auto_place_t* automatic, const rn_ir_t* ir,
                               const rn_auto_result_t* result) {
  for (int32_t n = 0; n < result->step.work.node_count; ++n) {
    int32_t index = result->step.nodes[n];
    if (index < 0 || rn_ir_node(ir, index)->feed >= 0) continue;
    rn_str_t name;
    RN_RETURN_IF_ERROR(rn_arena_str(&automatic->arena, rn_ir_node(ir, index)->name, &name));
    RN_RETURN_IF_ERROR(rn_map_put(&automatic->wishes.devices, name,
                                  (void*)((intptr_t)rn_auto_device(result, n) + 1)));
  }
  return RN_OK;
}

static rn_status_t search(rn_auto_place_t* automatic, const rn_place_options_t* place, rn_ir_t* ir,
                          rn_arena_t* scratch) {
  rn_auto_result_t result;
  double speeds[RN_FLEET_MOST_DEVICES];
  for (int32_t d = 0; automatic->speed_count && d < RN_FLEET_MOST_DEVICES; ++d)
    speeds[d] = automatic->speeds[d < automatic->speed_count ? d : automatic->speed_count - 1];
  rn_fleet_options_t fleet = {.lanes = automatic->lanes,
                              .is_apart = automatic->is_apart,
                              .speeds = automatic->speed_count ? speeds : NULL};
  rn_search_options_t options = {.margin = automatic->margin};
  RN_RETURN_IF_ERROR(rn_pass_inline_calls(ir, &place->homes->calls));
  if (automatic->traces.count)
    RN_RETURN_IF_ERROR(
        rn_costs_learn(automatic->costs, ir, automatic->traces.items, automatic->traces.count));
  RN_RETURN_IF_ERROR(rn_auto_search(ir, place, automatic->costs, &fleet, place->tasks != NULL,
                                    &options, scratch, &result));
  if (place->log_placement)
    rn_log(place->env, RN_LOG_INFO,
           "Automatic placement: a step of %d nodes should take %.3f ms, by %s; as placed by the "
           "client %.3f ms",
           result.step.work.node_count, (double)result.search.found.step_ns / 1e6,
           result.search.method, (double)result.search.start.step_ns / 1e6);
  return keep_wishes(automatic, ir, &result);
}

static rn_status_t make(rn_auto_place_t* automatic, const rn_place_options_t* place,
                        rn_arena_t* scratch) {
  rn_ir_t* ir = NULL;
  rn_node_t** nodes = NULL;
  int32_t count = 0;
  rn_graph_t* graph = place->homes->graph;
  RN_RETURN_IF_ERROR(automatic->step.size ? find_nodes(automatic, graph, scratch, &nodes, &count)
                                          : find_all(graph, scratch, &nodes, &count));
  if (count <= 0) return RN_OK;
  rn_signature_t signature = {.targets = nodes, .target_count = count};
  RN_RETURN_IF_ERROR(rn_ir_create(graph, &signature, &ir));
  automatic->is_made = true;
  rn_status_t status = search(automatic, place, ir, scratch);
  rn_ir_destroy(ir);
  return status;
}

rn_status_t rn_auto_place_wish(rn_auto_place_t* automatic, rn_place_options_t* inout_place) {
  if (!automatic->is_made) {
    rn_arena_t scratch;
    rn_arena_init(&scratch, automatic->allocator);
    rn_status_t status = make(automatic, inout_place, &scratch);
    rn_arena_clear(&scratch);
    if (rn_status_code(status) == RN_CODE_RESOURCE_EXHAUSTED) return status;
    if (!rn_ok(status))
      rn_log(inout_place->env, RN_LOG_WARNING, "Automatic placement is off: %s",
             rn_status_message(status));
    rn_status_free(status);
  }
  inout_place->wishes = &automatic->wishes;
  return RN_OK;
}

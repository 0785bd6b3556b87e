// Removes nodes again, for builders of many nodes that fail midway. Their memory stays in the
// arena, because lists of older nodes may come after it.
//
// doc/invariants.md: invariant 15.
#include "graph/build.h"

static void forget_consumer(rn_output_t* output, const rn_node_t* node) {
  size_t kept = 0;
  for (size_t i = 0; i < output->consumers.count; i++) {
    rn_consumer_t consumer = output->consumers.items[i];
    if (consumer.node != node) output->consumers.items[kept++] = consumer;
  }
  output->consumers.count = kept;
}

static void forget_control(rn_node_t* from, const rn_node_t* node) {
  size_t kept = 0;
  for (size_t i = 0; i < from->control_consumers.count; i++) {
    rn_node_t* consumer = from->control_consumers.items[i];
    if (consumer != node) from->control_consumers.items[kept++] = consumer;
  }
  from->control_consumers.count = kept;
}

static void take_back_node(rn_graph_t* graph, rn_node_t* node) {
  for (int32_t i = 0; i < node->input_count; i++) {
    rn_edge_t edge = node->inputs[i];
    if (edge.node) forget_consumer(&edge.node->outputs[edge.index], node);
  }
  for (size_t i = 0; i < node->controls.count; i++) forget_control(node->controls.items[i], node);
  rn_map_remove(&graph->by_name, node->name);
  rn_map_remove(&graph->name_counts, node->name);
  rn_node_dispose(node);
}

static bool is_under(rn_str_t name, rn_str_t prefix) {
  return prefix.size == 0 || (rn_str_starts_with(name, prefix) &&
                              (name.size == prefix.size || name.data[prefix.size] == '/'));
}

// Removing an entry may move others, so every search starts from the beginning.
static void forget_prefixes(rn_graph_t* graph, rn_str_t prefix) {
  size_t position = 0;
  const rn_map_entry_t* entry;
  while ((entry = rn_map_next(&graph->prefixes, &position))) {
    if (!is_under(entry->key, prefix)) continue;
    rn_map_remove(&graph->prefixes, entry->key);
    position = 0;
  }
}

bool rn_graph_take_back_locked(rn_graph_t* graph, size_t count, rn_str_t prefix) {
  for (size_t i = count; i < graph->nodes.count; i++)
    if (!is_under(graph->nodes.items[i]->name, prefix)) return false;
  for (size_t i = graph->nodes.count; i-- > count;) take_back_node(graph, graph->nodes.items[i]);
  if (graph->nodes.count > count) graph->nodes.count = count;
  if (graph->prefixed_count > count) graph->prefixed_count = count;
  forget_prefixes(graph, prefix);
  return true;
}

// Changes existing nodes. All functions take the graph's lock.
//
// rn_graph_update_edge in graph.h replaces an input.
#ifndef RUNNEL_GRAPH_EDIT_H_
#define RUNNEL_GRAPH_EDIT_H_

#include "graph/graph.h"

// Adds the control input |control|, a node of the same graph, unless the node has it already.
RN_MUST_USE rn_status_t rn_node_add_control(rn_node_t* node, rn_node_t* control);
void rn_node_clear_controls(rn_node_t* node);
// Sets the requested device; |device| is copied.
RN_MUST_USE rn_status_t rn_node_set_device(rn_node_t* node, rn_str_t device);
// Sets an attribute to a copy of |value| and infers shapes again. INVALID_ARGUMENT, with the node
// unchanged, if the attribute determines the number or types of inputs or outputs.
RN_MUST_USE rn_status_t rn_node_set_attr(rn_node_t* node, rn_str_t name,
                                         const rn_attr_value_t* value);
// Removes an attribute, if the node has it. INVALID_ARGUMENT if the op defines the attribute.
RN_MUST_USE rn_status_t rn_node_clear_attr(rn_node_t* node, rn_str_t name);

// Whether |node| depends on constants only, through pure nodes. False if there are too many to
// check.
RN_MUST_USE rn_status_t rn_graph_is_constant(rn_graph_t* graph, rn_node_t* node, bool* out);

#endif  // RUNNEL_GRAPH_EDIT_H_

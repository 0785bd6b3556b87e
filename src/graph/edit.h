// Changes to nodes that exist, and a question about them. All take the graph's lock.
//
// rn_graph_update_edge in graph.h replaces an input.
#ifndef RUNNEL_GRAPH_EDIT_H_
#define RUNNEL_GRAPH_EDIT_H_

#include "graph/graph.h"

// Adds |control|, a node of the same graph; once is enough.
RN_MUST_USE rn_status_t rn_node_add_control(rn_node_t* node, rn_node_t* control);
void rn_node_clear_controls(rn_node_t* node);
// |device| as it was requested; copied.
RN_MUST_USE rn_status_t rn_node_set_device(rn_node_t* node, rn_str_t device);
// Sets an attribute to a copy of |value|, and infers shapes again. INVALID_ARGUMENT if the
// attribute decides how many inputs or outputs there are, or their types; the node is then as
// before.
RN_MUST_USE rn_status_t rn_node_set_attr(rn_node_t* node, rn_str_t name,
                                         const rn_attr_value_t* value);
// Removes an attribute; one that is not there is fine. INVALID_ARGUMENT for one of the op's
// definition.
RN_MUST_USE rn_status_t rn_node_clear_attr(rn_node_t* node, rn_str_t name);

// Whether |node| depends on constants alone: through pure nodes, and not through too many of them.
RN_MUST_USE rn_status_t rn_graph_is_constant(rn_graph_t* graph, rn_node_t* node, bool* out);

#endif  // RUNNEL_GRAPH_EDIT_H_

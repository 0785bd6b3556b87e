// Steps of node construction that the builder and the importer share. Private to graph/.
//
// A node under construction is only in the graph's arena. rn_node_link_consumers and
// rn_node_register_locked make it part of the graph; rn_node_dispose and rewinding the arena
// discard it.
#ifndef RUNNEL_GRAPH_BUILD_H_
#define RUNNEL_GRAPH_BUILD_H_

#include "graph/graph.h"

// Value of rn_attr_value_t.kind for an attribute without a value yet.
#define RN_ATTR_UNSET 0xFF

// The most outputs of a node: a number in an attribute must not cost gigabytes.
#define RN_MAX_OUTPUTS (1 << 20)

// The definition of op |name|: a registered op, or a function of the graph's library. NULL if
// neither.
const rn_op_def_t* rn_graph_find_op_locked(rn_graph_t* graph, rn_str_t name);
RN_MUST_USE rn_status_t rn_op_not_registered(rn_code_t code, rn_str_t op);

// Allocates a node of |op| with its name copied, attributes unset, inputs and extras zeroed.
RN_MUST_USE rn_status_t rn_node_alloc(rn_graph_t* graph, const rn_op_def_t* op, rn_str_t name,
                                      rn_str_t device, int32_t input_count, int32_t extra_count,
                                      rn_node_t** out_node);
// Copies |value| into the graph's arena; plain numbers need no memory.
RN_MUST_USE rn_status_t rn_node_copy_value(rn_node_t* node, const rn_attr_value_t* value,
                                           rn_attr_value_t* out);
// Checks the attributes that are set and fills in the defaults of the others. Fails, naming them,
// if attributes are missing.
RN_MUST_USE rn_status_t rn_node_complete_attrs(rn_node_t* node);
// UNIMPLEMENTED if the op may not be used in graphs of |version|.
RN_MUST_USE rn_status_t rn_op_check_version(const rn_op_def_t* op, int32_t version);
// Makes the outputs, with the types that the attributes determine.
RN_MUST_USE rn_status_t rn_node_make_outputs(rn_node_t* node);
// Adds the node to the consumer lists of its inputs and control inputs; drops repeated control
// inputs. rn_node_unlink_consumers undoes it and must be called in the reverse order of linking.
RN_MUST_USE rn_status_t rn_node_link_consumers(rn_node_t* node);
void rn_node_unlink_consumers(rn_node_t* node, int32_t inputs);
// Assigns the node's id and registers its name.
RN_MUST_USE rn_status_t rn_node_register_locked(rn_node_t* node);
// Appends to a list that lives in the graph's arena.
RN_MUST_USE rn_status_t rn_output_add_consumer(rn_graph_t* graph, rn_output_t* output,
                                               rn_consumer_t consumer);
RN_MUST_USE rn_status_t rn_node_add_control_consumer(rn_node_t* node, rn_node_t* consumer);
// Releases the buffers that the node's attributes hold.
void rn_node_dispose(rn_node_t* node);

// Number of tensors of argument |arg|; negative if the attribute is.
int64_t rn_node_arg_length(const rn_node_t* node, const rn_arg_def_t* arg);
// The type of tensor |i| of the argument, with the reference mark.
rn_dtype_t rn_node_arg_type(const rn_node_t* node, const rn_arg_def_t* arg, int64_t i);
// Whether an output of type |from| may feed an input of type |to|.
static inline bool rn_dtype_fits(rn_dtype_t from, rn_dtype_t to) {
  return from == to || (rn_dtype_is_ref(from) && rn_dtype_base(from) == to);
}

// Appends |node| as a NodeDef, with |name| and |inputs| in place of its own.
RN_MUST_USE rn_status_t rn_node_export_renamed_locked(const rn_node_t* node, rn_str_t name,
                                                      const rn_str_t* inputs, size_t input_count,
                                                      rn_strbuf_t* out);

// Brings graph->prefixes up to date.
RN_MUST_USE rn_status_t rn_graph_index_prefixes_locked(rn_graph_t* graph);
// |base| or "base_1", "base_2" … whichever no node and no prefix uses; marks it as used.
RN_MUST_USE rn_status_t rn_graph_claim_prefix_locked(rn_graph_t* graph, rn_str_t base,
                                                     rn_str_t* out);

// Removes the nodes with ids from |count| on, whose names all are |prefix| or "prefix/…" (any name
// if |prefix| is empty), and the claim on that prefix. The graph is then as it was before them.
// Returns false and does nothing if another caller has added nodes meanwhile.
bool rn_graph_take_back_locked(rn_graph_t* graph, size_t count, rn_str_t prefix);

// Whether |name| may be imported: letters, digits and "._/-", in parts joined by '>' that start
// with a letter, a digit or a dot.
bool rn_node_name_is_valid(rn_str_t name);

// Internals of the builder (scope*.c).
void rn_scope_fail(rn_scope_t* scope, rn_status_t status);  // takes |status|
bool rn_scope_can_add(rn_scope_t* scope);
// Removes what was built under the child scope |scope| since the graph had |count| nodes; see
// rn_graph_take_back_locked.
void rn_scope_take_back(rn_scope_t* scope, size_t count);
rn_arena_t* rn_scope_scratch(rn_scope_t* scope);  // lives until the node is finished
// Like rn_op_attr_string, for any bytes.
void rn_op_attr_bytes(rn_scope_t* scope, const char* name, rn_str_t value);
// Hooks into every node that a scope builds; every member may be NULL.
typedef struct rn_scope_hook_t {
  rn_edge_t (*map)(void* arg, rn_edge_t input);  // the edge to read in place of |input|
  // The node to wait for in its place; NULL for none.
  rn_node_t* (*map_control)(void* arg, rn_node_t* control);
  void* arg;
  // Nodes without inputs get a control edge from it, and so do nodes all of whose inputs
  // |is_always_alive| accepts.
  rn_node_t* anchor;
  bool (*is_always_alive)(void* arg, rn_edge_t input);
  void (*built)(void* arg, rn_node_t* node);  // called for every node
  bool is_inherited;                          // scopes made from this one inherit the hook
} rn_scope_hook_t;
// Borrowed until the next call and until the scopes that inherit it are destroyed; NULL for none.
void rn_scope_set_hook(rn_scope_t* scope, const rn_scope_hook_t* hook);
const rn_scope_hook_t* rn_scope_hook(const rn_scope_t* scope);
// Sets the attribute "_class" of every node that the scope builds from now on. Borrowed; NULL for
// none.
void rn_scope_set_colocation(rn_scope_t* scope, const rn_attr_value_t* value);

// "" or "a/b/".
rn_str_t rn_scope_prefix(const rn_scope_t* scope);
// The device that new nodes request; "" for none. Valid until it changes.
rn_str_t rn_scope_device(const rn_scope_t* scope);
// Makes a scope over the same graph that reports errors to |parent| and puts |prefix| ("" or
// "a/b/") before names, without the parent's control inputs and hook. NULL if memory is short.
rn_scope_t* rn_scope_at(rn_scope_t* parent, rn_str_t prefix);
rn_allocator_t rn_scope_allocator(const rn_scope_t* scope);
// Data that a higher layer attaches to a scope. rn_scope_context returns the scope's own or that of
// the nearest enclosing scope with one. The scope owns |context| and frees it.
void rn_scope_set_context(rn_scope_t* scope, void* context,
                          void (*free_context)(rn_allocator_t allocator, void* context));
void* rn_scope_context(const rn_scope_t* scope);

// Takes ownership of a tensor's buffer.
void rn_scope_add_attr(rn_scope_t* scope, const char* name, const rn_attr_value_t* value);

// Append "{{node x}}" and "Op<name=Neg; signature=x:T -> y:T; …>".
void rn_node_mention(rn_strbuf_t* buf, rn_str_t name);
void rn_op_summary(rn_strbuf_t* buf, const rn_op_def_t* op);

#endif  // RUNNEL_GRAPH_BUILD_H_

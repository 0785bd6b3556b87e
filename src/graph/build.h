// The steps of making a node that building and importing share. Private to graph/.
//
// A node under construction is in the graph's arena and nowhere else: it becomes part of the graph
// with rn_node_link_consumers and rn_node_register_locked, or is given up with rn_node_dispose and
// a rewound arena.
#ifndef RUNNEL_GRAPH_BUILD_H_
#define RUNNEL_GRAPH_BUILD_H_

#include "graph/graph.h"

// Stands in rn_attr_value_t.kind for an attribute that has no value yet.
#define RN_ATTR_UNSET 0xFF

// More outputs than this are refused: a number in an attribute must not cost gigabytes.
#define RN_MAX_OUTPUTS (1 << 20)

// The definition of op |name|: the library's, or that of a function in the graph.
const rn_op_def_t* rn_graph_find_op_locked(rn_graph_t* graph, rn_str_t name);
RN_MUST_USE rn_status_t rn_op_not_registered(rn_code_t code, rn_str_t op);

// A node of |op| with its name copied, attributes unset, inputs and extras zeroed.
RN_MUST_USE rn_status_t rn_node_alloc(rn_graph_t* graph, const rn_op_def_t* op, rn_str_t name,
                                      rn_str_t device, int32_t input_count, int32_t extra_count,
                                      rn_node_t** out_node);
// Copies |value| into the node; plain numbers cost nothing.
RN_MUST_USE rn_status_t rn_node_copy_value(rn_node_t* node, const rn_attr_value_t* value,
                                           rn_attr_value_t* out);
// Checks the attributes that are set, fills the others from their defaults, names those missing.
RN_MUST_USE rn_status_t rn_node_complete_attrs(rn_node_t* node);
// UNIMPLEMENTED if the op may not be used in graphs of |version|.
RN_MUST_USE rn_status_t rn_op_check_version(const rn_op_def_t* op, int32_t version);
// Makes the outputs, with the types that the attributes say.
RN_MUST_USE rn_status_t rn_node_make_outputs(rn_node_t* node);
// Makes the node known to the nodes it reads from and runs after; control inputs that come twice
// are reduced to one. Undone by rn_node_unlink_consumers, in the reverse order of linking.
RN_MUST_USE rn_status_t rn_node_link_consumers(rn_node_t* node);
void rn_node_unlink_consumers(rn_node_t* node, int32_t inputs);
// Gives the node its number and enters its name.
RN_MUST_USE rn_status_t rn_node_register_locked(rn_node_t* node);
// Appends to a list that lives in the graph's arena.
RN_MUST_USE rn_status_t rn_output_add_consumer(rn_graph_t* graph, rn_output_t* output,
                                               rn_consumer_t consumer);
RN_MUST_USE rn_status_t rn_node_add_control_consumer(rn_node_t* node, rn_node_t* consumer);
// Gives back the buffers that the node's attributes hold.
void rn_node_dispose(rn_node_t* node);

// How many tensors argument |arg| of the node stands for; negative if the attribute says so.
int64_t rn_node_arg_length(const rn_node_t* node, const rn_arg_def_t* arg);
// The type of tensor |i| of the argument, with the reference mark.
rn_dtype_t rn_node_arg_type(const rn_node_t* node, const rn_arg_def_t* arg, int64_t i);
// Whether an output of type |from| may feed an input of type |to|.
static inline bool rn_dtype_fits(rn_dtype_t from, rn_dtype_t to) {
  return from == to || (rn_dtype_is_ref(from) && rn_dtype_base(from) == to);
}

// Appends |node| as a NodeDef with another name and these inputs.
RN_MUST_USE rn_status_t rn_node_export_renamed_locked(const rn_node_t* node, rn_str_t name,
                                                      const rn_str_t* inputs, size_t input_count,
                                                      rn_strbuf_t* out);

// Brings graph->prefixes up to date.
RN_MUST_USE rn_status_t rn_graph_index_prefixes_locked(rn_graph_t* graph);
// |base| or "base_1", "base_2" … such that no node and no prefix is called so; then it is taken.
RN_MUST_USE rn_status_t rn_graph_claim_prefix_locked(rn_graph_t* graph, rn_str_t base,
                                                     rn_str_t* out);

// Takes back the nodes from number |count| on, which are all called |prefix| or "prefix/…", and the
// claim on that prefix (all nodes, if it is empty): the graph is as it was without them. False, and
// nothing is done, if others have added nodes meanwhile.
bool rn_graph_take_back_locked(rn_graph_t* graph, size_t count, rn_str_t prefix);

// Whether |name| may be imported: letters, digits and "._/-", in parts joined by '>' that start
// with a letter, a digit or a dot.
bool rn_node_name_is_valid(rn_str_t name);

// The builder's inside, for the files that fill it.
void rn_scope_fail(rn_scope_t* scope, rn_status_t status);  // takes |status|
bool rn_scope_can_add(rn_scope_t* scope);
// Takes back what was built under |scope|, a child, since the graph had |count| nodes; see
// rn_graph_take_back_locked.
void rn_scope_take_back(rn_scope_t* scope, size_t count);
rn_arena_t* rn_scope_scratch(rn_scope_t* scope);  // lives until the node is finished
// What is done to every node that a scope builds, besides; all parts may be missing.
typedef struct rn_scope_hook_t {
  rn_edge_t (*map)(void* arg, rn_edge_t input);              // what is read in place of |input|
  rn_node_t* (*map_control)(void* arg, rn_node_t* control);  // what is waited for; NULL: nothing
  void* arg;
  rn_node_t* anchor;                          // nodes without inputs wait for it
  void (*built)(void* arg, rn_node_t* node);  // told of every node
  bool is_inherited;                          // by scopes made from this one
} rn_scope_hook_t;
// Borrowed until the next call, and until the scopes that inherit it are gone; NULL: none.
void rn_scope_set_hook(rn_scope_t* scope, const rn_scope_hook_t* hook);
const rn_scope_hook_t* rn_scope_hook(const rn_scope_t* scope);
// The attribute "_class" of every node that the scope builds from now on. Borrowed; NULL: none.
void rn_scope_set_colocation(rn_scope_t* scope, const rn_attr_value_t* value);

// "" or "a/b/".
rn_str_t rn_scope_prefix(const rn_scope_t* scope);
// What nodes built now ask for; "": nothing. Lent until it changes.
rn_str_t rn_scope_device(const rn_scope_t* scope);
// A scope over the same graph, reporting to |parent|, whose names get |prefix| ("" or "a/b/") as it
// is, without its control inputs and its hook. NULL when memory is short.
rn_scope_t* rn_scope_at(rn_scope_t* parent, rn_str_t prefix);
rn_allocator_t rn_scope_allocator(const rn_scope_t* scope);
// What a room above keeps with a scope: its own, or that of the nearest scope around it that has
// one. The scope takes |context| and frees it when it goes.
void rn_scope_set_context(rn_scope_t* scope, void* context,
                          void (*free_context)(rn_allocator_t allocator, void* context));
void* rn_scope_context(const rn_scope_t* scope);

// Takes the buffer of a tensor.
void rn_scope_add_attr(rn_scope_t* scope, const char* name, const rn_attr_value_t* value);

// A failed status of |code| with the text of |buf|, which is cleared.
RN_MUST_USE rn_status_t rn_status_from_buf(rn_code_t code, rn_strbuf_t* buf);
// "{{node x}}", and "Op<name=Neg; signature=x:T -> y:T; …>".
void rn_node_mention(rn_strbuf_t* buf, rn_str_t name);
void rn_op_summary(rn_strbuf_t* buf, const rn_op_def_t* op);

#endif  // RUNNEL_GRAPH_BUILD_H_

// The graph of one step: what is left after pruning, in a form that passes can change.
//
// Made by rn_ir_create from a graph and a step's feeds, fetches and targets; then one pass after
// the other works on it (graph/pass_*.c, place/), and exec compiles it into plans. Nodes are
// numbered; a pass removes a node by setting |is_removed| and redirects edges by overwriting them.
// Everything lives in the IR's arena or is borrowed from the graph, whose nodes never go away. One
// thread at a time.
#ifndef RUNNEL_STEP_IR_H_
#define RUNNEL_STEP_IR_H_

#include "framework/kernel.h"
#include "graph/graph.h"

typedef struct rn_ir_edge_t {
  int32_t node;  // index into nodes; -1: nothing
  int32_t output;
} rn_ir_edge_t;

typedef struct rn_ir_node_t {
  const rn_op_def_t* op;
  rn_str_t name;  // of the graph's node; passes that add nodes make new names
  const rn_attr_value_t* attrs;
  int32_t extra_count;
  const rn_attr_t* extras;
  rn_str_t requested_device;
  rn_device_t* device;            // Borrowed; set by placement
  const rn_kernel_def_t* kernel;  // set by placement; NULL for the roles that exec runs itself
  int32_t input_count;
  rn_ir_edge_t* inputs;
  int32_t control_count;
  int32_t* controls;  // control inputs: node numbers
  int32_t output_count;
  rn_dtype_t* types;            // of the outputs, with reference marks
  rn_shape_t* shapes;           // of the outputs, as far as known
  const rn_tensor_t* constant;  // value of output 0 if known before the step; Borrowed from the
                                // graph, or owned by the IR (see |owned|)
  int32_t feed;                 // >= 0: this node stands for feed number |feed|, and has one output
  bool is_removed;
} rn_ir_node_t;

typedef struct rn_ir_t {
  rn_graph_t* graph;  // Borrowed: functions are found in its library
  rn_arena_t arena;
  rn_allocator_t allocator;
  RN_VEC(rn_ir_node_t) nodes;
  int32_t fetch_count;
  rn_ir_edge_t* fetches;  // one for each fetch of the step
  int32_t feed_count;
  rn_str_t* feed_names;  // by feed: see rn_ir_source_name
  int32_t target_count;
  int32_t* targets;  // nodes that must run; a target that a pass removes must leave its effects to
                     // others
  RN_VEC(rn_tensor_t)
  owned;  // tensors that constants of passes point to; their buffers are released with the IR
  int32_t producer;    // GraphDef version
  int32_t call_depth;  // of a body whose shapes are inferred for a call: how many calls deep it is
} rn_ir_t;

// What a step asks for. Borrowed for the call.
typedef struct rn_signature_t {
  const rn_edge_t* feeds;
  int32_t feed_count;
  const rn_edge_t* fetches;
  int32_t fetch_count;
  rn_node_t* const* targets;
  int32_t target_count;
  rn_node_t* const* done;  // nodes that ran already: nobody waits for them
  int32_t done_count;
  int32_t call_depth;  // see rn_ir_t
} rn_signature_t;

// Orders edges by their names, "node:output", bytewise: the order in which TensorFlow numbers
// feeds.
int rn_edge_compare(rn_edge_t a, rn_edge_t b);
// A copy whose arrays are in |arena|.
RN_MUST_USE rn_status_t rn_signature_copy(rn_arena_t* arena, const rn_signature_t* from,
                                          rn_signature_t* out);

// Prunes |graph| to what the step needs (step/prune.c): walks back from fetches and targets,
// stops at feeds. Feeds become nodes with |feed| set. Errors name the edge: fetching or feeding
// what does not exist, feeding twice, a placeholder that nobody feeds is *not* an error here: its
// kernel says so when it runs.
RN_MUST_USE rn_status_t rn_ir_create(rn_graph_t* graph, const rn_signature_t* signature,
                                     rn_ir_t** out_ir);
void rn_ir_destroy(rn_ir_t* ir);
// Whether |edge| is an output of |graph|; the message calls it a |what|.
RN_MUST_USE rn_status_t rn_ir_check_edge(const rn_graph_t* graph, rn_edge_t edge, const char* what);

// What messages and statistics call a node that others read. A client's feed has the name of the
// node that TensorFlow puts in its place, "_arg_NODE_OUTPUT_NUMBER"; feeds are numbered in the
// order of their names.
static inline rn_str_t rn_ir_source_name(const rn_ir_t* ir, const rn_ir_node_t* node) {
  return node->feed >= 0 ? ir->feed_names[node->feed] : node->name;
}

// Appends what timelines call a node: "name = Op(input, input:1, ^control)".
void rn_ir_label(const rn_ir_t* ir, const rn_ir_node_t* node, rn_strbuf_t* out);

// A copy of |prototype| at the end of the nodes; pointers to nodes are invalid afterwards. Its
// arrays must be in the IR's arena.
RN_MUST_USE rn_status_t rn_ir_add(rn_ir_t* ir, const rn_ir_node_t* prototype, int32_t* out_index);
// Points every use of |from| (inputs and fetches) to |to|.
void rn_ir_replace_edge(rn_ir_t* ir, rn_ir_edge_t from, rn_ir_edge_t to);
// Makes |node| run after |control| as well.
RN_MUST_USE rn_status_t rn_ir_add_control(rn_ir_t* ir, int32_t node, int32_t control);
// The nodes that are left in topological order (edges into Merge from NextIteration aside).
// INVALID_ARGUMENT for a cycle, naming nodes.
// |*out_order| is in the IR's arena.
RN_MUST_USE rn_status_t rn_ir_order(rn_ir_t* ir, int32_t** out_order, int32_t* out_count);
// Marks (by node) what comes after a marked node, over edges of both kinds.
RN_MUST_USE rn_status_t rn_ir_spread(rn_ir_t* ir, bool* inout_is_marked);
// Removes nodes that no fetch, target or side effect needs.
RN_MUST_USE rn_status_t rn_ir_sweep(rn_ir_t* ir);

// Node number |index|; valid until a node is added.
static inline rn_ir_node_t* rn_ir_node(const rn_ir_t* ir, int32_t index) {
  return &ir->nodes.items[index];
}
// The value of attribute |name|, defined or extra; NULL if there is none.
const rn_attr_value_t* rn_ir_attr(const rn_ir_node_t* node, rn_str_t name);
// Whether the node has the boolean attribute |name|, and it is true.
static inline bool rn_ir_flag(const rn_ir_node_t* node, const char* name) {
  const rn_attr_value_t* value = rn_ir_attr(node, rn_str(name));
  return value && value->b;
}

// How a node is used.
typedef struct rn_ir_uses_t {
  int32_t reads;    // inputs of other nodes that read one of its outputs
  int32_t fetches;  // fetches that do
  int32_t waits;    // control edges from it, and one if it is a target
  int32_t reader;   // the last node that reads it; -1: none
} rn_ir_uses_t;
// Counts the uses of every node; |*out_uses|, by node, is in the IR's arena.
RN_MUST_USE rn_status_t rn_ir_count_uses(rn_ir_t* ir, rn_ir_uses_t** out_uses);
static inline int32_t rn_ir_use_count(const rn_ir_uses_t* uses) {
  return uses->reads + uses->fetches + uses->waits;
}
// The node that alone uses this one, by one input; -1: there is none, or there are others.
static inline int32_t rn_ir_only_reader(const rn_ir_uses_t* uses) {
  return uses->reads == 1 && uses->fetches + uses->waits == 0 ? uses->reader : -1;
}

// The input whose elements are all that the output consists of, however often; -1: none.
int rn_ir_repeated_input(const rn_ir_node_t* node);
// Whether the node combines two inputs element by element, either of which may be one number.
bool rn_ir_takes_numbers(const rn_ir_node_t* node);

// Whether the node reads a variable, and that is all that it does with it.
bool rn_ir_is_read(const rn_ir_node_t* node);

// Whether flat input |input| of |node| must be a reference to a variable.
bool rn_ir_wants_ref(const rn_ir_node_t* node, int32_t input);

// Whether the node may be removed, merged or evaluated early: no state, no references, no side
// effects.
static inline bool rn_ir_is_pure(const rn_ir_node_t* node) {
  if (node->op->flags & RN_OP_STATEFUL || node->feed >= 0 || node->op->role != RN_ROLE_PLAIN) {
    return false;
  }
  for (int i = 0; i < node->op->input_count; ++i)
    if (node->op->inputs[i].is_ref) return false;
  for (int32_t i = 0; i < node->output_count; ++i)
    if (rn_dtype_is_ref(node->types[i])) return false;
  return true;
}

// Whether the node gives a value that a client might have fed something in place of.
static inline bool rn_ir_is_default(const rn_ir_node_t* node) {
  return strcmp(node->op->name, "PlaceholderWithDefault") == 0;
}

// Passes. Each leaves the IR meaning the same.

// When conditionals and loops that call functions are taken apart.
typedef enum rn_lowering_t {
  RN_LOWER_WHERE_ASKED = 0,  // the attribute "_lower_using_switch_merge" asks for it
  RN_LOWER_ALWAYS,           // wherever that can be done
  RN_LOWER_NEVER,
} rn_lowering_t;
typedef struct rn_calls_options_t {
  bool keeps_calls;  // calls stay calls, and are made when they run
  rn_lowering_t lowering;
  bool prunes_branches;  // branches and bodies that the attribute asks to take apart are pruned
} rn_calls_options_t;
// Puts the bodies of functions in place of calls (step/inline_calls.c), conditionals and loops of
// functions into Switch, Merge and their like (step/lower_control_flow.c). Nodes of a body get
// names "call/node" and run on the call's device unless they name one. Those that have state run
// whether or not their values are used; whoever waited for the call waits for them. What calls
// itself, what asks not to be taken apart and what would grow beyond all bounds stays a call.
//
// TensorFlow's sessions prune a step after they have taken conditionals and loops apart, so that
// unused assignments in a branch do not run. |prunes_branches| does the same: a branch or body runs
// what its used results and its control results need.
RN_MUST_USE rn_status_t rn_pass_inline_calls(rn_ir_t* ir, const rn_calls_options_t* options);
// Variables that loops only read are read before them. Leaves Identities behind, for the next pass.
RN_MUST_USE rn_status_t rn_pass_hoist_variable_reads(rn_ir_t* ir);
// Control edges into nodes without effects lead from what has some, and only where an input has not
// waited for it; what is then needed by nobody goes.
RN_MUST_USE rn_status_t rn_pass_drop_control_edges(rn_ir_t* ir);
RN_MUST_USE rn_status_t
rn_pass_merge_equal_nodes(rn_ir_t* ir);  // common sub-expressions: one of each
RN_MUST_USE rn_status_t
rn_pass_simplify(rn_ir_t* ir);  // identities and arithmetic that need not be done
// Evaluates what depends on constants only, with CPU kernels, up to |max_bytes| a result, and what
// can be evaluated with the shapes that are known then. Sweeps, and leaves the shapes inferred.
RN_MUST_USE rn_status_t rn_pass_fold_constants(rn_ir_t* ir, rn_device_t* cpu, const rn_env_t* env,
                                               int64_t max_bytes);
// After placement: elementwise nodes over one shape become one node where nothing else needs what
// is between them.
RN_MUST_USE rn_status_t rn_pass_fuse_elementwise(rn_ir_t* ir);
// After placement: sums of matrix products, and gradient descent by them, become one node each.
RN_MUST_USE rn_status_t rn_pass_sum_matmuls(rn_ir_t* ir);
// After the sums: those that loops add products to take several products at a time.
RN_MUST_USE rn_status_t rn_pass_sum_loop_matmuls(rn_ir_t* ir);
// After placement, before packing: products of which columns are read are made part by part.
RN_MUST_USE rn_status_t rn_pass_slice_matmul_columns(rn_ir_t* ir);
// After placement, before packing: of products of an input beside a state, the input's part is made
// for all steps at once.
RN_MUST_USE rn_status_t rn_pass_hoist_rnn_inputs(rn_ir_t* ir);
// After placement and the sums: matrices that several products multiply by are packed once.
RN_MUST_USE rn_status_t rn_pass_pack_matmul_weights(rn_ir_t* ir);
// After placement, before fusion: convolutions and what follows them become one node each.
RN_MUST_USE rn_status_t rn_pass_fuse_conv(rn_ir_t* ir);
// For tools, not for steps, because it changes rounding: where a convolution or matrix product by a
// constant is followed by multiplications and additions of constants, one a channel, or by a batch
// normalisation with fixed statistics, the factors go into the constant and one BiasAdd is left.
RN_MUST_USE rn_status_t rn_pass_fold_batch_norms(rn_ir_t* ir);
// What is known of the results of the function or functions that |node|, a call, conditional or
// choice, may call with inputs of these shapes; merged into |shapes|, one for each output. Says
// nothing of what it cannot find out. |shapes| are in the IR's arena.
RN_MUST_USE rn_status_t rn_ir_infer_call(rn_ir_t* ir, const rn_ir_node_t* node,
                                         const rn_shape_t* inputs, rn_shape_t* shapes);
// Runs shape inference over the IR again with what feeds and constants tell now.
RN_MUST_USE rn_status_t rn_pass_infer_shapes(rn_ir_t* ir);
// Says what is known of the shapes that are fed, one for each feed, and runs shape inference again;
// NULL: nothing is known.
// Where that is not what the graph says of a feed, or less, what the graph says of all that comes
// after it is forgotten first: it rests on a shape that may not be fed.
RN_MUST_USE rn_status_t rn_ir_set_feed_shapes(rn_ir_t* ir, const rn_shape_t* shapes);
// Forgets the shapes of what is computed from the marked nodes (by node), marks these as well, and
// infers all again.
RN_MUST_USE rn_status_t rn_ir_forget_shapes(rn_ir_t* ir, bool* inout_is_open);
// Whether |shape| says all that |other| says: whoever plans for |other| may be given |shape|.
bool rn_ir_shape_implies(rn_shape_t shape, rn_shape_t other);

#endif  // RUNNEL_STEP_IR_H_

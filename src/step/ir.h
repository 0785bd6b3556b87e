// The graph of one step: what is left after pruning, in a form that passes can change.
//
// rn_ir_create builds it from a graph and a step's feeds, fetches and targets. Passes (step/,
// place/) then change it one after the other, and exec compiles it into plans. Nodes are numbered;
// a pass removes a node by setting |is_removed| and redirects edges by overwriting them. Everything
// lives in the IR's arena or is borrowed from the graph, whose nodes never go away. One thread at a
// time.
#ifndef RUNNEL_STEP_IR_H_
#define RUNNEL_STEP_IR_H_

#include "base/assert.h"
#include "framework/kernel.h"
#include "graph/graph.h"

typedef struct rn_ir_edge_t {
  int32_t node;  // index into nodes; -1 for none
  int32_t output;
} rn_ir_edge_t;

typedef struct rn_ir_node_t {
  const rn_op_def_t* op;
  rn_str_t name;  // of the graph's node; passes name the nodes they add
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
  rn_shape_t* shapes;           // of the outputs; may be partly unknown
  const rn_tensor_t* constant;  // value of output 0 if known before the step, else NULL; Borrowed
                                // from the graph or from |owned|
  int32_t feed;                 // >= 0: this node is feed number |feed| and has one output
  bool is_removed;
  bool
      is_reshaped;  // a variable to which the graph assigns values of other shapes than it declares
} rn_ir_node_t;

typedef struct rn_ir_t {
  rn_graph_t* graph;  // Borrowed; its library holds the functions
  rn_arena_t arena;
  rn_allocator_t allocator;
  RN_VEC(rn_ir_node_t) nodes;
  int32_t fetch_count;
  rn_ir_edge_t* fetches;  // one per fetch of the step
  int32_t feed_count;
  rn_str_t* feed_names;  // by feed: see rn_ir_source_name
  int32_t target_count;
  int32_t* targets;  // nodes that must run; a pass that removes a target must keep its side effects
  RN_VEC(rn_tensor_t)
  owned;               // values of constants that passes made; released with the IR
  int32_t producer;    // GraphDef version
  int32_t call_depth;  // for a function body whose shapes are being inferred: the nesting depth of
                       // the call
} rn_ir_t;

// Feeds, fetches and targets of a step. Borrowed for the call.
typedef struct rn_signature_t {
  const rn_edge_t* feeds;
  int32_t feed_count;
  const rn_edge_t* fetches;
  int32_t fetch_count;
  rn_node_t* const* targets;
  int32_t target_count;
  rn_node_t* const* done;  // nodes that have run already; control edges from them are dropped
  int32_t done_count;
  int32_t call_depth;  // see rn_ir_t
} rn_signature_t;

// Orders edges by their names, "node:output", bytewise: the order in which TensorFlow numbers
// feeds.
int rn_edge_compare(rn_edge_t a, rn_edge_t b);
// Copies a signature into |arena|.
RN_MUST_USE rn_status_t rn_signature_copy(rn_arena_t* arena, const rn_signature_t* from,
                                          rn_signature_t* out);
// Whether both have the same feeds, fetches and targets in the same order.
bool rn_signature_eq(const rn_signature_t* a, const rn_signature_t* b);

// Prunes |graph| to what the step needs (step/prune.c): walks back from fetches and targets and
// stops at feeds, which become nodes with |feed| set. Fetching or feeding an output that does not
// exist, or feeding one twice, is an error that names the edge. A placeholder without a feed is not
// an error here; its kernel fails when it runs.
RN_MUST_USE rn_status_t rn_ir_create(rn_graph_t* graph, const rn_signature_t* signature,
                                     rn_ir_t** out_ir);
void rn_ir_destroy(rn_ir_t* ir);
// Fails unless |edge| is an output of |graph|; the message calls the edge a |what|.
RN_MUST_USE rn_status_t rn_ir_check_edge(const rn_graph_t* graph, rn_edge_t edge, const char* what);

// The name of a node in messages and statistics. A feed is called "_arg_NODE_OUTPUT_NUMBER", like
// the node that TensorFlow puts in its place; feeds are numbered in the order of their names.
static inline rn_str_t rn_ir_source_name(const rn_ir_t* ir, const rn_ir_node_t* node) {
  return node->feed >= 0 ? ir->feed_names[node->feed] : node->name;
}

// Appends the label of a node in timelines: "name = Op(input, input:1, ^control)".
void rn_ir_label(const rn_ir_t* ir, const rn_ir_node_t* node, rn_strbuf_t* out);

// Appends a copy of |prototype|, whose arrays must be in the IR's arena. Invalidates pointers to
// nodes.
RN_MUST_USE rn_status_t rn_ir_add(rn_ir_t* ir, const rn_ir_node_t* prototype, int32_t* out_index);
// Redirects every use of |from| (inputs and fetches) to |to|.
void rn_ir_replace_edge(rn_ir_t* ir, rn_ir_edge_t from, rn_ir_edge_t to);
// Adds a control edge from |control| to |node|.
RN_MUST_USE rn_status_t rn_ir_add_control(rn_ir_t* ir, int32_t node, int32_t control);
// The remaining nodes in topological order, ignoring edges from NextIteration into Merge; a Send
// comes right after what it sends.
// INVALID_ARGUMENT for a cycle, naming nodes. |*out_order| is in the IR's arena.
RN_MUST_USE rn_status_t rn_ir_order(rn_ir_t* ir, int32_t** out_order, int32_t* out_count);
// Marks (by node) every node that a marked node reaches over data or control edges.
RN_MUST_USE rn_status_t rn_ir_spread(rn_ir_t* ir, bool* inout_is_marked);
// Removes nodes that no fetch, target or side effect needs.
RN_MUST_USE rn_status_t rn_ir_sweep(rn_ir_t* ir);

// Node number |index|; valid until a node is added.
static inline rn_ir_node_t* rn_ir_node(const rn_ir_t* ir, int32_t index) {
  RN_ASSERT(index >= 0 && (size_t)index < ir->nodes.count);
  return &ir->nodes.items[index];
}
// The edges into a node, data inputs before control inputs: their number, and the node that edge
// |k| comes from.
static inline int32_t rn_ir_edge_count(const rn_ir_node_t* node) {
  return node->input_count + node->control_count;
}
static inline int32_t rn_ir_source(const rn_ir_node_t* node, int32_t k) {
  RN_ASSERT(k >= 0 && k < rn_ir_edge_count(node));
  return k < node->input_count ? node->inputs[k].node : node->controls[k - node->input_count];
}
// Whether the node is computed by an op of |role|, or by the op |name|. A feed is computed by none.
static inline bool rn_ir_is_role(const rn_ir_node_t* node, rn_op_role_t role) {
  return node->feed < 0 && node->op->role == role;
}
static inline bool rn_ir_is_op(const rn_ir_node_t* node, const char* name) {
  return node->feed < 0 && strcmp(node->op->name, name) == 0;
}
// Whether input |i| of |node| is the back edge of a loop (invariant 17).
static inline bool rn_ir_is_back_edge(const rn_ir_t* ir, const rn_ir_node_t* node, int32_t i) {
  int32_t source = node->inputs[i].node;
  return node->op->role == RN_ROLE_MERGE && source >= 0 &&
         rn_ir_is_role(rn_ir_node(ir, source), RN_ROLE_NEXT_ITERATION);
}
// Whether the executor runs ops of |role| itself: conditionals, loops and ControlTrigger.
static inline bool rn_ir_is_control_flow(uint8_t role) {
  return role >= RN_ROLE_SWITCH && role <= RN_ROLE_CONTROL_TRIGGER;
}
// The value of attribute |name|, whether the op defines it or not; NULL if the node has none.
const rn_attr_value_t* rn_ir_attr(const rn_ir_node_t* node, rn_str_t name);
// Whether the node has the boolean attribute |name| with value true.
static inline bool rn_ir_flag(const rn_ir_node_t* node, const char* name) {
  const rn_attr_value_t* value = rn_ir_attr(node, rn_str(name));
  return value && value->b;
}

// Whether |edge| always is one float, half or bfloat16, which |*out| gets.
bool rn_ir_number(const rn_ir_t* ir, rn_ir_edge_t edge, double* out);
// The axis of a matrix, 0 or 1, that the constant |edge| holds; -1 if it is not constant or not an
// axis.
int rn_ir_matrix_axis(const rn_ir_t* ir, rn_ir_edge_t edge);

// How a node is used.
typedef struct rn_ir_uses_t {
  int32_t reads;    // number of inputs that read one of its outputs
  int32_t fetches;  // number of fetches that read one
  int32_t waits;    // number of control edges from it, plus one if it is a target
  int32_t reader;   // the last node that reads it; -1 if none
} rn_ir_uses_t;
// Counts the uses of every node; |*out_uses|, by node, is in the IR's arena.
RN_MUST_USE rn_status_t rn_ir_count_uses(rn_ir_t* ir, rn_ir_uses_t** out_uses);
static inline int32_t rn_ir_use_count(const rn_ir_uses_t* uses) {
  return uses->reads + uses->fetches + uses->waits;
}
// The reader of a node that is used exactly once, by an input; -1 otherwise.
static inline int32_t rn_ir_only_reader(const rn_ir_uses_t* uses) {
  return uses->reads == 1 && uses->fetches + uses->waits == 0 ? uses->reader : -1;
}

// The input whose elements the output repeats (broadcasts, tiles or reshapes); -1 if none.
int rn_ir_repeated_input(const rn_ir_node_t* node);
// Whether the node is a binary elementwise op, either input of which may be a scalar.
bool rn_ir_takes_numbers(const rn_ir_node_t* node);

// Whether the node only reads a variable.
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

// Whether the node is a PlaceholderWithDefault, whose value a client may override by a feed.
static inline bool rn_ir_is_default(const rn_ir_node_t* node) {
  return strcmp(node->op->name, "PlaceholderWithDefault") == 0;
}
// Whether the node is an Enter of a loop invariant, without control inputs.
bool rn_ir_is_constant_enter(const rn_ir_node_t* node);
// Whether a node of |role| is left.
bool rn_ir_has_role(const rn_ir_t* ir, rn_op_role_t role);
// After placement: whether a device other than the host computes a part.
bool rn_ir_uses_accelerator(const rn_ir_t* ir);
// Whether conditionals or loops are left.
static inline bool rn_ir_has_flow(const rn_ir_t* ir) {
  return rn_ir_has_role(ir, RN_ROLE_ENTER) || rn_ir_has_role(ir, RN_ROLE_SWITCH) ||
         rn_ir_has_role(ir, RN_ROLE_MERGE);
}

// Whether nodes without a path between them may become one node. Not if some of them may not run,
// nor in a part of a step that receives values: those may depend on what it sends, and the path
// between is in another part.
static inline bool rn_ir_may_merge(const rn_ir_t* ir) {
  return !rn_ir_has_flow(ir) && !rn_ir_has_role(ir, RN_ROLE_RECV);
}

// Passes. Each preserves what the step computes.

// When functional conditionals and loops are lowered.
typedef enum rn_lowering_t {
  RN_LOWER_WHERE_ASKED = 0,  // where the attribute "_lower_using_switch_merge" asks for it
  RN_LOWER_ALWAYS,           // wherever possible
  RN_LOWER_NEVER,
} rn_lowering_t;
typedef struct rn_calls_options_t {
  bool keeps_calls;  // calls are not inlined; they run as calls
  rn_lowering_t lowering;
  bool prunes_branches;  // prune branches and bodies that the attribute asks to lower
} rn_calls_options_t;
// Replaces calls by function bodies (step/inline_calls.c), and functional conditionals and loops by
// Switch, Merge and the other control-flow ops (step/lower_control_flow.c). Nodes of a body get
// names "call/node" and run on the call's device unless they name one. Stateful nodes run whether
// or not their values are used, and nodes that waited for the call wait for them. Recursive calls,
// functions marked "_noinline" and calls that would make the graph too large stay calls. Composite
// nodes become the ops that they stand for (step/expand_composites.c).
//
// TensorFlow's sessions prune a step after lowering conditionals and loops, so unused assignments
// in a branch do not run. |prunes_branches| has the same effect: a branch or body runs only what
// its used results and its control results need.
RN_MUST_USE rn_status_t rn_pass_inline_calls(rn_ir_t* ir, const rn_calls_options_t* options);
// Reads variables that a loop only reads before the loop. Leaves Identity nodes, which a later pass
// removes.
RN_MUST_USE rn_status_t rn_pass_hoist_variable_reads(rn_ir_t* ir);
// Drops control edges into pure nodes unless they order a side effect that no data input already
// orders, then removes what became dead.
RN_MUST_USE rn_status_t rn_pass_drop_control_edges(rn_ir_t* ir);
RN_MUST_USE rn_status_t rn_pass_merge_equal_nodes(rn_ir_t* ir);  // common subexpression elimination
RN_MUST_USE rn_status_t
rn_pass_simplify(rn_ir_t* ir);  // removes Identity nodes and arithmetic without effect
// Evaluates nodes that depend on constants or known shapes only, with CPU kernels, if no result
// exceeds |max_bytes|. Kernels run on |pool|; NULL: in this thread alone. Sweeps, and leaves the
// shapes inferred.
RN_MUST_USE rn_status_t rn_pass_fold_constants(rn_ir_t* ir, rn_device_t* cpu, const rn_env_t* env,
                                               rn_pool_t* pool, int64_t max_bytes);
// After placement: fuses elementwise nodes over one shape whose intermediate results nothing else
// needs.
RN_MUST_USE rn_status_t rn_pass_fuse_elementwise(rn_ir_t* ir);
// After placement: the same for devices other than the host, where operands may broadcast.
RN_MUST_USE rn_status_t rn_pass_fuse_loops(rn_ir_t* ir);
// After placement: turns each sum of matmuls, and each gradient descent by one, into a single node.
RN_MUST_USE rn_status_t rn_pass_sum_matmuls(rn_ir_t* ir);
// After sum_matmuls: lets sums that a loop accumulates add several matmuls at a time.
RN_MUST_USE rn_status_t rn_pass_sum_loop_matmuls(rn_ir_t* ir);
// After placement, before packing: replaces column slices of a matmul by smaller matmuls.
RN_MUST_USE rn_status_t rn_pass_slice_matmul_columns(rn_ir_t* ir);
// After placement, before packing: for matmuls of [input, state] in an unrolled RNN, computes the
// input's part of all time steps in one matmul.
RN_MUST_USE rn_status_t rn_pass_hoist_rnn_inputs(rn_ir_t* ir);
// After placement, before packing: the same for an RNN whose time steps are the iterations of a
// loop.
RN_MUST_USE rn_status_t rn_pass_hoist_loop_inputs(rn_ir_t* ir);
// After placement and sum_matmuls: packs matrices once that are the right operand of several
// matmuls, or of one in a loop.
RN_MUST_USE rn_status_t rn_pass_pack_matmul_weights(rn_ir_t* ir);
// After placement: computes quantized convolutions and matmuls of the CPU with 8-bit integers.
// Sweeps.
RN_MUST_USE rn_status_t rn_pass_fuse_levels(rn_ir_t* ir);
// Splits batch norms of devices that compile loops, and on the host those with given statistics
// behind convolutions, into statistics and elementwise nodes.
RN_MUST_USE rn_status_t rn_pass_split_batch_norms(rn_ir_t* ir);
// After placement, before fuse_loops: the same for cross entropies of classes. Sweeps.
RN_MUST_USE rn_status_t rn_pass_split_losses(rn_ir_t* ir);
// After placement, before fuse_loops: updates rows of variables on a device other than the host
// without counting the distinct ones. Infers shapes.
RN_MUST_USE rn_status_t rn_pass_spread_unique(rn_ir_t* ir);
// After mixed_precision, before fuse_conv: casts weights to bfloat16 once, if the step changes no
// variable. Sweeps.
RN_MUST_USE rn_status_t rn_pass_keep_weights(rn_ir_t* ir);
// After placement, before elementwise fusion: fuses each convolution with the elementwise nodes
// that follow it.
RN_MUST_USE rn_status_t rn_pass_fuse_conv(rn_ir_t* ir);
// After fuse_conv: brings the filters of a GPU's convolutions into its order by one node.
RN_MUST_USE rn_status_t rn_pass_turn_filters(rn_ir_t* ir);
// After fuse_attention: replaces Unpacks on a device other than the host by views.
RN_MUST_USE rn_status_t rn_pass_view_parts(rn_ir_t* ir);
// After fuse_attention, before fuse_loops: multiplies matmuls of a device other than the host by
// numbers where they are computed.
RN_MUST_USE rn_status_t rn_pass_scale_matmuls(rn_ir_t* ir);
// After placement, before fuse_matmul: turns each attention of a device other than the host into
// one node, and its gradients into one.
RN_MUST_USE rn_status_t rn_pass_fuse_attention(rn_ir_t* ir);
// After placement, before fuse_loops: fuses each matmul of a device other than the host with the
// bias, the addition and the ReLU that follow it.
RN_MUST_USE rn_status_t rn_pass_fuse_matmul(rn_ir_t* ir);
// After fuse_loops: turns Casts of variables on a GPU into one node for many.
RN_MUST_USE rn_status_t rn_pass_group_casts(rn_ir_t* ir);
// After placement: groups the updates of an optimizer on a device other than the host.
RN_MUST_USE rn_status_t rn_pass_group_updates(rn_ir_t* ir);
// For tools only, because it changes rounding: where a convolution or matmul by a constant is
// followed by per-channel multiplications and additions of constants, or by a batch normalisation
// with fixed statistics, folds the factors into the constant and leaves one BiasAdd.
RN_MUST_USE rn_status_t rn_pass_fold_batch_norms(rn_ir_t* ir);
// Infers the output shapes of |node|, a call, If or Case, from the functions it may call with
// inputs of these shapes. Merges what it finds into |shapes|, one per output, in the IR's arena;
// leaves the others alone.
RN_MUST_USE rn_status_t rn_ir_infer_call(rn_ir_t* ir, const rn_ir_node_t* node,
                                         const rn_shape_t* inputs, rn_shape_t* shapes);
// Makes a context for |node|'s shape function, with shapes, types and constant values of the
// inputs; nothing is known of partial values and handles. |arrays|, in |arena|, are those of the
// context.
RN_MUST_USE rn_status_t rn_ir_shape_ctx(const rn_ir_t* ir, const rn_ir_node_t* node,
                                        rn_arena_t* arena, rn_shape_arrays_t* arrays,
                                        rn_shape_ctx_t* out);
// Runs shape inference over the IR again with the current feeds and constants.
RN_MUST_USE rn_status_t rn_pass_infer_shapes(rn_ir_t* ir);
// Sets the shapes of the feeds, one per feed (NULL if none is known), and runs shape inference
// again. Where a feed's shape contradicts the graph's or is less specific, first forgets the shapes
// of everything computed from that feed, because they rest on a shape that may not be fed.
RN_MUST_USE rn_status_t rn_ir_set_feed_shapes(rn_ir_t* ir, const rn_shape_t* shapes);
// Forgets the shapes of all nodes computed from the marked ones (by node), marks those nodes too,
// and runs shape inference again.
RN_MUST_USE rn_status_t rn_ir_forget_shapes(rn_ir_t* ir, bool* inout_is_open);
// The most specific shape that covers both; its dims are in |arena|.
RN_MUST_USE rn_status_t rn_ir_common_shape(rn_arena_t* arena, rn_shape_t a, rn_shape_t b,
                                           rn_shape_t* out);
// Whether |shape| is at least as specific as |other|: a plan made for |other| accepts |shape|.
bool rn_ir_shape_implies(rn_shape_t shape, rn_shape_t other);

#endif  // RUNNEL_STEP_IR_H_

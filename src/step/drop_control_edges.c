// Removes control edges that order nothing observable.
//
// Clients tie gradients together in groups: each waits, through a NoOp, for all the others, and is
// passed on by an Identity. Waiting for a pure node is the same as waiting for its *roots*: the
// nearest nodes before it that have side effects or that decide which values are dead. A pure node
// need not wait itself if its *sinks* do: the nearest nodes after it that have side effects, that
// the client fetches, or that feed a Merge, which distinguishes dead values. And a node need not
// wait again for what one of its inputs has waited for. This removes most control edges of a
// training step, and then the nodes that only those edges kept alive.
//
// Control edges into nodes with side effects stay, and so do those into NoOps, since a side effect
// or a client may wait for the NoOp.
#include "framework/internal_ops.h"
#include "step/ir.h"

// Limit on the bytes of all sets together; the pass leaves larger graphs unchanged.
#define MAX_SET_BYTES ((size_t)64 << 20)
// The most control edges that may replace those of one node.
#define MAX_NEW 64

typedef struct controls_t {
  rn_ir_t* ir;
  bool* is_pure;  // by node: has neither state nor side effects
  bool* is_view;  // by node: its output may alias the memory of a reference variable
  bool* is_sink;  // by node: keeps control edges of its own
  int32_t* bit;   // by node: its number among the roots; -1 if it is not a root
  int32_t* root;  // by number: the node
  size_t root_count;
  size_t words;       // of a set
  uint64_t* nearest;  // by node, a set: its roots, or itself if it is one
  uint64_t* before;   // by node, a set: all roots that have run, and are alive, when it is
  uint64_t* owed;     // by node, a set: roots that its sinks must wait for in its place
  int32_t** changed;  // by node: its new control inputs
  int32_t* changed_count;
} controls_t;

// Nodes whose only purpose is to fail; others wait for them for that reason.
static bool is_check(const rn_op_def_t* op) {
  static const char* const checks[] = {"CheckNumerics", "CheckNumericsV2", "EnsureShape"};
  for (size_t i = 0; i < sizeof checks / sizeof *checks; ++i)
    if (strcmp(op->name, checks[i]) == 0) return true;
  return false;
}

// A node with a reference input reads a variable, whatever its op.
static bool is_pure(const rn_ir_t* ir, const rn_ir_node_t* node) {
  int role = node->op->role;
  if (node->feed >= 0 || node->op->flags & RN_OP_STATEFUL || is_check(node->op) ||
      (role != RN_ROLE_PLAIN && role != RN_ROLE_IDENTITY && role != RN_ROLE_NO_OP &&
       role != RN_ROLE_CONSTANT))
    return false;
  for (int32_t i = 0; i < node->input_count; ++i) {
    rn_ir_edge_t edge = node->inputs[i];
    if (rn_dtype_is_ref(ir->nodes.items[edge.node].types[edge.output])) return false;
  }
  for (int32_t o = 0; o < node->output_count; ++o)
    if (rn_dtype_is_ref(node->types[o])) return false;
  return true;
}

// Whether a node's output may alias the memory of a reference variable, which writers change in
// place: a read of one, or a node that passes a read on.
static bool is_view(const controls_t* c, const rn_ir_node_t* node) {
  static const char* const passing[] = {"Bitcast", "ExpandDims", "Reshape", "Split",
                                        "SplitV",  "Squeeze",    "Unpack"};
  bool passes = node->op->role != RN_ROLE_PLAIN;
  for (size_t i = 0; !passes && i < sizeof passing / sizeof *passing; ++i)
    passes = strcmp(node->op->name, passing[i]) == 0;
  for (int32_t i = 0; passes && node->feed < 0 && i < node->input_count; ++i) {
    rn_ir_edge_t edge = node->inputs[i];
    const rn_ir_node_t* source = &c->ir->nodes.items[edge.node];
    if (c->is_view[edge.node] || rn_dtype_is_ref(source->types[edge.output])) return true;
  }
  return false;
}

// A node that reads such memory must finish before the memory changes, as if it read the variable
// itself.
static bool reads_view(const controls_t* c, const rn_ir_node_t* node) {
  for (int32_t i = 0; i < node->input_count; ++i)
    if (c->is_view[node->inputs[i].node]) return true;
  return false;
}

// Each output of a Switch is dead or alive on its own; only its readers can tell which.
static bool reads_switch(const rn_ir_t* ir, const rn_ir_node_t* node) {
  for (int32_t i = 0; i < node->input_count; ++i) {
    const rn_ir_node_t* source = &ir->nodes.items[node->inputs[i].node];
    if (rn_ir_is_role(source, RN_ROLE_SWITCH)) return true;
  }
  return false;
}

// Available from the start and never dead: no node has to wait for it.
static bool is_given(const rn_ir_node_t* node) {
  return node->input_count == 0 && node->control_count == 0 &&
         (node->feed >= 0 || node->op->role == RN_ROLE_VARIABLE ||
          node->op->role == RN_ROLE_CONSTANT || node->op->role == RN_ROLE_NO_OP);
}

// A Merge does not wait for all its inputs, and a ControlTrigger runs even if they are dead.
static bool waits_for_all(const rn_ir_node_t* node) {
  return node->op->role != RN_ROLE_MERGE && node->op->role != RN_ROLE_CONTROL_TRIGGER;
}

static uint64_t* set_of(uint64_t* sets, const controls_t* c, int32_t node) {
  return sets + (size_t)node * c->words;
}
static bool has(const uint64_t* set, int32_t number) {
  return set[number / 64] >> (number % 64) & 1;
}
static void put(uint64_t* set, int32_t number) { set[number / 64] |= UINT64_C(1) << (number % 64); }
static void add_set(const controls_t* c, uint64_t* to, const uint64_t* from) {
  for (size_t w = 0; w < c->words; ++w) to[w] |= from[w];
}

static rn_status_t sort_nodes(controls_t* c, const int32_t* order, int32_t count) {
  rn_ir_t* ir = c->ir;
  size_t n = ir->nodes.count + 1;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n, &c->is_pure));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n, &c->is_view));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n, &c->is_sink));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n, &c->bit));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n, &c->root));
  for (int32_t i = 0; i < count; ++i) {
    const rn_ir_node_t* node = &ir->nodes.items[order[i]];
    bool pure = is_pure(ir, node) && !reads_view(c, node);
    c->is_view[order[i]] = is_view(c, node);
    bool is_root = !is_given(node) && (!pure || reads_switch(ir, node));
    c->is_pure[order[i]] = pure;
    c->bit[order[i]] = is_root ? (int32_t)c->root_count : -1;
    if (is_root) c->root[c->root_count++] = order[i];
    // A node without inputs belongs to a loop or a branch through its control inputs.
    c->is_sink[order[i]] |= is_root || node->input_count == 0 || node->output_count == 0;
    for (int32_t k = 0; !waits_for_all(node) && k < rn_ir_edge_count(node); ++k)
      c->is_sink[rn_ir_source(node, k)] = true;
  }
  for (int32_t i = 0; i < ir->fetch_count; ++i)
    if (ir->fetches[i].node >= 0) c->is_sink[ir->fetches[i].node] = true;
  for (int32_t i = 0; i < ir->target_count; ++i) c->is_sink[ir->targets[i]] = true;
  c->words = (c->root_count + 63) / 64;
  return RN_OK;
}

// Gives |node| control edges from the roots in |wanted| that are not in |before|, in addition to
// its own if it |keeps| them. False if there are too many.
static rn_status_t give_edges(controls_t* c, int32_t index, const uint64_t* wanted,
                              uint64_t* before, bool keeps, bool* out_fits) {
  rn_ir_t* ir = c->ir;
  const rn_ir_node_t* node = &ir->nodes.items[index];
  int32_t found[MAX_NEW], count = 0;
  *out_fits = false;
  for (size_t r = 0; r < c->root_count; ++r) {
    if (!has(wanted, (int32_t)r) || has(before, (int32_t)r)) continue;
    if (count == MAX_NEW) return RN_OK;
    found[count++] = (int32_t)r;
  }
  *out_fits = true;
  int32_t* controls = NULL;
  int32_t kept = keeps ? node->control_count : 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)(kept + count), &controls));
  for (int32_t i = 0; i < kept; ++i) controls[i] = node->controls[i];
  for (int32_t i = 0; i < count; ++i) {
    bool is_implied = false;  // if one root waits for another, the later one suffices
    for (int32_t k = 0; k < count && !is_implied; ++k)
      is_implied = i != k && has(set_of(c->before, c, c->root[found[k]]), found[i]);
    if (!is_implied) controls[kept++] = c->root[found[i]];
  }
  for (int32_t i = 0; i < count; ++i) add_set(c, before, set_of(c->before, c, c->root[found[i]]));
  c->changed[index] = controls;
  c->changed_count[index] = kept;
  return RN_OK;
}

// Computes the sets of one node from those of its predecessors.
static rn_status_t settle(controls_t* c, int32_t index, uint64_t* wanted, bool* out_fits) {
  const rn_ir_node_t* node = &c->ir->nodes.items[index];
  uint64_t *nearest = set_of(c->nearest, c, index), *before = set_of(c->before, c, index);
  bool is_root = c->bit[index] >= 0;
  bool keeps = !c->is_pure[index] || node->output_count == 0;
  *out_fits = true;
  memset(wanted, 0, c->words * sizeof *wanted);
  for (int32_t k = 0; waits_for_all(node) && k < rn_ir_edge_count(node); ++k) {
    int32_t source = rn_ir_source(node, k);
    bool is_control = k >= node->input_count;
    if (!is_root) add_set(c, nearest, set_of(c->nearest, c, source));
    if (!is_control || keeps) {
      add_set(c, before, set_of(c->before, c, source));
      add_set(c, wanted, set_of(c->owed, c, source));
    } else {
      add_set(c, wanted, set_of(c->nearest, c, source));
    }
  }
  if (!waits_for_all(node)) {
    c->changed[index] = node->controls;
    c->changed_count[index] = node->control_count;
  } else if (c->is_sink[index]) {
    RN_RETURN_IF_ERROR(give_edges(c, index, wanted, before, keeps, out_fits));
  } else {
    uint64_t* owed = set_of(c->owed, c, index);
    for (size_t w = 0; w < c->words; ++w) owed[w] = wanted[w] & ~before[w];
  }
  if (is_root) {
    put(nearest, c->bit[index]);
    put(before, c->bit[index]);
  }
  return RN_OK;
}

// Removes variable reads whose value is unused. Such a read orders nothing, but the nodes that
// waited for it must still wait for what it waited for.
static rn_status_t drop_reads(rn_ir_t* ir, const int32_t* order, int32_t count) {
  bool* is_idle = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, ir->nodes.count + 1, &is_idle));
  for (int32_t i = 0; i < count; ++i) {
    const rn_ir_node_t* node = &ir->nodes.items[order[i]];
    bool idle = !node->is_removed && rn_ir_is_read(node);
    for (int32_t k = 0; idle && k < node->input_count; ++k)
      idle = is_given(&ir->nodes.items[node->inputs[k].node]);
    is_idle[order[i]] = idle;
  }
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &ir->nodes.items[n];
    for (int32_t k = 0; !node->is_removed && k < node->input_count; ++k)
      is_idle[node->inputs[k].node] = false;
  }
  for (int32_t i = 0; i < ir->fetch_count; ++i)
    if (ir->fetches[i].node >= 0) is_idle[ir->fetches[i].node] = false;
  for (int32_t i = 0; i < ir->target_count; ++i) is_idle[ir->targets[i]] = false;
  for (int32_t i = 0; i < count; ++i) {
    rn_ir_node_t* node = &ir->nodes.items[order[i]];
    const int32_t* controls = node->controls;
    int32_t control_count = node->control_count;
    bool waits = false;
    for (int32_t k = 0; k < control_count; ++k) waits |= is_idle[controls[k]];
    if (node->is_removed || !waits) continue;
    node->controls = NULL;
    node->control_count = 0;
    for (int32_t k = 0; k < control_count; ++k) {
      const rn_ir_node_t* source = &ir->nodes.items[controls[k]];
      bool idle = is_idle[controls[k]];
      for (int32_t j = 0; j < (idle ? source->control_count : 1); ++j)
        RN_RETURN_IF_ERROR(
            rn_ir_add_control(ir, order[i], idle ? source->controls[j] : controls[k]));
    }
  }
  return rn_ir_sweep(ir);
}

// Whether the pass could change anything: some pure node has a control input.
static bool is_needed(const rn_ir_t* ir) {
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &ir->nodes.items[n];
    if (node->is_removed || node->control_count == 0 || !is_pure(ir, node)) continue;
    if (node->input_count > 0) return true;
    for (int32_t k = 0; k < node->control_count; ++k) {
      const rn_ir_node_t* source = &ir->nodes.items[node->controls[k]];
      if (is_pure(ir, source) && !reads_switch(ir, source)) return true;
    }
  }
  return false;
}

rn_status_t rn_pass_drop_control_edges(rn_ir_t* ir) {
  controls_t c = {.ir = ir};
  int32_t *order = NULL, count = 0;
  if (!is_needed(ir)) return RN_OK;
  RN_RETURN_IF_ERROR(rn_ir_order(ir, &order, &count));
  RN_RETURN_IF_ERROR(sort_nodes(&c, order, count));
  size_t n = ir->nodes.count + 1;
  if (c.words > MAX_SET_BYTES / sizeof(uint64_t) / 3 / n) return RN_OK;
  uint64_t* wanted = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n * c.words, &c.nearest));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n * c.words, &c.before));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n * c.words, &c.owed));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n, &c.changed));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n, &c.changed_count));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, c.words + 1, &wanted));
  for (int32_t i = 0; i < count; ++i) {
    bool fits;
    RN_RETURN_IF_ERROR(settle(&c, order[i], wanted, &fits));
    if (!fits) return RN_OK;
  }
  for (int32_t i = 0; i < count; ++i) {
    rn_ir_node_t* node = &ir->nodes.items[order[i]];
    node->controls = c.changed[order[i]];
    node->control_count = c.changed_count[order[i]];
  }
  RN_RETURN_IF_ERROR(rn_ir_sweep(ir));
  return drop_reads(ir, order, count);
}

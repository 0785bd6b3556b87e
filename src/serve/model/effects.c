// See effects.h.
#include "serve/model/effects.h"

#include "step/make.h"

// Stateful ops, and ops on resources, that change nothing and whose results follow from their
// inputs and from the state that they read.
static const char* const readers[] = {
    "Assert",
    "DisableCopyOnRead",
    "HashTable",
    "HashTableV2",
    "LookupTableFind",
    "LookupTableFindV2",
    "LookupTableSize",
    "LookupTableSizeV2",
    "ReadVariableOp",
    "ResourceGather",
    "ResourceGatherNd",
    "VarHandleOp",
    "VarIsInitializedOp",
    "Variable",
    "VariableShape",
    "VariableV2",
};

static bool is_reader(const rn_ir_node_t* node) {
  for (size_t i = 0; i < sizeof readers / sizeof *readers; ++i)
    if (rn_ir_is_op(node, readers[i])) return true;
  return false;
}

// Whether the node passes handles and references on, untouched.
static bool passes_on(const rn_ir_node_t* node) {
  return rn_ir_is_control_flow(node->op->role) || node->op->role == RN_ROLE_IDENTITY ||
         node->op->role == RN_ROLE_NO_OP || rn_ir_is_op(node, "IdentityN");
}

static bool takes_state(const rn_ir_t* ir, const rn_ir_node_t* node) {
  for (int32_t i = 0; i < node->input_count; ++i) {
    rn_ir_edge_t input = node->inputs[i];
    rn_dtype_t type = rn_ir_node(ir, input.node)->types[input.output];
    if (rn_dtype_base(type) == RN_RESOURCE) return true;
    if (rn_dtype_is_ref(type) && rn_ir_wants_ref(node, i)) return true;
  }
  return false;
}

static bool calls_function(const rn_ir_node_t* node) {
  for (int a = 0; a < node->op->attr_count; ++a)
    if (node->op->attrs[a].kind == RN_ATTR_FUNC) return true;
  return node->op->role == RN_ROLE_FUNCTION;
}

static rn_effects_t effects_of(const rn_ir_t* ir, const rn_ir_node_t* node) {
  if (node->is_removed || node->feed >= 0 || passes_on(node) || is_reader(node))
    return RN_EFFECTS_NONE;
  if (takes_state(ir, node)) return RN_EFFECTS_CHANGE;
  bool calls = calls_function(node);  // one that could not be inlined
  if (node->op->flags & RN_OP_STATEFUL) return calls ? RN_EFFECTS_CHANGE : RN_EFFECTS_OTHER;
  return calls ? RN_EFFECTS_OTHER : RN_EFFECTS_NONE;
}

static rn_status_t look(rn_ir_t* ir, rn_arena_t* arena, rn_effects_t* out, rn_str_t* out_node) {
  rn_calls_options_t calls = {.lowering = RN_LOWER_ALWAYS};
  RN_RETURN_IF_ERROR(rn_pass_inline_calls(ir, &calls));
  RN_RETURN_IF_ERROR(rn_ir_sweep(ir));
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &ir->nodes.items[n];
    rn_effects_t effects = effects_of(ir, node);
    if (effects <= *out) continue;
    *out = effects;
    if (out_node) RN_RETURN_IF_ERROR(rn_arena_str(arena, node->name, out_node));
  }
  return RN_OK;
}

rn_status_t rn_effects_of(rn_graph_t* graph, const rn_signature_t* signature, rn_arena_t* arena,
                          rn_effects_t* out, rn_str_t* out_node) {
  *out = RN_EFFECTS_NONE;
  if (out_node) *out_node = RN_STR("");
  rn_ir_t* ir = NULL;
  RN_RETURN_IF_ERROR(rn_ir_create(graph, signature, &ir));
  rn_status_t status = look(ir, arena, out, out_node);
  rn_ir_destroy(ir);
  return status;
}

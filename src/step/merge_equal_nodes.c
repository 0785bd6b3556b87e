// Common subexpression elimination: keeps one of several pure nodes with equal op, attributes and
// inputs. Also merges reads of a variable with equal control inputs: any write is ordered before
// both, after both, or not at all.
#include "step/ir.h"

// Constants larger than this are not compared.
#define MAX_COMPARED_BYTES 65536

typedef struct cse_t {
  rn_ir_t* ir;
  int32_t* same_as;  // by node: the node that replaces it; itself if none
  uint64_t* hash;    // by node
  int32_t* table;    // open addressing; -1 for empty
  size_t mask;
} cse_t;

static uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
  return hash ^ hash >> 29;
}

static uint64_t hash_attr(const rn_attr_value_t* value) {
  if (value->is_list) return (uint64_t)value->count;
  switch (value->kind) {
    case RN_ATTR_STRING:
      return rn_str_hash(value->s);
    case RN_ATTR_INT:
      return (uint64_t)value->i;
    case RN_ATTR_BOOL:
      return value->b;
    case RN_ATTR_TYPE:
      return (uint64_t)value->type;
    default:
      return 0;
  }
}

static uint64_t hash_constant(const rn_tensor_t* value) {
  uint64_t hash = mix(value->dtype, (uint64_t)value->count);
  if (!rn_dtype_is_plain(value->dtype)) return hash;
  return mix(hash, rn_str_hash(rn_str_n(value->data, rn_tensor_bytes(value))));
}

static bool is_small_constant(const rn_ir_node_t* node) {
  return node->constant && node->op->role == RN_ROLE_CONSTANT &&
         rn_dtype_is_plain(node->constant->dtype) &&
         rn_tensor_bytes(node->constant) <= MAX_COMPARED_BYTES && node->control_count == 0;
}

static uint64_t hash_node(const rn_ir_node_t* node) {
  if (is_small_constant(node)) return hash_constant(node->constant);
  uint64_t hash = (uintptr_t)node->op;
  uint64_t inputs = 0;
  for (int32_t i = 0; i < node->input_count; ++i) {
    uint64_t edge = mix((uint64_t)node->inputs[i].node, (uint64_t)node->inputs[i].output);
    // Commutative ops: the order of inputs must not matter.
    inputs = node->op->flags & RN_OP_COMMUTATIVE ? inputs + edge : mix(inputs, edge);
  }
  hash = mix(hash, inputs);
  for (int a = 0; a < node->op->attr_count; ++a) hash = mix(hash, hash_attr(&node->attrs[a]));
  for (int32_t i = 0; i < node->control_count; ++i) hash = mix(hash, (uint64_t)node->controls[i]);
  return hash;
}

static bool same_input(rn_ir_edge_t a, rn_ir_edge_t b) {
  return a.node == b.node && a.output == b.output;
}

static bool same_inputs(const rn_ir_node_t* a, const rn_ir_node_t* b) {
  bool in_order = true;
  for (int32_t i = 0; i < a->input_count; ++i) in_order &= same_input(a->inputs[i], b->inputs[i]);
  return in_order ||
         (a->op->flags & RN_OP_COMMUTATIVE && a->input_count == 2 &&
          same_input(a->inputs[0], b->inputs[1]) && same_input(a->inputs[1], b->inputs[0]));
}

static bool same_node(const rn_ir_node_t* a, const rn_ir_node_t* b) {
  if (is_small_constant(a) && is_small_constant(b))
    return a->constant->dtype == b->constant->dtype &&
           rn_tensor_same_shape(a->constant, b->constant) &&
           memcmp(a->constant->data, b->constant->data, rn_tensor_bytes(a->constant)) == 0 &&
           rn_str_eq(a->requested_device, b->requested_device);
  if (a->op != b->op || a->input_count != b->input_count || a->control_count != b->control_count ||
      a->extra_count != b->extra_count || !rn_str_eq(a->requested_device, b->requested_device) ||
      !same_inputs(a, b))
    return false;
  for (int32_t i = 0; i < a->control_count; ++i)
    if (a->controls[i] != b->controls[i]) return false;
  for (int i = 0; i < a->op->attr_count; ++i)
    if (!rn_attr_value_eq(&a->attrs[i], &b->attrs[i])) return false;
  for (int32_t i = 0; i < a->extra_count; ++i)
    if (!rn_str_eq(a->extras[i].name, b->extras[i].name) ||
        !rn_attr_value_eq(&a->extras[i].value, &b->extras[i].value))
      return false;
  return true;
}

static void redirect(cse_t* cse, rn_ir_node_t* node) {
  for (int32_t i = 0; i < node->input_count; ++i)
    if (node->inputs[i].node >= 0) node->inputs[i].node = cse->same_as[node->inputs[i].node];
  for (int32_t i = 0; i < node->control_count; ++i)
    node->controls[i] = cse->same_as[node->controls[i]];
}

static void merge_node(cse_t* cse, int32_t index) {
  rn_ir_node_t* node = &cse->ir->nodes.items[index];
  redirect(cse, node);
  if (!rn_ir_is_pure(node) && !is_small_constant(node) && !rn_ir_is_read(node)) return;
  if (node->output_count == 0) return;
  uint64_t hash = cse->hash[index] = hash_node(node);
  size_t at = hash & cse->mask;
  while (cse->table[at] >= 0) {
    int32_t other = cse->table[at];
    if (cse->hash[other] == hash && same_node(&cse->ir->nodes.items[other], node)) {
      cse->same_as[index] = other;
      node->is_removed = true;
      return;
    }
    at = (at + 1) & cse->mask;
  }
  cse->table[at] = index;
}

rn_status_t rn_pass_merge_equal_nodes(rn_ir_t* ir) {
  size_t n = ir->nodes.count;
  size_t capacity = 16;
  while (capacity < n * 2) capacity *= 2;
  cse_t cse = {.ir = ir, .mask = capacity - 1};
  int32_t* order = NULL;
  int32_t count = 0;
  RN_RETURN_IF_ERROR(rn_ir_order(ir, &order, &count));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n + 1, &cse.same_as));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n + 1, &cse.hash));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, capacity, &cse.table));
  memset(cse.table, 0xff, capacity * sizeof *cse.table);
  for (size_t i = 0; i < n; ++i) cse.same_as[i] = (int32_t)i;
  for (int32_t i = 0; i < count; ++i) merge_node(&cse, order[i]);
  for (size_t i = 0; i < n; ++i) redirect(&cse, &ir->nodes.items[i]);  // back edges of loops
  for (int32_t i = 0; i < ir->fetch_count; ++i)
    if (ir->fetches[i].node >= 0) ir->fetches[i].node = cse.same_as[ir->fetches[i].node];
  for (int32_t i = 0; i < ir->target_count; ++i) ir->targets[i] = cse.same_as[ir->targets[i]];
  return RN_OK;
}

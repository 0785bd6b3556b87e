// Removes Identity and StopGradient nodes, reshapes to the shape already there, and arithmetic
// without effect.
//
// Only rewrites that keep every bit: x * 1, x / 1 and x - 0 are x; x + 0 is not, because -0 + 0 =
// +0.
#include "step/ir.h"

typedef struct simplify_t {
  rn_ir_t* ir;
  rn_ir_edge_t* instead;  // by node: the edge to use in place of its output 0; itself if none
  bool* is_awaited;       // by node: it has an outgoing control edge
} simplify_t;

// Whether all elements of |value| are |number|.
static bool is_all(const rn_tensor_t* value, double number) {
  if (!value || value->count == 0 || value->count > 4096) return false;
  for (int64_t i = 0; i < value->count; ++i) {
    double x;
    switch (value->dtype) {
      case RN_FLOAT:
        x = RN_DATA(value, float)[i];
        break;
      case RN_DOUBLE:
        x = RN_DATA(value, double)[i];
        break;
      case RN_INT32:
        x = RN_DATA(value, int32_t)[i];
        break;
      case RN_INT64:
        x = (double)RN_DATA(value, int64_t)[i];
        break;
      default:
        return false;
    }
    if (x != number || (number == 0 && __builtin_signbit(x))) return false;
  }
  return true;
}

static bool keeps_shape(const rn_ir_t* ir, const rn_ir_node_t* node, rn_ir_edge_t input) {
  rn_shape_t in = ir->nodes.items[input.node].shapes[input.output];
  return rn_shape_is_full(in) && rn_shape_is_full(node->shapes[0]) &&
         rn_shape_eq(in, node->shapes[0]);
}

// The input that |node| passes on unchanged; -1 if none.
static int passed_on(const rn_ir_t* ir, const rn_ir_node_t* node) {
  if (node->op->role == RN_ROLE_IDENTITY || rn_ir_is_op(node, "StopGradient")) return 0;
  if (node->input_count != 2 || !rn_ir_is_pure(node)) return -1;
  if (strcmp(node->op->name, "Reshape") == 0)
    return keeps_shape(ir, node, node->inputs[0]) ? 0 : -1;
  static const struct {
    const char* op;
    double number;
    int constant;  // the input that must be |number|
  } neutral[] = {{"Mul", 1, 1}, {"Mul", 1, 0}, {"RealDiv", 1, 1}, {"Div", 1, 1}, {"Sub", 0, 1}};
  for (size_t i = 0; i < sizeof neutral / sizeof *neutral; ++i) {
    if (strcmp(node->op->name, neutral[i].op) != 0) continue;
    int other = 1 - neutral[i].constant;
    const rn_ir_node_t* constant = &ir->nodes.items[node->inputs[neutral[i].constant].node];
    if (constant->control_count == 0 && is_all(constant->constant, neutral[i].number) &&
        keeps_shape(ir, node, node->inputs[other]))
      return other;
  }
  return -1;
}

static void redirect(const simplify_t* s, rn_ir_edge_t* edge) {
  if (edge->node >= 0 && edge->output == 0) *edge = s->instead[edge->node];
}

static bool can_drop(const simplify_t* s, int32_t index) {
  const rn_ir_node_t* node = &s->ir->nodes.items[index];
  return node->feed < 0 && node->output_count == 1 && node->control_count == 0 &&
         !s->is_awaited[index] && !rn_dtype_is_ref(node->types[0]);
}

rn_status_t rn_pass_simplify(rn_ir_t* ir) {
  size_t n = ir->nodes.count;
  simplify_t s = {.ir = ir};
  int32_t* order = NULL;
  int32_t count = 0;
  RN_RETURN_IF_ERROR(rn_ir_order(ir, &order, &count));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n + 1, &s.instead));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n + 1, &s.is_awaited));
  for (size_t i = 0; i < n; ++i) {
    s.instead[i] = (rn_ir_edge_t){(int32_t)i, 0};
    if (ir->nodes.items[i].is_removed) continue;
    for (int32_t c = 0; c < ir->nodes.items[i].control_count; ++c)
      s.is_awaited[ir->nodes.items[i].controls[c]] = true;
  }
  for (int32_t i = 0; i < ir->target_count; ++i) s.is_awaited[ir->targets[i]] = true;
  for (int32_t i = 0; i < count; ++i) {
    rn_ir_node_t* node = &ir->nodes.items[order[i]];
    for (int32_t k = 0; k < node->input_count; ++k) redirect(&s, &node->inputs[k]);
    if (!can_drop(&s, order[i])) continue;
    int input = passed_on(ir, node);
    if (input < 0) continue;
    rn_ir_edge_t source = node->inputs[input];
    // An identity of a reference reads the variable; it must stay.
    if (rn_dtype_is_ref(ir->nodes.items[source.node].types[source.output])) continue;
    s.instead[order[i]] = source;
    node->is_removed = true;
  }
  for (size_t i = 0; i < n; ++i)
    for (int32_t k = 0; k < ir->nodes.items[i].input_count; ++k)
      redirect(&s, &ir->nodes.items[i].inputs[k]);
  for (int32_t i = 0; i < ir->fetch_count; ++i) redirect(&s, &ir->fetches[i]);
  return RN_OK;
}

// Groups the Casts of variables: in mixed precision a step casts every weight once, and for many
// small ones a launch takes longer than the Cast.
//
// Only Casts of values that are there when the step begins: reads of variables that wait for
// nothing. So groups have no path between them. They are formed in the order in which the step
// reads the results, and end when those have MOST_BYTES, because a group's results live from its
// first reader on.
#include "device/device.h"
#include "step/make.h"

#define MOST_CASTS 128
#define MOST_BYTES ((int64_t)32 << 20)

typedef struct group_casts_t {
  rn_ir_t* ir;
  const rn_op_def_t *op, *cast;
  rn_ir_uses_t* uses;  // by node
} group_casts_t;

static bool is_early(const rn_ir_t* ir, rn_ir_edge_t edge) {
  const rn_ir_node_t* read = rn_ir_node(ir, edge.node);
  if (!rn_ir_is_op(read, "ReadVariableOp") || read->control_count) return false;
  const rn_ir_node_t* handle = rn_ir_node(ir, read->inputs[0].node);
  return handle->feed >= 0 || (!handle->input_count && !handle->control_count);
}

static bool is_candidate(const group_casts_t* g, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(g->ir, index);
  return !node->is_removed && node->feed < 0 && node->op == g->cast && node->kernel &&
         node->device && !node->device->is_host && !node->control_count &&
         (node->types[0] == RN_HALF || node->types[0] == RN_BFLOAT16) &&
         rn_shape_is_full(node->shapes[0]) && !rn_ir_flag(node, "Truncate") &&
         g->uses[index].fetches + g->uses[index].waits == 0 && is_early(g->ir, node->inputs[0]) &&
         rn_ir_node(g->ir, node->inputs[0].node)->types[0] == RN_FLOAT;
}

static int64_t bytes_of(const rn_ir_node_t* node) {
  int64_t count;
  if (!rn_shape_count(node->shapes[0], &count) || count > MOST_BYTES) return MOST_BYTES + 1;
  return count * (int64_t)sizeof(uint16_t);
}

static rn_status_t build(group_casts_t* g, const int32_t* casts, int32_t count) {
  rn_ir_t* ir = g->ir;
  const rn_ir_node_t like = *rn_ir_node(ir, casts[0]);
  rn_ir_node_t made;
  const rn_attr_t given[] = {{RN_STR("N"), {.i = count}}, RN_ATTRS_END};
  RN_RETURN_IF_ERROR(rn_ir_make_node(ir, g->op, &like, given, count, like.shapes[0], &made));
  if (!made.kernel) return RN_OK;
  RN_RETURN_IF_ERROR(rn_ir_make_edges(ir, count, count, like.types[0], like.shapes[0], &made));
  for (int32_t i = 0; i < count; ++i) {
    rn_ir_node_t* cast = rn_ir_node(ir, casts[i]);
    made.inputs[i] = cast->inputs[0];
    made.shapes[i] = cast->shapes[0];
    cast->is_removed = true;
  }
  int32_t index = -1;
  RN_RETURN_IF_ERROR(rn_ir_add(ir, &made, &index));
  for (int32_t i = 0; i < count; ++i)
    rn_ir_replace_edge(ir, (rn_ir_edge_t){casts[i], 0}, (rn_ir_edge_t){index, i});
  return RN_OK;
}

// Groups the Casts on the device and to the type of |first|, the |at|-th in |order|.
static rn_status_t group_from(group_casts_t* g, const int32_t* order, int32_t count, int32_t at) {
  const rn_ir_node_t first = *rn_ir_node(g->ir, order[at]);
  int32_t casts[MOST_CASTS], length = 0;
  int64_t left = MOST_BYTES;
  for (int32_t i = at; i < count && length < MOST_CASTS; ++i) {
    const rn_ir_node_t* node = rn_ir_node(g->ir, order[i]);
    if (!is_candidate(g, order[i]) || node->device != first.device ||
        node->types[0] != first.types[0])
      continue;
    left -= bytes_of(node);
    if (left < 0) break;
    casts[length++] = order[i];
  }
  return length > 1 ? build(g, casts, length) : RN_OK;
}

rn_status_t rn_pass_group_casts(rn_ir_t* ir) {
  group_casts_t g = {
      .ir = ir, .op = rn_op_find(RN_STR("_CastMany")), .cast = rn_op_find(RN_STR("Cast"))};
  if (!g.op || !rn_ir_uses_accelerator(ir) || !rn_ir_may_merge(ir)) return RN_OK;
  int32_t *order = NULL, count = 0;
  RN_RETURN_IF_ERROR(rn_ir_count_uses(ir, &g.uses));
  RN_RETURN_IF_ERROR(rn_ir_order(ir, &order, &count));
  for (int32_t i = 0; i < count; ++i)
    if (is_candidate(&g, order[i])) RN_RETURN_IF_ERROR(group_from(&g, order, count, i));
  return RN_OK;
}

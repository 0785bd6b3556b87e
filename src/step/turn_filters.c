// Brings the filters of a GPU's convolutions into the order that its convolutions want, all of them
// by one node at the beginning of the step.
//
// TensorFlow has the output channels of a filter last, cuDNN first. Without this pass each
// convolution, and each gradient of an image, turns its filter itself. A filter that is cast before
// (mixed precision) is cast while it is turned. Turned filters keep their shape; the extra
// attribute "_filter_is_turned" tells the kernels that only the order in memory differs.
#include "device/device.h"
#include "step/make.h"

#define MOST_FILTERS 64

typedef struct turn_use_t {
  int32_t node, input;
} turn_use_t;

typedef struct turn_pass_t {
  rn_ir_t* ir;
  const rn_op_def_t *op, *conv, *then, *input_gradient, *cast;
  turn_use_t* uses;  // filters of convolutions that may be turned
  int32_t use_count;
} turn_pass_t;

// The input of |node| that is the filter of an image's convolution; -1: it is none.
static int32_t filter_input(const turn_pass_t* p, const rn_ir_node_t* node) {
  if (node->is_removed || node->feed >= 0 || !node->device || node->device->is_host ||
      !node->kernel ||
      (node->op != p->conv && node->op != p->then && node->op != p->input_gradient))
    return -1;
  const rn_attr_value_t* format = rn_ir_attr(node, RN_STR("data_format"));
  if (format && !rn_str_is(format->s, "NHWC")) return -1;
  if (rn_ir_flag(node, "is_depthwise")) return -1;
  rn_dtype_t type = node->types[0];
  return type == RN_FLOAT || type == RN_HALF || type == RN_BFLOAT16 ? 1 : -1;
}

// Whether |edge| is there when the step begins: it depends on no other work.
static bool is_early(const rn_ir_t* ir, rn_ir_edge_t edge) {
  const rn_ir_node_t* node = rn_ir_node(ir, edge.node);
  if (node->feed >= 0 || node->constant) return true;
  if (rn_dtype_is_ref(node->types[edge.output]) || node->control_count) return false;
  for (int32_t i = 0; i < node->input_count; ++i) {
    const rn_ir_node_t* source = rn_ir_node(ir, node->inputs[i].node);
    if (source->input_count || source->control_count) return false;
  }
  return true;
}

// The filter itself, before a cast.
static rn_ir_edge_t uncast(const turn_pass_t* p, rn_ir_edge_t edge) {
  const rn_ir_node_t* node = rn_ir_node(p->ir, edge.node);
  if (node->feed >= 0 || node->op != p->cast || node->control_count || rn_ir_flag(node, "Truncate"))
    return edge;
  rn_ir_edge_t from = node->inputs[0];
  return rn_ir_node(p->ir, from.node)->types[from.output] == RN_FLOAT ? from : edge;
}

static rn_status_t find_uses(turn_pass_t* p) {
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, p->ir->nodes.count + 1, &p->uses));
  for (size_t n = 0; n < p->ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &p->ir->nodes.items[n];
    int32_t input = filter_input(p, node);
    if (input < 0) continue;
    rn_ir_edge_t edge = uncast(p, node->inputs[input]);
    rn_shape_t shape = rn_ir_node(p->ir, edge.node)->shapes[edge.output];
    if (shape.rank != 4 || !rn_shape_is_full(shape) || !is_early(p->ir, edge)) continue;
    p->uses[p->use_count++] = (turn_use_t){(int32_t)n, input};
  }
  return RN_OK;
}

static rn_dtype_t type_of(const turn_pass_t* p, rn_ir_edge_t edge) {
  return rn_ir_node(p->ir, edge.node)->types[edge.output];
}

// Tells the kernel of |index| that its filter is |turned|.
static rn_status_t redirect(turn_pass_t* p, turn_use_t use, rn_ir_edge_t turned) {
  rn_attr_t* extras = NULL;
  rn_ir_node_t* node = rn_ir_node(p->ir, use.node);
  size_t count = (size_t)node->extra_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, count + 1, &extras));
  if (count) memcpy(extras, node->extras, count * sizeof *extras);
  extras[count] = (rn_attr_t){RN_STR("_filter_is_turned"), {.kind = RN_ATTR_BOOL, .b = true}};
  node->extras = extras;
  node->extra_count++;
  node->inputs[use.input] = turned;
  return RN_OK;
}

// One node for filters like that of |first|: on the same device, of the same types.
static rn_status_t turn_like(turn_pass_t* p, int32_t first, bool* is_done) {
  turn_use_t members[MOST_FILTERS];
  rn_ir_edge_t filters[MOST_FILTERS];
  int32_t count = 0, number[2 * MOST_FILTERS], used = 0;
  turn_use_t users[2 * MOST_FILTERS];
  const rn_ir_node_t* like = rn_ir_node(p->ir, p->uses[first].node);
  rn_ir_edge_t start = uncast(p, like->inputs[p->uses[first].input]);
  rn_dtype_t from = type_of(p, start), to = like->types[0];
  for (int32_t u = first; u < p->use_count && used < 2 * MOST_FILTERS; ++u) {
    const rn_ir_node_t* node = rn_ir_node(p->ir, p->uses[u].node);
    rn_ir_edge_t edge = uncast(p, node->inputs[p->uses[u].input]);
    if (is_done[u] || node->device != like->device || node->types[0] != to ||
        type_of(p, edge) != from)
      continue;
    int32_t k = 0;
    while (k < count && (filters[k].node != edge.node || filters[k].output != edge.output)) ++k;
    if (k == MOST_FILTERS) continue;
    if (k == count) members[count] = p->uses[u], filters[count++] = edge;
    users[used] = p->uses[u];
    number[used++] = k;
    is_done[u] = true;
  }
  const rn_attr_t given[] = {{RN_STR("N"), {.i = count}},
                             {RN_STR("From"), {.type = from}},
                             {RN_STR("T"), {.type = to}},
                             RN_ATTRS_END};
  rn_ir_node_t made;
  int32_t index = -1;
  RN_RETURN_IF_ERROR(rn_ir_make_node(p->ir, p->op, rn_ir_node(p->ir, members[0].node), given, count,
                                     RN_SHAPE_SCALAR, &made));
  if (!made.kernel) return RN_OK;
  RN_RETURN_IF_ERROR(rn_ir_make_edges(p->ir, count, count, to, RN_SHAPE_SCALAR, &made));
  for (int32_t k = 0; k < count; ++k) {
    made.inputs[k] = filters[k];
    made.shapes[k] = rn_ir_node(p->ir, filters[k].node)->shapes[filters[k].output];
  }
  RN_RETURN_IF_ERROR(rn_ir_add(p->ir, &made, &index));
  for (int32_t u = 0; u < used; ++u)
    RN_RETURN_IF_ERROR(redirect(p, users[u], (rn_ir_edge_t){index, number[u]}));
  return RN_OK;
}

rn_status_t rn_pass_turn_filters(rn_ir_t* ir) {
  turn_pass_t p = {.ir = ir,
                   .op = rn_op_find(RN_STR("_TurnFilters")),
                   .conv = rn_op_find(RN_STR("Conv2D")),
                   .then = rn_op_find(RN_STR("_ConvThen")),
                   .input_gradient = rn_op_find(RN_STR("Conv2DBackpropInput")),
                   .cast = rn_op_find(RN_STR("Cast"))};
  // A filter of a branch may not be there.
  if (!p.op || !rn_ir_may_merge(ir)) return RN_OK;
  RN_RETURN_IF_ERROR(find_uses(&p));
  bool* is_done = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)p.use_count + 1, &is_done));
  for (int32_t u = 0; u < p.use_count; ++u)
    if (!is_done[u]) RN_RETURN_IF_ERROR(turn_like(&p, u, is_done));
  return p.use_count ? rn_ir_sweep(ir) : RN_OK;  // casts that are not needed any more
}

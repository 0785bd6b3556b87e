// Splits the cross entropy of a device that compiles loops, so that the gradient is one loop with
// what follows it: it is multiplied by the loss's own gradient, and cast for the matmuls behind.
//
//   loss     = log_sum - x[label]
//   backprop = exp(x - log_sum) - (column == label)
//
// with log_sum = log(sum(exp(x))) of the row. Logits that were cast from 16 bits are read as they
// are. Short rows stay whole: the device reads them once for both results.
#include "device/device.h"
#include "step/make.h"

#define SHORT_ROW 1024
#define MOST_COLUMNS (1 << 24)  // whose numbers are floats

typedef struct split_losses_t {
  rn_ir_t* ir;
  const rn_op_def_t *loss, *row, *cast, *sub, *exp, *equal;
} split_losses_t;

// A cross entropy that is being split.
typedef struct split_loss_t {
  const split_losses_t* pass;
  rn_ir_node_t node;  // a copy
  rn_shape_t matrix;
  bool is_lost;  // the device has no kernel for a node
} split_loss_t;

static rn_status_t make(split_loss_t* loss, const rn_op_def_t* op, const rn_attr_t* given,
                        const rn_ir_edge_t* inputs, int32_t count, rn_dtype_t type,
                        rn_ir_edge_t* out) {
  rn_ir_t* ir = loss->pass->ir;
  rn_ir_node_t made;
  int32_t index = -1;
  RN_RETURN_IF_ERROR(rn_ir_make_node(ir, op, &loss->node, given, count, loss->matrix, &made));
  memcpy(made.inputs, inputs, (size_t)count * sizeof *inputs);
  made.types[0] = type;
  loss->is_lost |= !made.kernel;
  RN_RETURN_IF_ERROR(
      rn_arena_printf(&ir->arena, &made.name, "%.*s_%zu", RN_STR_ARGS(made.name), ir->nodes.count));
  RN_RETURN_IF_ERROR(rn_ir_add(ir, &made, &index));
  *out = (rn_ir_edge_t){index, 0};
  return RN_OK;
}

static rn_status_t cast(split_loss_t* loss, rn_ir_edge_t x, rn_ir_edge_t* out) {
  rn_dtype_t from = rn_ir_node(loss->pass->ir, x.node)->types[x.output];
  const rn_attr_t given[] = {
      {RN_STR("SrcT"), {.type = from}}, {RN_STR("DstT"), {.type = RN_FLOAT}}, RN_ATTRS_END};
  *out = x;
  if (from == RN_FLOAT) return RN_OK;
  return make(loss, loss->pass->cast, given, &x, 1, RN_FLOAT, out);
}

static rn_status_t point(split_loss_t* loss, const rn_op_def_t* op, rn_ir_edge_t a, rn_ir_edge_t b,
                         rn_dtype_t type, rn_ir_edge_t* out) {
  const rn_attr_t given[] = {{RN_STR("T"), {.type = RN_FLOAT}}, RN_ATTRS_END};
  const rn_ir_edge_t inputs[] = {a, b};
  return make(loss, op, given, inputs, b.node < 0 ? 1 : 2, type, out);
}

// The logits, before a Cast from 16 bits.
static rn_ir_edge_t logits_of(const rn_ir_t* ir, const rn_ir_node_t* node) {
  rn_ir_edge_t edge = node->inputs[0];
  const rn_ir_node_t* source = rn_ir_node(ir, edge.node);
  if (!rn_ir_is_op(source, "Cast") || source->control_count || source->device != node->device)
    return edge;
  rn_ir_edge_t before = source->inputs[0];
  rn_dtype_t from = rn_ir_node(ir, before.node)->types[before.output];
  return from == RN_HALF || from == RN_BFLOAT16 ? before : edge;
}

// 0, 1, 2, … as floats.
static rn_status_t add_columns(split_loss_t* loss, rn_ir_edge_t* out) {
  rn_ir_t* ir = loss->pass->ir;
  rn_tensor_t value;
  RN_RETURN_IF_ERROR(
      rn_tensor_create(ir->allocator, RN_FLOAT, (rn_shape_t){1, &loss->matrix.dims[1]}, &value));
  for (int64_t i = 0; i < value.count; ++i) RN_DATA(&value, float)[i] = (float)i;
  rn_ir_node_t made = {
      .device = loss->node.device, .requested_device = loss->node.requested_device, .feed = -1};
  rn_status_t status = rn_arena_printf(&ir->arena, &made.name, "%.*s/columns_%zu",
                                       RN_STR_ARGS(loss->node.name), ir->nodes.count);
  if (!rn_ok(status)) {
    rn_tensor_clear(&value);
    return status;
  }
  RN_RETURN_IF_ERROR(rn_ir_own_constant(ir, &value, &made));
  made.kernel = rn_kernel_find(made.op, made.attrs, NULL, made.device->type);
  loss->is_lost |= !made.kernel;
  RN_RETURN_IF_ERROR(rn_ir_add(ir, &made, &out->node));
  out->output = 0;
  return RN_OK;
}

// Adds what is computed per row: the loss, log_sum and the label as a float.
static rn_status_t add_rows(split_loss_t* loss, rn_ir_edge_t x, rn_ir_edge_t* out) {
  rn_ir_t* ir = loss->pass->ir;
  rn_ir_node_t made;
  rn_ir_edge_t labels = loss->node.inputs[1];
  int64_t rows = loss->matrix.dims[0], column[2] = {rows, 1};
  const rn_attr_t given[] = {{RN_STR("T"), {.type = rn_ir_node(ir, x.node)->types[x.output]}},
                             RN_ATTRS_END};
  RN_RETURN_IF_ERROR(
      rn_ir_make_node(ir, loss->pass->row, &loss->node, given, 2, (rn_shape_t){1, &rows}, &made));
  RN_RETURN_IF_ERROR(rn_ir_make_edges(ir, 2, 3, RN_FLOAT, (rn_shape_t){2, column}, &made));
  RN_RETURN_IF_ERROR(rn_shape_copy(&ir->arena, (rn_shape_t){1, &rows}, &made.shapes[0]));
  made.inputs[0] = x;
  made.inputs[1] = labels;
  loss->is_lost |= !made.kernel;
  RN_RETURN_IF_ERROR(rn_ir_add(ir, &made, &out->node));
  out->output = 0;
  return RN_OK;
}

static rn_status_t split(const split_losses_t* pass, int32_t index) {
  rn_ir_t* ir = pass->ir;
  split_loss_t loss = {.pass = pass, .node = *rn_ir_node(ir, index)};
  size_t before = ir->nodes.count;
  rn_ir_edge_t x = logits_of(ir, &loss.node), none = {-1, 0}, rows, columns, y, hot;
  loss.matrix = rn_ir_node(ir, x.node)->shapes[x.output];
  RN_RETURN_IF_ERROR(add_rows(&loss, x, &rows));
  RN_RETURN_IF_ERROR(add_columns(&loss, &columns));
  RN_RETURN_IF_ERROR(cast(&loss, x, &y));
  RN_RETURN_IF_ERROR(point(&loss, pass->sub, y, (rn_ir_edge_t){rows.node, 1}, RN_FLOAT, &y));
  RN_RETURN_IF_ERROR(point(&loss, pass->exp, y, none, RN_FLOAT, &y));
  RN_RETURN_IF_ERROR(
      point(&loss, pass->equal, (rn_ir_edge_t){rows.node, 2}, columns, RN_BOOL, &hot));
  RN_RETURN_IF_ERROR(cast(&loss, hot, &hot));
  RN_RETURN_IF_ERROR(point(&loss, pass->sub, y, hot, RN_FLOAT, &y));
  for (size_t n = before; loss.is_lost && n < ir->nodes.count; ++n)
    ir->nodes.items[n].is_removed = true;
  if (loss.is_lost) return RN_OK;
  rn_ir_replace_edge(ir, (rn_ir_edge_t){index, 0}, rows);
  rn_ir_replace_edge(ir, (rn_ir_edge_t){index, 1}, y);
  rn_ir_node(ir, index)->is_removed = true;
  return RN_OK;
}

static bool may_split(const split_losses_t* pass, const rn_ir_node_t* node,
                      const rn_ir_uses_t* uses) {
  if (node->is_removed || node->op != pass->loss || node->feed >= 0 || !node->kernel ||
      !node->device || node->device->is_host || node->control_count || uses->waits ||
      node->types[0] != RN_FLOAT)
    return false;
  rn_shape_t shape = rn_ir_node(pass->ir, node->inputs[0].node)->shapes[node->inputs[0].output];
  return rn_shape_is_full(shape) && shape.rank == 2 && shape.dims[1] > SHORT_ROW &&
         shape.dims[1] < MOST_COLUMNS;
}

rn_status_t rn_pass_split_losses(rn_ir_t* ir) {
  split_losses_t pass = {.ir = ir,
                         .loss = rn_op_find(RN_STR("SparseSoftmaxCrossEntropyWithLogits")),
                         .row = rn_op_find(RN_STR("_SparseCrossEntropy")),
                         .cast = rn_op_find(RN_STR("Cast")),
                         .sub = rn_op_find(RN_STR("Sub")),
                         .exp = rn_op_find(RN_STR("Exp")),
                         .equal = rn_op_find(RN_STR("Equal"))};
  if (!pass.row || !rn_ir_uses_accelerator(ir)) return RN_OK;
  rn_ir_uses_t* uses = NULL;
  RN_RETURN_IF_ERROR(rn_ir_count_uses(ir, &uses));
  bool splits = false;
  for (int32_t n = 0, count = (int32_t)ir->nodes.count; n < count; ++n) {
    if (!may_split(&pass, rn_ir_node(ir, n), &uses[n])) continue;
    RN_RETURN_IF_ERROR(split(&pass, n));
    splits = true;
  }
  return splits ? rn_ir_sweep(ir) : RN_OK;
}

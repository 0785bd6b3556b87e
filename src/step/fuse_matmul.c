// Fuses each matmul of a GPU with the bias, the shortcut and the ReLU that follow it into one node,
// which finishes the product before it is written.
//
// Starting at a matmul by one matrix, follows the chain of nodes that each are the only reader of
// the one before: one addition of a row (a bias), one of a whole tensor (a shortcut, or a second
// gradient), then a ReLU; reshapes that keep the columns may stand between them. The library behind
// the kernel chooses in which order it adds, and rounds once.
#include "device/device.h"
#include "framework/internal_ops.h"
#include "step/make.h"

#define MOST_MEMBERS 8

typedef struct fuse_matmul_t {
  rn_ir_t* ir;
  const rn_op_def_t *op, *matmul, *batch_matmul, *bias_add, *relu, *reshape;
  const rn_op_def_t* adds[3];
  rn_ir_uses_t* uses;  // by node
} fuse_matmul_t;

typedef struct matmul_chain_t {
  int32_t matmul;
  int64_t columns;
  int32_t members[MOST_MEMBERS];  // what follows the matmul
  int32_t count;
  rn_ir_edge_t bias, addend;  // node -1: none
  bool has_relu, has_reshape;
} matmul_chain_t;

static rn_shape_t shape_of(const fuse_matmul_t* f, rn_ir_edge_t edge) {
  return rn_ir_node(f->ir, edge.node)->shapes[edge.output];
}

static bool ends_in(rn_shape_t shape, int64_t columns) {
  return shape.rank >= 1 && shape.dims[shape.rank - 1] == columns;
}

static int32_t last_of(const matmul_chain_t* chain) {
  return chain->count ? chain->members[chain->count - 1] : chain->matmul;
}

// Takes |operand| as the bias or the addend of a value of shape |to|.
static bool take_operand(const fuse_matmul_t* f, matmul_chain_t* chain, rn_ir_edge_t operand,
                         rn_shape_t to) {
  rn_shape_t shape = shape_of(f, operand);
  int64_t count;
  if (!rn_shape_is_full(shape) || !rn_shape_count(shape, &count)) return false;
  if (chain->bias.node < 0 && count == chain->columns && ends_in(shape, count) &&
      shape.rank <= to.rank) {
    chain->bias = operand;
    return true;
  }
  if (chain->addend.node >= 0 || !rn_shape_is_full(to) || !rn_shape_eq(shape, to)) return false;
  chain->addend = operand;
  return true;
}

static bool take_sum(const fuse_matmul_t* f, matmul_chain_t* chain, const rn_ir_node_t* node) {
  int32_t last = last_of(chain);
  if (node->input_count != 2) return false;
  const int at = node->inputs[0].node == last ? 0 : 1;
  if (node->op == f->bias_add) {
    const rn_attr_value_t* format = rn_ir_attr(node, RN_STR("data_format"));
    if (at != 0 || (format && !rn_str_is(format->s, "NHWC"))) return false;
  }
  return take_operand(f, chain, node->inputs[1 - at], rn_ir_node(f->ir, last)->shapes[0]);
}

static bool take_reshape(const fuse_matmul_t* f, matmul_chain_t* chain, const rn_ir_node_t* node) {
  const rn_ir_edge_t shape = node->inputs[1];
  if (node->inputs[0].node != last_of(chain) || !rn_shape_is_full(node->shapes[0]) ||
      !ends_in(node->shapes[0], chain->columns) || !rn_ir_node(f->ir, shape.node)->constant)
    return false;
  chain->has_reshape = true;
  return true;
}

// Takes the reader of the chain's last node in, if it can be. |*out_useful|: it computes something.
static bool take_next(const fuse_matmul_t* f, matmul_chain_t* chain, bool* out_useful) {
  int32_t next = rn_ir_only_reader(&f->uses[last_of(chain)]);
  if (chain->count == MOST_MEMBERS || next < 0 || chain->has_relu) return false;
  const rn_ir_node_t *node = rn_ir_node(f->ir, next), *matmul = rn_ir_node(f->ir, chain->matmul);
  if (node->is_removed || node->feed >= 0 || node->control_count ||
      node->device != matmul->device || node->output_count != 1 ||
      node->types[0] != matmul->types[0])
    return false;
  *out_useful = node->op != f->reshape;
  bool is_taken = false;
  if (node->op == f->reshape)
    is_taken = take_reshape(f, chain, node);
  else if (node->op == f->relu)
    is_taken = chain->has_relu = true;
  else if (node->op == f->bias_add || node->op == f->adds[0] || node->op == f->adds[1] ||
           node->op == f->adds[2])
    is_taken = take_sum(f, chain, node);
  if (is_taken) chain->members[chain->count++] = next;
  return is_taken;
}

// Turns the last node of the chain into the fused node, because all operands are available there.
static rn_status_t rewrite(fuse_matmul_t* f, const matmul_chain_t* chain) {
  rn_ir_node_t *matmul = rn_ir_node(f->ir, chain->matmul),
               made = *rn_ir_node(f->ir, last_of(chain));
  const bool is_batch = matmul->op == f->batch_matmul, has_bias = chain->bias.node >= 0,
             has_addend = chain->addend.node >= 0;
  const rn_attr_t given[] = {
      {RN_STR("N"), {.i = has_bias}},
      {RN_STR("M"), {.i = has_addend}},
      {RN_STR("transpose_a"), {.b = rn_ir_flag(matmul, is_batch ? "adj_x" : "transpose_a")}},
      {RN_STR("transpose_b"), {.b = rn_ir_flag(matmul, is_batch ? "adj_y" : "transpose_b")}},
      {RN_STR("has_relu"), {.b = chain->has_relu}},
      {RN_STR("dims"),
       {.count = chain->has_reshape ? made.shapes[0].rank : 0, .list_i = made.shapes[0].dims}},
      RN_ATTRS_END,
  };
  made.op = f->op;
  made.extra_count = 0;
  RN_RETURN_IF_ERROR(rn_ir_make_attrs(f->ir, f->op, matmul, given, &made.attrs));
  made.kernel = rn_kernel_find(f->op, made.attrs, NULL, made.device->type);
  if (!made.kernel) return RN_OK;
  made.input_count = 2 + has_bias + has_addend;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&f->ir->arena, (size_t)made.input_count, &made.inputs));
  memcpy(made.inputs, matmul->inputs, 2 * sizeof *made.inputs);
  if (has_bias) made.inputs[2] = chain->bias;
  if (has_addend) made.inputs[2 + has_bias] = chain->addend;
  matmul->is_removed = true;
  for (int32_t i = 0; i < chain->count; ++i)
    rn_ir_node(f->ir, chain->members[i])->is_removed = true;
  made.is_removed = false;
  *rn_ir_node(f->ir, last_of(chain)) = made;
  return RN_OK;
}

// Whether the node is a product of rows by one matrix, on a device for which fusing pays.
static bool is_product(const fuse_matmul_t* f, const rn_ir_node_t* node) {
  if (node->is_removed || node->feed >= 0 || node->control_count || !node->device ||
      node->device->is_host || (node->op != f->matmul && node->op != f->batch_matmul))
    return false;
  rn_shape_t a = shape_of(f, node->inputs[0]), b = shape_of(f, node->inputs[1]);
  return a.rank >= 2 && b.rank == 2 && (a.rank == 2 || !rn_ir_flag(node, "adj_x")) &&
         node->shapes[0].rank == a.rank && node->shapes[0].dims[a.rank - 1] >= 1;
}

static rn_status_t fuse_from(fuse_matmul_t* f, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(f->ir, index);
  if (!is_product(f, node)) return RN_OK;
  matmul_chain_t chain = {.matmul = index,
                          .columns = node->shapes[0].dims[node->shapes[0].rank - 1],
                          .bias = {-1, 0},
                          .addend = {-1, 0}};
  matmul_chain_t useful = chain;
  bool is_useful = false;
  while (take_next(f, &chain, &is_useful))
    if (is_useful) useful = chain;
  return useful.count ? rewrite(f, &useful) : RN_OK;
}

rn_status_t rn_pass_fuse_matmul(rn_ir_t* ir) {
  fuse_matmul_t f = {
      .ir = ir,
      .op = rn_op_matmul_then(),
      .matmul = rn_op_find(RN_STR("MatMul")),
      .batch_matmul = rn_op_find(RN_STR("BatchMatMulV2")),
      .bias_add = rn_op_find(RN_STR("BiasAdd")),
      .relu = rn_op_find(RN_STR("Relu")),
      .reshape = rn_op_find(RN_STR("Reshape")),
      .adds = {rn_op_find(RN_STR("Add")), rn_op_find(RN_STR("AddV2")), rn_op_find(RN_STR("AddN"))}};
  if (!f.op || !rn_ir_uses_accelerator(ir)) return RN_OK;
  RN_RETURN_IF_ERROR(rn_ir_count_uses(ir, &f.uses));
  int32_t *order = NULL, count = 0;
  RN_RETURN_IF_ERROR(rn_ir_order(ir, &order, &count));
  // In reverse order, so that a sum of two matmuls joins the later one.
  for (int32_t i = count - 1; i >= 0; --i) RN_RETURN_IF_ERROR(fuse_from(&f, order[i]));
  return RN_OK;
}

// In steps that change no variable, casts weights to bfloat16 once and not in every step.
//
// A Cast of a variable becomes a node that keeps its result as long as the variable has the same
// buffer. A MatMul by such weights, or by constant ones, takes them as they are, and keeps them
// cast and packed. On the CPU only.
#include "device/device.h"
#include "step/make.h"
#include "step/stays.h"

typedef struct keep_weights_t {
  rn_ir_t* ir;
  const rn_op_def_t *cast, *matmul, *kept_cast, *kept_matmul;
} keep_weights_t;

static bool is_plain(const rn_ir_node_t* node, const rn_op_def_t* op) {
  return node->op == op && !node->is_removed && node->feed < 0 && node->kernel && node->device &&
         node->device->is_host && !node->control_count;
}

// Whether |node| casts weights to bfloat16.
static bool is_cast(const keep_weights_t* k, const rn_ir_node_t* node) {
  if (!is_plain(node, k->cast) || node->types[0] != RN_BFLOAT16 || rn_ir_flag(node, "Truncate"))
    return false;
  rn_ir_edge_t from = node->inputs[0];
  return rn_ir_node(k->ir, from.node)->types[from.output] == RN_FLOAT &&
         rn_ir_stays(k->ir, from, false);
}

// Makes |node| one of |op| with the same inputs, if there is a kernel for it.
static rn_status_t change(keep_weights_t* k, rn_ir_node_t* node, const rn_op_def_t* op,
                          rn_dtype_t weights) {
  const rn_attr_t given[] = {{RN_STR("S"), {.type = weights}}, RN_ATTRS_END};
  rn_ir_node_t made = *node;
  made.op = op;
  made.extra_count = 0;
  RN_RETURN_IF_ERROR(rn_ir_make_attrs(k->ir, op, node, given, &made.attrs));
  made.kernel = rn_kernel_find(op, made.attrs, NULL, node->device->type);
  if (made.kernel) *node = made;
  return RN_OK;
}

static rn_status_t keep_matmul(keep_weights_t* k, int32_t index) {
  rn_ir_node_t* node = rn_ir_node(k->ir, index);
  if (!is_plain(node, k->matmul) || node->types[0] != RN_BFLOAT16) return RN_OK;
  rn_ir_edge_t before = node->inputs[1];
  const rn_ir_node_t* source = rn_ir_node(k->ir, before.node);
  const bool casts = is_cast(k, source);
  if (!casts && !rn_ir_stays(k->ir, before, false)) return RN_OK;
  if (casts) node->inputs[1] = source->inputs[0];
  RN_RETURN_IF_ERROR(change(k, node, k->kept_matmul, casts ? RN_FLOAT : RN_BFLOAT16));
  if (node->op == k->matmul) node->inputs[1] = before;
  return RN_OK;
}

rn_status_t rn_pass_keep_weights(rn_ir_t* ir) {
  keep_weights_t k = {.ir = ir,
                      .cast = rn_op_find(RN_STR("Cast")),
                      .matmul = rn_op_find(RN_STR("MatMul")),
                      .kept_cast = rn_op_find(RN_STR("_KeptCast")),
                      .kept_matmul = rn_op_find(RN_STR("_KeptMatMul"))};
  if (!k.kept_cast || !k.kept_matmul) return RN_OK;
  bool has_bfloat16 = false;
  for (size_t n = 0; n < ir->nodes.count && !has_bfloat16; ++n)
    has_bfloat16 = !ir->nodes.items[n].is_removed && ir->nodes.items[n].output_count &&
                   ir->nodes.items[n].types[0] == RN_BFLOAT16;
  if (!has_bfloat16 || rn_ir_changes_variables(ir)) return RN_OK;
  for (size_t n = 0; n < ir->nodes.count; ++n) RN_RETURN_IF_ERROR(keep_matmul(&k, (int32_t)n));
  RN_RETURN_IF_ERROR(rn_ir_sweep(ir));
  for (size_t n = 0; n < ir->nodes.count; ++n)
    if (is_cast(&k, rn_ir_node(ir, (int32_t)n)))
      RN_RETURN_IF_ERROR(change(&k, rn_ir_node(ir, (int32_t)n), k.kept_cast, RN_FLOAT));
  return RN_OK;
}

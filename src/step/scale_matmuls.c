// Multiplies products of matrices by a number where they are computed: a multiplication or division
// of a whole BatchMatMul by a constant, as that of the scores of attention, becomes a part of it.
#include <math.h>

#include "device/device.h"
#include "step/make.h"

// The number by which |index| multiplies the product |*out_product|; false if it does not.
static bool find_scaling(const rn_ir_t* ir, const rn_ir_uses_t* uses, int32_t index,
                         int32_t* out_product, double* out_scale) {
  const rn_ir_node_t* node = rn_ir_node(ir, index);
  const bool is_division = rn_ir_is_op(node, "RealDiv");
  if (node->is_removed || node->control_count || !node->device || node->device->is_host ||
      (!is_division && !rn_ir_is_op(node, "Mul")))
    return false;
  const int at = !is_division && rn_ir_number(ir, node->inputs[0], out_scale) ? 0 : 1;
  if (!rn_ir_number(ir, node->inputs[at], out_scale)) return false;
  if (is_division) *out_scale = 1 / *out_scale;
  *out_product = node->inputs[1 - at].node;
  const rn_ir_node_t* product = rn_ir_node(ir, *out_product);
  const rn_dtype_t type = node->types[0];
  return rn_ir_is_op(product, "BatchMatMulV2") && product->device == node->device &&
         product->kernel && !product->control_count && rn_shape_is_full(product->shapes[0]) &&
         rn_shape_eq(product->shapes[0], node->shapes[0]) &&
         rn_ir_only_reader(&uses[*out_product]) == index && isfinite(*out_scale) &&
         *out_scale != 0 && (type == RN_FLOAT || type == RN_HALF || type == RN_BFLOAT16);
}

static rn_status_t scale(rn_ir_t* ir, const rn_op_def_t* op, int32_t index, int32_t product,
                         double factor) {
  rn_ir_node_t *node = rn_ir_node(ir, index), *matmul = rn_ir_node(ir, product);
  const rn_attr_t given[] = {{RN_STR("scale"), {.f = (float)factor}}, RN_ATTRS_END};
  const rn_attr_value_t* attrs = NULL;
  RN_RETURN_IF_ERROR(rn_ir_make_attrs(ir, op, matmul, given, &attrs));
  const rn_kernel_def_t* kernel = rn_kernel_find(op, attrs, NULL, node->device->type);
  if (!kernel) return RN_OK;
  node->op = op;
  node->attrs = attrs;
  node->kernel = kernel;
  node->extra_count = 0;
  node->inputs = matmul->inputs;
  matmul->is_removed = true;
  return RN_OK;
}

rn_status_t rn_pass_scale_matmuls(rn_ir_t* ir) {
  const rn_op_def_t* op = rn_op_find(RN_STR("_ScaledBatchMatMul"));
  if (!op || !rn_ir_uses_accelerator(ir)) return RN_OK;
  rn_ir_uses_t* uses = NULL;
  RN_RETURN_IF_ERROR(rn_ir_count_uses(ir, &uses));
  for (int32_t n = 0; n < (int32_t)ir->nodes.count; ++n) {
    int32_t product;
    double factor;
    if (find_scaling(ir, uses, n, &product, &factor))
      RN_RETURN_IF_ERROR(scale(ir, op, n, product, factor));
  }
  return RN_OK;
}

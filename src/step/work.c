// How much nodes compute: see work.h.
#include "step/work.h"

#include <math.h>

// No value is larger, so that sums over a graph fit in 64 bits.
#define MOST_BYTES (INT64_C(1) << 42)

static double count_of(rn_shape_t shape) {
  double count = 1;
  for (int32_t d = 0; d < shape.rank; ++d)
    if (shape.dims[d] >= 0) count *= (double)shape.dims[d];
  return count;
}

static double dim_of(rn_shape_t shape, int32_t d) {
  return d >= 0 && d < shape.rank && shape.dims[d] > 0 ? (double)shape.dims[d] : 1;
}

static rn_shape_t input_shape(const rn_ir_t* ir, const rn_ir_node_t* node, int32_t i) {
  if (i >= node->input_count) return RN_SHAPE_UNKNOWN;
  return rn_ir_node(ir, node->inputs[i].node)->shapes[node->inputs[i].output];
}

int64_t rn_ir_output_bytes(const rn_ir_node_t* node, int32_t output) {
  double bytes =
      count_of(node->shapes[output]) * (double)rn_dtype_size(rn_dtype_base(node->types[output]));
  return bytes < (double)MOST_BYTES ? (int64_t)bytes : MOST_BYTES;
}

// A is [b,m,k], B is [b,k,n] and C is [b,m,n], whatever is transposed: the product of their sizes
// is b^3 (m k n)^2.
static double matmul_flops(rn_shape_t a, rn_shape_t b, rn_shape_t c) {
  double batch = 1;
  for (int32_t d = 0; d + 2 < c.rank; ++d) batch *= dim_of(c, d);
  return 2 * sqrt(count_of(a) * count_of(b) * count_of(c) / batch);
}

// Every element of |values|, at the convolution's smaller end, meets every weight of its channel.
static double conv_flops(rn_shape_t values, rn_shape_t filter, bool is_depthwise) {
  double weights = count_of(filter) / dim_of(filter, filter.rank - 1);
  if (is_depthwise) weights = count_of(filter) / dim_of(filter, 2) / dim_of(filter, 3);
  return 2 * count_of(values) * weights;
}

static bool is_any(const rn_ir_node_t* node, const char* const* names) {
  for (; *names; ++names)
    if (rn_ir_is_op(node, *names)) return true;
  return false;
}

static double flops_of(const rn_ir_t* ir, const rn_ir_node_t* node) {
  static const char* const matmuls[] = {"MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3",
                                        NULL};
  static const char* const convs[] = {"Conv2D", "Conv3D", "DepthwiseConv2dNative", NULL};
  static const char* const input_grads[] = {"Conv2DBackpropInput", "Conv3DBackpropInputV2",
                                            "DepthwiseConv2dNativeBackpropInput", NULL};
  static const char* const filter_grads[] = {"Conv2DBackpropFilter", "Conv3DBackpropFilterV2",
                                             "DepthwiseConv2dNativeBackpropFilter", NULL};
  rn_str_t name = rn_str(node->op->name);
  bool is_depthwise = rn_str_starts_with(name, RN_STR("Depthwise"));
  rn_shape_t first = input_shape(ir, node, 0), second = input_shape(ir, node, 1);
  rn_shape_t third = input_shape(ir, node, 2);
  if (is_any(node, matmuls)) return matmul_flops(first, second, node->shapes[0]);
  if (is_any(node, convs)) return conv_flops(node->shapes[0], second, is_depthwise);
  if (is_any(node, input_grads)) return conv_flops(third, second, is_depthwise);
  if (is_any(node, filter_grads)) return conv_flops(third, node->shapes[0], is_depthwise);
  double most = 0;
  for (int32_t i = 0; i < node->input_count; ++i)
    most = fmax(most, count_of(input_shape(ir, node, i)));
  for (int32_t o = 0; o < node->output_count; ++o) most = fmax(most, count_of(node->shapes[o]));
  return most;
}

rn_work_t rn_ir_work(const rn_ir_t* ir, const rn_ir_node_t* node) {
  rn_work_t work = {0};
  if (node->feed >= 0 || node->constant || rn_ir_is_control_flow(node->op->role) ||
      node->op->role == RN_ROLE_NO_OP)
    return work;
  work.flops = flops_of(ir, node);
  for (int32_t i = 0; i < node->input_count; ++i)
    work.bytes +=
        (double)rn_ir_output_bytes(rn_ir_node(ir, node->inputs[i].node), node->inputs[i].output);
  for (int32_t o = 0; o < node->output_count; ++o)
    work.bytes += (double)rn_ir_output_bytes(node, o);
  return work;
}

// Gradient rules of convolutions and pooling. Windows, strides, paddings and formats are those of
// the forward node.
#include "ops/rules.h"

// Convolution is linear in the input and in the filter, and so are its gradients: the gradient of
// each of the three ops of a family consists of the other two.
typedef struct family_t {
  const char* forward;    // (input, filter)
  const char* to_input;   // (sizes of the input, filter, gradient)
  const char* to_filter;  // (input, sizes of the filter, gradient)
} family_t;

static const family_t conv2d = {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"};
static const family_t conv3d = {"Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"};
static const family_t depthwise = {"DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput",
                                   "DepthwiseConv2dNativeBackpropFilter"};

static rn_edge_t sizes(rn_grad_t* g, int input) {
  return rn_rule_shape(g, rn_grad_in(g, input), RN_INT32);
}

static rn_status_t convolution(rn_grad_t* g, const family_t* family) {
  rn_edge_t x = rn_grad_in(g, 0), filter = rn_grad_in(g, 1), dy = rn_grad_dy(g, 0);
  if (rn_grad_wants(g, 0))
    rn_grad_to(g, 0, RN_RULE_ALIKE(g, family->to_input, sizes(g, 0), filter, dy));
  if (rn_grad_wants(g, 1))
    rn_grad_to(g, 1, RN_RULE_ALIKE(g, family->to_filter, x, sizes(g, 1), dy));
  return RN_OK;
}

static rn_status_t input_gradient(rn_grad_t* g, const family_t* family) {
  rn_edge_t filter = rn_grad_in(g, 1), dy = rn_grad_in(g, 2), dz = rn_grad_dy(g, 0);
  if (rn_grad_wants(g, 1))
    rn_grad_to(g, 1, RN_RULE_ALIKE(g, family->to_filter, dz, sizes(g, 1), dy));
  if (rn_grad_wants(g, 2)) rn_grad_to(g, 2, RN_RULE_ALIKE(g, family->forward, dz, filter));
  return RN_OK;
}

static rn_status_t filter_gradient(rn_grad_t* g, const family_t* family) {
  rn_edge_t x = rn_grad_in(g, 0), dy = rn_grad_in(g, 2), dz = rn_grad_dy(g, 0);
  if (rn_grad_wants(g, 0))
    rn_grad_to(g, 0, RN_RULE_ALIKE(g, family->to_input, sizes(g, 0), dz, dy));
  if (rn_grad_wants(g, 2)) rn_grad_to(g, 2, RN_RULE_ALIKE(g, family->forward, x, dz));
  return RN_OK;
}

RN_RULE(conv2d) { return convolution(g, &conv2d); }
RN_RULE(conv2d_backprop_input) { return input_gradient(g, &conv2d); }
RN_RULE(conv2d_backprop_filter) { return filter_gradient(g, &conv2d); }
RN_RULE(conv3d) { return convolution(g, &conv3d); }
RN_RULE(conv3d_backprop_input) { return input_gradient(g, &conv3d); }
RN_RULE(conv3d_backprop_filter) { return filter_gradient(g, &conv3d); }
RN_RULE(depthwise_conv2d) { return convolution(g, &depthwise); }
RN_RULE(depthwise_backprop_input) { return input_gradient(g, &depthwise); }
RN_RULE(depthwise_backprop_filter) { return filter_gradient(g, &depthwise); }

RN_RULE(dilation2d) {
  rn_edge_t x = rn_grad_in(g, 0), filter = rn_grad_in(g, 1), dy = rn_grad_dy(g, 0);
  if (rn_grad_wants(g, 0))
    rn_grad_to(g, 0, RN_RULE_ALIKE(g, "Dilation2DBackpropInput", x, filter, dy));
  if (rn_grad_wants(g, 1))
    rn_grad_to(g, 1, RN_RULE_ALIKE(g, "Dilation2DBackpropFilter", x, filter, dy));
  return RN_OK;
}

// Average pooling is linear, too.

static rn_status_t average(rn_grad_t* g, const char* gradient) {
  rn_grad_to(g, 0, RN_RULE_ALIKE(g, gradient, sizes(g, 0), rn_grad_dy(g, 0)));
  return RN_OK;
}

RN_RULE(avg_pool) { return average(g, "AvgPoolGrad"); }
RN_RULE(avg_pool_3d) { return average(g, "AvgPool3DGrad"); }

static rn_status_t average_gradient(rn_grad_t* g, const char* forward) {
  if (rn_grad_wants(g, 1)) rn_grad_to(g, 1, RN_RULE_ALIKE(g, forward, rn_grad_dy(g, 0)));
  return RN_OK;
}

RN_RULE(avg_pool_grad) { return average_gradient(g, "AvgPool"); }
RN_RULE(avg_pool_3d_grad) { return average_gradient(g, "AvgPool3D"); }

// Max pooling.

static rn_status_t maximum(rn_grad_t* g, const char* gradient) {
  rn_grad_to(g, 0,
             RN_RULE_ALIKE(g, gradient, rn_grad_in(g, 0), rn_grad_out(g, 0), rn_grad_dy(g, 0)));
  return RN_OK;
}

RN_RULE(max_pool) { return maximum(g, "MaxPoolGrad"); }
RN_RULE(max_pool_3d) { return maximum(g, "MaxPool3DGrad"); }

RN_RULE(max_pool_v2) {
  rn_grad_to(g, 0,
             RN_RULE_ALIKE(g, "MaxPoolGradV2", rn_grad_in(g, 0), rn_grad_out(g, 0),
                           rn_grad_dy(g, 0), rn_grad_in(g, 1), rn_grad_in(g, 2)));
  return RN_OK;
}

RN_RULE(max_pool_with_argmax) {
  if (rn_grad_has_dy(g, 0))
    rn_grad_to(g, 0,
               RN_RULE_ALIKE(g, "MaxPoolGradWithArgmax", rn_grad_in(g, 0), rn_grad_dy(g, 0),
                             rn_grad_out(g, 1)));
  return RN_OK;
}

RN_RULE(fractional_avg_pool) {
  if (rn_grad_has_dy(g, 0)) {
    rn_edge_t size = rn_Shape(g->scope, rn_grad_in(g, 0), .out_type = RN_INT64);
    rn_grad_to(g, 0,
               RN_RULE_ALIKE(g, "FractionalAvgPoolGrad", size, rn_grad_dy(g, 0), rn_grad_out(g, 1),
                             rn_grad_out(g, 2)));
  }
  return RN_OK;
}

RN_RULE(fractional_max_pool) {
  if (rn_grad_has_dy(g, 0))
    rn_grad_to(g, 0,
               RN_RULE_ALIKE(g, "FractionalMaxPoolGrad", rn_grad_in(g, 0), rn_grad_out(g, 0),
                             rn_grad_dy(g, 0), rn_grad_out(g, 1), rn_grad_out(g, 2)));
  return RN_OK;
}

// The position of the maximum is locally constant, so the second-order gradient is linear in the
// incoming gradient and zero with respect to input and output.
static rn_status_t maximum_gradient(rn_grad_t* g, const char* op) {
  rn_edge_t x = rn_grad_in(g, 0), y = rn_grad_in(g, 1);
  if (rn_grad_wants(g, 0)) rn_grad_to(g, 0, rn_ZerosLike(g->scope, x));
  if (rn_grad_wants(g, 1)) rn_grad_to(g, 1, rn_ZerosLike(g->scope, y));
  if (rn_grad_wants(g, 2)) rn_grad_to(g, 2, RN_RULE_ALIKE(g, op, x, y, rn_grad_dy(g, 0)));
  return RN_OK;
}

RN_RULE(max_pool_grad) { return maximum_gradient(g, "MaxPoolGradGrad"); }
RN_RULE(max_pool_grad_grad) { return maximum_gradient(g, "MaxPoolGrad"); }
RN_RULE(max_pool_3d_grad) { return maximum_gradient(g, "MaxPool3DGradGrad"); }
RN_RULE(max_pool_3d_grad_grad) { return maximum_gradient(g, "MaxPool3DGrad"); }

// The V2 ops take the window sizes as inputs.
static rn_status_t maximum_gradient_v2(rn_grad_t* g, const char* op) {
  rn_edge_t x = rn_grad_in(g, 0), y = rn_grad_in(g, 1);
  if (rn_grad_wants(g, 0)) rn_grad_to(g, 0, rn_ZerosLike(g->scope, x));
  if (rn_grad_wants(g, 1)) rn_grad_to(g, 1, rn_ZerosLike(g->scope, y));
  if (rn_grad_wants(g, 2))
    rn_grad_to(g, 2,
               RN_RULE_ALIKE(g, op, x, y, rn_grad_dy(g, 0), rn_grad_in(g, 3), rn_grad_in(g, 4)));
  return RN_OK;
}
RN_RULE(max_pool_grad_v2) { return maximum_gradient_v2(g, "MaxPoolGradGradV2"); }
RN_RULE(max_pool_grad_grad_v2) { return maximum_gradient_v2(g, "MaxPoolGradV2"); }

// Gathers the gradient from the positions of the maxima.
RN_RULE(max_pool_grad_with_argmax) {
  rn_edge_t x = rn_grad_in(g, 0), grad = rn_grad_in(g, 1), places = rn_grad_in(g, 2);
  if (rn_grad_wants(g, 0)) rn_grad_to(g, 0, rn_ZerosLike(g->scope, x));
  if (!rn_grad_wants(g, 1)) return RN_OK;
  rn_edge_t dy = rn_grad_dy(g, 0), shape = rn_rule_shape(g, grad, RN_INT32);
  int64_t flat = -1;
  if (rn_grad_attr_bool(g, "include_batch_in_index")) {
    dy = rn_Reshape(g->scope, dy, rn_rule_ints(g, RN_INT32, &flat, 1));
    rn_grad_to(g, 1, rn_GatherV2(g->scope, dy, places, rn_const_int32(g->scope, 0)));
    return RN_OK;
  }
  // One row per image.
  rn_edge_t zero = rn_const_int32(g->scope, 0), one = rn_const_int32(g->scope, 1);
  rn_edge_t pair[2] = {rn_GatherV2(g->scope, rn_rule_shape(g, x, RN_INT32), zero, zero),
                       rn_const_int32(g->scope, -1)};
  rn_edge_t rows = rn_Pack(g->scope, pair, 2);
  dy = rn_Reshape(g->scope, dy, rows);
  places = rn_Reshape(g->scope, places, rows);
  rn_edge_t taken = rn_GatherV2(g->scope, dy, places, one, .batch_dims = 1);
  rn_grad_to(g, 1, rn_Reshape(g->scope, taken, shape));
  return RN_OK;
}

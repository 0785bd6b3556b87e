// Layers of the networks: see networks.h.
#include <math.h>
#include <stdio.h>

#include "networks.h"

int64_t network_dim(network_t* n, rn_edge_t edge, int i) {
  int64_t dims[8] = {0};
  TF_Status* status = TF_NewStatus();
  int rank = 0;
  TF_Graph* graph = rn_tf_graph_of(n->scope);
  if (edge.node) rank = TF_GraphGetTensorNumDims(graph, rn_output_of(edge), status);
  if (rank > 0 && rank <= 8) TF_GraphGetTensorShape(graph, rn_output_of(edge), dims, rank, status);
  TF_DeleteStatus(status);
  return i < rank ? dims[i] : -1;
}

static int scaled(const network_t* n, int filters) {
  int count = n->width > 0 ? (int)lround(filters * n->width) : filters;
  return count > 0 ? count : 1;
}

// |x| in the type that products and convolutions take.
static rn_edge_t lowered(network_t* n, rn_edge_t x) {
  int dtype = n->dtype ? (int)n->dtype : TF_FLOAT;
  if (!x.node || rn_edge_dtype(x) == dtype) return x;
  return rn_Cast(n->scope, x, dtype);
}

static const rn_var_t* variable(network_t* n, const char* kind, const int64_t* dims, int rank,
                                rn_initializer_t initializer, bool not_trainable) {
  char name[48];
  snprintf(name, sizeof name, "layer%d/%s", n->layers, kind);
  return rn_get_variable(n->scope, name, dims, rank, .initializer = initializer,
                         .not_trainable = not_trainable);
}

static rn_edge_t weights(network_t* n, const char* kind, const int64_t* dims, int rank,
                         rn_initializer_t initializer) {
  const rn_var_t* v = variable(n, kind, dims, rank, initializer, false);
  return v ? v->value : RN_NO_EDGE;
}

static int64_t next_seed(const network_t* n) { return n->seed + n->layers + 1; }

static void add_bias(network_t* n, int64_t units) {
  rn_edge_t bias = weights(n, "bias", &units, 1, rn_init_zeros());
  n->x = rn_BiasAdd(n->scope, n->x, lowered(n, bias));
}

// With the moving averages that inference uses.
static void normalize(network_t* n, int64_t depth) {
  rn_scope_t* s = n->scope;
  rn_edge_t gamma = weights(n, "gamma", &depth, 1, rn_init_ones());
  rn_edge_t beta = weights(n, "beta", &depth, 1, rn_init_zeros());
  const rn_var_t* averages[2] = {variable(n, "mean", &depth, 1, rn_init_zeros(), true),
                                 variable(n, "variance", &depth, 1, rn_init_ones(), true)};
  if (!rn_scope_ok(s)) return;
  rn_edge_t none = rn_const(s, TF_FLOAT, (const int64_t[]){0}, 1, "");
  rn_edge_t mean = n->is_inference ? averages[0]->value : none;
  rn_edge_t variance = n->is_inference ? averages[1]->value : none;
  rn_FusedBatchNormV3_out_t out =
      rn_FusedBatchNormV3(s, n->x, gamma, beta, mean, variance, .epsilon = RN_SET(1e-5f),
                          .is_training = RN_SET(!n->is_inference));
  n->x = out.y;
  rn_edge_t seen[2] = {out.batch_mean, out.batch_variance};
  for (int i = 0; i < 2 && !n->is_inference && rn_scope_ok(s); ++i) {
    rn_node_t* update =
        rn_assign_moving_average(s, averages[i], seen[i], rn_const_float(s, 0.9f), false);
    rn_collect(s, RN_UPDATE_OPS, (rn_edge_t){update, 0});
  }
}

// What comes after the sums of a convolution.
static void finish(network_t* n, int64_t filters, bool has_norm, rn_activation_t activation) {
  if (has_norm && !n->has_no_norms)
    normalize(n, filters);
  else
    add_bias(n, filters);
  if (activation) n->x = activation(n->scope, n->x);
  ++n->layers;
}

void network_convolution(network_t* n, const network_conv_t* c) {
  int filters = scaled(n, c->filters), stride = c->stride ? c->stride : 1;
  const int64_t dims[] = {c->height, c->width ? c->width : c->height, network_dim(n, n->x, 3),
                          filters};
  const int64_t strides[] = {1, stride, stride, 1};
  rn_edge_t kernel = weights(n, "kernel", dims, 4, rn_init_he_normal(next_seed(n)));
  n->x = rn_Conv2D(n->scope, lowered(n, n->x), lowered(n, kernel), strides, 4,
                   c->padding ? c->padding : "SAME");
  finish(n, filters, c->has_norm, c->activation);
}

void network_conv(network_t* n, int filters, int size, int stride, const char* padding) {
  network_convolution(n, &(network_conv_t){.filters = filters,
                                           .height = size,
                                           .stride = stride,
                                           .padding = padding,
                                           .activation = rn_relu});
}

void network_conv_norm(network_t* n, int filters, int size, int stride, bool relu) {
  network_convolution(n, &(network_conv_t){.filters = filters,
                                           .height = size,
                                           .stride = stride,
                                           .has_norm = true,
                                           .activation = relu ? rn_relu : NULL});
}

void network_depthwise_norm(network_t* n, int size, int stride, rn_activation_t activation) {
  const int64_t depth = network_dim(n, n->x, 3), dims[] = {size, size, depth, 1};
  const int64_t strides[] = {1, stride, stride, 1};
  double deviation = sqrt(2.0 / (size * size));  // He's: a window has one channel.
  rn_edge_t kernel = weights(n, "depthwise", dims, 4, rn_init_normal(0, deviation, next_seed(n)));
  n->x =
      rn_DepthwiseConv2dNative(n->scope, lowered(n, n->x), lowered(n, kernel), strides, 4, "SAME");
  finish(n, depth, true, activation);
}

void network_up_conv(network_t* n, int filters) {
  filters = scaled(n, filters);
  const int64_t dims[] = {2, 2, filters, network_dim(n, n->x, 3)}, strides[] = {1, 2, 2, 1};
  int32_t sizes[4];
  for (int i = 0; i < 3; ++i) sizes[i] = (int32_t)network_dim(n, n->x, i) * (i ? 2 : 1);
  sizes[3] = filters;
  rn_edge_t kernel = weights(n, "kernel", dims, 4, rn_init_he_normal(next_seed(n)));
  n->x = rn_Conv2DBackpropInput(n->scope, rn_const_int32_list(n->scope, sizes, 4),
                                lowered(n, kernel), lowered(n, n->x), strides, 4, "VALID");
  finish(n, filters, false, NULL);
}

void network_max_pool(network_t* n, int size, int stride, const char* padding) {
  n->x = rn_max_pool2d(n->scope, n->x, size, .strides = {stride, stride}, .padding = padding);
}

void network_average_pool(network_t* n, int size, int stride, const char* padding) {
  n->x = rn_average_pool2d(n->scope, n->x, size, .strides = {stride, stride}, .padding = padding);
}

void network_global_pool(network_t* n) {
  n->x = rn_Mean(n->scope, n->x, rn_const_int32_list(n->scope, (int32_t[]){1, 2}, 2));
}

void network_dense(network_t* n, int64_t units, rn_activation_t activation) {
  rn_edge_t kernel = weights(n, "kernel", (const int64_t[]){network_dim(n, n->x, 1), units}, 2,
                             rn_init_glorot_uniform(next_seed(n)));
  n->x = rn_MatMul(n->scope, lowered(n, n->x), lowered(n, kernel));
  add_bias(n, units);
  if (activation) n->x = activation(n->scope, n->x);
  ++n->layers;
}

void network_classify(network_t* n, int first, int second) {
  n->x = rn_flatten(n->scope, n->x);
  if (first) network_dense(n, scaled(n, first), rn_relu);
  if (second) network_dense(n, scaled(n, second), rn_relu);
  network_dense(n, n->classes, NULL);
  if (n->dtype && n->dtype != TF_FLOAT) n->x = rn_Cast(n->scope, n->x, TF_FLOAT);
}

void network_layer_norm(network_t* n) {
  char name[48];
  snprintf(name, sizeof name, "layer%d", n->layers++);
  n->x = rn_layer_norm(n->scope, n->x, .epsilon = RN_SET(1e-5f), .name = name);
}

// Activations, dense layers, dropout.
#include "train/layers/layer.h"

#define ACTIVATION(name, op) \
  RN_API rn_edge_t rn_##name(rn_scope_t* scope, rn_edge_t x) { return op(scope, x); }
ACTIVATION(relu, rn_Relu)
ACTIVATION(relu6, rn_Relu6)
ACTIVATION(elu, rn_Elu)
ACTIVATION(selu, rn_Selu)
ACTIVATION(softplus, rn_Softplus)
ACTIVATION(sigmoid, rn_Sigmoid)
ACTIVATION(tanh, rn_Tanh)
ACTIVATION(softmax, rn_Softmax)

rn_scope_t* rn_layer_begin(rn_scope_t* scope, const char* name, const char* fallback, rn_edge_t x) {
  if (!rn_is_edge(scope, x, name ? name : fallback, "the input")) return NULL;
  rn_scope_t* s = name ? rn_variable_scope(scope, name) : rn_unique_variable_scope(scope, fallback);
  if (rn_scope_ok(s)) return s;
  rn_scope_destroy(s);
  return NULL;
}

int64_t rn_layer_depth(rn_scope_t* s, rn_edge_t x, int axis) {
  int64_t depth = rn_dim_of_edge(x, axis);
  if (depth > 0 || !rn_scope_ok(s)) return depth > 0 ? depth : 0;
  rn_str_t name = rn_scope_prefix(s);
  rn_refuse(s, "Layer '%.*s': dimension %d of the input '%s' must be known and above 0",
            (int)name.size - 1, name.data, axis, x.node->name.data);
  return 0;
}

rn_edge_t rn_layer_weights(rn_scope_t* s, const char* name, rn_edge_t like, const int64_t* dims,
                           int rank, const rn_layer_options_t* options) {
  if (!rn_scope_ok(s)) return RN_NO_EDGE;
  const rn_var_t* v = rn_get_variable(s, name, dims, rank, .dtype = rn_edge_dtype(like),
                                      .initializer = options->kernel_initializer,
                                      .regularizer = options->kernel_regularizer);
  return v ? v->value : RN_NO_EDGE;
}

rn_edge_t rn_layer_end(rn_scope_t* s, rn_edge_t y, int64_t units,
                       const rn_layer_options_t* options) {
  if (!rn_scope_ok(s)) return RN_NO_EDGE;
  if (!options->no_bias) {
    rn_initializer_t zeros = rn_init_zeros();
    const rn_var_t* bias = rn_get_variable(
        s, "bias", &units, 1, .dtype = rn_edge_dtype(y),
        .initializer = options->bias_initializer.make ? options->bias_initializer : zeros,
        .regularizer = options->bias_regularizer, .no_regularizer = true);
    y = rn_BiasAdd(s, y, bias ? bias->value : RN_NO_EDGE, .data_format = options->data_format);
  }
  return options->activation && rn_scope_ok(s) ? options->activation(s, y) : y;
}

// All axes but the last folded into one.
static rn_edge_t as_matrix(rn_scope_t* s, rn_edge_t x, int64_t depth) {
  return rn_reshape(s, x, (const int64_t[]){-1, depth}, 2);
}

// [n, units] with the leading axes of |like|.
static rn_edge_t unfolded(rn_scope_t* s, rn_edge_t y, rn_edge_t like, int64_t units) {
  rn_shape_t shape = rn_shape_of_edge(like);
  int64_t dims[RN_MAX_RANK];
  int unknown = 0;
  for (int i = 0; i < shape.rank; ++i) {
    dims[i] = i == shape.rank - 1 ? units : shape.dims[i];
    unknown += dims[i] < 0;
  }
  if (unknown <= 1) return rn_reshape(s, y, dims, shape.rank);
  rn_edge_t parts[2] = {rn_rows(s, rn_Shape(s, like), 0, shape.rank - 1),
                        rn_axis(s, (int32_t)units)};
  return rn_Reshape(s, y, rn_ConcatV2(s, parts, 2, rn_const_int32(s, 0)));
}

RN_API rn_edge_t rn_dense_(rn_scope_t* scope, rn_edge_t x, int64_t units,
                           rn_layer_options_t options) {
  rn_scope_t* s = rn_layer_begin(scope, options.name, "dense", x);
  if (!s) return RN_NO_EDGE;
  int rank = rn_shape_of_edge(x).rank;
  int64_t depth = rn_layer_depth(s, x, -1);
  if (rank < 2)
    rn_refuse(s, "Layer 'dense': the input '%s' must have at least two dimensions",
              x.node->name.data);
  if (units <= 0) rn_refuse(s, "Layer 'dense': bad number of units: %lld", (long long)units);
  rn_edge_t kernel = rn_layer_weights(s, "kernel", x, (const int64_t[]){depth, units}, 2, &options);
  rn_edge_t flat = rank > 2 ? as_matrix(s, x, depth) : x;
  options.data_format = NULL;
  rn_edge_t y = rn_layer_end(s, rn_MatMul(s, flat, kernel), units, &options);
  if (rank > 2) y = unfolded(s, y, x, units);
  rn_scope_destroy(s);
  return y;
}

RN_API rn_edge_t rn_flatten(rn_scope_t* scope, rn_edge_t x) {
  if (!rn_is_edge(scope, x, "flatten", "the input")) return RN_NO_EDGE;
  rn_shape_t shape = rn_shape_of_edge(x);
  int64_t size = 1, batch = shape.rank > 0 ? shape.dims[0] : -1;
  for (int i = 1; i < shape.rank; ++i)
    size = shape.dims[i] < 0 || size < 0 || !rn_mul_i64_ok(size, shape.dims[i], &size) ? -1 : size;
  if (shape.rank < 1 || size < 0) {
    rn_refuse(scope, "Layer 'flatten': all but the first dimension of '%s' must be known",
              x.node->name.data);
    return RN_NO_EDGE;
  }
  return rn_reshape(scope, x, (const int64_t[]){batch, size}, 2);
}

RN_API rn_edge_t rn_dropout_(rn_scope_t* scope, rn_edge_t x, float rate,
                             rn_dropout_options_t options) {
  if (!rn_is_edge(scope, x, "dropout", "the input")) return RN_NO_EDGE;
  if (!(rate >= 0 && rate < 1)) {
    rn_refuse(scope, "Layer 'dropout': the rate %g is not in [0, 1)", rate);
    return RN_NO_EDGE;
  }
  rn_scope_t* s = rn_scope_child(scope, "dropout");
  rn_edge_t share = rn_like(s, x, rate);
  if (options.training.node) share = rn_SelectV2(s, options.training, share, rn_like(s, x, 0));
  rn_edge_t drawn = rn_RandomUniform(s, rn_run_shape(s, x), rn_edge_dtype(x),
                                     .seed = rn_graph_seed(options.seed), .seed2 = options.seed);
  rn_edge_t kept = rn_Cast(s, rn_GreaterEqual(s, drawn, share), rn_edge_dtype(x));
  rn_edge_t factor = rn_RealDiv(s, rn_like(s, x, 1), rn_Sub(s, rn_like(s, x, 1), share));
  rn_edge_t y = rn_Mul(s, rn_Mul(s, x, factor), kept);
  rn_scope_destroy(s);
  return y;
}

// Attention: scores for the rows of a memory, and their weighted sum.
#include <math.h>

#include "train/layers/layer.h"

// Masks scores: far below all others at positions that must not be attended to.
static rn_edge_t masked(rn_scope_t* s, rn_edge_t scores, rn_edge_t mask) {
  if (!mask.node) return scores;
  return rn_SelectV2(s, mask, scores, rn_like(s, scores, -INFINITY));
}

RN_API rn_attended_t rn_dot_product_attention_(rn_scope_t* scope, rn_edge_t q, rn_edge_t k,
                                               rn_edge_t v, rn_attention_options_t options) {
  rn_attended_t result = {0};
  const char* name = options.name ? options.name : "attention";
  if (!rn_is_edge(scope, q, name, "the query") || !rn_is_edge(scope, k, name, "the key") ||
      !rn_is_edge(scope, v, name, "the value"))
    return result;
  rn_scope_t* s = rn_scope_child(scope, name);
  int64_t depth = rn_layer_depth(s, q, -1);
  if (rn_scope_ok(s)) {
    rn_edge_t scores = rn_BatchMatMulV2(s, q, k, .adj_y = true);
    scores = rn_Mul(s, scores, rn_like(s, q, 1 / sqrt((double)depth)));
    result.weights = rn_Softmax(s, masked(s, scores, options.mask));
    result.context = rn_BatchMatMulV2(s, result.weights, v);
  }
  rn_scope_destroy(s);
  return result;
}

// true for the first |lengths| of each row of scores [batch, time].
static rn_edge_t within(rn_scope_t* s, rn_edge_t lengths, rn_edge_t scores) {
  if (!lengths.node) return RN_NO_EDGE;
  rn_edge_t count = rn_element(s, rn_run_shape(s, scores), 1);
  rn_edge_t times = rn_Range(s, rn_const_int32(s, 0), count, rn_const_int32(s, 1));
  rn_edge_t ends = rn_ExpandDims(s, rn_as(s, lengths, RN_INT32), rn_const_int32(s, 1));
  return rn_Less(s, times, ends);
}

// The sum of the memory's rows by their scores [batch, time].
static rn_attended_t attend(rn_scope_t* s, rn_edge_t scores, rn_edge_t memory, rn_edge_t lengths) {
  rn_attended_t result = {0};
  if (!rn_scope_ok(s)) return result;
  result.weights = rn_Softmax(s, masked(s, scores, within(s, lengths, scores)));
  rn_edge_t row = rn_ExpandDims(s, result.weights, rn_const_int32(s, 1));
  int64_t one = 1;
  result.context =
      rn_Squeeze(s, rn_BatchMatMulV2(s, row, memory), .squeeze_dims = RN_LIST(&one, 1));
  return result;
}

static rn_scope_t* begin(rn_scope_t* scope, const char* name, const char* fallback, rn_edge_t query,
                         rn_edge_t memory) {
  if (!rn_is_edge(scope, memory, name ? name : fallback, "the memory")) return NULL;
  rn_scope_t* s = rn_layer_begin(scope, name, fallback, query);
  if (s && (rn_shape_of_edge(query).rank != 2 || rn_shape_of_edge(memory).rank != 3))
    rn_refuse(s, "Layer '%s': the query must have two dimensions, the memory three",
              name ? name : fallback);
  return s;
}

RN_API rn_attended_t rn_luong_attention_(rn_scope_t* scope, rn_edge_t query, rn_edge_t memory,
                                         rn_attention_options_t options) {
  rn_scope_t* s = begin(scope, options.name, "luong_attention", query, memory);
  rn_attended_t result = {0};
  if (rn_scope_ok(s)) {
    int64_t units = rn_layer_depth(s, query, 1);
    rn_edge_t keys = rn_dense(s, memory, units, .no_bias = true, .name = "memory_layer");
    rn_edge_t column = rn_ExpandDims(s, query, rn_const_int32(s, 2));
    int64_t last = 2;
    rn_edge_t scores =
        rn_Squeeze(s, rn_BatchMatMulV2(s, keys, column), .squeeze_dims = RN_LIST(&last, 1));
    if (options.scale && rn_scope_ok(s)) {
      const rn_var_t* g = rn_get_variable(s, "attention_g", NULL, 0, .dtype = rn_edge_dtype(query),
                                          .initializer = rn_init_ones());
      scores = rn_Mul(s, scores, g ? g->value : RN_NO_EDGE);
    }
    result = attend(s, scores, memory, options.lengths);
  }
  rn_scope_destroy(s);
  return result;
}

RN_API rn_attended_t rn_bahdanau_attention_(rn_scope_t* scope, rn_edge_t query, rn_edge_t memory,
                                            int64_t units, rn_attention_options_t options) {
  rn_scope_t* s = begin(scope, options.name, "bahdanau_attention", query, memory);
  rn_attended_t result = {0};
  if (rn_scope_ok(s)) {
    rn_edge_t keys = rn_dense(s, memory, units, .no_bias = true, .name = "memory_layer");
    rn_edge_t asked = rn_dense(s, query, units, .no_bias = true, .name = "query_layer");
    asked = rn_ExpandDims(s, asked, rn_const_int32(s, 1));
    const rn_var_t* v =
        rn_scope_ok(s) ? rn_get_variable(s, "attention_v", &units, 1, .dtype = rn_edge_dtype(query))
                       : NULL;
    rn_edge_t hidden = rn_Tanh(s, rn_AddV2(s, keys, asked));
    rn_edge_t scores = rn_Sum(s, rn_Mul(s, hidden, v ? v->value : RN_NO_EDGE), rn_axis(s, 2));
    result = attend(s, scores, memory, options.lengths);
  }
  rn_scope_destroy(s);
  return result;
}

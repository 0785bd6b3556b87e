// A transformer: see networks.h.
#include <math.h>
#include <stdlib.h>

#include "networks.h"

typedef struct shape_t {
  int64_t batch, time, heads, width;
} shape_t;

// x · Φ(x), exactly.
static rn_edge_t gelu(rn_scope_t* s, rn_edge_t x) {
  int dtype = rn_edge_dtype(x);
  rn_edge_t inner = rn_Erf(s, rn_Mul(s, x, rn_const_scalar(s, dtype, sqrt(0.5))));
  inner = rn_AddV2(s, inner, rn_const_scalar(s, dtype, 1));
  return rn_Mul(s, rn_Mul(s, x, rn_const_scalar(s, dtype, 0.5)), inner);
}

static rn_edge_t reshaped(rn_scope_t* s, rn_edge_t x, const int64_t* dims, int rank) {
  int32_t list[8];
  for (int i = 0; i < rank; ++i) list[i] = (int32_t)dims[i];
  return rn_Reshape(s, x, rn_const_int32_list(s, list, rank));
}

// [time, time]: which words a word sees.
static rn_edge_t causal_mask(rn_scope_t* s, int64_t time) {
  bool* mask = calloc((size_t)(time * time), sizeof *mask);
  for (int64_t i = 0; mask && i < time * time; ++i) mask[i] = i % time <= i / time;
  rn_edge_t edge = RN_NO_EDGE;
  if (mask) edge = rn_const(s, TF_BOOL, (const int64_t[]){time, time}, 2, mask);
  free(mask);
  return edge;
}

// One product makes queries, keys and values.
static void attend(network_t* n, const shape_t* shape, rn_edge_t mask) {
  rn_scope_t* s = n->scope;
  int64_t depth = shape->width / shape->heads;
  network_dense(n, 3 * shape->width, NULL);
  rn_edge_t all =
      reshaped(s, n->x, (const int64_t[]){shape->batch, shape->time, 3, shape->heads, depth}, 5);
  all = rn_Transpose(s, all, rn_const_int32_list(s, (int32_t[]){2, 0, 3, 1, 4}, 5));
  rn_edges_t parts = rn_Unpack(s, all, 3);
  rn_edge_t y = rn_dot_product_attention(s, rn_edge_at(parts, 0), rn_edge_at(parts, 1),
                                         rn_edge_at(parts, 2), .mask = mask)
                    .context;
  y = rn_Transpose(s, y, rn_const_int32_list(s, (int32_t[]){0, 2, 1, 3}, 4));
  n->x = reshaped(s, y, (const int64_t[]){shape->batch * shape->time, shape->width}, 2);
  network_dense(n, shape->width, NULL);
}

static void feed_forward(network_t* n, const shape_t* shape) {
  network_dense(n, 4 * shape->width, gelu);
  network_dense(n, shape->width, NULL);
}

// The sum of two paths is kept in float.
static void add(network_t* n, rn_edge_t x) {
  if (n->x.node && rn_edge_dtype(n->x) != TF_FLOAT) n->x = rn_Cast(n->scope, n->x, TF_FLOAT);
  n->x = rn_AddV2(n->scope, x, n->x);
}

static void block(network_t* n, const shape_t* shape, rn_edge_t mask) {
  rn_edge_t x = n->x;
  network_layer_norm(n);
  attend(n, shape, mask);
  add(n, x);
  x = n->x;
  network_layer_norm(n);
  feed_forward(n, shape);
  add(n, x);
}

void network_transformer(network_t* n, const network_transformer_t* sizes, rn_edge_t ids) {
  rn_scope_t* s = n->scope;
  shape_t shape = {network_dim(n, ids, 0), network_dim(n, ids, 1), sizes->heads, sizes->width};
  const int64_t dims[] = {shape.time, shape.width};
  const rn_var_t* places = rn_get_variable(s, "positions", dims, 2, .initializer = rn_init_zeros());
  n->x = rn_embedding(s, ids, sizes->words, shape.width,
                      .kernel_initializer = rn_init_normal(0, 0.1, n->seed + 999));
  if (!places) return;
  n->x = rn_AddV2(s, n->x, places->value);
  n->x = reshaped(s, n->x, (const int64_t[]){shape.batch * shape.time, shape.width}, 2);
  rn_edge_t mask = sizes->is_causal ? causal_mask(s, shape.time) : RN_NO_EDGE;
  for (int i = 0; i < sizes->blocks; ++i) block(n, &shape, mask);
  network_layer_norm(n);
  if (!sizes->has_no_head) network_dense(n, sizes->words, NULL);
  if (n->x.node && rn_edge_dtype(n->x) != TF_FLOAT) n->x = rn_Cast(s, n->x, TF_FLOAT);
}

// Gradient rules of sparse tensors.
#include "ops/rules.h"

// The places as a matrix with a row for each; a scalar or a vector stands for places in a vector.
static rn_edge_t places(rn_grad_t* g, rn_edge_t indices, rn_edge_t dense) {
  if (rn_rule_rank(g, indices) == 2) return indices;
  rn_edge_t shape;
  int64_t sizes[2] = {-1, rn_rule_rank(g, dense)};
  if (sizes[1] >= 0) {
    shape = rn_rule_ints(g, RN_INT32, sizes, 2);
  } else {
    rn_edge_t parts[2] = {rn_const_int32(g->scope, -1), rn_Rank(g->scope, dense)};
    shape = rn_Pack(g->scope, parts, 2);
  }
  return rn_Reshape(g->scope, indices, shape);
}

// Values get the gradient from their places (one value may go to many), the default that from
// everywhere else.
RN_RULE(sparse_to_dense) {
  rn_edge_t values = rn_grad_in(g, 2), dy = rn_grad_dy(g, 0);
  rn_edge_t taken = rn_GatherNd(g->scope, dy, places(g, rn_grad_in(g, 0), dy));
  if (rn_grad_wants(g, 2)) rn_grad_to(g, 2, rn_rule_unbroadcast(g, taken, values, taken, 0));
  if (rn_grad_wants(g, 3))
    rn_grad_to(g, 3, rn_Sub(g->scope, rn_rule_sum_all(g, dy), rn_rule_sum_all(g, taken)));
  return RN_OK;
}

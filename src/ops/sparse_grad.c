// Gradient rules of sparse tensors.
#include "ops/rules.h"

// Values get the gradient from their places, the default that from everywhere else.
RN_RULE(sparse_to_dense) {
  rn_edge_t indices = rn_grad_in(g, 0), values = rn_grad_in(g, 2), dy = rn_grad_dy(g, 0);
  // A scalar or a vector of indices stands for places in a vector.
  int rank = rn_rule_rank(g, indices);
  if (rank >= 0 && rank < 2) indices = rn_rule_expand(g, indices, -1);
  rn_edge_t taken = rn_GatherNd(g->scope, dy, indices);
  if (rn_grad_wants(g, 2)) {
    // One value may go to many places.
    bool is_shared = rn_rule_rank(g, values) == 0;
    rn_grad_to(g, 2, is_shared ? rn_rule_sum_all(g, taken) : taken);
  }
  if (rn_grad_wants(g, 3))
    rn_grad_to(g, 3, rn_Sub(g->scope, rn_rule_sum_all(g, dy), rn_rule_sum_all(g, taken)));
  return RN_OK;
}

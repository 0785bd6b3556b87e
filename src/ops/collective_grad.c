// Gradient rules of collectives.
#include "ops/rules.h"

// What went from source to target comes back from target to source.
RN_RULE(collective_permute) {
  rn_edge_t axis = rn_const_int32_list(g->scope, (int32_t[]){1}, 1);
  rn_edge_t pairs = rn_ReverseV2(g->scope, rn_grad_in(g, 1), axis);
  rn_grad_to(g, 0, rn_CollectivePermute(g->scope, rn_grad_dy(g, 0), pairs));
  return RN_OK;
}

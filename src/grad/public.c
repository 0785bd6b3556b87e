// The gradients of include/runnel/runnel.h: on scopes, with their errors.
#include "grad/grad.h"
#include "graph/build.h"
#include "runnel/runnel.h"

bool rn_gradients(rn_scope_t* scope, rn_edge_t y, const rn_edge_t* xs, int count,
                  rn_edge_t* out_dxs) {
  if (!rn_scope_ok(scope)) return false;
  rn_status_t status = RN_OK;
  if (!y.node || !out_dxs || count < 0 || (count > 0 && !xs))
    status = rn_invalid_argument("rn_gradients: an argument is NULL");
  for (int i = 0; rn_ok(status) && i < count; ++i)
    if (!xs[i].node) status = rn_invalid_argument("rn_gradients: x number %d is no edge", i);
  if (rn_ok(status))
    status = rn_add_gradients(rn_scope_graph(scope), RN_STR(""), &y, 1, xs, count, NULL, out_dxs);
  if (!rn_ok(status)) rn_scope_fail(scope, status);
  return rn_scope_ok(scope);
}

// Implements include/runnel/gradients.h: gradients on scopes, which carry the errors.
#include "grad/grad.h"
#include "graph/build.h"
#include "runnel/ops.h"

static rn_status_t check_edges(rn_graph_t* graph, const char* what, const rn_edge_t* edges,
                               int count, bool may_lack) {
  if (count < 0 || (count > 0 && !edges))
    return rn_invalid_argument("rn_gradients: the list of %s is NULL", what);
  for (int i = 0; i < count; ++i) {
    if (may_lack && !edges[i].node) continue;
    if (!edges[i].node)
      return rn_invalid_argument("rn_gradients: %s number %d is not an edge", what, i);
    if (edges[i].node->graph != graph)
      return rn_invalid_argument("rn_gradients: '%s' belongs to another graph",
                                 edges[i].node->name.data);
    if (edges[i].index < 0 || edges[i].index >= edges[i].node->output_count)
      return rn_invalid_argument("rn_gradients: '%s' has no output %d", edges[i].node->name.data,
                                 edges[i].index);
  }
  return RN_OK;
}

static rn_status_t check_request(const rn_grad_request_t* request, const rn_gradient_t* out) {
  const rn_gradient_options_t* options = request->options;
  if (!out && request->x_count > 0) return rn_invalid_argument("rn_gradients: out is NULL");
  RN_RETURN_IF_ERROR(check_edges(request->graph, "y", request->ys, request->y_count, false));
  RN_RETURN_IF_ERROR(check_edges(request->graph, "x", request->xs, request->x_count, false));
  if (options->dys)
    RN_RETURN_IF_ERROR(check_edges(request->graph, "dy", options->dys, request->y_count, true));
  return check_edges(request->graph, "stop", options->stops, options->stop_count, false);
}

RN_API bool rn_gradients_of(rn_scope_t* scope, const rn_edge_t* ys, int y_count,
                            const rn_edge_t* xs, int x_count, const rn_gradient_options_t* options,
                            rn_gradient_t* out) {
  for (int i = 0; out && i < x_count; ++i) out[i] = (rn_gradient_t){0};
  if (!rn_scope_ok(scope)) return false;
  rn_gradient_options_t defaults = {0};
  rn_grad_request_t request = {.graph = rn_scope_graph(scope),
                               .ys = ys,
                               .y_count = y_count,
                               .xs = xs,
                               .x_count = x_count,
                               .options = options ? options : &defaults};
  rn_status_t status = check_request(&request, out);
  if (rn_ok(status)) status = rn_grad_run(&request, out);
  if (rn_ok(status)) return true;
  for (int i = 0; out && i < x_count; ++i) out[i] = (rn_gradient_t){0};
  rn_scope_fail(scope, status);
  return false;
}

RN_API bool rn_gradients(rn_scope_t* scope, rn_edge_t y, const rn_edge_t* xs, int count,
                         rn_edge_t* out_dxs) {
  if (!rn_scope_ok(scope)) return false;
  rn_graph_t* graph = rn_scope_graph(scope);
  rn_status_t status = check_edges(graph, "y", &y, 1, false);
  if (rn_ok(status)) status = check_edges(graph, "x", xs, count, false);
  if (rn_ok(status) && count > 0 && !out_dxs)
    status = rn_invalid_argument("rn_gradients: out is NULL");
  if (rn_ok(status)) status = rn_add_gradients(graph, RN_STR(""), &y, 1, xs, count, NULL, out_dxs);
  if (!rn_ok(status)) rn_scope_fail(scope, status);
  return rn_scope_ok(scope);
}

// Computes a Jacobian-vector product by two reverse passes: the first one with symbolic incoming
// gradients u. Its result is linear in u, and the gradient of that result with respect to u,
// weighted by the vectors, is the product.
static bool twice(rn_scope_t* scope, const rn_edge_t* ys, int y_count, const rn_edge_t* xs,
                  int x_count, const rn_edge_t* vs, rn_edge_t* us, rn_gradient_t* dxs,
                  rn_edge_t* flat, rn_edge_t* weights, rn_gradient_t* dus) {
  for (int i = 0; i < y_count; ++i) us[i] = rn_ZerosLike(scope, ys[i]);
  rn_gradient_options_t first = {.dys = us, .dense = true};
  if (!rn_gradients_of(scope, ys, y_count, xs, x_count, &first, dxs)) return false;
  int count = 0;
  for (int i = 0; i < x_count; ++i) {
    if (!dxs[i].dense.node || !vs[i].node) continue;
    flat[count] = dxs[i].dense;
    weights[count++] = vs[i];
  }
  rn_gradient_options_t second = {.dys = weights, .dense = true};
  return count == 0 || rn_gradients_of(scope, flat, count, us, y_count, &second, dus);
}

RN_API bool rn_jacobian_vector(rn_scope_t* scope, const rn_edge_t* ys, int y_count,
                               const rn_edge_t* xs, int x_count, const rn_edge_t* vs,
                               rn_edge_t* out_dys) {
  if (!rn_scope_ok(scope)) return false;
  rn_graph_t* graph = rn_scope_graph(scope);
  rn_status_t status = check_edges(graph, "y", ys, y_count, false);
  if (rn_ok(status)) status = check_edges(graph, "x", xs, x_count, false);
  if (rn_ok(status)) status = check_edges(graph, "vector", vs, x_count, true);
  if (rn_ok(status) && y_count > 0 && !out_dys)
    status = rn_invalid_argument("rn_jacobian_vector: out is NULL");
  rn_arena_t arena;
  rn_arena_init(&arena, graph->allocator);
  rn_edge_t *us = NULL, *flat = NULL, *weights = NULL;
  rn_gradient_t *dxs = NULL, *dus = NULL;
  if (rn_ok(status)) status = RN_ARENA_ARRAY(&arena, (size_t)y_count, &us);
  if (rn_ok(status)) status = RN_ARENA_ARRAY(&arena, (size_t)x_count, &flat);
  if (rn_ok(status)) status = RN_ARENA_ARRAY(&arena, (size_t)x_count, &weights);
  if (rn_ok(status)) status = RN_ARENA_ARRAY(&arena, (size_t)x_count, &dxs);
  if (rn_ok(status)) status = RN_ARENA_ARRAY(&arena, (size_t)y_count, &dus);
  if (!rn_ok(status)) rn_scope_fail(scope, status);
  bool done =
      rn_scope_ok(scope) && twice(scope, ys, y_count, xs, x_count, vs, us, dxs, flat, weights, dus);
  for (int i = 0; done && i < y_count; ++i) out_dys[i] = dus[i].dense;
  rn_arena_clear(&arena);
  return done;
}

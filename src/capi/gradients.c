// Gradients behind the C API.
#include "capi/internal.h"
#include "grad/grad.h"
#include "train/check_gradient.h"

// |may_lack|: edges without an operation are allowed.
static rn_status_t check_edges(rn_graph_t* graph, const TF_Output* edges, int count,
                               const char* what, bool may_lack) {
  if (count < 0 || (count > 0 && !edges)) {
    return rn_invalid_argument("TF_AddGradients: bad list of %d outputs in '%s'", count, what);
  }
  for (int i = 0; i < count; ++i) {
    if (may_lack && !edges[i].oper) continue;
    RN_RETURN_IF_ERROR(rn_capi_check_edge(graph, rn_capi_edge(edges[i])));
  }
  return RN_OK;
}

static void log_line(void* arg, const char* line) {
  (void)arg;
  rn_log(rn_capi_env(), RN_LOG_WARNING, "%s", line);
}

static rn_status_t add_gradients(rn_graph_t* graph, const char* prefix, const TF_Output* y, int ny,
                                 const TF_Output* x, int nx, const TF_Output* initial,
                                 TF_Output* results) {
  if (!graph) return rn_capi_null("TF_AddGradients", "g");
  if (nx > 0 && !results) return rn_capi_null("TF_AddGradients", "dy");
  RN_RETURN_IF_ERROR(check_edges(graph, y, ny, "y", false));
  RN_RETURN_IF_ERROR(check_edges(graph, x, nx, "x", false));
  if (initial) RN_RETURN_IF_ERROR(check_edges(graph, initial, ny, "dx", true));
  rn_gradient_t* out = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(rn_capi_allocator(), (size_t)nx, &out));
  rn_gradient_options_t options = {
      .dys = (const rn_edge_t*)initial, .dense = true, .name = prefix, .log = log_line};
  rn_status_t status = rn_grad_run_like_stock(graph, (const rn_edge_t*)y, ny, (const rn_edge_t*)x,
                                              nx, &options, out);
  for (int i = 0; rn_ok(status) && i < nx; ++i)
    results[i] = out[i].dense.node ? rn_capi_output(out[i].dense) : (TF_Output){NULL, -1};
  RN_FREE_ARRAY(rn_capi_allocator(), out, nx);
  return status;
}

// |dx| holds the gradients that arrive at y, |dy| receives those of x.
void TF_AddGradientsWithPrefix(TF_Graph* g, const char* prefix, TF_Output* y, int ny, TF_Output* x,
                               int nx, TF_Output* dx, TF_Status* status, TF_Output* dy) {
  rn_status_t outcome = add_gradients(rn_capi_graph(g), prefix, y, ny, x, nx, dx, dy);
  if (!rn_ok(outcome)) RN_CAPI_CLEAR(dy, nx);
  rn_capi_set(status, outcome);
}

void TF_AddGradients(TF_Graph* g, TF_Output* y, int ny, TF_Output* x, int nx, TF_Output* dx,
                     TF_Status* status, TF_Output* dy) {
  TF_AddGradientsWithPrefix(g, NULL, y, ny, x, nx, dx, status, dy);
}

RN_API bool rn_check_gradient(rn_scope_t* scope, const rn_edge_t* ys, int y_count,
                              const rn_edge_t* xs, TF_Tensor* const* values, int x_count,
                              const rn_check_options_t* options, double* out_error) {
  return rn_gradient_check(scope, ys, y_count, xs, (const rn_tensor_t* const*)values, x_count,
                           options, rn_capi_env(), out_error);
}

// The value of an output that depends on constants alone.
#include "capi/session.h"
#include "graph/edit.h"

// Runs a step on one thread, in a temporary session.
static rn_status_t evaluate(rn_graph_t* graph, rn_edge_t edge, TF_Tensor** out) {
  rn_session_options_t options;
  rn_session_t* session = NULL;
  rn_tensor_t value = {0};
  rn_session_options_init(&options);
  options.intra_threads = options.inter_threads = 1;
  options.allow_soft_placement = true;  // any device will do
  RN_RETURN_IF_ERROR(
      rn_session_create(graph, &options, rn_capi_env(), rn_capi_allocator(), &session));
  rn_signature_t signature = {.fetches = &edge, .fetch_count = 1};
  rn_status_t status = rn_session_run(session, &signature, NULL, &value, NULL);
  rn_session_destroy(session);
  return rn_ok(status) ? rn_capi_tensor_wrap(&value, out) : status;
}

unsigned char TF_TryEvaluateConstant(TF_Graph* graph, TF_Output output, TF_Tensor** result,
                                     TF_Status* status) {
  if (result) *result = NULL;
  if (!graph || !result) {
    rn_capi_set(status, RN_CAPI_NULL(graph ? "result" : "graph"));
    return 0;
  }
  rn_graph_t* g = rn_capi_graph(graph);
  rn_edge_t edge = rn_capi_edge(output);
  bool constant = false;
  rn_status_t outcome = rn_capi_check_edge(g, edge);
  if (rn_ok(outcome)) outcome = rn_graph_is_constant(g, edge.node, &constant);
  if (rn_ok(outcome) && constant) outcome = evaluate(g, edge, result);
  rn_capi_set(status, outcome);
  return *result != NULL;
}

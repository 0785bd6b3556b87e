// While loops of the C API: graph/while_loop.h behind a TF_WhileParams. That struct has no field
// for the loop itself, so the loop is stored in front of the edges that |cond_inputs| points to.
#include "graph/while_loop.h"

#include "capi/internal.h"
#include "tensorflow/c/c_api_legacy.h"

static rn_loop_graphs_t* loop_of(const TF_WhileParams* params) {
  if (!params || !params->cond_inputs) return NULL;
  return (rn_loop_graphs_t*)((char*)(uintptr_t)params->cond_inputs -
                             offsetof(rn_loop_graphs_t, edges));
}

static rn_status_t create(rn_graph_t* parent, const TF_Output* inputs, int count,
                          rn_loop_graphs_t** out) {
  if (!parent) return rn_capi_null("TF_NewWhile", "g");
  if (count <= 0) return rn_invalid_argument("TF_NewWhile() must be passed at least one input");
  if (!inputs) return rn_capi_null("TF_NewWhile", "inputs");
  for (int i = 0; i < count; ++i)
    RN_RETURN_IF_ERROR(rn_capi_check_edge(parent, rn_capi_edge(inputs[i])));
  return rn_loop_graphs_create(parent, (const rn_edge_t*)inputs, count, rn_capi_allocator(), out);
}

TF_WhileParams TF_NewWhile(TF_Graph* g, TF_Output* inputs, int ninputs, TF_Status* status) {
  rn_loop_graphs_t* loop = NULL;
  if (!rn_capi_ok(status, create(rn_capi_graph(g), inputs, ninputs, &loop))) {
    return (TF_WhileParams){0};
  }
  return (TF_WhileParams){
      .ninputs = ninputs,
      .cond_graph = (TF_Graph*)loop->cond,
      .cond_inputs = (TF_Output*)rn_loop_cond_inputs(loop),
      .cond_output = {NULL, -1},
      .body_graph = (TF_Graph*)loop->body,
      .body_inputs = (TF_Output*)rn_loop_body_inputs(loop),
      .body_outputs = (TF_Output*)rn_loop_body_outputs(loop),
  };
}

static rn_status_t finish(const TF_WhileParams* params, TF_Output* outputs) {
  rn_loop_graphs_t* loop = loop_of(params);
  if (!loop) return rn_capi_null("TF_FinishWhile", "params");
  if (!outputs) return rn_capi_null("TF_FinishWhile", "outputs");
  if (!params->cond_output.oper) {
    return rn_invalid_argument("TF_WhileParams `cond_output` field isn't set");
  }
  for (int i = 0; i < loop->count; ++i) {
    if (!rn_loop_body_outputs(loop)[i].node) {
      return rn_invalid_argument("TF_WhileParams `body_outputs[%d]` field isn't set", i);
    }
  }
  if (!params->name) return rn_invalid_argument("TF_WhileParams `name` field is null");
  return rn_loop_graphs_finish(loop, rn_str(params->name), rn_capi_edge(params->cond_output),
                               (rn_edge_t*)outputs);
}

void TF_FinishWhileHelper(const TF_WhileParams* params, TF_Status* status, TF_Output* outputs) {
  rn_status_t outcome = finish(params, outputs);
  if (!rn_ok(outcome) && params) RN_CAPI_CLEAR(outputs, params->ninputs);
  rn_capi_set(status, outcome);
}

void TF_FinishWhile(const TF_WhileParams* params, TF_Status* status, TF_Output* outputs) {
  TF_FinishWhileHelper(params, status, outputs);
  rn_loop_graphs_destroy(loop_of(params));
}

void TF_AbortWhile(const TF_WhileParams* params) { rn_loop_graphs_destroy(loop_of(params)); }

// Steps on C arrays: runnel/run.h over session/run_args.h.
#include "session/run_args.h"

#include "capi/session.h"

RN_API TF_Session* rn_session_start(rn_scope_t* scope, const TF_SessionOptions* options,
                                    TF_Status* status) {
  TF_Session* session = NULL;
  rn_status_t outcome;
  if (!scope)
    outcome = RN_CAPI_NULL("scope");
  else if (!rn_scope_ok(scope))
    outcome = rn_status_make((rn_code_t)rn_scope_code(scope), "%s", rn_scope_message(scope));
  else
    outcome = rn_capi_session_create(rn_scope_graph(scope), options, &session);
  rn_capi_set(status, outcome);
  return session;
}

// Handles of results requested as tensors are allocated before the step: see rn_capi_fetches_t.
rn_status_t rn_capi_run_args(rn_graph_t* graph, const rn_run_arg_t* args, size_t count,
                             rn_capi_run_fn_t run, void* self) {
  rn_args_step_t step;
  rn_capi_fetches_t handles = {0};
  TF_Tensor** results = NULL;
  for (size_t i = 0; args && i < count; ++i)
    if (args[i].out_tensor) *args[i].out_tensor = NULL;
  rn_status_t status = rn_args_step_init(&step, graph, rn_capi_allocator(), args, count);
  if (rn_ok(status)) status = RN_ARENA_ARRAY(&step.arena, (size_t)step.tensor_count, &results);
  if (rn_ok(status)) status = rn_capi_fetches_init(&handles, step.tensor_count);
  if (rn_ok(status)) status = run(self, &step.signature, step.feeds, step.fetches);
  if (rn_ok(status)) status = rn_args_step_deliver(&step, handles.tensors);
  if (rn_ok(status)) {
    rn_capi_fetches_take(&handles, results);
    for (size_t i = 0; i < count; ++i)
      if (args[i].out_tensor) *args[i].out_tensor = *results++;
  }
  rn_capi_fetches_clear(&handles);
  rn_args_step_clear(&step);
  return status;
}

static rn_status_t run_session(void* self, const rn_signature_t* signature,
                               const rn_tensor_t* const* feeds, rn_tensor_t* fetches) {
  return rn_session_run(self, signature, feeds, fetches, NULL);
}

RN_API bool rn_run_args(TF_Session* session, const rn_run_arg_t* args, size_t count,
                        TF_Status* status) {
  if (!session && status && TF_GetCode(status) != TF_OK) return false;
  return rn_capi_ok(status, session ? rn_capi_run_args(rn_session_graph(session->session), args,
                                                       count, run_session, session->session)
                                    : RN_CAPI_NULL("session"));
}

// The tasks of a cluster watch over each other: errors, states and barriers.
#include "capi/eager/eager.h"
#include "device/device.h"
#include "dist/coordination/agent.h"
#include "dist/eager/client.h"

static rn_status_t get_agent(TFE_Context* ctx, rn_agent_t** out) {
  *out = ctx ? rn_eager_client_agent(rn_capi_eager(ctx)) : NULL;
  if (!ctx) return RN_CAPI_NULL("ctx");
  if (*out) return RN_OK;
  return rn_failed_precondition("Coordination service agent is not enabled.");
}

void TFE_ReportErrorToCluster(TFE_Context* ctx, int error_code, const char* error_message,
                              TF_Status* status) {
  rn_agent_t* agent = NULL;
  rn_status_t outcome = get_agent(ctx, &agent);
  if (rn_ok(outcome))
    outcome = rn_agent_report(agent, error_code, rn_str(error_message ? error_message : ""));
  rn_capi_set(status, outcome);
}

void TFE_WaitAtBarrier(TFE_Context* ctx, const char* barrier_id, int64_t barrier_timeout_in_ms,
                       TF_Status* status) {
  rn_agent_t* agent = NULL;
  rn_status_t outcome = barrier_id ? get_agent(ctx, &agent) : RN_CAPI_NULL("barrier_id");
  if (rn_ok(outcome)) outcome = rn_agent_barrier(agent, rn_str(barrier_id), barrier_timeout_in_ms);
  rn_capi_set(status, outcome);
}

// Asks for each task of the list in turn.
static rn_status_t get_states(rn_agent_t* agent, rn_str_t names, int* states) {
  while (names.size) {
    rn_str_t name = rn_str_split(&names, '\n');
    rn_device_spec_t task;
    if (!name.size) continue;
    if (!rn_device_spec_parse(name, &task) || task.task < 0)
      return rn_invalid_argument("%.*s is no task", RN_STR_ARGS(name));
    RN_RETURN_IF_ERROR(rn_agent_state(agent, task.job, task.task, states++));
  }
  return RN_OK;
}

// Stock takes C++ objects here.
void TFE_GetTaskStates(TFE_Context* ctx, const TF_Buffer* tasks, void* states, TF_Status* status) {
  rn_agent_t* agent = NULL;
  rn_status_t outcome = !tasks    ? RN_CAPI_NULL("tasks")
                        : !states ? RN_CAPI_NULL("states")
                                  : get_agent(ctx, &agent);
  if (rn_ok(outcome)) outcome = get_states(agent, rn_str_n(tasks->data, tasks->length), states);
  rn_capi_set(status, outcome);
}

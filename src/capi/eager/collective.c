// Collectives of a context: ending them, and asking whether their members are well.
#include "capi/eager/eager.h"
#include "dist/eager/client.h"
#include "session/session.h"
#include "tensorflow/c/c_api_experimental.h"

// As in stock, |status| says how they end, and stays as it is.
void TFE_AbortCollectiveOps(TFE_Context* ctx, TF_Status* status) {
  rn_status_t outcome = !ctx      ? RN_CAPI_NULL("ctx")
                        : !status ? RN_CAPI_NULL("status")
                        : TF_GetCode(status) == TF_OK
                            ? rn_invalid_argument("Collectives must be ended with an error")
                            : RN_OK;
  if (!rn_ok(outcome)) {
    rn_capi_set(status, outcome);
    return;
  }
  rn_step_t step;
  rn_session_step_init(rn_eager_session(rn_capi_eager(ctx)), &step);
  const char* message = TF_Message(status);
  rn_collectives_abort(step.collectives,
                       rn_status_make_n((rn_code_t)TF_GetCode(status), message, strlen(message)));
}

void TFE_CollectiveOpsCheckPeerHealth(TFE_Context* ctx, const char* task, int64_t timeout_in_ms,
                                      TF_Status* status) {
  bool is_alive = false;
  rn_status_t outcome =
      !ctx    ? RN_CAPI_NULL("ctx")
      : !task ? RN_CAPI_NULL("task")
              : rn_eager_client_check(rn_capi_eager(ctx), rn_str(task), timeout_in_ms, &is_alive);
  if (rn_ok(outcome) && !is_alive) outcome = rn_unavailable("%s does not answer", task);
  rn_capi_set(status, outcome);
}

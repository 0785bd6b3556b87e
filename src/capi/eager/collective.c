// Collectives of a context: with those of other processes, ending them, and asking whether their
// members are well.
#include <time.h>

#include "capi/eager/eager.h"
#include "capi/server.h"
#include "dist/eager/client.h"
#include "runnel/session.h"
#include "session/session.h"
#include "tensorflow/c/c_api_experimental.h"

static int cpu_count(rn_eager_t* eager) {
  const rn_session_t* session = rn_eager_session(eager);
  int count = 0;
  for (int i = 0; i < rn_session_device_count(session); ++i)
    count += strcmp(rn_session_device(session, i)->type, "CPU") == 0;
  return count;
}

rn_status_t rn_capi_make_server(rn_eager_t* eager, rn_str_t server_def, rn_server_t** out) {
  return rn_capi_server_create(server_def, cpu_count(eager), out);
}

// Starts a server for the task of the ServerDef, which serves the other tasks, and makes the
// context a part of it. As in stock, each call makes a new server, and nothing may run meanwhile.
static rn_status_t enable(TFE_Context* ctx, rn_str_t server_def) {
  rn_eager_t* eager = rn_capi_eager(ctx);
  rn_server_t* server = NULL;
  rn_eager_join_t join = {.env = rn_capi_env(),
                          .allocator = rn_capi_allocator(),
                          .server_def = server_def,
                          .is_alone = true};
  RN_RETURN_IF_ERROR(rn_capi_make_server(eager, server_def, &server));
  return rn_eager_client_serve(eager, &join, server);
}

void TFE_EnableCollectiveOps(TFE_Context* ctx, const void* proto, size_t proto_len,
                             TF_Status* status) {
  rn_capi_set(status, !ctx                  ? RN_CAPI_NULL("ctx")
                      : !proto && proto_len ? RN_CAPI_NULL("proto")
                                            : enable(ctx, rn_str_n(proto, proto_len)));
}

// Polls, because neither end of a connection tells when the last byte of a value has left.
RN_API bool rn_context_finish_collectives(TFE_Context* context, int64_t timeout_ms) {
  rn_server_t* server = context ? rn_eager_client_server(rn_capi_eager(context)) : NULL;
  const rn_env_t* env = rn_capi_env();
  int64_t start = env->now_ns(env->self), quiet = 0;
  while (server && quiet < 3) {
    const struct timespec moment = {.tv_nsec = 10000000};
    quiet = rn_server_is_busy(server) ? 0 : quiet + 1;
    if (quiet == 0 && (env->now_ns(env->self) - start) / 1000000 >= timeout_ms) return false;
    nanosleep(&moment, NULL);
  }
  return true;
}

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

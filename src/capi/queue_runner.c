// Queue runners over the C API's sessions.
#include "train/queue_runner.h"

#include "capi/session.h"

RN_API int rn_start_queue_runners(TF_Session* session, TF_Graph* graph,
                                  rn_coordinator_t* coordinator) {
  int count = 0;
  rn_status_t status =
      session && graph && coordinator
          ? rn_queue_runners_start(session->session, rn_capi_graph(graph), coordinator, &count)
          : rn_invalid_argument("rn_start_queue_runners: an argument is NULL");
  if (rn_ok(status)) return count;
  rn_coordinator_report(coordinator, (int)rn_status_code(status), rn_status_message(status));
  rn_status_free(status);
  return -1;
}

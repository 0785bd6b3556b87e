// Queue runners: threads that fill queues.
#ifndef RUNNEL_TRAIN_QUEUE_RUNNER_H_
#define RUNNEL_TRAIN_QUEUE_RUNNER_H_

#include "runnel/coordinator.h"
#include "session/session.h"

// rn_start_queue_runners for an rn_session_t.
RN_MUST_USE rn_status_t rn_queue_runners_start(rn_session_t* session, rn_graph_t* graph,
                                               rn_coordinator_t* coordinator, int* out_count);

#endif  // RUNNEL_TRAIN_QUEUE_RUNNER_H_

// Threads that work together and stop together: a coordinator, and the threads that fill queues.
//
//   rn_coordinator_t* c = rn_coordinator_create();
//   rn_start_queue_runners(session, graph, c);
//   while (!rn_coordinator_should_stop(c)) { … a training step … }
//   rn_coordinator_request_stop(c);
//   if (rn_coordinator_join(c, 10) != 0) fprintf(stderr, "%s\n", rn_coordinator_message(c));
//   rn_coordinator_destroy(c);
//
// Every function may be called from any thread, and takes NULL.
#ifndef RUNNEL_COORDINATOR_H_
#define RUNNEL_COORDINATOR_H_

#include "runnel/graph.h"
#include "tensorflow/c/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rn_coordinator_t rn_coordinator_t;

// NULL when memory is short.
RN_API rn_coordinator_t* rn_coordinator_create(void);
// Asks for a stop. What the coordinator is made of lives on until the last of its threads has
// ended.
RN_API void rn_coordinator_destroy(rn_coordinator_t* coordinator);

// Whether somebody has asked for a stop. Threads call this in their loop.
RN_API bool rn_coordinator_should_stop(const rn_coordinator_t* coordinator);
// Asks all threads of the coordinator to stop.
RN_API void rn_coordinator_request_stop(rn_coordinator_t* coordinator);
// Asks for a stop because of an error; the first one is kept. OUT_OF_RANGE and CANCELLED are the
// ordinary ends of input and of queues, and are no errors.
RN_API void rn_coordinator_report(rn_coordinator_t* coordinator, int code, const char* message);
// Waits for a stop to be asked for, at most |seconds| (negative: for ever). Whether it was.
RN_API bool rn_coordinator_wait_for_stop(rn_coordinator_t* coordinator, double seconds);

// Starts a thread of the coordinator's that runs |body|. False if there is none to be had; a stop
// is then asked for.
RN_API bool rn_coordinator_start(rn_coordinator_t* coordinator, const char* name,
                                 void (*body)(rn_coordinator_t* coordinator, void* arg), void* arg);
// Waits until all threads have ended, or, once a stop was asked for, at most |grace_seconds| more.
// 0, or the TF_Code of the first error reported; ABORTED if threads are still running.
RN_API int rn_coordinator_join(rn_coordinator_t* coordinator, double grace_seconds);
// The message that goes with the last join; "" if all went well. Lives until the next join.
RN_API const char* rn_coordinator_message(const rn_coordinator_t* coordinator);

// Has |count| threads run the |enqueues|, one each, again and again, once the runners are started.
// Adds the nodes that close the queue. A failure is the scope's error.
RN_API bool rn_add_queue_runner(rn_scope_t* scope, rn_edge_t queue, rn_node_t* const* enqueues,
                                int count);
// Starts the threads of all queue runners of |graph|; how many there are, -1 after an error, which
// is reported to the coordinator. When the input of a queue ends, it is closed; when the
// coordinator stops, pending enqueues are cancelled. |session| must outlive the threads: join
// first.
RN_API int rn_start_queue_runners(TF_Session* session, TF_Graph* graph,
                                  rn_coordinator_t* coordinator);

#ifdef __cplusplus
}
#endif

#endif  // RUNNEL_COORDINATOR_H_

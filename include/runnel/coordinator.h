// A coordinator: threads that work together and stop together, and threads that fill queues.
//
//   rn_coordinator_t* c = rn_coordinator_create();
//   rn_start_queue_runners(session, graph, c);
//   while (!rn_coordinator_should_stop(c)) { … a training step … }
//   rn_coordinator_request_stop(c);
//   if (rn_coordinator_join(c, 10) != 0) fprintf(stderr, "%s\n", rn_coordinator_message(c));
//   rn_coordinator_destroy(c);
//
// Any thread may call these functions; all of them accept NULL.
#ifndef RUNNEL_COORDINATOR_H_
#define RUNNEL_COORDINATOR_H_

#include "runnel/graph.h"
#include "tensorflow/c/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rn_coordinator_t rn_coordinator_t;

// NULL if there is no memory.
RN_API rn_coordinator_t* rn_coordinator_create(void);
// Requests a stop. The memory of the coordinator is freed when its last thread has ended.
RN_API void rn_coordinator_destroy(rn_coordinator_t* coordinator);

// Whether a stop was requested. Threads call this in their loop.
RN_API bool rn_coordinator_should_stop(const rn_coordinator_t* coordinator);
// Requests that all threads of the coordinator stop.
RN_API void rn_coordinator_request_stop(rn_coordinator_t* coordinator);
// Requests a stop because of an error; the first error is kept. OUT_OF_RANGE and CANCELLED are the
// regular ends of input and queues, and not errors.
RN_API void rn_coordinator_report(rn_coordinator_t* coordinator, int code, const char* message);
// Waits at most |seconds| (negative: forever) for a stop request. Returns whether there was one.
RN_API bool rn_coordinator_wait_for_stop(rn_coordinator_t* coordinator, double seconds);

// Starts a thread that runs |body|. If no thread can be started, returns false and requests a stop.
RN_API bool rn_coordinator_start(rn_coordinator_t* coordinator, const char* name,
                                 void (*body)(rn_coordinator_t* coordinator, void* arg), void* arg);
// Waits until all threads have ended; after a stop request, at most |grace_seconds| more. Returns 0
// or the TF_Code of the first reported error; ABORTED if threads are still running.
RN_API int rn_coordinator_join(rn_coordinator_t* coordinator, double grace_seconds);
// The message of the last join; "" on success. Lives until the next join.
RN_API const char* rn_coordinator_message(const rn_coordinator_t* coordinator);

// When the runners are started, |count| threads run the |enqueues|, one each, repeatedly. Adds the
// nodes that close the queue. After an error, which the scope keeps, returns false.
RN_API bool rn_add_queue_runner(rn_scope_t* scope, rn_edge_t queue, rn_node_t* const* enqueues,
                                int count);
// Starts the threads of all queue runners of |graph|. Returns how many there are, or -1 after an
// error, which the coordinator gets. When the input of a queue ends, the queue is closed; when the
// coordinator stops, pending enqueues are cancelled. |session| must outlive the threads: join
// first.
RN_API int rn_start_queue_runners(TF_Session* session, TF_Graph* graph,
                                  rn_coordinator_t* coordinator);

#ifdef __cplusplus
}
#endif

#endif  // RUNNEL_COORDINATOR_H_

// What the files of the service for eager clients share.
#ifndef RUNNEL_DIST_EAGER_SERVICE_INTERNAL_H_
#define RUNNEL_DIST_EAGER_SERVICE_INTERNAL_H_

#include "base/map.h"
#include "dist/eager/context.h"
#include "dist/eager/service.h"
#include "dist/rpc/codec.h"

struct rn_eager_service_t {
  rn_eager_service_options_t options;
  rn_threads_t* threads;
  rn_timer_t timer;
  rn_job_t collection;
  rn_mutex_t mutex;  // guards what follows
  rn_cond_t changed;
  rn_map_t contexts;   // by id; each retains its context
  size_t alive;        // contexts that are not freed yet
  int calls;           // under way
  bool is_collecting;  // the job is running
  bool is_stopped;
};

// Contexts (service_contexts.c).

// The context that field |number| of |message| names, retained. ABORTED if there is none.
RN_MUST_USE rn_status_t rn_eager_service_find(rn_eager_service_t* service,
                                              const rn_message_t* message, uint32_t number,
                                              rn_eager_context_t** out);
// Removes and returns the first context that has expired by |now|, or any if that is INT64_MAX;
// else |*out_next| is when to check again.
rn_eager_context_t* rn_eager_service_take_expired(rn_eager_service_t* service, int64_t now,
                                                  int64_t* out_next);
void rn_eager_service_end_context(rn_eager_context_t* context);
// The timer and the job that end contexts that have expired.
void rn_eager_service_on_timer(rn_timer_t* timer);
void rn_eager_service_collect(rn_job_t* job);

// Methods that a thread of the service runs.
typedef rn_status_t rn_eager_method_t(rn_eager_service_t* service, const rn_message_t* message,
                                      rn_encoder_t* out);
rn_eager_method_t rn_eager_service_create_context, rn_eager_service_update_context,
    rn_eager_service_close_context, rn_eager_service_keep_alive, rn_eager_service_wait_queue,
    rn_eager_service_enqueue;

// Calls (service.c).
void rn_eager_service_reply(rn_rpc_in_t* call, rn_status_t status, rn_str_t response);
void rn_eager_service_end_call(rn_eager_service_t* service);
RN_MUST_USE rn_status_t rn_eager_service_no_thread(void);

// Starts the thread of a stream of Enqueue (service_stream.c).
RN_MUST_USE rn_status_t rn_eager_service_start_stream(rn_eager_service_t* service,
                                                      rn_rpc_in_t* call);

#endif  // RUNNEL_DIST_EAGER_SERVICE_INTERNAL_H_

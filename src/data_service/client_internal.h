// What the files of the tf.data service's client share.
#ifndef RUNNEL_DATA_SERVICE_CLIENT_INTERNAL_H_
#define RUNNEL_DATA_SERVICE_CLIENT_INTERNAL_H_

#include "base/arena.h"
#include "base/sync.h"
#include "base/vec.h"
#include "data_service/ask.h"
#include "data_service/element.h"
#include "framework/data_service.h"

#define RN_DC_DISPATCHER "/tensorflow.data.DispatcherService/"
#define RN_DC_CALL_NS (60 * (int64_t)1000000000)
#define RN_DC_FIRST_RETRY_NS 20000000
#define RN_DC_LAST_RETRY_NS 2000000000

typedef struct rn_dc_result_t {
  rn_buffer_t* bytes;  // a GetElementResponse
  rn_status_t status;
} rn_dc_result_t;

typedef struct rn_dc_task_t {
  rn_data_client_t* client;
  int64_t id, starting_round;
  rn_channel_t* channel;  // Owned
  bool is_ended, is_listed, is_running;
} rn_dc_task_t;

struct rn_data_client_t {
  _Atomic int refs;
  rn_data_client_options_t options;
  rn_arena_t arena;
  rn_loop_t* loop;
  rn_channel_t* dispatcher;
  rn_cancel_t stop;  // of all calls but the one that leaves the job
  rn_mutex_t mutex;  // guards what follows
  rn_cond_t changed;
  bool is_closed, is_finished, is_at_end;
  RN_VEC(rn_dc_task_t*) tasks;
  RN_VEC(rn_dc_result_t) results;
  int64_t in_flight;
  rn_data_fetch_t* waiting;
  int64_t round, block_round;  // of a coordinated job; |block_round| -1: none
  bool is_blocked;
};

// A thread with a reference of its own, which it drops with rn_dc_release.
RN_MUST_USE rn_status_t rn_dc_start_thread(rn_data_client_t* self, void* (*run)(void*), void* arg);
void rn_dc_release(rn_data_client_t* self);
// Adds the result and tells the requester that waits. Called with the lock, which it may release
// meanwhile.
void rn_dc_add_result(rn_data_client_t* self, rn_dc_result_t result);
// Waits so long, or until the client is closed. With the lock.
void rn_dc_pause_locked(rn_data_client_t* self, int64_t ns);
// Asks the dispatcher until it answers, or the client is closed. Without the lock.
RN_MUST_USE rn_status_t rn_dc_ask_dispatcher(rn_data_client_t* self, const char* path,
                                             rn_str_t request, rn_strbuf_t* out);
static inline bool rn_dc_is_coordinated(const rn_data_client_t* self) {
  return self->options.num_consumers >= 0;
}

// What threads run: one per task (|arg| is the task), or one per coordinated job (the client).
void* rn_dc_read_task(void* arg);
void* rn_dc_read_rounds(void* arg);

#endif  // RUNNEL_DATA_SERVICE_CLIENT_INTERNAL_H_

// Calls that a thread waits for: see ask.h.
#include "data_service/ask.h"

#include "base/container.h"

typedef struct ds_ask_t {
  rn_rpc_out_t out;  // first
  rn_channel_t* channel;
  rn_cancel_entry_t entry;
  rn_strbuf_t* response;
  rn_mutex_t mutex;
  rn_cond_t cond;
  bool is_done;
  rn_status_t status;
} ds_ask_t;

static void answered(rn_rpc_out_t* out, rn_status_t status) {
  ds_ask_t* ask = (ds_ask_t*)out;
  if (rn_ok(status)) {
    rn_strbuf_append(ask->response, rn_message_view(&out->stream.message));
    status = rn_strbuf_status(ask->response);
  }
  rn_rpc_out_clear(out);
  rn_mutex_lock(&ask->mutex);
  ask->status = status;
  ask->is_done = true;
  rn_cond_signal(&ask->cond);
  rn_mutex_unlock(&ask->mutex);
}

static void given_up(rn_cancel_entry_t* entry) {
  ds_ask_t* ask = RN_CONTAINER_OF(entry, ds_ask_t, entry);
  rn_rpc_cancel(ask->channel, &ask->out);
}

rn_status_t rn_ds_ask(rn_channel_t* channel, rn_loop_t* loop, rn_allocator_t allocator,
                      const char* path, rn_str_t request, int64_t timeout_ns, rn_cancel_t* stop,
                      rn_strbuf_t* out) {
  ds_ask_t ask = {.channel = channel, .entry.fn = given_up, .response = out};
  ask.out.path = path;
  ask.out.deadline_ns = rn_loop_now(loop) + timeout_ns;
  ask.out.done = answered;
  rn_message_init(&ask.out.request, allocator);
  RN_RETURN_IF_ERROR(rn_message_add(&ask.out.request, request));
  if (stop && !rn_cancel_add(stop, &ask.entry)) {
    rn_rpc_out_clear(&ask.out);
    return rn_cancelled("The call was given up");
  }
  rn_mutex_init(&ask.mutex);
  rn_cond_init(&ask.cond);
  rn_rpc_start(channel, &ask.out);
  rn_mutex_lock(&ask.mutex);
  while (!ask.is_done) rn_cond_wait(&ask.cond, &ask.mutex);
  rn_mutex_unlock(&ask.mutex);
  if (stop) rn_cancel_remove(stop, &ask.entry);
  rn_cond_destroy(&ask.cond);
  rn_mutex_destroy(&ask.mutex);
  return ask.status;
}

bool rn_ds_is_preempted(rn_status_t status) {
  rn_code_t code = rn_status_code(status);
  return code == RN_CODE_UNAVAILABLE || code == RN_CODE_ABORTED || code == RN_CODE_CANCELLED;
}

void rn_ds_pause(int64_t until_ns) {
  rn_mutex_t mutex = RN_MUTEX_INIT;
  rn_cond_t cond;  // nothing signals it
  rn_cond_init(&cond);
  rn_mutex_lock(&mutex);
  while (rn_cond_wait_until(&cond, &mutex, until_ns)) {
  }
  rn_mutex_unlock(&mutex);
  rn_cond_destroy(&cond);
}

// Traces of a card: see trace.h.
#include "device/cuda/trace.h"

#include "device/cuda/cupti.h"

typedef struct cuda_mark_t {
  CUevent event;
  int64_t node;  // whose work begins; -1: work ends
} cuda_mark_t;

struct rn_device_trace_t {
  rn_cuda_card_t* card;
  const rn_env_t* env;
  int64_t cupti;  // the number of the trace there; 0: events are used
  CUevent base;   // at |base_ns| of the environment's clock
  int64_t base_ns;
  rn_mutex_t mutex;
  RN_VEC(cuda_mark_t) marks;
};

static void destroy(rn_device_trace_t* trace) {
  rn_cuda_driver_t* driver = &trace->card->driver;
  for (size_t i = 0; i < trace->marks.count; ++i)
    driver->cuEventDestroy_v2(trace->marks.items[i].event);
  if (trace->base) driver->cuEventDestroy_v2(trace->base);
  rn_vec_free(&trace->marks, rn_allocator_system());
  rn_mutex_destroy(&trace->mutex);
  RN_FREE(rn_allocator_system(), trace);
}

// Records an event that has a time.
static rn_status_t record(rn_cuda_card_t* card, CUevent* out) {
  RN_RETURN_IF_ERROR(rn_cuda_enter(card));
  RN_RETURN_IF_ERROR(RN_CARD(card, cuEventCreate, out, CU_EVENT_DEFAULT));
  rn_status_t status = RN_CARD(card, cuEventRecord, *out, rn_cuda_stream(card));
  if (rn_ok(status)) return RN_OK;
  card->driver.cuEventDestroy_v2(*out);
  *out = NULL;
  return status;
}

rn_status_t rn_cuda_trace_begin(rn_device_t* device, const rn_env_t* env, rn_device_trace_t** out) {
  rn_device_trace_t* trace = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_system(), &trace));
  trace->card = rn_cuda_card_of(device);
  trace->env = env;
  rn_mutex_init(&trace->mutex);
  trace->cupti = rn_cupti_begin(trace->card, env);
  rn_status_t status = RN_OK;
  if (!trace->cupti) {
    status = record(trace->card, &trace->base);
    if (rn_ok(status)) status = rn_cuda_await(trace->card, trace->base);
    trace->base_ns = env->now_ns(env->self);
  }
  if (!rn_ok(status)) {
    destroy(trace);
    return status;
  }
  *out = trace;
  return RN_OK;
}

void rn_cuda_trace_node(rn_device_trace_t* trace, int64_t node) {
  if (trace->cupti) {
    rn_cupti_node(trace->cupti, node);
    return;
  }
  cuda_mark_t mark = {.node = node};
  rn_mutex_lock(&trace->mutex);
  rn_status_t status = record(trace->card, &mark.event);
  if (rn_ok(status)) status = rn_vec_push(&trace->marks, rn_allocator_system(), mark);
  if (!rn_ok(status) && mark.event) trace->card->driver.cuEventDestroy_v2(mark.event);
  rn_mutex_unlock(&trace->mutex);
  rn_status_free(status);  // the trace lacks an entry
}

static int64_t time_of(const rn_device_trace_t* trace, CUevent event) {
  float ms = 0;
  if (trace->card->driver.cuEventElapsedTime(&ms, trace->base, event) != CUDA_SUCCESS) return -1;
  return trace->base_ns + (int64_t)((double)ms * 1e6);
}

// A node's work is between its mark and the next one.
static void visit_marks(const rn_device_trace_t* trace, rn_trace_visit_t visit, void* self) {
  for (size_t i = 0; i + 1 < trace->marks.count; ++i) {
    const cuda_mark_t* mark = &trace->marks.items[i];
    if (mark->node < 0) continue;
    rn_trace_event_t event = {.name = "",
                              .node = mark->node,
                              .start_ns = time_of(trace, mark->event),
                              .end_ns = time_of(trace, mark[1].event)};
    if (event.start_ns >= 0 && event.end_ns >= event.start_ns) visit(self, &event);
  }
}

void rn_cuda_trace_end(rn_device_trace_t* trace, rn_trace_visit_t visit, void* self) {
  rn_status_t status = rn_cuda_enter(trace->card);
  if (trace->cupti)
    rn_cupti_end(trace->cupti, trace->card, visit, self);
  else if (rn_ok(status))
    visit_marks(trace, visit, self);
  rn_status_free(status);
  destroy(trace);
}

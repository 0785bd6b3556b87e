// A fenced worker: see fence.h.
#include "dist/worker/fence.h"

// A task that has lost its connection repeats its calls at once, so it gets less time than a
// client. Blocked kernels of a dead master end after this.
#define GRACES 8  // per lease
// What is kept for repeated calls: small values, as most steps transfer. A step whose larger value
// was lost fails.
#define NUMBERS 1024
#define VALUE_BYTES ((size_t)256 << 10)
#define VALUE_MAX ((size_t)16 << 10)

struct rn_worker_fence_t {
  rn_worker_t face;  // first
  rn_worker_t* worker;
  rn_allocator_t allocator;
  rn_fence_t *runs, *values;  // Owned
};

rn_worker_t* rn_worker_fence_face(rn_worker_fence_t* fence) { return &fence->face; }

static void run_part(void* self, rn_call_t* call) {
  rn_worker_t* worker = ((rn_worker_fence_t*)self)->worker;
  worker->vtable->run_graph(worker, (rn_run_graph_t*)call);
}

static void run_graph(rn_worker_t* face, rn_run_graph_t* call) {
  rn_worker_fence_t* fence = (rn_worker_fence_t*)face;
  rn_fence_call_t fenced = {.call = &call->call,
                            .number = rn_run_graph_number(call),
                            .fetches = call->fetches,
                            .fetch_count = call->fetch_count};
  rn_fence_run(fence->runs, fenced, run_part, fence);
}

static void take_value(void* self, rn_call_t* call) {
  rn_worker_t* worker = ((rn_worker_fence_t*)self)->worker;
  worker->vtable->recv_tensor(worker, (rn_recv_tensor_t*)call);
}

// A dead value has no tensor.
static void on_value_again(rn_call_t* call) {
  rn_recv_tensor_t* record = (rn_recv_tensor_t*)call;
  record->is_dead = !rn_tensor_is_set(&record->value);
}

static void recv_tensor(rn_worker_t* face, rn_recv_tensor_t* call) {
  rn_worker_fence_t* fence = (rn_worker_fence_t*)face;
  rn_fence_call_t fenced = {.call = &call->call,
                            .number = rn_recv_tensor_number(call),
                            .fetches = &call->value,
                            .fetch_count = 1};
  rn_fence_run(fence->values, fenced, take_value, fence);
}

// Calls without a number need no fence: they may run twice, or are not made again.
#define FENCED_NUMBERED(name)
#define FENCED_ONCE(name)                                     \
  static void name(rn_worker_t* face, rn_##name##_t* call) {  \
    rn_worker_t* worker = ((rn_worker_fence_t*)face)->worker; \
    worker->vtable->name(worker, call);                       \
  }
#define FENCED_IDEMPOTENT(name) FENCED_ONCE(name)
#define FENCED(side, name, Method, speed, answer, again) FENCED_##again(name)
RN_WORKER_CALLS(FENCED)

static const rn_worker_vtable_t vtable = {RN_WORKER_CALLS(RN_CALL_ENTRY)};

rn_status_t rn_worker_fence_create(const rn_worker_fence_options_t* options,
                                   rn_worker_fence_t** out) {
  *out = NULL;
  rn_worker_fence_t* fence = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &fence));
  fence->face.vtable = &vtable;
  fence->worker = options->worker;
  fence->allocator = options->allocator;
  rn_fence_options_t runs = {.allocator = options->allocator,
                             .env = options->env,
                             .timers = options->timers,
                             .grace_ns = options->lease_ns / GRACES,
                             .numbers = NUMBERS,
                             .lost = RN_CODE_UNAVAILABLE};
  rn_fence_options_t values = runs;
  values.answer_bytes = VALUE_BYTES;
  values.answer_max = VALUE_MAX;
  values.replayed = on_value_again;
  rn_status_t status = rn_fence_create(&runs, &fence->runs);
  if (rn_ok(status)) status = rn_fence_create(&values, &fence->values);
  if (!rn_ok(status)) {
    rn_worker_fence_destroy(fence);
    return status;
  }
  *out = fence;
  return RN_OK;
}

void rn_worker_fence_stop(rn_worker_fence_t* fence) {
  if (!fence) return;
  rn_fence_stop(fence->runs);
  rn_fence_stop(fence->values);
}

void rn_worker_fence_destroy(rn_worker_fence_t* fence) {
  if (!fence) return;
  rn_fence_release(fence->runs);
  rn_fence_release(fence->values);
  RN_FREE(fence->allocator, fence);
}

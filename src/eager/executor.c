// Executors: an ordered queue of calls, and one thread that runs them.
#include "base/assert.h"
#include "eager/internal.h"

// A call that waits for its turn.
typedef struct executor_node_t {
  struct executor_node_t* next;
  rn_eager_job_t* job;  // of another kind; then the rest is unset
  rn_eager_t* eager;
  rn_eager_kernel_t* kernel;  // Retained, as are the handles
  rn_eager_cancel_t* cancel;  // Held
  int32_t input_count, output_count;
  rn_eager_handle_t** inputs;  // stored after the struct, as are
  rn_eager_handle_t** outputs;
  rn_tensor_t** values;
  rn_tensor_t* results;
  size_t size;
} executor_node_t;

struct rn_eager_executor_t {
  _Atomic int32_t refs;
  rn_allocator_t allocator;
  bool is_async;
  rn_eager_sync_t* sync;  // Retained; its mutex guards the fields below
  rn_cond_t work;
  executor_node_t *first, *last;
  int32_t pending;  // queued or running
  bool is_started, is_stopping;
  pthread_t thread;
  rn_status_t status;  // the first error since the last clear
};

rn_status_t rn_eager_executor_create(rn_allocator_t allocator, bool is_async,
                                     rn_eager_executor_t** out) {
  *out = NULL;
  rn_eager_executor_t* executor = NULL;
  rn_eager_sync_t* sync = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &executor));
  rn_status_t status = RN_NEW(allocator, &sync);
  if (!rn_ok(status)) {
    RN_FREE(allocator, executor);
    return status;
  }
  sync->refs = 1;
  sync->allocator = allocator;
  rn_mutex_init(&sync->mutex);
  rn_cond_init(&sync->done);
  executor->refs = 1;
  executor->allocator = allocator;
  executor->is_async = is_async;
  executor->sync = sync;
  rn_cond_init(&executor->work);
  *out = executor;
  return RN_OK;
}

void rn_eager_executor_retain(rn_eager_executor_t* executor) {
  atomic_fetch_add_explicit(&executor->refs, 1, memory_order_relaxed);
}

void rn_eager_executor_release(rn_eager_executor_t* executor) {
  if (!executor || atomic_fetch_sub_explicit(&executor->refs, 1, memory_order_acq_rel) != 1) return;
  if (executor->is_started) {
    rn_mutex_lock(&executor->sync->mutex);
    executor->is_stopping = true;
    rn_cond_signal(&executor->work);
    rn_mutex_unlock(&executor->sync->mutex);
    pthread_join(executor->thread, NULL);
  }
  RN_ASSERT(!executor->first && executor->pending == 0);  // the thread empties the queue first
  rn_status_free(executor->status);
  rn_cond_destroy(&executor->work);
  rn_eager_sync_release(executor->sync);
  RN_FREE(executor->allocator, executor);
}

bool rn_eager_executor_is_async(const rn_eager_executor_t* executor) { return executor->is_async; }
rn_eager_sync_t* rn_eager_executor_sync(rn_eager_executor_t* executor) { return executor->sync; }

rn_status_t rn_eager_executor_wait(rn_eager_executor_t* executor) {
  rn_mutex_lock(&executor->sync->mutex);
  while (executor->pending > 0) rn_cond_wait(&executor->sync->done, &executor->sync->mutex);
  rn_status_t status = rn_status_copy(executor->status);
  rn_mutex_unlock(&executor->sync->mutex);
  return status;
}

void rn_eager_executor_clear_error(rn_eager_executor_t* executor) {
  rn_mutex_lock(&executor->sync->mutex);
  rn_status_free(executor->status);
  executor->status = RN_OK;
  rn_mutex_unlock(&executor->sync->mutex);
}

static void node_destroy(rn_allocator_t allocator, executor_node_t* node) {
  for (int32_t i = 0; i < node->input_count; ++i) rn_eager_handle_release(node->inputs[i]);
  for (int32_t i = 0; i < node->output_count; ++i) rn_eager_handle_release(node->outputs[i]);
  rn_eager_kernel_release(node->kernel);
  rn_eager_cancel_release(node->cancel);
  rn_free(allocator, node, node->size);
}

static rn_status_t run_node(executor_node_t* node) {
  rn_tensor_t* copies = NULL;
  RN_RETURN_IF_ERROR(rn_eager_values(node->kernel, node->inputs, node->values, &copies));
  rn_status_t status =
      rn_eager_run(node->eager, node->kernel, node->cancel, node->values, node->results);
  rn_eager_copies_free(node->kernel, copies);
  return status;
}

// After an error, the calls queued behind it do not run; their results get that error.
static void finish_node(rn_eager_executor_t* executor, executor_node_t* node, rn_status_t earlier) {
  rn_status_t status = node->job        ? node->job->run(node->job, earlier)
                       : rn_ok(earlier) ? run_node(node)
                                        : earlier;
  for (int32_t i = 0; i < node->output_count; ++i)
    rn_eager_handle_settle(node->outputs[i], &node->results[i], status);
  node_destroy(executor->allocator, node);
  rn_mutex_lock(&executor->sync->mutex);
  executor->status = rn_status_join(executor->status, status);
  RN_ASSERT(executor->pending > 0);
  executor->pending--;
  rn_cond_broadcast(&executor->sync->done);
  rn_mutex_unlock(&executor->sync->mutex);
}

static void* work(void* arg) {
  rn_eager_executor_t* executor = arg;
  bool goes_on = true;
  while (goes_on) {
    rn_mutex_lock(&executor->sync->mutex);
    while (!executor->first && !executor->is_stopping)
      rn_cond_wait(&executor->work, &executor->sync->mutex);
    executor_node_t* node = executor->first;
    rn_status_t earlier = rn_status_copy(executor->status);
    if (node) {
      executor->first = node->next;
      if (!executor->first) executor->last = NULL;
    }
    rn_mutex_unlock(&executor->sync->mutex);
    goes_on = node != NULL;
    if (node)
      finish_node(executor, node, earlier);
    else
      rn_status_free(earlier);
  }
  return NULL;
}

static rn_status_t node_create(rn_allocator_t allocator, const rn_eager_kernel_t* kernel,
                               executor_node_t** out) {
  size_t inputs = (size_t)kernel->input_count, outputs = (size_t)kernel->output_count;
  size_t size = sizeof(executor_node_t) + outputs * sizeof(rn_tensor_t) +
                inputs * 2 * sizeof(void*) + outputs * sizeof(void*);
  executor_node_t* node = NULL;
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(allocator, size, (void**)&node));
  node->size = size;
  node->results = (rn_tensor_t*)(node + 1);
  node->inputs = (rn_eager_handle_t**)(node->results + outputs);
  node->outputs = node->inputs + inputs;
  node->values = (rn_tensor_t**)(node->outputs + outputs);
  *out = node;
  return RN_OK;
}

static rn_status_t enqueue_locked(rn_eager_executor_t* executor, executor_node_t* node) {
  if (!rn_ok(executor->status)) return rn_status_copy(executor->status);
  if (!executor->is_started) {
    if (pthread_create(&executor->thread, NULL, work, executor) != 0)
      return rn_resource_exhausted("No thread could be started for an executor");
    executor->is_started = true;
  }
  if (executor->last)
    executor->last->next = node;
  else
    executor->first = node;
  executor->last = node;
  executor->pending++;
  rn_cond_signal(&executor->work);
  return RN_OK;
}

rn_status_t rn_eager_executor_add_job(rn_eager_executor_t* executor, rn_eager_job_t* job) {
  executor_node_t* node = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(executor->allocator, &node));
  node->size = sizeof *node;
  node->job = job;
  rn_mutex_lock(&executor->sync->mutex);
  rn_status_t status = enqueue_locked(executor, node);
  rn_mutex_unlock(&executor->sync->mutex);
  if (!rn_ok(status)) node_destroy(executor->allocator, node);
  return status;
}

rn_status_t rn_eager_executor_add(rn_eager_executor_t* executor, rn_eager_t* eager,
                                  rn_eager_kernel_t* kernel, rn_eager_cancel_t* cancel,
                                  rn_eager_handle_t* const* inputs,
                                  rn_eager_handle_t* const* outputs) {
  executor_node_t* node = NULL;
  RN_RETURN_IF_ERROR(node_create(executor->allocator, kernel, &node));
  node->eager = eager;
  node->kernel = kernel;
  node->cancel = cancel;
  rn_eager_cancel_hold(cancel);
  rn_eager_kernel_retain(kernel);
  for (; node->input_count < kernel->input_count; ++node->input_count) {
    rn_eager_handle_retain(inputs[node->input_count]);
    node->inputs[node->input_count] = inputs[node->input_count];
  }
  for (; node->output_count < kernel->output_count; ++node->output_count) {
    rn_eager_handle_retain(outputs[node->output_count]);
    node->outputs[node->output_count] = outputs[node->output_count];
  }
  rn_mutex_lock(&executor->sync->mutex);
  rn_status_t status = enqueue_locked(executor, node);
  rn_mutex_unlock(&executor->sync->mutex);
  if (!rn_ok(status)) node_destroy(executor->allocator, node);
  return status;
}

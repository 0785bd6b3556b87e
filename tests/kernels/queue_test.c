// Stress test of the queue's core: many threads put and take, calls are cancelled at any time, and
// every element that was put and not taken must still be there. The test calls the core directly,
// because a cancelled step does not tell whether its call had already ended.
#include "kernels/cpu/data_flow/queue.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "../support/status.h"

#define WORKERS 4
#define TURNS 3000

// One call of a kernel on a queue of scalars.
typedef struct call_t {
  rn_kernel_ctx_t ctx;  // first
  rn_kernel_t kernel;
  rn_step_t step;
  rn_cancel_t cancel;
  rn_tensor_t in, out;
  rn_tensor_t* inputs[1];
  rn_status_t status;
  atomic_int done;
} call_t;

static const rn_dtype_t types[] = {RN_FLOAT};
static const rn_dtype_t* const output_types = types;
static const bool is_host[] = {true};

static void on_done(rn_kernel_ctx_t* ctx, rn_status_t status) {
  call_t* call = (call_t*)ctx;
  call->status = status;
  atomic_fetch_add(&call->done, 1);
}

static void call_begin(call_t* call) {
  *call = (call_t){.inputs = {&call->in}};
  rn_cancel_init(&call->cancel);
  call->step.cancel = &call->cancel;
  call->kernel.allocator = call->kernel.device_memory = call->kernel.host_memory =
      rn_allocator_system();
  call->kernel.output_types = output_types;
  call->kernel.output_is_host = is_host;
  call->ctx = (rn_kernel_ctx_t){.kernel = &call->kernel,
                                .in = call->inputs,
                                .out = &call->out,
                                .step = &call->step,
                                .done = on_done};
}

static void call_wait(call_t* call) {
  while (atomic_load(&call->done) == 0) sched_yield();
  cr_assert_eq(atomic_load(&call->done), 1);
}

static void call_end(call_t* call) {
  rn_tensor_clear(&call->in);
  rn_tensor_clear(&call->out);
  rn_cancel_destroy(&call->cancel);
  rn_status_free(call->status);
}

typedef struct worker_t {
  pthread_t thread;
  rn_queue_t* queue;
  unsigned seed;
  bool puts;
  double sum;  // of what this one put or took
  int64_t count;
  int cancelled;
  _Atomic(call_t*) call;  // the one that runs; the thread that takes it out owns it
  atomic_bool is_done;
} worker_t;

static void turn(worker_t* worker, call_t* call, int number) {
  if (worker->puts) {
    OK(rn_tensor_create(rn_allocator_system(), RN_FLOAT, RN_SHAPE_SCALAR, &call->in));
    *RN_DATA(&call->in, float) = (float)(rand_r(&worker->seed) % 1000);
    rn_queue_enqueue(worker->queue, &call->ctx, 0);
  } else if (number % 3) {
    rn_queue_dequeue(worker->queue, &call->ctx);
  } else {
    rn_queue_dequeue_many(worker->queue, &call->ctx, 3, false);
  }
}

static void* work(void* arg) {
  worker_t* worker = arg;
  for (int number = 0; number < TURNS; ++number) {
    call_t call;
    call_begin(&call);
    atomic_store(&worker->call, &call);
    turn(worker, &call, number);
    call_wait(&call);
    while (!atomic_exchange(&worker->call, NULL)) sched_yield();
    if (rn_ok(call.status)) {
      const rn_tensor_t* moved = worker->puts ? &call.in : &call.out;
      for (int64_t i = 0; i < moved->count; ++i) worker->sum += RN_DATA(moved, float)[i];
      worker->count += moved->count;
    } else {
      cr_assert_eq(rn_status_code(call.status), RN_CODE_CANCELLED);
      worker->cancelled++;
    }
    call_end(&call);
  }
  worker->is_done = true;
  return NULL;
}

static int done_count(worker_t* workers) {
  int done = 0;
  for (int i = 0; i < 2 * WORKERS; ++i) done += workers[i].is_done;
  return done;
}

static void stress(rn_queue_kind_t kind, int64_t capacity, int64_t min_after_dequeue) {
  static const rn_shape_t shapes[] = {{0, NULL}};
  rn_queue_spec_t spec = {.kind = kind,
                          .op = "Queue",
                          .capacity = capacity,
                          .min_after_dequeue = min_after_dequeue,
                          .seed = 1,
                          .component_count = 1,
                          .types = types,
                          .shapes = shapes};
  rn_queue_t* queue = NULL;
  cr_assert(
      rn_ok(rn_queue_create(rn_allocator_system(), rn_env_system(), &spec, RN_STR("q"), &queue)));
  worker_t workers[2 * WORKERS];
  for (int i = 0; i < 2 * WORKERS; ++i) {
    workers[i] = (worker_t){.queue = queue, .seed = (unsigned)i + 1, .puts = i < WORKERS};
    cr_assert_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  }
  unsigned seed = 99;
  while (done_count(workers) < 2 * WORKERS) {
    worker_t* victim = &workers[rand_r(&seed) % (2 * WORKERS)];
    call_t* call = atomic_exchange(&victim->call, NULL);
    if (call) {
      rn_cancel(&call->cancel);
      atomic_store(&victim->call, call);
    }
    usleep(20);
  }
  double sum = 0;
  int64_t count = 0;
  int cancelled = 0;
  for (int i = 0; i < 2 * WORKERS; ++i) {
    pthread_join(workers[i].thread, NULL);
    sum += workers[i].puts ? workers[i].sum : -workers[i].sum;
    count += workers[i].puts ? workers[i].count : -workers[i].count;
    cancelled += workers[i].cancelled;
  }
  cr_assert_gt(cancelled, 0);
  cr_assert_eq(rn_queue_size(queue), count);
  call_t call;
  call_begin(&call);
  rn_queue_close(queue, &call.ctx, false);
  call_wait(&call);
  call_end(&call);
  for (; count > 0; --count) {
    call_begin(&call);
    rn_queue_dequeue(queue, &call.ctx);
    call_wait(&call);
    OK(call.status);
    sum -= *RN_DATA(&call.out, float);
    call_end(&call);
  }
  cr_assert_eq(sum, 0);
  rn_object_release(&queue->resource.object);
}

Test(queue, nothing_is_lost_in_a_line, .timeout = 60) { stress(RN_QUEUE_FIFO, 5, 0); }
Test(queue, nothing_is_lost_in_a_short_line, .timeout = 60) { stress(RN_QUEUE_FIFO, 1, 0); }
Test(queue, nothing_is_lost_in_a_bag, .timeout = 60) { stress(RN_QUEUE_SHUFFLE, 9, 3); }

static const rn_dtype_t priorities[] = {RN_INT64};

static void put_priority(rn_queue_t* queue, int64_t value) {
  call_t call;
  call_begin(&call);
  OK(rn_tensor_create(rn_allocator_system(), RN_INT64, RN_SHAPE_SCALAR, &call.in));
  *RN_DATA(&call.in, int64_t) = value;
  rn_queue_enqueue(queue, &call.ctx, 0);
  call_wait(&call);
  OK(call.status);
  call_end(&call);
}

static void expect_batch(call_t* call, const int64_t* values, int64_t count) {
  call_wait(call);
  OK(call->status);
  cr_assert_eq(call->out.count, count);
  for (int64_t i = 0; i < count; ++i) cr_assert_eq(RN_DATA(&call->out, int64_t)[i], values[i]);
  call_end(call);
}

Test(queue, a_batch_that_waits_is_in_the_order_of_priorities, .timeout = 60) {
  static const rn_shape_t shapes[] = {{0, NULL}};
  rn_queue_spec_t spec = {.kind = RN_QUEUE_PRIORITY,
                          .op = "PriorityQueueV2",
                          .capacity = 9,
                          .component_count = 1,
                          .types = priorities,
                          .shapes = shapes};
  rn_queue_t* queue = NULL;
  cr_assert(
      rn_ok(rn_queue_create(rn_allocator_system(), rn_env_system(), &spec, RN_STR("q"), &queue)));
  call_t batch;
  call_begin(&batch);
  batch.kernel.output_types = priorities;
  rn_queue_dequeue_many(queue, &batch.ctx, 3, false);
  put_priority(queue, 9);
  put_priority(queue, 1);
  cr_assert_eq(atomic_load(&batch.done), 0);
  cr_assert_eq(rn_queue_size(queue), 2);  // it takes nothing before all are there
  put_priority(queue, 5);
  expect_batch(&batch, (int64_t[]){1, 5, 9}, 3);

  // What is left of a closed queue, too.
  call_begin(&batch);
  batch.kernel.output_types = priorities;
  rn_queue_dequeue_many(queue, &batch.ctx, 3, true);
  put_priority(queue, 7);
  put_priority(queue, 2);
  call_t close;
  call_begin(&close);
  rn_queue_close(queue, &close.ctx, false);
  call_wait(&close);
  call_end(&close);
  expect_batch(&batch, (int64_t[]){2, 7}, 2);
  rn_object_release(&queue->resource.object);
}

// Queues between steps: waiting, order, closing, cancelling. No element is lost, and no step waits
// for ever.

#include "../support/settle.h"
#include "util.h"

typedef struct queue_t {
  rt_t rt;
  rn_edge_t x, many, n;
  rn_node_t *put, *put_many, *close, *cancel;
  rn_edge_t take, take_n, take_up_to, size;
} queue_t;

static queue_t begin(const char* op, int threads, int capacity) {
  queue_t q = {.rt = rt_begin(threads)};
  rn_scope_t* s = q.rt.s;
  static const int types[] = {RN_FLOAT};
  static const int64_t no_dims[1] = {0};
  static const int64_t* const shapes[] = {no_dims};
  static const int ranks[] = {0};
  rn_op_begin(s, op);
  rn_op_attr_type_list(s, "component_types", types, 1);
  rn_op_attr_shape_list(s, "shapes", shapes, ranks, 1);
  rn_op_attr_int(s, "capacity", capacity);
  if (strstr(op, "Shuffle")) rn_op_attr_int(s, "seed", 7);
  rn_edge_t queue = {rn_op_finish(s), 0};
  q.x = rt_placeholder(&q.rt, "x");
  q.many = rt_placeholder(&q.rt, "many");
  rn_scope_name_next(s, "n");
  q.n = rn_Placeholder(s, RN_INT32);
  q.put = rn_QueueEnqueueV2(s, queue, &q.x, 1);
  q.put_many = rn_QueueEnqueueManyV2(s, queue, &q.many, 1);
  q.take = rn_edge_at(rn_QueueDequeueV2(s, queue, types, 1), 0);
  q.take_n = rn_edge_at(rn_QueueDequeueManyV2(s, queue, q.n, types, 1), 0);
  q.take_up_to = rn_edge_at(rn_QueueDequeueUpToV2(s, queue, q.n, types, 1), 0);
  q.size = rn_QueueSizeV2(s, queue);
  q.close = rn_QueueCloseV2(s, queue);
  q.cancel = rn_QueueCloseV2(s, queue, .cancel_pending_enqueues = true);
  rt_session(&q.rt);
  return q;
}

static rn_status_t put(queue_t* q, float value, rn_cancel_t* cancel) {
  rt_step_t step = {.options = {.cancel = cancel}};
  rn_tensor_t fed = rt_scalar(value);
  rt_feed(&step, q->x, &fed);
  rt_target(&step, q->put);
  rn_status_t status = rt_run(&q->rt, &step);
  rn_tensor_clear(&fed);
  return status;
}

static rn_status_t put_many(queue_t* q, int count, const float* values) {
  rt_step_t step = {0};
  rn_tensor_t fed = rt_floats(count, values);
  rt_feed(&step, q->many, &fed);
  rt_target(&step, q->put_many);
  rn_status_t status = rt_run(&q->rt, &step);
  rn_tensor_clear(&fed);
  return status;
}

static rn_status_t take(queue_t* q, rn_cancel_t* cancel, float* out) {
  rt_step_t step = {.options = {.cancel = cancel}};
  rt_fetch(&step, q->take);
  rn_status_t status = rt_run(&q->rt, &step);
  if (rn_ok(status)) *out = rt_value(&step.out[0]);
  rt_clear(&step);
  return status;
}

// Takes several; |*out_count| of them.
static rn_status_t take_n(queue_t* q, rn_edge_t op, int count, rn_cancel_t* cancel, float* out,
                          int64_t* out_count) {
  rt_step_t step = {.options = {.cancel = cancel}};
  rn_tensor_t n;
  OK(rn_tensor_create(rn_allocator_system(), RN_INT32, RN_SHAPE_SCALAR, &n));
  *RN_DATA(&n, int32_t) = count;
  rt_feed(&step, q->n, &n);
  rt_fetch(&step, op);
  rn_status_t status = rt_run(&q->rt, &step);
  if (rn_ok(status)) {
    *out_count = step.out[0].count;
    memcpy(out, step.out[0].data, rn_tensor_bytes(&step.out[0]));
  }
  rt_clear(&step);
  rn_tensor_clear(&n);
  return status;
}

static int size_of(queue_t* q) {
  rt_step_t step = {0};
  rt_fetch(&step, q->size);
  OK(rt_run(&q->rt, &step));
  int size = *RN_DATA(&step.out[0], int32_t);
  rt_clear(&step);
  return size;
}

// A call in a thread of its own.
typedef struct call_t {
  pthread_t thread;
  queue_t* q;
  enum { PUT, PUT_FIVE, TAKE, TAKE_THREE, TAKE_UP_TO_FIVE } verb;
  float value, values[8];
  int64_t count;
  rn_cancel_t cancel;
  rn_status_t status;
} call_t;

static void* run_call(void* arg) {
  call_t* call = arg;
  static const float five[] = {1, 2, 3, 4, 5};
  switch (call->verb) {
    case PUT:
      call->status = put(call->q, call->value, &call->cancel);
      break;
    case PUT_FIVE:
      call->status = put_many(call->q, 5, five);
      break;
    case TAKE:
      call->status = take(call->q, &call->cancel, &call->value);
      break;
    case TAKE_THREE:
      call->status = take_n(call->q, call->q->take_n, 3, &call->cancel, call->values, &call->count);
      break;
    default:
      call->status =
          take_n(call->q, call->q->take_up_to, 5, &call->cancel, call->values, &call->count);
  }
  return NULL;
}

static void start(call_t* call, queue_t* q, int verb, float value) {
  *call = (call_t){.q = q, .verb = verb, .value = value};
  rn_cancel_init(&call->cancel);
  cr_assert_eq(pthread_create(&call->thread, NULL, run_call, call), 0);
}

static rn_status_t end(call_t* call) {
  pthread_join(call->thread, NULL);
  rn_cancel_destroy(&call->cancel);
  return call->status;
}

RT_TEST(queue, waiting_take_gets_what_comes) {
  for (int threads = 1; threads <= 2; ++threads) {
    queue_t q = begin("FIFOQueueV2", threads, -1);
    call_t call;
    start(&call, &q, TAKE, 0);
    settle();
    OK(put(&q, 42, NULL));
    OK(end(&call));
    cr_assert_eq(call.value, 42);
    rt_end(&q.rt);
  }
}

RT_TEST(queue, waiters_are_served_in_order) {
  queue_t q = begin("FIFOQueueV2", 2, 2);
  call_t calls[6];
  for (int i = 0; i < 6; ++i) {
    start(&calls[i], &q, PUT, (float)i);
    settle();  // a busy machine takes its time to start a thread
  }
  for (int i = 0; i < 6; ++i) {
    float value;
    OK(take(&q, NULL, &value));
    cr_assert_eq(value, (float)i);
  }
  for (int i = 0; i < 6; ++i) OK(end(&calls[i]));
  rt_end(&q.rt);
}

RT_TEST(queue, batch_larger_than_the_queue) {
  queue_t q = begin("FIFOQueueV2", 2, 2);
  call_t call;
  start(&call, &q, PUT_FIVE, 0);
  settle();
  cr_assert_eq(size_of(&q), 2);
  float values[5];
  int64_t count;
  OK(take_n(&q, q.take_n, 5, NULL, values, &count));
  OK(end(&call));
  for (int i = 0; i < 5; ++i) cr_assert_eq(values[i], (float)(i + 1));
  rt_end(&q.rt);
}

// A batch that was half taken goes back where it was, in front of what came later.
RT_TEST(queue, cancelled_batch_is_put_back) {
  queue_t q = begin("FIFOQueueV2", 2, -1);
  call_t call;
  start(&call, &q, TAKE_THREE, 0);
  settle();
  OK(put(&q, 1, NULL));
  OK(put(&q, 2, NULL));
  cr_assert_eq(size_of(&q), 0);
  rn_cancel(&call.cancel);
  FAILS_WITH(end(&call), CANCELLED, "");
  cr_assert_eq(size_of(&q), 2);
  for (int i = 1; i <= 2; ++i) {
    float value;
    OK(take(&q, NULL, &value));
    cr_assert_eq(value, (float)i);
  }
  rt_end(&q.rt);
}

// Cancelling the first in line lets the next one go on.
RT_TEST(queue, cancelling_the_first_serves_the_next) {
  queue_t q = begin("FIFOQueueV2", 2, -1);
  call_t first, second;
  start(&first, &q, TAKE_THREE, 0);
  settle();
  start(&second, &q, TAKE, 0);
  settle();
  OK(put(&q, 9, NULL));
  rn_cancel(&first.cancel);
  FAILS_WITH(end(&first), CANCELLED, "");
  OK(end(&second));
  cr_assert_eq(second.value, 9);
  rt_end(&q.rt);
}

RT_TEST(queue, closing_ends_those_who_take) {
  queue_t q = begin("FIFOQueueV2", 2, -1);
  call_t one, three, fewer;
  start(&fewer, &q, TAKE_UP_TO_FIVE, 0);
  settle();
  OK(put(&q, 5, NULL));
  start(&three, &q, TAKE_THREE, 0);
  settle();
  start(&one, &q, TAKE, 0);
  settle();
  rt_do(&q.rt, q.close);
  OK(end(&fewer));
  cr_assert_eq(fewer.count, 1);
  cr_assert_eq(fewer.values[0], 5);
  FAILS_WITH(end(&three), OUT_OF_RANGE, "is closed and has insufficient elements (requested 3, ");
  FAILS_WITH(end(&one), OUT_OF_RANGE, "(requested 1, current size 0)");
  FAILS_WITH(put(&q, 1, NULL), CANCELLED, "is closed.");
  rt_end(&q.rt);
}

RT_TEST(queue, closing_waits_or_cancels) {
  for (int cancels = 0; cancels < 2; ++cancels) {
    queue_t q = begin("FIFOQueueV2", 2, 1);
    OK(put(&q, 1, NULL));
    call_t waiting;
    start(&waiting, &q, PUT, 2);
    settle();
    float value;
    if (cancels) {
      rt_do(&q.rt, q.cancel);
      FAILS_WITH(end(&waiting), CANCELLED, "Enqueue operation was cancelled");
    } else {
      // The close stands behind the enqueue; both end when there is room.
      OK(take(&q, NULL, &value));
      cr_assert_eq(value, 1);
      OK(end(&waiting));
      rt_do(&q.rt, q.close);
    }
    OK(take(&q, NULL, &value));
    cr_assert_eq(value, cancels ? 1 : 2);
    FAILS_WITH(take(&q, NULL, &value), OUT_OF_RANGE, "current size 0");
    rt_end(&q.rt);
  }
}

RT_TEST(queue, closing_the_session_ends_those_who_wait) {
  queue_t q = begin("FIFOQueueV2", 2, -1);
  call_t calls[4];
  for (int i = 0; i < 4; ++i) start(&calls[i], &q, i % 2 ? TAKE : TAKE_THREE, 0);
  settle();
  OK(rn_session_close(q.rt.session));
  for (int i = 0; i < 4; ++i) FAILS_WITH(end(&calls[i]), CANCELLED, "");
  rt_end(&q.rt);
}

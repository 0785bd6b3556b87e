// The coordinator and queue runners.
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "util.h"

static atomic_int turns;

static void work(rn_coordinator_t* c, void* arg) {
  (void)arg;
  while (!rn_coordinator_should_stop(c))
    if (atomic_fetch_add(&turns, 1) == 1000) rn_coordinator_request_stop(c);
}

Test(coordinator, stops_all) {
  rn_coordinator_t* c = rn_coordinator_create();
  for (int i = 0; i < 4; ++i) cr_assert(rn_coordinator_start(c, "work", work, NULL));
  cr_expect(rn_coordinator_join(c, 10) == TF_OK);
  cr_expect(strcmp(rn_coordinator_message(c), "") == 0);
  cr_expect(turns > 1000);
  rn_coordinator_destroy(c);
}

static void fail(rn_coordinator_t* c, void* arg) { rn_coordinator_report(c, TF_INTERNAL, arg); }

Test(coordinator, tells_the_first_error) {
  rn_coordinator_t* c = rn_coordinator_create();
  cr_assert(rn_coordinator_start(c, "fail", fail, "the disk is gone"));
  cr_expect(rn_coordinator_wait_for_stop(c, -1));
  rn_coordinator_report(c, TF_ABORTED, "a later one");
  cr_expect(rn_coordinator_join(c, 10) == TF_INTERNAL);
  cr_expect(strcmp(rn_coordinator_message(c), "the disk is gone") == 0);
  rn_coordinator_destroy(c);
}

Test(coordinator, end_of_input_is_no_error) {
  rn_coordinator_t* c = rn_coordinator_create();
  rn_coordinator_report(c, TF_OUT_OF_RANGE, "no more");
  cr_expect(rn_coordinator_should_stop(c));
  cr_expect(rn_coordinator_join(c, 1) == TF_OK);
  rn_coordinator_destroy(c);
}

static void oversleep(rn_coordinator_t* c, void* arg) {
  const _Atomic bool* may_end = arg;
  rn_coordinator_wait_for_stop(c, -1);
  while (!*may_end) usleep(1000);
}

Test(coordinator, grace_ends) {
  rn_coordinator_t* c = rn_coordinator_create();
  _Atomic bool may_end = false;
  cr_assert(rn_coordinator_start(c, "late", oversleep, &may_end));
  cr_expect(!rn_coordinator_wait_for_stop(c, 0.01));
  rn_coordinator_request_stop(c);
  cr_expect(rn_coordinator_join(c, 0.02) == TF_ABORTED);
  cr_expect(
      strcmp(rn_coordinator_message(c), "Coordinator stopped with threads still running: 1") == 0);
  may_end = true;
  cr_expect(rn_coordinator_join(c, 60) == TF_OK);
  rn_coordinator_destroy(c);
}

Test(coordinator, null) {
  rn_coordinator_destroy(NULL);
  rn_coordinator_request_stop(NULL);
  cr_expect(rn_coordinator_should_stop(NULL));
  cr_expect(!rn_coordinator_start(NULL, NULL, NULL, NULL));
  cr_expect(rn_coordinator_join(NULL, 0) == TF_OK);
  rn_coordinator_t* c = rn_coordinator_create();
  cr_expect(!rn_coordinator_start(c, NULL, NULL, NULL));
  cr_expect(rn_start_queue_runners(NULL, NULL, c) == -1);
  cr_expect(rn_coordinator_join(c, 0) == TF_INVALID_ARGUMENT);
  rn_coordinator_destroy(c);
}

// A queue that |limit| numbers are put into (negative: without end) and summed out of.
typedef struct line_t {
  rn_edge_t sum;
  const rn_var_t *counter, *total;
  rn_node_t* add;
} line_t;

static line_t build(trial_t* t, int limit) {
  rn_scope_t* s = t->s;
  const int type = TF_INT32;
  int64_t* no_dims = NULL;
  int rank = 0;
  const rn_var_t* counter = rn_new_variable(s, "counter", rn_const_int32(s, 0),
                                            .kind = RN_VARIABLE_REFERENCE, .not_trainable = true);
  const int64_t* shapes[1] = {no_dims};
  rn_edge_t queue =
      rn_FIFOQueueV2(s, &type, 1, .shapes = RN_SHAPE_LIST(shapes, &rank, 1), .capacity = RN_SET(4));
  rn_edge_t next = rn_CountUpTo(s, counter->handle, limit < 0 ? INT32_MAX : limit);
  rn_node_t* enqueues[3];
  for (int i = 0; i < 3; ++i) enqueues[i] = rn_QueueEnqueueV2(s, queue, &next, 1);
  cr_assert(rn_add_queue_runner(s, queue, enqueues, 3), "%s", rn_scope_message(s));
  line_t line = {.counter = counter};
  line.total = rn_new_variable(s, "total", rn_const_int32(s, 0), .not_trainable = true);
  rn_edge_t taken = rn_edge_at(rn_QueueDequeueV2(s, queue, &type, 1), 0);
  line.add = rn_var_add(s, line.total, taken);
  trial_built(t);
  return line;
}

Test(queue_runner, feeds_until_the_input_ends) {
  trial_t t = trial_open();
  line_t line = build(&t, 200);
  trial_init(&t);
  rn_coordinator_t* c = rn_coordinator_create();
  cr_assert(rn_start_queue_runners(t.session, t.graph, c) == 3);
  const TF_Operation* target = rn_operation_of(line.add);
  int steps = 0;
  for (; steps < 1000; ++steps) {
    TF_SessionRun(t.session, NULL, NULL, NULL, 0, NULL, NULL, 0, &target, 1, NULL, t.status);
    if (TF_GetCode(t.status) != TF_OK) break;
  }
  cr_expect(TF_GetCode(t.status) == TF_OUT_OF_RANGE, "%s", TF_Message(t.status));
  cr_expect(steps == 200);
  cr_expect(rn_coordinator_join(c, 10) == TF_OK, "%s", rn_coordinator_message(c));
  TF_SetStatus(t.status, TF_OK, "");
  cr_expect(trial_scalar(&t, line.total->value) == 199 * 200 / 2);
  rn_coordinator_destroy(c);
  trial_close(&t);
}

Test(queue_runner, stops_when_asked) {
  trial_t t = trial_open();
  line_t line = build(&t, -1);
  trial_init(&t);
  rn_coordinator_t* c = rn_coordinator_create();
  cr_assert(rn_start_queue_runners(t.session, t.graph, c) == 3);
  for (int i = 0; i < 50; ++i) trial_run(&t, line.add, NULL, NULL, 0);
  rn_coordinator_request_stop(c);
  cr_expect(rn_coordinator_join(c, 10) == TF_OK, "%s", rn_coordinator_message(c));
  rn_coordinator_destroy(c);
  trial_close(&t);
}

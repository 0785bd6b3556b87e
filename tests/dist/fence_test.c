// The fence, which makes repeated requests for a step run it once: joining, remembering, forgetting
// and abandoning steps.
#include "dist/fence.h"

#include <criterion/criterion.h>

#include "../support/status.h"

#define FENCE_TEST(name) Test(fence, name, .timeout = 60)

static rn_allocator_t memory(void) { return rn_allocator_system(); }

// Timers that a test sets off.
typedef struct alarm_t {
  rn_timer_t* timer;
  int64_t at_ns;
} alarm_t;
static rn_status_t set(void* self, rn_timer_t* timer, int64_t at_ns) {
  *(alarm_t*)self = (alarm_t){timer, at_ns};
  return RN_OK;
}
static void clear(void* self, rn_timer_t* timer) {
  if (((alarm_t*)self)->timer == timer) ((alarm_t*)self)->timer = NULL;
}

// The steps behind the fence: each waits until the test ends it, or it is cancelled.
typedef struct steps_t {
  rn_run_step_t* running;
  int runs;
  rn_cancel_entry_t entry;
} steps_t;
static steps_t* current;

static void on_cancel(rn_cancel_entry_t* entry) {
  (void)entry;
  rn_run_step_t* call = current->running;
  current->running = NULL;
  rn_cancel_remove(call->call.cancel, &current->entry);
  rn_call_done(&call->call, rn_cancelled("Step was cancelled"));
}

static void run(void* self, rn_call_t* call) {
  steps_t* steps = current = self;
  steps->running = (rn_run_step_t*)call;
  steps->runs++;
  steps->entry = (rn_cancel_entry_t){.fn = on_cancel};
  cr_assert(rn_cancel_add(call->cancel, &steps->entry));
}

static void end_step(steps_t* steps, float value, int64_t count) {
  rn_run_step_t* call = steps->running;
  int64_t dims[] = {count};
  steps->running = NULL;
  rn_cancel_remove(call->call.cancel, &steps->entry);
  OK(rn_tensor_create(memory(), RN_FLOAT, (rn_shape_t){1, dims}, &call->fetches[0]));
  for (int64_t i = 0; i < count; ++i) RN_DATA(&call->fetches[0], float)[i] = value;
  rn_call_done(&call->call, RN_OK);
}

// A caller.
typedef struct client_t {
  rn_run_step_t call;
  rn_tensor_t value;
  rn_cancel_t cancel;
  rn_caller_t* caller;
  bool is_done;
  rn_status_t status;
} client_t;

static void on_done(rn_call_t* call, rn_status_t status) {
  client_t* client = call->owner;
  cr_assert(!client->is_done);
  client->is_done = true;
  client->status = status;
}

static void ask(rn_fence_t* fence, steps_t* steps, client_t* client, int64_t number) {
  *client = (client_t){.call.request = number};
  OK(rn_caller_create(memory(), &client->caller));
  rn_cancel_init(&client->cancel);
  client->call.call = (rn_call_t){.done = on_done,
                                  .owner = client,
                                  .deadline_ns = INT64_MAX,
                                  .cancel = &client->cancel,
                                  .caller = client->caller};
  client->call.fetches = &client->value;
  client->call.fetch_count = 1;
  rn_fence_call_t fenced = {&client->call.call, number, client->call.fetches, 1};
  rn_fence_run(fence, fenced, run, steps);
}

static void lose(client_t* client) {
  client->caller->lost_ns = 1;
  rn_cancel(&client->cancel);
}

static void leave(client_t* client) {
  cr_assert(client->is_done);
  rn_status_free(client->status);
  rn_tensor_clear(&client->value);
  rn_cancel_destroy(&client->cancel);
  rn_caller_release(client->caller);
}

static rn_fence_t* make(alarm_t* clock, size_t numbers, size_t bytes) {
  rn_fence_t* fence = NULL;
  rn_fence_options_t options = {.allocator = memory(),
                                .env = rn_env_system(),
                                .timers = {.self = clock, .set = set, .clear = clear},
                                .grace_ns = 1000,
                                .numbers = numbers,
                                .answer_bytes = bytes};
  OK(rn_fence_create(&options, &fence));
  return fence;
}

static void expect_value(const client_t* client, float value) {
  cr_assert(client->is_done && rn_ok(client->status), "%s", rn_status_message(client->status));
  cr_assert_float_eq(*RN_DATA(&client->value, float), value, 1e-6);
}

FENCE_TEST(a_number_runs_once_and_gets_one_answer) {
  alarm_t clock = {0};
  steps_t steps = {0};
  client_t first, second, third, other;
  rn_fence_t* fence = make(&clock, 0, 0);
  ask(fence, &steps, &first, 7);
  lose(&first);
  cr_assert(!first.is_done && clock.timer, "a broken connection is given a grace");
  ask(fence, &steps, &second, 7);  // joins
  cr_assert_eq(steps.runs, 1);
  clock.timer->fn(clock.timer);  // a caller waits again: nothing is cancelled
  cr_assert(!second.is_done);
  end_step(&steps, 3, 1);
  expect_value(&second, 3);
  cr_assert_null(clock.timer);
  ask(fence, &steps, &third, 7);  // is remembered
  expect_value(&third, 3);
  cr_assert_eq(steps.runs, 1);
  ask(fence, &steps, &other, 8);
  cr_assert_eq(steps.runs, 2);
  end_step(&steps, 4, 1);
  expect_value(&other, 4);
  leave(&first), leave(&second), leave(&third), leave(&other);
  rn_fence_release(fence);
}

FENCE_TEST(nobody_comes_back_and_the_step_is_cancelled) {
  alarm_t clock = {0};
  steps_t steps = {0};
  client_t first, second;
  rn_fence_t* fence = make(&clock, 0, 0);
  ask(fence, &steps, &first, 7);
  lose(&first);
  rn_timer_t* timer = clock.timer;
  timer->fn(timer);
  cr_assert_eq(rn_status_code(first.status), RN_CODE_CANCELLED);
  ask(fence, &steps, &second, 7);  // and that is its answer
  cr_assert_eq(rn_status_code(second.status), RN_CODE_CANCELLED);
  cr_assert_eq(steps.runs, 1);
  leave(&first), leave(&second);
  rn_fence_release(fence);
}

FENCE_TEST(who_gives_up_cancels_at_once) {
  alarm_t clock = {0};
  steps_t steps = {0};
  client_t first;
  rn_fence_t* fence = make(&clock, 0, 0);
  ask(fence, &steps, &first, 7);
  rn_cancel(&first.cancel);
  cr_assert(first.is_done && rn_status_code(first.status) == RN_CODE_CANCELLED);
  leave(&first);
  rn_fence_release(fence);
}

FENCE_TEST(large_answers_go_but_their_numbers_stay) {
  alarm_t clock = {0};
  steps_t steps = {0};
  client_t first, again;
  rn_fence_t* fence = make(&clock, 4, 100);
  ask(fence, &steps, &first, 7);
  end_step(&steps, 1, 26);  // 104 bytes
  ask(fence, &steps, &again, 7);
  cr_assert_eq(rn_status_code(again.status), RN_CODE_ABORTED, "%s",
               rn_status_message(again.status));
  leave(&first), leave(&again);
  // Two that fit together, then a third that drives out the older.
  for (int64_t number = 10; number < 13; ++number) {
    ask(fence, &steps, &first, number);
    end_step(&steps, (float)number, 12);
    leave(&first);
  }
  ask(fence, &steps, &again, 10);
  cr_assert_eq(rn_status_code(again.status), RN_CODE_ABORTED);
  leave(&again);
  ask(fence, &steps, &again, 12);
  expect_value(&again, 12);
  leave(&again);
  cr_assert_eq(steps.runs, 4);
  rn_fence_release(fence);
}

FENCE_TEST(old_numbers_are_forgotten) {
  alarm_t clock = {0};
  steps_t steps = {0};
  client_t client;
  rn_fence_t* fence = make(&clock, 3, 0);
  for (int64_t number = 1; number <= 4; ++number) {
    ask(fence, &steps, &client, number);
    end_step(&steps, 0, 1);
    leave(&client);
  }
  ask(fence, &steps, &client, 2);  // the last three are known
  cr_assert(client.is_done);
  leave(&client);
  ask(fence, &steps, &client, 1);
  cr_assert_eq(steps.runs, 5);
  end_step(&steps, 0, 1);
  leave(&client);
  rn_fence_release(fence);
}

FENCE_TEST(calls_without_a_number_are_just_run) {
  alarm_t clock = {0};
  steps_t steps = {0};
  client_t client;
  rn_fence_t* fence = make(&clock, 0, 0);
  for (int i = 0; i < 3; ++i) {
    ask(fence, &steps, &client, 0);
    end_step(&steps, 0, 1);
    leave(&client);
  }
  cr_assert_eq(steps.runs, 3);
  rn_fence_release(fence);
}

FENCE_TEST(it_outlives_its_owner_while_steps_run) {
  alarm_t clock = {0};
  steps_t steps = {0};
  client_t client;
  rn_fence_t* fence = make(&clock, 0, 0);
  ask(fence, &steps, &client, 7);
  rn_fence_release(fence);
  end_step(&steps, 2, 1);
  expect_value(&client, 2);
  leave(&client);
}

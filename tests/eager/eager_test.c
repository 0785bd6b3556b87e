// The eager execution engine: what a call allocates, and that nothing leaks when memory runs out.
#include <criterion/criterion.h>

#include "eager/eager.h"
#include "eager/tape.h"

static rn_counting_allocator_t counting;

static rn_eager_t* open_context(rn_allocator_t allocator, rn_status_t* out_status) {
  rn_eager_options_t options = {0};
  rn_session_options_init(&options.session);
  options.session.intra_threads = options.session.inter_threads = 1;
  rn_eager_t* eager = NULL;
  *out_status = rn_eager_create(&options, rn_env_system(), allocator, &eager);
  return eager;
}

static rn_status_t scalar(float value, rn_eager_handle_t** out) {
  rn_tensor_t tensor = {0};
  *out = NULL;
  RN_RETURN_IF_ERROR(
      rn_tensor_create(rn_allocator_default(), RN_FLOAT, (rn_shape_t){0, NULL}, &tensor));
  *RN_DATA(&tensor, float) = value;
  rn_status_t status = rn_eager_handle_create(&tensor, out);
  rn_tensor_clear(&tensor);
  return status;
}

static rn_status_t run(rn_eager_t* eager, const char* name, rn_eager_handle_t* x,
                       rn_eager_handle_t* y, rn_eager_handle_t** out) {
  rn_eager_op_t* op = NULL;
  int32_t room = 1;
  *out = NULL;
  RN_RETURN_IF_ERROR(rn_eager_op_create(eager, rn_str(name), &op));
  rn_status_t status = rn_eager_op_add_input(op, x);
  if (rn_ok(status) && y) status = rn_eager_op_add_input(op, y);
  if (rn_ok(status)) status = rn_eager_execute(op, out, &room);
  rn_eager_op_destroy(op);
  return status;
}

static void expect_ok(rn_status_t status) {
  cr_assert(rn_ok(status), "%s", rn_status_message(status));
}

static float value_of(rn_eager_handle_t* handle) {
  const rn_tensor_t* value = NULL;
  expect_ok(rn_eager_handle_value(handle, &value));
  return *RN_DATA(value, float);
}

// A call that has been made before asks for its description, its result and the result's buffer.
Test(eager, a_known_op_costs_three_blocks) {
  counting = (rn_counting_allocator_t){.base = rn_allocator_system()};
  rn_allocator_set_default_for_testing(rn_allocator_counting(&counting));
  rn_status_t status;
  rn_eager_t* eager = open_context(rn_allocator_counting(&counting), &status);
  expect_ok(status);
  rn_eager_handle_t *x = NULL, *y = NULL;
  expect_ok(scalar(2, &x));
  expect_ok(run(eager, "AddV2", x, x, &y));
  rn_eager_handle_release(y);
  int64_t before = counting.allocations, live = counting.live_blocks;
  for (int i = 0; i < 100; ++i) {
    expect_ok(run(eager, "AddV2", x, x, &y));
    cr_assert(value_of(y) == 4);
    rn_eager_handle_release(y);
  }
  cr_assert_leq(counting.allocations - before, 300, "%lld blocks",
                (long long)(counting.allocations - before));
  cr_assert_eq(counting.live_blocks, live);
  rn_eager_handle_release(x);
  rn_eager_release(eager);
  cr_assert_eq(counting.live_blocks, 0, "%lld blocks are left", (long long)counting.live_blocks);
}

// Everything once: an op, a tape, a gradient. Any status will do as long as nothing leaks.
static rn_status_t all_of_it(rn_eager_t* eager) {
  rn_eager_handle_t *x = NULL, *y = NULL, *dx = NULL;
  rn_eager_tape_t* tape = NULL;
  rn_status_t status = scalar(3, &x);
  if (rn_ok(status)) status = rn_eager_tape_create(eager, false, true, &tape);
  if (rn_ok(status)) status = rn_eager_tape_watch(tape, x);
  if (rn_ok(status)) status = run(eager, "Mul", x, x, &y);
  rn_eager_gradient_t request = {
      .targets = &y, .target_count = 1, .sources = &x, .source_count = 1};
  if (rn_ok(status)) status = rn_eager_tape_gradient(tape, &request, &dx);
  if (rn_ok(status) && value_of(dx) != 6) status = rn_internal("the gradient is %g", value_of(dx));
  rn_eager_tape_destroy(tape);
  rn_eager_handle_release(x);
  rn_eager_handle_release(y);
  rn_eager_handle_release(dx);
  return status;
}

Test(eager, every_allocation_may_fail, .timeout = 200) {
  bool is_over = false;
  int64_t step = 1;
  for (int64_t fail_at = 1; !is_over; fail_at += step) {
    counting = (rn_counting_allocator_t){.base = rn_allocator_system(), .fail_at = fail_at};
    rn_allocator_set_default_for_testing(rn_allocator_counting(&counting));
    rn_status_t status;
    rn_eager_t* eager = open_context(rn_allocator_counting(&counting), &status);
    if (rn_ok(status)) status = all_of_it(eager);
    is_over = counting.allocations < fail_at;
    if (is_over) expect_ok(status);
    // Planning may do without what it did not get.
    if (!rn_ok(status))
      cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED, "at %lld: %s",
                   (long long)fail_at, rn_status_message(status));
    rn_status_free(status);
    rn_eager_release(eager);
    cr_assert_eq(counting.live_blocks, 0, "at %lld: %lld blocks are left", (long long)fail_at,
                 (long long)counting.live_blocks);
  }
}

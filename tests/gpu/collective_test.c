// Collectives of GPUs: several devices of one card, whose values go through host memory. What CPUs
// come to is the reference.
#include <pthread.h>

#include "collectives.h"
#include "emulated_driver.h"

#define CASE(name) Test(collective, name, .timeout = 300)

// Every op and type, a few numbers and one.
CASE(same_as_on_cpus) {
  for (const collective_op_t* op = collective_ops; op->name; ++op) {
    for (const rn_dtype_t* dtype = collective_types; *dtype != RN_INVALID; ++dtype) {
      if (!collective_has(op, *dtype)) continue;
      for (int64_t columns = 1; columns < 40; columns += 36) {
        collective_t like = {.op = op, .dtype = *dtype, .columns = columns};
        collective_compare(&like);
      }
    }
  }
}

// More than a piece, with a rest.
CASE(large_values_go_in_pieces) {
  for (const collective_op_t* op = collective_ops; op->name; ++op) {
    collective_t like = {.op = op, .dtype = RN_FLOAT};
    like.columns = op->rows == COLLECTIVE_ONE_ROW ? ((int64_t)5 << 20) + 17 : 800003;
    collective_compare(&like);
  }
}

CASE(merges_and_divides) {
  static const char* const merges[] = {"Add", "Mul", "Max", "Min"};
  for (const collective_op_t* op = collective_ops; op->name; ++op) {
    if (!op->merges) continue;
    for (int i = 0; i < 4; ++i) {
      collective_t like = {.op = op, .dtype = RN_FLOAT, .columns = 33, .merge = merges[i]};
      collective_compare(&like);
    }
    collective_t like = {.op = op, .dtype = RN_DOUBLE, .columns = 7, .divides = true};
    collective_compare(&like);
  }
}

// The sum, by itself.
CASE(adds_up) {
  collective_t like = {
      .op = collective_find("CollectiveReduceV2"), .dtype = RN_FLOAT, .columns = 100};
  collective_run_t run;
  collective_open(&run, &like, "GPU");
  OK(collective_run(&run));
  for (int m = 0; m < MEMBERS; ++m) {
    cr_assert_eq(run.step.out[m].count, 100);
    for (int64_t i = 0; i < 100; ++i) {
      float want = 0;
      for (int k = 0; k < MEMBERS; ++k) want += RN_DATA(&run.values[k], float)[i];
      cr_assert_eq(RN_DATA(&run.step.out[m], float)[i], want);
    }
  }
  collective_close(&run);
}

// Empty values meet, too.
CASE(empty_values) {
  collective_t like = {
      .op = collective_find("CollectiveReduceV2"), .dtype = RN_FLOAT, .columns = 0};
  collective_compare(&like);
}

CASE(members_must_agree) {
  collective_t like = {
      .op = collective_find("CollectiveReduceV2"), .dtype = RN_FLOAT, .columns = 8};
  collective_run_t run;
  collective_open(&run, &like, "GPU");
  run.values[1].count = run.values[1].inline_dims[0] = 7;
  FAILS_WITH(collective_run(&run), INVALID_ARGUMENT, "Shape mismatch in a collective");
  run.values[1].count = run.values[1].inline_dims[0] = 8;
  OK(collective_run(&run));
  collective_close(&run);
}

static void* cancel_soon(void* arg) {
  usleep(50000);
  rn_cancel(arg);
  return NULL;
}

// Two members wait for the third, which never comes; then all come.
CASE(waiting_members_are_cancelled) {
  collective_t like = {
      .op = collective_find("CollectiveReduceV2"), .dtype = RN_FLOAT, .columns = 8};
  collective_run_t run;
  pthread_t thread;
  rn_cancel_t cancel;
  rn_cancel_init(&cancel);
  collective_open(&run, &like, "GPU");
  OK(collective_run(&run));
  rt_step_t step = run.step;
  step.fetch_count = step.feed_count = MEMBERS - 1;
  step.options.cancel = &cancel;
  rt_clear(&run.step);
  cr_assert_eq(pthread_create(&thread, NULL, cancel_soon, &cancel), 0);
  FAILS(rt_run(&run.rt, &step), CANCELLED);
  pthread_join(thread, NULL);
  rn_cancel_destroy(&cancel);
  OK(collective_run(&run));
  collective_close(&run);
}

CASE(deadlines) {
  collective_t like = {.op = collective_find("CollectiveReduceV2"),
                       .dtype = RN_FLOAT,
                       .columns = 8,
                       .timeout_seconds = 0.1f};
  collective_run_t run;
  collective_open(&run, &like, "GPU");
  rt_step_t step = run.step;
  step.fetch_count = step.feed_count = MEMBERS - 1;
  FAILS_WITH(rt_run(&run.rt, &step), DEADLINE_EXCEEDED, "timed out");
  collective_close(&run);
}

// A copy that fails, of a piece in the middle too, ends the collective for all members; the next
// one is fine.
CASE(failed_copies) {
  find_emulator();
  static const char* const calls[] = {"cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2"};
  for (int call = 0; call < 2; ++call) {
    for (int nth = 1; nth < 14; nth += 2) {
      collective_t like = {.op = collective_find("CollectiveReduceV2"),
                           .dtype = RN_FLOAT,
                           .columns = (int64_t)5 << 20};
      collective_run_t run;
      collective_open(&run, &like, "GPU");
      OK(collective_run(&run));
      rt_clear(&run.step);
      rn_emulated_fail(calls[call], nth, 2);
      FAILS(collective_run(&run), RESOURCE_EXHAUSTED);
      rn_emulated_fail(calls[call], 0, 0);
      OK(collective_run(&run));
      collective_close(&run);
    }
  }
}

// A group has devices of one type.
CASE(cpus_and_gpus_do_not_mix) {
  collective_t like = {
      .op = collective_find("CollectiveReduceV2"), .dtype = RN_FLOAT, .columns = 8};
  collective_run_t run;
  collective_open_on(&run, &like, (const char* const[]){"/gpu:0", "/gpu:1", "/cpu:0"});
  FAILS_WITH(collective_run(&run), INTERNAL, "but that group has type");
  collective_close(&run);
}

// Collectives of GPUs by NCCL. On one card, and without the library, they go through host memory;
// with the emulated library and several emulated cards they do not.
#include "collectives.h"
#include "emulated_driver.h"

#define CASE(name) Test(nccl, name, .timeout = 120)

// Members on cards of their own, or, if there is only one, on its parts.
static void open_cards(collective_run_t* run, const collective_t* like) {
  collective_open(run, like, "GPU");
  if (getenv("RN_TEST_NCCL"))
    run->rt.options.gpu.split_count = run->rt.options.gpu.virtual_count = 0;
}

static uint64_t kernels(void) { return rn_emulated_count("kernel:emulated_nccl"); }

static void needs_library(void) {
  if (!getenv("RN_TEST_NCCL")) cr_skip_test("needs the emulated NCCL");
  find_emulator();
}

// As on CPUs, within what another order of sums makes.
static void compare(const collective_t* like) {
  collective_run_t cpu, gpu;
  collective_open(&cpu, like, "CPU");
  open_cards(&gpu, like);
  OK(collective_run(&cpu));
  for (int turn = 0; turn < (like->op->version == 3 ? 1 : 3); ++turn) {
    OK(collective_run(&gpu));
    for (int m = 0; m < MEMBERS; ++m) {
      const rn_tensor_t *want = &cpu.step.out[m], *got = &gpu.step.out[m];
      cr_assert(rn_tensor_same_shape(want, got), "%s, member %d", like->op->name, m);
      cr_assert(collective_is_close(want, got), "%s of type %d, %lld columns, member %d",
                like->op->name, (int)like->dtype, (long long)like->columns, m);
    }
  }
  collective_close(&cpu);
  collective_close(&gpu);
}

CASE(same_as_on_cpus) {
  for (const collective_op_t* op = collective_ops; op->name; ++op) {
    for (const rn_dtype_t* dtype = collective_types; *dtype != RN_INVALID; ++dtype) {
      if (!collective_has(op, *dtype)) continue;
      for (int64_t columns = 0; columns < 2000; columns = columns * 40 + 33) {
        collective_t like = {.op = op, .dtype = *dtype, .columns = columns, .hint = "nccl"};
        compare(&like);
      }
    }
  }
}

CASE(merges_and_divides) {
  static const char* const merges[] = {"Add", "Mul", "Max", "Min"};
  for (const collective_op_t* op = collective_ops; op->name; ++op) {
    for (int i = 0; op->merges && i < 4; ++i) {
      for (int divides = 0; divides < (op->version < 3 ? 2 : 1); ++divides) {
        collective_t like = {.op = op,
                             .dtype = RN_DOUBLE,
                             .columns = 33,
                             .merge = merges[i],
                             .divides = divides,
                             .hint = "nccl"};
        compare(&like);
      }
    }
  }
}

// It is NCCL that runs them, and only if it is asked for.
CASE(runs_by_the_library) {
  needs_library();
  for (const collective_op_t* op = collective_ops; op->name; ++op) {
    for (int asks = 0; asks < 2; ++asks) {
      collective_t like = {
          .op = op, .dtype = RN_FLOAT, .columns = 12, .hint = asks ? "nccl" : "auto"};
      collective_run_t run;
      open_cards(&run, &like);
      uint64_t before = kernels();
      OK(collective_run(&run));
      cr_assert_eq(kernels() - before, asks ? MEMBERS : 0, "%s", op->name);
      collective_close(&run);
    }
  }
}

// Or if the session wants it for all: ConfigProto's experimental.collective_nccl.
CASE(runs_by_the_library_if_the_session_says_so) {
  needs_library();
  collective_t like = {.op = collective_find("CollectiveReduceV2"),
                       .dtype = RN_FLOAT,
                       .columns = 12,
                       .hint = "ring"};
  collective_run_t run;
  open_cards(&run, &like);
  rn_gpu_options_t gpu = run.rt.options.gpu;
  OK(rn_session_options_parse(RN_STR("\x82\x01\x02\x38\x01"), &run.rt.options));
  run.rt.options.gpu = gpu;
  uint64_t before = kernels();
  OK(collective_run(&run));
  cr_assert_eq(kernels() - before, MEMBERS);
  collective_close(&run);
}

// What cannot connect goes through host memory.
static void goes_by_host(const char* variable, const char* value) {
  needs_library();
  cr_assert_eq(setenv(variable, value, 1), 0);
  collective_t like = {.op = collective_find("CollectiveReduceV2"),
                       .dtype = RN_FLOAT,
                       .columns = 12,
                       .hint = "nccl"};
  uint64_t before = kernels();
  compare(&like);
  cr_assert_eq(kernels(), before);
}

CASE(another_major_version) { goes_by_host("EMULATED_NCCL_VERSION", "30100"); }
CASE(corrupt_id) { goes_by_host("EMULATED_NCCL_CORRUPT", "1"); }

CASE(members_of_one_card) {
  needs_library();
  collective_t like = {.op = collective_find("CollectiveReduceV2"),
                       .dtype = RN_FLOAT,
                       .columns = 12,
                       .hint = "nccl"};
  uint64_t before = kernels();
  collective_compare(&like);
  cr_assert_eq(kernels(), before);
}

// An error of NCCL's ends the instance for all; the next one connects anew.
CASE(errors_end_the_instance) {
  needs_library();
  cr_assert_eq(setenv("EMULATED_NCCL_FAIL", "2", 1), 0);
  collective_t like = {.op = collective_find("CollectiveReduceV2"),
                       .dtype = RN_FLOAT,
                       .columns = 12,
                       .hint = "nccl"};
  collective_run_t run;
  open_cards(&run, &like);
  for (int turn = 0; turn < 3; ++turn) {
    OK(collective_run(&run));
    rt_clear(&run.step);
    FAILS_WITH(rt_run(&run.rt, &run.step), INTERNAL, "remote process exited");
    run.step.fetch_count = MEMBERS;
    memset(run.step.out, 0, sizeof run.step.out);
  }
  collective_close(&run);
}

static void* cancel_soon(void* arg) {
  usleep(200000);
  rn_cancel(arg);
  return NULL;
}

// A rank that does not come leaves the others hanging: a cancelled step aborts them.
CASE(cancelled_while_it_runs) {
  needs_library();
  cr_assert_eq(setenv("EMULATED_NCCL_STALL", "2", 1), 0);
  collective_t like = {.op = collective_find("CollectiveReduceV2"),
                       .dtype = RN_FLOAT,
                       .columns = 12,
                       .hint = "nccl"};
  collective_run_t run;
  open_cards(&run, &like);
  for (int turn = 0; turn < 3; ++turn) {
    pthread_t thread;
    rn_cancel_t cancel;
    rn_cancel_init(&cancel);
    OK(collective_run(&run));
    rt_clear(&run.step);
    run.step.options.cancel = &cancel;
    cr_assert_eq(pthread_create(&thread, NULL, cancel_soon, &cancel), 0);
    FAILS(rt_run(&run.rt, &run.step), CANCELLED);
    pthread_join(thread, NULL);
    rn_cancel_destroy(&cancel);
    run.step.options.cancel = NULL;
    memset(run.step.out, 0, sizeof run.step.out);
  }
  collective_close(&run);
}

CASE(deadlines) {
  needs_library();
  cr_assert_eq(setenv("EMULATED_NCCL_STALL", "1", 1), 0);
  collective_t like = {.op = collective_find("CollectiveReduceV2"),
                       .dtype = RN_FLOAT,
                       .columns = 8,
                       .timeout_seconds = 0.3f,
                       .hint = "nccl"};
  collective_run_t run;
  open_cards(&run, &like);
  FAILS_WITH(collective_run(&run), DEADLINE_EXCEEDED, "timed out");
  memset(run.step.out, 0, sizeof run.step.out);
  collective_close(&run);
}

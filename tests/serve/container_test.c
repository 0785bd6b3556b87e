// Containers as processes: batches, crashes, hangs, garbage, restarts, and what is left behind.
#include "serve/model/container.h"

#include <criterion/criterion.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>

#include "fake_container.h"
#include "guest.h"
#include "tensor/tstring.h"

#define CONTAINER_TEST(name) Test(container, name, .timeout = 120)

#define START(guest, more) \
  guest_t guest;           \
  guest_init(&guest);      \
  OK(guest_load(&guest, "command: '" FAKE_CONTAINER "' " more))

static bool is_alive(int pid) { return kill(pid, 0) == 0; }

CONTAINER_TEST(describes_itself_and_runs) {
  START(guest, "");
  rn_backend_t* backend = guest.backends[0];
  cr_assert_eq(guest.count, 1);
  cr_assert_str_eq(backend->vtable->kind, "container");
  cr_assert_eq(backend->signature_count, 2);
  cr_assert_eq(backend->max_rows, 100000);
  cr_assert(backend->memory > 0);
  const rn_serve_signature_t* signature = &backend->signatures[0];
  cr_assert(rn_str_is(signature->name, "serving_default"));
  cr_assert(signature->is_batched && signature->is_pure);
  cr_assert(rn_str_is(signature->inputs[0].name, "x"));
  cr_assert_eq(signature->inputs[0].dtype, RN_FLOAT);
  cr_assert(!backend->vtable->is_down(backend));
  for (int64_t rows = 0; rows < 5; ++rows) expect_twice(backend, rows);
  cr_assert_eq(rn_container_stats(backend).shared, 0);
  expect_twice(backend, 50000);  // in shared memory
  expect_twice(backend, 1000);
  expect_twice(backend, 100000);  // in a larger one
  cr_assert(rn_container_stats(backend).shared >= 150000 * 8);
  rn_tensor_t output;
  FAILS_WITH(order(backend, 100001, 1, &output), INVALID_ARGUMENT, "at most 100000 rows");
  guest_clear(&guest);
}

CONTAINER_TEST(copies_where_memory_is_not_shared) {
  START(guest, "copies: true");
  expect_twice(guest.backends[0], 100000);
  expect_twice(guest.backends[0], 1);
  cr_assert_eq(rn_container_stats(guest.backends[0]).shared, 0);
  guest_clear(&guest);
}

CONTAINER_TEST(strings_travel) {
  START(guest, "");
  rn_backend_t* backend = guest.backends[0];
  for (int64_t count = 1; count <= 10000; count *= 100) {
    batch_t batch;
    batch_init(&batch, 1, 0);
    rn_tensor_clear(&batch.input);
    OK(rn_tensor_create(memory(), RN_STRING, (rn_shape_t){1, &count}, &batch.input));
    for (int64_t i = 0; i < count; ++i) {
      char text[64];
      int size = snprintf(text, sizeof text, "%*lld", (int)(i % 50), (long long)i);
      cr_assert(rn_tstring_assign(&RN_DATA(&batch.input, rn_tstring_t)[i], text, (size_t)size));
    }
    batch.run.signature = 1;
    rn_tensor_t input;
    OK(rn_tensor_share(&batch.input, &input));
    backend->vtable->run(backend, &batch.run);
    OK(batch_wait(&batch));
    for (int64_t i = 0; i < count; ++i)
      cr_assert(rn_str_eq(rn_tstring_view(&RN_DATA(&batch.output, rn_tstring_t)[i]),
                          rn_tstring_view(&RN_DATA(&input, rn_tstring_t)[i])));
    rn_tensor_clear(&input);
    rn_tensor_clear(&batch.output);
  }
  guest_clear(&guest);
}

CONTAINER_TEST(errors_cost_one_batch) {
  START(guest, "");
  rn_backend_t* backend = guest.backends[0];
  FAILS_SAYING(order_only(backend, FAKE_FAIL), INVALID_ARGUMENT, "Model 'twice': no such row");
  FAILS_WITH(order_only(backend, FAKE_SHAPE), INTERNAL,
             "Model 'twice': the output 'y' has the shape [4,2], which does not fit [?,?] for a "
             "batch of 3 rows");
  FAILS_WITH(order_only(backend, FAKE_TYPE), INTERNAL, "do not fit its shape");
  FAILS_WITH(order_only(backend, FAKE_MISSING), INTERNAL, "the output 'y' is missing");
  rn_tensor_t output;
  OK(order(backend, 3, FAKE_NAN, &output));
  cr_assert(isnan(RN_DATA(&output, float)[0]));
  rn_tensor_clear(&output);
  cr_assert_eq(rn_container_stats(backend).starts, 1);
  guest_clear(&guest);
}

CONTAINER_TEST(a_crash_costs_its_batch_and_little_time) {
  START(guest, "");
  rn_backend_t* backend = guest.backends[0];
  for (int i = 0; i < 3; ++i) {
    int64_t starts = rn_container_stats(backend).starts, begun = now();
    FAILS_WITH(order_only(backend, i ? FAKE_EXIT : FAKE_CRASH), UNAVAILABLE, "Model 'twice'");
    wait_for_start(backend, starts);
    cr_assert(now() - begun < 10 * SECOND);
    expect_twice(backend, 50000);
  }
  cr_assert(has_logged(&guest, "was killed by signal 6"));
  cr_assert(has_logged(&guest, "exited with status 7: so long"));
  guest_clear(&guest);
}

CONTAINER_TEST(killed_while_a_batch_runs) {
  START(guest, "");
  rn_backend_t* backend = guest.backends[0];
  batch_t batch;
  batch_init(&batch, 50000, FAKE_HANG);
  backend->vtable->run(backend, &batch.run);
  kill(rn_container_stats(backend).pid, SIGKILL);
  FAILS_WITH(batch_wait(&batch), UNAVAILABLE, "its container failed");
  wait_for_start(backend, 1);
  expect_twice(backend, 3);
  guest_clear(&guest);
}

CONTAINER_TEST(hangs_end) {
  START(guest, "run_timeout_ms: 200 heartbeat_ms: 50 heartbeat_timeout_ms: 2000");
  rn_backend_t* backend = guest.backends[0];
  FAILS_WITH(order_only(backend, FAKE_HANG), DEADLINE_EXCEEDED,
             "took longer than 200 ms for a batch");
  wait_for_start(backend, 1);
  expect_twice(backend, 3);
  guest_unload(&guest);
  OK(guest_load(&guest,
                "command: '" FAKE_CONTAINER "' heartbeat_ms: 50 heartbeat_timeout_ms: 500"));
  backend = guest.backends[0];
  FAILS_WITH(order_only(backend, FAKE_STOP), UNAVAILABLE, "was silent for");
  wait_for_start(backend, 1);
  OK(order_only(backend, FAKE_SLOW));
  guest_clear(&guest);
}

static void slow_done(rn_backend_run_t* run, rn_status_t status) {
  usleep(900000);
  batch_done(run, status);
}

CONTAINER_TEST(a_busy_server_does_not_blame_its_containers) {
  START(guest, "heartbeat_ms: 50 heartbeat_timeout_ms: 300 run_timeout_ms: 30000");
  rn_backend_t* backend = guest.backends[0];
  for (int i = 0; i < 2; ++i) {
    batch_t batch;
    batch_init(&batch, 3, 1);
    batch.run.done = slow_done;  // on the loop's thread
    backend->vtable->run(backend, &batch.run);
    OK(batch_wait(&batch));
    rn_tensor_clear(&batch.output);
    expect_twice(backend, 3);
  }
  cr_assert_eq(rn_container_stats(backend).starts, 1);
  guest_clear(&guest);
}

CONTAINER_TEST(replicas_fail_alone) {
  START(guest, "replicas: 2");
  cr_assert_eq(guest.count, 2);
  FAILS(order_only(guest.backends[0], FAKE_CRASH), UNAVAILABLE);
  expect_twice(guest.backends[1], 3);
  wait_for_start(guest.backends[0], 1);
  expect_twice(guest.backends[0], 3);
  guest_clear(&guest);
}

CONTAINER_TEST(bad_starts_are_explained) {
  guest_t guest;
  guest_init(&guest);
  FAILS_WITH(guest_load(&guest, "command: '" FAKE_CONTAINER "' command: 'exit'"), UNAVAILABLE,
             "exited with status 3: ModuleNotFoundError: no brain");
  FAILS_WITH(guest_load(&guest, "command: '/no/such/program'"), UNAVAILABLE, "/no/such/program");
  FAILS_WITH(guest_load(&guest, "command: '" FAKE_CONTAINER "' command: 'noise'"), UNAVAILABLE,
             "which containers do not send");
  FAILS_WITH(
      guest_load(&guest, "command: '" FAKE_CONTAINER "' command: 'mute' start_timeout_ms: 100"),
      UNAVAILABLE, "did not say HELLO within 100 ms");
  FAILS_WITH(guest_load(&guest, "command: '" FAKE_CONTAINER "' command: 'flood'"), UNAVAILABLE,
             "sent an answer to a batch that does not run");
  FAILS_WITH(guest_load(&guest, "command: 'x' connect: 'y'"), INVALID_ARGUMENT,
             "give one of command, connect and isolate");
  FAILS_WITH(guest_load(&guest, "commando: 'x'"), INVALID_ARGUMENT, "container.pbtxt");
  FAILS_WITH(guest_load(&guest, "command: 'x' heartbeat_ms: 100 heartbeat_timeout_ms: 150"),
             INVALID_ARGUMENT, "at least twice");
  guest_clear(&guest);
}

CONTAINER_TEST(changed_bytes_of_a_hello_harm_nothing) {
  guest_t guest;
  guest_init(&guest);
  for (int position = 0; position < 150; position += 7) {
    char config[512];
    snprintf(config, sizeof config,
             "command: '" FAKE_CONTAINER
             "' command: 'garbage' command: '%d' start_timeout_ms: 100 stop_timeout_ms: 20",
             position);
    rn_status_free(guest_load(&guest, config));
    guest_unload(&guest);
  }
  guest_clear(&guest);
}

CONTAINER_TEST(starts_that_fail_wait_longer_each_time) {
  char once[80];
  guest_t guest;
  guest_init(&guest);
  snprintf(once, sizeof once, "%s/once", guest.folder);
  char config[512];
  snprintf(config, sizeof config,
           "command: '" FAKE_CONTAINER
           "' environment { key: 'FAKE_ONCE' value: '%s' } restart_min_ms: 1 restart_max_ms: 20",
           once);
  OK(guest_load(&guest, config));
  OK(rn_fs_write(rn_env_system(), once, RN_STR("")));
  FAILS(order_only(guest.backends[0], FAKE_CRASH), UNAVAILABLE);
  for (int i = 0; i < 6000 && rn_container_stats(guest.backends[0]).starts < 5; ++i) usleep(10000);
  FAILS_WITH(order_only(guest.backends[0], 1), UNAVAILABLE, "its container is not running");
  OK(rn_fs_remove_tree(rn_env_system(), once, &(int64_t){0}, &(int64_t){0}));
  wait_for_start(guest.backends[0], 4);
  expect_twice(guest.backends[0], 3);
  guest_clear(&guest);
}

CONTAINER_TEST(back_off_doubles_up_to_a_limit) {
  const rn_container_config_t config = {.restart_min_ns = 100, .restart_max_ns = 1000};
  const int64_t expected[] = {100, 100, 200, 400, 800, 1000, 1000};
  for (int i = 0; i < 7; ++i) {
    cr_assert_eq(rn_container_back_off(&config, i, 0), expected[i]);
    for (uint64_t random = 0; random < 2000; ++random) {
      int64_t wait = rn_container_back_off(&config, i, random);
      cr_assert(wait <= expected[i] && wait >= expected[i] / 2);
    }
  }
  cr_assert_eq(rn_container_back_off(&config, 1000000, 0), 1000);
}

CONTAINER_TEST(no_process_is_left) {
  START(guest, "replicas: 3");
  int pids[3];
  for (int i = 0; i < 3; ++i) pids[i] = rn_container_stats(guest.backends[i]).pid;
  FAILS(order_only(guest.backends[0], FAKE_CRASH), UNAVAILABLE);
  guest_unload(&guest);
  for (int i = 0; i < 3; ++i) cr_assert(!is_alive(pids[i]));
  // One that ignores DRAIN and SIGTERM.
  OK(guest_load(&guest, "command: '" FAKE_CONTAINER "' command: 'stubborn' stop_timeout_ms: 200"));
  int pid = rn_container_stats(guest.backends[0]).pid;
  cr_assert(is_alive(pid));
  guest_unload(&guest);
  cr_assert(!is_alive(pid));
  guest_clear(&guest);
}

static int open_descriptors(void) {
  rn_names_t names;
  rn_names_init(&names, memory());
  OK(rn_env_system()->fs->list(rn_env_system()->fs_self, "/proc/self/fd", &names));
  int count = (int)names.list.count;
  rn_names_clear(&names);
  return count;
}

CONTAINER_TEST(crashes_leave_no_descriptors) {
  START(guest, "restart_min_ms: 1 restart_max_ms: 1");
  rn_backend_t* backend = guest.backends[0];
  expect_twice(backend, 50000);
  int before = open_descriptors();
  for (int i = 0; i < 20; ++i) {
    FAILS(order_only(backend, FAKE_CRASH), UNAVAILABLE);
    wait_for_start(backend, i + 1);
    expect_twice(backend, 50000);
  }
  cr_assert_eq(open_descriptors(), before);
  guest_clear(&guest);
}

CONTAINER_TEST(output_goes_to_the_log_within_limits) {
  START(guest, "");
  OK(order_only(guest.backends[0], FAKE_TALK));
  for (int i = 0; i < 6000 && !has_logged(&guest, "line 50"); ++i) usleep(10000);
  cr_assert(has_logged(&guest, "container 'twice' 1 #0: line 50"));
  cr_assert(lines_logged(&guest, ": line") <= 300);
  guest_clear(&guest);
}

CONTAINER_TEST(without_descriptors_batches_are_copied) {
  START(guest, "");
  rn_backend_t* backend = guest.backends[0];
  expect_twice(backend, 3);
  struct rlimit old, few;
  cr_assert_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
  few = old;
  few.rlim_cur = 100;
  cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
  int taken[100], count = 0;
  while (count < 100 && (taken[count] = dup(0)) >= 0) ++count;
  expect_twice(backend, 50000);
  cr_assert_eq(rn_container_stats(backend).shared, 0);
  FAILS(order_only(backend, FAKE_CRASH), UNAVAILABLE);  // it cannot be started now, either
  usleep(200000);
  cr_assert(backend->vtable->is_down(backend));
  while (count) close(taken[--count]);
  cr_assert_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
  wait_for_start(backend, 1);
  expect_twice(backend, 50000);
  guest_clear(&guest);
}

CONTAINER_TEST(cancelled_batches) {
  START(guest, "");
  rn_backend_t* backend = guest.backends[0];
  batch_t batch;
  batch_init(&batch, 3, 1);
  rn_cancel(&batch.cancel);
  backend->vtable->run(backend, &batch.run);
  FAILS(batch_wait(&batch), CANCELLED);
  batch_init(&batch, 3, FAKE_SLOW);
  backend->vtable->run(backend, &batch.run);
  rn_cancel(&batch.cancel);
  rn_status_free(batch_wait(&batch));  // this container does not look for cancellations
  rn_tensor_clear(&batch.output);
  expect_twice(backend, 3);
  guest_clear(&guest);
}

// A SavedModel in a process of its own.
CONTAINER_TEST(isolates_saved_models) {
  guest_t guest;
  guest_init(&guest);
  const rn_container_options_t options = {.containers = guest.containers,
                                          .model = RN_STR("half"),
                                          .number = 123,
                                          .folder = SERVE_MODELS "/half_plus_two/00000123",
                                          .program = RUNNEL};
  OK(rn_container_load(&options, &guest.backends, &guest.count));
  rn_backend_t* backend = guest.backends[0];
  cr_assert_eq(backend->signature_count, 5);
  cr_assert(rn_str_is(backend->signatures[0].method, "tensorflow/serving/classify"));
  for (int round = 0; round < 2; ++round) {
    for (int64_t rows = 1; rows < 20000; rows *= 20) {
      batch_t batch;
      batch_init(&batch, rows, 1);
      rn_tensor_clear(&batch.input);
      OK(rn_tensor_create(memory(), RN_FLOAT, (rn_shape_t){2, (int64_t[]){rows, 1}}, &batch.input));
      for (int64_t i = 0; i < rows; ++i) RN_DATA(&batch.input, float)[i] = (float)i;
      batch.run.signature = rn_backend_signature(backend, RN_STR(""));
      backend->vtable->run(backend, &batch.run);
      OK(batch_wait(&batch));
      for (int64_t i = 0; i < rows; ++i)
        cr_assert_eq(RN_DATA(&batch.output, float)[i], 0.5f * (float)i + 2);
      rn_tensor_clear(&batch.output);
    }
    if (round == 0) {  // as if a kernel had called abort
      kill(rn_container_stats(backend).pid, SIGABRT);
      wait_for_start(backend, 1);
    }
  }
  guest_clear(&guest);
}

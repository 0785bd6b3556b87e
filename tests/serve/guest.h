// For tests of containers: a model in a folder of its own, and batches for it.
#ifndef RUNNEL_TESTS_SERVE_GUEST_H_
#define RUNNEL_TESTS_SERVE_GUEST_H_

#include <stdio.h>
#include <unistd.h>

#include "../support/status.h"
#include "base/fs.h"
#include "serve/model/container.h"

#define SECOND INT64_C(1000000000)

static inline rn_allocator_t memory(void) { return rn_allocator_system(); }
static inline int64_t now(void) { return rn_env_system()->now_ns(rn_env_system()->self); }

// A model: its folder, its replicas, and what it logged.
typedef struct guest_t {
  char folder[64];
  rn_env_t env;
  rn_containers_t* containers;
  rn_backend_t** backends;
  int count;
  rn_mutex_t mutex;
  rn_strbuf_t log;
} guest_t;

static inline void keep_log(void* self, rn_log_level_t level, const char* message) {
  (void)level;
  guest_t* guest = self;
  rn_mutex_lock(&guest->mutex);
  rn_strbuf_printf(&guest->log, "%s\n", message);
  rn_mutex_unlock(&guest->mutex);
}
static inline int64_t env_now(void* self) { return (void)self, now(); }
static inline int64_t env_wall(void* self) { return (void)self, 0; }
static inline uint64_t env_random(void* self) { return (void)self, 0; }

static inline void guest_init(guest_t* guest) {
  *guest = (guest_t){.env = *rn_env_system()};
  rn_mutex_init(&guest->mutex);
  rn_strbuf_init(&guest->log, memory());
  guest->env.self = guest;
  guest->env.log = keep_log;
  guest->env.now_ns = env_now;
  guest->env.wall_us = env_wall;
  guest->env.random = env_random;
  snprintf(guest->folder, sizeof guest->folder, "/tmp/container_test_XXXXXX");
  cr_assert(mkdtemp(guest->folder));
  OK(rn_containers_create(&guest->env, memory(), &guest->containers));
}

static inline rn_status_t guest_load(guest_t* guest, const char* config) {
  char path[128];
  snprintf(path, sizeof path, "%s/container.pbtxt", guest->folder);
  OK(rn_fs_write(rn_env_system(), path, rn_str(config)));
  const rn_container_options_t options = {.containers = guest->containers,
                                          .model = RN_STR("twice"),
                                          .number = 1,
                                          .folder = guest->folder};
  return rn_container_load(&options, &guest->backends, &guest->count);
}

static inline void guest_unload(guest_t* guest) {
  for (int i = 0; i < guest->count; ++i) guest->backends[i]->vtable->destroy(guest->backends[i]);
  RN_FREE_ARRAY(memory(), guest->backends, guest->count);
  guest->backends = NULL;
  guest->count = 0;
}

static inline void guest_clear(guest_t* guest) {
  guest_unload(guest);
  rn_containers_destroy(guest->containers);
  int64_t files, folders;
  OK(rn_fs_remove_tree(rn_env_system(), guest->folder, &files, &folders));
  rn_strbuf_clear(&guest->log);
  rn_mutex_destroy(&guest->mutex);
}

static inline bool has_logged(guest_t* guest, const char* text) {
  rn_mutex_lock(&guest->mutex);
  bool has = guest->log.data && strstr(guest->log.data, text);
  rn_mutex_unlock(&guest->mutex);
  return has;
}

static inline int64_t lines_logged(guest_t* guest, const char* text) {
  int64_t lines = 0;
  rn_mutex_lock(&guest->mutex);
  for (const char* at = guest->log.data; at && (at = strstr(at, text)); ++at) lines++;
  rn_mutex_unlock(&guest->mutex);
  return lines;
}

// A batch of [rows, 2] whose first number is |first|.
typedef struct batch_t {
  rn_backend_run_t run;  // first
  rn_tensor_t input, output;
  rn_cancel_t cancel;
  rn_mutex_t mutex;
  rn_cond_t ended;
  bool is_done;
  rn_status_t status;
} batch_t;

static inline void batch_done(rn_backend_run_t* run, rn_status_t status) {
  batch_t* batch = (batch_t*)run;
  rn_mutex_lock(&batch->mutex);
  batch->is_done = true;
  batch->status = status;
  rn_cond_signal(&batch->ended);
  rn_mutex_unlock(&batch->mutex);
}

static inline void batch_init(batch_t* batch, int64_t rows, float first) {
  memset(batch, 0, sizeof *batch);
  rn_mutex_init(&batch->mutex);
  rn_cond_init(&batch->ended);
  rn_cancel_init(&batch->cancel);
  OK(rn_tensor_create(memory(), RN_FLOAT, (rn_shape_t){2, (int64_t[]){rows, 2}}, &batch->input));
  for (int64_t i = 0; i < batch->input.count; ++i)
    RN_DATA(&batch->input, float)[i] = first + (float)i;
  batch->run = (rn_backend_run_t){.inputs = &batch->input,
                                  .outputs = &batch->output,
                                  .cancel = &batch->cancel,
                                  .deadline_ns = INT64_MAX,
                                  .done = batch_done};
}

static inline rn_status_t batch_wait(batch_t* batch) {
  rn_mutex_lock(&batch->mutex);
  while (!batch->is_done) rn_cond_wait(&batch->ended, &batch->mutex);
  rn_mutex_unlock(&batch->mutex);
  rn_tensor_clear(&batch->input);
  rn_cancel_destroy(&batch->cancel);
  rn_mutex_destroy(&batch->mutex);
  rn_cond_destroy(&batch->ended);
  return batch->status;
}

static inline rn_status_t order(rn_backend_t* backend, int64_t rows, float first,
                                rn_tensor_t* out) {
  batch_t batch;
  batch_init(&batch, rows, first);
  backend->vtable->run(backend, &batch.run);
  rn_status_t status = batch_wait(&batch);
  *out = batch.output;
  return status;
}

static inline rn_status_t order_only(rn_backend_t* backend, int number) {
  rn_tensor_t output;
  rn_status_t status = order(backend, 3, (float)number, &output);
  rn_tensor_clear(&output);
  return status;
}

static inline void expect_twice(rn_backend_t* backend, int64_t rows) {
  rn_tensor_t output;
  OK(order(backend, rows, 1, &output));
  cr_assert_eq(rn_tensor_dim(&output, 0), rows);
  for (int64_t i = 0; i < output.count; ++i)
    cr_assert_eq(RN_DATA(&output, float)[i], 2 * (1 + (float)i));
  rn_tensor_clear(&output);
}

// Waits until the container is up again after start number |starts|.
static inline void wait_for_start(rn_backend_t* backend, int64_t starts) {
  for (int i = 0; i < 6000; ++i) {
    if (rn_container_stats(backend).starts > starts && !backend->vtable->is_down(backend)) return;
    usleep(10000);
  }
  cr_assert_fail("the container did not come back");
}

#endif  // RUNNEL_TESTS_SERVE_GUEST_H_

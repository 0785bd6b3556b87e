// Fuzzes calls to a task: one byte for the method, two for the size, then the message; up to eight
// calls in sequence, on a fresh task. Session handles are predictable, so that inputs can use them.
// Every call must end.
#include "dist/gate.h"
#include "fuzz/task.h"

#define MAX_CALLS 8
#define CALL_NS INT64_C(300000000)

static const char* const methods[] = {
#define PATH(service, method) "/tensorflow." #service "Service/" #method,
    RN_GATE_METHODS(PATH)
#undef PATH
        "/tensorflow.WorkerService/Nothing"};

typedef struct fuzz_env_t {
  rn_env_t env;
  _Atomic uint64_t next;
} fuzz_env_t;

static uint64_t next_number(void* self) { return ++((fuzz_env_t*)self)->next; }
static int64_t system_now(void* self) {
  (void)self;
  return rn_env_system()->now_ns(rn_env_system()->self);
}
static int64_t system_wall(void* self) {
  (void)self;
  return rn_env_system()->wall_us(rn_env_system()->self);
}

typedef struct asked_t {
  rn_rpc_out_t call;  // first
  rn_mutex_t mutex;
  rn_cond_t ended;
  bool is_done;
} asked_t;

static void on_done(rn_rpc_out_t* call, rn_status_t status) {
  asked_t* asked = (asked_t*)call;
  rn_status_free(status);
  rn_rpc_out_clear(call);
  rn_mutex_lock(&asked->mutex);
  asked->is_done = true;
  rn_cond_broadcast(&asked->ended);
  rn_mutex_unlock(&asked->mutex);
}

static void ask(rn_channel_t* channel, const char* path, rn_str_t message) {
  asked_t asked = {
      .call = {.path = path, .deadline_ns = system_now(NULL) + CALL_NS, .done = on_done}};
  rn_mutex_init(&asked.mutex);
  rn_cond_init(&asked.ended);
  rn_message_init(&asked.call.request, rn_allocator_system());
  fuzz_must(rn_message_add(&asked.call.request, message));
  rn_rpc_start(channel, &asked.call);
  rn_mutex_lock(&asked.mutex);
  while (!asked.is_done) rn_cond_wait(&asked.ended, &asked.mutex);
  rn_mutex_unlock(&asked.mutex);
  rn_cond_destroy(&asked.ended);
  rn_mutex_destroy(&asked.mutex);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz_env_t surroundings = {.env = *rn_env_system()};
  surroundings.env.self = &surroundings;
  surroundings.env.random = next_number;
  surroundings.env.now_ns = system_now;
  surroundings.env.wall_us = system_wall;
  surroundings.env.fs = &fuzz_no_files;
  fuzz_task_t task;
  fuzz_task_open(&task, &surroundings.env);
  fuzz_bytes_t bytes = {data, size};
  for (int i = 0; i < MAX_CALLS && bytes.left; ++i) {
    const char* path = methods[fuzz_pick(&bytes, sizeof methods / sizeof *methods)];
    size_t length = (size_t)fuzz_byte(&bytes) << 8;
    length |= fuzz_byte(&bytes);
    ask(task.channel, path, fuzz_take(&bytes, length));
  }
  fuzz_task_close(&task);
  return 0;
}

// A task with its own counted memory, and a channel to it.
#ifndef RUNNEL_FUZZ_TASK_H_
#define RUNNEL_FUZZ_TASK_H_

#include "dist/server.h"
#include "fuzz/util.h"
#include "net/channel.h"

typedef struct fuzz_task_t {
  fuzz_memory_t memory;
  rn_server_t* server;
  rn_loop_t* loop;
  rn_channel_t* channel;
} fuzz_task_t;

static void fuzz_task_open(fuzz_task_t* task, const rn_env_t* env) {
  const rn_server_task_t def = {.job = RN_STR("worker"), .address = RN_STR("localhost:0")};
  rn_server_options_t options = {.env = env,
                                 .allocator = fuzz_memory_init(&task->memory, 256 << 20),
                                 .tasks = &def,
                                 .task_count = 1,
                                 .job = def.job,
                                 .threads = 1};
  fuzz_must(rn_server_create(&options, &task->server));
  fuzz_must(rn_server_start(task->server));
  fuzz_must(rn_loop_create(rn_env_system(), rn_allocator_system(), &task->loop));
  rn_channel_options_t way = {.loop = task->loop,
                              .allocator = rn_allocator_system(),
                              .address = strchr(rn_server_target(task->server), ':') + 3};
  fuzz_must(rn_channel_create(&way, &task->channel));
}

// All its memory must have been freed.
static void fuzz_task_close(fuzz_task_t* task) {
  rn_channel_destroy(task->channel);
  rn_loop_destroy(task->loop);
  rn_server_destroy(task->server);
  fuzz_check(task->memory.counting.live_bytes == 0);
}

#endif  // RUNNEL_FUZZ_TASK_H_

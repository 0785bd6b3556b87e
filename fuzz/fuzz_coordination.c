// Fuzzes calls to the coordination service of a cluster of three tasks: one byte for the method and
// whether the call is waited for, one for the size, then the message; up to 24 calls. Every call
// must end, the open ones when the service stops.
#include <stdio.h>

#include "data_service/ask.h"
#include "dist/coordination/service.h"
#include "fuzz/util.h"
#include "net/rpc_server.h"

#define MAX_CALLS 24
#define CALL_NS INT64_C(30000000)
#define LONG_NS INT64_C(60000000000)

static const char* const methods[] = {
#define METHOD(name) RN_COORDINATION_PATH #name
    METHOD(RegisterTask), METHOD(Heartbeat),         METHOD(WaitForAllTasks),
    METHOD(ShutdownTask), METHOD(ResetTask),         METHOD(ReportErrorToService),
    METHOD(GetTaskState), METHOD(PollForError),      METHOD(InsertKeyValue),
    METHOD(GetKeyValue),  METHOD(TryGetKeyValue),    METHOD(GetKeyValueDir),
    METHOD(Barrier),      METHOD(CancelBarrier),     METHOD(DeleteKeyValue),
    METHOD(Nothing),      METHOD(IncrementKeyValue),
};
enum { METHODS = sizeof methods / sizeof *methods };

static const rn_str_t tasks[] = {{"/job:w/replica:0/task:0", 23},
                                 {"/job:w/replica:0/task:1", 23},
                                 {"/job:x/replica:0/task:0", 23}};

static void handle(void* self, rn_rpc_in_t* call) { rn_coordination_handle(self, call); }

// A call whose end is not waited for before the service has stopped.
typedef struct open_call_t {
  rn_rpc_out_t out;  // first
  _Atomic bool is_done;
} open_call_t;

static void on_done(rn_rpc_out_t* out, rn_status_t status) {
  rn_status_free(status);
  rn_rpc_out_clear(out);
  ((open_call_t*)out)->is_done = true;
}

static void leave_open(rn_channel_t* channel, const char* path, rn_str_t request,
                       open_call_t* call) {
  *call = (open_call_t){.out = {.path = path, .done = on_done}};
  call->out.deadline_ns = rn_env_system()->now_ns(rn_env_system()->self) + LONG_NS;
  rn_message_init(&call->out.request, rn_allocator_system());
  fuzz_must(rn_message_add(&call->out.request, request));
  rn_rpc_start(channel, &call->out);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const rn_env_t* env = rn_env_system();
  fuzz_memory_t memory;
  rn_allocator_t allocator = fuzz_memory_init(&memory, 64 << 20);
  rn_loop_t* loop = NULL;
  rn_coordination_t* service = NULL;
  rn_rpc_server_t* server = NULL;
  rn_channel_t* channel = NULL;
  open_call_t open[MAX_CALLS];
  int open_count = 0;
  char address[32];
  fuzz_must(rn_loop_create(env, rn_allocator_system(), &loop));
  rn_coordination_options_t options = {.env = env,
                                       .allocator = allocator,
                                       .timers = rn_loop_timers(loop),
                                       .tasks = tasks,
                                       .task_count = sizeof tasks / sizeof *tasks,
                                       .silence_ns = LONG_NS};
  fuzz_must(rn_coordination_create(&options, &service));
  rn_rpc_server_options_t door = {.loop = loop,
                                  .allocator = rn_allocator_system(),
                                  .address = "127.0.0.1:0",
                                  .handle = handle,
                                  .self = service};
  fuzz_must(rn_rpc_server_create(&door, &server));
  snprintf(address, sizeof address, "127.0.0.1:%d", rn_rpc_server_port(server));
  rn_channel_options_t line = {
      .loop = loop, .allocator = rn_allocator_system(), .address = address};
  fuzz_must(rn_channel_create(&line, &channel));
  fuzz_bytes_t bytes = {data, size};
  for (int i = 0; i < MAX_CALLS && bytes.left; ++i) {
    int kind = fuzz_pick(&bytes, 2 * METHODS);
    rn_str_t request = fuzz_take(&bytes, fuzz_byte(&bytes));
    rn_strbuf_t response;
    if (kind >= METHODS) {
      leave_open(channel, methods[kind - METHODS], request, &open[open_count++]);
      continue;
    }
    rn_strbuf_init(&response, rn_allocator_system());
    rn_status_free(rn_ds_ask(channel, loop, rn_allocator_system(), methods[kind], request, CALL_NS,
                             NULL, &response));
    rn_strbuf_clear(&response);
  }
  rn_coordination_stop(service);
  int64_t until_ns = env->now_ns(env->self) + LONG_NS / 6;
  for (int i = 0; i < open_count; ++i)
    while (!open[i].is_done && env->now_ns(env->self) < until_ns)
      rn_ds_pause(env->now_ns(env->self) + 100000);
  for (int i = 0; i < open_count; ++i) fuzz_check(open[i].is_done);
  rn_channel_destroy(channel);
  rn_rpc_server_destroy(server);
  rn_coordination_destroy(service);
  rn_loop_destroy(loop);
  fuzz_check(memory.counting.live_bytes == 0);
  return 0;
}

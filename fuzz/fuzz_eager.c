// What an eager client puts into its context on a task: a byte for the kind of call, two for the
// size, the message behind its context's number; up to eight of them, one after the other. Whatever
// is asked, every call ends.
#include "dist/eager_peers.h"
#include "dist/server.h"
#include "fuzz/util.h"

#define MAX_CALLS 8
#define CALL_NS INT64_C(300000000)

// Fields of the requests: the context's number, and devices of a task that nobody finds.
static const char open_request[] =
    "\x39\x05\0\0\0\0\0\0\0"
    "\x32\x34\x0a\x29/job:worker/replica:0/task:1/device:CPU:0\x12\x03"
    "CPU\x31\x07\0\0\0\0\0\0\0";

static const char* const methods[] = {RN_EAGER_PATH "Enqueue", RN_EAGER_PATH "RunComponentFunction",
                                      RN_EAGER_PATH "UpdateContext", RN_EAGER_PATH "KeepAlive"};

static int64_t system_now(void) { return rn_env_system()->now_ns(rn_env_system()->self); }

static void ask(rn_channel_t* channel, const char* path, rn_str_t head, rn_str_t rest) {
  rn_message_t request, response;
  rn_eager_question_t question;
  rn_strbuf_t bytes;
  rn_message_init(&request, rn_allocator_system());
  rn_strbuf_init(&bytes, rn_allocator_system());
  rn_strbuf_append(&bytes, head);
  rn_strbuf_append(&bytes, rest);
  fuzz_must(rn_message_add(&request, rn_strbuf_view(&bytes)));
  rn_strbuf_clear(&bytes);
  rn_eager_question_start(&question, channel, path, &request, system_now() + CALL_NS, true);
  rn_status_t status = rn_eager_question_wait(&question, &response);
  if (rn_ok(status)) rn_message_clear(&response);
  rn_status_free(status);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz_memory_t memory;
  rn_env_t env = *rn_env_system();
  env.fs = &fuzz_no_files;
  const rn_server_task_t task = {.job = RN_STR("worker"), .address = RN_STR("localhost:0")};
  rn_server_options_t options = {.env = &env,
                                 .allocator = fuzz_memory_init(&memory, 256 << 20),
                                 .tasks = &task,
                                 .task_count = 1,
                                 .job = task.job,
                                 .threads = 1};
  rn_server_t* server = NULL;
  rn_loop_t* loop = NULL;
  rn_channel_t* channel = NULL;
  fuzz_must(rn_server_create(&options, &server));
  fuzz_must(rn_server_start(server));
  fuzz_must(rn_loop_create(rn_env_system(), rn_allocator_system(), &loop));
  rn_channel_options_t way = {.loop = loop,
                              .allocator = rn_allocator_system(),
                              .address = strchr(rn_server_target(server), ':') + 3};
  fuzz_must(rn_channel_create(&way, &channel));
  ask(channel, RN_EAGER_PATH "CreateContext", rn_str_n(open_request, sizeof open_request - 1),
      RN_STR(""));
  fuzz_bytes_t bytes = {data, size};
  for (int i = 0; i < MAX_CALLS && bytes.left; ++i) {
    int kind = fuzz_pick(&bytes, sizeof methods / sizeof *methods);
    size_t length = (size_t)fuzz_byte(&bytes) << 8;
    length |= fuzz_byte(&bytes);
    rn_str_t number =
        kind == 2 ? rn_str_n("\x19\x05\0\0\0\0\0\0\0", 9) : rn_str_n("\x09\x05\0\0\0\0\0\0\0", 9);
    ask(channel, methods[kind], number, fuzz_take(&bytes, length));
  }
  rn_channel_destroy(channel);
  rn_loop_destroy(loop);
  rn_server_destroy(server);
  fuzz_check(memory.counting.live_bytes == 0);
  return 0;
}

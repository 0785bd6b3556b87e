// Fuzzes the calls of an eager client to a task: one byte for the method, two for the size, then
// the message, to which the context's id is prepended; up to eight calls in sequence. Every call
// must end.
#include "dist/eager/peers.h"
#include "fuzz/task.h"

#define MAX_CALLS 8
#define CALL_NS INT64_C(300000000)

// Fields of the requests: the context's id, and devices of a task that does not exist.
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
  fuzz_task_t task;
  rn_env_t env = *rn_env_system();
  env.fs = &fuzz_no_files;
  fuzz_task_open(&task, &env);
  ask(task.channel, RN_EAGER_PATH "CreateContext", rn_str_n(open_request, sizeof open_request - 1),
      RN_STR(""));
  fuzz_bytes_t bytes = {data, size};
  for (int i = 0; i < MAX_CALLS && bytes.left; ++i) {
    int kind = fuzz_pick(&bytes, sizeof methods / sizeof *methods);
    size_t length = (size_t)fuzz_byte(&bytes) << 8;
    length |= fuzz_byte(&bytes);
    rn_str_t number =
        kind == 2 ? rn_str_n("\x19\x05\0\0\0\0\0\0\0", 9) : rn_str_n("\x09\x05\0\0\0\0\0\0\0", 9);
    ask(task.channel, methods[kind], number, fuzz_take(&bytes, length));
  }
  fuzz_task_close(&task);
  return 0;
}

// Fuzzes the files of a model server. The first byte selects the kind: models, batching, monitoring
// or TLS as text, a file of warm-up requests, or one such request, which then runs on a model.
#include "fuzz/util.h"
#include "io/record.h"
#include "serve/front/warmup.h"
#include "serve/model/config.h"
#include "serve/model/tf_backend.h"
#include "tests/support/memory_fs.h"

#define FILE_NAME "/s/file"
#define WARMUP_NAME "/s/" RN_WARMUP_FILE

static void read_text(const rn_env_t* env, int kind, rn_str_t bytes) {
  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_system());
  rn_pb_serving_ModelServerConfig_t* models = NULL;
  rn_pb_serving_SSLConfig_t* ssl = NULL;
  rn_batcher_options_t batching = {0};
  rn_str_t path;
  fuzz_must(rn_fs_write(env, FILE_NAME, bytes));
  rn_status_t status = RN_OK;
  switch (kind) {
    case 0:
      status = rn_config_read_models(env, FILE_NAME, &arena, &models);
      fuzz_check(rn_ok(status) == (models != NULL));
      break;
    case 1:
      status = rn_config_read_batching(env, FILE_NAME, &arena, &batching);
      if (rn_ok(status)) fuzz_check(batching.size.max > 0 && batching.max_wait_ns >= 0);
      break;
    case 2:
      status = rn_config_read_monitoring(env, FILE_NAME, &arena, &path);
      break;
    default:
      status = rn_config_read_ssl(env, FILE_NAME, &arena, &ssl);
  }
  if (!rn_ok(status)) fuzz_check(strncmp(rn_status_message(status), FILE_NAME, 7) == 0);
  rn_status_free(status);
  rn_arena_clear(&arena);
}

// Loaded once: half_plus_two, from the tests.
static rn_backend_t* model(void) {
  static rn_backend_t* backend;
  rn_tf_backend_options_t options = {
      .folder = FUZZ_MODEL, .env = rn_env_system(), .allocator = rn_allocator_system()};
  rn_session_options_init(&options.session);
  if (!backend) fuzz_must(rn_tf_backend_create(&options, &backend));
  return backend;
}

static void warm_up(const rn_env_t* env) {
  fuzz_memory_t memory;
  rn_warmup_options_t options = {.env = env,
                                 .allocator = fuzz_memory_init(&memory, (int64_t)1 << 26)};
  rn_status_free(rn_warmup_run(&options, model(), "/s", NULL));
  fuzz_check(memory.counting.live_blocks == 0);
}

static void write_record(const rn_env_t* env, rn_str_t bytes) {
  rn_record_writer_t* writer = NULL;
  fuzz_must(rn_record_writer_open(env, WARMUP_NAME, NULL, &writer));
  fuzz_must(rn_record_writer_write(writer, bytes));
  fuzz_must(rn_record_writer_close(writer));
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  rn_str_t bytes = rn_str_n((const char*)data + 1, size - 1);
  rn_env_t env = fuzz_env();
  rn_memory_fs_t* fs = NULL;
  fuzz_must(rn_memory_fs_create(rn_allocator_system(), &fs));
  rn_memory_fs_install(fs, &env);
  fuzz_must(rn_fs_make_directories(&env, "/s/assets.extra"));
  int kind = data[0] % 6;
  if (kind < 4) {
    read_text(&env, kind, bytes);
  } else {
    if (kind == 4)
      fuzz_must(rn_fs_write(&env, WARMUP_NAME, bytes));
    else
      write_record(&env, bytes);
    warm_up(&env);
  }
  rn_memory_fs_destroy(fs);
  return 0;
}

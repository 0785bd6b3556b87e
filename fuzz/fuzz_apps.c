// Fuzzes what applications read. The first byte selects the kind: a body of Clipper's REST, a file
// of definitions, or a log or a snapshot of a state store, which is then changed and opened again.
#include "fuzz/util.h"
#include "serve/front/clipper.h"
#include "serve/select/apps.h"
#include "serve/select/store_log.h"
#include "tests/support/memory_fs.h"

#define MAX_MEMORY (64 << 20)

static void read_body(rn_str_t bytes) {
  fuzz_memory_t memory;
  rn_allocator_t allocator = fuzz_memory_init(&memory, MAX_MEMORY);
  rn_arena_t arena;
  rn_arena_init(&arena, allocator);
  rn_clipper_body_t body;
  rn_status_t status = rn_clipper_read(bytes, &arena, allocator, &body);
  if (rn_ok(status) && body.has_label) fuzz_check(body.label.is_set);
  rn_status_free(status);
  rn_answer_clear(&body.label, allocator);
  rn_arena_clear(&arena);
  fuzz_check(memory.counting.live_blocks == 0);
}

static void read_definitions(const rn_env_t* env, rn_str_t bytes) {
  fuzz_memory_t memory;
  fuzz_must(rn_fs_write(env, "/apps", bytes));
  rn_status_free(rn_apps_check_file(env, "/apps", fuzz_memory_init(&memory, MAX_MEMORY)));
  fuzz_check(memory.counting.live_blocks == 0);
}

// What the store says of a key must be the same after a restart.
static void read_store(const rn_env_t* env, const char* path, rn_str_t bytes) {
  rn_store_log_options_t options = {
      .folder = "/s", .compact_bytes = 64, .env = env, .allocator = rn_allocator_system()};
  rn_state_store_t* store = NULL;
  fuzz_must(rn_fs_make_directories(env, "/s"));
  fuzz_must(rn_fs_write(env, path, bytes));
  rn_status_t status = rn_store_log_open(&options, &store);
  if (rn_ok(status)) {
    fuzz_must(rn_state_store_put(store, RN_STR("key"), RN_STR("value")));
    size_t entries = rn_state_store_stats(store).entries;
    fuzz_must(rn_state_store_flush(store));
    rn_state_store_destroy(store);
    fuzz_must(rn_store_log_open(&options, &store));
    char value[8];
    fuzz_check(rn_state_store_get(store, RN_STR("key"), value, sizeof value) == 5);
    fuzz_check(rn_state_store_stats(store).entries <= entries);  // removed ones are gone
    rn_state_store_destroy(store);
  }
  rn_status_free(status);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz_bytes_t in = {data, size};
  int kind = fuzz_pick(&in, 4);
  rn_str_t bytes = fuzz_take(&in, in.left);
  if (kind == 0) {
    read_body(bytes);
    return 0;
  }
  rn_env_t env = *rn_env_system();
  rn_memory_fs_t* fs = NULL;
  fuzz_must(rn_memory_fs_create(rn_allocator_system(), &fs));
  rn_memory_fs_install(fs, &env);
  if (kind == 1)
    read_definitions(&env, bytes);
  else
    read_store(&env, kind == 2 ? "/s/log-0" : "/s/snapshot-1", bytes);
  rn_memory_fs_destroy(fs);
  return 0;
}

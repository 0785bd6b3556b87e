// Fuzzes the reader of training logs. The first byte selects a raw file, or a file with one valid
// record whose event is the rest of the input.
#include "cli/events_log.h"
#include "fuzz/util.h"
#include "io/event_file.h"
#include "tests/support/memory_fs.h"

static const char path[] = "/log/events.out.tfevents.1.host";

static rn_status_t write_record(const rn_env_t* env, rn_str_t event) {
  rn_record_writer_t* writer = NULL;
  RN_RETURN_IF_ERROR(rn_record_writer_open(env, path, NULL, &writer));
  rn_status_t status = rn_record_writer_write(writer, event);
  return rn_status_join(status, rn_record_writer_close(writer));
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  rn_str_t bytes = rn_str_n((const char*)data + 1, size - 1);
  rn_env_t env = fuzz_env();
  rn_memory_fs_t* fs = NULL;
  fuzz_must(rn_memory_fs_create(rn_allocator_system(), &fs));
  rn_memory_fs_install(fs, &env);
  rn_log_t log;
  rn_log_init(&log, rn_allocator_system());
  fuzz_must(rn_fs_make_directories(&env, "/log"));
  fuzz_must(data[0] & 1 ? rn_fs_write(&env, path, bytes) : write_record(&env, bytes));
  fuzz_must(rn_log_read(&log, &env, "/log"));
  fuzz_check(log.files == 1);
  rn_log_clear(&log);
  rn_memory_fs_destroy(fs);
  return 0;
}

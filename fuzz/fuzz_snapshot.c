// Fuzzes saved datasets. The first byte selects a compression and a version of the files, or the
// metadata; the rest is the file. Reads as much of it as possible.
#include "fuzz/util.h"
#include "io/snapshot.h"
#include "tests/support/memory_fs.h"

static void read_meta(const rn_env_t* env, rn_str_t bytes) {
  rn_snapshot_meta_t meta = {0};
  rn_strbuf_init(&meta.text, rn_allocator_system());
  fuzz_must(rn_fs_write(env, "/s/snapshot.metadata", bytes));
  rn_status_t status = rn_snapshot_meta_read(env, "/s", &meta);
  // A run id must be a name inside the folder.
  if (rn_ok(status)) fuzz_check(meta.run.size && !memchr(meta.run.data, '/', meta.run.size));
  rn_status_free(status);
  rn_strbuf_clear(&meta.text);
}

static void read_shard(const rn_env_t* env, rn_str_t bytes, rn_compression_t compression,
                       int64_t version) {
  static const rn_dtype_t types[2] = {RN_INT64, RN_STRING};
  rn_snapshot_reader_t* reader = NULL;
  fuzz_memory_t memory;
  rn_allocator_t allocator = fuzz_memory_init(&memory, (int64_t)1 << 26);
  fuzz_must(rn_fs_write(env, "/s/00000000.snapshot", bytes));
  fuzz_must(rn_snapshot_reader_open(env, "/s", compression, version, &reader));
  rn_status_t status = RN_OK;
  for (bool is_end = false; rn_ok(status) && !is_end;) {
    rn_tensor_t row[2] = {0};
    status = rn_snapshot_reader_next(reader, 2, types, allocator, row, &is_end);
    rn_tensor_clear(&row[0]);
    rn_tensor_clear(&row[1]);
  }
  rn_status_free(status);
  rn_snapshot_reader_close(reader);
  fuzz_check(memory.counting.live_blocks == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  rn_str_t bytes = rn_str_n((const char*)data + 1, size - 1);
  rn_env_t env = fuzz_env();
  rn_memory_fs_t* fs = NULL;
  fuzz_must(rn_memory_fs_create(rn_allocator_system(), &fs));
  rn_memory_fs_install(fs, &env);
  fuzz_must(rn_fs_make_directories(&env, "/s"));
  if (data[0] % 5 == 4)
    read_meta(&env, bytes);
  else
    read_shard(&env, bytes, (rn_compression_t)(data[0] % 5), 2 - data[0] / 5 % 3);
  rn_memory_fs_destroy(fs);
  return 0;
}

// Fuzzes checkpoints of both formats, their tables and state files. The first byte selects raw
// files, as a damaged disk may return them, or entries that are first written to a well-formed
// table, because mutations cannot get past checksums.
#include "fuzz/util.h"
#include "io/checkpoint.h"
#include "io/checkpoint_state.h"
#include "io/snappy.h"
#include "io/table.h"
#include "tests/support/memory_fs.h"

enum { MEMORY = 64 << 20 };

static void put_file(const rn_env_t* env, const char* path, rn_str_t bytes) {
  rn_status_free(rn_fs_write(env, path, bytes));
}

// Keys and values: one byte each for the length, then the bytes. The first key is "".
static void put_table(const rn_env_t* env, const char* path, fuzz_bytes_t* bytes, int entries) {
  rn_file_t* file = NULL;
  rn_table_writer_t* writer = NULL;
  rn_status_t status = rn_fs_open(env, path, RN_OPEN_WRITE, &file);
  if (rn_ok(status)) status = rn_table_writer_create(env->allocator, file, &writer);
  for (int i = 0; rn_ok(status) && i < entries && bytes->left; ++i) {
    rn_str_t key = fuzz_take(bytes, i ? fuzz_byte(bytes) : 0);
    rn_str_t value = fuzz_take(bytes, fuzz_byte(bytes));
    status = rn_table_writer_add(writer, key, value);
  }
  if (rn_ok(status)) status = rn_table_writer_finish(writer);
  rn_status_free(status);
  rn_table_writer_destroy(writer);
  if (file) rn_status_free(file->vtable->close(file));
}

static void walk(const rn_env_t* env, const char* path) {
  rn_table_t* table = NULL;
  rn_status_t status = rn_table_open(env, path, &table);
  if (rn_ok(status)) {
    rn_table_iter_t iter;
    rn_table_iter_init(&iter, table);
    status = rn_table_iter_seek(&iter, RN_STR(""));
    while (rn_ok(status) && iter.is_valid) status = rn_table_iter_next(&iter);
    rn_table_iter_clear(&iter);
  }
  rn_table_close(table);
  rn_status_free(status);
}

static void read_all(const rn_env_t* env, const char* prefix) {
  rn_checkpoint_t* checkpoint = NULL;
  rn_status_t status = rn_checkpoint_open(env, prefix, &checkpoint);
  if (rn_ok(status)) {
    int64_t bytes = 0;
    rn_status_free(rn_checkpoint_verify(checkpoint, NULL, &bytes));
    for (size_t i = 0; i < rn_checkpoint_count(checkpoint) && i < 64; ++i) {
      rn_checkpoint_tensor_t info = rn_checkpoint_tensor(checkpoint, i);
      rn_tensor_t tensor;
      rn_status_free(rn_checkpoint_read(checkpoint, info.name, NULL, env->allocator, &tensor));
      rn_tensor_clear(&tensor);
    }
  }
  rn_checkpoint_close(checkpoint);
  rn_status_free(status);
}

static void unfold(rn_str_t bytes) {
  uint64_t size = 0;
  char out[4096];
  if (rn_snappy_size(bytes, &size) && size <= sizeof out)
    (void)rn_snappy_unfold(bytes, out, (size_t)size);
}

static void parse_slice(rn_allocator_t allocator, rn_str_t text) {
  rn_arena_t arena;
  rn_arena_init(&arena, allocator);
  rn_strbuf_t printed;
  rn_strbuf_init(&printed, allocator);
  rn_shape_t shape, part;
  rn_slice_t slice, again;
  rn_status_t status = rn_shape_and_slice_parse(text, &arena, &shape, &slice, &part);
  if (rn_ok(status)) {
    rn_slice_print(&printed, slice);
    status = rn_strbuf_status(&printed);
    if (rn_ok(status)) status = rn_slice_parse(rn_strbuf_view(&printed), &arena, &again);
    if (rn_ok(status)) fuzz_check(again.rank == slice.rank);
  }
  rn_status_free(status);
  rn_strbuf_clear(&printed);
  rn_arena_clear(&arena);
}

static void run(const rn_env_t* env, fuzz_bytes_t* bytes) {
  int kind = fuzz_pick(bytes, 6);
  size_t split = (size_t)fuzz_byte(bytes) << 8 | fuzz_byte(bytes);
  switch (kind) {
    case 0:  // an index and its data, as they are
      put_file(env, "c.index", fuzz_take(bytes, split));
      put_file(env, "c.data-00000-of-00001", fuzz_take(bytes, bytes->left));
      walk(env, "c.index");
      read_all(env, "c");
      break;
    case 1:  // entries of an index, and its data
      put_file(env, "c.data-00000-of-00001", fuzz_take(bytes, split % 512));
      put_table(env, "c.index", bytes, 32);
      read_all(env, "c");
      break;
    case 2:  // entries of the first format
      put_table(env, "c", bytes, 32);
      read_all(env, "c");
      break;
    case 3:
      unfold(fuzz_take(bytes, bytes->left));
      break;
    case 4: {
      rn_checkpoint_state_t state;
      rn_checkpoint_state_init(&state, env->allocator);
      put_file(env, "checkpoint", fuzz_take(bytes, bytes->left));
      rn_status_free(rn_checkpoint_state_read(env, "", "checkpoint", &state));
      rn_checkpoint_state_clear(&state);
      break;
    }
    default:
      parse_slice(env->allocator, fuzz_take(bytes, bytes->left));
  }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz_bytes_t bytes = {data, size};
  fuzz_memory_t memory = {0};
  rn_env_t env = *rn_env_system();
  rn_memory_fs_t* fs = NULL;
  fuzz_must(rn_memory_fs_create(rn_allocator_system(), &fs));
  rn_memory_fs_install(fs, &env);
  env.allocator = fuzz_memory_init(&memory, MEMORY);
  run(&env, &bytes);
  rn_memory_fs_destroy(fs);
  fuzz_check(memory.counting.live_bytes == 0);
  // Memory use must follow the size of the files, not the sizes that they claim.
  fuzz_check(memory.counting.peak_bytes <= (int64_t)size * 512 + (1 << 20));
  return 0;
}

// Shared by the targets: choices from the input's bytes, memory with a limit, an environment
// without files.
#ifndef RUNNEL_FUZZ_UTIL_H_
#define RUNNEL_FUZZ_UTIL_H_

#include "base/fs.h"
#include "session/session.h"

#define FUZZ_UNUSED __attribute__((unused))

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Checks a condition that must hold for every input.
static FUZZ_UNUSED void fuzz_check(bool condition) {
  if (!condition) __builtin_trap();
}
static FUZZ_UNUSED void fuzz_must(rn_status_t status) { fuzz_check(rn_ok(status)); }

// A reader over the input; returns zeros after its end.
typedef struct fuzz_bytes_t {
  const uint8_t* at;
  size_t left;
} fuzz_bytes_t;

static FUZZ_UNUSED uint8_t fuzz_byte(fuzz_bytes_t* bytes) {
  if (bytes->left == 0) return 0;
  bytes->left--;
  return *bytes->at++;
}
// One of |count| < 256 choices.
static FUZZ_UNUSED int fuzz_pick(fuzz_bytes_t* bytes, int count) {
  return fuzz_byte(bytes) % count;
}
static FUZZ_UNUSED uint32_t fuzz_u32(fuzz_bytes_t* bytes) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | fuzz_byte(bytes);
  return value;
}
// The distance between |name| and the input's selector. The nearest name of a list is chosen, so
// that an input keeps its meaning when the list grows.
static FUZZ_UNUSED uint32_t fuzz_distance(const char* name, uint32_t wanted) {
  return (uint32_t)rn_str_hash(rn_str(name)) - wanted;
}
// The next |size| bytes, or what is left of them.
static FUZZ_UNUSED rn_str_t fuzz_take(fuzz_bytes_t* bytes, size_t size) {
  rn_str_t taken = {(const char*)bytes->at, size < bytes->left ? size : bytes->left};
  bytes->at += taken.size;
  bytes->left -= taken.size;
  return taken;
}

// Memory with a limit, because a few bytes of input can request any amount.
typedef struct fuzz_memory_t {
  rn_counting_allocator_t counting;
  int64_t limit;
} fuzz_memory_t;

static FUZZ_UNUSED void* fuzz_realloc(void* self, void* ptr, size_t old_size, size_t new_size) {
  fuzz_memory_t* memory = self;
  if (new_size > old_size &&
      new_size - old_size > (size_t)(memory->limit - memory->counting.live_bytes))
    return NULL;
  rn_allocator_t counting = rn_allocator_counting(&memory->counting);
  return counting.fn(counting.self, ptr, old_size, new_size);
}
static FUZZ_UNUSED rn_allocator_t fuzz_memory_init(fuzz_memory_t* memory, int64_t limit) {
  *memory = (fuzz_memory_t){.counting = {.base = rn_allocator_system()}, .limit = limit};
  return (rn_allocator_t){.fn = fuzz_realloc, .self = memory};
}

static FUZZ_UNUSED rn_status_t fuzz_no_path(void* self, const char* path) {
  (void)self;
  return rn_not_found("%s; there are no files", path);
}
static FUZZ_UNUSED rn_status_t fuzz_no_open(void* self, const char* path, rn_open_mode_t mode,
                                            rn_allocator_t allocator, rn_file_t** out_file) {
  (void)mode, (void)allocator;
  *out_file = NULL;
  return fuzz_no_path(self, path);
}
static FUZZ_UNUSED rn_status_t fuzz_no_stat(void* self, const char* path, rn_file_stat_t* out) {
  (void)out;
  return fuzz_no_path(self, path);
}
static FUZZ_UNUSED rn_status_t fuzz_no_rename(void* self, const char* from, const char* to) {
  (void)to;
  return fuzz_no_path(self, from);
}
static FUZZ_UNUSED rn_status_t fuzz_no_list(void* self, const char* path, rn_names_t* names) {
  (void)names;
  return fuzz_no_path(self, path);
}
static FUZZ_UNUSED const rn_fs_t fuzz_no_files = {.open = fuzz_no_open,
                                                  .stat = fuzz_no_stat,
                                                  .remove = fuzz_no_path,
                                                  .rename = fuzz_no_rename,
                                                  .make_directory = fuzz_no_path,
                                                  .remove_directory = fuzz_no_path,
                                                  .sync_directory = fuzz_no_path,
                                                  .list = fuzz_no_list};
static FUZZ_UNUSED rn_env_t fuzz_env(void) {
  rn_env_t env = *rn_env_system();
  env.fs = &fuzz_no_files;
  return env;
}

#endif  // RUNNEL_FUZZ_UTIL_H_

// See shared_memory.h.
#include "serve/front/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "base/sync.h"
#include "device/part.h"

#define MAX_NAME 1024
#define MAX_KEY 256

typedef struct shared_region_t {
  rn_allocator_t allocator;
  _Atomic int refs;  // of the list and of calls under way
  rn_region_kind_t kind;
  char* name;  // Owned, like |key|; NUL-terminated
  char* key;   // NULL on a GPU
  uint64_t offset, size;
  int descriptor;                     // -1: none
  const rn_peer_memory_ops_t* peers;  // of |peer|
  rn_peer_memory_t* peer;             // Owned; NULL: none
  int64_t card;
} shared_region_t;

struct rn_shared_memory_t {
  rn_allocator_t allocator;
  rn_mutex_t mutex;  // guards |regions|
  rn_map_t regions;  // shared_region_t by name
};

static void region_release(shared_region_t* region) {
  if (!region || --region->refs) return;
  if (region->descriptor >= 0) close(region->descriptor);
  if (region->peer) region->peers->close(region->peer);
  if (region->name) rn_free(region->allocator, region->name, strlen(region->name) + 1);
  if (region->key) rn_free(region->allocator, region->key, strlen(region->key) + 1);
  RN_FREE(region->allocator, region);
}

rn_status_t rn_shared_memory_create(rn_allocator_t allocator, rn_shared_memory_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(allocator, out));
  (*out)->allocator = allocator;
  rn_mutex_init(&(*out)->mutex);
  rn_map_init(&(*out)->regions, allocator);
  return RN_OK;
}

void rn_shared_memory_destroy(rn_shared_memory_t* memory) {
  if (!memory) return;
  rn_shared_memory_remove(memory, RN_REGION_SYSTEM, RN_STR(""));
  rn_shared_memory_remove(memory, RN_REGION_CUDA, RN_STR(""));
  rn_map_clear(&memory->regions);
  rn_mutex_destroy(&memory->mutex);
  RN_FREE(memory->allocator, memory);
}

static bool has_nul(rn_str_t text) { return text.size && memchr(text.data, 0, text.size); }

// Whether |size| bytes at |offset| are within the object.
static bool object_holds(int descriptor, uint64_t offset, uint64_t size) {
  struct stat stat;
  uint64_t end;
  return fstat(descriptor, &stat) == 0 && S_ISREG(stat.st_mode) &&
         !__builtin_add_overflow(offset, size, &end) && end <= (uint64_t)stat.st_size;
}

static rn_status_t region_open(shared_region_t* region) {
  region->descriptor = shm_open(region->key, O_RDWR, 0);
  if (region->descriptor < 0)
    return rn_invalid_argument("Unable to open shared memory region: '%s': %s", region->key,
                               strerror(errno));
  if (!region->size || !object_holds(region->descriptor, region->offset, region->size))
    return rn_invalid_argument(
        "failed to register shared memory region '%s': offset %llu and byte size %llu are not "
        "within the object '%s'",
        region->name, (unsigned long long)region->offset, (unsigned long long)region->size,
        region->key);
  return RN_OK;
}

static rn_status_t region_open_cuda(shared_region_t* region, rn_str_t handle) {
  const rn_device_part_t* part = NULL;
  if (handle.size != RN_PEER_HANDLE || !region->size)
    return rn_invalid_argument(
        "failed to register CUDA shared memory region '%s': it needs a size, and a handle of %d "
        "bytes, not %zu",
        region->name, RN_PEER_HANDLE, handle.size);
  rn_status_t status = rn_cuda_part_load(&part);
  if (rn_ok(status)) {
    region->peers = part->peers;
    status = part->peers->open(region->card, handle.data, (size_t)region->size, &region->peer);
  }
  if (rn_ok(status)) return status;
  bool has_none = rn_status_code(status) == RN_CODE_NOT_FOUND;
  rn_status_t better =
      has_none ? rn_unimplemented(
                     "failed to register CUDA shared memory region: '%s', GPUs not supported: %s",
                     region->name, rn_status_message(status))
               : rn_status_make(rn_status_code(status),
                                "failed to register CUDA shared memory region '%s': %s",
                                region->name, rn_status_message(status));
  rn_status_free(status);
  return better;
}

static rn_status_t region_create(rn_allocator_t allocator, rn_str_t name, rn_region_kind_t kind,
                                 uint64_t size, shared_region_t** out) {
  *out = NULL;
  if (!name.size || name.size > MAX_NAME || has_nul(name))
    return rn_invalid_argument("A shared memory region needs a name of 1 to %d bytes", MAX_NAME);
  shared_region_t* region = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &region));
  *region = (shared_region_t){
      .allocator = allocator, .refs = 1, .kind = kind, .size = size, .descriptor = -1};
  rn_status_t status = rn_str_dup(allocator, name, &region->name);
  if (rn_ok(status))
    *out = region;
  else
    region_release(region);
  return status;
}

// Takes |region|.
static rn_status_t region_add(rn_shared_memory_t* memory, shared_region_t* region) {
  rn_str_t name = rn_str(region->name);
  rn_mutex_lock(&memory->mutex);
  rn_status_t status = RN_OK;
  if (rn_map_get(&memory->regions, name))
    status = rn_already_exists("shared memory region '%.*s' already in manager", RN_STR_ARGS(name));
  else if (memory->regions.count >= RN_SHARED_MEMORY_MAX_REGIONS)
    status = rn_resource_exhausted("There are %d shared memory regions already",
                                   RN_SHARED_MEMORY_MAX_REGIONS);
  else
    status = rn_map_put(&memory->regions, rn_str(region->name), region);
  rn_mutex_unlock(&memory->mutex);
  if (!rn_ok(status)) region_release(region);
  return status;
}

rn_status_t rn_shared_memory_add(rn_shared_memory_t* memory, rn_str_t name, rn_str_t key,
                                 uint64_t offset, uint64_t size) {
  shared_region_t* region = NULL;
  if (!key.size || key.size > MAX_KEY || has_nul(key))
    return rn_invalid_argument("A shared memory region needs a key of 1 to %d bytes", MAX_KEY);
  RN_RETURN_IF_ERROR(region_create(memory->allocator, name, RN_REGION_SYSTEM, size, &region));
  region->offset = offset;
  rn_status_t status = rn_str_dup(memory->allocator, key, &region->key);
  if (rn_ok(status)) status = region_open(region);
  if (rn_ok(status)) return region_add(memory, region);
  region_release(region);
  return status;
}

rn_status_t rn_shared_memory_add_cuda(rn_shared_memory_t* memory, rn_str_t name, rn_str_t handle,
                                      int64_t card, uint64_t size) {
  shared_region_t* region = NULL;
  RN_RETURN_IF_ERROR(region_create(memory->allocator, name, RN_REGION_CUDA, size, &region));
  region->card = card;
  rn_status_t status = region_open_cuda(region, handle);
  if (rn_ok(status)) return region_add(memory, region);
  region_release(region);
  return status;
}

void rn_shared_memory_remove(rn_shared_memory_t* memory, rn_region_kind_t kind, rn_str_t name) {
  size_t at = 0;
  rn_mutex_lock(&memory->mutex);
  for (const rn_map_entry_t* entry; (entry = rn_map_next(&memory->regions, &at));) {
    shared_region_t* region = entry->value;
    if (region->kind != kind || (name.size && !rn_str_eq(entry->key, name))) continue;
    rn_map_remove(&memory->regions, entry->key);
    region_release(region);
    at = 0;  // entries may have moved
  }
  rn_mutex_unlock(&memory->mutex);
}

static rn_status_t describe(const shared_region_t* region, rn_arena_t* arena,
                            rn_region_info_t* out) {
  *out = (rn_region_info_t){.offset = region->offset, .size = region->size, .card = region->card};
  RN_RETURN_IF_ERROR(rn_arena_str(arena, rn_str(region->name), &out->name));
  return rn_arena_str(arena, rn_str(region->key), &out->key);
}

static rn_status_t list_locked(rn_shared_memory_t* memory, rn_region_kind_t kind, rn_str_t name,
                               rn_arena_t* arena, rn_region_info_t** out, size_t* out_count) {
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, memory->regions.count + 1, out));
  size_t at = 0;
  for (const rn_map_entry_t* entry; (entry = rn_map_next(&memory->regions, &at));) {
    const shared_region_t* region = entry->value;
    if (region->kind != kind || (name.size && !rn_str_eq(entry->key, name))) continue;
    RN_RETURN_IF_ERROR(describe(entry->value, arena, &(*out)[*out_count]));
    ++*out_count;
  }
  if (name.size && !*out_count)
    return rn_not_found("Unable to find %s shared memory region: '%.*s'",
                        kind == RN_REGION_CUDA ? "cuda" : "system", RN_STR_ARGS(name));
  return RN_OK;
}

rn_status_t rn_shared_memory_list(rn_shared_memory_t* memory, rn_region_kind_t kind, rn_str_t name,
                                  rn_arena_t* arena, rn_region_info_t** out, size_t* out_count) {
  *out_count = 0;
  rn_mutex_lock(&memory->mutex);
  rn_status_t status = list_locked(memory, kind, name, arena, out, out_count);
  rn_mutex_unlock(&memory->mutex);
  return status;
}

// The region |name|, retained, if it has |size| bytes at |offset|; |*out_at| is their place in the
// object.
static rn_status_t find(rn_shared_memory_t* memory, rn_str_t name, uint64_t offset, uint64_t size,
                        shared_region_t** out, uint64_t* out_at) {
  rn_mutex_lock(&memory->mutex);
  shared_region_t* region = rn_map_get(&memory->regions, name);
  if (region) region->refs++;
  rn_mutex_unlock(&memory->mutex);
  if (!region)
    return rn_not_found("Unable to find shared memory region: '%.*s'", RN_STR_ARGS(name));
  uint64_t end;
  if (__builtin_add_overflow(offset, size, &end) || end > region->size) {
    region_release(region);
    return rn_invalid_argument("Invalid offset + byte size for shared memory region: '%.*s'",
                               RN_STR_ARGS(name));
  }
  *out = region;
  *out_at = region->offset + offset;  // within the object when it was registered
  return RN_OK;
}

static rn_status_t shrunk(const shared_region_t* region) {
  return rn_invalid_argument("The object '%s' behind shared memory region '%s' has shrunk",
                             region->key, region->name);
}

static rn_status_t read_all(const shared_region_t* region, uint64_t at, char* out, size_t size) {
  size_t done = 0;
  while (done < size) {
    ssize_t n = pread(region->descriptor, out + done, size - done, (off_t)(at + done));
    if (n > 0) done += (size_t)n;
    if (n == 0 || (n < 0 && errno != EINTR)) return shrunk(region);
  }
  return RN_OK;
}

// What comes from a GPU is in the host memory that GPUs copy from and to fastest, if there is some.
static rn_status_t make_buffer(const rn_shared_memory_t* memory, const shared_region_t* region,
                               uint64_t size, rn_buffer_t** out) {
  rn_allocator_t pinned = region->peer ? rn_cuda_part_transfer_memory() : (rn_allocator_t){0};
  rn_status_t status = pinned.fn ? rn_buffer_create(pinned, RN_UINT8, size, out) : RN_OK;
  if (pinned.fn && rn_ok(status)) return status;
  rn_status_free(status);
  return rn_buffer_create(memory->allocator, RN_UINT8, size, out);
}

rn_status_t rn_shared_memory_read(rn_shared_memory_t* memory, rn_str_t name, uint64_t offset,
                                  uint64_t size, rn_buffer_t** out) {
  shared_region_t* region = NULL;
  uint64_t at = 0;
  *out = NULL;
  RN_RETURN_IF_ERROR(find(memory, name, offset, size, &region, &at));
  rn_buffer_t* buffer = NULL;
  rn_status_t status =
      region->peer || object_holds(region->descriptor, at, size) ? RN_OK : shrunk(region);
  if (rn_ok(status)) status = make_buffer(memory, region, size, &buffer);
  if (rn_ok(status))
    status = region->peer ? region->peers->copy(region->peer, (size_t)at, buffer->data, size, true)
                          : read_all(region, at, buffer->data, size);
  if (rn_ok(status))
    *out = buffer;
  else
    rn_buffer_release(buffer);
  region_release(region);
  return status;
}

rn_status_t rn_shared_memory_write(rn_shared_memory_t* memory, rn_str_t name, uint64_t offset,
                                   rn_str_t bytes) {
  shared_region_t* region = NULL;
  uint64_t at = 0;
  RN_RETURN_IF_ERROR(find(memory, name, offset, bytes.size, &region, &at));
  size_t done = region->peer ? bytes.size : 0;
  rn_status_t status = RN_OK;
  if (region->peer)
    status = region->peers->copy(region->peer, (size_t)at, (char*)(uintptr_t)bytes.data, bytes.size,
                                 false);
  while (rn_ok(status) && done < bytes.size) {
    // Writing beyond the end would make the object larger.
    ssize_t n = -1;
    if (object_holds(region->descriptor, at, bytes.size))
      n = pwrite(region->descriptor, bytes.data + done, bytes.size - done, (off_t)(at + done));
    else
      errno = ENXIO;
    if (n > 0) done += (size_t)n;
    if (n == 0 || (n < 0 && errno != EINTR)) status = shrunk(region);
  }
  region_release(region);
  return status;
}

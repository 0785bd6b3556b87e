#include "io/zstd.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>

#include "io/inflate.h"

#define LIBRARY "libzstd.so.1"
#define UNKNOWN_SIZE (UINT64_MAX - 1)  // and UINT64_MAX for bytes that are no frame

// Filled in once, then read-only; process-wide, like the library that it points into.
static struct {
  pthread_once_t once;
  unsigned long long (*getFrameContentSize)(const void* data, size_t size);
  size_t (*decompress)(void* out, size_t room, const void* data, size_t size);
  unsigned (*isError)(size_t code);
  const char* (*getErrorName)(size_t code);
  const char* missing;  // NULL if everything was found
} zstd = {.once = PTHREAD_ONCE_INIT};

static void load(void) {
  void* library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    zstd.missing = LIBRARY;
    return;
  }
#define FIND(name)                                     \
  *(void**)&zstd.name = dlsym(library, "ZSTD_" #name); \
  if (!zstd.name) zstd.missing = "ZSTD_" #name
  FIND(getFrameContentSize);
  FIND(decompress);
  FIND(isError);
  FIND(getErrorName);
#undef FIND
}

rn_status_t rn_zstd_need(void) {
  pthread_once(&zstd.once, load);
  if (!zstd.missing) return RN_OK;
  return rn_unimplemented("ZSTD needs libzstd: %s is missing (Debian: libzstd1)", zstd.missing);
}

rn_status_t rn_unzstd(rn_str_t data, size_t limit, rn_strbuf_t* out) {
  RN_RETURN_IF_ERROR(rn_zstd_need());
  const char* bytes = data.size ? data.data : "";
  uint64_t size = zstd.getFrameContentSize(bytes, data.size);
  if (size >= UNKNOWN_SIZE) return rn_invalid_argument("Failed to determine decompressed size");
  if (size > limit) return rn_unpacked_too_much(limit);
  if (!rn_strbuf_reserve(out, (size_t)size + 1)) return rn_strbuf_status(out);
  size_t done = zstd.decompress(out->data + out->size, (size_t)size, bytes, data.size);
  if (zstd.isError(done))
    return rn_invalid_argument("Failed to decompress zstd input: %s", zstd.getErrorName(done));
  out->size += done;
  return RN_OK;
}

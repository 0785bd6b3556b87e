// An emulated CUPTI: whatever is issued for an external id, it reports one kernel and one copy for
// it, when it is flushed. Also one copy that was issued for nothing, and records that are not for
// us.
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/cuda/cupti_api.h"

#define EXPORT __attribute__((visibility("default")))
#define MOST_IDS 256

// Larger than what our declarations have, as the library's own records are.
enum { KERNEL_SIZE = 216, COPY_SIZE = 96, LINK_SIZE = 24, MOST_SIZE = 216 };

static CUpti_BufferRequested requested;
static CUpti_BufferCompleted completed;
static bool is_enabled;
static uint64_t ids[MOST_IDS], depth;
static int id_count;
static uint32_t correlation = 100;

#define DEFINE(result, name, parameters) EXPORT result name parameters;
RN_CUPTI_CALLS(DEFINE)

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BufferRequested on_requested,
                                           CUpti_BufferCompleted on_completed) {
  requested = on_requested;
  completed = on_completed;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(int kind) {
  if (getenv("RN_TEST_CUPTI_BUSY")) return 39;  // another profiler uses it
  is_enabled |= kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(int kind) {
  is_enabled &= kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t* now) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  *now = 5000000000000u + (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPushExternalCorrelationId(int kind, uint64_t id) {
  if (kind != CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0) return 1;
  ++depth;
  if (is_enabled && id_count < MOST_IDS) ids[id_count++] = id;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(int kind, uint64_t* last) {
  if (kind != CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0 || !depth) return 1;
  --depth;
  *last = id_count ? ids[id_count - 1] : 0;
  return CUPTI_SUCCESS;
}

static size_t size_of(int kind) {
  return kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL      ? KERNEL_SIZE
         : kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION ? LINK_SIZE
                                                            : COPY_SIZE;
}

typedef struct writer_t {
  uint8_t* buffer;
  size_t size, used;
} writer_t;

static void put(writer_t* out, const void* record, size_t known) {
  size_t size = size_of(((const CUpti_Activity*)record)->kind);
  if (out->used + size > out->size) return;
  memset(out->buffer + out->used, 0, size);
  memcpy(out->buffer + out->used, record, known < size ? known : size);
  out->used += size;
}

static void put_copy(writer_t* out, uint32_t number, uint64_t start) {
  CUpti_ActivityCopy copy = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY,
                             .direction = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD,
                             .bytes = 4096,
                             .start = start,
                             .end = start + 3000,
                             .stream = 14,
                             .correlation = number};
  put(out, &copy, sizeof copy);
}

static void put_node(writer_t* out, uint64_t id, uint64_t start) {
  CUpti_ActivityExternal other = {.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                  .external_kind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0 + 1,
                                  .external_id = 77,
                                  .correlation = correlation};
  CUpti_ActivityExternal link = other;
  link.external_kind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
  link.external_id = id;
  CUpti_ActivityCopy call = {.kind = CUPTI_ACTIVITY_KIND_DRIVER, .correlation = correlation};
  CUpti_ActivityKernel kernel = {.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                 .start = start + 4000,
                                 .end = start + 9000,
                                 .stream = 13,
                                 .correlation = correlation,
                                 .name = "emulated_kernel"};
  put(out, &kernel, sizeof kernel);  // before its link
  put(out, &call, sizeof call);
  put(out, &other, sizeof other);
  put(out, &link, sizeof link);
  ++correlation;
}

CUptiResult cuptiActivityFlushAll(uint32_t flags) {
  writer_t out = {0};
  size_t most = 1;
  uint64_t now;
  if (flags != CUPTI_ACTIVITY_FLAG_FLUSH_FORCED || !requested) return 1;
  cuptiGetTimestamp(&now);
  requested(&out.buffer, &out.size, &most);
  if (!out.buffer || most != 0) return 1;
  for (int i = 0; i < id_count; ++i) put_node(&out, ids[i], now - 1000000 + (uint64_t)i * 10000);
  put_copy(&out, correlation++, now - 2000000);
  id_count = 0;
  completed(NULL, 0, out.buffer, out.size, out.used);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t used, CUpti_Activity** record) {
  uint8_t* next = *record ? (uint8_t*)*record + size_of((*record)->kind) : buffer;
  if (next >= buffer + used) return 12;  // no more
  *record = (CUpti_Activity*)next;
  return CUPTI_SUCCESS;
}

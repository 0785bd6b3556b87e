// CUPTI: see cupti.h.
#include "device/cuda/cupti.h"

#include <stdlib.h>

#include "device/cuda/cupti_api.h"

_Static_assert(offsetof(CUpti_ActivityKernel, correlation) == 92, "the layout of CUPTI");
_Static_assert(offsetof(CUpti_ActivityKernel, name) == 104, "the layout of CUPTI");
_Static_assert(offsetof(CUpti_ActivityCopy, correlation) == 44, "the layout of CUPTI");

#define BUFFER_SIZE ((size_t)1 << 20)
#define BUFFER_ALIGNMENT 8
#define NODE_BITS 32  // of an external id; the rest is the trace's number

typedef struct cupti_table_t {
  void* library;
  RN_CUPTI_CALLS(RN_CUDA_POINTER)
} cupti_table_t;

typedef struct cupti_record_t {
  rn_trace_kind_t kind;
  const char* name;  // CUPTI's, forever
  uint64_t start, end;
  int64_t bytes;
  uint32_t device, stream, correlation;
} cupti_record_t;

typedef struct cupti_link_t {
  uint32_t correlation;
  uint64_t id;
} cupti_link_t;

// CUPTI's callbacks have no argument of ours, so this is one per process, as the library is.
static struct {
  rn_mutex_t mutex;  // guards all below, except |records| and |links|
  bool is_tried;
  cupti_table_t api;
  int traces;  // under way
  int64_t last_number;
  int64_t clock;           // the environment's minus CUPTI's
  rn_mutex_t found_mutex;  // guards the two below; CUPTI's threads take it
  RN_VEC(cupti_record_t) records;
  RN_VEC(cupti_link_t) links;
} cupti = {.mutex = RN_MUTEX_INIT, .found_mutex = RN_MUTEX_INIT};

static const int kinds[] = {
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
    CUPTI_ACTIVITY_KIND_DRIVER,
    CUPTI_ACTIVITY_KIND_RUNTIME,
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMSET,
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void on_requested(uint8_t** buffer, size_t* size, size_t* most_records) {
  *most_records = 0;  // as many as fit
  *buffer = aligned_alloc(BUFFER_ALIGNMENT, BUFFER_SIZE);
  *size = *buffer ? BUFFER_SIZE : 0;
}

static rn_status_t take_locked(const CUpti_Activity* any) {
  if (any->kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
    const CUpti_ActivityExternal* link = (const CUpti_ActivityExternal*)any;
    if (link->external_kind != CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0) return RN_OK;
    return rn_vec_push(&cupti.links, rn_allocator_system(),
                       (cupti_link_t){link->correlation, link->external_id});
  }
  cupti_record_t record = {.name = ""};
  if (any->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
    const CUpti_ActivityKernel* kernel = (const CUpti_ActivityKernel*)any;
    record = (cupti_record_t){.kind = RN_TRACE_KERNEL,
                              .name = kernel->name ? kernel->name : "",
                              .start = kernel->start,
                              .end = kernel->end,
                              .device = kernel->device,
                              .stream = kernel->stream,
                              .correlation = kernel->correlation};
  } else if (any->kind == CUPTI_ACTIVITY_KIND_MEMCPY || any->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    const CUpti_ActivityCopy* copy = (const CUpti_ActivityCopy*)any;
    bool is_copy = any->kind == CUPTI_ACTIVITY_KIND_MEMCPY;
    bool is_in = is_copy && copy->direction == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
    bool is_out = is_copy && copy->direction == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
    record = (cupti_record_t){.kind = is_in    ? RN_TRACE_TO_DEVICE
                                      : is_out ? RN_TRACE_TO_HOST
                                               : RN_TRACE_WITHIN,
                              .name = "",
                              .start = copy->start,
                              .end = copy->end,
                              .bytes = (int64_t)copy->bytes,
                              .device = copy->device,
                              .stream = copy->stream,
                              .correlation = copy->correlation};
  } else {
    return RN_OK;
  }
  return rn_vec_push(&cupti.records, rn_allocator_system(), record);
}

static void on_completed(CUcontext context, uint32_t stream, uint8_t* buffer, size_t size,
                         size_t used) {
  (void)context, (void)stream, (void)size;
  CUpti_Activity* record = NULL;
  rn_mutex_lock(&cupti.found_mutex);
  rn_status_t status = RN_OK;
  while (rn_ok(status) &&
         cupti.api.cuptiActivityGetNextRecord(buffer, used, &record) == CUPTI_SUCCESS)
    status = take_locked(record);
  rn_mutex_unlock(&cupti.found_mutex);
  rn_status_free(status);  // without memory, the trace lacks some entries
  free(buffer);
}

static void stop_locked(void) {
  for (int k = 0; k < KINDS; ++k) cupti.api.cuptiActivityDisable(kinds[k]);
}

static void open_locked(rn_cuda_card_t* card) {
  static const char* const files[] = {RN_CUPTI_FILES};
  static const char* const names[] = {RN_CUPTI_CALLS(RN_CUDA_NAME)};
  cupti.is_tried = true;
  rn_status_t status =
      rn_cuda_card_library(card, files, names, sizeof names / sizeof *names, &cupti.api);
  if (!rn_ok(status)) cupti.api.library = NULL;
  rn_status_free(status);
}

// Begins to collect for the first of the traces.
static bool start_locked(const rn_env_t* env) {
  uint64_t now = 0;
  bool ok = cupti.api.cuptiActivityRegisterCallbacks(on_requested, on_completed) == CUPTI_SUCCESS &&
            cupti.api.cuptiGetTimestamp(&now) == CUPTI_SUCCESS;
  for (int k = 0; ok && k < KINDS; ++k)
    ok = cupti.api.cuptiActivityEnable(kinds[k]) == CUPTI_SUCCESS;
  if (!ok) stop_locked();
  cupti.clock = env->now_ns(env->self) - (int64_t)now;
  return ok;
}

int64_t rn_cupti_begin(rn_cuda_card_t* card, const rn_env_t* env) {
  int64_t number = 0;
  rn_mutex_lock(&cupti.mutex);
  if (!cupti.is_tried) open_locked(card);
  if (cupti.api.library && (cupti.traces > 0 || start_locked(env))) {
    cupti.traces++;
    number = ++cupti.last_number;
  }
  rn_mutex_unlock(&cupti.mutex);
  return number;
}

void rn_cupti_node(int64_t number, int64_t node) {
  uint64_t last;
  int kind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
  if (node < 0)
    cupti.api.cuptiActivityPopExternalCorrelationId(kind, &last);
  else
    cupti.api.cuptiActivityPushExternalCorrelationId(
        kind, (uint64_t)number << NODE_BITS | (uint64_t)node);
}

static int compare_links(const void* a, const void* b) {
  const cupti_link_t *x = a, *y = b;
  return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

static int compare_records(const void* a, const void* b) {
  const cupti_record_t *x = a, *y = b;
  return (x->start > y->start) - (x->start < y->start);
}

// The external id of what was issued with |correlation|; 0: it has none.
static uint64_t id_of(uint32_t correlation) {
  cupti_link_t key = {.correlation = correlation};
  const cupti_link_t* found =
      bsearch(&key, cupti.links.items, cupti.links.count, sizeof *cupti.links.items, compare_links);
  return found ? found->id : 0;
}

static void visit_locked(int64_t number, const rn_cuda_card_t* card, bool is_last,
                         rn_trace_visit_t visit, void* self) {
  if (cupti.links.count)
    qsort(cupti.links.items, cupti.links.count, sizeof *cupti.links.items, compare_links);
  if (cupti.records.count)
    qsort(cupti.records.items, cupti.records.count, sizeof *cupti.records.items, compare_records);
  for (size_t i = 0; i < cupti.records.count; ++i) {
    const cupti_record_t* record = &cupti.records.items[i];
    uint64_t id = id_of(record->correlation);
    bool is_mine = id ? (int64_t)(id >> NODE_BITS) == number : is_last;
    if (!is_mine || record->device != (uint32_t)card->ordinal) continue;
    rn_trace_event_t event = {.kind = record->kind,
                              .name = record->name,
                              .node = id ? (int64_t)(id & UINT32_MAX) : -1,
                              .bytes = record->bytes,
                              .stream = (int32_t)record->stream,
                              .start_ns = (int64_t)record->start + cupti.clock,
                              .end_ns = (int64_t)record->end + cupti.clock};
    visit(self, &event);
  }
  if (!is_last) return;
  rn_vec_free(&cupti.records, rn_allocator_system());
  rn_vec_free(&cupti.links, rn_allocator_system());
}

void rn_cupti_end(int64_t number, rn_cuda_card_t* card, rn_trace_visit_t visit, void* self) {
  rn_mutex_lock(&cupti.mutex);
  cupti.api.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  bool is_last = --cupti.traces == 0;
  if (is_last) stop_locked();
  rn_mutex_lock(&cupti.found_mutex);
  visit_locked(number, card, is_last, visit, self);
  rn_mutex_unlock(&cupti.found_mutex);
  rn_mutex_unlock(&cupti.mutex);
}

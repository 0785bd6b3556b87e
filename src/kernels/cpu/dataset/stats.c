// Aggregators of statistics as resources, and their ops: see stats.h.
#include "kernels/cpu/dataset/stats.h"

#include "base/vec.h"
#include "io/summary.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/state/handle.h"
#include "kernels/cpu/summary/writer.h"
#include "tensor/tstring.h"

typedef struct stats_entry_t {
  char* tag;  // Owned
  size_t size;
  rn_histogram_t* histogram;  // Owned
  int64_t count;              // values so far
} stats_entry_t;

struct rn_data_stats_t {
  rn_resource_t resource;
  rn_allocator_t allocator;
  bool writes;                    // instead of keeping histograms for a summary
  rn_mutex_t mutex;               // guards what follows
  rn_resource_t* writer;          // Retained; NULL if none is set
  RN_VEC(stats_entry_t) entries;  // sorted by tag
};

static void stats_destroy(rn_object_t* object) {
  rn_data_stats_t* stats = (rn_data_stats_t*)object;
  for (size_t i = 0; i < stats->entries.count; ++i) {
    rn_free(stats->allocator, stats->entries.items[i].tag, stats->entries.items[i].size + 1);
    rn_histogram_destroy(stats->entries.items[i].histogram);
  }
  rn_vec_free(&stats->entries, stats->allocator);
  if (stats->writer) rn_object_release(&stats->writer->object);
  rn_mutex_destroy(&stats->mutex);
  RN_FREE(stats->allocator, stats);
}

rn_status_t rn_data_stats_create(rn_allocator_t allocator, rn_data_stats_t** out) {
  rn_data_stats_t* stats = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &stats));
  stats->resource = (rn_resource_t){{.refs = 1, .destroy = stats_destroy}, RN_DATA_STATS_TYPE};
  stats->allocator = allocator;
  rn_mutex_init(&stats->mutex);
  *out = stats;
  return RN_OK;
}

rn_resource_t* rn_data_stats_resource(rn_data_stats_t* stats) { return &stats->resource; }

// The entry of |tag|, which is made if there is none. The mutex is held.
static rn_status_t entry_of(rn_data_stats_t* stats, rn_str_t tag, stats_entry_t** out) {
  size_t place = 0;
  for (; place < stats->entries.count; ++place) {
    stats_entry_t* entry = &stats->entries.items[place];
    int order = rn_str_compare(rn_str_n(entry->tag, entry->size), tag);
    if (order == 0) *out = entry;
    if (order == 0) return RN_OK;
    if (order > 0) break;
  }
  stats_entry_t entry = {.size = tag.size};
  RN_RETURN_IF_ERROR(rn_vec_reserve(&stats->entries, stats->allocator, stats->entries.count + 1));
  RN_RETURN_IF_ERROR(rn_str_dup(stats->allocator, tag, &entry.tag));
  rn_status_t status = rn_histogram_create(stats->allocator, &entry.histogram);
  if (!rn_ok(status)) {
    rn_free(stats->allocator, entry.tag, tag.size + 1);
    return status;
  }
  stats_entry_t* at = stats->entries.items + place;
  memmove(at + 1, at, (stats->entries.count - place) * sizeof *at);
  *at = entry;
  stats->entries.count++;
  *out = at;
  return RN_OK;
}

typedef struct stats_scope_t {
  rn_object_t object;
  rn_data_stats_t* stats;  // Retained
  char* prefix;            // Owned
  size_t size;
} stats_scope_t;

static void scope_destroy(rn_object_t* object) {
  stats_scope_t* scope = (stats_scope_t*)object;
  rn_allocator_t allocator = scope->stats->allocator;
  if (scope->prefix) rn_free(allocator, scope->prefix, scope->size + 1);
  rn_object_release(&scope->stats->resource.object);
  RN_FREE(allocator, scope);
}

rn_status_t rn_data_stats_scope(rn_data_stats_t* stats, rn_str_t prefix, rn_object_t** out) {
  stats_scope_t* scope = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(stats->allocator, &scope));
  scope->object = (rn_object_t){.refs = 1, .destroy = scope_destroy};
  scope->stats = stats;
  rn_object_retain(&stats->resource.object);
  scope->size = prefix.size;
  rn_status_t status = rn_str_dup(stats->allocator, prefix, &scope->prefix);
  if (rn_ok(status))
    *out = &scope->object;
  else
    rn_object_release(&scope->object);
  return status;
}

// Counts |value|, and writes the histogram if there is a writer for it. The mutex is held.
static rn_status_t count(rn_data_stats_t* stats, stats_entry_t* entry, double value) {
  rn_histogram_add(entry->histogram, value);
  entry->count++;
  if (!stats->writes || !stats->writer) return RN_OK;
  rn_strbuf_t summary;
  rn_strbuf_init(&summary, stats->allocator);
  rn_status_t status =
      rn_summary_put_counts(&summary, rn_str_n(entry->tag, entry->size), entry->histogram);
  if (rn_ok(status)) status = rn_strbuf_status(&summary);
  if (rn_ok(status))
    status = rn_summary_writer_put(stats->writer, entry->count - 1, rn_strbuf_view(&summary));
  rn_strbuf_clear(&summary);
  return status;
}

rn_status_t rn_data_stats_add(rn_object_t* object, rn_str_t tag, double value) {
  const stats_scope_t* scope = (const stats_scope_t*)object;
  rn_data_stats_t* stats = scope->stats;
  stats_entry_t* entry = NULL;
  rn_strbuf_t name;
  rn_strbuf_init(&name, stats->allocator);
  if (scope->size) rn_strbuf_printf(&name, "%s::", scope->prefix);
  rn_strbuf_append(&name, tag);
  rn_status_t status = rn_strbuf_status(&name);
  rn_mutex_lock(&stats->mutex);
  if (rn_ok(status)) status = entry_of(stats, rn_strbuf_view(&name), &entry);
  if (rn_ok(status)) status = count(stats, entry, value);
  rn_mutex_unlock(&stats->mutex);
  rn_strbuf_clear(&name);
  return status;
}

rn_status_t rn_data_stats_summary(rn_data_stats_t* stats, rn_strbuf_t* out) {
  rn_status_t status = RN_OK;
  rn_mutex_lock(&stats->mutex);
  for (size_t i = 0; rn_ok(status) && !stats->writes && i < stats->entries.count; ++i) {
    const stats_entry_t* entry = &stats->entries.items[i];
    status = rn_summary_put_counts(out, rn_str_n(entry->tag, entry->size), entry->histogram);
  }
  rn_mutex_unlock(&stats->mutex);
  return rn_ok(status) ? rn_strbuf_status(out) : status;
}

// Ops.
static rn_status_t create(void* arg, rn_str_t name, rn_resource_t** out) {
  (void)name;
  rn_data_stats_t* stats = NULL;
  const rn_kernel_init_t* init = arg;
  RN_RETURN_IF_ERROR(rn_data_stats_create(init->allocator, &stats));
  stats->writes = !strcmp(init->op->name, "StatsAggregatorHandleV2");
  *out = &stats->resource;
  return RN_OK;
}

static rn_status_t handle_init(const rn_kernel_init_t* init, void* state) {
  return rn_handle_state_init(state, init, RN_DATA_STATS_TYPE, create, (void*)(uintptr_t)init);
}

static rn_status_t summary_compute(rn_kernel_ctx_t* ctx) {
  rn_resource_t* resource = NULL;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_handle_input(ctx, 0, RN_DATA_STATS_TYPE, &resource));
  rn_strbuf_t text;
  rn_strbuf_init(&text, ctx->kernel->allocator);
  rn_status_t status = rn_data_stats_summary((rn_data_stats_t*)resource, &text);
  rn_object_release(&resource->object);
  if (rn_ok(status)) status = rn_output(ctx, 0, RN_SHAPE_SCALAR, &out);
  if (rn_ok(status) && !rn_tstring_assign(RN_DATA(out, rn_tstring_t), text.data, text.size))
    status = rn_out_of_memory();
  rn_strbuf_clear(&text);
  return status;
}

// An aggregator of the first version ignores its writer.
static rn_status_t set_writer_compute(rn_kernel_ctx_t* ctx) {
  rn_resource_t *resource = NULL, *writer = NULL;
  RN_RETURN_IF_ERROR(rn_handle_input(ctx, 0, RN_DATA_STATS_TYPE, &resource));
  rn_status_t status = rn_handle_input(ctx, 1, RN_SUMMARY_WRITER_TYPE, &writer);
  if (rn_ok(status)) {
    rn_data_stats_t* stats = (rn_data_stats_t*)resource;
    rn_mutex_lock(&stats->mutex);
    rn_resource_t* before = stats->writer;
    stats->writer = writer;
    rn_mutex_unlock(&stats->mutex);
    if (before) rn_object_release(&before->object);
  }
  rn_object_release(&resource->object);
  return status;
}

#define HANDLE(name)                                                       \
  {                                                                        \
    .op = name, .device = "CPU", .flags = RN_KERNEL_OWN_OUTPUTS,           \
    .state_size = sizeof(rn_handle_state_t), .init = handle_init,          \
    .destroy = rn_handle_state_destroy, .compute = rn_handle_state_compute \
  }

static const rn_kernel_def_t rows[] = {
    HANDLE("StatsAggregatorHandle"),
    HANDLE("StatsAggregatorHandleV2"),
    {.op = "StatsAggregatorSetSummaryWriter", .device = "CPU", .compute = set_writer_compute},
    {.op = "StatsAggregatorSummary", .device = "CPU", .compute = summary_compute},
};
RN_KERNEL_FAMILY(cpu_data_stats, rows);

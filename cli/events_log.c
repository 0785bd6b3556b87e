// Logs of event files: see events_log.h.
#include "cli/events_log.h"

#include <math.h>
#include <stdlib.h>

#include "io/event_file.h"
#include "io/summary.h"
#include "tensor/tensor_proto.h"
#include "wire/decode.h"
#include "wire/scan.h"

// The largest summary tensor to decode; larger ones are only counted.
enum { MAX_TENSOR_BYTES = 1 << 20 };

void rn_log_init(rn_log_t* log, rn_allocator_t allocator) {
  *log = (rn_log_t){.allocator = allocator};
  rn_arena_init(&log->arena, allocator);
}

void rn_log_clear(rn_log_t* log) {
  for (size_t i = 0; i < log->series.count; ++i)
    rn_vec_free(&log->series.items[i].points, log->allocator);
  rn_vec_free(&log->series, log->allocator);
  rn_arena_clear(&log->arena);
  rn_status_free(log->damage);
}

static rn_status_t find_series(rn_log_t* log, rn_str_t tag, rn_series_kind_t kind,
                               rn_series_t** out) {
  for (size_t i = 0; i < log->series.count; ++i) {
    *out = &log->series.items[i];
    if ((*out)->kind == kind && rn_str_eq((*out)->tag, tag)) return RN_OK;
  }
  char* copy = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&log->arena, tag.size + 1, &copy));
  if (tag.size) memcpy(copy, tag.data, tag.size);
  rn_series_t series = {.tag = {copy, tag.size}, .kind = kind};
  RN_RETURN_IF_ERROR(rn_vec_push(&log->series, log->allocator, series));
  *out = &log->series.items[log->series.count - 1];
  return RN_OK;
}

static rn_status_t add_point(rn_log_t* log, rn_str_t tag, rn_series_kind_t kind,
                             const rn_event_t* event, double value) {
  rn_series_t* series = NULL;
  RN_RETURN_IF_ERROR(find_series(log, tag, kind, &series));
  rn_point_t point = {event->step, event->wall_time, value};
  return rn_vec_push(&series->points, log->allocator, point);
}

static rn_series_kind_t kind_of_plugin(rn_str_t metadata) {
  static const struct {
    const char* plugin;
    rn_series_kind_t kind;
  } kinds[] = {{"scalars", RN_SERIES_SCALAR}, {"histograms", RN_SERIES_HISTOGRAM},
               {"images", RN_SERIES_IMAGE},   {"audio", RN_SERIES_AUDIO},
               {"text", RN_SERIES_TEXT},      {"graph_run_metadata", RN_SERIES_RUN_METADATA}};
  rn_str_t plugin = RN_STR("");
  rn_pb_scan_t scan = rn_pb_scan(metadata);
  rn_pb_field_t field;
  while (rn_pb_scan_next(&scan, &field)) {
    if (field.number != RN_METADATA_PLUGIN || field.wire != RN_PB_WIRE_LENGTH) continue;
    rn_pb_scan_t inner = rn_pb_scan(field.bytes);
    while (rn_pb_scan_next(&inner, &field))
      if (field.number == RN_PLUGIN_NAME && field.wire == RN_PB_WIRE_LENGTH) plugin = field.bytes;
  }
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i)
    if (rn_str_is(plugin, kinds[i].plugin)) return kinds[i].kind;
  return RN_SERIES_TENSOR;
}

// In some logs, only the first value of a tag has metadata.
static rn_series_kind_t kind_of_tag(const rn_log_t* log, rn_str_t tag) {
  for (size_t i = 0; i < log->series.count; ++i)
    if (rn_str_eq(log->series.items[i].tag, tag)) return log->series.items[i].kind;
  return RN_SERIES_TENSOR;
}

static double tensor_number(rn_log_t* log, rn_str_t bytes) {
  rn_arena_t arena;
  rn_arena_init(&arena, log->allocator);
  rn_pb_TensorProto_t* proto = NULL;
  rn_tensor_t tensor = {0};
  rn_status_t status = RN_PB_DECODE(TensorProto, bytes, NULL, &arena, &proto);
  if (rn_ok(status))
    status = rn_tensor_from_proto(proto, MAX_TENSOR_BYTES, log->allocator, &tensor);
  double value = rn_ok(status) && tensor.count > 0 ? rn_summary_number(&tensor, 0) : NAN;
  rn_status_free(status);
  rn_tensor_clear(&tensor);
  rn_arena_clear(&arena);
  return value;
}

static double float_of(uint64_t bits) {
  uint32_t low = (uint32_t)bits;
  float value;
  memcpy(&value, &low, sizeof value);
  return (double)value;
}

static rn_status_t add_value(rn_log_t* log, rn_str_t bytes, const rn_event_t* event) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  rn_str_t tag = RN_STR(""), metadata = RN_STR(""), tensor = RN_STR("");
  rn_series_kind_t kind = RN_SERIES_KINDS;
  double value = 0;
  while (rn_pb_scan_next(&scan, &field)) {
    bool is_text = field.wire == RN_PB_WIRE_LENGTH;
    if (field.number == RN_VALUE_TAG && is_text) tag = field.bytes;
    if (field.number == RN_VALUE_METADATA && is_text) metadata = field.bytes;
    if (field.number == RN_VALUE_SIMPLE && field.wire == RN_PB_WIRE_32) {
      kind = RN_SERIES_SCALAR;
      value = float_of(field.value);
    }
    if (field.number == RN_VALUE_HISTOGRAM && is_text) kind = RN_SERIES_HISTOGRAM;
    if (field.number == RN_VALUE_IMAGE && is_text) kind = RN_SERIES_IMAGE;
    if (field.number == RN_VALUE_AUDIO && is_text) kind = RN_SERIES_AUDIO;
    if (field.number == RN_VALUE_TENSOR && is_text) {
      kind = RN_SERIES_TENSOR;
      tensor = field.bytes;
    }
  }
  if (scan.is_bad || kind == RN_SERIES_KINDS) return RN_OK;
  if (kind == RN_SERIES_TENSOR)
    kind = metadata.size ? kind_of_plugin(metadata) : kind_of_tag(log, tag);
  if (kind == RN_SERIES_SCALAR && tensor.size) value = tensor_number(log, tensor);
  return add_point(log, tag, kind, event, value);
}

static rn_status_t add_event(rn_log_t* log, const rn_event_t* event) {
  if (event->kind == RN_EVENT_GRAPH)
    return add_point(log, RN_STR("graph"), RN_SERIES_GRAPH, event, 0);
  rn_pb_scan_t scan = rn_pb_scan(event->bytes);
  rn_pb_field_t field;
  while (rn_pb_scan_next(&scan, &field)) {
    if (field.wire != RN_PB_WIRE_LENGTH) continue;
    if (event->kind == RN_EVENT_SUMMARY && field.number == RN_SUMMARY_VALUE)
      RN_RETURN_IF_ERROR(add_value(log, field.bytes, event));
    if (event->kind == RN_EVENT_RUN_METADATA && field.number == RN_RUN_METADATA_TAG)
      RN_RETURN_IF_ERROR(add_point(log, field.bytes, RN_SERIES_RUN_METADATA, event, 0));
  }
  return RN_OK;
}

// A truncated file gives the events before the end.
static rn_status_t read_file(rn_log_t* log, const rn_env_t* env, const char* path) {
  rn_record_reader_t* reader = NULL;
  RN_RETURN_IF_ERROR(rn_record_reader_open(env, path, RN_COMPRESSION_NONE, 0, &reader));
  rn_status_t status = RN_OK;
  while (rn_ok(status)) {
    rn_str_t record;
    bool is_end = false;
    rn_event_t event;
    rn_status_t damage = rn_record_reader_next(reader, &record, &is_end);
    if (is_end) break;
    if (rn_ok(damage)) damage = rn_event_parse(record, &event);
    if (!rn_ok(damage)) {
      log->damage = rn_status_join(log->damage, damage);
      break;
    }
    ++log->events;
    if (event.kind == RN_EVENT_FILE_VERSION) continue;
    status = add_event(log, &event);
  }
  rn_record_reader_close(reader);
  ++log->files;
  return status;
}

static int by_kind_and_tag(const void* a_, const void* b_) {
  const rn_series_t *a = a_, *b = b_;
  if (a->kind != b->kind) return (int)a->kind - (int)b->kind;
  return rn_str_compare(a->tag, b->tag);
}

rn_status_t rn_log_read(rn_log_t* log, const rn_env_t* env, const char* folder) {
  rn_names_t names;
  rn_strbuf_t path;
  rn_names_init(&names, log->allocator);
  rn_strbuf_init(&path, log->allocator);
  rn_status_t status = env->fs->list(env->fs_self, folder, &names);
  rn_names_sort(&names);
  for (size_t i = 0; i < names.list.count && rn_ok(status); ++i) {
    rn_str_t name = names.list.items[i];
    if (!memmem(name.data, name.size, "tfevents", 8)) continue;
    path.size = 0;
    rn_strbuf_printf(&path, "%s/%.*s", folder, RN_STR_ARGS(name));
    status = rn_strbuf_status(&path);
    if (rn_ok(status)) status = read_file(log, env, path.data);
  }
  rn_strbuf_clear(&path);
  rn_names_clear(&names);
  if (log->series.count)
    qsort(log->series.items, log->series.count, sizeof *log->series.items, by_kind_and_tag);
  return status;
}

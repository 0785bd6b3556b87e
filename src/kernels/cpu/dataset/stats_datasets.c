// Datasets that record statistics, and the one that says where to.
#include "kernels/cpu/dataset/stats.h"
#include "tensor/tstring.h"

typedef struct stats_dataset_t {
  rn_dataset_t base;
  rn_dataset_t* input;
  rn_str_t tag;
  rn_object_t* stats;  // Owned; the scope of SetStatsAggregator
} stats_dataset_t;

typedef struct stats_iterator_t {
  rn_data_iterator_t base;
  rn_data_source_t source;
  rn_data_run_t* run;  // Retained; of SetStatsAggregator
  int64_t began_ns;
} stats_iterator_t;

static rn_status_t stats_open(rn_dataset_t* dataset) {
  stats_dataset_t* own = (stats_dataset_t*)dataset;
  RN_RETURN_IF_ERROR(rn_data_upstream(dataset, "input_dataset", &own->input));
  return rn_data_text(dataset, "tag", &own->tag);
}

static int64_t stats_cardinality(const rn_dataset_t* dataset) {
  return rn_dataset_cardinality(((const stats_dataset_t*)dataset)->input);
}

static rn_status_t stats_start(rn_data_iterator_t* iterator) {
  return rn_data_source_start(&((stats_iterator_t*)iterator)->source, iterator,
                              ((const stats_dataset_t*)iterator->dataset)->input);
}

static void stats_stop(rn_data_iterator_t* iterator) {
  stats_iterator_t* own = (stats_iterator_t*)iterator;
  rn_data_source_stop(&own->source);
  if (own->run) rn_object_release(&own->run->object);
}

static rn_status_t stats_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  return rn_data_put_iterator(writer, ((stats_iterator_t*)iterator)->source.iterator);
}

static rn_status_t stats_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  return rn_data_restore_source(reader, &((stats_iterator_t*)iterator)->source, iterator,
                                ((const stats_dataset_t*)iterator->dataset)->input);
}

#define STATS                                                                         \
  .dataset_size = sizeof(stats_dataset_t), .iterator_size = sizeof(stats_iterator_t), \
  .cardinality = stats_cardinality, .stop = stats_stop, .save = stats_save,           \
  .restore = stats_restore

static rn_status_t record(stats_iterator_t* own, double value) {
  const stats_dataset_t* dataset = (const stats_dataset_t*)own->base.dataset;
  rn_object_t* stats = own->base.run->stats;
  return stats ? rn_data_stats_add(stats, dataset->tag, value) : RN_OK;
}

static bool finish(rn_data_iterator_t* iterator, rn_status_t status) {
  if (!rn_ok(status)) rn_data_row_clear(iterator->asked->out, iterator->dataset->component_count);
  return rn_data_finish(iterator, status);
}

// BytesProducedStats: the sizes of elements.
static double bytes_of(const rn_tensor_t* tensor) {
  double bytes = (double)rn_tensor_bytes(tensor);
  if (tensor->dtype != RN_STRING) return bytes;
  for (int64_t i = 0; i < tensor->count; ++i)
    bytes += (double)rn_tstring_view(&RN_DATA(tensor, const rn_tstring_t)[i]).size;
  return bytes;
}

static bool bytes_next(rn_data_iterator_t* iterator) {
  stats_iterator_t* own = (stats_iterator_t*)iterator;
  if (iterator->phase++ == 0 && !rn_data_ask(&own->source, iterator->asked->out)) return false;
  if (own->source.request.is_end) return rn_data_end(iterator);
  rn_status_t status = own->source.request.status;
  double bytes = 0;
  for (int32_t c = 0; rn_ok(status) && c < iterator->dataset->component_count; ++c)
    bytes += bytes_of(&iterator->asked->out[c]);
  if (rn_ok(status)) status = record(own, bytes);
  return finish(iterator, status);
}

const rn_data_kind_t rn_data_kind_bytes_stats = {STATS, .open = stats_open, .start = stats_start,
                                                 .next = bytes_next};

// LatencyStats: the microseconds that elements take.
static bool latency_next(rn_data_iterator_t* iterator) {
  stats_iterator_t* own = (stats_iterator_t*)iterator;
  const rn_env_t* env = iterator->dataset->host->env;
  if (iterator->phase == 0) {
    iterator->phase = 1;
    own->began_ns = env->now_ns(env->self);
    if (!rn_data_ask(&own->source, iterator->asked->out)) return false;
  }
  if (own->source.request.is_end) return rn_data_end(iterator);
  rn_status_t status = own->source.request.status;
  if (rn_ok(status))
    status = record(own, (double)((env->now_ns(env->self) - own->began_ns) / 1000));
  return finish(iterator, status);
}

const rn_data_kind_t rn_data_kind_latency_stats = {STATS, .open = stats_open, .start = stats_start,
                                                   .next = latency_next};

// SetStatsAggregator: what is above it records to an aggregator. Tags get a prefix.
static rn_status_t set_open(rn_dataset_t* dataset) {
  stats_dataset_t* own = (stats_dataset_t*)dataset;
  RN_RETURN_IF_ERROR(stats_open(dataset));
  rn_resource_t* resource = NULL;
  RN_RETURN_IF_ERROR(rn_handle_resource(rn_data_input(dataset, "stats_aggregator", NULL), NULL,
                                        RN_DATA_STATS_TYPE, &resource));
  rn_str_t unused;  // names counters, which there are none of
  RN_RETURN_IF_ERROR(rn_data_text(dataset, "counter_prefix", &unused));
  return rn_data_stats_scope((rn_data_stats_t*)resource, own->tag, &own->stats);
}

static void set_close(rn_dataset_t* dataset) {
  stats_dataset_t* own = (stats_dataset_t*)dataset;
  if (own->stats) rn_object_release(own->stats);
}

// The run of the part above has the aggregator.
static rn_status_t set_start(rn_data_iterator_t* iterator) {
  stats_iterator_t* own = (stats_iterator_t*)iterator;
  const stats_dataset_t* dataset = (const stats_dataset_t*)iterator->dataset;
  RN_RETURN_IF_ERROR(rn_data_run_create(dataset->base.host, iterator->run,
                                        iterator->run->step.call_depth, &own->run));
  rn_object_t* outer = own->run->stats;
  own->run->stats = dataset->stats;
  rn_object_retain(dataset->stats);
  if (outer) rn_object_release(outer);
  own->source.run = own->run;
  return rn_data_source_start(&own->source, iterator, dataset->input);
}

static bool set_next(rn_data_iterator_t* iterator) {
  stats_iterator_t* own = (stats_iterator_t*)iterator;
  if (iterator->phase++ == 0 && !rn_data_ask(&own->source, iterator->asked->out)) return false;
  if (own->source.request.is_end) return rn_data_end(iterator);
  return rn_data_finish(iterator, own->source.request.status);
}

const rn_data_kind_t rn_data_kind_set_stats = {STATS, .open = set_open, .close = set_close,
                                               .start = set_start, .next = set_next};

// SleepDataset: waits before it passes an element on.
#include "kernels/cpu/dataset/waiter.h"

typedef struct sleep_t {
  rn_dataset_t base;
  rn_dataset_t* input;
  int64_t micros;
} sleep_t;

typedef struct sleep_iterator_t {
  rn_data_iterator_t base;
  rn_data_source_t source;
} sleep_iterator_t;

static rn_status_t sleep_open(rn_dataset_t* dataset) {
  sleep_t* own = (sleep_t*)dataset;
  RN_RETURN_IF_ERROR(rn_data_upstream(dataset, "input_dataset", &own->input));
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "sleep_microseconds", &own->micros));
  if (own->micros < 0) return rn_invalid_argument("`sleep_microseconds` must be >= 0");
  if (own->micros > INT64_MAX / 4000) own->micros = INT64_MAX / 4000;
  return RN_OK;
}

static int64_t sleep_cardinality(const rn_dataset_t* dataset) {
  return rn_dataset_cardinality(((const sleep_t*)dataset)->input);
}

static rn_status_t sleep_start(rn_data_iterator_t* iterator) {
  return rn_data_source_start(&((sleep_iterator_t*)iterator)->source, iterator,
                              ((const sleep_t*)iterator->dataset)->input);
}

static void sleep_stop(rn_data_iterator_t* iterator) {
  rn_data_source_stop(&((sleep_iterator_t*)iterator)->source);
}

static bool sleep_next(rn_data_iterator_t* iterator) {
  sleep_iterator_t* own = (sleep_iterator_t*)iterator;
  const sleep_t* dataset = (const sleep_t*)iterator->dataset;
  if (iterator->phase == 0) {
    rn_status_t status = rn_data_pause(iterator->asked, dataset->base.host->env, dataset->micros);
    if (!rn_ok(status)) return rn_data_finish(iterator, status);
    iterator->phase = 1;
    if (!rn_data_ask(&own->source, iterator->asked->out)) return false;
  }
  if (own->source.request.is_end) return rn_data_end(iterator);
  return rn_data_finish(iterator, own->source.request.status);
}

static rn_status_t sleep_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  return rn_data_put_iterator(writer, ((sleep_iterator_t*)iterator)->source.iterator);
}

static rn_status_t sleep_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  return rn_data_restore_source(reader, &((sleep_iterator_t*)iterator)->source, iterator,
                                ((const sleep_t*)iterator->dataset)->input);
}

const rn_data_kind_t rn_data_kind_sleep = {.dataset_size = sizeof(sleep_t),
                                           .iterator_size = sizeof(sleep_iterator_t),
                                           .open = sleep_open,
                                           .cardinality = sleep_cardinality,
                                           .start = sleep_start,
                                           .stop = sleep_stop,
                                           .next = sleep_next,
                                           .save = sleep_save,
                                           .restore = sleep_restore};

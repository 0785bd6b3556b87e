// _SplitDataset: the elements of a source that a dispatcher of the tf.data service hands to this
// worker. A split is the element itself of a range, and the number of an element of other sources.
#include <stdatomic.h>

#include "base/container.h"
#include "framework/data_service.h"
#include "kernels/cpu/dataset/data.h"

#define MAX_DEPTH 1000  // nesting of datasets

typedef struct split_dataset_t {
  rn_dataset_t base;
  rn_dataset_t* source;  // Borrowed from the inputs
  rn_str_t address;
  int64_t iteration_id, number;
  bool is_range;
  _Atomic int64_t repetitions;  // begun so far
} split_dataset_t;

typedef struct split_iterator_t {
  rn_data_iterator_t base;
  rn_data_splits_t* splits;
  rn_data_split_t split;
  rn_job_t job;
  rn_cancel_entry_t entry;
  bool is_linked;
  _Atomic bool is_closed;
} split_iterator_t;

static rn_status_t split_open(rn_dataset_t* dataset) {
  split_dataset_t* own = (split_dataset_t*)dataset;
  RN_RETURN_IF_ERROR(rn_data_upstream(dataset, "source_dataset", &own->source));
  RN_RETURN_IF_ERROR(rn_data_text(dataset, "address", &own->address));
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "iteration_id", &own->iteration_id));
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "source", &own->number));
  own->is_range = strcmp(own->source->node->op->name, "RangeDataset") == 0;
  if (own->source->component_count == dataset->component_count) return RN_OK;
  return rn_invalid_argument("The source has elements of %d components, not of %d",
                             own->source->component_count, dataset->component_count);
}

static void splits_closed(void* arg) {
  rn_data_host_t* host = arg;
  rn_data_host_leave(host);
  rn_object_release(&host->object);
}

static void close_splits(split_iterator_t* own) {
  if (own->splits && !atomic_exchange(&own->is_closed, true)) rn_data_splits_close(own->splits);
}

static void run_cancelled(rn_cancel_entry_t* entry) {
  close_splits(RN_CONTAINER_OF(entry, split_iterator_t, entry));
}

static void go_on(rn_job_t* job) {
  rn_data_resume(&RN_CONTAINER_OF(job, split_iterator_t, job)->base);
}

static void split_came(rn_data_split_t* split) {
  split_iterator_t* own = RN_CONTAINER_OF(split, split_iterator_t, split);
  rn_pool_submit(own->base.dataset->host->pool, &own->job);
}

static rn_status_t split_start(rn_data_iterator_t* iterator) {
  split_iterator_t* own = (split_iterator_t*)iterator;
  split_dataset_t* dataset = (split_dataset_t*)iterator->dataset;
  rn_data_host_t* host = iterator->dataset->host;
  own->split.done = split_came;
  own->split.repetition = atomic_fetch_add(&dataset->repetitions, 1);
  own->job.run = go_on;
  own->entry.fn = run_cancelled;
  // The thread that asks counts as running work until it has ended.
  if (!rn_data_host_enter(host)) return rn_cancelled("The device is closed");
  rn_object_retain(&host->object);
  rn_status_t status = rn_data_splits_open(host->env, dataset->base.node->allocator,
                                           dataset->address, dataset->iteration_id, dataset->number,
                                           splits_closed, host, &own->splits);
  if (!rn_ok(status)) {
    splits_closed(host);
    return status;
  }
  own->is_linked = rn_cancel_add(&iterator->run->cancel, &own->entry);
  if (!own->is_linked) close_splits(own);
  return RN_OK;
}

static void split_stop(rn_data_iterator_t* iterator) {
  split_iterator_t* own = (split_iterator_t*)iterator;
  if (own->is_linked) rn_cancel_remove(&iterator->run->cancel, &own->entry);
  close_splits(own);
}

static bool split_next(rn_data_iterator_t* iterator) {
  split_iterator_t* own = (split_iterator_t*)iterator;
  split_dataset_t* dataset = (split_dataset_t*)iterator->dataset;
  if (iterator->phase == 0) {
    if (own->is_closed) return rn_data_finish(iterator, rn_cancelled("The iterator was closed"));
    iterator->phase = 1;
    rn_data_splits_next(own->splits, &own->split);
    return false;
  }
  rn_status_t status = own->split.status;
  own->split.status = RN_OK;
  if (!rn_ok(status)) return rn_data_finish(iterator, status);
  if (own->split.is_end) return rn_data_end(iterator);
  if (dataset->is_range)
    status = rn_data_make_scalar(iterator->dataset->node->memory, iterator->dataset->types[0],
                                 own->split.value, iterator->asked->out);
  else
    status = rn_dataset_get(dataset->source, own->split.value, iterator->asked->step,
                            iterator->asked->out);
  return rn_data_finish(iterator, status);
}

const rn_data_kind_t rn_data_kind_split_source = {.dataset_size = sizeof(split_dataset_t),
                                                  .iterator_size = sizeof(split_iterator_t),
                                                  .open = split_open,
                                                  .start = split_start,
                                                  .stop = split_stop,
                                                  .next = split_next};

bool rn_data_has_splits(const rn_dataset_t* dataset, int depth) {
  if (dataset->kind == &rn_data_kind_split_source) return true;
  int32_t count = dataset->inputs && depth < MAX_DEPTH ? dataset->node->input_count : 0;
  for (int32_t i = 0; i < count; ++i) {
    rn_dataset_t* input = NULL;
    if (dataset->inputs[i].dtype != RN_VARIANT) continue;
    rn_status_t status = rn_dataset_of(&dataset->inputs[i], &input);
    bool has_splits = rn_ok(status) && rn_data_has_splits(input, depth + 1);
    rn_status_free(status);
    if (has_splits) return true;
  }
  return false;
}

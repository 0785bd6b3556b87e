// A filter whose predicate runs for several elements at once: takes the elements with their results
// from rn_data_kind_judged, in order, and drops those with result false.
#include "kernels/cpu/dataset/map.h"

typedef struct filter_t {
  rn_dataset_t base;
  rn_dataset_t* judged;  // Owned
} filter_t;

typedef struct filter_iterator_t {
  rn_data_iterator_t base;
  rn_data_source_t source;
  rn_tensor_t* row;  // an element, followed by its result
} filter_iterator_t;

static rn_status_t filter_open(rn_dataset_t* dataset) {
  rn_data_node_t* node = dataset->node;
  const rn_tensor_t** inputs = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(node->allocator, (size_t)node->input_count, &inputs));
  for (int32_t i = 0; i < node->input_count; ++i) inputs[i] = &dataset->inputs[i];
  rn_status_t status = rn_dataset_create(node, &rn_data_kind_judged, dataset->host, inputs,
                                         &((filter_t*)dataset)->judged);
  RN_FREE_ARRAY(node->allocator, inputs, node->input_count);
  return status;
}

static void filter_close(rn_dataset_t* dataset) {
  rn_dataset_release(((filter_t*)dataset)->judged);
}

static rn_status_t filter_start(rn_data_iterator_t* iterator) {
  filter_iterator_t* own = (filter_iterator_t*)iterator;
  rn_dataset_t* judged = ((const filter_t*)iterator->dataset)->judged;
  RN_RETURN_IF_ERROR(rn_data_row(iterator, judged->component_count, &own->row));
  return rn_data_source_start(&own->source, iterator, judged);
}

static void filter_stop(rn_data_iterator_t* iterator) {
  filter_iterator_t* own = (filter_iterator_t*)iterator;
  rn_data_source_stop(&own->source);
  rn_data_row_clear(own->row, iterator->dataset->component_count + 1);
}

static bool filter_next(rn_data_iterator_t* iterator) {
  filter_iterator_t* own = (filter_iterator_t*)iterator;
  int32_t count = iterator->dataset->component_count;
  for (;; iterator->phase = 0) {
    if (iterator->phase == 0) {
      iterator->phase = 1;
      if (!rn_data_ask(&own->source, own->row)) return false;
    }
    if (own->source.request.is_end) return rn_data_end(iterator);
    bool holds = false;
    rn_status_t status = own->source.request.status;
    if (rn_ok(status))
      status = rn_data_holds(&own->row[count], "Filter predicate `predicate`", &holds);
    if (holds) rn_data_row_move(own->row, iterator->asked->out, count);
    rn_data_row_clear(own->row, count + 1);
    if (holds || !rn_ok(status)) return rn_data_finish(iterator, status);
  }
}

static rn_status_t filter_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  return rn_data_put_iterator(writer, ((filter_iterator_t*)iterator)->source.iterator);
}

static rn_status_t filter_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  return rn_data_restore_source(reader, &((filter_iterator_t*)iterator)->source, iterator,
                                ((const filter_t*)iterator->dataset)->judged);
}

const rn_data_kind_t rn_data_kind_parallel_filter = {.dataset_size = sizeof(filter_t),
                                                     .iterator_size = sizeof(filter_iterator_t),
                                                     .open = filter_open,
                                                     .close = filter_close,
                                                     .start = filter_start,
                                                     .stop = filter_stop,
                                                     .next = filter_next,
                                                     .save = filter_save,
                                                     .restore = filter_restore};

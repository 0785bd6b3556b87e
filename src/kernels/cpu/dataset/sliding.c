// SlidingWindowDataset: windows of elements as batches.
#include "kernels/cpu/dataset/batch.h"
#include "kernels/cpu/dataset/window.h"

typedef struct sliding_t {
  rn_dataset_t base;
  rn_dataset_t* input;
  int64_t size, shift, stride;
  bool drops_remainder;
} sliding_t;

typedef struct sliding_iterator_t {
  rn_data_iterator_t base;
  rn_data_source_t source;
  rn_data_rows_t rows;  // the elements from the start of the window on
  rn_tensor_t* row;
  int64_t skip;  // elements to skip before the window
  rn_data_batch_t batch;
} sliding_iterator_t;

static int64_t span_of(const sliding_t* sliding) {
  return (sliding->size - 1) * sliding->stride + 1;
}

static rn_status_t sliding_open(rn_dataset_t* dataset) {
  sliding_t* sliding = (sliding_t*)dataset;
  RN_RETURN_IF_ERROR(rn_data_upstream(dataset, "input_dataset", &sliding->input));
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "window_size", &sliding->size));
  if (sliding->size <= 0) return rn_invalid_argument("Window size must be greater than zero.");
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "window_shift", &sliding->shift));
  if (sliding->shift <= 0) return rn_invalid_argument("Window shift must be greater than zero.");
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "window_stride", &sliding->stride));
  if (sliding->stride <= 0) return rn_invalid_argument("window_stride must be greater than zero.");
  // The older name has no attribute.
  const rn_attr_value_t* drops = rn_data_attr(dataset, "drop_remainder");
  sliding->drops_remainder = !drops || drops->b;
  int64_t span = 0;
  if (!rn_mul_i64_ok(sliding->size - 1, sliding->stride, &span) || span == INT64_MAX)
    return rn_invalid_argument("A window of %lld elements %lld apart is too large",
                               (long long)sliding->size, (long long)sliding->stride);
  if (sliding->input->component_count != dataset->component_count)
    return rn_invalid_argument("%s has %d input components, but %d output components",
                               dataset->node->op->name, sliding->input->component_count,
                               dataset->component_count);
  return RN_OK;
}

static int64_t sliding_cardinality(const rn_dataset_t* dataset) {
  const sliding_t* sliding = (const sliding_t*)dataset;
  int64_t n = rn_dataset_cardinality(sliding->input), span = span_of(sliding);
  if (n < 0) return n;
  if (!sliding->drops_remainder) return n / sliding->shift + (n % sliding->shift != 0);
  return n < span ? 0 : (n - span) / sliding->shift + 1;
}

static rn_status_t sliding_start(rn_data_iterator_t* iterator) {
  sliding_iterator_t* own = (sliding_iterator_t*)iterator;
  const sliding_t* sliding = (const sliding_t*)iterator->dataset;
  int32_t count = sliding->base.component_count;
  own->rows =
      (rn_data_rows_t){.allocator = sliding->base.node->allocator, .component_count = count};
  RN_RETURN_IF_ERROR(rn_data_row(iterator, count, &own->row));
  RN_RETURN_IF_ERROR(rn_data_batch_init(&own->batch, iterator, count, sliding->size));
  return rn_data_source_start(&own->source, iterator, sliding->input);
}

static void sliding_stop(rn_data_iterator_t* iterator) {
  sliding_iterator_t* own = (sliding_iterator_t*)iterator;
  rn_data_source_stop(&own->source);
  rn_data_row_clear(own->row, iterator->dataset->component_count);
  rn_data_rows_clear(&own->rows);
  rn_data_batch_clear(&own->batch);
}

// Copies the window to a batch. Its elements stay for later windows.
static rn_status_t give_window(sliding_iterator_t* own, rn_tensor_t* out) {
  const sliding_t* sliding = (const sliding_t*)own->base.dataset;
  int32_t width = sliding->base.component_count;
  rn_status_t status = RN_OK;
  for (int64_t i = 0; rn_ok(status) && i < sliding->size; ++i) {
    int64_t at = i * sliding->stride;
    if (at >= (int64_t)own->rows.list.count) break;
    for (int32_t c = 0; rn_ok(status) && c < width; ++c)
      status = rn_tensor_share(&own->rows.list.items[at][c], &own->row[c]);
    if (rn_ok(status)) status = rn_data_batch_add(&own->batch, own->row);
  }
  rn_data_row_clear(own->row, width);
  if (rn_ok(status)) return rn_data_batch_take(&own->batch, out);
  rn_data_batch_clear(&own->batch);
  return status;
}

// Takes an element that has arrived.
static rn_status_t take_arrived(sliding_iterator_t* own) {
  if (own->skip == 0) return rn_data_rows_push(&own->rows, own->row);
  own->skip--;
  rn_data_row_clear(own->row, own->base.dataset->component_count);
  return RN_OK;
}

static bool sliding_next(rn_data_iterator_t* iterator) {
  sliding_iterator_t* own = (sliding_iterator_t*)iterator;
  const sliding_t* sliding = (const sliding_t*)iterator->dataset;
  int64_t span = span_of(sliding);
  while (iterator->phase || (own->source.iterator && (int64_t)own->rows.list.count < span)) {
    if (iterator->phase == 0) {
      iterator->phase = 1;
      if (!rn_data_ask(&own->source, own->row)) return false;
    }
    iterator->phase = 0;
    if (own->source.request.is_end) break;
    rn_status_t status = own->source.request.status;
    if (rn_ok(status)) status = take_arrived(own);
    if (rn_ok(status)) continue;
    rn_data_row_clear(own->row, sliding->base.component_count);
    return rn_data_finish(iterator, status);
  }
  int64_t have = (int64_t)own->rows.list.count;
  if (have == 0 || (have < span && sliding->drops_remainder)) {
    rn_data_rows_drop(&own->rows, (size_t)have);
    return rn_data_end(iterator);
  }
  rn_status_t status = give_window(own, iterator->asked->out);
  if (sliding->shift > have) own->skip = sliding->shift - have;
  rn_data_rows_drop(&own->rows, (size_t)sliding->shift);
  return rn_data_finish(iterator, status);
}

static rn_status_t sliding_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  sliding_iterator_t* own = (sliding_iterator_t*)iterator;
  rn_data_put_int(writer, own->skip);
  rn_data_rows_save(&own->rows, writer);
  return rn_data_put_iterator(writer, own->source.iterator);
}

static rn_status_t sliding_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  sliding_iterator_t* own = (sliding_iterator_t*)iterator;
  const sliding_t* sliding = (const sliding_t*)iterator->dataset;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &own->skip));
  if (own->skip < 0) return rn_data_bad_state();
  RN_RETURN_IF_ERROR(rn_data_rows_restore(&own->rows, reader, sliding->input->types, own->row));
  return rn_data_restore_source(reader, &own->source, iterator, sliding->input);
}

const rn_data_kind_t rn_data_kind_sliding = {.dataset_size = sizeof(sliding_t),
                                             .iterator_size = sizeof(sliding_iterator_t),
                                             .open = sliding_open,
                                             .cardinality = sliding_cardinality,
                                             .start = sliding_start,
                                             .stop = sliding_stop,
                                             .next = sliding_next,
                                             .save = sliding_save,
                                             .restore = sliding_restore};

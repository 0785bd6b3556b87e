// Batching: joins elements into tensors with one more dimension.
#include "kernels/cpu/dataset/batch.h"

#include "kernels/cpu/array.h"
#include "kernels/cpu/dataset/map.h"
#include "kernels/cpu/dataset/text.h"
#include "kernels/cpu/move.h"

#define FIRST_BYTES ((int64_t)1 << 20)  // initial allocation per component, at most

rn_status_t rn_data_batch_init(rn_data_batch_t* batch, rn_data_iterator_t* iterator,
                               int32_t component_count, int64_t limit) {
  batch->memory = iterator->dataset->node->memory;
  batch->component_count = component_count;
  batch->limit = limit;
  return rn_data_row(iterator, component_count, &batch->parts);
}

void rn_data_batch_clear(rn_data_batch_t* batch) {
  rn_data_row_clear(batch->parts, batch->component_count);
  batch->count = batch->capacity = 0;
}

static rn_status_t create_part(const rn_data_batch_t* batch, const rn_tensor_t* element,
                               int64_t capacity, rn_tensor_t* out) {
  int64_t dims[RN_MAX_RANK];
  if (element->rank >= RN_MAX_RANK)
    return rn_invalid_argument("Elements of rank %d cannot be batched", element->rank);
  dims[0] = capacity;
  for (int d = 0; d < element->rank; ++d) dims[d + 1] = rn_tensor_dim(element, d);
  rn_shape_t shape = {element->rank + 1, dims};
  if (element->dtype == RN_STRING) return rn_data_texts_create(batch->memory, shape, out);
  return rn_tensor_create(batch->memory, element->dtype, shape, out);
}

// Moves |count| rows: strings and objects change their owner.
static rn_status_t move_part(rn_tensor_t* from, rn_tensor_t* to, int64_t count) {
  if (from->dtype == RN_STRING) {
    rn_data_texts_move(from, to, count);
    return RN_OK;
  }
  return count ? rn_move_row(from->dtype, from->data, to->data, count) : RN_OK;
}

static int64_t larger_capacity(const rn_data_batch_t* batch, const rn_tensor_t* row) {
  int64_t capacity = batch->capacity * 2;
  if (batch->capacity == 0) {
    int64_t largest = 1;
    for (int32_t c = 0; c < batch->component_count; ++c) {
      int64_t bytes = (int64_t)rn_tensor_bytes(&row[c]);
      if (bytes > largest) largest = bytes;
    }
    capacity = FIRST_BYTES / largest;
    if (capacity < 16) capacity = 16;
  }
  return capacity > batch->limit ? batch->limit : capacity;
}

static rn_status_t grow(rn_data_batch_t* batch, const rn_tensor_t* row) {
  int64_t capacity = larger_capacity(batch, row);
  for (int32_t c = 0; c < batch->component_count; ++c) {
    rn_tensor_t part = {0};
    RN_RETURN_IF_ERROR(create_part(batch, &row[c], capacity, &part));
    if (batch->count) {
      rn_status_t status = move_part(&batch->parts[c], &part, batch->count * row[c].count);
      if (!rn_ok(status)) {
        rn_tensor_clear(&part);
        return status;
      }
    }
    rn_tensor_clear(&batch->parts[c]);
    batch->parts[c] = part;
  }
  batch->capacity = capacity;
  return RN_OK;
}

static rn_status_t check_shape(const rn_data_batch_t* batch, const rn_tensor_t* row, int32_t c) {
  const rn_tensor_t* part = &batch->parts[c];
  rn_shape_t shape = {part->rank - 1, rn_tensor_dims(part) + 1};
  if (part->dtype == row[c].dtype && rn_shape_eq(shape, rn_tensor_shape(&row[c]))) return RN_OK;
  return rn_invalid_argument(
      "Cannot batch tensors with different shapes in component %d. First element had shape %s and "
      "element %lld had shape %s.",
      c, rn_shape_text(shape).text, (long long)batch->count, rn_text_of(&row[c]).text);
}

static rn_status_t put_row(rn_tensor_t* part, rn_tensor_t* element, int64_t place) {
  size_t size = rn_dtype_size(element->dtype);
  char* to = (char*)part->data + (size_t)(place * element->count) * size;
  if (element->dtype == RN_STRING) return rn_data_texts_put(part, place * element->count, element);
  if (rn_dtype_is_plain(element->dtype)) {
    rn_move_bytes(to, element->data, (size_t)element->count * size);
    return RN_OK;
  }
  return rn_move_row(element->dtype, element->data, to, element->count);
}

rn_status_t rn_data_batch_add(rn_data_batch_t* batch, rn_tensor_t* row) {
  rn_status_t status = RN_OK;
  for (int32_t c = 0; batch->count && rn_ok(status) && c < batch->component_count; ++c)
    status = check_shape(batch, row, c);
  if (rn_ok(status) && batch->count == batch->capacity) status = grow(batch, row);
  for (int32_t c = 0; rn_ok(status) && c < batch->component_count; ++c)
    if (row[c].count) status = put_row(&batch->parts[c], &row[c], batch->count);
  if (rn_ok(status)) batch->count++;
  rn_data_row_clear(row, batch->component_count);
  return status;
}

// Copies a part with spare capacity to one that fits, unless little would be saved.
static rn_status_t fit_part(const rn_data_batch_t* batch, rn_tensor_t* part, rn_tensor_t* out) {
  int64_t dims[RN_MAX_RANK];
  memcpy(dims, rn_tensor_dims(part), (size_t)part->rank * sizeof *dims);
  dims[0] = batch->count;
  rn_shape_t shape = {part->rank, dims};
  RN_RETURN_IF_ERROR(part->dtype == RN_STRING
                         ? rn_data_texts_create(batch->memory, shape, out)
                         : rn_tensor_create(batch->memory, part->dtype, shape, out));
  return out->count ? move_part(part, out, out->count) : RN_OK;
}

rn_status_t rn_data_batch_take(rn_data_batch_t* batch, rn_tensor_t* out) {
  rn_status_t status = RN_OK;
  for (int32_t c = 0; rn_ok(status) && c < batch->component_count; ++c) {
    if (batch->count < batch->capacity) {
      status = fit_part(batch, &batch->parts[c], &out[c]);
    } else {
      out[c] = batch->parts[c];
      batch->parts[c] = (rn_tensor_t){0};
    }
  }
  if (!rn_ok(status)) rn_data_row_clear(out, batch->component_count);
  rn_data_batch_clear(batch);
  return status;
}

// The datasets.
typedef struct dataset_batch_t {
  rn_dataset_t base;
  rn_dataset_t* input;   // Borrowed from the inputs, or |mapped|
  rn_dataset_t* mapped;  // Owned; for MapAndBatch
  int64_t size;
  bool drops_remainder;
} dataset_batch_t;

typedef struct batch_iterator_t {
  rn_data_iterator_t base;
  rn_data_source_t source;
  rn_tensor_t* row;
  rn_data_batch_t batch;
} batch_iterator_t;

static rn_status_t read_size(rn_dataset_t* dataset) {
  dataset_batch_t* batch = (dataset_batch_t*)dataset;
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "batch_size", &batch->size));
  if (batch->size <= 0) return rn_invalid_argument("Batch size must be greater than zero.");
  int64_t drops = 0;
  if (rn_data_has_input(dataset, "drop_remainder"))
    RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "drop_remainder", &drops));
  batch->drops_remainder = drops != 0;
  return batch->input->component_count == dataset->component_count
             ? RN_OK
             : rn_invalid_argument("%s has %d input components, but %d output components",
                                   dataset->node->op->name, batch->input->component_count,
                                   dataset->component_count);
}

static rn_status_t batch_open(rn_dataset_t* dataset) {
  RN_RETURN_IF_ERROR(
      rn_data_upstream(dataset, "input_dataset", &((dataset_batch_t*)dataset)->input));
  return read_size(dataset);
}

static int64_t batch_cardinality(const rn_dataset_t* dataset) {
  const dataset_batch_t* batch = (const dataset_batch_t*)dataset;
  int64_t n = rn_dataset_cardinality(batch->input);
  if (n < 0) return n;
  return n / batch->size + (n % batch->size != 0 && !batch->drops_remainder);
}

static rn_status_t batch_start(rn_data_iterator_t* iterator) {
  batch_iterator_t* own = (batch_iterator_t*)iterator;
  const dataset_batch_t* batch = (const dataset_batch_t*)iterator->dataset;
  int32_t count = batch->base.component_count;
  RN_RETURN_IF_ERROR(rn_data_row(iterator, count, &own->row));
  RN_RETURN_IF_ERROR(rn_data_batch_init(&own->batch, iterator, count, batch->size));
  RN_RETURN_IF_ERROR(rn_data_source_start(&own->source, iterator, batch->input));
  rn_data_files_into_batches(own->source.iterator);
  return RN_OK;
}

static void batch_stop(rn_data_iterator_t* iterator) {
  batch_iterator_t* own = (batch_iterator_t*)iterator;
  rn_data_source_stop(&own->source);
  rn_data_row_clear(own->row, iterator->dataset->component_count);
  rn_data_batch_clear(&own->batch);
}

// As in stock, an error discards the elements collected so far.
static bool batch_next(rn_data_iterator_t* iterator) {
  batch_iterator_t* own = (batch_iterator_t*)iterator;
  const dataset_batch_t* batch = (const dataset_batch_t*)iterator->dataset;
  rn_status_t status = RN_OK;
  for (;;) {
    if (iterator->phase == 0) {
      iterator->phase = 1;
      if (!rn_data_ask(&own->source, own->row)) return false;
    }
    iterator->phase = 0;
    status = own->source.request.status;
    if (own->source.request.is_end || !rn_ok(status)) break;
    status = rn_data_batch_add(&own->batch, own->row);
    if (!rn_ok(status) || own->batch.count == batch->size) break;
  }
  bool is_full = own->batch.count == batch->size;
  if (rn_ok(status) && (own->batch.count == 0 || (!is_full && batch->drops_remainder))) {
    rn_data_batch_clear(&own->batch);
    return rn_data_end(iterator);
  }
  if (rn_ok(status))
    status = rn_data_batch_take(&own->batch, iterator->asked->out);
  else
    rn_data_batch_clear(&own->batch);
  return rn_data_finish(iterator, status);
}

static rn_status_t batch_get(rn_dataset_t* dataset, int64_t index, rn_step_t* step,
                             rn_tensor_t* out) {
  const dataset_batch_t* batch = (const dataset_batch_t*)dataset;
  rn_allocator_t allocator = dataset->node->allocator;
  int32_t width = dataset->component_count;
  int64_t first = index * batch->size, total = rn_dataset_cardinality(batch->input);
  int64_t count = total - first < batch->size ? total - first : batch->size;
  rn_tensor_t* rows = NULL;  // the element, then the batch
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, 2 * (size_t)width, &rows));
  rn_data_batch_t made = {.memory = dataset->node->memory,
                          .component_count = width,
                          .parts = rows + width,
                          .limit = count};
  rn_status_t status = RN_OK;
  for (int64_t i = 0; rn_ok(status) && i < count; ++i) {
    status = rn_dataset_get(batch->input, first + i, step, rows);
    if (rn_ok(status)) status = rn_data_batch_add(&made, rows);
  }
  if (rn_ok(status)) status = rn_data_batch_take(&made, out);
  rn_data_row_clear(rows, 2 * width);
  RN_FREE_ARRAY(allocator, rows, 2 * width);
  return status;
}

static rn_status_t batch_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  return rn_data_put_iterator(writer, ((batch_iterator_t*)iterator)->source.iterator);
}

static rn_status_t batch_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  rn_data_source_t* source = &((batch_iterator_t*)iterator)->source;
  RN_RETURN_IF_ERROR(rn_data_restore_source(reader, source, iterator,
                                            ((const dataset_batch_t*)iterator->dataset)->input));
  if (source->iterator) rn_data_files_into_batches(source->iterator);
  return RN_OK;
}

#define BATCH                                                                                     \
  .dataset_size = sizeof(dataset_batch_t), .iterator_size = sizeof(batch_iterator_t),             \
  .cardinality = batch_cardinality, .start = batch_start, .stop = batch_stop, .next = batch_next, \
  .save = batch_save, .restore = batch_restore, .get = batch_get

const rn_data_kind_t rn_data_kind_batch = {BATCH, .open = batch_open};

// Batches over a map dataset of the same node.
static rn_status_t map_and_batch_open(rn_dataset_t* dataset) {
  dataset_batch_t* batch = (dataset_batch_t*)dataset;
  rn_data_node_t* node = dataset->node;
  const rn_tensor_t** inputs = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(node->allocator, (size_t)node->input_count, &inputs));
  for (int32_t i = 0; i < node->input_count; ++i) inputs[i] = &dataset->inputs[i];
  rn_status_t status =
      rn_dataset_create(node, &rn_data_kind_parallel_map, dataset->host, inputs, &batch->mapped);
  RN_FREE_ARRAY(node->allocator, inputs, node->input_count);
  RN_RETURN_IF_ERROR(status);
  batch->input = batch->mapped;
  return read_size(dataset);
}

static void map_and_batch_close(rn_dataset_t* dataset) {
  rn_dataset_release(((dataset_batch_t*)dataset)->mapped);
}

const rn_data_kind_t rn_data_kind_map_and_batch = {BATCH, .open = map_and_batch_open,
                                                   .close = map_and_batch_close};

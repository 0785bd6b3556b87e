// DenseToSparseBatchDataset: elements of different sizes become one sparse tensor of the shape
// [elements, row shape]: a vector of three variants, its indices, values and shape.
#include "kernels/cpu/array.h"
#include "kernels/cpu/dataset/window.h"
#include "kernels/cpu/list/tensor_variant.h"
#include "kernels/cpu/move.h"

typedef struct sparse_batch_t {
  rn_dataset_t base;
  rn_dataset_t* input;
  int64_t size;
  rn_shape_t row;  // -1: as large as the largest element; borrowed from the inputs
} sparse_batch_t;

typedef struct sparse_batch_iterator_t {
  rn_data_iterator_t base;
  rn_data_source_t source;
  rn_tensor_t* row;
  rn_data_rows_t rows;
} sparse_batch_iterator_t;

static rn_status_t sparse_batch_open(rn_dataset_t* dataset) {
  sparse_batch_t* batch = (sparse_batch_t*)dataset;
  RN_RETURN_IF_ERROR(rn_data_upstream(dataset, "input_dataset", &batch->input));
  if (batch->input->component_count != 1)
    return rn_invalid_argument(
        "DenseToSparseBatchDataset only supports datasets with a single component");
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "batch_size", &batch->size));
  if (batch->size <= 0) return rn_invalid_argument("Batch size must be greater than zero.");
  const rn_tensor_t* row = rn_data_input(dataset, "row_shape", NULL);
  if (row->rank != 1) return rn_invalid_argument("row_shape must be a vector");
  if (row->count >= RN_MAX_RANK)
    return rn_invalid_argument("row_shape has %lld dimensions, more than %d", (long long)row->count,
                               RN_MAX_RANK - 1);
  batch->row = (rn_shape_t){(int32_t)row->count, RN_DATA(row, const int64_t)};
  for (int32_t d = 0; d < batch->row.rank; ++d)
    if (batch->row.dims[d] < -1)
      return rn_invalid_argument("Dimension %lld must be >= -1", (long long)batch->row.dims[d]);
  return RN_OK;
}

static int64_t sparse_batch_cardinality(const rn_dataset_t* dataset) {
  const sparse_batch_t* batch = (const sparse_batch_t*)dataset;
  int64_t n = rn_dataset_cardinality(batch->input);
  return n < 0 ? n : n / batch->size + (n % batch->size != 0);
}

static rn_status_t sparse_batch_start(rn_data_iterator_t* iterator) {
  sparse_batch_iterator_t* own = (sparse_batch_iterator_t*)iterator;
  own->rows =
      (rn_data_rows_t){.allocator = iterator->dataset->node->allocator, .component_count = 1};
  RN_RETURN_IF_ERROR(rn_data_row(iterator, 1, &own->row));
  return rn_data_source_start(&own->source, iterator,
                              ((const sparse_batch_t*)iterator->dataset)->input);
}

static void sparse_batch_stop(rn_data_iterator_t* iterator) {
  sparse_batch_iterator_t* own = (sparse_batch_iterator_t*)iterator;
  rn_data_source_stop(&own->source);
  rn_data_row_clear(own->row, 1);
  rn_data_rows_clear(&own->rows);
}

// Checks all elements, counts their values, and completes the shape of a row.
static rn_status_t measure(const sparse_batch_iterator_t* own, int64_t* out_total, int64_t* dims) {
  const sparse_batch_t* batch = (const sparse_batch_t*)own->base.dataset;
  *out_total = 0;
  for (int32_t d = 0; d < batch->row.rank; ++d)
    dims[d] = batch->row.dims[d] < 0 ? 0 : batch->row.dims[d];
  for (size_t i = 0; i < own->rows.list.count; ++i) {
    const rn_tensor_t* element = own->rows.list.items[i];
    if (element->rank != batch->row.rank)
      return rn_invalid_argument(
          "Input element had shape (%s) that is incompatible with the row shape (%s).",
          rn_text_of(element).text, rn_shape_text(batch->row).text);
    for (int32_t d = 0; d < element->rank; ++d) {
      int64_t dim = rn_tensor_dim(element, d);
      if (batch->row.dims[d] >= 0 && dim > batch->row.dims[d])
        return rn_data_loss("Input element had shape (%s) that is larger than the row shape (%s).",
                            rn_text_of(element).text, rn_shape_text(batch->row).text);
      if (dim > dims[d]) dims[d] = dim;
    }
    if (!rn_add_i64_ok(*out_total, element->count, out_total)) return rn_out_of_memory();
  }
  return RN_OK;
}

// Writes the places of the |count| values of element |row| of a batch.
static void put_places(const rn_tensor_t* element, int64_t row, int64_t* out) {
  int64_t at[RN_MAX_RANK] = {0};
  for (int64_t i = 0; i < element->count; ++i) {
    *out++ = row;
    for (int32_t d = 0; d < element->rank; ++d) *out++ = at[d];
    for (int32_t d = element->rank - 1; d >= 0; --d) {
      if (++at[d] < rn_tensor_dim(element, d)) break;
      at[d] = 0;
    }
  }
}

static rn_status_t fill(const sparse_batch_iterator_t* own, rn_tensor_t* parts) {
  const sparse_batch_t* batch = (const sparse_batch_t*)own->base.dataset;
  rn_allocator_t memory = batch->base.node->memory;
  rn_dtype_t dtype = batch->input->types[0];
  int64_t total = 0, rank = batch->row.rank + 1, shape[RN_MAX_RANK] = {0}, first = 0;
  RN_RETURN_IF_ERROR(measure(own, &total, shape + 1));
  shape[0] = (int64_t)own->rows.list.count;
  int64_t dims[2] = {total, rank};
  RN_RETURN_IF_ERROR(rn_tensor_create(memory, RN_INT64, (rn_shape_t){2, dims}, &parts[0]));
  RN_RETURN_IF_ERROR(rn_tensor_create(memory, dtype, (rn_shape_t){1, dims}, &parts[1]));
  RN_RETURN_IF_ERROR(rn_tensor_create(memory, RN_INT64, (rn_shape_t){1, &rank}, &parts[2]));
  memcpy(parts[2].data, shape, (size_t)rank * sizeof *shape);
  for (int64_t i = 0; i < shape[0]; ++i) {
    const rn_tensor_t* element = own->rows.list.items[i];
    if (element->dtype != dtype)
      return rn_invalid_argument("An element has type %s instead of %s",
                                 rn_dtype_name(element->dtype), rn_dtype_name(dtype));
    put_places(element, i, RN_DATA(&parts[0], int64_t) + first * rank);
    RN_RETURN_IF_ERROR(rn_move_row(dtype, element->data,
                                   (char*)parts[1].data + (size_t)first * rn_dtype_size(dtype),
                                   element->count));
    first += element->count;
  }
  return RN_OK;
}

static rn_status_t give(const sparse_batch_iterator_t* own, rn_tensor_t* out) {
  const rn_data_node_t* node = own->base.dataset->node;
  rn_tensor_t parts[3] = {{0}};
  const int64_t three = 3;
  rn_status_t status = fill(own, parts);
  if (rn_ok(status))
    status = rn_tensor_create(node->memory, RN_VARIANT, (rn_shape_t){1, &three}, out);
  for (int p = 0; rn_ok(status) && p < 3; ++p)
    status = rn_tensor_variant_create(node->allocator, &parts[p], &RN_DATA(out, rn_object_t*)[p]);
  rn_data_row_clear(parts, 3);
  if (!rn_ok(status)) rn_tensor_clear(out);
  return status;
}

static bool sparse_batch_next(rn_data_iterator_t* iterator) {
  sparse_batch_iterator_t* own = (sparse_batch_iterator_t*)iterator;
  const sparse_batch_t* batch = (const sparse_batch_t*)iterator->dataset;
  rn_status_t status = RN_OK;
  for (;;) {
    if (iterator->phase == 0) {
      iterator->phase = 1;
      if (!rn_data_ask(&own->source, own->row)) return false;
    }
    iterator->phase = 0;
    status = own->source.request.status;
    if (own->source.request.is_end || !rn_ok(status)) break;
    status = rn_data_rows_push(&own->rows, own->row);
    if (!rn_ok(status) || (int64_t)own->rows.list.count == batch->size) break;
  }
  if (rn_ok(status) && own->rows.list.count == 0) return rn_data_end(iterator);
  if (rn_ok(status)) status = give(own, iterator->asked->out);
  rn_data_row_clear(own->row, 1);
  rn_data_rows_drop(&own->rows, own->rows.list.count);
  return rn_data_finish(iterator, status);
}

static rn_status_t sparse_batch_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  return rn_data_put_iterator(writer, ((sparse_batch_iterator_t*)iterator)->source.iterator);
}

static rn_status_t sparse_batch_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  return rn_data_restore_source(reader, &((sparse_batch_iterator_t*)iterator)->source, iterator,
                                ((const sparse_batch_t*)iterator->dataset)->input);
}

const rn_data_kind_t rn_data_kind_sparse_batch = {.dataset_size = sizeof(sparse_batch_t),
                                                  .iterator_size = sizeof(sparse_batch_iterator_t),
                                                  .open = sparse_batch_open,
                                                  .cardinality = sparse_batch_cardinality,
                                                  .start = sparse_batch_start,
                                                  .stop = sparse_batch_stop,
                                                  .next = sparse_batch_next,
                                                  .save = sparse_batch_save,
                                                  .restore = sparse_batch_restore};

// PaddedBatch: pads elements of different shapes to one shape.
#include "kernels/cpu/array.h"
#include "kernels/cpu/dataset/window.h"
#include "kernels/cpu/move.h"

typedef struct padded_t {
  rn_dataset_t base;
  rn_dataset_t* input;
  int64_t size;
  bool drops_remainder;
  const rn_tensor_t* shapes;  // one vector per component
  const rn_tensor_t* values;  // one scalar per component
} padded_t;

typedef struct padded_iterator_t {
  rn_data_iterator_t base;
  rn_data_source_t source;
  rn_tensor_t* arriving;
  rn_data_rows_t rows;
} padded_iterator_t;

static rn_status_t check_padding(const rn_dataset_t* dataset) {
  const padded_t* padded = (const padded_t*)dataset;
  for (int32_t c = 0; c < dataset->component_count; ++c) {
    const rn_tensor_t *shape = &padded->shapes[c], *value = &padded->values[c];
    if (shape->rank != 1) return rn_invalid_argument("All padded shapes must be vectors");
    if (shape->count >= RN_MAX_RANK)
      return rn_invalid_argument("Padded shape %d has too many dimensions", c);
    for (int64_t d = 0; d < shape->count; ++d)
      if (rn_int_at(shape, d) < -1)
        return rn_invalid_argument("Padded shape %d has a dimension of %lld", c,
                                   (long long)rn_int_at(shape, d));
    if (value->rank != 0) return rn_invalid_argument("All padding values must be scalars");
    if (value->dtype != dataset->types[c])
      return rn_invalid_argument(
          "Mismatched type between padding value %d and input dataset's component %d: %s vs. %s", c,
          c, rn_dtype_name(value->dtype), rn_dtype_name(dataset->types[c]));
  }
  return RN_OK;
}

static rn_status_t padded_open(rn_dataset_t* dataset) {
  padded_t* padded = (padded_t*)dataset;
  RN_RETURN_IF_ERROR(rn_data_upstream(dataset, "input_dataset", &padded->input));
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "batch_size", &padded->size));
  if (padded->size <= 0) return rn_invalid_argument("Batch size must be greater than zero.");
  int64_t drops = 0;
  if (rn_data_has_input(dataset, "drop_remainder"))
    RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "drop_remainder", &drops));
  padded->drops_remainder = drops != 0;
  int32_t shape_count = 0, value_count = 0, count = padded->input->component_count;
  padded->shapes = rn_data_input(dataset, "padded_shapes", &shape_count);
  padded->values = rn_data_input(dataset, "padding_values", &value_count);
  if (shape_count != count)
    return rn_invalid_argument(
        "Number of padded shapes (%d) must match the number of components in the input dataset's "
        "elements (%d)",
        shape_count, count);
  if (value_count != count)
    return rn_invalid_argument(
        "Number of padding values (%d) must match the number of components in the input dataset's "
        "elements (%d)",
        value_count, count);
  if (count != dataset->component_count)
    return rn_invalid_argument("%s has %d input components, but %d output components",
                               dataset->node->op->name, count, dataset->component_count);
  return check_padding(dataset);
}

static int64_t padded_cardinality(const rn_dataset_t* dataset) {
  const padded_t* padded = (const padded_t*)dataset;
  int64_t n = rn_dataset_cardinality(padded->input);
  if (n < 0) return n;
  return n / padded->size + (n % padded->size != 0 && !padded->drops_remainder);
}

static rn_status_t padded_start(rn_data_iterator_t* iterator) {
  padded_iterator_t* own = (padded_iterator_t*)iterator;
  int32_t count = iterator->dataset->component_count;
  own->rows =
      (rn_data_rows_t){.allocator = iterator->dataset->node->allocator, .component_count = count};
  RN_RETURN_IF_ERROR(rn_data_row(iterator, count, &own->arriving));
  return rn_data_source_start(&own->source, iterator, ((const padded_t*)iterator->dataset)->input);
}

static void padded_stop(rn_data_iterator_t* iterator) {
  padded_iterator_t* own = (padded_iterator_t*)iterator;
  rn_data_source_stop(&own->source);
  rn_data_row_clear(own->arriving, iterator->dataset->component_count);
  rn_data_rows_clear(&own->rows);
}

// The shape of component |c| of the batch: unspecified sizes are the largest among its elements.
static rn_status_t batch_shape(const padded_iterator_t* own, int32_t c, int64_t* dims) {
  const padded_t* padded = (const padded_t*)own->base.dataset;
  const rn_tensor_t* wanted = &padded->shapes[c];
  dims[0] = (int64_t)own->rows.list.count;
  for (int64_t d = 0; d < wanted->count; ++d) {
    int64_t size = rn_int_at(wanted, d);
    dims[d + 1] = size < 0 ? 0 : size;
  }
  for (size_t i = 0; i < own->rows.list.count; ++i) {
    const rn_tensor_t* element = &own->rows.list.items[i][c];
    if (element->dtype != padded->base.types[c])
      return rn_invalid_argument("Component %d is %s, not %s", c, rn_dtype_name(element->dtype),
                                 rn_dtype_name(padded->base.types[c]));
    if (element->rank != wanted->count)
      return rn_invalid_argument(
          "All elements in a batch must have the same rank as the padded shape for component%d: "
          "expected rank %lld got element with rank %d",
          c, (long long)wanted->count, element->rank);
    for (int d = 0; d < element->rank; ++d) {
      int64_t size = rn_tensor_dim(element, d);
      if (rn_int_at(wanted, d) < 0 && size > dims[d + 1]) dims[d + 1] = size;
      if (size > dims[d + 1])
        return rn_data_loss("Attempted to pad to a smaller size than the input element.");
    }
  }
  return RN_OK;
}

static bool same_sizes(const rn_tensor_t* element, const int64_t* dims) {
  for (int d = 0; d < element->rank; ++d)
    if (rn_tensor_dim(element, d) != dims[d]) return false;
  return true;
}

// Copies |element| into the corner of a box of |dims| at |to|.
static rn_status_t put_corner(const rn_tensor_t* element, const int64_t* dims, char* to) {
  rn_move_t move;
  rn_move_begin(&move);
  for (int d = 0; d < element->rank; ++d)
    rn_move_add(&move, rn_tensor_dim(element, d),
                rn_dims_product(rn_tensor_dims(element), d + 1, element->rank),
                rn_dims_product(dims, d + 1, element->rank));
  return rn_move_run(&move, NULL, element->dtype, element->data, to);
}

static rn_status_t make_component(const padded_iterator_t* own, int32_t c, rn_tensor_t* out) {
  const padded_t* padded = (const padded_t*)own->base.dataset;
  int64_t dims[RN_MAX_RANK];
  RN_RETURN_IF_ERROR(batch_shape(own, c, dims));
  rn_dtype_t dtype = padded->base.types[c];
  rn_shape_t shape = {(int32_t)padded->shapes[c].count + 1, dims};
  RN_RETURN_IF_ERROR(rn_tensor_create(padded->base.node->memory, dtype, shape, out));
  if (out->count == 0) return RN_OK;
  int64_t width = out->count / dims[0];
  bool is_even = true;
  for (size_t i = 0; is_even && i < own->rows.list.count; ++i)
    is_even = same_sizes(&own->rows.list.items[i][c], dims + 1);
  if (!is_even)
    RN_RETURN_IF_ERROR(rn_move_fill(NULL, dtype, padded->values[c].data, out->data, out->count));
  for (size_t i = 0; i < own->rows.list.count; ++i) {
    const rn_tensor_t* element = &own->rows.list.items[i][c];
    char* to = (char*)out->data + i * (size_t)width * rn_dtype_size(dtype);
    if (element->count) RN_RETURN_IF_ERROR(put_corner(element, dims + 1, to));
  }
  return RN_OK;
}

static rn_status_t make_batch(padded_iterator_t* own, rn_tensor_t* out) {
  rn_status_t status = RN_OK;
  int32_t count = own->base.dataset->component_count;
  for (int32_t c = 0; rn_ok(status) && c < count; ++c) status = make_component(own, c, &out[c]);
  if (!rn_ok(status)) rn_data_row_clear(out, count);
  rn_data_rows_drop(&own->rows, own->rows.list.count);
  return status;
}

static bool padded_next(rn_data_iterator_t* iterator) {
  padded_iterator_t* own = (padded_iterator_t*)iterator;
  const padded_t* padded = (const padded_t*)iterator->dataset;
  rn_status_t status = RN_OK;
  for (;;) {
    if (iterator->phase == 0) {
      iterator->phase = 1;
      if (!rn_data_ask(&own->source, own->arriving)) return false;
    }
    iterator->phase = 0;
    status = own->source.request.status;
    if (own->source.request.is_end || !rn_ok(status)) break;
    status = rn_data_rows_push(&own->rows, own->arriving);
    if (!rn_ok(status) || (int64_t)own->rows.list.count == padded->size) break;
  }
  size_t have = own->rows.list.count;
  bool is_short = (int64_t)have < padded->size;
  if (rn_ok(status) && (have == 0 || (is_short && padded->drops_remainder))) {
    rn_data_rows_drop(&own->rows, have);
    return rn_data_end(iterator);
  }
  if (rn_ok(status)) {
    status = make_batch(own, iterator->asked->out);
  } else {
    rn_data_row_clear(own->arriving, padded->base.component_count);
    rn_data_rows_drop(&own->rows, have);
  }
  return rn_data_finish(iterator, status);
}

static rn_status_t padded_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  return rn_data_put_iterator(writer, ((padded_iterator_t*)iterator)->source.iterator);
}

static rn_status_t padded_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  return rn_data_restore_source(reader, &((padded_iterator_t*)iterator)->source, iterator,
                                ((const padded_t*)iterator->dataset)->input);
}

const rn_data_kind_t rn_data_kind_padded_batch = {.dataset_size = sizeof(padded_t),
                                                  .iterator_size = sizeof(padded_iterator_t),
                                                  .open = padded_open,
                                                  .cardinality = padded_cardinality,
                                                  .start = padded_start,
                                                  .stop = padded_stop,
                                                  .next = padded_next,
                                                  .save = padded_save,
                                                  .restore = padded_restore};

// Datasets made from their inputs alone: ranges, tensors, slices of tensors, lists.
#include "kernels/cpu/array.h"
#include "kernels/cpu/dataset/data.h"
#include "kernels/cpu/move.h"
#include "kernels/cpu/sparse/sparse.h"

// A range of numbers.
typedef struct sources_range_t {
  rn_dataset_t base;
  int64_t start, stop, step;
} sources_range_t;

typedef struct range_iterator_t {
  rn_data_iterator_t base;
  int64_t next;
  bool is_over;
} range_iterator_t;

static rn_status_t range_open(rn_dataset_t* dataset) {
  sources_range_t* range = (sources_range_t*)dataset;
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "start", &range->start));
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "stop", &range->stop));
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "step", &range->step));
  return range->step == 0 ? rn_invalid_argument("step must be a non-zero integer.") : RN_OK;
}

static int64_t range_cardinality(const rn_dataset_t* dataset) {
  const sources_range_t* range = (const sources_range_t*)dataset;
  bool up = range->step > 0;
  if (up ? range->start >= range->stop : range->start <= range->stop) return 0;
  // Distances may not fit into 63 bits.
  uint64_t distance = up ? (uint64_t)range->stop - (uint64_t)range->start
                         : (uint64_t)range->start - (uint64_t)range->stop;
  uint64_t step = up ? (uint64_t)range->step : 0 - (uint64_t)range->step;
  uint64_t count = (distance - 1) / step + 1;
  return count > INT64_MAX ? INT64_MAX : (int64_t)count;
}

static rn_status_t range_start(rn_data_iterator_t* iterator) {
  range_iterator_t* own = (range_iterator_t*)iterator;
  own->next = ((const sources_range_t*)iterator->dataset)->start;
  return RN_OK;
}

static bool range_next(rn_data_iterator_t* iterator) {
  range_iterator_t* own = (range_iterator_t*)iterator;
  const sources_range_t* range = (const sources_range_t*)iterator->dataset;
  if (own->is_over || (range->step > 0 ? own->next >= range->stop : own->next <= range->stop))
    return rn_data_end(iterator);
  rn_status_t status = rn_data_make_scalar(range->base.node->memory, range->base.types[0],
                                           own->next, iterator->asked->out);
  if (rn_ok(status)) own->is_over = !rn_add_i64_ok(own->next, range->step, &own->next);
  return rn_data_finish(iterator, status);
}

static rn_status_t range_get(rn_dataset_t* dataset, int64_t index, rn_step_t* step,
                             rn_tensor_t* out) {
  (void)step;
  const sources_range_t* range = (const sources_range_t*)dataset;
  return rn_data_make_scalar(dataset->node->memory, dataset->types[0],
                             range->start + index * range->step, out);
}

static rn_status_t range_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  range_iterator_t* own = (range_iterator_t*)iterator;
  rn_data_put_int(writer, own->next);
  rn_data_put_int(writer, own->is_over);
  return RN_OK;
}

static rn_status_t range_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  range_iterator_t* own = (range_iterator_t*)iterator;
  int64_t is_over = 0;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &own->next));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &is_over));
  own->is_over = is_over != 0;
  return RN_OK;
}

const rn_data_kind_t rn_data_kind_range = {.dataset_size = sizeof(sources_range_t),
                                           .iterator_size = sizeof(range_iterator_t),
                                           .open = range_open,
                                           .cardinality = range_cardinality,
                                           .start = range_start,
                                           .next = range_next,
                                           .save = range_save,
                                           .restore = range_restore,
                                           .get = range_get};

// Iterators whose whole state is one number.
typedef struct sources_counter_t {
  rn_data_iterator_t base;
  int64_t next;
} sources_counter_t;

static rn_status_t counter_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  rn_data_put_int(writer, ((sources_counter_t*)iterator)->next);
  return RN_OK;
}

static rn_status_t counter_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  sources_counter_t* own = (sources_counter_t*)iterator;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &own->next));
  return own->next < 0 ? rn_data_bad_state() : RN_OK;
}

// TensorDataset: the tensors are its one element.
static rn_status_t check_components(const rn_dataset_t* dataset) {
  if (dataset->node->input_count != dataset->component_count)
    return rn_invalid_argument("A %s of %d components got %d", dataset->node->op->name,
                               dataset->component_count, dataset->node->input_count);
  return RN_OK;
}

// Checks that component |c| or its rows match the attributes.
static rn_status_t check_component(const rn_dataset_t* dataset, int32_t c, int leading) {
  const rn_tensor_t* tensor = &dataset->inputs[c];
  rn_shape_t shape = {tensor->rank - leading, rn_tensor_dims(tensor) + leading};
  if (tensor->dtype == dataset->types[c] && rn_shape_compatible(dataset->shapes[c], shape))
    return RN_OK;
  rn_strbuf_t text;
  rn_strbuf_init(&text, dataset->node->allocator);
  rn_strbuf_printf(&text, "Incompatible shapes at component %d: expected ", c);
  rn_shape_print(&text, dataset->shapes[c]);
  rn_status_t status = rn_invalid_argument("%.*s but got %s.", RN_STR_ARGS(rn_strbuf_view(&text)),
                                           rn_shape_text(shape).text);
  rn_strbuf_clear(&text);
  return status;
}

static int64_t one(const rn_dataset_t* dataset) {
  (void)dataset;
  return 1;
}

static rn_status_t tensors_get(rn_dataset_t* dataset, int64_t index, rn_step_t* step,
                               rn_tensor_t* out) {
  (void)index, (void)step;
  rn_status_t status = RN_OK;
  for (int32_t c = 0; rn_ok(status) && c < dataset->component_count; ++c)
    status = rn_tensor_share(&dataset->inputs[c], &out[c]);
  if (!rn_ok(status)) rn_data_row_clear(out, dataset->component_count);
  return status;
}

// The next of |count| elements that can be had by index.
static bool next_by_index(rn_data_iterator_t* iterator, int64_t count) {
  sources_counter_t* own = (sources_counter_t*)iterator;
  if (own->next >= count) return rn_data_end(iterator);
  rn_dataset_t* dataset = iterator->dataset;
  rn_status_t status =
      dataset->kind->get(dataset, own->next, iterator->asked->step, iterator->asked->out);
  own->next += rn_ok(status);
  return rn_data_finish(iterator, status);
}

static bool tensors_next(rn_data_iterator_t* iterator) { return next_by_index(iterator, 1); }

static rn_status_t tensors_open(rn_dataset_t* dataset) {
  RN_RETURN_IF_ERROR(check_components(dataset));
  for (int32_t c = 0; c < dataset->component_count; ++c)
    RN_RETURN_IF_ERROR(check_component(dataset, c, 0));
  return RN_OK;
}

const rn_data_kind_t rn_data_kind_tensors = {.dataset_size = sizeof(rn_dataset_t),
                                             .iterator_size = sizeof(sources_counter_t),
                                             .open = tensors_open,
                                             .cardinality = one,
                                             .get = tensors_get,
                                             .next = tensors_next,
                                             .save = counter_save,
                                             .restore = counter_restore};

// TensorSliceDataset: slices along the first dimension.
typedef struct sources_slices_t {
  rn_dataset_t base;
  int64_t count;
} sources_slices_t;

static rn_status_t slices_open(rn_dataset_t* dataset) {
  sources_slices_t* slices = (sources_slices_t*)dataset;
  RN_RETURN_IF_ERROR(check_components(dataset));
  for (int32_t c = 0; c < dataset->component_count; ++c) {
    const rn_tensor_t* tensor = &dataset->inputs[c];
    if (tensor->rank == 0)
      return rn_invalid_argument("All components must be at least 1-dimensional");
    int64_t count = rn_tensor_dim(tensor, 0);
    if (c > 0 && count != slices->count)
      return rn_invalid_argument("All components must have the same size in the 0th dimension");
    slices->count = count;
    RN_RETURN_IF_ERROR(check_component(dataset, c, 1));
  }
  return RN_OK;
}

static int64_t slices_cardinality(const rn_dataset_t* dataset) {
  return ((const sources_slices_t*)dataset)->count;
}

// Row |i| of |tensor|: shared if it meets the alignment of buffers, copied otherwise.
static rn_status_t take_slice(rn_allocator_t memory, const rn_tensor_t* tensor, int64_t i,
                              rn_tensor_t* out) {
  rn_shape_t shape = {tensor->rank - 1, rn_tensor_dims(tensor) + 1};
  int64_t count = tensor->count / rn_tensor_dim(tensor, 0);
  size_t size = (size_t)count * rn_dtype_size(tensor->dtype);
  const char* data = (const char*)tensor->data + (size_t)i * size;
  if (tensor->buffer && size >= 4096 && size % RN_ALIGN == 0 && tensor->dtype != RN_STRING) {
    RN_RETURN_IF_ERROR(rn_tensor_init(out, tensor->dtype, shape));
    out->buffer = tensor->buffer;
    rn_buffer_retain(tensor->buffer);
    out->data = (void*)(uintptr_t)data;
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(rn_tensor_create(memory, tensor->dtype, shape, out));
  rn_status_t status = rn_move_row(tensor->dtype, data, out->data, count);
  if (!rn_ok(status)) rn_tensor_clear(out);
  return status;
}

static rn_status_t slices_get(rn_dataset_t* dataset, int64_t index, rn_step_t* step,
                              rn_tensor_t* out) {
  (void)step;
  rn_status_t status = RN_OK;
  for (int32_t c = 0; rn_ok(status) && c < dataset->component_count; ++c)
    status = take_slice(dataset->node->memory, &dataset->inputs[c], index, &out[c]);
  if (!rn_ok(status)) rn_data_row_clear(out, dataset->component_count);
  return status;
}

static bool slices_next(rn_data_iterator_t* iterator) {
  return next_by_index(iterator, slices_cardinality(iterator->dataset));
}

const rn_data_kind_t rn_data_kind_slices = {.dataset_size = sizeof(sources_slices_t),
                                            .iterator_size = sizeof(sources_counter_t),
                                            .open = slices_open,
                                            .cardinality = slices_cardinality,
                                            .get = slices_get,
                                            .next = slices_next,
                                            .save = counter_save,
                                            .restore = counter_restore};

// Slices of a sparse tensor along its first dimension: indices, values and shape of each. The
// indices are sorted by that dimension.
typedef struct sparse_iterator_t {
  rn_data_iterator_t base;
  int64_t next;    // slice
  int64_t offset;  // of its values
} sparse_iterator_t;

static rn_status_t sparse_open(rn_dataset_t* dataset) {
  const rn_tensor_t *indices = &dataset->inputs[0], *values = &dataset->inputs[1],
                    *shape = &dataset->inputs[2];
  RN_RETURN_IF_ERROR(rn_sparse_check_ranks(indices, values, shape));
  int64_t count = rn_tensor_dim(indices, 0), rank = rn_tensor_dim(indices, 1);
  if (count != values->count)
    return rn_invalid_argument(
        "Number of values must match first dimension of indices. Got %lld values, indices shape: "
        "%s",
        (long long)values->count, rn_text_of(indices).text);
  if (rank != shape->count)
    return rn_invalid_argument(
        "Number of dimensions must match second dimension of indices. Got %lld dimensions, indices "
        "shape: %s",
        (long long)shape->count, rn_text_of(indices).text);
  if (rank < 1) return rn_invalid_argument("The shape argument requires at least one element.");
  if (rank > RN_MAX_RANK) return rn_invalid_argument("Too many dimensions: %lld", (long long)rank);
  const int64_t* places = RN_DATA(indices, const int64_t);
  const int64_t* dims = RN_DATA(shape, const int64_t);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t d = 0; d < rank; ++d)
      if (places[i * rank + d] < 0 || places[i * rank + d] >= dims[d])
        return rn_invalid_argument("indices[%lld] is out of bounds: need 0 <= index < [%lld]",
                                   (long long)i, (long long)dims[d]);
  for (int64_t i = 1; i < count; ++i)
    if (places[i * rank] < places[(i - 1) * rank])
      return rn_unimplemented(
          "The SparseTensor must be ordered in the batch dimension; handling arbitrarily ordered "
          "input is not currently supported.");
  return RN_OK;
}

static int64_t sparse_cardinality(const rn_dataset_t* dataset) {
  return RN_DATA(&dataset->inputs[2], const int64_t)[0];
}

static rn_status_t sparse_slice(sparse_iterator_t* own, int64_t count, rn_tensor_t* out) {
  const rn_dataset_t* dataset = own->base.dataset;
  rn_allocator_t memory = dataset->node->memory;
  const rn_tensor_t *indices = &dataset->inputs[0], *values = &dataset->inputs[1],
                    *shape = &dataset->inputs[2];
  int64_t rank = shape->count, dims[2] = {count, rank - 1};
  RN_RETURN_IF_ERROR(rn_tensor_create(memory, RN_INT64, (rn_shape_t){2, dims}, &out[0]));
  const int64_t* from = RN_DATA(indices, const int64_t) + own->offset * rank;
  for (int64_t i = 0; i < count; ++i)
    for (int64_t d = 1; d < rank; ++d)
      RN_DATA(&out[0], int64_t)[i * (rank - 1) + d - 1] = from[i * rank + d];
  RN_RETURN_IF_ERROR(rn_tensor_create(memory, values->dtype, (rn_shape_t){1, dims}, &out[1]));
  RN_RETURN_IF_ERROR(rn_move_row(
      values->dtype, (const char*)values->data + (size_t)own->offset * rn_dtype_size(values->dtype),
      out[1].data, count));
  RN_RETURN_IF_ERROR(rn_tensor_create(memory, RN_INT64, (rn_shape_t){1, dims + 1}, &out[2]));
  return rn_move_row(RN_INT64, RN_DATA(shape, const int64_t) + 1, out[2].data, rank - 1);
}

static bool sparse_next(rn_data_iterator_t* iterator) {
  sparse_iterator_t* own = (sparse_iterator_t*)iterator;
  const rn_dataset_t* dataset = iterator->dataset;
  if (own->next >= sparse_cardinality(dataset)) return rn_data_end(iterator);
  const rn_tensor_t* indices = &dataset->inputs[0];
  int64_t rank = rn_tensor_dim(indices, 1), total = rn_tensor_dim(indices, 0), count = 0;
  const int64_t* places = RN_DATA(indices, const int64_t);
  while (own->offset + count < total && places[(own->offset + count) * rank] == own->next) ++count;
  rn_status_t status = sparse_slice(own, count, iterator->asked->out);
  if (rn_ok(status)) {
    own->offset += count;
    own->next++;
  } else {
    rn_data_row_clear(iterator->asked->out, 3);
  }
  return rn_data_finish(iterator, status);
}

static rn_status_t sparse_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  rn_data_put_int(writer, ((sparse_iterator_t*)iterator)->next);
  return RN_OK;
}

static rn_status_t sparse_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  sparse_iterator_t* own = (sparse_iterator_t*)iterator;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &own->next));
  if (own->next < 0) return rn_data_bad_state();
  const rn_tensor_t* indices = &iterator->dataset->inputs[0];
  const int64_t* places = RN_DATA(indices, const int64_t);
  int64_t rank = rn_tensor_dim(indices, 1), total = rn_tensor_dim(indices, 0);
  own->offset = 0;
  while (own->offset < total && places[own->offset * rank] < own->next) own->offset++;
  return RN_OK;
}

const rn_data_kind_t rn_data_kind_sparse_slices = {.dataset_size = sizeof(rn_dataset_t),
                                                   .iterator_size = sizeof(sparse_iterator_t),
                                                   .open = sparse_open,
                                                   .cardinality = sparse_cardinality,
                                                   .next = sparse_next,
                                                   .save = sparse_save,
                                                   .restore = sparse_restore,
                                                   .fixed_count = 3};

// ListDataset: the inputs are its elements, one after the other.
static int64_t list_cardinality(const rn_dataset_t* dataset) {
  return dataset->component_count ? dataset->node->input_count / dataset->component_count : 0;
}

static rn_status_t list_open(rn_dataset_t* dataset) {
  int32_t count = dataset->node->input_count, width = dataset->component_count;
  if (!width || count % width != 0)
    return rn_invalid_argument(
        "The number of tensors, %d, is not a multiple of the number of components, %d", count,
        width);
  for (int32_t i = 0; i < count; ++i)
    if (dataset->inputs[i].dtype != dataset->types[i % width])
      return rn_invalid_argument("Tensor %d is of type %s, but component %d is of type %s", i,
                                 rn_dtype_name(dataset->inputs[i].dtype), i % width,
                                 rn_dtype_name(dataset->types[i % width]));
  return RN_OK;
}

static rn_status_t list_get(rn_dataset_t* dataset, int64_t index, rn_step_t* step,
                            rn_tensor_t* out) {
  (void)step;
  int32_t width = dataset->component_count;
  rn_status_t status = RN_OK;
  for (int32_t c = 0; rn_ok(status) && c < width; ++c)
    status = rn_tensor_share(&dataset->inputs[index * width + c], &out[c]);
  if (!rn_ok(status)) rn_data_row_clear(out, width);
  return status;
}

static bool list_next(rn_data_iterator_t* iterator) {
  return next_by_index(iterator, list_cardinality(iterator->dataset));
}

const rn_data_kind_t rn_data_kind_list = {.dataset_size = sizeof(rn_dataset_t),
                                          .iterator_size = sizeof(sources_counter_t),
                                          .open = list_open,
                                          .cardinality = list_cardinality,
                                          .get = list_get,
                                          .next = list_next,
                                          .save = counter_save,
                                          .restore = counter_restore};

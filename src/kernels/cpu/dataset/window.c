// Window datasets, whose elements are datasets of rows in memory.
#include "kernels/cpu/dataset/window.h"

// Rows in memory as a dataset: the content of a window.
typedef struct window_rows_t {
  rn_dataset_t base;
  rn_tensor_t* rows;  // Owned; |count| rows, concatenated
  int64_t count;
} window_rows_t;

typedef struct rows_iterator_t {
  rn_data_iterator_t base;
  int64_t next;
} rows_iterator_t;

static rn_status_t rows_open(rn_dataset_t* dataset) {
  (void)dataset;
  return RN_OK;
}

static void rows_close(rn_dataset_t* dataset) {
  window_rows_t* rows = (window_rows_t*)dataset;
  int64_t total = rows->rows ? rows->count * dataset->component_count : 0;
  for (int64_t i = 0; i < total; ++i) rn_tensor_clear(&rows->rows[i]);
  RN_FREE_ARRAY(dataset->node->allocator, rows->rows, total);
}

static int64_t rows_cardinality(const rn_dataset_t* dataset) {
  return ((const window_rows_t*)dataset)->count;
}

static bool rows_next(rn_data_iterator_t* iterator) {
  rows_iterator_t* own = (rows_iterator_t*)iterator;
  const window_rows_t* rows = (const window_rows_t*)iterator->dataset;
  int32_t count = rows->base.component_count;
  if (own->next >= rows->count) return rn_data_end(iterator);
  rn_status_t status = RN_OK;
  for (int32_t c = 0; rn_ok(status) && c < count; ++c)
    status = rn_tensor_share(&rows->rows[own->next * count + c], &iterator->asked->out[c]);
  if (rn_ok(status))
    own->next++;
  else
    rn_data_row_clear(iterator->asked->out, count);
  return rn_data_finish(iterator, status);
}

static rn_status_t rows_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  rn_data_put_int(writer, ((rows_iterator_t*)iterator)->next);
  return RN_OK;
}

static rn_status_t rows_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  rows_iterator_t* own = (rows_iterator_t*)iterator;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &own->next));
  return own->next < 0 ? rn_data_bad_state() : RN_OK;
}

static const rn_data_kind_t kind_rows = {.dataset_size = sizeof(window_rows_t),
                                         .iterator_size = sizeof(rows_iterator_t),
                                         .open = rows_open,
                                         .close = rows_close,
                                         .cardinality = rows_cardinality,
                                         .next = rows_next,
                                         .save = rows_save,
                                         .restore = rows_restore};

rn_status_t rn_data_rows_dataset(const rn_dataset_t* like, int32_t first, int32_t component_count,
                                 rn_tensor_t* const* rows, int64_t count, rn_dataset_t** out) {
  *out = NULL;
  rn_data_node_t* node = NULL;
  RN_RETURN_IF_ERROR(rn_data_inner_node(like->node, &kind_rows, component_count,
                                        like->types + first, like->shapes + first, &node));
  rn_dataset_t* dataset = NULL;
  rn_status_t status = rn_dataset_create_inner(node, like->host, &dataset);
  rn_object_release(&node->object);
  RN_RETURN_IF_ERROR(status);
  window_rows_t* own = (window_rows_t*)dataset;
  status = RN_NEW_ARRAY(node->allocator, (size_t)(count * component_count), &own->rows);
  if (rn_ok(status)) own->count = count;
  for (int64_t i = 0; rn_ok(status) && i < count; ++i)
    for (int32_t c = 0; rn_ok(status) && c < component_count; ++c)
      status = rn_tensor_share(&rows[i][first + c], &own->rows[i * component_count + c]);
  if (!rn_ok(status)) {
    rn_dataset_release(dataset);
    return status;
  }
  *out = dataset;
  return RN_OK;
}

const rn_dataset_t* rn_data_rows_of(const rn_tensor_t* tensor) {
  if (tensor->dtype != RN_VARIANT || tensor->rank != 0) return NULL;
  rn_dataset_t* dataset = NULL;
  rn_status_t status = rn_dataset_of(tensor, &dataset);
  rn_status_free(status);
  return dataset && dataset->kind == &kind_rows ? dataset : NULL;
}

void rn_data_elements_put(rn_data_writer_t* writer, const rn_dataset_t* dataset) {
  rn_data_put_int(writer, dataset->component_count);
  for (int32_t c = 0; c < dataset->component_count; ++c) {
    rn_data_put_int(writer, dataset->types[c]);
    rn_data_put_int(writer, dataset->shapes[c].rank);
    for (int d = 0; d < dataset->shapes[c].rank; ++d)
      rn_data_put_int(writer, dataset->shapes[c].dims[d]);
  }
}

void rn_data_rows_put(rn_data_writer_t* writer, const rn_dataset_t* dataset) {
  const window_rows_t* rows = (const window_rows_t*)dataset;
  rn_data_elements_put(writer, dataset);
  rn_data_put_int(writer, rows->count);
  for (int64_t i = 0; i < rows->count; ++i)
    rn_data_put_row(writer, rows->rows + i * dataset->component_count, dataset->component_count);
}

rn_status_t rn_data_elements_take(rn_data_reader_t* reader, rn_data_elements_t* out) {
  int64_t count = 0, type = 0, rank = 0;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &count));
  if (count < 0 || count > (int64_t)reader->bytes.size) return rn_data_bad_state();
  out->count = (int32_t)count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&out->arena, (size_t)count, &out->types));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&out->arena, (size_t)count, &out->shapes));
  for (int64_t c = 0; c < count; ++c) {
    RN_RETURN_IF_ERROR(rn_data_take_int(reader, &type));
    RN_RETURN_IF_ERROR(rn_data_take_int(reader, &rank));
    if (type <= 0 || type >= RN_DTYPE_COUNT || rank < -1 || rank > RN_MAX_RANK)
      return rn_data_bad_state();
    int64_t* dims = NULL;
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&out->arena, (size_t)(rank < 0 ? 0 : rank), &dims));
    for (int64_t d = 0; d < rank; ++d) RN_RETURN_IF_ERROR(rn_data_take_int(reader, &dims[d]));
    out->types[c] = (rn_dtype_t)type;
    out->shapes[c] = (rn_shape_t){(int32_t)rank, dims};
  }
  return RN_OK;
}

static rn_status_t take_rows(rn_data_reader_t* reader, rn_data_elements_t* elements,
                             rn_tensor_t* out) {
  RN_RETURN_IF_ERROR(rn_data_elements_take(reader, elements));
  int64_t count = 0;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &count));
  // Each tensor takes at least one byte.
  if (count < 0 || !elements->count || count > (int64_t)reader->bytes.size / elements->count)
    return rn_data_bad_state();
  rn_data_node_t* node = NULL;
  RN_RETURN_IF_ERROR(rn_data_inner_node(reader->dataset->node, &kind_rows, elements->count,
                                        elements->types, elements->shapes, &node));
  rn_dataset_t* dataset = NULL;
  rn_status_t status = rn_dataset_create_inner(node, reader->dataset->host, &dataset);
  rn_object_release(&node->object);
  RN_RETURN_IF_ERROR(status);
  window_rows_t* rows = (window_rows_t*)dataset;
  status = RN_NEW_ARRAY(dataset->node->allocator, (size_t)(count * elements->count), &rows->rows);
  if (rn_ok(status)) rows->count = count;
  for (int64_t i = 0; rn_ok(status) && i < count; ++i) {
    rn_tensor_t* row = rows->rows + i * elements->count;
    status = rn_data_take_row(reader, elements->types, elements->count, row);
    for (int32_t c = 0; rn_ok(status) && c < elements->count; ++c)
      if (!rn_tensor_is_set(&row[c])) status = rn_data_bad_state();
  }
  if (rn_ok(status)) status = rn_dataset_tensor(dataset, out);
  rn_dataset_release(dataset);
  return status;
}

#define MAX_DEPTH 32  // nesting of datasets in datasets

rn_status_t rn_data_rows_take(rn_data_reader_t* reader, rn_tensor_t* out) {
  if (++reader->depth > MAX_DEPTH) return rn_data_bad_state();
  rn_data_elements_t elements = {0};
  rn_arena_init(&elements.arena, reader->dataset->node->allocator);
  rn_status_t status = take_rows(reader, &elements, out);
  rn_arena_clear(&elements.arena);
  reader->depth--;
  return status;
}

// Windows of |size| elements, |stride| apart, starting |shift| apart; one dataset per component.
typedef struct dataset_window_t {
  rn_dataset_t base;
  rn_dataset_t* input;
  int64_t size, shift, stride;
  bool drops_remainder;
} dataset_window_t;

typedef struct window_iterator_t {
  rn_data_iterator_t base;
  rn_data_source_t source;
  rn_data_rows_t rows;  // the current window, and what is read of the next
  rn_tensor_t* arriving;
  int64_t skip;  // elements to skip before the next window
} window_iterator_t;

rn_status_t rn_data_rows_push(rn_data_rows_t* rows, rn_tensor_t* row) {
  RN_RETURN_IF_ERROR(rn_vec_reserve(&rows->list, rows->allocator, rows->list.count + 1));
  rn_tensor_t* own = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(rows->allocator, (size_t)rows->component_count, &own));
  rn_data_row_move(row, own, rows->component_count);
  rows->list.items[rows->list.count++] = own;
  return RN_OK;
}

void rn_data_rows_drop(rn_data_rows_t* rows, size_t count) {
  if (count > rows->list.count) count = rows->list.count;
  for (size_t i = 0; i < count; ++i) {
    rn_data_row_clear(rows->list.items[i], rows->component_count);
    RN_FREE_ARRAY(rows->allocator, rows->list.items[i], rows->component_count);
  }
  rows->list.count -= count;
  if (count && rows->list.count)
    memmove(rows->list.items, rows->list.items + count,
            rows->list.count * sizeof *rows->list.items);
}

void rn_data_rows_clear(rn_data_rows_t* rows) {
  if (!rows->allocator.fn) return;
  rn_data_rows_drop(rows, rows->list.count);
  rn_vec_free(&rows->list, rows->allocator);
}

void rn_data_rows_save(const rn_data_rows_t* rows, rn_data_writer_t* writer) {
  rn_data_put_int(writer, (int64_t)rows->list.count);
  for (size_t i = 0; i < rows->list.count; ++i)
    rn_data_put_row(writer, rows->list.items[i], rows->component_count);
}

rn_status_t rn_data_rows_restore(rn_data_rows_t* rows, rn_data_reader_t* reader,
                                 const rn_dtype_t* types, rn_tensor_t* scratch) {
  int64_t count = 0;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &count));
  rn_data_rows_drop(rows, rows->list.count);
  for (int64_t i = 0; i < count; ++i) {
    rn_status_t status = rn_data_take_row(reader, types, rows->component_count, scratch);
    if (rn_ok(status)) status = rn_data_rows_push(rows, scratch);
    if (!rn_ok(status)) {
      rn_data_row_clear(scratch, rows->component_count);
      return status;
    }
  }
  return count < 0 ? rn_data_bad_state() : RN_OK;
}

static rn_status_t window_open(rn_dataset_t* dataset) {
  dataset_window_t* window = (dataset_window_t*)dataset;
  RN_RETURN_IF_ERROR(rn_data_upstream(dataset, "input_dataset", &window->input));
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "size", &window->size));
  if (window->size <= 0) return rn_invalid_argument("Window size must be greater than zero.");
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "shift", &window->shift));
  if (window->shift <= 0) return rn_invalid_argument("Window shift must be greater than zero.");
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "stride", &window->stride));
  if (window->stride <= 0) return rn_invalid_argument("Window stride must be greater than zero.");
  int64_t drops = 0, span = 0;
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "drop_remainder", &drops));
  window->drops_remainder = drops != 0;
  if (!rn_mul_i64_ok(window->size - 1, window->stride, &span) || span == INT64_MAX)
    return rn_invalid_argument("A window of %lld elements %lld apart is too large",
                               (long long)window->size, (long long)window->stride);
  if (window->input->component_count != dataset->component_count)
    return rn_invalid_argument("%s has %d input components, but %d output components",
                               dataset->node->op->name, window->input->component_count,
                               dataset->component_count);
  for (int32_t c = 0; c < dataset->component_count; ++c)
    if (dataset->types[c] != RN_VARIANT)
      return rn_invalid_argument("The elements of a window dataset must be datasets");
  return RN_OK;
}

static int64_t window_cardinality(const rn_dataset_t* dataset) {
  const dataset_window_t* window = (const dataset_window_t*)dataset;
  int64_t n = rn_dataset_cardinality(window->input);
  if (n < 0) return n;
  int64_t span = (window->size - 1) * window->stride + 1;
  if (!window->drops_remainder) return n / window->shift + (n % window->shift != 0);
  return n < span ? 0 : (n - span) / window->shift + 1;
}

static rn_status_t window_start(rn_data_iterator_t* iterator) {
  window_iterator_t* own = (window_iterator_t*)iterator;
  int32_t count = iterator->dataset->component_count;
  own->rows =
      (rn_data_rows_t){.allocator = iterator->dataset->node->allocator, .component_count = count};
  RN_RETURN_IF_ERROR(rn_data_row(iterator, count, &own->arriving));
  return rn_data_source_start(&own->source, iterator,
                              ((const dataset_window_t*)iterator->dataset)->input);
}

static void window_stop(rn_data_iterator_t* iterator) {
  window_iterator_t* own = (window_iterator_t*)iterator;
  rn_data_source_stop(&own->source);
  rn_data_row_clear(own->arriving, iterator->dataset->component_count);
  rn_data_rows_clear(&own->rows);
}

// Moves the window at the front of the rows to |out|: one dataset per component.
static rn_status_t give_window(window_iterator_t* own, rn_tensor_t* out) {
  const dataset_window_t* window = (const dataset_window_t*)own->base.dataset;
  rn_allocator_t allocator = window->base.node->allocator;
  int64_t have = (int64_t)own->rows.list.count;
  int64_t count = (have + window->stride - 1) / window->stride;
  if (count > window->size) count = window->size;
  rn_tensor_t** rows = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, (size_t)count, &rows));
  for (int64_t i = 0; i < count; ++i) rows[i] = own->rows.list.items[i * window->stride];
  rn_status_t status = RN_OK;
  for (int32_t c = 0; rn_ok(status) && c < window->base.component_count; ++c) {
    rn_dataset_t* part = NULL;
    status = rn_data_rows_dataset(window->input, c, 1, rows, count, &part);
    if (rn_ok(status)) status = rn_data_variant(window->base.node->memory, &part->object, &out[c]);
  }
  RN_FREE_ARRAY(allocator, rows, count);
  if (!rn_ok(status)) rn_data_row_clear(out, window->base.component_count);
  return status;
}

static bool window_next(rn_data_iterator_t* iterator) {
  window_iterator_t* own = (window_iterator_t*)iterator;
  const dataset_window_t* window = (const dataset_window_t*)iterator->dataset;
  int64_t span = (window->size - 1) * window->stride + 1;
  while (iterator->phase || (own->source.iterator && (int64_t)own->rows.list.count < span)) {
    if (iterator->phase == 0) {
      iterator->phase = 1;
      if (!rn_data_ask(&own->source, own->arriving)) return false;
    }
    iterator->phase = 0;
    rn_status_t status = own->source.request.status;
    if (own->source.request.is_end) break;
    if (rn_ok(status) && own->skip > 0) {
      own->skip--;
      rn_data_row_clear(own->arriving, window->base.component_count);
    } else if (rn_ok(status)) {
      status = rn_data_rows_push(&own->rows, own->arriving);
    }
    if (!rn_ok(status)) {
      rn_data_row_clear(own->arriving, window->base.component_count);
      return rn_data_finish(iterator, status);
    }
  }
  int64_t have = (int64_t)own->rows.list.count;
  if (have == 0 || (have < span && window->drops_remainder)) {
    rn_data_rows_drop(&own->rows, (size_t)have);
    return rn_data_end(iterator);
  }
  rn_status_t status = give_window(own, iterator->asked->out);
  if (rn_ok(status)) {
    if (window->shift > have) own->skip = window->shift - have;
    rn_data_rows_drop(&own->rows, (size_t)window->shift);
  }
  return rn_data_finish(iterator, status);
}

static rn_status_t window_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  window_iterator_t* own = (window_iterator_t*)iterator;
  rn_data_put_int(writer, own->skip);
  rn_data_rows_save(&own->rows, writer);
  return rn_data_put_iterator(writer, own->source.iterator);
}

static rn_status_t window_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  window_iterator_t* own = (window_iterator_t*)iterator;
  const dataset_window_t* window = (const dataset_window_t*)iterator->dataset;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &own->skip));
  RN_RETURN_IF_ERROR(rn_data_rows_restore(&own->rows, reader, window->input->types, own->arriving));
  return rn_data_restore_source(reader, &own->source, iterator, window->input);
}

const rn_data_kind_t rn_data_kind_window = {.dataset_size = sizeof(dataset_window_t),
                                            .iterator_size = sizeof(window_iterator_t),
                                            .open = window_open,
                                            .cardinality = window_cardinality,
                                            .start = window_start,
                                            .stop = window_stop,
                                            .next = window_next,
                                            .save = window_save,
                                            .restore = window_restore};

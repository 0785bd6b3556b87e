// IndexFlatMapDataset: a function makes several elements of each element of the input; a second one
// tells for the index of a result which element of the input it comes from, and its place there. So
// results can be had by index, too.
#include "kernels/cpu/array.h"
#include "kernels/cpu/dataset/data.h"
#include "kernels/cpu/move.h"
#include "tensor/print.h"

typedef struct flat_map_t {
  rn_dataset_t base;
  rn_dataset_t* input;
  rn_data_func_t map, find;
  int64_t cardinality;
} flat_map_t;

typedef struct flat_iterator_t {
  rn_data_iterator_t base;
  rn_data_source_t source;
  rn_data_call_t map, find;
  rn_tensor_t* row;     // an element of the input
  rn_tensor_t* values;  // what was made of the last one; unset if none
  rn_tensor_t* index;   // of the next result
  int64_t next;         // the same as a number
  int64_t taken;        // elements of the input so far
  int64_t want, place;  // where the next result comes from
} flat_iterator_t;

enum { LOOK = 0, FOUND, SEEK, ASKED, MAPPED };

static rn_status_t flat_open(rn_dataset_t* dataset) {
  flat_map_t* own = (flat_map_t*)dataset;
  const rn_dtype_t index = RN_INT64;
  RN_RETURN_IF_ERROR(rn_data_upstream(dataset, "input_dataset", &own->input));
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "output_cardinality", &own->cardinality));
  RN_RETURN_IF_ERROR(rn_data_func_open(dataset, "map_func", "map_func_other_args",
                                       own->input->component_count, own->input->types, &own->map));
  RN_RETURN_IF_ERROR(rn_data_func_gives(&own->map, dataset->component_count, dataset->types));
  return rn_data_func_open(dataset, "index_map_func", "index_map_func_other_args", 1, &index,
                           &own->find);
}

static void flat_close(rn_dataset_t* dataset) {
  rn_data_func_close(&((flat_map_t*)dataset)->map);
  rn_data_func_close(&((flat_map_t*)dataset)->find);
}

static int64_t flat_cardinality(const rn_dataset_t* dataset) {
  return ((const flat_map_t*)dataset)->cardinality;
}

static rn_status_t flat_start(rn_data_iterator_t* iterator) {
  flat_iterator_t* own = (flat_iterator_t*)iterator;
  const flat_map_t* flat = (const flat_map_t*)iterator->dataset;
  RN_RETURN_IF_ERROR(rn_data_row(iterator, flat->input->component_count, &own->row));
  RN_RETURN_IF_ERROR(rn_data_row(iterator, flat->base.component_count, &own->values));
  RN_RETURN_IF_ERROR(rn_data_row(iterator, 1, &own->index));
  RN_RETURN_IF_ERROR(rn_data_call_init(&own->map, iterator, &flat->map));
  RN_RETURN_IF_ERROR(rn_data_call_init(&own->find, iterator, &flat->find));
  return rn_data_source_start(&own->source, iterator, flat->input);
}

static void flat_stop(rn_data_iterator_t* iterator) {
  flat_iterator_t* own = (flat_iterator_t*)iterator;
  const flat_map_t* flat = (const flat_map_t*)iterator->dataset;
  rn_data_source_stop(&own->source);
  rn_data_row_clear(own->row, flat->input->component_count);
  rn_data_row_clear(own->values, flat->base.component_count);
  rn_data_row_clear(own->index, 1);
  rn_data_call_clear(&own->map, &flat->map);
  rn_data_call_clear(&own->find, &flat->find);
}

static rn_status_t not_two(const rn_data_func_t* find, const rn_tensor_t* results) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_default());
  rn_strbuf_append(&text,
                   RN_STR("The `index_map_fn` for `index_flat_map` is expected to return two "
                          "int values representing the element index and an offset within "
                          "the element. Got: {"));
  for (int i = 0; i < find->instance->result_count; ++i) {
    rn_strbuf_printf(&text, "%sTensor<type: %s shape: %s values: ", i ? ", " : "",
                     rn_dtype_name(results[i].dtype), rn_text_of(&results[i]).text);
    rn_print_values(&text, &results[i], 3);
    rn_strbuf_append(&text, RN_STR(">"));
  }
  rn_strbuf_append(&text, RN_STR("}"));
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

// Reads what the index function returned.
static rn_status_t read_place(const rn_data_func_t* find, const rn_tensor_t* results,
                              int64_t* out_want, int64_t* out_place) {
  bool fits = find->instance->result_count == 2;
  for (int i = 0; fits && i < 2; ++i)
    fits = results[i].rank == 0 && (results[i].dtype == RN_INT64 || results[i].dtype == RN_INT32);
  if (!fits) return not_two(find, results);
  *out_want = rn_int_at(&results[0], 0);
  *out_place = rn_int_at(&results[1], 0);
  if (*out_want >= 0 && *out_place >= 0) return RN_OK;
  return rn_invalid_argument("The `index_map_fn` for `index_flat_map` returned %lld and %lld",
                             (long long)*out_want, (long long)*out_place);
}

// Row |place| of each of |values|; scalars as they are.
static rn_status_t give(const rn_dataset_t* dataset, const rn_tensor_t* values, int64_t place,
                        rn_tensor_t* out) {
  for (int32_t c = 0; c < dataset->component_count; ++c) {
    const rn_tensor_t* value = &values[c];
    if (value->rank == 0) {
      RN_RETURN_IF_ERROR(rn_tensor_share(value, &out[c]));
      continue;
    }
    int64_t rows = rn_tensor_dim(value, 0);
    if (place >= rows)
      return rn_invalid_argument("The offset %lld is not within the %lld results of an element",
                                 (long long)place, (long long)rows);
    rn_shape_t shape = {value->rank - 1, rn_tensor_dims(value) + 1};
    RN_RETURN_IF_ERROR(rn_tensor_create(dataset->node->memory, value->dtype, shape, &out[c]));
    if (!out[c].count) continue;
    size_t size = (size_t)out[c].count * rn_dtype_size(value->dtype);
    RN_RETURN_IF_ERROR(rn_move_row(value->dtype, (const char*)value->data + (size_t)place * size,
                                   out[c].data, out[c].count));
  }
  return RN_OK;
}

// Asks where the next result comes from. False while that takes time.
static bool find_place(flat_iterator_t* own, rn_status_t* out) {
  rn_data_iterator_t* iterator = &own->base;
  const flat_map_t* flat = (const flat_map_t*)iterator->dataset;
  *out = RN_OK;
  if (iterator->phase == LOOK) {
    rn_data_row_clear(own->index, 1);
    *out = rn_data_make_scalar(flat->base.node->memory, RN_INT64, own->next, own->index);
    if (!rn_ok(*out)) return true;
    iterator->phase = FOUND;
    if (!rn_data_call(&own->find, &flat->find, own->index, 1, iterator->asked->step)) return false;
  }
  if (iterator->phase > FOUND) return true;
  *out = own->find.status;
  if (rn_ok(*out)) *out = read_place(&flat->find, own->find.results, &own->want, &own->place);
  rn_data_call_clear(&own->find, &flat->find);
  if (rn_ok(*out) && own->want < own->taken - 1)
    *out = rn_invalid_argument("The `index_map_fn` for `index_flat_map` goes back to element %lld",
                               (long long)own->want);
  iterator->phase = SEEK;
  return true;
}

// Takes elements of the input up to the one that is wanted, and maps that. False while that takes
// time; the request is complete if |*out_over|.
static bool seek(flat_iterator_t* own, bool* out_over) {
  rn_data_iterator_t* iterator = &own->base;
  const flat_map_t* flat = (const flat_map_t*)iterator->dataset;
  const rn_data_request_t* request = &own->source.request;
  *out_over = false;
  while (iterator->phase != MAPPED && own->taken <= own->want) {
    if (iterator->phase == SEEK) {
      iterator->phase = ASKED;
      rn_data_row_clear(own->row, flat->input->component_count);
      if (!rn_data_ask(&own->source, own->row)) return false;
    }
    if (request->is_end) return *out_over = rn_data_end(iterator);
    if (!rn_ok(request->status)) return *out_over = rn_data_finish(iterator, request->status);
    iterator->phase = SEEK;
    if (own->taken++ < own->want) continue;
    iterator->phase = MAPPED;
    if (!rn_data_call(&own->map, &flat->map, own->row, flat->input->component_count,
                      iterator->asked->step))
      return false;
  }
  if (iterator->phase != MAPPED) return true;
  rn_data_row_clear(own->row, flat->input->component_count);
  if (!rn_ok(own->map.status)) return *out_over = rn_data_finish(iterator, own->map.status);
  rn_data_row_clear(own->values, flat->base.component_count);
  rn_data_row_move(own->map.results, own->values, flat->base.component_count);
  return true;
}

static bool flat_next(rn_data_iterator_t* iterator) {
  flat_iterator_t* own = (flat_iterator_t*)iterator;
  rn_status_t status;
  bool is_over;
  if (!find_place(own, &status)) return false;
  if (!rn_ok(status)) return rn_data_finish(iterator, status);
  if (!seek(own, &is_over) || is_over) return is_over;
  if (!rn_tensor_is_set(&own->values[0]))  // the function failed for this element before
    status = rn_invalid_argument("Element %lld of the input has no results", (long long)own->want);
  else
    status = give(iterator->dataset, own->values, own->place, iterator->asked->out);
  if (!rn_ok(status)) rn_data_row_clear(iterator->asked->out, iterator->dataset->component_count);
  own->next++;
  return rn_data_finish(iterator, status);
}

static rn_status_t flat_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  flat_iterator_t* own = (flat_iterator_t*)iterator;
  rn_data_put_int(writer, own->next);
  rn_data_put_int(writer, own->taken);
  rn_data_put_row(writer, own->values, iterator->dataset->component_count);
  return rn_data_put_iterator(writer, own->source.iterator);
}

static rn_status_t flat_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  flat_iterator_t* own = (flat_iterator_t*)iterator;
  const rn_dataset_t* dataset = iterator->dataset;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &own->next));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &own->taken));
  RN_RETURN_IF_ERROR(
      rn_data_take_row(reader, dataset->types, dataset->component_count, own->values));
  if (own->next < 0 || own->taken < 0) return rn_data_bad_state();
  return rn_data_restore_source(reader, &own->source, iterator,
                                ((const flat_map_t*)dataset)->input);
}

// Maps element |want| of the input, and gives the result at |place|.
static rn_status_t get_at(rn_dataset_t* dataset, int64_t want, int64_t place, rn_step_t* step,
                          rn_tensor_t* row, rn_tensor_t* values, rn_tensor_t* out) {
  const flat_map_t* flat = (const flat_map_t*)dataset;
  RN_RETURN_IF_ERROR(rn_dataset_get(flat->input, want, step, row));
  RN_RETURN_IF_ERROR(
      rn_data_func_call(&flat->map, row, flat->input->component_count, step, values));
  rn_status_t status = give(dataset, values, place, out);
  if (!rn_ok(status)) rn_data_row_clear(out, dataset->component_count);
  return status;
}

static rn_status_t flat_get(rn_dataset_t* dataset, int64_t index, rn_step_t* step,
                            rn_tensor_t* out) {
  const flat_map_t* flat = (const flat_map_t*)dataset;
  int32_t found_count = flat->find.instance->result_count, row_count = flat->input->component_count;
  int32_t count = 1 + found_count + row_count + dataset->component_count;
  rn_tensor_t* all = NULL;  // the index, where it is, the input's element, what is made of it
  int64_t want = 0, place = 0;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(dataset->node->allocator, (size_t)count, &all));
  rn_tensor_t *found = all + 1, *row = found + found_count;
  rn_status_t status = rn_data_make_scalar(dataset->node->memory, RN_INT64, index, all);
  if (rn_ok(status)) status = rn_data_func_call(&flat->find, all, 1, step, found);
  if (rn_ok(status)) status = read_place(&flat->find, found, &want, &place);
  if (rn_ok(status)) status = get_at(dataset, want, place, step, row, row + row_count, out);
  rn_data_row_clear(all, count);
  RN_FREE_ARRAY(dataset->node->allocator, all, count);
  return status;
}

const rn_data_kind_t rn_data_kind_index_flat_map = {.dataset_size = sizeof(flat_map_t),
                                                    .iterator_size = sizeof(flat_iterator_t),
                                                    .open = flat_open,
                                                    .close = flat_close,
                                                    .cardinality = flat_cardinality,
                                                    .start = flat_start,
                                                    .stop = flat_stop,
                                                    .next = flat_next,
                                                    .save = flat_save,
                                                    .restore = flat_restore,
                                                    .get = flat_get};

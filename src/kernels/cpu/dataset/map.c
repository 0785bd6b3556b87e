// Datasets that call a function per element: Map, Filter, TakeWhile, Scan.
#include "kernels/cpu/dataset/data.h"

#include "kernels/cpu/dataset/map.h"

rn_status_t rn_data_open_mapped(rn_dataset_t* dataset, const char* attr) {
  rn_data_mapped_t* mapped = (rn_data_mapped_t*)dataset;
  RN_RETURN_IF_ERROR(rn_data_upstream(dataset, "input_dataset", &mapped->input));
  mapped->preserves_cardinality = rn_data_flag(dataset, "preserve_cardinality");
  int32_t state_count = 0;
  mapped->state = rn_data_input(dataset, "initial_state", &state_count);
  mapped->state_count = state_count;
  if (!state_count)
    return rn_data_func_open(dataset, attr, "other_arguments", mapped->input->component_count,
                             mapped->input->types, &mapped->func);
  // The function of a scan takes the state before the element.
  int32_t count = state_count + mapped->input->component_count;
  rn_dtype_t* types = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(dataset->node->allocator, (size_t)count, &types));
  for (int32_t i = 0; i < count; ++i)
    types[i] = i < state_count ? (rn_dtype_t)mapped->state[i].dtype
                               : mapped->input->types[i - state_count];
  rn_status_t status =
      rn_data_func_open(dataset, attr, "other_arguments", count, types, &mapped->func);
  RN_FREE_ARRAY(dataset->node->allocator, types, count);
  return status;
}

void rn_data_close_mapped(rn_dataset_t* dataset) {
  rn_data_func_close(&((rn_data_mapped_t*)dataset)->func);
}

rn_status_t rn_data_map_status(const rn_data_mapped_t* map, rn_status_t status, bool* out_is_end) {
  *out_is_end = false;
  if (rn_ok(status) || rn_status_code(status) != RN_CODE_OUT_OF_RANGE) return status;
  if (!map->preserves_cardinality) {
    rn_status_free(status);
    *out_is_end = true;
    return RN_OK;
  }
  rn_status_t other = rn_invalid_argument("Function invocation produced OutOfRangeError: %s",
                                          rn_status_message(status));
  rn_status_free(status);
  return other;
}

int64_t rn_data_mapped_cardinality(const rn_dataset_t* dataset) {
  const rn_data_mapped_t* mapped = (const rn_data_mapped_t*)dataset;
  if (!mapped->preserves_cardinality) {
    int64_t n = rn_dataset_cardinality(mapped->input);
    return n == RN_DATA_INFINITE ? n : RN_DATA_UNKNOWN;
  }
  return rn_dataset_cardinality(mapped->input);
}

typedef struct map_iterator_t {
  rn_data_iterator_t base;
  rn_data_source_t source;
  rn_data_call_t call;
  rn_tensor_t* row;    // for a scan: the state, then the input's element
  rn_tensor_t* state;  // for a scan
  bool is_over;
} map_iterator_t;

static rn_status_t map_start(rn_data_iterator_t* iterator) {
  map_iterator_t* own = (map_iterator_t*)iterator;
  const rn_data_mapped_t* map = (const rn_data_mapped_t*)iterator->dataset;
  RN_RETURN_IF_ERROR(
      rn_data_row(iterator, map->state_count + map->input->component_count, &own->row));
  own->state = own->row;
  for (int32_t i = 0; i < map->state_count; ++i)
    RN_RETURN_IF_ERROR(rn_tensor_share(&map->state[i], &own->state[i]));
  RN_RETURN_IF_ERROR(rn_data_call_init(&own->call, iterator, &map->func));
  return rn_data_source_start(&own->source, iterator, map->input);
}

static void map_stop(rn_data_iterator_t* iterator) {
  map_iterator_t* own = (map_iterator_t*)iterator;
  const rn_data_mapped_t* map = (const rn_data_mapped_t*)iterator->dataset;
  rn_data_source_stop(&own->source);
  rn_data_row_clear(own->row, map->state_count + map->input->component_count);
  rn_data_call_clear(&own->call, &map->func);
}

static rn_status_t map_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  map_iterator_t* own = (map_iterator_t*)iterator;
  rn_data_put_int(writer, own->is_over);
  rn_data_put_row(writer, own->state, ((const rn_data_mapped_t*)iterator->dataset)->state_count);
  return rn_data_put_iterator(writer, own->source.iterator);
}

static rn_status_t map_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  map_iterator_t* own = (map_iterator_t*)iterator;
  const rn_data_mapped_t* map = (const rn_data_mapped_t*)iterator->dataset;
  int64_t is_over = 0;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &is_over));
  own->is_over = is_over != 0;
  RN_RETURN_IF_ERROR(
      rn_data_take_row(reader, map->func.instance->arg_types, map->state_count, own->state));
  for (int32_t i = 0; i < map->state_count; ++i)
    if (!rn_tensor_is_set(&own->state[i])) return rn_data_bad_state();
  return rn_data_restore_source(reader, &own->source, iterator, map->input);
}

#define MAPPED                                                                           \
  .dataset_size = sizeof(rn_data_mapped_t), .iterator_size = sizeof(map_iterator_t),     \
  .close = rn_data_close_mapped, .start = map_start, .stop = map_stop, .save = map_save, \
  .restore = map_restore

// Map.
static rn_status_t map_open(rn_dataset_t* dataset) {
  RN_RETURN_IF_ERROR(rn_data_open_mapped(dataset, "f"));
  return rn_data_func_gives(&((rn_data_mapped_t*)dataset)->func, dataset->component_count,
                            dataset->types);
}

// Calls the function with the next element of the input. False while the request has to wait.
// |*out_over| is true if the input has ended or failed, and with it the request.
static bool call_with_next(map_iterator_t* own, bool* out_over) {
  rn_data_iterator_t* iterator = &own->base;
  const rn_data_mapped_t* mapped = (const rn_data_mapped_t*)iterator->dataset;
  const rn_data_request_t* request = &own->source.request;
  *out_over = false;
  if (iterator->phase == 0) {
    iterator->phase = 1;
    if (!rn_data_ask(&own->source, own->row)) return false;
  }
  if (iterator->phase == 1) {
    if (request->is_end) return *out_over = rn_data_end(iterator);
    if (!rn_ok(request->status)) return *out_over = rn_data_finish(iterator, request->status);
    iterator->phase = 2;
    return rn_data_call(&own->call, &mapped->func, own->row, mapped->input->component_count,
                        iterator->asked->step);
  }
  return true;
}

static bool map_next(rn_data_iterator_t* iterator) {
  map_iterator_t* own = (map_iterator_t*)iterator;
  const rn_data_mapped_t* map = (const rn_data_mapped_t*)iterator->dataset;
  int32_t count = map->input->component_count;
  bool is_over;
  if (!call_with_next(own, &is_over) || is_over) return is_over;
  rn_data_row_clear(own->row, count);
  bool is_end = false;
  rn_status_t status = rn_data_map_status(map, own->call.status, &is_end);
  if (is_end) return rn_data_end(iterator);
  if (rn_ok(status))
    rn_data_row_move(own->call.results, iterator->asked->out, iterator->dataset->component_count);
  return rn_data_finish(iterator, status);
}

rn_status_t rn_data_mapped_get(rn_dataset_t* dataset, int64_t index, rn_step_t* step,
                               rn_tensor_t* out) {
  const rn_data_mapped_t* map = (const rn_data_mapped_t*)dataset;
  int32_t count = map->input->component_count;
  rn_tensor_t* row = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(dataset->node->allocator, (size_t)count, &row));
  rn_status_t status = rn_dataset_get(map->input, index, step, row);
  if (rn_ok(status)) status = rn_data_func_call(&map->func, row, count, step, out);
  rn_data_row_clear(row, count);
  RN_FREE_ARRAY(dataset->node->allocator, row, count);
  return status;
}

const rn_data_kind_t rn_data_kind_map = {MAPPED, .open = map_open,
                                         .cardinality = rn_data_mapped_cardinality,
                                         .next = map_next, .get = rn_data_mapped_get};

// Filter and TakeWhile: elements for which a predicate is true.
rn_status_t rn_data_open_predicate(rn_dataset_t* dataset) {
  rn_data_mapped_t* filter = (rn_data_mapped_t*)dataset;
  RN_RETURN_IF_ERROR(rn_data_open_mapped(dataset, "predicate"));
  if (filter->input->component_count != dataset->component_count)
    return rn_invalid_argument("%s has %d input components, but %d output components",
                               dataset->node->op->name, filter->input->component_count,
                               dataset->component_count);
  if (filter->func.instance->result_count < 1)
    return rn_invalid_argument("predicate function has no return value.");
  return RN_OK;
}

static bool filter_step(rn_data_iterator_t* iterator, const char* what, bool is_while) {
  map_iterator_t* own = (map_iterator_t*)iterator;
  const rn_data_mapped_t* filter = (const rn_data_mapped_t*)iterator->dataset;
  int32_t count = filter->input->component_count;
  for (;; iterator->phase = 0) {
    bool is_over;
    if (!call_with_next(own, &is_over) || is_over) return is_over;
    bool holds = false;
    rn_status_t status = own->call.status;
    if (rn_ok(status)) status = rn_data_holds(&own->call.results[0], what, &holds);
    rn_data_call_clear(&own->call, &filter->func);
    if (holds) rn_data_row_move(own->row, iterator->asked->out, count);
    rn_data_row_clear(own->row, count);
    if (holds || !rn_ok(status)) return rn_data_finish(iterator, status);
    if (is_while) {
      rn_data_source_stop(&own->source);
      return rn_data_end(iterator);
    }
  }
}

static bool filter_next(rn_data_iterator_t* iterator) {
  return filter_step(iterator, "Filter predicate `f`", false);
}
static bool take_while_next(rn_data_iterator_t* iterator) {
  return filter_step(iterator, "TakeWhile predicate `f`", true);
}

const rn_data_kind_t rn_data_kind_filter = {MAPPED, .open = rn_data_open_predicate,
                                            .next = filter_next};
const rn_data_kind_t rn_data_kind_take_while = {MAPPED, .open = rn_data_open_predicate,
                                                .next = take_while_next};

// Scan: a map whose function also takes and returns a state.
static rn_status_t scan_open(rn_dataset_t* dataset) {
  rn_data_mapped_t* scan = (rn_data_mapped_t*)dataset;
  RN_RETURN_IF_ERROR(rn_data_open_mapped(dataset, "f"));
  const rn_instance_t* instance = scan->func.instance;
  bool fits = instance->result_count == scan->state_count + dataset->component_count;
  for (int32_t i = 0; fits && i < instance->result_count; ++i)
    fits = instance->result_types[i] == (i < scan->state_count
                                             ? (rn_dtype_t)scan->state[i].dtype
                                             : dataset->types[i - scan->state_count]);
  return fits ? RN_OK
              : rn_invalid_argument("Expected %d components, but the function of a scan returns %d",
                                    scan->state_count + dataset->component_count,
                                    instance->result_count);
}

static bool scan_next(rn_data_iterator_t* iterator) {
  map_iterator_t* own = (map_iterator_t*)iterator;
  const rn_data_mapped_t* scan = (const rn_data_mapped_t*)iterator->dataset;
  rn_tensor_t* element = own->row + scan->state_count;
  int32_t count = scan->input->component_count;
  if (own->is_over) return rn_data_end(iterator);
  if (iterator->phase == 0) {
    iterator->phase = 1;
    if (!rn_data_ask(&own->source, element)) return false;
  }
  if (iterator->phase == 1) {
    if (own->source.request.is_end) return rn_data_end(iterator);
    if (!rn_ok(own->source.request.status))
      return rn_data_finish(iterator, own->source.request.status);
    iterator->phase = 2;
    if (!rn_data_call(&own->call, &scan->func, own->row, scan->state_count + count,
                      iterator->asked->step))
      return false;
  }
  rn_data_row_clear(element, count);
  rn_status_t status = rn_data_map_status(scan, own->call.status, &own->is_over);
  if (own->is_over) return rn_data_end(iterator);
  if (rn_ok(status)) {
    rn_data_row_clear(own->state, scan->state_count);
    rn_data_row_move(own->call.results, own->state, scan->state_count);
    rn_data_row_move(own->call.results + scan->state_count, iterator->asked->out,
                     iterator->dataset->component_count);
  }
  return rn_data_finish(iterator, status);
}

const rn_data_kind_t rn_data_kind_scan = {
    MAPPED, .open = scan_open, .cardinality = rn_data_mapped_cardinality, .next = scan_next};

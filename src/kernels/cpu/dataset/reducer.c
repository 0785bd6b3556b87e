// GroupByReducerDataset: reduces the elements of each key to one. All keys are known when the
// input has ended; they then follow each other in ascending order.
#include "base/vec.h"
#include "kernels/cpu/dataset/data.h"
#include "kernels/cpu/dataset/keys.h"

typedef struct reducer_t {
  rn_dataset_t base;
  rn_dataset_t* input;
  rn_data_func_t key, init, reduce, finalize;
  int32_t state_count;
  rn_dtype_t* types;  // Owned; of the state, then of an element
} reducer_t;

typedef struct reducer_group_t {
  int64_t key;
  rn_tensor_t* state;  // Owned
} reducer_group_t;

typedef struct reducer_iterator_t {
  rn_data_iterator_t base;
  rn_data_source_t source;
  rn_data_call_t key_call, init_call, reduce_call, finalize_call;
  rn_tensor_t* row;                // the state, then the element
  RN_VEC(reducer_group_t) groups;  // sorted by key
  size_t place;                    // the group of the current element
  int64_t next;                    // the group to finalize next; -1 while the input is read
  rn_tensor_t key;
} reducer_iterator_t;

enum { LOOK = 0, FROM_INPUT, FROM_KEY, FROM_INIT, FROM_REDUCE, FROM_FINALIZE };

static rn_status_t open_reduction(reducer_t* reducer) {
  rn_dataset_t* dataset = &reducer->base;
  const rn_instance_t* init = reducer->init.instance;
  int32_t total = init->result_count + reducer->input->component_count;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(dataset->node->allocator, (size_t)total, &reducer->types));
  reducer->state_count = init->result_count;
  for (int32_t i = 0; i < total; ++i)
    reducer->types[i] = i < reducer->state_count ? init->result_types[i]
                                                 : reducer->input->types[i - reducer->state_count];
  RN_RETURN_IF_ERROR(rn_data_func_open(dataset, "reduce_func", "reduce_func_other_arguments", total,
                                       reducer->types, &reducer->reduce));
  RN_RETURN_IF_ERROR(rn_data_func_gives(&reducer->reduce, reducer->state_count, reducer->types));
  RN_RETURN_IF_ERROR(rn_data_func_open(dataset, "finalize_func", "finalize_func_other_arguments",
                                       reducer->state_count, reducer->types, &reducer->finalize));
  return rn_data_func_gives(&reducer->finalize, dataset->component_count, dataset->types);
}

static rn_status_t reducer_open(rn_dataset_t* dataset) {
  static const rn_dtype_t number = RN_INT64;
  reducer_t* reducer = (reducer_t*)dataset;
  RN_RETURN_IF_ERROR(rn_data_upstream(dataset, "input_dataset", &reducer->input));
  RN_RETURN_IF_ERROR(rn_data_func_open(dataset, "key_func", "key_func_other_arguments",
                                       reducer->input->component_count, reducer->input->types,
                                       &reducer->key));
  RN_RETURN_IF_ERROR(rn_data_func_gives(&reducer->key, 1, &number));
  RN_RETURN_IF_ERROR(rn_data_func_open(dataset, "init_func", "init_func_other_arguments", 1,
                                       &number, &reducer->init));
  return open_reduction(reducer);
}

static void reducer_close(rn_dataset_t* dataset) {
  reducer_t* reducer = (reducer_t*)dataset;
  rn_data_func_t* const funcs[] = {&reducer->key, &reducer->init, &reducer->reduce,
                                   &reducer->finalize};
  for (size_t i = 0; i < sizeof funcs / sizeof *funcs; ++i) rn_data_func_close(funcs[i]);
  if (reducer->types)
    RN_FREE_ARRAY(dataset->node->allocator, reducer->types,
                  reducer->state_count + reducer->input->component_count);
}

static rn_status_t reducer_start(rn_data_iterator_t* iterator) {
  reducer_iterator_t* own = (reducer_iterator_t*)iterator;
  const reducer_t* reducer = (const reducer_t*)iterator->dataset;
  own->next = -1;
  RN_RETURN_IF_ERROR(
      rn_data_row(iterator, reducer->state_count + reducer->input->component_count, &own->row));
  RN_RETURN_IF_ERROR(rn_data_call_init(&own->key_call, iterator, &reducer->key));
  RN_RETURN_IF_ERROR(rn_data_call_init(&own->init_call, iterator, &reducer->init));
  RN_RETURN_IF_ERROR(rn_data_call_init(&own->reduce_call, iterator, &reducer->reduce));
  RN_RETURN_IF_ERROR(rn_data_call_init(&own->finalize_call, iterator, &reducer->finalize));
  return rn_data_source_start(&own->source, iterator, reducer->input);
}

static void clear_calls(reducer_iterator_t* own) {
  const reducer_t* reducer = (const reducer_t*)own->base.dataset;
  rn_data_call_clear(&own->key_call, &reducer->key);
  rn_data_call_clear(&own->init_call, &reducer->init);
  rn_data_call_clear(&own->reduce_call, &reducer->reduce);
  rn_data_call_clear(&own->finalize_call, &reducer->finalize);
  rn_data_row_clear(own->row, reducer->state_count + reducer->input->component_count);
  rn_tensor_clear(&own->key);
}

static void reducer_stop(rn_data_iterator_t* iterator) {
  reducer_iterator_t* own = (reducer_iterator_t*)iterator;
  int32_t width = ((const reducer_t*)iterator->dataset)->state_count;
  rn_allocator_t allocator = iterator->dataset->node->allocator;
  rn_data_source_stop(&own->source);
  clear_calls(own);
  for (size_t i = 0; i < own->groups.count; ++i) {
    rn_data_row_clear(own->groups.items[i].state, width);
    RN_FREE_ARRAY(allocator, own->groups.items[i].state, width);
  }
  rn_vec_free(&own->groups, allocator);
}

// Inserts a group before |place|; its state is unset.
static rn_status_t add_group(reducer_iterator_t* own, size_t place, int64_t key) {
  rn_allocator_t allocator = own->base.dataset->node->allocator;
  rn_tensor_t* state = NULL;
  RN_RETURN_IF_ERROR(rn_vec_reserve(&own->groups, allocator, own->groups.count + 1));
  RN_RETURN_IF_ERROR(
      RN_NEW_ARRAY(allocator, (size_t)((const reducer_t*)own->base.dataset)->state_count, &state));
  reducer_group_t* at = own->groups.items + place;
  memmove(at + 1, at, (own->groups.count - place) * sizeof *at);
  *at = (reducer_group_t){key, state};
  own->groups.count++;
  return RN_OK;
}

// Calls the reduction on the state of the current group and the element.
static bool reduce(reducer_iterator_t* own) {
  const reducer_t* reducer = (const reducer_t*)own->base.dataset;
  rn_data_row_move(own->groups.items[own->place].state, own->row, reducer->state_count);
  own->base.phase = FROM_REDUCE;
  return rn_data_call(&own->reduce_call, &reducer->reduce, own->row,
                      reducer->state_count + reducer->input->component_count,
                      own->base.asked->step);
}

// The key of the current element is known: reduces it, or first creates the state of the key.
static bool from_key(reducer_iterator_t* own, rn_status_t* out_status) {
  const reducer_t* reducer = (const reducer_t*)own->base.dataset;
  int64_t key = 0;
  bool is_there = false;
  *out_status = own->key_call.status;
  if (rn_ok(*out_status))
    *out_status = rn_data_read_number(&own->key_call.results[0], "key_func", &key);
  if (!rn_ok(*out_status)) return true;
  own->place = rn_data_find_key(own->groups.items, own->groups.count, sizeof *own->groups.items,
                                key, &is_there);
  rn_data_row_move(own->key_call.results, &own->key, 1);
  if (is_there) {
    rn_tensor_clear(&own->key);
    return reduce(own);
  }
  own->base.phase = FROM_INIT;
  return rn_data_call(&own->init_call, &reducer->init, &own->key, 1, own->base.asked->step);
}

static bool from_init(reducer_iterator_t* own, rn_status_t* out_status) {
  const reducer_t* reducer = (const reducer_t*)own->base.dataset;
  *out_status = own->init_call.status;
  if (rn_ok(*out_status))
    *out_status = add_group(own, own->place, *RN_DATA(&own->key, const int64_t));
  rn_tensor_clear(&own->key);
  if (!rn_ok(*out_status)) return true;
  rn_data_row_move(own->init_call.results, own->groups.items[own->place].state,
                   reducer->state_count);
  return reduce(own);
}

// Starts the next piece of work. False if it has to wait.
static bool look(reducer_iterator_t* own, bool* out_done) {
  const reducer_t* reducer = (const reducer_t*)own->base.dataset;
  if (own->next < 0) {
    own->base.phase = FROM_INPUT;
    return rn_data_ask(&own->source, own->row + reducer->state_count);
  }
  if (own->next >= (int64_t)own->groups.count) {
    *out_done = rn_data_end(&own->base);
    return true;
  }
  own->base.phase = FROM_FINALIZE;
  return rn_data_call(&own->finalize_call, &reducer->finalize, own->groups.items[own->next].state,
                      reducer->state_count, own->base.asked->step);
}

static bool from_input(reducer_iterator_t* own, rn_status_t* out_status) {
  const reducer_t* reducer = (const reducer_t*)own->base.dataset;
  *out_status = own->source.request.status;
  own->base.phase = LOOK;
  if (own->source.request.is_end) own->next = 0;
  if (own->next == 0 || !rn_ok(*out_status)) return true;
  own->base.phase = FROM_KEY;
  return rn_data_call(&own->key_call, &reducer->key, own->row + reducer->state_count,
                      reducer->input->component_count, own->base.asked->step);
}

// Advances from a finished phase to the next; false if it has to wait.
static bool reducer_step(reducer_iterator_t* own, bool* out_done) {
  const reducer_t* reducer = (const reducer_t*)own->base.dataset;
  rn_status_t status = RN_OK;
  bool goes_on = true;
  switch (own->base.phase) {
    case LOOK:
      return look(own, out_done);
    case FROM_INPUT:
      goes_on = from_input(own, &status);
      break;
    case FROM_KEY:
      goes_on = from_key(own, &status);
      break;
    case FROM_INIT:
      goes_on = from_init(own, &status);
      break;
    case FROM_REDUCE:
      own->base.phase = LOOK;
      status = own->reduce_call.status;
      rn_data_row_clear(own->row, reducer->state_count + reducer->input->component_count);
      if (rn_ok(status))
        rn_data_row_move(own->reduce_call.results, own->groups.items[own->place].state,
                         reducer->state_count);
      else
        own->next = (int64_t)own->groups.count;  // the state is lost
      break;
    default:
      own->next++;
      status = own->finalize_call.status;
      if (rn_ok(status))
        rn_data_row_move(own->finalize_call.results, own->base.asked->out,
                         reducer->base.component_count);
      *out_done = rn_data_finish(&own->base, status);
      return true;
  }
  if (goes_on && !rn_ok(status)) {
    clear_calls(own);
    *out_done = rn_data_finish(&own->base, status);
  }
  return goes_on;
}

static bool reducer_next(rn_data_iterator_t* iterator) {
  bool is_done = false;
  while (!is_done)
    if (!reducer_step((reducer_iterator_t*)iterator, &is_done)) return false;
  return true;
}

static rn_status_t reducer_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  reducer_iterator_t* own = (reducer_iterator_t*)iterator;
  int32_t width = ((const reducer_t*)iterator->dataset)->state_count;
  rn_data_put_int(writer, own->next);
  rn_data_put_int(writer, (int64_t)own->groups.count);
  for (size_t i = 0; i < own->groups.count; ++i) {
    rn_data_put_int(writer, own->groups.items[i].key);
    rn_data_put_row(writer, own->groups.items[i].state, width);
  }
  return rn_data_put_iterator(writer, own->source.iterator);
}

static rn_status_t reducer_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  reducer_iterator_t* own = (reducer_iterator_t*)iterator;
  const reducer_t* reducer = (const reducer_t*)iterator->dataset;
  int64_t count = 0, key = 0;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &own->next));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &count));
  if (own->next < -1 || count < 0) return rn_data_bad_state();
  for (int64_t i = 0; i < count; ++i) {
    RN_RETURN_IF_ERROR(rn_data_take_int(reader, &key));
    if (i && key <= own->groups.items[i - 1].key) return rn_data_bad_state();
    RN_RETURN_IF_ERROR(add_group(own, (size_t)i, key));
    rn_tensor_t* state = own->groups.items[i].state;
    RN_RETURN_IF_ERROR(rn_data_take_row(reader, reducer->types, reducer->state_count, state));
    for (int32_t c = 0; c < reducer->state_count; ++c)
      if (!rn_tensor_is_set(&state[c])) return rn_data_bad_state();
  }
  return rn_data_restore_source(reader, &own->source, iterator, reducer->input);
}

const rn_data_kind_t rn_data_kind_reducer = {.dataset_size = sizeof(reducer_t),
                                             .iterator_size = sizeof(reducer_iterator_t),
                                             .open = reducer_open,
                                             .close = reducer_close,
                                             .start = reducer_start,
                                             .stop = reducer_stop,
                                             .next = reducer_next,
                                             .save = reducer_save,
                                             .restore = reducer_restore};

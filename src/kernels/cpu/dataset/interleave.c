// Interleave: a function makes a dataset from each element, and their elements follow each other in
// blocks taken in turn from several open datasets.
//
// Slots are opened in the order of their turns: each of them once, then those whose dataset has
// ended, first come first served. The parallel version opens them before their turn, which does not
// change the order of elements.
#include "kernels/cpu/dataset/data.h"
#include "kernels/cpu/dataset/prefetch.h"

typedef struct interleave_t {
  rn_dataset_t base;
  rn_dataset_t* input;
  rn_data_func_t func;
  int64_t cycle_length, block_length;
  bool has_fixed_cycle;
  int64_t ahead;   // elements each open dataset prefetches
  int64_t window;  // slots opened before their turn
} interleave_t;

// A slot: an open dataset, or space for one. The element is kept, so that the dataset can be
// remade.
typedef struct interleave_place_t {
  rn_data_source_t source;
  rn_tensor_t* element;
  rn_dataset_t* dataset;  // Retained while open
  rn_status_t status;     // the error of opening; reported at its turn
} interleave_place_t;

typedef struct interleave_iterator_t {
  rn_data_iterator_t base;
  rn_data_source_t input;
  rn_data_call_t call;
  interleave_place_t* places;
  int64_t place_count;
  int64_t cycle, block;
  int64_t open_count;  // slots with a dataset or an error
  int64_t target;      // the slot being opened
  int64_t primed;      // slots from 0 on that were opened a first time
  int64_t reached;     // the highest slot that had a turn
  int64_t* ended;      // slots to reopen: a ring
  int64_t ended_head, ended_count;
  bool is_over;  // the input has ended
} interleave_iterator_t;

enum { LOOK = 0, ASKED, GOT_INPUT, CALLED };

#define DEFAULT_CYCLE 4  // where stock uses the number of processors
#define MAX_CYCLE 65536
#define DEFAULT_AHEAD 2
#define MAX_WINDOW 64

static rn_status_t read_lengths(rn_dataset_t* dataset) {
  interleave_t* own = (interleave_t*)dataset;
  own->cycle_length = own->block_length = 1;
  if (!rn_data_has_input(dataset, "cycle_length")) return RN_OK;
  bool is_oldest = rn_data_has_input(dataset, "sloppy");
  bool is_plain = !rn_data_has_input(dataset, "num_parallel_calls");
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "cycle_length", &own->cycle_length));
  own->has_fixed_cycle = own->cycle_length != RN_DATA_AUTOTUNE || is_oldest;
  if (!own->has_fixed_cycle) own->cycle_length = DEFAULT_CYCLE;
  if (own->cycle_length <= 0 && is_oldest) return rn_invalid_argument("`cycle_length` must be > 0");
  if (own->cycle_length <= 0)
    return is_plain ? rn_invalid_argument("cycle_length must be greater than zero.")
                    : rn_invalid_argument(
                          "`cycle_length` must be `tf.data.AUTOTUNE` or greater than 0 but is %lld",
                          (long long)own->cycle_length);
  if (own->cycle_length > MAX_CYCLE)
    return rn_invalid_argument("cycle_length %lld is more than %d", (long long)own->cycle_length,
                               MAX_CYCLE);
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "block_length", &own->block_length));
  if (own->block_length <= 0)
    return rn_invalid_argument(is_plain && !is_oldest ? "block_length must be greater than zero."
                                                      : "`block_length` must be > 0");
  return RN_OK;
}

static rn_status_t read_parallel(rn_dataset_t* dataset) {
  interleave_t* own = (interleave_t*)dataset;
  bool is_legacy = !rn_data_has_input(dataset, "num_parallel_calls") &&
                   rn_data_has_input(dataset, "prefetch_input_elements");
  int64_t calls = is_legacy ? own->cycle_length : 1, ahead = RN_DATA_AUTOTUNE;
  if (rn_data_has_input(dataset, "num_parallel_calls")) {
    RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "num_parallel_calls", &calls));
    if (calls <= 0 && calls != RN_DATA_AUTOTUNE)
      return rn_invalid_argument("num_parallel_calls must be greater than zero.");
    if (calls > own->cycle_length && own->has_fixed_cycle)
      return rn_invalid_argument(
          "If `cycle_length` is set to a fixed value, `num_parallel_calls` must be either "
          "`tf.data.AUTOTUNE` or a value less than or equal to `cycle_length`. However, "
          "`num_parallel_calls` is %lld and `cycle_length` is %lld",
          (long long)calls, (long long)own->cycle_length);
  }
  if (rn_data_has_input(dataset, "buffer_output_elements")) {
    RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "buffer_output_elements", &ahead));
    if (ahead <= 0 && ahead != RN_DATA_AUTOTUNE)
      return rn_invalid_argument("`buffer_output_elements` must be > 0 but is %lld",
                                 (long long)ahead);
  }
  if (rn_data_has_input(dataset, "prefetch_input_elements")) {
    int64_t inputs = 0;
    RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "prefetch_input_elements", &inputs));
    if (inputs < 0 && inputs != RN_DATA_AUTOTUNE)
      return rn_invalid_argument("`prefetch_input_elements` must be >= 0 but is %lld",
                                 (long long)inputs);
  }
  if (calls == 1) return RN_OK;
  own->ahead = ahead > 0 ? ahead : own->block_length;
  if (own->ahead < DEFAULT_AHEAD) own->ahead = DEFAULT_AHEAD;
  if (!rn_data_has_threads(dataset->host)) return RN_OK;
  own->window = calls > 0 ? calls : 2 * (int64_t)rn_pool_threads(dataset->host->pool);
  if (own->window > MAX_WINDOW) own->window = MAX_WINDOW;
  return RN_OK;
}

static rn_status_t interleave_open(rn_dataset_t* dataset) {
  interleave_t* own = (interleave_t*)dataset;
  RN_RETURN_IF_ERROR(rn_data_upstream(dataset, "input_dataset", &own->input));
  RN_RETURN_IF_ERROR(read_lengths(dataset));
  RN_RETURN_IF_ERROR(read_parallel(dataset));
  RN_RETURN_IF_ERROR(rn_data_func_open(dataset, "f", "other_arguments", own->input->component_count,
                                       own->input->types, &own->func));
  static const rn_dtype_t variant = RN_VARIANT;
  return rn_data_func_gives(&own->func, 1, &variant);
}

static void interleave_close(rn_dataset_t* dataset) {
  rn_data_func_close(&((interleave_t*)dataset)->func);
}

static rn_status_t interleave_start(rn_data_iterator_t* iterator) {
  interleave_iterator_t* own = (interleave_iterator_t*)iterator;
  const interleave_t* dataset = (const interleave_t*)iterator->dataset;
  size_t places = (size_t)dataset->cycle_length;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&iterator->arena, places, &own->places));
  for (size_t i = 0; i < places; ++i)
    RN_RETURN_IF_ERROR(
        rn_data_row(iterator, dataset->input->component_count, &own->places[i].element));
  own->place_count = dataset->cycle_length;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&iterator->arena, places, &own->ended));
  RN_RETURN_IF_ERROR(rn_data_call_init(&own->call, iterator, &dataset->func));
  return rn_data_source_start(&own->input, iterator, dataset->input);
}

static void close_place(interleave_iterator_t* own, interleave_place_t* place) {
  rn_data_source_stop(&place->source);
  rn_data_row_clear(place->element,
                    ((const interleave_t*)own->base.dataset)->input->component_count);
  rn_dataset_release(place->dataset);
  place->dataset = NULL;
  rn_status_free(place->status);
  place->status = RN_OK;
}

static void interleave_stop(rn_data_iterator_t* iterator) {
  interleave_iterator_t* own = (interleave_iterator_t*)iterator;
  for (int64_t i = 0; i < own->place_count; ++i) close_place(own, &own->places[i]);
  rn_data_call_clear(&own->call, &((const interleave_t*)iterator->dataset)->func);
  rn_data_source_stop(&own->input);
}

static void advance(interleave_iterator_t* own) {
  own->block = 0;
  own->cycle = (own->cycle + 1) % own->place_count;
  if (own->cycle > own->reached) own->reached = own->cycle;
}

// Assigns the dataset in |result| to |place|.
static rn_status_t open_place(interleave_iterator_t* own, interleave_place_t* place,
                              rn_tensor_t* result) {
  const interleave_t* dataset = (const interleave_t*)own->base.dataset;
  rn_dataset_t* made = NULL;
  rn_status_t status = rn_dataset_of(result, &made);
  bool fits = rn_ok(status) && made->component_count == dataset->base.component_count;
  for (int32_t c = 0; fits && c < made->component_count; ++c)
    fits = made->types[c] == dataset->base.types[c];
  if (rn_ok(status) && !fits)
    status = rn_invalid_argument(
        "The function returned a dataset whose types differ from those of the %s",
        dataset->base.node->op->name);
  if (rn_ok(status) && dataset->ahead > 0 && rn_data_has_threads(dataset->base.host)) {
    status = rn_data_prefetch_over(made, dataset->ahead, &place->dataset);
  } else if (rn_ok(status)) {
    place->dataset = made;
    rn_object_retain(&made->object);
  }
  rn_tensor_clear(result);
  if (rn_ok(status)) status = rn_data_source_start(&place->source, &own->base, place->dataset);
  return status;
}

static void push_ended(interleave_iterator_t* own, int64_t place, bool is_first) {
  if (is_first) own->ended_head = (own->ended_head + own->place_count - 1) % own->place_count;
  int64_t at = is_first ? own->ended_head : (own->ended_head + own->ended_count) % own->place_count;
  own->ended[at] = place;
  own->ended_count++;
}

// The slot to open next; -1 if none. One that failed is retried before its turn is over.
static int64_t place_to_open(interleave_iterator_t* own) {
  int64_t window = ((const interleave_t*)own->base.dataset)->window;
  if (own->is_over) return -1;
  int64_t next = own->ended_count ? own->ended[own->ended_head] : -1;
  if (next != own->cycle) {
    if (own->primed < own->place_count)
      return own->primed < own->reached + (window ? window : 1) ? own->primed++ : -1;
    if (next < 0 || !window) return -1;
  }
  own->ended_head = (own->ended_head + 1) % own->place_count;
  own->ended_count--;
  return next;
}

// Records that a slot could not be opened, to report at its turn; true if that is now.
static bool place_failed(interleave_iterator_t* own, rn_status_t status) {
  interleave_place_t* place = &own->places[own->target];
  close_place(own, place);
  own->base.phase = LOOK;
  if (own->target == own->cycle) {
    push_ended(own, own->target, true);
    return rn_data_finish(&own->base, status);
  }
  place->status = status;
  own->open_count++;
  return false;
}

// Takes the reply of the current slot's dataset; true if the request is complete.
static bool take_element(interleave_iterator_t* own) {
  const interleave_t* dataset = (const interleave_t*)own->base.dataset;
  interleave_place_t* place = &own->places[own->cycle];
  own->base.phase = LOOK;
  if (place->source.request.is_end) {
    close_place(own, place);
    own->open_count--;
    push_ended(own, own->cycle, false);
    advance(own);
    return false;
  }
  if (rn_ok(place->source.request.status) && ++own->block == dataset->block_length) advance(own);
  return rn_data_finish(&own->base, place->source.request.status);
}

// Runs one turn: true if it has to wait; sets |*out_done| if the request is complete.
static bool interleave_turn(interleave_iterator_t* own, bool* out_done) {
  rn_data_iterator_t* iterator = &own->base;
  const interleave_t* dataset = (const interleave_t*)iterator->dataset;
  interleave_place_t* place = &own->places[own->cycle];
  *out_done = false;
  if (iterator->phase == LOOK) {
    own->target = place_to_open(own);
    if (own->target >= 0) {
      iterator->phase = GOT_INPUT;
      if (!rn_data_ask(&own->input, own->places[own->target].element)) return true;
    } else if (!rn_ok(place->status)) {
      rn_status_t status = place->status;
      place->status = RN_OK;
      own->open_count--;
      push_ended(own, own->cycle, true);
      *out_done = rn_data_finish(iterator, status);
      return false;
    } else if (place->source.iterator) {
      iterator->phase = ASKED;
      if (!rn_data_ask(&place->source, iterator->asked->out)) return true;
    } else {
      advance(own);
      return false;
    }
  }
  if (iterator->phase == ASKED) {
    *out_done = take_element(own);
    return false;
  }
  place = &own->places[own->target];
  if (iterator->phase == GOT_INPUT) {
    if (own->input.request.is_end) {
      own->is_over = true;
      iterator->phase = LOOK;
      return false;
    }
    if (!rn_ok(own->input.request.status)) {
      *out_done = place_failed(own, own->input.request.status);
      return false;
    }
    iterator->phase = CALLED;
    if (!rn_data_call(&own->call, &dataset->func, place->element, dataset->input->component_count,
                      iterator->asked->step))
      return true;
  }
  iterator->phase = LOOK;
  rn_status_t status = own->call.status;
  if (rn_ok(status)) status = open_place(own, place, &own->call.results[0]);
  if (rn_ok(status)) {
    own->open_count++;
    if (dataset->window > 0) rn_data_prefetch_begin(place->source.iterator);
  } else {
    *out_done = place_failed(own, status);
  }
  return false;
}

static bool interleave_next(rn_data_iterator_t* iterator) {
  interleave_iterator_t* own = (interleave_iterator_t*)iterator;
  bool is_done = false;
  while (iterator->phase != LOOK || !own->is_over || own->open_count > 0) {
    if (interleave_turn(own, &is_done)) return false;
    if (is_done) return true;
  }
  return rn_data_end(iterator);
}

static rn_status_t interleave_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  interleave_iterator_t* own = (interleave_iterator_t*)iterator;
  const interleave_t* dataset = (const interleave_t*)iterator->dataset;
  rn_data_put_int(writer, own->cycle);
  rn_data_put_int(writer, own->block);
  rn_data_put_int(writer, own->is_over);
  for (int64_t i = 0; i < own->place_count; ++i) {
    interleave_place_t* place = &own->places[i];
    if (!rn_ok(place->status))
      return rn_failed_precondition("A pending dataset failed: %s",
                                    rn_status_message(place->status));
    rn_data_put_int(writer, place->source.iterator != NULL);
    if (!place->source.iterator) continue;
    rn_data_put_row(writer, place->element, dataset->input->component_count);
    RN_RETURN_IF_ERROR(rn_data_put_iterator(writer, place->source.iterator));
  }
  return rn_data_put_iterator(writer, own->input.iterator);
}

// Remakes the datasets that were open by calling the function on the saved elements.
static rn_status_t restore_place(interleave_iterator_t* own, interleave_place_t* place,
                                 rn_data_reader_t* reader) {
  const interleave_t* dataset = (const interleave_t*)own->base.dataset;
  int32_t count = dataset->input->component_count;
  RN_RETURN_IF_ERROR(rn_data_take_row(reader, dataset->input->types, count, place->element));
  for (int32_t c = 0; c < count; ++c) {
    if (!rn_tensor_is_set(&place->element[c])) return rn_data_bad_state();
    own->call.args[c] = &place->element[c];
  }
  rn_function_call_t call = {
      .step = &own->base.run->step, .args = own->call.args, .results = own->call.results};
  RN_RETURN_IF_ERROR(
      rn_function_run_and_wait(dataset->func.functions, dataset->func.instance, &call));
  RN_RETURN_IF_ERROR(open_place(own, place, &own->call.results[0]));
  own->open_count++;
  return rn_data_take_iterator(reader, place->source.iterator);
}

static rn_status_t interleave_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  interleave_iterator_t* own = (interleave_iterator_t*)iterator;
  int64_t is_over = 0;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &own->cycle));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &own->block));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &is_over));
  if (own->cycle < 0 || own->cycle >= own->place_count || own->block < 0)
    return rn_data_bad_state();
  own->is_over = is_over != 0;
  own->primed = own->place_count;
  for (int64_t i = 0; i < own->place_count; ++i) {
    int64_t is_open = 0;
    RN_RETURN_IF_ERROR(rn_data_take_int(reader, &is_open));
    if (is_open) RN_RETURN_IF_ERROR(restore_place(own, &own->places[i], reader));
  }
  for (int64_t i = 0; i < own->place_count; ++i) {
    int64_t place = (own->cycle + i) % own->place_count;
    if (!own->places[place].source.iterator) push_ended(own, place, false);
  }
  return rn_data_restore_source(reader, &own->input, iterator,
                                ((const interleave_t*)iterator->dataset)->input);
}

// Unknown, as it depends on the function; but stock says that a parallel one of an infinite input
// is infinite.
static int64_t interleave_cardinality(const rn_dataset_t* dataset) {
  int64_t n = rn_dataset_cardinality(((const interleave_t*)dataset)->input);
  bool is_parallel = strstr(dataset->node->op->name, "Parallel") != NULL;
  return n == RN_DATA_INFINITE && is_parallel ? n : RN_DATA_UNKNOWN;
}

const rn_data_kind_t rn_data_kind_interleave = {.dataset_size = sizeof(interleave_t),
                                                .iterator_size = sizeof(interleave_iterator_t),
                                                .open = interleave_open,
                                                .close = interleave_close,
                                                .cardinality = interleave_cardinality,
                                                .start = interleave_start,
                                                .stop = interleave_stop,
                                                .next = interleave_next,
                                                .save = interleave_save,
                                                .restore = interleave_restore};

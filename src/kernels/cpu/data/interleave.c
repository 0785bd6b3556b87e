// Datasets of datasets: a function makes a dataset of each element, and their elements follow each
// other, in blocks taken in turn from several that are open at once.
#include "kernels/cpu/data/data.h"
#include "kernels/cpu/data/prefetch.h"

typedef struct interleave_t {
  rn_dataset_t base;
  rn_dataset_t* input;
  rn_data_func_t func;
  int64_t cycle_length, block_length;
  int64_t ahead;  // elements that each open dataset makes in the background
} interleave_t;

// An open dataset, or a place for one. Its element is kept, so that it can be made again.
typedef struct place_t {
  rn_data_source_t source;
  rn_tensor_t* element;
  rn_dataset_t* dataset;  // Retained while it is open
} place_t;

typedef struct interleave_iterator_t {
  rn_data_iterator_t base;
  rn_data_source_t input;
  rn_data_call_t call;
  place_t* places;
  int64_t place_count;
  int64_t cycle, block;
  int64_t open_count;
  bool is_over;  // the input is
} interleave_iterator_t;

enum { LOOK = 0, ASKED, GOT_INPUT, CALLED };

#define DEFAULT_CYCLE 4  // where stock takes the number of processors
#define MAX_CYCLE 65536
#define DEFAULT_AHEAD 2

static rn_status_t read_lengths(rn_dataset_t* dataset) {
  interleave_t* own = (interleave_t*)dataset;
  own->cycle_length = own->block_length = 1;
  if (!rn_data_has_input(dataset, "cycle_length")) return RN_OK;
  bool is_plain = !rn_data_has_input(dataset, "num_parallel_calls");
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "cycle_length", &own->cycle_length));
  if (own->cycle_length == RN_DATA_AUTOTUNE) own->cycle_length = DEFAULT_CYCLE;
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
    return rn_invalid_argument(is_plain ? "block_length must be greater than zero."
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
  RN_RETURN_IF_ERROR(rn_data_call_init(&own->call, iterator, &dataset->func));
  return rn_data_source_start(&own->input, iterator, dataset->input);
}

static void close_place(interleave_iterator_t* own, place_t* place) {
  rn_data_source_stop(&place->source);
  rn_data_row_clear(place->element,
                    ((const interleave_t*)own->base.dataset)->input->component_count);
  rn_dataset_release(place->dataset);
  place->dataset = NULL;
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
}

// Makes the dataset in |result| the one of |place|.
static rn_status_t open_place(interleave_iterator_t* own, place_t* place, rn_tensor_t* result) {
  const interleave_t* dataset = (const interleave_t*)own->base.dataset;
  rn_dataset_t* made = NULL;
  rn_status_t status = rn_dataset_of(result, &made);
  bool fits = rn_ok(status) && made->component_count == dataset->base.component_count;
  for (int32_t c = 0; fits && c < made->component_count; ++c)
    fits = made->types[c] == dataset->base.types[c];
  if (rn_ok(status) && !fits)
    status = rn_invalid_argument("A dataset of other types than those of the %s was returned",
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

// One turn: true if something is to be waited for; |*out_done| if the request is answered.
static bool interleave_turn(interleave_iterator_t* own, bool* out_done) {
  rn_data_iterator_t* iterator = &own->base;
  const interleave_t* dataset = (const interleave_t*)iterator->dataset;
  place_t* place = &own->places[own->cycle];
  *out_done = false;
  if (iterator->phase == LOOK && place->source.iterator) {
    iterator->phase = ASKED;
    if (!rn_data_ask(&place->source, iterator->asked->out)) return true;
  }
  if (iterator->phase == LOOK) {
    if (own->is_over) {
      advance(own);
      return false;
    }
    iterator->phase = GOT_INPUT;
    if (!rn_data_ask(&own->input, place->element)) return true;
  }
  if (iterator->phase == ASKED) {
    iterator->phase = LOOK;
    if (place->source.request.is_end) {
      close_place(own, place);
      own->open_count--;
      advance(own);
      return false;
    }
    if (rn_ok(place->source.request.status) && ++own->block == dataset->block_length) advance(own);
    *out_done = rn_data_finish(iterator, place->source.request.status);
    return false;
  }
  if (iterator->phase == GOT_INPUT) {
    if (own->input.request.is_end) {
      own->is_over = true;
      iterator->phase = LOOK;
      return false;
    }
    if (!rn_ok(own->input.request.status)) {
      *out_done = rn_data_finish(iterator, own->input.request.status);
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
  } else {
    close_place(own, place);
    *out_done = rn_data_finish(iterator, status);
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
    place_t* place = &own->places[i];
    rn_data_put_int(writer, place->source.iterator != NULL);
    if (!place->source.iterator) continue;
    rn_data_put_row(writer, place->element, dataset->input->component_count);
    RN_RETURN_IF_ERROR(rn_data_put_iterator(writer, place->source.iterator));
  }
  return rn_data_put_iterator(writer, own->input.iterator);
}

// The datasets that were open are made again, by the function, of the elements that were kept.
static rn_status_t restore_place(interleave_iterator_t* own, place_t* place,
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
      rn_function_run_and_wait(dataset->func.host->functions, dataset->func.instance, &call));
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
  for (int64_t i = 0; i < own->place_count; ++i) {
    int64_t is_open = 0;
    RN_RETURN_IF_ERROR(rn_data_take_int(reader, &is_open));
    if (is_open) RN_RETURN_IF_ERROR(restore_place(own, &own->places[i], reader));
  }
  return rn_data_restore_source(reader, &own->input, iterator,
                                ((const interleave_t*)iterator->dataset)->input);
}

const rn_data_kind_t rn_data_kind_interleave = {.dataset_size = sizeof(interleave_t),
                                                .iterator_size = sizeof(interleave_iterator_t),
                                                .open = interleave_open,
                                                .close = interleave_close,
                                                .start = interleave_start,
                                                .stop = interleave_stop,
                                                .next = interleave_next,
                                                .save = interleave_save,
                                                .restore = interleave_restore};

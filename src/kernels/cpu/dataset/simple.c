// Simple datasets: Take, Skip, Repeat, Shard and others that pass elements through.
#include <stdio.h>

#include "kernels/cpu/dataset/data.h"
#include "kernels/cpu/dataset/derived.h"

// Most of these have one input dataset and a number.
typedef struct simple_t {
  rn_dataset_t base;
  rn_dataset_t* input;  // Borrowed from the inputs, or owned
  bool owns_input;
  int64_t count;
  int64_t index;  // for a shard
} simple_t;

typedef struct simple_iterator_t {
  rn_data_iterator_t base;
  rn_data_source_t source;
  int64_t done;  // elements passed or skipped, or repetitions
  bool is_first;
} simple_iterator_t;

static int64_t input_cardinality(const rn_dataset_t* dataset) {
  return rn_dataset_cardinality(((const simple_t*)dataset)->input);
}

static void simple_close(rn_dataset_t* dataset) {
  const simple_t* simple = (const simple_t*)dataset;
  if (simple->owns_input) rn_dataset_release(simple->input);
}

static rn_status_t open_input(rn_dataset_t* dataset) {
  return rn_data_upstream(dataset, "input_dataset", &((simple_t*)dataset)->input);
}

static rn_status_t open_count(rn_dataset_t* dataset) {
  RN_RETURN_IF_ERROR(open_input(dataset));
  return rn_data_scalar(dataset, "count", &((simple_t*)dataset)->count);
}

static rn_status_t simple_start(rn_data_iterator_t* iterator) {
  simple_iterator_t* own = (simple_iterator_t*)iterator;
  own->is_first = true;
  return rn_data_source_start(&own->source, iterator, ((const simple_t*)iterator->dataset)->input);
}

static void simple_stop(rn_data_iterator_t* iterator) {
  rn_data_source_stop(&((simple_iterator_t*)iterator)->source);
}

static rn_status_t simple_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  simple_iterator_t* own = (simple_iterator_t*)iterator;
  rn_data_put_int(writer, own->done);
  rn_data_put_int(writer, own->is_first);
  return rn_data_put_iterator(writer, own->source.iterator);
}

static rn_status_t simple_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  simple_iterator_t* own = (simple_iterator_t*)iterator;
  int64_t is_first = 0;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &own->done));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &is_first));
  own->is_first = is_first != 0;
  return rn_data_restore_source(reader, &own->source, iterator,
                                ((const simple_t*)iterator->dataset)->input);
}

static rn_status_t get_same(rn_dataset_t* dataset, int64_t index, rn_step_t* step,
                            rn_tensor_t* out) {
  return rn_dataset_get(((const simple_t*)dataset)->input, index, step, out);
}

#define SIMPLE                                                                            \
  .dataset_size = sizeof(simple_t), .iterator_size = sizeof(simple_iterator_t),           \
  .close = simple_close, .start = simple_start, .stop = simple_stop, .save = simple_save, \
  .restore = simple_restore

// Forwards the reply of the source.
static bool pass_on(rn_data_iterator_t* iterator, const rn_data_source_t* source) {
  if (source->request.is_end) return rn_data_end(iterator);
  return rn_data_finish(iterator, source->request.status);
}

// Datasets that pass everything through: options, models, optimizations that are not needed here.
static bool same_next(rn_data_iterator_t* iterator) {
  simple_iterator_t* own = (simple_iterator_t*)iterator;
  if (iterator->phase++ == 0 && !rn_data_ask(&own->source, iterator->asked->out)) return false;
  return pass_on(iterator, &own->source);
}

const rn_data_kind_t rn_data_kind_same = {SIMPLE, .open = open_input,
                                          .cardinality = input_cardinality, .next = same_next,
                                          .get = get_same};

// Datasets that request threads of their own. All datasets share the pool of the runtime, which
// has no more threads than are useful.
static rn_status_t bounded_open(rn_dataset_t* dataset) {
  static const char* const names[] = {"max_intra_op_parallelism", "num_threads"};
  RN_RETURN_IF_ERROR(open_input(dataset));
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    int64_t bound = 0;
    if (!rn_data_has_input(dataset, names[i])) continue;
    RN_RETURN_IF_ERROR(rn_data_scalar(dataset, names[i], &bound));
    if (bound < 0) return rn_invalid_argument("`%s` must be >= 0", names[i]);
  }
  const rn_tensor_t* handle = rn_data_input(dataset, "thread_pool", NULL);
  rn_resource_t* unused = NULL;
  return handle ? rn_handle_resource(handle, NULL, RN_DATA_THREADS_TYPE, &unused) : RN_OK;
}

const rn_data_kind_t rn_data_kind_bounded = {SIMPLE, .open = bounded_open,
                                             .cardinality = input_cardinality, .next = same_next,
                                             .get = get_same};

// Take: the first |count| elements; < 0 for all.
static int64_t take_cardinality(const rn_dataset_t* dataset) {
  int64_t count = ((const simple_t*)dataset)->count, n = input_cardinality(dataset);
  if (count < 0 || n == RN_DATA_UNKNOWN) return n;
  if (n == RN_DATA_INFINITE) return count;
  return n < count ? n : count;
}

static bool take_next(rn_data_iterator_t* iterator) {
  simple_iterator_t* own = (simple_iterator_t*)iterator;
  int64_t count = ((const simple_t*)iterator->dataset)->count;
  if (iterator->phase == 0) {
    if (count >= 0 && own->done >= count) {
      rn_data_source_stop(&own->source);
      return rn_data_end(iterator);
    }
    iterator->phase = 1;
    own->done++;
    if (!rn_data_ask(&own->source, iterator->asked->out)) return false;
  }
  return pass_on(iterator, &own->source);
}

const rn_data_kind_t rn_data_kind_take = {SIMPLE, .open = open_count,
                                          .cardinality = take_cardinality, .next = take_next,
                                          .get = get_same};

// Skip: all but the first |count|; < 0 for none.
static int64_t skip_cardinality(const rn_dataset_t* dataset) {
  int64_t count = ((const simple_t*)dataset)->count, n = input_cardinality(dataset);
  if (count < 0) return 0;
  if (n < 0) return n;
  return n > count ? n - count : 0;
}

static bool skip_next(rn_data_iterator_t* iterator) {
  simple_iterator_t* own = (simple_iterator_t*)iterator;
  int64_t count = ((const simple_t*)iterator->dataset)->count;
  rn_tensor_t* out = iterator->asked->out;
  if (count < 0) {
    rn_data_source_stop(&own->source);
    return rn_data_end(iterator);
  }
  for (;; iterator->phase = 0) {
    if (iterator->phase == 0) {
      iterator->phase = 1;
      if (!rn_data_ask(&own->source, out)) return false;
    }
    if (own->source.request.is_end || own->done >= count || !rn_ok(own->source.request.status))
      return pass_on(iterator, &own->source);
    own->done++;
    rn_data_row_clear(out, iterator->dataset->component_count);
  }
}

// The index is below the cardinality, so nothing overflows.
static rn_status_t skip_get(rn_dataset_t* dataset, int64_t index, rn_step_t* step,
                            rn_tensor_t* out) {
  return get_same(dataset, index + ((const simple_t*)dataset)->count, step, out);
}

const rn_data_kind_t rn_data_kind_skip = {SIMPLE, .open = open_count,
                                          .cardinality = skip_cardinality, .next = skip_next,
                                          .get = skip_get};

// Repeat: |count| times; < 0 for endless. An empty input ends it.
static int64_t repeat_cardinality(const rn_dataset_t* dataset) {
  int64_t count = ((const simple_t*)dataset)->count, n = input_cardinality(dataset), all = 0;
  if (count < 0) return n == 0 ? 0 : RN_DATA_INFINITE;
  if (count == 0) return 0;
  if (n < 0) return n;
  return rn_mul_i64_ok(n, count, &all) ? all : INT64_MAX;
}

static bool repeat_next(rn_data_iterator_t* iterator) {
  simple_iterator_t* own = (simple_iterator_t*)iterator;
  const simple_t* repeat = (const simple_t*)iterator->dataset;
  for (;; iterator->phase = 0) {
    if (iterator->phase == 0) {
      if (repeat->count >= 0 && own->done >= repeat->count) {
        rn_data_source_stop(&own->source);
        return rn_data_end(iterator);
      }
      if (!own->source.iterator) {
        rn_status_t status = rn_data_source_start(&own->source, iterator, repeat->input);
        if (!rn_ok(status)) return rn_data_finish(iterator, status);
      }
      iterator->phase = 1;
      if (!rn_data_ask(&own->source, iterator->asked->out)) return false;
    }
    if (!own->source.request.is_end) {
      own->is_first = false;
      return rn_data_finish(iterator, own->source.request.status);
    }
    own->done++;
    // Repeating an empty input forever would never end. But other workers may have had all splits.
    if (repeat->count < 0 && own->is_first && !rn_data_has_splits(repeat->input, 0)) {
      own->done = 0;
      return rn_data_end(iterator);
    }
    own->is_first = true;
    // Stock starts the input once more after the last repetition, too. A shuffle in it draws seeds
    // then, so the next pass over the dataset has others. A shuffle just before the repetition is
    // joined with it in stock, and draws none.
    if (repeat->count >= 0 && repeat->input->kind != &rn_data_kind_shuffle) {
      rn_status_t status = rn_data_source_start(&own->source, iterator, repeat->input);
      if (!rn_ok(status)) return rn_data_finish(iterator, status);
    }
  }
}

static rn_status_t repeat_get(rn_dataset_t* dataset, int64_t index, rn_step_t* step,
                              rn_tensor_t* out) {
  int64_t count = input_cardinality(dataset);
  return get_same(dataset, count > 0 ? index % count : index, step, out);
}

const rn_data_kind_t rn_data_kind_repeat = {SIMPLE, .open = open_count,
                                            .cardinality = repeat_cardinality, .next = repeat_next,
                                            .get = repeat_get};

// Shard: every |count|-th element, from |index| on.
static rn_status_t shard_open(rn_dataset_t* dataset) {
  simple_t* shard = (simple_t*)dataset;
  RN_RETURN_IF_ERROR(open_input(dataset));
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "num_shards", &shard->count));
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "index", &shard->index));
  if (shard->count < 1)
    return rn_invalid_argument(
        "Number of shards must be greater than zero (currently num_shards = "
        "%lld).",
        (long long)shard->count);
  if (shard->index < 0 || shard->index >= shard->count)
    return rn_invalid_argument("Index must be between 0 and %lld (currently index = %lld).",
                               (long long)(shard->count - 1), (long long)shard->index);
  return RN_OK;
}

static int64_t shard_cardinality(const rn_dataset_t* dataset) {
  const simple_t* shard = (const simple_t*)dataset;
  int64_t n = input_cardinality(dataset);
  return n < 0 ? n : n / shard->count + (shard->index < n % shard->count);
}

static bool shard_next(rn_data_iterator_t* iterator) {
  simple_iterator_t* own = (simple_iterator_t*)iterator;
  const simple_t* shard = (const simple_t*)iterator->dataset;
  rn_tensor_t* out = iterator->asked->out;
  for (;; iterator->phase = 0) {
    if (iterator->phase == 0) {
      iterator->phase = 1;
      if (!rn_data_ask(&own->source, out)) return false;
    }
    if (own->source.request.is_end || !rn_ok(own->source.request.status))
      return pass_on(iterator, &own->source);
    if (own->done++ % shard->count == shard->index) return pass_on(iterator, &own->source);
    rn_data_row_clear(out, iterator->dataset->component_count);
  }
}

static rn_status_t shard_get(rn_dataset_t* dataset, int64_t index, rn_step_t* step,
                             rn_tensor_t* out) {
  const simple_t* shard = (const simple_t*)dataset;
  return get_same(dataset, index * shard->count + shard->index, step, out);
}

const rn_data_kind_t rn_data_kind_shard = {SIMPLE, .open = shard_open,
                                           .cardinality = shard_cardinality, .next = shard_next,
                                           .get = shard_get};

// IgnoreErrors: skips elements that failed.
static bool ignore_next(rn_data_iterator_t* iterator) {
  simple_iterator_t* own = (simple_iterator_t*)iterator;
  for (;; iterator->phase = 0) {
    if (iterator->phase == 0) {
      iterator->phase = 1;
      if (!rn_data_ask(&own->source, iterator->asked->out)) return false;
    }
    rn_status_t status = own->source.request.status;
    rn_code_t code = rn_status_code(status);
    if (rn_ok(status) || code == RN_CODE_CANCELLED || code == RN_CODE_DEADLINE_EXCEEDED)
      return pass_on(iterator, &own->source);
    rn_status_free(status);
  }
}

const rn_data_kind_t rn_data_kind_ignore_errors = {SIMPLE, .open = open_input, .next = ignore_next};

// AssertCardinality.
static rn_status_t assert_open(rn_dataset_t* dataset) {
  RN_RETURN_IF_ERROR(open_input(dataset));
  return rn_data_scalar(dataset, "cardinality", &((simple_t*)dataset)->count);
}

static int64_t assert_cardinality(const rn_dataset_t* dataset) {
  return ((const simple_t*)dataset)->count;
}

// "an infinite number of elements", "1 element", "3 elements".
static const char* elements(int64_t count, char out[48]) {
  if (count == RN_DATA_INFINITE)
    snprintf(out, 48, "an infinite number of elements");
  else
    snprintf(out, 48, "%lld element%s", (long long)count, count == 1 ? "" : "s");
  return out;
}

static rn_status_t wrong_count(int64_t expected, int64_t found, bool is_more) {
  char wanted[48], had[48];
  return rn_failed_precondition("Input dataset was expected to contain %s but contained %s %s.",
                                elements(expected, wanted), is_more ? "at least" : "only",
                                elements(found, had));
}

static rn_status_t assert_get(rn_dataset_t* dataset, int64_t index, rn_step_t* step,
                              rn_tensor_t* out) {
  const simple_t* simple = (const simple_t*)dataset;
  char wanted[48];
  rn_status_t status = rn_dataset_get(simple->input, index, step, out);
  if (rn_ok(status) || rn_status_code(status) != RN_CODE_OUT_OF_RANGE) return status;
  rn_status_free(status);
  return rn_failed_precondition("Input dataset was expected to contain %s.",
                                elements(simple->count, wanted));
}

static bool assert_next(rn_data_iterator_t* iterator) {
  simple_iterator_t* own = (simple_iterator_t*)iterator;
  int64_t expected = ((const simple_t*)iterator->dataset)->count;
  if (iterator->phase == 0) {
    iterator->phase = 1;
    if (!rn_data_ask(&own->source, iterator->asked->out)) return false;
  }
  if (!rn_ok(own->source.request.status)) return pass_on(iterator, &own->source);
  bool is_end = own->source.request.is_end;
  if (!is_end) own->done++;
  bool is_short = is_end && expected != RN_DATA_UNKNOWN && own->done != expected;
  bool is_long = !is_end && expected >= 0 && own->done > expected;
  if (!is_short && !is_long) return pass_on(iterator, &own->source);
  rn_data_row_clear(iterator->asked->out, iterator->dataset->component_count);
  return rn_data_finish(iterator, wrong_count(expected, own->done, is_long));
}

const rn_data_kind_t rn_data_kind_assert_cardinality = {SIMPLE, .open = assert_open,
                                                        .cardinality = assert_cardinality,
                                                        .next = assert_next, .get = assert_get};

// Datasets that no op makes.
static rn_status_t simple_over(const rn_data_kind_t* kind, rn_dataset_t* input, int64_t count,
                               int64_t index, rn_dataset_t** out) {
  *out = NULL;
  rn_data_node_t* node = NULL;
  RN_RETURN_IF_ERROR(rn_data_inner_node(input->node, kind, input->component_count, input->types,
                                        input->shapes, &node));
  rn_dataset_t* dataset = NULL;
  rn_status_t status = rn_dataset_create_inner(node, input->host, &dataset);
  rn_object_release(&node->object);
  RN_RETURN_IF_ERROR(status);
  simple_t* simple = (simple_t*)dataset;
  simple->input = input;
  simple->owns_input = true;
  rn_object_retain(&input->object);
  simple->count = count;
  simple->index = index;
  *out = dataset;
  return RN_OK;
}

rn_status_t rn_data_shard_over(rn_dataset_t* input, int64_t count, int64_t index,
                               rn_dataset_t** out) {
  return simple_over(&rn_data_kind_shard, input, count, index, out);
}

rn_status_t rn_data_take_over(rn_dataset_t* input, int64_t count, rn_dataset_t** out) {
  return simple_over(&rn_data_kind_take, input, count, 0, out);
}

// AutoShard: the elements of the input as auto_shard.c divides it.
static rn_status_t auto_open(rn_dataset_t* dataset) {
  simple_t* simple = (simple_t*)dataset;
  simple->owns_input = true;
  return rn_data_auto_shard(dataset, &simple->input);
}

const rn_data_kind_t rn_data_kind_auto_shard = {SIMPLE, .open = auto_open,
                                                .cardinality = input_cardinality, .next = same_next,
                                                .get = get_same};

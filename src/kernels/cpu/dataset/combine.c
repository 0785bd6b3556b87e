// Datasets that combine several: Concatenate, Zip, and choosing among them by a selector.
#include "kernels/cpu/array.h"
#include "kernels/cpu/dataset/derived.h"

typedef struct several_t {
  rn_dataset_t base;
  int32_t count;
  rn_dataset_t** inputs;  // an array of borrowed datasets, or of owned ones
  bool owns_inputs;
  rn_dataset_t* selector;
  bool stops_on_empty;
} several_t;

typedef struct several_iterator_t {
  rn_data_iterator_t base;
  int32_t count;
  rn_data_source_t* sources;
  rn_data_source_t selector;
  rn_tensor_t choice;
  int32_t at;      // index of the current source
  int32_t offset;  // of its components
} several_iterator_t;

static void several_close(rn_dataset_t* dataset) {
  several_t* several = (several_t*)dataset;
  for (int32_t i = 0; several->owns_inputs && i < several->count; ++i)
    rn_dataset_release(several->inputs[i]);
  RN_FREE_ARRAY(dataset->node->allocator, several->inputs, several->count);
}

static rn_status_t open_inputs(rn_dataset_t* dataset, const rn_tensor_t* tensors, int32_t count) {
  several_t* several = (several_t*)dataset;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(dataset->node->allocator, (size_t)count, &several->inputs));
  several->count = count;
  for (int32_t i = 0; i < count; ++i)
    RN_RETURN_IF_ERROR(rn_dataset_of(&tensors[i], &several->inputs[i]));
  return RN_OK;
}

static rn_status_t several_start(rn_data_iterator_t* iterator) {
  several_iterator_t* own = (several_iterator_t*)iterator;
  const several_t* several = (const several_t*)iterator->dataset;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&iterator->arena, (size_t)several->count, &own->sources));
  own->count = several->count;
  for (int32_t i = 0; i < own->count; ++i)
    RN_RETURN_IF_ERROR(rn_data_source_start(&own->sources[i], iterator, several->inputs[i]));
  if (!several->selector) return RN_OK;
  return rn_data_source_start(&own->selector, iterator, several->selector);
}

static void several_stop(rn_data_iterator_t* iterator) {
  several_iterator_t* own = (several_iterator_t*)iterator;
  for (int32_t i = 0; i < own->count; ++i) rn_data_source_stop(&own->sources[i]);
  rn_data_source_stop(&own->selector);
  rn_tensor_clear(&own->choice);
}

static rn_status_t several_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  several_iterator_t* own = (several_iterator_t*)iterator;
  rn_data_put_int(writer, own->at);
  for (int32_t i = 0; i < own->count; ++i)
    RN_RETURN_IF_ERROR(rn_data_put_iterator(writer, own->sources[i].iterator));
  return rn_data_put_iterator(writer, own->selector.iterator);
}

static rn_status_t several_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  several_iterator_t* own = (several_iterator_t*)iterator;
  const several_t* several = (const several_t*)iterator->dataset;
  int64_t at = 0;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &at));
  if (at < 0 || at > own->count) return rn_data_bad_state();
  own->at = (int32_t)at;
  for (int32_t i = 0; i < own->count; ++i)
    RN_RETURN_IF_ERROR(
        rn_data_restore_source(reader, &own->sources[i], iterator, several->inputs[i]));
  return rn_data_restore_source(reader, &own->selector, iterator, several->selector);
}

#define SEVERAL                                                                               \
  .dataset_size = sizeof(several_t), .iterator_size = sizeof(several_iterator_t),             \
  .close = several_close, .start = several_start, .stop = several_stop, .save = several_save, \
  .restore = several_restore

// Concatenate.
static rn_status_t concatenate_open(rn_dataset_t* dataset) {
  RN_RETURN_IF_ERROR(open_inputs(dataset, dataset->inputs, 2));
  const several_t* several = (const several_t*)dataset;
  const rn_dataset_t *a = several->inputs[0], *b = several->inputs[1];
  bool fits = a->component_count == b->component_count;
  for (int32_t c = 0; fits && c < a->component_count; ++c) fits = a->types[c] == b->types[c];
  if (!fits) return rn_invalid_argument("Two datasets to concatenate have different types");
  return RN_OK;
}

static int64_t concatenate_cardinality(const rn_dataset_t* dataset) {
  const several_t* several = (const several_t*)dataset;
  int64_t sum = 0;
  bool is_unknown = false;
  for (int32_t i = 0; i < several->count; ++i) {
    int64_t n = rn_dataset_cardinality(several->inputs[i]);
    if (n == RN_DATA_INFINITE) return n;
    is_unknown |= n == RN_DATA_UNKNOWN;
    if (n > 0 && !rn_add_i64_ok(sum, n, &sum)) sum = INT64_MAX;
  }
  return is_unknown ? RN_DATA_UNKNOWN : sum;
}

static bool concatenate_next(rn_data_iterator_t* iterator) {
  several_iterator_t* own = (several_iterator_t*)iterator;
  for (; own->at < own->count; own->at++, iterator->phase = 0) {
    rn_data_source_t* source = &own->sources[own->at];
    if (iterator->phase == 0) {
      iterator->phase = 1;
      if (!rn_data_ask(source, iterator->asked->out)) return false;
    }
    if (!source->request.is_end) return rn_data_finish(iterator, source->request.status);
  }
  return rn_data_end(iterator);
}

static rn_status_t concatenate_get(rn_dataset_t* dataset, int64_t index, rn_step_t* step,
                                   rn_tensor_t* out) {
  const several_t* several = (const several_t*)dataset;
  int32_t i = 0;
  for (; i + 1 < several->count; ++i) {
    int64_t count = rn_dataset_cardinality(several->inputs[i]);
    if (index < count) break;
    index -= count;
  }
  return rn_dataset_get(several->inputs[i], index, step, out);
}

const rn_data_kind_t rn_data_kind_concatenate = {SEVERAL, .open = concatenate_open,
                                                 .cardinality = concatenate_cardinality,
                                                 .next = concatenate_next, .get = concatenate_get};

// WeightedFlatMap: the first elements of each input, as many as its weight says. The one with the
// largest weight gives as many as the smallest input has.
static rn_status_t check_weights(const rn_dataset_t* dataset, const rn_tensor_t* weights,
                                 int32_t count, double* out_largest) {
  for (int32_t i = 0; i < count; ++i) {
    if (weights[i].rank != 0) return rn_invalid_argument("`weights` must be scalars.");
    double weight = *RN_DATA(&weights[i], const double);
    if (!(weight > 0))
      return rn_invalid_argument("`weights` must be greater than 0.0. Input %d has a weight of %g",
                                 i, weight);
    if (i == 0 || weight > *out_largest) *out_largest = weight;
  }
  int32_t inputs = ((const several_t*)dataset)->count;
  if (count == inputs) return RN_OK;
  return rn_invalid_argument("There are %d weights for %d inputs", count, inputs);
}

static rn_status_t check_inputs(const several_t* several, int64_t* out_least) {
  for (int32_t i = 0; i < several->count; ++i) {
    const rn_dataset_t* input = several->inputs[i];
    int64_t n = rn_dataset_cardinality(input);
    if (n < 0)
      return rn_invalid_argument("Input %d of %s has %s cardinality", i,
                                 several->base.node->op->name,
                                 n == RN_DATA_INFINITE ? "infinite" : "unknown");
    if (i == 0 || n < *out_least) *out_least = n;
    bool fits = input->component_count == several->base.component_count;
    for (int32_t c = 0; fits && c < input->component_count; ++c)
      fits = input->types[c] == several->base.types[c];
    if (!fits) return rn_invalid_argument("The inputs to weigh have different types");
  }
  return RN_OK;
}

static rn_status_t weighted_open(rn_dataset_t* dataset) {
  several_t* several = (several_t*)dataset;
  int32_t count = 0, weight_count = 0;
  const rn_tensor_t* inputs = rn_data_input(dataset, "input_datasets", &count);
  const rn_tensor_t* weights = rn_data_input(dataset, "weights", &weight_count);
  double largest = 0;
  int64_t least = 0;
  RN_RETURN_IF_ERROR(open_inputs(dataset, inputs, count));
  RN_RETURN_IF_ERROR(check_weights(dataset, weights, weight_count, &largest));
  RN_RETURN_IF_ERROR(check_inputs(several, &least));
  for (int32_t i = 0; i < count; ++i) rn_object_retain(&several->inputs[i]->object);
  several->owns_inputs = true;
  for (int32_t i = 0; i < count; ++i) {
    double share = *RN_DATA(&weights[i], const double) / largest;
    rn_dataset_t* taken = NULL;
    RN_RETURN_IF_ERROR(
        rn_data_take_over(several->inputs[i], (int64_t)((double)least * share), &taken));
    rn_dataset_release(several->inputs[i]);
    several->inputs[i] = taken;
  }
  return RN_OK;
}

const rn_data_kind_t rn_data_kind_weighted = {SEVERAL, .open = weighted_open,
                                              .cardinality = concatenate_cardinality,
                                              .next = concatenate_next, .get = concatenate_get};

// Zip: ends when the first input ends.
static rn_status_t zip_open(rn_dataset_t* dataset) {
  RN_RETURN_IF_ERROR(open_inputs(dataset, dataset->inputs, dataset->node->input_count));
  const several_t* several = (const several_t*)dataset;
  int32_t total = 0;
  for (int32_t i = 0; i < several->count; ++i) total += several->inputs[i]->component_count;
  if (total != dataset->component_count)
    return rn_invalid_argument("Zip of datasets with %d components declares %d", total,
                               dataset->component_count);
  return RN_OK;
}

static int64_t zip_cardinality(const rn_dataset_t* dataset) {
  const several_t* several = (const several_t*)dataset;
  int64_t least = RN_DATA_INFINITE;
  for (int32_t i = 0; i < several->count; ++i) {
    int64_t n = rn_dataset_cardinality(several->inputs[i]);
    if (n == RN_DATA_UNKNOWN) return n;
    if (n >= 0 && (least < 0 || n < least)) least = n;
  }
  return least;
}

static bool zip_end(several_iterator_t* own) {
  for (int32_t i = 0; i < own->count; ++i) rn_data_source_stop(&own->sources[i]);
  return rn_data_end(&own->base);
}

// Reports an error only after all inputs were asked, so that they stay in step.
static bool zip_next(rn_data_iterator_t* iterator) {
  several_iterator_t* own = (several_iterator_t*)iterator;
  rn_tensor_t* out = iterator->asked->out;
  if (iterator->phase == 0) own->at = own->offset = 0;
  for (; own->at < own->count; own->at++, iterator->phase = 0) {
    rn_data_source_t* source = &own->sources[own->at];
    if (iterator->phase < 2) {
      iterator->phase = 2;
      if (!rn_data_ask(source, out + own->offset)) return false;
    }
    if (!rn_ok(source->request.status)) {
      iterator->asked->status = rn_status_join(iterator->asked->status, source->request.status);
    } else if (source->request.is_end) {
      rn_data_row_clear(out, own->offset);
      rn_status_free(iterator->asked->status);
      iterator->asked->status = RN_OK;
      return zip_end(own);
    }
    own->offset += ((const several_t*)iterator->dataset)->inputs[own->at]->component_count;
  }
  if (!rn_ok(iterator->asked->status)) rn_data_row_clear(out, iterator->dataset->component_count);
  return rn_data_finish(iterator, iterator->asked->status);
}

static rn_status_t zip_get(rn_dataset_t* dataset, int64_t index, rn_step_t* step,
                           rn_tensor_t* out) {
  const several_t* several = (const several_t*)dataset;
  int32_t offset = 0;
  rn_status_t status = RN_OK;
  for (int32_t i = 0; rn_ok(status) && i < several->count; ++i) {
    status = rn_dataset_get(several->inputs[i], index, step, out + offset);
    offset += several->inputs[i]->component_count;
  }
  if (!rn_ok(status)) rn_data_row_clear(out, dataset->component_count);
  return status;
}

const rn_data_kind_t rn_data_kind_zip = {SEVERAL, .open = zip_open, .cardinality = zip_cardinality,
                                         .next = zip_next, .get = zip_get};

// The selector dataset chooses the next source.
static rn_status_t directed_open(rn_dataset_t* dataset) {
  several_t* several = (several_t*)dataset;
  RN_RETURN_IF_ERROR(rn_data_upstream(dataset, "selector_input_dataset", &several->selector));
  if (several->selector->component_count != 1 || several->selector->types[0] != RN_INT64)
    return rn_invalid_argument("The selector input must be a dataset of scalar int64 elements.");
  int32_t count = 0;
  const rn_tensor_t* data = rn_data_input(dataset, "data_input_datasets", &count);
  RN_RETURN_IF_ERROR(open_inputs(dataset, data, count));
  several->stops_on_empty = rn_data_flag(dataset, "stop_on_empty_dataset");
  for (int32_t i = 0; i < count; ++i)
    if (several->inputs[i]->component_count != dataset->component_count)
      return rn_invalid_argument(
          "All inputs to DirectedInterleaveDataset must have the same number of components");
  return RN_OK;
}

static rn_status_t read_choice(several_iterator_t* own) {
  if (own->choice.count != 1 || own->choice.dtype != RN_INT64)
    return rn_invalid_argument("The selector input must produce scalars");
  int64_t choice = rn_int_at(&own->choice, 0);
  rn_tensor_clear(&own->choice);
  if (choice < 0 || choice >= own->count)
    return rn_invalid_argument("Selector index out of range: %lld >= %d", (long long)choice,
                               own->count);
  own->at = (int32_t)choice;
  return RN_OK;
}

static bool directed_next(rn_data_iterator_t* iterator) {
  several_iterator_t* own = (several_iterator_t*)iterator;
  const several_t* several = (const several_t*)iterator->dataset;
  for (;; iterator->phase = 0) {
    if (iterator->phase == 0) {
      iterator->phase = 1;
      if (!rn_data_ask(&own->selector, &own->choice)) return false;
    }
    if (iterator->phase == 1) {
      if (own->selector.request.is_end) {
        for (int32_t i = 0; i < own->count; ++i) rn_data_source_stop(&own->sources[i]);
        return rn_data_end(iterator);
      }
      rn_status_t status = own->selector.request.status;
      if (rn_ok(status)) status = read_choice(own);
      if (!rn_ok(status)) return rn_data_finish(iterator, status);
      iterator->phase = 2;
      if (!rn_data_ask(&own->sources[own->at], iterator->asked->out)) return false;
    }
    rn_data_source_t* source = &own->sources[own->at];
    if (!source->request.is_end) return rn_data_finish(iterator, source->request.status);
    if (several->stops_on_empty) {
      rn_data_source_stop(&own->selector);
      return rn_data_end(iterator);
    }
    bool all_ended = true;
    for (int32_t i = 0; all_ended && i < own->count; ++i) all_ended = !own->sources[i].iterator;
    if (all_ended) {
      rn_data_source_stop(&own->selector);
      return rn_data_end(iterator);
    }
  }
}

// Infinite if an input is, as in stock, although choices and other inputs may end it.
static int64_t directed_cardinality(const rn_dataset_t* dataset) {
  const several_t* several = (const several_t*)dataset;
  for (int32_t i = 0; i < several->count; ++i)
    if (rn_dataset_cardinality(several->inputs[i]) == RN_DATA_INFINITE) return RN_DATA_INFINITE;
  return RN_DATA_UNKNOWN;
}

const rn_data_kind_t rn_data_kind_directed = {
    SEVERAL, .open = directed_open, .cardinality = directed_cardinality, .next = directed_next};

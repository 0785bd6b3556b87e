// ChooseFastestDataset: times the first elements of several datasets with equal elements, and goes
// on with the fastest. ChooseFastestBranchDataset does the same for the datasets that several
// functions make of one.
#include "kernels/cpu/dataset/data.h"

typedef struct fastest_t {
  rn_dataset_t base;
  int32_t count;
  rn_dataset_t** inputs;  // Owned array of borrowed datasets
  int64_t trials;         // elements to time
  // For branches:
  rn_tensor_t* made;               // Owned; what |inputs| are borrowed from
  int64_t numerator, denominator;  // elements per element of the input
} fastest_t;

typedef struct fastest_iterator_t {
  rn_data_iterator_t base;
  int32_t count;
  rn_data_source_t* sources;
  int64_t* spent_ns;  // by input
  rn_tensor_t* row;   // an element of another input
  int64_t done;       // elements timed
  int32_t at;         // the input being timed, or chosen
  int64_t began_ns;
} fastest_iterator_t;

static rn_status_t check_input(const fastest_t* fastest, int32_t i) {
  const rn_dataset_t *first = fastest->inputs[0], *other = fastest->inputs[i];
  bool fits = first->component_count == other->component_count;
  for (int32_t c = 0; fits && c < first->component_count; ++c)
    fits = first->types[c] == other->types[c];
  if (!fits)
    return rn_invalid_argument(
        "All inputs to ChooseFastestDataset must have the same output types. Input %d has output "
        "types: %s. Expected: %s.",
        i, other->component_count ? rn_dtype_name(other->types[0]) : "",
        first->component_count ? rn_dtype_name(first->types[0]) : "");
  int64_t a = rn_dataset_cardinality(first), b = rn_dataset_cardinality(other);
  if (a == b || a == RN_DATA_UNKNOWN || b == RN_DATA_UNKNOWN) return RN_OK;
  return rn_invalid_argument(
      "All inputs to ChooseFastestDataset must have compatible cardinalities. Input %d has "
      "cardinality: %lld, while all prior inputs have cardinality: %lld.",
      i, (long long)b, (long long)a);
}

static rn_status_t fastest_open(rn_dataset_t* dataset) {
  fastest_t* fastest = (fastest_t*)dataset;
  int32_t count = 0;
  const rn_tensor_t* inputs = rn_data_input(dataset, "input_datasets", &count);
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(dataset->node->allocator, (size_t)count, &fastest->inputs));
  fastest->count = count;
  fastest->trials = rn_data_attr(dataset, "num_experiments")->i;
  for (int32_t i = 0; i < count; ++i) {
    RN_RETURN_IF_ERROR(rn_dataset_of(&inputs[i], &fastest->inputs[i]));
    RN_RETURN_IF_ERROR(check_input(fastest, i));
  }
  if (fastest->inputs[0]->component_count != dataset->component_count)
    return rn_invalid_argument("%s has %d input components, but %d output components",
                               dataset->node->op->name, fastest->inputs[0]->component_count,
                               dataset->component_count);
  return RN_OK;
}

static void fastest_close(rn_dataset_t* dataset) {
  fastest_t* fastest = (fastest_t*)dataset;
  if (fastest->made) {
    rn_data_row_clear(fastest->made, fastest->count);
    RN_FREE_ARRAY(dataset->node->allocator, fastest->made, fastest->count);
  }
  RN_FREE_ARRAY(dataset->node->allocator, fastest->inputs, fastest->count);
}

static int64_t fastest_cardinality(const rn_dataset_t* dataset) {
  const fastest_t* fastest = (const fastest_t*)dataset;
  for (int32_t i = 0; i < fastest->count; ++i) {
    int64_t n = rn_dataset_cardinality(fastest->inputs[i]);
    if (n != RN_DATA_UNKNOWN) return n;
  }
  return RN_DATA_UNKNOWN;
}

static rn_status_t fastest_start(rn_data_iterator_t* iterator) {
  fastest_iterator_t* own = (fastest_iterator_t*)iterator;
  const fastest_t* fastest = (const fastest_t*)iterator->dataset;
  size_t count = (size_t)fastest->count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&iterator->arena, count, &own->sources));
  own->count = fastest->count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&iterator->arena, count, &own->spent_ns));
  RN_RETURN_IF_ERROR(rn_data_row(iterator, fastest->base.component_count, &own->row));
  for (int32_t i = 0; i < own->count; ++i)
    RN_RETURN_IF_ERROR(rn_data_source_start(&own->sources[i], iterator, fastest->inputs[i]));
  return RN_OK;
}

static void fastest_stop(rn_data_iterator_t* iterator) {
  fastest_iterator_t* own = (fastest_iterator_t*)iterator;
  for (int32_t i = 0; i < own->count; ++i) rn_data_source_stop(&own->sources[i]);
  rn_data_row_clear(own->row, iterator->dataset->component_count);
}

// Keeps the fastest input and drops the others.
static void choose(fastest_iterator_t* own) {
  int32_t best = 0;
  for (int32_t i = 1; i < own->count; ++i)
    if (own->spent_ns[i] < own->spent_ns[best]) best = i;
  for (int32_t i = 0; i < own->count; ++i)
    if (i != best) rn_data_source_stop(&own->sources[i]);
  own->at = best;
}

static int64_t now_ns(const fastest_iterator_t* own) {
  const rn_env_t* env = own->base.dataset->host->env;
  return env->now_ns(env->self);
}

// Asks every input for its next element; passes on that of the first.
static bool time_next(fastest_iterator_t* own) {
  rn_data_iterator_t* iterator = &own->base;
  rn_tensor_t* out = iterator->asked->out;
  if (iterator->phase == 0) own->at = 0;
  for (; own->at < own->count; own->at++, iterator->phase = 1) {
    rn_data_source_t* source = &own->sources[own->at];
    if (iterator->phase < 2) {
      iterator->phase = 2;
      own->began_ns = now_ns(own);
      if (!rn_data_ask(source, own->at == 0 ? out : own->row)) return false;
    }
    own->spent_ns[own->at] += now_ns(own) - own->began_ns;
    rn_data_row_clear(own->row, iterator->dataset->component_count);
    bool is_end = source->request.is_end && own->at == 0;
    if (is_end || !rn_ok(source->request.status)) {
      if (own->at) rn_data_row_clear(out, iterator->dataset->component_count);
      own->at = 0;
      return is_end ? rn_data_end(iterator) : rn_data_finish(iterator, source->request.status);
    }
  }
  own->at = 0;
  if (++own->done == ((const fastest_t*)iterator->dataset)->trials) choose(own);
  return rn_data_finish(iterator, RN_OK);
}

static bool fastest_next(rn_data_iterator_t* iterator) {
  fastest_iterator_t* own = (fastest_iterator_t*)iterator;
  if (own->done < ((const fastest_t*)iterator->dataset)->trials) return time_next(own);
  rn_data_source_t* source = &own->sources[own->at];
  if (iterator->phase == 0) {
    iterator->phase = 1;
    if (!rn_data_ask(source, iterator->asked->out)) return false;
  }
  if (source->request.is_end) return rn_data_end(iterator);
  return rn_data_finish(iterator, source->request.status);
}

static rn_status_t fastest_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  fastest_iterator_t* own = (fastest_iterator_t*)iterator;
  rn_data_put_int(writer, own->done);
  rn_data_put_int(writer, own->at);
  for (int32_t i = 0; i < own->count; ++i) {
    rn_data_put_int(writer, own->spent_ns[i]);
    RN_RETURN_IF_ERROR(rn_data_put_iterator(writer, own->sources[i].iterator));
  }
  return RN_OK;
}

static rn_status_t fastest_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  fastest_iterator_t* own = (fastest_iterator_t*)iterator;
  const fastest_t* fastest = (const fastest_t*)iterator->dataset;
  int64_t at = 0;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &own->done));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &at));
  if (own->done < 0 || at < 0 || at >= own->count) return rn_data_bad_state();
  own->at = (int32_t)at;
  for (int32_t i = 0; i < own->count; ++i) {
    RN_RETURN_IF_ERROR(rn_data_take_int(reader, &own->spent_ns[i]));
    RN_RETURN_IF_ERROR(
        rn_data_restore_source(reader, &own->sources[i], iterator, fastest->inputs[i]));
  }
  return RN_OK;
}

const rn_data_kind_t rn_data_kind_fastest = {.dataset_size = sizeof(fastest_t),
                                             .iterator_size = sizeof(fastest_iterator_t),
                                             .open = fastest_open,
                                             .close = fastest_close,
                                             .cardinality = fastest_cardinality,
                                             .start = fastest_start,
                                             .stop = fastest_stop,
                                             .next = fastest_next,
                                             .save = fastest_save,
                                             .restore = fastest_restore};

// Branches.

// Calls branch |i| on the input; |captured| are its arguments behind that.
static rn_status_t call_branch(fastest_t* fastest, int32_t i, const rn_tensor_t* captured,
                               int32_t captured_count, rn_data_run_t* run) {
  rn_dataset_t* dataset = &fastest->base;
  const rn_dtype_t variant = RN_VARIANT;
  const rn_tensor_t* input = rn_data_input(dataset, "input_dataset", NULL);
  rn_data_func_t func = {.captured = captured, .captured_count = captured_count};
  rn_status_t status = rn_data_func_bind(dataset, rn_data_attr(dataset, "branches")->list_func[i],
                                         1, &variant, &func);
  if (rn_ok(status)) status = rn_data_func_gives(&func, 1, &variant);
  if (rn_ok(status)) status = rn_data_func_call(&func, input, 1, &run->step, &fastest->made[i]);
  rn_data_func_close(&func);
  RN_RETURN_IF_ERROR(status);
  RN_RETURN_IF_ERROR(rn_dataset_of(&fastest->made[i], &fastest->inputs[i]));
  return check_input(fastest, i);
}

static rn_status_t call_branches(fastest_t* fastest, rn_data_run_t* run) {
  const rn_attr_value_t* lengths = rn_data_attr(&fastest->base, "other_arguments_lengths");
  int32_t all = 0, used = 0;
  const rn_tensor_t* captured = rn_data_input(&fastest->base, "other_arguments", &all);
  if (lengths->count != fastest->count)
    return rn_invalid_argument(
        "branches and other_arguments_lengths must have the same length. Got %d and %d",
        fastest->count, lengths->count);
  for (int32_t i = 0; i < fastest->count; ++i) {
    int64_t length = lengths->list_i[i];
    if (length < 0 || length > all - used)
      return rn_invalid_argument("Branch %d does not have %lld other arguments", i,
                                 (long long)length);
    RN_RETURN_IF_ERROR(call_branch(fastest, i, captured + used, (int32_t)length, run));
    used += (int32_t)length;
  }
  return RN_OK;
}

static rn_status_t branches_open(rn_dataset_t* dataset) {
  fastest_t* fastest = (fastest_t*)dataset;
  rn_dataset_t* input = NULL;
  rn_data_run_t* run = NULL;
  int32_t count = rn_data_attr(dataset, "branches")->count;
  RN_RETURN_IF_ERROR(rn_data_upstream(dataset, "input_dataset", &input));
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "ratio_numerator", &fastest->numerator));
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "ratio_denominator", &fastest->denominator));
  if (fastest->numerator <= 0)
    return rn_invalid_argument("`ratio_numerator` must be greater than zero.");
  if (fastest->denominator <= 0)
    return rn_invalid_argument("`ratio_denominator` must be greater than zero.");
  fastest->trials = rn_data_attr(dataset, "num_elements_per_branch")->i;
  if (fastest->trials % fastest->denominator)
    return rn_invalid_argument(
        "`num_elements_per_branch` must be divisible by "
        "`ratio_denominator`.");
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(dataset->node->allocator, (size_t)count, &fastest->inputs));
  fastest->count = count;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(dataset->node->allocator, (size_t)count, &fastest->made));
  RN_RETURN_IF_ERROR(rn_data_run_create(dataset->host, NULL, 0, &run));
  rn_status_t status = call_branches(fastest, run);
  rn_object_release(&run->object);
  return status;
}

static int64_t branches_cardinality(const rn_dataset_t* dataset) {
  const fastest_t* fastest = (const fastest_t*)dataset;
  rn_dataset_t* input = NULL;
  rn_status_t status = rn_data_upstream(dataset, "input_dataset", &input);
  rn_status_free(status);
  int64_t count = input ? rn_dataset_cardinality(input) : RN_DATA_UNKNOWN;
  if (count < 0) return count;
  double scaled = (double)count * (double)fastest->numerator / (double)fastest->denominator;
  return scaled < 9e15 ? (int64_t)scaled : RN_DATA_UNKNOWN;
}

const rn_data_kind_t rn_data_kind_branches = {.dataset_size = sizeof(fastest_t),
                                              .iterator_size = sizeof(fastest_iterator_t),
                                              .open = branches_open,
                                              .close = fastest_close,
                                              .cardinality = branches_cardinality,
                                              .start = fastest_start,
                                              .stop = fastest_stop,
                                              .next = fastest_next,
                                              .save = fastest_save,
                                              .restore = fastest_restore};

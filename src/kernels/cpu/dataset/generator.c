// Datasets produced by functions: |next| is called until it returns OUT_OF_RANGE. |init| makes its
// first arguments, |finalize| cleans up.
#include "kernels/cpu/dataset/data.h"

typedef struct generator_t {
  rn_dataset_t base;
  rn_data_func_t init, next, finalize;
} generator_t;

typedef struct generator_iterator_t {
  rn_data_iterator_t base;
  rn_data_call_t init, next;
  bool has_state;  // init has returned its results
  bool is_over;
} generator_iterator_t;

static rn_status_t generator_open(rn_dataset_t* dataset) {
  generator_t* own = (generator_t*)dataset;
  RN_RETURN_IF_ERROR(
      rn_data_func_open(dataset, "init_func", "init_func_other_args", 0, NULL, &own->init));
  const rn_instance_t* init = own->init.instance;
  RN_RETURN_IF_ERROR(rn_data_func_open(dataset, "next_func", "next_func_other_args",
                                       init->result_count, init->result_types, &own->next));
  RN_RETURN_IF_ERROR(rn_data_func_open(dataset, "finalize_func", "finalize_func_other_args",
                                       init->result_count, init->result_types, &own->finalize));
  return rn_data_func_gives(&own->next, dataset->component_count, dataset->types);
}

static void generator_close(rn_dataset_t* dataset) {
  generator_t* own = (generator_t*)dataset;
  rn_data_func_close(&own->init);
  rn_data_func_close(&own->next);
  rn_data_func_close(&own->finalize);
}

static rn_status_t generator_start(rn_data_iterator_t* iterator) {
  generator_iterator_t* own = (generator_iterator_t*)iterator;
  const generator_t* dataset = (const generator_t*)iterator->dataset;
  RN_RETURN_IF_ERROR(rn_data_call_init(&own->init, iterator, &dataset->init));
  return rn_data_call_init(&own->next, iterator, &dataset->next);
}

// The final call, which nothing waits for.
typedef struct farewell_t {
  rn_function_call_t call;  // first
  rn_allocator_t allocator;
  rn_dataset_t* dataset;  // Retained
  rn_data_run_t* run;     // Retained
  int32_t arg_count, result_count, state_count;
  rn_tensor_t* state;
  rn_tensor_t* results;
  const rn_tensor_t** args;
} farewell_t;

static void farewell_free(farewell_t* farewell) {
  rn_allocator_t allocator = farewell->allocator;
  rn_data_row_clear(farewell->state, farewell->state_count);
  rn_data_row_clear(farewell->results, farewell->result_count);
  RN_FREE_ARRAY(allocator, farewell->state, farewell->state_count);
  RN_FREE_ARRAY(allocator, farewell->results, farewell->result_count);
  RN_FREE_ARRAY(allocator, farewell->args, farewell->arg_count);
  if (farewell->run) rn_object_release(&farewell->run->object);
  rn_dataset_release(farewell->dataset);
  RN_FREE(allocator, farewell);
}

static void farewell_done(rn_function_call_t* call, rn_status_t status) {
  farewell_t* farewell = (farewell_t*)call;
  rn_data_host_t* host = farewell->dataset->host;
  rn_object_retain(&host->object);
  rn_status_free(status);
  farewell_free(farewell);
  rn_data_host_leave(host);
  rn_object_release(&host->object);
}

static rn_status_t farewell_create(generator_iterator_t* own, farewell_t** out) {
  const generator_t* dataset = (const generator_t*)own->base.dataset;
  const rn_instance_t* instance = dataset->finalize.instance;
  rn_allocator_t allocator = dataset->base.node->allocator;
  farewell_t* farewell = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &farewell));
  *out = farewell;
  farewell->allocator = allocator;
  farewell->dataset = own->base.dataset;
  rn_object_retain(&farewell->dataset->object);
  farewell->arg_count = instance->arg_count;
  farewell->result_count = instance->result_count;
  farewell->state_count = instance->arg_count - dataset->finalize.captured_count;
  RN_RETURN_IF_ERROR(
      rn_data_run_create(dataset->base.host, NULL, own->base.run->step.call_depth, &farewell->run));
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, (size_t)farewell->state_count, &farewell->state));
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, (size_t)farewell->result_count, &farewell->results));
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, (size_t)farewell->arg_count, &farewell->args));
  rn_data_row_move(own->init.results, farewell->state, farewell->state_count);
  for (int32_t i = 0; i < farewell->arg_count; ++i)
    farewell->args[i] = i < farewell->state_count
                            ? &farewell->state[i]
                            : &dataset->finalize.captured[i - farewell->state_count];
  return RN_OK;
}

static void finalize(generator_iterator_t* own) {
  if (!own->has_state) return;
  own->has_state = false;
  const generator_t* dataset = (const generator_t*)own->base.dataset;
  rn_data_host_t* host = dataset->base.host;
  if (!rn_data_host_enter(host)) return;
  farewell_t* farewell = NULL;
  rn_status_t status = farewell_create(own, &farewell);
  if (!rn_ok(status)) {
    rn_status_free(status);
    if (farewell) farewell_free(farewell);
    rn_data_host_leave(host);
    return;
  }
  farewell->call = (rn_function_call_t){.step = &farewell->run->step,
                                        .args = farewell->args,
                                        .results = farewell->results,
                                        .done = farewell_done};
  rn_function_run(dataset->finalize.functions, dataset->finalize.instance, &farewell->call);
}

static void generator_stop(rn_data_iterator_t* iterator) {
  generator_iterator_t* own = (generator_iterator_t*)iterator;
  const generator_t* dataset = (const generator_t*)iterator->dataset;
  finalize(own);
  rn_data_call_clear(&own->init, &dataset->init);
  rn_data_call_clear(&own->next, &dataset->next);
}

static bool generator_next(rn_data_iterator_t* iterator) {
  generator_iterator_t* own = (generator_iterator_t*)iterator;
  const generator_t* dataset = (const generator_t*)iterator->dataset;
  if (own->is_over) return rn_data_end(iterator);
  if (iterator->phase == 0 && !own->has_state) {
    iterator->phase = 1;
    if (!rn_data_call(&own->init, &dataset->init, NULL, 0, iterator->asked->step)) return false;
  }
  if (iterator->phase == 1) {
    if (!rn_ok(own->init.status)) return rn_data_finish(iterator, own->init.status);
    own->has_state = true;
    iterator->phase = 0;
  }
  if (iterator->phase == 0) {
    iterator->phase = 2;
    if (!rn_data_call(&own->next, &dataset->next, own->init.results,
                      dataset->init.instance->result_count, iterator->asked->step))
      return false;
  }
  rn_status_t status = own->next.status;
  if (!rn_ok(status) && rn_status_code(status) == RN_CODE_OUT_OF_RANGE) {
    rn_status_free(status);
    own->is_over = true;
    finalize(own);
    return rn_data_end(iterator);
  }
  if (rn_ok(status))
    rn_data_row_move(own->next.results, iterator->asked->out, iterator->dataset->component_count);
  return rn_data_finish(iterator, status);
}

const rn_data_kind_t rn_data_kind_generator = {.dataset_size = sizeof(generator_t),
                                               .iterator_size = sizeof(generator_iterator_t),
                                               .open = generator_open,
                                               .close = generator_close,
                                               .start = generator_start,
                                               .stop = generator_stop,
                                               .next = generator_next};

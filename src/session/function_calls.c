// Calls of functions: see function_calls.h.
#include "session/function_calls.h"

#include <pthread.h>

#include "exec/executor.h"

static bool is_device_of(const rn_place_options_t* place, rn_str_t name) {
  for (int d = 0; d < place->device_count; ++d)
    if (rn_str_eq(place->devices[d]->name, name)) return true;
  return false;
}

// A kernel of the function that uses a resource goes where the first call's resource is, unless the
// caller said where that is.
static rn_status_t find_resources(rn_session_function_t* function, const rn_tensor_t* const* args) {
  rn_place_options_t* place = &function->planner.place;
  const int32_t count = function->instance.arg_count;
  if (place->feed_devices || place->device_count < 2) return RN_OK;
  rn_str_t* devices = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&function->arena, (size_t)count, &devices));
  for (int32_t i = 0; i < count; ++i) {
    if (args[i]->dtype != RN_RESOURCE || args[i]->count != 1) continue;
    const rn_handle_t* handle = *RN_DATA(args[i], rn_handle_t*);
    if (handle && is_device_of(place, handle->device))
      RN_RETURN_IF_ERROR(rn_arena_str(&function->arena, handle->device, &devices[i]));
  }
  place->feed_devices = devices;
  return RN_OK;
}

static rn_status_t get_program(rn_session_function_t* function, const rn_tensor_t* const* args,
                               rn_program_t** out) {
  *out = rn_programs_find(&function->programs, args);
  if (*out) return RN_OK;
  rn_mutex_lock(&function->mutex);
  rn_status_t status = rn_functions_check_open(function->table);
  if (rn_ok(status)) status = find_resources(function, args);
  if (rn_ok(status)) status = rn_programs_make(&function->programs, args, out);
  rn_mutex_unlock(&function->mutex);
  return status;
}

static rn_status_t check_args(const rn_session_function_t* function,
                              const rn_function_call_t* call) {
  for (int32_t i = 0; i < function->instance.arg_count; ++i) {
    const rn_tensor_t* arg = call->args[i];
    if (!arg || !rn_tensor_is_set(arg))
      return rn_invalid_argument("Argument %d of function '%.*s' has no value", i,
                                 RN_STR_ARGS(function->instance.name));
    if (arg->dtype != function->instance.arg_types[i])
      return rn_invalid_argument("Expects arg[%d] to be %s but %s is provided", i,
                                 rn_dtype_name(function->instance.arg_types[i]),
                                 rn_dtype_name(arg->dtype));
  }
  int32_t depth = call->step ? call->step->call_depth : 0;
  if (depth >= RN_MAX_CALL_DEPTH)
    return rn_resource_exhausted("Calls of function '%.*s' nest more than %d deep",
                                 RN_STR_ARGS(function->instance.name), RN_MAX_CALL_DEPTH);
  return RN_OK;
}

// Whether the caller's step runs in one thread alone: then so does what it calls.
static bool is_quiet(const rn_function_call_t* call) { return call->step && !call->step->pool; }

// The step of a call, made for the step of the caller.
static rn_step_t make_step(const rn_functions_table_t* table, const rn_function_call_t* call,
                           rn_cancel_t* cancel) {
  rn_step_t step = {.cancel = cancel,
                    .rendezvous = call->rendezvous,
                    .env = table->options.env,
                    .pool = is_quiet(call) ? NULL : table->options.intra,
                    .collectives = table->options.collectives,
                    .config = table->options.config};
  if (!call->step) return step;
  step.id = call->step->id;
  step.deadline_ns = call->step->deadline_ns;
  step.stats = call->step->stats;
  step.call_depth = call->step->call_depth + 1;
  return step;
}

static rn_run_t make_run(const rn_session_function_t* function, rn_program_t* program,
                         const rn_function_call_t* call, rn_step_t* step) {
  const rn_functions_options_t* options = &function->table->options;
  return (rn_run_t){.plans = program->plans,
                    .plan_count = program->plan_count,
                    .step = step,
                    .pool = is_quiet(call) && options->intra ? NULL : options->inter,
                    .feeds = call->args,
                    .feed_count = function->instance.arg_count,
                    .fetches = call->results,
                    .fetch_count = function->instance.result_count,
                    .deadline_ns = step->deadline_ns,
                    .stats = step->stats};
}

static rn_cancel_t* outer_cancel(const rn_function_call_t* call) {
  return call->step ? call->step->cancel : call->cancel;
}

// A call that never waits: it runs straight through in this thread.
static rn_status_t run_plain(const rn_session_function_t* function, rn_program_t* program,
                             const rn_function_call_t* call) {
  rn_cancel_t* outer = outer_cancel(call);
  rn_step_t step = make_step(function->table, call, outer ? outer : &function->table->never);
  rn_run_t run = make_run(function, program, call, &step);
  rn_status_t status = rn_execute(&run);
  if (step.step_resources) rn_resources_destroy(step.step_resources);
  return status;
}

// A call that may wait. It has its own cancellation, which the caller's triggers.
typedef struct functions_flight_t {
  rn_cancel_entry_t outer;  // first
  rn_cancel_t* outer_cancel;
  rn_cancel_t cancel;
  rn_step_t step;
  rn_function_call_t* call;
  rn_functions_table_t* table;
  // The call may end within the very callback that cancels it: then that callback cleans up.
  pthread_t callback_thread;
  bool is_in_callback, is_over;
  rn_status_t status;
} functions_flight_t;

static void land(functions_flight_t* flight) {
  rn_function_call_t* call = flight->call;
  rn_status_t status = flight->status;
  if (flight->step.rendezvous) rn_rendezvous_release(flight->step.rendezvous);
  if (flight->step.step_resources) rn_resources_destroy(flight->step.step_resources);
  rn_cancel_destroy(&flight->cancel);
  RN_FREE(flight->table->allocator, flight);
  call->done(call, status);
}

static void on_cancel(rn_cancel_entry_t* entry) {
  functions_flight_t* flight = (functions_flight_t*)entry;
  flight->callback_thread = pthread_self();
  __atomic_store_n(&flight->is_in_callback, true, __ATOMIC_RELEASE);
  if (flight->step.rendezvous)
    rn_rendezvous_fail(flight->step.rendezvous, rn_cancelled("Step was cancelled"));
  rn_cancel(&flight->cancel);
  if (flight->is_over) land(flight);  // only this thread can have set it by now
}

static void on_done(void* arg, rn_status_t status) {
  functions_flight_t* flight = arg;
  flight->status = status;
  bool is_within = __atomic_load_n(&flight->is_in_callback, __ATOMIC_ACQUIRE) &&
                   pthread_equal(flight->callback_thread, pthread_self());
  if (is_within) {
    flight->is_over = true;
    return;
  }
  if (flight->outer_cancel) rn_cancel_remove(flight->outer_cancel, &flight->outer);
  land(flight);
}

static rn_status_t take_off(rn_session_function_t* function, rn_program_t* program,
                            rn_function_call_t* call) {
  rn_functions_table_t* table = function->table;
  functions_flight_t* flight = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(table->allocator, &flight));
  flight->outer.fn = on_cancel;
  flight->call = call;
  flight->table = table;
  rn_cancel_init(&flight->cancel);
  flight->step = make_step(table, call, &flight->cancel);
  rn_status_t status = RN_OK;
  if (flight->step.rendezvous)
    rn_rendezvous_retain(flight->step.rendezvous);
  else if (program->exchanges)
    status = rn_rendezvous_create(table->allocator, &flight->step.rendezvous);
  rn_cancel_t* outer = outer_cancel(call);
  if (rn_ok(status) && outer) {
    if (rn_cancel_add(outer, &flight->outer))
      flight->outer_cancel = outer;
    else
      status = rn_cancelled("Step was cancelled");
  }
  if (!rn_ok(status)) {
    if (flight->step.rendezvous) rn_rendezvous_release(flight->step.rendezvous);
    rn_cancel_destroy(&flight->cancel);
    RN_FREE(table->allocator, flight);
    return status;
  }
  rn_run_t run = make_run(function, program, call, &flight->step);
  rn_execute_start(&run, on_done, flight);
  return RN_OK;
}

void rn_functions_run(rn_functions_t* functions, rn_instance_t* instance,
                      rn_function_call_t* call) {
  (void)functions;
  rn_session_function_t* function = (rn_session_function_t*)instance;
  for (int32_t i = 0; i < instance->result_count; ++i) call->results[i] = (rn_tensor_t){0};
  rn_program_t* program = NULL;
  rn_status_t status = check_args(function, call);
  if (rn_ok(status)) status = get_program(function, call->args, &program);
  if (rn_ok(status) && !program->is_plain) {
    status = take_off(function, program, call);
    if (rn_ok(status)) return;
  } else if (rn_ok(status)) {
    status = run_plain(function, program, call);
  }
  call->done(call, status);
}

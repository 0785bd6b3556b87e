// Iterators, requests between them, and function calls. See data.h.
#include "kernels/cpu/array.h"
#include "kernels/cpu/dataset/data.h"
#include "wire/scan.h"

#include <stdatomic.h>

static void iterator_destroy(rn_object_t* object) {
  rn_data_iterator_t* iterator = (rn_data_iterator_t*)object;
  rn_dataset_t* dataset = iterator->dataset;
  if (dataset->kind->stop) dataset->kind->stop(iterator);
  rn_arena_clear(&iterator->arena);
  rn_object_release(&iterator->run->object);
  rn_free(dataset->node->allocator, iterator, dataset->kind->iterator_size);
  rn_dataset_release(dataset);
}

rn_status_t rn_data_iterator_create(rn_dataset_t* dataset, rn_data_run_t* run,
                                    const rn_data_iterator_t* user, rn_data_iterator_t** out) {
  *out = NULL;
  rn_data_iterator_t* iterator = NULL;
  rn_allocator_t allocator = dataset->node->allocator;
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(allocator, dataset->kind->iterator_size, (void**)&iterator));
  iterator->object = (rn_object_t){.refs = 1, .destroy = iterator_destroy};
  iterator->dataset = dataset;
  rn_object_retain(&dataset->object);
  iterator->run = run;
  iterator->user = user;
  rn_object_retain(&run->object);
  rn_arena_init(&iterator->arena, allocator);
  rn_status_t status = dataset->kind->start ? dataset->kind->start(iterator) : RN_OK;
  if (!rn_ok(status)) {
    rn_data_iterator_drop(iterator);
    return status;
  }
  *out = iterator;
  return RN_OK;
}

void rn_data_iterator_drop(rn_data_iterator_t* iterator) {
  if (!iterator) return;
  if (iterator->dataset->kind->abandon) iterator->dataset->kind->abandon(iterator);
  rn_object_release(&iterator->object);
}

rn_status_t rn_data_stopped(const rn_data_request_t* request) {
  return rn_step_stopped(request->step);
}

// Sources.
static void source_done(rn_data_request_t* request) {
  rn_data_source_t* source = (rn_data_source_t*)request;
  if (request->is_end) rn_data_source_stop(source);
  rn_data_resume(source->owner);
}

rn_status_t rn_data_source_start(rn_data_source_t* source, rn_data_iterator_t* owner,
                                 rn_dataset_t* dataset) {
  rn_data_source_stop(source);
  source->owner = owner;
  if (!source->request.done) source->request.done = source_done;
  return rn_data_iterator_create(dataset, source->run ? source->run : owner->run, owner,
                                 &source->iterator);
}

void rn_data_source_stop(rn_data_source_t* source) {
  rn_data_iterator_t* iterator = source->iterator;
  source->iterator = NULL;
  rn_data_iterator_drop(iterator);
}

bool rn_data_ask_for(rn_data_source_t* source, rn_tensor_t* out, rn_step_t* step) {
  source->request.out = out;
  source->request.step = step;
  if (!source->iterator) {
    source->request.status = RN_OK;
    source->request.is_end = true;
    return true;
  }
  if (!rn_data_next(source->iterator, &source->request)) return false;
  if (source->request.is_end) rn_data_source_stop(source);
  return true;
}

bool rn_data_ask(rn_data_source_t* source, rn_tensor_t* out) {
  return rn_data_ask_for(source, out, source->owner->asked->step);
}

// Functions.
// Whether a FunctionDef has nodes with random generators, or calls functions that may have some.
static bool has_generators(rn_str_t def) {
  rn_pb_scan_t scan = rn_pb_scan(def), inner;
  rn_pb_field_t node, field;
  while (rn_pb_scan_next(&scan, &node)) {
    if (node.number != 3) continue;  // node_def
    inner = rn_pb_scan(node.bytes);
    while (rn_pb_scan_next(&inner, &field)) {
      const rn_op_def_t* op = field.number == 2 ? rn_op_find(field.bytes) : NULL;
      if (op && op->flags & RN_OP_STATEFUL &&
          (rn_op_names_function(op) || rn_op_attr_index(op, RN_STR("seed")) >= 0))
        return true;
    }
  }
  return false;
}

rn_status_t rn_data_func_open(rn_dataset_t* dataset, const char* attr, const char* captured,
                              int32_t arg_count, const rn_dtype_t* arg_types, rn_data_func_t* out) {
  const rn_attr_value_t* value = rn_data_attr(dataset, attr);
  if (!value || value->kind != RN_ATTR_FUNC || value->is_list || !value->func)
    return rn_invalid_argument("Attribute '%s' is not a function", attr);
  out->captured = rn_data_input(dataset, captured, &out->captured_count);
  return rn_data_func_bind(dataset, value->func, arg_count, arg_types, out);
}

rn_status_t rn_data_func_bind(rn_dataset_t* dataset, const rn_func_attr_t* func, int32_t arg_count,
                              const rn_dtype_t* arg_types, rn_data_func_t* out) {
  rn_data_host_t* host = dataset->host;
  if (!dataset->functions)
    return rn_failed_precondition("The runtime has no function library: %s",
                                  dataset->node->op->name);
  if (!rn_data_host_enter(host)) return rn_cancelled("The session is closed");
  rn_status_t status = rn_function_prepare(dataset->functions, func, RN_STR(""), &out->instance);
  rn_data_host_leave(host);
  RN_RETURN_IF_ERROR(status);
  out->functions = dataset->functions;
  out->called = func;
  const rn_instance_t* instance = out->instance;
  out->has_generators = has_generators(instance->def);
  bool fits = instance->arg_count == arg_count + out->captured_count;
  for (int32_t i = 0; fits && i < instance->arg_count; ++i)
    fits = instance->arg_types[i] ==
           (i < arg_count ? arg_types[i] : out->captured[i - arg_count].dtype);
  if (!fits)
    return rn_invalid_argument(
        "Function '%.*s' takes %d arguments, but a %s passes %d and %d captured ones",
        RN_STR_ARGS(instance->name), instance->arg_count, dataset->node->op->name, arg_count,
        out->captured_count);
  return RN_OK;
}

void rn_data_func_close(rn_data_func_t* func) {
  if (func->instance) rn_function_forget(func->functions, func->instance);
  func->instance = NULL;
}

rn_status_t rn_data_func_gives(const rn_data_func_t* func, int32_t count, const rn_dtype_t* types) {
  const rn_instance_t* instance = func->instance;
  bool fits = instance->result_count == count;
  for (int32_t i = 0; fits && i < count; ++i) fits = instance->result_types[i] == types[i];
  if (fits) return RN_OK;
  return rn_invalid_argument(
      "Function '%.*s' returns %d results, which do not match the %d expected ones",
      RN_STR_ARGS(instance->name), instance->result_count, count);
}

static void call_done(rn_function_call_t* function_call, rn_status_t status) {
  rn_data_call_t* call = (rn_data_call_t*)function_call;
  call->status = status;
  if (!atomic_exchange(&call->is_met, true)) return;  // the caller continues
  if (call->resume)
    call->resume(call);
  else
    rn_data_resume(call->owner);
}

rn_status_t rn_data_call_init(rn_data_call_t* call, rn_data_iterator_t* owner,
                              const rn_data_func_t* func) {
  call->owner = owner;
  call->call.done = call_done;
  RN_RETURN_IF_ERROR(rn_data_run_instance(owner->run, func, &call->instance));
  size_t args = (size_t)func->instance->arg_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&owner->arena, args, &call->args));
  size_t first = args - (size_t)func->captured_count;
  for (size_t i = first; i < args; ++i) call->args[i] = &func->captured[i - first];
  call->call.args = call->args;
  return rn_data_row(owner, func->instance->result_count, &call->results);
}

bool rn_data_call(rn_data_call_t* call, const rn_data_func_t* func, const rn_tensor_t* args,
                  int32_t count, rn_step_t* step) {
  for (int32_t i = 0; i < count; ++i) call->args[i] = &args[i];
  call->call.step = step;
  call->call.results = call->results;
  atomic_store_explicit(&call->is_met, false, memory_order_relaxed);
  rn_function_run(func->functions, call->instance, &call->call);
  return atomic_exchange(&call->is_met, true);
}

void rn_data_call_clear(rn_data_call_t* call, const rn_data_func_t* func) {
  if (func->instance && call->results)
    rn_data_row_clear(call->results, func->instance->result_count);
}

// Rows and scalars.
rn_status_t rn_data_row(rn_data_iterator_t* iterator, int32_t count, rn_tensor_t** out) {
  return RN_ARENA_ARRAY(&iterator->arena, (size_t)count, out);
}

void rn_data_row_clear(rn_tensor_t* row, int32_t count) {
  for (int32_t i = 0; row && i < count; ++i) rn_tensor_clear(&row[i]);
}

rn_status_t rn_data_holds(const rn_tensor_t* result, const char* what, bool* out) {
  if (result->dtype != RN_BOOL || result->count != 1)
    return rn_invalid_argument("%s must return a scalar bool.", what);
  *out = *RN_DATA(result, const bool);
  return RN_OK;
}

rn_status_t rn_data_make_scalar(rn_allocator_t memory, rn_dtype_t dtype, int64_t value,
                                rn_tensor_t* out) {
  RN_RETURN_IF_ERROR(rn_tensor_create(memory, dtype, RN_SHAPE_SCALAR, out));
  switch (dtype) {
    case RN_INT64:
    case RN_UINT64:
      *RN_DATA(out, int64_t) = value;
      return RN_OK;
    case RN_INT32:
    case RN_UINT32:
      *RN_DATA(out, int32_t) = (int32_t)value;
      return RN_OK;
    case RN_INT16:
    case RN_UINT16:
      *RN_DATA(out, int16_t) = (int16_t)value;
      return RN_OK;
    case RN_INT8:
    case RN_UINT8:
      *RN_DATA(out, int8_t) = (int8_t)value;
      return RN_OK;
    case RN_BOOL:
      *RN_DATA(out, bool) = value != 0;
      return RN_OK;
    case RN_FLOAT:
      *RN_DATA(out, float) = (float)value;
      return RN_OK;
    case RN_DOUBLE:
      *RN_DATA(out, double) = (double)value;
      return RN_OK;
    default:
      rn_tensor_clear(out);
      return rn_invalid_argument("Unsupported data type: %s", rn_dtype_name(dtype));
  }
}

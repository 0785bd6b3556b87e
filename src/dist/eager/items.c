// Runs the items of a context's queue, and parts of functions.
#include "base/container.h"
#include "dist/eager/internal.h"
#include "dist/eager/span.h"
#include "dist/rpc/codec.h"
#include "proto/eager_service.pb.h"
#include "proto/function.pb.h"
#include "wire/scan.h"
#include "wire/writer.h"

static rn_buffer_t* buffer_of(const rn_message_t* message) {
  return message->pieces.count ? message->pieces.items[0].buffer : NULL;
}

// --- Functions

static rn_status_t add_function(rn_eager_context_t* context, rn_str_t bytes) {
  rn_function_t* function = NULL;
  RN_RETURN_IF_ERROR(rn_function_parse(context->allocator, bytes, &function));
  rn_status_t status = rn_eager_add_function(context->eager, function);
  rn_function_release(function);
  return status;
}

// Adds the functions that a part calls; existing ones stay.
static rn_status_t add_library(rn_eager_context_t* context, rn_str_t bytes) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  rn_status_t status = RN_OK;
  while (rn_ok(status) && rn_pb_scan_next(&scan, &field)) {
    if (field.wire != RN_PB_WIRE_LENGTH || field.number != rn_pb_FunctionDefLibrary_function_field)
      continue;
    rn_str_t signature = rn_field_bytes(field.bytes, rn_pb_FunctionDef_signature_field);
    rn_str_t name = rn_field_bytes(signature, rn_pb_OpDef_name_field);
    rn_function_t* known = rn_graph_get_function(rn_eager_library(context->eager), name);
    if (!known) status = add_function(context, field.bytes);
    rn_function_release(known);
  }
  return status;
}

static rn_status_t register_function(rn_eager_context_t* context, rn_str_t bytes) {
  RN_RETURN_IF_ERROR(
      add_library(context, rn_field_bytes(bytes, rn_pb_eager_RegisterFunctionOp_library_field)));
  return add_function(context,
                      rn_field_bytes(bytes, rn_pb_eager_RegisterFunctionOp_function_def_field));
}

static rn_status_t remove_function(rn_eager_context_t* context, rn_str_t bytes) {
  rn_str_t name = rn_field_bytes(bytes, rn_pb_eager_RemoveFunctionOp_function_name_field);
  rn_function_t* known = rn_graph_get_function(rn_eager_library(context->eager), name);
  rn_function_release(known);
  if (!known)
    return rn_invalid_argument("Tried to remove non-existent function '%.*s'.", RN_STR_ARGS(name));
  rn_eager_ready_drop(context, name);
  rn_spans_drop(context, name, true);
  return rn_eager_remove_function(context->eager, name);
}

// --- Items

static rn_status_t take_tensors(rn_eager_context_t* context, rn_str_t bytes, rn_buffer_t* buffer) {
  int64_t op = (int64_t)rn_field_value(bytes, rn_pb_eager_SendTensorOp_op_id_field);
  rn_str_t name = rn_field_bytes(bytes, rn_pb_eager_SendTensorOp_device_name_field);
  rn_device_t* device = NULL;
  RN_RETURN_IF_ERROR(rn_eager_own_device(context, name, &device));
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  int64_t output = 0;
  while (rn_pb_scan_next(&scan, &field)) {
    if (field.wire != RN_PB_WIRE_LENGTH || field.number != rn_pb_eager_SendTensorOp_tensors_field)
      continue;
    rn_eager_handle_t* handle = NULL;
    RN_RETURN_IF_ERROR(rn_eager_read_tensor(context, field.bytes, buffer, device, &handle));
    rn_status_t status = rn_eager_value_put(context, op, output++, handle);
    rn_eager_handle_release(handle);
    RN_RETURN_IF_ERROR(status);
  }
  return RN_OK;
}

static rn_status_t take_packed(rn_eager_context_t* context, rn_str_t bytes, rn_buffer_t* buffer) {
  rn_eager_packed_t* packed = NULL;
  int64_t op = (int64_t)rn_field_value(bytes, rn_pb_eager_SendPackedHandleOp_op_id_field);
  RN_RETURN_IF_ERROR(rn_eager_packed_read(context, bytes, buffer, &packed));
  rn_status_t status = rn_eager_value_put_packed(context, op, packed);
  rn_eager_packed_release(packed);
  return status;
}

static rn_status_t drop_value(rn_eager_context_t* context, rn_str_t bytes) {
  return rn_eager_value_drop(
      context, (int64_t)rn_field_value(bytes, rn_pb_eager_RemoteTensorHandle_op_id_field),
      (int32_t)rn_field_value(bytes, rn_pb_eager_RemoteTensorHandle_output_num_field));
}

static rn_status_t run_operation(rn_eager_context_t* context, rn_str_t bytes, rn_buffer_t* buffer,
                                 rn_strbuf_t* out) {
  rn_eager_call_t call;
  rn_status_t status = rn_eager_call_read(context, bytes, buffer, &call);
  if (rn_ok(status)) status = rn_eager_call_run(context, &call, out);
  rn_eager_call_clear(&call);
  return status;
}

static rn_status_t run_field(rn_eager_context_t* context, const rn_pb_field_t* field,
                             rn_buffer_t* buffer, rn_strbuf_t* out) {
  if (field->wire != RN_PB_WIRE_LENGTH) return RN_OK;
  switch (field->number) {
    case rn_pb_eager_QueueItem_handle_to_decref_field:
      return drop_value(context, field->bytes);
    case rn_pb_eager_QueueItem_operation_field:
      return run_operation(context, field->bytes, buffer, out);
    case rn_pb_eager_QueueItem_send_tensor_field:
      return take_tensors(context, field->bytes, buffer);
    case rn_pb_eager_QueueItem_register_function_field:
      return register_function(context, field->bytes);
    case rn_pb_eager_QueueItem_remove_function_field:
      return remove_function(context, field->bytes);
    case rn_pb_eager_QueueItem_cleanup_function_field: {
      int64_t step =
          (int64_t)rn_field_value(field->bytes, rn_pb_eager_CleanupFunctionOp_step_id_field);
      // A step of the context, except the context's own.
      if (step != (int64_t)context->id)
        rn_steps_drop_of(context->steps, step, context,
                         rn_aborted("Cleanup %lld", (long long)step));
      return RN_OK;
    }
    case rn_pb_eager_QueueItem_send_packed_handle_field:
      return take_packed(context, field->bytes, buffer);
    default:  // all earlier items have run
      return RN_OK;
  }
}

static rn_status_t run_item(rn_eager_context_t* context, rn_str_t bytes, rn_buffer_t* buffer,
                            rn_strbuf_t* out) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  if (rn_is_cancelled(&context->stop.cancel)) return rn_aborted("The context was closed");
  size_t response = rn_pb_begin(out, rn_pb_eager_EnqueueResponse_queue_response_field);
  rn_status_t status = RN_OK;
  while (rn_ok(status) && rn_pb_scan_next(&scan, &field))
    status = run_field(context, &field, buffer, out);
  rn_pb_end(out, response);
  if (rn_ok(status) && scan.is_bad) status = rn_internal("Unable to parse request");
  return status;
}

rn_status_t rn_eager_context_enqueue(rn_eager_context_t* context, const rn_message_t* message,
                                     rn_strbuf_t* out) {
  rn_pb_scan_t scan = rn_pb_scan(rn_message_view(message));
  rn_pb_field_t field;
  rn_status_t status = RN_OK;
  rn_eager_context_touch(context);
  while (rn_ok(status) && rn_pb_scan_next(&scan, &field))
    if (field.number == rn_pb_eager_EnqueueRequest_queue_field && field.wire == RN_PB_WIRE_LENGTH)
      status = run_item(context, field.bytes, buffer_of(message), out);
  if (rn_ok(status) && scan.is_bad) status = rn_internal("Unable to parse request");
  rn_eager_context_touch(context);
  return rn_ok(status) ? rn_strbuf_status(out) : status;
}

// --- Parts of functions: they meet the other parts in the rendezvous of the call's step.

typedef struct items_running_t {
  rn_function_call_t call;  // first
  rn_eager_context_t* context;
  rn_eager_part_t* part;
  rn_eager_call_t read;
  rn_functions_t* functions;
  rn_instance_t* instance;      // Retained
  rn_rendezvous_t* rendezvous;  // Retained
  const rn_tensor_t** args;     // in the call's arena
  rn_tensor_t* results;         // likewise
  int64_t* outputs;             // likewise: the numbers of the results
  int32_t result_count;
} items_running_t;

static void running_end(items_running_t* running, rn_status_t status, rn_strbuf_t* response) {
  rn_eager_context_t* context = running->context;
  rn_eager_part_t* part = running->part;
  if (!rn_ok(status) && running->rendezvous)
    rn_rendezvous_fail(running->rendezvous, rn_status_copy(status));
  for (int32_t i = 0; i < running->result_count; ++i) rn_tensor_clear(&running->results[i]);
  if (running->instance) rn_function_forget(running->functions, running->instance);
  if (running->rendezvous) rn_rendezvous_release(running->rendezvous);
  rn_eager_call_clear(&running->read);
  RN_FREE(context->allocator, running);
  rn_eager_context_touch(context);
  part->done(part, status, rn_strbuf_view(response));
}

static rn_status_t keep_result(items_running_t* running, int32_t i, rn_strbuf_t* out) {
  rn_eager_context_t* context = running->context;
  rn_eager_handle_t *handle = NULL, *placed = NULL;
  rn_device_t* device = NULL;
  RN_RETURN_IF_ERROR(rn_eager_own_device(context, running->read.device, &device));
  RN_RETURN_IF_ERROR(rn_eager_handle_create(&running->results[i], &handle));
  rn_status_t status = rn_eager_handle_copy_to(handle, context->eager, device, &placed);
  rn_eager_handle_release(handle);
  if (rn_ok(status))
    status = rn_eager_value_put(context, running->read.id, running->outputs[i], placed);
  if (rn_ok(status))
    status = rn_eager_put_shape(out, rn_pb_eager_RunComponentFunctionResponse_shape_field, placed);
  rn_eager_handle_release(placed);
  return status;
}

static void on_run(rn_function_call_t* call, rn_status_t status) {
  items_running_t* running = (items_running_t*)call;
  rn_strbuf_t response;
  rn_strbuf_init(&response, running->context->allocator);
  for (int32_t i = 0; i < running->result_count && rn_ok(status); ++i)
    status = keep_result(running, i, &response);
  if (rn_ok(status)) status = rn_strbuf_status(&response);
  running_end(running, status, &response);
  rn_strbuf_clear(&response);
}

// Caches the prepared instance for the next call.
static rn_status_t keep_ready(items_running_t* running, rn_str_t device) {
  rn_eager_context_t* context = running->context;
  rn_str_t key;
  RN_RETURN_IF_ERROR(rn_arena_printf(&running->read.arena, &key, "%.*s;%.*s",
                                     RN_STR_ARGS(running->read.name), RN_STR_ARGS(device)));
  rn_mutex_lock(&context->mutex);
  bool is_known = rn_map_get(&context->ready, key) != NULL;
  rn_mutex_unlock(&context->mutex);
  if (is_known) return RN_OK;
  rn_eager_ready_t* ready = NULL;
  char* copy = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(context->allocator, &ready));
  rn_func_attr_t function = {.name = running->read.name};
  rn_status_t status = rn_function_prepare(running->functions, &function, device, &ready->instance);
  if (rn_ok(status)) status = rn_str_dup(context->allocator, key, &copy);
  rn_mutex_lock(&context->mutex);
  if (rn_ok(status)) {
    ready->key = rn_str_n(copy, key.size);
    ready->name = rn_str_n(copy, running->read.name.size);
    is_known = rn_map_get(&context->ready, key) != NULL;
    if (!is_known) status = rn_map_put(&context->ready, ready->key, ready);
  }
  rn_mutex_unlock(&context->mutex);
  if (rn_ok(status) && !is_known) return RN_OK;
  if (copy) rn_free(context->allocator, copy, key.size + 1);
  if (ready->instance) rn_function_forget(running->functions, ready->instance);
  RN_FREE(context->allocator, ready);
  return status;
}

static rn_status_t read_outputs(items_running_t* running, rn_str_t request) {
  rn_pb_scan_t scan = rn_pb_scan(request);
  rn_pb_field_t field;
  int32_t count = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&running->read.arena, (size_t)running->instance->result_count,
                                    &running->outputs));
  for (int32_t i = 0; i < running->instance->result_count; ++i) running->outputs[i] = i;
  while (rn_pb_scan_next(&scan, &field)) {
    if (field.number != rn_pb_eager_RunComponentFunctionRequest_output_num_field) continue;
    bool is_packed = field.wire == RN_PB_WIRE_LENGTH;
    rn_pb_scan_t inner = rn_pb_scan(is_packed ? field.bytes : RN_STR(""));
    uint64_t number = field.value;
    while (!is_packed || rn_pb_scan_varint(&inner, &number)) {
      if (count < running->instance->result_count) running->outputs[count++] = (int32_t)number;
      if (!is_packed) break;
    }
  }
  return RN_OK;
}

static rn_status_t take_args(items_running_t* running) {
  const rn_instance_t* instance = running->instance;
  rn_arena_t* arena = &running->read.arena;
  if ((int64_t)running->read.input_count != instance->arg_count)
    return rn_invalid_argument("%.*s takes %d inputs, got %zu", RN_STR_ARGS(instance->name),
                               instance->arg_count, running->read.input_count);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, running->read.input_count, &running->args));
  for (size_t i = 0; i < running->read.input_count; ++i)
    if (!running->read.inputs[i])
      return rn_invalid_argument("Input %zu of %.*s is on another task", i,
                                 RN_STR_ARGS(instance->name));
  for (size_t i = 0; i < running->read.input_count; ++i)
    RN_RETURN_IF_ERROR(rn_eager_handle_value(running->read.inputs[i], &running->args[i]));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)instance->result_count, &running->results));
  running->result_count = instance->result_count;
  return RN_OK;
}

static rn_status_t prepare(items_running_t* running) {
  rn_eager_context_t* context = running->context;
  rn_str_t request = rn_message_view(running->part->message);
  rn_str_t operation =
      rn_field_bytes(request, rn_pb_eager_RunComponentFunctionRequest_operation_field);
  rn_device_t* device = NULL;
  RN_RETURN_IF_ERROR(
      rn_eager_call_read(context, operation, buffer_of(running->part->message), &running->read));
  RN_RETURN_IF_ERROR(rn_eager_own_device(context, running->read.device, &device));
  rn_function_t* known =
      rn_graph_get_function(rn_eager_library(context->eager), running->read.name);
  rn_function_release(known);
  if (!known)
    return rn_internal("Could not find function library for registered component function: %.*s",
                       RN_STR_ARGS(running->read.name));
  RN_RETURN_IF_ERROR(keep_ready(running, device->name));
  rn_func_attr_t function = {.name = running->read.name};
  RN_RETURN_IF_ERROR(
      rn_function_prepare(running->functions, &function, device->name, &running->instance));
  RN_RETURN_IF_ERROR(read_outputs(running, request));
  RN_RETURN_IF_ERROR(take_args(running));
  if (running->read.step == (int64_t)context->id)
    return rn_invalid_argument("A function call has the step of its context");
  RN_RETURN_IF_ERROR(rn_steps_adopt(context->steps, running->read.step, context,
                                    rn_eager_peers_table(context->peers), &running->rendezvous));
  // If the context was closed meanwhile, that did not drop this step.
  return rn_is_cancelled(&context->stop.cancel) ? rn_aborted("The context was closed") : RN_OK;
}

void rn_eager_context_run_part(rn_eager_context_t* context, rn_eager_part_t* part) {
  items_running_t* running = NULL;
  rn_eager_context_touch(context);
  rn_status_t status = RN_NEW(context->allocator, &running);
  if (!rn_ok(status)) {
    part->done(part, status, RN_STR(""));
    return;
  }
  running->context = context;
  running->part = part;
  running->functions = rn_session_functions(rn_eager_session(context->eager));
  status = prepare(running);
  if (!rn_ok(status)) {
    int64_t step = running->read.step;
    bool is_adopted = running->rendezvous != NULL;
    rn_strbuf_t none;
    rn_strbuf_init(&none, context->allocator);
    if (is_adopted) rn_steps_drop(context->steps, step, rn_status_copy(status));
    running_end(running, status, &none);
    return;
  }
  running->call = (rn_function_call_t){.cancel = &context->stop.cancel,
                                       .rendezvous = running->rendezvous,
                                       .args = running->args,
                                       .results = running->results,
                                       .done = on_run};
  rn_function_run(running->functions, running->instance, &running->call);
}

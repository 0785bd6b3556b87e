// Ops on devices of other tasks: at once, or, with an asynchronous executor, in their turn. See
// client.h.
#include "base/container.h"
#include "dist/eager/client_internal.h"
#include "dist/eager/home.h"
#include "proto/eager_service.pb.h"
#include "proto/tensor.pb.h"
#include "tensor/tensor_proto.h"
#include "wire/encode.h"
#include "wire/scan.h"
#include "wire/writer.h"

#define SMALL 4096  // the most bytes of a value that is sent with its op

// A call of an op on a device.
typedef struct far_call_t {
  rn_eager_job_t job;
  rn_far_device_t* device;
  rn_eager_op_t* op;  // NULL once it was read
  const rn_op_def_t* def;
  uint64_t context, opening;
  int64_t id;
  bool is_call;  // of a function, by its name or by an op that calls it: its task runs it as one
  rn_attr_value_t* attrs;  // by place in the definition, defaults too; in |arena|
  bool* is_known;
  int32_t input_count;
  rn_eager_handle_t** inputs;  // Retained; in |arena|
  int32_t output_count;
  rn_dtype_t* types;            // likewise
  rn_eager_handle_t** outputs;  // Retained, of a queued call; likewise
  rn_strbuf_t operation;        // its item, up to the inputs
  size_t item_mark, operation_mark;
  RN_VEC(rn_far_name_t) brought;  // values that were copied for it
  RN_VEC(int64_t) shown;          // numbers of values of this process that other tasks may name
  rn_arena_t arena;
} far_call_t;

static rn_status_t see_attr(void* arg, rn_str_t name, const rn_attr_value_t* value) {
  far_call_t* call = arg;
  int index = rn_op_attr_index(call->def, name);
  if (index >= 0) {
    call->attrs[index] = *value;
    call->is_known[index] = true;
  }
  return call->def->role == RN_ROLE_CALL ? RN_OK : rn_far_put_attr(&call->operation, name, value);
}

static rn_status_t infer(far_call_t* call, int attr, rn_attr_value_t value) {
  if (attr < 0 || call->is_known[attr]) return RN_OK;
  call->attrs[attr] = value;
  call->is_known[attr] = true;
  if (call->def->role == RN_ROLE_CALL) return RN_OK;
  return rn_far_put_attr(&call->operation, rn_str(call->def->attrs[attr].name), &value);
}

// Given attributes come before those inferred from inputs, and these before defaults, which are not
// sent.
static rn_status_t put_attrs(far_call_t* call) {
  const rn_op_def_t* def = call->def;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&call->arena, (size_t)def->attr_count, &call->attrs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&call->arena, (size_t)def->attr_count, &call->is_known));
  RN_RETURN_IF_ERROR(rn_eager_op_each_attr(call->op, see_attr, call));
  int32_t next = 0;
  for (int i = 0; i < def->input_count; ++i) {
    const rn_arg_def_t* arg = &def->inputs[i];
    int32_t count = 1;
    rn_dtype_t* types = NULL;
    RN_RETURN_IF_ERROR(rn_eager_op_length(call->op, rn_str(arg->name), false, &count));
    if (count < 0 || count > rn_eager_op_input_count(call->op) - next)
      return rn_invalid_argument("expected more inputs, got %d", rn_eager_op_input_count(call->op));
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&call->arena, (size_t)count, &types));
    for (int32_t k = 0; k < count; ++k)
      types[k] = rn_eager_handle_dtype(rn_eager_op_input(call->op, next + k));
    next += count;
    RN_RETURN_IF_ERROR(
        infer(call, arg->number_attr, (rn_attr_value_t){.kind = RN_ATTR_INT, .i = count}));
    if (count)
      RN_RETURN_IF_ERROR(
          infer(call, arg->type_attr, (rn_attr_value_t){.kind = RN_ATTR_TYPE, .type = types[0]}));
    RN_RETURN_IF_ERROR(
        infer(call, arg->type_list_attr,
              (rn_attr_value_t){
                  .kind = RN_ATTR_TYPE, .is_list = true, .count = count, .list_type = types}));
  }
  for (int i = 0; i < def->attr_count; ++i)
    if (!call->is_known[i] && def->attrs[i].has_default) {
      call->attrs[i] = def->attrs[i].default_value;
      call->is_known[i] = true;
    }
  return RN_OK;
}

// A value of a context that its task no longer has is lost.
static rn_status_t check_opening(rn_eager_handle_t* input) {
  const rn_far_value_t* value = rn_far_value(input);
  if (!value || rn_far_opening(value->device->task) == value->opening) return RN_OK;
  return rn_aborted("A %s on %.*s is gone: another process has taken the place of its task",
                    rn_dtype_name(rn_eager_handle_dtype(input)), RN_STR_ARGS(value->device->name));
}

static rn_status_t put_small(far_call_t* call, const rn_tensor_t* tensor) {
  rn_pb_TensorProto_t proto;
  rn_strbuf_t* out = &call->operation;
  RN_RETURN_IF_ERROR(rn_tensor_to_proto(tensor, RN_TENSOR_CONTENT, &call->arena, &proto));
  size_t mark = rn_pb_begin(out, rn_pb_eager_Operation_Input_tensor_field);
  RN_RETURN_IF_ERROR(RN_PB_ENCODE(TensorProto, &proto, NULL, out));
  rn_pb_end(out, mark);
  return RN_OK;
}

// A packed argument of a function: the task gets all values, those of this process too. It names a
// resource of this process when it asks for it back, so that gets a number.
static rn_status_t put_piece(far_call_t* call, rn_eager_handle_t* part, rn_strbuf_t* out) {
  rn_eager_client_t* client = call->device->client;
  rn_dtype_t dtype = rn_eager_handle_dtype(part);
  RN_RETURN_IF_ERROR(rn_eager_handle_wait(part));
  const rn_far_value_t* value = rn_far_value(part);
  const uint32_t field = rn_pb_eager_SendPackedHandleOp_Handle_remote_handle_field;
  rn_str_t device = rn_str(rn_eager_handle_device(part));
  if (value) {
    rn_far_put_handle(out, field, value->name, value->device->name, dtype);
    return RN_OK;
  }
  if (dtype == RN_RESOURCE) {
    rn_far_name_t name = {rn_far_next_op(client), 0};
    RN_RETURN_IF_ERROR(rn_vec_reserve(&call->shown, client->allocator, call->shown.count + 1));
    RN_RETURN_IF_ERROR(rn_home_show(client, name.op, part));
    call->shown.items[call->shown.count++] = name.op;
    rn_far_put_handle(out, field, name, device, dtype);
    return RN_OK;
  }
  const rn_tensor_t* tensor = NULL;
  rn_pb_TensorProto_t proto;
  RN_RETURN_IF_ERROR(rn_eager_handle_value(part, &tensor));
  RN_RETURN_IF_ERROR(rn_tensor_to_proto(tensor, RN_TENSOR_CONTENT, &call->arena, &proto));
  size_t local = rn_pb_begin(out, rn_pb_eager_SendPackedHandleOp_Handle_local_handle_field);
  size_t mark = rn_pb_begin(out, rn_pb_eager_SendPackedHandleOp_LocalTensorHandle_tensor_field);
  RN_RETURN_IF_ERROR(RN_PB_ENCODE(TensorProto, &proto, NULL, out));
  rn_pb_end(out, mark);
  rn_pb_put_str(out, rn_pb_eager_SendPackedHandleOp_LocalTensorHandle_device_field, device);
  rn_pb_end(out, local);
  return RN_OK;
}

static rn_status_t send_packed(far_call_t* call, rn_eager_handle_t* packed,
                               rn_eager_handle_t* const* parts, int32_t count, int64_t id) {
  rn_eager_client_t* client = call->device->client;
  rn_strbuf_t items;
  rn_status_t status = RN_OK;
  rn_strbuf_init(&items, client->allocator);
  size_t item = rn_pb_begin(&items, rn_pb_eager_EnqueueRequest_queue_field);
  size_t send = rn_pb_begin(&items, rn_pb_eager_QueueItem_send_packed_handle_field);
  rn_pb_put_uint(&items, rn_pb_eager_SendPackedHandleOp_op_id_field, (uint64_t)id);
  for (int32_t i = 0; i < count && rn_ok(status); ++i) {
    size_t handle = rn_pb_begin(&items, rn_pb_eager_SendPackedHandleOp_handles_field);
    status = put_piece(call, parts[i], &items);
    rn_pb_end(&items, handle);
  }
  rn_pb_put_str(&items, rn_pb_eager_SendPackedHandleOp_device_name_field,
                rn_str(rn_eager_handle_device(packed)));
  rn_pb_end(&items, send);
  rn_pb_end(&items, item);
  if (rn_ok(status)) status = rn_strbuf_status(&items);
  if (rn_ok(status))
    status = rn_far_tell(client, call->device->task, call->context, rn_strbuf_view(&items));
  rn_strbuf_clear(&items);
  return status;
}

// Of a packed value, an op takes the one on its task, or else the first.
static rn_eager_handle_t* part_for(const far_call_t* call, rn_eager_handle_t* const* parts,
                                   int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    const rn_far_value_t* value = rn_far_value(parts[i]);
    if (value && value->device->task == call->device->task) return parts[i];
  }
  return parts[0];
}

static rn_status_t put_packed(far_call_t* call, rn_eager_handle_t* packed,
                              rn_eager_handle_t* const* parts, int32_t count) {
  rn_eager_client_t* client = call->device->client;
  rn_far_name_t name = {rn_far_next_op(client), 0};
  RN_RETURN_IF_ERROR(rn_vec_reserve(&call->brought, client->allocator, call->brought.count + 1));
  RN_RETURN_IF_ERROR(send_packed(call, packed, parts, count, name.op));
  call->brought.items[call->brought.count++] = name;
  rn_far_put_handle(&call->operation, rn_pb_eager_Operation_Input_remote_handle_field, name,
                    call->device->name, rn_eager_handle_dtype(packed));
  return RN_OK;
}

static rn_status_t put_input(far_call_t* call, rn_eager_handle_t* input) {
  rn_eager_client_t* client = call->device->client;
  rn_dtype_t dtype = rn_eager_handle_dtype(input);
  rn_eager_handle_t* const* parts = NULL;
  RN_RETURN_IF_ERROR(rn_eager_handle_wait(input));
  int32_t part_count = rn_eager_handle_parts(input, &parts);
  if (part_count && call->is_call) return put_packed(call, input, parts, part_count);
  if (part_count) input = part_for(call, parts, part_count);
  const rn_far_value_t* value = rn_far_value(input);
  const rn_tensor_t* tensor = NULL;
  const uint32_t field = rn_pb_eager_Operation_Input_remote_handle_field;
  RN_RETURN_IF_ERROR(check_opening(input));
  // Functions take values of other tasks: the called task decides where to run what.
  bool stays = value && (value->device->task == call->device->task || call->is_call);
  if (stays) {
    rn_far_put_handle(&call->operation, field, value->name, value->device->name, dtype);
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(rn_far_check_movable(call->device, dtype, rn_eager_handle_device(input)));
  if (!value) RN_RETURN_IF_ERROR(rn_eager_handle_value(input, &tensor));
  if (tensor && rn_tensor_bytes(tensor) <= SMALL && dtype != RN_STRING)
    return put_small(call, tensor);
  rn_far_name_t name = {rn_far_next_op(client), 0};
  RN_RETURN_IF_ERROR(rn_vec_reserve(&call->brought, client->allocator, call->brought.count + 1));
  RN_RETURN_IF_ERROR(value ? rn_far_bring(call->device, call->context, value, dtype, name.op)
                           : rn_far_upload(call->device, call->context, name.op, tensor));
  call->brought.items[call->brought.count++] = name;
  rn_far_put_handle(&call->operation, field, name, call->device->name, dtype);
  return RN_OK;
}

static rn_status_t put_inputs(far_call_t* call) {
  for (int32_t i = 0; i < call->input_count; ++i) {
    size_t input = rn_pb_begin(&call->operation, rn_pb_eager_Operation_op_inputs_field);
    RN_RETURN_IF_ERROR(put_input(call, call->inputs[i]));
    rn_pb_end(&call->operation, input);
  }
  return rn_strbuf_status(&call->operation);
}

static rn_status_t list_outputs(far_call_t* call) {
  const rn_op_def_t* def = call->def;
  int64_t total = 0;
  int32_t length = 0;
  for (int i = 0; i < def->output_count; ++i) {
    RN_RETURN_IF_ERROR(rn_eager_op_length(call->op, rn_str(def->outputs[i].name), true, &length));
    total += length > 0 ? length : 0;
  }
  if (total > INT32_MAX) return rn_invalid_argument("%s has too many outputs", def->name);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&call->arena, (size_t)total, &call->types));
  for (int i = 0; i < def->output_count; ++i) {
    const rn_arg_def_t* arg = &def->outputs[i];
    RN_RETURN_IF_ERROR(rn_eager_op_length(call->op, rn_str(arg->name), true, &length));
    for (int32_t k = 0; k < length; ++k)
      call->types[call->output_count++] = rn_arg_type(arg, call->attrs, k);
  }
  return RN_OK;
}

static bool calls_functions(const far_call_t* call) {
  if (call->def->role == RN_ROLE_FUNCTION) return true;
  for (int i = 0; i < call->def->attr_count; ++i)
    if (call->def->attrs[i].kind == RN_ATTR_FUNC) return true;
  return false;
}

// --- Answers

// The device of output |i|: from the response, else where the op was asked to run. NULL: it is of
// this process.
static rn_far_device_t* device_of(const far_call_t* call, rn_str_t answer, int32_t i) {
  rn_pb_scan_t scan = rn_pb_scan(answer);
  rn_pb_field_t field;
  while (rn_pb_scan_next(&scan, &field)) {
    if (field.number != rn_pb_eager_QueueResponse_device_field || i-- > 0) continue;
    if (!field.bytes.size) return call->device;
    return rn_far_find_device(call->device->client, field.bytes);
  }
  return call->device;
}

// A result that a part of the function left in this process.
static rn_status_t take_home(const far_call_t* call, int32_t i, rn_eager_handle_t** out) {
  return rn_home_take(call->device->client, call->id, i, out);
}

// The handle of a queued call is one of another task, so its value goes there.
static rn_status_t settle_home(far_call_t* call, int32_t i, rn_str_t shape) {
  rn_eager_handle_t* handle = NULL;
  const rn_tensor_t* tensor = NULL;
  int64_t id = rn_far_next_op(call->device->client);
  rn_status_t status = take_home(call, i, &handle);
  if (rn_ok(status))
    status = rn_far_check_movable(call->device, call->types[i], rn_eager_handle_device(handle));
  if (rn_ok(status)) status = rn_eager_handle_value(handle, &tensor);
  if (rn_ok(status)) status = rn_far_upload(call->device, call->context, id, tensor);
  if (rn_ok(status)) rn_far_value(call->outputs[i])->name = (rn_far_name_t){id, 0};
  rn_far_settle(call->outputs[i], call->device, shape, status);
  rn_eager_handle_release(handle);
  return status;
}

// Makes the handle of output |i|, or settles that of a queued call.
static rn_status_t take_output(far_call_t* call, int32_t i, rn_str_t answer, rn_str_t shape,
                               rn_eager_handle_t** outputs) {
  rn_far_device_t* device = device_of(call, answer, i);
  if (!call->outputs) {
    rn_far_name_t name = {call->id, i};
    return device
               ? rn_far_make_handle(device, call->context, name, call->types[i], shape, &outputs[i])
               : take_home(call, i, &outputs[i]);
  }
  if (!device) return settle_home(call, i, shape);
  rn_far_settle(call->outputs[i], device, shape, RN_OK);
  return RN_OK;
}

// |*out_have|: those that have a handle, or were settled.
static rn_status_t take_outputs(far_call_t* call, rn_str_t response, rn_eager_handle_t** outputs,
                                int32_t* out_have) {
  // Items before it, which free values, have responses of their own.
  rn_str_t answer = {0};
  rn_pb_scan_t scan = rn_pb_scan(response);
  rn_pb_field_t field;
  while (rn_pb_scan_next(&scan, &field))
    if (field.number == rn_pb_eager_EnqueueResponse_queue_response_field) answer = field.bytes;
  rn_status_t status = RN_OK;
  scan = rn_pb_scan(answer);
  while (rn_ok(status) && *out_have < call->output_count && rn_pb_scan_next(&scan, &field)) {
    if (field.number != rn_pb_eager_QueueResponse_shape_field) continue;
    status = take_output(call, *out_have, answer, field.bytes, outputs);
    if (rn_ok(status) || call->outputs) ++*out_have;
  }
  if (rn_ok(status) && *out_have < call->output_count)
    status = rn_internal("%.*s has answered with %d values instead of %d",
                         RN_STR_ARGS(call->device->task->name), *out_have, call->output_count);
  return status;
}

// The name of the op or, for an op that calls a function, of that function.
static rn_status_t put_name(far_call_t* call) {
  rn_str_t name = rn_str(call->def->name);
  if (call->def->role == RN_ROLE_CALL) {
    int f = rn_op_attr_index(call->def, RN_STR("f"));
    if (f < 0 || !call->is_known[f] || !call->attrs[f].func)
      return rn_invalid_argument("%s without the function that it calls", call->def->name);
    name = call->attrs[f].func->name;
  }
  rn_pb_put_str(&call->operation, rn_pb_eager_Operation_name_field, name);
  return RN_OK;
}

// --- Calls

static void call_free(far_call_t* call) {
  rn_eager_client_t* client = call->device->client;
  for (size_t i = 0; i < call->brought.count; ++i)
    rn_far_forget(client, call->device->task, call->opening, call->brought.items[i]);
  for (size_t i = 0; i < call->shown.count; ++i) rn_home_hide(client, call->shown.items[i]);
  for (int32_t i = 0; i < call->input_count; ++i) rn_eager_handle_release(call->inputs[i]);
  for (int32_t i = 0; call->outputs && i < call->output_count; ++i)
    rn_eager_handle_release(call->outputs[i]);
  rn_vec_free(&call->brought, client->allocator);
  rn_vec_free(&call->shown, client->allocator);
  rn_strbuf_clear(&call->operation);
  rn_arena_clear(&call->arena);
  RN_FREE(client->allocator, call);
}

// What must be read of the op; the inputs' values may still be missing.
static rn_status_t read_op(far_call_t* call, int32_t room) {
  rn_strbuf_t* out = &call->operation;
  int32_t count = rn_eager_op_input_count(call->op);
  if (calls_functions(call))
    RN_RETURN_IF_ERROR(
        rn_far_tell_functions(call->device->client, call->device->task, call->context));
  call->item_mark = rn_pb_begin(out, rn_pb_eager_EnqueueRequest_queue_field);
  call->operation_mark = rn_pb_begin(out, rn_pb_eager_QueueItem_operation_field);
  rn_pb_put_uint(out, rn_pb_eager_Operation_id_field, (uint64_t)call->id);
  RN_RETURN_IF_ERROR(put_attrs(call));
  RN_RETURN_IF_ERROR(put_name(call));
  rn_pb_put_str(out, rn_pb_eager_Operation_device_field, call->device->name);
  if (call->is_call) rn_pb_put_uint(out, rn_pb_eager_Operation_is_function_field, 1);
  RN_RETURN_IF_ERROR(list_outputs(call));
  if (room < call->output_count)
    return rn_invalid_argument("Expecting %d outputs, but *num_retvals is %d", call->output_count,
                               room);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&call->arena, (size_t)count, &call->inputs));
  for (int32_t i = 0; i < count; ++i) {
    call->inputs[i] = rn_eager_op_input(call->op, i);
    rn_eager_handle_retain(call->inputs[i]);
    call->input_count++;
    // Where resources are has been waited for.
    if (rn_eager_handle_dtype(call->inputs[i]) == RN_RESOURCE)
      RN_RETURN_IF_ERROR(check_opening(call->inputs[i]));
  }
  call->op = NULL;
  return RN_OK;
}

static rn_status_t run(far_call_t* call, rn_eager_handle_t** outputs, int32_t* out_have) {
  rn_strbuf_t* out = &call->operation;
  rn_message_t response;
  RN_RETURN_IF_ERROR(put_inputs(call));
  rn_pb_end(out, call->operation_mark);
  rn_pb_end(out, call->item_mark);
  RN_RETURN_IF_ERROR(rn_strbuf_status(out));
  RN_RETURN_IF_ERROR(rn_far_enqueue(call->device->client, call->device->task, call->context,
                                    rn_strbuf_view(out), &response));
  rn_status_t status = take_outputs(call, rn_message_view(&response), outputs, out_have);
  rn_message_clear(&response);
  return status;
}

static rn_status_t run_now(far_call_t* call, rn_eager_handle_t** outputs) {
  int32_t have = 0;
  rn_status_t status = run(call, outputs, &have);
  for (int32_t i = 0; i < have && !rn_ok(status); ++i) {
    rn_eager_handle_release(outputs[i]);
    outputs[i] = NULL;
  }
  return status;
}

static rn_status_t run_queued(rn_eager_job_t* job, rn_status_t earlier) {
  far_call_t* call = RN_CONTAINER_OF(job, far_call_t, job);
  int32_t have = 0;
  rn_status_t status = rn_ok(earlier) ? run(call, NULL, &have) : earlier;
  for (; have < call->output_count; ++have)
    rn_far_settle(call->outputs[have], call->device, RN_STR(""), status);
  call_free(call);
  return status;
}

// On success the queue owns |call|.
static rn_status_t run_later(far_call_t* call, rn_eager_handle_t** outputs) {
  rn_eager_client_t* client = call->device->client;
  size_t count = (size_t)call->output_count;
  rn_status_t status = RN_ARENA_ARRAY(&call->arena, count, &call->outputs);
  for (int32_t i = 0; i < call->output_count && rn_ok(status); ++i) {
    rn_far_name_t name = {call->id, i};
    status =
        rn_far_make_pending(call->device, call->context, name, call->types[i], &call->outputs[i]);
  }
  if (rn_ok(status)) {
    for (size_t i = 0; i < count; ++i) {
      outputs[i] = call->outputs[i];
      rn_eager_handle_retain(outputs[i]);
    }
    call->job.run = run_queued;
    status = rn_eager_queue(client->eager, &call->job);
    if (rn_ok(status)) return RN_OK;
  }
  for (size_t i = 0; i < count; ++i) {
    if (call->outputs && call->outputs[i])
      rn_far_settle(call->outputs[i], call->device, RN_STR(""), status);
    rn_eager_handle_release(outputs[i]);
    outputs[i] = NULL;
  }
  return status;
}

rn_status_t rn_far_execute(void* self, rn_eager_op_t* op, rn_eager_handle_t** outputs,
                           int32_t* inout_count) {
  rn_far_device_t* device = self;
  rn_eager_client_t* client = device->client;
  const rn_op_def_t* def = rn_eager_op_def(op);
  far_call_t* call = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(client->allocator, &call));
  call->device = device;
  call->op = op;
  call->def = def;
  call->context = rn_far_context(device->task);
  call->opening = rn_far_opening(device->task);
  call->id = rn_far_next_op(client);
  call->is_call = def->role == RN_ROLE_FUNCTION || def->role == RN_ROLE_CALL;
  rn_arena_init(&call->arena, client->allocator);
  rn_strbuf_init(&call->operation, client->allocator);
  for (int32_t i = 0; i < *inout_count; ++i) outputs[i] = NULL;
  rn_status_t status = read_op(call, *inout_count);
  int32_t count = call->output_count;
  bool is_later = rn_ok(status) && rn_eager_is_async(client->eager);
  if (is_later)
    status = run_later(call, outputs);
  else if (rn_ok(status))
    status = run_now(call, outputs);
  if (!is_later || !rn_ok(status)) call_free(call);
  if (rn_ok(status)) *inout_count = count;
  return status;
}

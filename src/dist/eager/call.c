// Reads ops from a client's messages and runs them on this task.
#include "dist/eager/internal.h"
#include "dist/eager/span.h"
#include "dist/rpc/codec.h"
#include "framework/attr_proto.h"
#include "proto/eager_service.pb.h"
#include "wire/decode.h"
#include "wire/scan.h"
#include "wire/writer.h"

#define MAX_ATTR_BYTES ((size_t)1 << 30)

// --- Reading

rn_str_t rn_eager_task_of(rn_str_t device) {
  const rn_str_t mark = RN_STR("/device:");
  for (size_t i = 0; i + mark.size <= device.size; ++i)
    if (memcmp(device.data + i, mark.data, mark.size) == 0) return rn_str_n(device.data, i);
  return device;
}

// The value that a RemoteTensorHandle names; unset if it is on another task.
static rn_status_t read_handle(rn_eager_context_t* context, rn_str_t bytes, rn_eager_handle_t** out,
                               rn_eager_packed_t** out_packed) {
  int64_t op = (int64_t)rn_field_value(bytes, rn_pb_eager_RemoteTensorHandle_op_id_field);
  int32_t output = (int32_t)rn_field_value(bytes, rn_pb_eager_RemoteTensorHandle_output_num_field);
  rn_str_t device = rn_field_bytes(bytes, rn_pb_eager_RemoteTensorHandle_device_field);
  rn_status_t status = rn_eager_value_get(context, op, output, out, out_packed);
  if (rn_ok(status) || !device.size || rn_str_is(rn_eager_task_of(device), context->task))
    return status;
  rn_status_free(status);
  return RN_OK;
}

rn_status_t rn_eager_read_tensor(rn_eager_context_t* context, rn_str_t bytes, rn_buffer_t* buffer,
                                 rn_device_t* device, rn_eager_handle_t** out) {
  rn_tensor_t tensor = {0};
  rn_eager_handle_t* handle = NULL;
  rn_status_t status =
      rn_decode_tensor(bytes, buffer, RN_TENSOR_ANY_SIZE, context->allocator, &tensor);
  if (rn_status_code(status) == RN_CODE_INVALID_ARGUMENT) {
    rn_status_free(status);
    status = rn_invalid_argument("Unable to parse tensor proto");
  }
  if (rn_ok(status)) status = rn_eager_handle_create(&tensor, &handle);
  if (rn_ok(status)) status = rn_eager_handle_copy_to(handle, context->eager, device, out);
  rn_eager_handle_release(handle);
  rn_tensor_clear(&tensor);
  return status;
}

static rn_status_t read_input(rn_eager_context_t* context, rn_str_t bytes, rn_buffer_t* buffer,
                              rn_eager_handle_t** out, rn_eager_packed_t** out_packed,
                              rn_str_t* out_remote) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  rn_device_t* device = NULL;
  rn_status_t status = rn_eager_own_device(context, RN_STR(""), &device);
  while (rn_ok(status) && !*out && !*out_packed && rn_pb_scan_next(&scan, &field)) {
    if (field.wire != RN_PB_WIRE_LENGTH) continue;
    if (field.number == rn_pb_eager_Operation_Input_remote_handle_field) {
      status = read_handle(context, field.bytes, out, out_packed);
      if (rn_ok(status) && !*out && !*out_packed) *out_remote = field.bytes;
    } else if (field.number == rn_pb_eager_Operation_Input_tensor_field) {
      status = rn_eager_read_tensor(context, field.bytes, buffer, device, out);
    }
  }
  if (rn_ok(status) && !*out && !*out_packed && !out_remote->size)
    status = rn_invalid_argument("An input of an op is empty");
  return status;
}

static rn_status_t read_attr(rn_str_t bytes, rn_arena_t* arena, rn_attr_t* out) {
  rn_pb_AttrValue_t* proto = NULL;
  RN_RETURN_IF_ERROR(rn_arena_str(
      arena, rn_field_bytes(bytes, rn_pb_eager_Operation_AttrsEntry_key_field), &out->name));
  RN_RETURN_IF_ERROR(
      RN_PB_DECODE(AttrValue, rn_field_bytes(bytes, rn_pb_eager_Operation_AttrsEntry_value_field),
                   NULL, arena, &proto));
  return rn_attr_value_from_proto(proto, MAX_ATTR_BYTES, arena, &out->value);
}

static rn_status_t count_parts(rn_str_t bytes, size_t* out_inputs, size_t* out_attrs) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  while (rn_pb_scan_next(&scan, &field)) {
    if (field.wire != RN_PB_WIRE_LENGTH) continue;
    *out_inputs += field.number == rn_pb_eager_Operation_op_inputs_field;
    *out_attrs += field.number == rn_pb_eager_Operation_attrs_field;
  }
  return scan.is_bad ? rn_invalid_argument("Unable to parse an operation") : RN_OK;
}

static rn_status_t read_parts(rn_eager_context_t* context, rn_str_t bytes, rn_buffer_t* buffer,
                              rn_eager_call_t* call) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  rn_status_t status = RN_OK;
  while (rn_ok(status) && rn_pb_scan_next(&scan, &field)) {
    if (field.wire != RN_PB_WIRE_LENGTH) continue;
    if (field.number == rn_pb_eager_Operation_op_inputs_field) {
      size_t i = call->input_count;
      status = read_input(context, field.bytes, buffer, &call->inputs[i], &call->packed[i],
                          &call->remote[i]);
      if (rn_ok(status)) call->input_count++;
    } else if (field.number == rn_pb_eager_Operation_attrs_field) {
      status = read_attr(field.bytes, &call->arena, &call->attrs[call->attr_count]);
      if (rn_ok(status)) call->attr_count++;
    }
  }
  return status;
}

rn_status_t rn_eager_call_read(rn_eager_context_t* context, rn_str_t bytes, rn_buffer_t* buffer,
                               rn_eager_call_t* out) {
  *out = (rn_eager_call_t){
      .id = (int64_t)rn_field_value(bytes, rn_pb_eager_Operation_id_field),
      .step = (int64_t)rn_field_value(bytes, rn_pb_eager_Operation_func_step_id_field),
      .name = rn_field_bytes(bytes, rn_pb_eager_Operation_name_field),
      .device = rn_field_bytes(bytes, rn_pb_eager_Operation_device_field),
      .is_function = rn_field_value(bytes, rn_pb_eager_Operation_is_function_field),
      .is_part = rn_field_value(bytes, rn_pb_eager_Operation_is_component_function_field)};
  size_t inputs = 0, attrs = 0;
  rn_arena_init(&out->arena, context->allocator);
  RN_RETURN_IF_ERROR(count_parts(bytes, &inputs, &attrs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&out->arena, inputs, &out->inputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&out->arena, inputs, &out->packed));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&out->arena, inputs, &out->remote));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&out->arena, attrs, &out->attrs));
  return read_parts(context, bytes, buffer, out);
}

void rn_eager_call_clear(rn_eager_call_t* call) {
  for (size_t i = 0; i < call->input_count; ++i) {
    rn_eager_handle_release(call->inputs[i]);
    rn_eager_packed_release(call->packed[i]);
  }
  for (size_t i = 0; i < call->attr_count; ++i) rn_attr_value_clear(&call->attrs[i].value);
  if (call->arena.allocator.fn) rn_arena_clear(&call->arena);
  *call = (rn_eager_call_t){0};
}

// --- Values that go to other tasks, and come from them

static rn_status_t text_of(const rn_eager_call_t* call, const char* name, rn_str_t* out) {
  for (size_t i = 0; i < call->attr_count; ++i) {
    const rn_attr_value_t* value = &call->attrs[i].value;
    if (!rn_str_is(call->attrs[i].name, name) || value->is_list || value->kind != RN_ATTR_STRING)
      continue;
    *out = value->s;
    return RN_OK;
  }
  return rn_invalid_argument("%.*s has no attribute %s", RN_STR_ARGS(call->name), name);
}

static int64_t number_of(const rn_eager_call_t* call, const char* name) {
  for (size_t i = 0; i < call->attr_count; ++i) {
    const rn_attr_value_t* value = &call->attrs[i].value;
    if (rn_str_is(call->attrs[i].name, name) && !value->is_list && value->kind == RN_ATTR_INT)
      return value->i;
  }
  return 0;
}

// Each name is used once, so a cached kernel per name would be useless.
static rn_status_t make_key(const rn_eager_call_t* call, rn_strbuf_t* out) {
  rn_str_t sender, receiver, name;
  RN_RETURN_IF_ERROR(text_of(call, "send_device", &sender));
  RN_RETURN_IF_ERROR(text_of(call, "recv_device", &receiver));
  RN_RETURN_IF_ERROR(text_of(call, "tensor_name", &name));
  rn_strbuf_printf(out, "%.*s;%016llx;%.*s;%.*s;0:0", RN_STR_ARGS(sender),
                   (unsigned long long)number_of(call, "send_device_incarnation"),
                   RN_STR_ARGS(receiver), RN_STR_ARGS(name));
  return rn_strbuf_status(out);
}

// An op takes values of this task only, and of packed ones its own.
static rn_status_t check_here(const rn_eager_context_t* context, rn_eager_call_t* call) {
  for (size_t i = 0; i < call->input_count; ++i) {
    if (!call->packed[i]) continue;
    RN_RETURN_IF_ERROR(rn_eager_packed_own(context, call->packed[i], &call->inputs[i]));
    rn_eager_handle_retain(call->inputs[i]);
  }
  for (size_t i = 0; i < call->input_count; ++i)
    if (!call->inputs[i])
      return rn_invalid_argument(
          "Input %zu of %.*s is on %.*s, not on %s", i, RN_STR_ARGS(call->name),
          RN_STR_ARGS(rn_field_bytes(call->remote[i], rn_pb_eager_RemoteTensorHandle_device_field)),
          context->task);
  return RN_OK;
}

static rn_status_t send(rn_eager_context_t* context, rn_eager_call_t* call, rn_str_t key) {
  const rn_tensor_t* value = NULL;
  rn_tensor_t shared = {0};
  if (call->input_count != 1)
    return rn_invalid_argument("expected 1 inputs, got %zu", call->input_count);
  RN_RETURN_IF_ERROR(check_here(context, call));
  RN_RETURN_IF_ERROR(rn_eager_handle_value(call->inputs[0], &value));
  RN_RETURN_IF_ERROR(rn_tensor_share(value, &shared));
  return rn_rendezvous_send(context->rendezvous, key, &shared, false, NULL);
}

// Waits for a value.
typedef struct call_waiting_t {
  rn_recv_t recv;  // first
  rn_mutex_t mutex;
  rn_cond_t came;
  bool is_here, is_dead;
  rn_tensor_t value;
  rn_status_t status;
} call_waiting_t;

static void on_value(rn_recv_t* recv, rn_status_t status, rn_tensor_t* value, bool is_dead,
                     rn_device_t* device) {
  call_waiting_t* waiting = (call_waiting_t*)recv;
  (void)device;
  rn_mutex_lock(&waiting->mutex);
  waiting->status = status;
  waiting->value = *value;
  waiting->is_dead = is_dead;
  *value = (rn_tensor_t){0};
  waiting->is_here = true;
  rn_cond_signal(&waiting->came);
  rn_mutex_unlock(&waiting->mutex);
}

static rn_status_t receive(rn_eager_context_t* context, const rn_eager_call_t* call, rn_str_t key,
                           rn_eager_handle_t** out) {
  rn_device_t* device = NULL;
  rn_eager_handle_t* handle = NULL;
  RN_RETURN_IF_ERROR(rn_eager_own_device(context, call->device, &device));
  call_waiting_t waiting = {.recv.fn = on_value};
  rn_mutex_init(&waiting.mutex);
  rn_cond_init(&waiting.came);
  rn_rendezvous_recv(context->rendezvous, key, &waiting.recv);
  rn_mutex_lock(&waiting.mutex);
  while (!waiting.is_here) rn_cond_wait(&waiting.came, &waiting.mutex);
  rn_mutex_unlock(&waiting.mutex);
  rn_cond_destroy(&waiting.came);
  rn_mutex_destroy(&waiting.mutex);
  rn_status_t status = waiting.status;
  if (rn_ok(status) && waiting.is_dead) status = rn_internal("A received value is dead");
  if (rn_ok(status)) status = rn_eager_handle_create(&waiting.value, &handle);
  if (rn_ok(status)) status = rn_eager_handle_copy_to(handle, context->eager, device, out);
  rn_eager_handle_release(handle);
  rn_tensor_clear(&waiting.value);
  return status;
}

// --- Running

static const rn_attr_value_t* attr_of(const rn_eager_call_t* call, const char* name) {
  for (size_t i = 0; i < call->attr_count; ++i)
    if (rn_str_is(call->attrs[i].name, name)) return &call->attrs[i].value;
  return NULL;
}

// How many of the flat inputs argument |arg| takes.
static rn_status_t length_of(const rn_eager_call_t* call, const rn_op_def_t* def,
                             const rn_arg_def_t* arg, size_t left, size_t* out) {
  int attr = arg->type_list_attr >= 0 ? arg->type_list_attr : arg->number_attr;
  *out = 1;
  if (attr >= 0) {
    const rn_attr_value_t* value = attr_of(call, def->attrs[attr].name);
    if (!value && def->attrs[attr].has_default) value = &def->attrs[attr].default_value;
    if (!value)
      return rn_not_found("No attr named '%s' in NodeDef:\n\t [[{{node %s}}]]",
                          def->attrs[attr].name, def->name);
    int64_t count = value->is_list ? value->count : value->kind == RN_ATTR_INT ? value->i : -1;
    if (count < 0)
      return rn_invalid_argument("The attribute %s of %s is not a length", def->attrs[attr].name,
                                 def->name);
    *out = (size_t)count;
  }
  if (*out <= left) return RN_OK;
  return rn_invalid_argument("expected more inputs, got %zu", call->input_count);
}

rn_status_t rn_eager_call_add_inputs(const rn_eager_call_t* call, rn_eager_op_t* op) {
  const rn_op_def_t* def = rn_eager_op_def(op);
  size_t at = 0;
  for (int i = 0; i < def->input_count; ++i) {
    const rn_arg_def_t* arg = &def->inputs[i];
    size_t count = 0;
    if (at == call->input_count && arg->number_attr < 0 && arg->type_list_attr < 0) break;
    RN_RETURN_IF_ERROR(length_of(call, def, arg, call->input_count - at, &count));
    RN_RETURN_IF_ERROR(arg->number_attr >= 0 || arg->type_list_attr >= 0
                           ? rn_eager_op_add_list(op, call->inputs + at, (int32_t)count)
                           : rn_eager_op_add_input(op, call->inputs[at]));
    at += count;
  }
  for (; at < call->input_count; ++at)
    RN_RETURN_IF_ERROR(rn_eager_op_add_input(op, call->inputs[at]));
  return RN_OK;
}

static rn_status_t count_outputs(const rn_eager_op_t* op, int32_t* out) {
  const rn_op_def_t* def = rn_eager_op_def(op);
  int64_t total = 0;
  for (int i = 0; i < def->output_count; ++i) {
    int32_t length = 0;
    RN_RETURN_IF_ERROR(rn_eager_op_length(op, rn_str(def->outputs[i].name), true, &length));
    total += length > 0 ? length : 0;
  }
  if (total > 1 << 20) return rn_invalid_argument("%s has too many outputs", def->name);
  *out = (int32_t)total;
  return RN_OK;
}

rn_status_t rn_eager_put_results(rn_eager_context_t* context, const rn_eager_call_t* call,
                                 rn_eager_handle_t** handles, int32_t count, rn_strbuf_t* out) {
  for (int32_t i = 0; i < count; ++i) {
    RN_RETURN_IF_ERROR(rn_eager_value_put(context, call->id, i, handles[i]));
    RN_RETURN_IF_ERROR(rn_eager_put_shape(out, rn_pb_eager_QueueResponse_shape_field, handles[i]));
  }
  // The devices of a function's results, independent of where it was asked to run.
  for (int32_t i = 0; call->is_function && i < count; ++i)
    rn_pb_put_str(out, rn_pb_eager_QueueResponse_device_field, RN_STR(""));
  return rn_strbuf_status(out);
}

static rn_status_t run_op(rn_eager_context_t* context, rn_eager_call_t* call, rn_eager_op_t* op,
                          rn_strbuf_t* out) {
  rn_device_t* device = NULL;
  rn_eager_handle_t** outputs = NULL;
  int32_t count = 0;
  RN_RETURN_IF_ERROR(rn_eager_own_device(context, call->device, &device));
  RN_RETURN_IF_ERROR(rn_eager_op_set_device(op, device->name));
  for (size_t i = 0; i < call->attr_count; ++i)
    rn_eager_op_set_attr(op, call->attrs[i].name, &call->attrs[i].value);
  rn_eager_op_set_cancel(op, &context->stop);
  RN_RETURN_IF_ERROR(rn_eager_call_add_inputs(call, op));
  RN_RETURN_IF_ERROR(count_outputs(op, &count));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&call->arena, (size_t)count, &outputs));
  RN_RETURN_IF_ERROR(rn_eager_execute(op, outputs, &count));
  rn_status_t status = rn_eager_put_results(context, call, outputs, count, out);
  for (int32_t i = 0; i < count; ++i) rn_eager_handle_release(outputs[i]);
  return status;
}

static rn_status_t run_transfer(rn_eager_context_t* context, rn_eager_call_t* call,
                                rn_strbuf_t* out) {
  rn_strbuf_t key;
  rn_eager_handle_t* handle = NULL;
  rn_strbuf_init(&key, context->allocator);
  rn_status_t status = make_key(call, &key);
  bool sends = rn_str_is(call->name, "_Send");
  if (rn_ok(status) && sends) status = send(context, call, rn_strbuf_view(&key));
  if (rn_ok(status) && !sends) status = receive(context, call, rn_strbuf_view(&key), &handle);
  if (rn_ok(status) && handle) status = rn_eager_put_results(context, call, &handle, 1, out);
  rn_eager_handle_release(handle);
  rn_strbuf_clear(&key);
  return status;
}

// --- Functions over several tasks

// Each input as its values: packed ones as one per device.
static rn_status_t list_pieces(const rn_eager_call_t* call, rn_arena_t* arena,
                               rn_span_call_t* out) {
  size_t count = 0;
  for (size_t i = 0; i < call->input_count; ++i)
    count += call->packed[i] ? call->packed[i]->count : 1;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &out->pieces));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, call->input_count + 1, &out->first));
  for (size_t i = 0; i < call->input_count; ++i) {
    const rn_eager_packed_t* packed = call->packed[i];
    for (size_t k = 0; packed && k < packed->count; ++k)
      out->pieces[out->piece_count++] = packed->pieces[k];
    rn_str_t home = call->inputs[i] ? RN_STR("")
                                    : rn_field_bytes(call->remote[i],
                                                     rn_pb_eager_RemoteTensorHandle_device_field);
    if (!packed)
      out->pieces[out->piece_count++] =
          (rn_eager_piece_t){.handle = call->inputs[i], .remote = call->remote[i], .device = home};
    out->first[i + 1] = out->piece_count;
  }
  out->input_count = call->input_count;
  return RN_OK;
}

// Stores the results of this task and describes all.
static rn_status_t put_span_results(rn_eager_context_t* context, const rn_eager_call_t* call,
                                    const rn_span_result_t* results, int32_t count,
                                    rn_strbuf_t* out) {
  const uint32_t field = rn_pb_eager_QueueResponse_shape_field;
  for (int32_t i = 0; i < count; ++i) {
    if (results[i].handle) {
      RN_RETURN_IF_ERROR(rn_eager_value_put(context, call->id, i, results[i].handle));
      RN_RETURN_IF_ERROR(rn_eager_put_shape(out, field, results[i].handle));
    } else {
      rn_pb_put_str(out, field, results[i].shape);
    }
  }
  for (int32_t i = 0; i < count; ++i)
    rn_pb_put_str(out, rn_pb_eager_QueueResponse_device_field,
                  results[i].handle ? RN_STR("") : results[i].device);
  return rn_strbuf_status(out);
}

static rn_status_t run_span(rn_eager_context_t* context, rn_eager_call_t* call, rn_strbuf_t* out,
                            bool* out_done) {
  rn_device_t* device = NULL;
  rn_span_t* span = NULL;
  rn_span_result_t* results = NULL;
  if (rn_eager_context_is_alone(context)) return RN_OK;
  RN_RETURN_IF_ERROR(rn_eager_own_device(context, call->device, &device));
  rn_span_call_t asked = {.id = call->id,
                          .name = call->name,
                          .attrs = call->attrs,
                          .attr_count = call->attr_count,
                          .device = device->name,
                          .cancel = &context->stop.cancel,
                          .arena = &call->arena};
  RN_RETURN_IF_ERROR(list_pieces(call, &call->arena, &asked));
  RN_RETURN_IF_ERROR(rn_span_get(context, &asked, &span));
  *out_done = span->kind != RN_SPAN_HERE;
  rn_status_t status = RN_ARENA_ARRAY(&call->arena, (size_t)span->result_count, &results);
  if (rn_ok(status) && *out_done) {
    status = rn_span_run(context, span, &asked, results);
    if (rn_ok(status)) status = put_span_results(context, call, results, span->result_count, out);
    rn_span_results_clear(results, span->result_count);
  }
  rn_span_release(context, span);
  return status;
}

rn_status_t rn_eager_call_run(rn_eager_context_t* context, rn_eager_call_t* call,
                              rn_strbuf_t* out) {
  if (rn_str_is(call->name, "_Send") || rn_str_is(call->name, "_Recv"))
    return run_transfer(context, call, out);
  bool is_done = false;
  if (call->is_function) RN_RETURN_IF_ERROR(run_span(context, call, out, &is_done));
  if (is_done) return RN_OK;
  RN_RETURN_IF_ERROR(check_here(context, call));
  rn_eager_op_t* op = NULL;
  RN_RETURN_IF_ERROR(rn_eager_op_create(context->eager, call->name, &op));
  rn_status_t status = run_op(context, call, op, out);
  rn_eager_op_destroy(op);
  return status;
}

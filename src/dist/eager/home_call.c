// Functions that are called in a client's own process: run here, by another task, or by several.
// See home.h.
#include "base/container.h"
#include "dist/eager/home.h"
#include "dist/eager/span.h"
#include "proto/eager_service.pb.h"
#include "wire/writer.h"

// A call.
typedef struct home_call_t {
  rn_eager_job_t job;
  rn_eager_client_t* client;
  rn_eager_context_t* home;  // Retained
  rn_span_t* span;           // Retained
  rn_span_call_t asked;
  rn_attr_t* attrs;
  size_t attr_room;
  int32_t input_count;
  rn_eager_handle_t** inputs;   // Retained; in |arena|
  rn_eager_handle_t** outputs;  // Retained, of a queued call; likewise
  rn_arena_t arena;
  rn_eager_cancel_t* cancel;  // Held; NULL: the client gave none
} home_call_t;

static void call_free(home_call_t* call) {
  rn_eager_client_t* client = call->client;
  for (int32_t i = 0; i < call->input_count; ++i) rn_eager_handle_release(call->inputs[i]);
  for (int32_t i = 0; call->outputs && i < call->span->result_count; ++i)
    rn_eager_handle_release(call->outputs[i]);
  rn_span_release(call->home, call->span);
  rn_eager_context_release(call->home);
  rn_arena_clear(&call->arena);
  rn_eager_cancel_release(call->cancel);
  RN_FREE(client->allocator, call);
}

// --- Reading the op

static rn_status_t see_attr(void* arg, rn_str_t name, const rn_attr_value_t* value) {
  home_call_t* call = arg;
  if (call->asked.attr_count == call->attr_room)
    return rn_internal("An op has more attributes than it says");
  call->attrs[call->asked.attr_count++] = (rn_attr_t){.name = name, .value = *value};
  return RN_OK;
}

static rn_status_t count_attr(void* arg, rn_str_t name, const rn_attr_value_t* value) {
  (void)name;
  (void)value;
  ++*(size_t*)arg;
  return RN_OK;
}

// The function that is called, by its name or by an op that calls it, and its attributes. Valid as
// long as the op.
static rn_status_t read_function(home_call_t* call, const rn_eager_op_t* op) {
  const rn_op_def_t* def = rn_eager_op_def(op);
  RN_RETURN_IF_ERROR(rn_eager_op_each_attr(op, count_attr, &call->attr_room));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&call->arena, call->attr_room, &call->attrs));
  RN_RETURN_IF_ERROR(rn_eager_op_each_attr(op, see_attr, call));
  call->asked.name = rn_str(def->name);
  call->asked.attrs = call->attrs;
  if (def->role != RN_ROLE_CALL) return RN_OK;
  for (size_t i = 0; i < call->asked.attr_count; ++i) {
    const rn_attr_value_t* value = &call->attrs[i].value;
    if (value->kind != RN_ATTR_FUNC || value->is_list || !value->func) continue;
    RN_RETURN_IF_ERROR(rn_arena_str(&call->arena, value->func->name, &call->asked.name));
    call->asked.attrs = value->func->attrs;
    call->asked.attr_count = (size_t)value->func->attr_count;
    return RN_OK;
  }
  return rn_invalid_argument("%s without the function that it calls", def->name);
}

static rn_status_t add_piece(home_call_t* call, rn_eager_handle_t* handle) {
  RN_RETURN_IF_ERROR(rn_eager_handle_wait(handle));
  const rn_far_value_t* value = rn_far_value(handle);
  rn_eager_piece_t* piece = &call->asked.pieces[call->asked.piece_count++];
  if (!value) {
    *piece = (rn_eager_piece_t){.handle = handle};
    return RN_OK;
  }
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, call->client->allocator);
  rn_far_write_handle(&bytes, value->name, value->device->name, rn_eager_handle_dtype(handle));
  rn_status_t status = rn_strbuf_status(&bytes);
  piece->device = value->device->name;
  if (rn_ok(status)) status = rn_arena_str(&call->arena, rn_strbuf_view(&bytes), &piece->remote);
  rn_strbuf_clear(&bytes);
  return status;
}

static rn_status_t read_inputs(home_call_t* call, const rn_eager_op_t* op) {
  int32_t count = rn_eager_op_input_count(op);
  size_t total = 0;
  rn_eager_handle_t* const* parts = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&call->arena, (size_t)count, &call->inputs));
  for (int32_t i = 0; i < count; ++i) {
    call->inputs[i] = rn_eager_op_input(op, i);
    rn_eager_handle_retain(call->inputs[i]);
    call->input_count++;
    int32_t part_count = rn_eager_handle_parts(call->inputs[i], &parts);
    total += part_count ? (size_t)part_count : 1;
  }
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&call->arena, total, &call->asked.pieces));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&call->arena, (size_t)count + 1, &call->asked.first));
  for (int32_t i = 0; i < count; ++i) {
    int32_t part_count = rn_eager_handle_parts(call->inputs[i], &parts);
    if (!part_count) RN_RETURN_IF_ERROR(add_piece(call, call->inputs[i]));
    for (int32_t k = 0; k < part_count; ++k) RN_RETURN_IF_ERROR(add_piece(call, parts[k]));
    call->asked.first[i + 1] = call->asked.piece_count;
  }
  call->asked.input_count = (size_t)count;
  return RN_OK;
}

static rn_status_t read_op(home_call_t* call, rn_eager_op_t* op) {
  rn_device_t* device = NULL;
  rn_str_t name = rn_str(rn_eager_op_device(op));
  RN_RETURN_IF_ERROR(rn_eager_device(call->client->eager, name, &device));
  call->asked.device = device->name;
  call->asked.may_delegate = name.size == 0;
  call->asked.id = rn_far_next_op(call->client);
  call->asked.arena = &call->arena;
  call->cancel = rn_eager_op_cancel(op);
  rn_eager_cancel_hold(call->cancel);
  call->asked.cancel = call->cancel ? &call->cancel->cancel : &call->home->stop.cancel;
  RN_RETURN_IF_ERROR(read_function(call, op));
  return read_inputs(call, op);
}

// --- Running

// Makes the handle of result |i|.
static rn_status_t take_result(const home_call_t* call, rn_span_result_t* result, int32_t i,
                               rn_eager_handle_t** out) {
  if (result->handle) {
    *out = result->handle;
    result->handle = NULL;
    return RN_OK;
  }
  rn_far_device_t* device = rn_far_find_device(call->client, result->device);
  if (!device) return rn_unavailable("%.*s is gone", RN_STR_ARGS(result->device));
  rn_far_name_t name = {call->asked.id, i};
  return rn_far_make_handle(device, rn_far_context(device->task), name, call->span->types[i],
                            result->shape, out);
}

static rn_status_t run_now(home_call_t* call, rn_eager_handle_t** outputs) {
  rn_span_result_t* results = NULL;
  int32_t count = call->span->result_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&call->arena, (size_t)count, &results));
  RN_RETURN_IF_ERROR(rn_span_run(call->home, call->span, &call->asked, results));
  rn_status_t status = RN_OK;
  for (int32_t i = 0; i < count && rn_ok(status); ++i)
    status = take_result(call, &results[i], i, &outputs[i]);
  rn_span_results_clear(results, count);
  for (int32_t i = 0; i < count && !rn_ok(status); ++i) {
    rn_eager_handle_release(outputs[i]);
    outputs[i] = NULL;
  }
  return status;
}

static void settle(const home_call_t* call, const rn_span_result_t* result, int32_t i,
                   rn_status_t status) {
  rn_eager_handle_t* output = call->outputs[i];
  const rn_far_value_t* value = rn_far_value(output);
  if (value) {
    rn_far_settle(output, value->device, result ? result->shape : RN_STR(""), status);
    return;
  }
  const rn_tensor_t* tensor = NULL;
  rn_tensor_t shared = {0};
  rn_status_t taken = RN_OK;
  if (rn_ok(status)) taken = rn_eager_handle_tensor(result->handle, &tensor);
  if (rn_ok(status) && rn_ok(taken)) taken = rn_tensor_share(tensor, &shared);
  rn_eager_settle(output, &shared, rn_ok(status) ? taken : status);
  rn_status_free(taken);
}

static rn_status_t run_queued(rn_eager_job_t* job, rn_status_t earlier) {
  home_call_t* call = RN_CONTAINER_OF(job, home_call_t, job);
  rn_span_result_t* results = NULL;
  int32_t count = call->span->result_count;
  rn_status_t status = earlier;
  if (rn_ok(status)) status = RN_ARENA_ARRAY(&call->arena, (size_t)count, &results);
  if (rn_ok(status)) status = rn_span_run(call->home, call->span, &call->asked, results);
  for (int32_t i = 0; i < count; ++i) settle(call, rn_ok(status) ? &results[i] : NULL, i, status);
  if (rn_ok(status)) rn_span_results_clear(results, count);
  call_free(call);
  return status;
}

static rn_status_t make_pending(home_call_t* call, int32_t i) {
  rn_eager_client_t* client = call->client;
  rn_str_t name = call->span->result_devices[i];
  rn_dtype_t dtype = call->span->types[i];
  rn_far_device_t* far = rn_far_find_device(client, name);
  rn_device_t* device = NULL;
  if (far)
    return rn_far_make_pending(far, rn_far_context(far->task), (rn_far_name_t){call->asked.id, i},
                               dtype, &call->outputs[i]);
  RN_RETURN_IF_ERROR(rn_eager_own_device(call->home, name, &device));
  return rn_eager_pending_handle(client->eager, name, device, dtype, NULL, &call->outputs[i]);
}

// On success the queue owns |call|.
static rn_status_t run_later(home_call_t* call, rn_eager_handle_t** outputs) {
  int32_t count = call->span->result_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&call->arena, (size_t)count, &call->outputs));
  rn_status_t status = RN_OK;
  for (int32_t i = 0; i < count && rn_ok(status); ++i) status = make_pending(call, i);
  if (rn_ok(status)) {
    for (int32_t i = 0; i < count; ++i) {
      outputs[i] = call->outputs[i];
      rn_eager_handle_retain(outputs[i]);
    }
    call->job.run = run_queued;
    status = rn_eager_queue(call->client->eager, &call->job);
    if (rn_ok(status)) return RN_OK;
  }
  for (int32_t i = 0; i < count; ++i) {
    if (call->outputs[i]) settle(call, NULL, i, status);
    rn_eager_handle_release(outputs[i]);
    outputs[i] = NULL;
  }
  return status;
}

// Runs what is cut; |*out_kept| if the queue has taken |call|.
static rn_status_t run(home_call_t* call, rn_eager_handle_t** outputs, int32_t* inout_count,
                       bool* out_kept) {
  int32_t count = call->span->result_count;
  if (*inout_count < count)
    return rn_invalid_argument("Expecting %d outputs, but *num_retvals is %d", count, *inout_count);
  for (int32_t i = 0; i < count; ++i) outputs[i] = NULL;
  bool is_later = rn_eager_is_async(call->client->eager);
  RN_RETURN_IF_ERROR(is_later ? run_later(call, outputs) : run_now(call, outputs));
  *out_kept = is_later;
  *inout_count = count;
  return RN_OK;
}

// Without an address of this process, a function runs where its first resource is.
static rn_far_device_t* device_of_resources(const rn_eager_op_t* op) {
  for (int32_t i = 0; i < rn_eager_op_input_count(op); ++i) {
    rn_eager_handle_t* input = rn_eager_op_input(op, i);
    const rn_far_value_t* value = rn_far_value(input);
    if (value && rn_eager_handle_dtype(input) == RN_RESOURCE) return value->device;
  }
  return NULL;
}

static rn_status_t call_home(rn_eager_client_t* client, rn_eager_context_t* home, rn_eager_op_t* op,
                             rn_eager_handle_t** outputs, int32_t* inout_count, bool* out_done) {
  home_call_t* call = NULL;
  bool is_kept = false;
  RN_RETURN_IF_ERROR(RN_NEW(client->allocator, &call));
  call->client = client;
  call->home = home;
  rn_eager_context_retain(home);
  rn_arena_init(&call->arena, client->allocator);
  rn_status_t status = read_op(call, op);
  if (rn_ok(status)) status = rn_span_get(home, &call->asked, &call->span);
  // The attributes are the op's.
  call->asked.attrs = NULL;
  call->asked.attr_count = 0;
  rn_span_kind_t kind = rn_ok(status) ? call->span->kind : RN_SPAN_HERE;
  *out_done = !rn_ok(status) || kind != RN_SPAN_HERE;
  if (rn_ok(status) && kind == RN_SPAN_CUT) status = run(call, outputs, inout_count, &is_kept);
  if (rn_ok(status) && kind == RN_SPAN_ELSEWHERE) {
    rn_far_device_t* device = rn_far_find_device(client, call->span->device);
    status = device ? rn_far_execute(device, op, outputs, inout_count)
                    : rn_unavailable("%.*s is gone", RN_STR_ARGS(call->span->device));
  }
  if (!is_kept) call_free(call);
  return status;
}

rn_status_t rn_home_call(void* self, rn_eager_op_t* op, rn_eager_handle_t** outputs,
                         int32_t* inout_count, bool* out_done) {
  rn_eager_client_t* client = self;
  rn_mutex_lock(&client->mutex);
  rn_eager_context_t* home = client->home;
  if (home) rn_eager_context_retain(home);
  rn_mutex_unlock(&client->mutex);
  rn_status_t status = RN_OK;
  if (home && !rn_eager_context_is_alone(home)) {
    status = call_home(client, home, op, outputs, inout_count, out_done);
  } else {
    rn_far_device_t* device = device_of_resources(op);
    *out_done = device != NULL;
    if (device) status = rn_far_execute(device, op, outputs, inout_count);
  }
  rn_eager_context_release(home);
  return status;
}

// Functions over several tasks: finding how they were cut, and running them. See span.h.
#include "dist/eager/span.h"

#include "dist/rpc/codec.h"
#include "proto/eager_service.pb.h"
#include "proto/tensor.pb.h"
#include "wire/encode.h"
#include "wire/scan.h"
#include "wire/writer.h"

#define TELL_NS INT64_C(5000000000)

// --- Telling other tasks

rn_status_t rn_span_tell(rn_eager_context_t* context, rn_str_t task, rn_str_t item) {
  rn_channel_t* channel = rn_eager_peers_channel(context->peers, task);
  rn_message_t request, response;
  rn_strbuf_t bytes;
  rn_eager_question_t question;
  if (!channel) return rn_eager_peers_missing(context->peers, task);
  rn_strbuf_init(&bytes, context->allocator);
  rn_message_init(&request, context->allocator);
  rn_pb_put_fixed64(&bytes, rn_pb_eager_EnqueueRequest_context_id_field, context->id);
  size_t mark = rn_pb_begin(&bytes, rn_pb_eager_EnqueueRequest_queue_field);
  rn_strbuf_append(&bytes, item);
  rn_pb_end(&bytes, mark);
  rn_status_t status = rn_strbuf_status(&bytes);
  if (rn_ok(status)) status = rn_message_add(&request, rn_strbuf_view(&bytes));
  rn_strbuf_clear(&bytes);
  RN_RETURN_IF_ERROR(status);
  rn_eager_question_start(&question, channel, RN_EAGER_PATH "Enqueue", &request,
                          context->env->now_ns(context->env->self) + TELL_NS, false);
  RN_RETURN_IF_ERROR(rn_eager_question_wait(&question, &response));
  rn_message_clear(&response);
  return RN_OK;
}

static void tell_removal(rn_eager_context_t* context, const rn_span_part_t* part) {
  rn_strbuf_t item;
  rn_strbuf_init(&item, context->allocator);
  size_t entry = rn_pb_begin(&item, rn_pb_eager_QueueItem_remove_function_field);
  rn_pb_put_str(&item, rn_pb_eager_RemoveFunctionOp_function_name_field, part->function);
  rn_pb_end(&item, entry);
  rn_status_t status = rn_strbuf_status(&item);
  if (rn_ok(status)) status = rn_span_tell(context, part->task, rn_strbuf_view(&item));
  rn_status_free(status);  // then it is freed with the context
  rn_strbuf_clear(&item);
}

static void tell_cleanup(rn_eager_context_t* context, rn_str_t task, int64_t step) {
  rn_strbuf_t item;
  rn_strbuf_init(&item, context->allocator);
  size_t entry = rn_pb_begin(&item, rn_pb_eager_QueueItem_cleanup_function_field);
  rn_pb_put_uint(&item, rn_pb_eager_CleanupFunctionOp_step_id_field, (uint64_t)step);
  rn_pb_end(&item, entry);
  rn_status_t status = rn_strbuf_status(&item);
  if (rn_ok(status)) status = rn_span_tell(context, task, rn_strbuf_view(&item));
  rn_status_free(status);
  rn_strbuf_clear(&item);
}

// Frees the results of a part whose call has failed elsewhere.
static void tell_unused(rn_eager_context_t* context, const rn_span_part_t* part, int64_t id) {
  for (int32_t i = 0; i < part->result_count; ++i) {
    rn_strbuf_t item;
    rn_strbuf_init(&item, context->allocator);
    size_t entry = rn_pb_begin(&item, rn_pb_eager_QueueItem_handle_to_decref_field);
    rn_pb_put_uint(&item, rn_pb_eager_RemoteTensorHandle_op_id_field, (uint64_t)id);
    rn_pb_put_uint(&item, rn_pb_eager_RemoteTensorHandle_output_num_field,
                   (uint64_t)part->results[i]);
    rn_pb_end(&item, entry);
    rn_status_t status = rn_strbuf_status(&item);
    if (rn_ok(status)) status = rn_span_tell(context, part->task, rn_strbuf_view(&item));
    rn_status_free(status);
    rn_strbuf_clear(&item);
  }
}

// --- Those that were cut

void rn_span_release(rn_eager_context_t* context, rn_span_t* span) {
  if (!span || --span->refs > 0) return;
  if (span->instance)
    rn_function_forget(rn_session_functions(rn_eager_session(context->eager)), span->instance);
  if (span->own.function.size)
    rn_status_free(rn_eager_remove_function(context->eager, span->own.function));
  rn_arena_clear(&span->arena);
  RN_FREE(context->allocator, span);
}

static rn_span_t* take_span(rn_eager_context_t* context, rn_str_t name) {
  rn_span_t* found = NULL;
  size_t position = 0;
  const rn_map_entry_t* entry;
  rn_mutex_lock(&context->mutex);
  while (!found && (entry = rn_map_next(&context->spans, &position)))
    if (!name.size || rn_str_eq(((rn_span_t*)entry->value)->name, name)) found = entry->value;
  if (found) rn_map_remove(&context->spans, found->key);
  rn_mutex_unlock(&context->mutex);
  return found;
}

void rn_spans_drop(rn_eager_context_t* context, rn_str_t name, bool tells) {
  rn_span_t* span;
  while ((span = take_span(context, name))) {
    for (size_t i = 0; tells && i < span->part_count; ++i) tell_removal(context, &span->parts[i]);
    rn_span_release(context, span);
  }
}

rn_str_t rn_span_piece_device(const rn_eager_context_t* context, const rn_eager_piece_t* piece) {
  if (piece->device.size || !piece->handle) return piece->device;
  return rn_eager_handle_own_device(piece->handle, context->eager)->name;
}

// The key of a cut: the function with its attributes, the device, and the devices of the arguments.
static rn_status_t make_key(rn_eager_context_t* context, const rn_span_call_t* call,
                            rn_strbuf_t* out) {
  rn_strbuf_printf(out, "%.*s;%.*s;%d;%zu", RN_STR_ARGS(call->name), RN_STR_ARGS(call->device),
                   call->may_delegate, call->input_count);
  for (size_t i = 0; i < call->attr_count; ++i) {
    rn_strbuf_printf(out, ";%.*s=", RN_STR_ARGS(call->attrs[i].name));
    rn_attr_value_print(out, &call->attrs[i].value);
  }
  for (size_t i = 0; i < call->input_count; ++i)
    for (size_t p = call->first[i]; p < call->first[i + 1]; ++p) {
      const rn_eager_piece_t* piece = &call->pieces[p];
      rn_str_t device = rn_span_piece_device(context, piece);
      rn_strbuf_printf(out, ";%zu%c%.*s", i, piece->handle ? '=' : ':', RN_STR_ARGS(device));
    }
  return rn_strbuf_status(out);
}

static rn_status_t make_span(rn_eager_context_t* context, const rn_span_call_t* call, rn_str_t key,
                             rn_span_t** out) {
  rn_span_t* span = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(context->allocator, &span));
  span->refs = 1;
  rn_arena_init(&span->arena, context->allocator);
  rn_status_t status = rn_arena_str(&span->arena, key, &span->key);
  if (rn_ok(status)) status = rn_arena_str(&span->arena, call->name, &span->name);
  if (rn_ok(status)) status = rn_span_cut(context, call, span);
  if (!rn_ok(status)) {
    rn_span_release(context, span);
    return status;
  }
  *out = span;
  return RN_OK;
}

rn_status_t rn_span_get(rn_eager_context_t* context, const rn_span_call_t* call, rn_span_t** out) {
  rn_strbuf_t key;
  rn_span_t *made = NULL, *known = NULL;
  rn_strbuf_init(&key, context->allocator);
  rn_status_t status = make_key(context, call, &key);
  rn_mutex_lock(&context->mutex);
  *out = rn_ok(status) ? rn_map_get(&context->spans, rn_strbuf_view(&key)) : NULL;
  if (*out) (*out)->refs++;
  rn_mutex_unlock(&context->mutex);
  if (rn_ok(status) && !*out) {
    status = make_span(context, call, rn_strbuf_view(&key), &made);
    rn_mutex_lock(&context->mutex);
    if (rn_ok(status)) known = rn_map_get(&context->spans, made->key);
    if (rn_ok(status) && !known) status = rn_map_put(&context->spans, made->key, made);
    *out = known ? known : made;
    if (rn_ok(status)) (*out)->refs++;
    rn_mutex_unlock(&context->mutex);
    if (known || !rn_ok(status)) rn_span_release(context, made);
    if (!rn_ok(status)) *out = NULL;
  }
  rn_strbuf_clear(&key);
  return status;
}

// --- Running

static rn_status_t run_own(rn_eager_context_t* context, const rn_span_t* span,
                           const rn_span_call_t* call, rn_rendezvous_t* rendezvous,
                           rn_tensor_t* results) {
  const rn_tensor_t** args = NULL;
  if (!span->instance) return RN_OK;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(call->arena, (size_t)span->own.arg_count, &args));
  for (int32_t i = 0; i < span->own.arg_count; ++i) {
    rn_eager_handle_t* handle = call->pieces[span->own.args[i]].handle;
    if (!handle) return rn_internal("An argument of %.*s is not here", RN_STR_ARGS(call->name));
    RN_RETURN_IF_ERROR(rn_eager_handle_value(handle, &args[i]));
  }
  rn_function_call_t own = {
      .cancel = call->cancel, .rendezvous = rendezvous, .args = args, .results = results};
  return rn_function_run_and_wait(rn_session_functions(rn_eager_session(context->eager)),
                                  span->instance, &own);
}

// An argument of a part: by the name that it has on its task, or as a value.
static rn_status_t put_arg(const rn_eager_piece_t* piece, rn_arena_t* arena, rn_strbuf_t* out) {
  size_t input = rn_pb_begin(out, rn_pb_eager_Operation_op_inputs_field);
  if (!piece->handle) {
    rn_pb_put_str(out, rn_pb_eager_Operation_Input_remote_handle_field, piece->remote);
  } else {
    const rn_tensor_t* value = NULL;
    rn_pb_TensorProto_t proto;
    RN_RETURN_IF_ERROR(rn_eager_handle_value(piece->handle, &value));
    RN_RETURN_IF_ERROR(rn_tensor_to_proto(value, RN_TENSOR_CONTENT, arena, &proto));
    size_t tensor = rn_pb_begin(out, rn_pb_eager_Operation_Input_tensor_field);
    RN_RETURN_IF_ERROR(RN_PB_ENCODE(TensorProto, &proto, NULL, out));
    rn_pb_end(out, tensor);
  }
  rn_pb_end(out, input);
  return RN_OK;
}

static rn_status_t put_part(const rn_eager_context_t* context, const rn_span_part_t* part,
                            const rn_span_call_t* call, int64_t step, rn_strbuf_t* out) {
  rn_pb_put_fixed64(out, rn_pb_eager_RunComponentFunctionRequest_context_id_field, context->id);
  size_t operation = rn_pb_begin(out, rn_pb_eager_RunComponentFunctionRequest_operation_field);
  rn_pb_put_uint(out, rn_pb_eager_Operation_id_field, (uint64_t)call->id);
  rn_pb_put_str(out, rn_pb_eager_Operation_name_field, part->function);
  for (int32_t i = 0; i < part->arg_count; ++i)
    RN_RETURN_IF_ERROR(put_arg(&call->pieces[part->args[i]], call->arena, out));
  rn_pb_put_str(out, rn_pb_eager_Operation_device_field, part->device);
  rn_pb_put_uint(out, rn_pb_eager_Operation_is_component_function_field, 1);
  rn_pb_put_uint(out, rn_pb_eager_Operation_func_step_id_field, (uint64_t)step);
  rn_pb_put_uint(out, rn_pb_eager_Operation_is_function_field, 1);
  rn_pb_end(out, operation);
  for (int32_t i = 0; i < part->result_count; ++i)
    rn_pb_put_uint(out, rn_pb_eager_RunComponentFunctionRequest_output_num_field,
                   (uint64_t)part->results[i]);
  return rn_strbuf_status(out);
}

static rn_status_t start_part(rn_eager_context_t* context, const rn_span_part_t* part,
                              const rn_span_call_t* call, int64_t step,
                              rn_eager_question_t* question) {
  rn_channel_t* channel = rn_eager_peers_channel(context->peers, part->task);
  rn_message_t request;
  rn_strbuf_t bytes;
  if (!channel) return rn_eager_peers_missing(context->peers, part->task);
  rn_strbuf_init(&bytes, context->allocator);
  rn_message_init(&request, context->allocator);
  rn_status_t status = put_part(context, part, call, step, &bytes);
  if (rn_ok(status)) status = rn_message_add(&request, rn_strbuf_view(&bytes));
  rn_strbuf_clear(&bytes);
  RN_RETURN_IF_ERROR(status);
  rn_eager_question_start(question, channel, RN_EAGER_PATH "RunComponentFunction", &request,
                          INT64_MAX, false);
  return RN_OK;
}

// The shapes of a part's results.
static rn_status_t read_shapes(const rn_span_part_t* part, const rn_span_call_t* call,
                               rn_str_t response, rn_span_result_t* results) {
  rn_pb_scan_t scan = rn_pb_scan(response);
  rn_pb_field_t field;
  int32_t have = 0;
  while (have < part->result_count && rn_pb_scan_next(&scan, &field)) {
    if (field.number != rn_pb_eager_RunComponentFunctionResponse_shape_field) continue;
    RN_RETURN_IF_ERROR(
        rn_arena_str(call->arena, field.bytes, &results[part->results[have++]].shape));
  }
  if (have == part->result_count) return RN_OK;
  return rn_internal("%.*s has answered with %d values instead of %d", RN_STR_ARGS(part->task),
                     have, part->result_count);
}

// Derived errors are less useful than their cause.
static rn_status_t choose(rn_status_t known, rn_status_t more) {
  if (rn_ok(more)) return known;
  if (rn_ok(known)) return more;
  bool is_better = rn_status_is_derived(known) && !rn_status_is_derived(more);
  rn_status_free(is_better ? known : more);
  return is_better ? more : known;
}

static rn_status_t run_parts(rn_eager_context_t* context, const rn_span_t* span,
                             const rn_span_call_t* call, int64_t step, rn_rendezvous_t* rendezvous,
                             rn_tensor_t* own, rn_span_result_t* results) {
  rn_eager_question_t* questions = NULL;
  rn_message_t response;
  size_t started = 0;
  bool* answered = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(call->arena, span->part_count, &questions));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(call->arena, span->part_count, &answered));
  rn_status_t status = RN_OK;
  for (; started < span->part_count && rn_ok(status); ++started)
    status = start_part(context, &span->parts[started], call, step, &questions[started]);
  if (!rn_ok(status)) started--;
  if (rn_ok(status)) status = run_own(context, span, call, rendezvous, own);
  // Fails other parts that wait for this one.
  if (!rn_ok(status)) rn_rendezvous_fail(rendezvous, rn_status_copy(status));
  for (size_t i = 0; i < started; ++i) {
    rn_status_t one = rn_eager_question_wait(&questions[i], &response);
    if (rn_ok(one)) {
      one = read_shapes(&span->parts[i], call, rn_message_view(&response), results);
      rn_message_clear(&response);
      answered[i] = true;
    }
    status = choose(status, one);
  }
  for (size_t i = 0; i < started && !rn_ok(status); ++i)
    if (answered[i]) tell_unused(context, &span->parts[i], call->id);
  return status;
}

// Puts the results of the own part on the devices that they belong to.
static rn_status_t take_results(rn_eager_context_t* context, const rn_span_t* span,
                                const rn_tensor_t* own, rn_span_result_t* results) {
  for (int32_t i = 0; i < span->own.result_count; ++i) {
    int32_t number = span->own.results[i];
    rn_device_t* device = NULL;
    rn_eager_handle_t* handle = NULL;
    RN_RETURN_IF_ERROR(rn_eager_own_device(context, span->result_devices[number], &device));
    RN_RETURN_IF_ERROR(rn_eager_handle_create(&own[i], &handle));
    rn_status_t status =
        rn_eager_handle_copy_to(handle, context->eager, device, &results[number].handle);
    rn_eager_handle_release(handle);
    RN_RETURN_IF_ERROR(status);
  }
  return RN_OK;
}

void rn_span_results_clear(rn_span_result_t* results, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    rn_eager_handle_release(results[i].handle);
    results[i].handle = NULL;
  }
}

rn_status_t rn_span_run(rn_eager_context_t* context, const rn_span_t* span,
                        const rn_span_call_t* call, rn_span_result_t* results) {
  rn_rendezvous_t* rendezvous = NULL;
  rn_tensor_t* own = NULL;
  int64_t step = (int64_t)(context->env->random(context->env->self) >> 1 | 1);
  for (int32_t i = 0; i < span->result_count; ++i)
    results[i] = (rn_span_result_t){.device = span->result_devices[i]};
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(call->arena, (size_t)span->own.result_count, &own));
  RN_RETURN_IF_ERROR(rn_steps_adopt(context->steps, step, context,
                                    rn_eager_peers_table(context->peers), &rendezvous));
  rn_status_t status =
      rn_is_cancelled(&context->stop.cancel) ? rn_aborted("The context was closed") : RN_OK;
  if (rn_ok(status)) status = run_parts(context, span, call, step, rendezvous, own, results);
  rn_steps_drop(context->steps, step, rn_aborted("Cleanup %lld", (long long)step));
  rn_rendezvous_release(rendezvous);
  for (size_t i = 0; i < span->part_count; ++i) tell_cleanup(context, span->parts[i].task, step);
  if (rn_ok(status)) status = take_results(context, span, own, results);
  for (int32_t i = 0; i < span->own.result_count; ++i) rn_tensor_clear(&own[i]);
  if (!rn_ok(status)) rn_span_results_clear(results, span->result_count);
  return status;
}

// Turns requests into calls of the two services, and their results into responses. See service.h.
#include "dist/rpc/service.h"
#include "base/container.h"
#include "dist/records.h"

#include "dist/rpc/codec.h"
#include "proto/config.pb.h"
#include "proto/master.pb.h"
#include "proto/tensorflow_server.pb.h"
#include "proto/worker.pb.h"
#include "wire/decode.h"
#include "wire/scan.h"
#include "wire/writer.h"

// The largest request that the loop's thread decodes itself.
#define MAX_QUICK (64u << 10)

typedef struct rpc_service_handling_t rpc_service_handling_t;

// A method: how its request is read, which call it makes and how the response is written.
typedef struct rpc_service_method_t {
  const char* path;
  const rn_record_kind_t* kind;  // NULL: the service answers by itself
  bool is_quick;  // may run on the loop's thread, if the request is small enough to read there
  rn_status_t (*decode)(rpc_service_handling_t* h,
                        const rn_in_t* in);  // may be NULL, like the next
  void (*encode)(rpc_service_handling_t* h, rn_encoder_t* encoder, rn_status_t status);
} rpc_service_method_t;

// A received call.
struct rpc_service_handling_t {
  rn_record_t record;  // first
  rn_job_t job;
  rn_service_t* service;
  rn_rpc_in_t* in;
  const rpc_service_method_t* method;
  rn_arena_t arena;
  bool errors_in_body;
  rn_wire_put_t put;  // RecvTensor: the value on the wire
  rn_cancel_entry_t gone;
  bool is_linked, is_sent;
};

static void finish(rpc_service_handling_t* h, rn_status_t status) {
  rn_service_t* service = h->service;
  rn_rpc_in_t* in = h->in;
  rn_message_t response;
  rn_message_init(&response, service->allocator);
  if (h->method->encode && (rn_ok(status) || h->errors_in_body)) {
    rn_encoder_t encoder;
    rn_encoder_open(&encoder, &response);
    h->method->encode(h, &encoder, status);
    rn_status_free(status);
    status = rn_encoder_close(&encoder);
  }
  if (h->method->kind) rn_record_clear(h->method->kind, &h->record, service->allocator);
  rn_arena_clear(&h->arena);
  RN_FREE(service->allocator, h);
  rn_rpc_reply(in, status, &response);
}

static bool put_on_wire(rpc_service_handling_t* h);

static void on_done(rn_call_t* call, rn_status_t status) {
  rpc_service_handling_t* h = (rpc_service_handling_t*)call;
  if (!rn_ok(status) || !put_on_wire(h)) finish(h, status);
}

// Whether |bytes| are a well-formed message.
static bool is_message(rn_str_t bytes) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  while (rn_pb_scan_next(&scan, &field)) continue;
  return !scan.is_bad;
}

static void run(rn_job_t* job) {
  rpc_service_handling_t* h =
      (rpc_service_handling_t*)((char*)job - __builtin_offsetof(rpc_service_handling_t, job));
  const rn_message_t* message = &h->in->stream.message;
  rn_in_t in = {.bytes = rn_message_view(message),
                .buffer = message->pieces.count ? message->pieces.items[0].buffer : NULL,
                .arena = &h->arena,
                .allocator = h->service->allocator};
  h->record.call = (rn_call_t){.done = on_done,
                               .deadline_ns = h->in->stream.deadline_ns,
                               .cancel = &h->in->cancel,
                               .caller = rn_http2_caller(h->in->http2)};
  if (h->method->kind) rn_record_open(h->method->kind, &h->record, h->service->allocator);
  rn_status_t status = is_message(in.bytes) ? RN_OK : rn_internal("Unable to parse request");
  if (rn_ok(status) && h->method->decode) status = h->method->decode(h, &in);
  rn_callees_t callees = {.worker = h->service->worker, .master = h->service->master};
  if (rn_ok(status) && h->method->kind)
    h->method->kind->call(&callees, &h->record);
  else
    finish(h, status);
}

// The worker's methods.

static rn_status_t read_get_status(rpc_service_handling_t* h, const rn_in_t* in) {
  (void)h, (void)in;
  return RN_OK;
}
static void write_get_status(rpc_service_handling_t* h, rn_encoder_t* encoder, rn_status_t status) {
  (void)status;
  rn_encode_status(encoder, &h->record.get_status);
  // Peers call this regularly, so it also ends the loans of dead ones.
  if (h->service->loans) rn_loans_end(h->service->loans, 0);
}

static rn_status_t read_create_worker_session(rpc_service_handling_t* h, const rn_in_t* in) {
  rn_create_worker_session_t* call = &h->record.create_worker_session;
  rn_str_t server = rn_field_bytes(in->bytes, rn_pb_CreateWorkerSessionRequest_server_def_field);
  call->session = rn_field_bytes(in->bytes, rn_pb_CreateWorkerSessionRequest_session_handle_field);
  call->job = rn_field_bytes(server, rn_pb_ServerDef_job_name_field);
  call->task = (int32_t)rn_field_value(server, rn_pb_ServerDef_task_index_field);
  call->cluster = rn_field_bytes(server, rn_pb_ServerDef_cluster_field);
  call->isolates =
      rn_field_value(in->bytes, rn_pb_CreateWorkerSessionRequest_isolate_session_state_field);
  call->master = rn_field_bytes(in->bytes, rn_pb_CreateWorkerSessionRequest_master_task_field);
  call->master_incarnation =
      rn_field_value(in->bytes, rn_pb_CreateWorkerSessionRequest_master_incarnation_field);
  return RN_OK;
}

static rn_status_t read_delete_worker_session(rpc_service_handling_t* h, const rn_in_t* in) {
  h->record.delete_worker_session.session =
      rn_field_bytes(in->bytes, rn_pb_DeleteWorkerSessionRequest_session_handle_field);
  return RN_OK;
}

static rn_status_t read_register_graph(rpc_service_handling_t* h, const rn_in_t* in) {
  rn_register_graph_t* call = &h->record.register_graph;
  bool has_session =
      rn_field_value(in->bytes, rn_pb_RegisterGraphRequest_create_worker_session_called_field);
  call->session = has_session
                      ? rn_field_bytes(in->bytes, rn_pb_RegisterGraphRequest_session_handle_field)
                      : RN_STR("");
  call->graph_def = rn_field_bytes(in->bytes, rn_pb_RegisterGraphRequest_graph_def_field);
  call->config = rn_field_bytes(in->bytes, rn_pb_RegisterGraphRequest_config_proto_field);
  call->collective_key =
      (int64_t)rn_field_value(in->bytes, rn_pb_RegisterGraphRequest_collective_graph_key_field);
  return RN_OK;
}
static void write_register_graph(rpc_service_handling_t* h, rn_encoder_t* encoder,
                                 rn_status_t status) {
  (void)status;
  rn_pb_put_str(&encoder->head, rn_pb_RegisterGraphResponse_graph_handle_field,
                rn_str(h->record.register_graph.handle));
}

static rn_status_t read_deregister_graph(rpc_service_handling_t* h, const rn_in_t* in) {
  rn_deregister_graph_t* call = &h->record.deregister_graph;
  call->handle = rn_field_bytes(in->bytes, rn_pb_DeregisterGraphRequest_graph_handle_field);
  call->session = rn_field_bytes(in->bytes, rn_pb_DeregisterGraphRequest_session_handle_field);
  return RN_OK;
}

static rn_status_t read_run_graph(rpc_service_handling_t* h, const rn_in_t* in) {
  rn_run_graph_t* call = &h->record.run_graph;
  h->errors_in_body =
      rn_field_value(in->bytes, rn_pb_RunGraphRequest_store_errors_in_response_body_field);
  return rn_decode_run_graph(in, call);
}
static void write_run_graph(rpc_service_handling_t* h, rn_encoder_t* encoder, rn_status_t status) {
  rn_encode_run_graph_response(encoder, &h->record.run_graph, status);
}

static rn_status_t read_cleanup_graph(rpc_service_handling_t* h, const rn_in_t* in) {
  h->record.cleanup_graph.step =
      (int64_t)rn_field_value(in->bytes, rn_pb_CleanupGraphRequest_step_id_field);
  return RN_OK;
}

static rn_status_t read_recv_tensor(rpc_service_handling_t* h, const rn_in_t* in) {
  rn_recv_tensor_t* call = &h->record.recv_tensor;
  call->step = (int64_t)rn_field_value(in->bytes, rn_pb_RecvTensorRequest_step_id_field);
  call->key = rn_field_bytes(in->bytes, rn_pb_RecvTensorRequest_rendezvous_key_field);
  call->request = (int64_t)rn_field_value(in->bytes, rn_pb_RecvTensorRequest_request_id_field);
  return RN_OK;
}
// Lends the value to a task on this machine; false if that is not possible.
static bool lend(rpc_service_handling_t* h, rn_encoder_t* encoder) {
  const rn_recv_tensor_t* call = &h->record.recv_tensor;
  rn_loans_t* loans = h->service->loans;
  if (!loans) return false;
  rn_loan_ask_t ask;
  rn_decode_loan_ask(rn_rpc_request(h->in), &ask);
  const rn_reach_t* own = rn_loans_reach(loans);
  if (ask.machine[0] && strcmp(ask.machine, own->machine) == 0) {
    if (ask.has_line)
      rn_loans_greet(loans, ask.line);
    else
      rn_encode_reach(encoder, own);
  }
  if (!ask.wants_loan || call->is_dead || !rn_dtype_is_plain(call->value.dtype) ||
      !call->value.buffer || rn_tensor_bytes(&call->value) < RN_LOAN_MIN)
    return false;
  uint64_t id = 0;
  rn_status_t status = rn_loans_add(loans, ask.line, &call->value, &id);
  bool ok = rn_ok(status);
  if (ok) rn_encode_loan(encoder, &call->value, id);
  rn_status_free(status);
  return ok;
}

// The value by a wire.

static void on_put(rn_wire_put_t* put, bool is_sent) {
  rpc_service_handling_t* h = RN_CONTAINER_OF(put, rpc_service_handling_t, put);
  if (h->is_linked) rn_cancel_remove(&h->in->cancel, &h->gone);
  h->is_sent = is_sent;
  finish(h, RN_OK);
}

static void on_gone(rn_cancel_entry_t* entry) {
  rpc_service_handling_t* h = RN_CONTAINER_OF(entry, rpc_service_handling_t, gone);
  rn_wire_give_up(h->service->wire, &h->put);
}

// Sends what a RecvTensor has given by UCX, and answers the call when it is gone. False if that is
// not possible, or not wanted: where both are possible, the value is lent. If UCX does not get it
// across, it is in the response.
static bool put_on_wire(rpc_service_handling_t* h) {
  const rn_recv_tensor_t* call = &h->record.recv_tensor;
  rn_loan_ask_t loan;
  rn_wire_ask_t ask;
  if (!h->service->wire || h->method->kind != &rn_record_recv_tensor || call->is_dead ||
      !rn_wire_may_put(&call->value) || rn_tensor_bytes(&call->value) < RN_WIRE_MIN)
    return false;
  rn_decode_loan_ask(rn_rpc_request(h->in), &loan);
  rn_decode_wire_ask(rn_rpc_request(h->in), &ask);
  if (!ask.has_line || (loan.wants_loan && h->service->loans)) return false;
  h->put = (rn_wire_put_t){
      .line = ask.line, .number = ask.number, .value = &call->value, .done = on_put};
  h->gone.fn = on_gone;
  h->is_linked = rn_cancel_add(&h->in->cancel, &h->gone);
  if (h->is_linked && rn_wire_put(h->service->wire, &h->put)) return true;
  if (h->is_linked) rn_cancel_remove(&h->in->cancel, &h->gone);
  return false;
}

// Tells a receiver that has a wire where ours is, unless it knows.
static void write_wire(rpc_service_handling_t* h, rn_encoder_t* encoder) {
  rn_wire_ask_t ask;
  rn_wire_answer_t answer = {.is_sent = h->is_sent};
  if (!h->service->wire) return;
  rn_decode_wire_ask(rn_rpc_request(h->in), &ask);
  if (ask.is_there && !(ask.has_line && rn_wire_has(h->service->wire, ask.line)))
    answer.address = rn_wire_address(h->service->wire);
  if (answer.is_sent || answer.address.size) rn_encode_wire_answer(encoder, &answer);
}

static void write_recv_tensor(rpc_service_handling_t* h, rn_encoder_t* encoder,
                              rn_status_t status) {
  (void)status;
  const rn_env_t* env = h->service->env;
  write_wire(h, encoder);
  if (h->is_sent || lend(h, encoder)) return;
  rn_encode_received(encoder, &h->record.recv_tensor, env->wall_us(env->self));
}

// Ends a loan, and reports whether there was one. Stock's tasks call this only if a response asks
// them to.
static void write_mark_finished(rpc_service_handling_t* h, rn_encoder_t* encoder,
                                rn_status_t status) {
  (void)status;
  rn_str_t request = rn_rpc_request(h->in);
  uint64_t id = rn_field_value(request, rn_pb_MarkRecvFinishedRequest_request_id_field);
  if (h->service->loans && rn_loans_end(h->service->loans, id))
    rn_pb_put_uint(&encoder->head, RN_MARKED_FIELD, 1);
}

static rn_status_t read_cleanup_all(rpc_service_handling_t* h, const rn_in_t* in) {
  rn_cleanup_all_t* call = &h->record.cleanup_all;
  return rn_decode_names(in, rn_pb_CleanupAllRequest_container_field, &call->containers,
                         &call->container_count);
}

static rn_status_t read_complete_group(rpc_service_handling_t* h, const rn_in_t* in) {
  return rn_decode_complete_group(in, &h->record.complete_group);
}
static void write_complete_group(rpc_service_handling_t* h, rn_encoder_t* encoder,
                                 rn_status_t status) {
  (void)status;
  rn_encode_group(encoder, &h->record.complete_group);
}

static rn_status_t read_logging(rpc_service_handling_t* h, const rn_in_t* in) {
  rn_pb_LoggingRequest_t* request = NULL;
  rn_logging_t* call = &h->record.logging;
  RN_RETURN_IF_ERROR(RN_PB_DECODE(LoggingRequest, in->bytes, NULL, &h->arena, &request));
  call->switches_on = request->enable_rpc_logging;
  call->switches_off = request->disable_rpc_logging;
  call->clears = request->clear;
  call->steps = request->fetch_step_id.items;
  call->step_count = request->fetch_step_id.count;
  return RN_OK;
}
static void write_logging(rpc_service_handling_t* h, rn_encoder_t* encoder, rn_status_t status) {
  (void)status;
  rn_strbuf_append(&encoder->head, rn_strbuf_view(&h->record.logging.notes));
}

static rn_status_t read_complete_instance(rpc_service_handling_t* h, const rn_in_t* in) {
  rn_decode_complete_instance(in->bytes, &h->record.complete_instance);
  return RN_OK;
}
static void write_complete_instance(rpc_service_handling_t* h, rn_encoder_t* encoder,
                                    rn_status_t status) {
  (void)status;
  const rn_complete_instance_t* call = &h->record.complete_instance;
  rn_pb_put_uint(&encoder->head, rn_pb_CompleteInstanceResponse_instance_key_field,
                 (uint64_t)(int64_t)call->instance_key);
  rn_pb_put_uint(&encoder->head, rn_pb_CompleteInstanceResponse_source_rank_field,
                 (uint64_t)(int64_t)call->source_rank);
}

static rn_status_t read_recv_buf(rpc_service_handling_t* h, const rn_in_t* in) {
  rn_decode_recv_buf(in->bytes, &h->record.recv_buf);
  return RN_OK;
}
static void write_recv_buf(rpc_service_handling_t* h, rn_encoder_t* encoder, rn_status_t status) {
  (void)status;
  const rn_env_t* env = h->service->env;
  rn_encode_buf(encoder, &h->record.recv_buf, env->wall_us(env->self));
}

static rn_status_t read_get_step_sequence(rpc_service_handling_t* h, const rn_in_t* in) {
  rn_pb_GetStepSequenceRequest_t* request = NULL;
  RN_RETURN_IF_ERROR(RN_PB_DECODE(GetStepSequenceRequest, in->bytes, NULL, &h->arena, &request));
  h->record.get_step_sequence.graphs = request->graph_key.items;
  h->record.get_step_sequence.graph_count = request->graph_key.count;
  return RN_OK;
}
static void write_get_step_sequence(rpc_service_handling_t* h, rn_encoder_t* encoder,
                                    rn_status_t status) {
  (void)status;
  rn_strbuf_append(&encoder->head, rn_strbuf_view(&h->record.get_step_sequence.sequences));
}

static rn_status_t read_tracing(rpc_service_handling_t* h, const rn_in_t* in) {
  (void)h, (void)in;
  return rn_unimplemented("Tracing");
}

// The master's methods.

static rn_status_t read_create_session(rpc_service_handling_t* h, const rn_in_t* in) {
  rn_create_session_t* call = &h->record.create_session;
  call->graph_def = rn_field_bytes(in->bytes, rn_pb_CreateSessionRequest_graph_def_field);
  call->config = rn_field_bytes(in->bytes, rn_pb_CreateSessionRequest_config_field);
  call->target = rn_field_bytes(in->bytes, rn_pb_CreateSessionRequest_target_field);
  return RN_OK;
}
static void write_create_session(rpc_service_handling_t* h, rn_encoder_t* encoder,
                                 rn_status_t status) {
  (void)status;
  rn_pb_put_str(&encoder->head, rn_pb_CreateSessionResponse_session_handle_field,
                rn_str(h->record.create_session.session));
}

static rn_status_t read_extend_session(rpc_service_handling_t* h, const rn_in_t* in) {
  rn_extend_session_t* call = &h->record.extend_session;
  call->session = rn_field_bytes(in->bytes, rn_pb_ExtendSessionRequest_session_handle_field);
  call->graph_def = rn_field_bytes(in->bytes, rn_pb_ExtendSessionRequest_graph_def_field);
  call->version =
      (int64_t)rn_field_value(in->bytes, rn_pb_ExtendSessionRequest_current_graph_version_field);
  return RN_OK;
}
static void write_extend_session(rpc_service_handling_t* h, rn_encoder_t* encoder,
                                 rn_status_t status) {
  (void)status;
  rn_pb_put_uint(&encoder->head, rn_pb_ExtendSessionResponse_new_graph_version_field,
                 (uint64_t)h->record.extend_session.version);
}

// The names of a step's feeds, fetches and targets, from the fields of |message|.
#define READ_STEP_NAMES(in, message, call)                                                    \
  rn_status_join(                                                                             \
      rn_decode_names(in, rn_pb_##message##_feed_field, &(call)->feeds, &(call)->feed_count), \
      rn_status_join(rn_decode_names(in, rn_pb_##message##_fetch_field, &(call)->fetches,     \
                                     &(call)->fetch_count),                                   \
                     rn_decode_names(in, rn_pb_##message##_target_field, &(call)->targets,    \
                                     &(call)->target_count)))

static rn_status_t read_partial_setup(rpc_service_handling_t* h, const rn_in_t* in) {
  rn_partial_setup_t* call = &h->record.partial_setup;
  call->session = rn_field_bytes(in->bytes, rn_pb_PartialRunSetupRequest_session_handle_field);
  return READ_STEP_NAMES(in, PartialRunSetupRequest, call);
}
static void write_partial_setup(rpc_service_handling_t* h, rn_encoder_t* encoder,
                                rn_status_t status) {
  (void)status;
  rn_pb_put_str(&encoder->head, rn_pb_PartialRunSetupResponse_partial_run_handle_field,
                rn_str(h->record.partial_setup.handle));
}

static rn_status_t read_run_step(rpc_service_handling_t* h, const rn_in_t* in) {
  return rn_decode_run_step(in, &h->record.run_step, &h->errors_in_body);
}
static void write_run_step(rpc_service_handling_t* h, rn_encoder_t* encoder, rn_status_t status) {
  rn_encode_run_step_response(encoder, &h->record.run_step, status);
}

static rn_status_t read_close_session(rpc_service_handling_t* h, const rn_in_t* in) {
  h->record.close_session.session =
      rn_field_bytes(in->bytes, rn_pb_CloseSessionRequest_session_handle_field);
  return RN_OK;
}

static rn_status_t read_list_devices(rpc_service_handling_t* h, const rn_in_t* in) {
  h->record.list_devices.session =
      rn_field_bytes(in->bytes, rn_pb_ListDevicesRequest_session_handle_field);
  return RN_OK;
}
static void write_list_devices(rpc_service_handling_t* h, rn_encoder_t* encoder,
                               rn_status_t status) {
  (void)status;
  rn_encode_devices(encoder, rn_pb_ListDevicesResponse_local_device_field,
                    h->record.list_devices.devices, h->record.list_devices.device_count);
}

static rn_status_t read_reset(rpc_service_handling_t* h, const rn_in_t* in) {
  rn_reset_t* call = &h->record.reset;
  RN_RETURN_IF_ERROR(rn_decode_names(in, rn_pb_ResetRequest_container_field, &call->containers,
                                     &call->container_count));
  return rn_decode_names(in, rn_pb_ResetRequest_device_filters_field, &call->filters,
                         &call->filter_count);
}

static rn_status_t read_make_callable(rpc_service_handling_t* h, const rn_in_t* in) {
  rn_make_callable_t* call = &h->record.make_callable;
  rn_in_t options = *in;
  call->session = rn_field_bytes(in->bytes, rn_pb_MakeCallableRequest_session_handle_field);
  options.bytes = rn_field_bytes(in->bytes, rn_pb_MakeCallableRequest_options_field);
  RN_RETURN_IF_ERROR(READ_STEP_NAMES(&options, CallableOptions, call));
  rn_str_t run = rn_field_bytes(options.bytes, rn_pb_CallableOptions_run_options_field);
  call->trace_level = (int)rn_field_value(run, rn_pb_RunOptions_trace_level_field);
  call->timeout_ms = (int64_t)rn_field_value(run, rn_pb_RunOptions_timeout_in_ms_field);
  call->wants_graphs = rn_field_value(run, rn_pb_RunOptions_output_partition_graphs_field);
  return RN_OK;
}
static void write_make_callable(rpc_service_handling_t* h, rn_encoder_t* encoder,
                                rn_status_t status) {
  (void)status;
  if (h->record.make_callable.handle)
    rn_pb_put_uint(&encoder->head, rn_pb_MakeCallableResponse_handle_field,
                   (uint64_t)h->record.make_callable.handle);
}

static rn_status_t read_run_callable(rpc_service_handling_t* h, const rn_in_t* in) {
  return rn_decode_run_callable(in, &h->record.run_callable);
}
static void write_run_callable(rpc_service_handling_t* h, rn_encoder_t* encoder,
                               rn_status_t status) {
  (void)status;
  rn_run_callable_t* call = &h->record.run_callable;
  rn_pb_put_str(&encoder->head, rn_pb_RunCallableResponse_metadata_field,
                rn_strbuf_view(&call->metadata));
  for (size_t i = 0; i < call->fetch_count; ++i)
    rn_encode_tensor(encoder, rn_pb_RunCallableResponse_fetch_field, &call->fetches[i]);
}

static rn_status_t read_release_callable(rpc_service_handling_t* h, const rn_in_t* in) {
  rn_release_callable_t* call = &h->record.release_callable;
  call->session = rn_field_bytes(in->bytes, rn_pb_ReleaseCallableRequest_session_handle_field);
  call->handle = (int64_t)rn_field_value(in->bytes, rn_pb_ReleaseCallableRequest_handle_field);
  return RN_OK;
}

#define WRITES_ANSWERS(name) write_##name
#define WRITES_ACKS(name) NULL
#define IS_QUICK true
#define IS_SLOW false
#define METHOD(side, name, Method, speed, answer, ...) \
  {RN_PATH_##side #Method, &rn_record_##name, IS_##speed, read_##name, WRITES_##answer(name)},
static const rpc_service_method_t methods[] = {
    RN_WORKER_CALLS(METHOD) RN_MASTER_CALLS(METHOD){RN_PATH_worker "MarkRecvFinished", NULL, true,
                                                    NULL, write_mark_finished},
    {RN_PATH_worker "Tracing", NULL, true, read_tracing, NULL},
};

static const rpc_service_method_t* find_method(rn_str_t path) {
  for (size_t i = 0; i < sizeof methods / sizeof *methods; ++i)
    if (rn_str_is(path, methods[i].path)) return &methods[i];
  return NULL;
}

void rn_service_handle(void* self, rn_rpc_in_t* call) {
  rn_service_t* service = self;
  const rpc_service_method_t* method = find_method(rn_rpc_path(call));
  rpc_service_handling_t* h = NULL;
  rn_status_t status =
      method ? RN_NEW(service->allocator, &h) : rn_status_make(RN_CODE_UNIMPLEMENTED, "%s", "");
  if (!rn_ok(status)) {
    rn_message_t none;
    rn_message_init(&none, service->allocator);
    rn_rpc_reply(call, status, &none);
    return;
  }
  h->service = service;
  h->in = call;
  h->method = method;
  h->job.run = run;
  rn_arena_init(&h->arena, service->allocator);
  if (method->is_quick && rn_rpc_request(call).size <= MAX_QUICK)
    run(&h->job);
  else
    rn_pool_submit(service->env->pool, &h->job);
}

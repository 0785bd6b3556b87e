// Makes calls to other processes: see remote.h.
#include "dist/rpc/remote.h"

#include "base/container.h"
#include "dist/rpc/codec.h"
#include "dist/rpc/line.h"
#include "proto/config.pb.h"
#include "proto/master.pb.h"
#include "proto/tensorflow_server.pb.h"
#include "proto/worker.pb.h"
#include "wire/writer.h"

// After so many lines to a peer have failed, it is not asked for loans any more.
#define MAX_LINES 100

struct rn_remote_peer_t {
  rn_worker_t worker;
  rn_master_t master;
  rn_channel_t* channel;  // Borrowed
  const rn_env_t* env;
  rn_allocator_t allocator;
  rn_mutex_t mutex;  // guards what follows
  rn_cond_t idle;
  rn_line_t* line;     // Owned: to a lender of this machine; NULL: none
  bool may_have_line;  // a line may be opened, or is open
  char machine[40];    // this one
  int lines_left;      // how many more may be opened after failures
  int borrowing;       // tensors that are being read, until their MarkRecvFinished is made
  bool is_stopped;
};

typedef rn_status_t (*decode_fn_t)(const rn_in_t* in, rn_call_t* call);

// A running call.
typedef struct sent_t {
  rn_rpc_out_t out;  // first
  rn_remote_peer_t* peer;
  rn_call_t* call;
  decode_fn_t decode;
  rn_encoder_t encoder;  // until the request is written
  rn_cancel_entry_t entry;
  bool is_linked;
  bool asks_for_lender;  // a RecvTensor to which a lender on this machine responds with its name
} sent_t;

static rn_remote_peer_t* of_worker(rn_worker_t* worker) {
  return RN_CONTAINER_OF(worker, rn_remote_peer_t, worker);
}
static rn_remote_peer_t* of_master(rn_master_t* master) {
  return RN_CONTAINER_OF(master, rn_remote_peer_t, master);
}

static void on_cancel(rn_cancel_entry_t* entry) {
  sent_t* sent = RN_CONTAINER_OF(entry, sent_t, entry);
  rn_rpc_cancel(sent->peer->channel, &sent->out);
}

static rn_status_t take_recv_tensor(const rn_in_t* in, rn_call_t* call) {
  return rn_decode_received(in, (rn_recv_tensor_t*)call);
}

// A loan of the peer: read on the pool, then returned with MarkRecvFinished; valid if the loan
// lasted until then.
typedef struct borrowed_t {
  rn_job_t job;  // first
  rn_remote_peer_t* peer;
  rn_recv_tensor_t* call;
  rn_line_t* line;  // Retained
  rn_loan_t loan;
  rn_tensor_t value;
  rn_call_t mark;  // MarkRecvFinished
  bool is_marked;
} borrowed_t;

static void mark_finished(borrowed_t* borrowed);

// Under the lock. The next response has the address of the peer's lender, which may be a new
// process.
static void drop_line(rn_remote_peer_t* peer) {
  rn_line_release(peer->line);
  peer->line = NULL;
  peer->may_have_line = peer->lines_left > 0;
}

static void borrowed_end(borrowed_t* borrowed, rn_status_t status) {
  rn_remote_peer_t* peer = borrowed->peer;
  rn_recv_tensor_t* call = borrowed->call;
  if (rn_ok(status))
    call->value = borrowed->value;
  else
    rn_tensor_clear(&borrowed->value);
  rn_mutex_lock(&peer->mutex);
  if (!rn_ok(status) && peer->line == borrowed->line) drop_line(peer);
  rn_mutex_unlock(&peer->mutex);
  rn_line_release(borrowed->line);
  RN_FREE(peer->allocator, borrowed);
  rn_call_done(&call->call, status);
}

static void read_borrowed(rn_job_t* job) {
  borrowed_t* borrowed = (borrowed_t*)job;
  rn_remote_peer_t* peer = borrowed->peer;
  rn_tensor_t* value = &borrowed->value;
  rn_status_t status = rn_buffer_create(rn_channel_landing(peer->channel), value->dtype,
                                        rn_tensor_bytes(value), &value->buffer);
  if (rn_ok(status)) {
    value->data = value->buffer->data;
    status = rn_line_read(borrowed->line, &borrowed->loan, value->data, rn_tensor_bytes(value),
                          peer->env->pool);
  }
  if (rn_ok(status))
    mark_finished(borrowed);
  else
    borrowed_end(borrowed, status);
  rn_mutex_lock(&peer->mutex);
  if (--peer->borrowing == 0) rn_cond_broadcast(&peer->idle);
  rn_mutex_unlock(&peer->mutex);
}

// Learns from the response to RecvTensor whether the peer has a lender on this machine, and whether
// the line to it works.
static void learn(rn_remote_peer_t* peer, rn_str_t response, bool asked) {
  rn_reach_t reach;
  rn_mutex_lock(&peer->mutex);
  if (asked && peer->may_have_line && !peer->line) {
    rn_status_t status = rn_decode_reach(response, &reach)
                             ? rn_line_open(&reach, peer->env, peer->allocator, &peer->line)
                             : rn_unavailable("The peer lends nothing");
    peer->may_have_line = rn_ok(status);
    peer->lines_left--;
    rn_status_free(status);
  } else if (peer->line &&
             (rn_line_state(peer->line) == RN_LINE_WAITS || response.size >= RN_LOAN_MIN)) {
    // The response has a value that could have been lent: the lender may be gone.
    if (rn_line_hear(peer->line) == RN_LINE_FAILS) drop_line(peer);
  }
  rn_mutex_unlock(&peer->mutex);
}

// The loan in the response to RecvTensor, in |*out|; NULL if the response has the value itself.
static rn_status_t borrow(const sent_t* sent, borrowed_t** out) {
  rn_remote_peer_t* peer = sent->peer;
  rn_str_t response = rn_message_view(&sent->out.stream.message);
  *out = NULL;
  uint64_t id = 0;
  rn_tensor_t value = {0};
  bool is_there;
  RN_RETURN_IF_ERROR(rn_decode_loan(response, &id, &value, &is_there));
  if (!is_there) {
    learn(peer, response, sent->asks_for_lender);
    return RN_OK;
  }
  borrowed_t* borrowed = NULL;
  rn_status_t status = RN_NEW(peer->allocator, &borrowed);
  if (!rn_ok(status)) {
    rn_tensor_clear(&value);
    return status;
  }
  *borrowed = (borrowed_t){.job.run = read_borrowed,
                           .peer = peer,
                           .call = (rn_recv_tensor_t*)sent->call,
                           .value = value};
  rn_mutex_lock(&peer->mutex);
  if (peer->is_stopped || !peer->line || !rn_line_take(peer->line, id, &borrowed->loan))
    status = rn_unavailable("The peer lent a tensor that was not requested");
  if (rn_ok(status)) {
    borrowed->line = peer->line;
    rn_line_retain(borrowed->line);
    peer->borrowing++;
  }
  rn_mutex_unlock(&peer->mutex);
  if (rn_ok(status)) {
    *out = borrowed;
  } else {
    rn_tensor_clear(&borrowed->value);
    RN_FREE(peer->allocator, borrowed);
  }
  return status;
}

static void on_done(rn_rpc_out_t* out, rn_status_t status) {
  sent_t* sent = (sent_t*)out;
  rn_remote_peer_t* peer = sent->peer;
  rn_call_t* call = sent->call;
  borrowed_t* borrowed = NULL;
  if (sent->is_linked) rn_cancel_remove(call->cancel, &sent->entry);
  call->is_broken = rn_status_code(status) == RN_CODE_UNAVAILABLE && out->is_sent &&
                    out->stream.grpc_status < 0 && !rn_lease_is_over(status);
  if (rn_ok(status) && sent->decode == take_recv_tensor) status = borrow(sent, &borrowed);
  if (rn_ok(status) && sent->decode && !borrowed) {
    const rn_message_t* message = &out->stream.message;
    rn_arena_t arena;
    rn_arena_init(&arena, peer->allocator);
    rn_in_t in = {.bytes = rn_message_view(message),
                  .buffer = message->pieces.count ? message->pieces.items[0].buffer : NULL,
                  .arena = &arena,
                  .allocator = peer->allocator};
    status = sent->decode(&in, call);
    rn_arena_clear(&arena);
  }
  rn_rpc_out_clear(out);
  RN_FREE(peer->allocator, sent);
  if (borrowed)
    rn_pool_submit(peer->env->pool, &borrowed->job);
  else
    rn_call_done(call, status);
}

// Prepares a call to |path|; the caller writes the request into |encoder|, then calls send_off.
// NULL without memory; then |call| has ended.
static sent_t* prepare(rn_remote_peer_t* peer, const char* path, rn_call_t* call,
                       decode_fn_t decode) {
  sent_t* sent = NULL;
  rn_status_t status = RN_NEW(peer->allocator, &sent);
  if (!rn_ok(status)) {
    rn_call_done(call, status);
    return NULL;
  }
  sent->peer = peer;
  sent->call = call;
  sent->decode = decode;
  sent->entry.fn = on_cancel;
  sent->out.path = path;
  sent->out.align = rn_align_content;
  sent->out.deadline_ns = call->deadline_ns;
  sent->out.waits_for_ready = call->waits_for_ready;
  sent->out.done = on_done;
  rn_message_init(&sent->out.request, peer->allocator);
  rn_encoder_open(&sent->encoder, &sent->out.request);
  return sent;
}

static void send_off(sent_t* sent) {
  rn_remote_peer_t* peer = sent->peer;
  rn_call_t* call = sent->call;
  rn_status_t status = rn_encoder_close(&sent->encoder);
  if (rn_ok(status) && call->cancel) {
    sent->is_linked = rn_cancel_add(call->cancel, &sent->entry);
    if (!sent->is_linked) status = rn_cancelled("The call was cancelled before it was made");
  }
  if (rn_ok(status)) {
    rn_rpc_start(peer->channel, &sent->out);
    return;
  }
  rn_rpc_out_clear(&sent->out);
  RN_FREE(peer->allocator, sent);
  rn_call_done(call, status);
}

// Requests are written by put_<call> into |out|, the head of the call's encoder; responses are read
// by take_<call>.
static sent_t* sent_of(rn_strbuf_t* out) { return RN_CONTAINER_OF(out, sent_t, encoder.head); }

static void put_names(rn_strbuf_t* out, uint32_t number, const rn_str_t* names, size_t count) {
  for (size_t i = 0; i < count; ++i) rn_pb_put_str(out, number, names[i]);
}

static void copy_handle(rn_str_t from, char* out, size_t room) {
  size_t size = from.size < room - 1 ? from.size : room - 1;
  if (size) memcpy(out, from.data, size);
  out[size] = '\0';
}

// The worker.

static rn_status_t take_get_status(const rn_in_t* in, rn_call_t* call) {
  return rn_decode_status(in, (rn_get_status_t*)call);
}

static void put_get_status(rn_strbuf_t* out, const rn_get_status_t* call) { (void)out, (void)call; }

static void put_server_def(rn_strbuf_t* out, const rn_create_worker_session_t* call) {
  size_t def = rn_pb_begin(out, rn_pb_CreateWorkerSessionRequest_server_def_field);
  rn_pb_put_str(out, rn_pb_ServerDef_cluster_field, call->cluster);
  rn_pb_put_str(out, rn_pb_ServerDef_job_name_field, call->job);
  if (call->task) rn_pb_put_uint(out, rn_pb_ServerDef_task_index_field, (uint64_t)call->task);
  rn_pb_put_str(out, rn_pb_ServerDef_protocol_field, RN_STR("grpc"));
  rn_pb_end(out, def);
}

static void put_create_worker_session(rn_strbuf_t* out, const rn_create_worker_session_t* call) {
  rn_pb_put_str(out, rn_pb_CreateWorkerSessionRequest_session_handle_field, call->session);
  put_server_def(out, call);
  if (call->isolates)
    rn_pb_put_uint(out, rn_pb_CreateWorkerSessionRequest_isolate_session_state_field, 1);
  rn_pb_put_str(out, rn_pb_CreateWorkerSessionRequest_master_task_field, call->master);
  rn_pb_put_uint(out, rn_pb_CreateWorkerSessionRequest_master_incarnation_field,
                 call->master_incarnation);
}

static void put_delete_worker_session(rn_strbuf_t* out, const rn_delete_worker_session_t* call) {
  rn_pb_put_str(out, rn_pb_DeleteWorkerSessionRequest_session_handle_field, call->session);
}

static rn_status_t take_register_graph(const rn_in_t* in, rn_call_t* call) {
  rn_register_graph_t* record = (rn_register_graph_t*)call;
  copy_handle(rn_field_bytes(in->bytes, rn_pb_RegisterGraphResponse_graph_handle_field),
              record->handle, sizeof record->handle);
  return RN_OK;
}

static void put_register_graph(rn_strbuf_t* out, const rn_register_graph_t* call) {
  rn_pb_put_str(out, rn_pb_RegisterGraphRequest_session_handle_field, call->session);
  rn_pb_put_str(out, rn_pb_RegisterGraphRequest_graph_def_field, call->graph_def);
  rn_pb_put_str(out, rn_pb_RegisterGraphRequest_graph_options_field, RN_STR(""));
  rn_pb_put_str(out, rn_pb_RegisterGraphRequest_debug_options_field, RN_STR(""));
  rn_pb_put_uint(out, rn_pb_RegisterGraphRequest_create_worker_session_called_field, 1);
  if (call->collective_key)
    rn_pb_put_uint(out, rn_pb_RegisterGraphRequest_collective_graph_key_field,
                   (uint64_t)call->collective_key);
  rn_pb_put_str(out, rn_pb_RegisterGraphRequest_config_proto_field, call->config);
}

static void put_deregister_graph(rn_strbuf_t* out, const rn_deregister_graph_t* call) {
  rn_pb_put_str(out, rn_pb_DeregisterGraphRequest_graph_handle_field, call->handle);
  rn_pb_put_str(out, rn_pb_DeregisterGraphRequest_session_handle_field, call->session);
  rn_pb_put_uint(out, rn_pb_DeregisterGraphRequest_create_worker_session_called_field, 1);
}

static rn_status_t take_run_graph(const rn_in_t* in, rn_call_t* call) {
  return rn_decode_run_graph_response(in, (rn_run_graph_t*)call);
}

static void put_run_graph(rn_strbuf_t* out, const rn_run_graph_t* call) {
  rn_encode_run_graph(&sent_of(out)->encoder, call);
}

static void put_cleanup_graph(rn_strbuf_t* out, const rn_cleanup_graph_t* call) {
  rn_pb_put_uint(out, rn_pb_CleanupGraphRequest_step_id_field, (uint64_t)call->step);
}

static borrowed_t* of_mark(rn_call_t* call) { return RN_CONTAINER_OF(call, borrowed_t, mark); }

static rn_status_t take_mark(const rn_in_t* in, rn_call_t* call) {
  of_mark(call)->is_marked = rn_field_value(in->bytes, RN_MARKED_FIELD);
  return RN_OK;
}

static void on_marked(rn_call_t* call, rn_status_t status) {
  borrowed_t* borrowed = of_mark(call);
  if (rn_ok(status) && !borrowed->is_marked)
    status = rn_unavailable("A borrowed tensor was revoked while it was read");
  borrowed_end(borrowed, status);
}

static void mark_finished(borrowed_t* borrowed) {
  borrowed->mark = (rn_call_t){.done = on_marked, .deadline_ns = INT64_MAX};
  sent_t* sent =
      prepare(borrowed->peer, RN_PATH_worker "MarkRecvFinished", &borrowed->mark, take_mark);
  if (!sent) return;
  rn_pb_put_uint(&sent->encoder.head, rn_pb_MarkRecvFinishedRequest_request_id_field,
                 borrowed->loan.id);
  send_off(sent);
}

static void put_recv_tensor(rn_strbuf_t* out, rn_recv_tensor_t* call) {
  sent_t* sent = sent_of(out);
  rn_remote_peer_t* peer = sent->peer;
  rn_loan_ask_t ask = {.has_line = false};
  call->value = (rn_tensor_t){0};
  rn_mutex_lock(&peer->mutex);
  if (peer->may_have_line) memcpy(ask.machine, peer->machine, sizeof ask.machine);
  if (peer->line) {
    ask.line = rn_line_name(peer->line);
    ask.has_line = true;
    ask.wants_loan = rn_line_state(peer->line) == RN_LINE_WORKS;
  }
  rn_mutex_unlock(&peer->mutex);
  sent->asks_for_lender = ask.machine[0] && !ask.has_line;
  rn_encode_recv_tensor(&sent->encoder, call, &ask);
}

static void put_cleanup_all(rn_strbuf_t* out, const rn_cleanup_all_t* call) {
  put_names(out, rn_pb_CleanupAllRequest_container_field, call->containers, call->container_count);
}

static rn_status_t take_complete_group(const rn_in_t* in, rn_call_t* call) {
  return rn_decode_group(in, (rn_complete_group_t*)call);
}

static void put_complete_group(rn_strbuf_t* out, const rn_complete_group_t* call) {
  rn_encode_complete_group(&sent_of(out)->encoder, call);
}

static rn_status_t take_complete_instance(const rn_in_t* in, rn_call_t* call) {
  ((rn_complete_instance_t*)call)->source_rank =
      (int32_t)rn_field_value(in->bytes, rn_pb_CompleteInstanceResponse_source_rank_field);
  return RN_OK;
}

static void put_complete_instance(rn_strbuf_t* out, const rn_complete_instance_t* call) {
  rn_encode_complete_instance(&sent_of(out)->encoder, call);
}

static rn_status_t take_recv_buf(const rn_in_t* in, rn_call_t* call) {
  return rn_decode_buf(in, (rn_recv_buf_t*)call);
}

static void put_recv_buf(rn_strbuf_t* out, rn_recv_buf_t* call) {
  call->value = (rn_tensor_t){0};
  rn_encode_recv_buf(&sent_of(out)->encoder, call);
}

static rn_status_t take_get_step_sequence(const rn_in_t* in, rn_call_t* call) {
  rn_get_step_sequence_t* record = (rn_get_step_sequence_t*)call;
  rn_strbuf_append(&record->sequences, in->bytes);
  return rn_strbuf_status(&record->sequences);
}

static void put_get_step_sequence(rn_strbuf_t* out, const rn_get_step_sequence_t* call) {
  for (size_t i = 0; i < call->graph_count; ++i)
    rn_pb_put_uint(out, rn_pb_GetStepSequenceRequest_graph_key_field, (uint64_t)call->graphs[i]);
}

static rn_status_t take_logging(const rn_in_t* in, rn_call_t* call) {
  rn_logging_t* record = (rn_logging_t*)call;
  rn_strbuf_append(&record->notes, in->bytes);
  return rn_strbuf_status(&record->notes);
}

static void put_bool(rn_strbuf_t* out, uint32_t number, bool value) {
  if (value) rn_pb_put_uint(out, number, 1);
}

static void put_logging(rn_strbuf_t* out, const rn_logging_t* call) {
  put_bool(out, rn_pb_LoggingRequest_enable_rpc_logging_field, call->switches_on);
  put_bool(out, rn_pb_LoggingRequest_clear_field, call->clears);
  for (size_t i = 0; i < call->step_count; ++i)
    rn_pb_put_uint(out, rn_pb_LoggingRequest_fetch_step_id_field, (uint64_t)call->steps[i]);
  put_bool(out, rn_pb_LoggingRequest_disable_rpc_logging_field, call->switches_off);
}

// The master.

static rn_status_t take_create_session(const rn_in_t* in, rn_call_t* call) {
  rn_create_session_t* record = (rn_create_session_t*)call;
  copy_handle(rn_field_bytes(in->bytes, rn_pb_CreateSessionResponse_session_handle_field),
              record->session, sizeof record->session);
  record->version =
      (int64_t)rn_field_value(in->bytes, rn_pb_CreateSessionResponse_graph_version_field);
  return record->session[0] ? RN_OK : rn_internal("The master named no session");
}

static void put_create_session(rn_strbuf_t* out, const rn_create_session_t* call) {
  rn_pb_put_str(out, rn_pb_CreateSessionRequest_graph_def_field, call->graph_def);
  rn_pb_put_str(out, rn_pb_CreateSessionRequest_config_field, call->config);
  rn_pb_put_str(out, rn_pb_CreateSessionRequest_target_field, call->target);
}

static rn_status_t take_extend_session(const rn_in_t* in, rn_call_t* call) {
  ((rn_extend_session_t*)call)->version =
      (int64_t)rn_field_value(in->bytes, rn_pb_ExtendSessionResponse_new_graph_version_field);
  return RN_OK;
}

static void put_extend_session(rn_strbuf_t* out, const rn_extend_session_t* call) {
  rn_pb_put_str(out, rn_pb_ExtendSessionRequest_session_handle_field, call->session);
  rn_pb_put_str(out, rn_pb_ExtendSessionRequest_graph_def_field, call->graph_def);
  rn_pb_put_uint(out, rn_pb_ExtendSessionRequest_current_graph_version_field,
                 (uint64_t)call->version);
}

static rn_status_t take_partial_setup(const rn_in_t* in, rn_call_t* call) {
  rn_partial_setup_t* record = (rn_partial_setup_t*)call;
  copy_handle(rn_field_bytes(in->bytes, rn_pb_PartialRunSetupResponse_partial_run_handle_field),
              record->handle, sizeof record->handle);
  return RN_OK;
}

static void put_partial_setup(rn_strbuf_t* out, const rn_partial_setup_t* call) {
  rn_pb_put_str(out, rn_pb_PartialRunSetupRequest_session_handle_field, call->session);
  put_names(out, rn_pb_PartialRunSetupRequest_feed_field, call->feeds, call->feed_count);
  put_names(out, rn_pb_PartialRunSetupRequest_fetch_field, call->fetches, call->fetch_count);
  put_names(out, rn_pb_PartialRunSetupRequest_target_field, call->targets, call->target_count);
}

static rn_status_t take_run_step(const rn_in_t* in, rn_call_t* call) {
  ((rn_run_step_t*)call)->is_answered = true;
  return rn_decode_run_step_response(in, (rn_run_step_t*)call);
}

static void put_run_step(rn_strbuf_t* out, const rn_run_step_t* call) {
  rn_encode_run_step(&sent_of(out)->encoder, call);
}

static void put_close_session(rn_strbuf_t* out, const rn_close_session_t* call) {
  rn_pb_put_str(out, rn_pb_CloseSessionRequest_session_handle_field, call->session);
}

static rn_status_t take_list_devices(const rn_in_t* in, rn_call_t* call) {
  rn_list_devices_t* record = (rn_list_devices_t*)call;
  rn_in_t lasting = *in;
  lasting.arena = &record->arena;
  RN_RETURN_IF_ERROR(rn_decode_devices(&lasting, rn_pb_ListDevicesResponse_local_device_field,
                                       &record->devices, &record->device_count));
  return rn_decode_devices(&lasting, rn_pb_ListDevicesResponse_remote_device_field,
                           &record->devices, &record->device_count);
}

static void put_list_devices(rn_strbuf_t* out, const rn_list_devices_t* call) {
  rn_pb_put_str(out, rn_pb_ListDevicesRequest_session_handle_field, call->session);
}

static void put_reset(rn_strbuf_t* out, const rn_reset_t* call) {
  put_names(out, rn_pb_ResetRequest_container_field, call->containers, call->container_count);
  put_names(out, rn_pb_ResetRequest_device_filters_field, call->filters, call->filter_count);
}

static rn_status_t take_make_callable(const rn_in_t* in, rn_call_t* call) {
  ((rn_make_callable_t*)call)->handle =
      (int64_t)rn_field_value(in->bytes, rn_pb_MakeCallableResponse_handle_field);
  return RN_OK;
}

static void put_make_callable(rn_strbuf_t* out, const rn_make_callable_t* call) {
  rn_pb_put_str(out, rn_pb_MakeCallableRequest_session_handle_field, call->session);
  size_t options = rn_pb_begin(out, rn_pb_MakeCallableRequest_options_field);
  put_names(out, rn_pb_CallableOptions_feed_field, call->feeds, call->feed_count);
  put_names(out, rn_pb_CallableOptions_fetch_field, call->fetches, call->fetch_count);
  put_names(out, rn_pb_CallableOptions_target_field, call->targets, call->target_count);
  size_t run = rn_pb_begin(out, rn_pb_CallableOptions_run_options_field);
  if (call->trace_level)
    rn_pb_put_uint(out, rn_pb_RunOptions_trace_level_field, (uint64_t)call->trace_level);
  if (call->timeout_ms)
    rn_pb_put_uint(out, rn_pb_RunOptions_timeout_in_ms_field, (uint64_t)call->timeout_ms);
  if (call->wants_graphs) rn_pb_put_uint(out, rn_pb_RunOptions_output_partition_graphs_field, 1);
  rn_pb_end(out, run);
  rn_pb_end(out, options);
}

static rn_status_t take_run_callable(const rn_in_t* in, rn_call_t* call) {
  return rn_decode_run_callable_response(in, (rn_run_callable_t*)call);
}

static void put_run_callable(rn_strbuf_t* out, rn_run_callable_t* call) {
  call->fetches = NULL;
  call->fetch_count = 0;
  rn_pb_put_str(out, rn_pb_RunCallableRequest_session_handle_field, call->session);
  rn_pb_put_uint(out, rn_pb_RunCallableRequest_handle_field, (uint64_t)call->handle);
  if (call->request)
    rn_pb_put_uint(out, rn_pb_RunCallableRequest_request_id_field, (uint64_t)call->request);
  for (size_t i = 0; i < call->feed_count; ++i)
    rn_encode_tensor(&sent_of(out)->encoder, rn_pb_RunCallableRequest_feed_field, &call->feeds[i]);
}

static void put_release_callable(rn_strbuf_t* out, const rn_release_callable_t* call) {
  rn_pb_put_str(out, rn_pb_ReleaseCallableRequest_session_handle_field, call->session);
  rn_pb_put_uint(out, rn_pb_ReleaseCallableRequest_handle_field, (uint64_t)call->handle);
}

// The two vtables.

#define TAKES_ANSWERS(name) take_##name
#define TAKES_ACKS(name) NULL
#define SENDS(side, name, Method, speed, answer, ...)                                        \
  static void name(rn_##side##_t* side, rn_##name##_t* call) {                               \
    sent_t* sent =                                                                           \
        prepare(of_##side(side), RN_PATH_##side #Method, &call->call, TAKES_##answer(name)); \
    if (!sent) return;                                                                       \
    put_##name(&sent->encoder.head, call);                                                   \
    send_off(sent);                                                                          \
  }
RN_WORKER_CALLS(SENDS)
RN_MASTER_CALLS(SENDS)

static const rn_worker_vtable_t worker_table = {RN_WORKER_CALLS(RN_CALL_ENTRY)};
static const rn_master_vtable_t master_table = {RN_MASTER_CALLS(RN_CALL_ENTRY)};

rn_status_t rn_remote_peer_create(rn_channel_t* channel, const rn_env_t* env, bool borrows,
                                  rn_allocator_t allocator, rn_remote_peer_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(allocator, out));
  **out = (rn_remote_peer_t){.worker.vtable = &worker_table,
                             .master.vtable = &master_table,
                             .channel = channel,
                             .env = env,
                             .allocator = allocator,
                             .may_have_line = borrows,
                             .lines_left = MAX_LINES};
  if (borrows) rn_reach_machine((*out)->machine, sizeof(*out)->machine);
  rn_mutex_init(&(*out)->mutex);
  rn_cond_init(&(*out)->idle);
  return RN_OK;
}

void rn_remote_peer_stop(rn_remote_peer_t* peer) {
  if (!peer) return;
  rn_mutex_lock(&peer->mutex);
  peer->is_stopped = true;
  while (peer->borrowing) rn_cond_wait(&peer->idle, &peer->mutex);
  rn_mutex_unlock(&peer->mutex);
}

void rn_remote_peer_destroy(rn_remote_peer_t* peer) {
  if (!peer) return;
  rn_line_release(peer->line);
  rn_cond_destroy(&peer->idle);
  rn_mutex_destroy(&peer->mutex);
  RN_FREE(peer->allocator, peer);
}

rn_worker_t* rn_remote_worker(rn_remote_peer_t* peer) { return &peer->worker; }
rn_master_t* rn_remote_master(rn_remote_peer_t* peer) { return &peer->master; }

static bool link_is_busy(void* self) { return rn_channel_is_busy(self); }
static int64_t link_heard_ns(void* self) { return rn_channel_heard_ns(self); }
static void link_drop(void* self, rn_status_t status) { rn_channel_drop(self, status); }

rn_link_t rn_remote_link(rn_remote_peer_t* peer) {
  return (rn_link_t){.self = peer->channel,
                     .worker = &peer->worker,
                     .is_busy = link_is_busy,
                     .heard_ns = link_heard_ns,
                     .drop = link_drop};
}

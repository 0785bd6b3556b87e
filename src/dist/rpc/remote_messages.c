// The messages of calls to other processes: see remote_messages.h.
#include "dist/rpc/remote_messages.h"

#include "dist/rpc/codec.h"
#include "proto/config.pb.h"
#include "proto/master.pb.h"
#include "proto/tensorflow_server.pb.h"
#include "proto/worker.pb.h"
#include "wire/writer.h"

static void put_names(rn_strbuf_t* out, uint32_t number, const rn_str_t* names, size_t count) {
  for (size_t i = 0; i < count; ++i) rn_pb_put_str(out, number, names[i]);
}

static void copy_handle(rn_str_t from, char* out, size_t room) {
  size_t size = from.size < room - 1 ? from.size : room - 1;
  if (size) memcpy(out, from.data, size);
  out[size] = '\0';
}

// The worker.

rn_status_t rn_take_get_status(const rn_in_t* in, rn_call_t* call) {
  return rn_decode_status(in, (rn_get_status_t*)call);
}

void rn_put_get_status(rn_encoder_t* to, rn_get_status_t* call) { (void)to, (void)call; }

static void put_server_def(rn_strbuf_t* out, const rn_create_worker_session_t* call) {
  size_t def = rn_pb_begin(out, rn_pb_CreateWorkerSessionRequest_server_def_field);
  rn_pb_put_str(out, rn_pb_ServerDef_cluster_field, call->cluster);
  rn_pb_put_str(out, rn_pb_ServerDef_job_name_field, call->job);
  if (call->task) rn_pb_put_uint(out, rn_pb_ServerDef_task_index_field, (uint64_t)call->task);
  rn_pb_put_str(out, rn_pb_ServerDef_protocol_field, RN_STR("grpc"));
  rn_pb_end(out, def);
}

void rn_put_create_worker_session(rn_encoder_t* to, rn_create_worker_session_t* call) {
  rn_pb_put_str(&to->head, rn_pb_CreateWorkerSessionRequest_session_handle_field, call->session);
  put_server_def(&to->head, call);
  if (call->isolates)
    rn_pb_put_uint(&to->head, rn_pb_CreateWorkerSessionRequest_isolate_session_state_field, 1);
  rn_pb_put_str(&to->head, rn_pb_CreateWorkerSessionRequest_master_task_field, call->master);
  rn_pb_put_uint(&to->head, rn_pb_CreateWorkerSessionRequest_master_incarnation_field,
                 call->master_incarnation);
}

void rn_put_delete_worker_session(rn_encoder_t* to, rn_delete_worker_session_t* call) {
  rn_pb_put_str(&to->head, rn_pb_DeleteWorkerSessionRequest_session_handle_field, call->session);
}

rn_status_t rn_take_register_graph(const rn_in_t* in, rn_call_t* call) {
  rn_register_graph_t* record = (rn_register_graph_t*)call;
  copy_handle(rn_field_bytes(in->bytes, rn_pb_RegisterGraphResponse_graph_handle_field),
              record->handle, sizeof record->handle);
  return RN_OK;
}

void rn_put_register_graph(rn_encoder_t* to, rn_register_graph_t* call) {
  rn_pb_put_str(&to->head, rn_pb_RegisterGraphRequest_session_handle_field, call->session);
  rn_pb_put_str(&to->head, rn_pb_RegisterGraphRequest_graph_def_field, call->graph_def);
  rn_pb_put_str(&to->head, rn_pb_RegisterGraphRequest_graph_options_field, RN_STR(""));
  rn_pb_put_str(&to->head, rn_pb_RegisterGraphRequest_debug_options_field, RN_STR(""));
  rn_pb_put_uint(&to->head, rn_pb_RegisterGraphRequest_create_worker_session_called_field, 1);
  if (call->collective_key)
    rn_pb_put_uint(&to->head, rn_pb_RegisterGraphRequest_collective_graph_key_field,
                   (uint64_t)call->collective_key);
  rn_pb_put_str(&to->head, rn_pb_RegisterGraphRequest_config_proto_field, call->config);
}

void rn_put_deregister_graph(rn_encoder_t* to, rn_deregister_graph_t* call) {
  rn_pb_put_str(&to->head, rn_pb_DeregisterGraphRequest_graph_handle_field, call->handle);
  rn_pb_put_str(&to->head, rn_pb_DeregisterGraphRequest_session_handle_field, call->session);
  rn_pb_put_uint(&to->head, rn_pb_DeregisterGraphRequest_create_worker_session_called_field, 1);
}

rn_status_t rn_take_run_graph(const rn_in_t* in, rn_call_t* call) {
  return rn_decode_run_graph_response(in, (rn_run_graph_t*)call);
}

void rn_put_run_graph(rn_encoder_t* to, rn_run_graph_t* call) { rn_encode_run_graph(to, call); }

void rn_put_cleanup_graph(rn_encoder_t* to, rn_cleanup_graph_t* call) {
  rn_pb_put_uint(&to->head, rn_pb_CleanupGraphRequest_step_id_field, (uint64_t)call->step);
}

rn_status_t rn_take_recv_tensor(const rn_in_t* in, rn_call_t* call) {
  return rn_decode_received(in, (rn_recv_tensor_t*)call);
}

void rn_put_cleanup_all(rn_encoder_t* to, rn_cleanup_all_t* call) {
  put_names(&to->head, rn_pb_CleanupAllRequest_container_field, call->containers,
            call->container_count);
}

rn_status_t rn_take_complete_group(const rn_in_t* in, rn_call_t* call) {
  return rn_decode_group(in, (rn_complete_group_t*)call);
}

void rn_put_complete_group(rn_encoder_t* to, rn_complete_group_t* call) {
  rn_encode_complete_group(to, call);
}

rn_status_t rn_take_complete_instance(const rn_in_t* in, rn_call_t* call) {
  ((rn_complete_instance_t*)call)->source_rank =
      (int32_t)rn_field_value(in->bytes, rn_pb_CompleteInstanceResponse_source_rank_field);
  return RN_OK;
}

void rn_put_complete_instance(rn_encoder_t* to, rn_complete_instance_t* call) {
  rn_encode_complete_instance(to, call);
}

rn_status_t rn_take_recv_buf(const rn_in_t* in, rn_call_t* call) {
  return rn_decode_buf(in, (rn_recv_buf_t*)call);
}

void rn_put_recv_buf(rn_encoder_t* to, rn_recv_buf_t* call) {
  call->value = (rn_tensor_t){0};
  rn_encode_recv_buf(to, call);
}

rn_status_t rn_take_get_step_sequence(const rn_in_t* in, rn_call_t* call) {
  rn_get_step_sequence_t* record = (rn_get_step_sequence_t*)call;
  rn_strbuf_append(&record->sequences, in->bytes);
  return rn_strbuf_status(&record->sequences);
}

void rn_put_get_step_sequence(rn_encoder_t* to, rn_get_step_sequence_t* call) {
  for (size_t i = 0; i < call->graph_count; ++i)
    rn_pb_put_uint(&to->head, rn_pb_GetStepSequenceRequest_graph_key_field,
                   (uint64_t)call->graphs[i]);
}

rn_status_t rn_take_logging(const rn_in_t* in, rn_call_t* call) {
  rn_logging_t* record = (rn_logging_t*)call;
  rn_strbuf_append(&record->notes, in->bytes);
  return rn_strbuf_status(&record->notes);
}

static void put_bool(rn_strbuf_t* out, uint32_t number, bool value) {
  if (value) rn_pb_put_uint(out, number, 1);
}

void rn_put_logging(rn_encoder_t* to, rn_logging_t* call) {
  put_bool(&to->head, rn_pb_LoggingRequest_enable_rpc_logging_field, call->switches_on);
  put_bool(&to->head, rn_pb_LoggingRequest_clear_field, call->clears);
  for (size_t i = 0; i < call->step_count; ++i)
    rn_pb_put_uint(&to->head, rn_pb_LoggingRequest_fetch_step_id_field, (uint64_t)call->steps[i]);
  put_bool(&to->head, rn_pb_LoggingRequest_disable_rpc_logging_field, call->switches_off);
}

// The master.

rn_status_t rn_take_create_session(const rn_in_t* in, rn_call_t* call) {
  rn_create_session_t* record = (rn_create_session_t*)call;
  copy_handle(rn_field_bytes(in->bytes, rn_pb_CreateSessionResponse_session_handle_field),
              record->session, sizeof record->session);
  record->version =
      (int64_t)rn_field_value(in->bytes, rn_pb_CreateSessionResponse_graph_version_field);
  return record->session[0] ? RN_OK : rn_internal("The master named no session");
}

void rn_put_create_session(rn_encoder_t* to, rn_create_session_t* call) {
  rn_pb_put_str(&to->head, rn_pb_CreateSessionRequest_graph_def_field, call->graph_def);
  rn_pb_put_str(&to->head, rn_pb_CreateSessionRequest_config_field, call->config);
  rn_pb_put_str(&to->head, rn_pb_CreateSessionRequest_target_field, call->target);
}

rn_status_t rn_take_extend_session(const rn_in_t* in, rn_call_t* call) {
  ((rn_extend_session_t*)call)->version =
      (int64_t)rn_field_value(in->bytes, rn_pb_ExtendSessionResponse_new_graph_version_field);
  return RN_OK;
}

void rn_put_extend_session(rn_encoder_t* to, rn_extend_session_t* call) {
  rn_pb_put_str(&to->head, rn_pb_ExtendSessionRequest_session_handle_field, call->session);
  rn_pb_put_str(&to->head, rn_pb_ExtendSessionRequest_graph_def_field, call->graph_def);
  rn_pb_put_uint(&to->head, rn_pb_ExtendSessionRequest_current_graph_version_field,
                 (uint64_t)call->version);
}

rn_status_t rn_take_partial_setup(const rn_in_t* in, rn_call_t* call) {
  rn_partial_setup_t* record = (rn_partial_setup_t*)call;
  copy_handle(rn_field_bytes(in->bytes, rn_pb_PartialRunSetupResponse_partial_run_handle_field),
              record->handle, sizeof record->handle);
  return RN_OK;
}

void rn_put_partial_setup(rn_encoder_t* to, rn_partial_setup_t* call) {
  rn_pb_put_str(&to->head, rn_pb_PartialRunSetupRequest_session_handle_field, call->session);
  put_names(&to->head, rn_pb_PartialRunSetupRequest_feed_field, call->feeds, call->feed_count);
  put_names(&to->head, rn_pb_PartialRunSetupRequest_fetch_field, call->fetches, call->fetch_count);
  put_names(&to->head, rn_pb_PartialRunSetupRequest_target_field, call->targets,
            call->target_count);
}

rn_status_t rn_take_run_step(const rn_in_t* in, rn_call_t* call) {
  ((rn_run_step_t*)call)->is_answered = true;
  return rn_decode_run_step_response(in, (rn_run_step_t*)call);
}

void rn_put_run_step(rn_encoder_t* to, rn_run_step_t* call) { rn_encode_run_step(to, call); }

void rn_put_close_session(rn_encoder_t* to, rn_close_session_t* call) {
  rn_pb_put_str(&to->head, rn_pb_CloseSessionRequest_session_handle_field, call->session);
}

rn_status_t rn_take_list_devices(const rn_in_t* in, rn_call_t* call) {
  rn_list_devices_t* record = (rn_list_devices_t*)call;
  rn_in_t lasting = *in;
  lasting.arena = &record->arena;
  RN_RETURN_IF_ERROR(rn_decode_devices(&lasting, rn_pb_ListDevicesResponse_local_device_field,
                                       &record->devices, &record->device_count));
  return rn_decode_devices(&lasting, rn_pb_ListDevicesResponse_remote_device_field,
                           &record->devices, &record->device_count);
}

void rn_put_list_devices(rn_encoder_t* to, rn_list_devices_t* call) {
  rn_pb_put_str(&to->head, rn_pb_ListDevicesRequest_session_handle_field, call->session);
}

void rn_put_reset(rn_encoder_t* to, rn_reset_t* call) {
  put_names(&to->head, rn_pb_ResetRequest_container_field, call->containers, call->container_count);
  put_names(&to->head, rn_pb_ResetRequest_device_filters_field, call->filters, call->filter_count);
}

rn_status_t rn_take_make_callable(const rn_in_t* in, rn_call_t* call) {
  ((rn_make_callable_t*)call)->handle =
      (int64_t)rn_field_value(in->bytes, rn_pb_MakeCallableResponse_handle_field);
  return RN_OK;
}

void rn_put_make_callable(rn_encoder_t* to, rn_make_callable_t* call) {
  rn_pb_put_str(&to->head, rn_pb_MakeCallableRequest_session_handle_field, call->session);
  size_t options = rn_pb_begin(&to->head, rn_pb_MakeCallableRequest_options_field);
  put_names(&to->head, rn_pb_CallableOptions_feed_field, call->feeds, call->feed_count);
  put_names(&to->head, rn_pb_CallableOptions_fetch_field, call->fetches, call->fetch_count);
  put_names(&to->head, rn_pb_CallableOptions_target_field, call->targets, call->target_count);
  size_t run = rn_pb_begin(&to->head, rn_pb_CallableOptions_run_options_field);
  if (call->trace_level)
    rn_pb_put_uint(&to->head, rn_pb_RunOptions_trace_level_field, (uint64_t)call->trace_level);
  if (call->timeout_ms)
    rn_pb_put_uint(&to->head, rn_pb_RunOptions_timeout_in_ms_field, (uint64_t)call->timeout_ms);
  if (call->wants_graphs)
    rn_pb_put_uint(&to->head, rn_pb_RunOptions_output_partition_graphs_field, 1);
  rn_pb_end(&to->head, run);
  rn_pb_end(&to->head, options);
}

rn_status_t rn_take_run_callable(const rn_in_t* in, rn_call_t* call) {
  return rn_decode_run_callable_response(in, (rn_run_callable_t*)call);
}

void rn_put_run_callable(rn_encoder_t* to, rn_run_callable_t* call) {
  call->fetches = NULL;
  call->fetch_count = 0;
  rn_pb_put_str(&to->head, rn_pb_RunCallableRequest_session_handle_field, call->session);
  rn_pb_put_uint(&to->head, rn_pb_RunCallableRequest_handle_field, (uint64_t)call->handle);
  if (call->request)
    rn_pb_put_uint(&to->head, rn_pb_RunCallableRequest_request_id_field, (uint64_t)call->request);
  for (size_t i = 0; i < call->feed_count; ++i)
    rn_encode_tensor(to, rn_pb_RunCallableRequest_feed_field, &call->feeds[i]);
}

void rn_put_release_callable(rn_encoder_t* to, rn_release_callable_t* call) {
  rn_pb_put_str(&to->head, rn_pb_ReleaseCallableRequest_session_handle_field, call->session);
  rn_pb_put_uint(&to->head, rn_pb_ReleaseCallableRequest_handle_field, (uint64_t)call->handle);
}

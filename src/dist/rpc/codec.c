// Messages: see codec.h.
#include "dist/rpc/codec.h"

#include "framework/rendezvous.h"
#include "proto/config.pb.h"
#include "proto/device_attributes.pb.h"
#include "proto/master.pb.h"
#include "proto/named_tensor.pb.h"
#include "proto/worker.pb.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/scan.h"
#include "wire/writer.h"

// Our own field in responses, which other implementations skip: the error is derived from another.
#define DERIVED_FIELD 1000
// Likewise in GetStatusResponse: the task is Runnel's; in RunGraphRequest: see rn_run_graph_t.
#define OURS_FIELD 1000
#define CLEANS_UP_FIELD 1000
#define SENT_FIELD 1001
// Likewise in RecvTensorRequest and RecvTensorResponse: for loans, see loan.h.
#define REACH_FIELD 1000
#define LOAN_FIELD 1001
// Likewise for wires, see wire.h.
#define WIRE_FIELD 1002
enum { WIRE_LINE = 1, WIRE_LINE2, WIRE_NUMBER, WIRE_IS_THERE };
enum { WIRE_IS_SENT = 1, WIRE_ADDRESS };
enum { REACH_MACHINE = 1, REACH_NAME, REACH_NAME2 };
enum { LOAN_ID = 1, LOAN_TYPE = 3, LOAN_DIM };

static rn_status_t malformed(const char* what) { return rn_invalid_argument("Malformed %s", what); }

static rn_status_t decode_named_tensor(rn_str_t bytes, rn_buffer_t* buffer,
                                       rn_allocator_t allocator, rn_named_tensor_t* out) {
  out->name = rn_field_bytes(bytes, rn_pb_NamedTensorProto_name_field);
  return rn_decode_tensor(rn_field_bytes(bytes, rn_pb_NamedTensorProto_tensor_field), buffer,
                          RN_TENSOR_ANY_SIZE, allocator, &out->value);
}

// The number of occurrences of field |number|; -1: the bytes are not a message.
static int64_t count_fields(rn_str_t message, uint32_t number) {
  rn_pb_scan_t scan = rn_pb_scan(message);
  rn_pb_field_t field;
  int64_t count = 0;
  while (rn_pb_scan_next(&scan, &field))
    count += field.number == number && field.wire == RN_PB_WIRE_LENGTH;
  return scan.is_bad ? -1 : count;
}

rn_status_t rn_decode_names(const rn_in_t* in, uint32_t number, const rn_str_t** out,
                            size_t* out_count) {
  int64_t count = count_fields(in->bytes, number);
  rn_str_t* names = NULL;
  if (count < 0) return malformed("request");
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(in->arena, (size_t)count, &names));
  *out = names;
  rn_pb_scan_t scan = rn_pb_scan(in->bytes);
  rn_pb_field_t field;
  *out_count = 0;
  while (rn_pb_scan_next(&scan, &field))
    if (field.number == number && field.wire == RN_PB_WIRE_LENGTH)
      names[(*out_count)++] = field.bytes;
  return RN_OK;
}

// Devices.

// Where a device is in its machine. Stock says bus 1 of a GPU whose bus is unknown, and lists its
// links to other GPUs.
static void put_locality(rn_strbuf_t* out, const rn_device_info_t* device) {
  size_t locality = rn_pb_begin(out, rn_pb_DeviceAttributes_locality_field);
  if (rn_str_is(device->type, "GPU")) {
    rn_pb_put_uint(out, rn_pb_DeviceLocality_bus_id_field, 1);
    rn_pb_put_str(out, rn_pb_DeviceLocality_links_field, RN_STR(""));
  }
  rn_pb_end(out, locality);
}

void rn_encode_devices(rn_encoder_t* encoder, uint32_t number, const rn_device_info_t* devices,
                       size_t count) {
  rn_strbuf_t* out = &encoder->head;
  for (size_t i = 0; i < count; ++i) {
    size_t device = rn_pb_begin(out, number);
    rn_pb_put_str(out, rn_pb_DeviceAttributes_name_field, devices[i].name);
    rn_pb_put_str(out, rn_pb_DeviceAttributes_device_type_field, devices[i].type);
    rn_pb_put_uint(out, rn_pb_DeviceAttributes_memory_limit_field,
                   (uint64_t)devices[i].memory_limit);
    put_locality(out, &devices[i]);
    rn_pb_put_fixed64(out, rn_pb_DeviceAttributes_incarnation_field, devices[i].incarnation);
    if (devices[i].description.size)
      rn_pb_put_str(out, rn_pb_DeviceAttributes_physical_device_desc_field, devices[i].description);
    rn_pb_put_uint(out, rn_pb_DeviceAttributes_xla_global_id_field, UINT64_MAX);
    rn_pb_end(out, device);
  }
}

rn_status_t rn_decode_devices(const rn_in_t* in, uint32_t number, rn_device_info_t** out,
                              size_t* out_count) {
  int64_t count = count_fields(in->bytes, number);
  if (count < 0) return malformed("list of devices");
  rn_device_info_t* devices = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(in->arena, *out_count + (size_t)count, &devices));
  if (*out_count) memcpy(devices, *out, *out_count * sizeof *devices);
  *out = devices;
  rn_pb_scan_t scan = rn_pb_scan(in->bytes);
  rn_pb_field_t field;
  while (rn_pb_scan_next(&scan, &field)) {
    if (field.number != number || field.wire != RN_PB_WIRE_LENGTH) continue;
    rn_device_info_t* device = &devices[*out_count];
    rn_str_t name = rn_field_bytes(field.bytes, rn_pb_DeviceAttributes_name_field);
    rn_str_t type = rn_field_bytes(field.bytes, rn_pb_DeviceAttributes_device_type_field);
    rn_str_t text = rn_field_bytes(field.bytes, rn_pb_DeviceAttributes_physical_device_desc_field);
    RN_RETURN_IF_ERROR(rn_arena_str(in->arena, name, &device->name));
    RN_RETURN_IF_ERROR(rn_arena_str(in->arena, type, &device->type));
    RN_RETURN_IF_ERROR(rn_arena_str(in->arena, text, &device->description));
    device->memory_limit =
        (int64_t)rn_field_value(field.bytes, rn_pb_DeviceAttributes_memory_limit_field);
    device->incarnation = rn_field_value(field.bytes, rn_pb_DeviceAttributes_incarnation_field);
    ++*out_count;
  }
  return RN_OK;
}

void rn_encode_status(rn_encoder_t* encoder, const rn_get_status_t* call) {
  rn_encode_devices(encoder, rn_pb_GetStatusResponse_device_attributes_field, call->devices,
                    call->device_count);
  if (call->is_ours) rn_pb_put_uint(&encoder->head, OURS_FIELD, 1);
}

rn_status_t rn_decode_status(const rn_in_t* in, rn_get_status_t* call) {
  rn_in_t lasting = *in;
  lasting.arena = &call->arena;
  call->is_ours = rn_field_value(in->bytes, OURS_FIELD);
  return rn_decode_devices(&lasting, rn_pb_GetStatusResponse_device_attributes_field,
                           &call->devices, &call->device_count);
}

// RunGraph.

static void put_bool(rn_strbuf_t* out, uint32_t number, bool value) {
  if (value) rn_pb_put_uint(out, number, 1);
}

static void put_names(rn_strbuf_t* out, uint32_t number, const rn_str_t* names, size_t count) {
  for (size_t i = 0; i < count; ++i) rn_pb_put_str(out, number, names[i]);
}

void rn_encode_run_graph(rn_encoder_t* encoder, const rn_run_graph_t* call) {
  rn_strbuf_t* out = &encoder->head;
  rn_pb_put_str(out, rn_pb_RunGraphRequest_graph_handle_field, call->handle);
  rn_pb_put_uint(out, rn_pb_RunGraphRequest_step_id_field, (uint64_t)call->step);
  put_names(out, rn_pb_RunGraphRequest_recv_key_field, call->fetch_names, call->fetch_count);
  size_t options = rn_pb_begin(out, rn_pb_RunGraphRequest_exec_opts_field);
  put_bool(out, rn_pb_ExecutorOpts_record_costs_field, call->wants_costs);
  put_bool(out, rn_pb_ExecutorOpts_record_timeline_field, call->wants_stats);
  put_bool(out, rn_pb_ExecutorOpts_record_partition_graphs_field, call->wants_graphs);
  rn_pb_end(out, options);
  put_bool(out, rn_pb_RunGraphRequest_is_partial_field, call->is_partial);
  put_bool(out, rn_pb_RunGraphRequest_is_last_partial_run_field, call->is_last);
  put_bool(out, CLEANS_UP_FIELD, call->cleans_up);
  if (call->request)
    rn_pb_put_uint(out, rn_pb_RunGraphRequest_request_id_field, (uint64_t)call->request);
  rn_pb_put_str(out, rn_pb_RunGraphRequest_session_handle_field, call->session);
  rn_pb_put_uint(out, rn_pb_RunGraphRequest_store_errors_in_response_body_field, 1);
  rn_pb_put_uint(out, rn_pb_RunGraphRequest_create_worker_session_called_field, 1);
  for (size_t i = 0; i < call->feed_count; ++i)
    rn_encode_named_tensor(encoder, rn_pb_RunGraphRequest_send_field, call->feeds[i].name,
                           &call->feeds[i].value, RN_TENSOR_CONTENT);
  for (size_t i = 0; i < call->sent_count; ++i)
    rn_encode_named_tensor(encoder, SENT_FIELD, call->sent[i].name, &call->sent[i].value,
                           RN_TENSOR_CONTENT);
}

// Reads named tensors into an array of the arena.
static rn_status_t take_tensors(const rn_in_t* in, uint32_t number, rn_named_tensor_t** out,
                                size_t* out_count) {
  int64_t count = count_fields(in->bytes, number);
  if (count < 0) return malformed("message");
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(in->arena, (size_t)count, out));
  rn_pb_scan_t scan = rn_pb_scan(in->bytes);
  rn_pb_field_t field;
  *out_count = 0;
  rn_status_t status = RN_OK;
  while (rn_ok(status) && rn_pb_scan_next(&scan, &field)) {
    if (field.number != number || field.wire != RN_PB_WIRE_LENGTH) continue;
    status = decode_named_tensor(field.bytes, in->buffer, in->allocator, &(*out)[*out_count]);
    if (rn_ok(status)) ++*out_count;
  }
  if (rn_ok(status)) return RN_OK;
  for (size_t i = 0; i < *out_count; ++i) rn_tensor_clear(&(*out)[i].value);
  *out_count = 0;
  return status;
}

rn_status_t rn_decode_run_graph(const rn_in_t* in, rn_run_graph_t* call) {
  rn_str_t bytes = in->bytes;
  rn_named_tensor_t *feeds = NULL, *sent = NULL;
  call->handle = rn_field_bytes(bytes, rn_pb_RunGraphRequest_graph_handle_field);
  call->session = rn_field_bytes(bytes, rn_pb_RunGraphRequest_session_handle_field);
  call->step = (int64_t)rn_field_value(bytes, rn_pb_RunGraphRequest_step_id_field);
  call->request = (int64_t)rn_field_value(bytes, rn_pb_RunGraphRequest_request_id_field);
  rn_str_t options = rn_field_bytes(bytes, rn_pb_RunGraphRequest_exec_opts_field);
  call->wants_stats = rn_field_value(options, rn_pb_ExecutorOpts_record_timeline_field);
  call->wants_costs = rn_field_value(options, rn_pb_ExecutorOpts_record_costs_field);
  call->cleans_up = rn_field_value(bytes, CLEANS_UP_FIELD);
  call->wants_graphs = rn_field_value(options, rn_pb_ExecutorOpts_record_partition_graphs_field);
  call->is_partial = rn_field_value(bytes, rn_pb_RunGraphRequest_is_partial_field);
  call->is_last = rn_field_value(bytes, rn_pb_RunGraphRequest_is_last_partial_run_field);
  RN_RETURN_IF_ERROR(rn_decode_names(in, rn_pb_RunGraphRequest_recv_key_field, &call->fetch_names,
                                     &call->fetch_count));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(in->arena, call->fetch_count, &call->fetches));
  RN_RETURN_IF_ERROR(take_tensors(in, rn_pb_RunGraphRequest_send_field, &feeds, &call->feed_count));
  call->feeds = feeds;
  RN_RETURN_IF_ERROR(take_tensors(in, SENT_FIELD, &sent, &call->sent_count));
  call->sent = sent;
  return RN_OK;
}

static void put_status(rn_strbuf_t* out, uint32_t code_field, uint32_t text_field,
                       rn_status_t status) {
  if (rn_ok(status)) return;
  rn_pb_put_uint(out, code_field, (uint64_t)rn_status_code(status));
  rn_pb_put_str(out, text_field, rn_str(rn_status_message(status)));
  if (rn_status_is_derived(status)) rn_pb_put_uint(out, DERIVED_FIELD, 1);
}

static rn_status_t take_status(rn_str_t bytes, uint32_t code_field, uint32_t text_field) {
  uint64_t code = rn_field_value(bytes, code_field);
  rn_str_t text = rn_field_bytes(bytes, text_field);
  if (!code) return RN_OK;
  rn_status_t status = rn_status_make_n(
      code <= RN_CODE_UNAUTHENTICATED ? (rn_code_t)code : RN_CODE_UNKNOWN, text.data, text.size);
  return rn_field_value(bytes, DERIVED_FIELD) ? rn_status_derive(status) : status;
}

void rn_encode_run_graph_response(rn_encoder_t* encoder, const rn_run_graph_t* call,
                                  rn_status_t status) {
  rn_strbuf_t* out = &encoder->head;
  put_status(out, rn_pb_RunGraphResponse_status_code_field,
             rn_pb_RunGraphResponse_status_error_message_field, status);
  if (call->stats.size)
    rn_pb_put_str(out, rn_pb_RunGraphResponse_step_stats_field, rn_strbuf_view(&call->stats));
  if (rn_ok(status) && !call->is_partial)
    rn_pb_put_str(out, rn_pb_RunGraphResponse_cost_graph_field, rn_strbuf_view(&call->costs));
  if (rn_ok(status)) rn_strbuf_append(out, rn_strbuf_view(&call->graphs));
  for (size_t i = 0; rn_ok(status) && i < call->fetch_count; ++i)
    rn_encode_named_tensor(encoder, rn_pb_RunGraphResponse_recv_field, call->fetch_names[i],
                           &call->fetches[i], RN_TENSOR_CONTENT);
}

// Reads the requested tensors, in the order of the request.
static rn_status_t take_answers(const rn_in_t* in, uint32_t number, const rn_str_t* names,
                                size_t count, rn_tensor_t* out) {
  rn_named_tensor_t* came = NULL;
  size_t came_count = 0;
  for (size_t i = 0; i < count; ++i) out[i] = (rn_tensor_t){0};
  RN_RETURN_IF_ERROR(take_tensors(in, number, &came, &came_count));
  rn_status_t status = RN_OK;
  for (size_t i = 0; rn_ok(status) && i < count; ++i) {
    size_t c = 0;
    while (c < came_count && !rn_str_eq(came[c].name, names[i])) c++;
    status = c < came_count
                 ? rn_tensor_share(&came[c].value, &out[i])
                 : rn_internal("The response has no value for '%.*s'", RN_STR_ARGS(names[i]));
  }
  for (size_t c = 0; c < came_count; ++c) rn_tensor_clear(&came[c].value);
  for (size_t i = 0; !rn_ok(status) && i < count; ++i) rn_tensor_clear(&out[i]);
  return status;
}

rn_status_t rn_decode_run_graph_response(const rn_in_t* in, rn_run_graph_t* call) {
  RN_RETURN_IF_ERROR(take_status(in->bytes, rn_pb_RunGraphResponse_status_code_field,
                                 rn_pb_RunGraphResponse_status_error_message_field));
  if (call->wants_stats)
    rn_strbuf_append(&call->stats,
                     rn_field_bytes(in->bytes, rn_pb_RunGraphResponse_step_stats_field));
  if (call->wants_costs)
    rn_strbuf_append(&call->costs,
                     rn_field_bytes(in->bytes, rn_pb_RunGraphResponse_cost_graph_field));
  rn_pb_scan_t scan = rn_pb_scan(in->bytes);
  for (rn_pb_field_t field; call->wants_graphs && rn_pb_scan_next(&scan, &field);)
    if (field.number == rn_pb_RunGraphResponse_partition_graph_field)
      rn_pb_put_str(&call->graphs, field.number, field.bytes);
  return take_answers(in, rn_pb_RunGraphResponse_recv_field, call->fetch_names, call->fetch_count,
                      call->fetches);
}

// RecvTensor.

void rn_encode_received(rn_encoder_t* encoder, const rn_recv_tensor_t* call, int64_t now_us) {
  rn_strbuf_t* out = &encoder->head;
  put_bool(out, rn_pb_RecvTensorResponse_is_dead_field, call->is_dead);
  rn_pb_put_uint(out, rn_pb_RecvTensorResponse_send_start_micros_field, (uint64_t)now_us);
  if (!call->is_dead) {
    rn_encode_tensor(encoder, rn_pb_RecvTensorResponse_tensor_field, &call->value);
    return;
  }
  // The type of a dead value is ignored.
  rn_tensor_t nothing = {.dtype = RN_FLOAT, .rank = 1};
  rn_encode_tensor(encoder, rn_pb_RecvTensorResponse_tensor_field, &nothing);
}

static void put_name(rn_strbuf_t* out, rn_loan_name_t name) {
  rn_pb_put_fixed64(out, REACH_NAME, name.bits[0]);
  rn_pb_put_fixed64(out, REACH_NAME2, name.bits[1]);
}

static rn_loan_name_t name_of(rn_str_t bytes) {
  return (rn_loan_name_t){{rn_field_value(bytes, REACH_NAME), rn_field_value(bytes, REACH_NAME2)}};
}

static void put_wire_ask(rn_strbuf_t* out, const rn_wire_ask_t* ask) {
  if (!ask->is_there) return;
  size_t own = rn_pb_begin(out, WIRE_FIELD);
  if (ask->has_line) {
    rn_pb_put_fixed64(out, WIRE_LINE, ask->line.bits[0]);
    rn_pb_put_fixed64(out, WIRE_LINE2, ask->line.bits[1]);
    rn_pb_put_fixed64(out, WIRE_NUMBER, ask->number);
  }
  rn_pb_put_uint(out, WIRE_IS_THERE, 1);
  rn_pb_end(out, own);
}

void rn_decode_wire_ask(rn_str_t request, rn_wire_ask_t* out) {
  rn_str_t bytes = rn_field_bytes(request, WIRE_FIELD);
  *out = (rn_wire_ask_t){
      .is_there = bytes.size > 0,
      .line = {{rn_field_value(bytes, WIRE_LINE), rn_field_value(bytes, WIRE_LINE2)}},
      .number = rn_field_value(bytes, WIRE_NUMBER)};
  out->has_line = out->number != 0;
}

void rn_encode_wire_answer(rn_encoder_t* encoder, const rn_wire_answer_t* answer) {
  rn_strbuf_t* out = &encoder->head;
  size_t own = rn_pb_begin(out, WIRE_FIELD);
  if (answer->is_sent) rn_pb_put_uint(out, WIRE_IS_SENT, 1);
  rn_pb_put_str(out, WIRE_ADDRESS, answer->address);
  rn_pb_end(out, own);
}

void rn_decode_wire_answer(rn_str_t response, rn_wire_answer_t* out) {
  rn_str_t bytes = rn_field_bytes(response, WIRE_FIELD);
  *out = (rn_wire_answer_t){.is_sent = rn_field_value(bytes, WIRE_IS_SENT),
                            .address = rn_field_bytes(bytes, WIRE_ADDRESS)};
}

void rn_encode_recv_tensor(rn_encoder_t* encoder, const rn_recv_tensor_t* call,
                           const rn_loan_ask_t* ask, const rn_wire_ask_t* wire) {
  rn_strbuf_t* out = &encoder->head;
  rn_pb_put_uint(out, rn_pb_RecvTensorRequest_step_id_field, (uint64_t)call->step);
  rn_pb_put_str(out, rn_pb_RecvTensorRequest_rendezvous_key_field, call->key);
  rn_pb_put_uint(out, rn_pb_RecvTensorRequest_request_id_field, (uint64_t)call->request);
  put_wire_ask(out, wire);
  if (!ask->machine[0] && !ask->has_line) return;
  size_t own = rn_pb_begin(out, ask->wants_loan ? LOAN_FIELD : REACH_FIELD);
  if (!ask->wants_loan) rn_pb_put_str(out, REACH_MACHINE, rn_str(ask->machine));
  if (ask->has_line) put_name(out, ask->line);
  rn_pb_end(out, own);
}

void rn_decode_loan_ask(rn_str_t request, rn_loan_ask_t* out) {
  *out = (rn_loan_ask_t){0};
  rn_str_t bytes = rn_field_bytes(request, LOAN_FIELD);
  out->wants_loan = bytes.size > 0;
  if (!out->wants_loan) bytes = rn_field_bytes(request, REACH_FIELD);
  rn_str_t machine = rn_field_bytes(bytes, REACH_MACHINE);
  if (machine.size < sizeof out->machine) memcpy(out->machine, machine.data, machine.size);
  out->line = name_of(bytes);
  out->has_line = out->line.bits[0] != 0;
}

void rn_encode_reach(rn_encoder_t* encoder, const rn_reach_t* reach) {
  rn_strbuf_t* out = &encoder->head;
  size_t mark = rn_pb_begin(out, REACH_FIELD);
  rn_pb_put_str(out, REACH_MACHINE, rn_str(reach->machine));
  put_name(out, reach->name);
  rn_pb_end(out, mark);
}

bool rn_decode_reach(rn_str_t response, rn_reach_t* out) {
  rn_str_t bytes = rn_field_bytes(response, REACH_FIELD);
  rn_str_t machine = rn_field_bytes(bytes, REACH_MACHINE);
  if (!machine.size || machine.size >= sizeof out->machine) return false;
  *out = (rn_reach_t){.name = name_of(bytes)};
  memcpy(out->machine, machine.data, machine.size);
  return true;
}

void rn_encode_loan(rn_encoder_t* encoder, const rn_tensor_t* value, uint64_t id) {
  rn_strbuf_t* out = &encoder->head;
  size_t mark = rn_pb_begin(out, LOAN_FIELD);
  rn_pb_put_fixed64(out, LOAN_ID, id);
  rn_pb_put_uint(out, LOAN_TYPE, value->dtype);
  for (int i = 0; i < value->rank; ++i)
    rn_pb_put_uint(out, LOAN_DIM, (uint64_t)rn_tensor_dim(value, i));
  rn_pb_end(out, mark);
}

rn_status_t rn_decode_loan(rn_str_t response, uint64_t* out_id, rn_tensor_t* out_value,
                           bool* out_is_there) {
  rn_str_t bytes = rn_field_bytes(response, LOAN_FIELD);
  int64_t dims[RN_MAX_RANK];
  int rank = 0;
  *out_is_there = bytes.size > 0;
  if (!bytes.size) return RN_OK;
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  while (rn_pb_scan_next(&scan, &field)) {
    if (field.number != LOAN_DIM || field.wire != RN_PB_WIRE_VARINT) continue;
    if (rank == RN_MAX_RANK || field.value > INT64_MAX) return malformed("loan");
    dims[rank++] = (int64_t)field.value;
  }
  uint64_t dtype = rn_field_value(bytes, LOAN_TYPE);
  if (scan.is_bad || dtype >= RN_DTYPE_COUNT || !rn_dtype_is_plain((rn_dtype_t)dtype))
    return malformed("loan");
  *out_id = rn_field_value(bytes, LOAN_ID);
  return rn_tensor_init(out_value, (rn_dtype_t)dtype, (rn_shape_t){rank, dims});
}

rn_status_t rn_decode_received(const rn_in_t* in, rn_recv_tensor_t* call) {
  if (count_fields(in->bytes, rn_pb_RecvTensorResponse_tensor_field) < 0)
    return malformed("RecvTensorResponse");
  call->is_dead = rn_field_value(in->bytes, rn_pb_RecvTensorResponse_is_dead_field);
  if (call->is_dead) return RN_OK;
  return rn_decode_tensor(rn_field_bytes(in->bytes, rn_pb_RecvTensorResponse_tensor_field),
                          in->buffer, RN_TENSOR_ANY_SIZE, in->allocator, &call->value);
}

// RunStep.

void rn_encode_run_step(rn_encoder_t* encoder, const rn_run_step_t* call) {
  rn_strbuf_t* out = &encoder->head;
  rn_pb_put_str(out, rn_pb_RunStepRequest_session_handle_field, call->session);
  for (size_t i = 0; i < call->feed_count; ++i)  // at the beginning: see rn_align_content
    rn_encode_named_tensor(encoder, rn_pb_RunStepRequest_feed_field, call->feeds[i].name,
                           &call->feeds[i].value, RN_TENSOR_CONTENT);
  put_names(out, rn_pb_RunStepRequest_fetch_field, call->fetch_names, call->fetch_count);
  put_names(out, rn_pb_RunStepRequest_target_field, call->targets, call->target_count);
  size_t options = rn_pb_begin(out, rn_pb_RunStepRequest_options_field);
  if (call->trace_level)
    rn_pb_put_uint(out, rn_pb_RunOptions_trace_level_field, (uint64_t)call->trace_level);
  if (call->timeout_ms)
    rn_pb_put_uint(out, rn_pb_RunOptions_timeout_in_ms_field, (uint64_t)call->timeout_ms);
  put_bool(out, rn_pb_RunOptions_output_partition_graphs_field, call->wants_graphs);
  rn_pb_end(out, options);
  if (call->partial_run.size)
    rn_pb_put_str(out, rn_pb_RunStepRequest_partial_run_handle_field, call->partial_run);
  rn_pb_put_uint(out, rn_pb_RunStepRequest_store_errors_in_response_body_field, 1);
  rn_pb_put_uint(out, rn_pb_RunStepRequest_request_id_field, (uint64_t)call->request);
}

rn_status_t rn_decode_run_step(const rn_in_t* in, rn_run_step_t* call, bool* out_errors_in_body) {
  rn_str_t bytes = in->bytes;
  rn_named_tensor_t* feeds = NULL;
  call->session = rn_field_bytes(bytes, rn_pb_RunStepRequest_session_handle_field);
  call->partial_run = rn_field_bytes(bytes, rn_pb_RunStepRequest_partial_run_handle_field);
  call->request = (int64_t)rn_field_value(bytes, rn_pb_RunStepRequest_request_id_field);
  *out_errors_in_body =
      rn_field_value(bytes, rn_pb_RunStepRequest_store_errors_in_response_body_field);
  rn_str_t options = rn_field_bytes(bytes, rn_pb_RunStepRequest_options_field);
  call->trace_level = (int)rn_field_value(options, rn_pb_RunOptions_trace_level_field);
  call->timeout_ms = (int64_t)rn_field_value(options, rn_pb_RunOptions_timeout_in_ms_field);
  call->wants_graphs = rn_field_value(options, rn_pb_RunOptions_output_partition_graphs_field);
  RN_RETURN_IF_ERROR(rn_decode_names(in, rn_pb_RunStepRequest_fetch_field, &call->fetch_names,
                                     &call->fetch_count));
  RN_RETURN_IF_ERROR(
      rn_decode_names(in, rn_pb_RunStepRequest_target_field, &call->targets, &call->target_count));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(in->arena, call->fetch_count, &call->fetches));
  RN_RETURN_IF_ERROR(take_tensors(in, rn_pb_RunStepRequest_feed_field, &feeds, &call->feed_count));
  call->feeds = feeds;
  return RN_OK;
}

void rn_encode_run_step_response(rn_encoder_t* encoder, const rn_run_step_t* call,
                                 rn_status_t status) {
  rn_strbuf_t* out = &encoder->head;
  rn_pb_put_str(out, rn_pb_RunStepResponse_metadata_field, rn_strbuf_view(&call->metadata));
  put_status(out, rn_pb_RunStepResponse_status_code_field,
             rn_pb_RunStepResponse_status_error_message_field, status);
  for (size_t i = 0; rn_ok(status) && i < call->fetch_count; ++i)
    rn_encode_named_tensor(encoder, rn_pb_RunStepResponse_tensor_field, call->fetch_names[i],
                           &call->fetches[i], RN_TENSOR_CONTENT);
}

rn_status_t rn_decode_run_step_response(const rn_in_t* in, rn_run_step_t* call) {
  RN_RETURN_IF_ERROR(take_status(in->bytes, rn_pb_RunStepResponse_status_code_field,
                                 rn_pb_RunStepResponse_status_error_message_field));
  rn_strbuf_append(&call->metadata,
                   rn_field_bytes(in->bytes, rn_pb_RunStepResponse_metadata_field));
  return take_answers(in, rn_pb_RunStepResponse_tensor_field, call->fetch_names, call->fetch_count,
                      call->fetches);
}

// RunCallable.

// Reads the tensors of field |number| into |out|, which has room for them.
static rn_status_t take_plain_tensors(const rn_in_t* in, uint32_t number, rn_tensor_t* out,
                                      size_t* out_count) {
  rn_pb_scan_t scan = rn_pb_scan(in->bytes);
  rn_pb_field_t field;
  rn_status_t status = RN_OK;
  *out_count = 0;
  while (rn_ok(status) && rn_pb_scan_next(&scan, &field)) {
    if (field.number != number || field.wire != RN_PB_WIRE_LENGTH) continue;
    status = rn_decode_tensor(field.bytes, in->buffer, RN_TENSOR_ANY_SIZE, in->allocator,
                              &out[*out_count]);
    if (rn_ok(status)) ++*out_count;
  }
  for (size_t i = 0; !rn_ok(status) && i < *out_count; ++i) rn_tensor_clear(&out[i]);
  if (!rn_ok(status)) *out_count = 0;
  return status;
}

rn_status_t rn_decode_run_callable(const rn_in_t* in, rn_run_callable_t* call) {
  int64_t count = count_fields(in->bytes, rn_pb_RunCallableRequest_feed_field);
  rn_tensor_t* feeds = NULL;
  if (count < 0) return malformed("RunCallableRequest");
  call->session = rn_field_bytes(in->bytes, rn_pb_RunCallableRequest_session_handle_field);
  call->handle = (int64_t)rn_field_value(in->bytes, rn_pb_RunCallableRequest_handle_field);
  call->request = (int64_t)rn_field_value(in->bytes, rn_pb_RunCallableRequest_request_id_field);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(in->arena, (size_t)count, &feeds));
  call->feeds = feeds;
  return take_plain_tensors(in, rn_pb_RunCallableRequest_feed_field, feeds, &call->feed_count);
}

rn_status_t rn_decode_run_callable_response(const rn_in_t* in, rn_run_callable_t* call) {
  int64_t count = count_fields(in->bytes, rn_pb_RunCallableResponse_fetch_field);
  if (count < 0) return malformed("RunCallableResponse");
  RN_RETURN_IF_ERROR(
      rn_alloc_array(in->allocator, (size_t)count, sizeof *call->fetches, (void**)&call->fetches));
  rn_status_t status = take_plain_tensors(in, rn_pb_RunCallableResponse_fetch_field, call->fetches,
                                          &call->fetch_count);
  if (rn_ok(status)) return RN_OK;
  RN_FREE_ARRAY(in->allocator, call->fetches, count);
  call->fetches = NULL;
  return status;
}

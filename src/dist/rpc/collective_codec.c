// The messages of collectives: see codec.h.
#include "dist/rpc/codec.h"

#include "proto/any.pb.h"
#include "proto/worker.pb.h"
#include "wire/writer.h"

// Our own fields, which other implementations skip. In CompleteGroupRequest: the device is on a
// task of ours; in CompleteGroupResponse: all of them are.
#define OURS_FIELD 1000
// In CompleteGroupRequest: the rank that the device asks for, plus one.
#define RANK_FIELD 1001
// The type of the message in a RecvBufResponse.
#define EXTRA_URL "type.googleapis.com/tensorflow.RecvBufRespExtra"
// Bytes that are aligned so are used where they are.
#define BUF_ALIGN 16

// CompleteGroup.

// |number| as an int32 field, which has ten bytes if it is negative.
static void put_int(rn_strbuf_t* out, uint32_t number, int32_t value) {
  if (value) rn_pb_put_uint(out, number, (uint64_t)(int64_t)value);
}

void rn_encode_complete_group(rn_encoder_t* encoder, const rn_complete_group_t* call) {
  rn_strbuf_t* out = &encoder->head;
  put_int(out, rn_pb_CompleteGroupRequest_group_key_field, call->group_key);
  put_int(out, rn_pb_CompleteGroupRequest_group_size_field, call->group_size);
  rn_pb_put_str(out, rn_pb_CompleteGroupRequest_device_type_field, call->device.type);
  put_int(out, rn_pb_CompleteGroupRequest_collective_type_field, call->kind);
  rn_encode_devices(encoder, rn_pb_CompleteGroupRequest_device_attributes_field, &call->device, 1);
  if (call->is_ours) rn_pb_put_uint(out, OURS_FIELD, 1);
  if (call->rank >= 0) rn_pb_put_uint(out, RANK_FIELD, (uint64_t)call->rank + 1);
}

rn_status_t rn_decode_complete_group(const rn_in_t* in, rn_complete_group_t* call) {
  rn_device_info_t* devices = NULL;
  size_t count = 0;
  call->group_key = (int32_t)rn_field_value(in->bytes, rn_pb_CompleteGroupRequest_group_key_field);
  call->group_size =
      (int32_t)rn_field_value(in->bytes, rn_pb_CompleteGroupRequest_group_size_field);
  call->kind = (int32_t)rn_field_value(in->bytes, rn_pb_CompleteGroupRequest_collective_type_field);
  call->is_ours = rn_field_value(in->bytes, OURS_FIELD);
  call->rank = (int32_t)rn_field_value(in->bytes, RANK_FIELD) - 1;
  RN_RETURN_IF_ERROR(
      rn_decode_devices(in, rn_pb_CompleteGroupRequest_device_attributes_field, &devices, &count));
  if (count != 1) return rn_invalid_argument("Malformed CompleteGroup: it must have one device");
  call->device = devices[0];
  return RN_OK;
}

void rn_encode_group(rn_encoder_t* encoder, const rn_complete_group_t* call) {
  rn_strbuf_t* out = &encoder->head;
  put_int(out, rn_pb_CompleteGroupResponse_group_key_field, call->group_key);
  put_int(out, rn_pb_CompleteGroupResponse_group_size_field, call->group_size);
  rn_pb_put_str(out, rn_pb_CompleteGroupResponse_device_type_field, call->device.type);
  put_int(out, rn_pb_CompleteGroupResponse_num_tasks_field, call->task_count);
  rn_encode_devices(encoder, rn_pb_CompleteGroupResponse_device_attributes_field, call->devices,
                    call->device_count);
  if (call->is_all_ours) rn_pb_put_uint(out, OURS_FIELD, 1);
}

rn_status_t rn_decode_group(const rn_in_t* in, rn_complete_group_t* call) {
  rn_in_t lasting = *in;
  lasting.arena = &call->arena;
  call->task_count =
      (int32_t)rn_field_value(in->bytes, rn_pb_CompleteGroupResponse_num_tasks_field);
  call->is_all_ours = rn_field_value(in->bytes, OURS_FIELD);
  return rn_decode_devices(&lasting, rn_pb_CompleteGroupResponse_device_attributes_field,
                           &call->devices, &call->device_count);
}

// CompleteInstance.

void rn_encode_complete_instance(rn_encoder_t* encoder, const rn_complete_instance_t* call) {
  rn_strbuf_t* out = &encoder->head;
  rn_pb_put_str(out, rn_pb_CompleteInstanceRequest_name_field, call->node);
  put_int(out, rn_pb_CompleteInstanceRequest_type_field, call->kind);
  put_int(out, rn_pb_CompleteInstanceRequest_data_type_field, (int32_t)call->dtype);
  rn_pb_put_str(out, rn_pb_CompleteInstanceRequest_shape_field, call->shape);
  put_int(out, rn_pb_CompleteInstanceRequest_group_key_field, call->group_key);
  put_int(out, rn_pb_CompleteInstanceRequest_group_size_field, call->group_size);
  put_int(out, rn_pb_CompleteInstanceRequest_instance_key_field, call->instance_key);
  rn_pb_put_str(out, rn_pb_CompleteInstanceRequest_device_type_field, call->device_type);
  rn_pb_put_str(out, rn_pb_CompleteInstanceRequest_device_field, call->device);
  put_int(out, rn_pb_CompleteInstanceRequest_is_source_field, call->is_source);
  if (call->step)
    rn_pb_put_uint(out, rn_pb_CompleteInstanceRequest_step_id_field, (uint64_t)call->step);
}

void rn_decode_complete_instance(rn_str_t bytes, rn_complete_instance_t* call) {
  uint64_t dtype = rn_field_value(bytes, rn_pb_CompleteInstanceRequest_data_type_field);
  call->node = rn_field_bytes(bytes, rn_pb_CompleteInstanceRequest_name_field);
  call->kind = (int32_t)rn_field_value(bytes, rn_pb_CompleteInstanceRequest_type_field);
  call->dtype = dtype < RN_DTYPE_COUNT ? (rn_dtype_t)dtype : RN_INVALID;
  call->shape = rn_field_bytes(bytes, rn_pb_CompleteInstanceRequest_shape_field);
  call->group_key = (int32_t)rn_field_value(bytes, rn_pb_CompleteInstanceRequest_group_key_field);
  call->group_size = (int32_t)rn_field_value(bytes, rn_pb_CompleteInstanceRequest_group_size_field);
  call->instance_key =
      (int32_t)rn_field_value(bytes, rn_pb_CompleteInstanceRequest_instance_key_field);
  call->device_type = rn_field_bytes(bytes, rn_pb_CompleteInstanceRequest_device_type_field);
  call->device = rn_field_bytes(bytes, rn_pb_CompleteInstanceRequest_device_field);
  call->is_source = rn_field_value(bytes, rn_pb_CompleteInstanceRequest_is_source_field);
  call->step = (int64_t)rn_field_value(bytes, rn_pb_CompleteInstanceRequest_step_id_field);
}

// RecvBuf.

void rn_encode_recv_buf(rn_encoder_t* encoder, const rn_recv_buf_t* call) {
  rn_strbuf_t* out = &encoder->head;
  rn_pb_put_uint(out, rn_pb_RecvBufRequest_step_id_field, (uint64_t)call->step);
  rn_pb_put_str(out, rn_pb_RecvBufRequest_buf_rendezvous_key_field, call->key);
  rn_pb_put_uint(out, rn_pb_RecvBufRequest_num_bytes_field, (uint64_t)call->size);
  rn_pb_put_str(out, rn_pb_RecvBufRequest_src_device_field, call->source);
  rn_pb_put_str(out, rn_pb_RecvBufRequest_dst_device_field, call->target);
  rn_pb_put_uint(out, rn_pb_RecvBufRequest_request_id_field, (uint64_t)call->request);
  rn_pb_put_uint(out, rn_pb_RecvBufRequest_src_incarnation_field, call->incarnation);
}

void rn_decode_recv_buf(rn_str_t bytes, rn_recv_buf_t* call) {
  call->step = (int64_t)rn_field_value(bytes, rn_pb_RecvBufRequest_step_id_field);
  call->key = rn_field_bytes(bytes, rn_pb_RecvBufRequest_buf_rendezvous_key_field);
  call->size = (int64_t)rn_field_value(bytes, rn_pb_RecvBufRequest_num_bytes_field);
  call->source = rn_field_bytes(bytes, rn_pb_RecvBufRequest_src_device_field);
  call->target = rn_field_bytes(bytes, rn_pb_RecvBufRequest_dst_device_field);
  call->request = (int64_t)rn_field_value(bytes, rn_pb_RecvBufRequest_request_id_field);
  call->incarnation = rn_field_value(bytes, rn_pb_RecvBufRequest_src_incarnation_field);
}

void rn_encode_buf(rn_encoder_t* encoder, const rn_recv_buf_t* call, int64_t now_us) {
  rn_strbuf_t* out = &encoder->head;
  size_t size = rn_tensor_bytes(&call->value);
  rn_pb_put_uint(out, rn_pb_RecvBufResponse_num_bytes_field, size);
  rn_pb_put_uint(out, rn_pb_RecvBufResponse_send_start_micros_field, (uint64_t)now_us);
  // The bytes stay where they are, so the lengths of the messages around them come first.
  size_t extra = rn_pb_length_size(size);
  size_t any = rn_pb_length_size(sizeof EXTRA_URL - 1) + rn_pb_length_size(extra);
  rn_pb_put_length(out, rn_pb_RecvBufResponse_transport_options_field, any);
  rn_pb_put_str(out, rn_pb_google_protobuf_Any_type_url_field, RN_STR(EXTRA_URL));
  rn_pb_put_length(out, rn_pb_google_protobuf_Any_value_field, extra);
  rn_encode_bytes(encoder, rn_pb_RecvBufRespExtra_tensor_content_field, &call->value);
}

// The bytes in one piece, if they are: |*out_size| is the size of all pieces.
static rn_str_t find_bytes(rn_str_t extra, size_t* out_size) {
  rn_pb_scan_t scan = rn_pb_scan(extra);
  rn_str_t bytes = RN_STR("");
  *out_size = 0;
  for (rn_pb_field_t field; rn_pb_scan_next(&scan, &field);) {
    if (field.number != rn_pb_RecvBufRespExtra_tensor_content_field ||
        field.wire != RN_PB_WIRE_LENGTH)
      continue;
    bytes = field.bytes;
    *out_size += field.bytes.size;
  }
  return bytes.size == *out_size ? bytes : RN_STR("");
}

rn_status_t rn_decode_buf(const rn_in_t* in, rn_recv_buf_t* call) {
  rn_str_t any = rn_field_bytes(in->bytes, rn_pb_RecvBufResponse_transport_options_field);
  rn_str_t extra = rn_field_bytes(any, rn_pb_google_protobuf_Any_value_field);
  size_t size = 0;
  rn_str_t whole = find_bytes(extra, &size);
  if (size != (size_t)call->size)
    return rn_internal("RecvBufResponse returned %zu bytes where to_tensor expected %lld", size,
                       (long long)call->size);
  rn_shape_t shape = {1, &call->size};
  if (in->buffer && whole.size && (uintptr_t)whole.data % BUF_ALIGN == 0) {
    RN_RETURN_IF_ERROR(rn_tensor_init(&call->value, RN_UINT8, shape));
    rn_buffer_retain(in->buffer);
    call->value.buffer = in->buffer;
    call->value.data = (char*)whole.data;
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(rn_tensor_create(in->allocator, RN_UINT8, shape, &call->value));
  char* to = call->value.data;
  rn_pb_scan_t scan = rn_pb_scan(extra);
  for (rn_pb_field_t field; rn_pb_scan_next(&scan, &field);) {
    if (field.number != rn_pb_RecvBufRespExtra_tensor_content_field ||
        field.wire != RN_PB_WIRE_LENGTH)
      continue;
    if (field.bytes.size) memcpy(to, field.bytes.data, field.bytes.size);
    to += field.bytes.size;
  }
  return RN_OK;
}

// Packed handles of clients: one value per device.
#include "dist/eager/internal.h"
#include "dist/rpc/codec.h"
#include "proto/eager_service.pb.h"
#include "wire/scan.h"

#define MAX_PIECES 65536

void rn_eager_packed_release(rn_eager_packed_t* packed) {
  if (!packed || --packed->refs > 0) return;
  for (size_t i = 0; i < packed->count; ++i) rn_eager_handle_release(packed->pieces[i].handle);
  rn_arena_clear(&packed->arena);
  RN_FREE(packed->allocator, packed);
}

static rn_status_t read_local(rn_eager_context_t* context, rn_str_t bytes, rn_buffer_t* buffer,
                              rn_eager_packed_t* packed, rn_eager_piece_t* out) {
  rn_device_t* first = NULL;
  rn_str_t name =
      rn_field_bytes(bytes, rn_pb_eager_SendPackedHandleOp_LocalTensorHandle_device_field);
  RN_RETURN_IF_ERROR(rn_arena_str(&packed->arena, name, &out->device));
  RN_RETURN_IF_ERROR(rn_eager_own_device(context, RN_STR(""), &first));
  return rn_eager_read_tensor(
      context, rn_field_bytes(bytes, rn_pb_eager_SendPackedHandleOp_LocalTensorHandle_tensor_field),
      buffer, first, &out->handle);
}

// A value that this task holds is found by its number, wherever the client believes it to be.
static rn_status_t read_remote(rn_eager_context_t* context, rn_str_t bytes,
                               rn_eager_packed_t* packed, rn_eager_piece_t* out) {
  int64_t op = (int64_t)rn_field_value(bytes, rn_pb_eager_RemoteTensorHandle_op_id_field);
  int32_t output = (int32_t)rn_field_value(bytes, rn_pb_eager_RemoteTensorHandle_output_num_field);
  rn_str_t device = rn_field_bytes(bytes, rn_pb_eager_RemoteTensorHandle_device_field);
  RN_RETURN_IF_ERROR(rn_arena_str(&packed->arena, device, &out->device));
  if (!device.size || rn_str_is(rn_eager_task_of(device), context->task))
    return rn_eager_value_get(context, op, output, &out->handle, NULL);
  return rn_arena_str(&packed->arena, bytes, &out->remote);
}

static rn_status_t read_piece(rn_eager_context_t* context, rn_str_t bytes, rn_buffer_t* buffer,
                              rn_eager_packed_t* packed, rn_eager_piece_t* out) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  while (rn_pb_scan_next(&scan, &field)) {
    if (field.wire != RN_PB_WIRE_LENGTH) continue;
    if (field.number == rn_pb_eager_SendPackedHandleOp_Handle_local_handle_field)
      return read_local(context, field.bytes, buffer, packed, out);
    if (field.number == rn_pb_eager_SendPackedHandleOp_Handle_remote_handle_field)
      return read_remote(context, field.bytes, packed, out);
  }
  return rn_invalid_argument("A handle of a packed one is empty");
}

static rn_status_t read(rn_eager_context_t* context, rn_str_t bytes, rn_buffer_t* buffer,
                        rn_eager_packed_t* packed) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  size_t count = 0;
  while (rn_pb_scan_next(&scan, &field))
    count += field.number == rn_pb_eager_SendPackedHandleOp_handles_field &&
             field.wire == RN_PB_WIRE_LENGTH;
  if (!count) return rn_invalid_argument("Handles should not be empty.");
  if (count > MAX_PIECES) return rn_invalid_argument("%zu handles are too many to pack", count);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&packed->arena, count, &packed->pieces));
  scan = rn_pb_scan(bytes);
  while (rn_pb_scan_next(&scan, &field)) {
    if (field.number != rn_pb_eager_SendPackedHandleOp_handles_field ||
        field.wire != RN_PB_WIRE_LENGTH)
      continue;
    RN_RETURN_IF_ERROR(
        read_piece(context, field.bytes, buffer, packed, &packed->pieces[packed->count]));
    packed->count++;
  }
  return RN_OK;
}

rn_status_t rn_eager_packed_read(rn_eager_context_t* context, rn_str_t bytes, rn_buffer_t* buffer,
                                 rn_eager_packed_t** out) {
  *out = NULL;
  rn_eager_packed_t* packed = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(context->allocator, &packed));
  packed->refs = 1;
  packed->allocator = context->allocator;
  rn_arena_init(&packed->arena, context->allocator);
  rn_status_t status = read(context, bytes, buffer, packed);
  if (!rn_ok(status)) {
    rn_eager_packed_release(packed);
    return status;
  }
  *out = packed;
  return RN_OK;
}

rn_status_t rn_eager_packed_own(const rn_eager_context_t* context, const rn_eager_packed_t* packed,
                                rn_eager_handle_t** out) {
  for (size_t i = 0; i < packed->count; ++i) {
    const rn_eager_piece_t* piece = &packed->pieces[i];
    if (!piece->handle) continue;
    if (piece->device.size && !rn_str_is(rn_eager_task_of(piece->device), context->task)) continue;
    *out = piece->handle;
    return RN_OK;
  }
  return rn_invalid_argument("A packed handle has no value on %s", context->task);
}

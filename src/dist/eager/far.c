// Values on devices of other tasks, and copies of them. See client.h.
#include "dist/calls.h"
#include "dist/eager/client_internal.h"
#include "framework/attr_proto.h"
#include "proto/eager_service.pb.h"
#include "tensor/tensor_proto.h"
#include "wire/encode.h"
#include "wire/scan.h"
#include "wire/writer.h"

static rn_status_t value_rank(void* self, int* out) {
  *out = ((rn_far_value_t*)self)->rank;
  return RN_OK;
}

static rn_status_t value_dim(void* self, int axis, int64_t* out) {
  const rn_far_value_t* value = self;
  if (axis < 0 || axis >= value->rank)
    return rn_invalid_argument("Dimension %d of a tensor of %d dimensions", axis, value->rank);
  *out = value->dims[axis];
  return RN_OK;
}

uint64_t rn_far_opening(rn_far_t* task) {
  rn_mutex_lock(&task->mutex);
  uint64_t opening = task->opening;
  rn_mutex_unlock(&task->mutex);
  return opening;
}

void rn_far_forget(rn_eager_client_t* client, rn_far_t* task, uint64_t opening,
                   rn_far_name_t name) {
  rn_mutex_lock(&task->mutex);
  // Without memory, the value stays until the context is closed.
  if (task->context && opening == task->opening)
    rn_status_free(rn_vec_push(&task->dropped, client->allocator, name));
  rn_mutex_unlock(&task->mutex);
}

static void value_destroy(void* self) {
  rn_far_value_t* value = self;
  rn_eager_client_t* client = value->device->client;
  rn_far_forget(client, value->device->task, value->opening, value->name);
  RN_FREE(client->allocator, value);
}

// The value of |handle| if it is on another task; else NULL.
rn_far_value_t* rn_far_value(const rn_eager_handle_t* handle) {
  const rn_eager_foreign_t* foreign = rn_eager_handle_custom(handle);
  return foreign && foreign->destroy == value_destroy ? foreign->self : NULL;
}

void rn_far_set_shape(rn_far_value_t* value, rn_str_t shape) {
  rn_pb_scan_t scan = rn_pb_scan(shape);
  rn_pb_field_t field;
  value->rank = 0;
  while (rn_pb_scan_next(&scan, &field) && value->rank < RN_MAX_RANK)
    if (field.number == rn_pb_TensorShapeProto_dim_field && field.wire == RN_PB_WIRE_LENGTH)
      value->dims[value->rank++] =
          (int64_t)rn_field_value(field.bytes, rn_pb_TensorShapeProto_Dim_size_field);
}

static rn_status_t make_handle(rn_far_device_t* device, uint64_t context, rn_far_name_t name,
                               rn_dtype_t dtype, rn_str_t shape, bool is_pending,
                               rn_eager_handle_t** out) {
  rn_eager_client_t* client = device->client;
  rn_far_value_t* value = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(client->allocator, &value));
  *value = (rn_far_value_t){
      .device = device, .context = context, .opening = rn_far_opening(device->task), .name = name};
  rn_far_set_shape(value, shape);
  rn_eager_foreign_t foreign = {
      .self = value, .rank = value_rank, .dim = value_dim, .destroy = value_destroy};
  rn_status_t status =
      is_pending ? rn_eager_pending_handle(client->eager, device->name, NULL, dtype, &foreign, out)
                 : rn_eager_custom_handle(client->eager, device->name, dtype, &foreign, out);
  if (!rn_ok(status)) RN_FREE(client->allocator, value);
  return status;
}

rn_status_t rn_far_make_handle(rn_far_device_t* device, uint64_t context, rn_far_name_t name,
                               rn_dtype_t dtype, rn_str_t shape, rn_eager_handle_t** out) {
  return make_handle(device, context, name, dtype, shape, false, out);
}

rn_status_t rn_far_make_pending(rn_far_device_t* device, uint64_t context, rn_far_name_t name,
                                rn_dtype_t dtype, rn_eager_handle_t** out) {
  return make_handle(device, context, name, dtype, RN_STR(""), true, out);
}

void rn_far_settle(rn_eager_handle_t* handle, rn_far_device_t* device, rn_str_t shape,
                   rn_status_t status) {
  rn_far_value_t* value = rn_far_value(handle);
  if (rn_ok(status)) {
    value->device = device;
    value->opening = rn_far_opening(device->task);
    rn_far_set_shape(value, shape);
  } else {
    value->opening = UINT64_MAX;  // its task has nothing to free
  }
  rn_eager_settle_custom(handle, value->device->name, status);
}

// --- Messages

void rn_far_write_handle(rn_strbuf_t* out, rn_far_name_t name, rn_str_t device, rn_dtype_t dtype) {
  rn_pb_put_uint(out, rn_pb_eager_RemoteTensorHandle_op_id_field, (uint64_t)name.op);
  if (name.output)
    rn_pb_put_uint(out, rn_pb_eager_RemoteTensorHandle_output_num_field, (uint64_t)name.output);
  if (device.size) {
    rn_pb_put_str(out, rn_pb_eager_RemoteTensorHandle_device_field, device);
    rn_pb_put_str(out, rn_pb_eager_RemoteTensorHandle_op_device_field, device);
    rn_pb_put_uint(out, rn_pb_eager_RemoteTensorHandle_dtype_field, dtype);
  }
}

void rn_far_put_handle(rn_strbuf_t* out, uint32_t number, rn_far_name_t name, rn_str_t device,
                       rn_dtype_t dtype) {
  size_t handle = rn_pb_begin(out, number);
  rn_far_write_handle(out, name, device, dtype);
  rn_pb_end(out, handle);
}

rn_status_t rn_far_put_attr(rn_strbuf_t* out, rn_str_t name, const rn_attr_value_t* value) {
  rn_arena_t arena;
  rn_pb_AttrValue_t proto;
  rn_arena_init(&arena, out->allocator);
  size_t entry = rn_pb_begin(out, rn_pb_eager_Operation_attrs_field);
  rn_pb_put_str(out, rn_pb_eager_Operation_AttrsEntry_key_field, name);
  size_t mark = rn_pb_begin(out, rn_pb_eager_Operation_AttrsEntry_value_field);
  rn_status_t status = rn_attr_value_to_proto(value, &arena, &proto);
  if (rn_ok(status)) status = RN_PB_ENCODE(AttrValue, &proto, NULL, out);
  rn_pb_end(out, mark);
  rn_pb_end(out, entry);
  rn_arena_clear(&arena);
  return status;
}

static rn_status_t put_text(rn_strbuf_t* out, const char* name, rn_str_t value) {
  rn_attr_value_t attr = {.kind = RN_ATTR_STRING, .s = value};
  return rn_far_put_attr(out, rn_str(name), &attr);
}

// A request that begins with the values that the task may free, followed by |items|.
static rn_status_t make_request(rn_eager_client_t* client, rn_far_t* task, uint64_t context,
                                rn_str_t items, rn_message_t* out) {
  rn_strbuf_t head;
  rn_strbuf_init(&head, client->allocator);
  rn_message_init(out, client->allocator);
  rn_pb_put_fixed64(&head, rn_pb_eager_EnqueueRequest_context_id_field, context);
  rn_mutex_lock(&task->mutex);
  rn_status_t status =
      context && context == task->context
          ? RN_OK
          : rn_aborted(
                "The value or the device of %.*s belongs to a cluster that this context has left",
                RN_STR_ARGS(task->name));
  for (size_t i = 0; rn_ok(status) && i < task->dropped.count; ++i) {
    size_t item = rn_pb_begin(&head, rn_pb_eager_EnqueueRequest_queue_field);
    rn_far_put_handle(&head, rn_pb_eager_QueueItem_handle_to_decref_field, task->dropped.items[i],
                      RN_STR(""), RN_INVALID);
    rn_pb_end(&head, item);
  }
  if (rn_ok(status)) task->dropped.count = 0;
  rn_mutex_unlock(&task->mutex);
  rn_strbuf_append(&head, items);
  if (rn_ok(status)) status = rn_strbuf_status(&head);
  if (rn_ok(status)) status = rn_message_add(out, rn_strbuf_view(&head));
  rn_strbuf_clear(&head);
  if (!rn_ok(status)) rn_message_clear(out);
  return status;
}

rn_status_t rn_far_enqueue(rn_eager_client_t* client, rn_far_t* task, uint64_t context,
                           rn_str_t items, rn_message_t* out) {
  rn_message_t request;
  RN_RETURN_IF_ERROR(make_request(client, task, context, items, &request));
  return rn_far_ask(client, task, RN_EAGER_PATH "Enqueue", &request, INT64_MAX, false, out);
}

// The same, ignoring the response.
rn_status_t rn_far_tell(rn_eager_client_t* client, rn_far_t* task, uint64_t context,
                        rn_str_t items) {
  rn_message_t response;
  RN_RETURN_IF_ERROR(rn_far_enqueue(client, task, context, items, &response));
  rn_message_clear(&response);
  return RN_OK;
}

uint64_t rn_far_context(rn_far_t* task) {
  rn_mutex_lock(&task->mutex);
  uint64_t context = task->context;
  rn_mutex_unlock(&task->mutex);
  return context;
}

// --- Copies

// A Send or Recv of one value under |name|, as an item.
static rn_status_t put_transfer(const char* op, int64_t id, const rn_far_device_t* from,
                                rn_str_t to, rn_str_t name, const rn_far_value_t* value,
                                rn_dtype_t dtype, rn_strbuf_t* out) {
  bool sends = value != NULL;
  rn_attr_value_t type = {.kind = RN_ATTR_TYPE, .type = dtype};
  rn_attr_value_t incarnation = {.kind = RN_ATTR_INT, .i = (int64_t)from->incarnation};
  rn_attr_value_t no = {.kind = RN_ATTR_BOOL};
  size_t item = rn_pb_begin(out, rn_pb_eager_EnqueueRequest_queue_field);
  size_t operation = rn_pb_begin(out, rn_pb_eager_QueueItem_operation_field);
  rn_pb_put_uint(out, rn_pb_eager_Operation_id_field, (uint64_t)id);
  rn_pb_put_str(out, rn_pb_eager_Operation_name_field, rn_str(op));
  rn_status_t status = put_text(out, "tensor_name", name);
  if (rn_ok(status)) status = put_text(out, "send_device", from->name);
  if (rn_ok(status)) status = rn_far_put_attr(out, RN_STR("send_device_incarnation"), &incarnation);
  if (rn_ok(status)) status = put_text(out, "recv_device", to);
  if (rn_ok(status)) status = rn_far_put_attr(out, RN_STR("client_terminated"), &no);
  if (rn_ok(status))
    status = rn_far_put_attr(out, sends ? RN_STR("T") : RN_STR("tensor_type"), &type);
  rn_pb_put_str(out, rn_pb_eager_Operation_device_field, sends ? from->name : to);
  if (sends) {
    size_t input = rn_pb_begin(out, rn_pb_eager_Operation_op_inputs_field);
    rn_far_put_handle(out, rn_pb_eager_Operation_Input_remote_handle_field, value->name, from->name,
                      dtype);
    rn_pb_end(out, input);
  }
  rn_pb_end(out, operation);
  rn_pb_end(out, item);
  return status;
}

// Sends |value| under a new, unique name.
static rn_status_t send_away(rn_eager_client_t* client, const rn_far_value_t* value,
                             rn_dtype_t dtype, rn_str_t to, rn_strbuf_t* out_name) {
  rn_strbuf_t items;
  int64_t id = rn_far_next_op(client);
  rn_strbuf_printf(out_name, "%llu_%lld", (unsigned long long)value->context, (long long)id);
  rn_strbuf_init(&items, client->allocator);
  rn_status_t status =
      put_transfer("_Send", id, value->device, to, rn_strbuf_view(out_name), value, dtype, &items);
  if (rn_ok(status)) status = rn_strbuf_status(&items);
  if (rn_ok(status))
    status = rn_far_tell(client, value->device->task, value->context, rn_strbuf_view(&items));
  rn_strbuf_clear(&items);
  return status;
}

static rn_status_t fetch(rn_eager_client_t* client, const rn_far_value_t* value, rn_dtype_t dtype,
                         rn_tensor_t* out) {
  const rn_far_device_t* device = value->device;
  rn_worker_t* worker = rn_eager_peers_worker(client->peers, device->task->name);
  rn_strbuf_t name, key;
  rn_waiter_t waiter;
  if (!worker) return rn_unavailable("%.*s is not in the cluster", RN_STR_ARGS(device->task->name));
  rn_strbuf_init(&name, client->allocator);
  rn_strbuf_init(&key, client->allocator);
  rn_status_t status = send_away(client, value, dtype, client->here, &name);
  rn_strbuf_printf(&key, "%.*s;%016llx;%.*s;%.*s;0:0", RN_STR_ARGS(device->name),
                   (unsigned long long)device->incarnation, RN_STR_ARGS(client->here),
                   RN_STR_ARGS(rn_strbuf_view(&name)));
  if (rn_ok(status)) status = rn_strbuf_status(&key);
  if (rn_ok(status)) {
    rn_recv_tensor_t call = {.call = rn_waiter_call(&waiter, INT64_MAX, NULL),
                             .step = (int64_t)value->context,
                             .key = rn_strbuf_view(&key),
                             .request = (int64_t)(client->env->random(client->env->self) >> 1 | 1)};
    call.call.waits_for_ready = false;
    worker->vtable->recv_tensor(worker, &call);
    status = rn_waiter_wait(&waiter);
    if (rn_ok(status) && call.is_dead) status = rn_internal("The fetched value is dead");
    if (rn_ok(status)) *out = call.value;
  }
  rn_strbuf_clear(&name);
  rn_strbuf_clear(&key);
  return status;
}

static rn_status_t copy_from(void* self, rn_eager_t* eager, rn_eager_handle_t* handle,
                             const char* name, rn_eager_handle_t** out) {
  rn_far_device_t* device = self;
  const rn_far_value_t* value = rn_far_value(handle);
  rn_tensor_t tensor = {0};
  rn_eager_handle_t* copy = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(rn_eager_handle_wait(handle));
  if (!value)
    return rn_internal("A value of %.*s is not on that device", RN_STR_ARGS(device->name));
  RN_RETURN_IF_ERROR(fetch(device->client, value, rn_eager_handle_dtype(handle), &tensor));
  rn_status_t status = rn_eager_handle_create(&tensor, &copy);
  rn_tensor_clear(&tensor);
  if (rn_ok(status)) status = rn_eager_handle_copy_to_name(copy, eager, rn_str(name), out);
  rn_eager_handle_release(copy);
  return status;
}

// A whole request with a SendTensor, which references |tensor|'s memory.
rn_status_t rn_far_upload(rn_far_device_t* device, uint64_t context, int64_t id,
                          const rn_tensor_t* tensor) {
  rn_eager_client_t* client = device->client;
  rn_message_t value, request, response;
  rn_encoder_t encoder;
  rn_strbuf_t send, item, queue;
  rn_message_init(&value, client->allocator);
  rn_encoder_open(&encoder, &value);
  rn_encode_tensor(&encoder, rn_pb_eager_SendTensorOp_tensors_field, tensor);
  rn_status_t status = rn_encoder_close(&encoder);
  rn_strbuf_init(&send, client->allocator);
  rn_strbuf_init(&item, client->allocator);
  rn_strbuf_init(&queue, client->allocator);
  rn_pb_put_uint(&send, rn_pb_eager_SendTensorOp_op_id_field, (uint64_t)id);
  rn_pb_put_str(&send, rn_pb_eager_SendTensorOp_device_name_field, device->name);
  rn_pb_put_varint(&item, rn_pb_eager_QueueItem_send_tensor_field << 3 | RN_PB_WIRE_LENGTH);
  rn_pb_put_varint(&item, send.size + value.size);
  rn_pb_put_varint(&queue, rn_pb_eager_EnqueueRequest_queue_field << 3 | RN_PB_WIRE_LENGTH);
  rn_pb_put_varint(&queue, item.size + send.size + value.size);
  rn_strbuf_append(&queue, rn_strbuf_view(&item));
  rn_strbuf_append(&queue, rn_strbuf_view(&send));
  if (rn_ok(status)) status = rn_strbuf_status(&queue);
  if (rn_ok(status))
    status = make_request(client, device->task, context, rn_strbuf_view(&queue), &request);
  if (rn_ok(status)) {
    for (size_t i = 0; i < value.pieces.count && rn_ok(status); ++i)
      status = rn_message_lend(&request, value.pieces.items[i].buffer, value.pieces.items[i].bytes);
    if (rn_ok(status))
      status = rn_far_ask(client, device->task, RN_EAGER_PATH "Enqueue", &request, INT64_MAX, false,
                          &response);
    else
      rn_message_clear(&request);
    if (rn_ok(status)) rn_message_clear(&response);
  }
  rn_message_clear(&value);
  rn_strbuf_clear(&send);
  rn_strbuf_clear(&item);
  rn_strbuf_clear(&queue);
  return status;
}

rn_status_t rn_far_check_movable(const rn_far_device_t* to, rn_dtype_t dtype, const char* from) {
  if (dtype != RN_RESOURCE && dtype != RN_VARIANT) return RN_OK;
  return rn_invalid_argument("A %s on %s cannot be used on %.*s", rn_dtype_name(dtype), from,
                             RN_STR_ARGS(to->name));
}

static void put_shape(rn_strbuf_t* out, int rank, const int64_t* dims) {
  for (int i = 0; i < rank; ++i) {
    size_t dim = rn_pb_begin(out, rn_pb_TensorShapeProto_dim_field);
    if (dims[i]) rn_pb_put_uint(out, rn_pb_TensorShapeProto_Dim_size_field, (uint64_t)dims[i]);
    rn_pb_end(out, dim);
  }
}

// Copies a value of another task here; |name| is its name there.
rn_status_t rn_far_bring(rn_far_device_t* device, uint64_t context, const rn_far_value_t* value,
                         rn_dtype_t dtype, int64_t id) {
  rn_eager_client_t* client = device->client;
  rn_strbuf_t name, items;
  rn_strbuf_init(&name, client->allocator);
  rn_strbuf_init(&items, client->allocator);
  rn_status_t status = send_away(client, value, dtype, device->name, &name);
  if (rn_ok(status))
    status = put_transfer("_Recv", id, value->device, device->name, rn_strbuf_view(&name), NULL,
                          dtype, &items);
  if (rn_ok(status)) status = rn_strbuf_status(&items);
  if (rn_ok(status)) status = rn_far_tell(client, device->task, context, rn_strbuf_view(&items));
  rn_strbuf_clear(&name);
  rn_strbuf_clear(&items);
  return status;
}

static rn_status_t copy_to(void* self, rn_eager_t* eager, rn_eager_handle_t* handle,
                           rn_eager_handle_t** out) {
  rn_far_device_t* device = self;
  rn_eager_client_t* client = device->client;
  const rn_far_value_t* value = rn_far_value(handle);
  rn_dtype_t dtype = rn_eager_handle_dtype(handle);
  uint64_t context = rn_far_context(device->task);
  rn_far_name_t name = {rn_far_next_op(client), 0};
  rn_strbuf_t shape;
  (void)eager;
  *out = NULL;
  RN_RETURN_IF_ERROR(rn_eager_handle_wait(handle));
  RN_RETURN_IF_ERROR(rn_far_check_movable(device, dtype, rn_eager_handle_device(handle)));
  rn_strbuf_init(&shape, client->allocator);
  rn_status_t status = RN_OK;
  if (value) {
    put_shape(&shape, value->rank, value->dims);
    status = rn_far_bring(device, context, value, dtype, name.op);
  } else {
    const rn_tensor_t* tensor = NULL;
    status = rn_eager_handle_value(handle, &tensor);
    if (rn_ok(status)) put_shape(&shape, tensor->rank, rn_tensor_dims(tensor));
    if (rn_ok(status)) status = rn_far_upload(device, context, name.op, tensor);
  }
  if (rn_ok(status)) status = rn_strbuf_status(&shape);
  if (rn_ok(status))
    status = rn_far_make_handle(device, context, name, dtype, rn_strbuf_view(&shape), out);
  rn_strbuf_clear(&shape);
  return status;
}

rn_eager_custom_device_t rn_far_table(rn_far_device_t* device) {
  return (rn_eager_custom_device_t){.self = device,
                                    .is_remote = true,
                                    .copy_to = copy_to,
                                    .copy_from = copy_from,
                                    .execute = rn_far_execute};
}

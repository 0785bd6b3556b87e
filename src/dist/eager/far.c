// Values on devices of other tasks, and the ops that make them. See client.h.
#include "dist/calls.h"
#include "dist/eager/client_internal.h"
#include "framework/attr_proto.h"
#include "proto/eager_service.pb.h"
#include "tensor/tensor_proto.h"
#include "wire/encode.h"
#include "wire/scan.h"
#include "wire/writer.h"

#define SMALL 4096  // the most bytes of a value that is sent with its op

// A value.
typedef struct far_value_t {
  rn_far_device_t* device;
  uint64_t context;
  uint64_t opening;  // of its task, when it was made
  rn_far_name_t name;
  int rank;
  int64_t dims[RN_MAX_RANK];
} far_value_t;

static rn_status_t value_rank(void* self, int* out) {
  *out = ((far_value_t*)self)->rank;
  return RN_OK;
}

static rn_status_t value_dim(void* self, int axis, int64_t* out) {
  const far_value_t* value = self;
  if (axis < 0 || axis >= value->rank)
    return rn_invalid_argument("Dimension %d of a tensor of %d dimensions", axis, value->rank);
  *out = value->dims[axis];
  return RN_OK;
}

static uint64_t opening_of(rn_far_t* task) {
  rn_mutex_lock(&task->mutex);
  uint64_t opening = task->opening;
  rn_mutex_unlock(&task->mutex);
  return opening;
}

static void forget(rn_eager_client_t* client, rn_far_t* task, uint64_t opening,
                   rn_far_name_t name) {
  rn_mutex_lock(&task->mutex);
  // Without memory, the value stays until the context is closed.
  if (task->context && opening == task->opening)
    rn_status_free(rn_vec_push(&task->dropped, client->allocator, name));
  rn_mutex_unlock(&task->mutex);
}

static void value_destroy(void* self) {
  far_value_t* value = self;
  rn_eager_client_t* client = value->device->client;
  forget(client, value->device->task, value->opening, value->name);
  RN_FREE(client->allocator, value);
}

// The value of |handle| if it is on another task; else NULL.
static far_value_t* far_value(const rn_eager_handle_t* handle) {
  const rn_eager_foreign_t* foreign = rn_eager_handle_custom(handle);
  return foreign && foreign->destroy == value_destroy ? foreign->self : NULL;
}

static rn_status_t make_handle(rn_far_device_t* device, uint64_t context, rn_far_name_t name,
                               rn_dtype_t dtype, rn_str_t shape, rn_eager_handle_t** out) {
  rn_eager_client_t* client = device->client;
  far_value_t* value = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(client->allocator, &value));
  *value = (far_value_t){
      .device = device, .context = context, .opening = opening_of(device->task), .name = name};
  rn_pb_scan_t scan = rn_pb_scan(shape);
  rn_pb_field_t field;
  while (rn_pb_scan_next(&scan, &field) && value->rank < RN_MAX_RANK)
    if (field.number == rn_pb_TensorShapeProto_dim_field && field.wire == RN_PB_WIRE_LENGTH)
      value->dims[value->rank++] =
          (int64_t)rn_field_value(field.bytes, rn_pb_TensorShapeProto_Dim_size_field);
  rn_eager_foreign_t foreign = {
      .self = value, .rank = value_rank, .dim = value_dim, .destroy = value_destroy};
  rn_status_t status = rn_eager_custom_handle(client->eager, device->name, dtype, &foreign, out);
  if (!rn_ok(status)) RN_FREE(client->allocator, value);
  return status;
}

// --- Messages

static void put_handle(rn_strbuf_t* out, uint32_t number, rn_far_name_t name, rn_str_t device,
                       rn_dtype_t dtype) {
  size_t handle = rn_pb_begin(out, number);
  rn_pb_put_uint(out, rn_pb_eager_RemoteTensorHandle_op_id_field, (uint64_t)name.op);
  if (name.output)
    rn_pb_put_uint(out, rn_pb_eager_RemoteTensorHandle_output_num_field, (uint64_t)name.output);
  if (device.size) {
    rn_pb_put_str(out, rn_pb_eager_RemoteTensorHandle_device_field, device);
    rn_pb_put_str(out, rn_pb_eager_RemoteTensorHandle_op_device_field, device);
    rn_pb_put_uint(out, rn_pb_eager_RemoteTensorHandle_dtype_field, dtype);
  }
  rn_pb_end(out, handle);
}

static rn_status_t put_attr(rn_strbuf_t* out, rn_str_t name, const rn_attr_value_t* value) {
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
  return put_attr(out, rn_str(name), &attr);
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
    put_handle(&head, rn_pb_eager_QueueItem_handle_to_decref_field, task->dropped.items[i],
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

static rn_status_t enqueue(rn_eager_client_t* client, rn_far_t* task, uint64_t context,
                           rn_str_t items, rn_message_t* out) {
  rn_message_t request;
  RN_RETURN_IF_ERROR(make_request(client, task, context, items, &request));
  return rn_far_ask(client, task, RN_EAGER_PATH "Enqueue", &request, INT64_MAX, false, out);
}

// The same, ignoring the response.
static rn_status_t tell(rn_eager_client_t* client, rn_far_t* task, uint64_t context,
                        rn_str_t items) {
  rn_message_t response;
  RN_RETURN_IF_ERROR(enqueue(client, task, context, items, &response));
  rn_message_clear(&response);
  return RN_OK;
}

static uint64_t context_of(rn_far_t* task) {
  rn_mutex_lock(&task->mutex);
  uint64_t context = task->context;
  rn_mutex_unlock(&task->mutex);
  return context;
}

// --- Copies

// A Send or Recv of one value under |name|, as an item.
static rn_status_t put_transfer(const char* op, int64_t id, const rn_far_device_t* from,
                                rn_str_t to, rn_str_t name, const far_value_t* value,
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
  if (rn_ok(status)) status = put_attr(out, RN_STR("send_device_incarnation"), &incarnation);
  if (rn_ok(status)) status = put_text(out, "recv_device", to);
  if (rn_ok(status)) status = put_attr(out, RN_STR("client_terminated"), &no);
  if (rn_ok(status)) status = put_attr(out, sends ? RN_STR("T") : RN_STR("tensor_type"), &type);
  rn_pb_put_str(out, rn_pb_eager_Operation_device_field, sends ? from->name : to);
  if (sends) {
    size_t input = rn_pb_begin(out, rn_pb_eager_Operation_op_inputs_field);
    put_handle(out, rn_pb_eager_Operation_Input_remote_handle_field, value->name, from->name,
               dtype);
    rn_pb_end(out, input);
  }
  rn_pb_end(out, operation);
  rn_pb_end(out, item);
  return status;
}

// Sends |value| under a new, unique name.
static rn_status_t send_away(rn_eager_client_t* client, const far_value_t* value, rn_dtype_t dtype,
                             rn_str_t to, rn_strbuf_t* out_name) {
  rn_strbuf_t items;
  int64_t id = rn_far_next_op(client);
  rn_strbuf_printf(out_name, "%llu_%lld", (unsigned long long)value->context, (long long)id);
  rn_strbuf_init(&items, client->allocator);
  rn_status_t status =
      put_transfer("_Send", id, value->device, to, rn_strbuf_view(out_name), value, dtype, &items);
  if (rn_ok(status)) status = rn_strbuf_status(&items);
  if (rn_ok(status))
    status = tell(client, value->device->task, value->context, rn_strbuf_view(&items));
  rn_strbuf_clear(&items);
  return status;
}

static rn_status_t fetch(rn_eager_client_t* client, const far_value_t* value, rn_dtype_t dtype,
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
  const far_value_t* value = far_value(handle);
  rn_tensor_t tensor = {0};
  rn_eager_handle_t* copy = NULL;
  *out = NULL;
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
static rn_status_t upload(rn_far_device_t* device, uint64_t context, int64_t id,
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

static rn_status_t check_movable(const rn_far_device_t* to, rn_dtype_t dtype, const char* from) {
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
static rn_status_t bring(rn_far_device_t* device, uint64_t context, const far_value_t* value,
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
  if (rn_ok(status)) status = tell(client, device->task, context, rn_strbuf_view(&items));
  rn_strbuf_clear(&name);
  rn_strbuf_clear(&items);
  return status;
}

static rn_status_t copy_to(void* self, rn_eager_t* eager, rn_eager_handle_t* handle,
                           rn_eager_handle_t** out) {
  rn_far_device_t* device = self;
  rn_eager_client_t* client = device->client;
  const far_value_t* value = far_value(handle);
  rn_dtype_t dtype = rn_eager_handle_dtype(handle);
  uint64_t context = context_of(device->task);
  rn_far_name_t name = {rn_far_next_op(client), 0};
  rn_strbuf_t shape;
  (void)eager;
  *out = NULL;
  RN_RETURN_IF_ERROR(check_movable(device, dtype, rn_eager_handle_device(handle)));
  rn_strbuf_init(&shape, client->allocator);
  rn_status_t status = RN_OK;
  if (value) {
    put_shape(&shape, value->rank, value->dims);
    status = bring(device, context, value, dtype, name.op);
  } else {
    const rn_tensor_t* tensor = NULL;
    status = rn_eager_handle_value(handle, &tensor);
    if (rn_ok(status)) put_shape(&shape, tensor->rank, rn_tensor_dims(tensor));
    if (rn_ok(status)) status = upload(device, context, name.op, tensor);
  }
  if (rn_ok(status)) status = rn_strbuf_status(&shape);
  if (rn_ok(status))
    status = make_handle(device, context, name, dtype, rn_strbuf_view(&shape), out);
  rn_strbuf_clear(&shape);
  return status;
}

// --- Ops

// A call of an op on a device.
typedef struct far_call_t {
  rn_far_device_t* device;
  rn_eager_op_t* op;
  const rn_op_def_t* def;
  uint64_t context, opening;
  bool is_call;  // of a function, by its name or by an op that calls it: its task runs it as one
  rn_attr_value_t* attrs;  // by place in the definition, defaults too; in |arena|
  bool* is_known;
  rn_strbuf_t operation;
  RN_VEC(rn_far_name_t) brought;  // values that were copied for it
  rn_arena_t arena;
} far_call_t;

static rn_status_t see_attr(void* arg, rn_str_t name, const rn_attr_value_t* value) {
  far_call_t* call = arg;
  int index = rn_op_attr_index(call->def, name);
  if (index >= 0) {
    call->attrs[index] = *value;
    call->is_known[index] = true;
  }
  return call->def->role == RN_ROLE_CALL ? RN_OK : put_attr(&call->operation, name, value);
}

static rn_status_t infer(far_call_t* call, int attr, rn_attr_value_t value) {
  if (attr < 0 || call->is_known[attr]) return RN_OK;
  call->attrs[attr] = value;
  call->is_known[attr] = true;
  if (call->def->role == RN_ROLE_CALL) return RN_OK;
  return put_attr(&call->operation, rn_str(call->def->attrs[attr].name), &value);
}

// Given attributes come before those inferred from inputs, and these before defaults, which are not
// sent.
static rn_status_t put_attrs(far_call_t* call) {
  const rn_op_def_t* def = call->def;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&call->arena, (size_t)def->attr_count, &call->attrs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&call->arena, (size_t)def->attr_count, &call->is_known));
  RN_RETURN_IF_ERROR(rn_eager_op_each_attr(call->op, see_attr, call));
  int32_t next = 0;
  for (int i = 0; i < def->input_count; ++i) {
    const rn_arg_def_t* arg = &def->inputs[i];
    int32_t count = 1;
    rn_dtype_t* types = NULL;
    RN_RETURN_IF_ERROR(rn_eager_op_length(call->op, rn_str(arg->name), false, &count));
    if (count < 0 || count > rn_eager_op_input_count(call->op) - next)
      return rn_invalid_argument("expected more inputs, got %d", rn_eager_op_input_count(call->op));
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&call->arena, (size_t)count, &types));
    for (int32_t k = 0; k < count; ++k)
      types[k] = rn_eager_handle_dtype(rn_eager_op_input(call->op, next + k));
    next += count;
    RN_RETURN_IF_ERROR(
        infer(call, arg->number_attr, (rn_attr_value_t){.kind = RN_ATTR_INT, .i = count}));
    if (count)
      RN_RETURN_IF_ERROR(
          infer(call, arg->type_attr, (rn_attr_value_t){.kind = RN_ATTR_TYPE, .type = types[0]}));
    RN_RETURN_IF_ERROR(
        infer(call, arg->type_list_attr,
              (rn_attr_value_t){
                  .kind = RN_ATTR_TYPE, .is_list = true, .count = count, .list_type = types}));
  }
  for (int i = 0; i < def->attr_count; ++i)
    if (!call->is_known[i] && def->attrs[i].has_default) {
      call->attrs[i] = def->attrs[i].default_value;
      call->is_known[i] = true;
    }
  return RN_OK;
}

static rn_status_t put_small(far_call_t* call, const rn_tensor_t* tensor) {
  rn_pb_TensorProto_t proto;
  rn_strbuf_t* out = &call->operation;
  RN_RETURN_IF_ERROR(rn_tensor_to_proto(tensor, RN_TENSOR_CONTENT, &call->arena, &proto));
  size_t mark = rn_pb_begin(out, rn_pb_eager_Operation_Input_tensor_field);
  RN_RETURN_IF_ERROR(RN_PB_ENCODE(TensorProto, &proto, NULL, out));
  rn_pb_end(out, mark);
  return RN_OK;
}

static rn_status_t put_input(far_call_t* call, rn_eager_handle_t* input) {
  rn_eager_client_t* client = call->device->client;
  rn_dtype_t dtype = rn_eager_handle_dtype(input);
  const far_value_t* value = far_value(input);
  const rn_tensor_t* tensor = NULL;
  const uint32_t field = rn_pb_eager_Operation_Input_remote_handle_field;
  // Functions may use resources of other tasks: the called task decides where to run what.
  bool stays = value && (value->device->task == call->device->task ||
                         (dtype == RN_RESOURCE && call->is_call));
  if (stays) {
    put_handle(&call->operation, field, value->name, value->device->name, dtype);
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(check_movable(call->device, dtype, rn_eager_handle_device(input)));
  if (!value) RN_RETURN_IF_ERROR(rn_eager_handle_value(input, &tensor));
  if (tensor && rn_tensor_bytes(tensor) <= SMALL && dtype != RN_STRING)
    return put_small(call, tensor);
  rn_far_name_t name = {rn_far_next_op(client), 0};
  RN_RETURN_IF_ERROR(rn_vec_reserve(&call->brought, client->allocator, call->brought.count + 1));
  RN_RETURN_IF_ERROR(value ? bring(call->device, call->context, value, dtype, name.op)
                           : upload(call->device, call->context, name.op, tensor));
  call->brought.items[call->brought.count++] = name;
  put_handle(&call->operation, field, name, call->device->name, dtype);
  return RN_OK;
}

static rn_status_t put_inputs(far_call_t* call) {
  for (int32_t i = 0; i < rn_eager_op_input_count(call->op); ++i) {
    size_t input = rn_pb_begin(&call->operation, rn_pb_eager_Operation_op_inputs_field);
    RN_RETURN_IF_ERROR(put_input(call, rn_eager_op_input(call->op, i)));
    rn_pb_end(&call->operation, input);
  }
  return rn_strbuf_status(&call->operation);
}

static rn_status_t output_types(far_call_t* call, rn_dtype_t** out, int32_t* out_count) {
  const rn_op_def_t* def = call->def;
  int64_t total = 0;
  int32_t length = 0;
  for (int i = 0; i < def->output_count; ++i) {
    RN_RETURN_IF_ERROR(rn_eager_op_length(call->op, rn_str(def->outputs[i].name), true, &length));
    total += length > 0 ? length : 0;
  }
  if (total > INT32_MAX) return rn_invalid_argument("%s has too many outputs", def->name);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&call->arena, (size_t)total, out));
  *out_count = 0;
  for (int i = 0; i < def->output_count; ++i) {
    const rn_arg_def_t* arg = &def->outputs[i];
    RN_RETURN_IF_ERROR(rn_eager_op_length(call->op, rn_str(arg->name), true, &length));
    for (int32_t k = 0; k < length; ++k) (*out)[(*out_count)++] = rn_arg_type(arg, call->attrs, k);
  }
  return RN_OK;
}

// --- Functions: a task hears of those that it does not know before one is called.

static bool knows_locked(const rn_far_t* task, const rn_function_t* function) {
  for (size_t i = 0; i < task->functions.count; ++i)
    if (task->functions.items[i] == function) return true;
  return false;
}

// A function of the same name was removed here, so remove it there too.
static void put_removal(rn_far_t* task, rn_str_t name, rn_strbuf_t* out) {
  for (size_t i = 0; i < task->functions.count; ++i) {
    rn_function_t* known = task->functions.items[i];
    if (!rn_str_eq(known->name, name)) continue;
    size_t item = rn_pb_begin(out, rn_pb_eager_EnqueueRequest_queue_field);
    size_t removal = rn_pb_begin(out, rn_pb_eager_QueueItem_remove_function_field);
    rn_pb_put_str(out, rn_pb_eager_RemoveFunctionOp_function_name_field, name);
    rn_pb_end(out, removal);
    rn_pb_end(out, item);
    task->functions.items[i] = task->functions.items[--task->functions.count];
    rn_function_release(known);
    return;
  }
}

static rn_status_t put_function_locked(rn_eager_client_t* client, rn_far_t* task,
                                       rn_function_t* function, rn_strbuf_t* out) {
  // Functions that eager execution makes for itself stay here.
  if (rn_str_starts_with(function->name, RN_STR("__wrapped__")) || knows_locked(task, function))
    return RN_OK;
  put_removal(task, function->name, out);
  RN_RETURN_IF_ERROR(rn_vec_push(&task->functions, client->allocator, function));
  rn_function_retain(function);
  size_t item = rn_pb_begin(out, rn_pb_eager_EnqueueRequest_queue_field);
  size_t entry = rn_pb_begin(out, rn_pb_eager_QueueItem_register_function_field);
  rn_pb_put_str(out, rn_pb_eager_RegisterFunctionOp_function_def_field, function->bytes);
  rn_pb_end(out, entry);
  rn_pb_end(out, item);
  return RN_OK;
}

static rn_status_t tell_functions(far_call_t* call) {
  rn_eager_client_t* client = call->device->client;
  rn_far_t* task = call->device->task;
  rn_graph_t* library = rn_eager_library(client->eager);
  rn_strbuf_t items;
  RN_VEC(rn_function_t*) found = {0};
  rn_status_t status = RN_OK;
  rn_strbuf_init(&items, client->allocator);
  // Backwards: other threads may remove functions meanwhile, and those behind them move forward.
  for (size_t i = rn_graph_function_count(library); rn_ok(status) && i-- > 0;) {
    rn_function_t* function = rn_graph_function_at(library, i);
    if (function) status = rn_vec_push(&found, client->allocator, function);
    if (function && !rn_ok(status)) rn_function_release(function);
  }
  for (size_t i = found.count; i-- > 0;) {
    rn_mutex_lock(&task->mutex);
    if (rn_ok(status)) status = put_function_locked(client, task, found.items[i], &items);
    rn_mutex_unlock(&task->mutex);
    rn_function_release(found.items[i]);
  }
  rn_vec_free(&found, client->allocator);
  if (rn_ok(status)) status = rn_strbuf_status(&items);
  if (rn_ok(status) && items.size)
    status = tell(client, task, call->context, rn_strbuf_view(&items));
  if (!rn_ok(status)) rn_far_forget_functions(task);  // it may not have heard of them
  rn_strbuf_clear(&items);
  return status;
}

static bool calls_functions(const far_call_t* call) {
  if (call->def->role == RN_ROLE_FUNCTION) return true;
  for (int i = 0; i < call->def->attr_count; ++i)
    if (call->def->attrs[i].kind == RN_ATTR_FUNC) return true;
  return false;
}

// --- Answers

// The device of output |i|: from the response, else where the op was asked to run.
static rn_far_device_t* device_of(const far_call_t* call, rn_str_t answer, int32_t i) {
  rn_pb_scan_t scan = rn_pb_scan(answer);
  rn_pb_field_t field;
  while (rn_pb_scan_next(&scan, &field)) {
    if (field.number != rn_pb_eager_QueueResponse_device_field || i-- > 0) continue;
    rn_far_device_t* device =
        field.bytes.size ? rn_far_find_device(call->device->client, field.bytes) : NULL;
    return device ? device : call->device;
  }
  return call->device;
}

static rn_status_t take_outputs(far_call_t* call, int64_t id, rn_str_t response,
                                const rn_dtype_t* types, int32_t count,
                                rn_eager_handle_t** outputs) {
  rn_str_t answer = rn_field_bytes(response, rn_pb_eager_EnqueueResponse_queue_response_field);
  rn_pb_scan_t scan = rn_pb_scan(answer);
  rn_pb_field_t field;
  int32_t have = 0;
  rn_status_t status = RN_OK;
  while (rn_ok(status) && have < count && rn_pb_scan_next(&scan, &field)) {
    if (field.number != rn_pb_eager_QueueResponse_shape_field) continue;
    rn_far_name_t name = {id, have};
    status = make_handle(device_of(call, answer, have), call->context, name, types[have],
                         field.bytes, &outputs[have]);
    if (rn_ok(status)) have++;
  }
  if (rn_ok(status) && have < count)
    status = rn_internal("%.*s has answered with %d values instead of %d",
                         RN_STR_ARGS(call->device->task->name), have, count);
  for (int32_t i = 0; i < have && !rn_ok(status); ++i) {
    rn_eager_handle_release(outputs[i]);
    outputs[i] = NULL;
  }
  return status;
}

// The name of the op or, for an op that calls a function, of that function.
static rn_status_t put_name(far_call_t* call) {
  rn_str_t name = rn_str(call->def->name);
  if (call->def->role == RN_ROLE_CALL) {
    int f = rn_op_attr_index(call->def, RN_STR("f"));
    if (f < 0 || !call->is_known[f] || !call->attrs[f].func)
      return rn_invalid_argument("%s without the function that it calls", call->def->name);
    name = call->attrs[f].func->name;
  }
  rn_pb_put_str(&call->operation, rn_pb_eager_Operation_name_field, name);
  return RN_OK;
}

static rn_status_t run(far_call_t* call, rn_eager_handle_t** outputs, int32_t* inout_count) {
  rn_eager_client_t* client = call->device->client;
  rn_strbuf_t* out = &call->operation;
  rn_dtype_t* types = NULL;
  rn_message_t response;
  int32_t count = 0;
  int64_t id = rn_far_next_op(client);
  if (calls_functions(call)) RN_RETURN_IF_ERROR(tell_functions(call));
  size_t item = rn_pb_begin(out, rn_pb_eager_EnqueueRequest_queue_field);
  size_t operation = rn_pb_begin(out, rn_pb_eager_QueueItem_operation_field);
  rn_pb_put_uint(out, rn_pb_eager_Operation_id_field, (uint64_t)id);
  RN_RETURN_IF_ERROR(put_attrs(call));
  RN_RETURN_IF_ERROR(put_name(call));
  rn_pb_put_str(out, rn_pb_eager_Operation_device_field, call->device->name);
  if (call->is_call) rn_pb_put_uint(out, rn_pb_eager_Operation_is_function_field, 1);
  RN_RETURN_IF_ERROR(output_types(call, &types, &count));
  if (*inout_count < count)
    return rn_invalid_argument("Expecting %d outputs, but *num_retvals is %d", count, *inout_count);
  RN_RETURN_IF_ERROR(put_inputs(call));
  rn_pb_end(out, operation);
  rn_pb_end(out, item);
  RN_RETURN_IF_ERROR(rn_strbuf_status(out));
  RN_RETURN_IF_ERROR(
      enqueue(client, call->device->task, call->context, rn_strbuf_view(out), &response));
  rn_status_t status = take_outputs(call, id, rn_message_view(&response), types, count, outputs);
  rn_message_clear(&response);
  if (rn_ok(status)) *inout_count = count;
  return status;
}

static rn_status_t execute(void* self, rn_eager_op_t* op, rn_eager_handle_t** outputs,
                           int32_t* inout_count) {
  rn_far_device_t* device = self;
  rn_eager_client_t* client = device->client;
  const rn_op_def_t* def = rn_eager_op_def(op);
  far_call_t call = {.device = device,
                     .op = op,
                     .def = def,
                     .context = context_of(device->task),
                     .opening = opening_of(device->task),
                     .is_call = def->role == RN_ROLE_FUNCTION || def->role == RN_ROLE_CALL};
  rn_arena_init(&call.arena, client->allocator);
  rn_strbuf_init(&call.operation, client->allocator);
  rn_status_t status = run(&call, outputs, inout_count);
  for (size_t i = 0; i < call.brought.count; ++i)
    forget(client, device->task, call.opening, call.brought.items[i]);
  rn_vec_free(&call.brought, client->allocator);
  rn_strbuf_clear(&call.operation);
  rn_arena_clear(&call.arena);
  return status;
}

rn_eager_custom_device_t rn_far_table(rn_far_device_t* device) {
  return (rn_eager_custom_device_t){.self = device,
                                    .is_remote = true,
                                    .copy_to = copy_to,
                                    .copy_from = copy_from,
                                    .execute = execute};
}

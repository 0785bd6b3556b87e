// Send and Recv pass values between the partitions of a step through its rendezvous. The kernels
// are the same on every device; only the copies differ.
#include "base/container.h"
#include "base/pool.h"
#include "device/device.h"
#include "kernels/kernel_rows.h"

// From this many bytes on, issuing a copy from ordinary host memory to a device may wait for the
// work that the device does now.
#define LARGE ((size_t)64 << 10)
// Bytes that a thread copies at a time.
#define GRAIN ((size_t)4 << 20)

typedef struct channel_t {
  rn_allocator_t allocator;
  rn_str_t prefix;  // Owned: "sender;incarnation;receiver;name"
  bool is_remote;   // the sender is another task
} channel_t;

static bool are_of_one_task(rn_str_t a, rn_str_t b) {
  rn_device_spec_t x, y;
  return rn_device_spec_parse(a, &x) && rn_device_spec_parse(b, &y) && rn_str_eq(x.job, y.job) &&
         x.replica == y.replica && x.task == y.task;
}

static rn_status_t channel_init(const rn_kernel_init_t* init, void* state) {
  channel_t* channel = state;
  channel->allocator = init->allocator;
  channel->is_remote =
      !are_of_one_task(rn_init_string(init, "send_device"), rn_init_string(init, "recv_device"));
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, init->allocator);
  rn_strbuf_printf(&buf, "%.*s;%016llx;%.*s;%.*s", RN_STR_ARGS(rn_init_string(init, "send_device")),
                   (unsigned long long)rn_init_int(init, "send_device_incarnation"),
                   RN_STR_ARGS(rn_init_string(init, "recv_device")),
                   RN_STR_ARGS(rn_init_string(init, "tensor_name")));
  rn_status_t status = rn_strbuf_status(&buf);
  char* copy = NULL;
  if (rn_ok(status)) status = rn_str_dup(init->allocator, rn_strbuf_view(&buf), &copy);
  if (rn_ok(status)) channel->prefix = rn_str_n(copy, buf.size);
  rn_strbuf_clear(&buf);
  return status;
}

static void channel_destroy(void* state) {
  channel_t* channel = state;
  if (channel->prefix.data)
    rn_free(channel->allocator, (char*)channel->prefix.data, channel->prefix.size + 1);
}

// Appends the rendezvous key of this iteration; outside loops it ends in "0:0".
static void make_key(const rn_kernel_ctx_t* ctx, rn_strbuf_t* key) {
  const channel_t* channel = ctx->state;
  rn_strbuf_init(key, channel->allocator);
  rn_strbuf_printf(key, "%.*s;%llu:%lld", RN_STR_ARGS(channel->prefix),
                   (unsigned long long)ctx->frame, (long long)ctx->iteration);
}

static rn_status_t send(rn_kernel_ctx_t* ctx) {
  if (!ctx->step->rendezvous) return rn_internal("Send in a step that has no rendezvous");
  rn_tensor_t value = {0};
  bool is_host = ctx->kernel->input_is_host[0];
  if (!ctx->is_dead)
    RN_RETURN_IF_ERROR(rn_tensor_keep(
        rn_in(ctx, 0), is_host ? ctx->kernel->host_memory : ctx->kernel->device_memory, &value));
  rn_strbuf_t key;
  make_key(ctx, &key);
  rn_status_t status = rn_strbuf_status(&key);
  if (rn_ok(status))
    status = rn_rendezvous_send(ctx->step->rendezvous, rn_strbuf_view(&key), &value, ctx->is_dead,
                                is_host ? NULL : ctx->kernel->device);
  rn_strbuf_clear(&key);
  rn_tensor_clear(&value);  // a no-op if the rendezvous took it; needed if the call was never made
  return status;
}

// A Recv in progress: it waits for the value first, then for the copies of it.
typedef struct sendrecv_receipt_t {
  rn_recv_t recv;  // first
  rn_kernel_ctx_t* ctx;
  rn_strbuf_t key;
  rn_tensor_t value;    // as received
  rn_tensor_t staged;   // in host memory: between two devices, or that a device reads by itself
  rn_tensor_t arrived;  // in the receiver's memory
  rn_job_t job;         // copies a large value
} sendrecv_receipt_t;

static void receipt_end(sendrecv_receipt_t* receipt, rn_status_t status) {
  rn_kernel_ctx_t* ctx = receipt->ctx;
  if (rn_ok(status)) rn_set_output(ctx, 0, &receipt->arrived);
  rn_tensor_clear(&receipt->value);
  rn_tensor_clear(&receipt->staged);
  rn_tensor_clear(&receipt->arrived);
  rn_strbuf_clear(&receipt->key);
  RN_FREE(ctx->kernel->allocator, receipt);
  rn_done(ctx, status);
}

static void on_copied(void* arg, rn_status_t status) { receipt_end(arg, status); }

// Copies from host memory into the receiver's memory.
static void copy_in(sendrecv_receipt_t* receipt, rn_tensor_t* from) {
  rn_kernel_ctx_t* ctx = receipt->ctx;
  rn_status_t status = rn_tensor_create(ctx->kernel->device_memory, from->dtype,
                                        rn_tensor_shape(from), &receipt->arrived);
  if (rn_ok(status))
    ctx->kernel->device->vtable->copy_from_host(ctx->kernel->device, from, &receipt->arrived,
                                                on_copied, receipt);
  else
    receipt_end(receipt, status);
}

static void copy_pieces(void* arg, int64_t first, int64_t end) {
  const sendrecv_receipt_t* receipt = arg;
  size_t size = rn_tensor_bytes(&receipt->value), from = (size_t)first * GRAIN;
  size_t until = (size_t)end * GRAIN < size ? (size_t)end * GRAIN : size;
  memcpy((char*)receipt->staged.data + from, (const char*)receipt->value.data + from, until - from);
}

// Copies a value from the network where the device reads it by itself.
static void stage(rn_job_t* job) {
  sendrecv_receipt_t* receipt = RN_CONTAINER_OF(job, sendrecv_receipt_t, job);
  const rn_kernel_ctx_t* ctx = receipt->ctx;
  rn_status_t status =
      rn_device_host_tensor(ctx->kernel->device, ctx->kernel->host_memory, receipt->value.dtype,
                            rn_tensor_shape(&receipt->value), &receipt->staged);
  if (!rn_ok(status)) {
    receipt_end(receipt, status);
    return;
  }
  size_t pieces = (rn_tensor_bytes(&receipt->value) + GRAIN - 1) / GRAIN;
  rn_pool_for(ctx->step->env->pool, (int64_t)pieces, 1, copy_pieces, receipt);
  rn_tensor_clear(&receipt->value);
  copy_in(receipt, &receipt->staged);
}

// Whether the thread that brings |value|, the network's, might have to wait for the device.
static bool must_stage(const rn_kernel_ctx_t* ctx, const rn_tensor_t* value) {
  return ((const channel_t*)ctx->state)->is_remote && rn_tensor_bytes(value) >= LARGE &&
         ctx->kernel->device->transfer_memory.fn && ctx->step->env->pool;
}

static void on_staged(void* arg, rn_status_t status) {
  sendrecv_receipt_t* receipt = arg;
  if (!rn_ok(status)) {
    receipt_end(receipt, status);
  } else if (receipt->ctx->kernel->output_is_host[0]) {
    receipt->arrived = receipt->staged;
    receipt->staged = (rn_tensor_t){0};
    receipt_end(receipt, RN_OK);
  } else {
    copy_in(receipt, &receipt->staged);
  }
}

static void on_received(rn_recv_t* recv, rn_status_t status, rn_tensor_t* value, bool is_dead,
                        rn_device_t* device) {
  sendrecv_receipt_t* receipt = (sendrecv_receipt_t*)recv;
  rn_kernel_ctx_t* ctx = receipt->ctx;
  receipt->value = *value;
  *value = (rn_tensor_t){0};
  bool to_host = ctx->kernel->output_is_host[0];
  if (!rn_ok(status) || is_dead) {
    receipt_end(receipt, status);  // a dead value leaves the output unset
  } else if (!device && to_host) {
    receipt->arrived = receipt->value;
    receipt->value = (rn_tensor_t){0};
    receipt_end(receipt, RN_OK);
  } else if (!device && must_stage(ctx, &receipt->value)) {
    receipt->job.run = stage;
    rn_pool_submit(ctx->step->env->pool, &receipt->job);
  } else if (!device) {
    copy_in(receipt, &receipt->value);
  } else {
    status = rn_device_host_tensor(device, ctx->kernel->host_memory, receipt->value.dtype,
                                   rn_tensor_shape(&receipt->value), &receipt->staged);
    if (rn_ok(status))
      device->vtable->copy_to_host(device, &receipt->value, &receipt->staged, on_staged, receipt);
    else
      receipt_end(receipt, status);
  }
}

static void receive(rn_kernel_ctx_t* ctx) {
  sendrecv_receipt_t* receipt = NULL;
  rn_status_t status = ctx->step->rendezvous ? RN_NEW(ctx->kernel->allocator, &receipt)
                                             : rn_internal("Recv in a step that has no rendezvous");
  if (!rn_ok(status)) {
    rn_done(ctx, status);
    return;
  }
  receipt->recv.fn = on_received;
  receipt->ctx = ctx;
  make_key(ctx, &receipt->key);
  status = rn_strbuf_status(&receipt->key);
  if (rn_ok(status))
    rn_rendezvous_recv(ctx->step->rendezvous, rn_strbuf_view(&receipt->key), &receipt->recv);
  else
    receipt_end(receipt, status);
}

#define SEND(name, type, host)                                                         \
  {                                                                                    \
    .op = name, .device = type, .host_args = host, .flags = RN_KERNEL_KEEPS_INPUTS,    \
    .state_size = sizeof(channel_t), .init = channel_init, .destroy = channel_destroy, \
    .compute = send                                                                    \
  }
#define RECV(name, type, host)                                                         \
  {                                                                                    \
    .op = name, .device = type, .host_args = host, .flags = RN_KERNEL_OWN_OUTPUTS,     \
    .state_size = sizeof(channel_t), .init = channel_init, .destroy = channel_destroy, \
    .compute_async = receive                                                           \
  }
#define ALL(type)                                                                    \
  SEND("_Send", type, NULL), SEND("_HostSend", type, RN_HOST_ARGS("tensor")),        \
      SEND("Send", type, NULL), RECV("_Recv", type, NULL), RECV("Recv", type, NULL), \
      RECV("_HostRecv", type, RN_HOST_ARGS("tensor"))

static const rn_kernel_def_t rows[] = {ALL("CPU"), ALL("DEFAULT")};
RN_KERNEL_FAMILY(sendrecv, rows);

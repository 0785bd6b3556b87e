// A step's rendezvous as the function table that plug-in kernels use.
#include "capi/plugin/kernel.h"

static rn_str_t key_of(const TF_RendezvousParsedKey* key) {
  return key ? rn_str_n(key->full_key, key->full_key_size) : (rn_str_t){0};
}

static void send(void* rendezvous, TF_RendezvousSend_Params* params) {
  if (!params) return;
  rn_tensor_t value = {0};
  rn_str_t key = key_of(params->key);
  rn_status_t status = key.data ? RN_OK : rn_invalid_argument("A tensor is sent without a key");
  if (rn_ok(status) && params->tensor) {
    status = rn_tensor_keep(&params->tensor->tensor, rn_capi_allocator(), &value);
  }
  if (rn_ok(status)) {
    status = rn_rendezvous_send(rendezvous, key, &value, params->is_dead || !params->tensor, NULL);
  }
  rn_capi_set(params->status, status);
}

// A pending receive of a plug-in.
typedef struct rendezvous_waiter_t {
  rn_recv_t recv;
  TF_RendezvousDoneCallbackImpl on_done;
  size_t block_size;
  char key[];
} rendezvous_waiter_t;

static void answer(const TF_RendezvousDoneCallbackImpl* on_done, rn_status_t status,
                   TF_Tensor* tensor, bool is_dead) {
  TF_Status said = {status};
  TF_RendezvousDoneCallback_Params params = {
      .context = on_done->context, .status = &said, .tensor = tensor, .is_dead = is_dead};
  if (on_done->callback) on_done->callback(on_done->context, &params);
  rn_status_free(said.rep);
}

static void received(rn_recv_t* recv, rn_status_t status, rn_tensor_t* value, bool is_dead,
                     rn_device_t* device) {
  rendezvous_waiter_t* waiter = (rendezvous_waiter_t*)recv;
  TF_Tensor* tensor = NULL;
  (void)device;
  if (rn_ok(status) && !is_dead) status = rn_capi_tensor_wrap(value, &tensor);
  answer(&waiter->on_done, status, tensor, is_dead);
  TF_DeleteTensor(tensor);
  rn_free(rn_capi_allocator(), waiter, waiter->block_size);
}

static void receive(void* rendezvous, TF_RendezvousAsyncRecv_Params* params) {
  if (!params) return;
  rn_str_t key = key_of(params->key);
  rendezvous_waiter_t* waiter = NULL;
  size_t size = sizeof *waiter + key.size;
  rn_status_t status = key.data ? rn_alloc_zeroed(rn_capi_allocator(), size, (void**)&waiter)
                                : rn_invalid_argument("A tensor is waited for without a key");
  if (!rn_ok(status)) {
    answer(&params->on_done, status, NULL, false);
    return;
  }
  waiter->recv.fn = received;
  waiter->on_done = params->on_done;
  waiter->block_size = size;
  memcpy(waiter->key, key.data, key.size);
  rn_rendezvous_recv(rendezvous, rn_str_n(waiter->key, key.size), &waiter->recv);
}

static void start_abort(void* rendezvous, const TF_Status* status) {
  rn_status_t reason = rn_capi_status_of(status);
  if (rn_ok(reason)) reason = rn_aborted("The rendezvous was aborted");
  rn_rendezvous_fail(rendezvous, reason);
}

TF_RendezvousThunk TF_GetRendezvous(TF_OpKernelContext* ctx) {
  rn_rendezvous_t* rendezvous = ctx ? ctx->ctx->step->rendezvous : NULL;
  if (!rendezvous) return (TF_RendezvousThunk){0};
  return (TF_RendezvousThunk){rendezvous, send, receive, start_abort};
}

// RecvTensor: see recv.h.
#include "dist/worker/recv.h"

#include "base/container.h"
#include "device/device.h"

typedef struct asked_t {
  rn_recv_t recv;  // first
  rn_recv_source_t source;
  rn_recv_tensor_t* call;
  rn_rendezvous_t* rendezvous;  // Retained
  rn_cancel_entry_t gone;       // in the call's cancellation
  bool is_linked;
  rn_tensor_t there;  // in the memory of a device, while it is copied
  rn_tensor_t here;   // the copy
} asked_t;

static void answer(asked_t* asked, rn_status_t status, rn_tensor_t* value, bool is_dead) {
  rn_recv_tensor_t* call = asked->call;
  rn_rendezvous_t* rendezvous = asked->rendezvous;
  rn_steps_t* steps = asked->source.steps;
  if (asked->is_linked) rn_cancel_remove(call->call.cancel, &asked->gone);
  call->value = *value;
  call->is_dead = is_dead;
  *value = (rn_tensor_t){0};
  RN_FREE(asked->source.allocator, asked);
  rn_rendezvous_release(rendezvous);
  rn_steps_taken(steps, call->step);
  rn_call_done(&call->call, status);
}

// The node whose value |key| names, "...;edge_12_node;0:0".
static rn_str_t node_of_key(rn_str_t key) {
  for (int i = 0; i < 3; ++i) rn_str_split(&key, ';');
  rn_str_t name = rn_str_split(&key, ';');
  for (int i = 0; i < 2; ++i) rn_str_split(&name, '_');
  return name;
}

// On the device's thread. If the copy failed, the step has: its other parts must not wait for it.
static void on_copied(void* arg, rn_status_t status) {
  asked_t* asked = arg;
  rn_recv_source_t source = asked->source;
  rn_tensor_t value = asked->here;
  rn_tensor_clear(&asked->there);
  if (!rn_ok(status)) {
    rn_tensor_clear(&value);
    status = rn_status_annotate(status, "\n\t [[{{node %.*s}}]]",
                                RN_STR_ARGS(node_of_key(asked->call->key)));
    rn_rendezvous_fail(asked->rendezvous, rn_status_copy(status));
  }
  answer(asked, status, &value, false);
  source.count(source.self, true);
}

// Copies a value out of the memory of |device|. No thread waits: kernels go on meanwhile, and so
// does the network's thread.
static void copy_out(asked_t* asked, rn_tensor_t* value, rn_device_t* device) {
  asked->there = *value;
  *value = (rn_tensor_t){0};
  asked->source.count(asked->source.self, false);
  rn_status_t status = rn_device_host_tensor(device, asked->source.memory, asked->there.dtype,
                                             rn_tensor_shape(&asked->there), &asked->here);
  if (rn_ok(status))
    device->vtable->copy_to_host(device, &asked->there, &asked->here, on_copied, asked);
  else
    on_copied(asked, status);
}

static void on_asked(rn_recv_t* recv, rn_status_t status, rn_tensor_t* value, bool is_dead,
                     rn_device_t* device) {
  asked_t* asked = (asked_t*)recv;
  if (rn_ok(status) && device && !is_dead)
    copy_out(asked, value, device);
  else
    answer(asked, status, value, is_dead);
}

// The caller is gone. Drops the step if it was never started, because no one else will clean it up.
static void on_asker_gone(rn_cancel_entry_t* entry) {
  asked_t* asked = (asked_t*)((char*)entry - __builtin_offsetof(asked_t, gone));
  rn_steps_t* steps = asked->source.steps;
  int64_t step = asked->call->step;
  bool is_back = rn_rendezvous_take_back(asked->rendezvous, &asked->recv);
  rn_steps_drop_unowned(steps, step, rn_cancelled("RecvTensor was cancelled"));
  rn_tensor_t none = {0};
  if (is_back) on_asked(&asked->recv, rn_cancelled("RecvTensor was cancelled"), &none, false, NULL);
}

void rn_recv_serve(const rn_recv_source_t* source, rn_recv_tensor_t* call) {
  asked_t* asked = NULL;
  rn_status_t status = RN_NEW(source->allocator, &asked);
  if (rn_ok(status)) status = rn_steps_get(source->steps, call->step, &asked->rendezvous);
  if (!rn_ok(status)) {
    if (asked) RN_FREE(source->allocator, asked);
    rn_call_done(&call->call, status);
    return;
  }
  asked->recv.fn = on_asked;
  asked->source = *source;
  asked->call = call;
  asked->gone.fn = on_asker_gone;
  asked->is_linked = call->call.cancel && rn_cancel_add(call->call.cancel, &asked->gone);
  if (call->call.cancel && !asked->is_linked) {
    rn_tensor_t none = {0};
    rn_steps_drop_unowned(source->steps, call->step, rn_cancelled("RecvTensor was cancelled"));
    on_asked(&asked->recv, rn_cancelled("RecvTensor was cancelled"), &none, false, NULL);
    return;
  }
  rn_rendezvous_recv_here(asked->rendezvous, call->key, &asked->recv);
}

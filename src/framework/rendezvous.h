// Rendezvous: where a Send meets its Recv, by key.
//
// One a step. Either side may come first. A value is taken once. Failing the rendezvous fails all
// who wait and all who come later.
#ifndef RUNNEL_FRAMEWORK_RENDEZVOUS_H_
#define RUNNEL_FRAMEWORK_RENDEZVOUS_H_

#include "base/str.h"
#include "tensor/tensor.h"

typedef struct rn_device_t rn_device_t;
typedef struct rn_rendezvous_t rn_rendezvous_t;

// A waiting receiver, embedded in its own struct. |fn| gets the value (owned by the callee; unset
// when |is_dead| or on error), the device whose memory it lies in (NULL: host memory) and a status
// it owns. Called once, without locks held, on the sender's thread or in recv itself.
typedef struct rn_recv_t {
  void (*fn)(struct rn_recv_t* recv, rn_status_t status, rn_tensor_t* value, bool is_dead,
             rn_device_t* device);
  struct rn_recv_t* next;  // the rendezvous's
  rn_str_t key;
} rn_recv_t;

// Where values come from that no Send of this process makes, unless they were put in already. Set
// once, before anybody comes.
typedef struct rn_remote_t {
  void* self;
  bool (*has)(void* self, rn_str_t key);  // whether |key| is one of those
  // Calls recv->fn once; the caller keeps |key| and |recv| until then.
  void (*recv)(void* self, rn_str_t key, rn_recv_t* recv);
  void (*give_up)(void* self);  // the rendezvous has failed: so does what is under way
  void (*destroy)(void* self);  // with the rendezvous; nothing is under way
} rn_remote_t;

// What others see of an error that happened elsewhere in the step: marks it so. Takes |status|.
RN_MUST_USE rn_status_t rn_status_derive(rn_status_t status);
bool rn_status_is_derived(rn_status_t status);

RN_MUST_USE rn_status_t rn_rendezvous_create(rn_allocator_t allocator, rn_rendezvous_t** out);
void rn_rendezvous_set_remote(rn_rendezvous_t* rendezvous, rn_remote_t remote);
void rn_rendezvous_retain(rn_rendezvous_t* rendezvous);
void rn_rendezvous_release(rn_rendezvous_t* rendezvous);

// Puts |value| (moved) under |key| (copied).
RN_MUST_USE rn_status_t rn_rendezvous_send(rn_rendezvous_t* rendezvous, rn_str_t key,
                                           rn_tensor_t* value, bool is_dead, rn_device_t* device);
// |key| must live until |recv->fn| was called.
void rn_rendezvous_recv(rn_rendezvous_t* rendezvous, rn_str_t key, rn_recv_t* recv);
// Takes a receiver out that waits for a value of this process: true if it did; its function is then
// not called.
bool rn_rendezvous_take_back(rn_rendezvous_t* rendezvous, rn_recv_t* recv);
// Shows the values in host memory that wait to |takes|, under a lock; one that it wants it moves
// out of |value| and says true.
void rn_rendezvous_sweep(rn_rendezvous_t* rendezvous,
                         bool (*takes)(void* self, rn_str_t key, rn_tensor_t* value), void* self);
// Whether nobody waits in it, neither a value nor a receiver.
bool rn_rendezvous_is_empty(rn_rendezvous_t* rendezvous);
// Takes |status|.
void rn_rendezvous_fail(rn_rendezvous_t* rendezvous, rn_status_t status);

#endif  // RUNNEL_FRAMEWORK_RENDEZVOUS_H_

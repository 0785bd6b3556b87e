// Rendezvous: where a Send meets its Recv, by key.
//
// There is one rendezvous per step. Either side may come first. A value is received once. Failing
// the rendezvous fails all waiting and all later calls.
//
// doc/invariants.md: invariant 35.
#ifndef RUNNEL_FRAMEWORK_RENDEZVOUS_H_
#define RUNNEL_FRAMEWORK_RENDEZVOUS_H_

#include "base/str.h"
#include "tensor/tensor.h"

typedef struct rn_device_t rn_device_t;
typedef struct rn_rendezvous_t rn_rendezvous_t;

// A waiting receiver, embedded in its own struct. |fn| gets the value (owned by the callee; unset
// when |is_dead| or on error), the device whose memory it is in (NULL for host memory) and a status
// that it owns. Called once, without locks held, on the sender's thread or in recv itself.
typedef struct rn_recv_t {
  void (*fn)(struct rn_recv_t* recv, rn_status_t status, rn_tensor_t* value, bool is_dead,
             rn_device_t* device);
  struct rn_recv_t* next;  // private to the rendezvous
  rn_str_t key;
} rn_recv_t;

// Source of values that other processes send, unless they are in the rendezvous already. Set once,
// before the first send or receive.
typedef struct rn_remote_t {
  void* self;
  bool (*has)(void* self, rn_str_t key);  // whether |key| comes from another process
  // Calls recv->fn once; the caller keeps |key| and |recv| until then.
  void (*recv)(void* self, rn_str_t key, rn_recv_t* recv);
  void (*give_up)(void* self);  // the rendezvous has failed: fail all receives in progress
  // Called with the rendezvous's destruction; no receive is in progress.
  void (*destroy)(void* self);
} rn_remote_t;

// Marks |status|, which it takes, as derived: a consequence of an error elsewhere in the step.
RN_MUST_USE rn_status_t rn_status_derive(rn_status_t status);
bool rn_status_is_derived(rn_status_t status);

RN_MUST_USE rn_status_t rn_rendezvous_create(rn_allocator_t allocator, rn_rendezvous_t** out);
void rn_rendezvous_set_remote(rn_rendezvous_t* rendezvous, rn_remote_t remote);
void rn_rendezvous_retain(rn_rendezvous_t* rendezvous);
void rn_rendezvous_release(rn_rendezvous_t* rendezvous);

// Puts |value| (moved) under |key| (copied).
RN_MUST_USE rn_status_t rn_rendezvous_send(rn_rendezvous_t* rendezvous, rn_str_t key,
                                           rn_tensor_t* value, bool is_dead, rn_device_t* device);
// Receives the value under |key|, which must live until |recv->fn| is called.
void rn_rendezvous_recv(rn_rendezvous_t* rendezvous, rn_str_t key, rn_recv_t* recv);
// The same for a value that this process sends, whatever its key says.
void rn_rendezvous_recv_here(rn_rendezvous_t* rendezvous, rn_str_t key, rn_recv_t* recv);
// Removes a receiver that waits for a value of this process. Returns true if it was waiting; its
// function is then not called.
bool rn_rendezvous_take_back(rn_rendezvous_t* rendezvous, rn_recv_t* recv);
// Calls |takes| under a lock for each waiting value in host memory. To take a value, it moves it
// out of |value| and returns true.
void rn_rendezvous_sweep(rn_rendezvous_t* rendezvous,
                         bool (*takes)(void* self, rn_str_t key, rn_tensor_t* value), void* self);
// Whether neither a value nor a receiver is waiting.
bool rn_rendezvous_is_empty(rn_rendezvous_t* rendezvous);
// Fails the rendezvous; takes ownership of |status|.
void rn_rendezvous_fail(rn_rendezvous_t* rendezvous, rn_status_t status);

#endif  // RUNNEL_FRAMEWORK_RENDEZVOUS_H_

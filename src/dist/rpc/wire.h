// Wires: tensors between tasks by UCX (ucx.h), over InfiniBand, RoCE, shared memory or TCP.
//
// Calls stay on their channels; a wire carries large values of RecvTensor alone. A receiver *dials*
// the sender, whose address it learns from a response, and greets it with the unguessable name of
// this line and its own address, so that the sender can dial back. Its requests then name the line
// and a number, under which it *expects* the value. The sender *puts* the value there, with its
// type and shape, and answers the request when it is gone: so the call lasts as long as the
// transfer, and whatever ends the call (its cancellation, a dead peer) ends both. What nobody
// expects is dropped unread. If UCX fails at the sender, the answer has the value itself.
//
// One thread has UCX to itself, and sleeps while nothing happens.
//
// doc/invariants.md: invariant 52a.
#ifndef RUNNEL_DIST_RPC_WIRE_H_
#define RUNNEL_DIST_RPC_WIRE_H_

#include "base/env.h"
#include "dist/rpc/loan.h"

// Smaller tensors are in the response itself.
#define RN_WIRE_MIN ((size_t)256 << 10)
// Dimensions of a tensor, and bytes of an address. Tensors with more dimensions are rare.
#define RN_WIRE_MAX_RANK 16
#define RN_WIRE_MAX_ADDRESS ((size_t)8 << 10)

typedef struct rn_wire_t rn_wire_t;

typedef struct rn_wire_options_t {
  const rn_env_t* env;  // outlives the wire
  rn_allocator_t allocator;
  rn_allocator_t landing;  // of received values
  size_t max_value;        // larger ones are refused before they are allocated; 0: any
  bool is_local;     // UCX uses the loopback interface only, unless UCX_NET_DEVICES names others
  int64_t lease_ns;  // how long a value may take that the other end has given up
} rn_wire_options_t;

// UNIMPLEMENTED if UCX is not installed, UNAVAILABLE if it finds no transport.
RN_MUST_USE rn_status_t rn_wire_create(const rn_wire_options_t* options, rn_wire_t** out);
// Ends everything that is under way: puts are not sent. NULL is fine.
void rn_wire_stop(rn_wire_t* wire);
// Stops it. No value may be expected any more. NULL is fine.
void rn_wire_destroy(rn_wire_t* wire);
// With a seal that tells whether it is whole, and of which version of UCX.
rn_str_t rn_wire_address(const rn_wire_t* wire);

// Lines, by name. Any thread.

// Dials |address|; the line can be named at once. INVALID_ARGUMENT if it is not an address, or one
// of another version of UCX.
RN_MUST_USE rn_status_t rn_wire_dial(rn_wire_t* wire, rn_str_t address, rn_loan_name_t* out_line);
// Whether the line was dialed, here or there, and has not failed.
bool rn_wire_has(rn_wire_t* wire, rn_loan_name_t line);
// Ends a line and what is expected on it, with UNAVAILABLE.
void rn_wire_hang_up(rn_wire_t* wire, rn_loan_name_t line);

// The sender's side. Any thread.

// A value to be put, embedded in its owner. The owner sets the first fields.
typedef struct rn_wire_put_t {
  rn_loan_name_t line;       // that the receiver has dialed
  uint64_t number;           // under which it expects the value
  const rn_tensor_t* value;  // Borrowed until |done|
  // Called once, on the wire's thread, which must not block.
  void (*done)(struct rn_wire_put_t* put, bool is_sent);
  struct wire_sending_t* sending;  // for the wire only
} rn_wire_put_t;

// Whether |value| may be put on a wire.
bool rn_wire_may_put(const rn_tensor_t* value);
// False if the line is not known, the wire has stopped, or there is no memory: |done| will not be
// called.
bool rn_wire_put(rn_wire_t* wire, rn_wire_put_t* put);
// The receiver of |put|, which has not ended, is gone. If UCX has not noticed within the lease, its
// line ends.
void rn_wire_give_up(rn_wire_t* wire, rn_wire_put_t* put);

// The receiver's side. Any thread.

// A value that is expected, embedded in its owner.
typedef struct rn_wire_take_t {
  rn_loan_name_t line;  // set by the owner, like the next
  // Called once, on the wire's thread, if rn_wire_settle has returned false; owns |status|.
  void (*done)(struct rn_wire_take_t* take, rn_status_t status);
  uint64_t number;    // set by rn_wire_expect
  rn_tensor_t value;  // once it has come; the owner's
  // For the wire only.
  struct wire_landing_t* landing;
  rn_status_t status;
  bool has_come, is_awaited;
  int64_t deadline_ns;  // if it is awaited
} rn_wire_take_t;

// Expects a value; rn_wire_settle must follow. Fails without memory.
RN_MUST_USE rn_status_t rn_wire_expect(rn_wire_t* wire, rn_wire_take_t* take);
// The request that named |take| has been answered. If the value |is_sent|: true if it is there, or
// has failed, with its status in |*out|; false if it is still coming. If it is not sent, whatever
// comes under its number is dropped, and the answer is true.
bool rn_wire_settle(rn_wire_t* wire, rn_wire_take_t* take, bool is_sent, rn_status_t* out);

#endif  // RUNNEL_DIST_RPC_WIRE_H_

// Workers and masters of other processes, behind the vtables of dist/iface.h: requests and
// responses are messages over a channel.
#ifndef RUNNEL_DIST_RPC_REMOTE_H_
#define RUNNEL_DIST_RPC_REMOTE_H_

#include "dist/iface.h"
#include "dist/lease.h"
#include "dist/rpc/wire.h"
#include "net/channel.h"

typedef struct rn_remote_peer_t rn_remote_peer_t;

// What a peer may offer besides its channel: on this machine loans (loan.h), anywhere a wire
// (wire.h).
typedef struct rn_remote_near_t {
  bool borrows;            // tensors may be read from the peer's memory
  rn_loans_t* loans;       // of this process, to show values to the peer; NULL: none are shown
  rn_wire_t* wire;         // of this process, to receive values; NULL: none
  rn_str_t task, to_task;  // this one and the peer's; "": they have no names
} rn_remote_near_t;

// Borrows |channel|, |near->loans|, |near->wire| and |near->to_task|, which must outlive the peer.
RN_MUST_USE rn_status_t rn_remote_peer_create(rn_channel_t* channel, const rn_env_t* env,
                                              const rn_remote_near_t* near,
                                              rn_allocator_t allocator, rn_remote_peer_t** out);
// Stops reading the peer's memory and its wire, and waits for running reads. Must come before the
// channel is destroyed. NULL is fine.
void rn_remote_peer_stop(rn_remote_peer_t* peer);
// No call may be under way. NULL is fine.
void rn_remote_peer_destroy(rn_remote_peer_t* peer);

rn_worker_t* rn_remote_worker(rn_remote_peer_t* peer);
rn_master_t* rn_remote_master(rn_remote_peer_t* peer);
// The peer's channel, for leases.
rn_link_t rn_remote_link(rn_remote_peer_t* peer);

#endif  // RUNNEL_DIST_RPC_REMOTE_H_

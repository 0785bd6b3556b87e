// Workers and masters of other processes, behind the vtables of dist/iface.h: requests and
// responses are messages over a channel.
#ifndef RUNNEL_DIST_RPC_REMOTE_H_
#define RUNNEL_DIST_RPC_REMOTE_H_

#include "dist/iface.h"
#include "dist/lease.h"
#include "net/channel.h"

typedef struct rn_remote_peer_t rn_remote_peer_t;

// Borrows |channel|, which must outlive the peer. |borrows|: tensors may be read from the peer's
// memory, see loan.h.
RN_MUST_USE rn_status_t rn_remote_peer_create(rn_channel_t* channel, const rn_env_t* env,
                                              bool borrows, rn_allocator_t allocator,
                                              rn_remote_peer_t** out);
// Stops reading the peer's memory, and waits for running reads. Must come before the channel is
// destroyed. NULL is fine.
void rn_remote_peer_stop(rn_remote_peer_t* peer);
// No call may be under way. NULL is fine.
void rn_remote_peer_destroy(rn_remote_peer_t* peer);

rn_worker_t* rn_remote_worker(rn_remote_peer_t* peer);
rn_master_t* rn_remote_master(rn_remote_peer_t* peer);
// The peer's channel, for leases.
rn_link_t rn_remote_link(rn_remote_peer_t* peer);

#endif  // RUNNEL_DIST_RPC_REMOTE_H_

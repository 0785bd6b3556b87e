// The servers that a task talks to: those of its own cluster, by name, and those that clients name
// by address (given.h). Channels are made on first use and stay as long as the server.
#ifndef RUNNEL_DIST_SERVER_PEERS_H_
#define RUNNEL_DIST_SERVER_PEERS_H_

#include "dist/given.h"
#include "dist/lease.h"
#include "dist/rpc/wire.h"
#include "dist/status_page.h"

typedef struct rn_server_peers_t rn_server_peers_t;

typedef struct rn_server_peers_options_t {
  const rn_env_t* env;  // outlives them, like all that follows
  rn_allocator_t allocator;
  rn_loop_t* loop;
  rn_leases_t* leases;
  int64_t lease_ns;
  rn_tls_t* tls;        // NULL: plain
  rn_tokens_t* tokens;  // NULL: none. Sent to the tasks of the own cluster only
  bool borrows;         // see rn_remote_near_t, like the next two
  rn_loans_t* loans;
  rn_wire_t* wire;
  // Whether the task may connect to |address|, which a client named.
  bool (*may_reach)(void* self, rn_str_t address);
  void* self;
} rn_server_peers_options_t;

RN_MUST_USE rn_status_t rn_server_peers_create(const rn_server_peers_options_t* options,
                                               rn_server_peers_t** out);
// Names this task, before the first call. Borrows |task|.
void rn_server_peers_set_task(rn_server_peers_t* peers, rn_str_t task);
// Adds a task of the own cluster, before the first call. Borrows the strings, which are
// NUL-terminated. INVALID_ARGUMENT if it is there already.
RN_MUST_USE rn_status_t rn_server_peers_add(rn_server_peers_t* peers, rn_str_t task,
                                            rn_str_t address);
// Ends the channels; no call may begin any more. NULL is fine.
void rn_server_peers_stop(rn_server_peers_t* peers);
// After the leases are destroyed. NULL is fine.
void rn_server_peers_destroy(rn_server_peers_t* peers);

// The tasks of the own cluster: how many, and whether one has |address|.
size_t rn_server_peers_count(const rn_server_peers_t* peers);
bool rn_server_peers_has(const rn_server_peers_t* peers, rn_str_t address);
// Describes the first |count| of them, with |lease_count| |leases|.
void rn_server_peers_view(rn_server_peers_t* peers, const rn_lease_info_t* leases,
                          size_t lease_count, rn_peer_view_t* out, size_t count);

// Finds tasks of the own cluster, and servers by address.
rn_peers_t rn_server_peers_table(rn_server_peers_t* peers);
rn_address_book_t rn_server_peers_reach(rn_server_peers_t* peers);

#endif  // RUNNEL_DIST_SERVER_PEERS_H_

// A remote session: its master is in another process, "grpc://host:port".
//
// The first step sends the graph to the master; later steps send the nodes that were added since.
// Any number of threads may run steps at once.
#ifndef RUNNEL_DIST_CLIENT_H_
#define RUNNEL_DIST_CLIENT_H_

#include "session/session.h"

typedef struct rn_client_t rn_client_t;

typedef struct rn_client_options_t {
  const rn_env_t* env;  // outlives the client
  rn_allocator_t allocator;
  rn_str_t target;     // "grpc://host:port"; "grpcs://": with TLS and the certificate that the
                       // environment names (RUNNEL_TLS_CERT, RUNNEL_TLS_KEY, RUNNEL_TLS_CA)
  rn_str_t config;     // a ConfigProto
  int64_t timeout_ms;  // of steps without one; 0: no limit
  int64_t lease_ns;  // calls fail after the master has been silent for so long; 0: the config's, or
                     // 10 s
} rn_client_options_t;

bool rn_client_is_target(rn_str_t target);

// Does not contact the master yet. Retains |graph|.
RN_MUST_USE rn_status_t rn_client_create(const rn_client_options_t* options, rn_graph_t* graph,
                                         rn_client_t** out);
void rn_client_destroy(rn_client_t* client);  // NULL is fine

// Has the master clear |containers| (none: the default one) on every task that passes the config's
// device filters, and waits for that. No session is opened.
RN_MUST_USE rn_status_t rn_client_reset(rn_client_t* client, const rn_str_t* containers,
                                        size_t count);

// The client as a session. rn_session_destroy destroys the client.
rn_session_t* rn_client_session(rn_client_t* client);

#endif  // RUNNEL_DIST_CLIENT_H_

// A client of a cluster: a session by its target, and steps that feed one number and fetch one.
#ifndef RUNNEL_TESTS_DIST_CLIENT_H_
#define RUNNEL_TESTS_DIST_CLIENT_H_

#include "dist/client.h"
#include "session/session.h"

// |timeout_ms| and |lease_ns| of the client; 0: as it is without.
static inline rn_status_t session_open(const char* target, int64_t timeout_ms, int64_t lease_ns,
                                       rn_graph_t* graph, rn_session_t** out) {
  rn_client_t* client = NULL;
  rn_client_options_t options = {.env = rn_env_system(),
                                 .allocator = rn_allocator_system(),
                                 .target = rn_str(target),
                                 .timeout_ms = timeout_ms,
                                 .lease_ns = lease_ns};
  RN_RETURN_IF_ERROR(rn_client_create(&options, graph, &client));
  *out = rn_client_session(client);
  return RN_OK;
}

// A step. Without a node nothing is fed, and nothing is fetched; |target| and |out| may be NULL.
static inline rn_status_t step_run(rn_session_t* session, rn_edge_t feed, float fed,
                                   rn_edge_t fetch, rn_node_t* target, float* out) {
  rn_tensor_t value = {0}, fed_value = {0};
  const rn_tensor_t* feeds[] = {&fed_value};
  if (feed.node) {
    RN_RETURN_IF_ERROR(
        rn_tensor_create(rn_allocator_system(), RN_FLOAT, RN_SHAPE_SCALAR, &fed_value));
    *RN_DATA(&fed_value, float) = fed;
  }
  rn_signature_t signature = {.feeds = &feed,
                              .feed_count = feed.node != NULL,
                              .fetches = &fetch,
                              .fetch_count = fetch.node != NULL,
                              .targets = &target,
                              .target_count = target != NULL};
  rn_status_t status = rn_session_run(session, &signature, feeds, &value, NULL);
  if (rn_ok(status) && out) *out = *RN_DATA(&value, float);
  rn_tensor_clear(&value);
  rn_tensor_clear(&fed_value);
  return status;
}

#endif  // RUNNEL_TESTS_DIST_CLIENT_H_

// What takes the place of this room in a library made for one graph (doc/lite.md): sessions run in
// this process only.
#include "dist/client.h"

bool rn_client_is_target(rn_str_t target) {
  (void)target;
  return false;
}

rn_status_t rn_client_create(const rn_client_options_t* options, rn_graph_t* graph,
                             rn_client_t** out) {
  (void)options, (void)graph, (void)out;
  return rn_unimplemented("This library was built for one graph, without clusters");
}

rn_session_t* rn_client_session(rn_client_t* client) {
  (void)client;
  return NULL;
}

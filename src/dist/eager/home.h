// A client's own process as a task of its cluster: other tasks use its devices and values through a
// context of its own, and functions over several tasks that are called here are cut here.
#ifndef RUNNEL_DIST_EAGER_HOME_H_
#define RUNNEL_DIST_EAGER_HOME_H_

#include "dist/eager/client_internal.h"

// Listens at the client's address in |def| if it does not yet. Without an address there, or if it
// is taken, it stays a mere client.
RN_MUST_USE rn_status_t rn_home_listen(rn_eager_client_t* client, const rn_eager_join_t* join,
                                       const rn_pb_ServerDef_t* def);
// Opens the context, or shows it the new view.
RN_MUST_USE rn_status_t rn_home_open(rn_eager_client_t* client, const rn_eager_join_t* join);
// Closes the context; the server stays. Waits for calls of other tasks.
void rn_home_close(rn_eager_client_t* client);

// Gives a value of this process a number by which other tasks may name it, and takes it back.
RN_MUST_USE rn_status_t rn_home_show(rn_eager_client_t* client, int64_t number,
                                     rn_eager_handle_t* handle);
void rn_home_hide(rn_eager_client_t* client, int64_t number);
// Takes result |output| that a part of call |op| left here.
RN_MUST_USE rn_status_t rn_home_take(rn_eager_client_t* client, int64_t op, int32_t output,
                                     rn_eager_handle_t** out);

// See rn_eager_cluster_t.
RN_MUST_USE rn_status_t rn_home_call(void* self, rn_eager_op_t* op, rn_eager_handle_t** outputs,
                                     int32_t* inout_count, bool* out_done);
void rn_home_forget(void* self, rn_str_t function);

#endif  // RUNNEL_DIST_EAGER_HOME_H_

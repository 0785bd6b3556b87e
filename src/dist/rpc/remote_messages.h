// The requests and responses of remote.c: rn_put_<call> writes a request, rn_take_<call> reads the
// response into the call's record. A response that is only a status needs no reader.
#ifndef RUNNEL_DIST_RPC_REMOTE_MESSAGES_H_
#define RUNNEL_DIST_RPC_REMOTE_MESSAGES_H_

#include "dist/iface.h"
#include "dist/rpc/codec.h"

#define RN_MESSAGES_OF(side, name, ...)                      \
  void rn_put_##name(rn_encoder_t* to, rn_##name##_t* call); \
  RN_MUST_USE rn_status_t rn_take_##name(const rn_in_t* in, rn_call_t* call);
RN_WORKER_CALLS(RN_MESSAGES_OF)  // remote.c has rn_put_recv_tensor, which asks for loans and wires
RN_MASTER_CALLS(RN_MESSAGES_OF)

#endif  // RUNNEL_DIST_RPC_REMOTE_MESSAGES_H_

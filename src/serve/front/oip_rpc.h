// The Open Inference Protocol's gRPC form: inference.GRPCInferenceService, as clients of KServe and
// of Triton call it. rn_oip_rpc_route (front.h) is its entry.
#ifndef RUNNEL_SERVE_FRONT_OIP_RPC_H_
#define RUNNEL_SERVE_FRONT_OIP_RPC_H_

#include "serve/front/oip.h"

// Reads a ModelInferRequest. Strings are borrowed from |message|, whose buffer tensors may share.
RN_MUST_USE rn_status_t rn_oip_rpc_read(rn_oip_infer_t* infer, const rn_message_t* message);
// Appends the ModelInferResponse of a finished inference to |out|, which is initialized. In a
// stream it says that no other response follows.
RN_MUST_USE rn_status_t rn_oip_rpc_write(const rn_oip_infer_t* infer, bool is_stream,
                                         rn_message_t* out);

// ModelInfer, and ModelStreamInfer: each message of the stream is one inference, and answers come
// in the order of the requests. Both reply to |call|.
void rn_oip_rpc_infer(rn_front_t* front, rn_rpc_in_t* call);
void rn_oip_rpc_stream(rn_front_t* front, rn_rpc_in_t* call);

#endif  // RUNNEL_SERVE_FRONT_OIP_RPC_H_

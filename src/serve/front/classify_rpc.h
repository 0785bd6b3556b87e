// PredictionService.Classify, Regress and MultiInference: rows of its table of methods.
#ifndef RUNNEL_SERVE_FRONT_CLASSIFY_RPC_H_
#define RUNNEL_SERVE_FRONT_CLASSIFY_RPC_H_

#include "serve/front/front.h"

void rn_classify_rpc(rn_front_t* front, rn_rpc_in_t* call);
void rn_regress_rpc(rn_front_t* front, rn_rpc_in_t* call);
// Runs the tasks, which must be of one model, side by side on the same examples.
void rn_multi_inference_rpc(rn_front_t* front, rn_rpc_in_t* call);

#endif  // RUNNEL_SERVE_FRONT_CLASSIFY_RPC_H_

// The configuration that a client of the Open Inference Protocol loads a model with.
#ifndef RUNNEL_SERVE_FRONT_OIP_LOAD_H_
#define RUNNEL_SERVE_FRONT_OIP_LOAD_H_

#include "serve/front/front.h"

// Reads |config|, Triton's ModelConfig as JSON, for the model |name|. |*out|, in |arena|, is NULL
// if it has no version policy. What describes the model must not contradict it. INVALID_ARGUMENT
// names what a server has no place for.
RN_MUST_USE rn_status_t rn_oip_load_policy(rn_front_t* front, rn_str_t name, rn_str_t config,
                                           rn_arena_t* arena, rn_version_policy_t** out);

#endif  // RUNNEL_SERVE_FRONT_OIP_LOAD_H_

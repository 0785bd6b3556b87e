// Which GPUs models run on.
//
// A list says it by model: "a=1,b=0+2,c=none". Of several GPUs, the replicas of a model have one
// each, in turn. A model that is not listed may use all of them, as in TensorFlow Serving, where
// nodes without a device go to the first one; but from the second replica on, each has one, too.
#ifndef RUNNEL_SERVE_MODEL_GPUS_H_
#define RUNNEL_SERVE_MODEL_GPUS_H_

#include "base/str.h"
#include "device/part.h"

// Sets which GPUs replica |replica| of |model| sees. |count|: how many its first replica saw; 0 for
// the first one. INVALID_ARGUMENT if |list| has another form.
RN_MUST_USE rn_status_t rn_gpus_choose(rn_str_t list, rn_str_t model, int replica, int count,
                                       rn_gpu_options_t* inout);

#endif  // RUNNEL_SERVE_MODEL_GPUS_H_

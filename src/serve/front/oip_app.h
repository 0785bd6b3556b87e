// Applications as models of the Open Inference Protocol: version 1, one input, a fixed set of
// outputs. A model of the same name comes first.
#ifndef RUNNEL_SERVE_FRONT_OIP_APP_H_
#define RUNNEL_SERVE_FRONT_OIP_APP_H_

#include "serve/front/oip.h"
#include "serve/front/oip_info.h"

bool rn_oip_is_app(const rn_front_t* front, rn_str_t name, rn_str_t version);
// Runs |infer|, whose model is an application; its predict.done is called, perhaps before this
// returns.
void rn_oip_app_run(rn_oip_infer_t* infer);
RN_MUST_USE rn_status_t rn_oip_app_metadata(const rn_front_t* front, rn_str_t name,
                                            rn_arena_t* arena,
                                            rn_pb_inference_ModelMetadataResponse_t* out);
RN_MUST_USE rn_status_t rn_oip_app_config(const rn_front_t* front, rn_str_t name, rn_arena_t* arena,
                                          rn_pb_inference_ModelConfig_t* out);
// The applications that no model hides, by name, in |arena|.
RN_MUST_USE rn_status_t rn_oip_app_names(const rn_front_t* front, rn_arena_t* arena, rn_str_t** out,
                                         size_t* out_count);

#endif  // RUNNEL_SERVE_FRONT_OIP_APP_H_

// Triton's settings of a running server: what it logs, and which requests it traces.
//
// Requests and responses are messages of the gRPC form; the REST form reads and prints them as one
// flat object.
#ifndef RUNNEL_SERVE_FRONT_OIP_SETTINGS_H_
#define RUNNEL_SERVE_FRONT_OIP_SETTINGS_H_

#include "proto/oip.pb.h"
#include "serve/front/front.h"

// Changes what |request| names, all of it or nothing, and fills in |out| with all settings in
// force. The caller has checked that it may.
RN_MUST_USE rn_status_t rn_oip_log_settings(rn_front_t* front,
                                            const rn_pb_inference_LogSettingsRequest_t* request,
                                            rn_arena_t* arena,
                                            rn_pb_inference_LogSettingsResponse_t* out);
// |request->model_name| may be "". INVALID_ARGUMENT for a model that is not available.
RN_MUST_USE rn_status_t rn_oip_trace_settings(rn_front_t* front,
                                              const rn_pb_inference_TraceSettingRequest_t* request,
                                              rn_arena_t* arena,
                                              rn_pb_inference_TraceSettingResponse_t* out);

// The REST form of both: the settings of |body| (""; none), and their reply in |out|.
RN_MUST_USE rn_status_t rn_oip_log_rest(rn_front_t* front, rn_str_t body, rn_arena_t* arena,
                                        rn_strbuf_t* out);
RN_MUST_USE rn_status_t rn_oip_trace_rest(rn_front_t* front, rn_str_t model, rn_str_t body,
                                          rn_arena_t* arena, rn_strbuf_t* out);

#endif  // RUNNEL_SERVE_FRONT_OIP_SETTINGS_H_

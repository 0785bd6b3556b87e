// Samples of classify and regress requests that came as JSON, in the form of gRPC's, for the log.
#ifndef RUNNEL_SERVE_FRONT_REST_SAMPLE_H_
#define RUNNEL_SERVE_FRONT_REST_SAMPLE_H_

#include "serve/front/front.h"

// The model, version and signature of a request.
typedef struct rn_rest_target_t {
  rn_str_t model;
  int64_t version;
  rn_str_t signature;
} rn_rest_target_t;

// Appends a ClassificationRequest, which a RegressionRequest equals, with a serialized Input.
RN_MUST_USE rn_status_t rn_rest_sample_request(const rn_rest_target_t* target, rn_str_t input,
                                               rn_strbuf_t* out);
// Appends a ClassificationResponse, or RegressionResponse, with |result|, a message of type |desc|.
RN_MUST_USE rn_status_t rn_rest_sample_response(const rn_rest_target_t* target,
                                                const rn_pb_message_desc_t* desc,
                                                const void* result, rn_strbuf_t* out);

#endif  // RUNNEL_SERVE_FRONT_REST_SAMPLE_H_

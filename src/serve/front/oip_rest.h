// The Open Inference Protocol's REST form: /v2/... as clients of KServe and of Triton call it.
// rn_oip_rest_route (front.h) is its entry.
#ifndef RUNNEL_SERVE_FRONT_OIP_REST_H_
#define RUNNEL_SERVE_FRONT_OIP_REST_H_

#include "serve/front/oip.h"

// Reads the body of a request: JSON text, |json| bytes of it (SIZE_MAX: all), and then the inputs
// that have a binary_data_size. Strings are borrowed from |body|, and tensors may share |buffer|
// (NULL: none), which holds it.
RN_MUST_USE rn_status_t rn_oip_rest_read(rn_oip_infer_t* infer, rn_str_t body, size_t json,
                                         rn_buffer_t* buffer);
// Writes the reply of a finished inference. |*out_json| is the size of the JSON text if tensors in
// binary form follow it, else 0.
RN_MUST_USE rn_status_t rn_oip_rest_write(const rn_oip_infer_t* infer, rn_message_t* out,
                                          size_t* out_json);

// Where the inputs in binary form begin in a body, for rn_http_server_options_t.
size_t rn_oip_rest_align(const rn_http1_request_t* request);

// POST .../infer. Replies to |request|. |model| and |version| are copied.
void rn_oip_rest_infer(rn_front_t* front, rn_http_in_t* request, rn_str_t model, rn_str_t version);

#endif  // RUNNEL_SERVE_FRONT_OIP_REST_H_

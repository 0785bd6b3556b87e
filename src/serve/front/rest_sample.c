// See rest_sample.h.
#include "serve/front/rest_sample.h"

#include "proto/serving_classify.pb.h"
#include "serve/front/request_log.h"
#include "wire/encode.h"
#include "wire/writer.h"

rn_status_t rn_rest_sample_request(const rn_rest_target_t* target, rn_str_t input,
                                   rn_strbuf_t* out) {
  rn_request_log_put_spec(rn_pb_serving_ClassificationRequest_model_spec_field, target->model,
                          target->version, target->signature, out);
  rn_pb_put_str(out, rn_pb_serving_ClassificationRequest_input_field, input);
  return rn_strbuf_status(out);
}

rn_status_t rn_rest_sample_response(const rn_rest_target_t* target,
                                    const rn_pb_message_desc_t* desc, const void* result,
                                    rn_strbuf_t* out) {
  size_t mark = rn_pb_begin(out, rn_pb_serving_ClassificationResponse_result_field);
  RN_RETURN_IF_ERROR(rn_pb_encode(desc, result, NULL, out));
  rn_pb_end(out, mark);
  rn_request_log_put_spec(rn_pb_serving_ClassificationResponse_model_spec_field, target->model,
                          target->version, target->signature, out);
  return rn_strbuf_status(out);
}

// See rest_sample.h.
#include "serve/front/rest_sample.h"

#include "proto/serving_classify.pb.h"
#include "wire/encode.h"
#include "wire/writer.h"

static rn_status_t put_spec(const rn_rest_target_t* target, uint32_t field, rn_strbuf_t* out) {
  rn_pb_google_protobuf_Int64Value_t version = {target->version};
  rn_pb_serving_ModelSpec_t spec = {
      .name = target->model,
      .version_choice_case = rn_pb_serving_ModelSpec_version_field,
      .version = &version,
      .signature_name = target->signature,
  };
  size_t mark = rn_pb_begin(out, field);
  RN_RETURN_IF_ERROR(RN_PB_ENCODE(serving_ModelSpec, &spec, NULL, out));
  rn_pb_end(out, mark);
  return rn_strbuf_status(out);
}

rn_status_t rn_rest_sample_request(const rn_rest_target_t* target, rn_str_t input,
                                   rn_strbuf_t* out) {
  RN_RETURN_IF_ERROR(put_spec(target, rn_pb_serving_ClassificationRequest_model_spec_field, out));
  rn_pb_put_str(out, rn_pb_serving_ClassificationRequest_input_field, input);
  return rn_strbuf_status(out);
}

rn_status_t rn_rest_sample_response(const rn_rest_target_t* target,
                                    const rn_pb_message_desc_t* desc, const void* result,
                                    rn_strbuf_t* out) {
  size_t mark = rn_pb_begin(out, rn_pb_serving_ClassificationResponse_result_field);
  RN_RETURN_IF_ERROR(rn_pb_encode(desc, result, NULL, out));
  rn_pb_end(out, mark);
  return put_spec(target, rn_pb_serving_ClassificationResponse_model_spec_field, out);
}

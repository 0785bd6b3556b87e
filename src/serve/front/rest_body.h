// The bodies of TensorFlow Serving's REST: JSON to inputs and examples, outputs to JSON.
//
// Messages are TensorFlow Serving's. No function keeps state; all run on any thread.
#ifndef RUNNEL_SERVE_FRONT_REST_BODY_H_
#define RUNNEL_SERVE_FRONT_REST_BODY_H_

#include "proto/serving_classify.pb.h"
#include "serve/front/json.h"
#include "serve/model/backend.h"
#include "serve/predict.h"

// A member of the body whose value is read later.
typedef struct rn_rest_member_t {
  bool is_set;
  rn_json_reader_t value;  // at the value
  size_t commas;           // outside of strings: a list in it has at most one element more
} rn_rest_member_t;

// What a body has. Of members with the same name the first one counts.
typedef struct rn_rest_body_t {
  rn_json_reader_t begin;  // at the document
  rn_str_t signature;      // "": serving_default
  rn_rest_member_t instances, inputs, context, examples;
} rn_rest_body_t;

// Finds the members of |text|, which stays in place as long as |out| is used.
RN_MUST_USE rn_status_t rn_rest_body_scan(rn_str_t text, rn_arena_t* arena, rn_rest_body_t* out);
// Takes an error that a part of the body gave. If the body as a whole is no JSON, replaces it by
// that error: TensorFlow Serving reads all of it first.
RN_MUST_USE rn_status_t rn_rest_body_error(const rn_rest_body_t* body, rn_status_t status);

// A predict body's tensors for |signature|. The caller clears the tensors of |*out_values|, which
// is in the body's arena, also on failure. |*out_is_row|: it has "instances".
RN_MUST_USE rn_status_t rn_rest_read_inputs(const rn_rest_body_t* body,
                                            const rn_serve_signature_t* signature,
                                            rn_allocator_t allocator,
                                            rn_predict_value_t** out_values, int* out_count,
                                            bool* out_is_row);
// Appends {"predictions": ...}, or {"outputs": ...} unless |is_row|.
RN_MUST_USE rn_status_t rn_rest_write_outputs(const rn_predict_value_t* outputs, int count,
                                              bool is_row, rn_strbuf_t* out);

// A classify or regress body as a serialized Input.
RN_MUST_USE rn_status_t rn_rest_read_examples(const rn_rest_body_t* body, rn_strbuf_t* out);
// Appends {"results": ...}.
RN_MUST_USE rn_status_t rn_rest_write_classes(const rn_pb_serving_ClassificationResult_t* result,
                                              rn_strbuf_t* out);
RN_MUST_USE rn_status_t rn_rest_write_values(const rn_pb_serving_RegressionResult_t* result,
                                             rn_strbuf_t* out);

#endif  // RUNNEL_SERVE_FRONT_REST_BODY_H_

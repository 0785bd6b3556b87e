// Classification and regression: examples to a tensor of strings, outputs to results.
//
// Both run a signature with one string input, "inputs", which takes serialized tf.Examples. REST,
// gRPC and warm-up share this; messages are TensorFlow Serving's. No function keeps state.
#ifndef RUNNEL_SERVE_FRONT_CLASSIFY_H_
#define RUNNEL_SERVE_FRONT_CLASSIFY_H_

#include "proto/serving_classify.pb.h"
#include "serve/model/backend.h"
#include "serve/predict.h"

typedef enum rn_infer_method_t { RN_INFER_CLASSIFY, RN_INFER_REGRESS } rn_infer_method_t;

#define RN_INFER_INPUT "inputs"  // the name of the input

// "tensorflow/serving/classify", "tensorflow/serving/regress"
const char* rn_infer_method_name(rn_infer_method_t method);

// Checks that signature |name| ("": serving_default) of |backend| can answer |method|: one input,
// outputs "classes" or "scores" or both, or "outputs". |checks_name|: its method name must fit,
// too.
RN_MUST_USE rn_status_t rn_infer_check(const rn_backend_t* backend, rn_str_t name,
                                       rn_infer_method_t method, bool checks_name);

// Makes the [n] strings of a serialized Input: its examples, each behind the context if there is
// one. INVALID_ARGUMENT if it has no examples.
RN_MUST_USE rn_status_t rn_infer_examples(rn_str_t input, rn_allocator_t allocator,
                                          rn_tensor_t* out);

// Makes the result for |examples| examples from the outputs of a signature that passed the check.
// Lists are in |arena|, labels in the outputs. INVALID_ARGUMENT if an output does not have a row
// per example.
RN_MUST_USE rn_status_t rn_infer_classes(const rn_predict_value_t* outputs, int count,
                                         int64_t examples, rn_arena_t* arena,
                                         rn_pb_serving_ClassificationResult_t* out);
RN_MUST_USE rn_status_t rn_infer_values(const rn_predict_value_t* outputs, int count,
                                        int64_t examples, rn_arena_t* arena,
                                        rn_pb_serving_RegressionResult_t* out);

#endif  // RUNNEL_SERVE_FRONT_CLASSIFY_H_

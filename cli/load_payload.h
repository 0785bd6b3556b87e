// What `runnel load` sends: tensors by name, as the body of a request in one of the protocols.
#ifndef RUNNEL_CLI_LOAD_PAYLOAD_H_
#define RUNNEL_CLI_LOAD_PAYLOAD_H_

#include "base/vec.h"
#include "cli/cli.h"
#include "tensor/tensor.h"

typedef enum rn_load_protocol_t {
  RN_LOAD_REST,      // TensorFlow Serving's, in columns
  RN_LOAD_GRPC,      // PredictionService.Predict
  RN_LOAD_OIP,       // the Open Inference Protocol over REST
  RN_LOAD_OIP_GRPC,  // and over gRPC
  RN_LOAD_CLIPPER,   // an application's
} rn_load_protocol_t;

typedef struct rn_load_input_t {
  rn_str_t name;
  rn_tensor_t value;
} rn_load_input_t;

// One request. Clear with rn_load_inputs_clear.
typedef struct rn_load_inputs_t {
  rn_load_input_t* items;  // in the arena of the caller
  int count;
} rn_load_inputs_t;
void rn_load_inputs_clear(rn_load_inputs_t* inputs);

typedef struct rn_load_model_t {
  const char* model;
  const char* signature;  // NULL: serving_default
} rn_load_model_t;

// Inputs of the options --input NAME=VALUE.
RN_MUST_USE rn_status_t rn_load_inputs_given(const rn_cli_t* cli, rn_arena_t* arena,
                                             rn_load_inputs_t* out);
// Random inputs for the signature that |metadata| (the JSON of TensorFlow Serving's metadata call)
// describes, with |rows| for open dimensions.
RN_MUST_USE rn_status_t rn_load_inputs_random(const rn_load_model_t* model, rn_str_t metadata,
                                              int64_t rows, uint64_t seed, rn_arena_t* arena,
                                              rn_allocator_t allocator, rn_load_inputs_t* out);
// The inputs of one record of a request log (PredictionLog). NOT_FOUND if it is no Predict.
RN_MUST_USE rn_status_t rn_load_inputs_logged(rn_str_t record, rn_arena_t* arena,
                                              rn_allocator_t allocator, rn_load_inputs_t* out);

// Appends the body of a request to |out|.
RN_MUST_USE rn_status_t rn_load_print(const rn_load_model_t* model, rn_load_protocol_t protocol,
                                      const rn_load_inputs_t* inputs, rn_strbuf_t* out);
// Appends its path.
void rn_load_path(const rn_load_model_t* model, rn_load_protocol_t protocol, rn_strbuf_t* out);

#endif  // RUNNEL_CLI_LOAD_PAYLOAD_H_

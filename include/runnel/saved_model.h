// SavedModels: load them, run them by signature, write them.
//
//   rn_model_t* m = rn_model_load("mnist", NULL, status);
//   const char* names[] = {"images"};
//   const char* wanted[] = {"scores"};
//   rn_model_run(m, "serving_default", names, &images, 1, wanted, &scores, 1, status);
//   rn_model_close(m);
//
// Models are TensorFlow's, of either generation: signatures over one graph, and exports of Keras.
// Every function reports errors in |status|, which may be NULL.
#ifndef RUNNEL_SAVED_MODEL_H_
#define RUNNEL_SAVED_MODEL_H_

#include <stdbool.h>
#include <stdint.h>

#include "runnel/api.h"
#include "tensorflow/c/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

// What sessions made with |options| may do besides computing: "read:FOLDER", "write:FOLDER" (which
// includes reading), "network", "all", separated by ';'. By default your own graph may do
// everything; a loaded model may only read its own folder, plus what the environment variable
// RUNNEL_ALLOW allows in the same form. Anything else fails with TF_PERMISSION_DENIED.
RN_API void rn_session_options_allow(TF_SessionOptions* options, const char* allow,
                                     TF_Status* status);

// A loaded model: a graph, a session with restored variables, and its signatures. Any number of
// threads may run it at once.
typedef struct rn_model_t rn_model_t;

typedef struct rn_model_options_t {
  const char* const* tags;  // of the graph to load; NULL: "serve", or the only graph
  int tag_count;
  const TF_SessionOptions* session;  // NULL: defaults
} rn_model_options_t;

// |options| may be NULL. NULL after an error.
RN_API rn_model_t* rn_model_load(const char* folder, const rn_model_options_t* options,
                                 TF_Status* status);
RN_API void rn_model_close(rn_model_t* model);  // NULL is fine

// Both live as long as the model.
RN_API TF_Graph* rn_model_graph(rn_model_t* model);
RN_API TF_Session* rn_model_session(rn_model_t* model);

// An input or output of a signature. Strings live as long as the model.
typedef struct rn_model_port_t {
  const char* name;    // in the signature
  const char* tensor;  // in the graph: "serving_default_x:0"
  TF_DataType dtype;
  int rank;             // -1: unknown
  const int64_t* dims;  // -1: unknown
} rn_model_port_t;

// The number of signatures of the model.
RN_API int rn_model_signature_count(const rn_model_t* model);
RN_API const char* rn_model_signature(const rn_model_t* model,
                                      int index);  // name; NULL: no such signature
// The inputs or outputs, in the order of their names. Returns how many, or -1 if there is no such
// signature. |out_ports| may be NULL.
RN_API int rn_model_inputs(const rn_model_t* model, const char* signature,
                           const rn_model_port_t** out_ports);
RN_API int rn_model_outputs(const rn_model_t* model, const char* signature,
                            const rn_model_port_t** out_ports);

// Runs one step, with inputs and outputs by their names in |signature| (NULL: "serving_default").
// All inputs of the signature are required, in any order; any of its outputs can be requested. The
// caller owns the results; after an error they are NULL.
RN_API void rn_model_run(rn_model_t* model, const char* signature, const char* const* input_names,
                         TF_Tensor* const* inputs, int input_count, const char* const* output_names,
                         TF_Tensor** outputs, int output_count, TF_Status* status);

// What to write into a model.
typedef struct rn_signature_def_t {
  const char* name;    // "serving_default"
  const char* method;  // NULL: "tensorflow/serving/predict"
  int input_count;
  const char* const* input_names;
  const TF_Output* inputs;
  int output_count;
  const char* const* output_names;
  const TF_Output* outputs;
} rn_signature_def_t;

typedef struct rn_asset_def_t {
  const char* path;  // a file to copy
  TF_Output tensor;  // gets the file's path when the model is loaded
} rn_asset_def_t;

typedef struct rn_saved_model_def_t {
  const char* const* tags;  // NULL: "serve"
  int tag_count;
  const rn_signature_def_t* signatures;
  int signature_count;
  const rn_asset_def_t* assets;
  int asset_count;
  const TF_Operation* init;  // run after loading, e.g. to fill tables; may be NULL
  bool overwrites;           // replace an existing model
} rn_saved_model_def_t;

// Writes the graph of |session| and the values of its variables as a SavedModel into |folder|,
// which it creates. The session's graph is not changed: the nodes that save and restore are added
// to the written one. When it returns, the files are on disk; saved_model.pb is written last, so a
// folder that has it is complete. Variables without a value are left out; TF_FAILED_PRECONDITION if
// a signature depends on one. TF_ALREADY_EXISTS if there is a model and |overwrites| is false.
// Stock TensorFlow reads the result; tf.saved_model.load returns an object with `signatures`, with
// variables by the parts of their names ("layer/w" is root.layer.w), and with lists of them.
//
// A model that was loaded with objects is written again with its objects, functions, all signatures
// and assets, and with the current values. This requires that the signatures in |def| are some of
// its own, or none; that |def| has neither assets nor |init|; and that its graph has no new
// variables.
RN_API bool rn_saved_model_write(TF_Session* session, const char* folder,
                                 const rn_saved_model_def_t* def, TF_Status* status);

#ifdef __cplusplus
}
#endif

#endif  // RUNNEL_SAVED_MODEL_H_

// The C API of TensorFlow: graphs, sessions and what belongs to them.
//
// Rules that hold for every function, unless it says otherwise:
// - Objects made by TF_New* and TF_Load* belong to the caller, who gives them to TF_Delete*.
//   Deleters take NULL. Strings and arrays passed in are copied; strings handed out are lent by the
//   object that they describe, for as long as it lives and is not changed.
// - A function with a TF_Status overwrites it with the outcome. After a failure its out-parameters
//   hold nothing to free, and it returns NULL, 0 or -1.
// - NULL objects, indices out of range and unknown names are answered with TF_INVALID_ARGUMENT (or
//   NULL, 0, -1 where there is no status), never with a crash. Where a function that builds an
//   operation has no status, the error waits until TF_FinishOperation.
// - Protos travel as serialized bytes.
// - Graphs and sessions may be used from many threads at once. Descriptions, options, statuses and
//   buffers belong to one thread at a time.

#ifndef TENSORFLOW_C_C_API_H_
#define TENSORFLOW_C_C_API_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_attrtype.h"
#include "tensorflow/c/tf_buffer.h"
#include "tensorflow/c/tf_datatype.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow/c/tf_tensor.h"
#include "tensorflow/c/tf_tstring.h"

#ifdef __cplusplus
extern "C" {
#endif

// The TensorFlow release whose API this is, "major.minor.patch". Never freed.
TF_CAPI_EXPORT const char* TF_Version(void);

// Fills the caller's tensor |to| from a TensorProto.
TF_CAPI_EXPORT void TF_TensorFromProto(const TF_Buffer* from, TF_Tensor* to, TF_Status* status);

// Bytes that are owned elsewhere; not NUL-terminated.
typedef struct TF_StringView {
  const char* data;
  size_t len;
} TF_StringView;

// --- Session options

typedef struct TF_SessionOptions TF_SessionOptions;

// Options with defaults: a local session. The caller deletes them.
TF_CAPI_EXPORT TF_SessionOptions* TF_NewSessionOptions(void);

// Where the session runs: "" or "local" in this process, "grpc://host:port" on a cluster,
// "grpcs://host:port" on one with certificates.
TF_CAPI_EXPORT void TF_SetTarget(TF_SessionOptions* options, const char* target);

// Replaces the configuration with a serialized ConfigProto.
TF_CAPI_EXPORT void TF_SetConfig(TF_SessionOptions* options, const void* proto, size_t proto_len,
                                 TF_Status* status);

// Frees the options. NULL is allowed.
TF_CAPI_EXPORT void TF_DeleteSessionOptions(TF_SessionOptions* options);

// --- Graphs and operations

typedef struct TF_Graph TF_Graph;

// An empty graph. The caller deletes it.
TF_CAPI_EXPORT TF_Graph* TF_NewGraph(void);

// Sessions of the graph keep it alive until they are deleted too.
TF_CAPI_EXPORT void TF_DeleteGraph(TF_Graph* graph);

// An operation that is being described; ends in TF_FinishOperation.
typedef struct TF_OperationDescription TF_OperationDescription;

// An operation of a graph. Belongs to the graph and lives as long.
typedef struct TF_Operation TF_Operation;

// Input |index| of |oper|.
typedef struct TF_Input {
  TF_Operation* oper;
  int index;
} TF_Input;

// Output |index| of |oper|.
typedef struct TF_Output {
  TF_Operation* oper;
  int index;
} TF_Output;

typedef struct TF_Function TF_Function;

// Reserved: always NULL.
typedef struct TF_FunctionOptions TF_FunctionOptions;

// Narrows the inferred shape of |output|: -1 stands for an unknown dimension, |num_dims| -1 for an
// unknown rank. TF_INVALID_ARGUMENT when this contradicts what is known.
TF_CAPI_EXPORT void TF_GraphSetTensorShape(TF_Graph* graph, TF_Output output, const int64_t* dims,
                                           int num_dims, TF_Status* status);

// The inferred rank of |output|; -1, and an OK status, when it is not known.
TF_CAPI_EXPORT int TF_GraphGetTensorNumDims(TF_Graph* graph, TF_Output output, TF_Status* status);

// Writes the inferred dimensions, -1 for unknown ones. |num_dims| must be the rank.
TF_CAPI_EXPORT void TF_GraphGetTensorShape(TF_Graph* graph, TF_Output output, int64_t* dims,
                                           int num_dims, TF_Status* status);

// --- Describing a new operation
//
// TF_NewOperation, then inputs in the order of the op's definition, attributes in any order, then
// TF_FinishOperation, which consumes the description whether it succeeds or not. The *Locked pair
// is for callers that hold the graph's lock already; otherwise it is the same.

// Begins the description of an operation |oper_name| of type |op_type|.
TF_CAPI_EXPORT TF_OperationDescription* TF_NewOperationLocked(TF_Graph* graph, const char* op_type,
                                                              const char* oper_name);
TF_CAPI_EXPORT TF_OperationDescription* TF_NewOperation(TF_Graph* graph, const char* op_type,
                                                        const char* oper_name);

// The requested device. Any string is accepted; placing the graph fails if it is invalid.
TF_CAPI_EXPORT void TF_SetDevice(TF_OperationDescription* desc, const char* device);

// Appends one input.
TF_CAPI_EXPORT void TF_AddInput(TF_OperationDescription* desc, TF_Output input);

// For an argument that is a list: one call with all its parts.
TF_CAPI_EXPORT void TF_AddInputList(TF_OperationDescription* desc, const TF_Output* inputs,
                                    int num_inputs);

// |input| runs before this operation.
TF_CAPI_EXPORT void TF_AddControlInput(TF_OperationDescription* desc, TF_Operation* input);

// Asks for the device of |op|. Adds "loc:@name" to the attribute "_class".
TF_CAPI_EXPORT void TF_ColocateWith(TF_OperationDescription* desc, TF_Operation* op);

// Attributes. Lists come with their length; |values| may be NULL when it is 0.
TF_CAPI_EXPORT void TF_SetAttrString(TF_OperationDescription* desc, const char* attr_name,
                                     const void* value, size_t length);
// |values[i]| has |lengths[i]| bytes.
TF_CAPI_EXPORT void TF_SetAttrStringList(TF_OperationDescription* desc, const char* attr_name,
                                         const void* const* values, const size_t* lengths,
                                         int num_values);
TF_CAPI_EXPORT void TF_SetAttrInt(TF_OperationDescription* desc, const char* attr_name,
                                  int64_t value);
TF_CAPI_EXPORT void TF_SetAttrIntList(TF_OperationDescription* desc, const char* attr_name,
                                      const int64_t* values, int num_values);
TF_CAPI_EXPORT void TF_SetAttrFloat(TF_OperationDescription* desc, const char* attr_name,
                                    float value);
TF_CAPI_EXPORT void TF_SetAttrFloatList(TF_OperationDescription* desc, const char* attr_name,
                                        const float* values, int num_values);
TF_CAPI_EXPORT void TF_SetAttrBool(TF_OperationDescription* desc, const char* attr_name,
                                   unsigned char value);
TF_CAPI_EXPORT void TF_SetAttrBoolList(TF_OperationDescription* desc, const char* attr_name,
                                       const unsigned char* values, int num_values);
TF_CAPI_EXPORT void TF_SetAttrType(TF_OperationDescription* desc, const char* attr_name,
                                   TF_DataType value);
TF_CAPI_EXPORT void TF_SetAttrTypeList(TF_OperationDescription* desc, const char* attr_name,
                                       const TF_DataType* values, int num_values);

// The value is a parameter of the function that the operation is part of.
TF_CAPI_EXPORT void TF_SetAttrPlaceholder(TF_OperationDescription* desc, const char* attr_name,
                                          const char* placeholder);

// The value is the function |value|.
TF_CAPI_EXPORT void TF_SetAttrFuncName(TF_OperationDescription* desc, const char* attr_name,
                                       const char* value, size_t length);

// -1 is an unknown dimension; |num_dims| -1 an unknown rank, and |dims| may be NULL.
TF_CAPI_EXPORT void TF_SetAttrShape(TF_OperationDescription* desc, const char* attr_name,
                                    const int64_t* dims, int num_dims);

// Shape i has |num_dims[i]| dimensions at |dims[i]|.
TF_CAPI_EXPORT void TF_SetAttrShapeList(TF_OperationDescription* desc, const char* attr_name,
                                        const int64_t* const* dims, const int* num_dims,
                                        int num_shapes);

// |proto| is a TensorShapeProto.
TF_CAPI_EXPORT void TF_SetAttrTensorShapeProto(TF_OperationDescription* desc, const char* attr_name,
                                               const void* proto, size_t proto_len,
                                               TF_Status* status);
TF_CAPI_EXPORT void TF_SetAttrTensorShapeProtoList(TF_OperationDescription* desc,
                                                   const char* attr_name, const void* const* protos,
                                                   const size_t* proto_lens, int num_shapes,
                                                   TF_Status* status);

// The tensor's value is kept; the caller still owns |value|.
TF_CAPI_EXPORT void TF_SetAttrTensor(TF_OperationDescription* desc, const char* attr_name,
                                     TF_Tensor* value, TF_Status* status);
TF_CAPI_EXPORT void TF_SetAttrTensorList(TF_OperationDescription* desc, const char* attr_name,
                                         TF_Tensor* const* values, int num_values,
                                         TF_Status* status);

// |proto| is an AttrValue.
TF_CAPI_EXPORT void TF_SetAttrValueProto(TF_OperationDescription* desc, const char* attr_name,
                                         const void* proto, size_t proto_len, TF_Status* status);

// Checks the description and adds the operation to the graph. On failure returns NULL and the graph
// is as before. The description is gone in both cases.
TF_CAPI_EXPORT TF_Operation* TF_FinishOperationLocked(TF_OperationDescription* desc,
                                                      TF_Status* status);
TF_CAPI_EXPORT TF_Operation* TF_FinishOperation(TF_OperationDescription* desc, TF_Status* status);

// --- Reading an operation

// The name of the operation and the name of its op. They live as long as the graph.
TF_CAPI_EXPORT const char* TF_OperationName(TF_Operation* oper);
TF_CAPI_EXPORT const char* TF_OperationOpType(TF_Operation* oper);

// The requested device; "" if none was requested.
TF_CAPI_EXPORT const char* TF_OperationDevice(TF_Operation* oper);

// The number of outputs, and the type of one of them.
TF_CAPI_EXPORT int TF_OperationNumOutputs(TF_Operation* oper);
TF_CAPI_EXPORT TF_DataType TF_OperationOutputType(TF_Output oper_out);

// How many outputs the output argument |arg_name| stands for; -1 on failure.
TF_CAPI_EXPORT int TF_OperationOutputListLength(TF_Operation* oper, const char* arg_name,
                                                TF_Status* status);

// The number of inputs, and the type of one of them.
TF_CAPI_EXPORT int TF_OperationNumInputs(TF_Operation* oper);
TF_CAPI_EXPORT TF_DataType TF_OperationInputType(TF_Input oper_in);

// How many inputs the input argument |arg_name| stands for; -1 on failure.
TF_CAPI_EXPORT int TF_OperationInputListLength(TF_Operation* oper, const char* arg_name,
                                               TF_Status* status);

// The output that feeds |oper_in|. {NULL, -1} if there is none.
TF_CAPI_EXPORT TF_Output TF_OperationInput(TF_Input oper_in);

// Writes the first |max_inputs| sources in order.
TF_CAPI_EXPORT void TF_OperationAllInputs(TF_Operation* oper, TF_Output* inputs, int max_inputs);

// The number of inputs that read |oper_out|.
TF_CAPI_EXPORT int TF_OperationOutputNumConsumers(TF_Output oper_out);

// Writes up to |max_consumers| inputs that read |oper_out|; returns how many there are.
TF_CAPI_EXPORT int TF_OperationOutputConsumers(TF_Output oper_out, TF_Input* consumers,
                                               int max_consumers);

// The number of operations that this one waits for.
TF_CAPI_EXPORT int TF_OperationNumControlInputs(TF_Operation* oper);

// Writes up to |max_control_inputs| operations; returns how many there are. So does the next but
// one, for the operations that wait for this one.
TF_CAPI_EXPORT int TF_OperationGetControlInputs(TF_Operation* oper, TF_Operation** control_inputs,
                                                int max_control_inputs);
TF_CAPI_EXPORT int TF_OperationNumControlOutputs(TF_Operation* oper);
TF_CAPI_EXPORT int TF_OperationGetControlOutputs(TF_Operation* oper, TF_Operation** control_outputs,
                                                 int max_control_outputs);

// What an attribute holds, so that the caller can size its arrays.
typedef struct TF_AttrMetadata {
  unsigned char is_list;
  int64_t list_size;   // elements of a list, -1 otherwise
  TF_AttrType type;    // of the value, or of the list's elements
  int64_t total_size;  // bytes of strings or dimensions of shapes, summed over a list; else -1
} TF_AttrMetadata;

// Describes the attribute |attr_name|.
TF_CAPI_EXPORT TF_AttrMetadata TF_OperationGetAttrMetadata(TF_Operation* oper,
                                                           const char* attr_name,
                                                           TF_Status* status);

// The getters below write into the caller's arrays. An array that is too short gets what fits. For
// strings |max_length|, for lists |max_values| is the room; TF_OperationGetAttrMetadata tells how
// much is there. A value of another kind than asked for is TF_INVALID_ARGUMENT.
TF_CAPI_EXPORT void TF_OperationGetAttrString(TF_Operation* oper, const char* attr_name,
                                              void* value, size_t max_length, TF_Status* status);

// Bytes go into |storage|, |storage_size| long (total_size of the metadata); |values[i]| points
// into it.
TF_CAPI_EXPORT void TF_OperationGetAttrStringList(TF_Operation* oper, const char* attr_name,
                                                  void** values, size_t* lengths, int max_values,
                                                  void* storage, size_t storage_size,
                                                  TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrInt(TF_Operation* oper, const char* attr_name,
                                           int64_t* value, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrIntList(TF_Operation* oper, const char* attr_name,
                                               int64_t* values, int max_values, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrFloat(TF_Operation* oper, const char* attr_name,
                                             float* value, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrFloatList(TF_Operation* oper, const char* attr_name,
                                                 float* values, int max_values, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrBool(TF_Operation* oper, const char* attr_name,
                                            unsigned char* value, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrBoolList(TF_Operation* oper, const char* attr_name,
                                                unsigned char* values, int max_values,
                                                TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrType(TF_Operation* oper, const char* attr_name,
                                            TF_DataType* value, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrTypeList(TF_Operation* oper, const char* attr_name,
                                                TF_DataType* values, int max_values,
                                                TF_Status* status);

// Writes |num_dims| dimensions, -1 for unknown ones.
TF_CAPI_EXPORT void TF_OperationGetAttrShape(TF_Operation* oper, const char* attr_name,
                                             int64_t* value, int num_dims, TF_Status* status);

// Dimensions go into |storage|, |storage_size| numbers long; |dims[i]| points into it, and is NULL
// with |num_dims[i]| -1 for an unknown rank.
TF_CAPI_EXPORT void TF_OperationGetAttrShapeList(TF_Operation* oper, const char* attr_name,
                                                 int64_t** dims, int* num_dims, int num_shapes,
                                                 int64_t* storage, int storage_size,
                                                 TF_Status* status);

// Each buffer receives a TensorShapeProto; |value| must be empty, |values| are made by the call and
// belong to the caller.
TF_CAPI_EXPORT void TF_OperationGetAttrTensorShapeProto(TF_Operation* oper, const char* attr_name,
                                                        TF_Buffer* value, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrTensorShapeProtoList(TF_Operation* oper,
                                                            const char* attr_name,
                                                            TF_Buffer** values, int max_values,
                                                            TF_Status* status);

// New tensors, which the caller deletes.
TF_CAPI_EXPORT void TF_OperationGetAttrTensor(TF_Operation* oper, const char* attr_name,
                                              TF_Tensor** value, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrTensorList(TF_Operation* oper, const char* attr_name,
                                                  TF_Tensor** values, int max_values,
                                                  TF_Status* status);

// |output_attr_value|, an empty buffer, receives an AttrValue.
TF_CAPI_EXPORT void TF_OperationGetAttrValueProto(TF_Operation* oper, const char* attr_name,
                                                  TF_Buffer* output_attr_value, TF_Status* status);

// Attributes by number: how many, bytes of the name of the i-th, and that name (no NUL at the end).
TF_CAPI_EXPORT int TF_OperationGetNumAttrs(TF_Operation* oper);
TF_CAPI_EXPORT int TF_OperationGetAttrNameLength(TF_Operation* oper, int i);
TF_CAPI_EXPORT void TF_OperationGetAttrName(TF_Operation* oper, int i, char* output,
                                            TF_Status* status);

// --- Reading a graph

// NULL when there is no such operation.
TF_CAPI_EXPORT TF_Operation* TF_GraphOperationByName(TF_Graph* graph, const char* oper_name);

// Walks over all operations: start with |*pos| 0 and call until NULL comes back. Operations added
// meanwhile may or may not be seen.
TF_CAPI_EXPORT TF_Operation* TF_GraphNextOperation(TF_Graph* graph, size_t* pos);

// The buffers below must be empty; they receive a GraphDef, an OpDef and a VersionDef.
TF_CAPI_EXPORT void TF_GraphToGraphDef(TF_Graph* graph, TF_Buffer* output_graph_def,
                                       TF_Status* status);
TF_CAPI_EXPORT void TF_GraphGetOpDef(TF_Graph* graph, const char* op_name, TF_Buffer* output_op_def,
                                     TF_Status* status);
TF_CAPI_EXPORT void TF_GraphVersions(TF_Graph* graph, TF_Buffer* output_version_def,
                                     TF_Status* status);

// --- Importing a GraphDef

typedef struct TF_ImportGraphDefOptions TF_ImportGraphDefOptions;

// Options with defaults; the caller deletes them. NULL is allowed in the second.
TF_CAPI_EXPORT TF_ImportGraphDefOptions* TF_NewImportGraphDefOptions(void);
TF_CAPI_EXPORT void TF_DeleteImportGraphDefOptions(TF_ImportGraphDefOptions* opts);

// Imported names become "prefix/name".
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsSetPrefix(TF_ImportGraphDefOptions* opts,
                                                      const char* prefix);

// For imported nodes that ask for no device.
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsSetDefaultDevice(TF_ImportGraphDefOptions* opts,
                                                             const char* device);

// 1: a name that is taken gets "_1", "_2", … instead of failing the import.
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsSetUniquifyNames(TF_ImportGraphDefOptions* opts,
                                                             unsigned char uniquify_names);

// The same for the prefix.
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsSetUniquifyPrefix(TF_ImportGraphDefOptions* opts,
                                                              unsigned char uniquify_prefix);

// Inputs of imported nodes that read |src_name|:|src_index| read |dst| instead.
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsAddInputMapping(TF_ImportGraphDefOptions* opts,
                                                            const char* src_name, int src_index,
                                                            TF_Output dst);

// Control inputs from |src_name| come from |dst| instead.
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsRemapControlDependency(TF_ImportGraphDefOptions* opts,
                                                                   const char* src_name,
                                                                   TF_Operation* dst);

// Imported nodes without imported inputs run after |oper|.
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsAddControlDependency(TF_ImportGraphDefOptions* opts,
                                                                 TF_Operation* oper);

// Ask for an imported output or operation in the results. Names are those of the GraphDef; a mapped
// input comes back as what it was mapped to.
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsAddReturnOutput(TF_ImportGraphDefOptions* opts,
                                                            const char* oper_name, int index);
TF_CAPI_EXPORT int TF_ImportGraphDefOptionsNumReturnOutputs(const TF_ImportGraphDefOptions* opts);
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsAddReturnOperation(TF_ImportGraphDefOptions* opts,
                                                               const char* oper_name);
TF_CAPI_EXPORT int TF_ImportGraphDefOptionsNumReturnOperations(
    const TF_ImportGraphDefOptions* opts);

typedef struct TF_ImportGraphDefResults TF_ImportGraphDefResults;

// Arrays lent by |results|, in the order of the requests.
TF_CAPI_EXPORT void TF_ImportGraphDefResultsReturnOutputs(TF_ImportGraphDefResults* results,
                                                          int* num_outputs, TF_Output** outputs);
TF_CAPI_EXPORT void TF_ImportGraphDefResultsReturnOperations(TF_ImportGraphDefResults* results,
                                                             int* num_opers, TF_Operation*** opers);

// Input mappings whose source is neither in the GraphDef nor used by it.
TF_CAPI_EXPORT void TF_ImportGraphDefResultsMissingUnusedInputMappings(
    TF_ImportGraphDefResults* results, int* num_missing_unused_input_mappings,
    const char*** src_names, int** src_indexes);

// Frees the results and the arrays that they lent. NULL is allowed.
TF_CAPI_EXPORT void TF_DeleteImportGraphDefResults(TF_ImportGraphDefResults* results);

// Adds the nodes of |graph_def| to |graph|, all or none. |options| may be NULL. The plain form
// drops the results; the one with return outputs writes exactly as many as were asked for.
TF_CAPI_EXPORT TF_ImportGraphDefResults* TF_GraphImportGraphDefWithResults(
    TF_Graph* graph, const TF_Buffer* graph_def, const TF_ImportGraphDefOptions* options,
    TF_Status* status);

// The same; |graph_def| holds a pointer to a GraphDef object instead of bytes, which only programs
// built together with TensorFlow's C++ classes can make. Answers TF_UNIMPLEMENTED.
TF_CAPI_EXPORT TF_ImportGraphDefResults* TF_GraphImportGraphDefWithResultsNoSerialization(
    TF_Graph* graph, const TF_Buffer* graph_def, const TF_ImportGraphDefOptions* options,
    TF_Status* status);

// The import without results, and with the outputs alone that the options ask for.
TF_CAPI_EXPORT void TF_GraphImportGraphDefWithReturnOutputs(
    TF_Graph* graph, const TF_Buffer* graph_def, const TF_ImportGraphDefOptions* options,
    TF_Output* return_outputs, int num_return_outputs, TF_Status* status);
TF_CAPI_EXPORT void TF_GraphImportGraphDef(TF_Graph* graph, const TF_Buffer* graph_def,
                                           const TF_ImportGraphDefOptions* options,
                                           TF_Status* status);

// --- Functions of a graph

// Adds a copy of |func|, and of its gradient |grad| if that is not NULL, to the graph's library.
TF_CAPI_EXPORT void TF_GraphCopyFunction(TF_Graph* g, const TF_Function* func,
                                         const TF_Function* grad, TF_Status* status);

// The number of functions in the graph's library.
TF_CAPI_EXPORT int TF_GraphNumFunctions(TF_Graph* g);

// Writes up to |max_func| functions, which the caller deletes; returns how many.
TF_CAPI_EXPORT int TF_GraphGetFunctions(TF_Graph* g, TF_Function** funcs, int max_func,
                                        TF_Status* status);

// |output_node_def|, an empty buffer, receives a NodeDef.
TF_CAPI_EXPORT void TF_OperationToNodeDef(TF_Operation* oper, TF_Buffer* output_node_def,
                                          TF_Status* status);

// --- While loops

// A loop under construction. Build the condition in |cond_graph| from |cond_inputs| and set
// |cond_output|; build one iteration in |body_graph| from |body_inputs| and set |body_outputs|;
// set |name|; then call TF_FinishWhile or TF_AbortWhile. Graphs and arrays belong to the loop.
typedef struct TF_WhileParams {
  const int ninputs;
  TF_Graph* const cond_graph;
  const TF_Output* const cond_inputs;
  TF_Output cond_output;
  TF_Graph* const body_graph;
  const TF_Output* const body_inputs;
  TF_Output* const body_outputs;
  const char* name;
} TF_WhileParams;

// Starts a loop over |ninputs| values of |g|. On failure all fields are zero.
TF_CAPI_EXPORT TF_WhileParams TF_NewWhile(TF_Graph* g, TF_Output* inputs, int ninputs,
                                          TF_Status* status);

// Adds the loop to the graph, writes its |ninputs| results to |outputs| and frees what |params|
// holds, also on failure.
TF_CAPI_EXPORT void TF_FinishWhile(const TF_WhileParams* params, TF_Status* status,
                                   TF_Output* outputs);

// Frees what |params| holds; the graph is as before.
TF_CAPI_EXPORT void TF_AbortWhile(const TF_WhileParams* params);

// --- Gradients

// Adds the partial derivatives of sum(y[0]), sum(y[1]), … with respect to each x, summed over y, to
// the graph and writes their outputs to |dy| (room for |nx|). |dx| holds the gradients that arrive
// at y (|ny| of them), or is NULL: then ones. An x that no y depends on is TF_INVALID_ARGUMENT. New
// nodes are named "gradients/…", or as |prefix| says; a prefix in use is an error.
TF_CAPI_EXPORT void TF_AddGradients(TF_Graph* g, TF_Output* y, int ny, TF_Output* x, int nx,
                                    TF_Output* dx, TF_Status* status, TF_Output* dy);
TF_CAPI_EXPORT void TF_AddGradientsWithPrefix(TF_Graph* g, const char* prefix, TF_Output* y, int ny,
                                              TF_Output* x, int nx, TF_Output* dx,
                                              TF_Status* status, TF_Output* dy);

// --- Functions

// A function from operations of |fn_body|. |num_opers| -1 takes all of them, otherwise |opers|
// lists the body. |output_names| may be NULL; |opts| must be. The caller deletes the function.
TF_CAPI_EXPORT TF_Function* TF_GraphToFunction(
    const TF_Graph* fn_body, const char* fn_name, unsigned char append_hash_to_fn_name,
    int num_opers, const TF_Operation* const* opers, int ninputs, const TF_Output* inputs,
    int noutputs, const TF_Output* outputs, const char* const* output_names,
    const TF_FunctionOptions* opts, const char* description, TF_Status* status);

// The same, with operations that always run, and their names in the signature.
TF_CAPI_EXPORT TF_Function* TF_GraphToFunctionWithControlOutputs(
    const TF_Graph* fn_body, const char* fn_name, unsigned char append_hash_to_fn_name,
    int num_opers, const TF_Operation* const* opers, int ninputs, const TF_Output* inputs,
    int noutputs, const TF_Output* outputs, const char* const* output_names, int ncontrol_outputs,
    const TF_Operation* const* control_outputs, const char* const* control_output_names,
    const TF_FunctionOptions* opts, const char* description, TF_Status* status);

// The name of the function, which lives as long as the function.
TF_CAPI_EXPORT const char* TF_FunctionName(TF_Function* func);
// |output_func_def|, an empty buffer, receives a FunctionDef.
TF_CAPI_EXPORT void TF_FunctionToFunctionDef(TF_Function* func, TF_Buffer* output_func_def,
                                             TF_Status* status);
// A function from the bytes of a FunctionDef. The caller deletes it.
TF_CAPI_EXPORT TF_Function* TF_FunctionImportFunctionDef(const void* proto, size_t proto_len,
                                                         TF_Status* status);

// |proto| and |output_attr_value| hold an AttrValue.
TF_CAPI_EXPORT void TF_FunctionSetAttrValueProto(TF_Function* func, const char* attr_name,
                                                 const void* proto, size_t proto_len,
                                                 TF_Status* status);
TF_CAPI_EXPORT void TF_FunctionGetAttrValueProto(TF_Function* func, const char* attr_name,
                                                 TF_Buffer* output_attr_value, TF_Status* status);

// Frees the caller's reference. Graphs that have a copy keep it. NULL is allowed.
TF_CAPI_EXPORT void TF_DeleteFunction(TF_Function* func);

// Tries to compute |output| from constants alone. Returns 1 and sets |*result| to a new tensor,
// which the caller deletes; 0 if it cannot be done, or if it failed as the status says.
TF_CAPI_EXPORT unsigned char TF_TryEvaluateConstant(TF_Graph* graph, TF_Output output,
                                                    TF_Tensor** result, TF_Status* status);

// --- Sessions

typedef struct TF_Session TF_Session;

// A session that runs |graph|, also operations added to it later. Options may be NULL; the caller
// keeps them. TF_DeleteSession ends it.
TF_CAPI_EXPORT TF_Session* TF_NewSession(TF_Graph* graph, const TF_SessionOptions* opts,
                                         TF_Status* status);

// Loads the SavedModel at |export_dir| that carries all |tags|: adds it to |graph|, an empty one,
// restores its variables and runs its initialisation. |run_options| may be NULL;
// |meta_graph_def|, where not NULL, must be empty and receives the MetaGraphDef.
TF_CAPI_EXPORT TF_Session* TF_LoadSessionFromSavedModel(const TF_SessionOptions* session_options,
                                                        const TF_Buffer* run_options,
                                                        const char* export_dir,
                                                        const char* const* tags, int tags_len,
                                                        TF_Graph* graph, TF_Buffer* meta_graph_def,
                                                        TF_Status* status);

// Runs in progress are cancelled; later ones fail.
TF_CAPI_EXPORT void TF_CloseSession(TF_Session* session, TF_Status* status);

// Closes the session if that has not been done, waits for its runs and frees it, whatever the
// status says.
TF_CAPI_EXPORT void TF_DeleteSession(TF_Session* session, TF_Status* status);

// Runs one step: feeds |inputs| with |input_values|, computes |outputs| and runs |target_opers|.
// The caller keeps the fed tensors, which must not change during the run, and owns the fetched
// ones. |run_options| is NULL or a RunOptions proto; |run_metadata| is NULL or an empty buffer that
// receives a RunMetadata.
TF_CAPI_EXPORT void TF_SessionRun(TF_Session* session, const TF_Buffer* run_options,
                                  const TF_Output* inputs, TF_Tensor* const* input_values,
                                  int ninputs, const TF_Output* outputs, TF_Tensor** output_values,
                                  int noutputs, const TF_Operation* const* target_opers,
                                  int ntargets, TF_Buffer* run_metadata, TF_Status* status);

// Announces a step that is fed and fetched in parts: all |inputs|, |outputs| and |target_opers| of
// all parts. |*handle| belongs to the caller (TF_DeletePRunHandle).
TF_CAPI_EXPORT void TF_SessionPRunSetup(TF_Session* session, const TF_Output* inputs, int ninputs,
                                        const TF_Output* outputs, int noutputs,
                                        const TF_Operation* const* target_opers, int ntargets,
                                        const char** handle, TF_Status* status);

// One part of it. Each input is fed once, each output fetched once; TF_INVALID_ARGUMENT for others.
TF_CAPI_EXPORT void TF_SessionPRun(TF_Session* session, const char* handle, const TF_Output* inputs,
                                   TF_Tensor* const* input_values, int ninputs,
                                   const TF_Output* outputs, TF_Tensor** output_values,
                                   int noutputs, const TF_Operation* const* target_opers,
                                   int ntargets, TF_Status* status);

// Frees the handle of a partial run. NULL is allowed.
TF_CAPI_EXPORT void TF_DeletePRunHandle(const char* handle);

// --- Sessions that are handed a GraphDef (older than TF_Graph)

typedef struct TF_DeprecatedSession TF_DeprecatedSession;

// Opens, closes and frees such a session.
TF_CAPI_EXPORT TF_DeprecatedSession* TF_NewDeprecatedSession(const TF_SessionOptions* options,
                                                             TF_Status* status);
TF_CAPI_EXPORT void TF_CloseDeprecatedSession(TF_DeprecatedSession* session, TF_Status* status);
TF_CAPI_EXPORT void TF_DeleteDeprecatedSession(TF_DeprecatedSession* session, TF_Status* status);

// Clears the named resource containers of the target; all of them when |ncontainers| is 0.
TF_CAPI_EXPORT void TF_Reset(const TF_SessionOptions* opt, const char** containers, int ncontainers,
                             TF_Status* status);

// Adds the nodes of a GraphDef.
TF_CAPI_EXPORT void TF_ExtendGraph(TF_DeprecatedSession* session, const void* proto,
                                   size_t proto_len, TF_Status* status);

// As TF_SessionRun and its relatives, with names in place of operations ("node" or "node:1").
// The rules on ownership are the same.
TF_CAPI_EXPORT void TF_Run(TF_DeprecatedSession* session, const TF_Buffer* run_options,
                           const char** input_names, TF_Tensor** inputs, int ninputs,
                           const char** output_names, TF_Tensor** outputs, int noutputs,
                           const char** target_oper_names, int ntargets, TF_Buffer* run_metadata,
                           TF_Status* status);
TF_CAPI_EXPORT void TF_PRunSetup(TF_DeprecatedSession* session, const char** input_names,
                                 int ninputs, const char** output_names, int noutputs,
                                 const char** target_oper_names, int ntargets, const char** handle,
                                 TF_Status* status);
TF_CAPI_EXPORT void TF_PRun(TF_DeprecatedSession* session, const char* handle,
                            const char** input_names, TF_Tensor** inputs, int ninputs,
                            const char** output_names, TF_Tensor** outputs, int noutputs,
                            const char** target_oper_names, int ntargets, TF_Status* status);

// --- Devices

typedef struct TF_DeviceList TF_DeviceList;

// The devices of a session. The caller deletes the list.
TF_CAPI_EXPORT TF_DeviceList* TF_SessionListDevices(TF_Session* session, TF_Status* status);
TF_CAPI_EXPORT TF_DeviceList* TF_DeprecatedSessionListDevices(TF_DeprecatedSession* session,
                                                              TF_Status* status);
TF_CAPI_EXPORT void TF_DeleteDeviceList(TF_DeviceList* list);
TF_CAPI_EXPORT int TF_DeviceListCount(const TF_DeviceList* list);

// Full name, such as "/job:localhost/replica:0/task:0/device:CPU:0"; type, such as "CPU". Lent.
TF_CAPI_EXPORT const char* TF_DeviceListName(const TF_DeviceList* list, int index,
                                             TF_Status* status);
TF_CAPI_EXPORT const char* TF_DeviceListType(const TF_DeviceList* list, int index,
                                             TF_Status* status);

// Memory of the device in bytes, -1 on failure; a number that changes when the device restarts.
TF_CAPI_EXPORT int64_t TF_DeviceListMemoryBytes(const TF_DeviceList* list, int index,
                                                TF_Status* status);
TF_CAPI_EXPORT uint64_t TF_DeviceListIncarnation(const TF_DeviceList* list, int index,
                                                 TF_Status* status);

// --- Plug-in libraries

typedef struct TF_Library TF_Library;

// Loads a shared library that registers ops and kernels through ops.h and kernels.h. A library
// loaded before comes back with the same ops. The handle is the caller's.
TF_CAPI_EXPORT TF_Library* TF_LoadLibrary(const char* library_filename, TF_Status* status);

// An OpList with the ops that the library registered; the handle owns the bytes.
TF_CAPI_EXPORT TF_Buffer TF_GetOpList(TF_Library* lib_handle);

// Frees the handle; what was loaded stays.
TF_CAPI_EXPORT void TF_DeleteLibraryHandle(TF_Library* lib_handle);

// --- What is registered

// All ops as an OpList. The caller deletes the buffer.
TF_CAPI_EXPORT TF_Buffer* TF_GetAllOpList(void);

// Descriptions of ops (ApiDef) by name.
typedef struct TF_ApiDefMap TF_ApiDefMap;

// A map with an empty description for each op of an OpList.
TF_CAPI_EXPORT TF_ApiDefMap* TF_NewApiDefMap(TF_Buffer* op_list_buffer, TF_Status* status);
TF_CAPI_EXPORT void TF_DeleteApiDefMap(TF_ApiDefMap* apimap);

// Merges an ApiDefs message in text form into the map.
TF_CAPI_EXPORT void TF_ApiDefMapPut(TF_ApiDefMap* api_def_map, const char* text, size_t text_len,
                                    TF_Status* status);

// The ApiDef of op |name|, which the caller deletes.
TF_CAPI_EXPORT TF_Buffer* TF_ApiDefMapGet(TF_ApiDefMap* api_def_map, const char* name,
                                          size_t name_len, TF_Status* status);

// KernelLists, which the caller deletes.
TF_CAPI_EXPORT TF_Buffer* TF_GetAllRegisteredKernels(TF_Status* status);
TF_CAPI_EXPORT TF_Buffer* TF_GetRegisteredKernelsForOp(const char* name, TF_Status* status);

// --- Changing a graph

// Makes |dst| read |new_src|. TF_INVALID_ARGUMENT when the types differ.
TF_CAPI_EXPORT void TF_UpdateEdge(TF_Graph* graph, TF_Output new_src, TF_Input dst,
                                  TF_Status* status);

// --- Servers

typedef struct TF_Server TF_Server;

// A server described by a ServerDef, bound to its address but not serving yet.
TF_CAPI_EXPORT TF_Server* TF_NewServer(const void* proto, size_t proto_len, TF_Status* status);
TF_CAPI_EXPORT void TF_ServerStart(TF_Server* server, TF_Status* status);
TF_CAPI_EXPORT void TF_ServerStop(TF_Server* server, TF_Status* status);

// Waits until the server has been stopped.
TF_CAPI_EXPORT void TF_ServerJoin(TF_Server* server, TF_Status* status);

// "grpc://host:port", for TF_SetTarget. Lent.
TF_CAPI_EXPORT const char* TF_ServerTarget(TF_Server* server);

// Stops the server if need be.
TF_CAPI_EXPORT void TF_DeleteServer(TF_Server* server);

// --- The process

// |listener| gets every log line from now on; NULL is allowed and ignored.
TF_CAPI_EXPORT void TF_RegisterLogListener(void (*listener)(const char*));

// Loads a shared library that adds file systems.
TF_CAPI_EXPORT void TF_RegisterFilesystemPlugin(const char* plugin_filename, TF_Status* status);

// --- Changing operations in place
//
// For front ends that rewrite their graph. Changes reach sessions at their next run, and only for
// operations that have not run yet.

// Makes |op| wait for |input|.
TF_CAPI_EXPORT void TF_AddOperationControlInput(TF_Graph* graph, TF_Operation* op,
                                                TF_Operation* input);

// |attr_value_proto| holds an AttrValue.
TF_CAPI_EXPORT void TF_SetAttr(TF_Graph* graph, TF_Operation* op, const char* attr_name,
                               TF_Buffer* attr_value_proto, TF_Status* status);
TF_CAPI_EXPORT void TF_ClearAttr(TF_Graph* graph, TF_Operation* op, const char* attr_name,
                                 TF_Status* status);

// |full_type_proto| holds a FullTypeDef.
TF_CAPI_EXPORT void TF_SetFullType(TF_Graph* graph, TF_Operation* op,
                                   const TF_Buffer* full_type_proto);
TF_CAPI_EXPORT void TF_SetRequestedDevice(TF_Graph* graph, TF_Operation* op, const char* device);
TF_CAPI_EXPORT void TF_RemoveAllControlInputs(TF_Graph* graph, TF_Operation* op);

// true: adding an operation whose op has no shape function fails.
TF_CAPI_EXPORT void TF_SetRequireShapeInferenceFns(TF_Graph* graph, bool require);

// Tells the session about new operations now instead of at its next run.
TF_CAPI_EXPORT void TF_ExtendSession(TF_Session* session, TF_Status* status);

// Shape and type behind a resource handle, as a CppShapeInferenceResult.HandleData. The caller
// deletes the buffer.
TF_CAPI_EXPORT TF_Buffer* TF_GetHandleShapeAndType(TF_Graph* graph, TF_Output output);
TF_CAPI_EXPORT void TF_SetHandleShapeAndType(TF_Graph* graph, TF_Output output, const void* proto,
                                             size_t proto_len, TF_Status* status);

// Appends |new_src| to the inputs of the While operation |dst|.
TF_CAPI_EXPORT void TF_AddWhileInputHack(TF_Graph* graph, TF_Output new_src, TF_Operation* dst,
                                         TF_Status* status);

#ifdef __cplusplus
}
#endif

#endif  // TENSORFLOW_C_C_API_H_

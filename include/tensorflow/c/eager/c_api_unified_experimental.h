// One interface for running ops at once and for tracing them into a function. The rules of c_api.h
// hold. Not implemented: functions that take a status set TF_UNIMPLEMENTED.

#ifndef TENSORFLOW_C_EAGER_C_API_UNIFIED_EXPERIMENTAL_H_
#define TENSORFLOW_C_EAGER_C_API_UNIFIED_EXPERIMENTAL_H_

#include <stdint.h>

#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/tf_datatype.h"
#include "tensorflow/c/tf_status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TF_ExecutionContext TF_ExecutionContext;
typedef struct TF_AbstractTensor TF_AbstractTensor;
typedef struct TF_AbstractOp TF_AbstractOp;
typedef struct TF_AbstractFunction TF_AbstractFunction;
typedef struct TF_OutputList TF_OutputList;

// |num_dims| -1 is an unknown rank, a size of -1 an unknown dimension.
typedef struct TF_Shape {
  int num_dims;
  int64_t* dim_sizes;
} TF_Shape;

// --- Contexts: one that traces a function, or one that executes

// Chooses how functions are traced, by name: "graphdef" or "mlir".
TF_CAPI_EXPORT void TF_SetTracingImplementation(const char* name, TF_Status* status);
// A context that traces ops into the function |fn_name|.
TF_CAPI_EXPORT TF_ExecutionContext* TF_CreateFunction(const char* fn_name, TF_Status* status);
// A context that runs ops at once.
TF_CAPI_EXPORT TF_ExecutionContext* TF_NewEagerExecutionContext(TFE_ContextOptions* options,
                                                                TF_Status* s);
// Frees the context. NULL is allowed.
TF_CAPI_EXPORT void TF_DeleteExecutionContext(TF_ExecutionContext* ctx);

// A parameter of the function that is being traced.
TF_CAPI_EXPORT TF_AbstractTensor* TF_AddFunctionParameter(TF_ExecutionContext* func,
                                                          TF_DataType dtype, TF_Shape shape,
                                                          TF_Status* s);

// --- Ops

// An op to describe: its type, its name, its attributes. The caller deletes it.
TF_CAPI_EXPORT TF_AbstractOp* TF_NewAbstractOp(TF_ExecutionContext* ctx);
TF_CAPI_EXPORT void TF_DeleteAbstractOp(TF_AbstractOp* op);
TF_CAPI_EXPORT void TF_AbstractOpSetOpType(TF_AbstractOp* op, const char* op_type, TF_Status* s);
TF_CAPI_EXPORT void TF_AbstractOpSetOpName(TF_AbstractOp* op, const char* op_name, TF_Status* s);
TF_CAPI_EXPORT void TF_AbstractOpSetAttrType(TF_AbstractOp* op, const char* attr_name,
                                             TF_DataType value, TF_Status* s);
// Frees the tensor. NULL is allowed.
TF_CAPI_EXPORT void TF_DeleteAbstractTensor(TF_AbstractTensor* tensor);

// --- Lists of outputs; a list does not own its tensors

// An empty list. The caller deletes it.
TF_CAPI_EXPORT TF_OutputList* TF_NewOutputList(void);
TF_CAPI_EXPORT void TF_DeleteOutputList(TF_OutputList* o);
// Sets the number of outputs that are expected, reads it, reads one output, and appends one.
TF_CAPI_EXPORT void TF_OutputListSetNumOutputs(TF_OutputList* o, int num_outputs,
                                               TF_Status* status);
TF_CAPI_EXPORT int TF_OutputListNumOutputs(TF_OutputList* o);
TF_CAPI_EXPORT TF_AbstractTensor* TF_OutputListGet(TF_OutputList* o, int i);
TF_CAPI_EXPORT void TF_OutputListPushBack(TF_OutputList* o, TF_AbstractTensor* tensor,
                                          TF_Status* status);

// --- Running and finishing

// Runs or traces |op|; the outputs go to |o|.
TF_CAPI_EXPORT void TF_ExecuteOperation(TF_AbstractOp* op, int num_inputs,
                                        TF_AbstractTensor* const* inputs, TF_OutputList* o,
                                        TF_Status* s);

// Ends the tracing; consumes |ctx| on success.
TF_CAPI_EXPORT TF_AbstractFunction* TF_FinalizeFunction(TF_ExecutionContext* ctx,
                                                        TF_OutputList* outputs, TF_Status* status);
TF_CAPI_EXPORT void TF_DeleteAbstractFunction(TF_AbstractFunction* func);
TF_CAPI_EXPORT void TF_ExecutionContextRegisterFunction(TF_ExecutionContext* ctx,
                                                        TF_AbstractFunction* func,
                                                        TF_Status* status);

// --- To and from the eager API

// Conversions. A handle that comes in is owned by the result; what comes out is lent.
TF_CAPI_EXPORT TF_AbstractTensor* TF_CreateAbstractTensorFromEagerTensor(TFE_TensorHandle* t,
                                                                         TF_Status* s);
TF_CAPI_EXPORT TFE_TensorHandle* TF_AbstractTensorGetEagerTensor(TF_AbstractTensor* at,
                                                                 TF_Status* s);
TF_CAPI_EXPORT TFE_Context* TF_ExecutionContextGetTFEContext(TF_ExecutionContext* ctx,
                                                             TF_Status* s);

#ifdef __cplusplus
}
#endif

#endif  // TENSORFLOW_C_EAGER_C_API_UNIFIED_EXPERIMENTAL_H_

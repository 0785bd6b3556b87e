// Eager execution: ops run when they are called, on tensor handles.
//
// The rules of c_api.h on ownership, NULL and statuses hold here. A context may be used from many
// threads; a TFE_Op from one at a time.

#ifndef TENSORFLOW_C_EAGER_C_API_H_
#define TENSORFLOW_C_EAGER_C_API_H_

#include <stddef.h>
#include <stdint.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/c_api_macros.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- Contexts

typedef struct TFE_ContextOptions TFE_ContextOptions;

// Options with defaults. The caller deletes them.
TF_CAPI_EXPORT TFE_ContextOptions* TFE_NewContextOptions(void);

// |proto| is a ConfigProto.
TF_CAPI_EXPORT void TFE_ContextOptionsSetConfig(TFE_ContextOptions* options, const void* proto,
                                                size_t proto_len, TF_Status* status);

// What happens when an input lies on another device than the op.
typedef enum TFE_ContextDevicePlacementPolicy {
  TFE_DEVICE_PLACEMENT_EXPLICIT = 0,          // an error
  TFE_DEVICE_PLACEMENT_WARN = 1,              // copied, with a warning
  TFE_DEVICE_PLACEMENT_SILENT = 2,            // copied
  TFE_DEVICE_PLACEMENT_SILENT_FOR_INT32 = 3,  // copied if int32, else an error
} TFE_ContextDevicePlacementPolicy;

// 1: TFE_Execute may return before the op has run.
TF_CAPI_EXPORT void TFE_ContextOptionsSetAsync(TFE_ContextOptions* options, unsigned char enable);
TF_CAPI_EXPORT void TFE_ContextOptionsSetDevicePlacementPolicy(
    TFE_ContextOptions* options, TFE_ContextDevicePlacementPolicy policy);
TF_CAPI_EXPORT void TFE_DeleteContextOptions(TFE_ContextOptions* options);

typedef struct TFE_Context TFE_Context;

// |opts| may be NULL and stays the caller's.
TF_CAPI_EXPORT TFE_Context* TFE_NewContext(const TFE_ContextOptions* opts, TF_Status* status);
TF_CAPI_EXPORT void TFE_DeleteContext(TFE_Context* ctx);

// The caller deletes the list.
TF_CAPI_EXPORT TF_DeviceList* TFE_ContextListDevices(TFE_Context* ctx, TF_Status* status);

// Forgets compiled ops; they are made again when needed.
TF_CAPI_EXPORT void TFE_ContextClearCaches(TFE_Context* ctx);

// The policy of the calling thread.
TF_CAPI_EXPORT void TFE_ContextSetThreadLocalDevicePlacementPolicy(
    TFE_Context* ctx, TFE_ContextDevicePlacementPolicy policy);
TF_CAPI_EXPORT TFE_ContextDevicePlacementPolicy
TFE_ContextGetDevicePlacementPolicy(TFE_Context* ctx);

// Joins the cluster of a ServerDef.
TF_CAPI_EXPORT void TFE_ContextSetServerDef(TFE_Context* ctx, int keep_alive_secs,
                                            const void* proto, size_t proto_len, TF_Status* status);

// --- Tensor handles

typedef struct TFE_TensorHandle TFE_TensorHandle;

// A handle that shares the buffer of |t|, which stays the caller's.
TF_CAPI_EXPORT TFE_TensorHandle* TFE_NewTensorHandle(const TF_Tensor* t, TF_Status* status);
TF_CAPI_EXPORT void TFE_DeleteTensorHandle(TFE_TensorHandle* h);
TF_CAPI_EXPORT TF_DataType TFE_TensorHandleDataType(TFE_TensorHandle* h);

// These wait for the value where it is still being computed. -1 on failure.
TF_CAPI_EXPORT int TFE_TensorHandleNumDims(TFE_TensorHandle* h, TF_Status* status);
TF_CAPI_EXPORT int64_t TFE_TensorHandleNumElements(TFE_TensorHandle* h, TF_Status* status);
TF_CAPI_EXPORT int64_t TFE_TensorHandleDim(TFE_TensorHandle* h, int dim_index, TF_Status* status);

// The device of the op that made the value, and the device that holds it. Lent.
TF_CAPI_EXPORT const char* TFE_TensorHandleDeviceName(TFE_TensorHandle* h, TF_Status* status);
TF_CAPI_EXPORT const char* TFE_TensorHandleBackingDeviceName(TFE_TensorHandle* h,
                                                             TF_Status* status);

// A second handle on the same tensor.
TF_CAPI_EXPORT TFE_TensorHandle* TFE_TensorHandleCopySharingTensor(TFE_TensorHandle* h,
                                                                   TF_Status* status);

// Waits for the value and returns it as a host tensor, which the caller deletes. It may share the
// handle's buffer: do not write to it.
TF_CAPI_EXPORT TF_Tensor* TFE_TensorHandleResolve(TFE_TensorHandle* h, TF_Status* status);

// A handle on |device_name|; the same tensor if it is there already.
TF_CAPI_EXPORT TFE_TensorHandle* TFE_TensorHandleCopyToDevice(TFE_TensorHandle* h, TFE_Context* ctx,
                                                              const char* device_name,
                                                              TF_Status* status);

// How a device lays a tensor out.
typedef struct TFE_TensorDebugInfo TFE_TensorDebugInfo;

// The layout of the handle's tensor. The caller deletes it.
TF_CAPI_EXPORT TFE_TensorDebugInfo* TFE_TensorHandleTensorDebugInfo(TFE_TensorHandle* h,
                                                                    TF_Status* status);
// Frees the description. NULL is allowed.
TF_CAPI_EXPORT void TFE_DeleteTensorDebugInfo(TFE_TensorDebugInfo* debug_info);
// The rank of the tensor as the device stores it, and one of its dimensions.
TF_CAPI_EXPORT int TFE_TensorDebugInfoOnDeviceNumDims(TFE_TensorDebugInfo* debug_info);
TF_CAPI_EXPORT int64_t TFE_TensorDebugInfoOnDeviceDim(TFE_TensorDebugInfo* debug_info,
                                                      int dim_index);

// --- Ops
//
// A description: TFE_NewOp, inputs in order, attributes, TFE_Execute. It may be executed more than
// once. A wrong attribute is reported by TFE_Execute.

typedef struct TFE_Op TFE_Op;

// Begins the description of an op or of a call of a function.
TF_CAPI_EXPORT TFE_Op* TFE_NewOp(TFE_Context* ctx, const char* op_or_function_name,
                                 TF_Status* status);
// Frees the description. NULL is allowed.
TF_CAPI_EXPORT void TFE_DeleteOp(TFE_Op* op);

// Name, context and device, which live as long as the op.
TF_CAPI_EXPORT const char* TFE_OpGetName(const TFE_Op* op, TF_Status* status);
TF_CAPI_EXPORT TFE_Context* TFE_OpGetContext(const TFE_Op* op, TF_Status* status);
TF_CAPI_EXPORT void TFE_OpSetDevice(TFE_Op* op, const char* device_name, TF_Status* status);
TF_CAPI_EXPORT const char* TFE_OpGetDevice(const TFE_Op* op, TF_Status* status);

// The op shares the handle; the caller keeps it.
TF_CAPI_EXPORT void TFE_OpAddInput(TFE_Op* op, TFE_TensorHandle* input, TF_Status* status);
TF_CAPI_EXPORT void TFE_OpAddInputList(TFE_Op* op, TFE_TensorHandle** inputs, int num_inputs,
                                       TF_Status* status);

// Inputs with their lists laid flat; the handle is lent.
TF_CAPI_EXPORT int TFE_OpGetFlatInputCount(const TFE_Op* op, TF_Status* status);
TF_CAPI_EXPORT TFE_TensorHandle* TFE_OpGetFlatInput(const TFE_Op* op, int index, TF_Status* status);

// The kind of an attribute; |*is_list| is 1 for a list of that kind.
TF_CAPI_EXPORT TF_AttrType TFE_OpGetAttrType(TFE_Op* op, const char* attr_name,
                                             unsigned char* is_list, TF_Status* status);
TF_CAPI_EXPORT TF_AttrType TFE_OpNameGetAttrType(TFE_Context* ctx, const char* op_or_function_name,
                                                 const char* attr_name, unsigned char* is_list,
                                                 TF_Status* status);

// Attributes, as TF_SetAttr* of c_api.h.
TF_CAPI_EXPORT void TFE_OpSetAttrString(TFE_Op* op, const char* attr_name, const void* value,
                                        size_t length);
TF_CAPI_EXPORT void TFE_OpSetAttrInt(TFE_Op* op, const char* attr_name, int64_t value);
TF_CAPI_EXPORT void TFE_OpSetAttrFloat(TFE_Op* op, const char* attr_name, float value);
TF_CAPI_EXPORT void TFE_OpSetAttrBool(TFE_Op* op, const char* attr_name, unsigned char value);
TF_CAPI_EXPORT void TFE_OpSetAttrType(TFE_Op* op, const char* attr_name, TF_DataType value);
TF_CAPI_EXPORT void TFE_OpSetAttrShape(TFE_Op* op, const char* attr_name, const int64_t* dims,
                                       int num_dims, TF_Status* out_status);

// A function: name and attributes of |value|, or a plain name.
TF_CAPI_EXPORT void TFE_OpSetAttrFunction(TFE_Op* op, const char* attr_name, const TFE_Op* value);
TF_CAPI_EXPORT void TFE_OpSetAttrFunctionName(TFE_Op* op, const char* attr_name, const char* data,
                                              size_t length);
TF_CAPI_EXPORT void TFE_OpSetAttrTensor(TFE_Op* op, const char* attr_name, TF_Tensor* tensor,
                                        TF_Status* status);
TF_CAPI_EXPORT void TFE_OpSetAttrStringList(TFE_Op* op, const char* attr_name,
                                            const void* const* values, const size_t* lengths,
                                            int num_values);
TF_CAPI_EXPORT void TFE_OpSetAttrIntList(TFE_Op* op, const char* attr_name, const int64_t* values,
                                         int num_values);
TF_CAPI_EXPORT void TFE_OpSetAttrFloatList(TFE_Op* op, const char* attr_name, const float* values,
                                           int num_values);
TF_CAPI_EXPORT void TFE_OpSetAttrBoolList(TFE_Op* op, const char* attr_name,
                                          const unsigned char* values, int num_values);
TF_CAPI_EXPORT void TFE_OpSetAttrTypeList(TFE_Op* op, const char* attr_name,
                                          const TF_DataType* values, int num_values);
TF_CAPI_EXPORT void TFE_OpSetAttrShapeList(TFE_Op* op, const char* attr_name, const int64_t** dims,
                                           const int* num_dims, int num_values,
                                           TF_Status* out_status);
TF_CAPI_EXPORT void TFE_OpSetAttrFunctionList(TFE_Op* op, const char* attr_name,
                                              const TFE_Op** value, int num_values);

// How many inputs or outputs an argument stands for; -1 on failure.
TF_CAPI_EXPORT int TFE_OpGetInputLength(TFE_Op* op, const char* input_name, TF_Status* status);
TF_CAPI_EXPORT int TFE_OpGetOutputLength(TFE_Op* op, const char* output_name, TF_Status* status);

// Runs the op. |*num_retvals| is the room in |retvals| and becomes the number of outputs; the
// caller owns the handles.
TF_CAPI_EXPORT void TFE_Execute(TFE_Op* op, TFE_TensorHandle** retvals, int* num_retvals,
                                TF_Status* status);

// --- Functions of a context

// |serialized_function_def| has |size| bytes.
TF_CAPI_EXPORT void TFE_ContextAddFunctionDef(TFE_Context* ctx, const char* serialized_function_def,
                                              size_t size, TF_Status* status);
TF_CAPI_EXPORT void TFE_ContextAddFunction(TFE_Context* ctx, TF_Function* function,
                                           TF_Status* status);
TF_CAPI_EXPORT void TFE_ContextRemoveFunction(TFE_Context* ctx, const char* name,
                                              TF_Status* status);
TF_CAPI_EXPORT unsigned char TFE_ContextHasFunction(TFE_Context* ctx, const char* name);

// --- Tracing

// Starts and stops recording what runs.
TF_CAPI_EXPORT void TFE_ContextEnableRunMetadata(TFE_Context* ctx);
TF_CAPI_EXPORT void TFE_ContextDisableRunMetadata(TFE_Context* ctx);

// |buf|, an empty buffer, receives a RunMetadata of what ran since the last export.
TF_CAPI_EXPORT void TFE_ContextExportRunMetadata(TFE_Context* ctx, TF_Buffer* buf,
                                                 TF_Status* status);

// Values of one step (such as TensorArrays) live from start to end.
TF_CAPI_EXPORT void TFE_ContextStartStep(TFE_Context* ctx);
TF_CAPI_EXPORT void TFE_ContextEndStep(TFE_Context* ctx);

#ifdef __cplusplus
}
#endif

#endif  // TENSORFLOW_C_EAGER_C_API_H_

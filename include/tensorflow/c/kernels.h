// Kernels written in C by a plug-in: registration, and what a kernel may ask while it is built and
// while it runs.
//
// A plug-in library exports TF_InitKernel; TF_LoadLibrary calls it once. The rules of c_api.h on
// NULL, statuses and lent strings hold here too. A context is valid only during the call it is
// passed to, for an asynchronous kernel until its done callback has run.

#ifndef TENSORFLOW_C_KERNELS_H_
#define TENSORFLOW_C_KERNELS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/experimental/stream_executor/stream_executor.h"
#include "tensorflow/c/tf_buffer.h"
#include "tensorflow/c/tf_datatype.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow/c/tf_tensor.h"
#include "tensorflow/core/common_runtime/next_pluggable_device/c/tf_rendezvous_c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TF_KernelBuilder TF_KernelBuilder;
typedef struct TF_OpKernelConstruction TF_OpKernelConstruction;
typedef struct TF_OpKernelContext TF_OpKernelContext;
typedef struct TF_AsyncOpKernelDoneCallback TF_AsyncOpKernelDoneCallback;

// Ends an asynchronous kernel's run; called exactly once, from any thread.
TF_CAPI_EXPORT void TF_RunAsyncOpKernelDoneCallback(TF_AsyncOpKernelDoneCallback* done);

// Defined by the plug-in, not by this library: registers its ops and kernels.
void TF_InitKernel(void);

// --- Registration

// A kernel for op |op_name| on device type |device_name|. |create_func| (may be NULL) makes the
// kernel's own state, which |compute_func| receives on each run and |delete_func| (may be NULL)
// frees. |compute_func| may run on several threads at once.
TF_CAPI_EXPORT TF_KernelBuilder* TF_NewKernelBuilder(
    const char* op_name, const char* device_name, void* (*create_func)(TF_OpKernelConstruction*),
    void (*compute_func)(void*, TF_OpKernelContext*), void (*delete_func)(void*));

// The same for a kernel that finishes later, by TF_RunAsyncOpKernelDoneCallback on |done|.
TF_CAPI_EXPORT TF_KernelBuilder* TF_NewAsyncKernelBuilder(
    const char* op_name, const char* device_name, void* (*create_func)(TF_OpKernelConstruction*),
    void (*compute_async_func)(void*, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback* done),
    void (*delete_func)(void*));

// Only for nodes whose attribute |attr_name| is |type|. Several types of one attribute may be
// given.
TF_CAPI_EXPORT void TF_KernelBuilder_TypeConstraint(TF_KernelBuilder* kernel_builder,
                                                    const char* attr_name, TF_DataType type,
                                                    TF_Status* status);

// Argument |arg_name| lies in host memory whatever the device.
TF_CAPI_EXPORT void TF_KernelBuilder_HostMemory(TF_KernelBuilder* kernel_builder,
                                                const char* arg_name);

// Among kernels that fit, the highest priority wins; 0 unless set.
TF_CAPI_EXPORT void TF_KernelBuilder_Priority(TF_KernelBuilder* kernel_builder,
                                              int32_t priority_number);

// Only for nodes that ask for this label in "_kernel".
TF_CAPI_EXPORT void TF_KernelBuilder_Label(TF_KernelBuilder* kernel_builder, const char* label);

// Registers under |kernel_name|, a name for messages, and consumes |builder| even on failure. To
// delete one that is registered does nothing.
TF_CAPI_EXPORT void TF_RegisterKernelBuilder(const char* kernel_name, TF_KernelBuilder* builder,
                                             TF_Status* status);

// The same; type constraints, host memory and label come from a KernelDef (NUL-terminated bytes).
TF_CAPI_EXPORT void TF_RegisterKernelBuilderWithKernelDef(const char* serialized_kernel_def,
                                                          const char* name,
                                                          TF_KernelBuilder* builder,
                                                          TF_Status* status);

// For a builder that was not registered. NULL is allowed.
TF_CAPI_EXPORT void TF_DeleteKernelBuilder(TF_KernelBuilder* builder);

// --- While a kernel runs

// The device's stream; TF_FAILED_PRECONDITION on devices without one.
TF_CAPI_EXPORT SP_Stream TF_GetStream(TF_OpKernelContext* ctx, TF_Status* status);

// The number of inputs and of outputs.
TF_CAPI_EXPORT int TF_NumInputs(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT int TF_NumOutputs(TF_OpKernelContext* ctx);

// |*tensor| is a new tensor that shares input |i|; the caller deletes it.
TF_CAPI_EXPORT void TF_GetInput(TF_OpKernelContext* ctx, int i, TF_Tensor** tensor,
                                TF_Status* status);

// The inputs that an argument stands for: [start, stop). The caller sets |struct_size| and
// |status|.
typedef struct {
  size_t struct_size;
  void* priv;
  int start;
  int stop;
  TF_Status* status;
} TF_InputRange_Args;

#define TF_InputRange_Args_STRUCT_SIZE TF_OFFSET_OF_END(TF_InputRange_Args, status)

// Sets |args->start| and |args->stop| for the argument |name|.
TF_CAPI_EXPORT void TF_InputRange(TF_OpKernelContext* ctx, const char* name,
                                  TF_InputRange_Args* args);
// The type of input |index|.
TF_CAPI_EXPORT TF_DataType TF_InputDatatype(TF_OpKernelContext* ctx, int index);

// Output |i| shares the buffer of |tensor|, which stays the caller's.
TF_CAPI_EXPORT void TF_SetOutput(TF_OpKernelContext* ctx, int i, const TF_Tensor* tensor,
                                 TF_Status* status);

// A new tensor that shares output |i|; NULL when it is not set yet.
TF_CAPI_EXPORT TF_Tensor* TF_GetMutableOutput(TF_OpKernelContext* ctx, int i, TF_Status* status);

// Empty buffers that receive a FunctionDefLibrary, a ConfigProto and a ResourceHandleProto.
TF_CAPI_EXPORT void TF_GetSerializedFunctionDefLibrary(TF_OpKernelContext* ctx,
                                                       TF_Buffer* serialized_function_def_library,
                                                       TF_Status* status);
TF_CAPI_EXPORT void TF_GetSerializedConfigProto(TF_OpKernelContext* ctx,
                                                TF_Buffer* serialized_config_proto,
                                                TF_Status* status);
TF_CAPI_EXPORT void TF_GetSerializedResourceHandleProto(TF_OpKernelContext* ctx, int i,
                                                        TF_Buffer* serialized_resource_handle_proto,
                                                        TF_Status* status);

// Fail the construction or the run with |status|, which is copied. The function that was called
// still has to return.
TF_CAPI_EXPORT void TF_OpKernelConstruction_Failure(TF_OpKernelConstruction* ctx,
                                                    TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelContext_Failure(TF_OpKernelContext* ctx, TF_Status* status);

// The type that output |i| must have.
TF_CAPI_EXPORT TF_DataType TF_ExpectedOutputDataType(TF_OpKernelContext* ctx, int i);
// Whether input or output |i| lies in host memory.
TF_CAPI_EXPORT bool TF_IsHostMemoryInput(TF_OpKernelContext* ctx, int i, TF_Status* status);
TF_CAPI_EXPORT bool TF_IsHostMemoryOutput(TF_OpKernelContext* ctx, int i, TF_Status* status);
// The number of the step.
TF_CAPI_EXPORT int64_t TF_StepId(TF_OpKernelContext* ctx);

// The node as a NodeDef. The caller deletes the buffer.
TF_CAPI_EXPORT TF_Buffer* TF_OpKernelConstruction_GetNodeDef(TF_OpKernelConstruction* ctx,
                                                             TF_Status* status);

// Where in a loop this run is, and where it happens.
TF_CAPI_EXPORT uint64_t TF_GetFrameId(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT int64_t TF_GetIterId(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT int64_t TF_GetStepId(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT int TF_GetDeviceId(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT TF_StringView TF_GetDeviceName(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT TF_RendezvousThunk TF_GetRendezvous(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT int TF_GetGraphDefVersion(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT TF_StringView TF_GetOpKernelName(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT TF_StringView TF_GetResourceMgrDefaultContainerName(TF_OpKernelContext* ctx);

// The name of input |index| as the NodeDef writes it.
TF_CAPI_EXPORT TF_StringView TF_GetOpKernelRequestedInput(TF_OpKernelContext* ctx, size_t index);

// --- Attributes, while a kernel is built

// Elements of a list and bytes or dimensions of its values, each -1 where that makes no sense.
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrSize(TF_OpKernelConstruction* ctx,
                                                        const char* attr_name, int32_t* list_size,
                                                        int32_t* total_size, TF_Status* status);

// The value of an attribute of this type. TF_INVALID_ARGUMENT if it has another.
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrType(TF_OpKernelConstruction* ctx,
                                                        const char* attr_name, TF_DataType* val,
                                                        TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrInt32(TF_OpKernelConstruction* ctx,
                                                         const char* attr_name, int32_t* val,
                                                         TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrInt64(TF_OpKernelConstruction* ctx,
                                                         const char* attr_name, int64_t* val,
                                                         TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrFloat(TF_OpKernelConstruction* ctx,
                                                         const char* attr_name, float* val,
                                                         TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrBool(TF_OpKernelConstruction* ctx,
                                                        const char* attr_name, TF_Bool* val,
                                                        TF_Status* status);

// Up to |max_length| bytes, no NUL added.
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrString(TF_OpKernelConstruction* ctx,
                                                          const char* attr_name, char* val,
                                                          size_t max_length, TF_Status* status);

// A new tensor, which the caller deletes.
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrTensor(TF_OpKernelConstruction* ctx,
                                                          const char* attr_name, TF_Tensor** val,
                                                          TF_Status* status);

// Lists: up to |max_vals| elements.
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrTypeList(TF_OpKernelConstruction* ctx,
                                                            const char* attr_name,
                                                            TF_DataType* vals, int max_vals,
                                                            TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrInt32List(TF_OpKernelConstruction* ctx,
                                                             const char* attr_name, int32_t* vals,
                                                             int max_vals, TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrInt64List(TF_OpKernelConstruction* ctx,
                                                             const char* attr_name, int64_t* vals,
                                                             int max_vals, TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrFloatList(TF_OpKernelConstruction* ctx,
                                                             const char* attr_name, float* vals,
                                                             int max_vals, TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrBoolList(TF_OpKernelConstruction* ctx,
                                                            const char* attr_name, TF_Bool* vals,
                                                            int max_vals, TF_Status* status);

// As TF_OperationGetAttrStringList.
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrStringList(TF_OpKernelConstruction* ctx,
                                                              const char* attr_name, char** values,
                                                              size_t* lengths, int max_values,
                                                              void* storage, size_t storage_size,
                                                              TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrTensorList(TF_OpKernelConstruction* ctx,
                                                              const char* attr_name,
                                                              TF_Tensor** vals, int max_values,
                                                              TF_Status* status);

// A NameAttrList. The caller deletes the buffer.
TF_CAPI_EXPORT TF_Buffer* TF_OpKernelConstruction_GetAttrFunction(TF_OpKernelConstruction* ctx,
                                                                  const char* attr_name,
                                                                  TF_Status* status);
TF_CAPI_EXPORT bool TF_OpKernelConstruction_HasAttr(TF_OpKernelConstruction* ctx,
                                                    const char* attr_name, TF_Status* status);
TF_CAPI_EXPORT TF_StringView TF_OpKernelConstruction_GetName(TF_OpKernelConstruction* ctx);

// --- Memory

// Allocates output |index|, |len| bytes; the tensor returned shares it and is the caller's.
TF_CAPI_EXPORT TF_Tensor* TF_AllocateOutput(TF_OpKernelContext* context, int index,
                                            TF_DataType dtype, const int64_t* dims, int num_dims,
                                            size_t len, TF_Status* status);

// Reuses the buffer of the first candidate input that fits and has no other owner (its index goes
// to |*forwarded_input| where that is not NULL), else allocates (-1).
TF_CAPI_EXPORT TF_Tensor* TF_ForwardInputOrAllocateOutput(
    TF_OpKernelContext* context, const int* candidate_input_indices,
    int num_candidate_input_indices, int output_index, const int64_t* output_dims,
    int output_num_dims, int* forwarded_input, TF_Status* status);

// Scratch memory on the device, or on the host if |alloc_attrs| asks for that.
TF_CAPI_EXPORT TF_Tensor* TF_AllocateTemp(TF_OpKernelContext* context, TF_DataType dtype,
                                          const int64_t* dims, int num_dims,
                                          TF_AllocatorAttributes* alloc_attrs, TF_Status* status);

// Work that outlives the compute call: the step ends only when the count is back to 0.
TF_CAPI_EXPORT void TF_IncNumDeferredOps(TF_OpKernelContext* context);
TF_CAPI_EXPORT void TF_DecNumDeferredOps(TF_OpKernelContext* context);

#ifdef __cplusplus
}
#endif

#endif  // TENSORFLOW_C_KERNELS_H_

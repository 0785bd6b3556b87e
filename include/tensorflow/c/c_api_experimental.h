// Additions to c_api.h that TensorFlow does not promise to keep. The rules of c_api.h hold.

#ifndef TENSORFLOW_C_C_API_EXPERIMENTAL_H_
#define TENSORFLOW_C_C_API_EXPERIMENTAL_H_

#include <stddef.h>
#include <stdint.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/eager/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- Compilation by XLA
//
// There is no XLA here: the switches are accepted and change nothing; the questions answer 0.

// Accepted without effect.
TF_CAPI_EXPORT void TF_EnableXLACompilation(TF_SessionOptions* options, unsigned char enable);
TF_CAPI_EXPORT unsigned char TF_SetXlaEnableLazyCompilation(unsigned char enable);
TF_CAPI_EXPORT unsigned char TF_SetTfXlaCpuGlobalJit(unsigned char enable);
TF_CAPI_EXPORT void TF_SetXlaAutoJitMode(const char* mode);
TF_CAPI_EXPORT unsigned char TF_GetXlaAutoJitEnabled(void);
TF_CAPI_EXPORT void TF_SetXlaMinClusterSize(int size);
TF_CAPI_EXPORT unsigned char TF_GetXlaConstantFoldingDisabled(void);
TF_CAPI_EXPORT void TF_SetXlaConstantFoldingDisabled(unsigned char should_enable);

// --- Ready-made protos

// A ConfigProto and a RunOptions. The caller deletes the buffers.
TF_CAPI_EXPORT TF_Buffer* TF_CreateConfig(unsigned char enable_xla_compilation,
                                          unsigned char gpu_memory_allow_growth,
                                          unsigned int num_cpu_devices);
TF_CAPI_EXPORT TF_Buffer* TF_CreateRunOptions(unsigned char enable_full_trace);

// --- Debugging

// The graph or the function as text. |*len| is its length. The caller frees it with free().
TF_CAPI_EXPORT const char* TF_GraphDebugString(TF_Graph* graph, size_t* len);
TF_CAPI_EXPORT char* TF_FunctionDebugString(TF_Function* func, size_t* len);

// --- Named queues

// Takes a tensor from, or puts one into, the queue with this number. Sets TF_UNIMPLEMENTED.
TF_CAPI_EXPORT TF_Tensor* TF_DequeueNamedTensor(TF_Session* session, int tensor_id,
                                                TF_Status* status);
TF_CAPI_EXPORT void TF_EnqueueNamedTensor(TF_Session* session, int tensor_id, TF_Tensor* tensor,
                                          TF_Status* status);

// A ServerDef from its text form. The caller deletes the buffer.
TF_CAPI_EXPORT TF_Buffer* TFE_GetServerDef(const char* text_proto, TF_Status* status);

// Sets TF_INTERNAL with the message |errMsg|.
TF_CAPI_EXPORT void TF_MakeInternalErrorStatus(TF_Status* status, const char* errMsg);

// --- Checkpoints

typedef struct TF_CheckpointReader TF_CheckpointReader;

// |filename| is a checkpoint's prefix. The caller deletes the reader.
TF_CAPI_EXPORT TF_CheckpointReader* TF_NewCheckpointReader(const char* filename, TF_Status* status);
TF_CAPI_EXPORT void TF_DeleteCheckpointReader(TF_CheckpointReader* reader);

// 1 or 0.
TF_CAPI_EXPORT int TF_CheckpointReaderHasTensor(TF_CheckpointReader* reader, const char* name);

// Names by number, from 0 to size - 1. They live as long as the reader.
TF_CAPI_EXPORT const char* TF_CheckpointReaderGetVariable(TF_CheckpointReader* reader, int index);
TF_CAPI_EXPORT int TF_CheckpointReaderSize(TF_CheckpointReader* reader);
TF_CAPI_EXPORT TF_DataType TF_CheckpointReaderGetVariableDataType(TF_CheckpointReader* reader,
                                                                  const char* name);
TF_CAPI_EXPORT void TF_CheckpointReaderGetVariableShape(TF_CheckpointReader* reader,
                                                        const char* name, int64_t* dims,
                                                        int num_dims, TF_Status* status);
TF_CAPI_EXPORT int TF_CheckpointReaderGetVariableNumDims(TF_CheckpointReader* reader,
                                                         const char* name);

// A new tensor, which the caller deletes.
TF_CAPI_EXPORT TF_Tensor* TF_CheckpointReaderGetTensor(TF_CheckpointReader* reader,
                                                       const char* name, TF_Status* status);

// --- Asking about ops

typedef struct TF_AttrBuilder TF_AttrBuilder;

// Attributes of the op |op_name|, to ask questions with. The caller deletes them.
TF_CAPI_EXPORT TF_AttrBuilder* TF_NewAttrBuilder(const char* op_name);
TF_CAPI_EXPORT void TF_DeleteAttrBuilder(TF_AttrBuilder* builder);
// Sets a type attribute, or a list of types.
TF_CAPI_EXPORT void TF_AttrBuilderSetType(TF_AttrBuilder* builder, const char* attr_name,
                                          TF_DataType value);
TF_CAPI_EXPORT void TF_AttrBuilderSetTypeList(TF_AttrBuilder* builder, const char* attr_name,
                                              const TF_DataType* values, int num_values);

// OK if there is a kernel on |device_type| for the op with these attributes.
TF_CAPI_EXPORT void TF_AttrBuilderCheckCanRunOnDevice(TF_AttrBuilder* builder,
                                                      const char* device_type, TF_Status* status);

// The attribute that says how long the list input |input_index| is; NULL for other inputs. Lent.
TF_CAPI_EXPORT const char* TF_GetNumberAttrForOpListInput(const char* op_name, int input_index,
                                                          TF_Status* status);

// 1 if the op has state.
TF_CAPI_EXPORT int TF_OpIsStateful(const char* op_type, TF_Status* status);

// --- The process

// Start of a program: takes the arguments, changes nothing.
TF_CAPI_EXPORT void TF_InitMain(const char* usage, int* argc, char*** argv);

// A TCP port that is free on this machine at the time of the call; 0 when none could be had. The
// process is not ended, in spite of the name.
TF_CAPI_EXPORT int TF_PickUnusedPortOrDie(void);

// --- Eager

// A handle on one element, |len| bytes at |data|, which are copied.
TF_CAPI_EXPORT TFE_TensorHandle* TFE_NewTensorHandleFromScalar(TF_DataType data_type, void* data,
                                                               size_t len, TF_Status* status);

// Collective ops on the cluster of a ServerDef.
TF_CAPI_EXPORT void TFE_EnableCollectiveOps(TFE_Context* ctx, const void* proto, size_t proto_len,
                                            TF_Status* status);
TF_CAPI_EXPORT void TFE_AbortCollectiveOps(TFE_Context* ctx, TF_Status* status);
TF_CAPI_EXPORT void TFE_CollectiveOpsCheckPeerHealth(TFE_Context* ctx, const char* task,
                                                     int64_t timeout_in_ms, TF_Status* status);

// --- Shape inference of one op

// |num_dims| -1 is an unknown rank, a dimension of -1 an unknown size.
struct TF_ShapeAndType {
  int num_dims;
  int64_t* dims;
  TF_DataType dtype;
};
typedef struct TF_ShapeAndType TF_ShapeAndType;

struct TF_ShapeAndTypeList {
  int num_items;
  TF_ShapeAndType* items;
};
typedef struct TF_ShapeAndTypeList TF_ShapeAndTypeList;

// A list of |num_shapes| unknown shapes. The caller deletes it.
TF_CAPI_EXPORT TF_ShapeAndTypeList* TF_NewShapeAndTypeList(int num_shapes);
TF_CAPI_EXPORT void TF_ShapeAndTypeListSetShape(TF_ShapeAndTypeList* shape_list, int index,
                                                const int64_t* dims, int num_dims);
TF_CAPI_EXPORT void TF_ShapeAndTypeListSetUnknownShape(TF_ShapeAndTypeList* shape_list, int index);
TF_CAPI_EXPORT void TF_ShapeAndTypeListSetDtype(TF_ShapeAndTypeList* shape_list, int index,
                                                TF_DataType dtype);
TF_CAPI_EXPORT void TF_DeleteShapeAndTypeList(TF_ShapeAndTypeList* shape_list);

// Deletes |num_items| lists and the array.
TF_CAPI_EXPORT void TF_DeleteShapeAndTypeListArray(TF_ShapeAndTypeList** shape_list_array,
                                                   int num_items);

// The shapes of the op's outputs from those of its inputs. Arrays of inputs may be NULL. The caller
// deletes |*output_shapes|; the resource shapes are reserved.
TF_CAPI_EXPORT void TFE_InferShapes(TFE_Op* op, TF_ShapeAndTypeList* input_shapes,
                                    TF_Tensor** input_tensors,
                                    TF_ShapeAndTypeList* input_tensor_as_shapes,
                                    TF_ShapeAndTypeList** input_resource_shapes_and_types,
                                    TF_ShapeAndTypeList** output_shapes,
                                    TF_ShapeAndTypeList*** output_resource_shapes_and_types,
                                    TF_Status* status);

// --- Graphs and plug-ins

// 0: "_class" attributes of an imported graph are not checked.
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsSetValidateColocationConstraints(
    TF_ImportGraphDefOptions* opts, unsigned char enable);

// Loads a library that brings a device (stream_executor.h) and its kernels. The handle is the
// caller's; deleting it unloads nothing.
TF_CAPI_EXPORT TF_Library* TF_LoadPluggableDeviceLibrary(const char* library_filename,
                                                         TF_Status* status);
TF_CAPI_EXPORT void TF_DeletePluggableDeviceLibraryHandle(TF_Library* lib_handle);

// Removes the function from the graph's library. Nodes that call it stay.
TF_CAPI_EXPORT void TF_GraphRemoveFunction(TF_Graph* g, const char* func_name, TF_Status* status);

#ifdef __cplusplus
}
#endif

#endif  // TENSORFLOW_C_C_API_EXPERIMENTAL_H_

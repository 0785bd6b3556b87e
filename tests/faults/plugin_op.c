// A plug-in that checks every result: an op y = x + k and its kernel, registered when the library
// is loaded. fault_plugin_register returns whether that worked, and repeats what failed.
#include <stdlib.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/kernels.h"
#include "tensorflow/c/ops.h"

static bool has_op, has_kernel;

static void same_shape(TF_ShapeInferenceContext* context, TF_Status* status) {
  TF_ShapeHandle* handle = TF_NewShapeHandle();
  if (!handle) {
    TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "no handle");
    return;
  }
  TF_ShapeInferenceContextGetInput(context, 0, handle, status);
  if (TF_GetCode(status) == TF_OK) TF_ShapeInferenceContextSetOutput(context, 0, handle, status);
  TF_DeleteShapeHandle(handle);
}

static void* create(TF_OpKernelConstruction* construction) {
  int32_t* k = malloc(sizeof *k);
  TF_Status* status = TF_NewStatus();
  TF_OpKernelConstruction_GetAttrInt32(construction, "k", k, status);
  if (!status || TF_GetCode(status) != TF_OK) TF_OpKernelConstruction_Failure(construction, status);
  TF_DeleteStatus(status);
  return k;
}

static void add(const TF_Tensor* x, TF_Tensor* y, int32_t k) {
  const int32_t* in = TF_TensorData(x);
  int32_t* out = TF_TensorData(y);
  for (int64_t i = 0; i < TF_TensorElementCount(x); ++i) out[i] = in[i] + k;
}

static void compute(void* kernel, TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  TF_Tensor *x = NULL, *y = NULL;
  int64_t dims[8];
  TF_GetInput(context, 0, &x, status);
  int rank = x ? TF_NumDims(x) : 0;
  for (int i = 0; i < rank; ++i) dims[i] = TF_Dim(x, i);
  if (x) y = TF_AllocateOutput(context, 0, TF_INT32, dims, rank, TF_TensorByteSize(x), status);
  if (x && y) {
    add(x, y, *(int32_t*)kernel);
  } else {
    TF_OpKernelContext_Failure(context, status);
  }
  TF_DeleteTensor(x);
  TF_DeleteTensor(y);
  TF_DeleteStatus(status);
}

static bool register_op(TF_Status* status) {
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder("FaultPlus");
  if (!op) return false;
  TF_OpDefinitionBuilderAddInput(op, "x: int32");
  TF_OpDefinitionBuilderAddOutput(op, "y: int32");
  TF_OpDefinitionBuilderAddAttr(op, "k: int = 5");
  TF_OpDefinitionBuilderSetShapeInferenceFunction(op, same_shape);
  TF_RegisterOpDefinition(op, status);
  return TF_GetCode(status) == TF_OK;
}

static bool register_kernel(TF_Status* status) {
  TF_KernelBuilder* kernel = TF_NewKernelBuilder("FaultPlus", "CPU", create, compute, free);
  if (!kernel) return false;
  TF_RegisterKernelBuilder("FaultPlusKernel", kernel, status);
  return TF_GetCode(status) == TF_OK;
}

__attribute__((visibility("default"))) bool fault_plugin_register(void) {
  TF_Status* status = TF_NewStatus();
  if (!status) return false;
  has_op = has_op || register_op(status);
  has_kernel = has_kernel || (has_op && register_kernel(status));
  TF_DeleteStatus(status);
  return has_op && has_kernel;
}

__attribute__((constructor)) static void start(void) { fault_plugin_register(); }

// A plug-in with one op and its kernel, registered when the library is loaded: y = x + k.
#include <stdlib.h>

#include "ops_c.h"
#include "tensorflow/c/kernels.h"

static void same_shape(TF_ShapeInferenceContext* context, TF_Status* status) {
  TF_ShapeHandle* handle = TF_NewShapeHandle();
  TF_ShapeInferenceContextGetInput(context, 0, handle, status);
  if (TF_GetCode(status) == TF_OK) TF_ShapeInferenceContextSetOutput(context, 0, handle, status);
  TF_DeleteShapeHandle(handle);
}

static void* create(TF_OpKernelConstruction* construction) {
  int32_t* k = malloc(sizeof *k);
  TF_Status* status = TF_NewStatus();
  TF_OpKernelConstruction_GetAttrInt32(construction, "k", k, status);
  if (TF_GetCode(status) != TF_OK) TF_OpKernelConstruction_Failure(construction, status);
  TF_DeleteStatus(status);
  return k;
}

static void compute(void* kernel, TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  TF_Tensor* x = NULL;
  TF_GetInput(context, 0, &x, status);
  if (TF_GetCode(status) != TF_OK) {
    TF_OpKernelContext_Failure(context, status);
    TF_DeleteStatus(status);
    return;
  }
  int64_t dims[8];
  int rank = TF_NumDims(x);
  for (int i = 0; i < rank; ++i) dims[i] = TF_Dim(x, i);
  TF_Tensor* y = TF_AllocateOutput(context, 0, TF_INT32, dims, rank, TF_TensorByteSize(x), status);
  const int32_t* in = TF_TensorData(x);
  int32_t* out = TF_TensorData(y);
  for (int64_t i = 0; i < TF_TensorElementCount(x); ++i) out[i] = in[i] + *(int32_t*)kernel;
  TF_DeleteTensor(x);
  TF_DeleteTensor(y);
  TF_DeleteStatus(status);
}

__attribute__((constructor)) static void register_all(void) {
  TF_Status* status = TF_NewStatus();
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder("TestCApi1");
  TF_OpDefinitionBuilderAddInput(op, "x: int32");
  TF_OpDefinitionBuilderAddOutput(op, "y: int32");
  TF_OpDefinitionBuilderAddAttr(op, "k: int = 5");
  TF_OpDefinitionBuilderSetShapeInferenceFunction(op, same_shape);
  TF_RegisterOpDefinition(op, status);
  if (TF_GetCode(status) == TF_OK) {
    TF_KernelBuilder* kernel = TF_NewKernelBuilder("TestCApi1", "CPU", create, compute, free);
    TF_RegisterKernelBuilder("TestCApi1Kernel", kernel, status);
  }
  TF_DeleteStatus(status);
}

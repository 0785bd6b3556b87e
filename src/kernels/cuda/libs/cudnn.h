// The part of cuDNN 9's backend API that Runnel calls, and a card's handle.
//
// Declared here rather than taken from NVIDIA's headers, as in device/cuda/driver_api.h. Names,
// numbers and signatures are those of cuDNN 9.
#ifndef RUNNEL_KERNELS_CUDA_LIBS_CUDNN_H_
#define RUNNEL_KERNELS_CUDA_LIBS_CUDNN_H_

#include "kernels/cuda/launch.h"

typedef int cudnnStatus_t;
typedef struct cudnnContext* cudnnHandle_t;
typedef void* cudnnBackendDescriptor_t;

enum {
  CUDNN_STATUS_SUCCESS = 0,

  // cudnnDataType_t
  CUDNN_DATA_FLOAT = 0,
  CUDNN_DATA_DOUBLE = 1,
  CUDNN_DATA_HALF = 2,
  CUDNN_DATA_BFLOAT16 = 9,

  CUDNN_CROSS_CORRELATION = 1,  // cudnnConvolutionMode_t

  // cudnnPointwiseMode_t
  CUDNN_POINTWISE_ADD = 0,
  CUDNN_POINTWISE_RELU_FWD = 100,

  // cudnnBackendHeurMode_t
  CUDNN_HEUR_MODE_FALLBACK = 2,
  CUDNN_HEUR_MODE_A = 3,

  // cudnnBackendNumericalNote_t
  CUDNN_NUMERICAL_NOTE_TENSOR_CORE = 0,
  CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS = 1,
  CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION = 2,
  CUDNN_NUMERICAL_NOTE_FFT = 3,
  CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC = 4,
  CUDNN_NUMERICAL_NOTE_WINOGRAD = 5,
  CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4 = 6,
  CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6 = 7,
  CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13 = 8,
  CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP = 9,

  // cudnnBackendAttributeType_t
  CUDNN_TYPE_HANDLE = 0,
  CUDNN_TYPE_DATA_TYPE = 1,
  CUDNN_TYPE_BOOLEAN = 2,
  CUDNN_TYPE_INT64 = 3,
  CUDNN_TYPE_FLOAT = 4,
  CUDNN_TYPE_DOUBLE = 5,
  CUDNN_TYPE_VOID_PTR = 6,
  CUDNN_TYPE_CONVOLUTION_MODE = 7,
  CUDNN_TYPE_HEUR_MODE = 8,
  CUDNN_TYPE_NUMERICAL_NOTE = 11,
  CUDNN_TYPE_POINTWISE_MODE = 14,
  CUDNN_TYPE_BACKEND_DESCRIPTOR = 15,
  CUDNN_TYPE_CHAR = 24,

  // cudnnBackendDescriptorType_t
  CUDNN_BACKEND_POINTWISE_DESCRIPTOR = 0,
  CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR = 1,
  CUDNN_BACKEND_ENGINE_DESCRIPTOR = 2,
  CUDNN_BACKEND_ENGINECFG_DESCRIPTOR = 3,
  CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR = 4,
  CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR = 5,
  CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR = 10,
  CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR = 11,
  CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR = 12,
  CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR = 13,
  CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR = 15,
  CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR = 16,
  CUDNN_BACKEND_TENSOR_DESCRIPTOR = 17,

  // cudnnBackendAttributeName_t
  CUDNN_ATTR_POINTWISE_MODE = 0,
  CUDNN_ATTR_POINTWISE_MATH_PREC = 1,
  CUDNN_ATTR_CONVOLUTION_COMP_TYPE = 100,
  CUDNN_ATTR_CONVOLUTION_CONV_MODE = 101,
  CUDNN_ATTR_CONVOLUTION_DILATIONS = 102,
  CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES = 103,
  CUDNN_ATTR_CONVOLUTION_POST_PADDINGS = 104,
  CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS = 105,
  CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS = 106,
  CUDNN_ATTR_ENGINEHEUR_MODE = 200,
  CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH = 201,
  CUDNN_ATTR_ENGINEHEUR_RESULTS = 202,
  CUDNN_ATTR_ENGINECFG_ENGINE = 300,
  CUDNN_ATTR_EXECUTION_PLAN_HANDLE = 400,
  CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG = 401,
  CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE = 402,
  CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION = 405,
  // From alpha on: alpha, beta, the convolution, then its tensors.
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA = 700,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA = 701,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC = 702,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W = 703,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X = 704,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y = 705,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA = 706,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA = 707,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC = 708,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W = 709,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX = 710,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY = 711,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA = 712,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA = 713,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC = 714,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW = 715,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X = 716,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY = 717,
  CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR = 750,
  CUDNN_ATTR_OPERATION_POINTWISE_XDESC = 751,
  CUDNN_ATTR_OPERATION_POINTWISE_BDESC = 752,
  CUDNN_ATTR_OPERATION_POINTWISE_YDESC = 753,
  CUDNN_ATTR_OPERATIONGRAPH_HANDLE = 800,
  CUDNN_ATTR_OPERATIONGRAPH_OPS = 801,
  CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT = 900,
  CUDNN_ATTR_TENSOR_DATA_TYPE = 901,
  CUDNN_ATTR_TENSOR_DIMENSIONS = 902,
  CUDNN_ATTR_TENSOR_STRIDES = 903,
  CUDNN_ATTR_TENSOR_UNIQUE_ID = 906,
  CUDNN_ATTR_TENSOR_IS_VIRTUAL = 907,
  CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS = 1000,
  CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS = 1001,
  CUDNN_ATTR_VARIANT_PACK_WORKSPACE = 1003,
  CUDNN_ATTR_ENGINE_NUMERICAL_NOTE = 1303,
};

#define RN_CUDNN_CALLS(X)                                                                          \
  X(size_t, cudnnGetVersion, (void))                                                               \
  X(const char*, cudnnGetErrorString, (cudnnStatus_t status))                                      \
  X(cudnnStatus_t, cudnnCreate, (cudnnHandle_t * handle))                                          \
  X(cudnnStatus_t, cudnnDestroy, (cudnnHandle_t handle))                                           \
  X(cudnnStatus_t, cudnnSetStream, (cudnnHandle_t handle, CUstream stream))                        \
  X(cudnnStatus_t, cudnnBackendCreateDescriptor, (int type, cudnnBackendDescriptor_t* descriptor)) \
  X(cudnnStatus_t, cudnnBackendDestroyDescriptor, (cudnnBackendDescriptor_t descriptor))           \
  X(cudnnStatus_t, cudnnBackendFinalize, (cudnnBackendDescriptor_t descriptor))                    \
  X(cudnnStatus_t, cudnnBackendSetAttribute,                                                       \
    (cudnnBackendDescriptor_t descriptor, int name, int type, int64_t count,                       \
     const void* elements))                                                                        \
  X(cudnnStatus_t, cudnnBackendGetAttribute,                                                       \
    (cudnnBackendDescriptor_t descriptor, int name, int type, int64_t room, int64_t* count,        \
     void* elements))                                                                              \
  X(cudnnStatus_t, cudnnBackendExecute,                                                            \
    (cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t variant_pack))

typedef struct rn_cudnn_api_t {
  void* library;
  RN_CUDNN_CALLS(RN_CUDA_POINTER)
} rn_cudnn_api_t;

// What a card keeps of cuDNN.
typedef struct rn_cudnn_t {
  rn_cudnn_api_t api;
  cudnnHandle_t handle;   // NULL if cuDNN is missing
  bool allows_tf32;       // NVIDIA_TF32_OVERRIDE is not 0
  bool is_deterministic;  // only engines that give the same bits every time
  rn_mutex_t mutex;       // guards the handle and what follows
  rn_status_t missing;    // why there is no handle, until the log has said so
  rn_map_t plans;         // of convolutions: see cudnn_conv.h
  int64_t workspace;      // the largest of a plan
} rn_cudnn_t;

// The cuDNN of the kernel's card, opened on first use; |*out| is NULL if there is none. A line in
// the log says once what is missing.
RN_MUST_USE rn_status_t rn_cudnn(const rn_kernel_ctx_t* ctx, rn_cudnn_t** out);

// Opens it; for rn_cuda_open_ahead.
void rn_cudnn_open(rn_cuda_card_t* card);

// Frees the entries of |plans|. In cudnn_conv.c.
void rn_cudnn_drop_plans(rn_cudnn_t* cudnn);

#endif  // RUNNEL_KERNELS_CUDA_LIBS_CUDNN_H_

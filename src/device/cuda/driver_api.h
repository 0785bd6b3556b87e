// The part of NVIDIA's driver API and of NVRTC that Runnel calls.
//
// Declared here rather than taken from cuda.h, so that the CUDA part compiles on machines without
// the toolkit and links to none of its libraries: driver.c finds every function at run time. Names,
// numbers and signatures are those of CUDA 12.
#ifndef RUNNEL_DEVICE_CUDA_DRIVER_API_H_
#define RUNNEL_DEVICE_CUDA_DRIVER_API_H_

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st* CUcontext;
typedef struct CUstream_st* CUstream;
typedef struct CUevent_st* CUevent;
typedef struct CUmod_st* CUmodule;
typedef struct CUfunc_st* CUfunction;
typedef struct CUgraph_st* CUgraph;
typedef struct CUgraphExec_st* CUgraphExec;
typedef struct CUgraphNode_st* CUgraphNode;
typedef struct CUuuid {
  char bytes[16];
} CUuuid;
typedef struct CUipcMemHandle {
  char reserved[64];
} CUipcMemHandle;

enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_ECC_UNCORRECTABLE = 214,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_TIMEOUT = 702,
  CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
  CUDA_ERROR_ASSERT = 710,
  CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
  CUDA_ERROR_LAUNCH_FAILED = 719,
};

enum {
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
  CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,

  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,

  CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1,
  CU_STREAM_NON_BLOCKING = 1,
  CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
  CU_STREAM_CAPTURE_MODE_RELAXED = 2,
  CU_EVENT_DEFAULT = 0,
  CU_EVENT_BLOCKING_SYNC = 1,
  CU_EVENT_DISABLE_TIMING = 2,
  CU_MEMHOSTALLOC_PORTABLE = 1,
  CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
  CU_MEMORYTYPE_HOST = 1,
  CU_CTX_SCHED_SPIN = 1,
};

// Entries of cuLaunchKernel's |extra|.
#define CU_LAUNCH_PARAM_END ((void*)0)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void*)1)
#define CU_LAUNCH_PARAM_BUFFER_SIZE ((void*)2)

// X(result, name, parameters) for every function. The names are those that the libraries export:
// cuda.h maps the plain ones to them by macros.
#define RN_CUDA_DRIVER_CALLS(X)                                                                  \
  X(CUresult, cuInit, (unsigned flags))                                                          \
  X(CUresult, cuDriverGetVersion, (int* version))                                                \
  X(CUresult, cuGetErrorName, (CUresult error, const char** name))                               \
  X(CUresult, cuGetErrorString, (CUresult error, const char** text))                             \
  X(CUresult, cuDeviceGetCount, (int* count))                                                    \
  X(CUresult, cuDeviceGet, (CUdevice * device, int ordinal))                                     \
  X(CUresult, cuDeviceGetName, (char* name, int size, CUdevice device))                          \
  X(CUresult, cuDeviceGetUuid, (CUuuid * uuid, CUdevice device))                                 \
  X(CUresult, cuDeviceGetPCIBusId, (char* text, int size, CUdevice device))                      \
  X(CUresult, cuDeviceGetAttribute, (int* value, int attribute, CUdevice device))                \
  X(CUresult, cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device))                            \
  X(CUresult, cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))                  \
  X(CUresult, cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                   \
  X(CUresult, cuCtxGetCurrent, (CUcontext * context))                                            \
  X(CUresult, cuCtxSetCurrent, (CUcontext context))                                              \
  X(CUresult, cuMemGetInfo_v2, (size_t * free, size_t * total))                                  \
  X(CUresult, cuMemAlloc_v2, (CUdeviceptr * address, size_t size))                               \
  X(CUresult, cuMemFree_v2, (CUdeviceptr address))                                               \
  X(CUresult, cuMemGetAddressRange_v2, (CUdeviceptr * base, size_t * size, CUdeviceptr address)) \
  X(CUresult, cuIpcOpenMemHandle_v2,                                                             \
    (CUdeviceptr * address, CUipcMemHandle handle, unsigned flags))                              \
  X(CUresult, cuIpcCloseMemHandle, (CUdeviceptr address))                                        \
  X(CUresult, cuMemHostAlloc, (void** address, size_t size, unsigned flags))                     \
  X(CUresult, cuMemFreeHost, (void* address))                                                    \
  X(CUresult, cuPointerGetAttribute, (void* value, int attribute, CUdeviceptr address))          \
  X(CUresult, cuMemcpyHtoDAsync_v2,                                                              \
    (CUdeviceptr to, const void* from, size_t size, CUstream stream))                            \
  X(CUresult, cuMemcpyDtoHAsync_v2, (void* to, CUdeviceptr from, size_t size, CUstream stream))  \
  X(CUresult, cuMemcpyDtoDAsync_v2,                                                              \
    (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream))                            \
  X(CUresult, cuMemsetD8Async, (CUdeviceptr to, unsigned char value, size_t n, CUstream stream)) \
  X(CUresult, cuMemsetD32Async, (CUdeviceptr to, unsigned value, size_t n, CUstream stream))     \
  X(CUresult, cuStreamCreate, (CUstream * stream, unsigned flags))                               \
  X(CUresult, cuStreamDestroy_v2, (CUstream stream))                                             \
  X(CUresult, cuStreamSynchronize, (CUstream stream))                                            \
  X(CUresult, cuStreamQuery, (CUstream stream))                                                  \
  X(CUresult, cuStreamIsCapturing, (CUstream stream, int* status))                               \
  X(CUresult, cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags))               \
  X(CUresult, cuStreamBeginCapture_v2, (CUstream stream, int mode))                              \
  X(CUresult, cuStreamEndCapture, (CUstream stream, CUgraph * graph))                            \
  X(CUresult, cuEventCreate, (CUevent * event, unsigned flags))                                  \
  X(CUresult, cuEventDestroy_v2, (CUevent event))                                                \
  X(CUresult, cuEventRecord, (CUevent event, CUstream stream))                                   \
  X(CUresult, cuEventQuery, (CUevent event))                                                     \
  X(CUresult, cuEventSynchronize, (CUevent event))                                               \
  X(CUresult, cuEventElapsedTime, (float* ms, CUevent from, CUevent to))                         \
  X(CUresult, cuModuleLoadData, (CUmodule * module, const void* image))                          \
  X(CUresult, cuModuleUnload, (CUmodule module))                                                 \
  X(CUresult, cuModuleGetFunction, (CUfunction * function, CUmodule module, const char* name))   \
  X(CUresult, cuFuncSetAttribute, (CUfunction function, int attribute, int value))               \
  X(CUresult, cuLaunchKernel,                                                                    \
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,   \
     unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void** args,          \
     void** extra))                                                                              \
  X(CUresult, cuGraphInstantiateWithFlags,                                                       \
    (CUgraphExec * exec, CUgraph graph, unsigned long long flags))                               \
  X(CUresult, cuGraphLaunch, (CUgraphExec exec, CUstream stream))                                \
  X(CUresult, cuGraphUpload, (CUgraphExec exec, CUstream stream))                                \
  X(CUresult, cuGraphExecDestroy, (CUgraphExec exec))                                            \
  X(CUresult, cuGraphDestroy, (CUgraph graph))

typedef int nvrtcResult;
typedef struct _nvrtcProgram* nvrtcProgram;
enum { NVRTC_SUCCESS = 0 };

#define RN_NVRTC_CALLS(X)                                                            \
  X(nvrtcResult, nvrtcVersion, (int* major, int* minor))                             \
  X(const char*, nvrtcGetErrorString, (nvrtcResult result))                          \
  X(nvrtcResult, nvrtcCreateProgram,                                                 \
    (nvrtcProgram * program, const char* source, const char* name, int header_count, \
     const char* const* headers, const char* const* header_names))                   \
  X(nvrtcResult, nvrtcDestroyProgram, (nvrtcProgram * program))                      \
  X(nvrtcResult, nvrtcCompileProgram,                                                \
    (nvrtcProgram program, int option_count, const char* const* options))            \
  X(nvrtcResult, nvrtcGetCUBINSize, (nvrtcProgram program, size_t * size))           \
  X(nvrtcResult, nvrtcGetCUBIN, (nvrtcProgram program, char* bytes))                 \
  X(nvrtcResult, nvrtcGetProgramLogSize, (nvrtcProgram program, size_t * size))      \
  X(nvrtcResult, nvrtcGetProgramLog, (nvrtcProgram program, char* text))

#endif  // RUNNEL_DEVICE_CUDA_DRIVER_API_H_

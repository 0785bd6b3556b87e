// The part of NCCL that Runnel calls, declared here for the reasons of device/cuda/driver_api.h.
// Names, numbers and signatures are those of NCCL 2.14 and later.
#ifndef RUNNEL_KERNELS_CUDA_LIBS_NCCL_API_H_
#define RUNNEL_KERNELS_CUDA_LIBS_NCCL_API_H_

#include "device/cuda/driver_api.h"

typedef int ncclResult_t;
typedef struct ncclComm* ncclComm_t;
typedef struct ncclUniqueId {
  char internal[128];
} ncclUniqueId;

// As in 2.14; later versions take it with its size and version.
typedef struct ncclConfig_t {
  size_t size;
  unsigned magic, version;
  int blocking;
} ncclConfig_t;

enum {
  ncclSuccess = 0,
  ncclInProgress = 7,

  NCCL_MAJOR = 2,
  NCCL_CONFIG_VERSION = 21400,

  ncclSum = 0,
  ncclProd = 1,
  ncclMax = 2,
  ncclMin = 3,
  ncclAvg = 4,

  ncclInt8 = 0,
  ncclInt32 = 2,
  ncclInt64 = 4,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9,
};
#define NCCL_CONFIG_MAGIC 0xcafebeefu

// X(result, name, parameters) for every function.
#define RN_NCCL_CALLS(X)                                                                    \
  X(ncclResult_t, ncclGetVersion, (int* version))                                           \
  X(ncclResult_t, ncclGetUniqueId, (ncclUniqueId * id))                                     \
  X(const char*, ncclGetErrorString, (ncclResult_t result))                                 \
  X(ncclResult_t, ncclCommInitRankConfig,                                                   \
    (ncclComm_t * comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config))         \
  X(ncclResult_t, ncclCommAbort, (ncclComm_t comm))                                         \
  X(ncclResult_t, ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t * error))           \
  X(ncclResult_t, ncclGroupStart, (void))                                                   \
  X(ncclResult_t, ncclGroupEnd, (void))                                                     \
  X(ncclResult_t, ncclAllReduce,                                                            \
    (const void* from, void* to, size_t count, int type, int op, ncclComm_t comm,           \
     CUstream stream))                                                                      \
  X(ncclResult_t, ncclReduceScatter,                                                        \
    (const void* from, void* to, size_t count, int type, int op, ncclComm_t comm,           \
     CUstream stream))                                                                      \
  X(ncclResult_t, ncclAllGather,                                                            \
    (const void* from, void* to, size_t count, int type, ncclComm_t comm, CUstream stream)) \
  X(ncclResult_t, ncclBroadcast,                                                            \
    (const void* from, void* to, size_t count, int type, int root, ncclComm_t comm,         \
     CUstream stream))                                                                      \
  X(ncclResult_t, ncclSend,                                                                 \
    (const void* from, size_t count, int type, int peer, ncclComm_t comm, CUstream stream)) \
  X(ncclResult_t, ncclRecv,                                                                 \
    (void* to, size_t count, int type, int peer, ncclComm_t comm, CUstream stream))

#endif  // RUNNEL_KERNELS_CUDA_LIBS_NCCL_API_H_

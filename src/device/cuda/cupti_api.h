// The part of CUPTI that rn_cupti uses, in our own declarations: names, numbers, signatures and the
// layout of records are those of CUDA 12 and 13.
#ifndef RUNNEL_DEVICE_CUDA_CUPTI_API_H_
#define RUNNEL_DEVICE_CUDA_CUPTI_API_H_

#include "device/cuda/driver_api.h"

typedef int CUptiResult;
enum { CUPTI_SUCCESS = 0 };

enum {
  CUPTI_ACTIVITY_KIND_MEMCPY = 1,
  CUPTI_ACTIVITY_KIND_MEMSET = 2,
  CUPTI_ACTIVITY_KIND_DRIVER = 4,
  CUPTI_ACTIVITY_KIND_RUNTIME = 5,
  CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL = 10,
  CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION = 39,

  CUPTI_ACTIVITY_MEMCPY_KIND_HTOD = 1,
  CUPTI_ACTIVITY_MEMCPY_KIND_DTOH = 2,

  CUPTI_ACTIVITY_FLAG_FLUSH_FORCED = 1,
  CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0 = 3,
};

// The beginnings of records, which all versions share.
typedef struct CUpti_Activity {
  int kind;
} CUpti_Activity;

typedef struct CUpti_ActivityKernel {
  int kind;
  uint8_t other[12];
  uint64_t start, end, completed;
  uint32_t device, context, stream;
  int32_t sizes[10];
  uint32_t correlation;
  int64_t grid;
  const char* name;
} CUpti_ActivityKernel;

typedef struct CUpti_ActivityCopy {  // a memcpy or a memset
  int kind;
  uint8_t direction;  // of a memcpy
  uint8_t other[3];
  uint64_t bytes, start, end;
  uint32_t device, context, stream, correlation;
} CUpti_ActivityCopy;

typedef struct CUpti_ActivityExternal {
  int kind, external_kind;
  uint64_t external_id;
  uint32_t correlation;
} CUpti_ActivityExternal;

typedef void (*CUpti_BufferRequested)(uint8_t** buffer, size_t* size, size_t* most_records);
typedef void (*CUpti_BufferCompleted)(CUcontext context, uint32_t stream, uint8_t* buffer,
                                      size_t size, size_t used);

#define RN_CUPTI_CALLS(X)                                                           \
  X(CUptiResult, cuptiActivityRegisterCallbacks,                                    \
    (CUpti_BufferRequested requested, CUpti_BufferCompleted completed))             \
  X(CUptiResult, cuptiActivityEnable, (int kind))                                   \
  X(CUptiResult, cuptiActivityDisable, (int kind))                                  \
  X(CUptiResult, cuptiActivityFlushAll, (uint32_t flags))                           \
  X(CUptiResult, cuptiActivityGetNextRecord,                                        \
    (uint8_t * buffer, size_t used, CUpti_Activity * *record))                      \
  X(CUptiResult, cuptiActivityPushExternalCorrelationId, (int kind, uint64_t id))   \
  X(CUptiResult, cuptiActivityPopExternalCorrelationId, (int kind, uint64_t* last)) \
  X(CUptiResult, cuptiGetTimestamp, (uint64_t * now))

#endif  // RUNNEL_DEVICE_CUDA_CUPTI_API_H_

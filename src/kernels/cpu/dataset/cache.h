// In-memory caches, shared by the walks over one dataset.
#ifndef RUNNEL_KERNELS_CPU_DATASET_CACHE_H_
#define RUNNEL_KERNELS_CPU_DATASET_CACHE_H_

#include "framework/resource.h"
#include "kernels/cpu/dataset/window.h"

#define RN_DATA_CACHE_TYPE "MemoryCache"

// A resource. Filled once, by the first walk that reaches the end, and read-only afterwards.
// |mutex| guards the filling.
typedef struct rn_data_cache_t {
  rn_resource_t resource;
  rn_allocator_t allocator;
  rn_mutex_t mutex;
  bool is_complete;
  rn_data_rows_t rows;
} rn_data_cache_t;

RN_MUST_USE rn_status_t rn_data_cache_create(rn_allocator_t allocator, rn_data_cache_t** out);

#endif  // RUNNEL_KERNELS_CPU_DATASET_CACHE_H_

// What kernels of images share.
#ifndef RUNNEL_KERNELS_CUDA_IMAGE_IMAGE_H_
#define RUNNEL_KERNELS_CUDA_IMAGE_IMAGE_H_

#include <stdio.h>

#include "kernels/cuda/array/produce.h"

// Issues "image/|base|_|type|" for |count| elements, or its wide form if 32 bits cannot count them.
// Nothing is issued for 0.
RN_MUST_USE static inline rn_status_t rn_cuda_image_each(const rn_kernel_ctx_t* ctx,
                                                         const char* base, rn_dtype_t dtype,
                                                         int64_t count, const void* args,
                                                         size_t args_size) {
  rn_cuda_name_t name;
  snprintf(name.text, sizeof name.text, "image/%s_%s%s", base, rn_cuda_type(dtype),
           count > INT64_C(1) << 30 ? "_wide" : "");
  return rn_cuda_each(ctx, name.text, count, args, args_size);
}

#endif  // RUNNEL_KERNELS_CUDA_IMAGE_IMAGE_H_

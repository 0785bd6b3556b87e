// Launching device code from a kernel's compute.
#ifndef RUNNEL_KERNELS_CUDA_LAUNCH_H_
#define RUNNEL_KERNELS_CUDA_LAUNCH_H_

#include "device/cuda/card.h"
#include "kernels/cuda/divisor.h"
#include "kernels/kernel_rows.h"

// Types of the argument structs that C and CUDA share; prelude.cuh has the same names.
typedef int32_t i32;
typedef int64_t i64;
typedef uint32_t u32;
typedef uint64_t u64;

#define RN_CUDA_BLOCK 256  // threads of an ordinary block

typedef struct rn_cuda_grid_t {
  unsigned x, y, z;                    // blocks
  unsigned block_x, block_y, block_z;  // threads of a block; 0 counts as 1
  unsigned shared;                     // bytes of dynamic shared memory
} rn_cuda_grid_t;

static inline rn_cuda_card_t* rn_cuda_card(const rn_kernel_ctx_t* ctx) {
  return rn_cuda_card_of(ctx->kernel->device);
}

// Whether products of floats may be computed in TF32, as they are unless NVIDIA_TF32_OVERRIDE=0.
bool rn_cuda_allows_tf32(const rn_kernel_ctx_t* ctx);
// Whether the environment variable |name| is 1 or true.
bool rn_cuda_is_on(const char* name);

// Issues the kernel |name| = "folder/file/function" with the struct |args|.
RN_MUST_USE rn_status_t rn_cuda_launch(const rn_kernel_ctx_t* ctx, const char* name,
                                       rn_cuda_grid_t grid, const void* args, size_t args_size);
// The same for a kernel that goes over |count| items with RN_EACH. Nothing is issued for 0.
RN_MUST_USE rn_status_t rn_cuda_each(const rn_kernel_ctx_t* ctx, const char* name, int64_t count,
                                     const void* args, size_t args_size);
// Issues |function| itself.
RN_MUST_USE rn_status_t rn_cuda_issue(rn_cuda_card_t* card, CUfunction function,
                                      rn_cuda_grid_t grid, const void* args, size_t args_size);

// Fills |tensor|, on the device, with zero bytes.
RN_MUST_USE rn_status_t rn_cuda_zero(const rn_kernel_ctx_t* ctx, rn_tensor_t* tensor);

// The name of a type in names of kernels: "f32", "bf16", "i64" ...; NULL if the device has none.
const char* rn_cuda_type(rn_dtype_t dtype);
// "|base|_|type|", for kernels made per type.
typedef struct rn_cuda_name_t {
  char text[96];
} rn_cuda_name_t;
rn_cuda_name_t rn_cuda_name(const char* base, rn_dtype_t dtype);
// "|base|_|size of the type|": for kernels that only move elements.
rn_cuda_name_t rn_cuda_size_name(const char* base, rn_dtype_t dtype);

#endif  // RUNNEL_KERNELS_CUDA_LAUNCH_H_

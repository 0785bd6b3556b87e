// CUDA's libraries, found at run time: one table of functions per library.
#ifndef RUNNEL_DEVICE_CUDA_DRIVER_H_
#define RUNNEL_DEVICE_CUDA_DRIVER_H_

#include "base/env.h"
#include "device/cuda/driver_api.h"

// One pointer per function of the library.
#define RN_CUDA_POINTER(result, name, parameters) result(*name) parameters;
typedef struct rn_cuda_driver_t {
  void* library;  // from dlopen
  RN_CUDA_DRIVER_CALLS(RN_CUDA_POINTER)
} rn_cuda_driver_t;
typedef struct rn_nvrtc_t {
  void* library;
  RN_NVRTC_CALLS(RN_CUDA_POINTER)
} rn_nvrtc_t;

// Names of a library's functions, in the order of the pointers that follow its table's |library|.
#define RN_CUDA_NAME(result, name, parameters) #name,

// Opens the first of |files| (NULL-terminated) that can be loaded, from the folders that
// RUNNEL_CUDA_PATH lists, from where the dynamic linker looks, and from the usual folders of the
// toolkit. Then fills |table|, a struct of |library| followed by |count| function pointers.
// NOT_FOUND, naming the file or the function that is missing.
RN_MUST_USE rn_status_t rn_cuda_library_open(const char* const* files, const char* const* names,
                                             size_t count, void* table);
void rn_cuda_library_close(void* library);

// The library of the first of |files| that can be loaded, from dlopen. NULL if there is none.
void* rn_cuda_library_find(const char* const* files);

// The files of the libraries, the first choice first.
#define RN_CUDA_DRIVER_FILES "libcuda.so.1", NULL
#define RN_NVRTC_FILES "libnvrtc.so.13", "libnvrtc.so.12", NULL
#define RN_CUFFT_FILES "libcufft.so.12", "libcufft.so.11", NULL
#define RN_CUBLASLT_FILES "libcublasLt.so.13", "libcublasLt.so.12", NULL
#define RN_CUDNN_FILES "libcudnn.so.9", NULL
#define RN_CUSOLVER_FILES "libcusolver.so.12", "libcusolver.so.11", NULL
#define RN_CUSPARSE_FILES "libcusparse.so.12", NULL
#define RN_NCCL_FILES "libnccl.so.2", NULL

RN_MUST_USE rn_status_t rn_cuda_driver_open(rn_cuda_driver_t* out);
RN_MUST_USE rn_status_t rn_nvrtc_open(rn_nvrtc_t* out);

// OK, or an error that says what failed: RESOURCE_EXHAUSTED for want of memory, else INTERNAL.
RN_MUST_USE rn_status_t rn_cuda_status(const rn_cuda_driver_t* driver, CUresult result,
                                       const char* call);
// Calls a function of the driver: RN_CUDA(driver, cuInit, 0).
#define RN_CUDA(driver, call, ...) rn_cuda_status((driver), (driver)->call(__VA_ARGS__), #call)

#endif  // RUNNEL_DEVICE_CUDA_DRIVER_H_

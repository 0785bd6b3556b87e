// What `runnel devices` prints about this machine: see device/part.h.
#define _GNU_SOURCE  // dlinfo
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

#include "device/cuda/cupti.h"

static const struct {
  const char* use;
  const char* files[4];  // NULL-terminated
} libraries[] = {
    {"driver", {RN_CUDA_DRIVER_FILES}},
    {"compiles loops", {RN_NVRTC_FILES}},
    {"matrix products", {RN_CUBLASLT_FILES}},
    {"convolutions", {RN_CUDNN_FILES}},
    {"Fourier transforms", {RN_CUFFT_FILES}},
    {"factors of matrices", {RN_CUSOLVER_FILES}},
    {"products of CSR matrices", {RN_CUSPARSE_FILES}},
    {"traces", {RN_CUPTI_FILES}},
    {"collectives", {RN_NCCL_FILES}},
};

static void find_library(const char* const* files, rn_part_library_t* out) {
  struct link_map* map = NULL;
  void* library = rn_cuda_library_find(files);
  if (!library) return;
  const char* path = files[0];
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map && *map->l_name) path = map->l_name;
  snprintf(out->found, sizeof out->found, "%s", path);
  rn_cuda_library_close(library);
}

static rn_status_t read_gpu(const rn_cuda_driver_t* driver, int ordinal, rn_part_gpu_t* gpu) {
  CUdevice device;
  RN_RETURN_IF_ERROR(RN_CUDA(driver, cuDeviceGet, &device, ordinal));
  RN_RETURN_IF_ERROR(RN_CUDA(driver, cuDeviceGetName, gpu->name, sizeof gpu->name, device));
  RN_RETURN_IF_ERROR(RN_CUDA(driver, cuDeviceGetPCIBusId, gpu->bus_id, sizeof gpu->bus_id, device));
  RN_RETURN_IF_ERROR(RN_CUDA(driver, cuDeviceTotalMem_v2, &gpu->memory, device));
  struct {
    int attribute;
    int* value;
  } const wanted[] = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &gpu->major},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &gpu->minor},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &gpu->multiprocessors},
  };
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; ++i)
    RN_RETURN_IF_ERROR(
        RN_CUDA(driver, cuDeviceGetAttribute, wanted[i].value, wanted[i].attribute, device));
  return RN_OK;
}

static rn_status_t read_gpus(const rn_cuda_driver_t* driver, int count, rn_part_report_t* out) {
  driver->cuDriverGetVersion(&out->driver_version);
  if (count > RN_MAX_GPUS) count = RN_MAX_GPUS;
  for (; out->gpu_count < count; ++out->gpu_count)
    RN_RETURN_IF_ERROR(read_gpu(driver, out->gpu_count, &out->gpus[out->gpu_count]));
  return count ? RN_OK : rn_not_found("The driver has no GPU");
}

rn_status_t rn_cuda_report(rn_part_report_t* out) {
  *out = (rn_part_report_t){0};
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries; ++i) {
    rn_part_library_t* library = &out->libraries[out->library_count++];
    library->use = libraries[i].use;
    library->file = libraries[i].files[0];
    find_library(libraries[i].files, library);
  }
  int count;
  rn_cuda_driver_t driver;
  rn_status_t usable = rn_cuda_count(&count), status = rn_cuda_driver_open(&driver);
  if (rn_ok(status)) {
    status = read_gpus(&driver, count, out);
    rn_cuda_library_close(driver.library);
  }
  return rn_status_join(usable, status);
}

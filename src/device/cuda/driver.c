// Opening CUDA's libraries: see driver.h.
#include "device/cuda/driver.h"

#include <dlfcn.h>
#include <stdio.h>

#define MAX_PATH 4096

// Where toolkits are installed if the dynamic linker does not know it.
static const char* const usual_folders[] = {"/usr/local/cuda/lib64", "/usr/local/cuda/lib",
                                            "/opt/cuda/lib64", "/usr/lib/cuda/lib64"};

static void* open_in(const char* folder, size_t length, const char* file) {
  char path[MAX_PATH];
  int size = snprintf(path, sizeof path, "%.*s/%s", (int)length, folder, file);
  return size > 0 && (size_t)size < sizeof path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

// Tries the folders of |list|, which colons separate.
static void* open_in_list(const char* list, const char* file) {
  void* library = NULL;
  while (!library && list && *list) {
    size_t length = strcspn(list, ":");
    if (length) library = open_in(list, length, file);
    list += length + (list[length] == ':');
  }
  return library;
}

static void* open_file(const char* file) {
  void* library = open_in_list(getenv("RUNNEL_CUDA_PATH"), file);
  if (!library) library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  for (size_t i = 0; !library && i < sizeof usual_folders / sizeof *usual_folders; ++i)
    library = open_in(usual_folders[i], strlen(usual_folders[i]), file);
  return library;
}

void* rn_cuda_library_find(const char* const* files) {
  void* library = NULL;
  for (; !library && *files; ++files) library = open_file(*files);
  return library;
}

rn_status_t rn_cuda_library_open(const char* const* files, const char* const* names, size_t count,
                                 void* table) {
  void** slots = table;
  slots[0] = rn_cuda_library_find(files);
  if (!slots[0]) return rn_not_found("The library %s could not be loaded", files[0]);
  for (size_t i = 0; i < count; ++i) {
    slots[i + 1] = dlsym(slots[0], names[i]);
    if (slots[i + 1]) continue;
    rn_cuda_library_close(slots[0]);
    slots[0] = NULL;
    return rn_not_found("%s is too old: it has no function %s", files[0], names[i]);
  }
  return RN_OK;
}

void rn_cuda_library_close(void* library) {
  if (library) dlclose(library);
}

rn_status_t rn_cuda_driver_open(rn_cuda_driver_t* out) {
  static const char* const files[] = {RN_CUDA_DRIVER_FILES};
  static const char* const names[] = {RN_CUDA_DRIVER_CALLS(RN_CUDA_NAME)};
  return rn_cuda_library_open(files, names, sizeof names / sizeof *names, out);
}

rn_status_t rn_nvrtc_open(rn_nvrtc_t* out) {
  static const char* const files[] = {RN_NVRTC_FILES};
  static const char* const names[] = {RN_NVRTC_CALLS(RN_CUDA_NAME)};
  return rn_cuda_library_open(files, names, sizeof names / sizeof *names, out);
}

rn_status_t rn_cuda_status(const rn_cuda_driver_t* driver, CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return RN_OK;
  const char *name = NULL, *text = NULL;
  driver->cuGetErrorName(result, &name);
  driver->cuGetErrorString(result, &text);
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    return rn_resource_exhausted("%s: %s (%s)", call, name ? name : "?", text ? text : "?");
  return rn_internal("%s: %s (%s)", call, name ? name : "an unknown error", text ? text : "?");
}

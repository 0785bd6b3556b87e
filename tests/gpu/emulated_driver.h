// The functions by which a test steers and watches the emulated driver: see emulator/emulator.h.
#ifndef TESTS_GPU_EMULATED_DRIVER_H_
#define TESTS_GPU_EMULATED_DRIVER_H_

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/emulator.h"

#define EMULATED_POINTER(result, name, parameters) \
  static __attribute__((unused)) result(*name) parameters;
RN_EMULATED_CALLS(EMULATED_POINTER)

// Finds them; before or after a session loads the driver. On a card, the test is skipped.
static void find_emulator(void) {
  char path[4096];
  const char* folders = getenv("RUNNEL_CUDA_PATH");
  if (!folders) cr_skip_test("needs the emulated driver");
  const char* colon = strrchr(folders, ':');  // libraries that use it come first
  snprintf(path, sizeof path, "%s/libcuda.so.1", colon ? colon + 1 : folders);
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  cr_assert_not_null(library, "%s", dlerror());
#define EMULATED_FIND(result, name, parameters) *(void**)&name = dlsym(library, #name);
  RN_EMULATED_CALLS(EMULATED_FIND)
}

#endif  // TESTS_GPU_EMULATED_DRIVER_H_

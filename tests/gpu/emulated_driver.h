// The functions by which a test steers and watches the emulated driver: see emulator/emulator.h.
#ifndef TESTS_GPU_EMULATED_DRIVER_H_
#define TESTS_GPU_EMULATED_DRIVER_H_

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "emulator/emulator.h"

#define EMULATED_POINTER(result, name, parameters) \
  static __attribute__((unused)) result(*name) parameters;
RN_EMULATED_CALLS(EMULATED_POINTER)

// Finds them; before or after a session loads the driver. On a card, the test is skipped.
static void find_emulator(void) {
  char path[4096];
  if (!getenv("RUNNEL_CUDA_PATH")) cr_skip_test("needs the emulated driver");
  snprintf(path, sizeof path, "%s/libcuda.so.1", getenv("RUNNEL_CUDA_PATH"));
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  cr_assert_not_null(library, "%s", dlerror());
#define EMULATED_FIND(result, name, parameters) *(void**)&name = dlsym(library, #name);
  RN_EMULATED_CALLS(EMULATED_FIND)
}

#endif  // TESTS_GPU_EMULATED_DRIVER_H_

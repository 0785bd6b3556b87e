// What the emulated driver has counted.
#ifndef TESTS_GPU_COUNTS_H_
#define TESTS_GPU_COUNTS_H_

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// Whether there is an emulated driver, which counts. Only then do counts mean anything.
static inline bool counts_calls(void) { return getenv("RUNNEL_CUDA_PATH") != NULL; }

// How often |call| was made: see rn_emulated_count in emulator/emulator.h. 0 on a real card.
static inline uint64_t emulated_count(const char* call) {
  char file[4096];
  const char* folder = getenv("RUNNEL_CUDA_PATH");
  if (!counts_calls()) return 0;
  snprintf(file, sizeof file, "%s/libcuda.so.1", folder ? folder : "");
  void* library = dlopen(file, RTLD_NOW);
  cr_assert(library, "%s", dlerror());
  uint64_t (*count)(const char*) =
      (uint64_t(*)(const char*))(uintptr_t)dlsym(library, "rn_emulated_count");
  cr_assert(count, "%s is not the emulated driver", file);
  return count(call);
}

#endif  // TESTS_GPU_COUNTS_H_

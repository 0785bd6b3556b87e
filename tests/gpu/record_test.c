// Recorded segments: replays compute what the instructions would, see new values of variables, and
// give way when something has moved.
#include <dlfcn.h>

#include "device/cuda/driver_api.h"
#include "util.h"

// How often the emulated driver was asked to |call|; 0 on a real card.
static int64_t count(const char* call) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const char* path = getenv("RUNNEL_CUDA_PATH");
  char file[4096];
  snprintf(file, sizeof file, "%s/libcuda.so.1", path ? path : "");
  if (!library) library = dlopen(file, RTLD_NOW | RTLD_NOLOAD);
  int64_t (*ask)(const char*) =
      library ? (int64_t(*)(const char*))(uintptr_t)dlsym(library, "rn_emulated_count") : NULL;
  return ask ? ask(call) : 0;
}

RT_TEST(record, chains_are_replayed) {
  rt_t rt = rt_begin(1);
  rt.options.optimize = false;  // the chain would be fused into one node
  rn_edge_t x = rt_placeholder(&rt, "x");
  rn_edge_t y = x;
  for (int i = 0; i < 20; ++i) y = rn_Mul(rt.s, rn_Sin(rt.s, y), rn_const_float(rt.s, 1.5f));
  float first[5];
  for (int turn = 0; turn < 5; ++turn) first[turn] = rt_get(&rt, y, x, (float)turn);
  int64_t before = count("cuLaunchKernel");
  for (int turn = 0; turn < 5; ++turn) cr_assert_eq(rt_get(&rt, y, x, (float)turn), first[turn]);
  if (before) cr_assert_eq(count("cuLaunchKernel"), before, "every step was one graph");
  rt_end(&rt);
}

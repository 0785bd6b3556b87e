// The card itself, from several threads. Runs on the emulated GPU.
#include <pthread.h>

#include "api.h"
#include "kernels/cuda/launch.h"

typedef struct look_up_t {
  rn_cuda_card_t* card;
  const char* name;
  rn_status_t status;
} look_up_t;

static void* look_up(void* arg) {
  look_up_t* call = arg;
  CUfunction function = NULL;
  call->status = rn_cuda_kernel(call->card, call->name, &function);
  return NULL;
}

// A thread that has not used the card yet can be the one that needs a kernel of a module which
// another thread has loaded.
Test(gpu_card_api, new_threads_find_kernels, .timeout = 60) {
  gpu_t gpu;
  gpu_open(&gpu);
  look_up_t call = {.card = rn_cuda_card(&gpu.ctx), .name = "array/folds/fold_f32"};
  look_up(&call);
  OK(call.status);
  call.name = "array/folds/fold_f64";
  pthread_t thread;
  cr_assert_eq(pthread_create(&thread, NULL, look_up, &call), 0);
  pthread_join(thread, NULL);
  OK(call.status);
  gpu_close(&gpu);
}

// The card itself, from several threads. Runs on the emulated GPU.
#include <pthread.h>
#include <unistd.h>

#include "api.h"
#include "device/cuda/recording.h"
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

// Records work that uses |size| bytes of scratch memory, |*kept| of which stays in use.
static rn_recording_t* record(gpu_t* gpu, int64_t size, rn_tensor_t* kept) {
  rn_device_t* device = gpu->device;
  rn_tensor_t scratch;
  rn_recording_t* recording = NULL;
  OK(device->vtable->record_begin(device));
  OK(rn_tensor_create(device->kernel_memory, RN_UINT8, (rn_shape_t){1, &size}, &scratch));
  OK(rn_cuda_zero(&gpu->ctx, &scratch));
  if (kept) OK(rn_tensor_share(&scratch, kept));
  rn_tensor_clear(&scratch);
  OK(device->vtable->record_end(device, &recording));
  OK(device->vtable->replay(device, recording));
  OK(device->vtable->await(device, recording));
  return recording;
}

static size_t in_use(gpu_t* gpu) {
  rn_cuda_memory_stats_t stats;
  rn_cuda_memory_stats(rn_cuda_card(&gpu->ctx)->memory, &stats);
  return stats.bytes_in_use;
}

// Recordings share their scratch memory. What somebody keeps of it is left alone by all of them.
Test(gpu_card_api, recordings_share_scratch_memory, .timeout = 60) {
  const int64_t size = 16 << 20;
  gpu_t gpu;
  gpu_open(&gpu);
  rn_device_t* device = gpu.device;
  const size_t before = in_use(&gpu);
  rn_recording_t* all[4];
  for (int i = 0; i < 3; ++i) all[i] = record(&gpu, size, NULL);
  cr_expect_leq(in_use(&gpu) - before, (size_t)size + (4 << 20));
  for (int i = 0; i < 3; ++i) {
    OK(device->vtable->replay(device, all[i]));
    OK(device->vtable->await(device, all[i]));
  }
  rn_tensor_t kept;
  all[3] = record(&gpu, size, &kept);
  rn_status_t status = device->vtable->replay(device, all[0]);
  cr_expect_eq(rn_status_code(status), RN_CODE_ABORTED);
  rn_status_free(status);
  OK(device->vtable->replay(device, all[3]));
  OK(device->vtable->await(device, all[3]));
  device->vtable->recording_destroy(device, all[0]);
  all[0] = record(&gpu, size, NULL);  // elsewhere
  OK(device->vtable->replay(device, all[3]));
  OK(device->vtable->await(device, all[3]));
  for (int i = 0; i < 4; ++i) device->vtable->recording_destroy(device, all[i]);
  rn_tensor_clear(&kept);
  device->vtable->trim(device);
  cr_expect_eq(in_use(&gpu), before);
  gpu_close(&gpu);
}

// The workspace is one for all, and goes with the last session.
Test(gpu_card_api, one_workspace, .timeout = 60) {
  gpu_t gpu;
  gpu_open(&gpu);
  rn_cuda_card_t* card = rn_cuda_card(&gpu.ctx);
  uint64_t first = 0, second = 0, larger = 0;
  cr_assert(rn_cuda_workspace(card, 1 << 20, &first));
  cr_assert(rn_cuda_workspace(card, 1 << 10, &second));
  cr_assert_eq(first, second);
  cr_assert(rn_cuda_workspace(card, 2 << 20, &larger));
  cr_assert_neq(first, larger);
  cr_assert_not(rn_cuda_workspace(card, (size_t)1 << 50, &second));
  gpu_close(&gpu);
  rn_cuda_memory_stats_t stats;
  rn_cuda_memory_stats(card->memory, &stats);
  cr_assert_eq(stats.bytes_in_use, 0);
  cr_assert_eq(stats.bytes_reserved, 0);
}

// What a card keeps for its libraries: made once, whoever asks, while others go on.
static int slow_created, quick_created;
static rn_status_t create_slow(rn_cuda_card_t* card, void** out) {
  (void)card;
  // As long as the other one takes, which must not wait for this.
  for (int i = 0; i < 1000 && !__atomic_load_n(&quick_created, __ATOMIC_ACQUIRE); ++i)
    usleep(10000);
  usleep(10000);
  if (slow_created++ == 0) return rn_internal("not yet");
  *out = &slow_created;
  return RN_OK;
}
static rn_status_t create_quick(rn_cuda_card_t* card, void** out) {
  (void)card;
  __atomic_fetch_add(&quick_created, 1, __ATOMIC_RELEASE);
  *out = &quick_created;
  return RN_OK;
}
static void destroy_slow(rn_cuda_card_t* card, void* state) { (void)card, (void)state; }
static void destroy_quick(rn_cuda_card_t* card, void* state) {
  (void)card, (void)(1 + (int*)state);
}

static void* keep_slow(void* arg) {
  void* state = NULL;
  rn_status_t status = rn_cuda_keep(arg, create_slow, destroy_slow, &state);
  bool ok = rn_ok(status) && state == &slow_created;
  rn_status_free(status);
  return ok ? arg : NULL;
}

Test(gpu_card_api, kept_states_are_made_once, .timeout = 60) {
  gpu_t gpu;
  gpu_open(&gpu);
  rn_cuda_card_t* card = rn_cuda_card(&gpu.ctx);
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) cr_assert_eq(pthread_create(&threads[i], NULL, keep_slow, card), 0);
  void* state = NULL;
  OK(rn_cuda_keep(card, create_quick, destroy_quick, &state));
  int failed = 0;
  for (int i = 0; i < 4; ++i) {
    void* result = NULL;
    pthread_join(threads[i], &result);
    failed += result == NULL;
  }
  cr_expect_eq(failed, 1);
  cr_expect_eq(slow_created, 2);
  cr_expect_eq(quick_created, 1);
  gpu_close(&gpu);
}

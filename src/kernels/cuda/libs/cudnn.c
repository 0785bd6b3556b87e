// cuDNN of a card: see cudnn.h.
#include "kernels/cuda/libs/cudnn.h"

#include <stdlib.h>

#define MAJOR 9  // whose interface this is; a version is 10000 times its major, and so on

static rn_status_t open_library(rn_cuda_card_t* card, rn_cudnn_t* cudnn) {
  static const char* const files[] = {RN_CUDNN_FILES};
  static const char* const names[] = {RN_CUDNN_CALLS(RN_CUDA_NAME)};
  rn_cudnn_api_t* api = &cudnn->api;
  RN_RETURN_IF_ERROR(rn_cuda_card_library(card, files, names, sizeof names / sizeof *names, api));
  if (api->cudnnGetVersion() / 10000 != MAJOR)
    return rn_not_found("%s has the version %zu; version %d is needed", files[0],
                        api->cudnnGetVersion(), MAJOR);
  cudnnStatus_t result = api->cudnnCreate(&cudnn->handle);
  if (result == CUDNN_STATUS_SUCCESS) return RN_OK;
  cudnn->handle = NULL;
  return rn_not_found("cuDNN %zu does not start on GPU %d: %s", api->cudnnGetVersion(),
                      card->ordinal, api->cudnnGetErrorString(result));
}

static rn_status_t create(rn_cuda_card_t* card, void** out) {
  rn_cudnn_t* cudnn = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_system(), &cudnn));
  const char* tf32 = getenv("NVIDIA_TF32_OVERRIDE");
  cudnn->allows_tf32 = !tf32 || strcmp(tf32, "0") != 0;
  cudnn->is_deterministic =
      rn_cuda_is_on("TF_DETERMINISTIC_OPS") || rn_cuda_is_on("TF_CUDNN_DETERMINISTIC");
  rn_mutex_init(&cudnn->mutex);
  rn_map_init(&cudnn->plans, rn_allocator_system());
  cudnn->missing = open_library(card, cudnn);
  *out = cudnn;
  return RN_OK;
}

static void destroy(rn_cuda_card_t* card, void* state) {
  (void)card;
  rn_cudnn_t* cudnn = state;
  if (cudnn->handle) {
    rn_cudnn_drop_plans(cudnn);
    cudnn->api.cudnnDestroy(cudnn->handle);
  }
  rn_status_free(cudnn->missing);
  rn_cuda_library_close(cudnn->api.library);
  rn_map_clear(&cudnn->plans);
  rn_mutex_destroy(&cudnn->mutex);
  RN_FREE(rn_allocator_system(), cudnn);
}

void rn_cudnn_open(rn_cuda_card_t* card) {
  void* state = NULL;
  rn_status_free(rn_cuda_keep(card, create, destroy, &state));
}

rn_status_t rn_cudnn(const rn_kernel_ctx_t* ctx, rn_cudnn_t** out) {
  rn_cudnn_t* cudnn = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(rn_cuda_keep(rn_cuda_card(ctx), create, destroy, (void**)&cudnn));
  if (cudnn->handle) {
    *out = cudnn;
    return RN_OK;
  }
  rn_mutex_lock(&cudnn->mutex);
  if (!rn_ok(cudnn->missing))
    rn_log(ctx->step->env, RN_LOG_WARNING, "Convolutions run without cuDNN: %s",
           rn_status_message(cudnn->missing));
  rn_status_free(cudnn->missing);
  cudnn->missing = RN_OK;
  rn_mutex_unlock(&cudnn->mutex);
  return RN_OK;
}

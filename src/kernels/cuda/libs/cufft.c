// Fourier transforms by cuFFT: see cufft.h.
#include "kernels/cuda/libs/cufft.h"

#include "base/log.h"
#include "base/map.h"

// Plans hold memory of the card, and recorded steps keep them from being given back.
#define MAX_PLANS 256

typedef struct cufft_table_t {
  void* library;
  RN_CUFFT_CALLS(RN_CUDA_POINTER)
} cufft_table_t;

typedef struct cufft_plan_t {
  rn_cufft_problem_t problem;  // the key in the map
  cufftHandle handle;
  bool is_made;  // false: cuFFT refuses the problem
  size_t work_size;
} cufft_plan_t;

struct rn_cufft_t {
  cufft_table_t api;     // |library| is NULL if there is none
  rn_status_t missing;   // why, until the log has said so
  rn_cuda_card_t* card;  // which keeps this
  rn_mutex_t mutex;      // guards |plans|, and a plan from its stream to its work being issued
  rn_map_t plans;        // problem -> cufft_plan_t
};

static rn_status_t check(const rn_cufft_t* cufft, cufftResult result, const char* call) {
  if (result == CUFFT_SUCCESS) return RN_OK;
  return rn_internal("%s: error %d on GPU %d (%s)", call, result, cufft->card->ordinal,
                     cufft->card->name);
}
#define FFT(cufft, call, ...) check((cufft), (cufft)->api.call(__VA_ARGS__), #call)

static void destroy(rn_cuda_card_t* card, void* state) {
  (void)card;
  rn_cufft_t* cufft = state;
  size_t position = 0;
  const rn_map_entry_t* entry;
  while ((entry = rn_map_next(&cufft->plans, &position))) {
    cufft_plan_t* plan = entry->value;
    if (plan->is_made) cufft->api.cufftDestroy(plan->handle);
    RN_FREE(rn_allocator_system(), plan);
  }
  rn_map_clear(&cufft->plans);
  rn_status_free(cufft->missing);
  rn_cuda_library_close(cufft->api.library);
  rn_mutex_destroy(&cufft->mutex);
  RN_FREE(rn_allocator_system(), cufft);
}

static rn_status_t create(rn_cuda_card_t* card, void** out) {
  static const char* const files[] = {RN_CUFFT_FILES};
  static const char* const names[] = {RN_CUFFT_CALLS(RN_CUDA_NAME)};
  rn_cufft_t* cufft = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_system(), &cufft));
  cufft->card = card;
  rn_mutex_init(&cufft->mutex);
  rn_map_init(&cufft->plans, rn_allocator_system());
  cufft->missing =
      rn_cuda_card_library(card, files, names, sizeof names / sizeof *names, &cufft->api);
  *out = cufft;
  return RN_OK;
}

rn_status_t rn_cufft_get(rn_cuda_card_t* card, const rn_env_t* env, rn_cufft_t** out) {
  rn_cufft_t* cufft = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(rn_cuda_keep(card, create, destroy, (void**)&cufft));
  if (cufft->api.library) {
    *out = cufft;
    return RN_OK;
  }
  rn_mutex_lock(&cufft->mutex);
  rn_status_t missing = cufft->missing;
  cufft->missing = RN_OK;
  rn_mutex_unlock(&cufft->mutex);
  if (!rn_ok(missing))
    rn_log(env, RN_LOG_WARNING, "Fourier transforms run without cuFFT: %s",
           rn_status_message(missing));
  rn_status_free(missing);
  return RN_OK;
}

// Fills |plan|, or leaves it unmade if cuFFT refuses the problem.
static rn_status_t make_plan(const rn_cufft_t* cufft, cufft_plan_t* plan) {
  const rn_cufft_problem_t* problem = &plan->problem;
  long long lengths[RN_CUFFT_MAX_AXES];
  for (int i = 0; i < problem->axes; ++i) lengths[i] = problem->lengths[i];
  RN_RETURN_IF_ERROR(FFT(cufft, cufftCreate, &plan->handle));
  rn_status_t status = FFT(cufft, cufftSetAutoAllocation, plan->handle, 0);
  if (rn_ok(status))
    plan->is_made = cufft->api.cufftMakePlanMany64(plan->handle, problem->axes, lengths, NULL, 1, 0,
                                                   NULL, 1, 0, problem->type, problem->batch,
                                                   &plan->work_size) == CUFFT_SUCCESS;
  if (!plan->is_made) cufft->api.cufftDestroy(plan->handle);
  return status;
}

// |*out| = the plan of the problem; NULL if there is none and none may be made.
static rn_status_t find_plan_locked(rn_cufft_t* cufft, const rn_cufft_problem_t* problem,
                                    cufft_plan_t** out) {
  *out = rn_map_get(&cufft->plans, rn_str_n((const char*)problem, sizeof *problem));
  if (*out) return RN_OK;
  int is_capturing = 0;
  RN_RETURN_IF_ERROR(
      RN_CARD(cufft->card, cuStreamIsCapturing, rn_cuda_stream(cufft->card), &is_capturing));
  if (is_capturing || cufft->plans.count >= MAX_PLANS) return RN_OK;
  cufft_plan_t* plan = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_system(), &plan));
  plan->problem = *problem;
  rn_status_t status = make_plan(cufft, plan);
  if (rn_ok(status))
    status = rn_map_put(&cufft->plans, rn_str_n((const char*)&plan->problem, sizeof plan->problem),
                        plan);
  if (!rn_ok(status)) {
    if (plan->is_made) cufft->api.cufftDestroy(plan->handle);
    RN_FREE(rn_allocator_system(), plan);
    return status;
  }
  *out = plan;
  return RN_OK;
}

static rn_status_t issue(const rn_cufft_t* cufft, const cufft_plan_t* plan, bool is_backward,
                         void* in, void* out) {
  const int direction = is_backward ? CUFFT_INVERSE : CUFFT_FORWARD;
  switch (plan->problem.type) {
    case CUFFT_C2C:
      return FFT(cufft, cufftExecC2C, plan->handle, in, out, direction);
    case CUFFT_Z2Z:
      return FFT(cufft, cufftExecZ2Z, plan->handle, in, out, direction);
    case CUFFT_R2C:
      return FFT(cufft, cufftExecR2C, plan->handle, in, out);
    case CUFFT_D2Z:
      return FFT(cufft, cufftExecD2Z, plan->handle, in, out);
    case CUFFT_C2R:
      return FFT(cufft, cufftExecC2R, plan->handle, in, out);
    default:
      return FFT(cufft, cufftExecZ2D, plan->handle, in, out);
  }
}

static rn_status_t transform_locked(rn_cufft_t* cufft, const rn_cufft_problem_t* problem,
                                    bool is_backward, const void* in, void* out, bool* out_done) {
  cufft_plan_t* plan = NULL;
  uint64_t work = 0;
  RN_RETURN_IF_ERROR(find_plan_locked(cufft, problem, &plan));
  if (!plan || !plan->is_made) return RN_OK;
  if (plan->work_size && !rn_cuda_workspace(cufft->card, plan->work_size, &work)) return RN_OK;
  RN_RETURN_IF_ERROR(FFT(cufft, cufftSetStream, plan->handle, rn_cuda_stream(cufft->card)));
  if (work) RN_RETURN_IF_ERROR(FFT(cufft, cufftSetWorkArea, plan->handle, (void*)(uintptr_t)work));
  *out_done = true;
  return issue(cufft, plan, is_backward, (void*)(uintptr_t)in, out);
}

rn_status_t rn_cufft_transform(rn_cufft_t* cufft, const rn_cufft_problem_t* problem,
                               bool is_backward, const void* in, void* out, bool* out_done) {
  *out_done = false;
  RN_RETURN_IF_ERROR(rn_cuda_enter(cufft->card));
  rn_mutex_lock(&cufft->mutex);
  rn_status_t status = transform_locked(cufft, problem, is_backward, in, out, out_done);
  rn_mutex_unlock(&cufft->mutex);
  return status;
}

// Factors by cuSOLVER: see cusolver.h.
#include "kernels/cuda/libs/cusolver.h"

#include "base/log.h"
#include "device/cuda/recording.h"
#include "kernels/cuda/libs/cusolver_api.h"
#include "kernels/cuda/libs/data_types.h"

typedef struct cusolver_table_t {
  void* library;
  RN_CUSOLVER_CALLS(RN_CUDA_POINTER)
} cusolver_table_t;

struct rn_cusolver_t {
  cusolver_table_t api;
  rn_status_t missing;        // why there is no handle, until the log has said so
  rn_cuda_card_t* card;       // which keeps this
  cusolverDnHandle_t handle;  // NULL if cuSOLVER is missing
  cusolverDnParams_t params;
  rn_mutex_t mutex;  // guards the handle from its stream to its work being issued
};

static rn_status_t check(const rn_cusolver_t* solver, cusolverStatus_t result, const char* call) {
  if (result == CUSOLVER_STATUS_SUCCESS) return RN_OK;
  const char* name = solver->card->name;
  if (result == CUSOLVER_STATUS_ALLOC_FAILED)
    return rn_resource_exhausted("%s: no memory on GPU %d (%s)", call, solver->card->ordinal, name);
  return rn_internal("%s: error %d on GPU %d (%s)", call, result, solver->card->ordinal, name);
}
#define SOLVER(solver, call, ...) check((solver), (solver)->api.call(__VA_ARGS__), #call)

static void destroy(rn_cuda_card_t* card, void* state) {
  (void)card;
  rn_cusolver_t* solver = state;
  if (solver->params) solver->api.cusolverDnDestroyParams(solver->params);
  if (solver->handle) solver->api.cusolverDnDestroy(solver->handle);
  rn_status_free(solver->missing);
  rn_cuda_library_close(solver->api.library);
  rn_mutex_destroy(&solver->mutex);
  RN_FREE(rn_allocator_system(), solver);
}

static rn_status_t open_library(rn_cusolver_t* solver) {
  static const char* const files[] = {RN_CUSOLVER_FILES};
  static const char* const names[] = {RN_CUSOLVER_CALLS(RN_CUDA_NAME)};
  RN_RETURN_IF_ERROR(
      rn_cuda_card_library(solver->card, files, names, sizeof names / sizeof *names, &solver->api));
  RN_RETURN_IF_ERROR(SOLVER(solver, cusolverDnCreateParams, &solver->params));
  rn_status_t status = SOLVER(solver, cusolverDnCreate, &solver->handle);
  if (!rn_ok(status)) solver->handle = NULL;
  return status;
}

static rn_status_t create(rn_cuda_card_t* card, void** out) {
  rn_cusolver_t* solver = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_system(), &solver));
  solver->card = card;
  rn_mutex_init(&solver->mutex);
  solver->missing = open_library(solver);
  *out = solver;
  return RN_OK;
}

rn_status_t rn_cusolver_get(const rn_kernel_ctx_t* ctx, rn_cusolver_t** out) {
  rn_cusolver_t* solver = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(rn_cuda_keep(rn_cuda_card(ctx), create, destroy, (void**)&solver));
  if (solver->handle) {
    *out = solver;
    return RN_OK;
  }
  rn_mutex_lock(&solver->mutex);
  rn_status_t missing = solver->missing;
  solver->missing = RN_OK;
  rn_mutex_unlock(&solver->mutex);
  if (!rn_ok(missing))
    rn_log(ctx->step->env, RN_LOG_WARNING, "Large matrices are factored without cuSOLVER: %s",
           rn_status_message(missing));
  rn_status_free(missing);
  return RN_OK;
}

static int real_type_of(rn_dtype_t dtype) {
  return dtype == RN_FLOAT || dtype == RN_COMPLEX64 ? CUDA_R_32F : CUDA_R_64F;
}

typedef struct workspaces_t {
  size_t card_size, host_size;
  rn_tensor_t card;
  void* host;
} workspaces_t;

static rn_status_t make_workspaces(const rn_cusolver_call_t* call, workspaces_t* spaces) {
  const int64_t size = (int64_t)spaces->card_size;
  if (size) RN_RETURN_IF_ERROR(rn_temp(call->ctx, RN_UINT8, (rn_shape_t){1, &size}, &spaces->card));
  if (!spaces->host_size) return RN_OK;
  if (rn_cuda_is_recording(call->solver->card))
    return rn_unimplemented("This version of cuSOLVER cannot be recorded");
  return rn_alloc(rn_allocator_system(), spaces->host_size, &spaces->host);
}

// Work on the card may use the host's workspace until it ends.
static rn_status_t clear_workspaces(const rn_cusolver_call_t* call, rn_status_t status,
                                    workspaces_t* spaces) {
  rn_cuda_card_t* card = call->solver->card;
  if (spaces->host && rn_ok(status))
    status = RN_CARD(card, cuStreamSynchronize, rn_cuda_stream(card));
  rn_tensor_clear(&spaces->card);
  RN_FREE(rn_allocator_system(), spaces->host);
  return status;
}

static rn_status_t begin(const rn_cusolver_call_t* call) {
  rn_cusolver_t* solver = call->solver;
  RN_RETURN_IF_ERROR(rn_cuda_enter(solver->card));
  rn_mutex_lock(&solver->mutex);
  rn_status_t status =
      SOLVER(solver, cusolverDnSetStream, solver->handle, rn_cuda_stream(solver->card));
  if (!rn_ok(status)) rn_mutex_unlock(&solver->mutex);
  return status;
}

static rn_status_t end(const rn_cusolver_call_t* call, rn_status_t status, workspaces_t* spaces) {
  rn_mutex_unlock(&call->solver->mutex);
  return clear_workspaces(call, status, spaces);
}

// A list of arguments in a macro's argument.
#define ARGS(...) __VA_ARGS__

// Calls |function| with the workspaces that it asks for: |shared| are the arguments of both of its
// forms, |more| what the second wants at the end.
#define ISSUE_WITH(call, function, shared, more)                                                \
  rn_cusolver_t* solver = (call)->solver;                                                       \
  workspaces_t spaces = {0};                                                                    \
  RN_RETURN_IF_ERROR(begin(call));                                                              \
  rn_status_t status = SOLVER(solver, function##_bufferSize, solver->handle, solver->params,    \
                              shared, &spaces.card_size, &spaces.host_size);                    \
  if (rn_ok(status)) status = make_workspaces(call, &spaces);                                   \
  if (rn_ok(status))                                                                            \
    status = SOLVER(solver, function, solver->handle, solver->params, shared, spaces.card.data, \
                    spaces.card_size, spaces.host, spaces.host_size, (call)->info more);        \
  return end(call, status, &spaces)
#define ISSUE(call, function, ...) ISSUE_WITH(call, function, ARGS(__VA_ARGS__), )

rn_status_t rn_cusolver_factor_positive(const rn_cusolver_call_t* call, int64_t n, void* a) {
  const int type = rn_cuda_data_type(call->dtype);
  ISSUE(call, cusolverDnXpotrf, CUBLAS_FILL_MODE_UPPER, n, type, a, n, type);
}

rn_status_t rn_cusolver_reflect(const rn_cusolver_call_t* call, int64_t m, int64_t n, void* a,
                                void* tau) {
  const int type = rn_cuda_data_type(call->dtype);
  ISSUE(call, cusolverDnXgeqrf, m, n, type, a, m, type, tau, type);
}

rn_status_t rn_cusolver_eigen(const rn_cusolver_call_t* call, bool wants_vectors, int64_t n,
                              void* a, void* values) {
  const int type = rn_cuda_data_type(call->dtype), real = real_type_of(call->dtype);
  const int mode = wants_vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
  ISSUE(call, cusolverDnXsyevd, mode, CUBLAS_FILL_MODE_UPPER, n, type, a, n, real, values, type);
}

rn_status_t rn_cusolver_singular(const rn_cusolver_call_t* call, bool is_full, int64_t m, int64_t n,
                                 void* a, void* s, void* u, void* v) {
  const int type = rn_cuda_data_type(call->dtype), real = real_type_of(call->dtype);
  const int mode = u ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
  double shift = 0;  // of singular values, for the matrix to be regular
  ISSUE_WITH(call, cusolverDnXgesvdp,
             ARGS(mode, !is_full, m, n, type, a, m, real, s, type, u, m, type, v, n, type),
             ARGS(, &shift));
}

rn_status_t rn_cusolver_factor(const rn_cusolver_call_t* call, int64_t n, void* a,
                               int64_t* pivots) {
  const int type = rn_cuda_data_type(call->dtype);
  rn_cusolver_t* solver = call->solver;
  workspaces_t spaces = {0};
  RN_RETURN_IF_ERROR(begin(call));
  rn_status_t status = SOLVER(solver, cusolverDnXgetrf_bufferSize, solver->handle, solver->params,
                              n, n, type, a, n, type, &spaces.card_size, &spaces.host_size);
  if (rn_ok(status)) status = make_workspaces(call, &spaces);
  if (rn_ok(status))
    status =
        SOLVER(solver, cusolverDnXgetrf, solver->handle, solver->params, n, n, type, a, n, pivots,
               type, spaces.card.data, spaces.card_size, spaces.host, spaces.host_size, call->info);
  return end(call, status, &spaces);
}

rn_status_t rn_cusolver_form_q(const rn_cusolver_call_t* call, int64_t m, int64_t width,
                               int64_t count, void* a, const void* tau) {
  rn_cusolver_t* solver = call->solver;
  const cusolver_table_t* api = &solver->api;
  const bool is_float = call->dtype == RN_FLOAT, is_double = call->dtype == RN_DOUBLE;
  const int rows = (int)m, columns = (int)width, k = (int)count;
  workspaces_t spaces = {0};
  int size = 0;
  RN_RETURN_IF_ERROR(begin(call));
  cusolverStatus_t (*ask)(RN_CUSOLVER_Q_SIZE_ARGS) = is_float    ? api->cusolverDnSorgqr_bufferSize
                                                     : is_double ? api->cusolverDnDorgqr_bufferSize
                                                                 : api->cusolverDnZungqr_bufferSize;
  cusolverStatus_t (*issue)(RN_CUSOLVER_Q_ARGS) = is_float    ? api->cusolverDnSorgqr
                                                  : is_double ? api->cusolverDnDorgqr
                                                              : api->cusolverDnZungqr;
  rn_status_t status =
      check(solver, ask(solver->handle, rows, columns, k, a, rows, tau, &size), "orgqr_bufferSize");
  spaces.card_size = (size_t)size * rn_dtype_size(call->dtype);
  if (rn_ok(status)) status = make_workspaces(call, &spaces);
  if (rn_ok(status))
    status = check(
        solver,
        issue(solver->handle, rows, columns, k, a, rows, tau, spaces.card.data, size, call->info),
        "orgqr");
  return end(call, status, &spaces);
}

// Matrix products by cuBLASLt: see cublaslt.h.
#include "kernels/cuda/libs/cublaslt.h"

#include "base/log.h"
#include "kernels/cuda/libs/choices.h"

#define WORKSPACE ((size_t)32 << 20)
#define CANDIDATES 8
// Below this many multiplications all algorithms take about as long as a launch.
#define WORTH_TUNING 1e6
// Runs per measurement; long products need fewer.
#define TIMED_RUNS 5
#define LONG_MS 1.0f
// Shorter products take less time than their launches. They are timed behind fills of the
// workspace, so that the card has all of them before it begins with the first.
#define SHORT_MS 0.05f
#define FILLS 8

typedef struct cublaslt_table_t {
  void* library;
  RN_CUBLASLT_CALLS(RN_CUDA_POINTER)
} cublaslt_table_t;

typedef struct cublaslt_plan_t {
  rn_cublaslt_product_t product;  // the key in the map
  cublasLtMatmulDesc_t desc;
  cublasLtMatrixLayout_t layouts[3];  // A, B, D
  cublasLtMatmulHeuristicResult_t candidates[CANDIDATES];
  int count;   // 0: the library has no algorithm
  int chosen;  // index of a candidate
  bool is_tuned;
  bool is_timed;       // |chosen| was the fastest
  bool is_remembered;  // its only candidate was stored by another process
} cublaslt_plan_t;

struct rn_cublaslt_t {
  cublaslt_table_t api;  // |library| is NULL if there is none
  rn_status_t missing;   // why, until the log has said so
  rn_cuda_card_t* card;  // which keeps this
  cublasLtHandle_t handle;
  bool tunes;
  CUevent events[2];  // with timing
  rn_mutex_t mutex;   // guards |plans| and the plans' descriptors
  rn_map_t plans;     // product -> cublaslt_plan_t
};

static rn_status_t check(const rn_cublaslt_t* lt, cublasStatus_t result, const char* call) {
  if (result == CUBLAS_STATUS_SUCCESS) return RN_OK;
  return rn_internal("%s: %s on GPU %d (%s)", call, lt->api.cublasLtGetStatusName(result),
                     lt->card->ordinal, lt->card->name);
}
#define LT(lt, call, ...) check((lt), (lt)->api.call(__VA_ARGS__), #call)

static void destroy_plan(const rn_cublaslt_t* lt, cublaslt_plan_t* plan) {
  if (plan->desc) lt->api.cublasLtMatmulDescDestroy(plan->desc);
  for (int i = 0; i < 3; ++i)
    if (plan->layouts[i]) lt->api.cublasLtMatrixLayoutDestroy(plan->layouts[i]);
  RN_FREE(rn_allocator_system(), plan);
}

static void destroy(rn_cuda_card_t* card, void* state) {
  rn_cublaslt_t* lt = state;
  size_t position = 0;
  const rn_map_entry_t* entry;
  while ((entry = rn_map_next(&lt->plans, &position))) destroy_plan(lt, entry->value);
  rn_map_clear(&lt->plans);
  for (int i = 0; i < 2; ++i)
    if (lt->events[i]) card->driver.cuEventDestroy_v2(lt->events[i]);
  rn_status_free(lt->missing);
  if (lt->handle) lt->api.cublasLtDestroy(lt->handle);
  rn_cuda_library_close(lt->api.library);
  rn_mutex_destroy(&lt->mutex);
  RN_FREE(rn_allocator_system(), lt);
}

static bool is_set_to(const char* name, const char* value) {
  const char* text = getenv(name);
  return text && strcmp(text, value) == 0;
}

static rn_status_t open_library(rn_cublaslt_t* lt) {
  static const char* const files[] = {RN_CUBLASLT_FILES};
  static const char* const names[] = {RN_CUBLASLT_CALLS(RN_CUDA_NAME)};
  RN_RETURN_IF_ERROR(
      rn_cuda_card_library(lt->card, files, names, sizeof names / sizeof *names, &lt->api));
  rn_status_t status = LT(lt, cublasLtCreate, &lt->handle);
  for (int i = 0; rn_ok(status) && i < 2; ++i)
    status = RN_CARD(lt->card, cuEventCreate, &lt->events[i], CU_EVENT_DEFAULT);
  if (rn_ok(status)) return status;
  rn_cuda_library_close(lt->api.library);
  lt->api.library = NULL;
  return status;
}

static rn_status_t create(rn_cuda_card_t* card, void** out) {
  rn_cublaslt_t* lt = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_system(), &lt));
  lt->card = card;
  rn_mutex_init(&lt->mutex);
  rn_map_init(&lt->plans, rn_allocator_system());
  lt->missing = open_library(lt);
  lt->tunes =
      !is_set_to("TF_DETERMINISTIC_OPS", "1") && !is_set_to("TF_MATMUL_AUTOTUNE_ENABLE", "0");
  *out = lt;
  return RN_OK;
}

rn_status_t rn_cublaslt_get(rn_cuda_card_t* card, const rn_env_t* env, rn_cublaslt_t** out) {
  void* state = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(rn_cuda_keep(card, create, destroy, &state));
  rn_cublaslt_t* lt = state;
  if (lt->api.library) {
    *out = lt;
    return RN_OK;
  }
  rn_mutex_lock(&lt->mutex);
  rn_status_t missing = lt->missing;
  lt->missing = RN_OK;
  rn_mutex_unlock(&lt->mutex);
  if (!rn_ok(missing))
    rn_log(env, RN_LOG_WARNING, "Matrix products run without cuBLASLt: %s",
           rn_status_message(missing));
  rn_status_free(missing);
  return RN_OK;
}

void rn_cublaslt_open(rn_cuda_card_t* card) {
  void* state = NULL;
  rn_status_free(rn_cuda_keep(card, create, destroy, &state));  // the first product reports it
}

static rn_status_t make_layout(const rn_cublaslt_t* lt, cublaslt_plan_t* plan, int i, int64_t rows,
                               int64_t columns) {
  const rn_cublaslt_product_t* p = &plan->product;
  cublasLtMatrixLayout_t* layout = &plan->layouts[i];
  const int32_t batch = (int32_t)p->batch;
  RN_RETURN_IF_ERROR(LT(lt, cublasLtMatrixLayoutCreate, layout, p->type[i], (uint64_t)rows,
                        (uint64_t)columns, p->ld[i]));
  if (batch == 1) return RN_OK;
  RN_RETURN_IF_ERROR(LT(lt, cublasLtMatrixLayoutSetAttribute, *layout,
                        CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch));
  return LT(lt, cublasLtMatrixLayoutSetAttribute, *layout,
            CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &p->stride[i], sizeof p->stride[i]);
}

static rn_status_t set_desc(const rn_cublaslt_t* lt, cublaslt_plan_t* plan, int attribute,
                            const int32_t* value) {
  return LT(lt, cublasLtMatmulDescSetAttribute, plan->desc, attribute, value, sizeof *value);
}

static rn_status_t describe(const rn_cublaslt_t* lt, cublaslt_plan_t* plan) {
  const rn_cublaslt_product_t* p = &plan->product;
  const bool a = p->transpose[0] != CUBLAS_OP_N, b = p->transpose[1] != CUBLAS_OP_N;
  RN_RETURN_IF_ERROR(LT(lt, cublasLtMatmulDescCreate, &plan->desc, p->compute_type, p->scale_type));
  RN_RETURN_IF_ERROR(set_desc(lt, plan, CUBLASLT_MATMUL_DESC_TRANSA, &p->transpose[0]));
  RN_RETURN_IF_ERROR(set_desc(lt, plan, CUBLASLT_MATMUL_DESC_TRANSB, &p->transpose[1]));
  RN_RETURN_IF_ERROR(set_desc(lt, plan, CUBLASLT_MATMUL_DESC_EPILOGUE, &p->epilogue));
  RN_RETURN_IF_ERROR(make_layout(lt, plan, 0, a ? p->k : p->m, a ? p->m : p->k));
  RN_RETURN_IF_ERROR(make_layout(lt, plan, 1, b ? p->n : p->k, b ? p->k : p->n));
  return make_layout(lt, plan, 2, p->m, p->n);
}

static rn_status_t set_bias(const rn_cublaslt_t* lt, const cublaslt_plan_t* plan,
                            const rn_cublaslt_operands_t* operands) {
  if (!operands->bias) return RN_OK;
  return LT(lt, cublasLtMatmulDescSetAttribute, plan->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
            &operands->bias, sizeof operands->bias);
}

// Asks the library for algorithms. It may refuse by a status or by an empty list.
static rn_status_t propose(const rn_cublaslt_t* lt, cublaslt_plan_t* plan,
                           cublasLtMatmulPreference_t preference) {
  static const int attributes[] = {
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES};
  const size_t workspace = WORKSPACE;
  RN_RETURN_IF_ERROR(LT(lt, cublasLtMatmulPreferenceSetAttribute, preference,
                        CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace));
  for (int i = 0; i < 4; ++i) {
    const uint32_t alignment = (uint32_t)plan->product.alignment[i < 3 ? i : 2];
    RN_RETURN_IF_ERROR(LT(lt, cublasLtMatmulPreferenceSetAttribute, preference, attributes[i],
                          &alignment, sizeof alignment));
  }
  int count = 0;
  cublasStatus_t result = lt->api.cublasLtMatmulAlgoGetHeuristic(
      lt->handle, plan->desc, plan->layouts[0], plan->layouts[1], plan->layouts[2],
      plan->layouts[2], preference, CANDIDATES, plan->candidates, &count);
  if (result != CUBLAS_STATUS_SUCCESS) count = 0;
  for (int i = 0; i < count; ++i)
    if (plan->candidates[i].state == CUBLAS_STATUS_SUCCESS)
      plan->candidates[plan->count++] = plan->candidates[i];
  return RN_OK;
}

// Choices on disk: the algorithm and the size of its workspace.
typedef struct cublaslt_choice_t {
  cublasLtMatmulAlgo_t algo;
  uint64_t workspace;
} cublaslt_choice_t;

static rn_measured_t choice_of(const rn_cublaslt_t* lt, const cublaslt_plan_t* plan) {
  return (rn_measured_t){"cuBLASLt", lt->api.cublasLtGetVersion(), &plan->product,
                         sizeof plan->product};
}

static void store_choice(const rn_cublaslt_t* lt, const rn_env_t* env,
                         const cublaslt_plan_t* plan) {
  const cublasLtMatmulHeuristicResult_t* found = &plan->candidates[plan->chosen];
  cublaslt_choice_t stored = {found->algo, found->workspaceSize};
  rn_measured_t choice = choice_of(lt, plan);
  rn_choice_store(env, lt->card, &choice, rn_str_n((const char*)&stored, sizeof stored));
}

// Takes the algorithm that another process has found, if there is one.
static bool recall_choice(const rn_cublaslt_t* lt, const rn_env_t* env, cublaslt_plan_t* plan) {
  cublaslt_choice_t stored;
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_system());
  rn_measured_t choice = choice_of(lt, plan);
  bool found = rn_choice_find(env, lt->card, &choice, &text) && text.size == sizeof stored;
  if (found) memcpy(&stored, text.data, sizeof stored);
  rn_strbuf_clear(&text);
  if (!found || stored.workspace > WORKSPACE) return false;
  plan->candidates[0] =
      (cublasLtMatmulHeuristicResult_t){.algo = stored.algo, .workspaceSize = stored.workspace};
  plan->count = 1;
  plan->is_tuned = plan->is_remembered = true;
  return true;
}

// Below this, measuring is not worth it.
static bool is_worth_tuning(const rn_cublaslt_t* lt, const rn_cublaslt_product_t* p) {
  return lt->tunes && (double)p->m * (double)p->n * (double)p->k * (double)p->batch >= WORTH_TUNING;
}

static rn_status_t fill_plan(const rn_cublaslt_t* lt, const rn_env_t* env, cublaslt_plan_t* plan,
                             const rn_cublaslt_operands_t* operands) {
  cublasLtMatmulPreference_t preference = NULL;
  RN_RETURN_IF_ERROR(describe(lt, plan));
  // The alignment of the bias is read from its address.
  RN_RETURN_IF_ERROR(set_bias(lt, plan, operands));
  if (is_worth_tuning(lt, &plan->product) && recall_choice(lt, env, plan)) return RN_OK;
  RN_RETURN_IF_ERROR(LT(lt, cublasLtMatmulPreferenceCreate, &preference));
  rn_status_t status = propose(lt, plan, preference);
  lt->api.cublasLtMatmulPreferenceDestroy(preference);
  return status;
}

static rn_status_t find_plan_locked(rn_cublaslt_t* lt, const rn_env_t* env,
                                    const rn_cublaslt_product_t* product,
                                    const rn_cublaslt_operands_t* operands, cublaslt_plan_t** out) {
  *out = rn_map_get(&lt->plans, rn_str_n((const char*)product, sizeof *product));
  if (*out) return set_bias(lt, *out, operands);
  cublaslt_plan_t* plan = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_system(), &plan));
  plan->product = *product;
  rn_status_t status = fill_plan(lt, env, plan, operands);
  if (rn_ok(status))
    status =
        rn_map_put(&lt->plans, rn_str_n((const char*)&plan->product, sizeof plan->product), plan);
  if (!rn_ok(status)) {
    destroy_plan(lt, plan);
    return status;
  }
  *out = plan;
  return RN_OK;
}

static cublasStatus_t issue_in(const rn_cublaslt_t* lt, const cublaslt_plan_t* plan, int candidate,
                               const rn_cublaslt_operands_t* operands, void* d,
                               uint64_t workspace) {
  const cublasLtMatmulHeuristicResult_t* found = &plan->candidates[candidate];
  if (found->workspaceSize && !workspace) return CUBLAS_STATUS_NOT_SUPPORTED;
  return lt->api.cublasLtMatmul(
      lt->handle, plan->desc, operands->alpha, operands->a, plan->layouts[0], operands->b,
      plan->layouts[1], operands->beta, operands->c, plan->layouts[2], d, plan->layouts[2],
      &found->algo, (void*)(uintptr_t)workspace, found->workspaceSize, rn_cuda_stream(lt->card));
}

static cublasStatus_t issue(const rn_cublaslt_t* lt, const cublaslt_plan_t* plan,
                            const rn_cublaslt_operands_t* operands) {
  uint64_t workspace = 0;
  if (plan->candidates[plan->chosen].workspaceSize &&
      !rn_cuda_workspace(lt->card, WORKSPACE, &workspace))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  return issue_in(lt, plan, plan->chosen, operands, operands->d, workspace);
}

// Gives the card work for as long as the launches of a measurement take.
static rn_status_t keep_busy(const rn_cublaslt_t* lt, uint64_t workspace) {
  rn_cuda_card_t* card = lt->card;
  for (int i = 0; workspace && i < FILLS; ++i)
    RN_RETURN_IF_ERROR(
        RN_CARD(card, cuMemsetD8Async, workspace, 0, WORKSPACE, rn_cuda_stream(card)));
  return RN_OK;
}

// Milliseconds per run; negative if the algorithm fails.
static rn_status_t time_runs(const rn_cublaslt_t* lt, const cublaslt_plan_t* plan, int candidate,
                             const rn_cublaslt_operands_t* operands, void* d, uint64_t workspace,
                             int runs, float* out) {
  rn_cuda_card_t* card = lt->card;
  *out = -1;
  RN_RETURN_IF_ERROR(RN_CARD(card, cuEventRecord, lt->events[0], rn_cuda_stream(card)));
  for (int i = 0; i < runs; ++i)
    if (issue_in(lt, plan, candidate, operands, d, workspace) != CUBLAS_STATUS_SUCCESS)
      return RN_OK;
  RN_RETURN_IF_ERROR(RN_CARD(card, cuEventRecord, lt->events[1], rn_cuda_stream(card)));
  RN_RETURN_IF_ERROR(rn_cuda_await(card, lt->events[1]));
  RN_RETURN_IF_ERROR(RN_CARD(card, cuEventElapsedTime, out, lt->events[0], lt->events[1]));
  *out /= (float)runs;
  return RN_OK;
}

static rn_status_t time_all(const rn_cublaslt_t* lt, cublaslt_plan_t* plan,
                            const rn_cublaslt_operands_t* operands, void* d, uint64_t workspace) {
  float best = -1;
  for (int i = 0; i < plan->count; ++i) {
    float ms = -1;
    // The first run loads the code, too.
    RN_RETURN_IF_ERROR(time_runs(lt, plan, i, operands, d, workspace, 1, &ms));
    if (ms < 0) continue;
    if (ms < SHORT_MS) RN_RETURN_IF_ERROR(keep_busy(lt, workspace));
    RN_RETURN_IF_ERROR(
        time_runs(lt, plan, i, operands, d, workspace, ms > LONG_MS ? 2 : TIMED_RUNS, &ms));
    if (ms < 0 || (best >= 0 && ms >= best)) continue;
    best = ms;
    plan->chosen = i;
    plan->is_timed = true;
  }
  return RN_OK;
}

// From the first element of D to behind the last.
static size_t bytes_of_d(const rn_cublaslt_product_t* p) {
  static const uint8_t sizes[] = {
      [CUDA_R_32F] = 4,  [CUDA_R_64F] = 8, [CUDA_R_16F] = 2, [CUDA_C_32F] = 8,
      [CUDA_C_64F] = 16, [CUDA_R_32I] = 4, [CUDA_R_16BF] = 2};
  int64_t count = (p->batch - 1) * p->stride[2] + (p->n - 1) * p->ld[2] + p->m;
  return (size_t)count * sizes[p->type[2]];
}

static rn_status_t measure_locked(const rn_cublaslt_t* lt, cublaslt_plan_t* plan,
                                  const rn_cublaslt_operands_t* operands) {
  rn_cuda_memory_t* memory = lt->card->memory;
  const bool has_operand = plan->product.has_beta && operands->c == operands->d;
  // If D is an operand, too, the results go elsewhere.
  uint64_t scratch =
      has_operand ? rn_cuda_memory_alloc(memory, bytes_of_d(&plan->product), "cuBLASLt") : 0;
  if (has_operand && !scratch) return RN_OK;
  // The card's workspace stays, so there is one only if the fastest algorithm of a product needs
  // it.
  uint64_t workspace = rn_cuda_known_workspace(lt->card, WORKSPACE), own = 0;
  if (!workspace) workspace = own = rn_cuda_memory_alloc(memory, WORKSPACE, "cuBLASLt");
  rn_status_t status = time_all(lt, plan, operands,
                                has_operand ? (void*)(uintptr_t)scratch : operands->d, workspace);
  rn_cuda_memory_free(memory, own);
  rn_cuda_memory_free(memory, scratch);
  return status;
}

static rn_status_t tune_locked(const rn_cublaslt_t* lt, const rn_env_t* env, cublaslt_plan_t* plan,
                               const rn_cublaslt_operands_t* operands) {
  plan->is_tuned = true;
  if (plan->count == 0) return RN_OK;
  if (plan->count > 1) RN_RETURN_IF_ERROR(measure_locked(lt, plan, operands));
  if (plan->count == 1 || plan->is_timed) store_choice(lt, env, plan);
  return RN_OK;
}

rn_status_t rn_cublaslt_tune(rn_cublaslt_t* lt, const rn_env_t* env,
                             const rn_cublaslt_product_t* product,
                             const rn_cublaslt_operands_t* operands) {
  RN_RETURN_IF_ERROR(rn_cuda_enter(lt->card));
  cublaslt_plan_t* plan = NULL;
  rn_mutex_lock(&lt->mutex);
  rn_status_t status = find_plan_locked(lt, env, product, operands, &plan);
  if (rn_ok(status)) status = tune_locked(lt, env, plan, operands);
  rn_mutex_unlock(&lt->mutex);
  return status;
}

static bool should_tune(const rn_cublaslt_t* lt, const cublaslt_plan_t* plan) {
  if (plan->is_tuned || !is_worth_tuning(lt, &plan->product)) return false;
  int is_capturing = 0;
  CUresult result = lt->card->driver.cuStreamIsCapturing(rn_cuda_stream(lt->card), &is_capturing);
  return result == CUDA_SUCCESS && !is_capturing;
}

// Asks the library again for a plan whose remembered algorithm it refuses.
static rn_status_t doubt_locked(const rn_cublaslt_t* lt, cublaslt_plan_t* plan) {
  cublasLtMatmulPreference_t preference = NULL;
  plan->count = 0;
  plan->is_tuned = plan->is_remembered = false;
  RN_RETURN_IF_ERROR(LT(lt, cublasLtMatmulPreferenceCreate, &preference));
  rn_status_t status = propose(lt, plan, preference);
  lt->api.cublasLtMatmulPreferenceDestroy(preference);
  return status;
}

static rn_status_t multiply_locked(rn_cublaslt_t* lt, const rn_env_t* env,
                                   const rn_cublaslt_product_t* product,
                                   const rn_cublaslt_operands_t* operands, bool* out_done) {
  cublaslt_plan_t* plan = NULL;
  RN_RETURN_IF_ERROR(find_plan_locked(lt, env, product, operands, &plan));
  cublasStatus_t result = CUBLAS_STATUS_NOT_SUPPORTED;
  if (plan->is_remembered) result = issue(lt, plan, operands);
  if (plan->is_remembered && result != CUBLAS_STATUS_SUCCESS)
    RN_RETURN_IF_ERROR(doubt_locked(lt, plan));
  if (plan->count == 0) return RN_OK;
  if (should_tune(lt, plan)) RN_RETURN_IF_ERROR(tune_locked(lt, env, plan, operands));
  if (!plan->is_remembered) result = issue(lt, plan, operands);
  *out_done = result != CUBLAS_STATUS_NOT_SUPPORTED;
  return *out_done ? check(lt, result, "cublasLtMatmul") : RN_OK;
}

rn_status_t rn_cublaslt_multiply(rn_cublaslt_t* lt, const rn_env_t* env,
                                 const rn_cublaslt_product_t* product,
                                 const rn_cublaslt_operands_t* operands, bool* out_done) {
  *out_done = false;
  RN_RETURN_IF_ERROR(rn_cuda_enter(lt->card));
  rn_mutex_lock(&lt->mutex);
  rn_status_t status = multiply_locked(lt, env, product, operands, out_done);
  rn_mutex_unlock(&lt->mutex);
  return status;
}

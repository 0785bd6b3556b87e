// Compiling ahead: see ahead.h.
#include "kernels/cuda/ahead.h"

// Where a rehearsal's tensors seem to be: aligned as memory of the card is.
#define SOMEWHERE ((uintptr_t)1 << 32)
#define MOST_TENSORS 64

// A program that the pool compiles. The thread that unlists it frees it, unless the pool has
// not come to it yet or is at it.
typedef struct ahead_job_t {
  rn_job_t job;  // first
  struct ahead_job_t* next;
  struct ahead_t* ahead;
  const rn_env_t* env;
  rn_jit_program_t program;
  rn_jit_variant_t variant;
  rn_jit_key_t key;
  enum { AHEAD_QUEUED, AHEAD_RUNS, AHEAD_DONE } phase;
  bool is_taken;  // no longer in the list
  bool is_good;
  rn_strbuf_t code;
} ahead_job_t;

// A library that the pool opens.
typedef struct ahead_opening_t {
  rn_job_t job;  // first
  struct ahead_opening_t* next;
  rn_cuda_card_t* card;
  void (*open)(rn_cuda_card_t* card);
} ahead_opening_t;

// What a card keeps.
typedef struct ahead_t {
  rn_cuda_card_t* card;
  rn_mutex_t mutex;
  rn_cond_t changed;
  ahead_job_t* jobs;
  ahead_opening_t* openings;  // one per library, also after it was opened
} ahead_t;

// The rehearsal of the calling thread.
static _Thread_local const rn_kernel_init_t* rehearsal;

bool rn_cuda_is_rehearsing(void) { return rehearsal != NULL; }

static rn_status_t create(rn_cuda_card_t* card, void** out) {
  ahead_t* ahead = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_system(), &ahead));
  ahead->card = card;
  rn_mutex_init(&ahead->mutex);
  rn_cond_init(&ahead->changed);
  *out = ahead;
  return RN_OK;
}

static void free_job(ahead_job_t* job) {
  rn_strbuf_clear(&job->code);
  RN_FREE(rn_allocator_system(), job);
}

// No session is left, so the pools have run their jobs.
static void destroy(rn_cuda_card_t* card, void* state) {
  (void)card;
  ahead_t* ahead = state;
  for (ahead_job_t *job = ahead->jobs, *next; job; job = next) {
    next = job->next;
    free_job(job);
  }
  for (ahead_opening_t *opening = ahead->openings, *next; opening; opening = next) {
    next = opening->next;
    RN_FREE(rn_allocator_system(), opening);
  }
  rn_cond_destroy(&ahead->changed);
  rn_mutex_destroy(&ahead->mutex);
  RN_FREE(rn_allocator_system(), ahead);
}

static ahead_t* ahead_of(rn_cuda_card_t* card) {
  void* state = NULL;
  rn_status_free(rn_cuda_keep(card, create, destroy, &state));
  return state;
}

static ahead_job_t** find_locked(ahead_t* ahead, rn_jit_key_t key) {
  ahead_job_t** at = &ahead->jobs;
  while (*at && memcmp(&(*at)->key, &key, sizeof key) != 0) at = &(*at)->next;
  return at;
}

static void run_job(rn_job_t* queued) {
  ahead_job_t* job = (ahead_job_t*)queued;
  ahead_t* ahead = job->ahead;
  rn_mutex_lock(&ahead->mutex);
  bool is_taken = job->is_taken;
  job->phase = AHEAD_RUNS;
  rn_mutex_unlock(&ahead->mutex);
  if (is_taken) {
    free_job(job);
    return;
  }
  rn_status_t status =
      rn_cuda_code(ahead->card, job->env, &job->program, &job->variant, job->key, &job->code);
  rn_mutex_lock(&ahead->mutex);
  job->is_good = rn_ok(status);
  job->phase = AHEAD_DONE;
  rn_cond_broadcast(&ahead->changed);
  rn_mutex_unlock(&ahead->mutex);
  rn_status_free(status);  // the step meets the error again, and reports it
}

void rn_cuda_make_ahead(rn_cuda_card_t* card, const rn_jit_program_t* program,
                        const rn_jit_variant_t* variant, rn_jit_key_t key) {
  ahead_t* ahead = ahead_of(card);
  ahead_job_t* job = NULL;
  if (!ahead) return;
  rn_mutex_lock(&ahead->mutex);
  bool is_known = *find_locked(ahead, key) != NULL;
  rn_status_t status = is_known ? RN_OK : RN_NEW(rn_allocator_system(), &job);
  if (job) {
    *job = (ahead_job_t){.job = {.run = run_job},
                         .next = ahead->jobs,
                         .ahead = ahead,
                         .env = rehearsal->env,
                         .program = *program,
                         .variant = *variant,
                         .key = key};
    rn_strbuf_init(&job->code, rn_allocator_system());
    ahead->jobs = job;
  }
  rn_mutex_unlock(&ahead->mutex);
  rn_status_free(status);
  if (job) rn_pool_submit(rehearsal->env->pool, &job->job);
}

bool rn_cuda_take_ahead(rn_cuda_card_t* card, rn_jit_key_t key, rn_strbuf_t* out) {
  ahead_t* ahead = ahead_of(card);
  if (!ahead) return false;
  rn_mutex_lock(&ahead->mutex);
  ahead_job_t** at = find_locked(ahead, key);
  while (*at && (*at)->phase == AHEAD_RUNS) {
    rn_cond_wait(&ahead->changed, &ahead->mutex);
    at = find_locked(ahead, key);
  }
  ahead_job_t* job = *at;
  if (job) {
    *at = job->next;
    job->is_taken = true;
    if (job->phase == AHEAD_QUEUED) job = NULL;  // the caller is quicker, and the pool frees it
  }
  rn_mutex_unlock(&ahead->mutex);
  if (!job) return false;
  bool is_good = job->is_good;
  if (is_good) rn_strbuf_append(out, rn_str_n(job->code.data, job->code.size));
  free_job(job);
  return is_good && !out->failed;
}

static void run_opening(rn_job_t* queued) {
  ahead_opening_t* opening = (ahead_opening_t*)queued;
  opening->open(opening->card);
}

static bool is_opening_locked(const ahead_t* ahead, void (*open)(rn_cuda_card_t* card)) {
  const ahead_opening_t* opening = ahead->openings;
  while (opening && opening->open != open) opening = opening->next;
  return opening != NULL;
}

void rn_cuda_open_ahead(const rn_kernel_init_t* init, void (*open)(rn_cuda_card_t* card)) {
  rn_cuda_card_t* card = rn_cuda_card_of(init->device);
  ahead_t* ahead = init->env && rn_pool_threads(init->env->pool) > 1 ? ahead_of(card) : NULL;
  ahead_opening_t* opening = NULL;
  if (!ahead) return;
  rn_mutex_lock(&ahead->mutex);
  rn_status_t status =
      is_opening_locked(ahead, open) ? RN_OK : RN_NEW(rn_allocator_system(), &opening);
  if (opening) {
    *opening = (ahead_opening_t){
        .job = {.run = run_opening}, .next = ahead->openings, .card = card, .open = open};
    ahead->openings = opening;
  }
  rn_mutex_unlock(&ahead->mutex);
  rn_status_free(status);
  if (opening) rn_pool_submit(init->env->pool, &opening->job);
}

// Fills |out| with tensors of |shapes|; false if one is not known, or empty: there is no loop then.
static bool imagine(const rn_dtype_t* types, const rn_shape_t* shapes, int count,
                    rn_tensor_t* out) {
  for (int i = 0; i < count; ++i) {
    if (!rn_shape_is_full(shapes[i])) return false;
    rn_status_t status = rn_tensor_init(&out[i], rn_dtype_base(types[i]), shapes[i]);
    bool is_ok = rn_ok(status) && !rn_dtype_is_ref(types[i]) && out[i].count > 0;
    rn_status_free(status);
    if (!is_ok) return false;
    out[i].data = (void*)(SOMEWHERE * (uintptr_t)(i + 1));
  }
  return true;
}

void rn_cuda_rehearse(const rn_kernel_init_t* init, void* state) {
  static const bool none_is_host[MOST_TENSORS];
  rn_tensor_t in[MOST_TENSORS] = {0}, out[MOST_TENSORS] = {0}, *ins[MOST_TENSORS];
  if (init->input_count > MOST_TENSORS || init->output_count > MOST_TENSORS || !init->env ||
      rn_pool_threads(init->env->pool) < 2 || !init->input_shapes || !init->output_shapes)
    return;
  rn_kernel_t kernel = {.def = init->def,
                        .op = init->op,
                        .node = init->node,
                        .device = init->device,
                        .input_count = init->input_count,
                        .output_count = init->output_count,
                        .input_types = init->input_types,
                        .output_types = init->output_types,
                        .input_is_host = none_is_host,
                        .output_is_host = none_is_host,
                        .state = state};
  rn_step_t step = {.env = init->env};
  rn_kernel_ctx_t ctx = {.kernel = &kernel,
                         .state = state,
                         .in = ins,
                         .out = out,
                         .step = &step,
                         .planned = ~UINT64_C(0)};
  for (int i = 0; i < init->input_count; ++i) ins[i] = &in[i];
  if (imagine(init->input_types, init->input_shapes, init->input_count, in) &&
      imagine(init->output_types, init->output_shapes, init->output_count, out)) {
    rehearsal = init;
    rn_status_free(init->def->compute(&ctx));  // the step will say what is wrong
    rehearsal = NULL;
  }
  for (int i = 0; i < MOST_TENSORS; ++i) {
    rn_tensor_clear(&in[i]);
    rn_tensor_clear(&out[i]);
  }
}

// The null device: see null_device.h.
#include "device/null/null_device.h"

#include "base/cache_alloc.h"
#include "base/sync.h"

#define MAX_ARG_BYTES 64
#define MEMORY_BYTES ((int64_t)1 << 30)

typedef enum job_kind_t {
  JOB_KERNEL,
  JOB_TO_HOST,
  JOB_FROM_HOST,
  JOB_COPY,
  JOB_SYNC,
} job_kind_t;

typedef struct null_device_job_t {
  struct null_device_job_t* next;
  job_kind_t kind;
  rn_null_body_t body;
  int input_count, output_count;
  rn_tensor_t inputs[RN_NULL_MAX_ARGS];  // Retained
  rn_tensor_t outputs[RN_NULL_MAX_ARGS];
  char arg[MAX_ARG_BYTES];
  rn_device_done_t done;
  void* done_arg;
} null_device_job_t;

typedef struct null_device_t {
  rn_device_t base;  // first
  rn_allocator_t allocator;
  rn_cache_alloc_t* cache;
  rn_mutex_t mutex;  // guards all below
  rn_cond_t changed;
  null_device_job_t* first;
  null_device_job_t* last;
  bool is_stopping;
  bool is_working;  // on a job that is not in the queue any more
  bool has_thread;
  pthread_t thread;
  rn_status_t error;  // the first since the last sync
} null_device_t;

static void invert(const void* from, void* to, size_t size) {
  const unsigned char* in = from;
  unsigned char* out = to;
  for (size_t i = 0; i < size; ++i) out[i] = (unsigned char)~in[i];
}

// Decoded copies of device tensors, for a kernel's body.
static rn_status_t decode(rn_allocator_t allocator, const rn_tensor_t* from, int count,
                          bool with_bytes, rn_tensor_t* out) {
  for (int i = 0; i < count; ++i) {
    RN_RETURN_IF_ERROR(
        rn_tensor_create(allocator, from[i].dtype, rn_tensor_shape(&from[i]), &out[i]));
    if (with_bytes) invert(from[i].data, out[i].data, rn_tensor_bytes(&from[i]));
  }
  return RN_OK;
}

static rn_status_t run_kernel(null_device_t* null, null_device_job_t* job) {
  rn_tensor_t inputs[RN_NULL_MAX_ARGS] = {{0}}, outputs[RN_NULL_MAX_ARGS] = {{0}};
  rn_status_t status = decode(null->allocator, job->inputs, job->input_count, true, inputs);
  if (rn_ok(status))
    status = decode(null->allocator, job->outputs, job->output_count, false, outputs);
  if (rn_ok(status)) status = job->body(inputs, outputs, job->arg);
  for (int i = 0; i < job->output_count; ++i) {
    if (rn_ok(status)) invert(outputs[i].data, job->outputs[i].data, rn_tensor_bytes(&outputs[i]));
    rn_tensor_clear(&outputs[i]);
  }
  for (int i = 0; i < job->input_count; ++i) rn_tensor_clear(&inputs[i]);
  return status;
}

static void finish_job(null_device_t* null, null_device_job_t* job, rn_status_t status) {
  for (int i = 0; i < job->input_count; ++i) rn_tensor_clear(&job->inputs[i]);
  for (int i = 0; i < job->output_count; ++i) rn_tensor_clear(&job->outputs[i]);
  rn_mutex_lock(&null->mutex);
  if (job->kind == JOB_SYNC) {
    status = null->error;
    null->error = RN_OK;
  } else if (job->kind == JOB_KERNEL) {
    null->error = rn_status_join(null->error, status);
    status = RN_OK;
  }
  rn_mutex_unlock(&null->mutex);
  if (job->done) job->done(job->done_arg, status);
  RN_FREE(null->allocator, job);
}

static void run_job(null_device_t* null, null_device_job_t* job) {
  rn_status_t status = RN_OK;
  if (job->kind == JOB_KERNEL)
    status = run_kernel(null, job);
  else if (job->kind == JOB_COPY)
    memcpy(job->outputs[0].data, job->inputs[0].data, rn_tensor_bytes(&job->inputs[0]));
  else if (job->kind != JOB_SYNC)
    invert(job->inputs[0].data, job->outputs[0].data, rn_tensor_bytes(&job->inputs[0]));
  finish_job(null, job, status);
}

static void* thread_main(void* arg) {
  null_device_t* null = arg;
  rn_mutex_lock(&null->mutex);
  for (;;) {
    while (!null->first && !null->is_stopping) rn_cond_wait(&null->changed, &null->mutex);
    null_device_job_t* job = null->first;
    if (!job) break;
    null->first = job->next;
    if (!null->first) null->last = NULL;
    null->is_working = true;
    rn_mutex_unlock(&null->mutex);
    run_job(null, job);
    rn_mutex_lock(&null->mutex);
    null->is_working = false;
    rn_cond_broadcast(&null->changed);
  }
  rn_mutex_unlock(&null->mutex);
  return NULL;
}

// Appends |job| to the queue; the first job starts the thread.
static rn_status_t enqueue(null_device_t* null, null_device_job_t* job) {
  rn_mutex_lock(&null->mutex);
  if (!null->has_thread)
    null->has_thread = pthread_create(&null->thread, NULL, thread_main, null) == 0;
  bool ok = null->has_thread;
  if (ok) {
    if (null->last)
      null->last->next = job;
    else
      null->first = job;
    null->last = job;
    rn_cond_broadcast(&null->changed);
  }
  rn_mutex_unlock(&null->mutex);
  return ok ? RN_OK
            : rn_resource_exhausted("The thread of %.*s could not be started",
                                    RN_STR_ARGS(null->base.name));
}

static rn_status_t share_all(const rn_tensor_t* const* from, int count, rn_tensor_t* out) {
  for (int i = 0; i < count; ++i) RN_RETURN_IF_ERROR(rn_tensor_share(from[i], &out[i]));
  return RN_OK;
}

static void drop_job(null_device_t* null, null_device_job_t* job) {
  for (int i = 0; i < RN_NULL_MAX_ARGS; ++i) {
    rn_tensor_clear(&job->inputs[i]);
    rn_tensor_clear(&job->outputs[i]);
  }
  RN_FREE(null->allocator, job);
}

rn_status_t rn_null_launch(rn_device_t* device, rn_null_body_t body,
                           const rn_tensor_t* const* inputs, int input_count,
                           const rn_tensor_t* outputs, int output_count, const void* arg,
                           size_t arg_size) {
  null_device_t* null = (null_device_t*)device;
  if (input_count > RN_NULL_MAX_ARGS || output_count > RN_NULL_MAX_ARGS || arg_size > MAX_ARG_BYTES)
    return rn_unimplemented("The null device takes %d arguments at most", RN_NULL_MAX_ARGS);
  null_device_job_t* job = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(null->allocator, &job));
  job->kind = JOB_KERNEL;
  job->body = body;
  if (arg_size) memcpy(job->arg, arg, arg_size);
  rn_status_t status = share_all(inputs, input_count, job->inputs);
  for (int i = 0; rn_ok(status) && i < output_count; ++i)
    status = rn_tensor_share(&outputs[i], &job->outputs[i]);
  job->input_count = input_count;
  job->output_count = output_count;
  if (rn_ok(status)) status = enqueue(null, job);
  if (!rn_ok(status)) drop_job(null, job);
  return status;
}

static rn_status_t issue_job(null_device_t* null, job_kind_t kind, const rn_tensor_t* source,
                             rn_tensor_t* target, rn_device_done_t done, void* arg) {
  null_device_job_t* job = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(null->allocator, &job));
  *job = (null_device_job_t){.kind = kind, .done = done, .done_arg = arg};
  rn_status_t status = RN_OK;
  if (source) {
    status = rn_tensor_share(source, &job->inputs[0]);
    if (rn_ok(status)) status = rn_tensor_share(target, &job->outputs[0]);
    job->input_count = job->output_count = 1;
  }
  if (rn_ok(status)) status = enqueue(null, job);
  if (!rn_ok(status)) drop_job(null, job);
  return status;
}

// Reports an error through |done|, or through the next sync if there is none.
static void issue(rn_device_t* device, job_kind_t kind, const rn_tensor_t* source,
                  rn_tensor_t* target, rn_device_done_t done, void* arg) {
  null_device_t* null = (null_device_t*)device;
  rn_status_t status = issue_job(null, kind, source, target, done, arg);
  if (rn_ok(status)) return;
  if (done) {
    done(arg, status);
    return;
  }
  rn_mutex_lock(&null->mutex);
  null->error = rn_status_join(null->error, status);
  rn_mutex_unlock(&null->mutex);
}

static void null_to_host(rn_device_t* device, const rn_tensor_t* source, rn_tensor_t* target,
                         rn_device_done_t done, void* arg) {
  issue(device, JOB_TO_HOST, source, target, done, arg);
}
static void null_from_host(rn_device_t* device, const rn_tensor_t* source, rn_tensor_t* target,
                           rn_device_done_t done, void* arg) {
  issue(device, JOB_FROM_HOST, source, target, done, arg);
}
static rn_status_t null_copy(rn_device_t* device, const rn_tensor_t* source, rn_tensor_t* target) {
  return issue_job((null_device_t*)device, JOB_COPY, source, target, NULL, NULL);
}
// Without memory for a job it waits here: the caller may free what unfinished jobs write to.
static void null_sync(rn_device_t* device, rn_device_done_t done, void* arg) {
  null_device_t* null = (null_device_t*)device;
  rn_status_t status = issue_job(null, JOB_SYNC, NULL, NULL, done, arg);
  if (rn_ok(status)) return;
  rn_mutex_lock(&null->mutex);
  bool is_own = null->has_thread && pthread_equal(null->thread, pthread_self());
  while (!is_own && (null->first || null->is_working)) rn_cond_wait(&null->changed, &null->mutex);
  status = rn_status_join(null->error, status);
  null->error = RN_OK;
  rn_mutex_unlock(&null->mutex);
  done(arg, status);
}

static void null_destroy(rn_device_t* device) {
  null_device_t* null = (null_device_t*)device;
  rn_mutex_lock(&null->mutex);
  null->is_stopping = true;
  rn_cond_signal(&null->changed);
  rn_mutex_unlock(&null->mutex);
  if (null->has_thread) pthread_join(null->thread, NULL);
  rn_status_free(null->error);
  rn_resources_destroy(null->base.resources);
  if (null->cache) rn_cache_alloc_release(null->cache);
  if (null->base.name.data)
    rn_free(null->allocator, (char*)null->base.name.data, null->base.name.size + 1);
  rn_cond_destroy(&null->changed);
  rn_mutex_destroy(&null->mutex);
  RN_FREE(null->allocator, null);
}

static const rn_device_vtable_t null_vtable = {.destroy = null_destroy,
                                               .copy_to_host = null_to_host,
                                               .copy_from_host = null_from_host,
                                               .copy = null_copy,
                                               .sync = null_sync};

rn_status_t rn_null_device_create(rn_allocator_t allocator, rn_str_t name_prefix, int index,
                                  const rn_env_t* env, rn_device_t** out) {
  *out = NULL;
  null_device_t* null = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &null));
  null->allocator = allocator;
  rn_mutex_init(&null->mutex);
  rn_cond_init(&null->changed);
  null->base = (rn_device_t){.vtable = &null_vtable,
                             .idle_mutex = RN_MUTEX_INIT,
                             .type = "NULL",
                             .index = index,
                             .memory_limit = MEMORY_BYTES,
                             .incarnation = env->random(env->self) | 1};
  rn_status_t status = rn_device_name(allocator, name_prefix, "NULL", index, &null->base.name);
  if (rn_ok(status)) status = rn_resources_create(allocator, &null->base.resources);
  if (rn_ok(status)) status = rn_cache_alloc_create(allocator, (size_t)MEMORY_BYTES, &null->cache);
  if (!rn_ok(status)) {
    null_destroy(&null->base);
    return status;
  }
  null->base.allocator = null->base.kernel_memory = rn_cache_allocator(null->cache);
  *out = &null->base;
  return RN_OK;
}

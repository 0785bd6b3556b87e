// Splits of iterations. To count them, ops of the dataset's graph run, which may take any time:
// that happens on threads of its own and without the dispatcher's lock, while the calls that need
// them wait.
#include "data_service/dispatcher_internal.h"
#include "wire/scan.h"

struct rn_ds_sources_t {
  rn_job_t job;  // first
  rn_ds_dispatcher_t* self;
  const rn_ds_job_t* of;  // this job's
  int64_t repetition;
  rn_cancel_t cancel;
  // Under the dispatcher's lock.
  rn_ds_splits_t* splits;        // Owned; NULL: they are being made
  RN_VEC(rn_rpc_in_t*) waiting;  // these are handled again when they are made
};

static void destroy(rn_ds_sources_t* sources) {
  rn_ds_splits_destroy(sources->splits);
  rn_vec_free(&sources->waiting, sources->self->allocator);
  rn_cancel_destroy(&sources->cancel);
  RN_FREE(sources->self->allocator, sources);
}

static void forget(rn_ds_dispatcher_t* self, const rn_ds_sources_t* sources) {
  for (size_t i = 0; i < self->sources.count; ++i)
    if (self->sources.items[i] == sources)
      self->sources.items[i] = self->sources.items[--self->sources.count];
}

static rn_status_t count(rn_ds_sources_t* sources, rn_ds_splits_t** out) {
  rn_ds_dispatcher_t* self = sources->self;
  rn_strbuf_t def;
  rn_strbuf_init(&def, self->allocator);
  rn_mutex_lock(&self->mutex);
  rn_status_t status = rn_ds_get_dataset(self, sources->of->dataset_id, &def);
  rn_mutex_unlock(&self->mutex);
  rn_str_t graph = rn_field_bytes(rn_strbuf_view(&def), rn_pb_data_DatasetDef_graph_field);
  if (rn_ok(status))
    status = rn_ds_splits_create(self->env, self->allocator, graph, &sources->cancel, out);
  rn_strbuf_clear(&def);
  return status;
}

static void run_sources(rn_job_t* job) {
  rn_ds_sources_t* sources = (rn_ds_sources_t*)job;
  rn_ds_dispatcher_t* self = sources->self;
  rn_ds_splits_t* splits = NULL;
  rn_status_t status = count(sources, &splits);
  rn_mutex_lock(&self->mutex);
  __typeof__(sources->waiting) waiting = sources->waiting;
  sources->waiting = (__typeof__(waiting)){0};
  sources->splits = splits;
  if (!splits) {
    forget(self, sources);
    destroy(sources);
  }
  rn_mutex_unlock(&self->mutex);
  for (size_t i = 0; i < waiting.count; ++i)
    if (splits)
      rn_ds_dispatcher_handle(self, waiting.items[i]);
    else
      rn_ds_reply(self->allocator, waiting.items[i], rn_status_copy(status), NULL);
  rn_vec_free(&waiting, self->allocator);
  rn_status_free(status);
}

static rn_status_t begin(rn_ds_dispatcher_t* self, const rn_ds_job_t* job, int64_t repetition,
                         rn_ds_sources_t** out) {
  rn_ds_sources_t* sources = NULL;
  if (self->is_closing) return rn_cancelled("The dispatcher is shutting down");
  RN_RETURN_IF_ERROR(RN_NEW(self->allocator, &sources));
  *sources =
      (rn_ds_sources_t){.job.run = run_sources, .self = self, .of = job, .repetition = repetition};
  rn_cancel_init(&sources->cancel);
  rn_status_t status = rn_vec_push(&self->sources, self->allocator, sources);
  if (!rn_ok(status)) {
    destroy(sources);
    return status;
  }
  *out = sources;
  return RN_OK;
}

rn_status_t rn_ds_splits_of(rn_ds_dispatcher_t* self, const rn_ds_job_t* job, int64_t repetition,
                            rn_rpc_in_t* call, bool* out_is_deferred, rn_ds_splits_t** out) {
  rn_ds_sources_t* sources = NULL;
  for (size_t i = 0; i < self->sources.count && !sources; ++i)
    if (self->sources.items[i]->of == job && self->sources.items[i]->repetition == repetition)
      sources = self->sources.items[i];
  bool is_new = !sources;
  if (is_new) RN_RETURN_IF_ERROR(begin(self, job, repetition, &sources));
  *out = sources->splits;
  if (*out) return RN_OK;
  rn_status_t status = rn_vec_push(&sources->waiting, self->allocator, call);
  *out_is_deferred = rn_ok(status);
  if (rn_ok(status) && is_new) rn_pool_submit(self->graphs, &sources->job);
  if (!rn_ok(status) && is_new) {
    forget(self, sources);
    destroy(sources);
  }
  return status;
}

void rn_ds_drop_splits(rn_ds_dispatcher_t* self, const rn_ds_iteration_t* iteration) {
  for (size_t i = 0; i < self->sources.count; ++i) {
    rn_ds_sources_t* sources = self->sources.items[i];
    if (sources->of != iteration->job || sources->repetition != iteration->repetition ||
        !sources->splits)
      continue;
    forget(self, sources);
    destroy(sources);
    return;
  }
}

void rn_ds_stop_splits(rn_ds_dispatcher_t* self, bool is_all) {
  for (size_t i = 0; i < self->sources.count; ++i) {
    rn_ds_sources_t* sources = self->sources.items[i];
    bool is_wanted = sources->splits != NULL;
    for (size_t k = 0; k < sources->waiting.count; ++k)
      is_wanted |= !rn_is_cancelled(&sources->waiting.items[k]->cancel);
    if (is_all || !is_wanted) rn_cancel(&sources->cancel);
  }
}

void rn_ds_free_splits(rn_ds_dispatcher_t* self) {
  for (size_t i = 0; i < self->sources.count; ++i) destroy(self->sources.items[i]);
  rn_vec_free(&self->sources, self->allocator);
}

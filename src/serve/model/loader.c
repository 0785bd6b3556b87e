// See loader.h.
#include "serve/model/loader.h"

#include "serve/model/config.h"
#include "serve/model/gpus.h"
#include "serve/model/quiet.h"
#include "serve/model/tf_backend.h"

#define MOST_TAGS 16

struct rn_loader_t {
  rn_loader_options_t options;
  rn_str_t tags[MOST_TAGS];
  int tag_count;
  _Atomic bool is_quiet;
};

rn_status_t rn_loader_create(const rn_loader_options_t* options, rn_loader_t** out) {
  *out = NULL;
  rn_loader_t* loader = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &loader));
  loader->options = *options;
  if (loader->options.replicas < 1) loader->options.replicas = 1;
  rn_gpu_options_t unused;
  rn_status_t status = rn_gpus_choose(options->gpus, RN_STR(""), 0, 0, &unused);
  for (rn_str_t rest = options->tags; rn_ok(status) && rest.size;) {
    rn_str_t tag = rn_str_trim(rn_str_split(&rest, ','));
    if (loader->tag_count == MOST_TAGS)
      status =
          rn_invalid_argument("More than %d tags: %.*s", MOST_TAGS, RN_STR_ARGS(options->tags));
    else if (tag.size)
      loader->tags[loader->tag_count++] = tag;
  }
  if (!rn_ok(status)) {
    rn_loader_destroy(loader);
    return status;
  }
  rn_pool_start(options->env->pool);
  *out = loader;
  return RN_OK;
}

void rn_loader_destroy(rn_loader_t* loader) {
  if (loader) RN_FREE(loader->options.allocator, loader);
}

void rn_loader_be_quiet(rn_loader_t* loader) { loader->is_quiet = true; }

static rn_status_t warm_up(const rn_loader_t* loader, rn_backend_t* backend, rn_str_t model,
                           const char* folder) {
  const rn_loader_options_t* options = &loader->options;
  return options->warm_up ? options->warm_up(options->warm_up_self, backend, model, folder) : RN_OK;
}

static void drop(const rn_loader_t* loader, rn_backend_t** replicas, int count) {
  for (int i = 0; i < count; ++i)
    if (replicas[i]) replicas[i]->vtable->destroy(replicas[i]);
  rn_free(loader->options.allocator, replicas, (size_t)count * sizeof *replicas);
}

// A load on its way through the thread of low priority.
typedef struct loader_job_t {
  rn_loader_t* loader;
  rn_str_t model;
  const char* folder;
  rn_backend_t** replicas;
  rn_status_t status;
} loader_job_t;

static rn_status_t load_replicas(loader_job_t* job, rn_arena_t* arena) {
  const rn_loader_options_t* options = &job->loader->options;
  rn_batcher_options_t batching = {.allowed_sizes = options->sizes,
                                   .allowed_count = options->size_count};
  bool is_found;
  RN_RETURN_IF_ERROR(
      rn_config_read_own_batching(options->env, job->folder, arena, &batching, &is_found));
  rn_tf_backend_options_t backend = {.folder = job->folder,
                                     .tags = job->loader->tags,
                                     .tag_count = job->loader->tag_count,
                                     .session = options->session,
                                     .sizes = batching.allowed_sizes,
                                     .size_count = batching.allowed_count,
                                     .max_memory = options->max_memory,
                                     .is_quiet = job->loader->is_quiet,
                                     .env = options->env,
                                     .allocator = options->allocator};
  for (int i = 0; i < options->replicas; ++i) {
    int gpus = i ? rn_tf_backend_gpus(job->replicas[0]) : 0;
    backend.session.gpu = options->session.gpu;
    RN_RETURN_IF_ERROR(rn_gpus_choose(options->gpus, job->model, i, gpus, &backend.session.gpu));
    RN_RETURN_IF_ERROR(rn_tf_backend_create(&backend, &job->replicas[i]));
    RN_RETURN_IF_ERROR(warm_up(job->loader, job->replicas[i], job->model, job->folder));
  }
  return RN_OK;
}

static void run_job(void* arg) {
  loader_job_t* job = arg;
  rn_arena_t arena;
  rn_arena_init(&arena, job->loader->options.allocator);
  job->status = load_replicas(job, &arena);
  rn_arena_clear(&arena);
}

static rn_status_t load_saved_model(rn_loader_t* loader, rn_str_t model, const char* folder,
                                    rn_backend_t*** out, int* out_count) {
  const rn_loader_options_t* options = &loader->options;
  size_t count = (size_t)options->replicas;
  loader_job_t job = {.loader = loader, .model = model, .folder = folder};
  RN_RETURN_IF_ERROR(
      rn_alloc_array(options->allocator, count, sizeof *job.replicas, (void**)&job.replicas));
  if (loader->is_quiet)
    rn_quiet_call(run_job, &job);
  else
    run_job(&job);
  if (!rn_ok(job.status)) {
    drop(loader, job.replicas, options->replicas);
    return job.status;
  }
  *out = job.replicas;
  *out_count = options->replicas;
  return RN_OK;
}

static rn_status_t load_containers(rn_loader_t* loader, const rn_pb_serving_ModelConfig_t* config,
                                   int64_t number, const char* folder, rn_backend_t*** out,
                                   int* out_count) {
  rn_container_options_t options = {.containers = loader->options.containers,
                                    .model = config->name,
                                    .number = number,
                                    .folder = folder,
                                    .program = loader->options.program};
  if (!rn_container_is_in(loader->options.env, folder)) {
    options.replicas = loader->options.replicas;
    options.memory_bytes = (int64_t)loader->options.max_memory;
  }
  if (!options.containers) return rn_unimplemented("%s: this server runs no containers", folder);
  RN_RETURN_IF_ERROR(rn_container_load(&options, out, out_count));
  rn_status_t status = RN_OK;
  for (int i = 0; rn_ok(status) && i < *out_count; ++i)
    status = warm_up(loader, (*out)[i], config->name, folder);
  if (rn_ok(status)) return RN_OK;
  drop(loader, *out, *out_count);
  *out = NULL;
  *out_count = 0;
  return status;
}

rn_status_t rn_loader_load(void* self, const rn_pb_serving_ModelConfig_t* config, int64_t number,
                           const char* folder, rn_backend_t*** out, int* out_count) {
  rn_loader_t* loader = self;
  *out = NULL;
  *out_count = 0;
  bool has_container = rn_container_is_in(loader->options.env, folder);
  bool is_isolated = loader->options.isolates && loader->options.program;
  if (!has_container && rn_str_is(config->model_platform, "container"))
    return rn_not_found("%s has no " RN_CONTAINER_FILE, folder);
  return has_container || is_isolated
             ? load_containers(loader, config, number, folder, out, out_count)
             : load_saved_model(loader, config->name, folder, out, out_count);
}

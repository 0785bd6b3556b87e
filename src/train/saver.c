// Saving, synchronously or in the background, and restoring.
#include "train/saver.h"

#include <math.h>

#include "io/bundle.h"
#include "io/checkpoint.h"
#include "io/checkpoint_v1.h"
#include "tensor/tstring.h"
#include "train/store.h"
#include "train/words.h"

struct rn_snapshot_t {
  rn_saver_t* saver;
  const rn_env_t* env;
  rn_pool_t* pool;
  rn_tensor_t* tensors;  // one per variable
  rn_strbuf_t path;
  double metric;  // NaN if none was given
};

static rn_status_t fill(rn_saver_t* saver, rn_scope_t* scope, const rn_saver_options_t* options) {
  const rn_collected_t* all = NULL;
  int count = options->variables ? options->variable_count
                                 : rn_collection(scope, RN_GLOBAL_VARIABLES, &all);
  if (count < 1) return rn_invalid_argument("No variables to save");
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&saver->arena, (size_t)count, &saver->variables));
  saver->count = count;
  for (int i = 0; i < count; ++i) {
    rn_saved_t* saved = &saver->variables[i];
    saved->variable = options->variables ? options->variables[i] : all[i].variable;
    if (!saved->variable) return rn_invalid_argument("rn_saver: a variable is missing");
    const char* name =
        options->names && options->names[i] ? options->names[i] : saved->variable->name;
    const char* slice = options->slices && options->slices[i] ? options->slices[i] : "";
    rn_str_t copy;
    RN_RETURN_IF_ERROR(rn_arena_str(&saver->arena, rn_str(name), &copy));
    saved->name = copy.data;
    RN_RETURN_IF_ERROR(rn_arena_str(&saver->arena, rn_str(slice), &copy));
    saved->slice = copy.data;
    saved->value = rn_var_read(scope, saved->variable);
  }
  if (!options->state_file) return RN_OK;
  rn_str_t copy;
  RN_RETURN_IF_ERROR(rn_arena_str(&saver->arena, rn_str(options->state_file), &copy));
  saver->options.state_file = copy.data;
  return RN_OK;
}

RN_API rn_saver_t* rn_saver_(rn_scope_t* scope, rn_saver_options_t options) {
  rn_scope_t* part = rn_part(scope, options.name, "save");
  if (!part) return NULL;
  rn_saver_t* saver = NULL;
  const rn_env_t* env = rn_env_system();
  rn_status_t status = RN_NEW(rn_scope_allocator(scope), &saver);
  if (rn_ok(status)) {
    saver->allocator = rn_scope_allocator(scope);
    saver->options = options;
    saver->last_preserved = (double)env->wall_us(env->self) * 1e-6;
    rn_arena_init(&saver->arena, saver->allocator);
    rn_strbuf_init(&saver->last_path, saver->allocator);
    status = fill(saver, part, &options);
  }
  if (rn_ok(status)) status = rn_saver_build(saver, part);
  if (!rn_ok(status)) rn_scope_fail(part, status);
  rn_scope_destroy(part);
  if (rn_scope_ok(scope)) return saver;
  rn_saver_destroy(saver);
  return NULL;
}

RN_API void rn_saver_destroy(rn_saver_t* saver) {
  if (!saver) return;
  rn_status_free(rn_saver_join(saver));
  rn_saver_kept_clear(saver);
  rn_strbuf_clear(&saver->last_path);
  rn_arena_clear(&saver->arena);
  RN_FREE(saver->allocator, saver);
}

RN_API rn_saver_names_t rn_saver_names(const rn_saver_t* saver) {
  return saver ? saver->names : (rn_saver_names_t){0};
}

static rn_status_t name_path(rn_saver_t* saver, const char* path, int64_t step, rn_strbuf_t* out) {
  if (!path || !*path) return rn_invalid_argument("A checkpoint must have a path");
  if (path[strlen(path) - 1] == '/')
    return rn_invalid_argument("The path of a checkpoint must not end in /: %s", path);
  (void)saver;
  rn_strbuf_printf(out, "%s", path);
  if (step >= 0) rn_strbuf_printf(out, "-%lld", (long long)step);
  return rn_strbuf_status(out);
}

// The environment that the session's kernels write with.
static rn_step_t surroundings(rn_session_t* session) {
  rn_step_t step = {0};
  rn_session_step_init(session, &step);
  return step;
}

// Runs |target| and fetches |fetch| (either may be NULL) with the path fed.
static rn_status_t run_with_path(rn_saver_t* saver, rn_session_t* session, const char* path,
                                 rn_node_t* target, const rn_edge_t* fetch) {
  rn_tensor_t name, result = {0};
  RN_RETURN_IF_ERROR(rn_tensor_create(saver->allocator, RN_STRING, RN_SHAPE_SCALAR, &name));
  rn_status_t status = RN_OK;
  if (!rn_tstring_assign(RN_DATA(&name, rn_tstring_t), path, strlen(path)))
    status = rn_out_of_memory();
  const rn_tensor_t* feeds[1] = {&name};
  rn_signature_t signature = {.feeds = &saver->filename,
                              .feed_count = 1,
                              .fetches = fetch,
                              .fetch_count = fetch ? 1 : 0,
                              .targets = &target,
                              .target_count = target ? 1 : 0};
  if (rn_ok(status)) status = rn_session_run(session, &signature, feeds, &result, NULL);
  rn_tensor_clear(&result);
  rn_tensor_clear(&name);
  return status;
}

// A saver that keeps the best needs a metric; other savers refuse one.
static rn_status_t check_metric(const rn_saver_t* saver, const double* metric) {
  if ((saver->options.best != RN_BEST_LATEST) == (metric != NULL)) return RN_OK;
  return rn_failed_precondition(
      metric ? "This saver does not keep the best checkpoints; save without a metric"
             : "This saver keeps the best checkpoints; save with a metric");
}

rn_status_t rn_saver_run_save(rn_saver_t* saver, rn_session_t* session, const char* path,
                              int64_t step, const double* metric, const char** out_path) {
  *out_path = NULL;
  RN_RETURN_IF_ERROR(rn_saver_join(saver));
  RN_RETURN_IF_ERROR(check_metric(saver, metric));
  if (metric && !rn_saver_is_wanted(saver, *metric)) return RN_OK;
  saver->last_path.size = 0;
  RN_RETURN_IF_ERROR(name_path(saver, path, step, &saver->last_path));
  RN_RETURN_IF_ERROR(run_with_path(saver, session, saver->last_path.data, NULL, &saver->saved));
  rn_step_t here = surroundings(session);
  RN_RETURN_IF_ERROR(rn_saver_keep(saver, here.env, saver->last_path.data, metric ? *metric : NAN));
  *out_path = saver->last_path.data;
  return RN_OK;
}

// Saving in the background.

static void snapshot_destroy(rn_snapshot_t* snapshot) {
  if (!snapshot) return;
  rn_saver_t* saver = snapshot->saver;
  for (int i = 0; snapshot->tensors && i < saver->count; ++i)
    rn_tensor_clear(&snapshot->tensors[i]);
  RN_FREE_ARRAY(saver->allocator, snapshot->tensors, saver->count);
  rn_strbuf_clear(&snapshot->path);
  RN_FREE(saver->allocator, snapshot);
}

static rn_status_t write_one(const rn_saved_t* saved, const rn_tensor_t* tensor,
                             rn_bundle_writer_t* writer, rn_arena_t* arena) {
  if (!saved->slice[0]) return rn_bundle_writer_add(writer, rn_str(saved->name), tensor);
  rn_shape_t shape, unused;
  rn_slice_t slice;
  RN_RETURN_IF_ERROR(
      rn_shape_and_slice_parse(rn_str(saved->slice), arena, &shape, &slice, &unused));
  return rn_bundle_writer_add_slice(writer, rn_str(saved->name), shape, slice, tensor);
}

// A saver with one shard per task has all values here and writes a single shard.
static rn_status_t write_bundle(rn_snapshot_t* snapshot, rn_arena_t* arena) {
  rn_saver_t* saver = snapshot->saver;
  rn_bundle_writer_t* writer = NULL;
  // Does not use the session's threads, because steps go on meanwhile; checksums take little of the
  // time.
  rn_status_t status = rn_bundle_writer_create(snapshot->env, snapshot->path.data, NULL, &writer);
  for (int i = 0; rn_ok(status) && i < saver->count; ++i)
    status = write_one(&saver->variables[i], &snapshot->tensors[i], writer, arena);
  if (rn_ok(status)) status = rn_bundle_writer_finish(writer, NULL);
  rn_bundle_writer_destroy(writer);
  return status;
}

static rn_status_t write_table(rn_snapshot_t* snapshot, rn_arena_t* arena) {
  rn_saver_t* saver = snapshot->saver;
  rn_v1_writer_t* writer = NULL;
  rn_status_t status = rn_v1_writer_create(snapshot->env, snapshot->path.data, &writer);
  for (int i = 0; rn_ok(status) && i < saver->count; ++i) {
    const rn_saved_t* saved = &saver->variables[i];
    rn_shape_t shape = rn_tensor_shape(&snapshot->tensors[i]), unused;
    rn_slice_t slice;
    status = saved->slice[0]
                 ? rn_shape_and_slice_parse(rn_str(saved->slice), arena, &shape, &slice, &unused)
                 : rn_slice_whole(arena, shape.rank, &slice);
    if (rn_ok(status))
      status = rn_v1_writer_add(writer, rn_str(saved->name), shape, slice, &snapshot->tensors[i]);
  }
  if (rn_ok(status)) status = rn_v1_writer_finish(writer);
  rn_v1_writer_destroy(writer);
  return status;
}

static rn_status_t write_snapshot(rn_snapshot_t* snapshot) {
  rn_saver_t* saver = snapshot->saver;
  rn_arena_t arena;
  rn_arena_init(&arena, saver->allocator);
  rn_status_t status = saver->options.is_first_format ? write_table(snapshot, &arena)
                                                      : write_bundle(snapshot, &arena);
  rn_arena_clear(&arena);
  return rn_ok(status) ? rn_saver_keep(saver, snapshot->env, snapshot->path.data, snapshot->metric)
                       : status;
}

static void* write_behind(void* arg) {
  rn_snapshot_t* snapshot = arg;
  snapshot->saver->write_status = write_snapshot(snapshot);
  return NULL;
}

rn_status_t rn_saver_join(rn_saver_t* saver) {
  if (!saver->is_writing) return RN_OK;
  pthread_join(saver->thread, NULL);
  saver->is_writing = false;
  snapshot_destroy(saver->snapshot);
  saver->snapshot = NULL;
  rn_status_t status = saver->write_status;
  saver->write_status = RN_OK;
  return status;
}

// Takes the current values. Resource variables are copy-on-write, so the value is shared. Reference
// variables are changed in place, so their value is copied here.
static rn_status_t take_values(rn_saver_t* saver, rn_session_t* session, rn_tensor_t* tensors) {
  rn_edge_t* fetches = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(saver->allocator, (size_t)saver->count, &fetches));
  for (int i = 0; i < saver->count; ++i) fetches[i] = saver->variables[i].value;
  rn_signature_t signature = {.fetches = fetches, .fetch_count = saver->count};
  rn_status_t status = rn_session_run(session, &signature, NULL, tensors, NULL);
  RN_FREE_ARRAY(saver->allocator, fetches, saver->count);
  for (int i = 0; rn_ok(status) && i < saver->count; ++i) {
    if (saver->variables[i].variable->is_resource) continue;
    rn_tensor_t copy;
    status = rn_tensor_copy(&tensors[i], saver->allocator, &copy);
    if (!rn_ok(status)) break;
    rn_tensor_clear(&tensors[i]);
    tensors[i] = copy;
  }
  return status;
}

rn_status_t rn_saver_run_async(rn_saver_t* saver, rn_session_t* session, const char* path,
                               int64_t step, const double* metric) {
  RN_RETURN_IF_ERROR(rn_saver_join(saver));
  RN_RETURN_IF_ERROR(check_metric(saver, metric));
  if (metric && !rn_saver_is_wanted(saver, *metric)) return RN_OK;
  rn_snapshot_t* snapshot = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(saver->allocator, &snapshot));
  snapshot->saver = saver;
  snapshot->metric = metric ? *metric : NAN;
  rn_strbuf_init(&snapshot->path, saver->allocator);
  rn_step_t here = surroundings(session);
  snapshot->env = here.env;
  rn_status_t status = name_path(saver, path, step, &snapshot->path);
  if (rn_ok(status))
    status = RN_NEW_ARRAY(saver->allocator, (size_t)saver->count, &snapshot->tensors);
  if (rn_ok(status)) status = take_values(saver, session, snapshot->tensors);
  if (rn_ok(status)) {
    saver->snapshot = snapshot;
    saver->is_writing = pthread_create(&saver->thread, NULL, write_behind, snapshot) == 0;
    if (saver->is_writing) return RN_OK;
    saver->snapshot = NULL;
    status = write_snapshot(snapshot);  // no thread could be started: write now
  }
  snapshot_destroy(snapshot);
  return status;
}

// Restoring.

static rn_status_t misfit(const rn_saved_t* saved, const rn_checkpoint_tensor_t* found,
                          rn_shape_t wanted, const char* path) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_default());
  rn_strbuf_printf(&text, "The variable %s (%s ", saved->variable->name,
                   rn_dtype_name(saved->variable->dtype));
  rn_shape_print(&text, wanted);
  rn_strbuf_printf(&text, ") cannot be restored from %s, where %s is %s ", path, saved->name,
                   rn_dtype_name(found->dtype));
  rn_shape_print(&text, found->shape);
  rn_status_t status = rn_strbuf_status(&text);
  if (rn_ok(status)) status = rn_invalid_argument("%s", text.data);
  rn_strbuf_clear(&text);
  return status;
}

// Whether the checkpoint has the variable with the right type and shape.
static rn_status_t check_one(const rn_saved_t* saved, const rn_checkpoint_t* checkpoint,
                             const char* path, rn_arena_t* arena) {
  rn_checkpoint_tensor_t found;
  if (!rn_checkpoint_find(checkpoint, rn_str(saved->name), &found))
    return rn_not_found("Key %s not found in checkpoint %s", saved->name, path);
  rn_shape_t wanted = {saved->variable->rank, saved->variable->dims}, unused;
  rn_slice_t slice;
  if (saved->slice[0])
    RN_RETURN_IF_ERROR(
        rn_shape_and_slice_parse(rn_str(saved->slice), arena, &wanted, &slice, &unused));
  bool fits = found.dtype == saved->variable->dtype && rn_shape_compatible(wanted, found.shape);
  return fits ? RN_OK : misfit(saved, &found, wanted, path);
}

static rn_status_t check_all(rn_saver_t* saver, const rn_env_t* env, const char* path) {
  rn_checkpoint_t* checkpoint = NULL;
  RN_RETURN_IF_ERROR(rn_checkpoint_open(env, path, &checkpoint));
  rn_arena_t arena;
  rn_arena_init(&arena, saver->allocator);
  rn_status_t status = RN_OK;
  for (int i = 0; rn_ok(status) && i < saver->count; ++i)
    status = check_one(&saver->variables[i], checkpoint, path, &arena);
  rn_arena_clear(&arena);
  rn_checkpoint_close(checkpoint);
  return status;
}

rn_status_t rn_saver_run_restore(rn_saver_t* saver, rn_session_t* session, const char* path) {
  RN_RETURN_IF_ERROR(rn_saver_join(saver));
  if (!path || !*path) return rn_invalid_argument("A checkpoint must have a path");
  rn_step_t here = surroundings(session);
  RN_RETURN_IF_ERROR(check_all(saver, here.env, path));
  return run_with_path(saver, session, path, saver->restore, NULL);
}

// Reads the values here and feeds them in place of the outputs of the graph's restore ops.
static rn_status_t assign_some(rn_saver_t* saver, rn_session_t* session,
                               const rn_checkpoint_t* checkpoint, rn_pool_t* pool,
                               const rn_saved_t** some, int count) {
  rn_allocator_t allocator = saver->allocator;
  rn_tensor_t* tensors = NULL;
  const rn_tensor_t** feeds = NULL;
  rn_edge_t* edges = NULL;
  rn_node_t** targets = NULL;
  rn_status_t status = RN_NEW_ARRAY(allocator, (size_t)count, &tensors);
  if (rn_ok(status)) status = RN_NEW_ARRAY(allocator, (size_t)count, &feeds);
  if (rn_ok(status)) status = RN_NEW_ARRAY(allocator, (size_t)count, &edges);
  if (rn_ok(status)) status = RN_NEW_ARRAY(allocator, (size_t)count, &targets);
  for (int i = 0; rn_ok(status) && i < count; ++i) {
    status = rn_checkpoint_read(checkpoint, rn_str(some[i]->name), pool, allocator, &tensors[i]);
    feeds[i] = &tensors[i];
    edges[i] = some[i]->restored;
    targets[i] = some[i]->assign;
  }
  rn_signature_t signature = {
      .feeds = edges, .feed_count = count, .targets = targets, .target_count = count};
  if (rn_ok(status)) status = rn_session_run(session, &signature, feeds, NULL, NULL);
  for (int i = 0; tensors && i < count; ++i) rn_tensor_clear(&tensors[i]);
  RN_FREE_ARRAY(allocator, targets, count);
  RN_FREE_ARRAY(allocator, edges, count);
  RN_FREE_ARRAY(allocator, feeds, count);
  RN_FREE_ARRAY(allocator, tensors, count);
  return status;
}

rn_status_t rn_saver_run_restore_some(rn_saver_t* saver, rn_session_t* session, const char* path,
                                      int* out_count) {
  *out_count = 0;
  RN_RETURN_IF_ERROR(rn_saver_join(saver));
  if (!path || !*path) return rn_invalid_argument("A checkpoint must have a path");
  rn_step_t here = surroundings(session);
  rn_checkpoint_t* checkpoint = NULL;
  RN_RETURN_IF_ERROR(rn_checkpoint_open(here.env, path, &checkpoint));
  rn_arena_t arena;
  rn_arena_init(&arena, saver->allocator);
  const rn_saved_t** some = NULL;
  rn_status_t status = RN_ARENA_ARRAY(&arena, (size_t)saver->count, &some);
  for (int i = 0; rn_ok(status) && i < saver->count; ++i) {
    if (saver->variables[i].slice[0]) {
      status = rn_unimplemented("A saver of partial tensors can only restore all of them");
      break;
    }
    rn_status_t fits = check_one(&saver->variables[i], checkpoint, path, &arena);
    if (rn_ok(fits)) some[(*out_count)++] = &saver->variables[i];
    rn_status_free(fits);
  }
  if (rn_ok(status) && *out_count)
    status = assign_some(saver, session, checkpoint, here.pool, some, *out_count);
  rn_arena_clear(&arena);
  rn_checkpoint_close(checkpoint);
  return status;
}

// Which checkpoints a saver keeps. The state file is written before anything is removed, so it
// never names a missing checkpoint.
#include <math.h>

#include "io/bundle.h"
#include "io/checkpoint_state.h"
#include "train/saver.h"

static const char* state_file(const rn_saver_t* saver) {
  return saver->options.state_file ? saver->options.state_file : RN_CHECKPOINT_STATE;
}

static size_t limit_of(const rn_saver_t* saver) {
  int limit = saver->options.max_to_keep;
  return limit < 0 ? SIZE_MAX : limit == 0 ? 5 : (size_t)limit;
}

static void free_kept(rn_saver_t* saver, rn_kept_t* kept) {
  if (kept->path) rn_free(saver->allocator, kept->path, strlen(kept->path) + 1);
  kept->path = NULL;
}

void rn_saver_kept_clear(rn_saver_t* saver) {
  for (size_t i = 0; i < saver->kept.count; ++i) free_kept(saver, &saver->kept.items[i]);
  rn_vec_free(&saver->kept, saver->allocator);
}

// Whether |a| is better than |b|; NaN is worse than any number.
static bool is_better(const rn_saver_t* saver, double a, double b) {
  if (isnan(a)) return false;
  if (isnan(b)) return true;
  return saver->options.best == RN_BEST_LOWEST ? a < b : a > b;
}

bool rn_saver_is_wanted(const rn_saver_t* saver, double metric) {
  if (saver->options.best == RN_BEST_LATEST || saver->kept.count < limit_of(saver)) return true;
  return saver->kept.count == 0 || is_better(saver, metric, saver->kept.items[0].metric);
}

// The directory of |path|, for the functions of io/checkpoint_state.h.
static rn_status_t directory_of(const char* path, rn_strbuf_t* out) {
  rn_str_t directory = rn_path_directory(rn_str(path));
  // A path without a directory is listed without one.
  if (strchr(path, '/'))
    rn_strbuf_append(out, directory);
  else
    rn_strbuf_append(out, RN_STR(""));
  return rn_strbuf_status(out);
}

// The state file has no field for metrics; a second file beside it has one line per checkpoint.
static rn_status_t metrics_path(const rn_saver_t* saver, const char* directory, rn_strbuf_t* out) {
  rn_strbuf_printf(out, "%s%s%s.metrics", directory, directory[0] ? "/" : "", state_file(saver));
  return rn_strbuf_status(out);
}

static rn_status_t write_metrics(const rn_saver_t* saver, const rn_env_t* env,
                                 const char* directory) {
  if (saver->options.best == RN_BEST_LATEST) return RN_OK;
  rn_strbuf_t path, text;
  rn_strbuf_init(&path, saver->allocator);
  rn_strbuf_init(&text, saver->allocator);
  for (size_t i = 0; i < saver->kept.count; ++i)
    rn_strbuf_printf(&text, "%.17g %s\n", saver->kept.items[i].metric, saver->kept.items[i].path);
  rn_status_t status = metrics_path(saver, directory, &path);
  if (rn_ok(status)) status = rn_strbuf_status(&text);
  if (rn_ok(status)) status = rn_fs_replace(env, path.data, rn_strbuf_view(&text));
  rn_strbuf_clear(&text);
  rn_strbuf_clear(&path);
  return status;
}

static rn_status_t write_state(const rn_saver_t* saver, const rn_env_t* env, const char* path) {
  rn_checkpoint_state_t state;
  rn_checkpoint_state_init(&state, saver->allocator);
  rn_strbuf_t directory;
  rn_strbuf_init(&directory, saver->allocator);
  rn_status_t status = directory_of(path, &directory);
  for (size_t i = 0; rn_ok(status) && i < saver->kept.count; ++i)
    status = rn_checkpoint_state_add(&state, rn_str(saver->kept.items[i].path),
                                     saver->kept.items[i].time);
  if (state.all.count) state.latest = state.all.items[state.all.count - 1].path;
  state.last_preserved = saver->last_preserved;
  if (rn_ok(status)) status = write_metrics(saver, env, rn_strbuf_view(&directory).data);
  if (rn_ok(status))
    status =
        rn_checkpoint_state_write(env, rn_strbuf_view(&directory).data, state_file(saver), &state);
  rn_strbuf_clear(&directory);
  rn_checkpoint_state_clear(&state);
  return status;
}

static rn_status_t enter(rn_saver_t* saver, const char* path, double time, double metric) {
  for (size_t i = 0; i < saver->kept.count; ++i) {  // overwritten: it counts as new
    if (strcmp(saver->kept.items[i].path, path) != 0) continue;
    free_kept(saver, &saver->kept.items[i]);
    memmove(&saver->kept.items[i], &saver->kept.items[i + 1],
            (saver->kept.count - i - 1) * sizeof *saver->kept.items);
    saver->kept.count--;
    break;
  }
  rn_kept_t kept = {.time = time, .metric = metric};
  RN_RETURN_IF_ERROR(rn_str_dup(saver->allocator, rn_str(path), &kept.path));
  rn_status_t status = rn_vec_push(&saver->kept, saver->allocator, kept);
  if (!rn_ok(status)) {
    free_kept(saver, &kept);
    return status;
  }
  size_t at = saver->kept.count - 1;
  for (; saver->options.best != RN_BEST_LATEST && at > 0 &&
         is_better(saver, saver->kept.items[at - 1].metric, metric);
       --at) {
    saver->kept.items[at] = saver->kept.items[at - 1];
    saver->kept.items[at - 1] = kept;
  }
  return RN_OK;
}

// Removes the first entry from the list. True if its files must be deleted; false if it is the one
// to keep for its period of hours.
static bool give_up_first(rn_saver_t* saver, rn_kept_t* out) {
  *out = saver->kept.items[0];
  memmove(saver->kept.items, saver->kept.items + 1,
          (saver->kept.count - 1) * sizeof *saver->kept.items);
  saver->kept.count--;
  double hours = saver->options.keep_every_hours;
  if (hours <= 0 || out->time < saver->last_preserved + hours * 3600) return true;
  saver->last_preserved = out->time;
  return false;
}

static rn_status_t remove_checkpoint(const rn_saver_t* saver, const rn_env_t* env,
                                     const char* path) {
  if (saver->options.is_first_format) return env->fs->remove(env->fs_self, path);
  return rn_bundle_remove(env, path);
}

rn_status_t rn_saver_keep(rn_saver_t* saver, const rn_env_t* env, const char* path, double metric) {
  RN_RETURN_IF_ERROR(enter(saver, path, (double)env->wall_us(env->self) * 1e-6, metric));
  rn_kept_t gone[16];
  size_t count = 0;
  bool is_gone[16];
  while (saver->kept.count > limit_of(saver) && count < 16) {
    is_gone[count] = give_up_first(saver, &gone[count]);
    ++count;
  }
  rn_status_t status = write_state(saver, env, path);
  if (!rn_ok(status)) {  // the state file still lists them; the next save tries again
    memmove(saver->kept.items + count, saver->kept.items,
            saver->kept.count * sizeof *saver->kept.items);
    memcpy(saver->kept.items, gone, count * sizeof *gone);
    saver->kept.count += count;
    return status;
  }
  for (size_t i = 0; i < count; ++i) {
    // A file that cannot be removed does not fail this save; it is no longer listed.
    if (is_gone[i]) {
      rn_status_t removed = remove_checkpoint(saver, env, gone[i].path);
      if (!rn_ok(removed))
        rn_log(env, RN_LOG_WARNING, "The checkpoint %s cannot be removed: %s", gone[i].path,
               rn_status_message(removed));
      rn_status_free(removed);
    }
    free_kept(saver, &gone[i]);
  }
  return RN_OK;
}

// The metric of |path| in |text|; NaN if it has none.
static double metric_of(rn_str_t text, rn_str_t path) {
  while (text.size) {
    rn_str_t line = rn_str_split(&text, '\n');
    rn_str_t number = rn_str_split(&line, ' ');
    double metric = NAN;
    if (rn_str_eq(line, path) && rn_str_to_f64(number, &metric)) return metric;
  }
  return NAN;
}

rn_status_t rn_saver_take_up(rn_saver_t* saver, const rn_env_t* env, const char* directory) {
  rn_checkpoint_state_t state;
  rn_checkpoint_state_init(&state, saver->allocator);
  rn_strbuf_t path, metrics;
  rn_strbuf_init(&path, saver->allocator);
  rn_strbuf_init(&metrics, saver->allocator);
  rn_strbuf_printf(&path, "%s%s", directory, directory[0] ? "/" : "");
  if (!path.failed) rn_fs_sweep_temporaries(env, path.data);
  path.size = 0;
  rn_status_t status = rn_checkpoint_state_read(env, directory, state_file(saver), &state);
  if (rn_ok(status) && saver->options.best != RN_BEST_LATEST) {
    status = metrics_path(saver, directory, &path);
    // Without the file, all checkpoints rank equally.
    if (rn_ok(status)) rn_status_free(rn_fs_read(env, path.data, (size_t)16 << 20, &metrics));
  }
  if (rn_ok(status)) {
    rn_saver_kept_clear(saver);
    saver->last_preserved = state.last_preserved ? state.last_preserved : saver->last_preserved;
  }
  for (size_t i = 0; rn_ok(status) && i < state.all.count; ++i) {
    rn_str_t kept = state.all.items[i].path;
    status =
        enter(saver, kept.data, state.all.items[i].time, metric_of(rn_strbuf_view(&metrics), kept));
  }
  if (rn_status_code(status) == RN_CODE_NOT_FOUND) {
    rn_status_free(status);
    status = RN_OK;
  }
  rn_strbuf_clear(&metrics);
  rn_strbuf_clear(&path);
  rn_checkpoint_state_clear(&state);
  return status;
}

// The supervisor between steps: makes sessions ready, decides whether failures are recoverable,
// saves checkpoints.
#include "train/supervisor.h"

#include <time.h>

#include "io/checkpoint_state.h"
#include "train/queue_runner.h"
#include "train/saver.h"
#include "train/store.h"
#include "train/words.h"

#define SECOND INT64_C(1000000000)
#define FIRST_ATTEMPT_NS \
  (10 * SECOND)  // a session that takes longer is retried with twice the time
#define FIRST_PAUSE_NS (SECOND / 20)
#define LONGEST_PAUSE_NS SECOND
#define JOIN_SECONDS 60  // several leases
#define MOST_NAMES 10    // of variables in one message

static int64_t now(const rn_supervisor_t* v) { return v->env->now_ns(v->env->self); }

static int64_t patience(const rn_supervisor_t* v) {
  double seconds = v->options.patience_seconds > 0 ? v->options.patience_seconds : 300;
  return (int64_t)((seconds > 1e9 ? 1e9 : seconds) * 1e9);
}

bool rn_supervisor_is_chief(const rn_supervisor_t* v) { return v->options.task == 0; }

// Whether this is the chief of the replicas or of a group of them, whose thread applies the
// gradients that they have accumulated.
static bool runs_sync(const rn_supervisor_t* v) {
  return v->sync.sync && (v->options.task == 0 || v->options.is_group_chief);
}

static rn_status_t run_one(rn_supervisor_t* v, rn_node_t* target, const rn_edge_t* fetch,
                           rn_tensor_t* out, int64_t timeout_ns) {
  rn_signature_t signature = {.fetches = fetch,
                              .fetch_count = fetch ? 1 : 0,
                              .targets = &target,
                              .target_count = target ? 1 : 0};
  int64_t ms = timeout_ns / 1000000;
  rn_step_options_t options = {.timeout_ms = timeout_ns > 0 ? (ms ? ms : 1) : 0};
  return rn_session_run(v->session, &signature, NULL, out, &options);
}

// Building.

static rn_status_t copy_text(rn_supervisor_t* v, const char** inout_text) {
  rn_str_t copy;
  if (!*inout_text) return RN_OK;
  RN_RETURN_IF_ERROR(rn_arena_str(&v->arena, rn_str(*inout_text), &copy));
  *inout_text = copy.data;
  return RN_OK;
}

static rn_status_t copy_options(rn_supervisor_t* v, const rn_supervisor_options_t* options) {
  v->options = *options;
  if (options->sync) v->sync = *options->sync;
  const char** texts[] = {&v->options.target, &v->options.job, &v->options.ps_job,
                          &v->options.directory};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i)
    RN_RETURN_IF_ERROR(copy_text(v, texts[i]));
  rn_str_t config;
  RN_RETURN_IF_ERROR(rn_arena_str(
      &v->arena, rn_str_n(options->config ? options->config : "", options->config_size), &config));
  v->options.config = config.data;
  return RN_OK;
}

static rn_status_t collect_variables(rn_supervisor_t* v, rn_scope_t* scope) {
  const rn_collected_t* items;
  int count = rn_collection(scope, RN_GLOBAL_VARIABLES, &items);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&v->arena, (size_t)count + 1, &v->variables));
  for (int i = 0; i < count; ++i)
    if (items[i].variable) v->variables[v->variable_count++] = items[i].variable;
  // The group's chief initializes the group's step.
  bool is_own_step = v->sync.step && rn_collection(scope, RN_GLOBAL_STEP, &items) > 0 &&
                     items[0].variable != v->sync.step;
  if (is_own_step && !runs_sync(v)) v->variables[v->variable_count++] = v->sync.step;
  return RN_OK;
}

static rn_status_t build(rn_supervisor_t* v, rn_scope_t* scope) {
  rn_edge_t* set = NULL;
  const rn_collected_t* items;
  RN_RETURN_IF_ERROR(collect_variables(v, scope));
  if (!v->variable_count) return rn_invalid_argument("rn_supervisor: the graph has no variables");
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&v->arena, (size_t)v->variable_count, &set));
  rn_scope_t* s = rn_scope_child(scope, "supervisor");
  if (!s) return RN_OK;
  for (int i = 0; i < v->variable_count; ++i) {
    const rn_var_t* variable = v->variables[i];
    set[i] = variable->is_resource ? rn_VarIsInitializedOp(s, variable->handle)
                                   : rn_IsVariableInitialized(s, variable->handle);
  }
  v->are_set = rn_Pack(s, set, v->variable_count);
  if (rn_collection(scope, RN_GLOBAL_STEP, &items) > 0) {
    v->global_step = items[0].variable;
    v->step_now = rn_var_read(s, v->global_step);
  }
  v->init = rn_initialize_variables(s, RN_GLOBAL_VARIABLES);
  v->local_init = rn_initialize_variables(s, RN_LOCAL_VARIABLES);
  rn_scope_destroy(s);
  return RN_OK;
}

rn_status_t rn_supervisor_create(rn_scope_t* scope, const rn_supervisor_options_t* options,
                                 const rn_env_t* env, rn_supervisor_t** out) {
  *out = NULL;
  rn_supervisor_t* v = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_scope_allocator(scope), &v));
  v->allocator = rn_scope_allocator(scope);
  v->env = env;
  v->graph = rn_scope_graph(scope);
  rn_graph_retain(v->graph);
  rn_arena_init(&v->arena, v->allocator);
  rn_mutex_init(&v->mutex);
  v->saved_step = -1;
  rn_status_t status = copy_options(v, options);
  if (rn_ok(status)) status = build(v, scope);
  if (!rn_ok(status)) {
    rn_supervisor_free(v);
    return status;
  }
  *out = v;
  return RN_OK;
}

// The session and its threads.

static void drop_session(rn_supervisor_t* v) {
  if (v->coordinator) rn_coordinator_request_stop(v->coordinator);
  if (v->session) rn_status_free(rn_session_close(v->session));
  // No step is running any more, so the threads end without waiting.
  if (v->coordinator) rn_coordinator_join(v->coordinator, JOIN_SECONDS);
  rn_coordinator_destroy(v->coordinator);
  v->coordinator = NULL;
  if (v->handle) v->host.close(v->host.self, v->handle);
  v->handle = NULL;
  v->told = NULL;
  v->session = NULL;
  rn_mutex_lock(&v->mutex);
  rn_status_free(v->sync_error);
  v->sync_error = RN_OK;
  rn_mutex_unlock(&v->mutex);
}

void rn_supervisor_free(rn_supervisor_t* v) {
  if (!v) return;
  drop_session(v);
  rn_graph_release(v->graph);
  rn_mutex_destroy(&v->mutex);
  rn_arena_clear(&v->arena);
  RN_FREE(v->allocator, v);
}

// The chief's thread: applies update after update. If it fails it closes the session, because the
// replica of this process may be waiting for a token that will never come.
static void keep_applying(rn_coordinator_t* coordinator, void* arg) {
  rn_supervisor_t* v = arg;
  rn_status_t status = RN_OK;
  while (rn_ok(status) && !rn_coordinator_should_stop(coordinator))
    status = run_one(v, v->sync.sync, NULL, NULL, 0);
  if (rn_ok(status) || rn_coordinator_should_stop(coordinator)) {
    rn_status_free(status);
    return;
  }
  rn_mutex_lock(&v->mutex);
  v->sync_error = status;
  rn_mutex_unlock(&v->mutex);
  rn_status_free(rn_session_close(v->session));
}

static rn_status_t start_threads(rn_supervisor_t* v) {
  int count;
  v->coordinator = rn_coordinator_create();
  if (!v->coordinator) return rn_out_of_memory();
  RN_RETURN_IF_ERROR(rn_queue_runners_start(v->session, v->graph, v->coordinator, &count));
  if (runs_sync(v) && !rn_coordinator_start(v->coordinator, "sync", keep_applying, v))
    return rn_resource_exhausted("Cannot start a thread for the chief's updates");
  return RN_OK;
}

// Initializing variables.

// Appends the names of the uninitialized variables to |out| and returns their number.
static rn_status_t find_missing(rn_supervisor_t* v, int64_t timeout_ns, rn_strbuf_t* out,
                                int* out_count) {
  rn_tensor_t set = {0};
  *out_count = 0;
  out->size = 0;
  RN_RETURN_IF_ERROR(run_one(v, NULL, &v->are_set, &set, timeout_ns));
  for (int i = 0; i < v->variable_count; ++i) {
    if (RN_DATA(&set, bool)[i]) continue;
    if ((*out_count)++ < MOST_NAMES)
      rn_strbuf_printf(out, "%s%s", *out_count > 1 ? ", " : "", v->variables[i]->name);
  }
  if (*out_count > MOST_NAMES) rn_strbuf_printf(out, " and %d more", *out_count - MOST_NAMES);
  rn_tensor_clear(&set);
  return rn_strbuf_status(out);
}

// The path of the newest checkpoint; "" if there is none.
static rn_status_t find_checkpoint(rn_supervisor_t* v, rn_strbuf_t* path) {
  if (!v->options.saver || !v->options.directory) return RN_OK;
  const char* file = v->options.saver->options.state_file;
  rn_strbuf_t note;
  rn_strbuf_init(&note, v->allocator);
  rn_status_t status = rn_checkpoint_latest(v->env, v->options.directory,
                                            file ? file : RN_CHECKPOINT_STATE, NULL, path, &note);
  if (note.size) rn_log(v->env, RN_LOG_WARNING, "%s", note.data);
  rn_strbuf_clear(&note);
  if (rn_status_code(status) != RN_CODE_NOT_FOUND) return status;
  rn_status_free(status);
  path->size = 0;
  return RN_OK;
}

static rn_status_t initialize(rn_supervisor_t* v) {
  RN_RETURN_IF_ERROR(run_one(v, v->init, NULL, NULL, 0));
  return v->host.init(v->host.self, v->handle);
}

// Initializes what a checkpoint does not hold, such as variables that are not saved.
static rn_status_t initialize_rest(rn_supervisor_t* v) {
  rn_tensor_t set = {0};
  RN_RETURN_IF_ERROR(run_one(v, NULL, &v->are_set, &set, 0));
  rn_status_t status = RN_OK;
  for (int i = 0; rn_ok(status) && i < v->variable_count; ++i)
    if (!RN_DATA(&set, bool)[i]) status = run_one(v, v->variables[i]->init, NULL, NULL, 0);
  rn_tensor_clear(&set);
  return status;
}

// The chief initializes the variables. If all have values that belong to this run, it keeps them,
// so a restarted chief or a lost connection costs nothing.
static rn_status_t make_values(rn_supervisor_t* v, int missing) {
  rn_strbuf_t path;
  rn_strbuf_init(&path, v->allocator);
  rn_status_t status = find_checkpoint(v, &path);
  bool is_old_run = v->was_ready || path.size;
  if (!rn_ok(status) || (is_old_run && !missing)) {
    rn_strbuf_clear(&path);
    return status;
  }
  if (path.size) {
    rn_log(v->env, RN_LOG_INFO, "%d variables have no value: restoring all variables from %s",
           missing, path.data);
    status = rn_saver_take_up(v->options.saver, v->env, v->options.directory);
    if (rn_ok(status)) status = rn_saver_run_restore(v->options.saver, v->session, path.data);
    if (rn_ok(status)) status = initialize_rest(v);
  } else {
    status = initialize(v);
  }
  rn_strbuf_clear(&path);
  return status;
}

static rn_status_t make_ready(rn_supervisor_t* v, int64_t timeout_ns, rn_strbuf_t* missing,
                              bool* out_ready) {
  int count;
  *out_ready = false;
  RN_RETURN_IF_ERROR(find_missing(v, timeout_ns, missing, &count));
  if (rn_supervisor_is_chief(v)) {
    RN_RETURN_IF_ERROR(make_values(v, count));
  } else if (count) {
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(run_one(v, v->local_init, NULL, NULL, 0));
  if (v->sync.train)
    RN_RETURN_IF_ERROR(
        run_one(v, runs_sync(v) ? v->sync.chief_init : v->sync.local_init, NULL, NULL, 0));
  if (runs_sync(v)) RN_RETURN_IF_ERROR(run_one(v, v->sync.init_tokens, NULL, NULL, 0));
  *out_ready = true;
  return RN_OK;
}

static bool has_text(rn_status_t status, const char* text) {
  return strstr(rn_status_message(status), text) != NULL;
}

// Whether a new session may help: a task is or was unreachable, or its state was lost.
static bool is_recoverable(const rn_supervisor_t* v, rn_status_t status) {
  if (!v->options.target) return false;
  switch (rn_status_code(status)) {
    case RN_CODE_UNAVAILABLE:
    case RN_CODE_ABORTED:
    case RN_CODE_CANCELLED:  // a step may learn of another step's failure before it learns of its
                             // task's
      return true;
    case RN_CODE_FAILED_PRECONDITION:
    case RN_CODE_NOT_FOUND:
      return has_text(status, "uninitialized") || has_text(status, "does not exist");
    default:
      return false;
  }
}

static rn_status_t attempt(rn_supervisor_t* v, int64_t timeout_ns, rn_strbuf_t* missing,
                           bool* out_ready) {
  *out_ready = false;
  if (!v->handle) {
    RN_RETURN_IF_ERROR(v->host.open(v->host.self, &v->handle, &v->session));
  }
  RN_RETURN_IF_ERROR(make_ready(v, timeout_ns, missing, out_ready));
  return *out_ready ? start_threads(v) : RN_OK;
}

static void wait_longer(int64_t* inout_ns) {
  struct timespec time = {*inout_ns / SECOND, *inout_ns % SECOND};
  nanosleep(&time, NULL);
  *inout_ns = *inout_ns * 2 > LONGEST_PAUSE_NS ? LONGEST_PAUSE_NS : *inout_ns * 2;
}

static rn_status_t too_late(rn_supervisor_t* v, rn_status_t status, const rn_strbuf_t* missing) {
  double waited = (double)(now(v) - v->failing_since) * 1e-9;
  rn_status_t told = RN_OK;
  if (!rn_ok(status))
    told = rn_status_make(rn_status_code(status), "Not ready after %.1f s: %s", waited,
                          rn_status_message(status));
  else
    told = rn_deadline_exceeded(
        "Not ready after %.1f s: the chief has not initialized these variables: %.*s", waited,
        RN_STR_ARGS(rn_strbuf_view(missing)));
  rn_status_free(status);
  return told;
}

// Whether a retry may succeed after |status|.
static bool may_retry(const rn_supervisor_t* v, rn_status_t status) {
  return rn_ok(status) || rn_status_code(status) == RN_CODE_DEADLINE_EXCEEDED ||
         is_recoverable(v, status);
}

// Retries until success, a permanent failure, or |deadline|.
static rn_status_t keep_trying(rn_supervisor_t* v, int64_t deadline, rn_strbuf_t* missing) {
  int64_t pause_ns = FIRST_PAUSE_NS, limit = FIRST_ATTEMPT_NS;
  rn_status_t told = RN_OK;  // the last error other than a timeout
  for (;;) {
    int64_t left = deadline - now(v);
    if (left <= 0) return too_late(v, told, missing);
    bool ready = false;
    rn_status_t status = attempt(v, left < limit ? left : limit, missing, &ready);
    bool is_slow = rn_status_code(status) == RN_CODE_DEADLINE_EXCEEDED;
    if (is_slow) limit *= 2;
    if (!rn_ok(status)) drop_session(v);
    if (ready || !may_retry(v, status)) {
      rn_status_free(told);
      return status;
    }
    if (!is_slow || rn_ok(told)) {
      rn_status_free(told);
      told = status;
    } else {
      rn_status_free(status);
    }
    if (atomic_load(&v->should_stop)) {
      rn_status_free(told);
      return rn_cancelled("A stop was requested");
    }
    wait_longer(&pause_ns);
  }
}

rn_status_t rn_supervisor_prepare(rn_supervisor_t* v) {
  if (v->handle && v->coordinator) return RN_OK;
  if (!v->has_failed) v->failing_since = now(v);
  rn_strbuf_t missing;
  rn_strbuf_init(&missing, v->allocator);
  rn_status_t status = keep_trying(v, v->failing_since + patience(v), &missing);
  rn_strbuf_clear(&missing);
  if (!rn_ok(status)) {
    drop_session(v);
    return status;
  }
  if (v->was_ready) v->recoveries++;
  v->was_ready = true;
  if (!v->saved_ns) v->saved_ns = now(v);
  return RN_OK;
}

// Steps.

static void save(rn_supervisor_t* v, bool is_last) {
  if (!v->options.saver || !v->options.directory || !rn_supervisor_is_chief(v)) return;
  double seconds = v->options.save_seconds ? v->options.save_seconds : 600;
  bool is_time = seconds > 0 && (double)(now(v) - v->saved_ns) >= seconds * 1e9;
  bool is_count = v->options.save_steps > 0 && v->step >= v->saved_step + v->options.save_steps;
  bool is_first = v->saved_step < 0;
  if (!is_time && !is_count && !is_first && !(is_last && v->step != v->saved_step)) return;
  rn_strbuf_t path;
  rn_strbuf_init(&path, v->allocator);
  rn_strbuf_printf(&path, "%s/model.ckpt", v->options.directory);
  const char* saved;
  rn_status_t status = rn_strbuf_status(&path);
  if (rn_ok(status))
    status = rn_saver_run_save(v->options.saver, v->session, path.data, v->step, NULL, &saved);
  // Training goes on: the next save may succeed, and the previous checkpoint is intact.
  if (!rn_ok(status))
    rn_log(v->env, RN_LOG_WARNING, "Cannot save a checkpoint at step %lld: %s", (long long)v->step,
           rn_status_message(status));
  else
    v->saved_step = v->step;
  rn_status_free(status);
  rn_strbuf_clear(&path);
  v->saved_ns = now(v);
}

void rn_supervisor_done(rn_supervisor_t* v, int64_t global_step) {
  v->has_failed = false;
  v->step = v->step_now.node ? global_step : v->step + 1;
  save(v, false);
}

rn_status_t rn_supervisor_judge(rn_supervisor_t* v, rn_status_t status) {
  rn_mutex_lock(&v->mutex);
  // The chief's own thread closed the session: report its error.
  if (!rn_ok(v->sync_error) && rn_status_code(status) == RN_CODE_CANCELLED) {
    rn_status_free(status);
    status = v->sync_error;
    v->sync_error = RN_OK;
  }
  rn_mutex_unlock(&v->mutex);
  if (atomic_load(&v->should_stop) || !is_recoverable(v, status)) return status;
  if (!v->has_failed) v->failing_since = now(v);
  v->has_failed = true;
  if (now(v) - v->failing_since > patience(v)) return status;
  rn_log(v->env, RN_LOG_WARNING, "Opening a new session after: %s", rn_status_message(status));
  rn_status_free(status);
  drop_session(v);
  return RN_OK;
}

// Wakes replicas that wait for a token, or will wait once more; each then checks for itself whether
// training has ended. A replica that leaves took a token for its last step, and the others may need
// it.
static rn_status_t let_go(rn_supervisor_t* v) {
  rn_status_t status = run_one(v, v->sync.farewell, NULL, NULL, 0);
  if (runs_sync(v)) {
    if (rn_ok(status)) status = run_one(v, v->sync.farewell, NULL, NULL, 0);
    return status;
  }
  rn_status_free(status);  // a chief that ended earlier may have closed the queue
  return RN_OK;
}

rn_status_t rn_supervisor_end(rn_supervisor_t* v) {
  atomic_store(&v->should_stop, true);
  if (!v->session) return RN_OK;
  save(v, true);
  return v->sync.farewell ? let_go(v) : RN_OK;
}

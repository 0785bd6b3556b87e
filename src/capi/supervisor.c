// Supervisors over the C API's sessions: steps that are tried again, hooks, the log.
#include "train/supervisor.h"

#include "capi/session.h"
#include "graph/build.h"
#include "proto/config.pb.h"

#define FEW_FETCHES 16

// The host of a supervisor.
typedef struct face_t {
  rn_supervisor_t* core;       // whose host this is
  TF_SessionOptions* options;  // Owned
  const TF_Session* told;      // the session that hooks know; only compared
  int64_t logged_step, logged_ns;
} face_t;

static rn_status_t face_open(void* self, TF_Session** out, rn_session_t** out_session) {
  face_t* face = self;
  RN_RETURN_IF_ERROR(rn_capi_session_create(face->core->graph, face->options, out));
  *out_session = (*out)->session;
  return RN_OK;
}

static void face_close(void* self, TF_Session* session) {
  face_t* face = self;
  face->told = NULL;
  rn_capi_session_destroy(session);
}

static rn_status_t face_init(void* self, TF_Session* session) {
  const rn_supervisor_options_t* options = &((face_t*)self)->core->options;
  if (!options->init) return RN_OK;
  TF_Status* status = TF_NewStatus();
  if (!status) return rn_out_of_memory();
  bool is_good = options->init(options->init_arg, session, status);
  rn_status_t told = rn_capi_status_of(status);
  if (!is_good && rn_ok(told)) told = rn_aborted("The client's init function failed");
  TF_DeleteStatus(status);
  return told;
}

// Sessions take in the parameter servers and this task: others may be away.
static rn_status_t add_filters(const rn_supervisor_options_t* options, rn_strbuf_t* config) {
  rn_arena_t arena;
  rn_arena_init(&arena, rn_capi_allocator());
  rn_str_t filters[2];
  rn_pb_ConfigProto_t proto = {.device_filters = {.items = filters, .count = 2}};
  rn_status_t status =
      rn_arena_printf(&arena, &filters[0], "/job:%s", options->ps_job ? options->ps_job : "ps");
  if (rn_ok(status))
    status = rn_arena_printf(&arena, &filters[1], "/job:%s/task:%d",
                             options->job ? options->job : "worker", options->task);
  if (rn_ok(status)) status = RN_PB_ENCODE(ConfigProto, &proto, NULL, config);
  rn_arena_clear(&arena);
  return status;
}

static rn_status_t make_options(face_t* face) {
  const rn_supervisor_options_t* options = &face->core->options;
  face->options = TF_NewSessionOptions();
  TF_Status* status = TF_NewStatus();
  rn_strbuf_t config;
  rn_strbuf_init(&config, rn_capi_allocator());
  rn_strbuf_append_n(&config, options->config, options->config_size);
  rn_status_t made = face->options && status ? rn_strbuf_status(&config) : rn_out_of_memory();
  if (rn_ok(made) && options->target && !options->sees_all_tasks)
    made = add_filters(options, &config);
  if (rn_ok(made)) {
    if (options->target) TF_SetTarget(face->options, options->target);
    TF_SetConfig(face->options, config.data, config.size, status);
    made = rn_capi_status_of(status);
  }
  rn_strbuf_clear(&config);
  TF_DeleteStatus(status);
  return made;
}

static void face_destroy(face_t* face) {
  if (!face) return;
  rn_supervisor_free(face->core);
  TF_DeleteSessionOptions(face->options);
  RN_FREE(rn_capi_allocator(), face);
}

rn_supervisor_t* rn_supervisor_(rn_scope_t* scope, rn_supervisor_options_t options) {
  if (!rn_scope_ok(scope)) return NULL;
  face_t* face = NULL;
  rn_status_t status =
      options.task < 0 || options.hook_count < 0 || (options.hook_count && !options.hooks)
          ? rn_invalid_argument("rn_supervisor: task %d, %d hooks", options.task,
                                options.hook_count)
          : RN_NEW(rn_capi_allocator(), &face);
  if (rn_ok(status)) status = rn_supervisor_create(scope, &options, rn_capi_env(), &face->core);
  if (rn_ok(status)) {
    face->core->host = (rn_supervisor_host_t){face, face_open, face_close, face_init};
    status = make_options(face);
  }
  if (!rn_ok(status)) rn_scope_fail(scope, status);
  if (rn_scope_ok(scope)) return face->core;
  face_destroy(face);
  return NULL;
}

void rn_supervisor_destroy(rn_supervisor_t* supervisor) {
  if (supervisor) face_destroy(supervisor->host.self);
}

static rn_status_t prepare(rn_supervisor_t* v) {
  face_t* face = v->host.self;
  RN_RETURN_IF_ERROR(rn_supervisor_prepare(v));
  if (face->told == v->handle) return RN_OK;
  face->told = v->handle;
  for (int i = 0; i < v->options.hook_count; ++i)
    if (v->options.hooks[i].session)
      v->options.hooks[i].session(v->options.hooks[i].arg, v, v->handle);
  return RN_OK;
}

static void write_log(rn_supervisor_t* v) {
  face_t* face = v->host.self;
  int64_t every = v->options.log_steps > 0 ? v->options.log_steps : 100;
  int64_t now = v->env->now_ns(v->env->self);
  bool is_first = !face->logged_ns || v->step < face->logged_step;
  if (!v->options.log || !rn_supervisor_is_chief(v)) return;
  if (!is_first && v->step < face->logged_step + every) return;
  if (!is_first)
    rn_summary_scalar(
        v->options.log, "global_step/sec", v->step,
        (float)((double)(v->step - face->logged_step) * 1e9 / (double)(now - face->logged_ns + 1)),
        NULL);
  face->logged_step = v->step;
  face->logged_ns = now;
}

static void tell_step(rn_supervisor_t* v, int64_t step) {
  rn_supervisor_done(v, step);
  write_log(v);
  for (int i = 0; i < v->options.hook_count; ++i)
    if (v->options.hooks[i].step) v->options.hooks[i].step(v->options.hooks[i].arg, v, v->step);
}

// One step with the global step fetched behind the client's own fetches.
typedef struct fetches_t {
  TF_Output few_outputs[FEW_FETCHES];
  TF_Tensor* few_values[FEW_FETCHES];
  TF_Output* outputs;
  TF_Tensor** values;
  int count;
} fetches_t;

// The edge that says which step it is. What is read beside an update may be the step before; a
// token comes after it, and a replica that trusts it takes none that others wait for at the end.
static rn_edge_t step_edge(const rn_supervisor_t* v, const rn_capi_step_t* step) {
  bool trains = false;
  for (int i = 0; i < step->target_count; ++i)
    trains |= step->targets[i] == (const TF_Operation*)v->sync.train;
  return trains && v->sync.step == v->global_step ? v->sync.token : v->step_now;
}

static rn_status_t fetches_init(fetches_t* fetches, const rn_supervisor_t* v,
                                const rn_capi_step_t* step) {
  fetches->count = step->output_count + (v->step_now.node ? 1 : 0);
  fetches->outputs = fetches->few_outputs;
  fetches->values = fetches->few_values;
  if (fetches->count > FEW_FETCHES) {
    fetches->values = NULL;
    size_t count = (size_t)fetches->count;
    RN_RETURN_IF_ERROR(RN_NEW_ARRAY(rn_capi_allocator(), count, &fetches->outputs));
    RN_RETURN_IF_ERROR(RN_NEW_ARRAY(rn_capi_allocator(), count, &fetches->values));
  }
  for (int i = 0; i < step->output_count; ++i) fetches->outputs[i] = step->outputs[i];
  rn_edge_t now = step_edge(v, step);
  if (v->step_now.node)
    fetches->outputs[step->output_count] = (TF_Output){(TF_Operation*)now.node, now.index};
  return RN_OK;
}

static void fetches_clear(fetches_t* fetches) {
  if (fetches->count <= FEW_FETCHES) return;
  RN_FREE_ARRAY(rn_capi_allocator(), fetches->outputs, fetches->count);
  RN_FREE_ARRAY(rn_capi_allocator(), fetches->values, fetches->count);
}

static rn_status_t run_until_good(rn_supervisor_t* v, const rn_capi_step_t* step) {
  rn_status_t status = RN_OK;
  for (bool again = true; again;) {
    RN_RETURN_IF_ERROR(prepare(v));
    status = rn_capi_session_run(v->handle, step, NULL, NULL);
    again = !rn_ok(status);
    if (again) RN_RETURN_IF_ERROR(rn_supervisor_judge(v, status));
  }
  return RN_OK;
}

static rn_status_t run(rn_supervisor_t* v, const rn_capi_step_t* step) {
  RN_RETURN_IF_ERROR(rn_capi_step_check(step));
  fetches_t fetches;
  rn_status_t status = fetches_init(&fetches, v, step);
  rn_capi_step_t with_step = *step;
  with_step.outputs = fetches.outputs;
  with_step.output_values = fetches.values;
  with_step.output_count = fetches.count;
  if (rn_ok(status)) status = run_until_good(v, &with_step);
  if (rn_ok(status)) {
    int64_t global_step = 0;
    for (int i = 0; i < step->output_count; ++i) step->output_values[i] = fetches.values[i];
    if (v->step_now.node) {
      TF_Tensor* last = fetches.values[step->output_count];
      global_step = last->tensor.dtype == RN_INT32 ? *RN_DATA(&last->tensor, int32_t)
                                                   : *RN_DATA(&last->tensor, int64_t);
      TF_DeleteTensor(last);
    }
    tell_step(v, global_step);
  }
  fetches_clear(&fetches);
  return status;
}

bool rn_supervisor_start(rn_supervisor_t* supervisor, TF_Status* status) {
  return rn_capi_ok(status, supervisor ? prepare(supervisor) : RN_CAPI_NULL("supervisor"));
}

bool rn_supervisor_run(rn_supervisor_t* supervisor, const TF_Output* inputs,
                       TF_Tensor* const* input_values, int input_count, const TF_Output* outputs,
                       TF_Tensor** output_values, int output_count,
                       const TF_Operation* const* targets, int target_count, TF_Status* status) {
  rn_capi_step_t step = {inputs,        input_values, input_count, outputs,
                         output_values, output_count, targets,     target_count};
  return rn_capi_ok(status, supervisor ? run(supervisor, &step) : RN_CAPI_NULL("supervisor"));
}

bool rn_supervisor_finish(rn_supervisor_t* supervisor, TF_Status* status) {
  return rn_capi_ok(status,
                    supervisor ? rn_supervisor_end(supervisor) : RN_CAPI_NULL("supervisor"));
}

TF_Session* rn_supervisor_session(rn_supervisor_t* supervisor) {
  return supervisor ? supervisor->handle : NULL;
}

int64_t rn_supervisor_step(const rn_supervisor_t* supervisor) {
  return supervisor ? supervisor->step : 0;
}

int rn_supervisor_recoveries(const rn_supervisor_t* supervisor) {
  return supervisor ? supervisor->recoveries : 0;
}

bool rn_supervisor_should_stop(const rn_supervisor_t* supervisor) {
  return !supervisor || atomic_load(&supervisor->should_stop);
}

void rn_supervisor_request_stop(rn_supervisor_t* supervisor) {
  if (supervisor) atomic_store(&supervisor->should_stop, true);
}

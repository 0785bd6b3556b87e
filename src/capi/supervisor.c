// Supervisors over the C API's sessions: opens and closes sessions for train/supervisor.h, and
// implements runnel/cluster.h.
#include "train/supervisor.h"

#include "capi/session.h"
#include "graph/build.h"
#include "proto/config.pb.h"

// The host of a supervisor.
typedef struct supervisor_face_t {
  rn_supervisor_t* core;       // the supervisor that this serves
  TF_SessionOptions* options;  // Owned
} supervisor_face_t;

static rn_status_t face_open(void* self, TF_Session** out, rn_session_t** out_session) {
  supervisor_face_t* face = self;
  RN_RETURN_IF_ERROR(rn_capi_session_create(face->core->graph, face->options, out));
  *out_session = (*out)->session;
  return RN_OK;
}

static void face_close(void* self, TF_Session* session) {
  (void)self;
  rn_capi_session_destroy(session);
}

static rn_status_t face_init(void* self, TF_Session* session) {
  const rn_supervisor_options_t* options = &((supervisor_face_t*)self)->core->options;
  if (!options->init) return RN_OK;
  TF_Status* status = TF_NewStatus();
  if (!status) return rn_out_of_memory();
  bool is_good = options->init(options->init_arg, session, status);
  rn_status_t told = rn_capi_status_of(status);
  if (!is_good && rn_ok(told)) told = rn_aborted("The client's init function failed");
  TF_DeleteStatus(status);
  return told;
}

// Sessions include only the parameter servers and this task, because other tasks may be down.
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

static rn_status_t make_options(supervisor_face_t* face) {
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

static void face_destroy(supervisor_face_t* face) {
  if (!face) return;
  rn_supervisor_free(face->core);
  TF_DeleteSessionOptions(face->options);
  RN_FREE(rn_capi_allocator(), face);
}

RN_API rn_supervisor_t* rn_supervisor_(rn_scope_t* scope, rn_supervisor_options_t options) {
  if (!rn_scope_ok(scope)) return NULL;
  supervisor_face_t* face = NULL;
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

RN_API void rn_supervisor_destroy(rn_supervisor_t* supervisor) {
  if (supervisor) face_destroy(supervisor->host.self);
}

static rn_status_t run(rn_supervisor_t* v, const rn_capi_step_t* step) {
  RN_RETURN_IF_ERROR(rn_capi_step_check(step));
  rn_capi_fetches_t fetches;
  rn_signature_t signature = rn_capi_step_signature(step);
  rn_status_t status = rn_capi_fetches_init(&fetches, step->output_count);
  if (rn_ok(status))
    status = rn_supervisor_step_run(v, &signature, (const rn_tensor_t* const*)step->input_values,
                                    fetches.tensors);
  if (rn_ok(status)) rn_capi_fetches_take(&fetches, step->output_values);
  rn_capi_fetches_clear(&fetches);
  return status;
}

RN_API bool rn_supervisor_start(rn_supervisor_t* supervisor, TF_Status* status) {
  return rn_capi_ok(status,
                    supervisor ? rn_supervisor_ready(supervisor) : RN_CAPI_NULL("supervisor"));
}

RN_API bool rn_supervisor_run(rn_supervisor_t* supervisor, const TF_Output* inputs,
                              TF_Tensor* const* input_values, int input_count,
                              const TF_Output* outputs, TF_Tensor** output_values, int output_count,
                              const TF_Operation* const* targets, int target_count,
                              TF_Status* status) {
  rn_capi_step_t step = {inputs,        input_values, input_count, outputs,
                         output_values, output_count, targets,     target_count};
  return rn_capi_ok(status, supervisor ? run(supervisor, &step) : RN_CAPI_NULL("supervisor"));
}

static rn_status_t run_supervised(void* self, const rn_signature_t* signature,
                                  const rn_tensor_t* const* feeds, rn_tensor_t* fetches) {
  return rn_supervisor_step_run(self, signature, feeds, fetches);
}

RN_API bool rn_supervisor_run_args(rn_supervisor_t* supervisor, const rn_run_arg_t* args,
                                   size_t count, TF_Status* status) {
  return rn_capi_ok(status, supervisor ? rn_capi_run_args(supervisor->graph, args, count,
                                                          run_supervised, supervisor)
                                       : RN_CAPI_NULL("supervisor"));
}

RN_API bool rn_supervisor_finish(rn_supervisor_t* supervisor, TF_Status* status) {
  return rn_capi_ok(status,
                    supervisor ? rn_supervisor_end(supervisor) : RN_CAPI_NULL("supervisor"));
}

RN_API TF_Session* rn_supervisor_session(rn_supervisor_t* supervisor) {
  return supervisor ? supervisor->handle : NULL;
}

RN_API int64_t rn_supervisor_step(const rn_supervisor_t* supervisor) {
  return supervisor ? supervisor->step : 0;
}

RN_API int rn_supervisor_recoveries(const rn_supervisor_t* supervisor) {
  return supervisor ? supervisor->recoveries : 0;
}

RN_API bool rn_supervisor_should_stop(const rn_supervisor_t* supervisor) {
  return !supervisor || atomic_load(&supervisor->should_stop);
}

RN_API void rn_supervisor_request_stop(rn_supervisor_t* supervisor) {
  if (supervisor) atomic_store(&supervisor->should_stop, true);
}

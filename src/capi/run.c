// Runs steps. The common case, no options and few tensors, allocates nothing but the handles of the
// results.
#include "capi/eager/eager.h"
#include "capi/session.h"
#include "proto/config.pb.h"
#include "runnel/session.h"

static rn_status_t bad_list(const char* what, int count) {
  return rn_invalid_argument("Session::Run: bad list of %d %s", count, what);
}

rn_status_t rn_capi_step_check(const rn_capi_step_t* step) {
  if (step->input_count < 0 || (step->input_count && (!step->inputs || !step->input_values))) {
    return bad_list("inputs", step->input_count);
  }
  if (step->output_count < 0 || (step->output_count && (!step->outputs || !step->output_values))) {
    return bad_list("outputs", step->output_count);
  }
  if (step->target_count < 0 || (step->target_count && !step->targets)) {
    return bad_list("targets", step->target_count);
  }
  for (int i = 0; i < step->input_count; ++i) {
    if (!step->inputs[i].oper || !step->input_values[i] ||
        !rn_tensor_is_set(&step->input_values[i]->tensor)) {
      return rn_invalid_argument("Input %d has no %s", i,
                                 step->inputs[i].oper ? "tensor" : "operation");
    }
  }
  for (int i = 0; i < step->output_count; ++i) {
    if (!step->outputs[i].oper) return rn_invalid_argument("Output %d has no operation", i);
  }
  for (int i = 0; i < step->target_count; ++i) {
    if (!step->targets[i]) return rn_invalid_argument("Target %d is NULL", i);
  }
  return RN_OK;
}

rn_signature_t rn_capi_step_signature(const rn_capi_step_t* step) {
  return (rn_signature_t){
      .feeds = (const rn_edge_t*)step->inputs,
      .feed_count = step->input_count,
      .fetches = (const rn_edge_t*)step->outputs,
      .fetch_count = step->output_count,
      .targets = (rn_node_t* const*)step->targets,
      .target_count = step->target_count,
  };
}

static bool is_small(const rn_capi_fetches_t* fetches) {
  return __builtin_expect(fetches->count <= RN_CAPI_FEW_FETCHES, 1);
}

rn_status_t rn_capi_fetches_init(rn_capi_fetches_t* fetches, int count) {
  fetches->count = count;
  fetches->tensors = fetches->few_tensors;
  fetches->handles = fetches->few_handles;
  if (!is_small(fetches)) {
    fetches->handles = NULL;
    fetches->tensors = NULL;
    RN_RETURN_IF_ERROR(RN_NEW_ARRAY(rn_capi_allocator(), (size_t)count, &fetches->handles));
    RN_RETURN_IF_ERROR(RN_NEW_ARRAY(rn_capi_allocator(), (size_t)count, &fetches->tensors));
  }
  for (int i = 0; i < count; ++i) fetches->handles[i] = NULL;
  for (int i = 0; i < count; ++i)
    RN_RETURN_IF_ERROR(RN_NEW(rn_capi_allocator(), &fetches->handles[i]));
  return RN_OK;
}

void rn_capi_fetches_take(rn_capi_fetches_t* fetches, TF_Tensor** out) {
  for (int i = 0; i < fetches->count; ++i) {
    TF_Tensor* handle = fetches->handles[i];
    handle->tensor = fetches->tensors[i];
    handle->length = rn_tensor_bytes(&handle->tensor);
    out[i] = handle;
    fetches->handles[i] = NULL;
  }
}

void rn_capi_fetches_clear(rn_capi_fetches_t* fetches) {
  for (int i = 0; fetches->handles && i < fetches->count; ++i) TF_DeleteTensor(fetches->handles[i]);
  if (is_small(fetches)) return;
  RN_FREE_ARRAY(rn_capi_allocator(), fetches->handles, fetches->count);
  RN_FREE_ARRAY(rn_capi_allocator(), fetches->tensors, fetches->count);
}

static rn_status_t run_step(TF_Session* session, const rn_capi_step_t* step,
                            const rn_step_options_t* options) {
  rn_capi_fetches_t fetches;
  rn_status_t status = rn_capi_fetches_init(&fetches, step->output_count);
  if (rn_ok(status)) {
    rn_signature_t signature = rn_capi_step_signature(step);
    status =
        rn_session_run(session->session, &signature, (const rn_tensor_t* const*)step->input_values,
                       fetches.tensors, options);
  }
  if (rn_ok(status)) rn_capi_fetches_take(&fetches, step->output_values);
  rn_capi_fetches_clear(&fetches);
  return status;
}

typedef struct run_options_t {
  int64_t timeout_ms;
  int trace_level;
  bool wants_graphs;
} run_options_t;

static rn_status_t parse_options(const TF_Buffer* bytes, run_options_t* out) {
  *out = (run_options_t){0};
  if (!bytes || !bytes->length) return RN_OK;
  if (!bytes->data) return rn_invalid_argument("Unparseable RunOptions proto");
  rn_pb_RunOptions_t* options = NULL;
  rn_arena_t arena;
  rn_arena_init(&arena, rn_capi_allocator());
  rn_status_t status =
      RN_PB_DECODE(RunOptions, rn_str_n(bytes->data, bytes->length), NULL, &arena, &options);
  if (rn_ok(status)) {
    out->timeout_ms = options->timeout_in_ms;
    out->trace_level = (int)options->trace_level;
    out->wants_graphs = options->output_partition_graphs;
  } else if (rn_status_code(status) == RN_CODE_INVALID_ARGUMENT) {
    rn_status_free(status);
    status = rn_invalid_argument("Unparseable RunOptions proto");
  }
  rn_arena_clear(&arena);
  return status;
}

static rn_status_t run_with_options(TF_Session* session, const rn_capi_step_t* step,
                                    const TF_Buffer* run_options, rn_strbuf_t* metadata,
                                    rn_cancel_t* cancel) {
  run_options_t parsed;
  RN_RETURN_IF_ERROR(parse_options(run_options, &parsed));
  bool is_traced = parsed.trace_level > 0 && metadata;
  rn_step_stats_t stats;
  rn_step_stats_init(&stats, rn_capi_allocator(), rn_capi_env());
  rn_step_options_t options = {.timeout_ms = parsed.timeout_ms,
                               .stats = is_traced ? &stats : NULL,
                               .cancel = cancel,
                               .trace_level = parsed.trace_level,
                               .metadata = metadata,
                               .wants_graphs = parsed.wants_graphs};
  rn_status_t status = run_step(session, step, &options);
  if (is_traced && stats.nodes.count) rn_capi_write_metadata(metadata, &stats);
  rn_step_stats_clear(&stats);
  return status;
}

static rn_status_t run_checked(TF_Session* session, const rn_capi_step_t* step,
                               const TF_Buffer* run_options, rn_strbuf_t* metadata,
                               rn_cancel_t* cancel) {
  RN_RETURN_IF_ERROR(rn_capi_step_check(step));
  if (step->output_count + step->target_count == 0) {
    return rn_invalid_argument("Must specify at least one target to fetch or execute.");
  }
  if (__builtin_expect(run_options || metadata, 0)) {
    return run_with_options(session, step, run_options, metadata, cancel);
  }
  if (!cancel) return run_step(session, step, NULL);
  rn_step_options_t options = {.cancel = cancel};
  return run_step(session, step, &options);
}

// The metadata is a valid message even if the step fails: clients decode it before they check the
// status.
static rn_status_t run_with_metadata(TF_Session* session, const rn_capi_step_t* step,
                                     const TF_Buffer* run_options, TF_Buffer* run_metadata,
                                     rn_cancel_t* cancel) {
  if (run_metadata->data) return rn_invalid_argument("Passing non-empty run_metadata is invalid.");
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_capi_allocator());
  rn_status_t status = run_checked(session, step, run_options, &buf, cancel);
  rn_status_t taken = rn_capi_buffer_take(&buf, run_metadata);
  if (rn_ok(taken)) return status;
  for (int i = 0; rn_ok(status) && i < step->output_count; ++i)
    TF_DeleteTensor(step->output_values[i]);
  rn_status_free(status);
  return taken;
}

static rn_status_t run_cancellable(TF_Session* session, const rn_capi_step_t* step,
                                   const TF_Buffer* run_options, TF_Buffer* run_metadata,
                                   rn_cancel_t* cancel) {
  return __builtin_expect(run_metadata != NULL, 0)
             ? run_with_metadata(session, step, run_options, run_metadata, cancel)
             : run_checked(session, step, run_options, NULL, cancel);
}

void rn_capi_no_metadata(TF_Buffer* run_metadata) {
  rn_strbuf_t nothing;
  rn_strbuf_init(&nothing, rn_capi_allocator());
  if (run_metadata && !run_metadata->data)
    rn_status_free(rn_capi_buffer_take(&nothing, run_metadata));
}

rn_status_t rn_capi_session_run(TF_Session* session, const rn_capi_step_t* step,
                                const TF_Buffer* run_options, TF_Buffer* run_metadata) {
  return run_cancellable(session, step, run_options, run_metadata, NULL);
}

void TF_SessionRun(TF_Session* session, const TF_Buffer* run_options, const TF_Output* inputs,
                   TF_Tensor* const* input_values, int ninputs, const TF_Output* outputs,
                   TF_Tensor** output_values, int noutputs, const TF_Operation* const* target_opers,
                   int ntargets, TF_Buffer* run_metadata, TF_Status* status) {
  rn_session_run_cancellable(session, run_options, inputs, input_values, ninputs, outputs,
                             output_values, noutputs, target_opers, ntargets, run_metadata, NULL,
                             status);
}

RN_API void rn_session_run_cancellable(TF_Session* session, const TF_Buffer* run_options,
                                       const TF_Output* inputs, TF_Tensor* const* input_values,
                                       int ninputs, const TF_Output* outputs,
                                       TF_Tensor** output_values, int noutputs,
                                       const TF_Operation* const* target_opers, int ntargets,
                                       TF_Buffer* run_metadata,
                                       TFE_CancellationManager* cancellation, TF_Status* status) {
  rn_capi_step_t step = {inputs,        input_values, ninputs,      outputs,
                         output_values, noutputs,     target_opers, ntargets};
  rn_cancel_t* cancel = cancellation ? &cancellation->base.cancel : NULL;
  rn_status_t outcome = session ? run_cancellable(session, &step, run_options, run_metadata, cancel)
                                : RN_CAPI_NULL("session");
  if (!session) rn_capi_no_metadata(run_metadata);
  if (__builtin_expect(!rn_ok(outcome), 0)) RN_CAPI_CLEAR(output_values, noutputs);
  rn_capi_set(status, outcome);
}

rn_status_t rn_capi_timeout(const TF_Buffer* run_options, int64_t* out_ms) {
  run_options_t parsed;
  RN_RETURN_IF_ERROR(parse_options(run_options, &parsed));
  *out_ms = parsed.timeout_ms;
  return RN_OK;
}

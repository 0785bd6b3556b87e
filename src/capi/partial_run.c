// Partial runs: the client's handle, and the run behind it.
#include "capi/session.h"

// Handles in stock's form: "feeds->fetches/targets/1/;number". Clients only pass them back.
static rn_status_t make_handle(const rn_capi_step_t* step, uint64_t number, char** out) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_capi_allocator());
  for (int i = 0; i < step->input_count; ++i) {
    rn_strbuf_printf(&text, "%s%s:%d", i ? "," : "", rn_capi_node(step->inputs[i].oper)->name.data,
                     step->inputs[i].index);
  }
  rn_strbuf_printf(&text, "->");
  for (int i = 0; i < step->output_count; ++i) {
    rn_strbuf_printf(&text, "%s%s:%d", i ? "," : "", rn_capi_node(step->outputs[i].oper)->name.data,
                     step->outputs[i].index);
  }
  rn_strbuf_printf(&text, "/");
  for (int i = 0; i < step->target_count; ++i) {
    rn_strbuf_printf(&text, "%s%s", i ? "," : "", rn_capi_node(step->targets[i])->name.data);
  }
  rn_strbuf_printf(&text, "/1/;%llu", (unsigned long long)number);
  rn_status_t status = rn_strbuf_status(&text);
  if (rn_ok(status)) status = rn_str_dup(rn_capi_allocator(), rn_strbuf_view(&text), out);
  rn_strbuf_clear(&text);
  return status;
}

void rn_capi_partial_free(rn_capi_partial_t* partial) {
  if (!partial) return;
  rn_partial_run_destroy(partial->run);
  if (partial->handle) {
    rn_free(rn_capi_allocator(), partial->handle, strlen(partial->handle) + 1);
  }
  RN_FREE(rn_capi_allocator(), partial);
}

// Setup lists outputs without values.
static rn_status_t check_setup(const rn_capi_step_t* step) {
  if (step->input_count < 0 || step->output_count < 0 || step->target_count < 0 ||
      (step->input_count && !step->inputs) || (step->output_count && !step->outputs) ||
      (step->target_count && !step->targets)) {
    return rn_invalid_argument("Session::PRunSetup: bad list of inputs, outputs or targets");
  }
  for (int i = 0; i < step->input_count; ++i) {
    if (!step->inputs[i].oper) return rn_invalid_argument("Input %d has no operation", i);
  }
  for (int i = 0; i < step->output_count; ++i) {
    if (!step->outputs[i].oper) return rn_invalid_argument("Output %d has no operation", i);
  }
  for (int i = 0; i < step->target_count; ++i) {
    if (!step->targets[i]) return rn_invalid_argument("Target %d is NULL", i);
  }
  return RN_OK;
}

static rn_status_t start(TF_Session* session, const rn_capi_step_t* step,
                         rn_capi_partial_t* partial) {
  rn_signature_t signature = rn_capi_step_signature(step);
  partial->feeds_left = step->input_count;
  partial->fetches_left = step->output_count;
  rn_mutex_lock(&session->mutex);
  uint64_t number = session->partial_count++;
  rn_mutex_unlock(&session->mutex);
  RN_RETURN_IF_ERROR(make_handle(step, number, &partial->handle));
  return rn_session_partial_setup(session->session, &signature, &partial->run);
}

rn_status_t rn_capi_partial_setup(TF_Session* session, const rn_capi_step_t* step,
                                  const char** out_handle) {
  rn_capi_partial_t* partial = NULL;
  *out_handle = NULL;
  RN_RETURN_IF_ERROR(check_setup(step));
  RN_RETURN_IF_ERROR(RN_NEW(rn_capi_allocator(), &partial));
  rn_status_t status = start(session, step, partial);
  char* copy = NULL;
  if (rn_ok(status)) {
    // The client's own copy outlives the run.
    copy = strdup(partial->handle);
    if (!copy) status = rn_out_of_memory();
  }
  if (!rn_ok(status)) {
    rn_capi_partial_free(partial);
    return status;
  }
  rn_mutex_lock(&session->mutex);
  partial->next = session->partials;
  session->partials = partial;
  rn_mutex_unlock(&session->mutex);
  *out_handle = copy;
  return RN_OK;
}

static rn_capi_partial_t* acquire(TF_Session* session, const char* handle) {
  rn_mutex_lock(&session->mutex);
  rn_capi_partial_t* partial = session->partials;
  while (partial && strcmp(partial->handle, handle) != 0) partial = partial->next;
  if (partial) partial->users++;
  rn_mutex_unlock(&session->mutex);
  return partial;
}

// Marks what the call has fed and fetched as done; drops the run when nothing is left.
static void give_back(TF_Session* session, rn_capi_partial_t* partial, int fed, int fetched) {
  rn_mutex_lock(&session->mutex);
  partial->feeds_left -= fed;
  partial->fetches_left -= fetched;
  bool is_done = --partial->users == 0 && partial->feeds_left <= 0 && partial->fetches_left <= 0;
  if (is_done) {
    rn_capi_partial_t** link = &session->partials;
    while (*link != partial) link = &(*link)->next;
    *link = partial->next;
  }
  rn_mutex_unlock(&session->mutex);
  if (is_done) rn_capi_partial_free(partial);
}

rn_status_t rn_capi_partial_run(TF_Session* session, const char* handle,
                                const rn_capi_step_t* step) {
  RN_RETURN_IF_ERROR(rn_capi_step_check(step));
  rn_capi_partial_t* partial = handle ? acquire(session, handle) : NULL;
  if (!partial) return rn_invalid_argument("Must run 'setup' before performing partial runs!");
  rn_capi_fetches_t fetches;
  rn_status_t status = rn_capi_fetches_init(&fetches, step->output_count);
  if (rn_ok(status)) {
    rn_signature_t part = rn_capi_step_signature(step);
    status = rn_session_partial_run(session->session, partial->run, &part,
                                    (const rn_tensor_t* const*)step->input_values, fetches.tensors);
  }
  bool ran = rn_ok(status);
  if (ran) rn_capi_fetches_take(&fetches, step->output_values);
  rn_capi_fetches_clear(&fetches);
  give_back(session, partial, ran ? step->input_count : 0, ran ? step->output_count : 0);
  return status;
}

void TF_SessionPRunSetup(TF_Session* session, const TF_Output* inputs, int ninputs,
                         const TF_Output* outputs, int noutputs,
                         const TF_Operation* const* target_opers, int ntargets, const char** handle,
                         TF_Status* status) {
  rn_capi_step_t step = {.inputs = inputs,
                         .input_count = ninputs,
                         .outputs = outputs,
                         .output_count = noutputs,
                         .targets = target_opers,
                         .target_count = ntargets};
  if (handle) *handle = NULL;
  if (!session || !handle) {
    rn_capi_set(status, RN_CAPI_NULL(session ? "handle" : "session"));
    return;
  }
  rn_capi_set(status, rn_capi_partial_setup(session, &step, handle));
}

void TF_SessionPRun(TF_Session* session, const char* handle, const TF_Output* inputs,
                    TF_Tensor* const* input_values, int ninputs, const TF_Output* outputs,
                    TF_Tensor** output_values, int noutputs,
                    const TF_Operation* const* target_opers, int ntargets, TF_Status* status) {
  rn_capi_step_t step = {inputs,        input_values, ninputs,      outputs,
                         output_values, noutputs,     target_opers, ntargets};
  rn_status_t outcome =
      session ? rn_capi_partial_run(session, handle, &step) : RN_CAPI_NULL("session");
  if (!rn_ok(outcome)) RN_CAPI_CLEAR(output_values, noutputs);
  rn_capi_set(status, outcome);
}

// Handles are allocated by strdup.
void TF_DeletePRunHandle(const char* handle) { free((void*)(uintptr_t)handle); }

// Tapes: runnel/tape.h over eager/tape.h.
#include "runnel/tape.h"

#include "capi/eager/eager.h"
#include "eager/tape.h"

// Both structs are three handles.
_Static_assert(sizeof(rn_tape_slices_t) == sizeof(rn_eager_slices_t), "slices are cast");

static rn_eager_tape_t* own(rn_tape_t* tape) { return (rn_eager_tape_t*)tape; }

RN_API rn_tape_t* rn_tape_start(TFE_Context* context, const rn_tape_options_t* options,
                                TF_Status* status) {
  rn_tape_options_t none = {0};
  const rn_tape_options_t* chosen = options ? options : &none;
  rn_eager_tape_t* tape = NULL;
  rn_capi_set(status, context ? rn_eager_tape_create(rn_capi_eager(context), chosen->is_persistent,
                                                     !chosen->leaves_variables, &tape)
                              : RN_CAPI_NULL("context"));
  return (rn_tape_t*)tape;
}

RN_API void rn_tape_delete(rn_tape_t* tape) { rn_eager_tape_destroy(own(tape)); }

RN_API void rn_tape_pause(rn_tape_t* tape) {
  if (tape) rn_eager_tape_set_recording(own(tape), false);
}

RN_API void rn_tape_resume(rn_tape_t* tape) {
  if (tape) rn_eager_tape_set_recording(own(tape), true);
}

RN_API void rn_tape_watch(rn_tape_t* tape, TFE_TensorHandle* handle, TF_Status* status) {
  rn_capi_set(status, !tape     ? RN_CAPI_NULL("tape")
                      : !handle ? RN_CAPI_NULL("handle")
                                : rn_eager_tape_watch(own(tape), rn_capi_handle(handle)));
}

RN_API bool rn_tape_tracks(const rn_tape_t* tape, TFE_TensorHandle* handle) {
  return tape && handle &&
         rn_eager_tape_tracks((const rn_eager_tape_t*)tape, rn_capi_handle(handle));
}

// INVALID_ARGUMENT unless there are |count| handles.
static rn_status_t check_handles(TFE_TensorHandle* const* handles, int count, const char* what) {
  if (count < 0 || (count > 0 && !handles))
    return rn_invalid_argument("A bad list of %d %s", count, what);
  for (int i = 0; i < count; ++i)
    if (!handles[i]) return rn_invalid_argument("Number %d of the %s is NULL", i, what);
  return RN_OK;
}

RN_API bool rn_tape_gradient(rn_tape_t* tape, TFE_TensorHandle* const* targets, int target_count,
                             TFE_TensorHandle* const* sources, int source_count,
                             const rn_tape_gradient_options_t* options, TFE_TensorHandle** out,
                             TF_Status* status) {
  rn_status_t outcome =
      tape ? check_handles(targets, target_count, "targets") : RN_CAPI_NULL("tape");
  if (rn_ok(outcome)) outcome = check_handles(sources, source_count, "sources");
  if (rn_ok(outcome) && source_count > 0 && !out) outcome = RN_CAPI_NULL("out");
  if (rn_ok(outcome)) {
    rn_eager_gradient_t request = {
        .targets = (rn_eager_handle_t* const*)targets,
        .target_count = target_count,
        .sources = (rn_eager_handle_t* const*)sources,
        .source_count = source_count,
        .target_gradients = options ? (rn_eager_handle_t* const*)options->target_gradients : NULL,
        .wants_zeros = options && options->zeros,
        .slices = options ? (rn_eager_slices_t*)options->slices : NULL};
    outcome = rn_eager_tape_gradient(own(tape), &request, (rn_eager_handle_t**)out);
  }
  return rn_capi_ok(status, outcome);
}

typedef struct custom_t {
  rn_tape_gradient_fn_t fn;
  void* arg;
  void (*free_arg)(void* arg);
} custom_t;

static void custom_free(void* arg) {
  custom_t* custom = arg;
  if (custom->free_arg) custom->free_arg(custom->arg);
  RN_FREE(rn_capi_allocator(), custom);
}

static rn_status_t custom_gradient(void* arg, rn_eager_handle_t* const* outputs,
                                   int32_t output_count, rn_eager_handle_t** inputs,
                                   int32_t input_count) {
  const custom_t* custom = arg;
  TF_Status status = {0};
  custom->fn(custom->arg, (TFE_TensorHandle* const*)outputs, output_count,
             (TFE_TensorHandle**)inputs, input_count, &status);
  return status.rep;
}

RN_API void rn_tape_record(TFE_Context* context, TFE_TensorHandle* const* inputs, int input_count,
                           TFE_TensorHandle* const* outputs, int output_count,
                           rn_tape_gradient_fn_t fn, void* arg, void (*free_arg)(void* arg),
                           TF_Status* status) {
  custom_t* custom = NULL;
  rn_status_t outcome = !context ? RN_CAPI_NULL("context") : !fn ? RN_CAPI_NULL("fn") : RN_OK;
  if (rn_ok(outcome)) outcome = check_handles(inputs, input_count, "inputs");
  if (rn_ok(outcome)) outcome = check_handles(outputs, output_count, "outputs");
  if (rn_ok(outcome)) outcome = RN_NEW(rn_capi_allocator(), &custom);
  if (!rn_ok(outcome)) {
    if (free_arg) free_arg(arg);
    rn_capi_set(status, outcome);
    return;
  }
  *custom = (custom_t){fn, arg, free_arg};
  rn_eager_custom_t engine = {custom_gradient, custom_free, custom};
  rn_capi_set(status, rn_eager_tape_record_custom(
                          rn_capi_eager(context), (rn_eager_handle_t* const*)inputs, input_count,
                          (rn_eager_handle_t* const*)outputs, output_count, engine));
}

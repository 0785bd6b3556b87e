// See oip.h.
#include "serve/front/oip.h"

#include <limits.h>

#include "base/container.h"
#include "serve/front/oip_app.h"
#include "serve/front/request_log.h"
#include "serve/front/request_trace.h"

const char* rn_oip_type_name(rn_dtype_t dtype) {
  switch (dtype) {
#define OIP_NAME(type, name, value) \
  case RN_##type:                   \
    return name;
    RN_OIP_TYPES(OIP_NAME)
#undef OIP_NAME
    default:
      return NULL;
  }
}

rn_dtype_t rn_oip_type_parse(rn_str_t text) {
#define OIP_PARSE(type, name, value) \
  if (rn_str_is(text, name)) return RN_##type;
  RN_OIP_TYPES(OIP_PARSE)
#undef OIP_PARSE
  return RN_INVALID;
}

void rn_oip_infer_init(rn_oip_infer_t* infer, rn_front_t* front) {
  *infer = (rn_oip_infer_t){.front = front};
  rn_arena_init(&infer->arena, front->allocator);
  rn_strbuf_init(&infer->sample, front->allocator);
  infer->predict.allocator = front->allocator;
  infer->predict.deadline_ns = INT64_MAX;
}

// Makes room for one more element in |*items|, an array in |arena|.
static rn_status_t grow(rn_arena_t* arena, int count, int* room, size_t size, void** items) {
  if (count < *room) return RN_OK;
  if (count > INT_MAX / 2) return rn_invalid_argument("The request has too many tensors");
  int more = count ? 2 * count : 4;
  void* moved = NULL;
  RN_RETURN_IF_ERROR(rn_arena_alloc_array(arena, (size_t)more, size, &moved));
  if (count) memcpy(moved, *items, (size_t)count * size);
  *items = moved;
  *room = more;
  return RN_OK;
}

rn_status_t rn_oip_add_input(rn_oip_infer_t* infer, rn_oip_input_t** out) {
  rn_predict_t* predict = &infer->predict;
  int room = infer->input_room;
  RN_RETURN_IF_ERROR(grow(&infer->arena, infer->input_count, &room, sizeof *predict->inputs,
                          (void**)&predict->inputs));
  RN_RETURN_IF_ERROR(grow(&infer->arena, infer->input_count, &infer->input_room,
                          sizeof *infer->inputs, (void**)&infer->inputs));
  *out = &infer->inputs[infer->input_count++];
  (*out)->binary_size = -1;
  predict->input_count = infer->input_count;
  return RN_OK;
}

rn_status_t rn_oip_add_output(rn_oip_infer_t* infer, rn_oip_output_t** out) {
  RN_RETURN_IF_ERROR(grow(&infer->arena, infer->output_count, &infer->output_room,
                          sizeof *infer->outputs, (void**)&infer->outputs));
  *out = &infer->outputs[infer->output_count++];
  return RN_OK;
}

void rn_oip_infer_clear(rn_oip_infer_t* infer) {
  rn_predict_clear(&infer->predict);
  rn_strbuf_clear(&infer->sample);
  rn_arena_clear(&infer->arena);
}

// Parameters.

static rn_status_t wrong_kind(rn_str_t key, const char* kind) {
  return rn_invalid_argument("parameter '%.*s' must be %s", RN_STR_ARGS(key), kind);
}

static rn_status_t take_count(rn_str_t key, const rn_oip_value_t* value, int64_t* out) {
  if (value->kind != RN_OIP_INT || value->number < 0)
    return wrong_kind(key, "an integer that is not negative");
  *out = value->number;
  return RN_OK;
}

static rn_status_t take_bool(rn_str_t key, const rn_oip_value_t* value, bool* out) {
  if (value->kind != RN_OIP_BOOL) return wrong_kind(key, "a boolean");
  *out = value->number != 0;
  return RN_OK;
}

static rn_status_t take_string(rn_str_t key, const rn_oip_value_t* value, rn_str_t* out) {
  if (value->kind != RN_OIP_STRING) return wrong_kind(key, "a string");
  *out = value->text;
  return RN_OK;
}

// Triton's highest priority is 1, and 0 means the default; here the highest number runs first, and
// the default is 0. So requests without a priority run after those with one.
static int priority_of(int64_t level) {
  if (!level) return 0;
  return level < INT_MAX ? INT_MAX - (int)level : 1;
}

rn_status_t rn_oip_infer_set(rn_oip_infer_t* infer, rn_str_t key, const rn_oip_value_t* value) {
  if (rn_str_is(key, "timeout")) return take_count(key, value, &infer->timeout_us);
  if (rn_str_is(key, "signature_name")) return take_string(key, value, &infer->predict.signature);
  if (rn_str_is(key, "user")) return take_string(key, value, &infer->user);
  if (rn_str_is(key, "binary_data_output")) return take_bool(key, value, &infer->is_binary);
  if (!rn_str_is(key, "priority")) return RN_OK;
  int64_t level = 0;
  RN_RETURN_IF_ERROR(take_count(key, value, &level));
  infer->predict.priority = priority_of(level);
  return RN_OK;
}

static rn_status_t set_place(rn_oip_place_t* place, rn_str_t key, const rn_oip_value_t* value) {
  int64_t count = 0;
  if (rn_str_is(key, "shared_memory_region")) return take_string(key, value, &place->region);
  if (rn_str_is(key, "shared_memory_offset")) {
    RN_RETURN_IF_ERROR(take_count(key, value, &count));
    place->offset = (uint64_t)count;
  } else if (rn_str_is(key, "shared_memory_byte_size")) {
    RN_RETURN_IF_ERROR(take_count(key, value, &count));
    place->size = (uint64_t)count;
    place->has_size = true;
  }
  return RN_OK;
}

rn_status_t rn_oip_input_set(rn_oip_input_t* input, rn_str_t key, const rn_oip_value_t* value) {
  if (rn_str_is(key, "binary_data_size")) return take_count(key, value, &input->binary_size);
  return set_place(&input->place, key, value);
}

rn_status_t rn_oip_output_set(rn_oip_output_t* output, rn_str_t key, const rn_oip_value_t* value) {
  if (rn_str_is(key, "binary_data")) {
    output->has_binary = true;
    return take_bool(key, value, &output->is_binary);
  }
  if (rn_str_is(key, "classification")) return take_count(key, value, &output->class_count);
  return set_place(&output->place, key, value);
}

static rn_status_t check_place(const rn_oip_infer_t* infer, rn_str_t name,
                               const rn_oip_place_t* place) {
  if (!place->region.size && !place->has_size) return RN_OK;
  if (!place->region.size || !place->has_size)
    return rn_invalid_argument(
        "'shared_memory_region' and 'shared_memory_byte_size' must be specified together for "
        "tensor '%.*s'",
        RN_STR_ARGS(name));
  if (!infer->is_local || !infer->front->shared_memory)
    return rn_status_make(RN_CODE_PERMISSION_DENIED,
                          "Shared memory is for clients on this machine only");
  return RN_OK;
}

rn_status_t rn_oip_input_check(const rn_oip_infer_t* infer, const rn_oip_input_t* input) {
  if (!input->name.size) return rn_invalid_argument("An input has no name");
  if (input->dtype == RN_INVALID)
    return rn_invalid_argument("Input '%.*s' has no datatype that is known",
                               RN_STR_ARGS(input->name));
  int64_t count = 0;
  if (input->shape.rank < 0 || input->shape.rank > RN_MAX_RANK || !rn_shape_is_full(input->shape) ||
      !rn_shape_count(input->shape, &count))
    return rn_invalid_argument("Input '%.*s' has a shape with negative or too large dimensions",
                               RN_STR_ARGS(input->name));
  return check_place(infer, input->name, &input->place);
}

const rn_oip_output_t* rn_oip_output_of(const rn_oip_infer_t* infer, rn_str_t name) {
  for (int i = 0; i < infer->output_count; ++i)
    if (rn_str_eq(infer->outputs[i].name, name)) return &infer->outputs[i];
  return NULL;
}

// Running.

rn_status_t rn_oip_find(rn_front_t* front, rn_str_t name, rn_str_t version, rn_version_t** out) {
  rn_model_spec_t spec = {.name = name, .version = -1};
  if (version.size && (!rn_str_to_i64(version, &spec.version) || spec.version < 0)) {
    spec.version = -1;
    spec.label = version;
  }
  rn_status_t status = rn_models_find(front->models, &spec, out);
  if (rn_status_code(status) != RN_CODE_NOT_FOUND) return status;
  rn_status_free(status);
  if (!version.size)
    return rn_not_found("Request for unknown model: '%.*s' is not found", RN_STR_ARGS(name));
  return rn_not_found("Request for unknown model: '%.*s' version %.*s is not found",
                      RN_STR_ARGS(name), RN_STR_ARGS(version));
}

int rn_oip_signature(const rn_backend_t* backend, rn_str_t name) {
  int index = rn_backend_signature(backend, name);
  return index < 0 && !name.size && backend->signature_count == 1 ? 0 : index;
}

static rn_status_t finish_outputs(rn_oip_infer_t* infer) {
  for (int i = 0; i < infer->predict.output_count; ++i) {
    rn_predict_value_t* output = &infer->predict.outputs[i];
    const rn_oip_output_t* want = rn_oip_output_of(infer, output->name);
    if (want && want->class_count)
      RN_RETURN_IF_ERROR(rn_oip_classes(infer, output->name, want->class_count, &output->value));
    if (want && want->place.region.size)
      RN_RETURN_IF_ERROR(rn_oip_output_share(infer, &want->place, output));
  }
  return RN_OK;
}

static void on_predicted(rn_predict_t* predict, rn_status_t status) {
  rn_oip_infer_t* infer = RN_CONTAINER_OF(predict, rn_oip_infer_t, predict);
  if (rn_ok(status)) status = finish_outputs(infer);
  infer->done(infer, status);
}

// Names of models that do not exist would make a series each.
void rn_oip_infer_count(const rn_oip_infer_t* infer, rn_code_t code) {
  if (!infer->is_found) return;
  const rn_predict_t* predict = &infer->predict;
  rn_front_count(infer->front, infer->model, "infer", infer->entry, code, &predict->times);
  const rn_traced_t traced = {.model = infer->model,
                              .version = infer->number,
                              .id = infer->id,
                              .is_grpc = *infer->entry == 'G',
                              .times = &predict->times};
  rn_request_trace_add(infer->front->trace, &traced);
  if (code != RN_CODE_OK) return;
  rn_front_count_answer(infer->front, infer->model, predict->rows, predict->marks);
  rn_request_log_add_predict(infer->front->log, infer->model, infer->number, predict,
                             rn_strbuf_view(&infer->sample));
}

static rn_status_t prepare(rn_oip_infer_t* infer) {
  rn_predict_t* predict = &infer->predict;
  for (int i = 0; i < infer->input_count; ++i) predict->inputs[i].name = infer->inputs[i].name;
  rn_str_t* filter = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&infer->arena, (size_t)infer->output_count, &filter));
  for (int i = 0; i < infer->output_count; ++i) {
    filter[i] = infer->outputs[i].name;
    RN_RETURN_IF_ERROR(check_place(infer, filter[i], &infer->outputs[i].place));
  }
  predict->filter = filter;
  predict->filter_count = infer->output_count;
  predict->done = on_predicted;
  int64_t timeout_ns, at;
  if (infer->timeout_us && rn_mul_i64_ok(infer->timeout_us, 1000, &timeout_ns) &&
      rn_add_i64_ok(predict->times.begun_ns, timeout_ns, &at) && at < predict->deadline_ns)
    predict->deadline_ns = at;
  return RN_OK;
}

void rn_oip_infer_run(rn_oip_infer_t* infer) {
  rn_version_t* version = NULL;
  rn_status_t status = prepare(infer);
  if (rn_ok(status)) status = rn_oip_find(infer->front, infer->model, infer->version, &version);
  if (rn_status_code(status) == RN_CODE_NOT_FOUND &&
      rn_oip_is_app(infer->front, infer->model, infer->version)) {
    rn_status_free(status);
    rn_oip_app_run(infer);
    return;
  }
  if (!rn_ok(status)) {
    infer->done(infer, status);
    return;
  }
  infer->number = rn_version_number(version);
  infer->is_found = true;
  const rn_backend_t* backend = rn_version_backend(version);
  int signature = rn_oip_signature(backend, infer->predict.signature);
  if (signature >= 0) {
    infer->predict.signature = backend->signatures[signature].name;
    infer->signature = &backend->signatures[signature];
  }
  rn_request_log_take(infer->front->log, infer->model, infer->number, &infer->predict,
                      &infer->sample);
  rn_version_predict(version, &infer->predict);
  rn_version_release(version);
}

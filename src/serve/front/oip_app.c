// See oip_app.h.
#include "serve/front/oip_app.h"

#include "base/vec.h"
#include "serve/front/clipper.h"
#include "serve/select/apps.h"
#include "tensor/tstring.h"

#define PLATFORM "runnel_application"

// The outputs, by name.
#define OIP_APP_OUTPUTS(X)                                 \
  X(OUTPUT, "output", STRING)    /* a number, or a text */ \
  X(QUERY_ID, "query_id", INT64) /* for feedback */        \
  X(DEFAULT, "default", BOOL)                              \
  X(CONFIDENCE, "confidence", DOUBLE)                      \
  X(MISSING, "missing", DOUBLE) /* share of the models without an answer */

enum {
#define OIP_APP_ENUM(id, name, type) OIP_APP_##id,
  OIP_APP_OUTPUTS(OIP_APP_ENUM)
#undef OIP_APP_ENUM
      OIP_APP_COUNT
};
static const struct {
  rn_str_t name;
  rn_dtype_t dtype;
} outputs[] = {
#define OIP_APP_ROW(id, name, type) {{name, sizeof name - 1}, RN_##type},
    OIP_APP_OUTPUTS(OIP_APP_ROW)
#undef OIP_APP_ROW
};

typedef struct oip_app_t {
  rn_app_query_t query;  // first
  rn_app_t* app;         // Retained
  rn_oip_infer_t* infer;
} oip_app_t;

static rn_app_t* find(const rn_front_t* front, rn_str_t name, rn_str_t version) {
  bool may_be = front->apps && (!version.size || rn_str_is(version, "1"));
  return may_be ? rn_apps_find(front->apps, name) : NULL;
}

bool rn_oip_is_app(const rn_front_t* front, rn_str_t name, rn_str_t version) {
  rn_app_t* app = find(front, name, version);
  rn_app_release(app);
  return app != NULL;
}

// Dimensions of inputs and outputs.
static int64_t many = -1, one = 1;

static rn_status_t input_of(const rn_front_t* front, rn_str_t name, rn_dtype_t* out) {
  rn_app_t* app = find(front, name, RN_STR(""));
  if (!app)
    return rn_not_found("Request for unknown model: '%.*s' is not found", RN_STR_ARGS(name));
  *out = rn_app_input_dtype(app);
  rn_app_release(app);
  return RN_OK;
}

rn_status_t rn_oip_app_metadata(const rn_front_t* front, rn_str_t name, rn_arena_t* arena,
                                rn_pb_inference_ModelMetadataResponse_t* out) {
  rn_dtype_t input = RN_INVALID;
  RN_RETURN_IF_ERROR(input_of(front, name, &input));
  *out = (rn_pb_inference_ModelMetadataResponse_t){.name = name, .platform = RN_STR(PLATFORM)};
  RN_RETURN_IF_ERROR(RN_OIP_LIST(arena, &out->versions, 1));
  out->versions.items[0] = RN_STR("1");
  RN_RETURN_IF_ERROR(RN_OIP_LIST(arena, &out->inputs, 1));
  out->inputs.items[0].name = RN_STR("input");
  out->inputs.items[0].datatype = rn_str(rn_oip_type_name(input));
  out->inputs.items[0].shape.items = input == RN_STRING ? &one : &many;
  out->inputs.items[0].shape.count = 1;
  RN_RETURN_IF_ERROR(RN_OIP_LIST(arena, &out->outputs, OIP_APP_COUNT));
  for (int i = 0; i < OIP_APP_COUNT; ++i) {
    out->outputs.items[i].name = outputs[i].name;
    out->outputs.items[i].datatype = rn_str(rn_oip_type_name(outputs[i].dtype));
    out->outputs.items[i].shape.items = &one;
    out->outputs.items[i].shape.count = 1;
  }
  return RN_OK;
}

rn_status_t rn_oip_app_config(const rn_front_t* front, rn_str_t name, rn_arena_t* arena,
                              rn_pb_inference_ModelConfig_t* out) {
  rn_dtype_t input = RN_INVALID;
  RN_RETURN_IF_ERROR(input_of(front, name, &input));
  *out = (rn_pb_inference_ModelConfig_t){
      .name = name, .platform = RN_STR(PLATFORM), .backend = RN_STR("runnel")};
  RN_RETURN_IF_ERROR(RN_OIP_LIST(arena, &out->input, 1));
  out->input.items[0].name = RN_STR("input");
  out->input.items[0].data_type = rn_oip_config_type(input);
  out->input.items[0].dims.items = input == RN_STRING ? &one : &many;
  out->input.items[0].dims.count = 1;
  RN_RETURN_IF_ERROR(RN_OIP_LIST(arena, &out->output, OIP_APP_COUNT));
  for (int i = 0; i < OIP_APP_COUNT; ++i) {
    out->output.items[i].name = outputs[i].name;
    out->output.items[i].data_type = rn_oip_config_type(outputs[i].dtype);
    out->output.items[i].dims.items = &one;
    out->output.items[i].dims.count = 1;
  }
  return RN_OK;
}

typedef struct oip_app_names_t {
  const rn_front_t* front;
  rn_arena_t* arena;
  RN_VEC(rn_str_t) names;
  rn_status_t status;
} oip_app_names_t;

static void add_name(void* arg, rn_app_t* app) {
  oip_app_names_t* list = arg;
  rn_str_t name = rn_app_definition(app)->name;
  rn_version_t* model = NULL;
  if (!rn_ok(list->status)) return;
  rn_status_t missing = rn_oip_find((rn_front_t*)list->front, name, RN_STR(""), &model);
  bool is_hidden = rn_ok(missing);
  rn_status_free(missing);
  rn_version_release(model);
  if (is_hidden) return;
  list->status = rn_arena_str(list->arena, name, &name);
  if (rn_ok(list->status)) list->status = rn_vec_push(&list->names, list->front->allocator, name);
}

rn_status_t rn_oip_app_names(const rn_front_t* front, rn_arena_t* arena, rn_str_t** out,
                             size_t* out_count) {
  oip_app_names_t list = {.front = front, .arena = arena};
  *out_count = 0;
  if (!front->apps) return RN_OK;
  rn_status_t status = rn_status_join(rn_apps_each(front->apps, add_name, &list), list.status);
  if (rn_ok(status)) status = RN_ARENA_ARRAY(arena, list.names.count, out);
  if (rn_ok(status) && list.names.count)
    memcpy(*out, list.names.items, list.names.count * sizeof **out);
  if (rn_ok(status)) *out_count = list.names.count;
  rn_vec_free(&list.names, front->allocator);
  return status;
}

// Takes the only input as a row of the application's type.
static rn_status_t take_input(oip_app_t* self) {
  rn_predict_t* predict = &self->infer->predict;
  rn_dtype_t wanted = rn_app_input_dtype(self->app);
  if (predict->input_count != 1)
    return rn_invalid_argument("an application has one input, not %d", predict->input_count);
  rn_tensor_t* input = &predict->inputs[0].value;
  if (input->dtype != wanted)
    return rn_invalid_argument("the input of application '%.*s' is %s, not %s",
                               RN_STR_ARGS(self->infer->model), rn_oip_type_name(wanted),
                               rn_oip_type_name(input->dtype));
  bool is_row = input->rank == 1 || (input->rank == 2 && rn_tensor_dim(input, 0) == 1);
  if (!is_row || !input->count || (wanted == RN_STRING && input->count != 1))
    return rn_invalid_argument("an application takes one row at a time: shape [%s] or [1,%s]",
                               wanted == RN_STRING ? "1" : "n", wanted == RN_STRING ? "1" : "n");
  int64_t count = input->count;
  rn_status_t status =
      rn_tensor_reshape(input, wanted, (rn_shape_t){1, &count}, &self->query.input);
  rn_tensor_clear(input);
  return status;
}

// Which outputs the request wants, in its order, in |which|; returns their number.
static rn_status_t choose(const rn_predict_t* predict, int which[OIP_APP_COUNT], int* out_count) {
  *out_count = predict->filter_count ? predict->filter_count : OIP_APP_COUNT;
  for (int i = 0; i < OIP_APP_COUNT; ++i) which[i] = i;
  if (predict->filter_count > OIP_APP_COUNT)
    return rn_invalid_argument("an application has %d outputs", OIP_APP_COUNT);
  for (int i = 0; i < predict->filter_count; ++i) {
    for (which[i] = 0; which[i] < OIP_APP_COUNT; ++which[i])
      if (rn_str_eq(outputs[which[i]].name, predict->filter[i])) break;
    if (which[i] == OIP_APP_COUNT)
      return rn_invalid_argument("an application has no output '%.*s'",
                                 RN_STR_ARGS(predict->filter[i]));
  }
  return RN_OK;
}

static rn_status_t put_answer(const rn_app_query_t* query, rn_allocator_t allocator,
                              rn_tensor_t* out) {
  const rn_answer_t* answer = &query->answer;
  rn_strbuf_t text;
  rn_strbuf_init(&text, allocator);
  if (answer->is_text)
    rn_strbuf_append_n(&text, answer->text, answer->size);
  else
    rn_clipper_put_answer(&text, answer);
  rn_status_t status = rn_strbuf_status(&text);
  if (rn_ok(status) && !rn_tstring_assign(RN_DATA(out, rn_tstring_t), text.data, text.size))
    status = rn_out_of_memory();
  rn_strbuf_clear(&text);
  return status;
}

static rn_status_t fill(const rn_app_query_t* query, int which, rn_allocator_t allocator,
                        rn_tensor_t* out) {
  RN_RETURN_IF_ERROR(rn_tensor_create(allocator, outputs[which].dtype, (rn_shape_t){1, &one}, out));
  switch (which) {
    case OIP_APP_OUTPUT:
      return put_answer(query, allocator, out);
    case OIP_APP_QUERY_ID:
      *RN_DATA(out, int64_t) = query->id;
      break;
    case OIP_APP_DEFAULT:
      *RN_DATA(out, bool) = (query->marks & RN_MARK_DEFAULT) != 0;
      break;
    case OIP_APP_CONFIDENCE:
      *RN_DATA(out, double) = query->confidence;
      break;
    default:
      *RN_DATA(out, double) = query->asked ? (double)query->missing / query->asked : 0;
  }
  return RN_OK;
}

static rn_status_t answer(const oip_app_t* self) {
  rn_predict_t* predict = &self->infer->predict;
  int which[OIP_APP_COUNT], count;
  RN_RETURN_IF_ERROR(choose(predict, which, &count));
  RN_RETURN_IF_ERROR(rn_alloc_array(predict->allocator, (size_t)count, sizeof *predict->outputs,
                                    (void**)&predict->outputs));
  predict->output_count = count;
  for (int i = 0; i < count; ++i) {
    predict->outputs[i].name = outputs[which[i]].name;
    RN_RETURN_IF_ERROR(
        fill(&self->query, which[i], predict->allocator, &predict->outputs[i].value));
  }
  return RN_OK;
}

// Ends the inference and frees |self|.
static void end(oip_app_t* self, rn_status_t status) {
  rn_predict_t* predict = &self->infer->predict;
  rn_allocator_t allocator = self->infer->front->allocator;
  int64_t begun_ns = predict->times.begun_ns;
  predict->times = self->query.times;
  predict->times.begun_ns = begun_ns;
  predict->marks = self->query.marks;
  predict->rows = 1;
  if (rn_ok(status)) status = answer(self);
  rn_app_query_clear(&self->query);
  rn_app_release(self->app);
  RN_FREE(allocator, self);
  predict->done(predict, status);
}

static void on_answered(rn_app_query_t* query, rn_status_t status) {
  end((oip_app_t*)query, status);
}

void rn_oip_app_run(rn_oip_infer_t* infer) {
  rn_front_t* front = infer->front;
  rn_predict_t* predict = &infer->predict;
  rn_app_t* app = find(front, infer->model, infer->version);
  oip_app_t* self = NULL;
  rn_status_t status = app ? RN_NEW(front->allocator, &self)
                           : rn_not_found("Request for unknown model: '%.*s' is not found",
                                          RN_STR_ARGS(infer->model));
  if (!rn_ok(status)) {  // it was removed meanwhile
    rn_app_release(app);
    predict->done(predict, status);
    return;
  }
  infer->is_found = true;
  infer->number = 1;
  self->app = app;
  self->infer = infer;
  self->query =
      (rn_app_query_t){.user = infer->user,
                       .begun_ns = predict->times.begun_ns,
                       .deadline_ns = predict->deadline_ns == INT64_MAX ? 0 : predict->deadline_ns,
                       .cancel = predict->cancel,
                       .done = on_answered,
                       .allocator = front->allocator};
  int which[OIP_APP_COUNT], count;
  status = choose(predict, which, &count);
  if (rn_ok(status)) status = take_input(self);
  if (rn_ok(status))
    rn_app_predict(front->apps, app, &self->query);
  else
    end(self, status);
}

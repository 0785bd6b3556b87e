// A model for tests: three signatures with simple arithmetic, computed at once, by hand, or after a
// time that depends on the rows, of a simulated clock.
#ifndef RUNNEL_TESTS_SERVE_FAKE_MODEL_H_
#define RUNNEL_TESTS_SERVE_FAKE_MODEL_H_

#include "../support/status.h"
#include "serve/model/backend.h"
#include "serve/predict.h"
#include "tensor/tstring.h"

static inline rn_allocator_t memory(void) { return rn_allocator_system(); }

// "add": y = a + b in [-1,2]; z = a. "serving_default": y = 2 x for [-1,-1]. "text": the string s
// with "!" behind it. "whole": y = the sum of x, one number, so that it cannot be batched.
static const int64_t fake_dims_any[] = {-1, -1}, fake_dims_two[] = {-1, 2}, fake_dims_one[] = {-1};
#define FAKE_PORT(name_, type, rank, dims)                                                      \
  {                                                                                             \
    .name = RN_STR(name_), .tensor = RN_STR(name_ ":0"), .dtype = type, .shape = { rank, dims } \
  }
static const rn_serve_port_t fake_add_in[] = {FAKE_PORT("a", RN_FLOAT, 2, fake_dims_two),
                                              FAKE_PORT("b", RN_FLOAT, 2, fake_dims_two)};
static const rn_serve_port_t fake_add_out[] = {FAKE_PORT("y", RN_FLOAT, 2, fake_dims_two),
                                               FAKE_PORT("z", RN_FLOAT, 2, fake_dims_two)};
static const rn_serve_port_t fake_x[] = {FAKE_PORT("x", RN_FLOAT, 2, fake_dims_any)};
static const rn_serve_port_t fake_y[] = {FAKE_PORT("y", RN_FLOAT, 2, fake_dims_any)};
static const rn_serve_port_t fake_s[] = {FAKE_PORT("s", RN_STRING, 1, fake_dims_one)};
static const rn_serve_port_t fake_whole[] = {FAKE_PORT("y", RN_FLOAT, 0, NULL)};
enum { FAKE_ADD, FAKE_DOUBLE, FAKE_TEXT, FAKE_WHOLE, FAKE_SIGNATURES };
static const rn_serve_signature_t fake_signatures[FAKE_SIGNATURES] = {
    {RN_STR("add"), RN_STR("tensorflow/serving/predict"), fake_add_in, fake_add_out, 2, 2, true,
     true},
    {RN_STR("serving_default"), RN_STR("tensorflow/serving/predict"), fake_x, fake_y, 1, 1, true,
     true},
    {RN_STR("text"), RN_STR("tensorflow/serving/predict"), fake_s, fake_s, 1, 1, true, true},
    {RN_STR("whole"), RN_STR("tensorflow/serving/predict"), fake_x, fake_whole, 1, 1, false, false},
};

typedef struct fake_model_t {
  rn_backend_t base;  // first
  // Called for each batch; NULL: fake_compute and |done| at once.
  void (*on_run)(struct fake_model_t* fake, rn_backend_run_t* run);
  void* self;
  _Atomic int runs;
  _Atomic int64_t rows;
  _Atomic bool is_down;
} fake_model_t;

static inline int64_t fake_rows(const rn_backend_run_t* run) {
  return rn_tensor_dim(&run->inputs[0], 0);
}

// The results of |run|, without |done|.
static inline rn_status_t fake_compute(rn_backend_run_t* run) {
  const rn_tensor_t* in = run->inputs;
  if (run->signature == FAKE_WHOLE) {
    RN_RETURN_IF_ERROR(rn_tensor_create(memory(), RN_FLOAT, RN_SHAPE_SCALAR, run->outputs));
    float sum = 0;
    for (int64_t i = 0; i < in->count; ++i) sum += RN_DATA(in, float)[i];
    *RN_DATA(run->outputs, float) = sum;
    return RN_OK;
  }
  for (int i = 0; i < fake_signatures[run->signature].output_count; ++i) {
    if (run->wanted && !run->wanted[i]) continue;
    rn_tensor_t* out = &run->outputs[i];
    RN_RETURN_IF_ERROR(rn_tensor_create(memory(), in->dtype, rn_tensor_shape(in), out));
    for (int64_t k = 0; k < in->count; ++k) {
      if (run->signature == FAKE_TEXT) {
        rn_str_t text = rn_tstring_view(&RN_DATA(in, rn_tstring_t)[k]);
        char* to = rn_tstring_resize(&RN_DATA(out, rn_tstring_t)[k], text.size + 1);
        memcpy(to, text.data, text.size);
        to[text.size] = '!';
      } else {
        float other = run->signature == FAKE_DOUBLE ? RN_DATA(in, float)[k]
                      : i                           ? 0
                                                    : RN_DATA(&in[1], float)[k];
        RN_DATA(out, float)[k] = RN_DATA(in, float)[k] + other;
      }
    }
  }
  return RN_OK;
}

static inline void fake_run(rn_backend_t* backend, rn_backend_run_t* run) {
  fake_model_t* fake = (fake_model_t*)backend;
  ++fake->runs;
  fake->rows += fake_rows(run);
  if (fake->on_run)
    fake->on_run(fake, run);
  else
    run->done(run, fake_compute(run));
}

static inline void fake_destroy(rn_backend_t* backend) { (void)backend; }
static inline bool fake_is_down(rn_backend_t* backend) { return ((fake_model_t*)backend)->is_down; }
static const rn_backend_vtable_t fake_vtable = {
    .kind = "fake", .run = fake_run, .destroy = fake_destroy, .is_down = fake_is_down};

static inline void fake_init(fake_model_t* fake) {
  *fake = (fake_model_t){.base = {.vtable = &fake_vtable,
                                  .signatures = fake_signatures,
                                  .signature_count = FAKE_SIGNATURES,
                                  .lanes = 1}};
}

static inline rn_tensor_t fake_floats(int64_t rows, int64_t columns, float first) {
  rn_tensor_t tensor;
  int64_t dims[] = {rows, columns};
  OK(rn_tensor_create(memory(), RN_FLOAT, (rn_shape_t){2, dims}, &tensor));
  for (int64_t i = 0; i < tensor.count; ++i) RN_DATA(&tensor, float)[i] = first + (float)i;
  return tensor;
}

// A request and what became of it.
typedef struct fake_request_t {
  rn_predict_t predict;  // first
  rn_predict_value_t inputs[2];
  _Atomic int answers;
  rn_code_t code;
  char message[400];
  int64_t answered_ns;
  const rn_env_t* env;
  void (*then)(struct fake_request_t* request);
  void* self;
} fake_request_t;

static inline void fake_answered(rn_predict_t* predict, rn_status_t status) {
  fake_request_t* request = (fake_request_t*)predict;
  request->code = rn_status_code(status);
  strncpy(request->message, rn_status_message(status), sizeof request->message - 1);
  rn_status_free(status);
  if (request->env) request->answered_ns = request->env->now_ns(request->env->self);
  void (*then)(fake_request_t*) = request->then;
  ++request->answers;  // without |then|, the record may be gone now
  if (then) then(request);
}

// A request to "serving_default"; fake_double(.., 0, ..) has no tensor yet.
static inline void fake_request_init(fake_request_t* request, const char* signature, int inputs) {
  *request = (fake_request_t){.predict = {.signature = rn_str(signature),
                                          .input_count = inputs,
                                          .deadline_ns = INT64_MAX,
                                          .done = fake_answered}};
  request->predict.inputs = request->inputs;
}
static inline void fake_double(fake_request_t* request, int64_t rows, int64_t columns,
                               float first) {
  fake_request_init(request, "", 1);
  request->inputs[0] = (rn_predict_value_t){RN_STR("x"), fake_floats(rows, columns, first)};
}
// Whether the answer is that of fake_double, and nothing else.
static inline bool fake_is_doubled(const fake_request_t* request, int64_t rows, int64_t columns,
                                   float first) {
  if (request->answers != 1 || request->code || request->predict.output_count != 1) return false;
  const rn_tensor_t* y = &request->predict.outputs[0].value;
  if (y->rank != 2 || rn_tensor_dim(y, 0) != rows || rn_tensor_dim(y, 1) != columns) return false;
  for (int64_t i = 0; i < y->count; ++i)
    if (RN_DATA(y, float)[i] != 2 * (first + (float)i)) return false;
  return true;
}

#endif  // RUNNEL_TESTS_SERVE_FAKE_MODEL_H_

// Versions: what a request must look like, which replica runs it, and who holds a version.
#include "serve/model/version.h"

#include "fake_time.h"

typedef struct served_t {
  rn_version_t* version;
  fake_model_t fakes[3];
  fake_time_t time;
  int idle;
} served_t;

static void on_idle(void* self, rn_version_t* version) {
  ++((served_t*)self)->idle;
  rn_version_destroy(version);
}

static void serve(served_t* served, int replicas, bool joins) {
  *served = (served_t){0};
  fake_time_init(&served->time, 1);
  rn_backend_t* backends[3];
  for (int i = 0; i < replicas; ++i) {
    fake_init(&served->fakes[i]);
    backends[i] = &served->fakes[i].base;
  }
  rn_version_options_t options = {.model = RN_STR("half"),
                                  .number = 7,
                                  .replicas = backends,
                                  .replica_count = replicas,
                                  .batching = {.is_on = joins,
                                               .size = {.policy = RN_BATCH_FIXED, .max = 16},
                                               .env = &served->time.env,
                                               .allocator = memory()},
                                  .env = &served->time.env,
                                  .allocator = memory(),
                                  .idle = on_idle,
                                  .self = served};
  OK(rn_version_create(&options, &served->version));
}

static void unserve(served_t* served) {
  rn_version_release(served->version);
  cr_assert_eq(served->idle, 1);
}

static void ask(served_t* served, fake_request_t* request) {
  rn_version_predict(served->version, &request->predict);
  cr_assert_eq(request->answers, 1);
}

#define SAYS(request, code_, text)                            \
  do {                                                        \
    cr_assert_eq((request).code, RN_CODE_##code_);            \
    cr_assert_str_eq((request).message, text);                \
    cr_assert_eq((request).predict.output_count, 0);          \
    cr_assert(!rn_tensor_is_set(&(request).inputs[0].value)); \
    cr_assert_null((request).predict.outputs);                \
  } while (0)

static void add(fake_request_t* request, const char* first, const char* second) {
  fake_request_init(request, "add", 2);
  request->inputs[0] = (rn_predict_value_t){rn_str(first), fake_floats(3, 2, 1)};
  request->inputs[1] = (rn_predict_value_t){rn_str(second), fake_floats(3, 2, 100)};
}

Test(version, answers_and_puts_inputs_in_order) {
  served_t served;
  serve(&served, 1, false);
  cr_assert(rn_str_is(rn_version_model(served.version), "half"));
  cr_assert_eq(rn_version_number(served.version), 7);
  cr_assert_eq(rn_version_replica_count(served.version), 1);
  fake_request_t request;
  fake_double(&request, 3, 4, 5);
  ask(&served, &request);
  cr_assert(fake_is_doubled(&request, 3, 4, 5));
  rn_predict_clear(&request.predict);
  add(&request, "b", "a");
  rn_str_t filter[] = {RN_STR("z"), RN_STR("y")};
  request.predict.filter = filter;
  request.predict.filter_count = 2;
  ask(&served, &request);
  cr_assert_eq(request.code, RN_CODE_OK, "%s", request.message);
  cr_assert_eq(request.predict.output_count, 2);
  cr_assert(rn_str_is(request.predict.outputs[0].name, "z"));
  cr_assert_eq(RN_DATA(&request.predict.outputs[0].value, float)[0], 100);  // a came second
  cr_assert_eq(RN_DATA(&request.predict.outputs[1].value, float)[5], 6 + 105);
  rn_predict_clear(&request.predict);
  unserve(&served);
}

Test(version, says_what_is_wrong_with_names) {
  served_t served;
  serve(&served, 1, false);
  fake_request_t request;
  fake_double(&request, 1, 1, 1);
  request.predict.signature = RN_STR("other");
  ask(&served, &request);
  SAYS(request, FAILED_PRECONDITION, "Serving signature key \"other\" not found.");
  fake_double(&request, 1, 1, 1);
  request.predict.signature = RN_STR("add");
  ask(&served, &request);
  SAYS(request, INVALID_ARGUMENT,
       "input size does not match signature: 1!=2 len({x}) != len({a,b}). Sent extra: {x}. Missing "
       "but required: {a,b}.");
  add(&request, "c", "a");
  ask(&served, &request);
  SAYS(request, INVALID_ARGUMENT,
       "Signature input alias: b(feed name: b:0) not found in request and no default value "
       "provided. Inputs expected to be in the request {a,c}, or default input alias set: ");
  add(&request, "a", "a");
  ask(&served, &request);
  cr_assert_eq(request.code, RN_CODE_INVALID_ARGUMENT);
  rn_str_t filter[] = {RN_STR("y"), RN_STR("y"), RN_STR("y")};
  add(&request, "a", "b");
  request.predict.filter = filter;
  request.predict.filter_count = 3;
  ask(&served, &request);
  SAYS(request, INVALID_ARGUMENT, "duplicate output tensor alias: y");
  filter[0] = RN_STR("w");
  add(&request, "a", "b");
  request.predict.filter = filter;
  request.predict.filter_count = 1;
  ask(&served, &request);
  SAYS(request, INVALID_ARGUMENT,
       "output tensor alias not found in signature: w Outputs expected to be in the set {y,z}.");
  cr_assert_eq(served.fakes[0].runs, 0);
  unserve(&served);
}

Test(version, says_what_is_wrong_with_tensors) {
  served_t served;
  serve(&served, 1, true);
  fake_request_t request;
  fake_double(&request, 1, 1, 1);
  rn_tensor_clear(&request.inputs[0].value);
  OK(rn_tensor_create(memory(), RN_INT32, RN_SHAPE_SCALAR, &request.inputs[0].value));
  ask(&served, &request);
  SAYS(request, INVALID_ARGUMENT, "Expects arg[0] to be float but int32 is provided");
  add(&request, "a", "b");
  rn_tensor_clear(&request.inputs[1].value);
  request.inputs[1].value = fake_floats(3, 3, 0);
  ask(&served, &request);
  SAYS(request, INVALID_ARGUMENT,
       "input tensor b has shape [3,3], which does not fit the signature's [?,2]");
  add(&request, "a", "b");
  rn_tensor_clear(&request.inputs[1].value);
  request.inputs[1].value = fake_floats(4, 2, 0);
  ask(&served, &request);
  SAYS(request, INVALID_ARGUMENT,
       "Batching session Run() input tensors must have equal 0th-dimension size");
  unserve(&served);
}

Test(version, replicas_take_turns_and_those_down_are_passed_over) {
  served_t served;
  serve(&served, 3, true);
  served.fakes[1].is_down = true;
  for (int i = 0; i < 90; ++i) {
    fake_request_t request;
    fake_double(&request, 1, 2, (float)i);
    ask(&served, &request);
    cr_assert(fake_is_doubled(&request, 1, 2, (float)i));
    rn_predict_clear(&request.predict);
  }
  cr_assert_eq(served.fakes[1].runs, 0);
  cr_assert_gt(served.fakes[0].runs, 10);
  cr_assert_gt(served.fakes[2].runs, 10);
  unserve(&served);
}

// A replica whose only batch was a slow one is asked again.
static void take_a_millisecond(fake_model_t* fake, rn_backend_run_t* run) {
  served_t* served = fake->self;
  bool is_first_of_one = fake == &served->fakes[1] && fake->runs == 1;
  served->time.now += (is_first_of_one ? 100 : 1) * MS;
  run->done(run, fake_compute(run));
}
Test(version, a_slow_batch_is_forgotten) {
  served_t served;
  serve(&served, 3, true);
  for (int i = 0; i < 3; ++i) {
    served.fakes[i].on_run = take_a_millisecond;
    served.fakes[i].self = &served;
  }
  int before = 0;
  for (int i = 0; i < 60000; ++i) {
    fake_request_t request;
    fake_double(&request, 1, 2, 1);
    ask(&served, &request);
    rn_predict_clear(&request.predict);
    if (i == 99) before = served.fakes[1].runs;
  }
  cr_assert_eq(before, 1);
  cr_assert_gt(served.fakes[1].runs, 10000);
  unserve(&served);
}

// The version ends only after its last request.
static rn_backend_run_t* held;
static void hold(fake_model_t* fake, rn_backend_run_t* run) {
  (void)fake;
  held = run;
}
Test(version, a_request_holds_its_version) {
  served_t served;
  serve(&served, 1, true);
  served.fakes[0].on_run = hold;
  fake_request_t request;
  fake_double(&request, 2, 2, 1);
  rn_version_predict(served.version, &request.predict);
  rn_version_release(served.version);
  cr_assert_eq(served.idle, 0);
  cr_assert_eq(request.answers, 0);
  held->done(held, fake_compute(held));
  cr_assert(fake_is_doubled(&request, 2, 2, 1));
  cr_assert_eq(served.idle, 1);
  rn_predict_clear(&request.predict);
}

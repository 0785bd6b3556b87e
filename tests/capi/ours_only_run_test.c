// runnel/run.h: steps on C arrays, by edge and by name, and the messages for arguments that do not
// fit.
#include <math.h>

#include "runnel/runnel.h"
#include "util.h"

// y = 2x + 1 over a vector; |count| is a variable that |add| adds 1 to.
typedef struct {
  rn_scope_t* s;
  rn_edge_t x, y;
  const rn_var_t* count;
  rn_node_t *init, *add;
  TF_Session* session;
  TF_Status* status;
} run_t;

static run_t begin(void) {
  run_t r = {.s = rn_scope_with_graph(), .status = TF_NewStatus()};
  r.x = rn_Placeholder(r.s, TF_FLOAT, .shape = RN_SHAPE(-1), .name = "x");
  r.y =
      rn_AddV2(r.s, rn_Mul(r.s, r.x, rn_const_float(r.s, 2)), rn_const_float(r.s, 1), .name = "y");
  r.count = rn_get_variable(r.s, "count", NULL, 0, .initializer = rn_init_zeros());
  r.add = rn_AssignAddVariableOp(r.s, r.count->handle, rn_const_float(r.s, 1));
  r.init = rn_initialize_variables(r.s, RN_GLOBAL_VARIABLES);
  r.session = rn_session_start(r.s, NULL, r.status);
  CT_OK(r.status);
  cr_assert(rn_run(r.session, r.status, RN_TARGET(r.init)));
  CT_OK(r.status);
  return r;
}

static void end(run_t* r) {
  TF_DeleteSession(r->session, r->status);
  CT_OK(r->status);
  TF_DeleteStatus(r->status);
  rn_scope_destroy(r->s);
}

CT_TEST(OursOnlyRun, SlopeOfASquare) {
  rn_scope_t* s = rn_scope_with_graph();
  rn_edge_t x = rn_Placeholder(s, TF_FLOAT), slope;
  rn_gradients(s, rn_Mul(s, x, x), &x, 1, &slope);
  TF_Status* status = TF_NewStatus();
  TF_Session* session = rn_session_start(s, NULL, status);
  rn_scope_destroy(s);  // the session keeps the graph
  float at = 3, value = 0;
  cr_assert(rn_run(session, status, RN_FEED(x, &at), RN_FETCH(slope, &value)));
  CT_OK(status);
  cr_assert_eq(value, 6);
  TF_DeleteSession(session, status);
  TF_DeleteStatus(status);
}

CT_TEST(OursOnlyRun, ByEdgeAndByName) {
  run_t r = begin();
  const float x[3] = {1, 2, 3};
  float y[3] = {0}, count = -1;
  const char* name = "y:0";
  cr_assert(rn_run(r.session, r.status, RN_FEED(r.x, x, 3), RN_FETCH(r.y, y, 3)));
  for (int i = 0; i < 3; ++i) cr_assert_eq(y[i], 2 * x[i] + 1);
  cr_assert(rn_run(r.session, r.status, RN_FEED("x", x, 2), RN_FETCH(name, y + 1, 2)));
  cr_assert_eq(y[1], 3);
  cr_assert_eq(y[2], 5);
  // Targets, and any order of arguments.
  cr_assert(rn_run(r.session, r.status, RN_TARGET(r.add)));
  cr_assert(rn_run(r.session, r.status, RN_TARGET(TF_OperationName(rn_operation_of(r.add)))));
  cr_assert(rn_run(r.session, r.status, RN_FETCH(r.y, y, 3), RN_FETCH(r.count->value, &count),
                   RN_FEED(r.x, x, 3)));
  cr_assert_eq(count, 2);
  cr_assert_eq(y[0], 3);
  end(&r);
}

CT_TEST(OursOnlyRun, Tensors) {
  run_t r = begin();
  TF_Tensor *x = ct_float_matrix(1, 2, (const float[]){1, 2}), *y = NULL, *count = NULL;
  float scalar;
  int64_t dims[] = {2};
  TF_Tensor* vector = ct_tensor(TF_FLOAT, dims, 1, TF_TensorData(x), 8);
  cr_assert(rn_run(r.session, r.status, RN_FEED_TENSOR(r.x, vector), RN_FETCH_TENSOR(r.y, &y),
                   RN_FETCH(r.count->value, &scalar), RN_FETCH_TENSOR(r.count->value, &count)));
  CT_INT(TF_Dim(y, 0), 2);
  cr_assert_eq(((float*)TF_TensorData(y))[1], 5);
  cr_assert_eq(*(float*)TF_TensorData(count), scalar);
  TF_DeleteTensor(y);
  TF_DeleteTensor(count);
  // After a failure there is no tensor.
  y = x;
  cr_assert_not(rn_run(r.session, r.status, RN_FETCH_TENSOR(r.y, &y)));
  CT_ERROR_HAS(r.status, TF_INVALID_ARGUMENT, "placeholder tensor 'x'");
  cr_assert_null(y);
  TF_DeleteTensor(vector);
  TF_DeleteTensor(x);
  end(&r);
}

CT_TEST(OursOnlyRun, EveryType) {
  run_t r = begin();
#define CHECK_TYPE(type, dtype)                                 \
  do {                                                          \
    rn_edge_t p = rn_Placeholder(r.s, dtype);                   \
    type in[4] = {0, 1, 1, 0}, out[4] = {0};                    \
    cr_assert(rn_run(r.session, r.status, RN_FEED(p, in, 2, 2), \
                     RN_FETCH(rn_Identity(r.s, p), out, 2, 2)), \
              "%s", TF_Message(r.status));                      \
    cr_assert_eq(memcmp(in, out, sizeof in), 0);                \
  } while (0)
  CHECK_TYPE(float, TF_FLOAT);
  CHECK_TYPE(double, TF_DOUBLE);
  CHECK_TYPE(bool, TF_BOOL);
  CHECK_TYPE(int8_t, TF_INT8);
  CHECK_TYPE(int16_t, TF_INT16);
  CHECK_TYPE(int32_t, TF_INT32);
  CHECK_TYPE(int64_t, TF_INT64);
  CHECK_TYPE(uint8_t, TF_UINT8);
  CHECK_TYPE(uint16_t, TF_UINT16);
  CHECK_TYPE(uint32_t, TF_UINT32);
  CHECK_TYPE(uint64_t, TF_UINT64);
  end(&r);
}

CT_TEST(OursOnlyRun, WhatDoesNotFit) {
  run_t r = begin();
  float x[3] = {1, 2, 3}, y[3] = {7, 7, 7}, count = 0;
  double wide[3];
#define FAILS(code, message, ...)                                  \
  do {                                                             \
    cr_assert_not(rn_run(r.session, r.status, __VA_ARGS__));       \
    CT_ERROR_HAS(r.status, code, message);                         \
    cr_assert(y[0] == 7 && y[1] == 7 && y[2] == 7, "was fetched"); \
  } while (0)
  FAILS(TF_NOT_FOUND, "The graph has no node 'z'", RN_FEED("z", x, 3), RN_FETCH(r.y, y, 3));
  FAILS(TF_NOT_FOUND, "The graph has no node 'z'", RN_TARGET("z"));
  FAILS(TF_INVALID_ARGUMENT, "'y:one' is no name of a tensor", RN_FETCH("y:one", y, 3));
  FAILS(TF_INVALID_ARGUMENT, "does not have output 1", RN_FETCH("y:1", y, 3));
  FAILS(TF_INVALID_ARGUMENT, "neither edge nor node", RN_FETCH(RN_NO_EDGE, y, 3));
  FAILS(TF_INVALID_ARGUMENT, "'x:0' has type float, but its array has type double",
        RN_FEED(r.x, wide, 3), RN_FETCH(r.y, y, 3));
  FAILS(TF_INVALID_ARGUMENT, "'y:0' has type float, but its array has type double",
        RN_FEED(r.x, x, 3), RN_FETCH(r.y, wide, 3));
  FAILS(TF_INVALID_ARGUMENT, "'y:0' has shape [3], but its array has [2]", RN_FEED(r.x, x, 3),
        RN_FETCH(r.y, y, 2));
  FAILS(TF_INVALID_ARGUMENT, "'y:0' has shape [3], but its array has []", RN_FEED(r.x, x, 3),
        RN_FETCH(r.y, y));
  FAILS(TF_INVALID_ARGUMENT, "the array for 'x:0' has a bad shape: dimension 1",
        RN_FEED(r.x, x, 3, -1), RN_FETCH(r.y, y, 3));
  FAILS(TF_INVALID_ARGUMENT, "the array for 'x:0' is NULL", RN_FEED(r.x, (float*)NULL, 3),
        RN_FETCH(r.y, y, 3));
  FAILS(TF_INVALID_ARGUMENT, "at least one target", RN_FEED(r.x, x, 3));
  // One array that does not fit: none is filled.
  FAILS(TF_INVALID_ARGUMENT, "has shape []", RN_FEED(r.x, x, 3), RN_FETCH(r.y, y, 3),
        RN_FETCH(r.count->value, x, 1));
  // The session goes on.
  cr_assert(rn_run(r.session, r.status, RN_FETCH(r.count->value, &count)));
  end(&r);
}

CT_TEST(OursOnlyRun, OneCheckAtTheEnd) {
  rn_scope_t* s = rn_scope_with_graph();
  TF_Status* status = TF_NewStatus();
  float value;
  rn_edge_t y = rn_MatMul(s, rn_const_float(s, 1), rn_const_int32(s, 1));
  TF_Session* session = rn_session_start(s, NULL, status);
  cr_assert_null(session);
  cr_assert_not(rn_run(session, status, RN_FETCH(y, &value)));
  cr_assert_str_eq(TF_Message(status), rn_scope_message(s));
  CT_INT(TF_GetCode(status), rn_scope_code(s));
  rn_scope_destroy(s);
  // Without an error before, the NULL is the error.
  TF_SetStatus(status, TF_OK, "");
  cr_assert_not(rn_run(NULL, status, RN_TARGET("x")));
  CT_CODE(status, TF_INVALID_ARGUMENT);
  cr_assert_null(rn_session_start(NULL, NULL, status));
  CT_CODE(status, TF_INVALID_ARGUMENT);
  cr_assert_not(rn_run_args(NULL, NULL, 3, NULL));
  TF_DeleteStatus(status);
}

// A product of 1.001 by 1 is 1 in bfloat16, and stays itself in float32.
CT_TEST(OursOnlyRun, MixedPrecision) {
  const char* const names[] = {"bfloat16", "float32", "float16"};  // the last is for GPUs
  for (int i = 0; i < 3; ++i) {
    rn_scope_t* s = rn_scope_with_graph();
    TF_Status* status = TF_NewStatus();
    TF_SessionOptions* options = TF_NewSessionOptions();
    int64_t dims[2] = {1, 1};
    float one = 1, value = 1.001f, got = 0;
    rn_scope_set_device(s, "/cpu:0");
    rn_edge_t x = rn_Placeholder(s, TF_FLOAT, .shape = RN_SHAPE(1, 1));
    rn_edge_t y = rn_Neg(s, rn_MatMul(s, x, rn_const(s, TF_FLOAT, dims, 2, &one)));
    rn_session_options_mixed_precision(options, names[i], status);
    CT_OK(status);
    TF_Session* session = rn_session_start(s, options, status);
    CT_OK(status);
    cr_assert(rn_run(session, status, RN_FEED(x, &value, 1, 1), RN_FETCH(y, &got, 1, 1)));
    cr_assert_eq(got, i == 0 ? -1 : -1.001f, "%s: %g", names[i], got);
    rn_session_options_mixed_precision(options, "float8", status);
    CT_CODE(status, TF_INVALID_ARGUMENT);
    cr_assert(strstr(TF_Message(status), "'float8'"));
    rn_session_options_mixed_precision(NULL, "float16", status);
    CT_CODE(status, TF_INVALID_ARGUMENT);
    rn_session_options_mixed_precision(options, NULL, status);
    CT_CODE(status, TF_INVALID_ARGUMENT);
    TF_DeleteSessionOptions(options);
    TF_DeleteSession(session, status);
    TF_DeleteStatus(status);
    rn_scope_destroy(s);
  }
}

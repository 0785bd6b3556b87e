// Helpers of the eager execution tests: a context with a status, handles, and ops in one call.
#ifndef TESTS_CAPI_EAGER_UTIL_H_
#define TESTS_CAPI_EAGER_UTIL_H_

#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/eager/c_api_experimental.h"
#include "util.h"

// Compares one evaluation of |actual|.
#define CE_FLOAT(actual, expected)                                                       \
  do {                                                                                   \
    float ce_actual = (actual);                                                          \
    cr_assert(ce_actual == (float)(expected), "%s:%d: %g is not %g", __FILE__, __LINE__, \
              (double)ce_actual, (double)(expected));                                    \
  } while (0)

typedef struct ce_t {
  TFE_Context* context;
  TF_Status* status;
} ce_t;

static inline ce_t ce_open_with(bool is_async, const pb_t* config) {
  ce_t t = {.status = TF_NewStatus()};
  TFE_ContextOptions* options = TFE_NewContextOptions();
  TFE_ContextOptionsSetAsync(options, is_async);
  if (config) TFE_ContextOptionsSetConfig(options, config->data, config->length, t.status);
  CT_OK(t.status);
  t.context = TFE_NewContext(options, t.status);
  CT_OK(t.status);
  TFE_DeleteContextOptions(options);
  return t;
}

static inline ce_t ce_open(void) { return ce_open_with(false, NULL); }

static inline void ce_close(ce_t* t) {
  TFE_DeleteContext(t->context);
  TF_DeleteStatus(t->status);
}

// Takes |tensor| over.
static inline TFE_TensorHandle* ce_handle(ce_t* t, TF_Tensor* tensor) {
  TFE_TensorHandle* handle = TFE_NewTensorHandle(tensor, t->status);
  CT_OK(t->status);
  TF_DeleteTensor(tensor);
  return handle;
}

static inline TFE_TensorHandle* ce_float(ce_t* t, float value) {
  return ce_handle(t, ct_float(value));
}

static inline TFE_TensorHandle* ce_floats(ce_t* t, int count, const float* values) {
  int64_t dims[] = {count};
  return ce_handle(t, ct_tensor(TF_FLOAT, dims, 1, values, (size_t)count * sizeof *values));
}

static inline TFE_Op* ce_op(ce_t* t, const char* name, int count, TFE_TensorHandle* const* inputs) {
  TFE_Op* op = TFE_NewOp(t->context, name, t->status);
  CT_OK(t->status);
  for (int i = 0; i < count; ++i) {
    TFE_OpAddInput(op, inputs[i], t->status);
    CT_OK(t->status);
  }
  return op;
}

// Runs |op|, which has one result, and deletes it. NULL, with the status set, when it fails.
static inline TFE_TensorHandle* ce_try(ce_t* t, TFE_Op* op) {
  TFE_TensorHandle* result = NULL;
  int count = 1;
  TFE_Execute(op, &result, &count, t->status);
  TFE_DeleteOp(op);
  return TF_GetCode(t->status) == TF_OK && count == 1 ? result : NULL;
}

static inline TFE_TensorHandle* ce_run(ce_t* t, TFE_Op* op) {
  TFE_TensorHandle* result = ce_try(t, op);
  CT_OK(t->status);
  return result;
}

// Runs an op that has no result.
static inline void ce_do(ce_t* t, TFE_Op* op) {
  int count = 0;
  TFE_Execute(op, NULL, &count, t->status);
  CT_OK(t->status);
  CT_INT(count, 0);
  TFE_DeleteOp(op);
}

static inline TFE_TensorHandle* ce_unary(ce_t* t, const char* name, TFE_TensorHandle* x) {
  return ce_run(t, ce_op(t, name, 1, (TFE_TensorHandle*[]){x}));
}

static inline TFE_TensorHandle* ce_binary(ce_t* t, const char* name, TFE_TensorHandle* x,
                                          TFE_TensorHandle* y) {
  return ce_run(t, ce_op(t, name, 2, (TFE_TensorHandle*[]){x, y}));
}

// The first element of a float value; the handle stays.
static inline float ce_value(ce_t* t, TFE_TensorHandle* handle) {
  TF_Tensor* tensor = TFE_TensorHandleResolve(handle, t->status);
  CT_OK(t->status);
  CT_INT(TF_TensorType(tensor), TF_FLOAT);
  float value = *(float*)TF_TensorData(tensor);
  TF_DeleteTensor(tensor);
  return value;
}

// The same; deletes the handle.
static inline float ce_take(ce_t* t, TFE_TensorHandle* handle) {
  float value = ce_value(t, handle);
  TFE_DeleteTensorHandle(handle);
  return value;
}

// A variable of float scalars, with a value.
static inline TFE_TensorHandle* ce_variable(ce_t* t, const char* name, float value) {
  TFE_Op* op = ce_op(t, "VarHandleOp", 0, NULL);
  TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
  TFE_OpSetAttrShape(op, "shape", NULL, 0, t->status);
  TFE_OpSetAttrString(op, "shared_name", name, strlen(name));
  TFE_TensorHandle* variable = ce_run(t, op);
  TFE_TensorHandle* initial = ce_float(t, value);
  ce_do(t, ce_op(t, "AssignVariableOp", 2, (TFE_TensorHandle*[]){variable, initial}));
  TFE_DeleteTensorHandle(initial);
  return variable;
}

static inline TFE_TensorHandle* ce_read(ce_t* t, TFE_TensorHandle* variable) {
  TFE_Op* op = ce_op(t, "ReadVariableOp", 1, &variable);
  TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
  return ce_run(t, op);
}

// A call that fails, and the words that stock has for it.
static inline void ce_fails(ce_t* t, TFE_Op* op, TF_Code code, const char* message) {
  cr_assert_null(ce_try(t, op));
  CT_ERROR(t->status, code, message);
}

#endif  // TESTS_CAPI_EAGER_UTIL_H_

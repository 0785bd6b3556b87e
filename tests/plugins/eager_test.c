// The toy device in eager execution.
#include "eager_util.h"
#include "plugins.h"

static const char* device_of(ce_t* t, TFE_TensorHandle* handle) {
  const char* name = TFE_TensorHandleDeviceName(handle, t->status);
  CT_OK(t->status);
  return name;
}

static ce_t open_context(void) {
  ct_t t = pt_open();
  ct_close(&t);
  return ce_open();
}

static void expect(ce_t* t, TFE_TensorHandle* handle, float a, float b) {
  TF_Tensor* tensor = TFE_TensorHandleResolve(handle, t->status);
  CT_OK(t->status);
  PT_EXPECT(tensor, a, b);
  TFE_DeleteTensorHandle(handle);
}

CT_TEST(plugins_eager, computes) {
  ce_t t = open_context();
  TFE_TensorHandle* x = ce_floats(&t, 2, (float[]){1, 3});
  TFE_TensorHandle* there = TFE_TensorHandleCopyToDevice(x, t.context, PT_TOY, t.status);
  CT_OK(t.status);
  CT_STR(device_of(&t, there), "/job:localhost/replica:0/task:0/device:TOY:0");
  TFE_TensorHandle* sum = ce_run(&t, ce_op(&t, "AddV2", 2, (TFE_TensorHandle*[]){there, there}));
  CT_STR(device_of(&t, sum), "/job:localhost/replica:0/task:0/device:TOY:0");
  TFE_TensorHandle* square = ce_run(&t, ce_op(&t, "Square", 1, &sum));
  CT_STR(device_of(&t, square), "/job:localhost/replica:0/task:0/device:CPU:0");
  expect(&t, square, 4, 36);
  expect(&t, sum, 2, 6);
  TFE_DeleteTensorHandle(there);
  TFE_DeleteTensorHandle(x);
  ce_close(&t);
}

CT_TEST(plugins_eager, copies_inputs) {
  ce_t t = open_context();
  TFE_TensorHandle* x = ce_floats(&t, 2, (float[]){1, 3});
  TFE_Op* op = ce_op(&t, "Mul", 2, (TFE_TensorHandle*[]){x, x});
  TFE_OpSetDevice(op, PT_TOY1, t.status);
  CT_OK(t.status);
  TFE_TensorHandle* product = ce_run(&t, op);
  CT_STR(device_of(&t, product), "/job:localhost/replica:0/task:0/device:TOY:1");
  expect(&t, product, 1, 9);
  TFE_DeleteTensorHandle(x);
  ce_close(&t);
}

CT_TEST(plugins_eager, reports_failures) {
  ce_t t = open_context();
  TFE_TensorHandle* x = ce_floats(&t, 2, (float[]){1, 3});
  TFE_Op* op = ce_op(&t, "Sign", 1, &x);
  TFE_OpSetDevice(op, PT_TOY, t.status);
  cr_assert_null(ce_try(&t, op));
  CT_ERROR_HAS(t.status, TF_DATA_LOSS, "toys have no sign");
  TFE_DeleteTensorHandle(x);
  ce_close(&t);
}

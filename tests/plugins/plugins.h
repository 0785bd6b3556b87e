// Helpers of the plug-in tests: loading the toy (toy_device.c), and nodes on a device.
#ifndef RUNNEL_TESTS_PLUGINS_PLUGINS_H_
#define RUNNEL_TESTS_PLUGINS_PLUGINS_H_

#include <stdio.h>
#include <stdlib.h>

#include "tensorflow/c/c_api_experimental.h"
#include "util.h"

#define PT_TOY "/device:TOY:0"
#define PT_TOY1 "/device:TOY:1"
#define PT_CPU "/device:CPU:0"

static inline void pt_load(ct_t* t) {
  TF_Library* library = TF_LoadPluggableDeviceLibrary(PT_TOY_PATH, t->status);
  CT_OK(t->status);
  cr_assert_not_null(library);
  TF_DeletePluggableDeviceLibraryHandle(library);
}

static inline ct_t pt_open(void) {
  ct_t t = ct_open();
  pt_load(&t);
  return t;
}

// A node with up to two inputs (those without an operation are left out). |device| may be NULL.
static inline TF_OperationDescription* pt_begin(ct_t* t, const char* op, const char* name,
                                                const char* device, TF_Output a, TF_Output b) {
  TF_OperationDescription* desc = TF_NewOperation(t->graph, op, name);
  if (device) TF_SetDevice(desc, device);
  if (a.oper) TF_AddInput(desc, a);
  if (b.oper) TF_AddInput(desc, b);
  return desc;
}
static inline TF_Output pt_end(ct_t* t, TF_OperationDescription* desc) {
  TF_Operation* operation = TF_FinishOperation(desc, t->status);
  CT_OK(t->status);
  return ct_out(operation, 0);
}
static inline TF_Output pt_node(ct_t* t, const char* op, const char* name, const char* device,
                                TF_Output a, TF_Output b) {
  return pt_end(t, pt_begin(t, op, name, device, a, b));
}
#define PT_NONE ((TF_Output){NULL, 0})

static inline TF_Output pt_const(ct_t* t, const char* name, const char* device, TF_Tensor* value) {
  TF_OperationDescription* desc = pt_begin(t, "Const", name, device, PT_NONE, PT_NONE);
  TF_SetAttrTensor(desc, "value", value, t->status);
  TF_SetAttrType(desc, "dtype", TF_TensorType(value));
  TF_DeleteTensor(value);
  return pt_end(t, desc);
}

static inline TF_Tensor* pt_floats(int count, const float* values) {
  int64_t dims[] = {count};
  return ct_tensor(TF_FLOAT, dims, 1, values, (size_t)count * sizeof *values);
}

// Compares the floats of |tensor| and deletes it.
static inline void pt_expect(TF_Tensor* tensor, int count, const float* values) {
  cr_assert_not_null(tensor);
  CT_INT(TF_TensorElementCount(tensor), count);
  for (int i = 0; i < count; ++i) {
    float value = ((const float*)TF_TensorData(tensor))[i];
    cr_assert(value == values[i], "element %d is %g, not %g", i, (double)value, (double)values[i]);
  }
  TF_DeleteTensor(tensor);
}
#define PT_EXPECT(tensor, ...) \
  pt_expect(tensor, sizeof((float[]){__VA_ARGS__}) / sizeof(float), (float[]){__VA_ARGS__})

#endif  // RUNNEL_TESTS_PLUGINS_PLUGINS_H_

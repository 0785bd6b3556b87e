// Eager execution: shapes without values, which ops ran, values shared under a name, packed
// handles.
#include <pthread.h>

#include "eager_util.h"
#include "tensorflow/c/c_api_experimental.h"

static void check_shape(const TF_ShapeAndTypeList* list, int i, int rank, const int64_t* dims) {
  cr_assert(i < list->num_items);
  CT_INT(list->items[i].num_dims, rank);
  for (int d = 0; d < rank; ++d) CT_INT(list->items[i].dims[d], dims[d]);
}

CT_TEST(OursOnlyEagerMore, shapes_of_a_product) {
  ce_t t = ce_open();
  TFE_Op* op = ce_op(&t, "MatMul", 0, NULL);
  TFE_OpSetAttrType(op, "T", TF_FLOAT);
  TF_ShapeAndTypeList *inputs = TF_NewShapeAndTypeList(2), *outputs = NULL;
  TF_ShapeAndTypeListSetShape(inputs, 0, (int64_t[]){3, 2}, 2);
  TF_ShapeAndTypeListSetShape(inputs, 1, (int64_t[]){2, -1}, 2);
  TFE_InferShapes(op, inputs, NULL, NULL, NULL, &outputs, NULL, t.status);
  CT_OK(t.status);
  CT_INT(outputs->num_items, 1);
  check_shape(outputs, 0, 2, (int64_t[]){3, -1});
  TF_DeleteShapeAndTypeList(outputs);
  TF_ShapeAndTypeListSetUnknownShape(inputs, 0);
  TF_ShapeAndTypeListSetUnknownShape(inputs, 1);
  TFE_InferShapes(op, inputs, NULL, NULL, NULL, &outputs, NULL, t.status);
  CT_OK(t.status);
  check_shape(outputs, 0, 2, (int64_t[]){-1, -1});
  TF_DeleteShapeAndTypeList(outputs);
  TF_ShapeAndTypeListSetShape(inputs, 0, (int64_t[]){3, 2}, 2);
  TF_ShapeAndTypeListSetShape(inputs, 1, (int64_t[]){5, 2}, 2);
  TFE_InferShapes(op, inputs, NULL, NULL, NULL, &outputs, NULL, t.status);
  CT_CODE(t.status, TF_INVALID_ARGUMENT);
  cr_assert_null(outputs);
  TF_DeleteShapeAndTypeList(inputs);
  TFE_DeleteOp(op);
  ce_close(&t);
}

// The value of an input, and lists of inputs.
CT_TEST(OursOnlyEagerMore, shapes_that_values_give) {
  ce_t t = ce_open();
  TFE_Op* op = ce_op(&t, "Fill", 0, NULL);
  TFE_OpSetAttrType(op, "T", TF_FLOAT);
  TFE_OpSetAttrType(op, "index_type", TF_INT32);
  TF_ShapeAndTypeList *inputs = TF_NewShapeAndTypeList(2), *outputs = NULL;
  TF_ShapeAndTypeListSetShape(inputs, 0, (int64_t[]){2}, 1);
  TF_ShapeAndTypeListSetShape(inputs, 1, NULL, 0);
  TF_Tensor* values[2] = {
      ct_tensor(TF_INT32, (int64_t[]){2}, 1, (int32_t[]){4, 7}, 2 * sizeof(int32_t)), NULL};
  TFE_InferShapes(op, inputs, values, NULL, NULL, &outputs, NULL, t.status);
  CT_OK(t.status);
  check_shape(outputs, 0, 2, (int64_t[]){4, 7});
  TF_DeleteShapeAndTypeList(outputs);
  TF_DeleteShapeAndTypeList(inputs);
  TF_DeleteTensor(values[0]);
  TFE_DeleteOp(op);

  op = ce_op(&t, "Pack", 0, NULL);
  inputs = TF_NewShapeAndTypeList(3);
  for (int i = 0; i < 3; ++i) {
    TF_ShapeAndTypeListSetShape(inputs, i, (int64_t[]){5}, 1);
    TF_ShapeAndTypeListSetDtype(inputs, i, TF_FLOAT);
  }
  TFE_InferShapes(op, inputs, NULL, NULL, NULL, &outputs, NULL, t.status);
  CT_OK(t.status);
  check_shape(outputs, 0, 2, (int64_t[]){3, 5});
  CT_INT(outputs->items[0].dtype, TF_FLOAT);
  TF_DeleteShapeAndTypeList(outputs);
  TF_DeleteShapeAndTypeList(inputs);
  TFE_DeleteOp(op);
  ce_close(&t);
}

// Types need not be known: that of another input goes for an attribute, else any that the op takes.
CT_TEST(OursOnlyEagerMore, shapes_without_types) {
  ce_t t = ce_open();
  TFE_Op* op = ce_op(&t, "MatMul", 0, NULL);
  TF_ShapeAndTypeList *inputs = TF_NewShapeAndTypeList(2), *outputs = NULL;
  TF_ShapeAndTypeListSetShape(inputs, 0, (int64_t[]){3, 2}, 2);
  TFE_InferShapes(op, inputs, NULL, NULL, NULL, &outputs, NULL, t.status);
  CT_OK(t.status);
  check_shape(outputs, 0, 2, (int64_t[]){3, -1});
  CT_INT(outputs->items[0].dtype, 0);
  TF_DeleteShapeAndTypeList(outputs);
  TF_ShapeAndTypeListSetDtype(inputs, 1, TF_DOUBLE);
  TFE_InferShapes(op, inputs, NULL, NULL, NULL, &outputs, NULL, t.status);
  CT_OK(t.status);
  CT_INT(outputs->items[0].dtype, TF_DOUBLE);
  TF_DeleteShapeAndTypeList(outputs);
  TF_DeleteShapeAndTypeList(inputs);
  TFE_DeleteOp(op);
  ce_close(&t);
}

CT_TEST(OursOnlyEagerMore, names_of_what_ran) {
  ce_t t = ce_open();
  TFE_TensorHandle* x = ce_float(&t, 2);
  TFE_DeleteTensorHandle(ce_unary(&t, "Exp", x));
  TFE_ContextSetLogDevicePlacement(t.context, 1, t.status);
  CT_OK(t.status);
  TFE_DeleteTensorHandle(ce_unary(&t, "Neg", x));
  TFE_DeleteTensorHandle(ce_binary(&t, "AddV2", x, x));
  TFE_ContextSetLogDevicePlacement(t.context, 0, t.status);
  TFE_DeleteTensorHandle(ce_unary(&t, "Exp", x));
  TF_Buffer* names = TF_NewBuffer();
  TFE_GetExecutedOpNames(t.context, names, t.status);
  CT_OK(t.status);
  CT_INT(names->length, strlen("Neg, AddV2, "));
  cr_assert(memcmp(names->data, "Neg, AddV2, ", names->length) == 0);
  TF_DeleteBuffer(names);
  TFE_DeleteTensorHandle(x);
  ce_close(&t);
}

static void check_value(ce_t* t, const char* key, int64_t wait_ms, const char* value) {
  TF_Buffer* buffer = TF_NewBuffer();
  TFE_GetConfigKeyValue(t->context, key, wait_ms, buffer, t->status);
  CT_OK(t->status);
  CT_INT(buffer->length, strlen(value));
  cr_assert(memcmp(buffer->data, value, buffer->length) == 0);
  TF_DeleteBuffer(buffer);
}

static void* leave_value(void* context) {
  TF_Status* status = TF_NewStatus();
  TFE_InsertConfigKeyValue(context, "late", "here", status);
  CT_OK(status);
  TF_DeleteStatus(status);
  return NULL;
}

CT_TEST(OursOnlyEagerMore, keys_and_values) {
  ce_t t = ce_open();
  TFE_InsertConfigKeyValue(t.context, "a/b", "one", t.status);
  CT_OK(t.status);
  TFE_InsertConfigKeyValue(t.context, "a/c", "two", t.status);
  TFE_InsertConfigKeyValue(t.context, "ab", "three", t.status);
  check_value(&t, "a/b", 0, "one");
  TFE_InsertConfigKeyValue(t.context, "a/b", "four", t.status);
  CT_CODE(t.status, TF_ALREADY_EXISTS);
  TFE_DeleteConfigKeyValue(t.context, "a", t.status);
  CT_OK(t.status);
  TF_Buffer* buffer = TF_NewBuffer();
  TFE_GetConfigKeyValue(t.context, "a/b", 0, buffer, t.status);
  CT_CODE(t.status, TF_NOT_FOUND);
  TFE_GetConfigKeyValue(t.context, "a/c", 1, buffer, t.status);
  CT_CODE(t.status, TF_DEADLINE_EXCEEDED);
  TF_DeleteBuffer(buffer);
  check_value(&t, "ab", 0, "three");
  pthread_t thread;
  cr_assert_eq(pthread_create(&thread, NULL, leave_value, t.context), 0);
  check_value(&t, "late", 60000, "here");
  pthread_join(thread, NULL);
  ce_close(&t);
}

CT_TEST(OursOnlyEagerMore, packed_handles) {
  enum { CONFIG_DEVICE_COUNT = 1, ENTRY_KEY = 1, ENTRY_VALUE = 2 };
  pb_t config = {0}, entry = {0};
  pb_string(&entry, ENTRY_KEY, "CPU");
  pb_varint(&entry, ENTRY_VALUE, 2);
  pb_message(&config, CONFIG_DEVICE_COUNT, &entry);
  ce_t t = ce_open_with(false, &config);
  pb_free(&config);
  TF_DeviceList* devices = TFE_ContextListDevices(t.context, t.status);
  CT_INT(TF_DeviceListCount(devices), 2);
  TFE_TensorHandle *x = ce_float(&t, 3), *y = ce_float(&t, 5);
  const char* second = TF_DeviceListName(devices, 1, t.status);
  TFE_TensorHandle* parts[2] = {x, TFE_TensorHandleCopyToDevice(y, t.context, second, t.status)};
  CT_OK(t.status);
  int count = 2;
  TFE_TensorHandle* packed = TFE_CreatePackedTensorHandle(t.context, parts, &count, t.status);
  CT_OK(t.status);
  CT_STR(TFE_TensorHandleDeviceType(packed, t.status), "COMPOSITE");
  CT_INT(TFE_TensorHandleNumDims(packed, t.status), 0);
  for (int i = 0; i < 2; ++i) {
    TFE_Op* op = ce_op(&t, "Neg", 1, &packed);
    TFE_OpSetDevice(op, TF_DeviceListName(devices, i, t.status), t.status);
    CE_FLOAT(ce_take(&t, ce_run(&t, op)), i ? -5 : -3);
  }
  TFE_TensorHandle* copy = TFE_TensorHandleCopyToDevice(packed, t.context, second, t.status);
  CT_OK(t.status);
  CE_FLOAT(ce_take(&t, copy), 5);
  count = 0;
  cr_assert_null(TFE_CreatePackedTensorHandle(t.context, parts, &count, t.status));
  CT_CODE(t.status, TF_INVALID_ARGUMENT);
  TFE_TensorHandle* mixed[2] = {x, ce_floats(&t, 2, (float[]){1, 2})};
  count = 2;
  cr_assert_null(TFE_CreatePackedTensorHandle(t.context, mixed, &count, t.status));
  CT_CODE(t.status, TF_INVALID_ARGUMENT);
  TFE_DeleteTensorHandle(mixed[1]);
  TFE_DeleteTensorHandle(packed);
  TFE_DeleteTensorHandle(parts[1]);
  TFE_DeleteTensorHandle(x);
  TFE_DeleteTensorHandle(y);
  TF_DeleteDeviceList(devices);
  ce_close(&t);
}

CT_TEST(OursOnlyEagerMore, several_cpus) {
  ce_t t = ce_open();
  TFE_TensorHandle* x = ce_float(&t, 3);
  TFE_SetLogicalCpuDevices(t.context, 3, NULL, t.status);
  CT_OK(t.status);
  TF_DeviceList* devices = TFE_ContextListDevices(t.context, t.status);
  CT_INT(TF_DeviceListCount(devices), 3);
  TFE_Op* op = ce_op(&t, "Neg", 1, &x);
  TFE_OpSetDevice(op, TF_DeviceListName(devices, 2, t.status), t.status);
  TFE_TensorHandle* y = ce_run(&t, op);
  CT_INT(TFE_TensorHandleDeviceID(y, t.status), 2);
  CE_FLOAT(ce_take(&t, y), -3);
  TFE_SetLogicalCpuDevices(t.context, 4, NULL, t.status);
  CT_CODE(t.status, TF_FAILED_PRECONDITION);
  TFE_SetLogicalCpuDevices(t.context, 0, NULL, t.status);
  CT_CODE(t.status, TF_INVALID_ARGUMENT);
  TF_DeleteDeviceList(devices);
  TFE_DeleteTensorHandle(x);
  ce_close(&t);
}

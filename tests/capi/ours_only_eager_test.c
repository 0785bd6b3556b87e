// Eager execution where stock crashes or reports less.
#include "eager_util.h"

CT_TEST(OursOnlyEager, metadata_names_what_ran) {
  ce_t t = ce_open();
  TFE_TensorHandle* x = ce_float(&t, 2);
  TFE_ContextEnableRunMetadata(t.context);
  TFE_DeleteTensorHandle(ce_unary(&t, "Neg", x));
  TF_Buffer* buffer = TF_NewBuffer();
  TFE_ContextExportRunMetadata(t.context, buffer, t.status);
  CT_OK(t.status);
  cr_assert_not_null(memmem(buffer->data, buffer->length, "Neg", 3));
  TF_DeleteBuffer(buffer);
  buffer = TF_NewBuffer();
  TFE_ContextDisableRunMetadata(t.context);
  TFE_DeleteTensorHandle(ce_unary(&t, "Neg", x));
  TFE_ContextExportRunMetadata(t.context, buffer, t.status);
  CT_OK(t.status);
  cr_assert_null(memmem(buffer->data, buffer->length, "Neg", 3));
  TF_DeleteBuffer(buffer);
  TFE_DeleteTensorHandle(x);
  ce_close(&t);
}

CT_TEST(OursOnlyEager, contexts_have_numbers) {
  ce_t a = ce_open(), b = ce_open();
  cr_assert_neq(TFE_GetContextId(a.context), 0);
  cr_assert_neq(TFE_GetContextId(a.context), TFE_GetContextId(b.context));
  ce_close(&a);
  ce_close(&b);
}

CT_TEST(OursOnlyEager, what_is_out_of_range) {
  ce_t t = ce_open();
  TFE_TensorHandle* x = ce_floats(&t, 2, (float[]){1, 2});
  CT_INT(TFE_TensorHandleDim(x, 1, t.status), -1);
  CT_CODE(t.status, TF_INVALID_ARGUMENT);
  TFE_Op* op = ce_op(&t, "AddV2", 3, (TFE_TensorHandle*[]){x, x, x});
  cr_assert_null(ce_try(&t, op));
  CT_ERROR(t.status, TF_INVALID_ARGUMENT, "expected 2 inputs, got 3");
  op = ce_op(&t, "Neg", 1, &x);
  cr_assert_null(TFE_OpGetFlatInput(op, 1, t.status));
  CT_CODE(t.status, TF_INVALID_ARGUMENT);
  TFE_OpSetAttrIntList(op, "T", NULL, -3);
  cr_assert_null(ce_try(&t, op));
  CT_CODE(t.status, TF_INVALID_ARGUMENT);
  TFE_DeleteTensorHandle(x);
  ce_close(&t);
}

CT_TEST(OursOnlyEager, a_failed_reset_leaves_nothing_to_run) {
  ce_t t = ce_open();
  TFE_TensorHandle* x = ce_float(&t, 4);
  TFE_Op* op = ce_op(&t, "Neg", 1, &x);
  TFE_OpReset(op, "NoSuchOp", NULL, t.status);
  CT_CODE(t.status, TF_NOT_FOUND);
  int count = 1;
  TFE_TensorHandle* y = NULL;
  TFE_Execute(op, &y, &count, t.status);
  CT_CODE(t.status, TF_FAILED_PRECONDITION);
  TFE_OpAddInput(op, x, t.status);
  CT_CODE(t.status, TF_FAILED_PRECONDITION);
  TFE_DeleteOp(op);
  TFE_DeleteTensorHandle(x);
  ce_close(&t);
}

CT_TEST(OursOnlyEager, a_removed_function_is_no_op) {
  ce_t t = ce_open();
  ct_t g = ct_open();
  TF_Output x = ct_out(ct_placeholder(&g, g.graph, "x", TF_FLOAT), 0);
  TF_Output y = ct_out(ct_unary(&g, g.graph, "Neg", "y", x), 0);
  TF_Function* function =
      TF_GraphToFunction(g.graph, "minus", 0, -1, NULL, 1, &x, 1, &y, NULL, NULL, NULL, g.status);
  CT_OK(g.status);
  ct_close(&g);
  TFE_ContextAddFunction(t.context, function, t.status);
  TFE_TensorHandle* one = ce_float(&t, 1);
  CE_FLOAT(ce_take(&t, ce_unary(&t, "minus", one)), -1);
  TFE_Op* late = ce_op(&t, "minus", 1, &one);
  TFE_ContextRemoveFunction(t.context, "minus", t.status);
  CT_OK(t.status);
  cr_assert_null(TFE_NewOp(t.context, "minus", t.status));
  CT_CODE(t.status, TF_NOT_FOUND);
  cr_assert_null(ce_try(&t, late));
  cr_assert_neq(TF_GetCode(t.status), TF_OK);
  TF_DeleteFunction(function);
  TFE_DeleteTensorHandle(one);
  ce_close(&t);
}

CT_TEST(OursOnlyEager, a_failed_value_tells_why) {
  ce_t t = ce_open_with(true, NULL);
  TFE_TensorHandle* x = ce_floats(&t, 2, (float[]){1, 2});
  TFE_TensorHandle* y = ce_floats(&t, 3, (float[]){1, 2, 3});
  TFE_TensorHandle* bad = ce_try(&t, ce_op(&t, "AddV2", 2, (TFE_TensorHandle*[]){x, y}));
  CT_OK(t.status);
  TFE_ContextAsyncWait(t.context, t.status);
  CT_CODE(t.status, TF_INVALID_ARGUMENT);
  TFE_TensorHandleGetStatus(bad, t.status);
  CT_ERROR(t.status, TF_INVALID_ARGUMENT, "Incompatible shapes: [2] vs. [3]");
  TFE_DeleteTensorHandle(bad);
  TFE_DeleteTensorHandle(x);
  TFE_DeleteTensorHandle(y);
  ce_close(&t);
}

// A device with memory of its own: values stay there between ops.
CT_TEST(OursOnlyEager, ops_on_another_device) {
  enum { CONFIG_DEVICE_COUNT = 1, ENTRY_KEY = 1, ENTRY_VALUE = 2 };
  pb_t config = {0}, entry = {0};
  pb_string(&entry, ENTRY_KEY, "NULL");
  pb_varint(&entry, ENTRY_VALUE, 1);
  pb_message(&config, CONFIG_DEVICE_COUNT, &entry);
  ce_t t = ce_open_with(false, &config);
  pb_free(&config);
  TF_DeviceList* devices = TFE_ContextListDevices(t.context, t.status);
  CT_INT(TF_DeviceListCount(devices), 2);
  const char* name = TF_DeviceListName(devices, 1, t.status);
  TFE_TensorHandle* x = ce_floats(&t, 2, (float[]){3, 4});
  for (int i = 0; i < 2; ++i) {
    TFE_Op* op = ce_op(&t, "AddV2", 2, (TFE_TensorHandle*[]){x, x});
    TFE_OpSetDevice(op, name, t.status);
    TFE_TensorHandle* y = ce_run(&t, op);
    CT_STR(TFE_TensorHandleDeviceName(y, t.status), name);
    CT_STR(TFE_TensorHandleBackingDeviceName(y, t.status), name);
    CE_FLOAT(ce_take(&t, y), 6);
  }
  TFE_TensorHandle* there = TFE_TensorHandleCopyToDevice(x, t.context, name, t.status);
  CT_OK(t.status);
  CT_STR(TFE_TensorHandleDeviceType(there, t.status), "NULL");
  TF_DeleteDeviceList(devices);
  TFE_DeleteTensorHandle(x);
  ce_close(&t);
  CE_FLOAT(ce_take(&(ce_t){.status = t.status = TF_NewStatus()}, there), 3);
  TF_DeleteStatus(t.status);
}

// Resources of all kinds may be without a name; stock knows no more than variables.
CT_TEST(OursOnly, AnonymousQueuesAndTablesAreFresh) {
  static const char name[] = "cd2c89b7-88b7-44c8-ad83-06c2a9158347";
  ce_t t = ce_open();
  TFE_TensorHandle *queues[2], *one = ce_float(&t, 1);
  TF_DataType types[] = {TF_FLOAT};
  for (int i = 0; i < 2; ++i) {
    TFE_Op* op = ce_op(&t, "FIFOQueueV2", 0, NULL);
    TFE_OpSetAttrTypeList(op, "component_types", types, 1);
    TFE_OpSetAttrString(op, "shared_name", name, strlen(name));
    queues[i] = ce_run(&t, op);
  }
  TFE_Op* op = ce_op(&t, "QueueEnqueueV2", 1, queues);
  TFE_OpAddInputList(op, &one, 1, t.status);
  ce_do(&t, op);
  for (int i = 0; i < 2; ++i) {
    TFE_TensorHandle* size = ce_run(&t, ce_op(&t, "QueueSizeV2", 1, &queues[i]));
    TF_Tensor* value = TFE_TensorHandleResolve(size, t.status);
    CT_INT(ct_take_int32(value), i == 0);
    TFE_DeleteTensorHandle(size);
    TFE_DeleteTensorHandle(queues[i]);
  }
  TFE_DeleteTensorHandle(one);
  ce_close(&t);
}

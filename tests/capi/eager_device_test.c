// Devices of eager execution: their names, copies between them, and where ops run.
#include <stdio.h>
#include <unistd.h>

#include "../support/ports.h"
#include "eager_util.h"
#include "tensorflow/c/c_api_experimental.h"

#define CPU "/job:localhost/replica:0/task:0/device:CPU:0"

CT_TEST(eager_device, context_lists_its_devices) {
  ce_t t = ce_open();
  TF_DeviceList* devices = TFE_ContextListDevices(t.context, t.status);
  CT_OK(t.status);
  CT_INT(TF_DeviceListCount(devices), 1);
  CT_STR(TF_DeviceListName(devices, 0, t.status), CPU);
  CT_STR(TF_DeviceListType(devices, 0, t.status), "CPU");
  TF_DeleteDeviceList(devices);
  ce_close(&t);
}

CT_TEST(eager_device, copies_to_a_device) {
  ce_t t = ce_open();
  TFE_TensorHandle* h = ce_float(&t, 7);
  TFE_TensorHandle* copy = TFE_TensorHandleCopyToDevice(h, t.context, CPU, t.status);
  CT_OK(t.status);
  CE_FLOAT(ce_take(&t, copy), 7);
  cr_assert_null(TFE_TensorHandleCopyToDevice(h, t.context, "/gpu:0", t.status));
  CT_CODE(t.status, TF_INVALID_ARGUMENT);
  TFE_DeleteTensorHandle(h);
  ce_close(&t);
}

CT_TEST(eager_device, devices_of_ops) {
  ce_t t = ce_open();
  TFE_TensorHandle* x = ce_float(&t, 2);
  TFE_Op* op = ce_op(&t, "Neg", 1, &x);
  CT_STR(TFE_OpGetDevice(op, t.status), "");
  TFE_OpSetDevice(op, "/cpu:0", t.status);
  CT_OK(t.status);
  CT_STR(TFE_OpGetDevice(op, t.status), "/device:CPU:0");
  CT_STR(TFE_OpGetName(op, t.status), "Neg");
  cr_assert_eq(TFE_OpGetContext(op, t.status), t.context);
  TFE_OpSetDevice(op, "nonsense", t.status);
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT,
               "Malformed device specification 'nonsense' in eager op: Name: Neg");
  TFE_OpSetDevice(op, "/cpu:0", t.status);
  CE_FLOAT(ce_take(&t, ce_run(&t, op)), -2);
  op = ce_op(&t, "Neg", 1, &x);
  TFE_OpSetDevice(op, "/gpu:0", t.status);
  CT_OK(t.status);
  ce_fails(&t, op, TF_INVALID_ARGUMENT,
           "Could not satisfy device specification '/device:GPU:0'. enable_soft_placement=0. "
           "Supported device types [CPU]. All available devices [" CPU "].");
  TFE_ContextSetSoftDevicePlacement(t.context, 1, t.status);
  op = ce_op(&t, "Neg", 1, &x);
  TFE_OpSetDevice(op, "/gpu:0", t.status);
  CE_FLOAT(ce_take(&t, ce_run(&t, op)), -2);
  TFE_DeleteTensorHandle(x);
  ce_close(&t);
}

// Inputs on another device are brought over, unless the policy says that one must ask for it.
CT_TEST(eager_device, placement_policies) {
  pb_t config = {0}, entry = {0};  // ConfigProto.device_count {"CPU": 2}
  pb_string(&entry, 1, "CPU");
  pb_varint(&entry, 2, 2);
  pb_message(&config, 1, &entry);
  ce_t t = ce_open_with(false, &config);
  CT_INT(TFE_ContextGetDevicePlacementPolicy(t.context), TFE_DEVICE_PLACEMENT_SILENT);
  float data[2] = {1, 2};
  TFE_TensorHandle* x = ce_floats(&t, 2, data);
  TFE_TensorHandle* i = ce_handle(&t, ct_int32(7));
  TFE_TensorHandle* both[2] = {x, i};
  for (int policy = TFE_DEVICE_PLACEMENT_EXPLICIT; policy <= TFE_DEVICE_PLACEMENT_SILENT_FOR_INT32;
       ++policy) {
    TFE_ContextSetThreadLocalDevicePlacementPolicy(t.context,
                                                   (TFE_ContextDevicePlacementPolicy)policy);
    CT_INT(TFE_ContextGetDevicePlacementPolicy(t.context), policy);
    for (int k = 0; k < 2; ++k) {
      bool moves = policy == TFE_DEVICE_PLACEMENT_WARN || policy == TFE_DEVICE_PLACEMENT_SILENT ||
                   (policy == TFE_DEVICE_PLACEMENT_SILENT_FOR_INT32 && k == 1);
      TFE_Op* op = ce_op(&t, "Neg", 1, &both[k]);
      TFE_OpSetDevice(op, "/device:CPU:1", t.status);
      CT_OK(t.status);
      if (moves) {
        TFE_DeleteTensorHandle(ce_run(&t, op));
      } else {
        cr_assert_null(ce_try(&t, op));
        CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT,
                     "Tensors on conflicting devices: cannot compute Neg as input #0 was expected "
                     "to be on /job:localhost/replica:0/task:0/device:CPU:1 but is actually on " CPU
                     " (operation running on /job:localhost/replica:0/task:0/device:CPU:1)");
      }
    }
    // Where it is there is nothing to move.
    TFE_DeleteTensorHandle(ce_unary(&t, "Neg", x));
  }
  TFE_DeleteTensorHandle(x);
  TFE_DeleteTensorHandle(i);
  pb_free(&config);
  pb_free(&entry);
  ce_close(&t);
}

CT_TEST(eager_device, policies_belong_to_threads) {
  ce_t t = ce_open();
  CT_INT(TFE_ContextGetDevicePlacementPolicy(t.context), TFE_DEVICE_PLACEMENT_SILENT);
  TFE_ContextSetThreadLocalDevicePlacementPolicy(t.context, TFE_DEVICE_PLACEMENT_EXPLICIT);
  CT_INT(TFE_ContextGetDevicePlacementPolicy(t.context), TFE_DEVICE_PLACEMENT_EXPLICIT);
  ce_close(&t);
}

// A context that becomes a task of a cluster has the devices of that task.
CT_TEST(eager_device, devices_are_named_after_the_task) {
  ce_t t = ce_open();
  TFE_TensorHandle* x = ce_float(&t, 2);
  const char* jobs[] = {"first", "second", "third"};
  for (int i = 0; i < 3; ++i) {
    char text[256], name[64], other[64] = "";
    bool is_alone = i == 2;  // other tasks are not asked: there are none
    if (is_alone)
      snprintf(other, sizeof other, "tasks { key: 1 value: '127.0.0.1:%d' } ", free_port());
    snprintf(text, sizeof text,
             "cluster { job { name: '%s' tasks { key: 0 value: '127.0.0.1:%d' } %s} } "
             "job_name: '%s' task_index: 0 protocol: 'grpc'",
             jobs[i], free_port(), other, jobs[i]);
    TF_Buffer* def = TFE_GetServerDef(text, t.status);
    CT_OK(t.status);
    (is_alone ? TFE_InitializeLocalOnlyContext : TFE_ContextSetServerDef)(t.context, 60, def->data,
                                                                          def->length, t.status);
    CT_OK(t.status);
    TF_DeleteBuffer(def);
    snprintf(name, sizeof name, "/job:%s/replica:0/task:0/device:CPU:0", jobs[i]);
    TF_DeviceList* devices = TFE_ContextListDevices(t.context, t.status);
    CT_INT(TF_DeviceListCount(devices), 1);
    CT_STR(TF_DeviceListName(devices, 0, t.status), name);
    TF_DeleteDeviceList(devices);
    TFE_Op* op = ce_op(&t, "Neg", 1, &x);
    TFE_OpSetDevice(op, name, t.status);
    TFE_TensorHandle* y = ce_run(&t, op);
    CT_STR(TFE_TensorHandleDeviceName(y, t.status), name);
    CE_FLOAT(ce_take(&t, y), -2);
    op = ce_op(&t, "Neg", 1, &x);
    TFE_OpSetDevice(op, i == 0 ? CPU : "/job:first/replica:0/task:0/device:CPU:0", t.status);
    y = ce_try(&t, op);
    CT_CODE(t.status, TF_INVALID_ARGUMENT);
    cr_assert_null(y);
  }
  TFE_DeleteTensorHandle(x);
  ce_close(&t);
}

// A custom device that wraps the CPU: it counts its calls, and its values are wrapped handles.
#include "eager_util.h"

#define CUSTOM "/job:localhost/replica:0/task:0/device:CUSTOM:0"
#define CPU "/job:localhost/replica:0/task:0/device:CPU:0"

typedef struct device_t {
  TFE_Context* context;
  const char* name;
  int copies_to, copies_from, executions, deleted;
} device_t;

static int freed;

static int num_dims(void* data, TF_Status* status) { return TFE_TensorHandleNumDims(data, status); }
static int64_t dim(void* data, int index, TF_Status* status) {
  return TFE_TensorHandleDim(data, index, status);
}
static void free_value(void* data) {
  ++freed;
  TFE_DeleteTensorHandle(data);
}

// Takes |inner| over.
static TFE_TensorHandle* wrap(const device_t* device, TFE_TensorHandle* inner, TF_Status* status) {
  TFE_CustomDeviceTensorHandle methods = {.version = TFE_CUSTOM_DEVICE_VERSION,
                                          .num_dims = num_dims,
                                          .dim = dim,
                                          .deallocator = free_value};
  return TFE_NewCustomDeviceTensorHandle(device->context, device->name,
                                         TFE_TensorHandleDataType(inner), inner, methods, status);
}

static TFE_TensorHandle* inner_of(TFE_TensorHandle* handle, TF_Status* status) {
  const char* name = TFE_TensorHandleDeviceName(handle, status);
  if (strcmp(name, CUSTOM) != 0) return handle;
  return TFE_TensorHandleDevicePointer(handle, status);
}

static TFE_TensorHandle* copy_to(TFE_Context* context, TFE_TensorHandle* tensor, TF_Status* status,
                                 void* info) {
  ((device_t*)info)->copies_to++;
  TFE_TensorHandle* inner = TFE_TensorHandleCopyToDevice(tensor, context, CPU, status);
  return TF_GetCode(status) == TF_OK ? wrap(info, inner, status) : NULL;
}

static TFE_TensorHandle* copy_from(TFE_Context* context, TFE_TensorHandle* tensor,
                                   const char* target, TF_Status* status, void* info) {
  ((device_t*)info)->copies_from++;
  TFE_TensorHandle* inner = inner_of(tensor, status);
  if (TF_GetCode(status) != TF_OK) return NULL;
  return TFE_TensorHandleCopyToDevice(inner, context, target, status);
}

// Runs the op on the CPU and wraps its results.
static void execute(const TFE_Op* original, int* num_outputs, TFE_TensorHandle** outputs,
                    TF_Status* status, void* info) {
  device_t* device = info;
  device->executions++;
  TFE_Op* op = TFE_NewOp(device->context, TFE_OpGetName(original, status), status);
  if (TF_GetCode(status) != TF_OK) return;
  TFE_OpAddAttrs(op, TFE_OpGetAttrs(original));
  TFE_OpSetDevice(op, CPU, status);
  int inputs = TFE_OpGetFlatInputCount(original, status);
  for (int i = 0; i < inputs && TF_GetCode(status) == TF_OK; ++i) {
    TFE_TensorHandle* inner = inner_of(TFE_OpGetFlatInput(original, i, status), status);
    if (TF_GetCode(status) == TF_OK) TFE_OpAddInput(op, inner, status);
  }
  TFE_TensorHandle* results[4] = {0};
  int count = *num_outputs < 4 ? *num_outputs : 4;
  if (TF_GetCode(status) == TF_OK) TFE_Execute(op, results, &count, status);
  TFE_DeleteOp(op);
  if (TF_GetCode(status) != TF_OK) return;
  for (int i = 0; i < count; ++i) outputs[i] = wrap(device, results[i], status);
  *num_outputs = count;
}

static void delete_device(void* info) { ((device_t*)info)->deleted++; }

static void add_device(ce_t* t, device_t* device, const char* name) {
  TFE_CustomDevice callbacks = {.version = TFE_CUSTOM_DEVICE_VERSION,
                                .copy_tensor_to_device = copy_to,
                                .copy_tensor_from_device = copy_from,
                                .execute = execute,
                                .delete_device = delete_device};
  device->context = t->context;
  device->name = name;
  TFE_RegisterCustomDevice(t->context, callbacks, name, device, t->status);
}

CT_TEST(EagerCustomDevice, values_go_there_and_back) {
  ce_t t = ce_open();
  device_t device = {0};
  freed = 0;
  cr_assert(!TFE_IsCustomDevice(t.context, CUSTOM));
  add_device(&t, &device, CUSTOM);
  CT_OK(t.status);
  cr_assert(TFE_IsCustomDevice(t.context, CUSTOM));
  cr_assert(!TFE_IsCustomDevice(t.context, CPU));
  TFE_TensorHandle* x = ce_floats(&t, 3, (float[]){3, 4, 5});
  TFE_TensorHandle* there = TFE_TensorHandleCopyToDevice(x, t.context, CUSTOM, t.status);
  CT_OK(t.status);
  CT_INT(device.copies_to, 1);
  CT_STR(TFE_TensorHandleDeviceName(there, t.status), CUSTOM);
  CT_INT(TFE_TensorHandleDataType(there), TF_FLOAT);
  CT_INT(TFE_TensorHandleNumDims(there, t.status), 1);
  CT_INT(TFE_TensorHandleDim(there, 0, t.status), 3);
  CT_INT(TFE_TensorHandleNumElements(there, t.status), 3);
  TFE_TensorHandle* back = TFE_TensorHandleCopyToDevice(there, t.context, CPU, t.status);
  CT_OK(t.status);
  CT_INT(device.copies_from, 1);
  CE_FLOAT(ce_take(&t, back), 3);
  CE_FLOAT(ce_value(&t, there), 3);
  CT_INT(device.copies_from, 2);
  CT_INT(freed, 0);
  TFE_DeleteTensorHandle(there);
  CT_INT(freed, 1);
  TFE_DeleteTensorHandle(x);
  ce_close(&t);
  CT_INT(device.deleted, 1);
}

CT_TEST(EagerCustomDevice, ops_follow_their_inputs) {
  ce_t t = ce_open();
  device_t device = {0};
  freed = 0;
  add_device(&t, &device, CUSTOM);
  TFE_TensorHandle* x = ce_float(&t, 3);
  TFE_TensorHandle* there = TFE_TensorHandleCopyToDevice(x, t.context, CUSTOM, t.status);
  CT_OK(t.status);
  TFE_TensorHandle* sum = ce_binary(&t, "AddV2", there, x);
  CT_INT(device.executions, 1);
  CT_STR(TFE_TensorHandleDeviceName(sum, t.status), CUSTOM);
  CE_FLOAT(ce_value(&t, sum), 6);
  // An op that asks for the device goes there with ordinary inputs too.
  TFE_Op* op = ce_op(&t, "Neg", 1, &x);
  TFE_OpSetDevice(op, CUSTOM, t.status);
  CT_OK(t.status);
  TFE_TensorHandle* minus = ce_run(&t, op);
  CT_INT(device.executions, 2);
  CT_STR(TFE_TensorHandleDeviceName(minus, t.status), CUSTOM);
  CE_FLOAT(ce_take(&t, minus), -3);
  // One that asks for the CPU gets copies.
  int before = device.copies_from;
  op = ce_op(&t, "Neg", 1, &sum);
  TFE_OpSetDevice(op, CPU, t.status);
  TFE_TensorHandle* here = ce_run(&t, op);
  CT_INT(device.executions, 2);
  CT_INT(device.copies_from, before + 1);
  CT_STR(TFE_TensorHandleDeviceName(here, t.status), CPU);
  CE_FLOAT(ce_take(&t, here), -6);
  TFE_DeleteTensorHandle(sum);
  TFE_DeleteTensorHandle(there);
  TFE_DeleteTensorHandle(x);
  ce_close(&t);
  CT_INT(device.deleted, 1);
}

CT_TEST(EagerCustomDevice, what_fails) {
  ce_t t = ce_open();
  device_t device = {0}, other = {0};
  freed = 0;
  add_device(&t, &device, CUSTOM);
  CT_OK(t.status);
  add_device(&t, &other, CUSTOM);
  CT_CODE(t.status, TF_ALREADY_EXISTS);
  add_device(&t, &other, "/job:localhost/replica:0/task:0/device:CPU:0");
  CT_CODE(t.status, TF_ALREADY_EXISTS);
  add_device(&t, &other, "/device:CUSTOM:15");
  CT_CODE(t.status, TF_INVALID_ARGUMENT);
  // An error of the device is the op's.
  TFE_TensorHandle* x = ce_floats(&t, 2, (float[]){1, 2});
  TFE_TensorHandle* y = ce_floats(&t, 3, (float[]){1, 2, 3});
  TFE_TensorHandle* there = TFE_TensorHandleCopyToDevice(x, t.context, CUSTOM, t.status);
  TFE_Op* op = ce_op(&t, "AddV2", 2, (TFE_TensorHandle*[]){there, y});
  cr_assert_null(ce_try(&t, op));
  CT_CODE(t.status, TF_INVALID_ARGUMENT);
  // Inputs of two custom devices meet nowhere.
  device_t second = {.name = "/job:localhost/replica:0/task:0/device:CUSTOM:1"};
  add_device(&t, &second, second.name);
  CT_OK(t.status);
  TFE_TensorHandle* elsewhere = TFE_TensorHandleCopyToDevice(x, t.context, second.name, t.status);
  CT_OK(t.status);
  op = ce_op(&t, "AddV2", 2, (TFE_TensorHandle*[]){there, elsewhere});
  cr_assert_null(ce_try(&t, op));
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT,
               "Operation AddV2 has one input in custom device " CUSTOM
               " and at least one input in a different custom device");
  TFE_DeleteTensorHandle(elsewhere);
  TFE_DeleteTensorHandle(there);
  TFE_DeleteTensorHandle(x);
  TFE_DeleteTensorHandle(y);
  ce_close(&t);
}

CT_TEST(EagerCustomDevice, the_host) {
  ce_t t = ce_open();
  TF_Buffer* name = TF_NewBuffer();
  TFE_HostAddressSpace(t.context, name);
  CT_INT(name->length, strlen("/job:localhost/replica:0/task:0"));
  cr_assert(memcmp(name->data, CPU, name->length) == 0);
  TF_DeleteBuffer(name);
  ce_close(&t);
}

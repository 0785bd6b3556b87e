// Eager ops: handles, inputs, attributes, inferred attributes, and the messages of bad calls.
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "eager_util.h"
#include "ops_c.h"
#include "tensorflow/c/c_api_experimental.h"
#include "tensorflow/c/kernels.h"

#define CPU "/job:localhost/replica:0/task:0/device:CPU:0"

CT_TEST(eager_op, context_lists_its_devices) {
  ce_t t = ce_open();
  TF_DeviceList* devices = TFE_ContextListDevices(t.context, t.status);
  CT_OK(t.status);
  CT_INT(TF_DeviceListCount(devices), 1);
  CT_STR(TF_DeviceListName(devices, 0, t.status), CPU);
  CT_STR(TF_DeviceListType(devices, 0, t.status), "CPU");
  TF_DeleteDeviceList(devices);
  ce_close(&t);
}

CT_TEST(eager_op, adds) {
  ce_t t = ce_open();
  TFE_TensorHandle* x = ce_float(&t, 1.5f);
  TFE_TensorHandle* y = ce_float(&t, 2);
  CE_FLOAT(ce_take(&t, ce_binary(&t, "AddV2", x, y)), 3.5f);
  CE_FLOAT(ce_take(&t, ce_binary(&t, "Mul", x, y)), 3);
  TFE_DeleteTensorHandle(x);
  TFE_DeleteTensorHandle(y);
  ce_close(&t);
}

CT_TEST(eager_op, handle_tells_of_its_tensor) {
  ce_t t = ce_open();
  TFE_TensorHandle* h = ce_handle(&t, ct_float_matrix(2, 3, (float[]){1, 2, 3, 4, 5, 6}));
  CT_INT(TFE_TensorHandleDataType(h), TF_FLOAT);
  CT_INT(TFE_TensorHandleNumDims(h, t.status), 2);
  CT_INT(TFE_TensorHandleNumElements(h, t.status), 6);
  CT_INT(TFE_TensorHandleDim(h, 0, t.status), 2);
  CT_INT(TFE_TensorHandleDim(h, 1, t.status), 3);
  CT_OK(t.status);
  CT_STR(TFE_TensorHandleDeviceName(h, t.status), CPU);
  CT_STR(TFE_TensorHandleBackingDeviceName(h, t.status), CPU);
  CT_STR(TFE_TensorHandleDeviceType(h, t.status), "CPU");
  CT_INT(TFE_TensorHandleDeviceID(h, t.status), 0);
  CT_INT(TFE_TensorHandleDeviceMemorySize(h, t.status), 24);
  TFE_TensorDebugInfo* info = TFE_TensorHandleTensorDebugInfo(h, t.status);
  CT_OK(t.status);
  CT_INT(TFE_TensorDebugInfoOnDeviceNumDims(info), 2);
  CT_INT(TFE_TensorDebugInfoOnDeviceDim(info, 1), 3);
  TFE_DeleteTensorDebugInfo(info);
  TFE_DeleteTensorHandle(h);
  ce_close(&t);
}

CT_TEST(eager_op, resolve_shares_memory) {
  ce_t t = ce_open();
  TFE_TensorHandle* h = ce_float(&t, 7);
  TF_Tensor* a = TFE_TensorHandleResolve(h, t.status);
  TF_Tensor* b = TFE_TensorHandleResolve(h, t.status);
  cr_assert_eq(TF_TensorData(a), TF_TensorData(b));
  cr_assert_eq(TF_TensorData(a), TFE_TensorHandleDevicePointer(h, t.status));
  TFE_TensorHandle* copy = TFE_TensorHandleCopySharingTensor(h, t.status);
  CT_OK(t.status);
  TFE_DeleteTensorHandle(h);
  ce_close(&t);
  // Handles and tensors outlive the context.
  cr_assert_float_eq(*(float*)TF_TensorData(a), 7, 0);
  TFE_DeleteTensorHandle(copy);
  TF_DeleteTensor(a);
  TF_DeleteTensor(b);
}

CT_TEST(eager_op, memory_of_the_client_is_given_back_once) {
  ce_t t = ce_open();
  int calls = 0;
  _Alignas(64) static float data[16] = {3};
  TFE_TensorHandle* h =
      TFE_NewTensorHandleFromDeviceMemory(t.context, CPU, TF_FLOAT, (int64_t[]){16}, 1, data,
                                          sizeof data, ct_count_call, &calls, t.status);
  CT_OK(t.status);
  cr_assert_eq(TFE_TensorHandleDevicePointer(h, t.status), data);
  CE_FLOAT(ce_take(&t, ce_binary(&t, "AddV2", h, h)), 6);
  CT_INT(calls, 0);
  TFE_DeleteTensorHandle(h);
  CT_INT(calls, 1);
  cr_assert_null(TFE_NewTensorHandleFromDeviceMemory(t.context, "/gpu:3", TF_FLOAT, NULL, 0, data,
                                                     4, ct_count_call, &calls, t.status));
  CT_CODE(t.status, TF_INVALID_ARGUMENT);
  CT_INT(calls, 2);
  ce_close(&t);
}

CT_TEST(eager_op, copies_to_a_device) {
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

CT_TEST(eager_op, lists_and_lengths) {
  ce_t t = ce_open();
  TFE_TensorHandle* x = ce_floats(&t, 2, (float[]){1, 2});
  TFE_TensorHandle* axis = ce_handle(&t, ct_int32(0));
  TFE_Op* op = ce_op(&t, "ConcatV2", 0, NULL);
  TFE_OpAddInputList(op, (TFE_TensorHandle*[]){x, x, x}, 3, t.status);
  TFE_OpAddInput(op, axis, t.status);
  CT_INT(TFE_OpGetInputLength(op, "values", t.status), 3);
  CT_INT(TFE_OpGetInputLength(op, "axis", t.status), 1);
  CT_INT(TFE_OpGetOutputLength(op, "output", t.status), 1);
  CT_OK(t.status);
  CT_INT(TFE_OpGetFlatInputCount(op, t.status), 4);
  cr_assert_eq(TFE_OpGetFlatInput(op, 3, t.status), axis);
  CT_INT(TFE_OpGetInputLength(op, "nothing", t.status), -1);
  CT_ERROR(t.status, TF_INVALID_ARGUMENT, "Input 'nothing' not found");
  TFE_TensorHandle* all = ce_run(&t, op);
  CT_INT(TFE_TensorHandleNumElements(all, t.status), 6);
  TFE_DeleteTensorHandle(all);

  op = ce_op(&t, "Split", 0, NULL);
  CT_INT(TFE_OpGetOutputLength(op, "output", t.status), -1);
  CT_ERROR(t.status, TF_NOT_FOUND, "No attr named 'num_split' in NodeDef:");
  TFE_OpSetAttrInt(op, "num_split", 2);
  CT_INT(TFE_OpGetOutputLength(op, "output", t.status), 2);
  TFE_OpAddInput(op, axis, t.status);
  TFE_OpAddInput(op, x, t.status);
  TFE_TensorHandle* halves[5];
  int count = 5;
  TFE_Execute(op, halves, &count, t.status);
  CT_OK(t.status);
  CT_INT(count, 2);
  CE_FLOAT(ce_take(&t, halves[1]), 2);
  TFE_DeleteTensorHandle(halves[0]);
  TFE_DeleteOp(op);

  // Single tensors for a list, with the attributes that nothing can be inferred of.
  op = ce_op(&t, "ConcatV2", 3, (TFE_TensorHandle*[]){x, x, axis});
  TFE_OpSetAttrInt(op, "N", 2);
  TFE_OpSetAttrType(op, "T", TF_FLOAT);
  TFE_OpSetAttrType(op, "Tidx", TF_INT32);
  TFE_DeleteTensorHandle(ce_run(&t, op));
  TFE_DeleteTensorHandle(x);
  TFE_DeleteTensorHandle(axis);
  ce_close(&t);
}

// A call that fails, and the words that stock has for it.
static void fails(ce_t* t, TFE_Op* op, TF_Code code, const char* message) {
  cr_assert_null(ce_try(t, op));
  CT_ERROR(t->status, code, message);
}

CT_TEST(eager_op, bad_calls_are_told) {
  ce_t t = ce_open();
  TFE_TensorHandle* f2 = ce_floats(&t, 2, (float[]){1, 2});
  TFE_TensorHandle* f3 = ce_floats(&t, 3, (float[]){1, 2, 3});
  TFE_TensorHandle* i = ce_handle(&t, ct_int32(1));
  cr_assert_null(TFE_NewOp(t.context, "NoSuchOp", t.status));
  CT_ERROR_HAS(t.status, TF_NOT_FOUND,
               "'NoSuchOp' is neither a type of a primitive operation nor a name of a function");
  fails(&t, ce_op(&t, "AddV2", 2, (TFE_TensorHandle*[]){f2, f3}), TF_INVALID_ARGUMENT,
        "Incompatible shapes: [2] vs. [3]");
  fails(&t, ce_op(&t, "AddV2", 2, (TFE_TensorHandle*[]){f2, i}), TF_INVALID_ARGUMENT,
        "cannot compute AddV2 as input #1(zero-based) was expected to be a float tensor but is a "
        "int32 tensor");
  fails(&t, ce_op(&t, "AddV2", 1, &f2), TF_INVALID_ARGUMENT, "expected 2 inputs, got 1");
  fails(&t, ce_op(&t, "Cast", 1, &f2), TF_NOT_FOUND,
        "No attr named 'DstT' in NodeDef:\n\t [[{{node Cast}}]]");
  fails(&t, ce_op(&t, "Const", 0, NULL), TF_NOT_FOUND,
        "No attr named 'dtype' in NodeDef:\n\t [[{{node Const}}]]");
  TFE_Op* op = ce_op(&t, "AddV2", 0, NULL);
  TFE_OpSetAttrType(op, "T", TF_INT32);
  TFE_OpAddInput(op, f2, t.status);
  TFE_OpAddInput(op, f2, t.status);
  fails(&t, op, TF_INVALID_ARGUMENT,
        "cannot compute AddV2 as input #0(zero-based) was expected to be a int32 tensor but is a "
        "float tensor");
  cr_assert_null(ce_try(&t, ce_op(&t, "Sqrt", 1, &i)));
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT,
               "Value for attr 'T' of int32 is not in the list of allowed values: bfloat16, half");
  op = ce_op(&t, "MatMul", 2, (TFE_TensorHandle*[]){f2, f2});
  TFE_OpSetAttrInt(op, "transpose_a", 1);
  cr_assert_null(ce_try(&t, op));
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT,
               "AttrValue had value with type 'int' when 'bool' expected\n\t for attr "
               "'transpose_a'");
  op = ce_op(&t, "IdentityN", 0, NULL);
  TFE_OpAddInputList(op, (TFE_TensorHandle*[]){f2, i}, 2, t.status);
  CT_INT(TFE_OpGetOutputLength(op, "output", t.status), 2);
  fails(&t, op, TF_INVALID_ARGUMENT, "Expecting 2 outputs, but *num_retvals is 1");
  TFE_DeleteTensorHandle(f2);
  TFE_DeleteTensorHandle(f3);
  TFE_DeleteTensorHandle(i);
  ce_close(&t);
}

CT_TEST(eager_op, references_are_values) {
  // A queue of the first generation gives its container and its name.
  ce_t t = ce_open();
  TFE_Op* op = ce_op(&t, "FIFOQueue", 0, NULL);
  TFE_OpSetAttrTypeList(op, "component_types", (TF_DataType[]){TF_INT32, TF_INT32}, 2);
  TFE_OpSetAttrString(op, "shared_name", "line", 4);
  TFE_TensorHandle* queue = ce_run(&t, op);
  CT_INT(TFE_TensorHandleDataType(queue), TF_STRING);
  TF_Tensor* names = TFE_TensorHandleResolve(queue, t.status);
  CT_OK(t.status);
  CT_INT(TF_TensorElementCount(names), 2);
  const TF_TString* name = TF_TensorData(names);
  CT_STR(TF_StringGetDataPointer(&name[0]), "localhost");
  CT_STR(TF_StringGetDataPointer(&name[1]), "line");
  TF_DeleteTensor(names);
  // What wants a reference cannot be called: handles have none.
  fails(&t, ce_op(&t, "QueueSize", 1, &queue), TF_INVALID_ARGUMENT,
        "cannot compute QueueSize as input #0(zero-based) was expected to be a string_ref tensor "
        "but is a string tensor");
  TFE_DeleteTensorHandle(queue);
  ce_close(&t);
}

CT_TEST(eager_op, devices_of_ops) {
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
  fails(&t, op, TF_INVALID_ARGUMENT,
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
CT_TEST(eager_op, placement_policies) {
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

CT_TEST(eager_op, reset_makes_it_another) {
  ce_t t = ce_open();
  TFE_TensorHandle* x = ce_float(&t, 4);
  TFE_Op* op = ce_op(&t, "Neg", 1, &x);
  TFE_OpReset(op, "Sqrt", "/cpu:0", t.status);
  CT_OK(t.status);
  TFE_OpAddInput(op, x, t.status);
  CE_FLOAT(ce_take(&t, ce_run(&t, op)), 2);
  TFE_DeleteTensorHandle(x);
  ce_close(&t);
}

CT_TEST(eager_op, attributes_of_every_kind) {
  ce_t t = ce_open();
  unsigned char is_list = 2;
  CT_INT(TFE_OpNameGetAttrType(t.context, "ConcatV2", "N", &is_list, t.status), TF_ATTR_INT);
  CT_INT(is_list, 0);
  TFE_Op* op = ce_op(&t, "Squeeze", 0, NULL);
  CT_INT(TFE_OpGetAttrType(op, "squeeze_dims", &is_list, t.status), TF_ATTR_INT);
  CT_INT(is_list, 1);
  TFE_OpGetAttrType(op, "nothing", &is_list, t.status);
  CT_ERROR(t.status, TF_INVALID_ARGUMENT, "Attribute 'nothing' does not exist for this operation");
  TFE_OpSetAttrIntList(op, "squeeze_dims", (int64_t[]){0}, 1);
  TFE_TensorHandle* x = ce_handle(&t, ct_float_matrix(1, 3, (float[]){1, 2, 3}));
  TFE_OpAddInput(op, x, t.status);
  TFE_TensorHandle* y = ce_run(&t, op);
  CT_INT(TFE_TensorHandleNumDims(y, t.status), 1);
  TFE_DeleteTensorHandle(y);

  op = ce_op(&t, "Const", 0, NULL);
  TF_Tensor* value = ct_float(9);
  TFE_OpSetAttrTensor(op, "value", value, t.status);
  CT_OK(t.status);
  TF_DeleteTensor(value);
  TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
  TFE_Op* other = ce_op(&t, "Const", 0, NULL);
  TFE_OpAddAttrs(other, TFE_OpGetAttrs(op));
  TF_Buffer* bytes = TF_NewBuffer();
  TFE_OpAttrsSerialize(TFE_OpGetAttrs(op), bytes, t.status);
  CT_OK(t.status);
  cr_assert_gt(bytes->length, 10);
  TF_DeleteBuffer(bytes);
  CE_FLOAT(ce_take(&t, ce_run(&t, op)), 9);
  CE_FLOAT(ce_take(&t, ce_run(&t, other)), 9);

  op = ce_op(&t, "Empty", 0, NULL);
  TFE_OpSetAttrShape(op, "dtype", (int64_t[300]){0}, 300, t.status);
  CT_CODE(t.status, TF_INVALID_ARGUMENT);
  TFE_DeleteOp(op);
  TFE_DeleteTensorHandle(x);
  ce_close(&t);
}

CT_TEST(eager_op, variables_keep_their_values) {
  ce_t t = ce_open();
  TFE_TensorHandle* variable = ce_variable(&t, "v", 12);
  TFE_TensorHandle* before = ce_read(&t, variable);
  TFE_TensorHandle* one = ce_float(&t, 1);
  ce_do(&t, ce_op(&t, "AssignAddVariableOp", 2, (TFE_TensorHandle*[]){variable, one}));
  TFE_ContextClearCaches(t.context);
  CE_FLOAT(ce_take(&t, ce_read(&t, variable)), 13);
  CE_FLOAT(ce_take(&t, before), 12);
  ce_do(&t, ce_op(&t, "DestroyResourceOp", 1, &variable));
  TFE_Op* op = ce_op(&t, "ReadVariableOp", 1, &variable);
  TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
  cr_assert_null(ce_try(&t, op));
  cr_assert_neq(TF_GetCode(t.status), TF_OK);
  TFE_DeleteTensorHandle(one);
  TFE_DeleteTensorHandle(variable);
  ce_close(&t);
}

CT_TEST(eager_op, variables_with_different_names_differ) {
  ce_t t = ce_open();
  TFE_TensorHandle* a = ce_variable(&t, "a", 1);
  TFE_TensorHandle* b = ce_variable(&t, "b", 2);
  CE_FLOAT(ce_take(&t, ce_read(&t, a)), 1);
  CE_FLOAT(ce_take(&t, ce_read(&t, b)), 2);
  TFE_DeleteTensorHandle(a);
  TFE_DeleteTensorHandle(b);
  ce_close(&t);
}

CT_TEST(eager_op, policies_belong_to_threads) {
  ce_t t = ce_open();
  CT_INT(TFE_ContextGetDevicePlacementPolicy(t.context), TFE_DEVICE_PLACEMENT_SILENT);
  TFE_ContextSetThreadLocalDevicePlacementPolicy(t.context, TFE_DEVICE_PLACEMENT_EXPLICIT);
  CT_INT(TFE_ContextGetDevicePlacementPolicy(t.context), TFE_DEVICE_PLACEMENT_EXPLICIT);
  ce_close(&t);
}

// Threads that run equal and different ops in one context, while the caches are emptied.
enum { THREADS = 4, ROUNDS = 2000 };
static void* run_many(void* arg) {
  ce_t t = {.context = arg, .status = TF_NewStatus()};
  TFE_TensorHandle* x = ce_float(&t, 1);
  for (int i = 0; i < ROUNDS; ++i) {
    TFE_TensorHandle* y = ce_binary(&t, i % 2 ? "AddV2" : "Mul", x, x);
    CE_FLOAT(ce_take(&t, y), i % 2 ? 2 : 1);
    if (i % 100 == 0) TFE_ContextClearCaches(t.context);
  }
  TFE_DeleteTensorHandle(x);
  TF_DeleteStatus(t.status);
  return NULL;
}

CT_TEST(eager_op, many_threads) {
  ce_t t = ce_open();
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; ++i)
    cr_assert_eq(pthread_create(&threads[i], NULL, run_many, t.context), 0);
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  ce_close(&t);
}

// The bytes of attribute |name|, an AttrValue, in what |op| has or follows from its inputs.
static bool find_attr(ce_t* t, const TFE_Op* op, const char* name, pb_field_t* out,
                      TF_Buffer* bytes) {
  TFE_OpAttrsSerialize(TFE_OpGetAttrs(op), bytes, t->status);
  CT_OK(t->status);
  pb_field_t entry;
  return pb_find_named(bytes->data, bytes->length, 2, 1, name, &entry) &&
         pb_find(entry.data, entry.length, 2, out);
}

// -1: the op has no such attribute. |field| is that of an AttrValue: 3 is an int, 6 a type.
static long long attr_of(ce_t* t, const TFE_Op* op, const char* name, int field) {
  TF_Buffer* bytes = TF_NewBuffer();
  pb_field_t value, found;
  long long result = -1;
  if (find_attr(t, op, name, &value, bytes) && pb_find(value.data, value.length, field, &found))
    result = (long long)found.value;
  TF_DeleteBuffer(bytes);
  return result;
}

CT_TEST(eager_op, attributes_follow_from_inputs) {
  ce_t t = ce_open();
  TFE_TensorHandle *x = ce_float(&t, 1), *zero = ce_handle(&t, ct_int32(0));
  TFE_TensorHandle* wide = ce_handle(&t, ct_tensor(TF_INT64, NULL, 0, (int64_t[]){0}, 8));
  TFE_TensorHandle* both[] = {x, x};
  TFE_Op* op = ce_op(&t, "Min", 0, NULL);
  CT_INT(attr_of(&t, op, "T", 6), -1);
  TFE_OpAddInput(op, x, t.status);
  CT_INT(attr_of(&t, op, "T", 6), TF_FLOAT);
  CT_INT(attr_of(&t, op, "Tidx", 6), TF_INT32);  // by default
  TFE_OpAddInput(op, wide, t.status);
  CT_INT(attr_of(&t, op, "Tidx", 6), TF_INT64);
  TFE_DeleteOp(op);
  op = ce_op(&t, "Concat", 1, &zero);
  TFE_OpAddInputList(op, both, 2, t.status);
  CT_INT(attr_of(&t, op, "T", 6), TF_FLOAT);
  CT_INT(attr_of(&t, op, "N", 3), 2);
  TFE_DeleteOp(op);
  // Tensors given one by one do not say where the list ends.
  op = ce_op(&t, "Concat", 1, &zero);
  TFE_OpAddInput(op, x, t.status);
  TFE_OpAddInput(op, x, t.status);
  CT_INT(attr_of(&t, op, "T", 6), -1);
  CT_INT(attr_of(&t, op, "N", 3), -1);
  TFE_DeleteOp(op);
  TFE_DeleteTensorHandle(wide);
  TFE_DeleteTensorHandle(x);
  TFE_DeleteTensorHandle(zero);
  ce_close(&t);
}

// A copy of an op from what can be asked of it: a list of types goes with the attributes.
CT_TEST(eager_op, copies_of_ops) {
  ce_t t = ce_open();
  TFE_TensorHandle *x = ce_float(&t, 1), *y = ce_handle(&t, ct_int32(7));
  TFE_TensorHandle *inputs[] = {x, y}, *results[2] = {0};
  TFE_Op* op = ce_op(&t, "IdentityN", 0, NULL);
  TFE_OpAddInputList(op, inputs, 2, t.status);
  TFE_Op* copy = ce_op(&t, "IdentityN", 0, NULL);
  TFE_OpAddAttrs(copy, TFE_OpGetAttrs(op));
  for (int i = 0; i < 2; ++i) TFE_OpAddInput(copy, TFE_OpGetFlatInput(op, i, t.status), t.status);
  int count = 2;
  TFE_Execute(copy, results, &count, t.status);
  CT_OK(t.status);
  CT_INT(count, 2);
  CT_INT(TFE_TensorHandleDataType(results[1]), TF_INT32);
  for (int i = 0; i < 2; ++i) TFE_DeleteTensorHandle(results[i]);
  TFE_DeleteOp(copy);
  TFE_DeleteOp(op);
  // What an op has of its own stays.
  op = ce_op(&t, "VarHandleOp", 0, NULL);
  TFE_OpSetAttrType(op, "dtype", TF_INT64);
  TFE_OpSetAttrShape(op, "shape", NULL, 0, t.status);
  copy = ce_op(&t, "VarHandleOp", 0, NULL);
  TFE_OpSetAttrType(copy, "dtype", TF_FLOAT);
  TFE_OpAddAttrs(copy, TFE_OpGetAttrs(op));
  CT_INT(attr_of(&t, copy, "dtype", 6), TF_FLOAT);
  TF_Buffer* bytes = TF_NewBuffer();
  pb_field_t shape;
  cr_assert(find_attr(&t, copy, "shape", &shape, bytes));
  TF_DeleteBuffer(bytes);
  TFE_DeleteOp(copy);
  TFE_DeleteOp(op);
  TFE_DeleteTensorHandle(x);
  TFE_DeleteTensorHandle(y);
  ce_close(&t);
}

static void gone_compute(void* state, TF_OpKernelContext* context) {
  (void)state;
  TF_Status* s = TF_NewStatus();
  TF_SetStatus(s, TF_UNAVAILABLE, "gone");
  TF_OpKernelContext_Failure(context, s);
  TF_DeleteStatus(s);
}

// An op needs no shape function here. That something is gone only ops that talk to tasks may say.
CT_TEST(eager_op, ops_from_outside) {
  ce_t t = ce_open();
  TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder("GoneOp");
  TF_OpDefinitionBuilderAddOutput(builder, "out: string");
  TF_RegisterOpDefinition(builder, t.status);
  CT_OK(t.status);
  TF_RegisterKernelBuilder("Gone", TF_NewKernelBuilder("GoneOp", "CPU", NULL, gone_compute, NULL),
                           t.status);
  CT_OK(t.status);
  TFE_Op* op = ce_op(&t, "GoneOp", 0, NULL);
  TFE_TensorHandle* result = NULL;
  int count = 1;
  TFE_Execute(op, &result, &count, t.status);
  CT_ERROR(t.status, TF_INTERNAL,
           "gone\nExecuting non-communication op <GoneOp> originally returned UnavailableError, "
           "and was replaced by InternalError to avoid invoking TF network error handling logic.");
  TFE_DeleteOp(op);
  ce_close(&t);
}

// A port that is free now.
static int free_port(void) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  cr_assert_eq(bind(fd, (struct sockaddr*)&at, sizeof at), 0);
  cr_assert_eq(getsockname(fd, (struct sockaddr*)&at, &size), 0);
  close(fd);
  return ntohs(at.sin_port);
}

// A context that becomes a task of a cluster has the devices of that task.
CT_TEST(eager_op, devices_are_named_after_the_task) {
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

// The first value of an attribute counts, whether it was set or an input implied it.
CT_TEST(eager_op, first_values_of_attributes_count) {
  ce_t t = ce_open();
  TFE_TensorHandle *x = ce_float(&t, 7), *axis = ce_handle(&t, ct_int32(0));
  TFE_TensorHandle* list[] = {x, x};
  TFE_Op* op = ce_op(&t, "Neg", 1, &x);
  TFE_OpSetAttrType(op, "T", TF_INT32);  // the input said float
  CE_FLOAT(ce_take(&t, ce_run(&t, op)), -7);
  op = ce_op(&t, "Neg", 0, NULL);
  TFE_OpSetAttrType(op, "T", TF_FLOAT);
  TFE_OpSetAttrType(op, "T", TF_INT32);
  TFE_OpAddInput(op, x, t.status);
  CE_FLOAT(ce_take(&t, ce_run(&t, op)), -7);
  op = ce_op(&t, "Neg", 0, NULL);
  TFE_OpSetAttrType(op, "T", TF_INT32);
  TFE_OpAddInput(op, x, t.status);
  cr_assert_null(ce_try(&t, op));
  CT_ERROR(t.status, TF_INVALID_ARGUMENT,
           "cannot compute Neg as input #0(zero-based) was expected to be a int32 tensor but is a "
           "float tensor");
  op = ce_op(&t, "Cast", 1, &x);
  TFE_OpSetAttrType(op, "DstT", TF_INT32);
  TFE_OpSetAttrType(op, "DstT", TF_FLOAT);
  TFE_OpSetAttrType(op, "SrcT", TF_INT32);
  TFE_TensorHandle* y = ce_run(&t, op);
  CT_INT(TFE_TensorHandleDataType(y), TF_INT32);
  TFE_DeleteTensorHandle(y);
  // Lists say how long they are, and of which type.
  op = ce_op(&t, "AddN", 0, NULL);
  TFE_OpAddInputList(op, list, 2, t.status);
  TFE_OpSetAttrInt(op, "N", 3);
  TFE_OpSetAttrType(op, "T", TF_INT32);
  CE_FLOAT(ce_take(&t, ce_run(&t, op)), 14);
  op = ce_op(&t, "Pack", 0, NULL);
  TFE_OpAddInputList(op, list, 2, t.status);
  TFE_OpSetAttrInt(op, "axis", 0);
  TFE_OpSetAttrInt(op, "axis", 5);
  y = ce_run(&t, op);
  op = ce_op(&t, "Sum", 2, (TFE_TensorHandle*[]){y, axis});
  TFE_OpSetAttrBool(op, "keep_dims", 0);
  TFE_OpSetAttrType(op, "Tidx", TF_INT64);
  CE_FLOAT(ce_take(&t, ce_run(&t, op)), 14);
  TFE_DeleteTensorHandle(y);
  op = ce_op(&t, "IdentityN", 0, NULL);
  TFE_OpAddInputList(op, list, 1, t.status);
  TF_DataType types[] = {TF_INT32, TF_INT32};
  TFE_OpSetAttrTypeList(op, "T", types, 2);
  CE_FLOAT(ce_take(&t, ce_run(&t, op)), 7);
  // Of a list that is given tensor by tensor nobody knows the end.
  op = ce_op(&t, "AddN", 2, list);
  TFE_OpSetAttrInt(op, "N", 2);
  TFE_OpSetAttrType(op, "T", TF_FLOAT);
  CE_FLOAT(ce_take(&t, ce_run(&t, op)), 14);
  TFE_DeleteTensorHandle(x);
  TFE_DeleteTensorHandle(axis);
  ce_close(&t);
}

#define ANONYMOUS "cd2c89b7-88b7-44c8-ad83-06c2a9158347"

// Each call that asks for a variable without a name gets a fresh one.
CT_TEST(eager_op, anonymous_variables_are_fresh) {
  ce_t t = ce_open();
  TFE_TensorHandle *v = ce_variable(&t, ANONYMOUS, 1), *w = ce_variable(&t, ANONYMOUS, 2);
  CE_FLOAT(ce_take(&t, ce_read(&t, v)), 1);
  CE_FLOAT(ce_take(&t, ce_read(&t, w)), 2);
  TFE_DeleteTensorHandle(v);
  CE_FLOAT(ce_take(&t, ce_read(&t, w)), 2);
  // Named ones are one.
  TFE_TensorHandle *a = ce_variable(&t, "named", 3), *b = ce_variable(&t, "named", 4);
  CE_FLOAT(ce_take(&t, ce_read(&t, a)), 4);
  TFE_DeleteTensorHandle(a);
  TFE_DeleteTensorHandle(b);
  TFE_DeleteTensorHandle(w);
  ce_close(&t);
}

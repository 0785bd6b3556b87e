// The first session interface: a graph given as bytes, operations by name.
#include "util.h"

static TF_DeprecatedSession* open_session(TF_Status* status) {
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_DeprecatedSession* session = TF_NewDeprecatedSession(options, status);
  CT_OK(status);
  TF_DeleteSessionOptions(options);
  return session;
}

// feed, two, add = feed + two, neg = -add.
static void extend(TF_DeprecatedSession* session, TF_Status* status) {
  ct_t t = ct_open();
  TF_Operation* feed = ct_placeholder(&t, t.graph, "feed", TF_INT32);
  TF_Operation* two = ct_scalar(&t, t.graph, "two", 2);
  TF_Operation* add = ct_add(&t, t.graph, "add", ct_out(feed, 0), ct_out(two, 0));
  ct_neg(&t, t.graph, "neg", add);
  TF_Buffer* bytes = ct_graph_def(t.graph);
  TF_ExtendGraph(session, bytes->data, bytes->length, status);
  CT_OK(status);
  TF_DeleteBuffer(bytes);
  ct_close(&t);
}

static void close_session(TF_DeprecatedSession* session, TF_Status* status) {
  TF_CloseDeprecatedSession(session, status);
  CT_OK(status);
  TF_DeleteDeprecatedSession(session, status);
  CT_OK(status);
  TF_DeleteStatus(status);
}

CT_TEST(CAPI, DeprecatedSession) {
  TF_Status* s = TF_NewStatus();
  TF_DeprecatedSession* session = open_session(s);
  TF_Run(session, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, 0, NULL, s);
  CT_ERROR(s, TF_INVALID_ARGUMENT, "Session was not created with a graph before Run()!");
  TF_Buffer* metadata = TF_NewBuffer();
  TF_Buffer* options = TF_NewBufferFromString("", 0);
  TF_Run(session, options, NULL, NULL, 0, NULL, NULL, 0, NULL, 0, metadata, s);
  CT_ERROR(s, TF_INVALID_ARGUMENT, "Session was not created with a graph before Run()!");
  TF_DeleteBuffer(metadata);
  TF_DeleteBuffer(options);
  close_session(session, s);
}

CT_TEST(CAPI, DeprecatedSessionRuns) {
  TF_Status* s = TF_NewStatus();
  TF_DeprecatedSession* session = open_session(s);
  extend(session, s);
  const char* inputs[] = {"feed"};
  const char* outputs[] = {"neg:0", "add"};
  // The fed tensors stay the caller's.
  TF_Tensor* values[] = {ct_int32(3)};
  TF_Tensor* results[2] = {0};
  TF_Run(session, NULL, inputs, values, 1, outputs, results, 2, NULL, 0, NULL, s);
  CT_OK(s);
  CT_INT(ct_take_int32(results[0]), -5);
  CT_INT(ct_take_int32(results[1]), 5);
  TF_DeleteTensor(values[0]);
  const char* unknown[] = {"absent"};
  TF_Tensor* again[] = {ct_int32(3)};
  results[0] = NULL;
  TF_Run(session, NULL, inputs, again, 1, unknown, results, 1, NULL, 0, NULL, s);
  CT_ERROR_HAS(s, TF_INVALID_ARGUMENT, "absent:0");
  TF_DeleteTensor(again[0]);
  cr_assert_null(results[0]);
  TF_ExtendGraph(session, "\xff\xff", 2, s);
  CT_ERROR(s, TF_INVALID_ARGUMENT, "Invalid GraphDef");
  TF_DeviceList* list = TF_DeprecatedSessionListDevices(session, s);
  CT_OK(s);
  cr_assert_geq(TF_DeviceListCount(list), 1);
  TF_DeleteDeviceList(list);
  close_session(session, s);
}

// A node that cannot run fails the steps that want it, and no others.
CT_TEST(CAPI, DeprecatedSessionKeepsMisfits) {
  TF_Status* s = TF_NewStatus();
  TF_DeprecatedSession* session = open_session(s);
  extend(session, s);
  ct_t t = ct_open();
  TF_Operation* x = ct_placeholder_shaped(&t, t.graph, "x1", TF_FLOAT, (int64_t[]){2, 3}, 2);
  TF_Operation* y = ct_placeholder_shaped(&t, t.graph, "y1", TF_FLOAT, (int64_t[]){3, 2}, 2);
  TF_OperationDescription* desc = TF_NewOperation(t.graph, "MatMul", "product");
  TF_AddInput(desc, ct_out(x, 0));
  TF_AddInput(desc, ct_out(y, 0));
  TF_FinishOperation(desc, s);
  CT_OK(s);
  TF_Buffer* bytes = ct_graph_def(t.graph);
  // The product reads x1 twice.
  for (char* at = (char*)bytes->data; at < (char*)bytes->data + bytes->length - 4; ++at)
    if (!memcmp(at, "\x1a\x02y1", 4)) at[2] = 'x';
  TF_ExtendGraph(session, bytes->data, bytes->length, s);
  CT_OK(s);
  TF_DeleteBuffer(bytes);
  ct_close(&t);
  TF_Tensor* result = NULL;
  TF_Run(session, NULL, NULL, NULL, 0, (const char*[]){"two"}, &result, 1, NULL, 0, NULL, s);
  CT_OK(s);
  CT_INT(ct_take_int32(result), 2);
  TF_Tensor* fed = TF_AllocateTensor(TF_FLOAT, (int64_t[]){2, 3}, 2, 6 * sizeof(float));
  memset(TF_TensorData(fed), 0, TF_TensorByteSize(fed));
  TF_Run(session, NULL, (const char*[]){"x1"}, &fed, 1, (const char*[]){"product"}, &result, 1,
         NULL, 0, NULL, s);
  CT_ERROR_HAS(s, TF_INVALID_ARGUMENT, "Matrix size-incompatible: In[0]: [2,3], In[1]: [2,3]");
  TF_DeleteTensor(fed);
  close_session(session, s);
}

CT_TEST(CAPI, DeprecatedPartialRun) {
  TF_Status* s = TF_NewStatus();
  TF_DeprecatedSession* session = open_session(s);
  extend(session, s);
  const char* inputs[] = {"feed"};
  const char* outputs[] = {"add", "neg"};
  const char* handle = NULL;
  TF_PRunSetup(session, inputs, 1, outputs, 2, NULL, 0, &handle, s);
  CT_OK(s);
  TF_Tensor* values[] = {ct_int32(3)};
  TF_Tensor* results[1] = {0};
  TF_PRun(session, handle, inputs, values, 1, outputs, results, 1, NULL, 0, s);
  CT_OK(s);
  CT_INT(ct_take_int32(results[0]), 5);
  TF_PRun(session, handle, NULL, NULL, 0, outputs + 1, results, 1, NULL, 0, s);
  CT_OK(s);
  CT_INT(ct_take_int32(results[0]), -5);
  TF_DeleteTensor(values[0]);
  TF_DeletePRunHandle(handle);
  close_session(session, s);
}

CT_TEST(CAPI, Reset) {
  TF_Status* s = TF_NewStatus();
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Reset(options, NULL, 0, s);
  CT_OK(s);
  TF_DeleteSessionOptions(options);
  TF_DeleteStatus(s);
}

// Sessions: runs, growing graphs, wrong feeds and fetches, partial runs, options, devices.
#include <unistd.h>

#include "tensorflow/c/c_api_experimental.h"
#include "util.h"

CT_TEST(CAPI, Session) {
  ct_t t = ct_open();
  TF_Operation* feed = ct_placeholder(&t, t.graph, "feed", TF_INT32);
  TF_Operation* two = ct_scalar(&t, t.graph, "scalar", 2);
  TF_Operation* add = ct_add(&t, t.graph, "add", ct_out(feed, 0), ct_out(two, 0));
  CT_INT(ct_take_int32(ct_run1(&t, feed, ct_int32(3), add)), 5);

  // Added after the session was made and has run.
  TF_Operation* neg = ct_neg(&t, t.graph, "neg", add);
  CT_INT(ct_take_int32(ct_run1(&t, feed, ct_int32(7), neg)), -9);
  for (int32_t i = 0; i < 50; ++i) {
    CT_INT(ct_take_int32(ct_run1(&t, feed, ct_int32(i), neg)), -2 - i);
  }
  ct_close(&t);
}

CT_TEST(CAPI, SessionManyOutputs) {
  ct_t t = ct_open();
  TF_Operation* feed = ct_placeholder(&t, t.graph, "feed", TF_INT32);
  TF_Operation* two = ct_scalar(&t, t.graph, "two", 2);
  TF_Operation* add = ct_add(&t, t.graph, "add", ct_out(feed, 0), ct_out(two, 0));
  TF_Operation* neg = ct_neg(&t, t.graph, "neg", add);
  // A fetch asked for twice, a constant, a target besides.
  TF_Output feeds[] = {ct_out(feed, 0)};
  TF_Tensor* value = ct_int32(5);
  TF_Output fetches[] = {ct_out(neg, 0), ct_out(add, 0), ct_out(neg, 0), ct_out(two, 0)};
  TF_Tensor* results[4] = {0};
  const TF_Operation* targets[] = {add};
  TF_SessionRun(ct_session(&t, NULL), NULL, feeds, &value, 1, fetches, results, 4, targets, 1, NULL,
                t.status);
  CT_OK(t.status);
  TF_DeleteTensor(value);
  CT_INT(ct_take_int32(results[0]), -7);
  CT_INT(ct_take_int32(results[1]), 7);
  CT_INT(ct_take_int32(results[2]), -7);
  CT_INT(ct_take_int32(results[3]), 2);
  ct_close(&t);
}

CT_TEST(CAPI, SessionFeedOverridesTheGraph) {
  // Feeding an inner node cuts off what computes it.
  ct_t t = ct_open();
  TF_Operation* feed = ct_placeholder(&t, t.graph, "feed", TF_INT32);
  TF_Operation* two = ct_scalar(&t, t.graph, "two", 2);
  TF_Operation* add = ct_add(&t, t.graph, "add", ct_out(feed, 0), ct_out(two, 0));
  TF_Operation* neg = ct_neg(&t, t.graph, "neg", add);
  CT_INT(ct_take_int32(ct_run1(&t, add, ct_int32(40), neg)), -40);
  ct_close(&t);
}

CT_TEST(CAPI, SessionFedTensorIsTheCallers) {
  // A fed buffer is neither changed nor kept after the run, even when it is fetched back.
  ct_t t = ct_open();
  TF_Operation* feed = ct_placeholder(&t, t.graph, "feed", TF_INT32);
  TF_Operation* identity = ct_unary(&t, t.graph, "Identity", "identity", ct_out(feed, 0));
  TF_Operation* neg = ct_neg(&t, t.graph, "neg", identity);
  int32_t values[4] __attribute__((aligned(64))) = {1, 2, 3, 4};
  int64_t dims[] = {4};
  int calls = 0;
  TF_Tensor* tensor = TF_NewTensor(TF_INT32, dims, 1, values, sizeof values, ct_count_call, &calls);
  TF_Output feeds[] = {ct_out(feed, 0)};
  TF_Output fetches[] = {ct_out(neg, 0), ct_out(identity, 0)};
  TF_Tensor* results[2] = {0};
  TF_SessionRun(ct_session(&t, NULL), NULL, feeds, &tensor, 1, fetches, results, 2, NULL, 0, NULL,
                t.status);
  CT_OK(t.status);
  CT_INT(values[3], 4);
  CT_INT(((int32_t*)TF_TensorData(results[0]))[3], -4);
  CT_INT(((int32_t*)TF_TensorData(results[1]))[3], 4);
  TF_DeleteTensor(results[0]);
  TF_DeleteTensor(tensor);
  TF_DeleteTensor(results[1]);
  CT_INT(calls, 1);
  ct_close(&t);
}

// Min of [3, 5; 2, 0] over the first axis, on |device|.
static void run_min(const char* device, bool xla) {
  ct_t t = ct_open();
  TF_SessionOptions* options = TF_NewSessionOptions();
  if (xla) TF_EnableXLACompilation(options, 1);
  TF_Operation* feed = ct_placeholder(&t, t.graph, "feed", TF_INT32);
  int32_t axis[] = {0};
  TF_Operation* axes = ct_const(&t, t.graph, "axes", ct_int32_vector(1, axis));
  TF_Operation* min = ct_min(&t, t.graph, "min", feed, axes, device);
  t.session = TF_NewSession(t.graph, options, t.status);
  CT_OK(t.status);
  TF_DeleteSessionOptions(options);
  int32_t values[] = {3, 5, 2, 0};
  int64_t dims[] = {2, 2};
  TF_Tensor* result = ct_run1(&t, feed, ct_tensor(TF_INT32, dims, 2, values, sizeof values), min);
  CT_INT(TF_NumDims(result), 1);
  CT_INT(TF_Dim(result, 0), 2);
  CT_INT(((int32_t*)TF_TensorData(result))[0], 2);
  CT_INT(((int32_t*)TF_TensorData(result))[1], 0);
  TF_DeleteTensor(result);
  ct_close(&t);
}

static bool has_device(const char* type) {
  ct_t t = ct_open();
  TF_DeviceList* list = TF_SessionListDevices(ct_session(&t, NULL), t.status);
  CT_OK(t.status);
  bool found = false;
  for (int i = 0; i < TF_DeviceListCount(list); ++i) {
    found |= strcmp(TF_DeviceListType(list, i, t.status), type) == 0;
  }
  TF_DeleteDeviceList(list);
  ct_close(&t);
  return found;
}

CT_TEST(CAPI, Session_Min_CPU) { run_min("/device:CPU:0", false); }
CT_TEST(CAPI, Session_Min_XLA_CPU) { run_min("/device:CPU:0", true); }

CT_TEST(CAPI, Session_Min_GPU) {
  if (!has_device("GPU")) cr_skip_test("no GPU");
  run_min("/device:GPU:0", false);
}

CT_TEST(CAPI, Session_Min_XLA_GPU) {
  if (!has_device("GPU")) cr_skip_test("no GPU");
  run_min("/device:GPU:0", true);
}

CT_TEST(CAPI, SessionPRun) {
  // A + 2 in a first phase, then + B.
  ct_t t = ct_open();
  TF_Operation* a = ct_placeholder(&t, t.graph, "A", TF_INT32);
  TF_Operation* b = ct_placeholder(&t, t.graph, "B", TF_INT32);
  TF_Operation* two = ct_scalar(&t, t.graph, "two", 2);
  TF_Operation* plus2 = ct_add(&t, t.graph, "plus2", ct_out(a, 0), ct_out(two, 0));
  TF_Operation* plus_b = ct_add(&t, t.graph, "plusB", ct_out(plus2, 0), ct_out(b, 0));
  TF_Session* session = ct_session(&t, NULL);
  TF_Output feeds[] = {ct_out(a, 0), ct_out(b, 0)};
  TF_Output fetches[] = {ct_out(plus2, 0), ct_out(plus_b, 0)};
  const char* handle = NULL;
  TF_SessionPRunSetup(session, feeds, 2, fetches, 2, NULL, 0, &handle, t.status);
  CT_OK(t.status);
  cr_assert_not_null(handle);

  TF_Tensor* value = ct_int32(1);
  TF_Tensor* result = NULL;
  TF_SessionPRun(session, handle, feeds, &value, 1, fetches, &result, 1, NULL, 0, t.status);
  CT_OK(t.status);
  CT_INT(ct_take_int32(result), 3);
  TF_DeleteTensor(value);

  value = ct_int32(4);
  result = NULL;
  TF_SessionPRun(session, handle, feeds + 1, &value, 1, fetches + 1, &result, 1, NULL, 0, t.status);
  CT_OK(t.status);
  CT_INT(ct_take_int32(result), 7);
  TF_DeleteTensor(value);
  TF_DeletePRunHandle(handle);
  ct_close(&t);
}

CT_TEST(CAPI, SessionPRunErrors) {
  ct_t t = ct_open();
  TF_Operation* a = ct_placeholder(&t, t.graph, "A", TF_INT32);
  TF_Operation* b = ct_placeholder(&t, t.graph, "B", TF_INT32);
  TF_Operation* sum = ct_add(&t, t.graph, "sum", ct_out(a, 0), ct_out(b, 0));
  TF_Operation* other = ct_neg(&t, t.graph, "other", a);
  TF_Session* session = ct_session(&t, NULL);
  TF_Output feeds[] = {ct_out(a, 0), ct_out(b, 0)};
  TF_Output fetches[] = {ct_out(sum, 0)};
  const char* handle = NULL;
  TF_SessionPRunSetup(session, feeds, 2, fetches, 1, NULL, 0, &handle, t.status);
  CT_OK(t.status);
  // A fetch that was not set up, one whose feeds have not all come, a handle nobody gave out.
  TF_Tensor* value = ct_int32(1);
  TF_Tensor* result = NULL;
  TF_Output wrong[] = {ct_out(other, 0)};
  TF_SessionPRun(session, handle, feeds, &value, 1, wrong, &result, 1, NULL, 0, t.status);
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT, "other:0");
  TF_SessionPRun(session, handle, feeds, &value, 1, fetches, &result, 1, NULL, 0, t.status);
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT,
               "can't be computed from the feeds that have been fed so far.");
  TF_SessionPRun(session, "no_such_handle", feeds, &value, 1, fetches, &result, 1, NULL, 0,
                 t.status);
  CT_CODE(t.status, TF_INVALID_ARGUMENT);
  cr_assert_null(result);
  // Both at once completes it; the same feed again is refused.
  TF_Tensor* both[] = {value, value};
  TF_SessionPRun(session, handle, feeds, both, 2, fetches, &result, 1, NULL, 0, t.status);
  CT_OK(t.status);
  CT_INT(ct_take_int32(result), 2);
  TF_SessionPRun(session, handle, feeds, both, 2, fetches, &result, 1, NULL, 0, t.status);
  CT_CODE(t.status, TF_INVALID_ARGUMENT);
  TF_DeleteTensor(value);
  TF_DeletePRunHandle(handle);
  ct_close(&t);
}

CT_TEST(CAPI, SessionFeedAndFetchErrors) {
  ct_t t = ct_open();
  TF_Operation* feed = ct_placeholder(&t, t.graph, "feed", TF_INT32);
  TF_Operation* neg = ct_neg(&t, t.graph, "neg", feed);
  TF_Output f = ct_out(feed, 0);

  cr_assert_null(ct_try_run(&t, 0, NULL, NULL, ct_out(neg, 0)));
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT,
               "You must feed a value for placeholder tensor 'feed' with dtype int32");

  TF_Tensor* value = ct_float(1);
  cr_assert_null(ct_try_run(&t, 1, &f, &value, ct_out(neg, 0)));
  CT_CODE(t.status, TF_INVALID_ARGUMENT);

  value = ct_int32(1);
  TF_Output bad = ct_out(feed, 3);
  cr_assert_null(ct_try_run(&t, 1, &bad, &value, ct_out(neg, 0)));
  CT_ERROR(t.status, TF_OUT_OF_RANGE,
           "Node 'feed' (type: 'Placeholder', num of outputs: 1) does not have output 3");

  value = ct_int32(1);
  cr_assert_null(ct_try_run(&t, 1, &f, &value, ct_out(neg, 7)));
  CT_ERROR(t.status, TF_OUT_OF_RANGE,
           "Node 'neg' (type: 'Neg', num of outputs: 1) does not have output 7");

  TF_Output twice[] = {f, f};
  TF_Tensor* values[] = {ct_int32(1), ct_int32(2)};
  cr_assert_null(ct_try_run(&t, 2, twice, values, ct_out(neg, 0)));
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT, "feed:0");

  // Nothing asked for is an answer, too.
  TF_SessionRun(ct_session(&t, NULL), NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, 0, NULL, t.status);
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT,
               "Must specify at least one target to fetch or execute.");
  // The session still works.
  CT_INT(ct_take_int32(ct_run1(&t, feed, ct_int32(9), neg)), -9);
  ct_close(&t);
}

CT_TEST(CAPI, KernelErrorNamesTheNode) {
  ct_t t = ct_open();
  TF_Operation* x = ct_placeholder(&t, t.graph, "x", TF_INT32);
  TF_Operation* y = ct_placeholder(&t, t.graph, "y", TF_INT32);
  TF_Operation* bad = ct_binary(&t, t.graph, "AddV2", "culprit", ct_out(x, 0), ct_out(y, 0));
  int32_t numbers[] = {1, 2, 3};
  TF_Output feeds[] = {ct_out(x, 0), ct_out(y, 0)};
  TF_Tensor* values[] = {ct_int32_vector(2, numbers), ct_int32_vector(3, numbers)};
  cr_assert_null(ct_try_run(&t, 2, feeds, values, ct_out(bad, 0)));
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT, "culprit");
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT, "Incompatible shapes: [2] vs. [3]");
  TF_Tensor* good[] = {ct_int32(1), ct_int32(2)};
  CT_INT(ct_take_int32(ct_run(&t, 2, feeds, good, ct_out(bad, 0))), 3);
  ct_close(&t);
}

CT_TEST(CAPI, UnplaceableNode) {
  ct_t t = ct_open();
  TF_Operation* one = ct_scalar(&t, t.graph, "one", 1);
  TF_OperationDescription* desc = TF_NewOperation(t.graph, "Neg", "neg");
  TF_AddInput(desc, ct_out(one, 0));
  TF_SetDevice(desc, "/device:GPU:77");
  TF_Operation* neg = TF_FinishOperation(desc, t.status);
  CT_OK(t.status);
  cr_assert_null(ct_try_run(&t, 0, NULL, NULL, ct_out(neg, 0)));
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT, "Cannot assign a device for operation neg");
  ct_close(&t);
}

CT_TEST(CAPI, SoftPlacement) {
  ct_t t = ct_open();
  TF_Operation* one = ct_scalar(&t, t.graph, "one", 1);
  TF_OperationDescription* desc = TF_NewOperation(t.graph, "Neg", "neg");
  TF_AddInput(desc, ct_out(one, 0));
  TF_SetDevice(desc, "/device:GPU:77");
  TF_Operation* neg = TF_FinishOperation(desc, t.status);
  CT_OK(t.status);
  pb_t config = {0};
  pb_varint(&config, 7, 1);  // allow_soft_placement
  ct_session(&t, &config);
  CT_INT(ct_take_int32(ct_run0(&t, neg)), -1);
  pb_free(&config);
  ct_close(&t);
}

CT_TEST(CAPI, SessionConfigOneThread) {
  ct_t t = ct_open();
  TF_Operation* one = ct_scalar(&t, t.graph, "one", 1);
  TF_Operation* neg = ct_neg(&t, t.graph, "neg", one);
  pb_t config = {0};
  pb_varint(&config, 2, 1);  // intra_op_parallelism_threads
  pb_varint(&config, 5, 1);  // inter_op_parallelism_threads
  pb_t graph_options = {0}, optimizer = {0};
  pb_varint(&optimizer, 3, (uint64_t)-1);  // opt_level L0
  pb_message(&graph_options, 3, &optimizer);
  pb_message(&config, 10, &graph_options);
  ct_session(&t, &config);
  CT_INT(ct_take_int32(ct_run0(&t, neg)), -1);
  pb_free(&config);
  ct_close(&t);
}

CT_TEST(CAPI, TwoCpuDevices) {
  // ConfigProto.device_count {"CPU": 2}: a graph over both.
  ct_t t = ct_open();
  pb_t config = {0}, entry = {0};
  pb_string(&entry, 1, "CPU");
  pb_varint(&entry, 2, 2);
  pb_message(&config, 1, &entry);
  TF_Operation* one = ct_scalar(&t, t.graph, "one", 1);
  TF_OperationDescription* desc = TF_NewOperation(t.graph, "Neg", "neg");
  TF_AddInput(desc, ct_out(one, 0));
  TF_SetDevice(desc, "/device:CPU:1");
  TF_Operation* neg = TF_FinishOperation(desc, t.status);
  CT_OK(t.status);
  TF_Operation* back = ct_neg(&t, t.graph, "back", neg);
  TF_DeviceList* list = TF_SessionListDevices(ct_session(&t, &config), t.status);
  CT_OK(t.status);
  int cpus = 0;
  for (int i = 0; i < TF_DeviceListCount(list); ++i) {
    cpus += strcmp(TF_DeviceListType(list, i, t.status), "CPU") == 0;
  }
  CT_INT(cpus, 2);
  TF_DeleteDeviceList(list);
  CT_INT(ct_take_int32(ct_run0(&t, back)), 1);
  pb_free(&config);
  ct_close(&t);
}

CT_TEST(CAPI, UnknownTarget) {
  ct_t t = ct_open();
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_SetTarget(options, "no_such_runtime");
  cr_assert_null(TF_NewSession(t.graph, options, t.status));
  CT_CODE(t.status, TF_NOT_FOUND);
  TF_DeleteSessionOptions(options);
  ct_close(&t);
}

CT_TEST(CAPI, DeviceList) {
  ct_t t = ct_open();
  TF_DeviceList* list = TF_SessionListDevices(ct_session(&t, NULL), t.status);
  CT_OK(t.status);
  cr_assert_geq(TF_DeviceListCount(list), 1);
  CT_STR(TF_DeviceListName(list, 0, t.status), "/job:localhost/replica:0/task:0/device:CPU:0");
  CT_OK(t.status);
  CT_STR(TF_DeviceListType(list, 0, t.status), "CPU");
  cr_assert_gt(TF_DeviceListMemoryBytes(list, 0, t.status), 0);
  CT_OK(t.status);
  cr_assert_neq(TF_DeviceListIncarnation(list, 0, t.status), 0);
  CT_OK(t.status);
  TF_DeviceListName(list, 1000, t.status);
  CT_ERROR(t.status, TF_INVALID_ARGUMENT, "index out of bounds");
  TF_DeleteDeviceList(list);
  ct_close(&t);
}

CT_TEST(CAPI, ManySessionsOfOneGraph) {
  ct_t t = ct_open();
  TF_Operation* one = ct_scalar(&t, t.graph, "one", 1);
  TF_Operation* neg = ct_neg(&t, t.graph, "neg", one);
  for (int i = 0; i < 20; ++i) {
    CT_INT(ct_take_int32(ct_run0(&t, neg)), -1);
    TF_CloseSession(t.session, t.status);
    CT_OK(t.status);
    TF_DeleteSession(t.session, t.status);
    CT_OK(t.status);
    t.session = NULL;
  }
  ct_close(&t);
}

CT_TEST(CAPI, ExtendSession) {
  ct_t t = ct_open();
  TF_Operation* one = ct_scalar(&t, t.graph, "one", 1);
  CT_INT(ct_take_int32(ct_run0(&t, one)), 1);
  TF_Operation* neg = ct_neg(&t, t.graph, "neg", one);
  TF_ExtendSession(t.session, t.status);
  CT_OK(t.status);
  CT_INT(ct_take_int32(ct_run0(&t, neg)), -1);
  ct_close(&t);
}

CT_TEST(CAPI, RandomOpsAreNotCached) {
  ct_t t = ct_open();
  int32_t dims[] = {16};
  TF_Operation* shape = ct_const(&t, t.graph, "shape", ct_int32_vector(1, dims));
  TF_Operation* random = ct_random_uniform(&t, t.graph, "random", shape, TF_FLOAT);
  TF_Tensor* a = ct_run0(&t, random);
  TF_Tensor* b = ct_run0(&t, random);
  CT_INT(TF_TensorByteSize(a), 64);
  cr_assert_neq(memcmp(TF_TensorData(a), TF_TensorData(b), 64), 0);
  const float* values = TF_TensorData(a);
  for (int i = 0; i < 16; ++i) cr_assert(values[i] >= 0 && values[i] < 1);
  TF_DeleteTensor(a);
  TF_DeleteTensor(b);
  ct_close(&t);
}

// A placeholder's shape constrains the graph, not what is fed; an op that cannot use a fed shape
// reports it.
CT_TEST(CAPI, FeedsOfOtherShapes) {
  ct_t t = ct_open();
  TF_OperationDescription* desc = TF_NewOperation(t.graph, "Placeholder", "x");
  int64_t declared = 2;
  TF_SetAttrType(desc, "dtype", TF_INT32);
  TF_SetAttrShape(desc, "shape", &declared, 1);
  TF_Operation* x = TF_FinishOperation(desc, t.status);
  CT_OK(t.status);
  TF_Operation* two = ct_const(&t, t.graph, "two", ct_int32_vector(1, (const int32_t[]){2}));
  TF_Operation* neg = ct_neg(&t, t.graph, "neg", x);
  desc = TF_NewOperation(t.graph, "Reshape", "reshape");
  TF_AddInput(desc, ct_out(neg, 0));
  TF_AddInput(desc, ct_out(two, 0));
  TF_Operation* reshape = TF_FinishOperation(desc, t.status);
  CT_OK(t.status);
  const int32_t values[] = {1, 2, 3, 4, 5};
  for (int count = 0; count < 6; ++count) {
    TF_Tensor* fed = ct_int32_vector(count, values);
    TF_Output feed = ct_out(x, 0);
    TF_Tensor* result = ct_run(&t, 1, &feed, &fed, ct_out(neg, 0));
    CT_INT(TF_Dim(result, 0), count);
    for (int i = 0; i < count; ++i) CT_INT(((int32_t*)TF_TensorData(result))[i], -values[i]);
    TF_DeleteTensor(result);
    TF_Output fetch = ct_out(reshape, 0);
    fed = ct_int32_vector(count, values);
    result = NULL;
    TF_SessionRun(t.session, NULL, &feed, &fed, 1, &fetch, &result, 1, NULL, 0, NULL, t.status);
    if (count == 2)
      CT_OK(t.status);
    else
      CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT, "Input to reshape is a tensor with");
    TF_DeleteTensor(result);
    TF_DeleteTensor(fed);
  }
  ct_close(&t);
}

// Feeds are numbered in the order of their names, whichever way they are given.
CT_TEST(CAPI, FeedsOfOtherTypes) {
  ct_t t = ct_open();
  TF_Operation* z = ct_placeholder(&t, t.graph, "z", TF_FLOAT);
  TF_Operation* below = ct_placeholder(&t, t.graph, "z/below", TF_FLOAT);
  TF_Operation* add = ct_add(&t, t.graph, "add", ct_out(z, 0), ct_out(below, 0));
  TF_Output feeds[] = {ct_out(z, 0), ct_out(below, 0)}, fetch = ct_out(add, 0);
  TF_Tensor *number = ct_float(1), *integer = ct_int32(1), *flag = ct_bool(true), *result = NULL;
  TF_Tensor* const values[][2] = {{integer, number}, {number, integer}, {integer, flag}};
  static const char* const messages[] = {"Expects arg[1] to be float but int32 is provided",
                                         "Expects arg[0] to be float but int32 is provided",
                                         "Expects arg[0] to be float but bool is provided"};
  ct_session(&t, NULL);
  for (int i = 0; i < 3; ++i) {
    TF_SessionRun(t.session, NULL, feeds, values[i], 2, &fetch, &result, 1, NULL, 0, NULL,
                  t.status);
    CT_ERROR(t.status, TF_INVALID_ARGUMENT, messages[i]);
  }
  TF_DeleteTensor(number);
  TF_DeleteTensor(integer);
  TF_DeleteTensor(flag);
  ct_close(&t);
}

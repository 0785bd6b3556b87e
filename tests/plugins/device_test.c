// The toy device in sessions. Host code that touches its memory ends the process.
#include <pthread.h>

#include "plugins.h"

static const float matrix[] = {1, 2, 3, -4};

CT_TEST(plugins_device, listed) {
  ct_t t = pt_open();
  TF_Session* session = ct_session(&t, NULL);
  TF_DeviceList* list = TF_SessionListDevices(session, t.status);
  CT_OK(t.status);
  int toys = 0;
  for (int i = 0; i < TF_DeviceListCount(list); ++i) {
    if (strcmp(TF_DeviceListType(list, i, t.status), "TOY") != 0) continue;
    char name[80];
    snprintf(name, sizeof name, "/job:localhost/replica:0/task:0/device:TOY:%d", toys++);
    CT_STR(TF_DeviceListName(list, i, t.status), name);
    CT_INT(TF_DeviceListMemoryBytes(list, i, t.status), 806354944);
    cr_assert(TF_DeviceListIncarnation(list, i, t.status) != 0);
  }
  CT_INT(toys, 2);
  TF_DeleteDeviceList(list);
  ct_close(&t);
}

// device_count limits the devices of a plug-in's type.
CT_TEST(plugins_device, counted) {
  ct_t t = pt_open();
  pb_t config = {0}, entry = {0};
  pb_string(&entry, 1, "TOY");
  pb_varint(&entry, 2, 1);
  pb_message(&config, 1, &entry);
  TF_Session* session = ct_session(&t, &config);
  TF_DeviceList* list = TF_SessionListDevices(session, t.status);
  int toys = 0;
  for (int i = 0; i < TF_DeviceListCount(list); ++i)
    toys += strcmp(TF_DeviceListType(list, i, t.status), "TOY") == 0;
  CT_INT(toys, 1);
  TF_DeleteDeviceList(list);
  pb_free(&config);
  ct_close(&t);
}

// x -> (x x + 1) * fill, on |device|.
static TF_Output build(ct_t* t, const char* device, TF_Output* out_x) {
  *out_x = ct_out(ct_placeholder(t, t->graph, "x", TF_FLOAT), 0);
  TF_Output product = pt_node(t, "MatMul", "product", device, *out_x, *out_x);
  TF_Output one = pt_const(t, "one", device, ct_float(1));
  TF_Output sum = pt_node(t, "AddV2", "sum", device, product, one);
  int32_t dims[] = {2, 2};
  TF_Output shape = pt_const(t, "shape", device, ct_int32_vector(2, dims));
  TF_Output three = pt_const(t, "three", device, ct_float(3));
  TF_Output fill = pt_node(t, "Fill", "fill", device, shape, three);
  return pt_node(t, "Mul", "mul", device, sum, fill);
}

CT_TEST(plugins_device, computes) {
  ct_t t = pt_open();
  TF_Output x, y = build(&t, PT_TOY, &x);
  for (int i = 0; i < 20; ++i)
    PT_EXPECT(ct_run1(&t, x.oper, ct_float_matrix(2, 2, matrix), y.oper), 24, -15, -24, 69);
  ct_close(&t);
}

CT_TEST(plugins_device, allocates_by_itself) {
  setenv("TOY_NO_BFC", "1", 1);
  ct_t t = pt_open();
  TF_Output x, y = build(&t, PT_TOY, &x);
  for (int i = 0; i < 5; ++i)
    PT_EXPECT(ct_run1(&t, x.oper, ct_float_matrix(2, 2, matrix), y.oper), 24, -15, -24, 69);
  ct_close(&t);
}

// Values go from one toy to the CPU and to the other toy.
CT_TEST(plugins_device, between_devices) {
  ct_t t = pt_open();
  TF_Output x = ct_out(ct_placeholder(&t, t.graph, "x", TF_FLOAT), 0);
  TF_Output a = pt_node(&t, "AddV2", "a", PT_TOY, x, x);
  TF_Output b = pt_node(&t, "Square", "b", PT_CPU, a, PT_NONE);
  TF_Output c = pt_node(&t, "Sub", "c", PT_TOY1, b, a);
  TF_Output d = pt_node(&t, "Mul", "d", PT_TOY, c, a);
  for (int i = 0; i < 10; ++i)
    PT_EXPECT(ct_run1(&t, x.oper, pt_floats(2, (float[]){1, 3}), d.oper), 4, 180);
  ct_close(&t);
}

// Nodes without a device go to the plug-in if it has a kernel for them. This one fails there.
CT_TEST(plugins_device, preferred) {
  ct_t t = pt_open();
  TF_Output x = ct_out(ct_placeholder(&t, t.graph, "x", TF_FLOAT), 0);
  TF_Output root = pt_node(&t, "Square", "square", NULL, x, PT_NONE);
  TF_Output sum = pt_node(&t, "AddV2", "sum", NULL, root, root);
  PT_EXPECT(ct_run1(&t, x.oper, pt_floats(2, (float[]){1, 3}), sum.oper), 2, 18);
  ct_close(&t);
}

CT_TEST(plugins_device, reports_failures) {
  ct_t t = pt_open();
  TF_Output x = ct_out(ct_placeholder(&t, t.graph, "x", TF_FLOAT), 0);
  TF_Output sign = pt_node(&t, "Sign", "sign", NULL, x, PT_NONE);
  TF_Tensor* value = ct_float(1);
  cr_assert_null(ct_try_run(&t, 1, &x, &value, sign));
  CT_ERROR_HAS(t.status, TF_DATA_LOSS, "toys have no sign");
  CT_ERROR_HAS(t.status, TF_DATA_LOSS, "sign");
  TF_Output sum = pt_node(&t, "AddV2", "sum", PT_TOY, x, x);
  PT_EXPECT(ct_run1(&t, x.oper, ct_float(4), sum.oper), 8);
  ct_close(&t);
}

// The device has 1 GiB; the session lives on.
CT_TEST(plugins_device, out_of_memory) {
  ct_t t = pt_open();
  int32_t dims[] = {1 << 14, 1 << 14};
  TF_Output shape = pt_const(&t, "shape", PT_TOY, ct_int32_vector(2, dims));
  TF_Output one = pt_const(&t, "one", PT_TOY, ct_float(1));
  TF_Output fill = pt_node(&t, "Fill", "fill", PT_TOY, shape, one);
  cr_assert_null(ct_try_run(&t, 0, NULL, NULL, fill));
  CT_CODE(t.status, TF_RESOURCE_EXHAUSTED);
  TF_Output x = ct_out(ct_placeholder(&t, t.graph, "x", TF_FLOAT), 0);
  TF_Output sum = pt_node(&t, "AddV2", "sum", PT_TOY, x, x);
  PT_EXPECT(ct_run1(&t, x.oper, ct_float(4), sum.oper), 8);
  ct_close(&t);
}

// Ops that the plug-in does not have: kernels that touch no bytes of the device serve it.
CT_TEST(plugins_device, default_kernels) {
  ct_t t = pt_open();
  TF_Output x = ct_out(ct_placeholder(&t, t.graph, "x", TF_FLOAT), 0);
  TF_Output sum = pt_node(&t, "AddV2", "sum", PT_TOY, x, x);
  TF_Output same = pt_node(&t, "Identity", "same", PT_TOY, sum, PT_NONE);
  int32_t dims[] = {4};
  TF_Output flat = pt_const(&t, "flat", PT_TOY, ct_int32_vector(1, dims));
  TF_Output vector = pt_node(&t, "Reshape", "vector", PT_TOY, same, flat);
  TF_Output shape = pt_node(&t, "Shape", "shape", PT_TOY, vector, PT_NONE);
  TF_Output twice = pt_node(&t, "AddV2", "twice", PT_TOY, shape, shape);
  TF_Output one = pt_const(&t, "one", PT_TOY, ct_float(1));
  TF_Output ones = pt_node(&t, "Fill", "ones", PT_TOY, twice, one);
  PT_EXPECT(ct_run1(&t, x.oper, ct_float_matrix(2, 2, matrix), vector.oper), 2, 4, 6, -8);
  PT_EXPECT(ct_run1(&t, x.oper, ct_float_matrix(2, 2, matrix), ones.oper), 1, 1, 1, 1, 1, 1, 1, 1);
  ct_close(&t);
}

// A plug-in may bring GPUs; they take the place of built-in ones.
CT_TEST(plugins_device, of_a_built_in_type) {
  setenv("TOY_TYPE", "GPU", 1);
  ct_t t = pt_open();
  TF_Output x, y = build(&t, "/gpu:1", &x);
  PT_EXPECT(ct_run1(&t, x.oper, ct_float_matrix(2, 2, matrix), y.oper), 24, -15, -24, 69);
  TF_DeviceList* list = TF_SessionListDevices(ct_session(&t, NULL), t.status);
  CT_INT(TF_DeviceListCount(list), 3);
  CT_STR(TF_DeviceListName(list, 2, t.status), "/job:localhost/replica:0/task:0/device:GPU:1");
  CT_INT(TF_DeviceListMemoryBytes(list, 2, t.status), 806354944);
  TF_DeleteDeviceList(list);
  ct_close(&t);
}

// There is no kernel for Exp on the toy.
CT_TEST(plugins_device, lacks_a_kernel) {
  ct_t t = pt_open();
  TF_Output x = ct_out(ct_placeholder(&t, t.graph, "x", TF_FLOAT), 0);
  TF_Output e = pt_node(&t, "Exp", "e", PT_TOY, x, PT_NONE);
  TF_Tensor* value = ct_float(0);
  cr_assert_null(ct_try_run(&t, 1, &x, &value, e));
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT, "Could not satisfy explicit device specification");
  ct_close(&t);
}

static TF_Output make_variable(ct_t* t, TF_Output value, TF_Operation** out_assign) {
  TF_OperationDescription* desc = pt_begin(t, "VarHandleOp", "v", PT_TOY, PT_NONE, PT_NONE);
  int64_t dims[] = {2};
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  TF_SetAttrShape(desc, "shape", dims, 1);
  TF_SetAttrString(desc, "shared_name", "v", 1);
  TF_Output handle = pt_end(t, desc);
  desc = pt_begin(t, "AssignVariableOp", "assign", PT_TOY, handle, value);
  *out_assign = TF_FinishOperation(desc, t->status);
  CT_OK(t->status);
  return handle;
}

static TF_Output read_variable(ct_t* t, TF_Output handle, const char* name) {
  TF_OperationDescription* desc = pt_begin(t, "ReadVariableOp", name, PT_TOY, handle, PT_NONE);
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  return pt_end(t, desc);
}

static void run_target(ct_t* t, TF_Output x, const float* values, TF_Operation* target) {
  TF_Tensor* feed = pt_floats(2, values);
  const TF_Operation* targets[] = {target};
  TF_SessionRun(ct_session(t, NULL), NULL, &x, &feed, 1, NULL, NULL, 0, targets, 1, NULL,
                t->status);
  CT_OK(t->status);
  TF_DeleteTensor(feed);
}

CT_TEST(plugins_device, variables) {
  ct_t t = pt_open();
  TF_Output x = ct_out(ct_placeholder(&t, t.graph, "x", TF_FLOAT), 0);
  TF_Operation* assign = NULL;
  TF_Output handle = make_variable(&t, x, &assign);
  TF_Output value = read_variable(&t, handle, "value");
  TF_Output twice = pt_node(&t, "AddV2", "twice", PT_TOY, value, value);
  run_target(&t, x, (float[]){3, 4}, assign);
  PT_EXPECT(ct_run0(&t, value.oper), 3, 4);
  PT_EXPECT(ct_run0(&t, twice.oper), 6, 8);
  run_target(&t, x, (float[]){-1, 2}, assign);
  PT_EXPECT(ct_run0(&t, twice.oper), -2, 4);
  ct_close(&t);
}

// Stock's wheel does not export the functions behind these kernels.
#ifndef CT_STOCK
// Zeros on the device, by the CPU's kernel or by the plug-in's.
static void run_temporary(void) {
  ct_t t = pt_open();
  int64_t dims[] = {2};
  TF_OperationDescription* desc =
      pt_begin(&t, "TemporaryVariable", "make", PT_TOY, PT_NONE, PT_NONE);
  TF_SetAttrShape(desc, "shape", dims, 1);
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  TF_SetAttrString(desc, "var_name", "temp", 4);
  TF_Output made = pt_end(&t, desc);
  desc = pt_begin(&t, "DestroyTemporaryVariable", "take", PT_TOY, made, PT_NONE);
  TF_SetAttrString(desc, "var_name", "temp", 4);
  TF_Output taken = pt_end(&t, desc);
  TF_Output one = pt_const(&t, "one", PT_TOY, ct_float(1));
  TF_Output sum = pt_node(&t, "AddV2", "sum", PT_TOY, taken, one);
  for (int i = 0; i < 3; ++i) PT_EXPECT(ct_run0(&t, sum.oper), 1, 1);
  ct_close(&t);
}
CT_TEST(plugins_device, temporary_variables) { run_temporary(); }
CT_TEST(plugins_device, temporary_variables_of_the_plugin) {
  setenv("TOY_TEMPORARY", "1", 1);
  run_temporary();
}

CT_TEST(plugins_device, updates_variables) {
  ct_t t = pt_open();
  TF_Output x = ct_out(ct_placeholder(&t, t.graph, "x", TF_FLOAT), 0);
  TF_Operation* assign = NULL;
  TF_Output handle = make_variable(&t, x, &assign);
  TF_Output value = read_variable(&t, handle, "value");
  TF_Operation* add =
      TF_FinishOperation(pt_begin(&t, "AssignAddVariableOp", "add", PT_TOY, handle, x), t.status);
  CT_OK(t.status);
  TF_Operation* sub =
      TF_FinishOperation(pt_begin(&t, "AssignSubVariableOp", "sub", PT_TOY, handle, x), t.status);
  CT_OK(t.status);
  TF_Output rate = pt_const(&t, "rate", PT_TOY, ct_float(0.5f));
  TF_OperationDescription* desc =
      pt_begin(&t, "ResourceApplyGradientDescent", "descend", PT_TOY, handle, rate);
  TF_AddInput(desc, x);
  TF_Operation* descend = TF_FinishOperation(desc, t.status);
  CT_OK(t.status);
  run_target(&t, x, (float[]){3, 4}, assign);
  for (int i = 0; i < 10; ++i) run_target(&t, x, (float[]){1, 2}, add);
  PT_EXPECT(ct_run0(&t, value.oper), 13, 24);
  run_target(&t, x, (float[]){3, 4}, sub);
  run_target(&t, x, (float[]){2, 8}, descend);
  PT_EXPECT(ct_run0(&t, value.oper), 9, 16);
  ct_close(&t);
}
#endif

// Sessions come and go; the device stays.
CT_TEST(plugins_device, many_sessions) {
  ct_t first = pt_open();
  ct_close(&first);
  for (int i = 0; i < 20; ++i) {
    ct_t t = ct_open();
    TF_Output x, y = build(&t, i % 2 ? PT_TOY : PT_TOY1, &x);
    PT_EXPECT(ct_run1(&t, x.oper, ct_float_matrix(2, 2, matrix), y.oper), 24, -15, -24, 69);
    ct_close(&t);
  }
}

// Threads share the one stream of a device. With stock this fails now and then: it copies on a
// second stream, and a copy may overtake work that still uses the same memory.
#ifndef CT_STOCK
typedef struct runner_t {
  TF_Session* session;
  TF_Output x, y;
  char problem[200];  // the first; "": none
} runner_t;

static void* run_steps(void* arg) {
  runner_t* runner = arg;
  TF_Status* status = TF_NewStatus();
  for (int i = 0; i < 20 && !runner->problem[0]; ++i) {
    TF_Tensor *feed = ct_float_matrix(2, 2, matrix), *value = NULL;
    TF_SessionRun(runner->session, NULL, &runner->x, &feed, 1, &runner->y, &value, 1, NULL, 0, NULL,
                  status);
    const float* got = value ? TF_TensorData(value) : NULL;
    if (!got)
      snprintf(runner->problem, sizeof runner->problem, "step %d: %s", i, TF_Message(status));
    else if (got[0] != 24 || got[1] != -15 || got[2] != -24 || got[3] != 69)
      snprintf(runner->problem, sizeof runner->problem, "step %d: %g %g %g %g", i, (double)got[0],
               (double)got[1], (double)got[2], (double)got[3]);
    TF_DeleteTensor(feed);
    if (value) TF_DeleteTensor(value);
  }
  TF_DeleteStatus(status);
  return NULL;
}

CT_TEST(plugins_device, concurrent_steps) {
  ct_t t = pt_open();
  TF_Output x, y = build(&t, PT_TOY, &x);
  runner_t runners[4];
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) {
    runners[i] = (runner_t){.session = ct_session(&t, NULL), .x = x, .y = y};
    cr_assert_eq(pthread_create(&threads[i], NULL, run_steps, &runners[i]), 0);
  }
  for (int i = 0; i < 4; ++i) {
    pthread_join(threads[i], NULL);
    CT_STR(runners[i].problem, "");
  }
  ct_close(&t);
}
#endif

// A loop whose values are on the device: while i < 5: i += 1, x += x. Stock gives the same to its
// Python client, but waits forever for a loop that its C API built.
#ifndef CT_STOCK
static void loop_builder(ct_t* t, TF_Output x) {
  TF_Output inputs[] = {pt_const(t, "start", NULL, ct_int32(0)),
                        pt_const(t, "limit", NULL, ct_int32(5)),
                        pt_const(t, "one", NULL, ct_int32(1)), x};
  TF_WhileParams params = TF_NewWhile(t->graph, inputs, 4, t->status);
  CT_OK(t->status);
  params.cond_output = ct_out(
      ct_less(t, params.cond_graph, "less", params.cond_inputs[0], params.cond_inputs[1]), 0);
  params.body_outputs[0] = ct_out(ct_binary(t, params.body_graph, "AddV2", "next",
                                            params.body_inputs[0], params.body_inputs[2]),
                                  0);
  params.body_outputs[1] = params.body_inputs[1];
  params.body_outputs[2] = params.body_inputs[2];
  TF_OperationDescription* desc = TF_NewOperation(params.body_graph, "AddV2", "double");
  TF_SetDevice(desc, PT_TOY);
  TF_AddInput(desc, params.body_inputs[3]);
  TF_AddInput(desc, params.body_inputs[3]);
  params.body_outputs[3] = ct_out(TF_FinishOperation(desc, t->status), 0);
  CT_OK(t->status);
  params.name = "loop";
  TF_Output outputs[4];
  TF_FinishWhile(&params, t->status, outputs);
  CT_OK(t->status);
  TF_Output done = pt_node(t, "AddV2", "done", PT_TOY, outputs[3], outputs[3]);
  PT_EXPECT(ct_run1(t, x.oper, pt_floats(2, (float[]){1, 3}), done.oper), 64, 192);
}

CT_TEST(plugins_device, loops) {
  ct_t t = pt_open();
  loop_builder(&t, ct_out(ct_placeholder(&t, t.graph, "x", TF_FLOAT), 0));
  ct_close(&t);
}

// Here stock ends the process.
CT_TEST(plugins_device, loaded_twice) {
  ct_t t = pt_open();
  pt_load(&t);
  TF_Output x, y = build(&t, PT_TOY, &x);
  PT_EXPECT(ct_run1(&t, x.oper, ct_float_matrix(2, 2, matrix), y.oper), 24, -15, -24, 69);
  ct_close(&t);
}

#endif

CT_TEST(plugins_device, missing_file) {
  ct_t t = ct_open();
  cr_assert_null(TF_LoadPluggableDeviceLibrary("/nowhere/toy.so", t.status));
  CT_ERROR_HAS(t.status, TF_NOT_FOUND, "/nowhere/toy.so: cannot open shared object file");
  ct_close(&t);
}

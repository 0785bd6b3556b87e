// Runs functions of our eager client over several tasks: span_run [ADDRESS ADDRESS]
//
// The addresses are those of two tasks of job worker; without them, it starts the tasks itself. The
// process is a task of the cluster too: parts of functions run in it.
#include "eager_client.h"

// --- Building functions

static TF_Output input_of(TF_Graph* graph, const char* name, TF_DataType type) {
  TF_OperationDescription* d = TF_NewOperation(graph, "Placeholder", name);
  TF_SetAttrType(d, "dtype", type);
  TF_Output out = {TF_FinishOperation(d, s), 0};
  OK();
  return out;
}

// An op of one or two inputs on |device|; NULL: on any.
static TF_Output node(TF_Graph* graph, const char* op, const char* name, TF_Output a,
                      const TF_Output* b, const char* device) {
  TF_OperationDescription* d = TF_NewOperation(graph, op, name);
  TF_AddInput(d, a);
  if (b) TF_AddInput(d, *b);
  if (strcmp(op, "ReadVariableOp") == 0) TF_SetAttrType(d, "dtype", TF_FLOAT);
  if (device) TF_SetDevice(d, device);
  TF_Output out = {TF_FinishOperation(d, s), 0};
  OK();
  return out;
}

static void add(TF_Graph* graph, const char* name, int in, const TF_Output* inputs, int out,
                const TF_Output* outputs) {
  TF_Function* function =
      TF_GraphToFunction(graph, name, 0, -1, NULL, in, inputs, out, outputs, NULL, NULL, NULL, s);
  OK();
  TFE_ContextAddFunction(context, function, s);
  OK();
  TF_DeleteFunction(function);
  TF_DeleteGraph(graph);
}

static void removed(const char* name) {
  TFE_ContextRemoveFunction(context, name, s);
  OK();
}

static void assign(TFE_TensorHandle* v, float value) {
  TFE_TensorHandle* x = scalar(value);
  run("AssignVariableOp", v, x, NULL);
  TFE_DeleteTensorHandle(x);
}

// --- Tests

// spread(x, v) = (x * x on task 0, v + x where v is, their sum here)
static void add_spread(void) {
  TF_Graph* graph = TF_NewGraph();
  TF_Output in[] = {input_of(graph, "x", TF_FLOAT), input_of(graph, "v", TF_RESOURCE)}, out[3];
  out[0] = node(graph, "Mul", "square", in[0], &in[0], W0);
  TF_Output read = node(graph, "ReadVariableOp", "read", in[1], NULL, NULL);
  out[1] = node(graph, "AddV2", "shifted", read, &in[0], W1);
  out[2] = node(graph, "AddV2", "sum", out[0], &out[1], HERE);
  add(graph, "spread", 2, in, 3, out);
}

static void expect_spread(TFE_TensorHandle* x, TFE_TensorHandle* v, const char* device, float a,
                          float b) {
  TFE_TensorHandle* out[3] = {0};
  int count = 3;
  TFE_Op* op = op_of("spread", x, v);
  if (device) TFE_OpSetDevice(op, device, s);
  TFE_Execute(op, out, &count, s);
  OK();
  TFE_DeleteOp(op);
  CHECK(count == 3, "%d results", count);
  expect_on(out[0], W0);
  expect_on(out[1], W1);
  expect_on(out[2], HERE);
  CHECK(TFE_TensorHandleNumDims(out[0], s) == 0, "a scalar");
  CHECK(value_of(out[0], 0) == a && value_of(out[1], 0) == b && value_of(out[2], 0) == a + b,
        "values");
  for (int i = 0; i < 3; ++i) TFE_DeleteTensorHandle(out[i]);
}

// Results stay where they are computed; arguments come from any task.
static void test_spread(void) {
  TFE_TensorHandle *v = variable("spread_v", W1), *x = scalar(3);
  TFE_TensorHandle* far = run("Neg", x, NULL, W0);
  assign(v, 10);
  add_spread();
  for (int i = 0; i < 3; ++i) expect_spread(x, v, NULL, 9, 13);
  expect_spread(far, v, NULL, 9, 7);
  expect_spread(far, v, HERE, 9, 7);
  removed("spread");
  TFE_DeleteTensorHandle(v);
  TFE_DeleteTensorHandle(x);
  TFE_DeleteTensorHandle(far);
}

// One function under a packed variable: every read takes the one on its own device.
static void test_packed(void) {
  const char* const devices[] = {W0, W1, HERE};
  const char* const names[] = {"a", "b", "c"};
  TFE_TensorHandle* parts[3];
  TF_Graph* graph = TF_NewGraph();
  TF_Output v = input_of(graph, "v", TF_RESOURCE), reads[3];
  for (int i = 0; i < 3; ++i) {
    reads[i] = node(graph, "ReadVariableOp", names[i], v, NULL, devices[i]);
    parts[i] = variable(names[i], devices[i]);
    assign(parts[i], (float)(i + 1));
  }
  TF_Output two = node(graph, "AddV2", "two", reads[0], &reads[1], NULL);
  TF_Output all = node(graph, "Mul", "all", two, &reads[2], NULL);
  add(graph, "packed", 1, &v, 1, &all);
  int count = 3;
  TFE_TensorHandle* packed = TFE_CreatePackedTensorHandle(context, parts, &count, s);
  OK();
  CHECK(strstr(TFE_TensorHandleDeviceName(packed, s), "COMPOSITE"), "a composite device");
  CHECK(TFE_TensorHandleNumDims(packed, s) == 0, "its shape");
  const char* const callers[] = {NULL, HERE, W0, W1};
  for (int i = 0; i < 4; ++i) {
    TFE_TensorHandle* sum = run("packed", packed, NULL, callers[i]);
    CHECK(value_of(sum, 0) == 9, "called on %s: %f", callers[i] ? callers[i] : "any",
          (double)value_of(sum, 0));
    TFE_DeleteTensorHandle(sum);
  }
  assign(parts[1], 7);  // no copies
  TFE_TensorHandle* sum = run("packed", packed, NULL, NULL);
  CHECK(value_of(sum, 0) == 24, "after an assignment");
  removed("packed");
  TFE_DeleteTensorHandle(sum);
  TFE_DeleteTensorHandle(packed);
  for (int i = 0; i < 3; ++i) TFE_DeleteTensorHandle(parts[i]);
}

// A function that was removed and added again is cut again.
static void test_again(void) {
  TFE_TensorHandle* x = scalar(5);
  const char* const ops[] = {"AddV2", "Mul"};
  const float expected[] = {10, 25};
  for (int i = 0; i < 2; ++i) {
    TF_Graph* graph = TF_NewGraph();
    TF_Output in = input_of(graph, "x", TF_FLOAT);
    TF_Output far = node(graph, "Identity", "far", in, NULL, W0);
    TF_Output out = node(graph, ops[i], "out", far, &in, W1);
    add(graph, "again", 1, &in, 1, &out);
    TFE_TensorHandle* y = run("again", x, NULL, NULL);
    expect_on(y, W1);
    CHECK(value_of(y, 0) == expected[i], "%s", ops[i]);
    TFE_DeleteTensorHandle(y);
    removed("again");
  }
  TFE_DeleteTensorHandle(x);
}

// A part that fails ends the others.
static void test_failure(void) {
  const float values[] = {1, 2, 3, 4, 5, 6};
  const int64_t dims[] = {2, 3};
  TFE_TensorHandle* x = floats(values, 2, dims);
  TF_Graph* graph = TF_NewGraph();
  TF_Output in = input_of(graph, "x", TF_FLOAT);
  TF_Output bad = node(graph, "MatMul", "bad", in, &in, W0);
  TF_Output out = node(graph, "AddV2", "out", bad, &in, W1);
  add(graph, "failing", 1, &in, 1, &out);
  try_run(op_of("failing", x, NULL), NULL);
  CHECK(TF_GetCode(s) == TF_INVALID_ARGUMENT && strstr(TF_Message(s), "Matrix size-incompatible"),
        "no error");
  TFE_TensorHandle* y = run("Neg", x, NULL, W1);  // the context goes on
  TFE_DeleteTensorHandle(y);
  removed("failing");
  TFE_DeleteTensorHandle(x);
}

// With an asynchronous executor calls return before they have run, and errors come later.
static void test_queued(void) {
  const float values[] = {1, 2, 3, 4, 5, 6};
  const int64_t dims[] = {2, 3};
  TFE_Executor* executor = TFE_NewExecutor(true, true, 0);
  TFE_Executor* before = TFE_ContextGetExecutorForThread(context);
  TFE_ContextSetExecutorForThread(context, executor);
  TFE_TensorHandle* x = floats(values, 2, dims);
  TFE_TensorHandle* at[10] = {x};
  for (int i = 1; i < 10; ++i) at[i] = run("AddV2", at[i - 1], x, i % 2 ? W0 : W1);
  CHECK(TFE_TensorHandleDim(at[9], 1, s) == 3, "a shape that was not known yet");
  CHECK(value_of(at[9], 5) == 60, "values of calls in order");
  expect_on(at[9], W0);
  TFE_TensorHandle* v = variable("queued_v", W1);
  assign(v, 4);
  add_spread();
  TFE_TensorHandle* three = scalar(3);
  for (int i = 0; i < 2; ++i) expect_spread(three, v, NULL, 9, 7);
  removed("spread");
  TFE_TensorHandle* bad = try_run(op_of("MatMul", x, x), W1);  // returns at once
  OK();
  TFE_TensorHandle* after = NULL;
  TFE_ExecutorWaitForAllPendingNodes(executor, s);
  CHECK(TF_GetCode(s) == TF_INVALID_ARGUMENT, "the executor reports the error");
  TFE_TensorHandleNumDims(bad, s);
  CHECK(TF_GetCode(s) == TF_INVALID_ARGUMENT, "so does the value");
  after = try_run(op_of("Neg", x, NULL), W0);
  CHECK(TF_GetCode(s) == TF_INVALID_ARGUMENT && !after, "until it is cleared");
  TFE_ExecutorClearError(executor);
  after = run("Neg", x, NULL, W0);
  CHECK(value_of(after, 0) == -1, "then calls run again");
  TFE_ExecutorWaitForAllPendingNodes(executor, s);
  OK();
  TFE_ContextSetExecutorForThread(context, before);
  TFE_DeleteExecutor(executor);
  TFE_DeleteExecutor(before);
  TFE_DeleteTensorHandle(bad);
  TFE_DeleteTensorHandle(after);
  TFE_DeleteTensorHandle(three);
  TFE_DeleteTensorHandle(v);
  for (int i = 0; i < 10; ++i) TFE_DeleteTensorHandle(at[i]);
}

// A second context with the same address is a mere client, which runs ops and whole functions.
static void test_second(const char* a, const char* b) {
  TFE_Context* first = context;
  TFE_ContextOptions* options = TFE_NewContextOptions();
  context = TFE_NewContext(options, s);
  TFE_DeleteContextOptions(options);
  OK();
  join(a, b, false);
  TFE_TensorHandle* x = scalar(3);
  TFE_TensorHandle* y = run("Neg", x, NULL, W1);
  CHECK(value_of(y, 0) == -3, "an op of the second context");
  TFE_DeleteTensorHandle(x);
  TFE_DeleteTensorHandle(y);
  TFE_DeleteContext(context);
  context = first;
}

int main(int argc, char** argv) {
  char own[2][64];
  const char *a = argc > 2 ? argv[1] : own[0], *b = argc > 2 ? argv[2] : own[1];
  TF_Server* servers[2] = {0};
  s = TF_NewStatus();
  if (argc <= 2) {
    for (int i = 0; i < 2; ++i) snprintf(own[i], sizeof own[i], "127.0.0.1:%d", free_port());
    for (int i = 0; i < 2; ++i) servers[i] = start(a, b, i);
  }
  TFE_ContextOptions* options = TFE_NewContextOptions();
  context = TFE_NewContext(options, s);
  TFE_DeleteContextOptions(options);
  OK();
  join(a, b, false);
  test_spread();
  test_packed();
  test_again();
  test_failure();
  test_queued();
  test_second(a, b);
  join(a, b, true);
  test_spread();
  TFE_DeleteContext(context);
  for (int i = 0; i < 2; ++i)
    if (servers[i]) TF_DeleteServer(servers[i]);
  TF_DeleteStatus(s);
  printf("ok\n");
  return 0;
}

// Runs our eager client on other tasks: eager_run [ADDRESS ADDRESS [PROCESS]]
//
// The addresses are those of two tasks of job worker; without them, it starts the tasks itself, and
// ends one of them. PROCESS is the process id of the second task, which it stops.
#include <math.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "eager_client.h"

// An update that names a task which is not there fails, and changes nothing for the next one.
static void test_failed_update(const char* a, const char* b) {
  char two[160];
  snprintf(two, sizeof two, "%s\" } tasks { key: 2 value: \"127.0.0.1:%d", b, free_port());
  TF_Buffer* def = server_def(a, two, "localhost", 0);
  TFE_ContextUpdateServerDefWithTimeout(context, 60, def->data, def->length, 500, s);
  CHECK(TF_GetCode(s) == TF_UNAVAILABLE, "%s", TF_Message(s));
  TF_DeleteBuffer(def);
  join(a, b, true);
}

static void test_devices(void) {
  TF_DeviceList* list = TFE_ContextListDevices(context, s);
  OK();
  CHECK(TF_DeviceListCount(list) == 3, "%d devices", TF_DeviceListCount(list));
  CHECK(strcmp(TF_DeviceListName(list, 2, s), W1) == 0, "%s", TF_DeviceListName(list, 2, s));
  CHECK(strcmp(TF_DeviceListType(list, 1, s), "CPU") == 0, "no CPU");
  TF_DeleteDeviceList(list);
  CHECK(!TFE_IsCustomDevice(context, W0), "a remote device is no custom one");
}

static void test_ops(void) {
  const float values[] = {1, 2, 3, 4};
  const int64_t dims[] = {2, 2};
  TFE_TensorHandle* a = floats(values, 2, dims);
  TFE_TensorHandle* b = run("MatMul", a, a, W0);
  expect_on(b, W0);
  CHECK(TFE_TensorHandleNumDims(b, s) == 2 && TFE_TensorHandleDim(b, 1, s) == 2, "shape");
  CHECK(TFE_TensorHandleNumElements(b, s) == 4, "elements");
  CHECK(value_of(b, 3) == 22, "product");
  TFE_TensorHandle* c = run("AddV2", b, a, "/job:worker/task:1");  // from task to task
  expect_on(c, W1);
  CHECK(value_of(c, 0) == 8, "sum");
  TFE_TensorHandle* d = run("Sub", c, b, NULL);  // of two tasks, here
  expect_on(d, HERE);
  CHECK(value_of(d, 2) == 3, "difference");
  TFE_TensorHandle* copy = TFE_TensorHandleCopyToDevice(a, context, W1, s);
  OK();
  expect_on(copy, W1);
  TFE_TensorHandle* moved = TFE_TensorHandleCopyToDevice(copy, context, W0, s);
  OK();
  expect_on(moved, W0);
  TFE_TensorHandle* back = TFE_TensorHandleCopyToDevice(moved, context, HERE, s);
  OK();
  CHECK(value_of(back, 3) == 4, "copied");
  TFE_TensorHandle* all[] = {a, b, c, d, copy, moved, back};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) TFE_DeleteTensorHandle(all[i]);
}

static void test_large(void) {
  const int64_t count = 1 << 20;
  float* values = malloc((size_t)count * 4);
  for (int64_t i = 0; i < count; ++i) values[i] = (float)(i % 1000);
  TFE_TensorHandle* a = floats(values, 1, &count);
  TFE_TensorHandle* b = run("Neg", a, NULL, W1);
  CHECK(value_of(b, 999999) == -999, "large");
  TFE_TensorHandle* c = run("Neg", b, NULL, W0);
  CHECK(value_of(c, 999998) == 998, "large, over two tasks");
  TFE_DeleteTensorHandle(a);
  TFE_DeleteTensorHandle(b);
  TFE_DeleteTensorHandle(c);
  free(values);
}

static void test_lists(void) {
  TFE_TensorHandle* parts[] = {scalar(1), scalar(2), scalar(3)};
  TFE_Op* op = TFE_NewOp(context, "Pack", s);
  TFE_OpAddInputList(op, parts, 3, s);
  OK();
  TFE_TensorHandle* packed = try_run(op, W0);
  OK();
  CHECK(TFE_TensorHandleDim(packed, 0, s) == 3 && value_of(packed, 2) == 3, "packed");
  op = TFE_NewOp(context, "Unpack", s);
  TFE_OpAddInput(op, packed, s);
  TFE_OpSetAttrInt(op, "num", 3);
  TFE_OpSetDevice(op, W0, s);
  TFE_TensorHandle* out[3];
  int count = 3;
  TFE_Execute(op, out, &count, s);
  OK();
  TFE_DeleteOp(op);
  CHECK(count == 3 && value_of(out[1], 0) == 2, "unpacked");
  for (int i = 0; i < 3; ++i) TFE_DeleteTensorHandle(out[i]);
  for (int i = 0; i < 3; ++i) TFE_DeleteTensorHandle(parts[i]);
  TFE_DeleteTensorHandle(packed);
  TF_Tensor* text = TF_AllocateTensor(TF_STRING, NULL, 0, sizeof(TF_TString));
  TF_StringInit(TF_TensorData(text));
  TF_StringCopy(TF_TensorData(text), "abc", 3);
  TFE_TensorHandle* a = TFE_NewTensorHandle(text, s);
  TF_DeleteTensor(text);
  TFE_TensorHandle* upper = run("StringUpper", a, NULL, W1);
  text = TFE_TensorHandleResolve(upper, s);
  OK();
  CHECK(memcmp(TF_StringGetDataPointer(TF_TensorData(text)), "ABC", 3) == 0, "string");
  TF_DeleteTensor(text);
  TFE_DeleteTensorHandle(a);
  TFE_DeleteTensorHandle(upper);
}

static float read_variable(TFE_TensorHandle* v, const char* device) {
  TFE_Op* op = op_of("ReadVariableOp", v, NULL);
  TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
  TFE_TensorHandle* read = try_run(op, device);
  OK();
  expect_on(read, W1);
  float value = value_of(read, 0);
  TFE_DeleteTensorHandle(read);
  return value;
}

static void test_variables(TFE_TensorHandle* v) {
  TFE_TensorHandle *one = scalar(1), *five = scalar(5);
  run("AssignVariableOp", v, five, W1);
  run("AssignAddVariableOp", v, one, NULL);  // goes where the variable is
  CHECK(read_variable(v, NULL) == 6 && read_variable(v, W0) == 6, "variable");
  TFE_DeleteTensorHandle(one);
  TFE_DeleteTensorHandle(five);
}

// x * x + x, or x * x - x.
static void add_function(const char* last) {
  TF_Graph* graph = TF_NewGraph();
  TF_OperationDescription* d = TF_NewOperation(graph, "Placeholder", "x");
  TF_SetAttrType(d, "dtype", TF_FLOAT);
  TF_Output x = {TF_FinishOperation(d, s), 0};
  d = TF_NewOperation(graph, "Mul", "square");
  TF_AddInput(d, x);
  TF_AddInput(d, x);
  TF_Output square = {TF_FinishOperation(d, s), 0};
  d = TF_NewOperation(graph, last, "last");
  TF_AddInput(d, square);
  TF_AddInput(d, x);
  TF_Output y = {TF_FinishOperation(d, s), 0};
  OK();
  TF_Function* function =
      TF_GraphToFunction(graph, "poly", 0, -1, NULL, 1, &x, 1, &y, NULL, NULL, NULL, s);
  OK();
  TFE_ContextAddFunction(context, function, s);
  OK();
  TF_DeleteFunction(function);
  TF_DeleteGraph(graph);
}

static void test_functions(void) {
  TFE_TensorHandle* x = scalar(3);
  const char* const ops[] = {"AddV2", "Sub"};
  const float expected[] = {12, 6};
  for (int i = 0; i < 2; ++i) {
    add_function(ops[i]);
    for (int k = 0; k < 2; ++k) {
      TFE_TensorHandle* y = run("poly", x, NULL, k ? W1 : W0);
      CHECK(value_of(y, 0) == expected[i], "function");
      TFE_DeleteTensorHandle(y);
    }
    TFE_ContextRemoveFunction(context, "poly", s);
    OK();
  }
  TFE_DeleteTensorHandle(x);
}

static void test_errors(void) {
  const float values[] = {1, 2, 3, 4, 5, 6};
  const int64_t dims[] = {2, 3};
  TFE_TensorHandle* a = floats(values, 2, dims);
  try_run(op_of("MatMul", a, a), W0);
  CHECK(TF_GetCode(s) == TF_INVALID_ARGUMENT && strstr(TF_Message(s), "Matrix size-incompatible"),
        "no error");
  TFE_TensorHandle* b = run("Neg", a, NULL, W0);  // the context goes on
  TFE_DeleteTensorHandle(a);
  TFE_DeleteTensorHandle(b);
  TFE_TensorHandleCopyToDevice(NULL, context, "/job:nobody/replica:0/task:0/device:CPU:0", s);
  CHECK(TF_GetCode(s) == TF_INVALID_ARGUMENT, "a copy of nothing");
  CHECK(TFE_ContextCheckAlive(context, "/job:worker/replica:0/task:1", s), "it lives");
  OK();
  TFE_ContextCheckAlive(context, "/job:worker/replica:0/task:7", s);
  CHECK(TF_GetCode(s) == TF_INVALID_ARGUMENT, "no such task");
  TFE_ContextSetServerDef(context, 60, "\xff\xff", 2, s);
  CHECK(TF_GetCode(s) == TF_INVALID_ARGUMENT, "no ServerDef");
}

// Returns when it has stopped: until then it may answer.
static void stop_process(pid_t pid) {
  char path[64], line[512];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  kill(pid, SIGSTOP);
  for (int turns = 0; turns < 1000; ++turns) {
    usleep(10000);
    FILE* file = fopen(path, "re");
    const char* state = file && fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    if (file) fclose(file);
    if (state && state[1] && state[2] == 'T') return;
  }
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
  test_devices();
  test_ops();
  test_large();
  test_lists();
  TFE_TensorHandle* v = variable("v", W1);
  test_variables(v);
  test_functions();
  test_errors();
  join(a, b, true);
  CHECK(read_variable(v, W1) == 6, "an update keeps what was there");
  test_failed_update(a, b);
  CHECK(read_variable(v, W1) == 6, "so does one that fails");
  join(a, b, false);  // a new cluster: what was there is gone
  TFE_TensorHandle* gone = try_run(op_of("ReadVariableOp", v, NULL), W1);
  CHECK(TF_GetCode(s) != TF_OK && !gone, "a variable of a cluster that was left");
  TFE_DeleteTensorHandle(v);
  test_ops();
  if (servers[1] || argc > 3) {
    TFE_TensorHandle* x = scalar(1);
    TFE_TensorHandle* far = run("Neg", x, NULL, W1);
    if (argc > 3) {
      stop_process(atoi(argv[3]));
    } else {
      TF_ServerStop(servers[1], s);
      OK();
    }
    time_t begun = time(NULL);
    try_run(op_of("Neg", x, NULL), W1);
    CHECK(TF_GetCode(s) == TF_UNAVAILABLE && strstr(TF_Message(s), "task:1"), "a dead task");
    CHECK(time(NULL) - begun < 30, "it took %d s", (int)(time(NULL) - begun));
    try_run(op_of("Neg", far, NULL), W0);  // needs a value of the dead one
    CHECK(TF_GetCode(s) == TF_UNAVAILABLE, "a value of a dead task");
    TFE_DeleteTensorHandle(far);
    CHECK(!TFE_ContextCheckAlive(context, "/job:worker/replica:0/task:1", s), "it is dead");
    TFE_TensorHandle* y = run("Neg", x, NULL, W0);  // the other lives
    TFE_DeleteTensorHandle(y);
    if (servers[1]) {  // it comes back, as another process
      TF_DeleteServer(servers[1]);
      servers[1] = start(a, b, 1);
      for (int i = 0; i < 2; ++i) join(a, b, true);
      y = run("Neg", x, NULL, W1);
      CHECK(value_of(y, 0) == -1, "a task that came back");
      TFE_DeleteTensorHandle(y);
    }
    TFE_DeleteTensorHandle(x);
  }
  TFE_DeleteContext(context);
  for (int i = 0; i < 2; ++i)
    if (servers[i]) TF_DeleteServer(servers[i]);
  TF_DeleteStatus(s);
  printf("ok\n");
  return 0;
}

// Requests for elements that are cancelled at any moment, through the public C API: each ends. The
// input waits for a queue that stays empty, so a cancellation that is lost shows: an alarm ends the
// test.
//
// The thread that asks rests after each lock that it releases, so that a cancellation comes between
// any two steps of a request.
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/eager/c_api_experimental.h"

enum { ATTEMPTS = 400, REST_US = 20, LONGEST_US = 2000 };

static __thread bool rests;
static int (*unlock)(pthread_mutex_t* mutex);

// Takes the place of the C library's for the library under test.
int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  if (!unlock) *(void**)&unlock = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
  int result = unlock(mutex);
  if (rests) usleep(REST_US);
  return result;
}

static TF_Status* status;
static void check(const char* what) {
  if (TF_GetCode(status) == TF_OK) return;
  printf("%s: %s\n", what, TF_Message(status));
  exit(1);
}

static TFE_TensorHandle* number(int64_t value) {
  TF_Tensor* tensor = TF_AllocateTensor(TF_INT64, NULL, 0, sizeof value);
  memcpy(TF_TensorData(tensor), &value, sizeof value);
  TFE_TensorHandle* handle = TFE_NewTensorHandle(tensor, status);
  check("TFE_NewTensorHandle");
  TF_DeleteTensor(tensor);
  return handle;
}

static TFE_Op* begin(TFE_Context* context, const char* name) {
  TFE_Op* op = TFE_NewOp(context, name, status);
  check(name);
  return op;
}

static void elements(TFE_Op* op) {
  TF_DataType type = TF_INT64;
  const int64_t* dims = NULL;
  int rank = 0;
  TFE_OpSetAttrTypeList(op, "output_types", &type, 1);
  TFE_OpSetAttrShapeList(op, "output_shapes", &dims, &rank, 1, status);
}

static TFE_TensorHandle* finish(TFE_Op* op, int results) {
  TFE_TensorHandle* out[2] = {NULL};
  TFE_Execute(op, out, &results, status);
  check("TFE_Execute");
  TFE_DeleteOp(op);
  return out[0];
}

static void add_input(TFE_Op* op, TFE_TensorHandle* input) {
  TFE_OpAddInput(op, input, status);
  check("TFE_OpAddInput");
}

static TFE_TensorHandle* range(TFE_Context* context) {
  TFE_Op* op = begin(context, "RangeDataset");
  for (int i = 0; i < 3; ++i) {
    TFE_TensorHandle* bound = number(i == 1 ? 1000000 : i / 2);
    add_input(op, bound);
    TFE_DeleteTensorHandle(bound);
  }
  elements(op);
  return finish(op, 1);
}

static TF_Output node(TF_Graph* graph, const char* op, const char* list, TF_Output* input) {
  TF_DataType type = TF_INT64;
  TF_OperationDescription* desc = TF_NewOperation(graph, op, op);
  if (input) TF_AddInput(desc, *input);
  if (list)
    TF_SetAttrTypeList(desc, list, &type, 1);
  else
    TF_SetAttrType(desc, "dtype", TF_INT64);
  TF_Output out = {TF_FinishOperation(desc, status), 0};
  check(op);
  return out;
}

// A function that takes from an empty queue.
static void add_function(TFE_Context* context) {
  TF_Graph* body = TF_NewGraph();
  TF_Output x = node(body, "Placeholder", NULL, NULL);
  TF_Output queue = node(body, "FIFOQueueV2", "component_types", NULL);
  TF_Output y = node(body, "QueueDequeueV2", "component_types", &queue);
  TF_Function* function =
      TF_GraphToFunction(body, "f", 0, -1, NULL, 1, &x, 1, &y, NULL, NULL, NULL, status);
  check("TF_GraphToFunction");
  TFE_ContextAddFunction(context, function, status);
  check("TFE_ContextAddFunction");
  TF_DeleteFunction(function);
  TF_DeleteGraph(body);
}

static TFE_TensorHandle* map(TFE_Context* context, TFE_TensorHandle* input, bool is_parallel) {
  TFE_Op* op = begin(context, is_parallel ? "ParallelMapDatasetV2" : "MapDataset");
  add_input(op, input);
  TFE_OpAddInputList(op, NULL, 0, status);
  if (is_parallel) {
    TFE_TensorHandle* calls = number(3);
    add_input(op, calls);
    TFE_DeleteTensorHandle(calls);
  }
  TFE_OpSetAttrFunctionName(op, "f", "f", 1);
  TFE_OpSetAttrTypeList(op, "Targuments", NULL, 0);
  elements(op);
  return finish(op, 1);
}

static TFE_TensorHandle* prefetch(TFE_Context* context, TFE_TensorHandle* input) {
  TFE_Op* op = begin(context, "PrefetchDataset");
  TFE_TensorHandle* size = number(2);
  add_input(op, input);
  add_input(op, size);
  TFE_DeleteTensorHandle(size);
  elements(op);
  return finish(op, 1);
}

static TFE_TensorHandle* iterate(TFE_Context* context, TFE_TensorHandle* dataset) {
  TFE_Op* op = begin(context, "AnonymousIteratorV3");
  elements(op);
  TFE_TensorHandle* iterator = finish(op, 1);
  op = begin(context, "MakeIterator");
  add_input(op, dataset);
  add_input(op, iterator);
  finish(op, 0);
  return iterator;
}

typedef struct ask_t {
  TFE_Context* context;
  TFE_TensorHandle* iterator;
  TFE_CancellationManager* manager;
} ask_t;

static void* ask(void* arg) {
  ask_t* own = arg;
  TF_Status* said = TF_NewStatus();
  TFE_Op* op = TFE_NewOp(own->context, "IteratorGetNext", said);
  TFE_OpAddInput(op, own->iterator, said);
  elements(op);
  TFE_OpSetCancellationManager(op, own->manager, said);
  TFE_TensorHandle* out = NULL;
  int count = 1;
  rests = true;
  TFE_Execute(op, &out, &count, said);
  rests = false;
  if (TF_GetCode(said) != TF_CANCELLED) {
    printf("a request ends with %d: %s\n", (int)TF_GetCode(said), TF_Message(said));
    exit(1);
  }
  TFE_DeleteOp(op);
  TF_DeleteStatus(said);
  return NULL;
}

static void cancel_at(TFE_Context* context, TFE_TensorHandle* iterator, int us) {
  ask_t own = {context, iterator, TFE_NewCancellationManager()};
  pthread_t thread;
  pthread_create(&thread, NULL, ask, &own);
  usleep((useconds_t)us);
  TFE_CancellationManagerStartCancel(own.manager);
  pthread_join(thread, NULL);
  TFE_DeleteCancellationManager(own.manager);
}

static void try_all(TFE_Context* context, bool is_parallel) {
  TFE_TensorHandle *input = range(context), *mapped = map(context, input, is_parallel);
  TFE_TensorHandle* dataset = is_parallel ? mapped : prefetch(context, mapped);
  TFE_TensorHandle* iterator = iterate(context, dataset);
  cancel_at(context, iterator, 20000);  // starts what works ahead
  for (int i = 0; i < ATTEMPTS; ++i) cancel_at(context, iterator, i * (LONGEST_US / ATTEMPTS));
  TFE_DeleteTensorHandle(iterator);
  if (!is_parallel) TFE_DeleteTensorHandle(dataset);
  TFE_DeleteTensorHandle(mapped);
  TFE_DeleteTensorHandle(input);
}

int main(void) {
  alarm(60);
  status = TF_NewStatus();
  TFE_ContextOptions* options = TFE_NewContextOptions();
  TFE_Context* context = TFE_NewContext(options, status);
  check("TFE_NewContext");
  TFE_DeleteContextOptions(options);
  add_function(context);
  try_all(context, false);
  try_all(context, true);
  TFE_DeleteContext(context);
  TF_DeleteStatus(status);
  return 0;
}

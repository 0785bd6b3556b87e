// Iterators used by several threads, through the public C API: concurrent GetNext, closing a
// session while pipelines run, recreating iterators meanwhile, and cancelling requests that wait
// forever. An alarm ends a test that hangs.
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tensorflow/c/c_api.h"

enum { ASKERS = 4, ELEMENTS = 400 };

static int failures;

#define EXPECT(condition)                                    \
  do {                                                       \
    if (!(condition)) {                                      \
      printf("%s:%d: %s\n", __func__, __LINE__, #condition); \
      __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);    \
    }                                                        \
  } while (0)

typedef struct {
  TF_Graph* graph;
  TF_Status* status;
  TF_Session* session;
  TF_Operation* make;
  TF_Output next;
  int count;  // names nodes
  unsigned char seen[ELEMENTS];
  int ended;
} test_t;

static TF_OperationDescription* begin(test_t* test, TF_Graph* graph, const char* op) {
  char name[32];
  snprintf(name, sizeof name, "n%d", test->count++);
  return TF_NewOperation(graph, op, name);
}

static TF_Output finish(test_t* test, TF_OperationDescription* desc) {
  TF_Output out = {TF_FinishOperation(desc, test->status), 0};
  if (TF_GetCode(test->status) != TF_OK) {
    printf("%s\n", TF_Message(test->status));
    exit(1);
  }
  return out;
}

static TF_Output constant(test_t* test, TF_Graph* graph, int64_t value) {
  TF_Tensor* tensor = TF_AllocateTensor(TF_INT64, NULL, 0, sizeof value);
  memcpy(TF_TensorData(tensor), &value, sizeof value);
  TF_OperationDescription* desc = begin(test, graph, "Const");
  TF_SetAttrType(desc, "dtype", TF_INT64);
  TF_SetAttrTensor(desc, "value", tensor, test->status);
  TF_DeleteTensor(tensor);
  return finish(test, desc);
}

static void elements(TF_OperationDescription* desc) {
  TF_DataType type = TF_INT64;
  const int64_t* dims = NULL;
  int rank = 0;
  TF_SetAttrTypeList(desc, "output_types", &type, 1);
  TF_SetAttrShapeList(desc, "output_shapes", &dims, &rank, 1);
}

static TF_Output range(test_t* test, int64_t count) {
  TF_OperationDescription* desc = begin(test, test->graph, "RangeDataset");
  TF_AddInput(desc, constant(test, test->graph, 0));
  TF_AddInput(desc, constant(test, test->graph, count));
  TF_AddInput(desc, constant(test, test->graph, 1));
  elements(desc);
  return finish(test, desc);
}

// An op with an input and a number.
static TF_Output with_number(test_t* test, const char* op, TF_Output input, int64_t number) {
  TF_OperationDescription* desc = begin(test, test->graph, op);
  TF_AddInput(desc, input);
  TF_AddInput(desc, constant(test, test->graph, number));
  elements(desc);
  return finish(test, desc);
}

// The function x + 0 * (x * x), or one that takes from an empty queue.
static void add_function(test_t* test, bool waits) {
  TF_Graph* body = TF_NewGraph();
  TF_OperationDescription* desc = begin(test, body, "Placeholder");
  TF_SetAttrType(desc, "dtype", TF_INT64);
  TF_SetAttrShape(desc, "shape", NULL, 0);
  TF_Output x = finish(test, desc), y;
  if (waits) {
    TF_DataType type = TF_INT64;
    desc = begin(test, body, "FIFOQueueV2");
    TF_SetAttrTypeList(desc, "component_types", &type, 1);
    TF_SetAttrString(desc, "shared_name", "empty", 5);
    TF_Output queue = finish(test, desc);
    desc = begin(test, body, "QueueDequeueV2");
    TF_AddInput(desc, queue);
    TF_SetAttrTypeList(desc, "component_types", &type, 1);
    y = finish(test, desc);
  } else {
    desc = begin(test, body, "Mul");
    TF_AddInput(desc, x);
    TF_AddInput(desc, constant(test, body, 0));
    y = finish(test, desc);
  }
  desc = begin(test, body, "AddV2");
  TF_AddInput(desc, x);
  TF_AddInput(desc, y);
  y = finish(test, desc);
  TF_Function* function =
      TF_GraphToFunction(body, "f", 0, -1, NULL, 1, &x, 1, &y, NULL, NULL, NULL, test->status);
  TF_GraphCopyFunction(test->graph, function, NULL, test->status);
  TF_DeleteFunction(function);
  TF_DeleteGraph(body);
}

static TF_Output map(test_t* test, TF_Output input, int64_t calls) {
  TF_OperationDescription* desc =
      begin(test, test->graph, calls > 1 ? "ParallelMapDatasetV2" : "MapDataset");
  TF_AddInput(desc, input);
  TF_AddInputList(desc, NULL, 0);
  if (calls > 1) TF_AddInput(desc, constant(test, test->graph, calls));
  TF_SetAttrFuncName(desc, "f", "f", 1);
  TF_SetAttrTypeList(desc, "Targuments", NULL, 0);
  elements(desc);
  return finish(test, desc);
}

static void iterate(test_t* test, TF_Output dataset) {
  TF_OperationDescription* desc = begin(test, test->graph, "IteratorV2");
  TF_SetAttrString(desc, "shared_name", "", 0);
  TF_SetAttrString(desc, "container", "", 0);
  elements(desc);
  TF_Output iterator = finish(test, desc);
  desc = begin(test, test->graph, "MakeIterator");
  TF_AddInput(desc, dataset);
  TF_AddInput(desc, iterator);
  test->make = finish(test, desc).oper;
  desc = begin(test, test->graph, "IteratorGetNext");
  TF_AddInput(desc, iterator);
  elements(desc);
  test->next = finish(test, desc);
}

static void open_test(test_t* test, bool waits) {
  memset(test, 0, sizeof *test);
  test->graph = TF_NewGraph();
  test->status = TF_NewStatus();
  add_function(test, waits);
}

static void open_session(test_t* test, int threads) {
  char config[] = {2 << 3, (char)threads, 5 << 3, (char)threads};
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_SetConfig(options, config, sizeof config, test->status);
  test->session = TF_NewSession(test->graph, options, test->status);
  TF_DeleteSessionOptions(options);
}

static void close_test(test_t* test) {
  TF_CloseSession(test->session, test->status);
  TF_DeleteSession(test->session, test->status);
  TF_DeleteGraph(test->graph);
  TF_DeleteStatus(test->status);
}

static TF_Code run_make(test_t* test) {
  TF_Status* status = TF_NewStatus();
  const TF_Operation* target = test->make;
  TF_SessionRun(test->session, NULL, NULL, NULL, 0, NULL, NULL, 0, &target, 1, NULL, status);
  TF_Code code = TF_GetCode(status);
  TF_DeleteStatus(status);
  return code;
}

static TF_Code run_next(test_t* test, int64_t* out) {
  TF_Status* status = TF_NewStatus();
  TF_Tensor* tensor = NULL;
  TF_SessionRun(test->session, NULL, NULL, NULL, 0, &test->next, &tensor, 1, NULL, 0, NULL, status);
  TF_Code code = TF_GetCode(status);
  if (code == TF_OK) {
    memcpy(out, TF_TensorData(tensor), sizeof *out);
    TF_DeleteTensor(tensor);
  }
  TF_DeleteStatus(status);
  return code;
}

static void* ask_all(void* arg) {
  test_t* test = arg;
  int64_t value = 0;
  TF_Code code;
  while ((code = run_next(test, &value)) == TF_OK) {
    EXPECT(value >= 0 && value < ELEMENTS);
    EXPECT(!__atomic_exchange_n(&test->seen[value], 1, __ATOMIC_RELAXED));
  }
  EXPECT(code == TF_OUT_OF_RANGE);
  __atomic_fetch_add(&test->ended, 1, __ATOMIC_RELAXED);
  return NULL;
}

// Every element comes once, to one of the threads.
static void several_askers(int threads) {
  test_t test;
  open_test(&test, false);
  TF_Output dataset = map(&test, range(&test, ELEMENTS), 3);
  iterate(&test, with_number(&test, "PrefetchDataset", map(&test, dataset, 1), 5));
  open_session(&test, threads);
  EXPECT(run_make(&test) == TF_OK);
  pthread_t askers[ASKERS];
  for (int i = 0; i < ASKERS; ++i) pthread_create(&askers[i], NULL, ask_all, &test);
  for (int i = 0; i < ASKERS; ++i) pthread_join(askers[i], NULL);
  EXPECT(test.ended == ASKERS);
  for (int i = 0; i < ELEMENTS; ++i) EXPECT(test.seen[i]);
  close_test(&test);
}

// The function |name|: whether x is a multiple of 3, or a dataset of the numbers below x.
static void add_other(test_t* test, const char* name, bool gives_dataset) {
  TF_Graph* body = TF_NewGraph();
  TF_OperationDescription* desc = begin(test, body, "Placeholder");
  TF_SetAttrType(desc, "dtype", TF_INT64);
  TF_SetAttrShape(desc, "shape", NULL, 0);
  TF_Output x = finish(test, desc), y;
  if (gives_dataset) {
    desc = begin(test, body, "RangeDataset");
    TF_AddInput(desc, constant(test, body, 0));
    TF_AddInput(desc, x);
    TF_AddInput(desc, constant(test, body, 1));
    elements(desc);
    y = finish(test, desc);
  } else {
    desc = begin(test, body, "FloorMod");
    TF_AddInput(desc, x);
    TF_AddInput(desc, constant(test, body, 3));
    y = finish(test, desc);
    desc = begin(test, body, "Equal");
    TF_AddInput(desc, y);
    TF_AddInput(desc, constant(test, body, 0));
    y = finish(test, desc);
  }
  TF_Function* function =
      TF_GraphToFunction(body, name, 0, -1, NULL, 1, &x, 1, &y, NULL, NULL, NULL, test->status);
  TF_GraphCopyFunction(test->graph, function, NULL, test->status);
  TF_DeleteFunction(function);
  TF_DeleteGraph(body);
}

// A filter that judges several at once gives what it should in order, twice.
static void filtered(int threads, int64_t calls) {
  test_t test;
  open_test(&test, false);
  add_other(&test, "third", false);
  TF_OperationDescription* desc = begin(&test, test.graph, "ParallelFilterDataset");
  TF_AddInput(desc, range(&test, ELEMENTS));
  TF_AddInputList(desc, NULL, 0);
  TF_AddInput(desc, constant(&test, test.graph, calls));
  TF_SetAttrFuncName(desc, "predicate", "third", 5);
  TF_SetAttrTypeList(desc, "Targuments", NULL, 0);
  elements(desc);
  iterate(&test, finish(&test, desc));
  open_session(&test, threads);
  for (int round = 0; round < 2; ++round) {
    int64_t value = -1;
    EXPECT(run_make(&test) == TF_OK);
    for (int64_t want = 0; want < ELEMENTS; want += 3)
      EXPECT(run_next(&test, &value) == TF_OK && value == want);
    EXPECT(run_next(&test, &value) == TF_OUT_OF_RANGE);
  }
  close_test(&test);
}

// Datasets of 0 to 19 elements, |cycle| of them open, in the order of a single thread.
static void interleaved(int threads, int64_t cycle, int64_t block, int64_t calls) {
  int64_t got[2][ELEMENTS];
  int counts[2] = {0, 0};
  for (int parallel = 0; parallel < 2; ++parallel) {
    test_t test;
    open_test(&test, false);
    add_other(&test, "below", true);
    TF_OperationDescription* desc =
        begin(&test, test.graph, parallel ? "ParallelInterleaveDatasetV2" : "InterleaveDataset");
    TF_AddInput(desc, range(&test, 20));
    TF_AddInputList(desc, NULL, 0);
    TF_AddInput(desc, constant(&test, test.graph, cycle));
    TF_AddInput(desc, constant(&test, test.graph, block));
    if (parallel) TF_AddInput(desc, constant(&test, test.graph, calls));
    TF_SetAttrFuncName(desc, "f", "below", 5);
    TF_SetAttrTypeList(desc, "Targuments", NULL, 0);
    elements(desc);
    iterate(&test, finish(&test, desc));
    open_session(&test, threads);
    EXPECT(run_make(&test) == TF_OK);
    while (counts[parallel] < ELEMENTS &&
           run_next(&test, &got[parallel][counts[parallel]]) == TF_OK)
      ++counts[parallel];
    close_test(&test);
  }
  EXPECT(counts[0] == 190 && counts[1] == 190);
  EXPECT(!memcmp(got[0], got[1], 190 * sizeof(int64_t)));
}

static void* ask_until_error(void* arg) {
  test_t* test = arg;
  int64_t value = 0;
  while (run_next(test, &value) == TF_OK) {
  }
  return NULL;
}

// The session goes while everything is at work.
static void closed_at_work(int threads, int microseconds) {
  test_t test;
  open_test(&test, false);
  TF_Output dataset = with_number(&test, "RepeatDataset", range(&test, 50), -1);
  dataset = with_number(&test, "PrefetchDataset", map(&test, dataset, 4), 7);
  iterate(&test, with_number(&test, "PrefetchDataset", map(&test, dataset, 1), 3));
  open_session(&test, threads);
  EXPECT(run_make(&test) == TF_OK);
  pthread_t askers[ASKERS];
  for (int i = 0; i < ASKERS; ++i) pthread_create(&askers[i], NULL, ask_until_error, &test);
  usleep((unsigned)microseconds);
  TF_CloseSession(test.session, test.status);
  for (int i = 0; i < ASKERS; ++i) pthread_join(askers[i], NULL);
  close_test(&test);
}

static void* make_again(void* arg) {
  test_t* test = arg;
  for (int i = 0; i < 50; ++i) EXPECT(run_make(test) == TF_OK);
  return NULL;
}

static void* ask_some(void* arg) {
  test_t* test = arg;
  int64_t value = 0;
  for (int i = 0; i < 100; ++i) {
    TF_Code code = run_next(test, &value);
    EXPECT(code == TF_OK || code == TF_OUT_OF_RANGE);
  }
  return NULL;
}

// An iterator that is made anew gives what is under way to those who asked before.
static void made_anew(int threads) {
  test_t test;
  open_test(&test, false);
  iterate(&test, with_number(&test, "PrefetchDataset", map(&test, range(&test, 20), 3), 4));
  open_session(&test, threads);
  EXPECT(run_make(&test) == TF_OK);
  pthread_t maker, askers[2];
  pthread_create(&maker, NULL, make_again, &test);
  for (int i = 0; i < 2; ++i) pthread_create(&askers[i], NULL, ask_some, &test);
  pthread_join(maker, NULL);
  for (int i = 0; i < 2; ++i) pthread_join(askers[i], NULL);
  close_test(&test);
}

static void* ask_in_vain(void* arg) {
  int64_t value = 0;
  EXPECT(run_next(arg, &value) == TF_CANCELLED);
  return NULL;
}

// Requests that wait for a queue that stays empty end when the session does; the others in line
// too.
static void cancelled(int threads, int shape) {
  test_t test;
  open_test(&test, true);
  TF_Output dataset = map(&test, range(&test, 9), shape == 1 ? 3 : 1);
  if (shape == 2) dataset = with_number(&test, "PrefetchDataset", dataset, 2);
  iterate(&test, dataset);
  open_session(&test, threads);
  EXPECT(run_make(&test) == TF_OK);
  pthread_t askers[ASKERS];
  for (int i = 0; i < ASKERS; ++i) pthread_create(&askers[i], NULL, ask_in_vain, &test);
  usleep(30000);
  TF_CloseSession(test.session, test.status);
  for (int i = 0; i < ASKERS; ++i) pthread_join(askers[i], NULL);
  close_test(&test);
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  alarm(240);
  for (int threads = 1; threads <= 8; threads *= 2) {
    several_askers(threads);
    for (int64_t calls = 1; calls < 40; calls = calls * 3 + 1) {
      filtered(threads, calls);
      interleaved(threads, calls, 1 + calls % 3, 1 + calls / 2);
    }
    for (int i = 0; i < 6; ++i) closed_at_work(threads, 500 << i);
    made_anew(threads);
    for (int shape = 0; shape < 3; ++shape) cancelled(threads, shape);
  }
  printf("%d failed\n", failures);
  return failures != 0;
}

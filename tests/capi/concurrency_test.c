// Many threads at once: runs of one session, graphs built, imported and extended while others run.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "util.h"

enum { kThreads = 8, kRounds = 200 };

typedef struct shared_t {
  ct_t t;
  TF_Output feed;
  TF_Output fetch;
  atomic_int next;
  atomic_bool stop;
  atomic_int failures;
} shared_t;

static void on_threads(int count, void* (*body)(void*), void* arg) {
  pthread_t threads[32];
  for (int i = 0; i < count; ++i) {
    cr_assert_eq(pthread_create(&threads[i], NULL, body, arg), 0);
  }
  for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
}

// One run with |value|; true when the answer is |expected|.
static bool run_once(shared_t* shared, int32_t value, int32_t expected) {
  TF_Status* s = TF_NewStatus();
  TF_Tensor* input = TF_AllocateTensor(TF_INT32, NULL, 0, sizeof value);
  memcpy(TF_TensorData(input), &value, sizeof value);
  TF_Tensor* output = NULL;
  TF_SessionRun(shared->t.session, NULL, &shared->feed, &input, 1, &shared->fetch, &output, 1, NULL,
                0, NULL, s);
  bool right = TF_GetCode(s) == TF_OK && output != NULL &&
               memcmp(TF_TensorData(output), &expected, sizeof expected) == 0;
  TF_DeleteTensor(input);
  TF_DeleteTensor(output);
  TF_DeleteStatus(s);
  return right;
}

static void setup(shared_t* shared) {
  memset(shared, 0, sizeof *shared);
  shared->t = ct_open();
  TF_Operation* feed = ct_placeholder(&shared->t, shared->t.graph, "feed", TF_INT32);
  TF_Operation* two = ct_scalar(&shared->t, shared->t.graph, "two", 2);
  TF_Operation* add = ct_add(&shared->t, shared->t.graph, "add", ct_out(feed, 0), ct_out(two, 0));
  shared->feed = ct_out(feed, 0);
  shared->fetch = ct_out(ct_neg(&shared->t, shared->t.graph, "neg", add), 0);
  ct_session(&shared->t, NULL);
}

static void* run_many(void* arg) {
  shared_t* shared = arg;
  for (int i = 0; i < kRounds; ++i) {
    int32_t value = atomic_fetch_add(&shared->next, 1);
    if (!run_once(shared, value, -value - 2)) atomic_fetch_add(&shared->failures, 1);
  }
  return NULL;
}

CT_TEST(Concurrency, RunsOfOneSession) {
  shared_t shared;
  setup(&shared);
  on_threads(kThreads, run_many, &shared);
  CT_INT(shared.failures, 0);
  ct_close(&shared.t);
}

// Grows the graph and runs what it just added, while others do the same.
static void* grow_and_run(void* arg) {
  shared_t* shared = arg;
  TF_Status* s = TF_NewStatus();
  for (int i = 0; i < 20; ++i) {
    int id = atomic_fetch_add(&shared->next, 1);
    char name[32];
    snprintf(name, sizeof name, "grown%d", id);
    TF_OperationDescription* desc = TF_NewOperation(shared->t.graph, "Neg", name);
    TF_AddInput(desc, shared->fetch);
    TF_Operation* grown = TF_FinishOperation(desc, s);
    shared_t mine = {.t = shared->t, .feed = shared->feed, .fetch = ct_out(grown, 0)};
    if (grown == NULL || !run_once(&mine, id, id + 2)) atomic_fetch_add(&shared->failures, 1);
  }
  TF_DeleteStatus(s);
  return NULL;
}

CT_TEST(Concurrency, GraphGrowsUnderItsSession) {
  shared_t shared;
  setup(&shared);
  on_threads(kThreads, grow_and_run, &shared);
  CT_INT(shared.failures, 0);
  size_t pos = 0;
  int count = 0;
  while (TF_GraphNextOperation(shared.t.graph, &pos) != NULL) ++count;
  CT_INT(count, 4 + kThreads * 20);
  ct_close(&shared.t);
}

static void* import_many(void* arg) {
  shared_t* shared = arg;
  ct_t source = ct_open();
  ct_neg(&source, source.graph, "neg", ct_scalar(&source, source.graph, "c", 1));
  TF_Buffer* bytes = ct_graph_def(source.graph);
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  for (int i = 0; i < 20; ++i) {
    char prefix[32];
    snprintf(prefix, sizeof prefix, "import%d", atomic_fetch_add(&shared->next, 1));
    TF_ImportGraphDefOptionsSetPrefix(options, prefix);
    TF_GraphImportGraphDef(shared->t.graph, bytes, options, source.status);
    if (TF_GetCode(source.status) != TF_OK) atomic_fetch_add(&shared->failures, 1);
  }
  TF_DeleteImportGraphDefOptions(options);
  TF_DeleteBuffer(bytes);
  ct_close(&source);
  return NULL;
}

CT_TEST(Concurrency, ImportsIntoOneGraph) {
  shared_t shared;
  setup(&shared);
  on_threads(kThreads, import_many, &shared);
  CT_INT(shared.failures, 0);
  size_t pos = 0;
  int count = 0;
  while (TF_GraphNextOperation(shared.t.graph, &pos) != NULL) ++count;
  CT_INT(count, 4 + kThreads * 20 * 2);
  cr_assert(run_once(&shared, 1, -3));
  ct_close(&shared.t);
}

static void* own_session(void* arg) {
  shared_t* shared = arg;
  for (int i = 0; i < 10; ++i) {
    shared_t mine;
    setup(&mine);
    if (!run_once(&mine, i, -i - 2)) atomic_fetch_add(&shared->failures, 1);
    ct_close(&mine.t);
  }
  return NULL;
}

CT_TEST(Concurrency, SessionsComeAndGo) {
  shared_t shared;
  setup(&shared);
  on_threads(kThreads, own_session, &shared);
  CT_INT(shared.failures, 0);
  ct_close(&shared.t);
}

// Runs until the session is closed under it; every answer before that must be right.
static void* run_until_closed(void* arg) {
  shared_t* shared = arg;
  TF_Status* s = TF_NewStatus();
  for (int32_t i = 0;; ++i) {
    TF_Tensor* input = TF_AllocateTensor(TF_INT32, NULL, 0, sizeof i);
    memcpy(TF_TensorData(input), &i, sizeof i);
    TF_Tensor* output = NULL;
    TF_SessionRun(shared->t.session, NULL, &shared->feed, &input, 1, &shared->fetch, &output, 1,
                  NULL, 0, NULL, s);
    TF_DeleteTensor(input);
    if (TF_GetCode(s) != TF_OK) break;
    int32_t expected = -i - 2;
    if (memcmp(TF_TensorData(output), &expected, sizeof expected) != 0) {
      atomic_fetch_add(&shared->failures, 1);
    }
    TF_DeleteTensor(output);
    atomic_fetch_add(&shared->next, 1);
  }
  if (TF_GetCode(s) != TF_CANCELLED) atomic_fetch_add(&shared->failures, 1);
  TF_DeleteStatus(s);
  return NULL;
}

static void* close_after_some(void* arg) {
  shared_t* shared = arg;
  while (atomic_load(&shared->next) < 100) sched_yield();
  TF_Status* s = TF_NewStatus();
  TF_CloseSession(shared->t.session, s);
  if (TF_GetCode(s) != TF_OK) atomic_fetch_add(&shared->failures, 1);
  TF_DeleteStatus(s);
  return NULL;
}

CT_TEST(Concurrency, CloseWhileManyRun) {
  shared_t shared;
  setup(&shared);
  pthread_t closer;
  cr_assert_eq(pthread_create(&closer, NULL, close_after_some, &shared), 0);
  on_threads(4, run_until_closed, &shared);
  pthread_join(closer, NULL);
  CT_INT(shared.failures, 0);
  ct_close(&shared.t);
}

static void* partial_runs(void* arg) {
  shared_t* shared = arg;
  TF_Status* s = TF_NewStatus();
  for (int32_t i = 0; i < 20; ++i) {
    const char* handle = NULL;
    TF_SessionPRunSetup(shared->t.session, &shared->feed, 1, &shared->fetch, 1, NULL, 0, &handle,
                        s);
    TF_Tensor* input = ct_int32(i);
    TF_Tensor* output = NULL;
    if (TF_GetCode(s) == TF_OK) {
      TF_SessionPRun(shared->t.session, handle, &shared->feed, &input, 1, &shared->fetch, &output,
                     1, NULL, 0, s);
    }
    if (TF_GetCode(s) != TF_OK || *(int32_t*)TF_TensorData(output) != -i - 2) {
      atomic_fetch_add(&shared->failures, 1);
    }
    TF_DeleteTensor(input);
    TF_DeleteTensor(output);
    TF_DeletePRunHandle(handle);
  }
  TF_DeleteStatus(s);
  return NULL;
}

CT_TEST(Concurrency, PartialRuns) {
  shared_t shared;
  setup(&shared);
  on_threads(4, partial_runs, &shared);
  CT_INT(shared.failures, 0);
  ct_close(&shared.t);
}

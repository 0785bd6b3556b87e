// Every public function with NULL, a wrong index, or an unknown dtype or name in each argument, one
// at a time. It must return: with an error status if it has one, else with NULL or 0. Stock crashes
// in many of these cases, so this test is for our library only.
//
// The rows are in null_calls.inc. Each runs in a process of its own, so that a crash is attributed
// to its row and the others still run.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ops_c.h"
#include "tensorflow/c/c_api_experimental.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/env.h"
#include "tensorflow/c/kernels.h"
#include "util.h"

// One of everything, and room for every array a function may write.
typedef struct env_t {
  TF_Status* s;
  TF_Graph* graph;
  TF_Operation* oper;
  TF_Output out;
  TF_Input in;
  TF_OperationDescription* desc;
  TF_Session* session;
  TF_DeprecatedSession* old_session;
  TF_SessionOptions* options;
  TF_ImportGraphDefOptions* import;
  TF_ImportGraphDefResults* results;
  TF_DeviceList* devices;
  TF_ApiDefMap* map;
  TF_Buffer* buffer;
  TF_Buffer* graph_def;
  TF_Tensor* tensor;
  TF_KernelBuilder* kernel;
  TF_OpDefinitionBuilder* op;
  TF_ShapeHandle* shape;
  TF_DimensionHandle* dim;
  TF_WhileParams* loop;
  TF_Output loop_inputs[1];
  unsigned char bytes[64] __attribute__((aligned(64)));
  char text[256];
  int64_t dims[8];
  int ints[8];
  size_t sizes[8];
  float floats[8];
  unsigned char flags[8];
  TF_DataType types[8];
  TF_Output outputs[8];
  TF_Input inputs[8];
  TF_Operation* opers[8];
  TF_Tensor* tensors[8];
  TF_Tensor* results_out[8];
  TF_Buffer* buffers[8];
  TF_Function* functions[8];
  const char* names[8];
  const void* pointers[8];
  const int64_t* dim_lists[8];
  TF_Output* output_list;
  TF_Operation** oper_list;
  const char** name_list;
  int* int_list;
} env_t;

static const TF_Output nowhere = {NULL, 0};

static TF_OperationDescription* new_desc(env_t* e) {
  TF_OperationDescription* desc = TF_NewOperation(e->graph, "Neg", "fresh");
  TF_AddInput(desc, e->out);
  return desc;
}

static void no_compute(void* state, TF_OpKernelContext* context) {
  (void)state;
  (void)context;
}

static TF_KernelBuilder* new_kernel(void) {
  return TF_NewKernelBuilder("NullTestOp", "CPU", NULL, no_compute, NULL);
}

static TF_OpDefinitionBuilder* new_op(void) { return TF_NewOpDefinitionBuilder("FreshOp"); }

static TF_Tensor* new_tensor(void) { return TF_AllocateTensor(TF_INT32, NULL, 0, 4); }

static void fill_arrays(env_t* e) {
  for (int i = 0; i < 8; ++i) {
    e->dims[i] = 1;
    e->types[i] = TF_INT32;
    e->outputs[i] = e->out;
    e->inputs[i] = e->in;
    e->opers[i] = e->oper;
    e->tensors[i] = e->tensor;
    e->names[i] = "x";
    e->pointers[i] = e->bytes;
    e->dim_lists[i] = e->dims;
  }
}

static void open_env(env_t* e) {
  memset(e, 0, sizeof *e);
  ct_t t = ct_open();
  e->s = t.status;
  e->graph = t.graph;
  TF_Operation* scalar = ct_scalar(&t, t.graph, "scalar", 3);
  e->oper = ct_neg(&t, t.graph, "neg", scalar);
  e->out = ct_out(e->oper, 0);
  e->in = (TF_Input){e->oper, 0};
  e->graph_def = ct_graph_def(e->graph);
  e->buffer = TF_NewBuffer();
  e->tensor = new_tensor();
  e->options = TF_NewSessionOptions();
  e->session = TF_NewSession(e->graph, e->options, e->s);
  e->old_session = TF_NewDeprecatedSession(e->options, e->s);
  e->import = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefOptionsSetPrefix(e->import, "imported");
  e->results = TF_GraphImportGraphDefWithResults(e->graph, e->graph_def, e->import, e->s);
  TF_ImportGraphDefOptionsSetPrefix(e->import, "again");
  e->devices = TF_SessionListDevices(e->session, e->s);
  TF_Buffer* ops = TF_GetAllOpList();
  e->map = TF_NewApiDefMap(ops, e->s);
  TF_DeleteBuffer(ops);
  e->kernel = new_kernel();
  e->op = new_op();
  e->shape = TF_NewShapeHandle();
  e->dim = TF_NewDimensionHandle();
  e->loop_inputs[0] = e->out;
  TF_WhileParams loop = TF_NewWhile(e->graph, e->loop_inputs, 1, e->s);
  e->loop = malloc(sizeof loop);
  memcpy(e->loop, &loop, sizeof loop);
  fill_arrays(e);
  e->desc = TF_NewOperation(e->graph, "Neg", "desc");
  TF_AddInput(e->desc, e->out);
  TF_SetStatus(e->s, TF_OK, "");
}

typedef struct row_t {
  const char* text;
  bool (*call)(env_t* e);
} row_t;

// S: leaves a status other than OK. Z: returns zero, -1, NULL or an empty string. N: comes back.
static bool is_nothing(const char* text) { return text == NULL || text[0] == '\0'; }
static bool is_zero(long long value) { return value == 0 || value == -1; }
#define NOTHING(value) \
  _Generic((value), char*: is_nothing((const char*)(intptr_t)(value)),          \
           const char*: is_nothing((const char*)(intptr_t)(value)),             \
           default: is_zero((long long)(intptr_t)(value)))
#define CALL_NAME2(line) call_##line
#define CALL_NAME(line) CALL_NAME2(line)

#define S(expression)                                             \
  static bool CALL_NAME(__LINE__)(env_t * e) {                    \
    (void)expression;                                             \
    return TF_GetCode(e->s) != TF_OK && TF_Message(e->s)[0] != 0; \
  }
#define Z(expression)                          \
  static bool CALL_NAME(__LINE__)(env_t * e) { \
    (void)e;                                   \
    return NOTHING(expression);                \
  }
#define N(expression)                          \
  static bool CALL_NAME(__LINE__)(env_t * e) { \
    (void)e;                                   \
    (void)expression;                          \
    return true;                               \
  }
#include "null_calls.inc"
#undef S
#undef Z
#undef N
#define S(expression) {#expression, CALL_NAME(__LINE__)},
#define Z S
#define N S
static const row_t rows[] = {
#include "null_calls.inc"
};

enum { kRowCount = sizeof rows / sizeof rows[0] };

// NULL when the row did as it should, else what a person should read.
static const char* run_row(const row_t* row) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    env_t* e = aligned_alloc(_Alignof(env_t), sizeof *e);
    open_env(e);
    bool right = row->call(e);
    // The library is whole: a graph still runs.
    TF_Output fetch = e->out;
    TF_Tensor* result = NULL;
    TF_SetStatus(e->s, TF_OK, "");
    TF_SessionRun(e->session, NULL, NULL, NULL, 0, &fetch, &result, 1, NULL, 0, NULL, e->s);
    bool works = TF_GetCode(e->s) == TF_OK && *(int32_t*)TF_TensorData(result) == -3;
    _exit(!right ? 1 : !works ? 2 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGALRM ? "hangs" : "dies";
  if (WEXITSTATUS(status) == 1) return "wrong answer";
  if (WEXITSTATUS(status) == 2) return "the session no longer works";
  return WEXITSTATUS(status) == 0 ? NULL : "exits";
}

Test(OursOnly, NullAndWrongArguments, .timeout = 1200) {
  int failures = 0;
  for (int i = 0; i < kRowCount; ++i) {
    const char* fault = run_row(&rows[i]);
    if (fault == NULL) continue;
    ++failures;
    cr_log_error("%s: %s", rows[i].text, fault);
  }
  cr_assert_eq(failures, 0, "%d of %d calls", failures, kRowCount);
}

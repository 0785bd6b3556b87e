// A client that does not check the status must not crash on what a failed call left: every pointer
// that a function returns is NULL or valid, and every buffer may be read and deleted. Each row is a
// call that fails, with its out-parameters filled with a pattern before. Stock leaves many of them
// unchanged, so this test is for our library only.
#include "eager_util.h"
#include "ops_c.h"
#include "tensorflow/c/c_api_experimental.h"
#include "tensorflow/c/env.h"
#include "tensorflow/c/tf_tensor.h"

enum { kRoom = 4 };

typedef struct env_t {
  ct_t t;
  ce_t eager;
  TF_Operation *feed, *neg;
  TF_DeprecatedSession* old;
  TF_Tensor *wrong, *right;
  TFE_Op* op;
  TF_Buffer* buffer;
  // Out-parameters.
  TF_Tensor* tensors[kRoom];
  TF_Buffer* buffers[kRoom];
  TF_Function* functions[kRoom];
  TFE_TensorHandle* handles[kRoom];
  const char* name[1];
  void* texts[kRoom];
  size_t sizes[kRoom];
  int64_t* dims[kRoom];
  int ranks[kRoom];
  TF_Output outputs[kRoom];
  TF_Output* output_list[1];
  TF_Operation** oper_list[1];
  const char** names[1];
  int* ints[1];
  TF_ShapeAndTypeList* shapes[1];
  TF_ShapeAndTypeList** shape_lists[1];
  int count;
  char storage[8];
  int64_t numbers[kRoom];
} env_t;

#define OUT_BEGIN offsetof(env_t, tensors)
#define OUT_END offsetof(env_t, count)
#define PATTERN 0x5a

static void open_env(env_t* e) {
  memset(e, 0, sizeof *e);
  e->t = ct_open();
  e->eager = ce_open();
  e->feed = ct_placeholder(&e->t, e->t.graph, "feed", TF_INT32);
  e->neg = ct_neg(&e->t, e->t.graph, "neg", e->feed);
  TF_SessionOptions* options = TF_NewSessionOptions();
  e->t.session = TF_NewSession(e->t.graph, options, e->t.status);
  CT_OK(e->t.status);
  e->old = TF_NewDeprecatedSession(options, e->t.status);
  CT_OK(e->t.status);
  TF_DeleteSessionOptions(options);
  e->wrong = ct_float(1);
  e->right = ct_int32(1);
  e->op = TFE_NewOp(e->eager.context, "MatMul", e->t.status);
  CT_OK(e->t.status);
  e->buffer = TF_NewBuffer();
}

static void close_env(env_t* e) {
  TF_DeleteBuffer(e->buffer);
  TFE_DeleteOp(e->op);
  TF_DeleteTensor(e->wrong);
  TF_DeleteTensor(e->right);
  TF_CloseDeprecatedSession(e->old, e->t.status);
  TF_DeleteDeprecatedSession(e->old, e->t.status);
  ce_close(&e->eager);
  ct_close(&e->t);
}

static TF_Output feed_of(const env_t* e) { return ct_out(e->feed, 0); }
static TF_Output neg_of(const env_t* e) { return ct_out(e->neg, 0); }

static void run(env_t* e, TF_Tensor* fed, TF_Buffer* options, TF_Buffer* metadata) {
  TF_Output feed = feed_of(e), fetch[] = {neg_of(e), neg_of(e)};
  TF_SessionRun(e->t.session, options, &feed, &fed, fed != NULL, fetch, e->tensors, 2, NULL, 0,
                metadata, e->t.status);
}

static void run_bad_options(env_t* e) {
  TF_Buffer* options = TF_NewBufferFromString("\xff", 1);
  run(e, e->right, options, e->buffer);
  TF_DeleteBuffer(options);
}

static void run_traced(env_t* e, TF_Tensor* fed) {
  TF_Buffer* options = TF_CreateRunOptions(1);
  run(e, fed, options, e->buffer);
  TF_DeleteBuffer(options);
}

static void run_old(env_t* e, TF_Buffer* metadata) {
  const char* name = "nowhere:0";
  TF_Run(e->old, NULL, NULL, NULL, 0, &name, e->tensors, 1, NULL, 0, metadata, e->t.status);
}

static void partial_run(env_t* e) {
  TF_Output fetch = neg_of(e);
  TF_SessionPRun(e->t.session, "no such run", NULL, NULL, 0, &fetch, e->tensors, 1, NULL, 0,
                 e->t.status);
}

static void partial_setup(env_t* e) {
  TF_Output fetch = {e->neg, 7};
  TF_SessionPRunSetup(e->t.session, NULL, 0, &fetch, 1, NULL, 0, e->name, e->t.status);
}

static void old_partial(env_t* e) {
  const char* name = "nowhere:0";
  TF_PRun(e->old, "no such run", NULL, NULL, 0, &name, e->tensors, 1, NULL, 0, e->t.status);
}

static void old_setup(env_t* e) {
  const char* name = "nowhere:0";
  TF_PRunSetup(e->old, NULL, 0, &name, 1, NULL, 0, e->name, e->t.status);
}

static void gradients(env_t* e) {
  TF_Output y = neg_of(e), x = {e->feed, 9};
  TF_AddGradients(e->t.graph, &y, 1, &x, 1, NULL, e->t.status, e->outputs);
}

static void import_outputs(env_t* e) {
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefOptionsAddReturnOutput(options, "nowhere", 0);
  TF_Buffer* graph_def = ct_graph_def(e->t.graph);
  TF_ImportGraphDefOptionsSetPrefix(options, "again");
  TF_GraphImportGraphDefWithReturnOutputs(e->t.graph, graph_def, options, e->outputs, 1,
                                          e->t.status);
  TF_DeleteBuffer(graph_def);
  TF_DeleteImportGraphDefOptions(options);
}

static void execute(env_t* e) {
  e->count = 2;
  TFE_Execute(e->op, e->handles, &e->count, e->t.status);
}

// Inputs that do not go together.
static void execute_kernel(env_t* e) {
  const float values[] = {1, 2, 3};
  TFE_TensorHandle* inputs[] = {ce_floats(&e->eager, 3, values), ce_floats(&e->eager, 2, values)};
  TFE_Op* op = ce_op(&e->eager, "AddV2", 2, inputs);
  e->count = 1;
  TFE_Execute(op, e->handles, &e->count, e->t.status);
  TFE_DeleteOp(op);
  TFE_DeleteTensorHandle(inputs[0]);
  TFE_DeleteTensorHandle(inputs[1]);
}

static void infer(env_t* e) {
  TFE_InferShapes(e->op, NULL, NULL, NULL, NULL, e->shapes, e->shape_lists, e->t.status);
}

// The calls, one a line: ROW(call, out-parameter, how many of it).
#define ROW_NAME2(line) row_##line
#define ROW_NAME(line) ROW_NAME2(line)
#define ROW(call, member, count) \
  static void ROW_NAME(__LINE__)(env_t * e) { call; }
#include "outputs.inc"
#undef ROW

typedef struct row_t {
  const char* text;
  void (*call)(env_t* e);
  size_t offset, size;  // of the out-parameter
} row_t;

#define ROW(call, member, count) \
  {#call, ROW_NAME(__LINE__), offsetof(env_t, member), (count) * sizeof((env_t*)NULL)->member[0]},
static const row_t rows[] = {
#include "outputs.inc"
};
#undef ROW

CT_TEST(OursOnly, OutputsOfFailedCallsAreSafe) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    env_t e;
    open_env(&e);
    memset((char*)&e + OUT_BEGIN, PATTERN, OUT_END - OUT_BEGIN);
    rows[i].call(&e);
    static const unsigned char zeros[sizeof(TF_Output) * kRoom];
    cr_expect(memcmp((char*)&e + rows[i].offset, zeros, rows[i].size) == 0,
              "%s leaves its out-parameter as it was", rows[i].text);
    close_env(&e);
  }
}

// The metadata of a run that failed is a message, as the original library leaves it.
CT_TEST(OursOnly, MetadataOfFailedRunsIsSafe) {
  for (int way = 0; way < 5; ++way) {
    env_t e;
    open_env(&e);
    if (way == 0) run(&e, e.wrong, NULL, e.buffer);
    if (way == 1) run(&e, NULL, NULL, e.buffer);
    if (way == 2) run_traced(&e, NULL);
    if (way == 3) run_bad_options(&e);
    if (way == 4) run_old(&e, e.buffer);
    cr_assert_neq(TF_GetCode(e.t.status), TF_OK);
    cr_assert_not_null(e.buffer->data, "way %d", way);
    close_env(&e);
  }
}

// Results that are not there have no extent.
CT_TEST(OursOnly, NoTensorIsEmpty) {
  CT_INT(TF_NumDims(NULL), 0);
  CT_INT(TF_Dim(NULL, 0), 0);
  CT_INT(TF_Dim(NULL, -1), 0);
  CT_INT(TF_TensorElementCount(NULL), 0);
  CT_INT(TF_TensorByteSize(NULL), 0);
  cr_assert_null(TF_TensorData(NULL));
}

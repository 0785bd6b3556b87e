// What a kernel can query about its step; and what can be changed of an operation after its
// creation: full types, and the inputs of a While.
#include "ops_c.h"
#include "tensorflow/c/kernels.h"
#include "util.h"

typedef struct fact_t {
  char inputs[2][64];
  uint64_t frame;
  int64_t iteration;
  int version;
  unsigned char config[64];
  size_t config_size;
} fact_t;

static fact_t facts[16];
static int fact_count;

static void note_compute(void* state, TF_OpKernelContext* context) {
  (void)state;
  TF_Status* s = TF_NewStatus();
  fact_t* fact = &facts[fact_count++ % 16];
  for (int i = 0; i < 2; ++i) {
    TF_StringView name = TF_GetOpKernelRequestedInput(context, (size_t)i);
    memcpy(fact->inputs[i], name.data, name.len < 63 ? name.len : 63);
  }
  fact->frame = TF_GetFrameId(context);
  fact->iteration = TF_GetIterId(context);
  fact->version = TF_GetGraphDefVersion(context);
  TF_Buffer* config = TF_NewBuffer();
  TF_GetSerializedConfigProto(context, config, s);
  CT_OK(s);
  fact->config_size = config->length;
  cr_assert_leq(config->length, sizeof fact->config);
  memcpy(fact->config, config->data, config->length);
  TF_DeleteBuffer(config);
  TF_Tensor* x = NULL;
  TF_GetInput(context, 0, &x, s);
  TF_SetOutput(context, 0, x, s);
  CT_OK(s);
  TF_DeleteTensor(x);
  TF_DeleteStatus(s);
}

static void scalar_shape(TF_ShapeInferenceContext* context, TF_Status* status) {
  TF_ShapeHandle* handle = TF_ShapeInferenceContextScalar(context);
  TF_ShapeInferenceContextSetOutput(context, 0, handle, status);
  TF_DeleteShapeHandle(handle);
}

static void register_note(void) {
  TF_Status* s = TF_NewStatus();
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder("NoteOp");
  TF_OpDefinitionBuilderAddInput(op, "x: float");
  TF_OpDefinitionBuilderAddInput(op, "y: float");
  TF_OpDefinitionBuilderAddOutput(op, "z: float");
  TF_OpDefinitionBuilderSetIsStateful(op, true);
  TF_OpDefinitionBuilderSetShapeInferenceFunction(op, scalar_shape);
  TF_RegisterOpDefinition(op, s);
  CT_OK(s);
  TF_KernelBuilder* builder = TF_NewKernelBuilder("NoteOp", "CPU", NULL, note_compute, NULL);
  TF_RegisterKernelBuilder("NoteKernel", builder, s);
  CT_OK(s);
  TF_DeleteStatus(s);
}

static TF_Output note(ct_t* t, TF_Graph* graph, const char* name, TF_Output x, TF_Output y) {
  TF_OperationDescription* desc = TF_NewOperation(graph, "NoteOp", name);
  TF_AddInput(desc, x);
  TF_AddInput(desc, y);
  TF_Operation* op = TF_FinishOperation(desc, t->status);
  CT_OK(t->status);
  return ct_out(op, 0);
}

static TF_Output binary(ct_t* t, TF_Graph* graph, const char* op, TF_Output x, TF_Output y) {
  TF_OperationDescription* desc = TF_NewOperation(graph, op, op);
  TF_AddInput(desc, x);
  TF_AddInput(desc, y);
  TF_Operation* made = TF_FinishOperation(desc, t->status);
  CT_OK(t->status);
  return ct_out(made, 0);
}

CT_TEST(TestContext, WhereInputsComeFrom, .init = register_note) {
  ct_t t = ct_open();
  TF_Operation* feed = ct_placeholder(&t, t.graph, "feed", TF_FLOAT);
  TF_Operation* neg = ct_neg(&t, t.graph, "neg", feed);
  TF_OperationDescription* desc = TF_NewOperation(t.graph, "Pack", "two");
  TF_Output both[2] = {ct_out(feed, 0), ct_out(neg, 0)};
  TF_AddInputList(desc, both, 2);
  TF_Operation* two = TF_FinishOperation(desc, t.status);
  CT_OK(t.status);
  desc = TF_NewOperation(t.graph, "Unpack", "pieces");
  TF_AddInput(desc, ct_out(two, 0));
  TF_SetAttrInt(desc, "num", 2);
  TF_Operation* way = TF_FinishOperation(desc, t.status);
  CT_OK(t.status);
  TF_Output a = note(&t, t.graph, "a", ct_out(neg, 0), ct_out(way, 1));
  TF_Output b = note(&t, t.graph, "b", a, ct_out(feed, 0));
  cr_assert_eq(ct_take_float(ct_run1(&t, feed, ct_float(4), b.oper)), -4);
  CT_INT(fact_count, 2);
  CT_STR(facts[0].inputs[0], "neg");
  CT_STR(facts[0].inputs[1], "pieces:1");
  CT_STR(facts[1].inputs[0], "a");
  CT_STR(facts[1].inputs[1], "_arg_feed_0_0");
  CT_INT(facts[0].frame, 0);
  CT_INT(facts[0].iteration, 0);
  CT_INT(facts[0].version, 2474);
  ct_close(&t);
}

CT_TEST(TestContext, IterationsOfALoop, .init = register_note) {
  ct_t t = ct_open();
  TF_Operation* feed = ct_placeholder(&t, t.graph, "feed", TF_FLOAT);
  TF_Output in = ct_out(feed, 0), out;
  TF_WhileParams loop = TF_NewWhile(t.graph, &in, 1, t.status);
  CT_OK(t.status);
  TF_Operation* three = ct_scalar_float(&t, loop.cond_graph, "three", 3);
  loop.cond_output = binary(&t, loop.cond_graph, "Less", loop.cond_inputs[0], ct_out(three, 0));
  TF_Operation* one = ct_scalar_float(&t, loop.body_graph, "one", 1);
  TF_Output sum = binary(&t, loop.body_graph, "AddV2", loop.body_inputs[0], ct_out(one, 0));
  loop.body_outputs[0] = note(&t, loop.body_graph, "note", sum, loop.body_inputs[0]);
  loop.name = "w";
  TF_FinishWhile(&loop, t.status, &out);
  CT_OK(t.status);
  cr_assert_eq(ct_take_float(ct_run1(&t, feed, ct_float(0), out.oper)), 3);
  CT_INT(fact_count, 3);
  for (int i = 0; i < 3; ++i) {
    CT_INT(facts[i].iteration, i);
    cr_assert_neq(facts[i].frame, 0);
    cr_assert_eq(facts[i].frame, facts[0].frame);
  }
  ct_close(&t);
}

CT_TEST(TestContext, GraphDefVersion, .init = register_note) {
  ct_t t = ct_open();
  TF_Operation* one = ct_scalar_float(&t, t.graph, "one", 1);
  note(&t, t.graph, "note", ct_out(one, 0), ct_out(one, 0));
  TF_Buffer* def = TF_NewBuffer();
  TF_GraphToGraphDef(t.graph, def, t.status);
  CT_OK(t.status);
  // The versions come last: another producer in their place.
  static const unsigned char versions[] = {0x22, 0x03, 0x08, 0xaa, 0x13};
  unsigned char* bytes = (unsigned char*)def->data + def->length - sizeof versions;
  CT_INT(memcmp(bytes, versions, sizeof versions), 0);
  bytes[3] = 0x96;  // 2454
  TF_Graph* graph = TF_NewGraph();
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(graph, def, options, t.status);
  CT_OK(t.status);
  TF_SessionOptions* session_options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(graph, session_options, t.status);
  CT_OK(t.status);
  TF_Output fetch = {TF_GraphOperationByName(graph, "note"), 0};
  TF_Tensor* value = NULL;
  TF_SessionRun(session, NULL, NULL, NULL, 0, &fetch, &value, 1, NULL, 0, NULL, t.status);
  CT_OK(t.status);
  CT_INT(facts[0].version, 2454);
  TF_DeleteTensor(value);
  TF_DeleteSession(session, t.status);
  TF_DeleteSessionOptions(session_options);
  TF_DeleteImportGraphDefOptions(options);
  TF_DeleteGraph(graph);
  TF_DeleteBuffer(def);
  ct_close(&t);
}

CT_TEST(TestContext, Config, .init = register_note) {
  ct_t t = ct_open();
  TF_Operation* one = ct_scalar_float(&t, t.graph, "one", 1);
  TF_Output fetch = note(&t, t.graph, "note", ct_out(one, 0), ct_out(one, 0));
  // intra 1, inter 1, allow_soft_placement; a session adds one thing of its own.
  static const unsigned char config[] = {0x10, 0x01, 0x28, 0x01, 0x38, 0x01};
  static const unsigned char added[] = {0x82, 0x01, 0x03, 0xc0, 0x01, 0x01};
  for (int with = 0; with < 2; ++with) {
    TF_SessionOptions* options = TF_NewSessionOptions();
    if (with) TF_SetConfig(options, config, sizeof config, t.status);
    TF_Session* session = TF_NewSession(t.graph, options, t.status);
    CT_OK(t.status);
    TF_DeleteSessionOptions(options);
    TF_Tensor* value = NULL;
    TF_SessionRun(session, NULL, NULL, NULL, 0, &fetch, &value, 1, NULL, 0, NULL, t.status);
    CT_OK(t.status);
    TF_DeleteTensor(value);
    const fact_t* fact = &facts[with];
    size_t size = with ? sizeof config : 0;
    CT_INT(fact->config_size, size + sizeof added);
    CT_INT(memcmp(fact->config, config, size), 0);
    CT_INT(memcmp(fact->config + size, added, sizeof added), 0);
    TF_DeleteSession(session, t.status);
  }
  ct_close(&t);
}

// The field of a NodeDef that carries it.
#define FULL_TYPE 7

static bool full_type_of(ct_t* t, TF_Operation* op, pb_field_t* out, TF_Buffer** out_buffer) {
  *out_buffer = TF_NewBuffer();
  TF_OperationToNodeDef(op, *out_buffer, t->status);
  CT_OK(t->status);
  return pb_find((*out_buffer)->data, (*out_buffer)->length, FULL_TYPE, out);
}

CT_TEST(TestEdit, FullType) {
  ct_t t = ct_open();
  TF_Operation* feed = ct_placeholder(&t, t.graph, "feed", TF_FLOAT);
  pb_field_t field;
  TF_Buffer* node;
  cr_assert_not(full_type_of(&t, feed, &field, &node));
  TF_DeleteBuffer(node);
  static const unsigned char type[] = {0x08, 0xe8, 0x07, 0x12, 0x02, 0x08, 0x64};
  TF_Buffer* buffer = TF_NewBufferFromString(type, sizeof type);
  TF_SetFullType(t.graph, feed, buffer);
  TF_DeleteBuffer(buffer);
  cr_assert(full_type_of(&t, feed, &field, &node));
  CT_INT(field.length, sizeof type);
  CT_INT(memcmp(field.data, type, sizeof type), 0);
  TF_DeleteBuffer(node);
  // It survives export and import.
  TF_Buffer* def = TF_NewBuffer();
  TF_GraphToGraphDef(t.graph, def, t.status);
  CT_OK(t.status);
  TF_Graph* graph = TF_NewGraph();
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(graph, def, options, t.status);
  CT_OK(t.status);
  cr_assert(full_type_of(&t, TF_GraphOperationByName(graph, "feed"), &field, &node));
  CT_INT(field.length, sizeof type);
  TF_DeleteBuffer(node);
  TF_DeleteImportGraphDefOptions(options);
  TF_DeleteGraph(graph);
  TF_DeleteBuffer(def);
  ct_close(&t);
}

CT_TEST(TestEdit, InputsOfAWhile) {
  ct_t t = ct_open();
  TF_Operation* x = ct_placeholder(&t, t.graph, "x", TF_FLOAT);
  TF_Operation* y = ct_placeholder(&t, t.graph, "y", TF_INT32);
  TF_OperationDescription* desc = TF_NewOperation(t.graph, "While", "while");
  TF_Output input = ct_out(x, 0);
  TF_AddInputList(desc, &input, 1);
  TF_SetAttrFuncName(desc, "cond", "c", 1);
  TF_SetAttrFuncName(desc, "body", "b", 1);
  TF_Operation* loop = TF_FinishOperation(desc, t.status);
  CT_OK(t.status);
  static const unsigned char types[] = {0x0a, 0x04, 0x32, 0x02, 0x01, 0x03};  // float, int32
  TF_Buffer* buffer = TF_NewBufferFromString(types, sizeof types);
  TF_SetAttr(t.graph, loop, "T", buffer, t.status);
  CT_OK(t.status);
  TF_DeleteBuffer(buffer);
  TF_AddWhileInputHack(t.graph, ct_out(y, 0), loop, t.status);
  CT_OK(t.status);
  CT_INT(TF_OperationNumInputs(loop), 2);
  TF_Output added = TF_OperationInput((TF_Input){loop, 1});
  cr_assert(added.oper == y && added.index == 0);
  TF_DataType got[2];
  TF_OperationGetAttrTypeList(loop, "T", got, 2, t.status);
  CT_OK(t.status);
  CT_INT(got[0], TF_FLOAT);
  CT_INT(got[1], TF_INT32);
  CT_INT(TF_OperationOutputNumConsumers(ct_out(y, 0)), 1);
  TF_AddWhileInputHack(t.graph, ct_out(y, 0), x, t.status);
  CT_ERROR_HAS(t.status, TF_INTERNAL,
               "dst argument to AddWhileEdgeHack should be a While op, got: {name:'x' id:2 op "
               "device:{requested: '', assigned: ''} def:{{{node x}} = Placeholder[");
  ct_close(&t);
}

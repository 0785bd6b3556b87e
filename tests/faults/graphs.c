// Scenarios for graphs: attributes of every kind, edits, export and import.
#include "sweep.h"
#include "tensorflow/c/c_api_experimental.h"
#include "tensorflow/c/ops.h"

static void unknown_shape(TF_ShapeInferenceContext* context, TF_Status* status) {
  TF_ShapeInferenceContextSetUnknownShape(context, status);
}

// An op with an attribute of every kind, alone and in a list.
static bool register_kinds(ft_t* t) {
  static const char* const kinds[] = {"string", "int", "float", "bool", "type", "shape", "tensor"};
  TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder("FaultKinds");
  if (!builder) return false;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    char attr[64];
    snprintf(attr, sizeof attr, "%s: %s", kinds[i], kinds[i]);
    TF_OpDefinitionBuilderAddAttr(builder, attr);
    snprintf(attr, sizeof attr, "list_%s: list(%s)", kinds[i], kinds[i]);
    TF_OpDefinitionBuilderAddAttr(builder, attr);
  }
  TF_OpDefinitionBuilderAddAttr(builder, "f: func");
  TF_OpDefinitionBuilderAddAttr(builder, "p: shape");
  TF_OpDefinitionBuilderAddAttr(builder, "v: {'red', 'green'} = 'green'");
  TF_OpDefinitionBuilderAddOutput(builder, "y: type");
  TF_OpDefinitionBuilderSetShapeInferenceFunction(builder, unknown_shape);
  TF_RegisterOpDefinition(builder, t->status);
  return ft_ok(t);
}

// A placeholder whose shape must be said.
static bool register_holder(ft_t* t) {
  TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder("FaultHolder");
  if (!builder) return false;
  TF_OpDefinitionBuilderAddAttr(builder, "dtype: type");
  TF_OpDefinitionBuilderAddAttr(builder, "shape: shape");
  TF_OpDefinitionBuilderAddOutput(builder, "y: dtype");
  TF_OpDefinitionBuilderSetShapeInferenceFunction(builder, unknown_shape);
  TF_RegisterOpDefinition(builder, t->status);
  return ft_ok(t);
}

static const char shape_proto[] = {0x12, 0x02, 0x08, 0x05};  // TensorShapeProto [5]
static const int64_t dims[] = {2, -1, 3, 4, 5, 6};
static const char* const words[] = {"", "a short one", "one that is longer than any inline string"};
static const size_t lengths[] = {0, 11, 41};

static bool add_kinds(ft_t* t) {
  TF_OperationDescription* desc = TF_NewOperation(t->graph, "FaultKinds", "kinds");
  if (!desc) return false;
  TF_SetAttrString(desc, "string", words[2], lengths[2]);
  TF_SetAttrStringList(desc, "list_string", (const void* const*)words, lengths, 3);
  TF_SetAttrInt(desc, "int", -1);
  TF_SetAttrIntList(desc, "list_int", dims, 6);
  TF_SetAttrFloat(desc, "float", 0.5f);
  TF_SetAttrFloatList(desc, "list_float", (float[]){1, 2, 3}, 3);
  TF_SetAttrBool(desc, "bool", 1);
  TF_SetAttrBoolList(desc, "list_bool", (unsigned char[]){1, 0, 1}, 3);
  TF_SetAttrType(desc, "type", TF_FLOAT);
  TF_SetAttrTypeList(desc, "list_type", (TF_DataType[]){TF_INT32, TF_STRING}, 2);
  TF_SetAttrShape(desc, "shape", dims, 6);
  TF_SetAttrShapeList(desc, "list_shape", (const int64_t*[]){dims, NULL, dims}, (int[]){2, -1, 6},
                      3);
  TF_SetAttrTensor(desc, "tensor", t->tensors[0], t->status);
  if (!ft_ok(t)) return ft_abandon(t, desc);
  TF_SetAttrTensorList(desc, "list_tensor", t->tensors, 2, t->status);
  if (!ft_ok(t)) return ft_abandon(t, desc);
  TF_SetAttrTensorShapeProto(desc, "p", shape_proto, sizeof shape_proto, t->status);
  if (!ft_ok(t)) return ft_abandon(t, desc);
  TF_SetAttrFuncName(desc, "f", "some_function", 13);
  TF_SetDevice(desc, "/device:CPU:0");
  return ft_finish(t, desc, &t->ops[0]);
}

static bool read_lists(ft_t* t) {
  void* texts[3];
  size_t sizes[3];
  char storage[64];
  int64_t* shapes[3];
  int ranks[3];
  int64_t numbers[16];
  TF_OperationGetAttrStringList(t->ops[0], "list_string", texts, sizes, 3, storage, 64, t->status);
  if (!ft_ok(t)) return false;
  FT_CHECK(t, sizes[2] == lengths[2] && memcmp(texts[2], words[2], lengths[2]) == 0);
  TF_OperationGetAttrShapeList(t->ops[0], "list_shape", shapes, ranks, 3, numbers, 16, t->status);
  if (!ft_ok(t)) return false;
  FT_CHECK(t, ranks[1] == -1 && ranks[2] == 6 && shapes[2][5] == 6);
  TF_AttrMetadata meta = TF_OperationGetAttrMetadata(t->ops[0], "list_int", t->status);
  if (!ft_ok(t)) return false;
  FT_CHECK(t, meta.list_size == 6 && meta.is_list);
  return true;
}

static bool read_tensors(ft_t* t) {
  TF_DeleteTensor(t->tensors[2]);
  t->tensors[2] = NULL;
  TF_OperationGetAttrTensor(t->ops[0], "tensor", &t->tensors[2], t->status);
  FT_CHECK(t, ft_ok(t) == (t->tensors[2] != NULL));
  if (!ft_ok(t)) return false;
  TF_OperationGetAttrTensorList(t->ops[0], "list_tensor", &t->tensors[3], 2, t->status);
  if (!ft_ok(t)) {
    FT_CHECK(t, !t->tensors[3] && !t->tensors[4]);
    return false;
  }
  FT_CHECK(t, TF_TensorElementCount(t->tensors[4]) == 720);
  return true;
}

static bool read_proto(ft_t* t, const char* name) {
  if (!ft_buffer(&t->buffers[0])) return false;
  TF_OperationGetAttrValueProto(t->ops[0], name, t->buffers[0], t->status);
  if (ft_ok(t)) FT_CHECK(t, t->buffers[0]->length > 0);
  return ft_ok(t);
}

static bool set_by_proto(ft_t* t) {
  TF_OperationDescription* desc = TF_NewOperation(t->graph, "FaultHolder", "by_proto");
  if (!desc) return false;
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  TF_SetAttrValueProto(desc, "shape", t->buffers[0]->data, t->buffers[0]->length, t->status);
  if (!ft_ok(t)) return ft_abandon(t, desc);
  TF_AddControlInput(desc, t->ops[0]);
  return ft_finish(t, desc, &t->ops[1]);
}

static bool node_def(ft_t* t) {
  if (!ft_buffer(&t->buffers[1])) return false;
  TF_OperationToNodeDef(t->ops[0], t->buffers[1], t->status);
  return ft_ok(t);
}

static bool shape_protos(ft_t* t) {
  if (!ft_buffer(&t->buffers[2])) return false;
  TF_OperationGetAttrTensorShapeProto(t->ops[0], "p", t->buffers[2], t->status);
  if (!ft_ok(t)) return false;
  TF_OperationGetAttrTensorShapeProtoList(t->ops[0], "list_shape", &t->buffers[3], 3, t->status);
  FT_CHECK(t, ft_ok(t) == (t->buffers[3] && t->buffers[4] && t->buffers[5]));
  if (!ft_ok(t)) FT_CHECK(t, !t->buffers[3] && !t->buffers[4] && !t->buffers[5]);
  return ft_ok(t);
}

void scenario_attributes(ft_t* t) {
  static const float values[720] = {1, 2, 3};
  FT(ft_start(t));
  FT(register_kinds(t));
  FT(register_holder(t));
  FT(ft_scalar(&t->tensors[0], 4));
  FT(ft_tensor(&t->tensors[1], TF_FLOAT, (int64_t[]){1, 2, 3, 4, 5, 6}, 6, values));
  FT(add_kinds(t));
  FT(read_lists(t));
  FT(read_tensors(t));
  static const char* const names[] = {"string",     "list_string", "list_int",
                                      "list_float", "list_tensor", "f",
                                      "v",          "list_shape",  "shape"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) FT(read_proto(t, names[i]));
  FT(set_by_proto(t));
  FT_CHECK(t, TF_OperationNumControlInputs(t->ops[1]) == 1);
  FT(node_def(t));
  FT(shape_protos(t));
}

static bool set_shape(ft_t* t, TF_Operation* oper) {
  TF_GraphSetTensorShape(t->graph, ft_out(oper), (int64_t[]){2, 3, 4, 5, 6, 7}, 6, t->status);
  return ft_ok(t);
}

static bool set_attr(ft_t* t) {
  TF_SetAttr(t->graph, t->ops[1], "_note", t->buffers[0], t->status);
  return ft_ok(t);
}

static bool update_edge(ft_t* t) {
  TF_UpdateEdge(t->graph, ft_out(t->ops[1]), (TF_Input){t->ops[2], 0}, t->status);
  return ft_ok(t);
}

static bool colocated(ft_t* t) {
  TF_OperationDescription* desc = TF_NewOperation(t->graph, "Neg", "beside");
  TF_AddInput(desc, ft_out(t->ops[0]));
  TF_ColocateWith(desc, t->ops[0]);
  TF_ColocateWith(desc, t->ops[1]);
  return ft_finish(t, desc, &t->ops[3]);
}

// These have no status: what they were to do is done, or not at all.
static bool add_control(ft_t* t, int i) {
  TF_AddOperationControlInput(t->graph, t->ops[5], t->ops[i]);
  int wanted = i + 1, inputs = TF_OperationNumControlInputs(t->ops[5]);
  FT_CHECK(t, inputs == wanted || inputs == wanted - 1);
  FT_CHECK(t, TF_OperationNumControlOutputs(t->ops[i]) == inputs - i);
  return inputs == wanted;
}

static bool set_device(ft_t* t) {
  static const char device[] = "/job:localhost/replica:0/task:0/device:CPU:0";
  TF_SetRequestedDevice(t->graph, t->ops[5], device);
  const char* found = TF_OperationDevice(t->ops[5]);
  FT_CHECK(t, strcmp(found, "") == 0 || strcmp(found, device) == 0);
  return found[0] != '\0';
}

static bool clear_attr(ft_t* t) {
  TF_ClearAttr(t->graph, t->ops[1], "_note", t->status);
  return ft_ok(t);
}

static bool debug_string(ft_t* t) {
  size_t length = 0;
  const char* text = TF_GraphDebugString(t->graph, &length);
  if (text) FT_CHECK(t, strlen(text) == length && length > 100);
  free((void*)(uintptr_t)text);
  return text != NULL;
}

static bool handle_shape(ft_t* t) {
  TF_DeleteBuffer(t->buffers[1]);
  t->buffers[1] = TF_GetHandleShapeAndType(t->graph, ft_out(t->ops[5]));
  return t->buffers[1] != NULL;
}

static bool evaluate(ft_t* t) {
  TF_DeleteTensor(t->tensors[2]);
  t->tensors[2] = NULL;
  unsigned char is_constant =
      TF_TryEvaluateConstant(t->graph, ft_out(t->ops[5]), &t->tensors[2], t->status);
  if (ft_ok(t)) FT_CHECK(t, is_constant && ft_float(t->tensors[2]) == -4);
  return ft_ok(t);
}

void scenario_edit(ft_t* t) {
  FT(ft_start(t));
  FT(ft_placeholder(t, &t->ops[0], "a", TF_FLOAT));
  FT(ft_placeholder(t, &t->ops[1], "b", TF_FLOAT));
  FT(ft_op(t, &t->ops[2], "Neg", "neg", t->ops[0], NULL));
  FT(set_shape(t, t->ops[0]));
  FT((t->buffers[0] = TF_NewBufferFromString("\x12\x02hi", 4)) != NULL);
  FT(set_attr(t));
  FT(update_edge(t));
  FT_CHECK(t, TF_OperationInput((TF_Input){t->ops[2], 0}).oper == t->ops[1]);
  FT_CHECK(t, TF_OperationOutputNumConsumers(ft_out(t->ops[0])) == 0);
  FT_CHECK(t, TF_OperationOutputNumConsumers(ft_out(t->ops[1])) == 1);
  FT(colocated(t));
  FT(ft_scalar(&t->tensors[0], 4));
  FT(ft_const(t, &t->ops[4], "c", t->tensors[0]));
  FT(ft_op(t, &t->ops[5], "Neg", "minus_c", t->ops[4], NULL));
  FT(evaluate(t));
  for (int i = 0; i < 4; ++i) FT(add_control(t, i));
  TF_RemoveAllControlInputs(t->graph, t->ops[5]);
  FT_CHECK(t, TF_OperationNumControlInputs(t->ops[5]) == 0);
  FT(set_device(t));
  FT(clear_attr(t));
  FT(debug_string(t));
  FT(handle_shape(t));
}

static bool export(ft_t* t, TF_Graph* graph, TF_Buffer** slot) {
  if (!ft_buffer(slot)) return false;
  TF_GraphToGraphDef(graph, *slot, t->status);
  return ft_ok(t);
}

static bool versions(ft_t* t) {
  if (!ft_buffer(&t->buffers[2])) return false;
  TF_GraphVersions(t->graph, t->buffers[2], t->status);
  return ft_ok(t);
}

static int count_nodes(TF_Graph* graph) {
  size_t position = 0;
  int nodes = 0;
  while (TF_GraphNextOperation(graph, &position)) ++nodes;
  return nodes;
}

static bool import(ft_t* t, TF_Operation* mapped) {
  TF_DeleteImportGraphDefOptions(t->import);
  TF_DeleteImportGraphDefResults(t->results);
  t->results = NULL;
  t->import = TF_NewImportGraphDefOptions();
  if (!t->import) return false;
  TF_ImportGraphDefOptionsSetPrefix(t->import, "imported");
  TF_ImportGraphDefOptionsSetUniquifyPrefix(t->import, 1);
  TF_ImportGraphDefOptionsSetUniquifyNames(t->import, 1);
  TF_ImportGraphDefOptionsSetDefaultDevice(t->import, "/device:CPU:0");
  TF_ImportGraphDefOptionsAddInputMapping(t->import, "x", 0, ft_out(mapped));
  TF_ImportGraphDefOptionsAddInputMapping(t->import, "nobody", 0, ft_out(mapped));
  TF_ImportGraphDefOptionsRemapControlDependency(t->import, "x", mapped);
  TF_ImportGraphDefOptionsAddControlDependency(t->import, mapped);
  TF_ImportGraphDefOptionsAddReturnOutput(t->import, "neg", 0);
  TF_ImportGraphDefOptionsAddReturnOperation(t->import, "sum");
  int before = count_nodes(t->other);
  t->results = TF_GraphImportGraphDefWithResults(t->other, t->buffers[0], t->import, t->status);
  FT_CHECK(t, ft_ok(t) == (t->results != NULL));
  if (!ft_ok(t)) FT_CHECK(t, count_nodes(t->other) == before);
  return ft_ok(t);
}

static bool place_other(ft_t* t, TF_Operation** slot) {
  TF_OperationDescription* desc = TF_NewOperation(t->other, "Placeholder", "given");
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  return ft_finish(t, desc, slot);
}

// A chain long enough for names, tables and arenas to grow.
static bool long_chain(ft_t* t, int from, int to) {
  static const char name[] = "a_name_that_is_long_enough_to_need_memory_of_its_own";
  char text[96];
  for (int i = from; i < to; ++i) {
    snprintf(text, sizeof text, "%s_%d", name, i);
    if (TF_GraphOperationByName(t->graph, text)) continue;  // from an earlier try
    TF_Operation* next = NULL;
    if (!ft_op(t, &next, "Identity", text, t->ops[6], NULL)) return false;
    t->ops[6] = next;
  }
  return true;
}

static bool import_all(ft_t* t) {
  TF_DeleteImportGraphDefOptions(t->import);
  t->import = TF_NewImportGraphDefOptions();
  if (!t->import) return false;
  TF_ImportGraphDefOptionsSetPrefix(t->import, "all");
  int before = count_nodes(t->other);
  TF_GraphImportGraphDef(t->other, t->buffers[3], t->import, t->status);
  if (!ft_ok(t)) FT_CHECK(t, count_nodes(t->other) == before);
  return ft_ok(t);
}

void scenario_import(ft_t* t) {
  static const float values[24] = {1, 2, 3};
  FT(ft_start(t));
  FT(ft_placeholder(t, &t->ops[0], "x", TF_FLOAT));
  FT(ft_tensor(&t->tensors[0], TF_FLOAT, (int64_t[]){1, 2, 3, 4, 1}, 5, values));
  FT(ft_const(t, &t->ops[1], "c", t->tensors[0]));
  FT(ft_op(t, &t->ops[2], "AddV2", "sum", t->ops[0], t->ops[1]));
  FT(ft_op(t, &t->ops[3], "Neg", "neg", t->ops[2], NULL));
  FT(export(t, t->graph, &t->buffers[0]));
  FT(versions(t));
  FT((t->other = TF_NewGraph()) != NULL);
  FT(place_other(t, &t->ops[4]));
  FT(import(t, t->ops[4]));
  FT(import(t, t->ops[4]));  // under another prefix
  int count = 0;
  TF_Output* outputs = NULL;
  TF_ImportGraphDefResultsReturnOutputs(t->results, &count, &outputs);
  FT_CHECK(t, count == 1 && strcmp(TF_OperationName(outputs[0].oper), "imported_1/neg") == 0);
  const char** missing = NULL;
  int* indexes = NULL;
  TF_ImportGraphDefResultsMissingUnusedInputMappings(t->results, &count, &missing, &indexes);
  FT_CHECK(t, count == 1 && strcmp(missing[0], "nobody") == 0);
  FT_CHECK(t, count_nodes(t->other) == 1 + 2 * 4);
  FT(export(t, t->other, &t->buffers[1]));
  t->ops[6] = t->ops[3];
  FT(long_chain(t, 0, 300));
  FT(export(t, t->graph, &t->buffers[3]));
  FT(import_all(t));
  FT_CHECK(t, count_nodes(t->other) == 1 + 2 * 4 + 304);
}

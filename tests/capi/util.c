// Helpers for the C API tests; see util.h.
#include "util.h"

#include <stdio.h>
#include <stdlib.h>

ct_t ct_open(void) {
  ct_t t = {.graph = TF_NewGraph(), .status = TF_NewStatus()};
  cr_assert(t.graph != NULL && t.status != NULL);
  return t;
}

void ct_close(ct_t* t) {
  if (t->session != NULL) {
    TF_CloseSession(t->session, t->status);
    CT_OK(t->status);
    TF_DeleteSession(t->session, t->status);
    CT_OK(t->status);
  }
  TF_DeleteGraph(t->graph);
  TF_DeleteStatus(t->status);
  *t = (ct_t){0};
}

void ct_count_call(void* data, size_t length, void* arg) {
  (void)data;
  (void)length;
  ++*(int*)arg;
}

TF_Tensor* ct_tensor(TF_DataType dtype, const int64_t* dims, int num_dims, const void* values,
                     size_t bytes) {
  TF_Tensor* tensor = TF_AllocateTensor(dtype, dims, num_dims, bytes);
  cr_assert_not_null(tensor);
  cr_assert_eq(TF_TensorByteSize(tensor), bytes);
  if (bytes > 0) memcpy(TF_TensorData(tensor), values, bytes);
  return tensor;
}

TF_Tensor* ct_int32(int32_t value) { return ct_tensor(TF_INT32, NULL, 0, &value, sizeof value); }
TF_Tensor* ct_float(float value) { return ct_tensor(TF_FLOAT, NULL, 0, &value, sizeof value); }
TF_Tensor* ct_bool(bool value) { return ct_tensor(TF_BOOL, NULL, 0, &value, sizeof value); }

TF_Tensor* ct_int32_vector(int count, const int32_t* values) {
  int64_t dims[] = {count};
  return ct_tensor(TF_INT32, dims, 1, values, (size_t)count * sizeof *values);
}

TF_Tensor* ct_float_matrix(int rows, int columns, const float* values) {
  int64_t dims[] = {rows, columns};
  return ct_tensor(TF_FLOAT, dims, 2, values, (size_t)rows * (size_t)columns * sizeof *values);
}

static TF_Tensor* string_tensor(const int64_t* dims, int num_dims, int count,
                                const char* const* texts) {
  TF_Tensor* tensor =
      TF_AllocateTensor(TF_STRING, dims, num_dims, (size_t)count * sizeof(TF_TString));
  cr_assert_not_null(tensor);
  TF_TString* strings = TF_TensorData(tensor);
  for (int i = 0; i < count; ++i) {
    TF_StringInit(&strings[i]);
    TF_StringCopy(&strings[i], texts[i], strlen(texts[i]));
  }
  return tensor;
}

TF_Tensor* ct_string(const char* text) { return string_tensor(NULL, 0, 1, &text); }

TF_Tensor* ct_string_vector(int count, const char* const* texts) {
  int64_t dims[] = {count};
  return string_tensor(dims, 1, count, texts);
}

int32_t ct_take_int32(TF_Tensor* tensor) {
  cr_assert_not_null(tensor);
  CT_INT(TF_TensorType(tensor), TF_INT32);
  CT_INT(TF_NumDims(tensor), 0);
  CT_INT(TF_TensorByteSize(tensor), 4);
  int32_t value;
  memcpy(&value, TF_TensorData(tensor), sizeof value);
  TF_DeleteTensor(tensor);
  return value;
}

float ct_take_float(TF_Tensor* tensor) {
  cr_assert_not_null(tensor);
  CT_INT(TF_TensorType(tensor), TF_FLOAT);
  CT_INT(TF_NumDims(tensor), 0);
  CT_INT(TF_TensorByteSize(tensor), 4);
  float value;
  memcpy(&value, TF_TensorData(tensor), sizeof value);
  TF_DeleteTensor(tensor);
  return value;
}

static TF_Operation* finish(ct_t* t, TF_OperationDescription* desc) {
  TF_Operation* oper = TF_FinishOperation(desc, t->status);
  CT_OK(t->status);
  cr_assert_not_null(oper);
  return oper;
}

TF_Operation* ct_placeholder(ct_t* t, TF_Graph* graph, const char* name, TF_DataType dtype) {
  TF_OperationDescription* desc = TF_NewOperation(graph, "Placeholder", name);
  TF_SetAttrType(desc, "dtype", dtype);
  return finish(t, desc);
}

TF_Operation* ct_placeholder_shaped(ct_t* t, TF_Graph* graph, const char* name, TF_DataType dtype,
                                    const int64_t* dims, int num_dims) {
  TF_OperationDescription* desc = TF_NewOperation(graph, "Placeholder", name);
  TF_SetAttrType(desc, "dtype", dtype);
  TF_SetAttrShape(desc, "shape", dims, num_dims);
  return finish(t, desc);
}

TF_Operation* ct_const(ct_t* t, TF_Graph* graph, const char* name, TF_Tensor* value) {
  TF_OperationDescription* desc = TF_NewOperation(graph, "Const", name);
  TF_SetAttrTensor(desc, "value", value, t->status);
  CT_OK(t->status);
  TF_SetAttrType(desc, "dtype", TF_TensorType(value));
  TF_Operation* oper = finish(t, desc);
  TF_DeleteTensor(value);
  return oper;
}

TF_Operation* ct_scalar(ct_t* t, TF_Graph* graph, const char* name, int32_t value) {
  return ct_const(t, graph, name, ct_int32(value));
}

TF_Operation* ct_scalar_float(ct_t* t, TF_Graph* graph, const char* name, float value) {
  return ct_const(t, graph, name, ct_float(value));
}

TF_Operation* ct_unary(ct_t* t, TF_Graph* graph, const char* type, const char* name, TF_Output x) {
  TF_OperationDescription* desc = TF_NewOperation(graph, type, name);
  TF_AddInput(desc, x);
  return finish(t, desc);
}

TF_Operation* ct_binary_try(TF_Graph* graph, const char* type, const char* name, TF_Output x,
                            TF_Output y, TF_Status* status) {
  TF_OperationDescription* desc = TF_NewOperation(graph, type, name);
  TF_AddInput(desc, x);
  TF_AddInput(desc, y);
  return TF_FinishOperation(desc, status);
}

TF_Operation* ct_binary(ct_t* t, TF_Graph* graph, const char* type, const char* name, TF_Output x,
                        TF_Output y) {
  TF_Operation* oper = ct_binary_try(graph, type, name, x, y, t->status);
  CT_OK(t->status);
  cr_assert_not_null(oper);
  return oper;
}

TF_Operation* ct_add_try(TF_Graph* graph, const char* name, TF_Output x, TF_Output y,
                         TF_Status* status) {
  TF_OperationDescription* desc = TF_NewOperation(graph, "AddN", name);
  TF_Output inputs[] = {x, y};
  TF_AddInputList(desc, inputs, 2);
  return TF_FinishOperation(desc, status);
}

TF_Operation* ct_add(ct_t* t, TF_Graph* graph, const char* name, TF_Output x, TF_Output y) {
  TF_Operation* oper = ct_add_try(graph, name, x, y, t->status);
  CT_OK(t->status);
  cr_assert_not_null(oper);
  return oper;
}

TF_Operation* ct_add_after(ct_t* t, TF_Graph* graph, const char* name, TF_Operation* x,
                           TF_Operation* y, TF_Operation* control) {
  TF_OperationDescription* desc = TF_NewOperation(graph, "AddN", name);
  TF_Output inputs[] = {ct_out(x, 0), ct_out(y, 0)};
  TF_AddInputList(desc, inputs, 2);
  TF_AddControlInput(desc, control);
  return finish(t, desc);
}

TF_Operation* ct_neg(ct_t* t, TF_Graph* graph, const char* name, TF_Operation* x) {
  return ct_unary(t, graph, "Neg", name, ct_out(x, 0));
}

TF_Operation* ct_less(ct_t* t, TF_Graph* graph, const char* name, TF_Output x, TF_Output y) {
  return ct_binary(t, graph, "Less", name, x, y);
}

TF_Operation* ct_split3(ct_t* t, TF_Graph* graph, const char* name, TF_Operation* value) {
  TF_Operation* axis = ct_scalar(t, graph, "split_axis", 0);
  TF_OperationDescription* desc = TF_NewOperation(graph, "Split", name);
  TF_AddInput(desc, ct_out(axis, 0));
  TF_AddInput(desc, ct_out(value, 0));
  TF_SetAttrInt(desc, "num_split", 3);
  TF_SetAttrType(desc, "T", TF_OperationOutputType(ct_out(value, 0)));
  return finish(t, desc);
}

TF_Operation* ct_min(ct_t* t, TF_Graph* graph, const char* name, TF_Operation* input,
                     TF_Operation* axes, const char* device) {
  TF_OperationDescription* desc = TF_NewOperation(graph, "Min", name);
  TF_AddInput(desc, ct_out(input, 0));
  TF_AddInput(desc, ct_out(axes, 0));
  if (device != NULL) TF_SetDevice(desc, device);
  return finish(t, desc);
}

TF_Operation* ct_random_uniform(ct_t* t, TF_Graph* graph, const char* name, TF_Operation* shape,
                                TF_DataType dtype) {
  TF_OperationDescription* desc = TF_NewOperation(graph, "RandomUniform", name);
  TF_AddInput(desc, ct_out(shape, 0));
  TF_SetAttrType(desc, "dtype", dtype);
  return finish(t, desc);
}

TF_Session* ct_session(ct_t* t, const pb_t* config) {
  if (t->session != NULL) return t->session;
  TF_SessionOptions* options = TF_NewSessionOptions();
  if (config != NULL) {
    TF_SetConfig(options, config->data, config->length, t->status);
    CT_OK(t->status);
  }
  t->session = TF_NewSession(t->graph, options, t->status);
  TF_DeleteSessionOptions(options);
  CT_OK(t->status);
  cr_assert_not_null(t->session);
  return t->session;
}

TF_Tensor* ct_try_run(ct_t* t, int count, const TF_Output* feeds, TF_Tensor* const* values,
                      TF_Output fetch) {
  TF_Tensor* result = NULL;
  TF_SessionRun(ct_session(t, NULL), NULL, feeds, values, count, &fetch, &result, 1, NULL, 0, NULL,
                t->status);
  for (int i = 0; i < count; ++i) TF_DeleteTensor(values[i]);
  return result;
}

TF_Tensor* ct_run(ct_t* t, int count, const TF_Output* feeds, TF_Tensor* const* values,
                  TF_Output fetch) {
  TF_Tensor* result = ct_try_run(t, count, feeds, values, fetch);
  CT_OK(t->status);
  cr_assert_not_null(result);
  return result;
}

TF_Tensor* ct_run1(ct_t* t, TF_Operation* feed, TF_Tensor* value, TF_Operation* fetch) {
  TF_Output feeds[] = {ct_out(feed, 0)};
  return ct_run(t, 1, feeds, &value, ct_out(fetch, 0));
}

TF_Tensor* ct_run0(ct_t* t, TF_Operation* fetch) {
  return ct_run(t, 0, NULL, NULL, ct_out(fetch, 0));
}

TF_Buffer* ct_graph_def(TF_Graph* graph) {
  TF_Status* status = TF_NewStatus();
  TF_Buffer* buffer = TF_NewBuffer();
  TF_GraphToGraphDef(graph, buffer, status);
  CT_OK(status);
  TF_DeleteStatus(status);
  return buffer;
}

TF_Buffer* ct_node_def(TF_Operation* oper) {
  TF_Status* status = TF_NewStatus();
  TF_Buffer* buffer = TF_NewBuffer();
  TF_OperationToNodeDef(oper, buffer, status);
  CT_OK(status);
  TF_DeleteStatus(status);
  return buffer;
}

// NodeDef: name 1, op 2, input 3, device 4.
static void node_text(const pb_field_t* node, FILE* stream) {
  pb_field_t field;
  pb_find(node->data, node->length, 1, &field);
  fprintf(stream, "%.*s = ", (int)field.length, (const char*)field.data);
  pb_find(node->data, node->length, 2, &field);
  fprintf(stream, "%.*s(", (int)field.length, (const char*)field.data);
  pb_reader_t reader = pb_read(node->data, node->length);
  const char* comma = "";
  while (pb_next(&reader, &field)) {
    if (field.number != 3) continue;
    fprintf(stream, "%s%.*s", comma, (int)field.length, (const char*)field.data);
    comma = ", ";
  }
  fputs(")", stream);
  if (pb_find(node->data, node->length, 4, &field) && field.length > 0) {
    fprintf(stream, " @%.*s", (int)field.length, (const char*)field.data);
  }
  fputs("\n", stream);
}

char* ct_graph_text(TF_Graph* graph) {
  TF_Buffer* buffer = ct_graph_def(graph);
  char* text = NULL;
  size_t length = 0;
  FILE* stream = open_memstream(&text, &length);
  cr_assert_not_null(stream);
  pb_reader_t reader = pb_read(buffer->data, buffer->length);
  pb_field_t field;
  while (pb_next(&reader, &field)) {
    if (field.number == 1) node_text(&field, stream);
  }
  cr_assert(!reader.malformed);
  fclose(stream);
  TF_DeleteBuffer(buffer);
  return text;
}

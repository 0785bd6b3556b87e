// A client as any user would write it, with TensorFlow's headers and names only. Adds 2 and 40.
#include <stdio.h>
#include <string.h>
#include <tensorflow/c/c_api.h>

static TF_Operation* placeholder(TF_Graph* graph, const char* name, TF_Status* status) {
  TF_OperationDescription* desc = TF_NewOperation(graph, "Placeholder", name);
  TF_SetAttrType(desc, "dtype", TF_INT32);
  return TF_FinishOperation(desc, status);
}

static TF_Tensor* scalar(int value) {
  TF_Tensor* tensor = TF_AllocateTensor(TF_INT32, NULL, 0, sizeof value);
  memcpy(TF_TensorData(tensor), &value, sizeof value);
  return tensor;
}

int main(void) {
  TF_Status* status = TF_NewStatus();
  TF_Graph* graph = TF_NewGraph();
  TF_Output inputs[2] = {{placeholder(graph, "a", status), 0},
                         {placeholder(graph, "b", status), 0}};
  TF_OperationDescription* desc = TF_NewOperation(graph, "AddV2", "sum");
  TF_AddInput(desc, inputs[0]);
  TF_AddInput(desc, inputs[1]);
  TF_Output sum = {TF_FinishOperation(desc, status), 0};
  if (TF_GetCode(status) != TF_OK) return fprintf(stderr, "%s\n", TF_Message(status)), 1;

  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(graph, options, status);
  TF_Tensor* values[2] = {scalar(2), scalar(40)};
  TF_Tensor* result = NULL;
  TF_SessionRun(session, NULL, inputs, values, 2, &sum, &result, 1, NULL, 0, NULL, status);
  if (TF_GetCode(status) != TF_OK) return fprintf(stderr, "%s\n", TF_Message(status)), 1;
  printf("%s %d\n", TF_Version(), *(int*)TF_TensorData(result));

  for (int i = 0; i < 2; ++i) TF_DeleteTensor(values[i]);
  TF_DeleteTensor(result);
  TF_CloseSession(session, status);
  TF_DeleteSession(session, status);
  TF_DeleteSessionOptions(options);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(status);
  return 0;
}

// Runs a frozen graph through TensorFlow's C API: client GRAPH.pb prints y for a fixed x, or the
// message that says why it cannot.
#include <stdio.h>
#include <stdlib.h>
#include <tensorflow/c/c_api.h>

static void free_data(void* data, size_t size) {
  (void)size;
  free(data);
}

static TF_Buffer* read_file(const char* path) {
  FILE* file = fopen(path, "rb");
  if (!file) return NULL;
  fseek(file, 0, SEEK_END);
  const long size = ftell(file);
  rewind(file);
  char* data = malloc((size_t)size);
  const size_t got = fread(data, 1, (size_t)size, file);
  fclose(file);
  TF_Buffer* buffer = TF_NewBuffer();
  *buffer = (TF_Buffer){data, got, free_data};
  return buffer;
}

static TF_Tensor* input(void) {
  const int64_t dims[] = {2, 8, 8, 1};
  TF_Tensor* tensor = TF_AllocateTensor(TF_FLOAT, dims, 4, 128 * sizeof(float));
  float* x = TF_TensorData(tensor);
  for (int i = 0; i < 128; ++i) x[i] = (float)(i * 37 % 101) / 50 - 1;
  return tensor;
}

int main(int argc, char** argv) {
  TF_Buffer* bytes = argc == 2 ? read_file(argv[1]) : NULL;
  if (!bytes) return fprintf(stderr, "usage: client GRAPH.pb\n"), 2;
  TF_Status* status = TF_NewStatus();
  TF_Graph* graph = TF_NewGraph();
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(graph, bytes, options, status);
  TF_SessionOptions* config = TF_NewSessionOptions();
  TF_Session* session = TF_GetCode(status) ? NULL : TF_NewSession(graph, config, status);
  if (session) {
    TF_Output x = {TF_GraphOperationByName(graph, "x"), 0};
    TF_Output y = {TF_GraphOperationByName(graph, "y"), 0};
    TF_Tensor *in = input(), *out = NULL;
    TF_SessionRun(session, NULL, &x, &in, 1, &y, &out, 1, NULL, 0, NULL, status);
    for (size_t i = 0; out && i < TF_TensorByteSize(out) / sizeof(float); ++i)
      printf("%.9g\n", (double)((float*)TF_TensorData(out))[i]);
    if (out) TF_DeleteTensor(out);
    TF_DeleteTensor(in);
    TF_Status* ignored = TF_NewStatus();
    TF_DeleteSession(session, ignored);
    TF_DeleteStatus(ignored);
  }
  const int code = TF_GetCode(status);
  if (code) printf("%s\n", TF_Message(status));
  TF_DeleteSessionOptions(config);
  TF_DeleteImportGraphDefOptions(options);
  TF_DeleteBuffer(bytes);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(status);
  return code ? 1 : 0;
}

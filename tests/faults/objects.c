// Scenarios for small objects: tensors, strings, statuses, buffers, and the lists of ops and
// kernels.
#include "sweep.h"
#include "tensorflow/c/c_api_experimental.h"
#include "tensorflow/c/c_api_legacy.h"
#include "tensorflow/c/env.h"

static bool bitcast(ft_t* t) {
  TF_TensorBitcastFrom(t->tensors[0], TF_INT32, t->tensors[1], (int64_t[]){3, 2, 1, 1, 1}, 5,
                       t->status);
  return ft_ok(t);
}

static bool reshape(TF_Tensor* tensor) {
  TF_SetShape(tensor, (int64_t[]){1, 1, 1, 6, 1, 1}, 6);  // has no status: the old shape stays
  return TF_NumDims(tensor) == 6;
}

static void visit(const char* key, const char* value, void* arg) {
  (void)key;
  *(size_t*)arg += strlen(value);
}

static bool set_payloads(ft_t* t) {
  TF_SetStatus(t->status, TF_RESOURCE_EXHAUSTED, "a message of the client");
  TF_SetPayload(t->status, "type", "a payload that a client attaches");
  TF_SetPayload(t->status, "type", "another");
  size_t total = 0;
  TF_ForEachPayload(t->status, visit, &total);
  bool worked = strcmp(TF_Message(t->status), "a message of the client") == 0 && total == 7;
  if (worked) TF_SetStatus(t->status, TF_OK, "");
  return worked;
}

static bool io_error(ft_t* t) {
  TF_SetStatusFromIOError(t->status, 2, "somewhere");
  if (TF_GetCode(t->status) != TF_NOT_FOUND) return false;
  TF_SetStatus(t->status, TF_OK, "");
  return true;
}

static bool copy_string(TF_TString* string, const char* text) {
  TF_StringCopy(string, text, strlen(text));
  return TF_StringGetSize(string) == strlen(text);
}

static bool read_api_defs(ft_t* t) {
  TF_DeleteBuffer(t->buffers[2]);
  t->buffers[2] = TF_ApiDefMapGet(t->api_defs, "MatMul", 6, t->status);
  FT_CHECK(t, ft_ok(t) == (t->buffers[2] != NULL));
  return ft_ok(t);
}

static bool put_api_def(ft_t* t) {
  static const char text[] = "op: < graph_op_name: 'MatMul' summary: 'of a test' >";
  TF_ApiDefMapPut(t->api_defs, text, sizeof text - 1, t->status);
  return ft_ok(t);
}

static bool tensor_from_proto(ft_t* t) {
  // TensorProto: dtype float, shape [2], two values.
  static const char proto[] = {0x08, 0x01, 0x12, 0x04,       0x12, 0x02, 0x08, 0x02, 0x2a,
                               0x08, 0,    0,    (char)0x80, 0x3f, 0,    0,    0,    0x40};
  if (!t->buffers[1]) t->buffers[1] = TF_NewBufferFromString(proto, sizeof proto);
  if (!t->buffers[1]) return false;
  TF_TensorFromProto(t->buffers[1], t->tensors[2], t->status);
  if (ft_ok(t)) FT_CHECK(t, TF_TensorElementCount(t->tensors[2]) == 2);
  return ft_ok(t);
}

static bool legacy_string(ft_t* t) {
  static const char text[] = "a text in the encoding of old clients";
  char encoded[64];
  size_t size = TF_StringEncode(text, sizeof text, encoded, sizeof encoded, t->status);
  if (ft_ok(t)) FT_CHECK(t, size == TF_StringEncodedSize(sizeof text));
  return ft_ok(t);
}

// A directory with a file, listed and removed.
static bool use_files(ft_t* t) {
  char root[] = "/tmp/faults_XXXXXX", path[64];
  if (!mkdtemp(root)) return false;
  snprintf(path, sizeof path, "%s/file", root);
  TF_WritableFileHandle* file = NULL;
  TF_NewWritableFile(path, &file, t->status);
  if (file) {
    TF_AppendWritableFile(file, "text", 4, t->status);
    TF_CloseWritableFile(file, t->status);
  }
  TF_StringStream* names = file && ft_ok(t) ? TF_GetChildren(root, t->status) : NULL;
  const char* name = NULL;
  bool ok = names && ft_ok(t) && TF_StringStreamNext(names, &name) && strcmp(name, "file") == 0;
  TF_StringStreamDone(names);
  // Where memory fails there, the test has to tidy up itself.
  int64_t files, directories;
  if (ok) TF_DeleteRecursively(root, &files, &directories, t->status);
  ok = ok && ft_ok(t);
  if (!ok) unlink(path);
  if (!ok) rmdir(root);
  return ok;
}

static bool temporary_places(void) {
  TF_StringStream* places = TF_GetLocalTempDirectories();
  const char* place = NULL;
  bool ok = TF_StringStreamNext(places, &place);
  TF_StringStreamDone(places);
  return ok;
}

void scenario_objects(ft_t* t) {
  static const float values[6] = {1, 2, 3, 4, 5, 6};
  const int64_t dims[] = {6, 1, 1, 1, 1};
  FT(ft_start(t));
  FT(ft_tensor(&t->tensors[0], TF_FLOAT, dims, 5, values));
  FT(ft_tensor(&t->tensors[1], TF_INT32, NULL, 0, values));
  FT(ft_scalar(&t->tensors[2], 1));
  FT(bitcast(t));
  FT(reshape(t->tensors[1]));
  FT_CHECK(t, memcmp(TF_TensorData(t->tensors[1]), values, sizeof values) == 0);
  FT(tensor_from_proto(t));
  FT(set_payloads(t));
  FT(io_error(t));
  FT((t->tensors[3] = TF_AllocateTensor(TF_STRING, NULL, 0, sizeof(TF_TString))) != NULL);
  FT(copy_string(TF_TensorData(t->tensors[3]), "a text that does not fit into the string itself"));
  FT((t->buffers[0] = TF_NewBufferFromString("bytes", 5)) != NULL);
  FT((t->buffers[3] = TF_CreateConfig(0, 1, 1)) != NULL);
  FT((t->buffers[4] = TF_CreateRunOptions(1)) != NULL);
  FT(legacy_string(t));
  FT(use_files(t));
  FT(temporary_places());
}

static bool kernels_of(ft_t* t, const char* op) {
  TF_DeleteBuffer(t->buffers[3]);
  t->buffers[3] =
      op ? TF_GetRegisteredKernelsForOp(op, t->status) : TF_GetAllRegisteredKernels(t->status);
  FT_CHECK(t, ft_ok(t) == (t->buffers[3] != NULL));
  if (ft_ok(t)) FT_CHECK(t, t->buffers[3]->length > 10);
  return ft_ok(t);
}

static bool op_def(ft_t* t) {
  if (!ft_buffer(&t->buffers[4])) return false;
  TF_GraphGetOpDef(t->graph, "MatMul", t->buffers[4], t->status);
  return ft_ok(t);
}

void scenario_lists(ft_t* t) {
  FT(ft_start(t));
  FT(kernels_of(t, "MatMul"));
  FT(kernels_of(t, NULL));
  FT(op_def(t));
  FT((t->buffers[0] = TF_GetAllOpList()) != NULL);
  FT((t->api_defs = TF_NewApiDefMap(t->buffers[0], t->status)) != NULL);
  FT(put_api_def(t));
  FT(read_api_defs(t));
}

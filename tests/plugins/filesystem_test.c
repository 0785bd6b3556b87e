// The toy file system: files through env.h, through ops, checkpoints and SavedModels.
#include "plugins.h"
#include "tensorflow/c/env.h"

static ct_t open_fs(void) {
  ct_t t = ct_open();
  TF_RegisterFilesystemPlugin(PT_TOYFS_PATH, t.status);
  CT_OK(t.status);
  return t;
}

static void write_file(ct_t* t, const char* path, const void* data, size_t size) {
  TF_WritableFileHandle* file = NULL;
  TF_NewWritableFile(path, &file, t->status);
  CT_OK(t->status);
  TF_AppendWritableFile(file, data, size, t->status);
  CT_OK(t->status);
  TF_FlushWritableFile(file, t->status);
  CT_OK(t->status);
  TF_SyncWritableFile(file, t->status);
  CT_OK(t->status);
  TF_CloseWritableFile(file, t->status);
  CT_OK(t->status);
}

static void make_directory(ct_t* t, const char* path) {
  TF_CreateDir(path, t->status);
  CT_OK(t->status);
}

static int count_children(ct_t* t, const char* path) {
  TF_StringStream* list = TF_GetChildren(path, t->status);
  CT_OK(t->status);
  const char* name;
  int count = 0;
  while (TF_StringStreamNext(list, &name)) count++;
  TF_StringStreamDone(list);
  return count;
}

CT_TEST(plugins_filesystem, files_and_directories) {
  ct_t t = open_fs();
  make_directory(&t, "toyfs://disk/a");
  TF_CreateDir("toyfs://disk/a", t.status);
  CT_CODE(t.status, TF_ALREADY_EXISTS);
  write_file(&t, "toyfs://disk/a/x", "hello", 5);
  write_file(&t, "toyfs://disk/a/y", "", 0);
  TF_FileStatistics found;
  TF_FileStat("toyfs://disk/a/x", &found, t.status);
  CT_OK(t.status);
  CT_INT(found.length, 5);
  CT_INT(found.is_directory, false);
  CT_INT(found.mtime_nsec, 1234567890);
  TF_FileStat("toyfs://disk/a", &found, t.status);
  CT_OK(t.status);
  CT_INT(found.is_directory, true);
  CT_INT(count_children(&t, "toyfs://disk/a"), 2);
  TF_DeleteFile("toyfs://disk/a/y", t.status);
  CT_OK(t.status);
  TF_FileStat("toyfs://disk/a/y", &found, t.status);
  CT_ERROR(t.status, TF_NOT_FOUND, "/a/y is not in the toy box");
  TF_DeleteDir("toyfs://disk/a", t.status);
  CT_ERROR(t.status, TF_FAILED_PRECONDITION, "/a is not empty");
  int64_t files = -1, directories = -1;
  TF_DeleteRecursively("toyfs://disk/a", &files, &directories, t.status);
  CT_OK(t.status);
  CT_INT(files, 0);
  CT_INT(directories, 0);
  TF_FileStat("toyfs://disk/a", &found, t.status);
  CT_CODE(t.status, TF_NOT_FOUND);
  ct_close(&t);
}

CT_TEST(plugins_filesystem, unknown_scheme) {
  ct_t t = open_fs();
  TF_FileStatistics found;
  TF_FileStat("nofs://disk/a", &found, t.status);
  CT_ERROR(t.status, TF_UNIMPLEMENTED,
           "File system scheme 'nofs' not implemented (file: 'nofs://disk/a')");
  ct_close(&t);
}

static TF_Output string_const(ct_t* t, const char* name, const char* text) {
  return pt_const(t, name, NULL, ct_string(text));
}

static void expect_string(TF_Tensor* tensor, int i, const char* expected) {
  const TF_TString* text = (const TF_TString*)TF_TensorData(tensor) + i;
  CT_INT(TF_TString_GetSize(text), strlen(expected));
  cr_assert(memcmp(TF_TString_GetDataPointer(text), expected, strlen(expected)) == 0);
}

CT_TEST(plugins_filesystem, ops) {
  ct_t t = open_fs();
  TF_Output path = string_const(&t, "path", "toyfs://disk/deep/er/file.txt");
  TF_Output text = string_const(&t, "text", "some text");
  TF_OperationDescription* desc = pt_begin(&t, "WriteFile", "write", NULL, path, text);
  TF_Operation* write = TF_FinishOperation(desc, t.status);
  CT_OK(t.status);
  const TF_Operation* targets[] = {write};
  TF_SessionRun(ct_session(&t, NULL), NULL, NULL, NULL, 0, NULL, NULL, 0, targets, 1, NULL,
                t.status);
  CT_OK(t.status);
  TF_Output read = pt_node(&t, "ReadFile", "read", NULL, path, PT_NONE);
  TF_Tensor* value = ct_run0(&t, read.oper);
  expect_string(value, 0, "some text");
  TF_DeleteTensor(value);
  write_file(&t, "toyfs://disk/deep/er/b.txt", "b", 1);
  write_file(&t, "toyfs://disk/deep/er/c.bin", "c", 1);
  TF_Output pattern = string_const(&t, "pattern", "toyfs://disk/*/er/*.txt");
  TF_Output matching = pt_node(&t, "MatchingFiles", "matching", NULL, pattern, PT_NONE);
  value = ct_run0(&t, matching.oper);
  CT_INT(TF_TensorElementCount(value), 2);
  expect_string(value, 0, "toyfs://disk/deep/er/b.txt");
  expect_string(value, 1, "toyfs://disk/deep/er/file.txt");
  TF_DeleteTensor(value);
  TF_Output missing = string_const(&t, "missing", "toyfs://disk/nothing");
  TF_Output fails = pt_node(&t, "ReadFile", "fails", NULL, missing, PT_NONE);
  cr_assert_null(ct_try_run(&t, 0, NULL, NULL, fails));
  CT_ERROR_HAS(t.status, TF_NOT_FOUND, "/nothing is not in the toy box");
  ct_close(&t);
}

CT_TEST(plugins_filesystem, checkpoints) {
  ct_t t = open_fs();
  make_directory(&t, "toyfs://disk/ckpt");
  const char* names[] = {"weights", "bias"};
  const char* slices[] = {"", ""};
  TF_Output prefix = string_const(&t, "prefix", "toyfs://disk/ckpt/model-1");
  TF_Output keys = pt_const(&t, "keys", NULL, ct_string_vector(2, names));
  TF_Output parts = pt_const(&t, "parts", NULL, ct_string_vector(2, slices));
  TF_Output values[] = {
      pt_const(&t, "weights", NULL, pt_floats(3, (float[]){1, 2, 3})),
      pt_const(&t, "bias", NULL, ct_float(7)),
  };
  TF_OperationDescription* desc = pt_begin(&t, "SaveV2", "save", NULL, prefix, keys);
  TF_AddInput(desc, parts);
  TF_AddInputList(desc, values, 2);
  TF_Operation* save = TF_FinishOperation(desc, t.status);
  CT_OK(t.status);
  const TF_Operation* targets[] = {save};
  for (int i = 0; i < 2; ++i) {
    TF_SessionRun(ct_session(&t, NULL), NULL, NULL, NULL, 0, NULL, NULL, 0, targets, 1, NULL,
                  t.status);
    CT_OK(t.status);
  }
  CT_INT(count_children(&t, "toyfs://disk/ckpt"), 2);
  desc = pt_begin(&t, "RestoreV2", "restore", NULL, prefix, keys);
  TF_AddInput(desc, parts);
  TF_DataType types[] = {TF_FLOAT, TF_FLOAT};
  TF_SetAttrTypeList(desc, "dtypes", types, 2);
  TF_Operation* restore = TF_FinishOperation(desc, t.status);
  CT_OK(t.status);
  PT_EXPECT(ct_run(&t, 0, NULL, NULL, ct_out(restore, 0)), 1, 2, 3);
  PT_EXPECT(ct_run(&t, 0, NULL, NULL, ct_out(restore, 1)), 7);
  ct_close(&t);
}

CT_TEST(plugins_filesystem, saved_models) {
  ct_t t = open_fs();
  pt_const(&t, "answer", NULL, ct_float(42));
  TF_Buffer* graph = ct_graph_def(t.graph);
  pb_t model = {0}, meta = {0}, info = {0};
  pb_string(&info, 4, "serve");  // tags
  pb_message(&meta, 1, &info);
  pb_bytes(&meta, 2, graph->data, graph->length);
  pb_varint(&model, 1, 1);
  pb_message(&model, 2, &meta);
  TF_DeleteBuffer(graph);
  make_directory(&t, "toyfs://disk/model");
  write_file(&t, "toyfs://disk/model/saved_model.pb", model.data, model.length);
  pb_free(&model);
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Graph* loaded = TF_NewGraph();
  const char* tags[] = {"serve"};
  TF_Session* session = TF_LoadSessionFromSavedModel(options, NULL, "toyfs://disk/model", tags, 1,
                                                     loaded, NULL, t.status);
  CT_OK(t.status);
  TF_Output answer = ct_out(TF_GraphOperationByName(loaded, "answer"), 0);
  TF_Tensor* value = NULL;
  TF_SessionRun(session, NULL, NULL, NULL, 0, &answer, &value, 1, NULL, 0, NULL, t.status);
  CT_OK(t.status);
  PT_EXPECT(value, 42);
  TF_DeleteSession(session, t.status);
  TF_DeleteGraph(loaded);
  TF_DeleteSessionOptions(options);
  ct_close(&t);
}

// A file system with few functions, and no names of its own: scheme and host are cut off.
CT_TEST(plugins_filesystem, few_functions) {
  ct_t t = open_fs();
  write_file(&t, "toybare://disk//./top", "abc", 3);
  TF_FileStatistics found;
  TF_FileStat("toyfs://disk/top", &found, t.status);
  CT_OK(t.status);
  CT_INT(found.length, 3);
  TF_DeleteFile("toybare://disk/top", t.status);
  CT_ERROR(t.status, TF_UNIMPLEMENTED,
           "Filesystem for toybare://disk/top does not support DeleteFile()");
  TF_Output path = string_const(&t, "path", "toybare://other/top");
  TF_Output read = pt_node(&t, "ReadFile", "read", NULL, path, PT_NONE);
  TF_Tensor* value = ct_run0(&t, read.oper);
  expect_string(value, 0, "abc");
  TF_DeleteTensor(value);
  ct_close(&t);
}

CT_TEST(plugins_filesystem, full_disk) {
  ct_t t = open_fs();
  setenv("TOYFS_FAULT", "full", 1);
  TF_WritableFileHandle* file = NULL;
  TF_NewWritableFile("toyfs://disk/full", &file, t.status);
  CT_OK(t.status);
  TF_AppendWritableFile(file, "x", 1, t.status);
  CT_ERROR(t.status, TF_RESOURCE_EXHAUSTED, "the toy disk is full");
  TF_CloseWritableFile(file, t.status);
  ct_close(&t);
}

typedef struct row_t {
  const char* fault;  // TOYFS_FAULT
  TF_Code code;
  const char* message;
} row_t;

static const row_t rows[] = {
    {"memory_allocate", TF_FAILED_PRECONDITION,
     "Cannot load filesystem plugin which does not provide `plugin_memory_allocate`"},
    {"memory_free", TF_FAILED_PRECONDITION,
     "Cannot load filesystem plugin which does not provide `plugin_memory_free`"},
    {"scheme", TF_INVALID_ARGUMENT, "Attempted to register filesystem with `nullptr` URI scheme"},
    {"abi", TF_FAILED_PRECONDITION,
     "Plugin ABI (7) for filesystem operations doesn't match expected core ABI (0). Plugin cannot "
     "be loaded."},
    {"writable_abi", TF_FAILED_PRECONDITION,
     "Plugin ABI (3) for writable file operations doesn't match expected core ABI (0). Plugin "
     "cannot be loaded."},
    {"ops", TF_FAILED_PRECONDITION, "Trying to register filesystem without operations"},
    {"no_init", TF_FAILED_PRECONDITION, "Trying to register filesystem without `init` operation"},
    {"no_cleanup", TF_FAILED_PRECONDITION,
     "Trying to register filesystem without `cleanup` operation"},
    {"read_cleanup", TF_FAILED_PRECONDITION,
     "Trying to register filesystem without `cleanup` operation on random access files"},
    {"write_cleanup", TF_FAILED_PRECONDITION,
     "Trying to register filesystem without `cleanup` operation on writable files"},
    {"no_reader", TF_FAILED_PRECONDITION,
     "Filesystem allows creation of random access files but no operations on them have been "
     "supplied."},
    {"init", TF_UNAVAILABLE, "no disk"},
};

CT_TEST(plugins_filesystem, bad_plugins) {
  ct_t t = ct_open();
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    setenv("TOYFS_FAULT", rows[i].fault, 1);
    TF_RegisterFilesystemPlugin(PT_TOYFS_PATH, t.status);
    CT_ERROR(t.status, rows[i].code, rows[i].message);
  }
  unsetenv("TOYFS_FAULT");
  TF_RegisterFilesystemPlugin(PT_TOYFS_PATH, t.status);
  CT_OK(t.status);
  TF_RegisterFilesystemPlugin(PT_TOYFS_PATH, t.status);
  CT_ERROR(t.status, TF_ALREADY_EXISTS, "File system for toyfs already registered");
  ct_close(&t);
}

CT_TEST(plugins_filesystem, no_plugin) {
  ct_t t = ct_open();
  TF_RegisterFilesystemPlugin("/nowhere/fs.so", t.status);
  CT_ERROR_HAS(t.status, TF_NOT_FOUND, "/nowhere/fs.so: cannot open shared object file");
  TF_RegisterFilesystemPlugin("libm.so.6", t.status);
  CT_ERROR_HAS(t.status, TF_NOT_FOUND, "undefined symbol: TF_InitPlugin");
  ct_close(&t);
}

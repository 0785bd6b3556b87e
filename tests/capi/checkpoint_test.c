// Checkpoints through the ops that write and read them, and through TF_CheckpointReader.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tensorflow/c/c_api_experimental.h"
#include "util.h"

static char folder[64];

static void make_folder(void) {
  strcpy(folder, "/tmp/checkpoint_test_XXXXXX");
  cr_assert(mkdtemp(folder));
}

static void remove_folder(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  cr_assert_eq(system(command), 0);
}

TestSuite(Checkpoint, .init = make_folder, .fini = remove_folder);

static const char* in_folder(const char* name) {
  static char paths[8][128];
  static int next;
  char* path = paths[next++ % 8];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

// Runs a node of |op| with the strings of |texts| as its first inputs, scalars where the count is
// negative, and |data| behind them as one list (count 0: no list). |dtypes| are those of its
// outputs.
typedef struct call_t {
  const char* op;
  struct {
    const char* const* values;
    int count;
  } texts[3];
  int text_count;
  TF_Tensor* data[4];
  int data_count;
  TF_DataType dtypes[4];
  int dtype_count;
  bool is_first;  // dt instead of dtypes
} call_t;

static TF_Operation* build(ct_t* t, const call_t* call) {
  TF_Output data[4];
  TF_Operation* texts[3];
  for (int i = 0; i < call->text_count; ++i) {
    char name[16];
    snprintf(name, sizeof name, "text%d", i);
    // Shapes are not known: what is wrong is found when it runs.
    texts[i] = ct_placeholder(t, t->graph, name, TF_STRING);
  }
  for (int i = 0; i < call->data_count; ++i) {
    char name[16];
    snprintf(name, sizeof name, "data%d", i);
    data[i] = ct_out(ct_const(t, t->graph, name, call->data[i]), 0);
  }
  TF_OperationDescription* desc = TF_NewOperation(t->graph, call->op, "call");
  for (int i = 0; i < call->text_count; ++i) TF_AddInput(desc, ct_out(texts[i], 0));
  if (call->data_count) TF_AddInputList(desc, data, call->data_count);
  if (call->dtype_count && call->is_first) TF_SetAttrType(desc, "dt", call->dtypes[0]);
  if (call->dtype_count && !call->is_first)
    TF_SetAttrTypeList(desc, "dtypes", call->dtypes, call->dtype_count);
  TF_Operation* oper = TF_FinishOperation(desc, t->status);
  CT_OK(t->status);
  return oper;
}

static void run(ct_t* t, const call_t* call, TF_Tensor** results) {
  TF_Operation* oper = build(t, call);
  TF_Output feeds[3], fetches[4];
  TF_Tensor* values[3];
  for (int i = 0; i < call->text_count; ++i) {
    char name[16];
    snprintf(name, sizeof name, "text%d", i);
    feeds[i] = ct_out(TF_GraphOperationByName(t->graph, name), 0);
    values[i] = call->texts[i].count < 0
                    ? ct_string(call->texts[i].values[0])
                    : ct_string_vector(call->texts[i].count, call->texts[i].values);
  }
  for (int i = 0; i < call->dtype_count; ++i) fetches[i] = ct_out(oper, i);
  const TF_Operation* target = oper;
  TF_SessionRun(ct_session(t, NULL), NULL, feeds, values, call->text_count, fetches, results,
                call->dtype_count, &target, 1, NULL, t->status);
  for (int i = 0; i < call->text_count; ++i) TF_DeleteTensor(values[i]);
}

#define TEXT(value) \
  { (const char* const[]){value}, -1 }
#define TEXTS(count, ...) \
  { (const char* const[]){__VA_ARGS__}, count }

static const float numbers[] = {1, 2, 3, 4, 5, 6};

static void save(const char* prefix) {
  ct_t t = ct_open();
  call_t call = {
      .op = "SaveV2",
      .texts = {TEXT(prefix), TEXTS(3, "w", "s", "i"), TEXTS(3, "", "", "")},
      .text_count = 3,
      .data = {ct_float_matrix(2, 3, numbers), ct_string("a string, not a short one"), ct_int32(7)},
      .data_count = 3};
  run(&t, &call, NULL);
  CT_OK(t.status);
  ct_close(&t);
}

// Restores one tensor; NULL with the status set if that fails.
static TF_Tensor* restore(ct_t* t, const char* prefix, const char* name, const char* slice,
                          TF_DataType dtype) {
  *t = ct_open();
  TF_Tensor* result = NULL;
  call_t call = {.op = "RestoreV2",
                 .texts = {TEXT(prefix), TEXTS(1, name), TEXTS(1, slice)},
                 .text_count = 3,
                 .dtypes = {dtype},
                 .dtype_count = 1};
  run(t, &call, &result);
  return result;
}

static void expect_floats(TF_Tensor* tensor, int count, const float* values) {
  cr_assert_not_null(tensor);
  CT_INT(TF_TensorElementCount(tensor), count);
  for (int i = 0; i < count; ++i) cr_assert_eq(((float*)TF_TensorData(tensor))[i], values[i]);
  TF_DeleteTensor(tensor);
}

CT_TEST(Checkpoint, SaveAndRestore) {
  const char* prefix = in_folder("deep/model");
  save(prefix);
  ct_t t;
  expect_floats(restore(&t, prefix, "w", "", TF_FLOAT), 6, numbers);
  ct_close(&t);
  expect_floats(restore(&t, prefix, "w", "2 3 1,1:1,2", TF_FLOAT), 2, (const float[]){5, 6});
  ct_close(&t);
  TF_Tensor* text = restore(&t, prefix, "s", "", TF_STRING);
  CT_OK(t.status);
  CT_STR(TF_StringGetDataPointer(TF_TensorData(text)), "a string, not a short one");
  TF_DeleteTensor(text);
  ct_close(&t);
}

static void refused(const char* prefix, const char* name, const char* slice, TF_DataType dtype,
                    TF_Code code, const char* words) {
  ct_t t;
  cr_assert_null(restore(&t, prefix, name, slice, dtype));
  CT_ERROR_HAS(t.status, code, words);
  ct_close(&t);
}

CT_TEST(Checkpoint, RestoreSaysWhatIsWrong) {
  const char* prefix = in_folder("model");
  save(prefix);
  refused(prefix, "x", "", TF_FLOAT, TF_NOT_FOUND, "Key x not found in checkpoint");
  refused(prefix, "w", "", TF_INT32, TF_INVALID_ARGUMENT,
          "tensor_name = w; expected dtype int32 does not equal original dtype float");
  refused(prefix, "w", "3 2 0,1:-", TF_FLOAT, TF_INVALID_ARGUMENT,
          "tensor_name = w; shape in shape_and_slice spec [3,2] does not match the shape stored in "
          "checkpoint: [2,3]");
  refused(prefix, "w", "6", TF_FLOAT, TF_INVALID_ARGUMENT,
          "Need least two elements in shape_and_slice specification: 6");
  refused(prefix, "w", "2 x -:-", TF_FLOAT, TF_INVALID_ARGUMENT,
          "Non numerical dimension in shape_and_slice: 2 x -:-");
  refused(prefix, "w", "2 3 -", TF_FLOAT, TF_INTERNAL,
          "Mismatching ranks: shape = [2,3], slice = -");
  refused(prefix, "w", "2 3 1,2:-", TF_FLOAT, TF_INTERNAL,
          "Extent in dimension 0 out of bounds: shape = [2,3], slice = 1,2:-");
  refused(prefix, "w", "2 3 0,0:-", TF_FLOAT, TF_INVALID_ARGUMENT,
          "Expected non-negative start and positive length but got start = 0, length = 0: string = "
          "0,0:-");
  refused(in_folder("none"), "w", "", TF_FLOAT, TF_NOT_FOUND,
          "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for ");
}

CT_TEST(Checkpoint, CountsAndRanksAreChecked) {
  const struct {
    call_t call;
    const char* words;
  } rows[] = {
      {{.op = "SaveV2", .texts = {TEXTS(2, "a", "b"), TEXTS(1, "w"), TEXTS(1, "")}},
       "Input prefix should have a single element, got 2 instead."},
      {{.op = "SaveV2", .texts = {TEXT("a"), TEXT("w"), TEXTS(1, "")}},
       "Input tensor_names and shape_and_slices should be an 1-D tensors, got [] and [1] instead."},
      {{.op = "SaveV2", .texts = {TEXT("a"), TEXTS(2, "w", "v"), TEXTS(1, "")}},
       "tensor_names and shape_and_slices have different number of elements: 2 vs. 1"},
      {{.op = "SaveV2", .texts = {TEXT("a"), TEXTS(2, "w", "v"), TEXTS(2, "", "")}},
       "Got 2 tensor names but 1 tensors."},
      {{.op = "SaveV2", .texts = {TEXT("a"), TEXTS(1, "w"), TEXTS(1, "4 0,1")}}, NULL},
      {{.op = "SaveSlices", .texts = {TEXT("a"), TEXTS(1, "w"), TEXTS(2, "", "")}},
       "Expected 1 elements for the tensor shapes and slices but got 2"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    ct_t t = ct_open();
    call_t call = rows[i].call;
    call.text_count = 3;
    call.data[0] = ct_float_matrix(2, 3, numbers);
    call.data_count = 1;
    if (i == 4) {  // the slice is one of a vector, the tensor a matrix
      TF_DeleteTensor(call.data[0]);
      call.data[0] = ct_int32_vector(2, (const int32_t[]){1, 2});
    }
    run(&t, &call, NULL);
    CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT,
                 i == 4 ? "Slice in shape_and_slice specification does not match the shape of the "
                          "tensor to  save: 4 0,1, tensor: [2]"
                        : rows[i].words);
    ct_close(&t);
  }
}

static void save_part(const char* prefix, const char* slice, const float* values) {
  ct_t t = ct_open();
  call_t call = {.op = "SaveV2",
                 .texts = {TEXT(prefix), TEXTS(1, "v"), TEXTS(1, slice)},
                 .text_count = 3,
                 .data = {ct_float_matrix(1, 3, values)},
                 .data_count = 1};
  run(&t, &call, NULL);
  CT_OK(t.status);
  ct_close(&t);
}

CT_TEST(Checkpoint, PartsAreMerged) {
  const char *part0 = in_folder("tmp0/part"), *part1 = in_folder("tmp1/part");
  const char* whole = in_folder("whole");
  save_part(part0, "2 3 0,1:-", numbers);
  save_part(part1, "2 3 1,1:-", numbers + 3);
  ct_t t;
  cr_assert_null(restore(&t, part0, "v", "", TF_FLOAT));
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT,
               "Does not have sufficient slices for partitioned tensor v to restore in slice_spec: "
               "-:-");
  ct_close(&t);
  t = ct_open();
  call_t call = {
      .op = "MergeV2Checkpoints", .texts = {TEXTS(2, part0, part1), TEXT(whole)}, .text_count = 2};
  run(&t, &call, NULL);
  CT_OK(t.status);
  ct_close(&t);
  expect_floats(restore(&t, whole, "v", "", TF_FLOAT), 6, numbers);
  ct_close(&t);
  cr_assert_neq(access(in_folder("tmp0"), F_OK), 0);  // the folders of the parts are gone
  t = ct_open();
  run(&t, &call, NULL);
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT, "allow_missing_files");
  ct_close(&t);
}

CT_TEST(Checkpoint, FirstFormat) {
  const char* path = in_folder("old");
  ct_t t = ct_open();
  call_t saves = {.op = "Save",
                  .texts = {TEXT(path), TEXTS(2, "w", "s")},
                  .text_count = 2,
                  .data = {ct_float_matrix(2, 3, numbers), ct_string("text")},
                  .data_count = 2};
  run(&t, &saves, NULL);
  CT_OK(t.status);
  ct_close(&t);
  t = ct_open();
  TF_Tensor* result = NULL;
  call_t restores = {.op = "Restore",
                     .texts = {TEXT(path), TEXT("w")},
                     .text_count = 2,
                     .dtypes = {TF_FLOAT},
                     .dtype_count = 1,
                     .is_first = true};
  run(&t, &restores, &result);
  CT_OK(t.status);
  expect_floats(result, 6, numbers);
  ct_close(&t);
  t = ct_open();
  call_t slices = {.op = "RestoreSlice",
                   .texts = {TEXT(path), TEXT("w"), TEXT("2 3 -:1,1")},
                   .text_count = 3,
                   .dtypes = {TF_FLOAT},
                   .dtype_count = 1,
                   .is_first = true};
  run(&t, &slices, &result);
  CT_OK(t.status);
  expect_floats(result, 2, (const float[]){2, 5});
  ct_close(&t);
  // The newer op reads it too.
  expect_floats(restore(&t, path, "w", "", TF_FLOAT), 6, numbers);
  ct_close(&t);
  refused(path, "x", "", TF_FLOAT, TF_NOT_FOUND,
          "Tensor name \"x\" not found in checkpoint files ");
  refused(path, "w", "", TF_INT32, TF_INVALID_ARGUMENT,
          "Expected to restore a tensor of type int32, got a tensor of type float instead: "
          "tensor_name = w");
  refused(path, "w", "3 3 -:-", TF_FLOAT, TF_INVALID_ARGUMENT,
          "Shape in shape_and_slice spec does not match the shape in the save file: [3,3], save "
          "file shape: [2,3]");
}

CT_TEST(Checkpoint, Reader) {
  const char* prefix = in_folder("model");
  save(prefix);
  TF_Status* s = TF_NewStatus();
  TF_CheckpointReader* reader = TF_NewCheckpointReader(prefix, s);
  CT_OK(s);
  CT_INT(TF_CheckpointReaderSize(reader), 3);
  CT_STR(TF_CheckpointReaderGetVariable(reader, 0), "i");
  CT_STR(TF_CheckpointReaderGetVariable(reader, 1), "s");
  CT_STR(TF_CheckpointReaderGetVariable(reader, 2), "w");
  CT_INT(TF_CheckpointReaderHasTensor(reader, "w"), 1);
  CT_INT(TF_CheckpointReaderHasTensor(reader, "x"), 0);
  CT_INT(TF_CheckpointReaderGetVariableDataType(reader, "w"), TF_FLOAT);
  CT_INT(TF_CheckpointReaderGetVariableNumDims(reader, "w"), 2);
  CT_INT(TF_CheckpointReaderGetVariableNumDims(reader, "i"), 0);
  int64_t dims[2];
  TF_CheckpointReaderGetVariableShape(reader, "w", dims, 2, s);
  CT_OK(s);
  CT_INT(dims[0], 2);
  CT_INT(dims[1], 3);
  TF_CheckpointReaderGetVariableShape(reader, "w", dims, 1, s);
  CT_ERROR(s, TF_INVALID_ARGUMENT, "Expected rank is 1 but actual rank is 2");
  TF_SetStatus(s, TF_OK, "");
  TF_Tensor* tensor = TF_CheckpointReaderGetTensor(reader, "w", s);
  CT_OK(s);
  expect_floats(tensor, 6, numbers);
  cr_assert_null(TF_CheckpointReaderGetTensor(reader, "x", s));
  CT_ERROR_HAS(s, TF_NOT_FOUND, "Key x not found in checkpoint");
  TF_DeleteCheckpointReader(reader);
  TF_DeleteStatus(s);
  s = TF_NewStatus();
  cr_assert_null(TF_NewCheckpointReader(in_folder("none"), s));
  CT_ERROR_HAS(
      s, TF_NOT_FOUND,
      "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for ");
  TF_DeleteStatus(s);
}

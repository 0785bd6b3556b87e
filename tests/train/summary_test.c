// Training logs: event files from the writer's functions and from summary ops, byte by byte as
// stock TensorFlow writes them; and logs that cannot be written.
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util.h"

enum { MAX_EVENTS = 200, MAX_BYTES = 1 << 20 };

typedef struct log_t {
  char folder[64];
  int files, count;
  char* bytes[MAX_EVENTS];  // of events, without the time that comes first
  size_t sizes[MAX_EVENTS];
} log_t;

static log_t log_make(void) {
  log_t log = {.folder = "/tmp/runnel_summary_XXXXXX"};
  cr_assert(mkdtemp(log.folder));
  return log;
}

static int is_event_file(const struct dirent* entry) {
  return strncmp(entry->d_name, "events.out.tfevents.", 20) == 0;
}

static void read_file(log_t* log, const char* path) {
  FILE* file = fopen(path, "rb");
  cr_assert(file, "%s", path);
  char* data = malloc(MAX_BYTES);
  size_t size = fread(data, 1, MAX_BYTES, file);
  fclose(file);
  for (size_t at = 0; at + 16 <= size;) {
    uint64_t length;
    memcpy(&length, data + at, 8);
    cr_assert(length >= 9 && at + 16 + length <= size && log->count < MAX_EVENTS);
    cr_expect(data[at + 12] == 9, "an event begins with its time");
    log->bytes[log->count] = malloc(length);
    memcpy(log->bytes[log->count], data + at + 21, length - 9);
    log->sizes[log->count++] = length - 9;
    at += 16 + length;
  }
  free(data);
}

// Reads the files in the order of their names.
static void log_read(log_t* log) {
  struct dirent** names = NULL;
  log->files = scandir(log->folder, &names, is_event_file, alphasort);
  for (int i = 0; i < log->files; ++i) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", log->folder, names[i]->d_name);
    read_file(log, path);
    unlink(path);
    free(names[i]);
  }
  free(names);
  rmdir(log->folder);
}

static void log_free(log_t* log) {
  for (int i = 0; i < log->count; ++i) free(log->bytes[i]);
}

static void expect_bytes(const log_t* log, int i, const char* want, size_t size) {
  cr_assert(i < log->count, "there are %d events", log->count);
  cr_expect(log->sizes[i] == size && memcmp(log->bytes[i], want, size) == 0,
            "event %d differs: %zu bytes, not %zu", i, log->sizes[i], size);
}
#define EXPECT_BYTES(log, i, literal) expect_bytes((log), (i), (literal), sizeof(literal) - 1)

static void expect_version(const log_t* log, int i) {
  static const char version[] =
      "\x1a\x0d"
      "brain.Event:2";
  cr_assert(i < log->count);
  cr_expect(log->sizes[i] > 15 && memcmp(log->bytes[i], version, 15) == 0, "no version first");
}

static rn_edge_t text(rn_scope_t* s, const char* bytes, size_t size) {
  TF_Tensor* t = TF_AllocateTensor(TF_STRING, NULL, 0, sizeof(TF_TString));
  TF_TString_Copy(TF_TensorData(t), bytes, size);
  TF_Status* status = TF_NewStatus();
  TF_OperationDescription* d = NULL;
  static int number;
  char name[32];
  snprintf(name, sizeof name, "text_%d", number++);
  d = TF_NewOperation((TF_Graph*)rn_scope_graph(s), "Const", name);
  TF_SetAttrTensor(d, "value", t, status);
  TF_SetAttrType(d, "dtype", TF_STRING);
  TF_Operation* node = TF_FinishOperation(d, status);
  cr_assert(TF_GetCode(status) == TF_OK, "%s", TF_Message(status));
  TF_DeleteStatus(status);
  TF_DeleteTensor(t);
  return (rn_edge_t){(rn_node_t*)node, 0};
}
#define TEXT(s, literal) text((s), (literal), sizeof(literal) - 1)

static TF_Code run(trial_t* t, rn_node_t* node) {
  TF_Operation* target = rn_operation_of(node);
  if (!t->session) {
    TF_SessionOptions* options = TF_NewSessionOptions();
    t->session = TF_NewSession(t->graph, options, t->status);
    TF_DeleteSessionOptions(options);
  }
  TF_SessionRun(t->session, NULL, NULL, NULL, 0, NULL, NULL, 0, (const TF_Operation* const*)&target,
                1, NULL, t->status);
  return TF_GetCode(t->status);
}

static rn_edge_t int64_const(rn_scope_t* s, int64_t value) {
  return rn_const(s, TF_INT64, NULL, 0, &value);
}

Test(summary_ops, write_the_bytes_of_stock) {
  log_t log = log_make();
  trial_t t = trial_open();
  rn_scope_t* s = t.s;
  rn_edge_t writer = rn_SummaryWriter(s, .shared_name = "w"), seven = int64_const(s, 7);
  rn_edge_t two = rn_const_int32_list(s, (const int32_t[]){1, 2}, 2);
  rn_edge_t half = rn_const_float(s, 1.5f);
  int64_t one_by_four[2] = {1, 4};
  const float silence[4] = {0};
  rn_edge_t sound = rn_const(s, TF_FLOAT, one_by_four, 2, silence);
  rn_node_t* nodes[] = {
      rn_CreateSummaryFileWriter(s, writer, text(s, log.folder, strlen(log.folder)),
                                 rn_const_int32(s, 10), rn_const_int32(s, 1000), TEXT(s, ".v2")),
      rn_WriteScalarSummary(s, writer, int64_const(s, 1), TEXT(s, "a"), rn_const_float(s, 1)),
      rn_WriteScalarSummary(s, writer, int64_const(s, 1), TEXT(s, "a"),
                            int64_const(s, INT64_C(1) << 40)),
      rn_WriteRawProtoSummary(s, writer, seven,
                              TEXT(s,
                                   "\n\x08\n\x01"
                                   "a\x15\0\0\x80?")),
      rn_WriteSummary(s, writer, seven, two, TEXT(s, "t"), TEXT(s, "")),
      rn_WriteSummary(s, writer, seven, half, TEXT(s, "t"), TEXT(s, "\n\x09\n\x07scalars")),
      rn_WriteSummary(s, writer, seven, half, TEXT(s, "t"), TEXT(s, "\xff\xff")),
      rn_WriteAudioSummary(s, writer, seven, TEXT(s, "h"), sound, rn_const_float(s, 8000)),
      rn_WriteGraphSummary(s, writer, seven, TEXT(s, "\n\x03\n\x01x")),
      rn_FlushSummaryWriter(s, writer),
      rn_CreateSummaryFileWriter(s, writer, TEXT(s, "/nowhere"), rn_const_int32(s, 10),
                                 rn_const_int32(s, 1000), TEXT(s, ".v2")),
      rn_CloseSummaryWriter(s, writer),
  };
  trial_built(&t);
  for (size_t i = 0; i < sizeof nodes / sizeof *nodes; ++i)
    cr_expect(run(&t, nodes[i]) == TF_OK, "node %zu: %s", i, TF_Message(t.status));
  cr_expect(run(&t, nodes[1]) == TF_NOT_FOUND, "a closed writer writes");
  trial_close(&t);
  log_read(&log);
  cr_expect(log.files == 1 && log.count == 9, "%d files, %d events", log.files, log.count);
  expect_version(&log, 0);
  EXPECT_BYTES(&log, 1,
               "\x10\x01*\n\n\x08\n\x01"
               "a\x15\0\0\x80?");
  EXPECT_BYTES(&log, 2,
               "\x10\x01*\n\n\x08\n\x01"
               "a\x15\0\0\x80S");
  EXPECT_BYTES(&log, 3,
               "\x10\x07*\n\n\x08\n\x01"
               "a\x15\0\0\x80?");
  EXPECT_BYTES(&log, 4,
               "\x10\x07*\x19\n\x17\n\x01tB\x12\x08\x03\x12\x04\x12\x02\x08\x02\"\x08\x01\0\0\0\x02"
               "\0\0\0");
  EXPECT_BYTES(&log, 5,
               "\x10\x07*\x1e\n\x1c\n\x01tB\n\x08\x01\x12\0\"\x04\0\0\xc0?J\x0b\n\t\n\x07scalars");
  EXPECT_BYTES(&log, 6, "\x10\x07*\x13\n\x11\n\x01tB\n\x08\x01\x12\0\"\x04\0\0\xc0?J\0");
  EXPECT_BYTES(&log, 7,
               "\x10\x07*Y\nW\n\th/audio/02J\r\0\0\xfa"
               "E\x10\x01\x18\x04\"4RIFF,\0\0\0WAVEfmt "
               "\x10\0\0\0\x01\0\x01\0@\x1f\0\0\x80>\0\0\x02\0\x10\0data\x08\0\0\0\0\0\0\0\0\0\0\0*"
               "\taudio/wav");
  EXPECT_BYTES(&log, 8, "\x10\x07\"\x05\n\x03\n\x01x");
  log_free(&log);
}

Test(summary_ops, refuse_what_cannot_be) {
  log_t log = log_make();
  trial_t t = trial_open();
  rn_scope_t* s = t.s;
  rn_edge_t writer = rn_SummaryWriter(s, .shared_name = "w"), seven = int64_const(s, 7);
  rn_edge_t two = rn_const_int32_list(s, (const int32_t[]){1, 2}, 2);
  int64_t dims[1] = {2};
  const float numbers[2] = {1, 0.0f / 0.0f};
  const uint8_t colour[2] = {1, 2};
  rn_edge_t odd = rn_const(s, TF_FLOAT, dims, 1, numbers);
  rn_edge_t short_colour = rn_const(s, TF_UINT8, dims, 1, colour);
  int64_t image_dims[4] = {1, 1, 1, 3};
  const float pixel[3] = {0};
  rn_edge_t image = rn_const(s, TF_FLOAT, image_dims, 4, pixel);
  rn_node_t* open =
      rn_CreateSummaryFileWriter(s, writer, text(s, log.folder, strlen(log.folder)),
                                 rn_const_int32(s, 10), rn_const_int32(s, 1000), TEXT(s, ".v2"));
  struct {
    rn_node_t* node;
    TF_Code code;
  } cases[] = {
      {rn_WriteScalarSummary(s, writer, seven, TEXT(s, "a"), two), TF_INVALID_ARGUMENT},
      {rn_WriteHistogramSummary(s, writer, seven, TEXT(s, "a"), odd), TF_INVALID_ARGUMENT},
      {rn_WriteImageSummary(s, writer, seven, TEXT(s, "a"), image, short_colour),
       TF_INVALID_ARGUMENT},
      {rn_WriteAudioSummary(s, writer, seven, TEXT(s, "a"), odd, rn_const_float(s, 8000)),
       TF_INVALID_ARGUMENT},
      {rn_WriteGraphSummary(s, writer, seven, TEXT(s, "xxx")), TF_DATA_LOSS},
      {rn_ImportEvent(s, writer, TEXT(s, "xxx")), TF_DATA_LOSS},
  };
  trial_built(&t);
  cr_expect(run(&t, cases[0].node) == TF_NOT_FOUND || run(&t, cases[4].node) == TF_NOT_FOUND);
  cr_expect(run(&t, open) == TF_OK, "%s", TF_Message(t.status));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
    cr_expect(run(&t, cases[i].node) == cases[i].code, "case %zu: %s", i, TF_Message(t.status));
  trial_close(&t);
  log_read(&log);
  cr_expect(log.count == 1, "%d events of what was refused", log.count - 1);
  expect_version(&log, 0);
  log_free(&log);
}

static void write_all(rn_summary_writer_t* w, trial_t* t) {
  const float values[4] = {0, 1, 2, 3};
  const uint8_t pixels[12] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 9, 9};
  TF_Tensor* tensor = tensor_floats(values, 4, 0);
  TF_Buffer metadata = {.data = "\x12\0", .length = 2};
  rn_const_float(t->s, 1);
  rn_summary_graph(w, t->graph, t->status);
  rn_summary_scalar(w, "loss", 3, 0.5f, t->status);
  rn_summary_histogram(w, "weights", 3, tensor, t->status);
  rn_summary_image(w, "picture", 3, pixels, 2, 2, 3, t->status);
  rn_summary_text(w, "note", 3, "*hello*", t->status);
  rn_summary_tensor(w, "tensor", 3, tensor, NULL, t->status);
  rn_summary_run_metadata(w, "step 3", 3, &metadata, t->status);
  cr_expect(TF_GetCode(t->status) == TF_OK, "%s", TF_Message(t->status));
  TF_DeleteTensor(tensor);
}

Test(summary_writer, writes_what_tensorflow_2_writes) {
  log_t log = log_make();
  trial_t t = trial_open();
  rn_summary_writer_t* w = rn_summary_writer_create(log.folder, NULL, t.status);
  cr_assert(w, "%s", TF_Message(t.status));
  write_all(w, &t);
  rn_summary_writer_close(w, t.status);
  cr_expect(TF_GetCode(t.status) == TF_OK, "%s", TF_Message(t.status));
  trial_close(&t);
  log_read(&log);
  cr_expect(log.files == 1 && log.count == 8, "%d files, %d events", log.files, log.count);
  expect_version(&log, 0);
  EXPECT_BYTES(&log, 2,
               "\x10\x03*#\n!\n\x04lossB\n\x08\x01\x12\0\"\x04\0\0\0?J\x0d\n\t\n\x07scalars \x01");
  EXPECT_BYTES(&log, 7,
               "\x10\x03"
               "B\x0c\n\x06step 3\x12\x02\x12\0");
  log_free(&log);
}

Test(summary_writer, goes_on_in_another_file) {
  log_t log = log_make();
  TF_Status* status = TF_NewStatus();
  rn_summary_options_t options = {.suffix = ".log", .max_file_bytes = 300};
  rn_summary_writer_t* w = rn_summary_writer_create(log.folder, &options, status);
  for (int i = 0; i < 20; ++i) rn_summary_scalar(w, "x", i, (float)i, status);
  rn_summary_writer_flush(w, status);
  cr_expect(TF_GetCode(status) == TF_OK, "%s", TF_Message(status));
  rn_summary_writer_close(w, status);
  log_read(&log);
  cr_expect(log.files > 2, "%d files", log.files);
  cr_expect(log.count == 20 + log.files, "%d events in %d files", log.count, log.files);
  expect_version(&log, 0);
  log_free(&log);
  TF_DeleteStatus(status);
}

Test(summary_writer, does_not_write_over_another) {
  log_t log = log_make();
  for (int i = 0; i < 3; ++i) {
    rn_summary_writer_t* w = rn_summary_writer_create(log.folder, NULL, NULL);
    rn_summary_scalar(w, "x", i, 1, NULL);
    rn_summary_writer_close(w, NULL);
  }
  log_read(&log);
  cr_expect(log.files == 3 && log.count == 6, "%d files, %d events", log.files, log.count);
  log_free(&log);
}

Test(summary_writer, says_what_is_wrong) {
  TF_Status* status = TF_NewStatus();
  cr_expect(!rn_summary_writer_create(NULL, NULL, status));
  cr_expect(TF_GetCode(status) == TF_INVALID_ARGUMENT);
  cr_expect(!rn_summary_writer_create("/proc/no/such/folder", NULL, status));
  cr_expect(TF_GetCode(status) != TF_OK && strstr(TF_Message(status), "/proc/no"), "%s",
            TF_Message(status));
  // Without a writer nothing happens.
  rn_summary_scalar(NULL, "x", 1, 1, status);
  rn_summary_writer_flush(NULL, status);
  rn_summary_writer_close(NULL, status);
  cr_expect(TF_GetCode(status) == TF_OK);
  log_t log = log_make();
  rn_summary_writer_t* w = rn_summary_writer_create(log.folder, NULL, status);
  const float odd[2] = {1, 1.0f / 0.0f};
  TF_Tensor* tensor = tensor_floats(odd, 2, 0);
  rn_summary_histogram(w, "x", 1, tensor, status);
  cr_expect(TF_GetCode(status) == TF_INVALID_ARGUMENT);
  rn_summary_image(w, "x", 1, NULL, 1, 1, 3, status);
  cr_expect(TF_GetCode(status) == TF_INVALID_ARGUMENT);
  rn_summary_merged(w, 1, tensor, status);
  cr_expect(TF_GetCode(status) == TF_INVALID_ARGUMENT);
  rn_summary_scalar(w, NULL, 1, 1, status);
  cr_expect(TF_GetCode(status) == TF_INVALID_ARGUMENT);
  rn_summary_writer_close(w, status);
  TF_DeleteTensor(tensor);
  TF_DeleteStatus(status);
  log_read(&log);
  log_free(&log);
}

// Input pipelines: batches of records from a file, and the cost per element of a map and a batch.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "graph_util.h"

// Records of the size of a small picture.
enum { kRecords = 32768, kRecordBytes = 3072, kBatch = 256 };

static uint32_t crc32c(const uint8_t* data, size_t size) {
  static uint32_t table[256];
  if (!table[1])
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t crc = i;
      for (int k = 0; k < 8; ++k) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
      table[i] = crc;
    }
  uint32_t crc = ~0u;
  for (size_t i = 0; i < size; ++i) crc = crc >> 8 ^ table[(crc ^ data[i]) & 255];
  return ~crc;
}

static void put_masked(FILE* file, const uint8_t* data, size_t size) {
  uint32_t crc = crc32c(data, size);
  crc = (crc >> 15 | crc << 17) + 0xa282ead8u;
  fwrite(&crc, sizeof crc, 1, file);
}

static void write_records(const char* path) {
  FILE* file = fopen(path, "wb");
  if (!file) bench_fail("cannot write %s", path);
  static uint8_t record[kRecordBytes];
  uint32_t state = 1;
  for (int i = 0; i < kRecords; ++i) {
    for (size_t k = 0; k < sizeof record; k += 4) {
      uint32_t word = next_random(&state);
      memcpy(record + k, &word, 4);
    }
    uint64_t size = sizeof record;
    fwrite(&size, sizeof size, 1, file);
    put_masked(file, (const uint8_t*)&size, sizeof size);
    fwrite(record, sizeof record, 1, file);
    put_masked(file, record, sizeof record);
  }
  if (fclose(file)) bench_fail("cannot write %s", path);
}

static TF_Output const_text(net_t* net, const char* text, bool is_vector) {
  int64_t one = 1;
  TF_Tensor* tensor = TF_AllocateTensor(TF_STRING, &one, is_vector ? 1 : 0, sizeof(TF_TString));
  TF_StringInit(TF_TensorData(tensor));
  TF_StringCopy(TF_TensorData(tensor), text, strlen(text));
  return net_const(net, tensor);
}

static TF_Output const_long(net_t* net, int64_t value) {
  TF_Tensor* tensor = TF_AllocateTensor(TF_INT64, NULL, 0, sizeof value);
  memcpy(TF_TensorData(tensor), &value, sizeof value);
  return net_const(net, tensor);
}

static TF_Output const_false(net_t* net) {
  TF_Tensor* tensor = TF_AllocateTensor(TF_BOOL, NULL, 0, 1);
  memset(TF_TensorData(tensor), 0, 1);
  return net_const(net, tensor);
}

// Elements of one component of |type| and |rank| with unknown dims.
static void set_elements(TF_OperationDescription* desc, TF_DataType type, int rank) {
  int64_t open = -1;
  const int64_t* dims = &open;
  TF_SetAttrTypeList(desc, "output_types", &type, 1);
  TF_SetAttrShapeList(desc, "output_shapes", &dims, &rank, 1);
}

static TF_Output add_batch(net_t* net, TF_Output input, int64_t size, TF_DataType type) {
  TF_OperationDescription* desc = net_begin(net, "BatchDatasetV2");
  TF_AddInput(desc, input);
  TF_AddInput(desc, const_long(net, size));
  TF_AddInput(desc, const_false(net));
  set_elements(desc, type, 1);
  return net_output(net, desc);
}

// An iterator over |dataset|: the node that initializes it, and the next batch.
static TF_Output add_iterator(net_t* net, TF_Output dataset, TF_DataType type,
                              TF_Operation** out_make) {
  TF_OperationDescription* desc = net_begin(net, "IteratorV2");
  TF_SetAttrString(desc, "shared_name", "it", 2);
  TF_SetAttrString(desc, "container", "", 0);
  set_elements(desc, type, 1);
  TF_Output iterator = net_output(net, desc);
  desc = net_begin(net, "MakeIterator");
  TF_AddInput(desc, dataset);
  TF_AddInput(desc, iterator);
  *out_make = net_finish(net, desc);
  desc = net_begin(net, "IteratorGetNext");
  TF_AddInput(desc, iterator);
  set_elements(desc, type, 1);
  return net_output(net, desc);
}

// One pass over a pipeline: initializes the iterator, then takes all batches.
typedef struct {
  step_t begin, next;
  int batches;
} walk_t;

static void walk_open(walk_t* walk, TF_Session* session, TF_Operation* make, TF_Output next,
                      int batches) {
  step_open(&walk->begin, session);
  walk->begin.target = make;
  step_open(&walk->next, session);
  step_fetch(&walk->next, next);
  walk->batches = batches;
}

static void walk_run(void* context) {
  walk_t* walk = context;
  step_run(&walk->begin);
  for (int i = 0; i < walk->batches; ++i) TF_DeleteTensor(step_run_for_tensor(&walk->next));
}

static double tfrecord_batch(const bench_options_t* options, int a, int b) {
  (void)a, (void)b;
  char path[] = "/tmp/runnel_bench_XXXXXX";
  int file = mkstemp(path);
  if (file < 0) bench_fail("no temporary file");
  close(file);
  write_records(path);
  net_t net;
  net_open(&net);
  TF_OperationDescription* desc = net_begin(&net, "TFRecordDataset");
  TF_AddInput(desc, const_text(&net, path, true));
  TF_AddInput(desc, const_text(&net, "", false));
  TF_AddInput(desc, const_long(&net, 256 << 10));
  TF_Operation* make = NULL;
  TF_Output next = add_iterator(&net, add_batch(&net, net_output(&net, desc), kBatch, TF_STRING),
                                TF_STRING, &make);
  TF_Session* session = session_open(&net, (session_config_t){0});
  walk_t walk = {0};
  walk_open(&walk, session, make, next, kRecords / kBatch);
  double rate = bench_rate(options, walk_run, &walk);
  TF_Tensor* last = NULL;
  step_run(&walk.begin);
  last = step_run_for_tensor(&walk.next);
  bench_expect("records of a batch", (double)TF_Dim(last, 0), kBatch, 0);
  bench_expect("bytes of a record",
               (double)TF_StringGetSize((const TF_TString*)TF_TensorData(last)), kRecordBytes, 0);
  TF_DeleteTensor(last);
  step_close(&walk.begin);
  step_close(&walk.next);
  session_close(session);
  net_close(&net);
  unlink(path);
  return rate * kRecords * kRecordBytes / 1e9;
}

// x * x + 1, as a function.
static void add_function(net_t* net) {
  net_t body;
  net_open(&body);
  TF_Output x = net_placeholder(&body, TF_INT64, SCALAR);
  TF_Output y = net_binary(&body, "AddV2", net_binary(&body, "Mul", x, x), const_long(&body, 1));
  TF_Function* function = TF_GraphToFunction(body.graph, "square", 0, -1, NULL, 1, &x, 1, &y, NULL,
                                             NULL, NULL, body.status);
  check_ok(body.status, "making a function");
  TF_GraphCopyFunction(net->graph, function, NULL, net->status);
  check_ok(net->status, "copying a function");
  TF_DeleteFunction(function);
  net_close(&body);
}

enum { kElements = 100000 };

static double map_batch(const bench_options_t* options, int a, int b) {
  (void)a, (void)b;
  net_t net;
  net_open(&net);
  add_function(&net);
  TF_OperationDescription* desc = net_begin(&net, "RangeDataset");
  TF_AddInput(desc, const_long(&net, 0));
  TF_AddInput(desc, const_long(&net, kElements));
  TF_AddInput(desc, const_long(&net, 1));
  set_elements(desc, TF_INT64, 0);
  TF_Output range = net_output(&net, desc);
  desc = net_begin(&net, "MapDataset");
  TF_AddInput(desc, range);
  TF_AddInputList(desc, NULL, 0);
  TF_SetAttrFuncName(desc, "f", "square", 6);
  TF_SetAttrTypeList(desc, "Targuments", NULL, 0);
  set_elements(desc, TF_INT64, 0);
  TF_Operation* make = NULL;
  TF_Output next =
      add_iterator(&net, add_batch(&net, net_output(&net, desc), 100, TF_INT64), TF_INT64, &make);
  TF_Session* session = session_open(&net, (session_config_t){0});
  walk_t walk = {0};
  walk_open(&walk, session, make, next, kElements / 100);
  double rate = bench_rate(options, walk_run, &walk);
  step_run(&walk.begin);
  TF_DeleteTensor(step_run_for_tensor(&walk.next));
  TF_Tensor* second = step_run_for_tensor(&walk.next);
  bench_expect("an element", (double)((const int64_t*)TF_TensorData(second))[5], 105 * 105 + 1, 0);
  TF_DeleteTensor(second);
  step_close(&walk.begin);
  step_close(&walk.next);
  session_close(session);
  net_close(&net);
  return rate * kElements;
}

const bench_case_t bench_data_cases[] = {
    {"tfrecord_batch", "GB/s", tfrecord_batch, 0, 0},
    {"map_batch", "elements/s", map_batch, 0, 0},
    {0},
};

// tf.Example messages to tensors: a picture of 28 x 28 and its label, the picture as bytes or as
// floats.
#include <string.h>

#include "bench.h"
#include "graph_util.h"
#include "tensorflow/c/tf_tstring.h"

enum { kExamples = 1024, kPixels = 28 * 28 };

static size_t put_varint(char* out, size_t value) {
  size_t size = 0;
  for (; value >= 128; value >>= 7) out[size++] = (char)(value | 128);
  out[size++] = (char)value;
  return size;
}

// Turns the |size| bytes at |out| into the length-delimited field |number|, moving them.
static size_t wrap(char* out, int number, size_t size) {
  char head[12];
  head[0] = (char)(number << 3 | 2);
  size_t length = 1 + put_varint(head + 1, size);
  memmove(out + length, out, size);
  memcpy(out, head, length);
  return size + length;
}

// A map entry of |key| and a list of kind |kind| with the |size| bytes of values at |out|.
static size_t feature(char* out, const char* key, int kind, size_t size) {
  char name[32];
  size_t length = strlen(key);
  size = wrap(out, 2, wrap(out, kind, wrap(out, 1, size)));
  memcpy(name, key, length);
  length = wrap(name, 1, length);
  memmove(out + length, out, size);
  memcpy(out, name, length);
  return wrap(out, 1, size + length);
}

static size_t write_example(char* out, int label, int as_floats, uint32_t* state) {
  size_t size = as_floats ? 4 * kPixels : kPixels;
  for (size_t i = 0; i < kPixels; ++i) {
    float pixel = (float)(next_random(state) % 256) / 255;
    if (as_floats)
      memcpy(out + 4 * i, &pixel, 4);
    else
      out[i] = (char)(pixel * 255);
  }
  size = feature(out, "image", as_floats ? 2 : 1, size);
  out[size] = (char)label;
  size += feature(out + size, "label", 3, 1);
  return wrap(out, 1, size);
}

static TF_Tensor* examples(int as_floats) {
  static char bytes[8192];
  const int64_t dims[1] = {kExamples};
  TF_Tensor* tensor = TF_AllocateTensor(TF_STRING, dims, 1, kExamples * sizeof(TF_TString));
  TF_TString* text = TF_TensorData(tensor);
  uint32_t state = 1;
  for (int i = 0; i < kExamples; ++i) {
    TF_TString_Init(&text[i]);
    TF_TString_Copy(&text[i], bytes, write_example(bytes, i % 10, as_floats, &state));
  }
  return tensor;
}

static TF_Output text_const(net_t* net, const char* const* values, int count) {
  const int64_t dims[1] = {count};
  TF_Tensor* tensor = TF_AllocateTensor(TF_STRING, dims, 1, (size_t)count * sizeof(TF_TString));
  for (int i = 0; i < count; ++i) {
    TF_TString* text = (TF_TString*)TF_TensorData(tensor) + i;
    TF_TString_Init(text);
    TF_TString_Copy(text, values[i], strlen(values[i]));
  }
  return net_const(net, tensor);
}

// Examples/s of ParseExampleV2, a batch of |kExamples| at a time.
static double parse_example(const bench_options_t* options, int as_floats, int unused) {
  (void)unused;
  static const char* const keys[] = {"image", "label"};
  const int64_t pixels[1] = {kPixels}, *shapes[2] = {pixels, NULL};
  const int ranks[2] = {as_floats ? 1 : 0, 0};
  const TF_DataType types[2] = {as_floats ? TF_FLOAT : TF_STRING, TF_INT64};
  net_t net;
  net_open(&net);
  TF_Output serialized = net_placeholder(&net, TF_STRING, SHAPE(kExamples));
  TF_Output none = text_const(&net, keys, 0), dense = text_const(&net, keys, 2);
  const int64_t no_values[1] = {0};
  TF_Output defaults[2] = {
      as_floats ? net_const(&net, TF_AllocateTensor(TF_FLOAT, no_values, 1, 0)) : none,
      net_const(&net, TF_AllocateTensor(TF_INT64, no_values, 1, 0))};
  TF_OperationDescription* desc = net_begin(&net, "ParseExampleV2");
  TF_AddInput(desc, serialized);
  TF_AddInput(desc, none);
  TF_AddInput(desc, none);
  TF_AddInput(desc, dense);
  TF_AddInput(desc, none);
  TF_AddInputList(desc, defaults, 2);
  TF_SetAttrInt(desc, "num_sparse", 0);
  TF_SetAttrTypeList(desc, "sparse_types", types, 0);
  TF_SetAttrTypeList(desc, "ragged_value_types", types, 0);
  TF_SetAttrTypeList(desc, "ragged_split_types", types, 0);
  TF_SetAttrTypeList(desc, "Tdense", types, 2);
  TF_SetAttrShapeList(desc, "dense_shapes", shapes, ranks, 2);
  TF_Operation* parse = net_finish(&net, desc);
  desc = net_begin(&net, "Cast");
  TF_AddInput(desc, (TF_Output){parse, 1});
  TF_SetAttrType(desc, "DstT", TF_FLOAT);
  TF_Output label = net_output(&net, desc);

  TF_Session* session = session_open(&net, (session_config_t){0});
  step_t step;
  step_open(&step, session);
  step_feed(&step, serialized, examples(as_floats));
  step_fetch(&step, label);
  step_fetch(&step, (TF_Output){parse, 0});
  TF_Tensor* labels = step_run_for_tensor(&step);
  for (int i = 0; i < kExamples; ++i)
    bench_expect("label", ((const float*)TF_TensorData(labels))[i], i % 10, 0);
  TF_DeleteTensor(labels);
  double rate = bench_rate(options, step_run, &step) * kExamples;
  step_close(&step);
  session_close(session);
  net_close(&net);
  return rate;
}

const bench_case_t bench_parse_cases[] = {
    {"parse_example", "examples/s", parse_example, 0, 0},
    {"parse_example_floats", "examples/s", parse_example, 1, 0},
    {0},
};

// Inputs of a call, from text: types, shapes and how their elements are drawn.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../bench.h"
#include "../graph_util.h"
#include "client.h"

enum { kMostDims = 8, kMostItems = 64 };

// One value: "TYPE[DIMS]DRAW", "TYPE{ITEM,ITEM}" or "TYPE=ITEM".
typedef struct {
  TF_DataType type;
  int rank;
  int64_t dims[kMostDims];
  int64_t size;
  char* items[kMostItems];  // the elements, if the text gives them
  bool has_items;
  const char* draw;  // "", "LOW..HIGH", "sortedLOW..HIGH", "perm", "digits", "words"
  uint32_t seed;
} value_t;

static size_t type_bytes(TF_DataType type) {
  return type == TF_STRING ? sizeof(TF_TString) : TF_DataTypeSize(type);
}

static uint16_t half_of(float value) {
  _Float16 half = (_Float16)value;
  uint16_t bits;
  memcpy(&bits, &half, sizeof bits);
  return bits;
}

static uint16_t bfloat16_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)(bits >> 16);
}

static void put_number(const value_t* v, void* data, int64_t i, double x) {
  switch (v->type) {
    // clang-format off
    case TF_HALF: ((uint16_t*)data)[i] = half_of((float)x); return;
    case TF_BFLOAT16: ((uint16_t*)data)[i] = bfloat16_of((float)x); return;
    case TF_FLOAT: ((float*)data)[i] = (float)x; return;
    case TF_DOUBLE: ((double*)data)[i] = x; return;
    case TF_COMPLEX64: ((float*)data)[2 * i] = (float)x; ((float*)data)[2 * i + 1] = (float)(1 - x); return;
    case TF_COMPLEX128: ((double*)data)[2 * i] = x; ((double*)data)[2 * i + 1] = 1 - x; return;
    case TF_INT8: case TF_QINT8: ((int8_t*)data)[i] = (int8_t)x; return;
    case TF_UINT8: case TF_QUINT8: case TF_BOOL: ((uint8_t*)data)[i] = (uint8_t)x; return;
    case TF_INT16: case TF_UINT16: ((uint16_t*)data)[i] = (uint16_t)(int64_t)x; return;
    case TF_INT32: case TF_UINT32: case TF_QINT32: ((uint32_t*)data)[i] = (uint32_t)(int64_t)x; return;
    case TF_INT64: case TF_UINT64: ((int64_t*)data)[i] = (int64_t)x; return;
    // clang-format on
    default:
      bench_fail("no numbers of this type");
  }
}

static void put_string(void* data, int64_t i, const char* text) {
  TF_TString* string = (TF_TString*)data + i;
  TF_StringInit(string);
  TF_StringCopy(string, text, strlen(text));
}

static bool is_float(TF_DataType type) {
  return type == TF_HALF || type == TF_BFLOAT16 || type == TF_FLOAT || type == TF_DOUBLE ||
         type == TF_COMPLEX64 || type == TF_COMPLEX128;
}

static void draw_strings(const value_t* v, void* data, uint32_t* state) {
  for (int64_t i = 0; i < v->size; ++i) {
    char text[64];
    uint32_t a = next_random(state), b = next_random(state);
    if (strcmp(v->draw, "digits") == 0)
      snprintf(text, sizeof text, "%u.%u", a % 1000, b % 100000);
    else if (strcmp(v->draw, "words") == 0)
      snprintf(text, sizeof text, "%08x brown %08x over %u dogs", a, b, a % 10);
    else
      snprintf(text, sizeof text, "%x", a % 100000);
    put_string(data, i, text);
  }
}

static void draw_permutation(const value_t* v, void* data, uint32_t* state) {
  int64_t* order = malloc((size_t)v->size * sizeof *order);
  for (int64_t i = 0; i < v->size; ++i) order[i] = i;
  for (int64_t i = v->size - 1; i > 0; --i) {
    int64_t other = (int64_t)(next_random(state) % (uint32_t)(i + 1)), kept = order[i];
    order[i] = order[other];
    order[other] = kept;
  }
  for (int64_t i = 0; i < v->size; ++i) put_number(v, data, i, (double)order[i]);
  free(order);
}

static void draw_numbers(const value_t* v, void* data, uint32_t* state) {
  bool sorted = strncmp(v->draw, "sorted", 6) == 0;
  const char* range = v->draw + (sorted ? 6 : 0);
  double low = is_float(v->type) ? -1 : 0, high = v->type == TF_BOOL  ? 2
                                                  : is_float(v->type) ? 1
                                                                      : 10;
  if (*range) {
    const char* dots = strstr(range, "..");
    if (!dots) bench_fail("'%s' is no range", v->draw);
    low = atof(range), high = atof(dots + 2);
  }
  for (int64_t i = 0; i < v->size; ++i) {
    double at =
        sorted ? (double)i / (double)v->size : (double)(next_random(state) >> 8) / 16777216.0;
    put_number(v, data, i, low + (high - low) * at);
  }
}

static TF_Tensor* value_tensor(const value_t* v) {
  size_t bytes = (size_t)v->size * type_bytes(v->type);
  TF_Tensor* tensor = TF_AllocateTensor(v->type, v->dims, v->rank, bytes);
  void* data = TF_TensorData(tensor);
  uint32_t state = v->seed * 2654435761u + 1;
  if (v->has_items) {
    for (int64_t i = 0; i < v->size; ++i) {
      if (v->type == TF_STRING)
        put_string(data, i, v->items[i]);
      else
        put_number(v, data, i, atof(v->items[i]));
    }
  } else if (v->type == TF_STRING) {
    draw_strings(v, data, &state);
  } else if (strcmp(v->draw, "perm") == 0) {
    draw_permutation(v, data, &state);
  } else {
    draw_numbers(v, data, &state);
  }
  return tensor;
}

// The part after "TYPE[": dimensions, "]" and how elements are drawn.
static void read_dims(value_t* v, char* text) {
  char* end = strchr(text, ']');
  if (!end) bench_fail("'%s' does not end", text);
  *end = 0;
  v->draw = end + 1;
  for (char* word = strsep(&text, ","); word && *word; word = strsep(&text, ",")) {
    if (v->rank == kMostDims) bench_fail("too many dimensions");
    v->size *= v->dims[v->rank++] = strtoll(word, NULL, 10);
  }
}

static void read_items(value_t* v, char* text) {
  v->has_items = true;
  v->size = 0;
  text[strcspn(text, "}")] = 0;
  for (char* word = strsep(&text, ","); word && *word; word = strsep(&text, ",")) {
    if (v->size == kMostItems) bench_fail("too many items");
    v->items[v->size++] = word;
  }
}

static value_t read_value(char* text, uint32_t seed) {
  value_t v = {.size = 1, .draw = "", .seed = seed};
  size_t name = strcspn(text, "[{=");
  char kind = text[name], *rest = text + name + (kind != 0);
  text[name] = 0;
  v.type = type_of_name(text);
  if (kind == '[') {
    read_dims(&v, rest);
  } else if (kind == '{') {
    read_items(&v, rest);
    v.rank = 1, v.dims[0] = v.size;
  } else {
    v.has_items = true;
    v.items[0] = rest;
  }
  return v;
}

static TFE_TensorHandle* call(TFE_Op* op, TF_Status* status, int results) {
  TFE_TensorHandle* result = NULL;
  TFE_Execute(op, &result, &results, status);
  check_ok(status, TFE_OpGetName(op, status));
  TFE_DeleteOp(op);
  return result;
}

// A variable with this value, as a handle.
static TFE_TensorHandle* variable(TFE_Context* context, TFE_TensorHandle* value, const value_t* v,
                                  TF_Status* status) {
  static int made;
  char name[32];
  int length = snprintf(name, sizeof name, "variable%d", made++);
  TFE_Op* op = TFE_NewOp(context, "VarHandleOp", status);
  TFE_OpSetAttrType(op, "dtype", v->type);
  TFE_OpSetAttrShape(op, "shape", v->dims, v->rank, status);
  TFE_OpSetAttrString(op, "shared_name", name, (size_t)length);
  TFE_TensorHandle* handle = call(op, status, 1);
  op = TFE_NewOp(context, "AssignVariableOp", status);
  TFE_OpAddInput(op, handle, status);
  TFE_OpAddInput(op, value, status);
  call(op, status, 0);
  TFE_DeleteTensorHandle(value);
  return handle;
}

static TFE_TensorHandle* make(TFE_Context* context, const char* text, uint32_t seed) {
  char copy[256];
  if (strlen(text) >= sizeof copy) bench_fail("'%s' is too long", text);
  strcpy(copy, text);
  bool is_variable = strncmp(copy, "var:", 4) == 0;
  TF_Status* status = TF_NewStatus();
  value_t v = read_value(copy + (is_variable ? 4 : 0), seed);
  TF_Tensor* tensor = value_tensor(&v);
  TFE_TensorHandle* handle = TFE_NewTensorHandle(tensor, status);
  check_ok(status, text);
  TF_DeleteTensor(tensor);
  if (is_variable) handle = variable(context, handle, &v, status);
  TF_DeleteStatus(status);
  return handle;
}

void inputs_read(inputs_t* inputs, TFE_Context* context, char* text) {
  *inputs = (inputs_t){.count = 0};
  int lists = 0;
  for (char* word = strsep(&text, " "); word; word = strsep(&text, " ")) {
    if (!*word) continue;
    char* star = strchr(word, '*');  // "3*VALUE" is a list of three
    int times = star ? atoi(word) : 1, list = star ? lists++ : -1;
    for (int i = 0; i < times; ++i) {
      if (inputs->count == kMostInputs) bench_fail("too many inputs");
      inputs->list[inputs->count] = list;
      inputs->handles[inputs->count] =
          make(context, star ? star + 1 : word, (uint32_t)inputs->count + 1);
      inputs->count++;
    }
  }
}

void inputs_close(inputs_t* inputs) {
  for (int i = 0; i < inputs->count; ++i) TFE_DeleteTensorHandle(inputs->handles[i]);
  inputs->count = 0;
}

void inputs_add(const inputs_t* inputs, TFE_Op* op, TF_Status* status) {
  for (int i = 0, next; i < inputs->count; i = next) {
    next = i + 1;
    if (inputs->list[i] < 0) {
      TFE_OpAddInput(op, inputs->handles[i], status);
    } else {
      while (next < inputs->count && inputs->list[next] == inputs->list[i]) ++next;
      TFE_OpAddInputList(op, (TFE_TensorHandle**)inputs->handles + i, next - i, status);
    }
    check_ok(status, "adding an input");
  }
}

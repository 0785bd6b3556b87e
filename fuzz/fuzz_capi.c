// Fuzzes every function of the C API that decodes bytes; the first byte selects the function.
// Strings are read from the input: one byte for the length, then the bytes.
#include "tensorflow/c/c_api.h"

#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api_legacy.h"
#include "tensorflow/c/ops.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

typedef struct input_t {
  const uint8_t* at;
  size_t left;
  TF_Status* status;
  TF_Graph* graph;
} input_t;

static int byte(input_t* in) {
  if (in->left == 0) return 0;
  in->left--;
  return *in->at++;
}

// A NUL-terminated copy for the caller to free.
static char* text(input_t* in) {
  size_t size = (size_t)byte(in);
  if (size > in->left) size = in->left;
  char* copy = malloc(size + 1);
  if (!copy) abort();
  if (size) memcpy(copy, in->at, size);
  copy[size] = '\0';
  in->at += size;
  in->left -= size;
  return copy;
}

static TF_Operation* placeholder(input_t* in, const char* name) {
  TF_OperationDescription* desc = TF_NewOperation(in->graph, "Placeholder", name);
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  return TF_FinishOperation(desc, in->status);
}

static void try_api_defs(input_t* in) {
  TF_Buffer* list = byte(in) & 1 ? TF_NewBufferFromString(in->at, in->left) : TF_GetAllOpList();
  TF_ApiDefMap* map = TF_NewApiDefMap(list, in->status);
  if (map) {
    char* name = text(in);
    TF_ApiDefMapPut(map, (const char*)in->at, in->left, in->status);
    TF_DeleteBuffer(TF_ApiDefMapGet(map, name, strlen(name), in->status));
    free(name);
  }
  TF_DeleteApiDefMap(map);
  TF_DeleteBuffer(list);
}

// Runs an Identity of a scalar with a ConfigProto and RunOptions from the input.
static void try_options(input_t* in) {
  TF_Operation* x = placeholder(in, "x");
  TF_SessionOptions* options = TF_NewSessionOptions();
  size_t config = (size_t)byte(in);
  if (config > in->left) config = in->left;
  TF_SetConfig(options, in->at, config, in->status);
  in->at += config;
  in->left -= config;
  TF_Session* session = TF_NewSession(in->graph, options, in->status);
  if (session && x) {
    TF_Buffer* run_options = TF_NewBufferFromString(in->at, in->left);
    TF_Buffer* metadata = TF_NewBuffer();
    TF_Output edge = {x, 0};
    TF_Tensor *fed = TF_AllocateTensor(TF_FLOAT, NULL, 0, 4), *out = NULL;
    *(float*)TF_TensorData(fed) = 1;
    TF_SessionRun(session, run_options, &edge, &fed, 1, &edge, &out, 1, NULL, 0, metadata,
                  in->status);
    TF_DeleteTensor(fed);
    TF_DeleteTensor(out);
    TF_DeleteBuffer(run_options);
    TF_DeleteBuffer(metadata);
  }
  if (session) TF_DeleteSession(session, in->status);
  TF_DeleteSessionOptions(options);
}

static void try_attributes(input_t* in) {
  char *op = text(in), *name = text(in), *device = text(in);
  TF_OperationDescription* desc = TF_NewOperation(in->graph, op, name);
  TF_SetDevice(desc, device);
  for (int i = byte(in) % 4; i > 0; --i) {
    char *attr = text(in), *value = text(in);
    TF_SetAttrValueProto(desc, attr, value, strlen(value), in->status);
    TF_SetAttrTensorShapeProto(desc, "shape", value, strlen(value), in->status);
    free(attr);
    free(value);
  }
  TF_SetAttrValueProto(desc, "value", in->at, in->left, in->status);
  TF_Operation* added = TF_FinishOperation(desc, in->status);
  TF_Buffer* def = TF_NewBuffer();
  if (added) TF_OperationToNodeDef(added, def, in->status);
  TF_DeleteBuffer(def);
  free(op);
  free(name);
  free(device);
}

static void add_import_options(input_t* in, TF_ImportGraphDefOptions* options, TF_Operation* x) {
  for (int i = byte(in) % 6; i > 0; --i) {
    char* name = text(in);
    int index = byte(in) - 2;
    switch (byte(in) % 7) {
      case 0:
        TF_ImportGraphDefOptionsSetPrefix(options, name);
        break;
      case 1:
        TF_ImportGraphDefOptionsAddInputMapping(options, name, index, (TF_Output){x, 0});
        break;
      case 2:
        TF_ImportGraphDefOptionsRemapControlDependency(options, name, x);
        break;
      case 3:
        TF_ImportGraphDefOptionsAddReturnOutput(options, name, index);
        break;
      case 4:
        TF_ImportGraphDefOptionsAddReturnOperation(options, name);
        break;
      case 5:
        TF_ImportGraphDefOptionsSetDefaultDevice(options, name);
        break;
      default:
        TF_ImportGraphDefOptionsSetUniquifyNames(options, index & 1);
        TF_ImportGraphDefOptionsAddControlDependency(options, x);
    }
    free(name);
  }
}

static void try_import(input_t* in) {
  TF_Operation* x = placeholder(in, "x");
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  add_import_options(in, options, x);
  TF_Buffer* def = TF_NewBufferFromString(in->at, in->left);
  TF_DeleteImportGraphDefResults(
      TF_GraphImportGraphDefWithResults(in->graph, def, options, in->status));
  TF_DeleteBuffer(def);
  def = TF_NewBuffer();
  TF_GraphToGraphDef(in->graph, def, in->status);
  TF_DeleteBuffer(def);
  TF_DeleteImportGraphDefOptions(options);
}

static void no_shape(TF_ShapeInferenceContext* context, TF_Status* status) {
  TF_ShapeInferenceContextSetUnknownShape(context, status);
}

// Definitions are never freed, so there are only a few names.
static void try_op_strings(input_t* in) {
  char name[] = "FuzzA";
  name[4] = (char)('A' + byte(in) % 8);
  TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder(name);
  for (int i = byte(in) % 6; i > 0; --i) {
    int kind = byte(in) % 3;
    char* spec = text(in);
    if (kind == 0) TF_OpDefinitionBuilderAddAttr(builder, spec);
    if (kind == 1) TF_OpDefinitionBuilderAddInput(builder, spec);
    if (kind == 2) TF_OpDefinitionBuilderAddOutput(builder, spec);
    free(spec);
  }
  TF_OpDefinitionBuilderSetShapeInferenceFunction(builder, no_shape);
  // Registers one in four, so that most inputs do not depend on earlier ones.
  if (byte(in) % 4 == 1)
    TF_RegisterOpDefinition(builder, in->status);
  else
    TF_DeleteOpDefinitionBuilder(builder);
}

static void try_tensor(input_t* in) {
  TF_Buffer* proto = TF_NewBufferFromString(in->at, in->left);
  TF_Tensor* tensor = TF_AllocateTensor(TF_FLOAT, NULL, 0, 4);
  TF_TensorFromProto(proto, tensor, in->status);
  TF_DeleteTensor(tensor);
  const char* decoded;
  size_t decoded_size;
  TF_StringDecode((const char*)in->at, in->left, &decoded, &decoded_size, in->status);
  int64_t dims[8];
  int rank = byte(in) % 8;
  for (int i = 0; i < rank; ++i) dims[i] = byte(in) - 2;
  TF_Operation* x = placeholder(in, "x");
  TF_GraphSetTensorShape(in->graph, (TF_Output){x, 0}, dims, rank, in->status);
  TF_DeleteBuffer(proto);
}

static void try_function(input_t* in) {
  TF_Function* function = TF_FunctionImportFunctionDef(in->at, in->left, in->status);
  if (!function) return;
  TF_Buffer* def = TF_NewBuffer();
  TF_FunctionSetAttrValueProto(function, "_a", in->at, in->left, in->status);
  TF_FunctionToFunctionDef(function, def, in->status);
  TF_GraphCopyFunction(in->graph, function, NULL, in->status);
  if (TF_GetCode(in->status) == TF_OK) {
    TF_OperationDescription* call = TF_NewOperation(in->graph, TF_FunctionName(function), "call");
    TF_FinishOperation(call, in->status);
  }
  TF_DeleteBuffer(def);
  TF_DeleteFunction(function);
}

static void try_old_session(input_t* in) {
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_DeprecatedSession* session = TF_NewDeprecatedSession(options, in->status);
  if (session) {
    char* fetch = text(in);
    const char* names[] = {fetch};
    TF_Tensor* out = NULL;
    TF_ExtendGraph(session, in->at, in->left, in->status);
    TF_Run(session, NULL, NULL, NULL, 0, names, &out, 1, NULL, 0, NULL, in->status);
    TF_DeleteTensor(out);
    free(fetch);
    TF_DeleteDeprecatedSession(session, in->status);
  }
  TF_DeleteSessionOptions(options);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static void (*const tries[])(input_t*) = {try_api_defs,    try_options,    try_attributes,
                                            try_import,      try_op_strings, try_tensor,
                                            try_old_session, try_function};
  if (size == 0) return 0;
  input_t in = {data + 1, size - 1, TF_NewStatus(), TF_NewGraph()};
  tries[data[0] % (sizeof tries / sizeof *tries)](&in);
  TF_DeleteGraph(in.graph);
  TF_DeleteStatus(in.status);
  return 0;
}

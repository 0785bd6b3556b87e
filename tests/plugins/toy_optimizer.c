// The graph optimizer of the toy device: every Neg becomes an Abs. It prints what it may ask.
//
// A GraphDef is changed in place: the two names have the same length.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/experimental/grappler/grappler.h"

static bool fault(const char* name) {
  const char* wanted = getenv("TOY_FAULT");
  return wanted && strcmp(wanted, name) == 0;
}

static int compare(const void* a, const void* b) {
  return strcmp(*(const char* const*)a, *(const char* const*)b);
}

typedef void (*sizes_t)(const TF_GrapplerItem*, int*, size_t*, TF_Status*);
typedef void (*names_t)(const TF_GrapplerItem*, char**, size_t*, int, void*, size_t, TF_Status*);

static void print_names(const char* what, const TF_GrapplerItem* item, sizes_t sizes, names_t names,
                        TF_Status* status) {
  int count = 0;
  size_t bytes = 0;
  sizes(item, &count, &bytes, status);
  char** values = calloc((size_t)count + 1, sizeof *values);
  size_t* lengths = calloc((size_t)count + 1, sizeof *lengths);
  char* storage = malloc(bytes + 1);
  names(item, values, lengths, count, storage, bytes, status);
  for (int i = 0; i < count; ++i) values[i] = strndup(values[i], lengths[i]);
  qsort(values, (size_t)count, sizeof *values, compare);
  printf("optimizer: %s:", what);
  for (int i = 0; i < count; ++i) {
    printf(" %s", values[i]);
    free(values[i]);
  }
  printf("\n");
  free(values);
  free(lengths);
  free(storage);
}

static void print_hex(const TF_Buffer* buffer) {
  for (size_t i = 0; i < buffer->length; ++i)
    printf("%02x", ((const unsigned char*)buffer->data)[i]);
}

static void print_properties(const TF_GrapplerItem* item, TF_Status* status) {
  TF_GraphProperties* properties = TF_NewGraphProperties(item);
  TF_InferStatically(properties, 1, 0, 0, 0, status);
  int inputs = 0, outputs = 0;
  TF_GetInputPropertiesListSize(properties, "negated", &inputs, status);
  TF_GetOutputPropertiesListSize(properties, "negated", &outputs, status);
  printf("optimizer: negated has %d inputs and %d outputs", inputs, outputs);
  if (outputs == 1) {
    TF_Buffer* buffer = TF_NewBuffer();
    TF_GetOutputPropertiesList(properties, "negated", &buffer, 1, status);
    printf(": ");
    print_hex(buffer);
    TF_DeleteBuffer(buffer);
  }
  printf("\n");
  TF_DeleteGraphProperties(properties);
}

static void print_ops(const TF_Buffer* graph, TF_Status* status) {
  TF_FunctionLibraryDefinition* library = TF_NewFunctionLibraryDefinition(graph, status);
  TF_Buffer* buffer = TF_NewBuffer();
  TF_LookUpOpDef(library, "Neg", buffer, status);
  printf("optimizer: the OpDef of Neg begins with ");
  buffer->length = buffer->length < 5 ? buffer->length : 5;
  print_hex(buffer);
  TF_DeleteBuffer(buffer);
  TF_Status* missing = TF_NewStatus();
  buffer = TF_NewBuffer();
  TF_LookUpOpDef(library, "NoSuchOp", buffer, missing);
  printf("\noptimizer: NoSuchOp: %d\n", (int)TF_GetCode(missing));
  TF_DeleteBuffer(buffer);
  TF_DeleteStatus(missing);
  TF_DeleteFunctionLibraryDefinition(library);
}

static void free_data(void* data, size_t length) {
  (void)length;
  free(data);
}

static void* create(void) { return calloc(1, 1); }
static void destroy(void* optimizer) { free(optimizer); }

static void optimize(void* optimizer, const TF_Buffer* graph, const TF_GrapplerItem* item,
                     TF_Buffer* out, TF_Status* status) {
  (void)optimizer;
  if (fault("optimize")) {
    TF_SetStatus(status, TF_ABORTED, "no idea");
    return;
  }
  char* copy = malloc(graph->length + 1);
  memcpy(copy, graph->data, graph->length);
  int changed = 0, placed = 0;
  for (size_t i = 0; i + 5 <= graph->length; ++i) {
    changed += memcmp(copy + i, "\x12\x03Neg", 5) == 0;
    placed += i + 13 <= graph->length && memcmp(copy + i, "/device:TOY:0", 13) == 0;
    if (memcmp(copy + i, "\x12\x03Neg", 5) == 0)
      memcpy(copy + i,
             "\x12\x03"
             "Abs",
             5);
  }
  if (changed && getenv("TOY_VERBOSE")) {
    print_names("fetched", item, TF_GetFetchNodesListSize, TF_GetFetchNodesList, status);
    print_names("kept", item, TF_GetNodesToPreserveListSize, TF_GetNodesToPreserveList, status);
    print_properties(item, status);
    print_ops(graph, status);
    printf("optimizer: %s, changed %d\n", placed ? "nodes are placed" : "nothing is placed",
           changed);
  }
  if (fault("bad_graph")) copy[0] = (char)0xff;
  out->data = copy;
  out->length = graph->length;
  out->data_deallocator = free_data;
}

void TF_InitGraph(TP_OptimizerRegistrationParams* params, TF_Status* status) {
  if (fault("init_graph")) {
    TF_SetStatus(status, TF_FAILED_PRECONDITION, "graphs are too hard");
    return;
  }
  params->struct_size =
      fault("graph_params_size") ? 0 : TP_OPTIMIZER_REGISTRATION_PARAMS_STRUCT_SIZE;
  params->major_version = GO_MAJOR;
  params->minor_version = GO_MINOR;
  params->patch_version = GO_PATCH;
  params->device_type = fault("graph_type") ? NULL : "TOY";
  params->optimizer_configs->struct_size =
      fault("configs_size") ? 0 : TP_OPTIMIZER_CONFIGS_STRUCT_SIZE;
  params->optimizer_configs->constant_folding = TF_TriState_Off;
  params->optimizer_configs->remapping = TF_TriState_Off;
  params->optimizer->struct_size = fault("optimizer_size") ? 0 : TP_OPTIMIZER_STRUCT_SIZE;
  params->optimizer->create_func = create;
  params->optimizer->optimize_func = fault("no_optimize") ? NULL : optimize;
  params->optimizer->destroy_func = destroy;
}

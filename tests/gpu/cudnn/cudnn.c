// An emulated cuDNN: the backend API for convolutions, on the emulated driver.
//
// It has three engines. The first accepts no groups, the second is not deterministic and fails when
// it runs, the third works. All refuse paddings that are not even with a stride of 2, so that
// callers must pad. As engines of the real one, they read the filter as if it had cuDNN's order,
// whatever its strides are, and take paddings that are not even wrongly for the gradient of a
// filter. Misuse (attributes after finalizing, descriptors that are not final, unknown numbers)
// gives BAD_PARAM.
#include "kernels/cuda/libs/cudnn.h"

#include <stdlib.h>

#include "cudnn_args.h"
#include "emulated_image.h"

#define MOST_ATTRIBUTES 16
#define MOST_ELEMENTS 16
#define BAD_PARAM 2000
#define NOT_SUPPORTED 3000
#define EXECUTION_FAILED 5000
#define ENGINES 3

typedef struct attribute_t {
  int name, type;
  int64_t count;
  union {
    int64_t ints[MOST_ELEMENTS];
    void* pointers[MOST_ELEMENTS];
    int enums[MOST_ELEMENTS];
  };
} attribute_t;

typedef struct descriptor_t {
  int type, count;
  bool is_final;
  attribute_t attributes[MOST_ATTRIBUTES];
  int engine;                  // of engines and configs
  struct descriptor_t* graph;  // of configs
  struct descriptor_t* read;   // owned: the config of a plan that was read from a text
} descriptor_t;

struct cudnnContext {
  CUstream stream;
  CUmodule module;
  CUfunction function;
};

#define CALL(result, name, parameters) \
  result name parameters;              \
  __attribute__((visibility("default"))) result name parameters
#define DRIVER(result, name, parameters) extern result name parameters;
RN_CUDA_DRIVER_CALLS(DRIVER)

CALL(size_t, cudnnGetVersion, (void)) {
  const char* version = getenv("RN_EMULATED_CUDNN_VERSION");
  return version ? (size_t)atoi(version) : 90000;
}
CALL(const char*, cudnnGetErrorString, (cudnnStatus_t status)) {
  return status ? "an emulated error" : "CUDNN_STATUS_SUCCESS";
}

CALL(cudnnStatus_t, cudnnCreate, (cudnnHandle_t * out)) {
  char* bytes = read_emulated_image(EMULATED_IMAGE);
  cudnnHandle_t handle = calloc(1, sizeof *handle);
  *out = handle;
  CUresult result = bytes ? cuModuleLoadData(&handle->module, bytes) : CUDA_ERROR_NOT_FOUND;
  if (!result) result = cuModuleGetFunction(&handle->function, handle->module, "emulated_conv");
  free(bytes);
  return result ? BAD_PARAM : CUDNN_STATUS_SUCCESS;
}
CALL(cudnnStatus_t, cudnnDestroy, (cudnnHandle_t handle)) {
  cuModuleUnload(handle->module);
  free(handle);
  return CUDNN_STATUS_SUCCESS;
}
CALL(cudnnStatus_t, cudnnSetStream, (cudnnHandle_t handle, CUstream stream)) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

CALL(cudnnStatus_t, cudnnBackendCreateDescriptor, (int type, cudnnBackendDescriptor_t* out)) {
  descriptor_t* descriptor = calloc(1, sizeof *descriptor);
  descriptor->type = type;
  *out = descriptor;
  return CUDNN_STATUS_SUCCESS;
}
// The text of a plan: its config, with everything that this refers to, as bytes. It ends with the
// number of bytes before that.
static bool is_link(const attribute_t* attribute) {
  return attribute->type == CUDNN_TYPE_BACKEND_DESCRIPTOR;
}
static void write_bytes(char* text, int64_t* at, const void* bytes, size_t size) {
  if (text) memcpy(text + *at, bytes, size);
  *at += (int64_t)size;
}
static void write_descriptor(const descriptor_t* from, char* text, int64_t* at) {
  write_bytes(text, at, from, sizeof *from);
  for (int i = 0; i < from->count; ++i)
    for (int64_t k = 0; is_link(&from->attributes[i]) && k < from->attributes[i].count; ++k)
      write_descriptor(from->attributes[i].pointers[k], text, at);
  if (from->graph) write_descriptor(from->graph, text, at);
}
static void free_read(descriptor_t* read) {
  if (!read) return;
  for (int i = 0; i < read->count; ++i)
    for (int64_t k = 0; is_link(&read->attributes[i]) && k < read->attributes[i].count; ++k)
      free_read(read->attributes[i].pointers[k]);
  free_read(read->graph);
  free(read);
}
static descriptor_t* read_descriptor(const char* text, int64_t size, int64_t* at) {
  if (size - *at < (int64_t)sizeof(descriptor_t)) abort();
  descriptor_t* made = malloc(sizeof *made);
  memcpy(made, text + *at, sizeof *made);
  *at += (int64_t)sizeof *made;
  for (int i = 0; i < made->count; ++i)
    for (int64_t k = 0; is_link(&made->attributes[i]) && k < made->attributes[i].count; ++k)
      made->attributes[i].pointers[k] = read_descriptor(text, size, at);
  if (made->graph) made->graph = read_descriptor(text, size, at);
  return made;
}

static struct { int asked, read; } calls;
CALL(int, emulated_cudnn_count, (const char* what)) {
  return strcmp(what, "heuristics") == 0 ? calls.asked : calls.read;
}

CALL(cudnnStatus_t, cudnnBackendDestroyDescriptor, (cudnnBackendDescriptor_t descriptor)) {
  free_read(((descriptor_t*)descriptor)->read);
  memset(descriptor, 0x5a, sizeof(descriptor_t));
  free(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

static size_t size_of(int type) {
  return type == CUDNN_TYPE_BOOLEAN ? sizeof(bool)
         : type == CUDNN_TYPE_INT64 || type == CUDNN_TYPE_DOUBLE || type == CUDNN_TYPE_HANDLE ||
                 type == CUDNN_TYPE_VOID_PTR || type == CUDNN_TYPE_BACKEND_DESCRIPTOR
             ? sizeof(int64_t)
             : sizeof(int);
}

CALL(cudnnStatus_t, cudnnBackendSetAttribute,
     (cudnnBackendDescriptor_t to, int name, int type, int64_t count, const void* elements)) {
  descriptor_t* descriptor = to;
  if (descriptor && !descriptor->is_final &&
      name == CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION && type == CUDNN_TYPE_CHAR) {
    int64_t at = 0, end = 0;
    if (getenv("EMULATED_CUDNN_NO_TEXT") || count < (int64_t)sizeof end) return NOT_SUPPORTED;
    memcpy(&end, (const char*)elements + count - sizeof end, sizeof end);
    if (end != count - (int64_t)sizeof end) return BAD_PARAM;
    descriptor->read = read_descriptor(elements, end, &at);
    ++calls.read;
    return CUDNN_STATUS_SUCCESS;
  }
  if (!descriptor || descriptor->is_final || descriptor->count == MOST_ATTRIBUTES ||
      count > MOST_ELEMENTS)
    return BAD_PARAM;
  attribute_t* attribute = &descriptor->attributes[descriptor->count++];
  *attribute = (attribute_t){.name = name, .type = type, .count = count};
  memcpy(attribute->ints, elements, (size_t)count * size_of(type));
  if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) return CUDNN_STATUS_SUCCESS;
  for (int64_t i = 0; i < count; ++i) {
    const descriptor_t* value = attribute->pointers[i];
    if (!value || !value->is_final) return BAD_PARAM;
  }
  return CUDNN_STATUS_SUCCESS;
}

static const attribute_t* find(const descriptor_t* descriptor, int name) {
  for (int i = 0; i < descriptor->count; ++i)
    if (descriptor->attributes[i].name == name) return &descriptor->attributes[i];
  return NULL;
}
static descriptor_t* find_descriptor(const descriptor_t* descriptor, int name) {
  const attribute_t* attribute = find(descriptor, name);
  return attribute ? attribute->pointers[0] : NULL;
}

// The convolution of a graph: its kind and where its attributes begin.
static const descriptor_t* convolution(const descriptor_t* graph, int* kind, int* first) {
  const attribute_t* ops = find(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
  const descriptor_t* op = ops->pointers[0];
  *kind = op->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR         ? 0
          : op->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ? 1
                                                                                     : 2;
  *first = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA + 6 * *kind;
  return op;
}

// Its geometry and tensors.
static const descriptor_t* geometry_of(const descriptor_t* graph) {
  int kind, first;
  const descriptor_t* op = convolution(graph, &kind, &first);
  return find_descriptor(op, first + 2);
}
static int64_t depth_of(const descriptor_t* graph, int index) {
  int kind, first;
  const descriptor_t* op = convolution(graph, &kind, &first);
  return find(find_descriptor(op, first + 3 + index), CUDNN_ATTR_TENSOR_DIMENSIONS)->ints[1];
}

static bool accepts(const descriptor_t* config) {
  const descriptor_t* geometry = geometry_of(config->graph);
  const attribute_t *before = find(geometry, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
                    *after = find(geometry, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS),
                    *strides = find(geometry, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  for (int64_t i = 0; i < strides->count; ++i)
    if (strides->ints[i] == 2 && before->ints[i] != after->ints[i]) return false;
  return config->engine != 0 || depth_of(config->graph, 0) == depth_of(config->graph, 1);
}

static const descriptor_t* config_of(const descriptor_t* plan) {
  return plan->read ? plan->read : find_descriptor(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
}

CALL(cudnnStatus_t, cudnnBackendFinalize, (cudnnBackendDescriptor_t to)) {
  descriptor_t* descriptor = to;
  if (descriptor->is_final) return BAD_PARAM;
  if (descriptor->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    const descriptor_t* config = config_of(descriptor);
    if (!config || !find(descriptor, CUDNN_ATTR_EXECUTION_PLAN_HANDLE)) return BAD_PARAM;
    if (!accepts(config)) return NOT_SUPPORTED;
  }
  descriptor->is_final = true;
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t get_results(const descriptor_t* query, int64_t room, int64_t* count,
                                 descriptor_t** out) {
  ++calls.asked;
  *count = room < ENGINES ? room : ENGINES;
  for (int i = 0; i < *count; ++i) {
    if (out[i]->type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR) return BAD_PARAM;
    out[i]->engine = i;
    out[i]->graph = find_descriptor(query, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    out[i]->is_final = true;
  }
  return CUDNN_STATUS_SUCCESS;
}

// The notes of an engine; EMULATED_CUDNN_NOTE is one that all have.
static int64_t get_notes(int engine, int* out) {
  const char* note = getenv("EMULATED_CUDNN_NOTE");
  int64_t count = 0;
  if (engine == 1) out[count++] = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
  if (note) out[count++] = atoi(note);
  return count;
}

// Bytes that an engine works in: EMULATED_CUDNN_WORKSPACE has numbers for the first engines.
static int64_t workspace_of(int engine) {
  const char* text = getenv("EMULATED_CUDNN_WORKSPACE");
  char* end = NULL;
  int64_t size = 0;
  for (int i = 0; text && i <= engine; ++i) {
    size = strtoll(text, &end, 10);
    text = *end == ',' ? end + 1 : i < engine ? NULL : text;
  }
  return text && size ? size : 512;
}

CALL(cudnnStatus_t, cudnnBackendGetAttribute,
     (cudnnBackendDescriptor_t from, int name, int type, int64_t room, int64_t* count,
      void* elements)) {
  const descriptor_t* descriptor = from;
  (void)type;
  if (descriptor->is_final && name == CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION) {
    int64_t end = 0;
    write_descriptor(config_of(descriptor), NULL, &end);
    *count = end + (int64_t)sizeof end;
    if (room == 0) return CUDNN_STATUS_SUCCESS;
    if (room < *count) return BAD_PARAM;
    end = 0;
    write_descriptor(config_of(descriptor), elements, &end);
    memcpy((char*)elements + end, &end, sizeof end);
    return CUDNN_STATUS_SUCCESS;
  }
  if (!descriptor->is_final || room < 1) return BAD_PARAM;
  *count = 1;
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      return get_results(descriptor, room, count, elements);
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      (*(descriptor_t**)elements)->engine = descriptor->engine;
      (*(descriptor_t**)elements)->is_final = true;
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      *count = get_notes(descriptor->engine, elements);
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      *(int64_t*)elements = workspace_of(config_of(descriptor)->engine);
      return CUDNN_STATUS_SUCCESS;
    default:
      return BAD_PARAM;
  }
}

// Fills in |out| for a tensor of a graph, with its address in the pack.
static emulated_tensor tensor_of(const descriptor_t* tensor, const descriptor_t* pack) {
  const attribute_t *dims = find(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS),
                    *strides = find(tensor, CUDNN_ATTR_TENSOR_STRIDES),
                    *number = find(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID),
                    *numbers = find(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS),
                    *addresses = find(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  emulated_tensor out = {.dims = {1, 1, 1, 1, 1}};
  for (int64_t i = 0; i < dims->count; ++i) {
    const int64_t to = i < 2 ? i : i + 5 - dims->count;
    out.dims[to] = dims->ints[i];
    out.strides[to] = strides->ints[i];
  }
  for (int64_t i = 0; i < numbers->count; ++i)
    if (numbers->ints[i] == number->ints[0]) out.data = addresses->pointers[i];
  return out;
}

// What follows the convolution: additions, the second operand of one dimension being a bias.
static void add_steps(const descriptor_t* graph, const descriptor_t* pack,
                      emulated_conv_args* args) {
  const attribute_t* ops = find(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
  for (int64_t i = 1; i < ops->count; ++i) {
    const descriptor_t* op = ops->pointers[i];
    const descriptor_t* operand = find_descriptor(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    if (operand) {
      emulated_tensor b = tensor_of(operand, pack);
      *(b.dims[0] * b.dims[2] * b.dims[3] * b.dims[4] == 1 ? &args->bias : &args->residual) = b;
    } else {
      args->has_relu = true;
    }
    args->y = tensor_of(find_descriptor(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC), pack);
  }
}

// The filter is [out_depth, planes, rows, columns, depth] or [out_depth, depth, ...], as x is.
static void order_filter(emulated_conv_args* args) {
  static const int last[5] = {1, 4, 3, 2, 0}, first[5] = {4, 3, 2, 1, 0};
  const bool is_first = args->x.strides[1] != 1;
  int64_t stride = 1;
  for (int i = 0; i < 5; ++i) {
    const int axis = is_first ? first[i] : last[i];
    args->w.strides[axis] = stride;
    stride *= args->w.dims[axis];
  }
}

CALL(cudnnStatus_t, cudnnBackendExecute,
     (cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t variant_pack)) {
  const descriptor_t *made = plan, *pack = variant_pack;
  if (!made->is_final || !pack->is_final) return BAD_PARAM;
  const descriptor_t* config = config_of(made);
  const descriptor_t *graph = config->graph, *geometry = geometry_of(graph);
  if (config->engine == 1) return EXECUTION_FAILED;
  if (!find(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE)->pointers[0]) return BAD_PARAM;
  // Attributes are w, x, y after the geometry; the gradient of w has w, x, y, that of x has w, x,
  // y.
  int kind, first;
  const descriptor_t* op = convolution(graph, &kind, &first);
  const descriptor_t *w = find_descriptor(op, first + 3), *x = find_descriptor(op, first + 4),
                     *y = find_descriptor(op, first + 5);
  emulated_conv_args args = {.x = tensor_of(x, pack),
                             .w = tensor_of(w, pack),
                             .y = tensor_of(y, pack),
                             .strides = {1, 1, 1},
                             .dilations = {1, 1, 1},
                             .kind = kind,
                             .dtype = find(x, CUDNN_ATTR_TENSOR_DATA_TYPE)->enums[0]};
  const attribute_t* strides = find(geometry, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  for (int64_t i = 0; i < strides->count; ++i) {
    const int64_t to = i + 3 - strides->count;
    args.strides[to] = strides->ints[i];
    args.dilations[to] = find(geometry, CUDNN_ATTR_CONVOLUTION_DILATIONS)->ints[i];
    args.before[to] = find(geometry, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)->ints[i];
    if (kind == 2) args.before[to] = find(geometry, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS)->ints[i];
  }
  args.is_rough = getenv("EMULATED_CUDNN_ROUGH") != NULL;
  add_steps(graph, pack, &args);
  order_filter(&args);
  size_t size = sizeof args;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &args, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  const CUresult result =
      cuLaunchKernel(handle->function, 4, 1, 1, 64, 1, 1, 0, handle->stream, NULL, extra);
  return result ? EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
}

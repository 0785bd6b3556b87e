// Operation graphs of convolutions: see cudnn_graph.h.
#include "kernels/cuda/libs/cudnn_graph.h"

#define MOST_AXES 5

cudnnBackendDescriptor_t rn_cudnn_make(rn_cudnn_graph_t* graph, int type) {
  cudnnBackendDescriptor_t descriptor = NULL;
  if (graph->status != CUDNN_STATUS_SUCCESS) return NULL;
  if (graph->count == RN_CUDNN_MOST_DESCRIPTORS) {
    graph->status = -1;
    return NULL;
  }
  graph->status = graph->cudnn->api.cudnnBackendCreateDescriptor(type, &descriptor);
  if (graph->status != CUDNN_STATUS_SUCCESS) return NULL;
  graph->made[graph->count++] = descriptor;
  return descriptor;
}

void rn_cudnn_set(rn_cudnn_graph_t* graph, cudnnBackendDescriptor_t descriptor, int name, int type,
                  int64_t count, const void* elements) {
  if (graph->status != CUDNN_STATUS_SUCCESS) return;
  graph->status =
      graph->cudnn->api.cudnnBackendSetAttribute(descriptor, name, type, count, elements);
}

void rn_cudnn_finish(rn_cudnn_graph_t* graph, cudnnBackendDescriptor_t descriptor) {
  if (graph->status != CUDNN_STATUS_SUCCESS) return;
  graph->status = graph->cudnn->api.cudnnBackendFinalize(descriptor);
}

void rn_cudnn_graph_drop(rn_cudnn_graph_t* graph) {
  while (graph->count > 0)
    graph->cudnn->api.cudnnBackendDestroyDescriptor(graph->made[--graph->count]);
  graph->graph = NULL;
}

static void set_int(rn_cudnn_graph_t* graph, cudnnBackendDescriptor_t descriptor, int name,
                    int64_t value) {
  rn_cudnn_set(graph, descriptor, name, CUDNN_TYPE_INT64, 1, &value);
}
static void set_enum(rn_cudnn_graph_t* graph, cudnnBackendDescriptor_t descriptor, int name,
                     int type, int value) {
  rn_cudnn_set(graph, descriptor, name, type, 1, &value);
}
static void set_descriptor(rn_cudnn_graph_t* graph, cudnnBackendDescriptor_t descriptor, int name,
                           cudnnBackendDescriptor_t value) {
  rn_cudnn_set(graph, descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static int type_of(int64_t dtype) {
  return dtype == RN_DOUBLE     ? CUDNN_DATA_DOUBLE
         : dtype == RN_HALF     ? CUDNN_DATA_HALF
         : dtype == RN_BFLOAT16 ? CUDNN_DATA_BFLOAT16
                                : CUDNN_DATA_FLOAT;
}
static int sum_type_of(int64_t dtype) {
  return dtype == RN_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

typedef struct tensor_t {
  int64_t dims[MOST_AXES], strides[MOST_AXES];
  int64_t number, alignment;
  int type;
  bool is_virtual;
} tensor_t;

static cudnnBackendDescriptor_t make_tensor(rn_cudnn_graph_t* graph, const tensor_t* tensor,
                                            int64_t rank) {
  cudnnBackendDescriptor_t made = rn_cudnn_make(graph, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  set_enum(graph, made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, tensor->type);
  rn_cudnn_set(graph, made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, rank, tensor->dims);
  rn_cudnn_set(graph, made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, rank, tensor->strides);
  set_int(graph, made, CUDNN_ATTR_TENSOR_UNIQUE_ID, tensor->number);
  set_int(graph, made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, tensor->alignment);
  if (tensor->is_virtual)
    rn_cudnn_set(graph, made, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &(bool){true});
  rn_cudnn_finish(graph, made);
  return made;
}

// Fills strides for dims [a, c, spatial...], stored as [a, spatial..., c] or in that order.
static void pack(tensor_t* tensor, int64_t rank, bool is_channels_first) {
  int64_t stride = 1;
  if (!is_channels_first) tensor->strides[1] = stride, stride *= tensor->dims[1];
  for (int64_t a = rank - 1; a >= 2; --a) tensor->strides[a] = stride, stride *= tensor->dims[a];
  if (is_channels_first) tensor->strides[1] = stride, stride *= tensor->dims[1];
  tensor->strides[0] = stride;
}

static tensor_t describe(const rn_cuda_conv_t* conv, int number) {
  tensor_t tensor = {.number = number, .alignment = conv->alignment, .type = type_of(conv->dtype)};
  bool is_x = number == RN_CUDNN_X, is_bias = number == RN_CUDNN_BIAS;
  tensor.dims[0] = is_bias ? 1 : conv->batch;
  tensor.dims[1] = is_x ? conv->in_depth : conv->out_depth;
  for (int64_t a = 0; a < conv->rank; ++a) {
    const rn_window_axis_t* axis = &conv->axes[3 - conv->rank + a];
    tensor.dims[2 + a] = is_bias ? 1 : is_x ? axis->in : axis->out;
  }
  pack(&tensor, conv->rank + 2, conv->is_channels_first);
  return tensor;
}

// cuDNN's engines accept other strides of a filter, too, and compute something else.
static tensor_t describe_filter(const rn_cuda_conv_t* conv) {
  tensor_t tensor = {
      .number = RN_CUDNN_W, .alignment = conv->alignment, .type = type_of(conv->dtype)};
  tensor.dims[0] = conv->out_depth;
  tensor.dims[1] = conv->in_depth / conv->groups;
  for (int64_t a = 0; a < conv->rank; ++a)
    tensor.dims[2 + a] = conv->axes[3 - conv->rank + a].filter;
  pack(&tensor, conv->rank + 2, conv->is_channels_first);
  return tensor;
}

static cudnnBackendDescriptor_t make_geometry(rn_cudnn_graph_t* graph, const rn_cuda_conv_t* conv) {
  int64_t strides[3], dilations[3], before[3], after[3];
  for (int64_t a = 0; a < conv->rank; ++a) {
    const rn_window_axis_t* axis = &conv->axes[3 - conv->rank + a];
    strides[a] = axis->stride;
    dilations[a] = axis->dilation;
    before[a] = axis->before;
    after[a] = axis->after;
  }
  struct {
    int name;
    const int64_t* values;
  } const lists[] = {{CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, strides},
                     {CUDNN_ATTR_CONVOLUTION_DILATIONS, dilations},
                     {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, before},
                     {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, after}};
  cudnnBackendDescriptor_t made = rn_cudnn_make(graph, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  set_int(graph, made, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, conv->rank);
  set_enum(graph, made, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
           sum_type_of(conv->dtype));
  set_enum(graph, made, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
           CUDNN_CROSS_CORRELATION);
  for (size_t i = 0; i < sizeof lists / sizeof *lists; ++i)
    rn_cudnn_set(graph, made, lists[i].name, CUDNN_TYPE_INT64, conv->rank, lists[i].values);
  rn_cudnn_finish(graph, made);
  return made;
}

// The descriptor and attributes of each kind of convolution.
static const struct {
  int type, alpha, beta, geometry, x, w, y;
} kinds[] = {
    [RN_CONV_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    [RN_CONV_INPUT] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    [RN_CONV_FILTER] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
};

static cudnnBackendDescriptor_t make_convolution(rn_cudnn_graph_t* graph,
                                                 const rn_cuda_conv_t* conv,
                                                 cudnnBackendDescriptor_t y) {
  tensor_t x = describe(conv, RN_CUDNN_X), w = describe_filter(conv);
  cudnnBackendDescriptor_t x_made = make_tensor(graph, &x, conv->rank + 2);
  cudnnBackendDescriptor_t w_made = make_tensor(graph, &w, conv->rank + 2);
  cudnnBackendDescriptor_t geometry = make_geometry(graph, conv);
  cudnnBackendDescriptor_t made = rn_cudnn_make(graph, kinds[conv->kind].type);
  bool is_double = conv->dtype == RN_DOUBLE;
  int scalar = is_double ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT;
  const void* one = is_double ? (const void*)&(double){1} : (const void*)&(float){1};
  const void* zero = is_double ? (const void*)&(double){0} : (const void*)&(float){0};
  rn_cudnn_set(graph, made, kinds[conv->kind].alpha, scalar, 1, one);
  rn_cudnn_set(graph, made, kinds[conv->kind].beta, scalar, 1, zero);
  set_descriptor(graph, made, kinds[conv->kind].geometry, geometry);
  set_descriptor(graph, made, kinds[conv->kind].x, x_made);
  set_descriptor(graph, made, kinds[conv->kind].w, w_made);
  set_descriptor(graph, made, kinds[conv->kind].y, y);
  rn_cudnn_finish(graph, made);
  return made;
}

// y = |mode|(x, b); |b| is NULL for operations of one operand.
static cudnnBackendDescriptor_t make_pointwise(rn_cudnn_graph_t* graph, int mode, int type,
                                               cudnnBackendDescriptor_t x,
                                               cudnnBackendDescriptor_t b,
                                               cudnnBackendDescriptor_t y) {
  cudnnBackendDescriptor_t how = rn_cudnn_make(graph, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  set_enum(graph, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  set_enum(graph, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, type);
  rn_cudnn_finish(graph, how);
  cudnnBackendDescriptor_t made =
      rn_cudnn_make(graph, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  set_descriptor(graph, made, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
  set_descriptor(graph, made, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (b) set_descriptor(graph, made, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
  set_descriptor(graph, made, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  rn_cudnn_finish(graph, made);
  return made;
}

bool rn_cudnn_graph_make(const rn_cudnn_t* cudnn, const rn_cuda_conv_t* conv,
                         rn_cudnn_graph_t* out) {
  *out = (rn_cudnn_graph_t){.cudnn = cudnn};
  // The steps after the convolution, in the order that cuDNN's fused engines know.
  struct {
    bool is_there;
    int mode, operand;
  } const steps[] = {{conv->has_residual, CUDNN_POINTWISE_ADD, RN_CUDNN_RESIDUAL},
                     {conv->has_bias, CUDNN_POINTWISE_ADD, RN_CUDNN_BIAS},
                     {conv->has_relu, CUDNN_POINTWISE_RELU_FWD, 0}};
  int left = steps[0].is_there + steps[1].is_there + steps[2].is_there, count = 0;
  cudnnBackendDescriptor_t ops[4], value = NULL;
  for (int s = -1; s < 3; ++s) {
    if (s >= 0 && !steps[s].is_there) continue;
    tensor_t y = describe(conv, RN_CUDNN_Y), b = {0};
    if (left-- > 0) {
      y.is_virtual = true;
      y.number = RN_CUDNN_VIRTUAL + count;
      y.type = sum_type_of(conv->dtype);
    }
    cudnnBackendDescriptor_t made = make_tensor(out, &y, conv->rank + 2), operand = NULL;
    if (s >= 0 && steps[s].operand) {
      b = describe(conv, steps[s].operand);
      operand = make_tensor(out, &b, conv->rank + 2);
    }
    ops[count++] =
        s < 0 ? make_convolution(out, conv, made)
              : make_pointwise(out, steps[s].mode, sum_type_of(conv->dtype), value, operand, made);
    value = made;
  }
  cudnnBackendDescriptor_t graph = rn_cudnn_make(out, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  rn_cudnn_set(out, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &cudnn->handle);
  rn_cudnn_set(out, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count,
               ops);
  rn_cudnn_finish(out, graph);
  out->graph = graph;
  return out->status == CUDNN_STATUS_SUCCESS;
}

// A convolution as one of cuDNN's operation graphs. Private to cudnn_graph.c and cudnn_conv.c.
#ifndef RUNNEL_KERNELS_CUDA_LIBS_CUDNN_GRAPH_H_
#define RUNNEL_KERNELS_CUDA_LIBS_CUDNN_GRAPH_H_

#include "kernels/cuda/libs/cudnn.h"
#include "kernels/cuda/libs/cudnn_conv.h"

#define RN_CUDNN_MOST_DESCRIPTORS 24

// Numbers of the tensors in a graph.
enum { RN_CUDNN_X = 1, RN_CUDNN_W, RN_CUDNN_Y, RN_CUDNN_BIAS, RN_CUDNN_RESIDUAL, RN_CUDNN_VIRTUAL };

// A graph and the descriptors that it is made of.
typedef struct rn_cudnn_graph_t {
  const rn_cudnn_t* cudnn;
  cudnnStatus_t status;  // of the first call that failed; later ones do nothing
  int count;
  cudnnBackendDescriptor_t made[RN_CUDNN_MOST_DESCRIPTORS];
  cudnnBackendDescriptor_t graph;
} rn_cudnn_graph_t;

// Makes the graph of |conv|, for a turned filter. False if cuDNN refuses it; the caller drops it in
// any case.
bool rn_cudnn_graph_make(const rn_cudnn_t* cudnn, const rn_cuda_conv_t* conv,
                         rn_cudnn_graph_t* out);
void rn_cudnn_graph_drop(rn_cudnn_graph_t* graph);

// Creates a descriptor that |graph| owns; NULL after a failure, which the others accept.
cudnnBackendDescriptor_t rn_cudnn_make(rn_cudnn_graph_t* graph, int type);
void rn_cudnn_set(rn_cudnn_graph_t* graph, cudnnBackendDescriptor_t descriptor, int name, int type,
                  int64_t count, const void* elements);
void rn_cudnn_finish(rn_cudnn_graph_t* graph, cudnnBackendDescriptor_t descriptor);

#endif  // RUNNEL_KERNELS_CUDA_LIBS_CUDNN_GRAPH_H_

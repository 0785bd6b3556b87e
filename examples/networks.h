// Networks for images and for text at any width: used by the examples and by bench/gpu.
//
//   network_t n = {.scope = s, .x = images, .classes = 10, .width = 0.125};
//   network_alexnet(&n);
//   rn_edge_t loss = rn_sparse_softmax_cross_entropy(s, labels, n.x);
//
// A layer replaces |x| by its result. Variables are floats. With |dtype| TF_BFLOAT16, products and
// convolutions take and give bfloat16, as mixed precision does: their weights are converted each
// time.
#ifndef RUNNEL_EXAMPLES_NETWORKS_H_
#define RUNNEL_EXAMPLES_NETWORKS_H_

#include "runnel/runnel.h"

typedef struct network_t {
  rn_scope_t* scope;
  rn_edge_t x;
  TF_DataType dtype;  // of products and convolutions; 0: TF_FLOAT
  int classes;
  double width;       // part of the published number of channels; 0: all
  int most_blocks;    // inceptions, or bottlenecks per stage; 0: all
  bool has_no_norms;  // biases in the place of batch normalization
  bool is_inference;  // batch normalization by the moving averages
  int64_t seed;       // of the first layer's weights; each layer takes the next
  int layers;         // made so far
} network_t;

// A convolution, and what comes after its sums.
typedef struct network_conv_t {
  int filters;
  int height, width;           // of the window; width 0: square
  int stride;                  // 0: 1
  const char* padding;         // NULL: "SAME"
  bool has_norm;               // batch normalization in the place of a bias
  rn_activation_t activation;  // NULL: none
} network_conv_t;

// Layers.
void network_convolution(network_t* n, const network_conv_t* c);
void network_conv(network_t* n, int filters, int size, int stride, const char* padding);
void network_conv_norm(network_t* n, int filters, int size, int stride, bool relu);
// Each channel separately.
void network_depthwise_norm(network_t* n, int size, int stride, rn_activation_t activation);
// Twice as high and wide, by a transposed convolution of 2 x 2.
void network_up_conv(network_t* n, int filters);
void network_max_pool(network_t* n, int size, int stride, const char* padding);
void network_average_pool(network_t* n, int size, int stride, const char* padding);
// The mean over height and width.
void network_global_pool(network_t* n);
// |x| is [rows, depth] and becomes [rows, units].
void network_dense(network_t* n, int64_t units, rn_activation_t activation);
// Flattens |x|, then up to two hidden layers (0: none) and one of the classes, as float.
void network_classify(network_t* n, int first, int second);
void network_layer_norm(network_t* n);
// Dimension |i| of an edge; -1 if it is not known.
int64_t network_dim(network_t* n, rn_edge_t edge, int i);

// Image networks: |x| is [batch, height, width, 3] and becomes [batch, classes]. As published: 224
// pixels high and wide (Overfeat 231), 1,000 classes.
void network_alexnet(network_t* n);
void network_overfeat(network_t* n);
void network_oxfordnet(network_t* n);
void network_googlenet(network_t* n);
void network_resnet50(network_t* n);
void network_vgg16(network_t* n);
void network_inception_v3(network_t* n);  // 299 pixels, at least 75
void network_mobilenet_v2(network_t* n);
void network_lenet(network_t* n);  // 28 pixels, one channel
// |x| is [batch, height, width, channels] with sides of 16 · k, and becomes [batch, height, width,
// classes].
void network_unet(network_t* n);

typedef struct network_image_t {
  const char* name;
  void (*build)(network_t* n);
  int side;        // of the published pictures
  int small_side;  // of pictures for a test
} network_image_t;
extern const network_image_t network_images[];
extern const int network_image_count;

// A transformer with normalization before each half of a block. |x| becomes [batch * time, words].
typedef struct network_transformer_t {
  int blocks, width, heads;
  int words;         // of the vocabulary
  bool is_causal;    // a word sees those before it and itself
  bool has_no_head;  // |x| becomes [batch * time, width] instead
} network_transformer_t;
void network_transformer(network_t* n, const network_transformer_t* sizes, rn_edge_t ids);

#endif  // RUNNEL_EXAMPLES_NETWORKS_H_

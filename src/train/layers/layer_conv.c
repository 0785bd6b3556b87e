// Convolutions and pools over images.
#include "train/layers/layer.h"

// The four numbers of an attribute, in the order of the data format.
typedef struct layer_conv_window_t {
  int64_t strides[4], dilation[4];
  const char* padding;
  const char* format;
  int channel_axis;
  int height, width;
} layer_conv_window_t;

static layer_conv_window_t window_of(const rn_layer_options_t* options, int size,
                                     int default_stride) {
  bool channels_first = options->data_format && strcmp(options->data_format, "NCHW") == 0;
  layer_conv_window_t w = {.strides = {1, 1, 1, 1},
                           .dilation = {1, 1, 1, 1},
                           .padding = options->padding ? options->padding : "VALID",
                           .format = channels_first ? "NCHW" : "NHWC",
                           .channel_axis = channels_first ? 1 : 3,
                           .height = size,
                           .width = options->width ? options->width : size};
  for (int i = 0; i < 2; ++i) {
    int axis = i + (channels_first ? 2 : 1);
    w.strides[axis] = options->strides[i] ? options->strides[i] : default_stride;
    w.dilation[axis] = options->dilation[i] ? options->dilation[i] : 1;
  }
  return w;
}

static bool check(rn_scope_t* s, const char* name, rn_edge_t x, int size) {
  if (size <= 0) rn_refuse(s, "Layer '%s': bad window size: %d", name, size);
  if (rn_shape_of_edge(x).rank != 4)
    rn_refuse(s, "Layer '%s': the input '%s' must have four dimensions", name, x.node->name.data);
  return rn_scope_ok(s);
}

RN_API rn_edge_t rn_conv2d_(rn_scope_t* scope, rn_edge_t x, int64_t filters, int size,
                            rn_layer_options_t options) {
  rn_scope_t* s = rn_layer_begin(scope, options.name, "conv2d", x);
  if (!s) return RN_NO_EDGE;
  rn_edge_t y = RN_NO_EDGE;
  layer_conv_window_t w = window_of(&options, size, 1);
  if (filters <= 0) rn_refuse(s, "Layer 'conv2d': bad number of filters: %lld", (long long)filters);
  if (check(s, "conv2d", x, size)) {
    int64_t depth = rn_layer_depth(s, x, w.channel_axis);
    rn_edge_t kernel = rn_layer_weights(
        s, "kernel", x, (const int64_t[]){w.height, w.width, depth, filters}, 4, &options);
    y = rn_Conv2D(s, x, kernel, w.strides, 4, w.padding, .data_format = w.format,
                  .dilations = RN_LIST(w.dilation, 4));
    y = rn_layer_end(s, y, filters, &options);
  }
  rn_scope_destroy(s);
  return y;
}

RN_API rn_edge_t rn_depthwise_conv2d_(rn_scope_t* scope, rn_edge_t x, int size,
                                      rn_layer_options_t options) {
  rn_scope_t* s = rn_layer_begin(scope, options.name, "depthwise_conv2d", x);
  if (!s) return RN_NO_EDGE;
  rn_edge_t y = RN_NO_EDGE;
  layer_conv_window_t w = window_of(&options, size, 1);
  int64_t multiplier = options.multiplier ? options.multiplier : 1;
  if (multiplier < 0)
    rn_refuse(s, "Layer 'depthwise_conv2d': bad multiplier: %d", options.multiplier);
  if (check(s, "depthwise_conv2d", x, size)) {
    int64_t depth = rn_layer_depth(s, x, w.channel_axis);
    rn_edge_t kernel =
        rn_layer_weights(s, "depthwise_kernel", x,
                         (const int64_t[]){w.height, w.width, depth, multiplier}, 4, &options);
    y = rn_DepthwiseConv2dNative(s, x, kernel, w.strides, 4, w.padding, .data_format = w.format,
                                 .dilations = RN_LIST(w.dilation, 4));
    y = rn_layer_end(s, y, depth * multiplier, &options);
  }
  rn_scope_destroy(s);
  return y;
}

// A pool's stride defaults to its window.
static rn_edge_t pool(rn_scope_t* scope, rn_edge_t x, int size, const rn_layer_options_t* options,
                      bool is_max) {
  const char* name = is_max ? "max_pool2d" : "average_pool2d";
  if (!rn_is_edge(scope, x, name, "the input") || !check(scope, name, x, size)) return RN_NO_EDGE;
  rn_scope_t* s = rn_scope_child(scope, options->name ? options->name : name);
  layer_conv_window_t w = window_of(options, size, size);
  int64_t window[4] = {1, 1, 1, 1};
  window[w.channel_axis == 1 ? 2 : 1] = w.height;
  window[w.channel_axis == 1 ? 3 : 2] = w.width;
  rn_edge_t y = is_max
                    ? rn_MaxPool(s, x, window, 4, w.strides, 4, w.padding, .data_format = w.format)
                    : rn_AvgPool(s, x, window, 4, w.strides, 4, w.padding, .data_format = w.format);
  rn_scope_destroy(s);
  return y;
}

RN_API rn_edge_t rn_max_pool2d_(rn_scope_t* scope, rn_edge_t x, int size,
                                rn_layer_options_t options) {
  return pool(scope, x, size, &options, true);
}

RN_API rn_edge_t rn_average_pool2d_(rn_scope_t* scope, rn_edge_t x, int size,
                                    rn_layer_options_t options) {
  return pool(scope, x, size, &options, false);
}

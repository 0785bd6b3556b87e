// Convolutions and their gradients on a GPU against the CPU: strides, dilations, groups, paddings,
// filters larger than the image, in every type and layout.
//
// Runs on the emulated GPU, without and with an emulated cuDNN, in the ordinary test command. To
// run it on a real one, leave RUNNEL_CUDA_PATH unset and let RUNNEL_CUDA_PART name the part that
// nvcc compiled.
#include <dlfcn.h>

#include "on_both.h"

static const rn_dtype_t types[] = {RN_FLOAT, RN_HALF, RN_BFLOAT16, RN_DOUBLE};
enum { TYPES = sizeof types / sizeof *types };

// Channels last. The filter is [rows, columns, in_depth / groups, out_depth] for images.
typedef struct conv_case_t {
  int64_t x[5], w[5];
  int64_t strides[5], dilations[5];
  const char* padding;
  int64_t pads[8];
} conv_case_t;

// A convolution and both gradients. |names| are the three ops.
static void check(const char* const names[3], int rank, rn_dtype_t dtype, bool is_first,
                  const conv_case_t* at) {
  const bool is_explicit = strcmp(at->padding, "EXPLICIT") == 0;
  both_t forward = {.op = names[0],
                    .rank = rank,
                    .is_first = is_first,
                    .input_count = 2,
                    .output_count = 1,
                    .in = {both_tensor(dtype, rank, at->x), both_tensor(dtype, rank, at->w)},
                    .image_ins = 1,
                    .image_outs = 1,
                    .strides = at->strides,
                    .dilations = at->dilations[0] ? at->dilations : NULL,
                    .pads = is_explicit ? at->pads : NULL,
                    .padding = at->padding};
  both_run(&forward);
  rn_tensor_t dy = both_tensor(dtype, rank, rn_tensor_dims(&forward.out[0]));
  both_t input = forward, filter = forward;
  input.op = names[1];
  input.input_count = filter.input_count = 3;
  input.in[0] = both_sizes(rank, at->x);
  input.in[2] = filter.in[2] = dy;
  input.image_ins = 1 | 4;
  both_run(&input);
  filter.op = names[2];
  filter.in[1] = both_sizes(rank, at->w);
  filter.image_ins = 1 | 4;
  filter.image_outs = 0;
  both_run(&filter);
  rn_tensor_clear(&input.in[0]);
  rn_tensor_clear(&filter.in[1]);
  rn_tensor_clear(&dy);
  rn_tensor_clear(&input.out[0]);
  rn_tensor_clear(&filter.out[0]);
  both_clear(&forward);
}

static const char* const image_ops[3] = {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"};
static const char* const depthwise_ops[3] = {"DepthwiseConv2dNative",
                                             "DepthwiseConv2dNativeBackpropInput",
                                             "DepthwiseConv2dNativeBackpropFilter"};
static const char* const volume_ops[3] = {"Conv3D", "Conv3DBackpropInputV2",
                                          "Conv3DBackpropFilterV2"};

#define ONES \
  { 1, 1, 1, 1, 1 }
static const conv_case_t images[] = {
    {{2, 7, 8, 3}, {3, 3, 3, 4}, ONES, ONES, "SAME", {0}},
    {{2, 7, 8, 3}, {3, 3, 3, 4}, {1, 2, 2, 1}, ONES, "SAME", {0}},
    {{1, 9, 9, 4}, {1, 1, 4, 8}, ONES, ONES, "VALID", {0}},
    {{2, 9, 10, 4}, {1, 1, 4, 6}, {1, 2, 2, 1}, ONES, "VALID", {0}},
    {{1, 10, 9, 2}, {3, 2, 2, 5}, {1, 1, 2, 1}, {1, 2, 1, 1}, "SAME", {0}},
    {{2, 11, 12, 2}, {3, 3, 2, 4}, ONES, {1, 2, 3, 1}, "VALID", {0}},
    {{2, 8, 8, 6}, {3, 3, 2, 9}, ONES, ONES, "SAME", {0}},
    {{2, 8, 8, 16}, {3, 3, 8, 16}, {1, 2, 2, 1}, ONES, "SAME", {0}},
    {{1, 6, 7, 3}, {3, 3, 3, 4}, {1, 2, 2, 1}, ONES, "EXPLICIT", {0, 0, 2, 1, 0, 3, 0, 0}},
    {{2, 6, 6, 2}, {2, 2, 2, 3}, ONES, ONES, "EXPLICIT", {0, 0, 0, 2, 1, 0, 0, 0}},
    {{1, 3, 3, 2}, {5, 5, 2, 3}, ONES, ONES, "SAME", {0}},
    {{1, 23, 23, 3}, {11, 11, 3, 8}, {1, 4, 4, 1}, ONES, "VALID", {0}},
    {{3, 5, 1, 1}, {1, 1, 1, 1}, ONES, ONES, "SAME", {0}},
    {{2, 6, 5, 8}, {3, 3, 8, 8}, ONES, ONES, "SAME", {0}},
};
// Sizes of real nets.
static const conv_case_t large_images[] = {
    {{32, 56, 56, 64}, {3, 3, 64, 64}, ONES, ONES, "SAME", {0}},
    {{16, 56, 56, 64}, {1, 1, 64, 256}, ONES, ONES, "VALID", {0}},
    {{16, 28, 28, 128}, {3, 3, 128, 256}, {1, 2, 2, 1}, ONES, "SAME", {0}},
    {{8, 224, 224, 3}, {7, 7, 3, 64}, {1, 2, 2, 1}, ONES, "EXPLICIT", {0, 0, 3, 3, 3, 3, 0, 0}},
    {{8, 14, 14, 512}, {1, 1, 512, 1024}, ONES, ONES, "SAME", {0}},
    {{8, 27, 27, 96}, {5, 5, 48, 256}, ONES, ONES, "SAME", {0}},
};
static const conv_case_t depthwise[] = {
    {{2, 7, 8, 4}, {3, 3, 4, 1}, ONES, {0}, "SAME", {0}},
    {{2, 7, 8, 4}, {3, 3, 4, 2}, {1, 2, 2, 1}, {0}, "SAME", {0}},
    {{1, 9, 6, 3}, {2, 3, 3, 3}, ONES, {0}, "VALID", {0}},
    {{1, 6, 7, 5}, {3, 3, 5, 1}, {1, 2, 2, 1}, {0}, "EXPLICIT", {0, 0, 1, 0, 2, 1, 0, 0}},
    {{2, 8, 8, 16}, {3, 3, 16, 1}, ONES, {0}, "SAME", {0}},
};
static const conv_case_t large_depthwise[] = {
    {{16, 56, 56, 64}, {3, 3, 64, 1}, ONES, {0}, "SAME", {0}},
    {{8, 28, 28, 128}, {5, 5, 128, 1}, {1, 2, 2, 1}, {0}, "SAME", {0}},
};
static const conv_case_t volumes[] = {
    {{2, 4, 5, 6, 3}, {2, 3, 2, 3, 4}, ONES, {0}, "SAME", {0}},
    {{1, 4, 5, 6, 3}, {2, 3, 2, 3, 4}, {1, 2, 1, 2, 1}, {0}, "SAME", {0}},
    {{2, 5, 5, 5, 2}, {3, 3, 3, 2, 5}, {1, 2, 2, 2, 1}, {0}, "VALID", {0}},
    {{1, 3, 4, 4, 8}, {1, 1, 1, 8, 8}, ONES, {0}, "VALID", {0}},
};

#define ALL(ops, rank, dtype, is_first, cases)                 \
  for (size_t i = 0; i < sizeof(cases) / sizeof *(cases); ++i) \
  check(ops, rank, dtype, is_first, &(cases)[i])

BOTH_TEST(gpu_conv, images_channels_last) {
  for (int t = 0; t < TYPES; ++t) ALL(image_ops, 4, types[t], false, images);
}
BOTH_TEST(gpu_conv, images_channels_first) {
  for (int t = 0; t < TYPES; ++t) ALL(image_ops, 4, types[t], true, images);
}
BOTH_TEST(gpu_conv, large_images_channels_last) {
  for (int t = 0; is_real() && t < 3; ++t) ALL(image_ops, 4, types[t], false, large_images);
}
BOTH_TEST(gpu_conv, large_images_channels_first) {
  for (int t = 0; is_real() && t < 3; ++t) ALL(image_ops, 4, types[t], true, large_images);
}
BOTH_TEST(gpu_conv, depthwise) {
  for (int t = 0; t < TYPES; ++t)
    for (int first = 0; first < 2; ++first) ALL(depthwise_ops, 4, types[t], first, depthwise);
}
BOTH_TEST(gpu_conv, large_depthwise) {
  for (int t = 0; is_real() && t < 3; ++t)
    for (int first = 0; first < 2; ++first) ALL(depthwise_ops, 4, types[t], first, large_depthwise);
}
BOTH_TEST(gpu_conv, volumes) {
  for (int t = 0; t < TYPES; ++t)
    for (int first = 0; first < 2; ++first) ALL(volume_ops, 5, types[t], first, volumes);
}

BOTH_TEST(gpu_conv, uses_cudnn) {
  const bool wants = getenv("RN_TEST_CUDNN");
  check(image_ops, 4, RN_FLOAT, false, &images[0]);
  void* library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_NOLOAD);
  cr_assert(!wants || library);
  if (library) dlclose(library);
}

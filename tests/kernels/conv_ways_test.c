// Which algorithm a float convolution gets: our own where one group is convolved forwards, and
// Winograd's where that does less work. What the algorithms compute is tested by
// session/conv_pieces_test.c.
#include <criterion/criterion.h>

#include "kernels/cpu/nn/conv.h"

static rn_window_axis_t axis(int64_t in, int64_t filter, int64_t stride) {
  int64_t out = (in + stride - 1) / stride, pads = (out - 1) * stride + filter - in;
  if (pads < 0) pads = 0;
  return (rn_window_axis_t){.in = in,
                            .filter = filter,
                            .stride = stride,
                            .dilation = 1,
                            .out = out,
                            .before = pads / 2,
                            .after = pads - pads / 2};
}

static rn_conv_t conv_of(int64_t batch, int64_t size, int64_t in, int64_t out, int64_t filter,
                         int64_t stride) {
  return (rn_conv_t){.kind = RN_CONV_FORWARD,
                     .batch = batch,
                     .in_depth = in,
                     .out_depth = out,
                     .groups = 1,
                     .rows = axis(size, filter, stride),
                     .columns = axis(size, filter, stride)};
}

Test(conv_ways, winograd_where_it_wins) {
  static const struct {
    int64_t batch, size, channels, filter, stride;
    int wanted;
  } cases[] = {
      {1, 56, 64, 3, 1, 4},  {1, 28, 128, 3, 1, 4}, {1, 14, 256, 3, 1, 2}, {16, 14, 256, 3, 1, 4},
      {16, 7, 512, 3, 1, 4}, {1, 7, 512, 3, 1, 0},  {1, 224, 64, 3, 1, 4}, {1, 56, 64, 1, 1, 0},
      {1, 56, 64, 3, 2, 0},  {16, 224, 8, 3, 1, 0}, {1, 28, 128, 5, 1, 0}, {1, 4, 64, 3, 1, 0},
      {16, 56, 40, 3, 1, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    rn_conv_t conv = conv_of(cases[i].batch, cases[i].size, cases[i].channels, cases[i].channels,
                             cases[i].filter, cases[i].stride);
    cr_expect_eq(rn_conv_winograd_size(&conv), cases[i].wanted, "case %zu: %d", i,
                 rn_conv_winograd_size(&conv));
    cr_expect(rn_conv_tiles_fit(&conv));
    conv.groups = 2;
    cr_expect(!rn_conv_winograd_size(&conv) && !rn_conv_tiles_fit(&conv));
    conv.groups = 1;
    conv.rows.dilation = 2;
    cr_expect(!rn_conv_winograd_size(&conv));
    conv.rows.dilation = 1;
    conv.kind = RN_CONV_FILTER;
    cr_expect(!rn_conv_winograd_size(&conv) && !rn_conv_tiles_fit(&conv));
  }
}

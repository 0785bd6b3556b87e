// Gradients of patches extracted from images and volumes: each element gets the sum over all
// patches that contain it. That is a transposed depthwise convolution with a one-hot filter per
// position of the window.
#include "ops/rules.h"

// The sizes of |edge| as scalars.
static rn_edges_t sizes_of(rn_grad_t* g, rn_edge_t edge, int rank) {
  return rn_Unpack(g->scope, rn_rule_shape(g, edge, RN_INT32), rank);
}

static rn_edge_t turned(rn_grad_t* g, rn_edge_t edge, const int64_t* order, int rank) {
  return rn_Transpose(g->scope, edge, rn_rule_ints(g, RN_INT32, order, rank));
}

// |rank| is that of the images, 4 or 5.
static rn_status_t patches(rn_grad_t* g, int rank, const int64_t* rates) {
  rn_scope_t* scope = g->scope;
  rn_edge_t x = rn_grad_in(g, 0), y = rn_grad_out(g, 0), one = rn_const_int32(scope, 1);
  const rn_attr_value_t *sizes = rn_grad_attr(g, "ksizes"), *strides = rn_grad_attr(g, "strides");
  rn_edges_t in = sizes_of(g, x, rank), out = sizes_of(g, y, rank);
  int last = rank - 1;
  int64_t places = 1, window[6];
  for (int i = 1; i < last; ++i) {
    places *= sizes->list_i[i];
    window[i - 1] = sizes->list_i[i];
  }
  window[last - 1] = 1;
  window[last] = places;
  if (!rn_scope_ok(scope)) return RN_OK;  // the walk checks the scope

  // Separate window positions from channels, then move channels to the batch.
  rn_edge_t split[6], batch[6], images[6];
  for (int i = 0; i < last; ++i) split[i] = rn_edge_at(out, i);
  split[last] = rn_const_int32(scope, (int32_t)places);
  split[rank] = rn_edge_at(in, last);
  int64_t forth[6] = {0, rank}, back[5] = {0};
  for (int i = 1; i < rank; ++i) forth[i + 1] = i;
  for (int i = 1; i < last; ++i) back[i] = i + 1;
  back[last] = 1;
  rn_edge_t count = rn_Mul(scope, rn_edge_at(in, 0), rn_edge_at(in, last));
  batch[0] = images[0] = count;
  for (int i = 1; i < last; ++i) {
    batch[i] = rn_edge_at(out, i);
    images[i] = rn_edge_at(in, i);
  }
  batch[last] = split[last];
  images[last] = one;
  rn_edge_t dy = rn_Reshape(scope, rn_grad_dy(g, 0), rn_Pack(scope, split, rank + 1));
  dy = rn_Reshape(scope, turned(g, dy, forth, rank + 1), rn_Pack(scope, batch, rank));
  rn_edge_t ones = rn_Fill(scope, rn_rule_ints(g, RN_INT32, &places, 1), rn_rule_scalar(g, x, 1));
  rn_edge_t filter =
      rn_Reshape(scope, rn_MatrixDiag(scope, ones), rn_rule_ints(g, RN_INT32, window, rank));
  const char* padding = RN_RULE_TEXT(g, "padding");
  rn_edge_t shape = rn_Pack(scope, images, rank);
  rn_edge_t dx =
      rates ? rn_Conv2DBackpropInput(scope, shape, filter, dy, strides->list_i, rank, padding,
                                     .dilations = RN_LIST(rates, rank))
            : rn_Conv3DBackpropInputV2(scope, shape, filter, dy, strides->list_i, rank, padding);
  rn_edge_t apart[6] = {rn_edge_at(in, 0), rn_edge_at(in, last)};
  for (int i = 1; i < last; ++i) apart[i + 1] = rn_edge_at(in, i);
  dx = rn_Reshape(scope, dx, rn_Pack(scope, apart, rank));
  rn_grad_to(g, 0, turned(g, dx, back, rank));
  return RN_OK;
}

RN_RULE(extract_image_patches) { return patches(g, 4, rn_grad_attr(g, "rates")->list_i); }
RN_RULE(extract_volume_patches) { return patches(g, 5, NULL); }

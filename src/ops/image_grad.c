// Gradient rules of resizing.
#include "ops/rules.h"

static bool is_floating(int dtype) {
  return dtype == RN_HALF || dtype == RN_BFLOAT16 || dtype == RN_FLOAT || dtype == RN_DOUBLE;
}

RN_RULE(resize_bilinear) {
  rn_edge_t x = rn_grad_in(g, 0);
  if (!is_floating(rn_edge_dtype(x))) return RN_OK;
  rn_grad_to(g, 0, RN_RULE_ALIKE(g, "ResizeBilinearGrad", rn_grad_dy(g, 0), x));
  return RN_OK;
}

RN_RULE(resize_nearest_neighbor) {
  rn_edge_t x = rn_grad_in(g, 0), size;
  rn_shape_t shape = rn_grad_shape(g, x);
  if (shape.rank == 4 && shape.dims[1] >= 0 && shape.dims[2] >= 0) {
    size = rn_rule_ints(g, RN_INT32, &shape.dims[1], 2);
  } else {
    int64_t begin = 1, count = 2;
    size = rn_Slice(g->scope, rn_Shape(g->scope, x), rn_rule_ints(g, RN_INT32, &begin, 1),
                    rn_rule_ints(g, RN_INT32, &count, 1));
  }
  rn_grad_to(g, 0, RN_RULE_ALIKE(g, "ResizeNearestNeighborGrad", rn_grad_dy(g, 0), size));
  return RN_OK;
}

RN_RULE(resize_bicubic) {
  rn_edge_t x = rn_grad_in(g, 0);
  int dtype = rn_edge_dtype(x);
  if (dtype != RN_FLOAT && dtype != RN_DOUBLE) return RN_OK;
  rn_grad_to(g, 0, RN_RULE_ALIKE(g, "ResizeBicubicGrad", rn_grad_dy(g, 0), x));
  return RN_OK;
}

// Resizing is linear, so the gradient of its gradient is a resize to the size of the incoming
// gradient.
static rn_status_t resize_again(rn_grad_t* g, const char* op) {
  rn_edge_t grads = rn_grad_in(g, 0);
  if (!rn_grad_wants(g, 0)) return RN_OK;
  int64_t begin = 1, count = 2;
  rn_edge_t size =
      rn_Slice(g->scope, rn_rule_shape(g, grads, RN_INT32), rn_rule_ints(g, RN_INT32, &begin, 1),
               rn_rule_ints(g, RN_INT32, &count, 1));
  rn_grad_to(g, 0, RN_RULE_ALIKE(g, op, rn_grad_dy(g, 0), size));
  return RN_OK;
}

RN_RULE(resize_bilinear_grad) { return resize_again(g, "ResizeBilinear"); }
RN_RULE(resize_nearest_neighbor_grad) { return resize_again(g, "ResizeNearestNeighbor"); }
RN_RULE(resize_bicubic_grad) { return resize_again(g, "ResizeBicubic"); }

RN_RULE(crop_and_resize) {
  rn_edge_t image = rn_grad_in(g, 0), boxes = rn_grad_in(g, 1), which = rn_grad_in(g, 2);
  int dtype = rn_edge_dtype(image);
  rn_str_t method = rn_grad_attr(g, "method")->s;
  if (dtype == RN_HALF || dtype == RN_FLOAT || dtype == RN_DOUBLE) {
    rn_edge_t size = rn_rule_shape(g, image, RN_INT32);
    rn_grad_to(g, 0,
               rn_CropAndResizeGradImage(g->scope, rn_grad_dy(g, 0), boxes, which, size, dtype,
                                         .method = method.data));
  }
  rn_grad_to(g, 1, rn_CropAndResizeGradBoxes(g->scope, rn_grad_dy(g, 0), image, boxes, which));
  return RN_OK;
}

RN_RULE(scale_and_translate) {
  rn_edge_t image = rn_grad_in(g, 0);
  if (!is_floating(rn_edge_dtype(image))) return RN_OK;
  rn_edge_t wide = rn_edge_dtype(image) == RN_FLOAT ? image : rn_Cast(g->scope, image, RN_FLOAT);
  rn_edge_t dx = RN_RULE_ALIKE(g, "ScaleAndTranslateGrad", rn_grad_dy(g, 0), wide, rn_grad_in(g, 2),
                               rn_grad_in(g, 3));
  rn_grad_to(g, 0,
             rn_edge_dtype(image) == RN_FLOAT ? dx : rn_Cast(g->scope, dx, rn_edge_dtype(image)));
  return RN_OK;
}

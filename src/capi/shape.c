// TF_Shape: a shape, initially of unknown rank, that other parts of the API fill.
#include "tensorflow/c/tf_shape.h"

#include "capi/internal.h"

struct TF_Shape {
  rn_shape_t shape;  // owns its dims
};

TF_Shape* TF_NewShape(void) {
  TF_Shape* shape = NULL;
  rn_status_t status = RN_NEW(rn_capi_allocator(), &shape);
  if (!rn_ok(status)) {
    rn_status_free(status);
    return NULL;
  }
  shape->shape = RN_SHAPE_UNKNOWN;
  return shape;
}

int TF_ShapeDims(const TF_Shape* shape) { return shape ? shape->shape.rank : RN_UNKNOWN; }

int64_t TF_ShapeDimSize(const TF_Shape* shape, int d) {
  return shape && d >= 0 && d < shape->shape.rank ? shape->shape.dims[d] : RN_UNKNOWN;
}

void TF_DeleteShape(TF_Shape* shape) {
  if (shape) RN_FREE(rn_capi_allocator(), shape);
}

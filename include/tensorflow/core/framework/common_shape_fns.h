// Shape functions that many ops share.
#ifndef TENSORFLOW_CORE_FRAMEWORK_COMMON_SHAPE_FNS_H_
#define TENSORFLOW_CORE_FRAMEWORK_COMMON_SHAPE_FNS_H_

#include <algorithm>
#include <vector>

#include "tensorflow/core/framework/shape_inference.h"

namespace tensorflow {
namespace shape_inference {

inline Status UnchangedShape(InferenceContext* c) {
  if (c->num_inputs() > 0 && c->num_outputs() > 0) c->set_output(0, c->input(0));
  return OkStatus();
}
inline Status UnchangedShapeWithRank(InferenceContext* c, int32_t rank) {
  ShapeHandle out;
  TF_RETURN_IF_ERROR(c->WithRank(c->input(0), rank, &out));
  c->set_output(0, out);
  return OkStatus();
}
inline Status UnchangedShapeWithRankAtLeast(InferenceContext* c, int32_t rank) {
  ShapeHandle out;
  TF_RETURN_IF_ERROR(c->WithRankAtLeast(c->input(0), rank, &out));
  c->set_output(0, out);
  return OkStatus();
}
inline Status UnchangedShapeWithRankAtMost(InferenceContext* c, int32_t rank) {
  ShapeHandle out;
  TF_RETURN_IF_ERROR(c->WithRankAtMost(c->input(0), rank, &out));
  c->set_output(0, out);
  return OkStatus();
}
inline Status UnknownShape(InferenceContext* c) {
  for (int i = 0; i < c->num_outputs(); ++i) c->set_output(i, c->UnknownShape());
  return OkStatus();
}
inline Status NoOutputs(InferenceContext*) { return OkStatus(); }
inline Status ScalarShape(InferenceContext* c) {
  for (int i = 0; i < c->num_outputs(); ++i) c->set_output(i, c->Scalar());
  return OkStatus();
}
inline Status MergeBothInputsShapeFn(InferenceContext* c) {
  ShapeHandle out;
  TF_RETURN_IF_ERROR(c->Merge(c->input(0), c->input(1), &out));
  c->set_output(0, out);
  return OkStatus();
}
// The attribute "shape".
inline Status ExplicitShape(InferenceContext* c) {
  PartialTensorShape shape;
  TF_RETURN_IF_ERROR(c->GetAttr("shape", &shape));
  ShapeHandle out;
  TF_RETURN_IF_ERROR(c->MakeShapeFromPartialTensorShape(shape, &out));
  c->set_output(0, out);
  return OkStatus();
}
inline Status MatMulShape(InferenceContext* c) {
  ShapeHandle a, b;
  TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &a));
  TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 2, &b));
  bool transpose_a, transpose_b;
  TF_RETURN_IF_ERROR(c->GetAttr("transpose_a", &transpose_a));
  TF_RETURN_IF_ERROR(c->GetAttr("transpose_b", &transpose_b));
  DimensionHandle ignored;
  TF_RETURN_IF_ERROR(
      c->Merge(c->Dim(a, transpose_a ? 0 : 1), c->Dim(b, transpose_b ? 1 : 0), &ignored));
  c->set_output(0, c->Matrix(c->Dim(a, transpose_a ? 1 : 0), c->Dim(b, transpose_b ? 0 : 1)));
  return OkStatus();
}
// Numpy's broadcasting of inputs 0 and 1.
inline Status BroadcastBinaryOpShapeFn(InferenceContext* c) {
  ShapeHandle a = c->input(0), b = c->input(1);
  if (!c->RankKnown(a) || !c->RankKnown(b)) {
    c->set_output(0, c->UnknownShape());
    return OkStatus();
  }
  int rank = std::max(c->Rank(a), c->Rank(b));
  std::vector<DimensionHandle> dims;
  for (int d = 0; d < rank; ++d) {
    int in_a = d - rank + c->Rank(a), in_b = d - rank + c->Rank(b);
    DimensionHandle x = in_a < 0 ? c->MakeDim(1) : c->Dim(a, in_a);
    DimensionHandle y = in_b < 0 ? c->MakeDim(1) : c->Dim(b, in_b), merged;
    if (c->Value(x) == 1) {
      dims.push_back(y);
    } else if (c->Value(y) == 1) {
      dims.push_back(x);
    } else if (c->ValueKnown(x) != c->ValueKnown(y)) {
      dims.push_back(c->ValueKnown(x) ? x : y);
    } else if (!c->ValueKnown(x)) {
      dims.push_back(x.SameHandle(y) ? x : c->UnknownDim());
    } else {
      TF_RETURN_IF_ERROR(c->Merge(x, y, &merged));
      dims.push_back(merged);
    }
  }
  c->set_output(0, c->MakeShape(dims));
  return OkStatus();
}

}  // namespace shape_inference
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_FRAMEWORK_COMMON_SHAPE_FNS_H_

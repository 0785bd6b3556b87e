// The longer functions of InferenceContext. Include shape_inference.h.
#ifndef TENSORFLOW_CORE_FRAMEWORK_SHAPE_INFERENCE_IMPL_H_
#define TENSORFLOW_CORE_FRAMEWORK_SHAPE_INFERENCE_IMPL_H_

#include <algorithm>
#include <string>
#include <vector>

#include "tensorflow/core/framework/shape_inference.h"

namespace tensorflow {
namespace shape_inference {

inline InferenceContext::InferenceContext(TF_ShapeInferenceContext* ctx) : ctx_(ctx) {
  TF_ShapeHandle* shape = TF_NewShapeHandle();
  TF_DimensionHandle* dim = TF_NewDimensionHandle();
  CStatus status;
  for (int i = 0; i < TF_ShapeInferenceContextNumInputs(ctx); ++i) {
    TF_ShapeInferenceContextGetInput(ctx, i, shape, status);
    std::vector<DimensionHandle> dims;
    int64_t rank = TF_ShapeInferenceContextRank(ctx, shape);
    for (int64_t d = 0; d < rank; ++d) {
      TF_ShapeInferenceContextDim(ctx, shape, d, dim);
      dims.push_back(
          MakeDim(TF_DimensionHandleValueKnown(dim) ? TF_DimensionHandleValue(dim) : kUnknownDim));
    }
    inputs_.push_back(NewShape(rank >= 0, std::move(dims)));
  }
  TF_DeleteDimensionHandle(dim);
  TF_DeleteShapeHandle(shape);
  outputs_.resize(static_cast<size_t>(rn_shape_context_output_count(ctx)));
}

inline Status InferenceContext::Finish() {
  for (int i = 0; i < num_outputs(); ++i) {
    if (!outputs_[i].IsSet()) continue;
    std::vector<int64_t> dims;
    for (DimensionHandle d : outputs_[i].dims_->dims) dims.push_back(Value(d));
    CStatus status;
    rn_shape_context_set_output(ctx_, i, dims.data(), Rank(outputs_[i]), status);
    if (!status.ok()) return status.Get();
  }
  return OkStatus();
}

inline const Tensor* InferenceContext::input_tensor(int i) {
  auto found = values_.find(i);
  if (found == values_.end()) {
    TF_Tensor* value = rn_shape_context_input_value(ctx_, i);
    auto tensor = value ? std::make_unique<Tensor>(Tensor::FromCTensor(value)) : nullptr;
    found = values_.emplace(i, std::move(tensor)).first;
  }
  return found->second.get();
}

template <typename T>
Status InferenceContext::GetAttr(absl::string_view name, T* value) const {
  std::string key(name);
  TF_Buffer* buffer = TF_NewBuffer();
  CStatus status;
  rn_shape_context_attr(ctx_, key.c_str(), buffer, status);
  Status result = status.Get();
  AttrValue attr;
  if (result.ok() && !attr.ParseFromArray(buffer->data, static_cast<int>(buffer->length))) {
    result = errors::Internal("Attr '", key, "' cannot be parsed");
  }
  TF_DeleteBuffer(buffer);
  if (!result.ok()) return result;
  return ::tensorflow::internal::ReadAttr(key, attr, value);
}

inline Status InferenceContext::MakeShapeFromShapeTensor(int i, ShapeHandle* out) {
  ShapeHandle shape;
  TF_RETURN_IF_ERROR(WithRank(input(i), 1, &shape));
  const Tensor* value = input_tensor(i);
  *out = UnknownShape();
  if (!value) {
    if (ValueKnown(Dim(shape, 0))) *out = UnknownShapeOfRank(Value(Dim(shape, 0)));
    return OkStatus();
  }
  std::vector<DimensionHandle> dims;
  for (int64_t d = 0; d < value->NumElements(); ++d) {
    int64_t size = value->dtype() == DT_INT32 ? value->flat<int32>()(d) : value->flat<int64>()(d);
    if (size < -1) return errors::InvalidArgument("Invalid value in tensor used for shape: ", size);
    dims.push_back(MakeDim(size));
  }
  *out = NewShape(true, std::move(dims));
  return OkStatus();
}

inline Status InferenceContext::MakeDimForScalarInput(int i, DimensionHandle* out) {
  const Tensor* value = input_tensor(i);
  *out = UnknownDim();
  if (!value) return OkStatus();
  if (value->NumElements() != 1 || (value->dtype() != DT_INT32 && value->dtype() != DT_INT64)) {
    return errors::InvalidArgument("Input must be a scalar of int32 or int64 but is ",
                                   value->DebugString());
  }
  int64_t size = value->dtype() == DT_INT32 ? value->flat<int32>()(0) : value->flat<int64>()(0);
  if (size < 0)
    return errors::InvalidArgument("Dimension size, given by scalar input ", i,
                                   ", must be non-negative but is ", size);
  *out = MakeDim(size);
  return OkStatus();
}

inline Status InferenceContext::Merge(ShapeHandle a, ShapeHandle b, ShapeHandle* out) {
  if (!RankKnown(a) || !RankKnown(b) || a.SameHandle(b)) {
    *out = RankKnown(a) ? a : b;
    return OkStatus();
  }
  if (Rank(a) != Rank(b)) {
    return Fail(out, errors::InvalidArgument("Shapes must be equal rank, but are ", Rank(a),
                                             " and ", Rank(b)));
  }
  std::vector<DimensionHandle> dims(static_cast<size_t>(Rank(a)));
  for (size_t d = 0; d < dims.size(); ++d) {
    Status status = Merge(a.dims_->dims[d], b.dims_->dims[d], &dims[d]);
    if (!status.ok()) {
      return Fail(out, errors::InvalidArgument(
                           "Dimension ", d, " in both shapes must be equal, but are ",
                           Value(a.dims_->dims[d]), " and ", Value(b.dims_->dims[d]),
                           ". Shapes are ", DebugString(a), " and ", DebugString(b), "."));
    }
  }
  *out = NewShape(true, std::move(dims));
  return OkStatus();
}

inline Status InferenceContext::MergePrefix(ShapeHandle s, ShapeHandle prefix, ShapeHandle* s_out,
                                            ShapeHandle* prefix_out) {
  *s_out = s;
  *prefix_out = prefix;
  if (!RankKnown(s) || !RankKnown(prefix)) return OkStatus();
  ShapeHandle head, rest;
  TF_RETURN_IF_ERROR(WithRankAtLeast(s, Rank(prefix), &head));
  TF_RETURN_IF_ERROR(Subshape(s, 0, Rank(prefix), &head));
  TF_RETURN_IF_ERROR(Subshape(s, Rank(prefix), &rest));
  TF_RETURN_IF_ERROR(Merge(head, prefix, prefix_out));
  return Concatenate(*prefix_out, rest, s_out);
}

inline Status InferenceContext::Subshape(ShapeHandle s, int64_t start, int64_t end, int64_t stride,
                                         ShapeHandle* out) {
  int64_t rank = Rank(s);
  if (stride == 0) return Fail(out, errors::InvalidArgument("Subshape stride must not be 0"));
  if (rank == kUnknownRank) {
    *out = start == 0 && end == std::numeric_limits<int64_t>::max() && stride == 1 ? s
                                                                                   : UnknownShape();
    return OkStatus();
  }
  int64_t from = start < 0 ? start + rank : std::min(start, rank);
  int64_t to = end < 0 ? end + rank : std::min(end, rank);
  if (from < 0 || to < 0 || (stride > 0 && from > to)) {
    return Fail(
        out, errors::InvalidArgument("Subshape must have computed start <= end, but is ", from,
                                     " and ", to, " (computed from start ", start, " and end ", end,
                                     " over shape with rank ", rank, ")"));
  }
  std::vector<DimensionHandle> dims;
  for (int64_t d = from; stride > 0 ? d < to : d > to && d < rank; d += stride)
    dims.push_back(s.dims_->dims[static_cast<size_t>(d)]);
  *out = NewShape(true, std::move(dims));
  return OkStatus();
}

}  // namespace shape_inference
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_FRAMEWORK_SHAPE_INFERENCE_IMPL_H_

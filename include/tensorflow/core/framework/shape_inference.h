// InferenceContext: what shape functions of ops written in C++ see.
#ifndef TENSORFLOW_CORE_FRAMEWORK_SHAPE_INFERENCE_H_
#define TENSORFLOW_CORE_FRAMEWORK_SHAPE_INFERENCE_H_

#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runnel/shape_context.h"
#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {
namespace shape_inference {

// A dimension; two handles are the same dimension if they are equal, even if its size is unknown.
class DimensionHandle {
 public:
  DimensionHandle() : size_(nullptr) {}
  bool SameHandle(DimensionHandle other) const { return size_ == other.size_; }
  bool IsSet() const { return size_ != nullptr; }

 private:
  friend class InferenceContext;
  friend struct DimensionOrConstant;
  explicit DimensionHandle(const int64_t* size) : size_(size) {}
  const int64_t* size_;
};

struct DimensionOrConstant {
  DimensionOrConstant(DimensionHandle handle) : dim(handle), val(0) {}
  DimensionOrConstant(int64_t value) : val(value) {}
  DimensionHandle dim;  // wins if it is set
  int64_t val;
};

class ShapeHandle {
 public:
  ShapeHandle() : dims_(nullptr) {}
  bool SameHandle(ShapeHandle other) const { return dims_ == other.dims_; }
  bool IsSet() const { return dims_ != nullptr; }

 private:
  friend class InferenceContext;
  struct Dims {
    bool has_rank;
    std::vector<DimensionHandle> dims;
  };
  explicit ShapeHandle(const Dims* dims) : dims_(dims) {}
  const Dims* dims_;
};

struct ShapeAndType {
  ShapeAndType() = default;
  ShapeAndType(ShapeHandle shape, DataType dtype) : shape(shape), dtype(dtype) {}
  ShapeHandle shape;
  DataType dtype = DT_INVALID;
};

class InferenceContext {
 public:
  static constexpr int64_t kUnknownDim = -1;
  static constexpr int32_t kUnknownRank = -1;

  explicit InferenceContext(TF_ShapeInferenceContext* ctx);
  // Gives the outputs that were set to the library.
  Status Finish();

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  ShapeHandle input(int64_t i) const { return inputs_[Checked(i, inputs_.size())]; }
  DataType input_type(int64_t i) const {
    return static_cast<DataType>(rn_shape_context_input_type(ctx_, static_cast<int>(i)));
  }
  ShapeHandle output(int64_t i) const { return outputs_[Checked(i, outputs_.size())]; }
  void set_output(int i, ShapeHandle shape) { outputs_[Checked(i, outputs_.size())] = shape; }
  // What the resource behind a handle holds: never known here, and not passed on.
  const std::vector<ShapeAndType>* input_handle_shapes_and_types(int) const { return nullptr; }
  const std::vector<ShapeAndType>* output_handle_shapes_and_types(int) const { return nullptr; }
  void set_output_handle_shapes_and_types(int, const std::vector<ShapeAndType>&) {}
  // The value of an input if it is constant; NULL otherwise.
  const Tensor* input_tensor(int i);
  template <typename T>
  Status GetAttr(absl::string_view name, T* value) const;

  static int32_t Rank(ShapeHandle s) {
    return s.IsSet() && s.dims_->has_rank ? static_cast<int32_t>(s.dims_->dims.size())
                                          : kUnknownRank;
  }
  static bool RankKnown(ShapeHandle s) { return Rank(s) != kUnknownRank; }
  static int64_t Value(DimensionOrConstant d) { return d.dim.IsSet() ? *d.dim.size_ : d.val; }
  static bool ValueKnown(DimensionOrConstant d) { return Value(d) != kUnknownDim; }
  bool FullyDefined(ShapeHandle s) const {
    if (!RankKnown(s)) return false;
    for (DimensionHandle d : s.dims_->dims) {
      if (!ValueKnown(d)) return false;
    }
    return true;
  }
  // A negative index counts from the end. Unknown if the rank is.
  DimensionHandle Dim(ShapeHandle s, int64_t i) {
    int64_t rank = Rank(s);
    if (rank == kUnknownRank || i >= rank || i < -rank) return UnknownDim();
    return s.dims_->dims[static_cast<size_t>(i < 0 ? i + rank : i)];
  }
  static DimensionHandle DimKnownRank(ShapeHandle s, int64_t i) {
    return s.dims_->dims[static_cast<size_t>(i < 0 ? i + Rank(s) : i)];
  }
  DimensionHandle NumElements(ShapeHandle s) {
    if (!RankKnown(s)) return UnknownDim();
    DimensionHandle product = MakeDim(1);
    for (DimensionHandle d : s.dims_->dims) {
      if (!Multiply(product, d, &product).ok()) return UnknownDim();
    }
    return product;
  }
  std::string DebugString(ShapeHandle s) const { return ToPartialShape(s).DebugString(); }
  std::string DebugString(DimensionHandle d) const {
    return ValueKnown(d) ? std::to_string(Value(d)) : "?";
  }
  void ShapeHandleToProto(ShapeHandle s, TensorShapeProto* proto) const {
    ToPartialShape(s).AsProto(proto);
  }

  DimensionHandle MakeDim(DimensionOrConstant d) {
    if (d.dim.IsSet()) return d.dim;
    sizes_.push_back(std::make_unique<int64_t>(d.val < 0 ? kUnknownDim : d.val));
    return DimensionHandle(sizes_.back().get());
  }
  DimensionHandle UnknownDim() { return MakeDim(kUnknownDim); }
  ShapeHandle MakeShape(const std::vector<DimensionHandle>& dims) { return NewShape(true, dims); }
  ShapeHandle MakeShape(std::initializer_list<DimensionOrConstant> dims) {
    std::vector<DimensionHandle> made;
    for (const DimensionOrConstant& d : dims) made.push_back(MakeDim(d));
    return NewShape(true, std::move(made));
  }
  ShapeHandle UnknownShape() { return NewShape(false, {}); }
  ShapeHandle UnknownShapeOfRank(int64_t rank) {
    std::vector<DimensionHandle> dims;
    for (int64_t i = 0; i < rank; ++i) dims.push_back(UnknownDim());
    return NewShape(true, std::move(dims));
  }
  ShapeHandle Scalar() { return NewShape(true, {}); }
  ShapeHandle Vector(DimensionOrConstant d) { return MakeShape({d}); }
  ShapeHandle Matrix(DimensionOrConstant a, DimensionOrConstant b) { return MakeShape({a, b}); }
  Status MakeShapeFromPartialTensorShape(const PartialTensorShape& shape, ShapeHandle* out) {
    std::vector<DimensionHandle> dims;
    for (const TensorShapeDim& dim : shape) dims.push_back(MakeDim(dim.size));
    *out = NewShape(!shape.unknown_rank(), std::move(dims));
    return OkStatus();
  }
  Status MakeShapeFromTensorShape(const TensorShape& shape, ShapeHandle* out) {
    return MakeShapeFromPartialTensorShape(PartialTensorShape(shape), out);
  }
  Status MakeShapeFromShapeProto(const TensorShapeProto& proto, ShapeHandle* out) {
    PartialTensorShape shape;
    TF_RETURN_IF_ERROR(PartialTensorShape::BuildPartialTensorShape(proto, &shape));
    return MakeShapeFromPartialTensorShape(shape, out);
  }
  // The shape whose sizes input |i| holds.
  Status MakeShapeFromShapeTensor(int i, ShapeHandle* out);
  // The dimension whose size the scalar input |i| is.
  Status MakeDimForScalarInput(int i, DimensionHandle* out);

  Status WithRank(ShapeHandle s, int64_t rank, ShapeHandle* out) {
    if (RankKnown(s) && Rank(s) != rank) {
      return Fail(out,
                  errors::InvalidArgument("Shape must be rank ", rank, " but is rank ", Rank(s)));
    }
    *out = RankKnown(s) ? s : UnknownShapeOfRank(rank);
    return OkStatus();
  }
  Status WithRankAtLeast(ShapeHandle s, int64_t rank, ShapeHandle* out) {
    if (RankKnown(s) && Rank(s) < rank) {
      return Fail(out, errors::InvalidArgument("Shape must be at least rank ", rank,
                                               " but is rank ", Rank(s)));
    }
    *out = s;
    return OkStatus();
  }
  Status WithRankAtMost(ShapeHandle s, int64_t rank, ShapeHandle* out) {
    if (RankKnown(s) && Rank(s) > rank) {
      return Fail(out, errors::InvalidArgument("Shape must be at most rank ", rank, " but is rank ",
                                               Rank(s)));
    }
    *out = s;
    return OkStatus();
  }
  Status WithValue(DimensionHandle d, int64_t value, DimensionHandle* out) {
    if (ValueKnown(d) && Value(d) != value) {
      *out = DimensionHandle();
      return errors::InvalidArgument("Dimension must be ", value, " but is ", Value(d));
    }
    *out = ValueKnown(d) ? d : MakeDim(value);
    return OkStatus();
  }
  Status Merge(DimensionHandle a, DimensionHandle b, DimensionHandle* out) {
    if (ValueKnown(a) && ValueKnown(b) && Value(a) != Value(b)) {
      *out = DimensionHandle();
      return errors::InvalidArgument("Dimensions must be equal, but are ", Value(a), " and ",
                                     Value(b));
    }
    *out = ValueKnown(a) ? a : b;
    return OkStatus();
  }
  Status Merge(ShapeHandle a, ShapeHandle b, ShapeHandle* out);
  // |s| and |prefix| with their common beginning merged.
  Status MergePrefix(ShapeHandle s, ShapeHandle prefix, ShapeHandle* s_out,
                     ShapeHandle* prefix_out);
  Status Subshape(ShapeHandle s, int64_t start, ShapeHandle* out) {
    return Subshape(s, start, std::numeric_limits<int64_t>::max(), 1, out);
  }
  Status Subshape(ShapeHandle s, int64_t start, int64_t end, ShapeHandle* out) {
    return Subshape(s, start, end, 1, out);
  }
  Status Subshape(ShapeHandle s, int64_t start, int64_t end, int64_t stride, ShapeHandle* out);
  Status Concatenate(ShapeHandle a, ShapeHandle b, ShapeHandle* out) {
    if (!RankKnown(a) || !RankKnown(b)) {
      *out = UnknownShape();
      return OkStatus();
    }
    std::vector<DimensionHandle> dims = a.dims_->dims;
    dims.insert(dims.end(), b.dims_->dims.begin(), b.dims_->dims.end());
    *out = NewShape(true, std::move(dims));
    return OkStatus();
  }
  Status ReplaceDim(ShapeHandle s, int64_t i, DimensionHandle d, ShapeHandle* out) {
    if (!RankKnown(s)) {
      *out = UnknownShape();
      return OkStatus();
    }
    int64_t at = i < 0 ? i + Rank(s) : i;
    if (at < 0 || at >= Rank(s)) {
      return Fail(out, errors::InvalidArgument("Out of range dim_index ", i, " for shape with ",
                                               Rank(s), " dimensions"));
    }
    std::vector<DimensionHandle> dims = s.dims_->dims;
    dims[static_cast<size_t>(at)] = d;
    *out = NewShape(true, std::move(dims));
    return OkStatus();
  }

  // Arithmetic of sizes: unknown if an operand is.
  Status Add(DimensionHandle a, DimensionOrConstant b, DimensionHandle* out) {
    int64_t result = 0;
    bool is_known = ValueKnown(a) && ValueKnown(b);
    if (is_known && (__builtin_add_overflow(Value(a), Value(b), &result) || result < 0)) {
      return errors::InvalidArgument("Dimension size overflow from ", Value(b), " and ", Value(a));
    }
    *out = is_known ? MakeDim(result) : UnknownDim();
    return OkStatus();
  }
  Status Subtract(DimensionHandle a, DimensionOrConstant b, DimensionHandle* out) {
    int64_t result = 0;
    bool is_known = ValueKnown(a) && ValueKnown(b);
    if (is_known && (__builtin_sub_overflow(Value(a), Value(b), &result) || result < 0)) {
      return errors::InvalidArgument("Negative dimension size caused by subtracting ", Value(b),
                                     " from ", Value(a));
    }
    *out = is_known ? MakeDim(result) : UnknownDim();
    return OkStatus();
  }
  Status Multiply(DimensionHandle a, DimensionOrConstant b, DimensionHandle* out) {
    int64_t result = 0;
    bool is_known = ValueKnown(a) && ValueKnown(b);
    if (is_known && (__builtin_mul_overflow(Value(a), Value(b), &result) || result < 0)) {
      return errors::InvalidArgument("Dimension size overflow from ", Value(b), " and ", Value(a));
    }
    *out = is_known ? MakeDim(result) : UnknownDim();
    return OkStatus();
  }
  Status Divide(DimensionHandle a, DimensionOrConstant b, bool evenly, DimensionHandle* out) {
    int64_t divisor = Value(b), dividend = Value(a);
    *out = UnknownDim();
    if (divisor == 1) *out = a;
    if (divisor == 1 || divisor == kUnknownDim) return OkStatus();
    if (divisor <= 0) return errors::InvalidArgument("Divisor must be positive but is ", divisor);
    if (dividend == kUnknownDim) return OkStatus();
    if (evenly && dividend % divisor) {
      return errors::InvalidArgument("Dimension size must be evenly divisible by ", divisor,
                                     " but is ", dividend);
    }
    *out = MakeDim(dividend / divisor);
    return OkStatus();
  }
  Status Min(DimensionHandle a, DimensionOrConstant b, DimensionHandle* out) {
    bool is_known = ValueKnown(a) && ValueKnown(b);
    *out = Value(a) == 0 || Value(b) == 0 ? MakeDim(static_cast<int64_t>(0))
           : is_known                     ? MakeDim(std::min(Value(a), Value(b)))
                                          : UnknownDim();
    return OkStatus();
  }
  Status Max(DimensionHandle a, DimensionOrConstant b, DimensionHandle* out) {
    bool is_known = ValueKnown(a) && ValueKnown(b);
    *out = is_known ? MakeDim(std::max(Value(a), Value(b))) : UnknownDim();
    return OkStatus();
  }

 private:
  // Shapes of resources are not seen by C++ ops. Indices out of range are the program's error.
  static size_t Checked(int64_t i, size_t count) {
    CHECK_GE(i, 0);
    CHECK_LT(static_cast<size_t>(i), count);
    return static_cast<size_t>(i);
  }
  static Status Fail(ShapeHandle* out, Status status) {
    *out = ShapeHandle();
    return status;
  }
  ShapeHandle NewShape(bool has_rank, std::vector<DimensionHandle> dims) {
    shapes_.push_back(std::make_unique<ShapeHandle::Dims>());
    shapes_.back()->has_rank = has_rank;
    shapes_.back()->dims = std::move(dims);
    return ShapeHandle(shapes_.back().get());
  }
  PartialTensorShape ToPartialShape(ShapeHandle s) const {
    if (!RankKnown(s)) return PartialTensorShape();
    std::vector<int64_t> dims;
    for (DimensionHandle d : s.dims_->dims) dims.push_back(Value(d));
    return PartialTensorShape(absl::Span<const int64_t>(dims));
  }

  TF_ShapeInferenceContext* ctx_;
  std::vector<ShapeHandle> inputs_;
  std::vector<ShapeHandle> outputs_;
  std::map<int, std::unique_ptr<Tensor>> values_;
  std::vector<std::unique_ptr<int64_t>> sizes_;
  std::vector<std::unique_ptr<ShapeHandle::Dims>> shapes_;
};

}  // namespace shape_inference
}  // namespace tensorflow

#include "tensorflow/core/framework/shape_inference_impl.h"

#endif  // TENSORFLOW_CORE_FRAMEWORK_SHAPE_INFERENCE_H_

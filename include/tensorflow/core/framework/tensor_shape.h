// TensorShape, and PartialTensorShape, whose dimensions and rank may be unknown (-1).
//
// Functions without a Status abort on a shape that cannot be, as CHECK does; each has a twin with a
// Status (AddDimWithStatus, BuildTensorShape).
#ifndef TENSORFLOW_CORE_FRAMEWORK_TENSOR_SHAPE_H_
#define TENSORFLOW_CORE_FRAMEWORK_TENSOR_SHAPE_H_

#include <initializer_list>
#include <ostream>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {

struct TensorShapeDim {
  explicit TensorShapeDim(int64_t s) : size(s) {}
  int64_t size;
};

// What both kinds of shape share. |kIsPartial| allows -1.
template <typename Shape, bool kIsPartial>
class TensorShapeBase {
 public:
  typedef absl::InlinedVector<int64_t, 4> Dims;

  // Walks over the dimensions: for (auto dim : shape) … dim.size …
  class Iter {
   public:
    explicit Iter(const int64_t* at) : at_(at) {}
    bool operator==(const Iter& other) const { return at_ == other.at_; }
    bool operator!=(const Iter& other) const { return at_ != other.at_; }
    void operator++() { ++at_; }
    TensorShapeDim operator*() const { return TensorShapeDim(*at_); }

   private:
    const int64_t* at_;
  };

  TensorShapeBase() : is_unknown_(kIsPartial), elements_(kIsPartial ? -1 : 1) {}
  explicit TensorShapeBase(absl::Span<const int64_t> dims) : TensorShapeBase() {
    TF_CHECK_OK(BuildTensorShapeBase(dims, this));
  }
  TensorShapeBase(std::initializer_list<int64_t> dims)
      : TensorShapeBase(absl::Span<const int64_t>(dims)) {}
  TensorShapeBase(const TensorShapeProto& proto) : TensorShapeBase() {
    TF_CHECK_OK(BuildTensorShapeBase(proto, this));
  }

  static Status BuildTensorShapeBase(absl::Span<const int64_t> dims, TensorShapeBase* out) {
    TensorShapeBase made;
    made.is_unknown_ = false;
    for (int64_t dim : dims) TF_RETURN_IF_ERROR(CheckSize(dim));
    if (dims.size() > size_t{MaxDimensions()}) return TooManyDimensions();
    TF_RETURN_IF_ERROR(made.Replace(Dims(dims.begin(), dims.end())));
    *out = made;
    return OkStatus();
  }
  static Status BuildTensorShapeBase(const TensorShapeProto& proto, TensorShapeBase* out) {
    if (proto.unknown_rank()) {
      if (!kIsPartial) return errors::InvalidArgument("Unknown rank in ", proto.DebugString());
      *out = TensorShapeBase();
      return OkStatus();
    }
    std::vector<int64_t> dims;
    for (const auto& dim : proto.dim()) dims.push_back(dim.size());
    return BuildTensorShapeBase(dims, out);
  }
  static Status IsValidShape(const TensorShapeProto& proto) {
    TensorShapeBase ignored;
    return BuildTensorShapeBase(proto, &ignored);
  }
  static bool IsValid(const TensorShapeProto& proto) { return IsValidShape(proto).ok(); }
  static constexpr int MaxDimensions() { return 254; }

  int dims() const { return is_unknown_ ? -1 : static_cast<int>(dims_.size()); }
  bool unknown_rank() const { return is_unknown_; }
  int64_t num_elements() const { return elements_; }
  bool IsFullyDefined() const { return elements_ >= 0; }
  Dims dim_sizes() const { return dims_; }
  int64_t dim_size(int d) const {
    if (is_unknown_) return -1;
    CHECK_GE(d, 0);
    CHECK_LT(d, dims());
    return dims_[d];
  }
  Iter begin() const { return Iter(dims_.data()); }
  Iter end() const { return Iter(dims_.data() + dims_.size()); }

  Status AddDimWithStatus(int64_t size) { return InsertDimWithStatus(-1, size); }
  // |d| == -1 appends.
  Status InsertDimWithStatus(int d, int64_t size) {
    if (is_unknown_) return OkStatus();
    TF_RETURN_IF_ERROR(CheckSize(size));
    if (dims() >= MaxDimensions()) return TooManyDimensions();
    Dims made = dims_;
    made.push_back(size);
    for (int i = dims(); d >= 0 && i > d; --i) std::swap(made[i], made[i - 1]);
    return Replace(std::move(made));
  }
  void AddDim(int64_t size) { TF_CHECK_OK(AddDimWithStatus(size)); }
  void InsertDim(int d, int64_t size) {
    CHECK_GE(d, 0);
    CHECK_LE(d, dims());
    TF_CHECK_OK(InsertDimWithStatus(d, size));
  }
  Status SetDimWithStatus(int d, int64_t size) {
    if (d < 0 || d >= dims())
      return errors::Internal("Dimension ", d, " of a shape of rank ", dims());
    if (size < (kIsPartial ? -1 : 0)) {
      return errors::Internal("Expected a non-negative dimension size, got ", size);
    }
    Dims made = dims_;
    made[d] = size;
    return Replace(std::move(made));
  }
  void set_dim(int d, int64_t size) { TF_CHECK_OK(SetDimWithStatus(d, size)); }
  Status RemoveDimRangeWithStatus(int begin, int end) {
    if (is_unknown_) return OkStatus();
    if (begin < 0) begin += dims() + 1;
    if (end < 0) end += dims() + 1;
    if (begin < 0 || begin > dims() || end < begin || end > dims()) {
      return errors::Internal("Dimensions ", begin, " to ", end, " of a shape of rank ", dims());
    }
    Dims made = dims_;
    made.erase(made.begin() + begin, made.begin() + end);
    return Replace(std::move(made));
  }
  void RemoveDimRange(int begin, int end) { TF_CHECK_OK(RemoveDimRangeWithStatus(begin, end)); }
  void RemoveDim(int d) {
    CHECK_GE(d, 0);
    RemoveDimRange(d, d + 1);
  }
  Status RemoveDimWithStatus(int d) { return RemoveDimRangeWithStatus(d, d + 1); }
  void RemoveLastDims(int n) { RemoveDimRange(dims() - n, dims()); }
  Status AppendShapeWithStatus(const TensorShapeBase& other) {
    for (int64_t dim : other.dims_) TF_RETURN_IF_ERROR(AddDimWithStatus(dim));
    return OkStatus();
  }
  void AppendShape(const TensorShapeBase& other) { TF_CHECK_OK(AppendShapeWithStatus(other)); }
  void Clear() { *this = TensorShapeBase(); }

  void AsProto(TensorShapeProto* proto) const {
    proto->Clear();
    if (is_unknown_) proto->set_unknown_rank(true);
    for (int64_t dim : dims_) proto->add_dim()->set_size(dim);
  }
  TensorShapeProto AsProto() const {
    TensorShapeProto proto;
    AsProto(&proto);
    return proto;
  }
  // "[2,?]", "<unknown>".
  std::string DebugString() const {
    if (is_unknown_) return "<unknown>";
    std::string text = "[";
    for (size_t i = 0; i < dims_.size(); ++i) {
      text += (i ? "," : "") + (dims_[i] < 0 ? std::string("?") : std::to_string(dims_[i]));
    }
    return text + "]";
  }
  static std::string DebugString(const TensorShapeProto& proto) {
    TensorShapeBase<void, true> shape;
    if (!TensorShapeBase<void, true>::BuildTensorShapeBase(proto, &shape).ok()) return "<invalid>";
    return shape.DebugString();
  }

 protected:
  static Status CheckSize(int64_t size) {
    if (size >= (kIsPartial ? -1 : 0)) return OkStatus();
    return errors::InvalidArgument(kIsPartial ? "Expected shape dimensions to be at least -1, got "
                                              : "Expected a non-negative size, got ",
                                   size);
  }
  static Status TooManyDimensions() {
    return errors::InvalidArgument("Too many dimensions in tensor");
  }
  Status Replace(Dims made) {
    int64_t elements = 1;
    for (int64_t dim : made) {
      if (elements < 0 || dim < 0) {
        elements = -1;
      } else if (__builtin_mul_overflow(elements, dim, &elements)) {
        return errors::InvalidArgument("Encountered overflow when multiplying shape dimensions");
      }
    }
    dims_ = std::move(made);
    elements_ = elements;
    return OkStatus();
  }

  Dims dims_;
  bool is_unknown_;
  int64_t elements_;  // -1: not known
};

class TensorShape;

class PartialTensorShape : public TensorShapeBase<PartialTensorShape, true> {
 public:
  typedef TensorShapeBase<PartialTensorShape, true> Base;
  using Base::Base;
  PartialTensorShape() = default;
  PartialTensorShape(const TensorShape& shape);

  static Status BuildPartialTensorShape(absl::Span<const int64_t> dims, PartialTensorShape* out) {
    return BuildTensorShapeBase(dims, out);
  }
  static Status BuildPartialTensorShape(const TensorShapeProto& proto, PartialTensorShape* out) {
    return BuildTensorShapeBase(proto, out);
  }
  PartialTensorShape Concatenate(int64_t size) const {
    PartialTensorShape made = *this;
    made.AddDim(size);
    return made;
  }
  PartialTensorShape Concatenate(const PartialTensorShape& other) const {
    if (unknown_rank() || other.unknown_rank()) return PartialTensorShape();
    PartialTensorShape made = *this;
    made.AppendShape(other);
    return made;
  }
  bool IsIdenticalTo(const PartialTensorShape& other) const {
    return is_unknown_ == other.is_unknown_ && dims_ == other.dims_;
  }
  bool IsCompatibleWith(const PartialTensorShape& other) const {
    if (is_unknown_ || other.is_unknown_) return true;
    if (dims() != other.dims()) return false;
    for (int d = 0; d < dims(); ++d) {
      if (dims_[d] >= 0 && other.dims_[d] >= 0 && dims_[d] != other.dims_[d]) return false;
    }
    return true;
  }
  Status MergeWith(const PartialTensorShape& other, PartialTensorShape* result) const {
    if (!IsCompatibleWith(other)) {
      return errors::InvalidArgument("PartialTensorShape: Incompatible shapes during merge: ",
                                     DebugString(), " vs. ", other.DebugString());
    }
    *result = is_unknown_ ? other : *this;
    if (is_unknown_ || other.is_unknown_) return OkStatus();
    for (int d = 0; d < dims(); ++d) {
      if (dims_[d] < 0) TF_RETURN_IF_ERROR(result->SetDimWithStatus(d, other.dims_[d]));
    }
    return OkStatus();
  }
  bool AsTensorShape(TensorShape* shape) const;
};
inline bool operator==(const PartialTensorShape& a, const PartialTensorShape& b) {
  return a.IsIdenticalTo(b);
}
inline bool operator!=(const PartialTensorShape& a, const PartialTensorShape& b) {
  return !(a == b);
}
inline std::ostream& operator<<(std::ostream& out, const PartialTensorShape& shape) {
  return out << shape.DebugString();
}

class TensorShape : public TensorShapeBase<TensorShape, false> {
 public:
  typedef TensorShapeBase<TensorShape, false> Base;
  using Base::Base;
  TensorShape() = default;

  static Status BuildTensorShape(absl::Span<const int64_t> dims, TensorShape* out) {
    return BuildTensorShapeBase(dims, out);
  }
  static Status BuildTensorShape(std::initializer_list<int64_t> dims, TensorShape* out) {
    return BuildTensorShapeBase(absl::Span<const int64_t>(dims), out);
  }
  static Status BuildTensorShape(const TensorShapeProto& proto, TensorShape* out) {
    return BuildTensorShapeBase(proto, out);
  }
  bool IsSameSize(const TensorShape& other) const { return dims_ == other.dims_; }

  template <int NDIMS, typename IndexType = Eigen::DenseIndex>
  Eigen::DSizes<IndexType, NDIMS> AsEigenDSizes() const {
    CHECK_EQ(NDIMS, dims());
    return AsEigenDSizesWithPadding<NDIMS, IndexType>();
  }
  // Dimensions beyond the rank are 1.
  template <int NDIMS, typename IndexType = Eigen::DenseIndex>
  Eigen::DSizes<IndexType, NDIMS> AsEigenDSizesWithPadding() const {
    CHECK_GE(NDIMS, dims());
    Eigen::DSizes<IndexType, NDIMS> sizes;
    for (int d = 0; d < NDIMS; ++d) sizes[d] = d < dims() ? static_cast<IndexType>(dims_[d]) : 1;
    return sizes;
  }
};
inline bool operator==(const TensorShape& a, const TensorShape& b) { return a.IsSameSize(b); }
inline bool operator!=(const TensorShape& a, const TensorShape& b) { return !a.IsSameSize(b); }
inline std::ostream& operator<<(std::ostream& out, const TensorShape& shape) {
  return out << shape.DebugString();
}

inline PartialTensorShape::PartialTensorShape(const TensorShape& shape)
    : PartialTensorShape(absl::Span<const int64_t>(shape.dim_sizes())) {}
inline bool PartialTensorShape::AsTensorShape(TensorShape* shape) const {
  return IsFullyDefined() &&
         TensorShape::BuildTensorShape(absl::Span<const int64_t>(dims_), shape).ok();
}

class TensorShapeUtils {
 public:
  static bool IsScalar(const TensorShape& shape) { return shape.dims() == 0; }
  static bool IsVector(const TensorShape& shape) { return shape.dims() == 1; }
  static bool IsVectorOrHigher(const TensorShape& shape) { return shape.dims() >= 1; }
  static bool IsMatrix(const TensorShape& shape) { return shape.dims() == 2; }
  static bool IsMatrixOrHigher(const TensorShape& shape) { return shape.dims() >= 2; }
  static bool IsSquareMatrix(const TensorShape& shape) {
    return shape.dims() == 2 && shape.dim_size(0) == shape.dim_size(1);
  }
  template <typename T, typename Shape>
  static Status MakeShape(const T* dims, int64_t n, Shape* out) {
    return MakeShape(absl::Span<const T>(dims, static_cast<size_t>(n)), out);
  }
  template <typename Dims, typename Shape>
  static Status MakeShape(const Dims& dims, Shape* out) {
    std::vector<int64_t> wide(dims.begin(), dims.end());
    return Shape::BuildTensorShapeBase(wide, out);
  }
  static std::string ShapeListString(absl::Span<const TensorShape> shapes) {
    std::string text = "[";
    for (size_t i = 0; i < shapes.size(); ++i) text += (i ? ", " : "") + shapes[i].DebugString();
    return text + "]";
  }
  static bool StartsWith(const TensorShape& shape, const TensorShape& prefix) {
    if (shape.dims() < prefix.dims()) return false;
    for (int d = 0; d < prefix.dims(); ++d) {
      if (shape.dim_size(d) != prefix.dim_size(d)) return false;
    }
    return true;
  }
  static bool EndsWith(const TensorShape& shape, const TensorShape& suffix) {
    int skip = shape.dims() - suffix.dims();
    for (int d = 0; skip >= 0 && d < suffix.dims(); ++d) {
      if (shape.dim_size(skip + d) != suffix.dim_size(d)) return false;
    }
    return skip >= 0;
  }
};

}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_FRAMEWORK_TENSOR_SHAPE_H_

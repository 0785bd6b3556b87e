// Operation, Output and Input: what constructors of ops take and give.
//
// An Input is an output of a node, or a value (a number, a string, a nested list of them, a Tensor)
// from which a constant is made.
#ifndef TENSORFLOW_CC_FRAMEWORK_OPS_H_
#define TENSORFLOW_CC_FRAMEWORK_OPS_H_

#include <functional>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <vector>

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow {

class Output;

class Operation {
 public:
  Operation() : node_(nullptr) {}
  explicit Operation(Node* node) : node_(node) {}
  int32 num_inputs() const { return node_->num_inputs(); }
  DataType input_type(int32_t i) const { return node_->input_type(i); }
  Output input(int32_t i) const;
  int32 num_outputs() const { return node_->num_outputs(); }
  DataType output_type(int32_t i) const { return node_->output_type(i); }
  Output output(int32_t i) const;
  Node* node() const { return node_; }
  uint64 hash(int32_t index) const {
    return std::hash<Node*>()(node_) * 31 + std::hash<int32>()(index);
  }
  bool operator==(const Operation& other) const { return node_ == other.node_; }

 private:
  Node* node_;
};

// Output |index| of a node; the node is NULL after an error.
class Output {
 public:
  Output() : index_(0) {}
  explicit Output(Node* node) : op_(node), index_(0) {}
  Output(Node* node, int32_t index) : op_(node), index_(index) {}
  Output(const Operation& op, int32_t index) : op_(op), index_(index) {}
  Operation op() const { return op_; }
  Node* node() const { return op_.node(); }
  int32 index() const { return index_; }
  DataType type() const { return op_.output_type(index_); }
  std::string name() const { return node()->name() + ":" + std::to_string(index_); }
  bool operator==(const Output& other) const { return op_ == other.op_ && index_ == other.index_; }
  uint64 hash() const { return op_.hash(index_); }
  TF_Output c_output() const { return TF_Output{node() ? node()->operation() : nullptr, index_}; }
  static Output From(TF_Output output) { return Output(Node::From(output.oper), output.index); }

 private:
  Operation op_;
  int32 index_;
};

inline Output Operation::output(int32_t i) const { return Output(node_, i); }
inline Output Operation::input(int32_t i) const {
  if (!node_ || i < 0 || i >= num_inputs()) return Output();
  return Output::From(TF_OperationInput(TF_Input{node_->operation(), i}));
}

struct OutputHash {
  std::size_t operator()(const Output& output) const { return output.hash(); }
};

class Input {
 public:
  // A value. Nested lists must have elements of one type and shape, or |status| is an error.
  struct Initializer {
    template <typename T, bool = std::is_convertible<T, std::string>::value>
    struct RealType {
      typedef tstring type;
    };
    template <typename T>
    struct RealType<T, false> {
      typedef T type;
    };
    template <typename T>
    using IfValue = std::enable_if_t<std::is_arithmetic<T>::value ||
                                     std::is_convertible<T, std::string>::value>;

    template <typename T, typename = IfValue<T>>
    Initializer(const T& value) : Initializer(value, TensorShape()) {}
    Initializer(const Tensor& value) : tensor(value) {}
    template <typename T, typename = IfValue<T>>
    Initializer(const T& value, const TensorShape& shape) {
      typedef typename RealType<T>::type Real;
      tensor = Tensor(DataTypeToEnum<Real>::v(), shape);
      if (!IsAllocated()) return;
      Real* out = tensor.flat<Real>().data();
      for (int64_t i = 0; i < tensor.NumElements(); ++i) out[i] = Real(value);
    }
    template <typename T, typename = IfValue<T>>
    Initializer(const std::initializer_list<T>& values)
        : Initializer(values, TensorShape({static_cast<int64_t>(values.size())})) {}
    template <typename T, typename = IfValue<T>>
    Initializer(const std::initializer_list<T>& values, const TensorShape& shape) {
      typedef typename RealType<T>::type Real;
      if (shape.num_elements() != static_cast<int64_t>(values.size())) {
        status =
            errors::InvalidArgument("Cannot construct a tensor with ", shape.num_elements(),
                                    " from an initializer list with ", values.size(), " elements");
        return;
      }
      tensor = Tensor(DataTypeToEnum<Real>::v(), shape);
      if (!IsAllocated()) return;
      Real* out = tensor.flat<Real>().data();
      for (const T& value : values) *out++ = Real(value);
    }
    Initializer(const std::initializer_list<Initializer>& rows);

    TensorProto AsTensorProto() {
      TensorProto proto;
      if (tensor.NumElements() > 1) {
        tensor.AsProtoTensorContent(&proto);
      } else {
        tensor.AsProtoField(&proto);
      }
      return proto;
    }

    Status status;
    Tensor tensor;

   private:
    bool IsAllocated() {
      if (tensor.IsInitialized()) return true;
      status = errors::ResourceExhausted("OOM when allocating tensor with shape",
                                         tensor.shape().DebugString());
      return false;
    }
  };

  Input(const Output& output) : output_(output) {}
  template <typename T, typename = Initializer::IfValue<T>>
  Input(const T& value) : Input(Initializer(value)) {}
  Input(const Initializer& value) : status_(value.status), tensor_(value.tensor) {}
  Input(const Tensor& value) : tensor_(value) {}
  Input(const std::initializer_list<Initializer>& values) : Input(Initializer(values)) {}
  // An output of a node that does not exist yet: only for loops, which this library builds itself.
  Input(const std::string& name, int32_t index, DataType type)
      : output_(static_cast<Node*>(nullptr), index), name_(name), type_(type) {}

  Node* node() const { return output_.node(); }
  std::string node_name() const { return name_; }
  int32 index() const { return output_.index(); }
  DataType data_type() const { return type_; }
  Status status() const { return status_; }
  const Tensor& tensor() const { return tensor_; }
  const Output& output() const { return output_; }

 private:
  Status status_;
  Output output_;
  Tensor tensor_;
  std::string name_;
  DataType type_ = DT_INVALID;
};

inline Input::Initializer::Initializer(const std::initializer_list<Initializer>& rows) {
  if (rows.size() == 0) {
    tensor = Tensor(DT_FLOAT, TensorShape({0}));
    return;
  }
  const Tensor& first = rows.begin()->tensor;
  for (const Initializer& row : rows) {
    if (!row.status.ok()) {
      status = row.status;
    } else if (row.tensor.dtype() != first.dtype()) {
      status = errors::InvalidArgument("Initializer list components should all have the same type");
    } else if (!row.tensor.IsSameSize(first)) {
      status =
          errors::InvalidArgument("Initializer list components should all have the same shape");
    }
    if (!status.ok()) return;
  }
  TensorShape shape = first.shape();
  status = shape.InsertDimWithStatus(0, static_cast<int64_t>(rows.size()));
  if (!status.ok()) return;
  tensor = Tensor(first.dtype(), shape);
  if (!IsAllocated()) return;
  char* out = static_cast<char*>(tensor.data());
  int64_t done = 0;
  for (const Initializer& row : rows) {
    if (first.dtype() == DT_STRING) {
      auto strings = row.tensor.flat<tstring>();
      for (int64_t i = 0; i < first.NumElements(); ++i) tensor.flat<tstring>()(done++) = strings(i);
    } else if (first.TotalBytes()) {
      std::memcpy(out, row.tensor.data(), first.TotalBytes());
      out += first.TotalBytes();
    }
  }
}

typedef std::vector<Output> OutputList;

class InputList {
 public:
  InputList(const OutputList& outputs) : inputs_(outputs.begin(), outputs.end()) {}
  InputList(const std::initializer_list<Input>& inputs) : inputs_(inputs) {}
  InputList(absl::Span<const Input> inputs) : inputs_(inputs.begin(), inputs.end()) {}
  InputList(const std::initializer_list<Output>& outputs)
      : inputs_(outputs.begin(), outputs.end()) {}
  std::vector<Input>::iterator begin() { return inputs_.begin(); }
  std::vector<Input>::iterator end() { return inputs_.end(); }
  std::vector<Input>::const_iterator begin() const { return inputs_.begin(); }
  std::vector<Input>::const_iterator end() const { return inputs_.end(); }

 private:
  std::vector<Input> inputs_;
};

}  // namespace tensorflow

#endif  // TENSORFLOW_CC_FRAMEWORK_OPS_H_

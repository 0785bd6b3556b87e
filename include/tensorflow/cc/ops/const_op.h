// Constants.
#ifndef TENSORFLOW_CC_OPS_CONST_OP_H_
#define TENSORFLOW_CC_OPS_CONST_OP_H_

#include <string>
#include <vector>

#include "tensorflow/cc/framework/op_builder.h"

namespace tensorflow {
namespace ops {

inline Output Const(const Scope& scope, const Input::Initializer& value) {
  if (!scope.ok()) return Output();
  if (!value.status.ok()) {
    scope.UpdateStatus(value.status);
    return Output();
  }
  internal::OpBuilder builder(scope, "Const", "Const");
  builder.Attr("value", value.tensor);
  builder.Attr("dtype", value.tensor.dtype());
  Operation made = builder.Finish();
  return made.node() ? made.output(0) : Output();
}

inline Output ConstFromProto(const Scope& scope, const TensorProto& proto) {
  if (!scope.ok()) return Output();
  internal::OpBuilder builder(scope, "Const", "Const");
  builder.Attr("value", proto);
  builder.Attr("dtype", proto.dtype());
  Operation made = builder.Finish();
  return made.node() ? made.output(0) : Output();
}

// A constant of type T, through a Cast if |value| has another type.
template <typename T>
Output Const(const Scope& scope, const Input::Initializer& value) {
  typedef typename Input::Initializer::RealType<T>::type Real;
  DataType type = DataTypeToEnum<Real>::v();
  if (value.status.ok() && value.tensor.dtype() != type && value.tensor.NumElements() == 0) {
    return Const(scope, Input::Initializer(Tensor(type, value.tensor.shape())));
  }
  Output made = Const(scope, value);
  if (!scope.ok() || value.tensor.dtype() == type) return made;
  internal::OpBuilder cast(scope, "Cast", "Cast");
  cast.In(made);
  cast.Attr("DstT", type);
  Operation result = cast.Finish();
  return result.node() ? result.output(0) : Output();
}
template <typename T>
Output Const(const Scope& scope, const T& value, const TensorShape shape) {
  return Const(scope, Input::Initializer(value, shape));
}
template <typename T>
Output Const(const Scope& scope, const std::initializer_list<T>& values, const TensorShape shape) {
  return Const(scope, Input::Initializer(values, shape));
}

// The output that feeds |input|, as a NodeBuilder takes it; a constant is made of a value.
inline NodeBuilder::NodeOut AsNodeOut(const Scope& scope, const Input& input) {
  if (!input.status().ok()) scope.UpdateStatus(input.status());
  if (!scope.ok()) return NodeBuilder::NodeOut();
  if (input.node()) return NodeBuilder::NodeOut(input.node(), input.index());
  Output made = Const(scope.NewSubScope("Const"), Input::Initializer(input.tensor()));
  return NodeBuilder::NodeOut(made.node(), made.index());
}
inline std::vector<NodeBuilder::NodeOut> AsNodeOutList(const Scope& scope, const InputList& list) {
  std::vector<NodeBuilder::NodeOut> outs;
  for (const Input& input : list) outs.push_back(AsNodeOut(scope, input));
  return outs;
}

}  // namespace ops
}  // namespace tensorflow

#endif  // TENSORFLOW_CC_OPS_CONST_OP_H_

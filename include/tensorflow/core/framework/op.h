// REGISTER_OP: ops written in C++, registered when their library is loaded.
//
//   REGISTER_OP("ZeroOut").Input("to_zero: int32").Output("zeroed:
//   int32").SetShapeFn(UnchangedShape);
//
// An op that cannot be registered is an error in the log.
#ifndef TENSORFLOW_CORE_FRAMEWORK_OP_H_
#define TENSORFLOW_CORE_FRAMEWORK_OP_H_

#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "tensorflow/c/ops.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace tensorflow {

typedef std::function<absl::Status(shape_inference::InferenceContext* c)> OpShapeInferenceFn;

namespace internal {

// The shape functions of the ops that were registered here, by the op's name.
class ShapeFunctions {
 public:
  static ShapeFunctions& Get() {
    static ShapeFunctions* functions = new ShapeFunctions;
    return *functions;
  }
  void Add(const std::string& op, OpShapeInferenceFn function) {
    std::lock_guard<std::mutex> lock(mutex_);
    functions_[op] = std::move(function);
  }
  // The function that the library calls. Nothing is thrown through it.
  static void Infer(TF_ShapeInferenceContext* ctx, TF_Status* out_status) {
    Status status;
    try {
      OpShapeInferenceFn function = Get().Find(rn_shape_context_op(ctx));
      shape_inference::InferenceContext context(ctx);
      if (function) status = function(&context);
      if (status.ok()) status = context.Finish();
    } catch (const std::exception& thrown) {
      status = errors::Internal("the shape function threw: ", thrown.what());
    }
    Set_TF_Status_from_Status(out_status, status);
  }

 private:
  OpShapeInferenceFn Find(const std::string& op) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = functions_.find(op);
    return found == functions_.end() ? OpShapeInferenceFn() : found->second;
  }
  std::mutex mutex_;
  std::map<std::string, OpShapeInferenceFn> functions_;
};

}  // namespace internal

class OpDefBuilder {
 public:
  explicit OpDefBuilder(const char* name)
      : name_(name), builder_(TF_NewOpDefinitionBuilder(name)) {}
  OpDefBuilder& Attr(const std::string& spec) {
    TF_OpDefinitionBuilderAddAttr(builder_, spec.c_str());
    return *this;
  }
  OpDefBuilder& Input(const std::string& spec) {
    TF_OpDefinitionBuilderAddInput(builder_, spec.c_str());
    return *this;
  }
  OpDefBuilder& Output(const std::string& spec) {
    TF_OpDefinitionBuilderAddOutput(builder_, spec.c_str());
    return *this;
  }
  OpDefBuilder& Doc(const std::string&) { return *this; }
  OpDefBuilder& SetIsCommutative() {
    TF_OpDefinitionBuilderSetIsCommutative(builder_, true);
    return *this;
  }
  OpDefBuilder& SetIsAggregate() {
    TF_OpDefinitionBuilderSetIsAggregate(builder_, true);
    return *this;
  }
  OpDefBuilder& SetIsStateful() {
    TF_OpDefinitionBuilderSetIsStateful(builder_, true);
    return *this;
  }
  OpDefBuilder& SetAllowsUninitializedInput() {
    TF_OpDefinitionBuilderSetAllowsUninitializedInput(builder_, true);
    return *this;
  }
  OpDefBuilder& SetDoNotOptimize() { return SetIsStateful(); }
  OpDefBuilder& Deprecated(int version, const std::string& explanation) {
    TF_OpDefinitionBuilderDeprecated(builder_, version, explanation.c_str());
    return *this;
  }
  OpDefBuilder& SetShapeFn(OpShapeInferenceFn function) {
    internal::ShapeFunctions::Get().Add(name_, std::move(function));
    TF_OpDefinitionBuilderSetShapeInferenceFunction(builder_, internal::ShapeFunctions::Infer);
    return *this;
  }
  Status Register() {
    CStatus status;
    TF_RegisterOpDefinition(builder_, status);
    return status.Get();
  }

 private:
  std::string name_;
  TF_OpDefinitionBuilder* builder_;  // Register takes it
};

namespace register_op {
// Registers what the expression behind REGISTER_OP built.
struct OpRegistrar {
  OpRegistrar(OpDefBuilder& builder) {
    Status status = builder.Register();
    if (!status.ok()) LOG(ERROR) << status;
  }
  OpRegistrar(OpDefBuilder&& builder) : OpRegistrar(builder) {}
};
}  // namespace register_op

}  // namespace tensorflow

#define REGISTER_OP(name) TF_REGISTER_OP_UNIQUE_(__COUNTER__, name)
#define TF_REGISTER_OP_UNIQUE_(counter, name) TF_REGISTER_OP_(counter, name)
#define TF_REGISTER_OP_(counter, name)                                                           \
  static const ::tensorflow::register_op::OpRegistrar register_op##counter TF_ATTRIBUTE_UNUSED = \
      ::tensorflow::OpDefBuilder(name)
#define REGISTER_SYSTEM_OP(name) REGISTER_OP(name)

#endif  // TENSORFLOW_CORE_FRAMEWORK_OP_H_

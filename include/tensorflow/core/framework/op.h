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
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "tensorflow/c/ops.h"
#include "tensorflow/core/framework/op_def.pb.h"
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

// The ops that the library knows, its own and those of C++.
class OpRegistry {
 public:
  static OpRegistry* Global() {
    static OpRegistry* registry = new OpRegistry;
    return registry;
  }
  // The definition lives forever. NOT_FOUND if there is none.
  Status LookUpOpDef(const std::string& op, const OpDef** def) {
    *def = nullptr;
    std::lock_guard<std::mutex> lock(mutex_);
    std::unique_ptr<OpDef>& known = defs_[op];
    if (!known) {
      auto found = std::make_unique<OpDef>();
      TF_Graph* graph = TF_NewGraph();
      TF_Buffer* buffer = TF_NewBuffer();
      CStatus status;
      TF_GraphGetOpDef(graph, op.c_str(), buffer, status);
      bool is_parsed =
          status.ok() && found->ParseFromArray(buffer->data, static_cast<int>(buffer->length));
      TF_DeleteBuffer(buffer);
      TF_DeleteGraph(graph);
      if (!is_parsed) return errors::NotFound("Op type not registered '", op, "'");
      known = std::move(found);
    }
    *def = known.get();
    return OkStatus();
  }
  // All definitions; without internal ones, whose names begin with an underscore.
  void Export(bool include_internal, OpList* ops) const {
    TF_Buffer* buffer = TF_GetAllOpList();
    OpList all;
    all.ParseFromArray(buffer->data, static_cast<int>(buffer->length));
    TF_DeleteBuffer(buffer);
    ops->clear_op();
    for (OpDef& op : *all.mutable_op()) {
      if (include_internal || op.name()[0] != '_') ops->add_op()->Swap(&op);
    }
  }
  std::string DebugString(bool include_internal) const {
    OpList ops;
    Export(include_internal, &ops);
    std::string text;
    for (const OpDef& op : ops.op()) text += op.ShortDebugString() + "\n";
    return text;
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::map<std::string, std::unique_ptr<OpDef>> defs_;
};

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

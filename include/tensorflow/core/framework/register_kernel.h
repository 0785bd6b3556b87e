// REGISTER_KERNEL_BUILDER. Include op_kernel.h.
#ifndef TENSORFLOW_CORE_FRAMEWORK_REGISTER_KERNEL_H_
#define TENSORFLOW_CORE_FRAMEWORK_REGISTER_KERNEL_H_

#include <exception>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow {
namespace register_kernel {

// What a kernel is for: Name("MatMul").Device(DEVICE_CPU).TypeConstraint<float>("T").
class Name {
 public:
  explicit Name(const char* op) : op_(op) {}
  Name& Device(const char* device) {
    device_ = device;
    return *this;
  }
  Name& Device(const DeviceType& device) { return Device(device.type()); }
  template <typename T>
  Name& TypeConstraint(const char* attr) {
    return TypeConstraint(attr, DataTypeToEnum<T>::v());
  }
  Name& TypeConstraint(const char* attr, DataType type) {
    types_.emplace_back(attr, type);
    return *this;
  }
  Name& TypeConstraint(const char* attr, absl::Span<const DataType> types) {
    for (DataType type : types) types_.emplace_back(attr, type);
    return *this;
  }
  Name& HostMemory(const char* arg) {
    host_.push_back(arg);
    return *this;
  }
  Name& Label(const char* label) {
    label_ = label;
    return *this;
  }
  Name& Priority(int32_t priority) {
    priority_ = priority;
    return *this;
  }
  const std::string& op() const { return op_; }
  const std::string& device() const { return device_; }

  Status Apply(TF_KernelBuilder* builder) const {
    CStatus status;
    for (const auto& type : types_) {
      TF_KernelBuilder_TypeConstraint(builder, type.first.c_str(),
                                      static_cast<TF_DataType>(type.second), status);
      if (!status.ok()) return status.Get();
    }
    for (const std::string& arg : host_) TF_KernelBuilder_HostMemory(builder, arg.c_str());
    if (!label_.empty()) TF_KernelBuilder_Label(builder, label_.c_str());
    if (priority_) TF_KernelBuilder_Priority(builder, priority_);
    return OkStatus();
  }

 private:
  std::string op_;
  std::string device_ = DEVICE_CPU;
  std::string label_;
  int32_t priority_ = 0;
  std::vector<std::pair<std::string, DataType>> types_;
  std::vector<std::string> host_;
};

// The functions that the library calls for a kernel of class |Kernel|. Nothing is thrown through
// them.
template <typename Kernel>
struct KernelFunctions {
  static void* Create(TF_OpKernelConstruction* c_construction) {
    OpKernelConstruction construction(c_construction);
    OpKernel* kernel = nullptr;
    if (construction.status().ok()) {
      try {
        kernel = new Kernel(&construction);
      } catch (const std::exception& thrown) {
        construction.SetStatus(
            errors::Internal("the constructor of the kernel threw: ", thrown.what()));
      }
    }
    if (construction.status().ok()) return kernel;
    delete kernel;
    CStatus status;
    Set_TF_Status_from_Status(status, construction.status());
    TF_OpKernelConstruction_Failure(c_construction, status);
    return nullptr;
  }
  static void Report(TF_OpKernelContext* c_context, const Status& status) {
    if (status.ok()) return;
    CStatus c_status;
    Set_TF_Status_from_Status(c_status, status);
    TF_OpKernelContext_Failure(c_context, c_status);
  }
  static void Compute(void* kernel, TF_OpKernelContext* c_context) {
    OpKernel* self = static_cast<OpKernel*>(kernel);
    OpKernelContext context(c_context, self);
    try {
      self->Compute(&context);
    } catch (const std::exception& thrown) {
      context.SetStatus(errors::Internal("the kernel threw: ", thrown.what()));
    }
    Report(c_context, context.status());
  }
  static void ComputeAsync(void* kernel, TF_OpKernelContext* c_context,
                           TF_AsyncOpKernelDoneCallback* done) {
    auto* self = static_cast<AsyncOpKernel*>(static_cast<OpKernel*>(kernel));
    auto context = std::make_shared<OpKernelContext>(c_context, self);
    self->ComputeAsync(context.get(), [context, c_context, done] {
      Report(c_context, context->status());
      TF_RunAsyncOpKernelDoneCallback(done);
    });
  }
  static void Delete(void* kernel) { delete static_cast<OpKernel*>(kernel); }

  static TF_KernelBuilder* NewBuilder(const Name& name) {
    const char* op = name.op().c_str();
    if constexpr (std::is_base_of<AsyncOpKernel, Kernel>::value) {
      return TF_NewAsyncKernelBuilder(op, name.device().c_str(), Create, ComputeAsync, Delete);
    } else {
      return TF_NewKernelBuilder(op, name.device().c_str(), Create, Compute, Delete);
    }
  }
};

// Registers a kernel; an error goes to the log.
template <typename Kernel>
struct KernelRegistrar {
  KernelRegistrar(const Name& name, const char* class_name) {
    TF_KernelBuilder* builder = KernelFunctions<Kernel>::NewBuilder(name);
    CStatus registered;
    Status status = name.Apply(builder);
    if (status.ok()) {
      TF_RegisterKernelBuilder(class_name, builder, registered);
      status = registered.Get();
    } else {
      TF_DeleteKernelBuilder(builder);
    }
    if (!status.ok())
      LOG(ERROR) << "kernel " << class_name << " of " << name.op() << ": " << status;
  }
};

}  // namespace register_kernel
}  // namespace tensorflow

// Brings its own semicolon, so that TF_CALL_REAL_NUMBER_TYPES may repeat it.
#define REGISTER_KERNEL_BUILDER(kernel, ...) \
  TF_REGISTER_KERNEL_UNIQUE_(__COUNTER__, kernel, __VA_ARGS__)
#define TF_REGISTER_KERNEL_UNIQUE_(counter, kernel, ...) \
  TF_REGISTER_KERNEL_(counter, kernel, __VA_ARGS__)
#define TF_REGISTER_KERNEL_(counter, kernel, ...)                                         \
  static const ::tensorflow::register_kernel::KernelRegistrar<__VA_ARGS__>                \
      register_kernel##counter TF_ATTRIBUTE_UNUSED(::tensorflow::register_kernel::kernel, \
                                                   #__VA_ARGS__);

#endif  // TENSORFLOW_CORE_FRAMEWORK_REGISTER_KERNEL_H_

// ResourceOpKernel: a kernel that makes a resource when it first runs, and returns a handle to it.
#ifndef TENSORFLOW_CORE_FRAMEWORK_RESOURCE_OP_KERNEL_H_
#define TENSORFLOW_CORE_FRAMEWORK_RESOURCE_OP_KERNEL_H_

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/platform/mutex.h"

namespace tensorflow {

// The op has the attributes container and shared_name and one output of type resource. References
// to strings, the handles of older ops, are not supported.
template <typename T>
class ResourceOpKernel : public OpKernel {
 public:
  explicit ResourceOpKernel(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES(context, context->num_outputs() > 0 && context->output_type(0) == DT_RESOURCE,
                errors::Unimplemented("a handle that is no resource"));
  }
  // A resource that has no shared_name ends with its kernel.
  ~ResourceOpKernel() override {
    if (!resource_ || !cinfo_.resource_is_private_to_kernel()) return;
    cinfo_.resource_manager()->template Delete<T>(cinfo_.container(), cinfo_.name()).IgnoreError();
  }

  void Compute(OpKernelContext* context) override {
    mutex_lock lock(mu_);
    if (!resource_) {
      T* made = nullptr;
      OP_REQUIRES_OK(context, cinfo_.Init(context->resource_manager(), def(), true));
      OP_REQUIRES_OK(context, context->resource_manager()->template LookupOrCreate<T>(
                                  cinfo_.container(), cinfo_.name(), &made, [this](T** resource) {
                                    Status status = CreateResource(resource);
                                    if (!status.ok() && *resource) (*resource)->Unref();
                                    return status;
                                  }));
      core::RefCountPtr<T> held(made);
      OP_REQUIRES_OK(context, VerifyResource(made));
      resource_ = std::move(held);
    }
    OP_REQUIRES_OK(context,
                   MakeResourceHandleToOutput<T>(context, 0, cinfo_.container(), cinfo_.name()));
  }

 protected:
  mutex mu_;
  ContainerInfo cinfo_;
  core::RefCountPtr<T> resource_;

 private:
  // Called once. The resource gets its first reference.
  virtual Status CreateResource(T** resource) = 0;
  // Whether a resource that was there already is as this kernel wants it.
  virtual Status VerifyResource(T*) { return OkStatus(); }
};

}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_FRAMEWORK_RESOURCE_OP_KERNEL_H_

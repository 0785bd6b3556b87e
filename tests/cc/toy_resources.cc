// Resources in C++: a counter that kernels share by a handle by name, by a handle that keeps it,
// and by a kernel that makes it.
#include <atomic>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_op_kernel.h"
#include "tensorflow/core/lib/core/refcount.h"
#include "tensorflow/core/lib/gtl/map_util.h"

namespace tensorflow {
namespace {

std::atomic<int> alive{0};

class Counter : public ResourceBase {
 public:
  explicit Counter(int value) : value_(value) { alive++; }
  ~Counter() override { alive--; }
  std::string DebugString() const override { return "a counter"; }
  int Next() { return value_++; }

 private:
  std::atomic<int> value_;
};
class Other : public ResourceBase {
 public:
  std::string DebugString() const override { return "another class"; }
};

REGISTER_RESOURCE_HANDLE_OP(Counter);
REGISTER_RESOURCE_HANDLE_KERNEL(Counter);

REGISTER_OP("ToyAlive")
    .Output("count: int32")
    .SetIsStateful()
    .SetShapeFn(shape_inference::ScalarShape);
class AliveOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    context->set_output(0, Tensor(static_cast<int32>(alive.load())));
  }
};
REGISTER_KERNEL_BUILDER(Name("ToyAlive").Device(DEVICE_CPU), AliveOp);

// Makes the counter of a handle by name. It must not exist yet, unless |shares|.
REGISTER_OP("ToyCounterCreate")
    .Attr("shares: bool = false")
    .Input("handle: resource")
    .Input("first: int32")
    .SetShapeFn(shape_inference::NoOutputs);
class CreateOp : public OpKernel {
 public:
  explicit CreateOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("shares", &shares_));
  }
  void Compute(OpKernelContext* context) override {
    int first = context->input(1).scalar<int32>()();
    OP_REQUIRES(context, first < 100, errors::InvalidArgument("first is ", first));
    if (!shares_) {
      OP_REQUIRES_OK(context,
                     CreateResource(context, HandleFromInput(context, 0), new Counter(first)));
      return;
    }
    core::RefCountPtr<Counter> counter;
    OP_REQUIRES_OK(context, LookupOrCreateResource<Counter>(context, HandleFromInput(context, 0),
                                                            &counter, [first](Counter** made) {
                                                              if (first < 0)
                                                                return errors::OutOfRange(
                                                                    "first is ", first);
                                                              *made = new Counter(first);
                                                              return OkStatus();
                                                            }));
  }

 private:
  bool shares_;
};
REGISTER_KERNEL_BUILDER(Name("ToyCounterCreate").Device(DEVICE_CPU), CreateOp);

REGISTER_OP("ToyCounterNext")
    .Input("handle: resource")
    .Output("number: int32")
    .SetShapeFn(shape_inference::ScalarShape);
class NextOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    Counter* counter = nullptr;
    ResourceHandle handle;
    OP_REQUIRES_OK(context, context->MatchSignature({DT_RESOURCE}, {DT_INT32}));
    OP_REQUIRES_OK(context, HandleFromInput(context, "handle", &handle));
    OP_REQUIRES_OK(context, LookupResource(context, handle, &counter));
    core::ScopedUnref unref(counter);
    Tensor* number = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({}), &number));
    number->scalar<int32>()() = counter->Next();
  }
};
REGISTER_KERNEL_BUILDER(Name("ToyCounterNext").Device(DEVICE_CPU), NextOp);

REGISTER_OP("ToyCounterExists")
    .Input("handle: resource")
    .Output("exists: bool")
    .SetShapeFn(shape_inference::ScalarShape);
REGISTER_KERNEL_BUILDER(Name("ToyCounterExists").Device(DEVICE_CPU),
                        IsResourceInitialized<Counter>);

REGISTER_OP("ToyCounterDelete")
    .Attr("wrong: bool = false")
    .Input("handle: resource")
    .SetShapeFn(shape_inference::NoOutputs);
class DeleteOp : public OpKernel {
 public:
  explicit DeleteOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("wrong", &is_wrong_));
  }
  void Compute(OpKernelContext* context) override {
    const ResourceHandle& handle = HandleFromInput(context, 0);
    if (is_wrong_)
      OP_REQUIRES_OK(context, DeleteResource<Other>(context, handle));
    else
      OP_REQUIRES_OK(context, DeleteResource<Counter>(context, handle));
  }

 private:
  bool is_wrong_;
};
REGISTER_KERNEL_BUILDER(Name("ToyCounterDelete").Device(DEVICE_CPU), DeleteOp);

// A handle that keeps a new counter.
REGISTER_OP("ToyCounterOfItsOwn")
    .Output("handle: resource")
    .SetShapeFn(shape_inference::ScalarShape);
class OwnOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    Tensor handle;
    OP_REQUIRES_OK(context, context->allocate_temp(DT_RESOURCE, TensorShape({}), &handle,
                                                   AllocatorAttributes()));
    handle.scalar<ResourceHandle>()() = ResourceHandle::MakeRefCountingHandle(
        new Counter(7), context->device()->name(), {}, context->stack_trace());
    context->set_output(0, handle);
  }
};
REGISTER_KERNEL_BUILDER(Name("ToyCounterOfItsOwn").Device(DEVICE_CPU), OwnOp);

// The counter of the kernel, or of all that have the shared_name.
REGISTER_OP("ToyCounter")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Attr("first: int = 0")
    .Output("handle: resource")
    .SetShapeFn(shape_inference::ScalarShape);
class CounterOp : public ResourceOpKernel<Counter> {
 public:
  explicit CounterOp(OpKernelConstruction* context) : ResourceOpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("first", &first_));
  }

 private:
  Status CreateResource(Counter** counter) override {
    *counter = new Counter(first_);
    return OkStatus();
  }
  int first_;
};
REGISTER_KERNEL_BUILDER(Name("ToyCounter").Device(DEVICE_CPU), CounterOp);

}  // namespace
}  // namespace tensorflow

// An op and its kernel in C++: all elements but the first become zero.
//
//   g++ -std=c++17 -shared -fPIC zero_out.cc -o zero_out.so $(pkg-config --cflags --libs
//   tensorflow_cc)
//
// In Python: tf.load_op_library('./zero_out.so').zero_out([[1, 2], [3, 4]])
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using tensorflow::DEVICE_CPU;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;

REGISTER_OP("ZeroOut")
    .Input("to_zero: int32")
    .Output("zeroed: int32")
    .SetShapeFn([](tensorflow::shape_inference::InferenceContext* c) {
      c->set_output(0, c->input(0));
      return absl::OkStatus();
    });

class ZeroOutOp : public OpKernel {
 public:
  explicit ZeroOutOp(OpKernelConstruction* context) : OpKernel(context) {}
  void Compute(OpKernelContext* context) override {
    const Tensor& from = context->input(0);
    Tensor* to = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, from.shape(), &to));
    to->flat<int>().setZero();
    if (from.NumElements() > 0) to->flat<int>()(0) = from.flat<int>()(0);
  }
};
REGISTER_KERNEL_BUILDER(Name("ZeroOut").Device(DEVICE_CPU), ZeroOutOp);

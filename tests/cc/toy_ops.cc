// Ops and kernels in C++, as a library that TF_LoadLibrary loads.
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/register_types.h"

namespace tensorflow {
namespace {

using shape_inference::DimensionHandle;
using shape_inference::InferenceContext;
using shape_inference::ShapeHandle;

// x + 1, by an op that does not say which shape it has.
REGISTER_OP("ToyShapeless").Input("x: float").Output("y: float");

class ShapelessOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    Tensor* y = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, context->input(0).shape(), &y));
    y->flat<float>() = context->input(0).flat<float>() + 1.f;
  }
};
REGISTER_KERNEL_BUILDER(Name("ToyShapeless").Device(DEVICE_CPU), ShapelessOp);

// x with all but one element zero.
REGISTER_OP("ToyKeepOne")
    .Attr("T: {float, int32}")
    .Attr("index: int = 0")
    .Input("x: T")
    .Output("y: T")
    .SetShapeFn(shape_inference::UnchangedShape)
    .Doc("Keeps one element.");

template <typename T>
class KeepOneOp : public OpKernel {
 public:
  explicit KeepOneOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("index", &index_));
    OP_REQUIRES(context, index_ >= 0, errors::InvalidArgument("Need index >= 0, got ", index_));
  }
  void Compute(OpKernelContext* context) override {
    const Tensor& x = context->input(0);
    OP_REQUIRES(context, index_ < x.NumElements(),
                errors::InvalidArgument("index ", index_, " of ", x.NumElements(), " elements"));
    Tensor* y = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output("y", x.shape(), &y));
    y->flat<T>().setZero();
    y->flat<T>()(index_) = x.flat<T>()(index_);
  }

 private:
  int index_;
};
#define REGISTER_KEEP_ONE(T)                                                            \
  REGISTER_KERNEL_BUILDER(Name("ToyKeepOne").Device(DEVICE_CPU).TypeConstraint<T>("T"), \
                          KeepOneOp<T>)
TF_CALL_float(REGISTER_KEEP_ONE) TF_CALL_int32(REGISTER_KEEP_ONE)
#undef REGISTER_KEEP_ONE

    // Concatenates strings of N inputs, |times| times; the second output is the number of bytes.
    REGISTER_OP("ToyJoin")
        .Attr("N: int >= 1")
        .Attr("separator: string = '-'")
        .Attr("sizes: list(int) = [1, 2]")
        .Input("parts: N * string")
        .Input("times: int32")
        .Output("joined: string")
        .Output("lengths: int64")
        .SetShapeFn([](InferenceContext* c) {
          ShapeHandle scalar;
          TF_RETURN_IF_ERROR(c->WithRank(c->input(c->num_inputs() - 1), 0, &scalar));
          std::vector<int64_t> sizes;
          TF_RETURN_IF_ERROR(c->GetAttr("sizes", &sizes));
          DimensionHandle times;
          TF_RETURN_IF_ERROR(c->MakeDimForScalarInput(c->num_inputs() - 1, &times));
          c->set_output(0, c->Vector(times));
          c->set_output(1, c->Matrix(c->UnknownDim(), static_cast<int64_t>(sizes.size())));
          return OkStatus();
        });

class JoinOp : public OpKernel {
 public:
  explicit JoinOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("separator", &separator_));
    OP_REQUIRES_OK(context, context->GetAttr("sizes", &sizes_));
  }
  void Compute(OpKernelContext* context) override {
    OpInputList parts;
    OP_REQUIRES_OK(context, context->input_list("parts", &parts));
    const Tensor* times;
    OP_REQUIRES_OK(context, context->input("times", &times));
    std::string joined;
    for (int i = 0; i < parts.size(); ++i) {
      joined += (i ? separator_ : "") + std::string(parts[i].scalar<tstring>()());
    }
    int count = times->scalar<int32>()();
    if (count > 99) throw std::runtime_error("too often");
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({count}), &output));
    for (int i = 0; i < count; ++i) output->vec<tstring>()(i) = joined;
    Tensor lengths;
    OP_REQUIRES_OK(context,
                   context->allocate_temp(
                       DT_INT64, TensorShape({1, static_cast<int64_t>(sizes_.size())}), &lengths));
    for (size_t i = 0; i < sizes_.size(); ++i) {
      lengths.matrix<int64_t>()(0, i) = sizes_[i] * static_cast<int64_t>(joined.size());
    }
    context->set_output(1, lengths);
  }

 private:
  std::string separator_;
  std::vector<int64_t> sizes_;
};
REGISTER_KERNEL_BUILDER(Name("ToyJoin").Device(DEVICE_CPU), JoinOp);

// 2x, in the memory of x if nobody else needs it, with threads.
REGISTER_OP("ToyTwice").Input("x: float").Output("y: float").SetShapeFn([](InferenceContext* c) {
  return shape_inference::UnchangedShapeWithRankAtLeast(c, 1);
});
class TwiceOp : public AsyncOpKernel {
 public:
  using AsyncOpKernel::AsyncOpKernel;
  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    context->device()->tensorflow_cpu_worker_threads()->workers->Schedule([context, done] {
      Tensor* y = nullptr;
      Tensor x = context->input(0);
      OP_REQUIRES_OK_ASYNC(context, context->allocate_output(0, x.shape(), &y), done);
      y->flat<float>().device(context->eigen_device<Eigen::ThreadPoolDevice>()) =
          x.flat<float>() * 2.f;
      done();
    });
  }
};
REGISTER_KERNEL_BUILDER(Name("ToyTwice").Device(DEVICE_CPU), TwiceOp);

// An op with a space of names, and two results.
REGISTER_OP("Toy>SplitDigits")
    .Input("x: int32")
    .Output("tens: int32")
    .Output("ones: int32")
    .SetShapeFn([](InferenceContext* c) {
      c->set_output(0, c->input(0));
      c->set_output(1, c->input(0));
      return OkStatus();
    });
class SplitDigitsOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    const Tensor& x = context->input(0);
    for (int i = 0; i < 2; ++i) {
      Tensor* y = nullptr;
      OP_REQUIRES_OK(context, context->allocate_output(i, x.shape(), &y));
      for (int64_t k = 0; k < x.NumElements(); ++k) {
        int32 value = x.flat<int32>()(k);
        y->flat<int32>()(k) = i ? value % 10 : value / 10;
      }
    }
  }
};
REGISTER_KERNEL_BUILDER(Name("Toy>SplitDigits").Device(DEVICE_CPU), SplitDigitsOp);

}  // namespace
}  // namespace tensorflow

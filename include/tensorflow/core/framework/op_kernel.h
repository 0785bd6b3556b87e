// OpKernel: kernels written in C++, registered with REGISTER_KERNEL_BUILDER when their library is
// loaded.
//
// They run on the CPU. What a kernel throws becomes an error of its node.
#ifndef TENSORFLOW_CORE_FRAMEWORK_OP_KERNEL_H_
#define TENSORFLOW_CORE_FRAMEWORK_OP_KERNEL_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/c/kernels.h"
#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/threadpool.h"

namespace tensorflow {

class OpKernelContext;
class OpKernelConstruction;
class ResourceMgr;  // resource_mgr.h

namespace internal {
// The first and the last + 1 index of every argument's tensors.
typedef std::map<std::string, std::pair<int, int>> ArgRanges;
}  // namespace internal

class OpKernel {
 public:
  explicit OpKernel(OpKernelConstruction* context);
  virtual ~OpKernel() = default;
  OpKernel(const OpKernel&) = delete;
  OpKernel& operator=(const OpKernel&) = delete;

  // Computes the outputs. Several threads may call it at once.
  virtual void Compute(OpKernelContext* context) = 0;
  virtual bool IsExpensive() { return true; }

  const NodeDef& def() const { return def_; }
  const std::string& name() const { return def_.name(); }
  const std::string& type_string() const { return def_.op(); }
  const std::string& requested_device() const { return def_.device(); }
  const internal::ArgRanges& input_ranges() const { return input_ranges_; }
  const internal::ArgRanges& output_ranges() const { return output_ranges_; }

 private:
  NodeDef def_;
  internal::ArgRanges input_ranges_;
  internal::ArgRanges output_ranges_;
};

// A kernel that ends when it calls |done|, perhaps on another thread.
class AsyncOpKernel : public OpKernel {
 public:
  using OpKernel::OpKernel;
  typedef std::function<void()> DoneCallback;
  virtual void ComputeAsync(OpKernelContext* context, DoneCallback done) = 0;
  void Compute(OpKernelContext*) final { LOG(FATAL) << "an asynchronous kernel"; }
};

class OpKernelConstruction {
 public:
  explicit OpKernelConstruction(TF_OpKernelConstruction* construction);

  const NodeDef& def() const { return def_; }
  DeviceType device_type() const { return DeviceType(DEVICE_CPU); }
  bool HasAttr(absl::string_view name) const { return def_.attr().count(std::string(name)) != 0; }
  template <typename T>
  Status GetAttr(absl::string_view name, T* value) const {
    return GetNodeAttr(def_, name, value);
  }
  Status MatchSignature(DataTypeSlice inputs, DataTypeSlice outputs) const;
  int num_inputs() const { return static_cast<int>(input_types_.size()); }
  int num_outputs() const { return static_cast<int>(output_types_.size()); }
  DataType input_type(int i) const { return input_types_[static_cast<size_t>(i)]; }
  DataType output_type(int i) const { return output_types_[static_cast<size_t>(i)]; }
  const DataTypeVector& input_types() const { return input_types_; }
  const DataTypeVector& output_types() const { return output_types_; }
  const internal::ArgRanges& input_ranges() const { return input_ranges_; }
  const internal::ArgRanges& output_ranges() const { return output_ranges_; }

  ResourceMgr* resource_manager() const;

  const Status& status() const { return status_; }
  void SetStatus(const absl::Status& status) { status_.Update(status); }
  void CtxFailure(const absl::Status& status) { SetStatus(status); }
  void CtxFailureWithWarning(const absl::Status& status) { SetStatus(status); }
  void CtxFailure(const char*, int, const absl::Status& status) { SetStatus(status); }
  void CtxFailureWithWarning(const char*, int, const absl::Status& status) { SetStatus(status); }

 private:
  Status Describe(TF_OpKernelConstruction* construction);
  Status Ranges(const google::protobuf::RepeatedPtrField<OpDef::ArgDef>& args,
                internal::ArgRanges* ranges, DataTypeVector* types) const;

  TF_OpKernelConstruction* construction_;
  NodeDef def_;
  Status status_;
  DataTypeVector input_types_, output_types_;
  internal::ArgRanges input_ranges_, output_ranges_;
};

// The tensors of an argument that is a list.
class OpInputList {
 public:
  OpInputList() : OpInputList(nullptr, 0, 0) {}
  OpInputList(OpKernelContext* context, int start, int stop)
      : context_(context), start_(start), stop_(stop) {}
  int size() const { return stop_ - start_; }
  const Tensor& operator[](int i) const;

 private:
  OpKernelContext* context_;
  int start_, stop_;
};
class OpOutputList {
 public:
  OpOutputList() : OpOutputList(nullptr, 0, 0) {}
  OpOutputList(OpKernelContext* context, int start, int stop)
      : context_(context), start_(start), stop_(stop) {}
  int size() const { return stop_ - start_; }
  Tensor* operator[](int i);
  void set(int i, const Tensor& tensor);
  Status allocate(int i, const TensorShape& shape, Tensor** output);

 private:
  OpKernelContext* context_;
  int start_, stop_;
};

// Where a temporary tensor may be; all of them are in the memory of the host.
struct AllocatorAttributes {
  void set_on_host(bool) {}
  bool on_host() const { return true; }
};

// What kernels ask of their device.
class DeviceBase {
 public:
  explicit DeviceBase(std::string name) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }
  struct CpuWorkerThreads {
    int num_threads;
    thread::ThreadPool* workers;
  };
  const CpuWorkerThreads* tensorflow_cpu_worker_threads() const {
    static const CpuWorkerThreads threads = {thread::ThreadPool::Default()->NumThreads(),
                                             thread::ThreadPool::Default()};
    return &threads;
  }
  const Eigen::ThreadPoolDevice* eigen_cpu_device() const {
    return thread::ThreadPool::Default()->device();
  }

 private:
  std::string name_;
};

class OpKernelContext {
 public:
  OpKernelContext(TF_OpKernelContext* context, OpKernel* kernel);

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  // Aborts if there is no such input.
  const Tensor& input(int i);
  Status input(absl::string_view name, const Tensor** tensor);
  Status input_list(absl::string_view name, OpInputList* list);
  DataType input_dtype(int i) const { return static_cast<DataType>(TF_InputDatatype(context_, i)); }
  DataType expected_output_dtype(int i) const {
    return static_cast<DataType>(TF_ExpectedOutputDataType(context_, i));
  }
  bool ValidateInputsAreSameShape(OpKernel*) {
    for (int i = 1; i < num_inputs(); ++i) {
      if (!input(0).IsSameSize(input(i))) {
        SetStatus(errors::InvalidArgument(
            "Inputs to operation ", kernel_->name(), " of type ", kernel_->type_string(),
            " must have the same size and shape.  Input 0: ", input(0).shape().DebugString(),
            " != input ", i, ": ", input(i).shape().DebugString()));
        return false;
      }
    }
    return true;
  }

  Status allocate_output(int i, const TensorShape& shape, Tensor** output);
  Status allocate_output(absl::string_view name, const TensorShape& shape, Tensor** output);
  Status allocate_temp(DataType type, const TensorShape& shape, Tensor* out,
                       AllocatorAttributes = AllocatorAttributes()) {
    return Tensor::BuildTensor(type, shape, out);
  }
  // Takes over the memory of an input that nothing else needs, if one of |candidates| fits.
  Status forward_input_or_allocate_output(absl::Span<const int> candidates, int i,
                                          const TensorShape& shape, Tensor** output,
                                          int* forwarded = nullptr);
  Status output_list(absl::string_view name, OpOutputList* list);
  void set_output(int i, const Tensor& tensor);
  Status set_output(absl::string_view name, const Tensor& tensor);
  Tensor* mutable_output(int i) { return outputs_[static_cast<size_t>(i)].get(); }

  OpKernel& op_kernel() const { return *kernel_; }
  int64_t step_id() const { return TF_StepId(context_); }
  // The device as the library calls it; its text is made when it is asked for.
  DeviceBase* device();
  ResourceMgr* resource_manager() const;
  rn_resources_t* CResources() const { return rn_kernel_resources(context_); }
  Status MatchSignature(DataTypeSlice inputs, DataTypeSlice outputs) const;
  absl::optional<ManagedStackTrace> stack_trace() const { return absl::nullopt; }
  // Memory is not accounted to kernels.
  bool track_allocations() const { return false; }
  void record_persistent_memory_allocation(int64_t, int64_t = -1) {}
  template <typename Device>
  const Device& eigen_device() const;
  const Eigen::ThreadPoolDevice& eigen_cpu_device() const {
    return *thread::ThreadPool::Default()->device();
  }

  const Status& status() const { return status_; }
  void SetStatus(const absl::Status& status) { status_.Update(status); }
  void CtxFailure(const absl::Status& status) { SetStatus(status); }
  void CtxFailureWithWarning(const absl::Status& status) { SetStatus(status); }
  void CtxFailure(const char*, int, const absl::Status& status) { SetStatus(status); }
  void CtxFailureWithWarning(const char*, int, const absl::Status& status) { SetStatus(status); }

 private:
  Status Find(const internal::ArgRanges& ranges, absl::string_view name,
              std::pair<int, int>* out) const;
  Status FindOne(const internal::ArgRanges& ranges, absl::string_view name, int* out) const;
  Status CheckOutput(int i) const {
    if (i >= 0 && i < num_outputs()) return OkStatus();
    return errors::Internal("output ", i, " of ", num_outputs());
  }

  TF_OpKernelContext* context_;
  OpKernel* kernel_;
  Status status_;
  std::unique_ptr<DeviceBase> device_;
  std::vector<std::unique_ptr<Tensor>> inputs_;
  std::vector<std::unique_ptr<Tensor>> outputs_;
};

}  // namespace tensorflow

#define OP_REQUIRES(context, condition, ...)                    \
  do {                                                          \
    if (TF_PREDICT_FALSE(!(condition))) {                       \
      (context)->CtxFailure(__FILE__, __LINE__, (__VA_ARGS__)); \
      return;                                                   \
    }                                                           \
  } while (0)
#define OP_REQUIRES_OK(context, ...)                                           \
  do {                                                                         \
    ::tensorflow::Status tf_kernel_status_ = (__VA_ARGS__);                    \
    if (TF_PREDICT_FALSE(!tf_kernel_status_.ok())) {                           \
      (context)->CtxFailureWithWarning(__FILE__, __LINE__, tf_kernel_status_); \
      return;                                                                  \
    }                                                                          \
  } while (0)
#define OP_REQUIRES_ASYNC(context, condition, status, done) \
  do {                                                      \
    if (TF_PREDICT_FALSE(!(condition))) {                   \
      (context)->CtxFailure(__FILE__, __LINE__, (status));  \
      (done)();                                             \
      return;                                               \
    }                                                       \
  } while (0)
#define OP_REQUIRES_OK_ASYNC(context, status, done)                            \
  do {                                                                         \
    ::tensorflow::Status tf_kernel_status_ = (status);                         \
    if (TF_PREDICT_FALSE(!tf_kernel_status_.ok())) {                           \
      (context)->CtxFailureWithWarning(__FILE__, __LINE__, tf_kernel_status_); \
      (done)();                                                                \
      return;                                                                  \
    }                                                                          \
  } while (0)

#include "tensorflow/core/framework/op_kernel_impl.h"
#include "tensorflow/core/framework/register_kernel.h"

#endif  // TENSORFLOW_CORE_FRAMEWORK_OP_KERNEL_H_

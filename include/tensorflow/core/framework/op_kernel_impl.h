// The longer functions of kernels and their contexts. Include op_kernel.h.
#ifndef TENSORFLOW_CORE_FRAMEWORK_OP_KERNEL_IMPL_H_
#define TENSORFLOW_CORE_FRAMEWORK_OP_KERNEL_IMPL_H_

#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow {

inline OpKernel::OpKernel(OpKernelConstruction* context)
    : def_(context->def()),
      input_ranges_(context->input_ranges()),
      output_ranges_(context->output_ranges()) {}

inline OpKernelConstruction::OpKernelConstruction(TF_OpKernelConstruction* construction)
    : construction_(construction) {
  status_ = Describe(construction);
}

inline Status OpKernelConstruction::Describe(TF_OpKernelConstruction* construction) {
  CStatus status;
  TF_Buffer* buffer = TF_OpKernelConstruction_GetNodeDef(construction, status);
  if (!status.ok()) return status.Get();
  bool is_parsed = def_.ParseFromArray(buffer->data, static_cast<int>(buffer->length));
  TF_DeleteBuffer(buffer);
  if (!is_parsed) return errors::Internal("the NodeDef cannot be parsed");
  const OpDef* op;
  TF_RETURN_IF_ERROR(OpRegistry::Global()->LookUpOpDef(def_.op(), &op));
  for (const OpDef::AttrDef& attr : op->attr()) {
    if (attr.has_default_value() && !def_.attr().count(attr.name())) {
      (*def_.mutable_attr())[attr.name()] = attr.default_value();
    }
  }
  TF_RETURN_IF_ERROR(Ranges(op->input_arg(), &input_ranges_, &input_types_));
  return Ranges(op->output_arg(), &output_ranges_, &output_types_);
}

inline Status OpKernelConstruction::Ranges(
    const google::protobuf::RepeatedPtrField<OpDef::ArgDef>& args, internal::ArgRanges* ranges,
    DataTypeVector* types) const {
  for (const OpDef::ArgDef& arg : args) {
    DataTypeVector added;
    if (!arg.type_list_attr().empty()) {
      TF_RETURN_IF_ERROR(GetAttr(arg.type_list_attr(), &added));
    } else {
      DataType type = arg.type();
      int64 count = 1;
      if (!arg.type_attr().empty()) TF_RETURN_IF_ERROR(GetAttr(arg.type_attr(), &type));
      if (!arg.number_attr().empty()) TF_RETURN_IF_ERROR(GetAttr(arg.number_attr(), &count));
      for (int64 i = 0; i < count; ++i) added.push_back(type);
    }
    int first = static_cast<int>(types->size());
    types->insert(types->end(), added.begin(), added.end());
    (*ranges)[arg.name()] = {first, static_cast<int>(types->size())};
  }
  return OkStatus();
}

namespace internal {
inline Status MatchSignature(DataTypeSlice have_inputs, DataTypeSlice have_outputs,
                             DataTypeSlice inputs, DataTypeSlice outputs) {
  if (have_inputs == inputs && have_outputs == outputs) return OkStatus();
  return errors::InvalidArgument("Signature mismatch, have: ", DataTypeSliceString(have_inputs),
                                 "->", DataTypeSliceString(have_outputs),
                                 " expected: ", DataTypeSliceString(inputs), "->",
                                 DataTypeSliceString(outputs));
}
}  // namespace internal
inline Status OpKernelConstruction::MatchSignature(DataTypeSlice inputs,
                                                   DataTypeSlice outputs) const {
  return internal::MatchSignature(input_types_, output_types_, inputs, outputs);
}

inline OpKernelContext::OpKernelContext(TF_OpKernelContext* context, OpKernel* kernel)
    : context_(context),
      kernel_(kernel),
      inputs_(static_cast<size_t>(TF_NumInputs(context))),
      outputs_(static_cast<size_t>(TF_NumOutputs(context))) {}

inline Status OpKernelContext::MatchSignature(DataTypeSlice inputs, DataTypeSlice outputs) const {
  DataTypeVector have_inputs, have_outputs;
  for (int i = 0; i < num_inputs(); ++i) have_inputs.push_back(input_dtype(i));
  for (int i = 0; i < num_outputs(); ++i) have_outputs.push_back(expected_output_dtype(i));
  return internal::MatchSignature(have_inputs, have_outputs, inputs, outputs);
}

inline DeviceBase* OpKernelContext::device() {
  if (!device_) {
    TF_StringView name = TF_GetDeviceName(context_);
    device_ = std::make_unique<DeviceBase>(std::string(name.data ? name.data : "", name.len));
  }
  return device_.get();
}

inline const Tensor& OpKernelContext::input(int i) {
  CHECK_GE(i, 0);
  CHECK_LT(i, num_inputs());
  std::unique_ptr<Tensor>& input = inputs_[static_cast<size_t>(i)];
  if (!input) {
    TF_Tensor* tensor = nullptr;
    CStatus status;
    TF_GetInput(context_, i, &tensor, status);
    SetStatus(status.Get());
    input = std::make_unique<Tensor>(tensor ? Tensor::FromCTensor(tensor) : Tensor());
  }
  return *input;
}

inline Status OpKernelContext::Find(const internal::ArgRanges& ranges, absl::string_view name,
                                    std::pair<int, int>* out) const {
  auto found = ranges.find(std::string(name));
  if (found == ranges.end()) return errors::InvalidArgument("Unknown argument name: ", name);
  *out = found->second;
  return OkStatus();
}
inline Status OpKernelContext::FindOne(const internal::ArgRanges& ranges, absl::string_view name,
                                       int* out) const {
  std::pair<int, int> range;
  TF_RETURN_IF_ERROR(Find(ranges, name, &range));
  if (range.second != range.first + 1) {
    return errors::InvalidArgument("OpKernel used list-valued argument name '", name,
                                   "' when single-valued was expected");
  }
  *out = range.first;
  return OkStatus();
}
inline Status OpKernelContext::input(absl::string_view name, const Tensor** tensor) {
  int i;
  TF_RETURN_IF_ERROR(FindOne(kernel_->input_ranges(), name, &i));
  *tensor = &input(i);
  return OkStatus();
}
inline Status OpKernelContext::input_list(absl::string_view name, OpInputList* list) {
  std::pair<int, int> range;
  TF_RETURN_IF_ERROR(Find(kernel_->input_ranges(), name, &range));
  *list = OpInputList(this, range.first, range.second);
  return OkStatus();
}
inline Status OpKernelContext::output_list(absl::string_view name, OpOutputList* list) {
  std::pair<int, int> range;
  TF_RETURN_IF_ERROR(Find(kernel_->output_ranges(), name, &range));
  *list = OpOutputList(this, range.first, range.second);
  return OkStatus();
}

inline Status OpKernelContext::allocate_output(int i, const TensorShape& shape, Tensor** output) {
  TF_RETURN_IF_ERROR(CheckOutput(i));
  DataType type = expected_output_dtype(i);
  TensorShape::Dims dims = shape.dim_sizes();
  size_t size = Tensor::ElementSize(type), bytes;
  if (size == 0)
    return errors::Unimplemented("outputs of type ", DataTypeString(type), " in C++ kernels");
  if (__builtin_mul_overflow(size, static_cast<size_t>(shape.num_elements()), &bytes)) {
    return errors::ResourceExhausted("OOM when allocating tensor with shape", shape.DebugString());
  }
  CStatus status;
  TF_Tensor* made = TF_AllocateOutput(context_, i, static_cast<TF_DataType>(type), dims.data(),
                                      static_cast<int>(dims.size()), bytes, status);
  if (!status.ok()) return status.Get();
  outputs_[static_cast<size_t>(i)] = std::make_unique<Tensor>(Tensor::FromCTensor(made));
  *output = outputs_[static_cast<size_t>(i)].get();
  return OkStatus();
}
inline Status OpKernelContext::allocate_output(absl::string_view name, const TensorShape& shape,
                                               Tensor** output) {
  int i;
  TF_RETURN_IF_ERROR(FindOne(kernel_->output_ranges(), name, &i));
  return allocate_output(i, shape, output);
}

inline Status OpKernelContext::forward_input_or_allocate_output(absl::Span<const int> candidates,
                                                                int i, const TensorShape& shape,
                                                                Tensor** output, int* forwarded) {
  TF_RETURN_IF_ERROR(CheckOutput(i));
  // A tensor that this object holds has two owners, so the library would not give its memory away.
  for (int candidate : candidates) {
    if (candidate >= 0 && candidate < num_inputs()) inputs_[static_cast<size_t>(candidate)].reset();
  }
  std::vector<int> inputs(candidates.begin(), candidates.end());
  TensorShape::Dims dims = shape.dim_sizes();
  int taken = -1;
  CStatus status;
  TF_Tensor* made =
      TF_ForwardInputOrAllocateOutput(context_, inputs.data(), static_cast<int>(inputs.size()), i,
                                      dims.data(), static_cast<int>(dims.size()), &taken, status);
  if (!status.ok()) return status.Get();
  if (forwarded) *forwarded = taken;
  outputs_[static_cast<size_t>(i)] = std::make_unique<Tensor>(Tensor::FromCTensor(made));
  *output = outputs_[static_cast<size_t>(i)].get();
  return OkStatus();
}

inline void OpKernelContext::set_output(int i, const Tensor& tensor) {
  Status checked = CheckOutput(i);
  if (!checked.ok()) return SetStatus(checked);
  std::shared_ptr<TF_Tensor> value = tensor.AsCTensor();
  if (!value)
    return SetStatus(errors::Internal("output ", i, " is set to a tensor without a value"));
  CStatus status;
  TF_SetOutput(context_, i, value.get(), status);
  SetStatus(status.Get());
  outputs_[static_cast<size_t>(i)] = std::make_unique<Tensor>(tensor);
}
inline Status OpKernelContext::set_output(absl::string_view name, const Tensor& tensor) {
  int i;
  TF_RETURN_IF_ERROR(FindOne(kernel_->output_ranges(), name, &i));
  set_output(i, tensor);
  return OkStatus();
}

template <>
inline const Eigen::ThreadPoolDevice& OpKernelContext::eigen_device<Eigen::ThreadPoolDevice>()
    const {
  return eigen_cpu_device();
}
template <>
inline const Eigen::DefaultDevice& OpKernelContext::eigen_device<Eigen::DefaultDevice>() const {
  static const Eigen::DefaultDevice device;
  return device;
}

inline const Tensor& OpInputList::operator[](int i) const { return context_->input(start_ + i); }
inline Tensor* OpOutputList::operator[](int i) { return context_->mutable_output(start_ + i); }
inline void OpOutputList::set(int i, const Tensor& tensor) {
  context_->set_output(start_ + i, tensor);
}
inline Status OpOutputList::allocate(int i, const TensorShape& shape, Tensor** output) {
  return context_->allocate_output(start_ + i, shape, output);
}

}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_FRAMEWORK_OP_KERNEL_IMPL_H_

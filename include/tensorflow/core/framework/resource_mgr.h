// ResourceMgr: the resources of a device, by container and name. Functions that find resources by
// handles, and kernels that make handles.
#ifndef TENSORFLOW_CORE_FRAMEWORK_RESOURCE_MGR_H_
#define TENSORFLOW_CORE_FRAMEWORK_RESOURCE_MGR_H_

#include <exception>
#include <functional>
#include <string>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_base.h"
#include "tensorflow/core/framework/resource_handle.h"

namespace tensorflow {
namespace internal {

// The resource of a handle that is taken over, with a new reference for the caller.
template <typename T>
Status TakeResource(rn_handle_t* c_handle, rn_resources_t* resources, T** resource) {
  ResourceHandle handle = ResourceHandle::FromCHandle(c_handle);
  CStatus status;
  void* object = rn_handle_object(c_handle, resources, ResourceKind<T>()->type, status);
  if (!status.ok()) return status.Get();
  *resource = static_cast<T*>(static_cast<ResourceBase*>(object));
  (*resource)->Ref();
  return OkStatus();
}

}  // namespace internal

// The library's table of a device. An object of this class is never made: its address is the
// table's.
class ResourceMgr {
 public:
  ResourceMgr() = delete;

  const std::string& default_container() const {
    static const std::string name = "localhost";
    return name;
  }

  // Takes over a reference to |resource|, also on failure. ALREADY_EXISTS if the name is taken.
  template <typename T>
  Status Create(const std::string& container, const std::string& name, T* resource) {
    bool is_new = false;
    T* found = nullptr;
    core::ScopedUnref unref(resource);
    TF_RETURN_IF_ERROR(LookupOrCreate<T>(container, name, &found, [&](T** made) {
      is_new = true;
      resource->Ref();
      *made = resource;
      return OkStatus();
    }));
    found->Unref();
    if (is_new) return OkStatus();
    return errors::AlreadyExists("Resource ", container, "/", name, "/", typeid(T).name());
  }

  // The caller gets a reference. NOT_FOUND if there is no such resource.
  template <typename T, bool use_dynamic_cast = false>
  Status Lookup(const std::string& container, const std::string& name, T** resource) const {
    return Find<T>(container, name, nullptr, nullptr, resource);
  }
  template <typename T, bool use_dynamic_cast = false>
  Status Lookup(const std::string& container, const std::string& name,
                core::RefCountPtr<T>* resource) const {
    T* found = nullptr;
    TF_RETURN_IF_ERROR(Lookup<T>(container, name, &found));
    resource->reset(found);
    return OkStatus();
  }

  // |creator| is called under the lock of the table and must not use it.
  template <typename T, bool use_dynamic_cast = false>
  Status LookupOrCreate(const std::string& container, const std::string& name, T** resource,
                        std::function<Status(T**)> creator) {
    auto create = [](void* arg, TF_Status* c_status) -> void* {
      T* made = nullptr;
      Status status;
      try {
        status = (*static_cast<std::function<Status(T**)>*>(arg))(&made);
      } catch (const std::exception& thrown) {
        status = errors::Internal("the creator of a resource threw: ", thrown.what());
      }
      Set_TF_Status_from_Status(c_status, status);
      return status.ok() ? static_cast<ResourceBase*>(made) : nullptr;
    };
    return Find<T>(container, name, create, &creator, resource);
  }

  // Takes a resource out of the table; it lives as long as there are references.
  template <typename T>
  Status Delete(const std::string& container, const std::string& name) {
    CStatus status;
    rn_resource_remove(Table(), container.c_str(), name.c_str(), internal::ResourceKind<T>()->type,
                       status);
    return status.Get();
  }
  Status Cleanup(const std::string& container) {
    rn_resources_remove_all(Table(), container.c_str());
    return OkStatus();
  }

  int64_t NewNumber() { return rn_resource_new_number(Table()); }

 private:
  rn_resources_t* Table() const {
    return reinterpret_cast<rn_resources_t*>(const_cast<ResourceMgr*>(this));
  }
  template <typename T>
  Status Find(const std::string& container, const std::string& name,
              void* (*create)(void*, TF_Status*), void* arg, T** resource) const {
    CStatus status;
    *resource = nullptr;
    rn_handle_t* found = rn_resource_find(Table(), container.c_str(), name.c_str(),
                                          internal::ResourceKind<T>(), create, arg, status);
    if (!status.ok()) return status.Get();
    return internal::TakeResource(found, Table(), resource);
  }
};

inline ResourceMgr* OpKernelContext::resource_manager() const {
  return reinterpret_cast<ResourceMgr*>(rn_kernel_resources(context_));
}
inline ResourceMgr* OpKernelConstruction::resource_manager() const {
  return reinterpret_cast<ResourceMgr*>(rn_construction_resources(construction_));
}

// A handle by name, to a resource that may not exist yet.
template <typename T>
ResourceHandle MakeResourceHandle(
    OpKernelContext* context, const std::string& container, const std::string& name,
    const std::vector<DtypeAndPartialTensorShape>& dtypes_and_shapes = {},
    const absl::optional<ManagedStackTrace>& definition_stack_trace = {}) {
  (void)dtypes_and_shapes, (void)definition_stack_trace;
  CStatus status;
  const std::string& in =
      container.empty() ? context->resource_manager()->default_container() : container;
  rn_handle_t* made = rn_handle_to_name(context->device()->name().c_str(), in.c_str(), name.c_str(),
                                        internal::ResourceKind<T>()->type, status);
  TF_CHECK_OK(status.Get());
  return ResourceHandle::FromCHandle(made);
}
// Sets output |i| to such a handle.
template <typename T>
Status MakeResourceHandleToOutput(OpKernelContext* context, int i, const std::string& container,
                                  const std::string& name) {
  Tensor* handle;
  TF_RETURN_IF_ERROR(context->allocate_output(i, TensorShape({}), &handle));
  handle->scalar<ResourceHandle>()() = MakeResourceHandle<T>(context, container, name);
  return OkStatus();
}

inline const ResourceHandle& HandleFromInput(OpKernelContext* context, int input) {
  return context->input(input).flat<ResourceHandle>()(0);
}
inline Status HandleFromInput(OpKernelContext* context, absl::string_view input,
                              ResourceHandle* handle) {
  const Tensor* tensor;
  TF_RETURN_IF_ERROR(context->input(input, &tensor));
  if (tensor->dtype() != DT_RESOURCE || tensor->NumElements() < 1)
    return errors::InvalidArgument("Input ", input, " is no resource handle");
  *handle = tensor->flat<ResourceHandle>()(0);
  return OkStatus();
}

// The resource of a handle, which a handle by name finds in the table of the kernel's device. The
// caller gets a reference.
template <typename T, bool use_dynamic_cast = false>
Status LookupResource(OpKernelContext* context, const ResourceHandle& handle, T** resource) {
  *resource = nullptr;
  TF_RETURN_IF_ERROR(handle.ValidateType<T>());
  return internal::TakeResource(rn_handle_retain(handle.AsCHandle()), context->CResources(),
                                resource);
}
template <typename T>
Status LookupResource(OpKernelContext* context, const ResourceHandle& handle,
                      core::RefCountPtr<T>* resource) {
  T* found = nullptr;
  TF_RETURN_IF_ERROR(LookupResource(context, handle, &found));
  resource->reset(found);
  return OkStatus();
}
template <typename T>
Status LookupOrCreateResource(OpKernelContext* context, const ResourceHandle& handle, T** resource,
                              std::function<Status(T**)> creator) {
  TF_RETURN_IF_ERROR(handle.ValidateType<T>());
  return context->resource_manager()->LookupOrCreate(handle.container(), handle.name(), resource,
                                                     std::move(creator));
}
template <typename T>
Status LookupOrCreateResource(OpKernelContext* context, const ResourceHandle& handle,
                              core::RefCountPtr<T>* resource, std::function<Status(T**)> creator) {
  T* found = nullptr;
  TF_RETURN_IF_ERROR(LookupOrCreateResource<T>(context, handle, &found, std::move(creator)));
  resource->reset(found);
  return OkStatus();
}
template <typename T>
Status CreateResource(OpKernelContext* context, const ResourceHandle& handle, T* resource) {
  return context->resource_manager()->Create(handle.container(), handle.name(), resource);
}
template <typename T>
Status DeleteResource(OpKernelContext* context, const ResourceHandle& handle) {
  TF_RETURN_IF_ERROR(handle.ValidateType<T>());
  return context->resource_manager()->Delete<T>(handle.container(), handle.name());
}

// Where the resource of a node is: the attributes container and shared_name, or a name of the
// kernel's own.
class ContainerInfo {
 public:
  Status Init(ResourceMgr* resources, const NodeDef& node, bool use_node_name_as_default = false) {
    resources_ = resources;
    resource_is_private_to_kernel_ = false;
    Status has_container = GetNodeAttr(node, "container", &container_);
    if (!has_container.ok() || container_.empty()) container_ = resources->default_container();
    Status has_name = GetNodeAttr(node, "shared_name", &name_);
    if (has_name.ok() && !name_.empty()) {
      if (name_[0] != '_') return OkStatus();
      return errors::InvalidArgument("shared_name cannot start with '_':", name_);
    }
    if (use_node_name_as_default) {
      name_ = node.name();
      return OkStatus();
    }
    resource_is_private_to_kernel_ = true;
    name_ = strings::StrCat("_", resources->NewNumber(), "_", node.name());
    return OkStatus();
  }
  ResourceMgr* resource_manager() const { return resources_; }
  const std::string& container() const { return container_; }
  const std::string& name() const { return name_; }
  bool resource_is_private_to_kernel() const { return resource_is_private_to_kernel_; }
  std::string DebugString() const {
    return strings::StrCat("[", container_, ",", name_, ",",
                           resource_is_private_to_kernel_ ? "private" : "public", "]");
  }

 private:
  ResourceMgr* resources_ = nullptr;
  std::string container_, name_;
  bool resource_is_private_to_kernel_ = false;
};

// The kernel of an op FooHandleOp, whose output is a handle by name.
template <typename T>
class ResourceHandleOp : public OpKernel {
 public:
  explicit ResourceHandleOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("container", &container_));
    OP_REQUIRES_OK(context, context->GetAttr("shared_name", &name_));
    if (name_.empty()) name_ = name();
  }
  void Compute(OpKernelContext* context) override {
    OP_REQUIRES_OK(context, MakeResourceHandleToOutput<T>(context, 0, container_, name_));
  }

 private:
  std::string container_, name_;
};

// The kernel of an op that tells whether the resource of a handle exists.
template <typename T>
class IsResourceInitialized : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    Tensor* output = nullptr;
    core::RefCountPtr<T> resource;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({}), &output));
    output->scalar<bool>()() = LookupResource(context, HandleFromInput(context, 0), &resource).ok();
  }
};

// An op TypeHandleOp, and its kernel.
#define REGISTER_RESOURCE_HANDLE_OP(Type) \
  REGISTER_OP(#Type "HandleOp")           \
      .Attr("container: string = ''")     \
      .Attr("shared_name: string = ''")   \
      .Output("resource: resource")       \
      .SetIsStateful()                    \
      .SetShapeFn(shape_inference::ScalarShape)
#define REGISTER_RESOURCE_HANDLE_KERNEL(Type) \
  REGISTER_KERNEL_BUILDER(Name(#Type "HandleOp").Device(DEVICE_CPU), ResourceHandleOp<Type>)

}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_FRAMEWORK_RESOURCE_MGR_H_

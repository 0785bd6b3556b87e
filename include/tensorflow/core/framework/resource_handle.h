// ResourceHandle: the element of a tensor of type DT_RESOURCE.
//
// A handle has the address of a resource (device, container, name) and, unless it is by name only,
// the resource itself, which it keeps alive.
#ifndef TENSORFLOW_CORE_FRAMEWORK_RESOURCE_HANDLE_H_
#define TENSORFLOW_CORE_FRAMEWORK_RESOURCE_HANDLE_H_

#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "runnel/resources.h"
#include "tensorflow/core/framework/resource_base.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace internal {

inline void UnrefResource(void* object) { static_cast<ResourceBase*>(object)->Unref(); }

// What the library knows of a class: its name, and how a reference is given back. Objects pass
// through the library as ResourceBase*.
template <typename T>
const rn_resource_kind_t* ResourceKind() {
  static const rn_resource_kind_t kind = {typeid(T).name(), UnrefResource};
  return &kind;
}

}  // namespace internal

// What the value of a variable is like.
struct DtypeAndPartialTensorShape {
  DataType dtype;
  PartialTensorShape shape;
};

// Where a node was made; nothing is known of it here.
class ManagedStackTrace {};

// Copies refer to the same resource. Nothing but the pointer that the library has in a tensor.
struct ResourceHandle {
  ResourceHandle() = default;
  ResourceHandle(const ResourceHandle& other) : handle_(rn_handle_retain(other.handle_)) {}
  ResourceHandle(ResourceHandle&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)) {}
  ResourceHandle& operator=(ResourceHandle other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~ResourceHandle() { rn_handle_release(handle_); }
  // Takes |handle| over.
  static ResourceHandle FromCHandle(rn_handle_t* handle) {
    ResourceHandle made;
    made.handle_ = handle;
    return made;
  }
  rn_handle_t* AsCHandle() const { return handle_; }

  // Takes over the caller's reference to |resource|. Types, shapes and the stack trace are not
  // kept.
  template <typename T>
  static ResourceHandle MakeRefCountingHandle(
      T* resource, const std::string& device,
      const std::vector<DtypeAndPartialTensorShape>& dtypes_and_shapes = {},
      const absl::optional<ManagedStackTrace>& definition_stack_trace = {}) {
    (void)dtypes_and_shapes, (void)definition_stack_trace;
    CStatus status;
    ResourceBase* base = resource;
    rn_handle_t* made =
        rn_handle_to_object(device.c_str(), base, internal::ResourceKind<T>(), status);
    TF_CHECK_OK(status.Get());
    return FromCHandle(made);
  }

  std::string device() const { return Text(rn_handle_texts(handle_).device); }
  std::string container() const { return Text(rn_handle_texts(handle_).container); }
  std::string name() const { return Text(rn_handle_texts(handle_).name); }
  std::string maybe_type_name() const { return Text(rn_handle_texts(handle_).type); }

  // The resource, borrowed from the handle. Handles by name are looked up by LookupResource().
  template <typename T>
  StatusOr<T*> GetResource() const {
    CStatus status;
    void* object = rn_handle_object(handle_, nullptr, internal::ResourceKind<T>()->type, status);
    if (!status.ok()) return status.Get();
    return static_cast<T*>(static_cast<ResourceBase*>(object));
  }
  template <typename T>
  Status ValidateType() const {
    if (maybe_type_name() == internal::ResourceKind<T>()->type) return OkStatus();
    return errors::InvalidArgument(
        "Trying to access a handle's resource using the wrong type. The handle "
        "points to a resource (name '",
        name(), "') of type '", maybe_type_name(),
        "' but you are trying to access the resource as type '", typeid(T).name(), "'");
  }
  std::string DebugString() const {
    return "device: " + device() + " container: " + container() + " name: " + name() +
           " type: " + maybe_type_name();
  }

 private:
  static std::string Text(TF_StringView text) {
    return std::string(text.data ? text.data : "", text.len);
  }

  rn_handle_t* handle_ = nullptr;
};
static_assert(sizeof(ResourceHandle) == sizeof(rn_handle_t*),
              "the layout of the library's tensors");

}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_FRAMEWORK_RESOURCE_HANDLE_H_

// RefCounted: objects that count their owners and delete themselves.
#ifndef TENSORFLOW_CORE_PLATFORM_REFCOUNT_H_
#define TENSORFLOW_CORE_PLATFORM_REFCOUNT_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "tensorflow/core/platform/macros.h"

namespace tensorflow {
namespace core {

// Begins with one owner. Any thread may call Ref and Unref.
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void Ref() const { refs_.fetch_add(1, std::memory_order_relaxed); }
  // True if this was the last owner; then the object is gone.
  bool Unref() const {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
    delete this;
    return true;
  }
  int_fast32_t RefCount() const { return refs_.load(std::memory_order_acquire); }
  bool RefCountIsOne() const { return RefCount() == 1; }

 protected:
  virtual ~RefCounted() = default;

 private:
  mutable std::atomic<int_fast32_t> refs_{1};
};

struct RefCountDeleter {
  void operator()(const RefCounted* object) const { object->Unref(); }
};
// Owns one reference.
template <typename T>
using RefCountPtr = std::unique_ptr<T, RefCountDeleter>;

// A further reference to |object|.
template <typename T>
RefCountPtr<T> GetNewRef(T* object) {
  if (object) object->Ref();
  return RefCountPtr<T>(object);
}

// Gives a reference back at the end of a block.
class ScopedUnref {
 public:
  explicit ScopedUnref(const RefCounted* object) : object_(object) {}
  ScopedUnref(const ScopedUnref&) = delete;
  ScopedUnref& operator=(const ScopedUnref&) = delete;
  ~ScopedUnref() {
    if (object_) object_->Unref();
  }

 private:
  const RefCounted* object_;
};

}  // namespace core
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_PLATFORM_REFCOUNT_H_

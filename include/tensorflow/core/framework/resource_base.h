// ResourceBase: what kernels share derives from it.
#ifndef TENSORFLOW_CORE_FRAMEWORK_RESOURCE_BASE_H_
#define TENSORFLOW_CORE_FRAMEWORK_RESOURCE_BASE_H_

#include <cstdint>
#include <string>

#include "tensorflow/core/platform/refcount.h"

namespace tensorflow {

class ResourceBase : public core::RefCounted {
 public:
  virtual std::string DebugString() const = 0;
  // Bytes, for statistics.
  virtual int64_t MemoryUsed() const { return 0; }
};

}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_FRAMEWORK_RESOURCE_BASE_H_

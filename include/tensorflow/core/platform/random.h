// random::New64: a number that cannot be predicted.
#ifndef TENSORFLOW_CORE_PLATFORM_RANDOM_H_
#define TENSORFLOW_CORE_PLATFORM_RANDOM_H_

#include <random>

#include "tensorflow/core/platform/types.h"

namespace tensorflow {
namespace random {

inline uint64 New64() {
  std::random_device device;
  return static_cast<uint64>(device()) << 32 | device();
}

}  // namespace random
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_PLATFORM_RANDOM_H_

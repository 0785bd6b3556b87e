// Thread pools of the caller, for Session::Run. The library has threads of its own and ignores
// them.
#ifndef TENSORFLOW_CORE_PLATFORM_THREADPOOL_OPTIONS_H_
#define TENSORFLOW_CORE_PLATFORM_THREADPOOL_OPTIONS_H_

#include "tensorflow/core/platform/eigen.h"

namespace tensorflow {
namespace thread {

class ThreadPoolInterface : public Eigen::ThreadPoolInterface {};

struct ThreadPoolOptions {
  ThreadPoolInterface* inter_op_threadpool = nullptr;
  ThreadPoolInterface* intra_op_threadpool = nullptr;
};

}  // namespace thread
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_PLATFORM_THREADPOOL_OPTIONS_H_

// Threads for kernels written in C++.
#ifndef TENSORFLOW_CORE_PLATFORM_THREADPOOL_H_
#define TENSORFLOW_CORE_PLATFORM_THREADPOOL_H_

#include <algorithm>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "tensorflow/core/platform/eigen.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {
namespace thread {

class ThreadPool {
 public:
  explicit ThreadPool(int threads) : pool_(threads), device_(&pool_, threads) {}
  ThreadPool(Env*, const std::string&, int threads) : ThreadPool(threads) {}
  ThreadPool(Env*, const ThreadOptions&, const std::string&, int threads) : ThreadPool(threads) {}
  // One thread per processor, started when the first kernel asks.
  static ThreadPool* Default() {
    static ThreadPool* pool = new ThreadPool(std::max(1u, std::thread::hardware_concurrency()));
    return pool;
  }
  int NumThreads() const { return pool_.NumThreads(); }
  int CurrentThreadId() const { return pool_.CurrentThreadId(); }
  void Schedule(std::function<void()> work) { pool_.Schedule(std::move(work)); }
  void ScheduleWithHint(std::function<void()> work, int start, int limit) {
    pool_.ScheduleWithHint(std::move(work), start, limit);
  }
  // Calls |work(begin, end)| for parts of 0 … |total|; |cost| is that of one unit in cycles.
  void ParallelFor(int64_t total, int64_t cost,
                   const std::function<void(int64_t, int64_t)>& work) const {
    device_.parallelFor(total, Eigen::TensorOpCost(0, 0, static_cast<double>(cost)),
                        [&](Eigen::Index begin, Eigen::Index end) { work(begin, end); });
  }
  const Eigen::ThreadPoolDevice* device() const { return &device_; }

 private:
  mutable Eigen::ThreadPool pool_;
  Eigen::ThreadPoolDevice device_;
};

}  // namespace thread

namespace internal {
inline int& MaxParallelismOfThread() {
  static thread_local int limit = 1000000;
  return limit;
}
}  // namespace internal
// How many threads Shard may use when this thread calls it.
inline void SetPerThreadMaxParallelism(int limit) { internal::MaxParallelismOfThread() = limit; }
inline int GetPerThreadMaxParallelism() { return internal::MaxParallelismOfThread(); }

// Divides |total| units of work among the threads of |workers|.
inline void Shard(int max_parallelism, thread::ThreadPool* workers, int64_t total, int64_t cost,
                  std::function<void(int64_t, int64_t)> work) {
  if (std::min(max_parallelism, GetPerThreadMaxParallelism()) <= 1) {
    if (total > 0) work(0, total);
    return;
  }
  workers->ParallelFor(total, cost, work);
}

}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_PLATFORM_THREADPOOL_H_

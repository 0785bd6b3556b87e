// Threads for kernels written in C++.
#ifndef TENSORFLOW_CORE_PLATFORM_THREADPOOL_H_
#define TENSORFLOW_CORE_PLATFORM_THREADPOOL_H_

#include <functional>
#include <thread>

#include "tensorflow/core/platform/eigen.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {
namespace thread {

class ThreadPool {
 public:
  explicit ThreadPool(int threads) : pool_(threads), device_(&pool_, threads) {}
  // One thread per processor, started when the first kernel asks.
  static ThreadPool* Default() {
    static ThreadPool* pool = new ThreadPool(std::max(1u, std::thread::hardware_concurrency()));
    return pool;
  }
  int NumThreads() const { return pool_.NumThreads(); }
  void Schedule(std::function<void()> work) { pool_.Schedule(std::move(work)); }
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

// Divides |total| units of work among the threads of |workers|.
inline void Shard(int max_parallelism, thread::ThreadPool* workers, int64_t total, int64_t cost,
                  std::function<void(int64_t, int64_t)> work) {
  if (max_parallelism <= 1) {
    if (total > 0) work(0, total);
    return;
  }
  workers->ParallelFor(total, cost, work);
}

}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_PLATFORM_THREADPOOL_H_

// mutex, mutex_lock and condition_variable: the standard library's, with TensorFlow's names.
#ifndef TENSORFLOW_CORE_PLATFORM_MUTEX_H_
#define TENSORFLOW_CORE_PLATFORM_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <shared_mutex>

#include "tensorflow/core/platform/macros.h"
#include "tensorflow/core/platform/types.h"

// What clang's analysis of threads reads; nothing here.
#define TF_GUARDED_BY(x)
#define TF_PT_GUARDED_BY(x)
#define TF_ACQUIRED_AFTER(...)
#define TF_ACQUIRED_BEFORE(...)
#define TF_EXCLUSIVE_LOCKS_REQUIRED(...)
#define TF_SHARED_LOCKS_REQUIRED(...)
#define TF_LOCKS_EXCLUDED(...)
#define TF_NO_THREAD_SAFETY_ANALYSIS

namespace tensorflow {

enum ConditionResult { kCond_Timeout, kCond_MaybeNotified };
enum LinkerInitialized { LINKER_INITIALIZED };

// One writer or several readers.
class mutex {
 public:
  mutex() = default;
  explicit mutex(LinkerInitialized) {}
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;
  void lock() { mutex_.lock(); }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }
  void lock_shared() { mutex_.lock_shared(); }
  bool try_lock_shared() { return mutex_.try_lock_shared(); }
  void unlock_shared() { mutex_.unlock_shared(); }
  void assert_held() const {}
  void assert_held_shared() const {}

 private:
  std::shared_mutex mutex_;
};

// Holds a mutex as long as it lives.
class mutex_lock : public std::unique_lock<mutex> {
 public:
  typedef std::unique_lock<::tensorflow::mutex> Base;
  using Base::Base;
};
class tf_shared_lock : public std::shared_lock<mutex> {
 public:
  typedef std::shared_lock<::tensorflow::mutex> Base;
  using Base::Base;
};

class condition_variable {
 public:
  void wait(mutex_lock& lock) { condition_.wait(lock); }
  template <typename Predicate>
  void wait(mutex_lock& lock, Predicate is_done) {
    condition_.wait(lock, is_done);
  }
  template <typename Rep, typename Period>
  std::cv_status wait_for(mutex_lock& lock, std::chrono::duration<Rep, Period> time) {
    return condition_.wait_for(lock, time);
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable_any condition_;
};

// Waits at most |ms|; says whether it was woken.
inline ConditionResult WaitForMilliseconds(mutex_lock* lock, condition_variable* condition,
                                           int64_t ms) {
  return condition->wait_for(*lock, std::chrono::milliseconds(ms)) == std::cv_status::timeout
             ? kCond_Timeout
             : kCond_MaybeNotified;
}

}  // namespace tensorflow

namespace tsl {
using tensorflow::condition_variable;
using tensorflow::mutex;
using tensorflow::mutex_lock;
using tensorflow::tf_shared_lock;
}  // namespace tsl

#endif  // TENSORFLOW_CORE_PLATFORM_MUTEX_H_

// Threads that wait for others: Notification, for one event, and BlockingCounter, for several.
#ifndef TENSORFLOW_CORE_PLATFORM_NOTIFICATION_H_
#define TENSORFLOW_CORE_PLATFORM_NOTIFICATION_H_

#include <chrono>

#include "tensorflow/core/platform/mutex.h"

namespace tensorflow {

class Notification {
 public:
  void Notify() {
    mutex_lock lock(mutex_);
    is_notified_ = true;
    condition_.notify_all();
  }
  bool HasBeenNotified() const {
    mutex_lock lock(mutex_);
    return is_notified_;
  }
  void WaitForNotification() const {
    mutex_lock lock(mutex_);
    condition_.wait(lock, [this] { return is_notified_; });
  }
  bool WaitForNotificationWithTimeout(int64_t microseconds) const {
    auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(microseconds);
    mutex_lock lock(mutex_);
    while (!is_notified_) {
      auto left = end - std::chrono::steady_clock::now();
      if (left.count() <= 0) break;
      condition_.wait_for(lock, left);
    }
    return is_notified_;
  }

 private:
  mutable mutex mutex_;
  mutable condition_variable condition_;
  bool is_notified_ = false;
};

// Waits until DecrementCount was called as often as the constructor says.
class BlockingCounter {
 public:
  explicit BlockingCounter(int initial_count) : left_(initial_count) {}
  void DecrementCount() {
    mutex_lock lock(mutex_);
    if (--left_ == 0) condition_.notify_all();
  }
  void Wait() {
    mutex_lock lock(mutex_);
    condition_.wait(lock, [this] { return left_ <= 0; });
  }

 private:
  mutex mutex_;
  condition_variable condition_;
  int left_;
};

}  // namespace tensorflow

namespace tsl {
using tensorflow::BlockingCounter;
using tensorflow::Notification;
}  // namespace tsl

#endif  // TENSORFLOW_CORE_PLATFORM_NOTIFICATION_H_

// Coordinator: runners (threads that fill queues, for instance) that stop together.
//
//   Coordinator coordinator;
//   TF_CHECK_OK(coordinator.RegisterRunner(std::move(runner)));
//   while (!coordinator.ShouldStop()) { … a training step … }
//   TF_CHECK_OK(coordinator.Join());
#ifndef TENSORFLOW_CC_TRAINING_COORDINATOR_H_
#define TENSORFLOW_CC_TRAINING_COORDINATOR_H_

#include <algorithm>
#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/cost_graph.pb.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace tensorflow {

class RunnerInterface {
 public:
  virtual ~RunnerInterface() = default;
  // Waits until the runner has ended.
  virtual Status Join() = 0;
  virtual Status ExportCostGraph(CostGraphDef*) const {
    return errors::InvalidArgument("No cost model to export.");
  }
  virtual bool IsRunning() const = 0;
};

// Any number of threads may call these functions.
class Coordinator {
 public:
  Coordinator() : Coordinator(std::vector<error::Code>()) {}
  // Errors of |clean_stop_errors| are regular ends.
  explicit Coordinator(const std::vector<error::Code>& clean_stop_errors)
      : clean_stop_errors_(clean_stop_errors.begin(), clean_stop_errors.end()) {
    if (clean_stop_errors_.empty()) clean_stop_errors_.insert(error::OUT_OF_RANGE);
  }
  ~Coordinator() {
    RequestStop().IgnoreError();
    Join().IgnoreError();
  }
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  Status RegisterRunner(std::unique_ptr<RunnerInterface> runner) {
    mutex_lock lock(mutex_);
    if (should_stop_) return errors::FailedPrecondition("The coordinator has been stopped.");
    runners_.push_back(std::move(runner));
    return OkStatus();
  }
  bool AllRunnersStopped() {
    mutex_lock lock(mutex_);
    return std::none_of(runners_.begin(), runners_.end(),
                        [](const auto& runner) { return runner->IsRunning(); });
  }
  Status RequestStop() {
    mutex_lock lock(mutex_);
    if (should_stop_) return errors::FailedPrecondition("The Coordinator is not running.");
    should_stop_ = true;
    stopped_.notify_all();
    return OkStatus();
  }
  bool ShouldStop() {
    mutex_lock lock(mutex_);
    return should_stop_;
  }
  // Waits until all runners have ended, and returns the first error. A stop must have been
  // requested.
  Status Join() {
    std::vector<std::unique_ptr<RunnerInterface>> runners;
    {
      mutex_lock lock(mutex_);
      if (!should_stop_)
        return errors::FailedPrecondition("Joining coordinator without requesting to stop.");
      runners.swap(runners_);
    }
    for (const auto& runner : runners) ReportStatus(runner->Join());
    return GetStatus();
  }
  // Requests a stop because of an error; the first error is kept.
  void ReportStatus(const absl::Status& status) {
    mutex_lock lock(mutex_);
    if (status.ok() || !status_.ok() || clean_stop_errors_.count(status.raw_code())) return;
    status_ = status;
  }
  Status GetStatus() {
    mutex_lock lock(mutex_);
    return status_;
  }
  void WaitForStop() {
    mutex_lock lock(mutex_);
    stopped_.wait(lock, [this] { return should_stop_; });
  }
  // The sum of what the runners collected.
  Status ExportCostGraph(CostGraphDef* cost_graph) const {
    mutex_lock lock(mutex_);
    for (const auto& runner : runners_) TF_RETURN_IF_ERROR(runner->ExportCostGraph(cost_graph));
    return OkStatus();
  }

 private:
  std::unordered_set<int> clean_stop_errors_;
  mutable mutex mutex_;
  condition_variable stopped_;
  bool should_stop_ = false;
  Status status_;
  std::vector<std::unique_ptr<RunnerInterface>> runners_;
};

}  // namespace tensorflow

#endif  // TENSORFLOW_CC_TRAINING_COORDINATOR_H_

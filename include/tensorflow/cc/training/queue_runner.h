// QueueRunner: threads that run enqueue ops of a session until the input or the queue ends.
//
//   std::unique_ptr<QueueRunner> runner;
//   TF_CHECK_OK(QueueRunner::New(queue_runner_def, &coordinator, &runner));
//   TF_CHECK_OK(runner->Start(session));
//   TF_CHECK_OK(coordinator.RegisterRunner(std::move(runner)));
#ifndef TENSORFLOW_CC_TRAINING_QUEUE_RUNNER_H_
#define TENSORFLOW_CC_TRAINING_QUEUE_RUNNER_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "tensorflow/cc/training/coordinator.h"
#include "tensorflow/core/platform/threadpool.h"
#include "tensorflow/core/protobuf/queue_runner.pb.h"
#include "tensorflow/core/public/session.h"

namespace tensorflow {

class QueueRunner : public RunnerInterface {
 public:
  static Status New(const QueueRunnerDef& def, std::unique_ptr<QueueRunner>* result) {
    return New(def, nullptr, result);
  }
  // The runner stops when |coordinator| does, and reports its error there.
  static Status New(const QueueRunnerDef& def, Coordinator* coordinator,
                    std::unique_ptr<QueueRunner>* result) {
    if (def.enqueue_op_name_size() == 0)
      return errors::InvalidArgument("Empty enqueue ops to run.");
    result->reset(new QueueRunner(def, coordinator));
    return OkStatus();
  }
  ~QueueRunner() override { Join().IgnoreError(); }

  // |callback| gets the first error.
  void AddErrorCallback(const std::function<void(Status)>& callback) {
    mutex_lock lock(mutex_);
    callbacks_.push_back(callback);
  }
  void ClearErrorCallbacks() {
    mutex_lock lock(mutex_);
    callbacks_.clear();
  }

  // Starts one thread per enqueue op. If |wait_for_ms| is above 0, waits that long until each was
  // run once.
  Status Start(Session* session) { return Start(session, 0); }
  Status Start(Session* session, int wait_for_ms) {
    if (!threads_.empty()) return errors::FailedPrecondition("The QueueRunner was started already");
    for (const std::string& op : def_.enqueue_op_name())
      threads_.emplace_back([this, session, op] { Enqueue(session, op); });
    if (coordinator_) threads_.emplace_back([this, session] { Stop(session); });
    return wait_for_ms > 0 ? WaitForFirstRuns(wait_for_ms) : OkStatus();
  }
  // The same, and keeps the cost graphs of the steps.
  Status StartAndCollectCostGraph(Session* session, const RunOptions& run_options = RunOptions()) {
    return StartAndCollectCostGraph(session, 0, run_options);
  }
  Status StartAndCollectCostGraph(Session* session, int wait_for_ms,
                                  const RunOptions& run_options = RunOptions()) {
    collects_costs_ = true;
    run_options_ = run_options;
    return Start(session, wait_for_ms);
  }
  // Runs the cancel op; with a coordinator, once that stops.
  void Stop(Session* session) {
    if (coordinator_) coordinator_->WaitForStop();
    if (!def_.cancel_op_name().empty()) Report(RunOp(session, def_.cancel_op_name()));
    is_stopped_ = true;
  }
  // Waits until all threads have ended, and returns the first error.
  Status Join() final {
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
    return GetStatus();
  }
  Status GetStatus() {
    mutex_lock lock(mutex_);
    return status_;
  }
  Status ExportCostGraph(CostGraphDef* cost_graph) const override {
    if (!collects_costs_)
      return errors::FailedPrecondition("This QueueRunner doesn't collect a cost graph.");
    mutex_lock lock(mutex_);
    cost_graph->MergeFrom(cost_graph_);
    return OkStatus();
  }
  bool IsRunning() const override { return !is_stopped_; }

 private:
  QueueRunner(const QueueRunnerDef& def, Coordinator* coordinator)
      : def_(def), coordinator_(coordinator), active_(def.enqueue_op_name_size()) {
    for (int code : def.queue_closed_exception_types()) ends_.insert(code);
    if (ends_.empty()) ends_.insert(error::OUT_OF_RANGE);
  }

  bool ShouldStop() const { return coordinator_ && coordinator_->ShouldStop(); }
  bool IsEnd(const Status& status) const { return ends_.count(status.raw_code()) != 0; }
  static Status RunOp(Session* session, const std::string& op) {
    return session->Run({}, {}, {op}, nullptr);
  }
  Status RunEnqueue(Session* session, const std::string& op) {
    if (!collects_costs_) return RunOp(session, op);
    RunMetadata metadata;
    Status status = session->Run(run_options_, {}, {}, {op}, nullptr, &metadata);
    mutex_lock lock(mutex_);
    cost_graph_.Swap(metadata.mutable_cost_graph());
    return status;
  }
  Status WaitForFirstRuns(int ms) {
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
    mutex_lock lock(mutex_);
    while (first_runs_ < def_.enqueue_op_name_size()) {
      auto left = end - std::chrono::steady_clock::now();
      if (left.count() <= 0) return errors::DeadlineExceeded("Queues not fed before the timeout");
      fed_.wait_for(lock, left);
    }
    return first_status_.ok() ? status_ : first_status_;
  }
  // Keeps the first error; the ends of input and queue are not errors.
  void Report(const Status& status) {
    std::vector<std::function<void(Status)>> callbacks;
    {
      mutex_lock lock(mutex_);
      if (status.ok() || IsEnd(status) || !status_.ok()) return;
      status_ = status;
      callbacks = callbacks_;
    }
    if (coordinator_) coordinator_->ReportStatus(status);
    for (const auto& callback : callbacks) callback(status);
  }
  // What a thread does.
  void Enqueue(Session* session, const std::string& op) {
    Status status;
    for (bool is_first = true; status.ok() && !ShouldStop(); is_first = false) {
      status = RunEnqueue(session, op);
      mutex_lock lock(mutex_);
      if (!is_first) continue;
      first_status_.Update(status);
      ++first_runs_;
      fed_.notify_all();
    }
    bool is_last;
    {
      mutex_lock lock(mutex_);
      is_last = --active_ == 0;
    }
    if (!status.ok() && !IsEnd(status)) {
      LOG(ERROR) << "Queue runner thread got a failure status: " << status;
      Report(status);
      if (coordinator_) coordinator_->RequestStop().IgnoreError();
    } else if (is_last && !status.ok() && !ShouldStop() && !def_.close_op_name().empty()) {
      Report(RunOp(session, def_.close_op_name()));
    }
  }

  const QueueRunnerDef def_;
  Coordinator* const coordinator_;
  std::unordered_set<int> ends_;
  std::vector<std::thread> threads_;
  std::atomic<bool> is_stopped_{false};
  bool collects_costs_ = false;
  RunOptions run_options_;
  mutable mutex mutex_;  // guards what follows
  condition_variable fed_;
  int active_;
  int first_runs_ = 0;
  Status first_status_, status_;
  std::vector<std::function<void(Status)>> callbacks_;
  CostGraphDef cost_graph_;
};

}  // namespace tensorflow

#endif  // TENSORFLOW_CC_TRAINING_QUEUE_RUNNER_H_

// ClientSession: runs what was built in a scope.
//
//   ClientSession session(scope);
//   std::vector<Tensor> outputs;
//   TF_CHECK_OK(session.Run({{x, 3.f}}, {y}, &outputs));
//
// The graph may grow between steps. Any number of threads may call Run.
#ifndef TENSORFLOW_CC_CLIENT_CLIENT_SESSION_H_
#define TENSORFLOW_CC_CLIENT_CLIENT_SESSION_H_

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/core/public/session_impl.h"

namespace tensorflow {

class ClientSession {
 public:
  typedef std::unordered_map<Output, Input::Initializer, OutputHash> FeedType;
  typedef int64_t CallableHandle;

  explicit ClientSession(const Scope& scope) : ClientSession(scope, SessionOptions()) {}
  ClientSession(const Scope& scope, const std::string& target)
      : ClientSession(scope, OptionsFor(target)) {}
  // Errors of the scope and of the options are returned by Run.
  ClientSession(const Scope& scope, const SessionOptions& options) : state_(new State) {
    state_->scope_status = scope.status();
    state_->status =
        internal::CSession::Start(scope.graph_as_shared_ptr(), options, &state_->session);
  }

  Status Run(const std::vector<Output>& fetches, std::vector<Tensor>* outputs) const {
    return Run(FeedType{}, fetches, {}, outputs);
  }
  Status Run(const FeedType& feeds, const std::vector<Output>& fetches,
             std::vector<Tensor>* outputs) const {
    return Run(feeds, fetches, {}, outputs);
  }
  Status Run(const FeedType& feeds, const std::vector<Output>& fetches,
             const std::vector<Operation>& targets, std::vector<Tensor>* outputs) const {
    return RunStep(nullptr, feeds, fetches, targets, outputs, nullptr);
  }
  Status Run(const RunOptions& options, const FeedType& feeds, const std::vector<Output>& fetches,
             const std::vector<Operation>& targets, std::vector<Tensor>* outputs,
             RunMetadata* metadata) const {
    return RunStep(&options, feeds, fetches, targets, outputs, metadata);
  }
  Status Run(const RunOptions& options, const FeedType& feeds, const std::vector<Output>& fetches,
             const std::vector<Operation>& targets, std::vector<Tensor>* outputs,
             RunMetadata* metadata, const thread::ThreadPoolOptions&) const {
    return RunStep(&options, feeds, fetches, targets, outputs, metadata);
  }

  // A step by the names of its edges, to be run many times.
  Status MakeCallable(const CallableOptions& options, CallableHandle* out_handle);
  Status RunCallable(CallableHandle handle, const std::vector<Tensor>& feeds,
                     std::vector<Tensor>* fetches, RunMetadata* metadata);
  Status RunCallable(CallableHandle handle, const std::vector<Tensor>& feeds,
                     std::vector<Tensor>* fetches, RunMetadata* metadata,
                     const thread::ThreadPoolOptions&) {
    return RunCallable(handle, feeds, fetches, metadata);
  }
  Status ReleaseCallable(CallableHandle handle);

 private:
  struct State {
    Status scope_status;
    Status status;
    std::unique_ptr<internal::CSession> session;
    std::mutex mutex;                                         // guards what follows
    std::vector<std::unique_ptr<CallableOptions>> callables;  // by handle; NULL: released
  };

  static SessionOptions OptionsFor(const std::string& target) {
    SessionOptions options;
    options.target = target;
    return options;
  }
  Status RunStep(const RunOptions* options, const FeedType& feeds,
                 const std::vector<Output>& fetches, const std::vector<Operation>& targets,
                 std::vector<Tensor>* outputs, RunMetadata* metadata) const {
    TF_RETURN_IF_ERROR(state_->scope_status);
    TF_RETURN_IF_ERROR(state_->status);
    internal::Step step;
    for (const auto& feed : feeds) {
      TF_RETURN_IF_ERROR(feed.second.status);
      TF_RETURN_IF_ERROR(CheckNode(feed.first.node(), "fed"));
      step.feeds.push_back(feed.first.c_output());
      step.values.push_back(feed.second.tensor);
    }
    for (const Output& fetch : fetches) {
      TF_RETURN_IF_ERROR(CheckNode(fetch.node(), "fetched"));
      step.fetches.push_back(fetch.c_output());
    }
    for (const Operation& target : targets) {
      TF_RETURN_IF_ERROR(CheckNode(target.node(), "run"));
      step.targets.push_back(target.node()->operation());
    }
    return state_->session->Run(options, step, outputs, metadata);
  }
  static Status CheckNode(Node* node, const char* what) {
    if (node) return OkStatus();
    return errors::InvalidArgument("an output to be ", what, " has no node");
  }
  // Called with the mutex held.
  Status CheckHandle(CallableHandle handle) const {
    const auto& callables = state_->callables;
    if (handle >= 0 && handle < static_cast<CallableHandle>(callables.size()) && callables[handle])
      return OkStatus();
    return errors::InvalidArgument("No such callable handle: ", handle);
  }

  std::unique_ptr<State> state_;
};

inline Status ClientSession::MakeCallable(const CallableOptions& options,
                                          CallableHandle* out_handle) {
  TF_RETURN_IF_ERROR(state_->scope_status);
  TF_RETURN_IF_ERROR(state_->status);
  internal::Step step;
  TF_RETURN_IF_ERROR(internal::StepOf(*state_->session->graph(), options, &step));
  std::lock_guard<std::mutex> lock(state_->mutex);
  *out_handle = static_cast<CallableHandle>(state_->callables.size());
  state_->callables.push_back(std::make_unique<CallableOptions>(options));
  return OkStatus();
}
inline Status ClientSession::RunCallable(CallableHandle handle, const std::vector<Tensor>& feeds,
                                         std::vector<Tensor>* fetches, RunMetadata* metadata) {
  CallableOptions options;
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    TF_RETURN_IF_ERROR(CheckHandle(handle));
    options = *state_->callables[handle];
  }
  return internal::RunCallable(*state_->session, options, feeds, fetches, metadata);
}
inline Status ClientSession::ReleaseCallable(CallableHandle handle) {
  std::lock_guard<std::mutex> lock(state_->mutex);
  TF_RETURN_IF_ERROR(CheckHandle(handle));
  state_->callables[handle].reset();
  return OkStatus();
}

}  // namespace tensorflow

#endif  // TENSORFLOW_CC_CLIENT_CLIENT_SESSION_H_

// Session: runs a GraphDef, whose edges are named "node:0".
//
//   std::unique_ptr<Session> session(NewSession(SessionOptions()));
//   TF_CHECK_OK(session->Create(graph_def));
//   TF_CHECK_OK(session->Run({{"x", value}}, {"y:0"}, {}, &outputs));
//
// Any number of threads may call Run.
#ifndef TENSORFLOW_CORE_PUBLIC_SESSION_H_
#define TENSORFLOW_CORE_PUBLIC_SESSION_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/device_attributes.pb.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/public/session_impl.h"

namespace tensorflow {
class Session {
 public:
  typedef std::vector<std::pair<std::string, Tensor>> Inputs;
  typedef int64_t CallableHandle;

  Session() = default;
  virtual ~Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Create may be called once; Extend adds nodes afterwards.
  virtual Status Create(const GraphDef& graph) = 0;
  virtual Status Extend(const GraphDef& graph) = 0;
  virtual Status Create(GraphDef&& graph) { return Create(static_cast<const GraphDef&>(graph)); }
  virtual Status Extend(GraphDef&& graph) { return Extend(static_cast<const GraphDef&>(graph)); }
  virtual Status Create(const RunOptions&, const GraphDef& graph) { return Create(graph); }
  virtual Status Extend(const RunOptions&, const GraphDef& graph) { return Extend(graph); }
  virtual Status Run(const Inputs& inputs, const std::vector<std::string>& output_names,
                     const std::vector<std::string>& target_names,
                     std::vector<Tensor>* outputs) = 0;
  virtual Status Run(const RunOptions& options, const Inputs& inputs,
                     const std::vector<std::string>& output_names,
                     const std::vector<std::string>& target_names, std::vector<Tensor>* outputs,
                     RunMetadata* metadata) = 0;
  virtual Status Run(const RunOptions& options, const Inputs& inputs,
                     const std::vector<std::string>& output_names,
                     const std::vector<std::string>& target_names, std::vector<Tensor>* outputs,
                     RunMetadata* metadata, const thread::ThreadPoolOptions&) {
    return Run(options, inputs, output_names, target_names, outputs, metadata);
  }
  // A step in several parts: the edges of all of them first, then some feeds and fetches at a time.
  virtual Status PRunSetup(const std::vector<std::string>& input_names,
                           const std::vector<std::string>& output_names,
                           const std::vector<std::string>& target_names, std::string* handle) = 0;
  virtual Status PRun(const std::string& handle, const Inputs& inputs,
                      const std::vector<std::string>& output_names,
                      std::vector<Tensor>* outputs) = 0;
  virtual Status ListDevices(std::vector<DeviceAttributes>* response) = 0;
  virtual Status Close() = 0;
  virtual Status Close(const RunOptions&) { return Close(); }
  virtual Status MakeCallable(const CallableOptions& options, CallableHandle* out_handle) = 0;
  virtual Status RunCallable(CallableHandle handle, const std::vector<Tensor>& feeds,
                             std::vector<Tensor>* fetches, RunMetadata* metadata) = 0;
  virtual Status RunCallable(CallableHandle handle, const std::vector<Tensor>& feeds,
                             std::vector<Tensor>* fetches, RunMetadata* metadata,
                             const thread::ThreadPoolOptions&) {
    return RunCallable(handle, feeds, fetches, metadata);
  }
  virtual Status ReleaseCallable(CallableHandle handle) = 0;
};

namespace internal {

// A session of this library: over a graph that Create makes, or one that came with a SavedModel.
class GraphSession : public Session {
 public:
  explicit GraphSession(const SessionOptions& options) : options_(options) {}
  explicit GraphSession(std::unique_ptr<CSession> session)
      : session_(std::move(session)), has_graph_(true) {}
  using Session::Close;
  using Session::Create;
  using Session::Extend;
  using Session::Run;
  using Session::RunCallable;

  // Starts the session, so that wrong options are errors of NewSession.
  Status Start() {
    auto graph = std::make_shared<Graph>();
    // As in TensorFlow, a graph that only runs may have ops without a shape function.
    TF_SetRequireShapeInferenceFns(graph->c_graph(), false);
    return CSession::Start(std::move(graph), options_, &session_);
  }

  Status Create(const GraphDef& graph) override {
    if (has_graph_)
      return errors::AlreadyExists("A Graph has already been created for this session.");
    return Extend(graph);
  }
  Status Extend(const GraphDef& graph) override {
    if (is_closed_) return errors::Cancelled("Session has been closed.");
    if (graph.node_size() == 0 && graph.library().function_size() == 0) return OkStatus();
    TF_RETURN_IF_ERROR(session_->graph()->Import(graph));
    has_graph_ = true;
    return OkStatus();
  }
  Status Run(const Inputs& inputs, const std::vector<std::string>& output_names,
             const std::vector<std::string>& target_names, std::vector<Tensor>* outputs) override {
    return RunStep(nullptr, inputs, output_names, target_names, outputs, nullptr);
  }
  Status Run(const RunOptions& options, const Inputs& inputs,
             const std::vector<std::string>& output_names,
             const std::vector<std::string>& target_names, std::vector<Tensor>* outputs,
             RunMetadata* metadata) override {
    return RunStep(&options, inputs, output_names, target_names, outputs, metadata);
  }
  Status PRunSetup(const std::vector<std::string>& input_names,
                   const std::vector<std::string>& output_names,
                   const std::vector<std::string>& target_names, std::string* handle) override {
    TF_RETURN_IF_ERROR(CheckUsable());
    Step step;
    for (const std::string& name : input_names)
      TF_RETURN_IF_ERROR(AddFeed(*graph(), name, &step.feeds));
    for (const std::string& name : output_names)
      TF_RETURN_IF_ERROR(AddFeed(*graph(), name, &step.fetches));
    for (const std::string& name : target_names)
      TF_RETURN_IF_ERROR(AddTarget(*graph(), name, &step.targets));
    const char* made = nullptr;
    CStatus status;
    TF_SessionPRunSetup(session_->session(), step.feeds.data(), static_cast<int>(step.feeds.size()),
                        step.fetches.data(), static_cast<int>(step.fetches.size()),
                        step.targets.data(), static_cast<int>(step.targets.size()), &made, status);
    if (!status.ok()) return status.Get();
    *handle = made;
    std::lock_guard<std::mutex> lock(mutex_);
    partial_runs_[*handle] = made;
    return OkStatus();
  }
  Status PRun(const std::string& handle, const Inputs& inputs,
              const std::vector<std::string>& output_names, std::vector<Tensor>* outputs) override {
    TF_RETURN_IF_ERROR(CheckUsable());
    Step step;
    TF_RETURN_IF_ERROR(FindStep(inputs, output_names, {}, &step));
    return session_->PartialRun(handle, step, outputs);
  }
  Status ListDevices(std::vector<DeviceAttributes>* response) override;
  Status Close() override {
    if (is_closed_) return OkStatus();
    is_closed_ = true;
    return session_->Close();
  }
  Status MakeCallable(const CallableOptions& options, CallableHandle* out_handle) override {
    TF_RETURN_IF_ERROR(CheckUsable());
    Step step;
    TF_RETURN_IF_ERROR(StepOf(*graph(), options, &step));
    std::lock_guard<std::mutex> lock(mutex_);
    *out_handle = next_callable_++;
    callables_[*out_handle] = options;
    return OkStatus();
  }
  Status RunCallable(CallableHandle handle, const std::vector<Tensor>& feeds,
                     std::vector<Tensor>* fetches, RunMetadata* metadata) override {
    TF_RETURN_IF_ERROR(CheckUsable());
    CallableOptions options;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      auto found = callables_.find(handle);
      if (found == callables_.end())
        return errors::InvalidArgument("No such callable handle: ", handle);
      options = found->second;
    }
    return internal::RunCallable(*session_, options, feeds, fetches, metadata);
  }
  Status ReleaseCallable(CallableHandle handle) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!callables_.erase(handle))
      return errors::InvalidArgument("No such callable handle: ", handle);
    return OkStatus();
  }
  ~GraphSession() override {
    for (const auto& run : partial_runs_) TF_DeletePRunHandle(run.second);
  }
  Graph* graph() const { return session_->graph(); }

 private:
  Status CheckUsable() const {
    if (is_closed_) return errors::Cancelled("Session has been closed.");
    if (!has_graph_) {
      return errors::FailedPrecondition("Session was not created with a graph before Run()!");
    }
    return OkStatus();
  }
  Status FindStep(const Inputs& inputs, const std::vector<std::string>& output_names,
                  const std::vector<std::string>& target_names, Step* step) const {
    for (const auto& input : inputs) {
      TF_RETURN_IF_ERROR(AddFeed(*graph(), input.first, &step->feeds));
      step->values.push_back(input.second);
    }
    for (const std::string& name : output_names)
      TF_RETURN_IF_ERROR(AddFeed(*graph(), name, &step->fetches));
    for (const std::string& name : target_names)
      TF_RETURN_IF_ERROR(AddTarget(*graph(), name, &step->targets));
    return OkStatus();
  }
  Status RunStep(const RunOptions* options, const Inputs& inputs,
                 const std::vector<std::string>& output_names,
                 const std::vector<std::string>& target_names, std::vector<Tensor>* outputs,
                 RunMetadata* metadata) {
    TF_RETURN_IF_ERROR(CheckUsable());
    Step step;
    TF_RETURN_IF_ERROR(FindStep(inputs, output_names, target_names, &step));
    return session_->Run(options, step, outputs, metadata);
  }
  SessionOptions options_;
  std::unique_ptr<CSession> session_;
  std::atomic<bool> has_graph_{false};
  std::atomic<bool> is_closed_{false};
  std::mutex mutex_;  // guards what follows
  std::map<std::string, const char*> partial_runs_;
  std::map<CallableHandle, CallableOptions> callables_;
  CallableHandle next_callable_ = 0;
};

inline Status GraphSession::ListDevices(std::vector<DeviceAttributes>* response) {
  response->clear();
  CStatus status;
  TF_DeviceList* list = TF_SessionListDevices(session_->session(), status);
  if (!status.ok()) return status.Get();
  for (int i = 0; i < TF_DeviceListCount(list); ++i) {
    DeviceAttributes device;
    CStatus ignored;
    device.set_name(TF_DeviceListName(list, i, ignored));
    device.set_device_type(TF_DeviceListType(list, i, ignored));
    device.set_memory_limit(TF_DeviceListMemoryBytes(list, i, ignored));
    device.set_incarnation(TF_DeviceListIncarnation(list, i, ignored));
    response->push_back(device);
  }
  TF_DeleteDeviceList(list);
  return OkStatus();
}

}  // namespace internal

// The caller owns |*out_session|.
inline Status NewSession(const SessionOptions& options, Session** out_session) {
  *out_session = nullptr;
  auto made = std::make_unique<internal::GraphSession>(options);
  TF_RETURN_IF_ERROR(made->Start());
  *out_session = made.release();
  return OkStatus();
}
// NULL after an error, which is logged.
inline Session* NewSession(const SessionOptions& options) {
  Session* session = nullptr;
  Status status = NewSession(options, &session);
  if (!status.ok()) LOG(ERROR) << "Failed to create session: " << status;
  return session;
}
// Clears variables and other state of a cluster's tasks.
inline Status Reset(const SessionOptions& options, const std::vector<std::string>& containers) {
  Status result;
  TF_SessionOptions* c_options = internal::MakeCOptions(options, &result);
  std::vector<const char*> names;
  for (const std::string& container : containers) names.push_back(container.c_str());
  CStatus status;
  if (result.ok()) {
    TF_Reset(c_options, names.data(), static_cast<int>(names.size()), status);
    result = status.Get();
  }
  TF_DeleteSessionOptions(c_options);
  return result;
}

}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_PUBLIC_SESSION_H_

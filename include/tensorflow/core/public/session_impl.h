// What ClientSession and Session share: a TF_Session over a graph. Include one of them.
#ifndef TENSORFLOW_CORE_PUBLIC_SESSION_IMPL_H_
#define TENSORFLOW_CORE_PUBLIC_SESSION_IMPL_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "tensorflow/c/c_api.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/public/session_options.h"

namespace tensorflow {
namespace internal {

// The C API's options with those of |options|. The caller deletes them.
inline TF_SessionOptions* MakeCOptions(const SessionOptions& options, Status* out_status) {
  TF_SessionOptions* made = TF_NewSessionOptions();
  TF_SetTarget(made, options.target == "local" ? "" : options.target.c_str());
  std::string config = options.config.SerializeAsString();
  CStatus status;
  if (!config.empty()) TF_SetConfig(made, config.data(), config.size(), status);
  *out_status = status.Get();
  return made;
}

// A message as a TF_Buffer, which the caller deletes; NULL for an empty one.
template <typename Message>
TF_Buffer* MakeBuffer(const Message& message) {
  std::string bytes = message.SerializeAsString();
  return bytes.empty() ? nullptr : TF_NewBufferFromString(bytes.data(), bytes.size());
}

// One step: its edges and targets, and the tensors that it feeds.
struct Step {
  std::vector<TF_Output> feeds;
  std::vector<Tensor> values;
  std::vector<TF_Output> fetches;
  std::vector<const TF_Operation*> targets;
};

// A TF_Session, which keeps its graph alive. Any number of threads may run steps.
class CSession {
 public:
  CSession(std::shared_ptr<Graph> graph, TF_Session* session)
      : graph_(std::move(graph)), session_(session) {}
  ~CSession() {
    if (!session_) return;
    CStatus ignored;
    TF_CloseSession(session_, ignored);
    TF_DeleteSession(session_, ignored);
  }
  CSession(const CSession&) = delete;
  CSession& operator=(const CSession&) = delete;

  static Status Start(std::shared_ptr<Graph> graph, const SessionOptions& options,
                      std::unique_ptr<CSession>* out) {
    Status result;
    TF_SessionOptions* c_options = MakeCOptions(options, &result);
    TF_Session* session = nullptr;
    CStatus status;
    if (result.ok()) {
      session = TF_NewSession(graph->c_graph(), c_options, status);
      result = status.Get();
    }
    TF_DeleteSessionOptions(c_options);
    if (result.ok()) *out = std::make_unique<CSession>(std::move(graph), session);
    return result;
  }

  Graph* graph() const { return graph_.get(); }
  TF_Session* session() const { return session_; }

  Status Run(const RunOptions* options, const Step& step, std::vector<Tensor>* outputs,
             RunMetadata* metadata) const {
    std::vector<std::shared_ptr<TF_Tensor>> owners;
    std::vector<TF_Tensor*> values, results(step.fetches.size(), nullptr);
    TF_RETURN_IF_ERROR(Values(step, &owners, &values));
    std::vector<const TF_Operation*> targets = step.targets;
    TF_Buffer* c_options = options ? MakeBuffer(*options) : nullptr;
    TF_Buffer* c_metadata = metadata ? TF_NewBuffer() : nullptr;
    CStatus status;
    TF_SessionRun(session_, c_options, step.feeds.data(), values.data(),
                  static_cast<int>(values.size()), step.fetches.data(), results.data(),
                  static_cast<int>(results.size()), targets.data(),
                  static_cast<int>(targets.size()), c_metadata, status);
    if (c_metadata && status.ok()) {
      metadata->ParseFromArray(c_metadata->data, static_cast<int>(c_metadata->length));
    }
    if (c_options) TF_DeleteBuffer(c_options);
    if (c_metadata) TF_DeleteBuffer(c_metadata);
    return Take(status, results, outputs);
  }

  Status PartialRun(const std::string& handle, const Step& step,
                    std::vector<Tensor>* outputs) const {
    std::vector<std::shared_ptr<TF_Tensor>> owners;
    std::vector<TF_Tensor*> values, results(step.fetches.size(), nullptr);
    TF_RETURN_IF_ERROR(Values(step, &owners, &values));
    CStatus status;
    TF_SessionPRun(session_, handle.c_str(), step.feeds.data(), values.data(),
                   static_cast<int>(values.size()), step.fetches.data(), results.data(),
                   static_cast<int>(results.size()), nullptr, 0, status);
    return Take(status, results, outputs);
  }

  Status Close() {
    CStatus status;
    TF_CloseSession(session_, status);
    return status.Get();
  }

 private:
  static Status Values(const Step& step, std::vector<std::shared_ptr<TF_Tensor>>* owners,
                       std::vector<TF_Tensor*>* values) {
    for (const Tensor& value : step.values) {
      owners->push_back(value.AsCTensor());
      if (!owners->back()) return errors::InvalidArgument("a fed tensor has no value");
      values->push_back(owners->back().get());
    }
    return OkStatus();
  }
  static Status Take(const CStatus& status, const std::vector<TF_Tensor*>& results,
                     std::vector<Tensor>* outputs) {
    if (outputs) outputs->clear();
    for (TF_Tensor* result : results) {
      if (!result) continue;
      Tensor taken = Tensor::FromCTensor(result);
      if (status.ok() && outputs) outputs->push_back(std::move(taken));
    }
    return status.Get();
  }

  std::shared_ptr<Graph> graph_;
  TF_Session* session_;
};

// Finds the edge "node", "node:1" or "^node" (then |out->index| is -1).
inline bool FindEdge(const Graph& graph, absl::string_view name, TF_Output* out) {
  int index = 0;
  if (!name.empty() && name[0] == '^') {
    name.remove_prefix(1);
    index = -1;
  }
  size_t colon = name.rfind(':');
  if (index == 0 && colon != absl::string_view::npos) {
    if (!absl::SimpleAtoi(name.substr(colon + 1), &index) || index < 0) return false;
    name = name.substr(0, colon);
  }
  TF_Operation* found = TF_GraphOperationByName(graph.c_graph(), std::string(name).c_str());
  *out = TF_Output{found, index};
  return found && index < TF_OperationNumOutputs(found);
}

inline Status AddFeed(const Graph& graph, const std::string& name, std::vector<TF_Output>* feeds) {
  TF_Output edge;
  if (!FindEdge(graph, name, &edge) || edge.index < 0) {
    return errors::InvalidArgument(
        "Tensor ", name,
        ", specified in either feed_devices or fetch_devices was not found in "
        "the Graph");
  }
  feeds->push_back(edge);
  return OkStatus();
}

inline Status AddTarget(const Graph& graph, const std::string& name,
                        std::vector<const TF_Operation*>* targets) {
  TF_Output edge;
  bool is_found = FindEdge(graph, name, &edge);
  if (!is_found && !(edge.oper && edge.index == 0)) {  // a node without outputs will do
    return errors::NotFound("PruneForTargets: Some target nodes not found: ", name);
  }
  targets->push_back(edge.oper);
  return OkStatus();
}

inline Status StepOf(const Graph& graph, const CallableOptions& options, Step* step) {
  for (const std::string& name : options.feed())
    TF_RETURN_IF_ERROR(AddFeed(graph, name, &step->feeds));
  for (const std::string& name : options.fetch())
    TF_RETURN_IF_ERROR(AddFeed(graph, name, &step->fetches));
  for (const std::string& name : options.target())
    TF_RETURN_IF_ERROR(AddTarget(graph, name, &step->targets));
  return OkStatus();
}

inline Status RunCallable(const CSession& session, const CallableOptions& options,
                          const std::vector<Tensor>& feeds, std::vector<Tensor>* fetches,
                          RunMetadata* metadata) {
  if (feeds.size() != static_cast<size_t>(options.feed_size())) {
    return errors::InvalidArgument("Expected ", options.feed_size(), " feed tensors, but got ",
                                   feeds.size());
  }
  Step step;
  TF_RETURN_IF_ERROR(StepOf(*session.graph(), options, &step));
  step.values = feeds;
  return session.Run(&options.run_options(), step, fetches, metadata);
}

}  // namespace internal
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_PUBLIC_SESSION_IMPL_H_

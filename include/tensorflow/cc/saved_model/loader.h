// LoadSavedModel: a model on disk as a session and its signatures.
#ifndef TENSORFLOW_CC_SAVED_MODEL_LOADER_H_
#define TENSORFLOW_CC_SAVED_MODEL_LOADER_H_

#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include <unistd.h>

#include "tensorflow/cc/saved_model/constants.h"
#include "tensorflow/core/framework/graph_debug_info.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/public/session.h"

namespace tensorflow {

class SavedModelBundleInterface {
 public:
  virtual ~SavedModelBundleInterface() = default;
  virtual Session* GetSession() const = 0;
  virtual const google::protobuf::Map<std::string, SignatureDef>& GetSignatures() const = 0;
};

struct SavedModelBundle : public SavedModelBundleInterface {
  SavedModelBundle() = default;
  ~SavedModelBundle() override {
    if (session) session->Close().IgnoreError();
  }
  Session* GetSession() const override { return session.get(); }
  const google::protobuf::Map<std::string, SignatureDef>& GetSignatures() const override {
    return meta_graph_def.signature_def();
  }

  std::unique_ptr<Session> session;
  MetaGraphDef meta_graph_def;
  std::unique_ptr<GraphDebugInfo> debug_info;
};

// The same without the graph's definition.
class SavedModelBundleLite : public SavedModelBundleInterface {
 public:
  SavedModelBundleLite() = default;
  SavedModelBundleLite(SavedModelBundleLite&& other) = default;
  SavedModelBundleLite& operator=(SavedModelBundleLite&& other) = default;
  SavedModelBundleLite(std::unique_ptr<Session> session,
                       google::protobuf::Map<std::string, SignatureDef> signatures)
      : session_(std::move(session)), signatures_(std::move(signatures)) {}
  ~SavedModelBundleLite() override {
    if (session_) session_->Close().IgnoreError();
  }
  Session* GetSession() const override { return session_.get(); }
  const google::protobuf::Map<std::string, SignatureDef>& GetSignatures() const override {
    return signatures_;
  }

 private:
  std::unique_ptr<Session> session_;
  google::protobuf::Map<std::string, SignatureDef> signatures_;
};

// Loads the meta graph that has exactly |tags|, restores its variables and runs its initializer.
inline Status LoadSavedModel(const SessionOptions& session_options, const RunOptions& run_options,
                             const std::string& export_dir,
                             const std::unordered_set<std::string>& tags,
                             SavedModelBundle* bundle) {
  Status result;
  TF_SessionOptions* c_options = internal::MakeCOptions(session_options, &result);
  TF_Buffer* c_run_options = internal::MakeBuffer(run_options);
  TF_Buffer* meta_graph = TF_NewBuffer();
  std::vector<const char*> c_tags;
  for (const std::string& tag : tags) c_tags.push_back(tag.c_str());
  auto graph = std::make_shared<Graph>();
  if (result.ok()) {
    CStatus status;
    TF_Session* session = TF_LoadSessionFromSavedModel(
        c_options, c_run_options, export_dir.c_str(), c_tags.data(),
        static_cast<int>(c_tags.size()), graph->c_graph(), meta_graph, status);
    result = status.Get();
    if (result.ok()) {
      auto owner = std::make_unique<internal::CSession>(std::move(graph), session);
      MetaGraphDef def;
      if (def.ParseFromArray(meta_graph->data, static_cast<int>(meta_graph->length))) {
        bundle->meta_graph_def = std::move(def);
        bundle->session = std::make_unique<internal::GraphSession>(std::move(owner));
      } else {
        result = errors::DataLoss("the MetaGraphDef of ", export_dir, " cannot be parsed");
      }
    }
  }
  TF_DeleteBuffer(meta_graph);
  if (c_run_options) TF_DeleteBuffer(c_run_options);
  TF_DeleteSessionOptions(c_options);
  return result;
}
inline Status LoadSavedModel(const SessionOptions& session_options, const RunOptions& run_options,
                             const std::string& export_dir,
                             const std::unordered_set<std::string>& tags,
                             SavedModelBundleLite* bundle) {
  SavedModelBundle full;
  TF_RETURN_IF_ERROR(LoadSavedModel(session_options, run_options, export_dir, tags, &full));
  *bundle = SavedModelBundleLite(std::move(full.session), full.meta_graph_def.signature_def());
  return OkStatus();
}

// True if the folder has a saved_model.pb or .pbtxt.
inline bool MaybeSavedModelDirectory(const std::string& export_dir) {
  return access((export_dir + "/" + kSavedModelFilenamePb).c_str(), R_OK) == 0 ||
         access((export_dir + "/" + kSavedModelFilenamePbTxt).c_str(), R_OK) == 0;
}

}  // namespace tensorflow

#endif  // TENSORFLOW_CC_SAVED_MODEL_LOADER_H_

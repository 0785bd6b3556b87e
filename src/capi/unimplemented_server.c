// Servers, SavedModels, checkpoints and plug-ins other than ops and kernels: not implemented yet.

#include "capi/unimplemented.h"
#include "tensorflow/c/c_api.h"
#include "tensorflow/c/c_api_experimental.h"

// Servers.
TF_Server* TF_NewServer(const void* proto, size_t proto_len, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
void TF_ServerStart(TF_Server* server, TF_Status* status) { RN_NOT_YET(status); }
void TF_ServerStop(TF_Server* server, TF_Status* status) { RN_NOT_YET(status); }
void TF_ServerJoin(TF_Server* server, TF_Status* status) { RN_NOT_YET(status); }
const char* TF_ServerTarget(TF_Server* server) { return NULL; }
void TF_DeleteServer(TF_Server* server) {}

// Models on disk.
TF_Session* TF_LoadSessionFromSavedModel(const TF_SessionOptions* session_options,
                                         const TF_Buffer* run_options, const char* export_dir,
                                         const char* const* tags, int tags_len, TF_Graph* graph,
                                         TF_Buffer* meta_graph_def, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
TF_CheckpointReader* TF_NewCheckpointReader(const char* filename, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
void TF_DeleteCheckpointReader(TF_CheckpointReader* reader) {}
int TF_CheckpointReaderHasTensor(TF_CheckpointReader* reader, const char* name) { return 0; }
const char* TF_CheckpointReaderGetVariable(TF_CheckpointReader* reader, int index) { return NULL; }
int TF_CheckpointReaderSize(TF_CheckpointReader* reader) { return 0; }
TF_DataType TF_CheckpointReaderGetVariableDataType(TF_CheckpointReader* reader, const char* name) {
  return (TF_DataType)0;
}
void TF_CheckpointReaderGetVariableShape(TF_CheckpointReader* reader, const char* name,
                                         int64_t* dims, int num_dims, TF_Status* status) {
  RN_NOT_YET(status);
}
int TF_CheckpointReaderGetVariableNumDims(TF_CheckpointReader* reader, const char* name) {
  return -1;
}
TF_Tensor* TF_CheckpointReaderGetTensor(TF_CheckpointReader* reader, const char* name,
                                        TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}

// Takes a C++ object in the buffer, which no C library can read.
TF_ImportGraphDefResults* TF_GraphImportGraphDefWithResultsNoSerialization(
    TF_Graph* graph, const TF_Buffer* graph_def, const TF_ImportGraphDefOptions* options,
    TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}

// Plug-ins.
void TF_RegisterFilesystemPlugin(const char* plugin_filename, TF_Status* status) {
  RN_NOT_YET(status);
}
TF_Library* TF_LoadPluggableDeviceLibrary(const char* library_filename, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
void TF_DeletePluggableDeviceLibraryHandle(TF_Library* lib_handle) {}

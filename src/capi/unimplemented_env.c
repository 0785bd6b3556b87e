// Files as seen through env.h: not implemented yet.

#include "capi/unimplemented.h"
#include "tensorflow/c/env.h"

void TF_CreateDir(const char* dirname, TF_Status* status) { RN_NOT_YET(status); }
void TF_DeleteDir(const char* dirname, TF_Status* status) { RN_NOT_YET(status); }
void TF_DeleteRecursively(const char* dirname, int64_t* undeleted_file_count,
                          int64_t* undeleted_dir_count, TF_Status* status) {
  RN_CLEAR(undeleted_file_count);
  RN_CLEAR(undeleted_dir_count);
  RN_NOT_YET(status);
}
void TF_FileStat(const char* filename, TF_FileStatistics* stats, TF_Status* status) {
  RN_NOT_YET(status);
}
void TF_NewWritableFile(const char* filename, TF_WritableFileHandle** handle, TF_Status* status) {
  RN_CLEAR(handle);
  RN_NOT_YET(status);
}
void TF_CloseWritableFile(TF_WritableFileHandle* handle, TF_Status* status) { RN_NOT_YET(status); }
void TF_SyncWritableFile(TF_WritableFileHandle* handle, TF_Status* status) { RN_NOT_YET(status); }
void TF_FlushWritableFile(TF_WritableFileHandle* handle, TF_Status* status) { RN_NOT_YET(status); }
void TF_AppendWritableFile(TF_WritableFileHandle* handle, const char* data, size_t length,
                           TF_Status* status) {
  RN_NOT_YET(status);
}
void TF_DeleteFile(const char* filename, TF_Status* status) { RN_NOT_YET(status); }
bool TF_StringStreamNext(TF_StringStream* list, const char** result) {
  RN_CLEAR(result);
  return false;
}
void TF_StringStreamDone(TF_StringStream* list) {}
TF_StringStream* TF_GetChildren(const char* filename, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
TF_StringStream* TF_GetLocalTempDirectories(void) { return NULL; }
char* TF_GetTempFileName(const char* extension) { return NULL; }

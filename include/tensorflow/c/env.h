// Files, time, threads and shared libraries as the library sees them.
//
// Paths may name any registered file system. Failures carry TF_NOT_FOUND, TF_PERMISSION_DENIED and
// the like.

#ifndef TENSORFLOW_C_ENV_H_
#define TENSORFLOW_C_ENV_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_file_statistics.h"
#include "tensorflow/c/tf_status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TF_WritableFileHandle TF_WritableFileHandle;
typedef struct TF_StringStream TF_StringStream;
typedef struct TF_Thread TF_Thread;

// 0 leaves a size to the system; numa_node -1 means any.
typedef struct TF_ThreadOptions {
  size_t stack_size;
  size_t guard_size;
  int numa_node;
} TF_ThreadOptions;

// --- Folders and files

// Makes a folder, or removes an empty one.
TF_CAPI_EXPORT void TF_CreateDir(const char* dirname, TF_Status* status);
TF_CAPI_EXPORT void TF_DeleteDir(const char* dirname, TF_Status* status);

// Deletes what it can below |dirname| and counts the rest.
TF_CAPI_EXPORT void TF_DeleteRecursively(const char* dirname, int64_t* undeleted_file_count,
                                         int64_t* undeleted_dir_count, TF_Status* status);
TF_CAPI_EXPORT void TF_FileStat(const char* filename, TF_FileStatistics* stats, TF_Status* status);

// Creates or empties a file for writing. |*handle| is the caller's until TF_CloseWritableFile,
// which frees it whatever the status.
TF_CAPI_EXPORT void TF_NewWritableFile(const char* filename, TF_WritableFileHandle** handle,
                                       TF_Status* status);
TF_CAPI_EXPORT void TF_CloseWritableFile(TF_WritableFileHandle* handle, TF_Status* status);

// Sync reaches the disk, Flush the operating system.
TF_CAPI_EXPORT void TF_SyncWritableFile(TF_WritableFileHandle* handle, TF_Status* status);
TF_CAPI_EXPORT void TF_FlushWritableFile(TF_WritableFileHandle* handle, TF_Status* status);
TF_CAPI_EXPORT void TF_AppendWritableFile(TF_WritableFileHandle* handle, const char* data,
                                          size_t length, TF_Status* status);
TF_CAPI_EXPORT void TF_DeleteFile(const char* filename, TF_Status* status);

// --- Lists of names

// The next string, valid until the stream is done; false at the end.
TF_CAPI_EXPORT bool TF_StringStreamNext(TF_StringStream* list, const char** result);

// Frees the stream. NULL is allowed.
TF_CAPI_EXPORT void TF_StringStreamDone(TF_StringStream* list);

// Names in a folder, without the path.
TF_CAPI_EXPORT TF_StringStream* TF_GetChildren(const char* filename, TF_Status* status);
TF_CAPI_EXPORT TF_StringStream* TF_GetLocalTempDirectories(void);

// A name that no file has, in a folder for temporary files. The caller frees it with free().
TF_CAPI_EXPORT char* TF_GetTempFileName(const char* extension);

// --- Time since the epoch

// The wall clock in nanoseconds, microseconds and seconds.
TF_CAPI_EXPORT uint64_t TF_NowNanos(void);
TF_CAPI_EXPORT uint64_t TF_NowMicros(void);
TF_CAPI_EXPORT uint64_t TF_NowSeconds(void);

// --- Threads

// Fills |options| with defaults.
TF_CAPI_EXPORT void TF_DefaultThreadOptions(TF_ThreadOptions* options);

// Runs |work_func|(|param|) on a new thread, which TF_JoinThread waits for and frees.
TF_CAPI_EXPORT TF_Thread* TF_StartThread(const TF_ThreadOptions* options, const char* thread_name,
                                         void (*work_func)(void*), void* param);
TF_CAPI_EXPORT void TF_JoinThread(TF_Thread* thread);

// --- Shared libraries

// Opens a shared library, and finds a symbol in one. NULL on failure.
TF_CAPI_EXPORT void* TF_LoadSharedLibrary(const char* library_filename, TF_Status* status);
TF_CAPI_EXPORT void* TF_GetSymbolFromLibrary(void* handle, const char* symbol_name,
                                             TF_Status* status);

#ifdef __cplusplus
}
#endif

#endif  // TENSORFLOW_C_ENV_H_

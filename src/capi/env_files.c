// The part of env.h for files and directories.

#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // mkstemps
#endif

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "capi/internal.h"
#include "tensorflow/c/env.h"

// --- Directories and files

void TF_CreateDir(const char* dirname, TF_Status* status) {
  const rn_env_t* env = rn_capi_env();
  rn_status_t outcome = dirname ? RN_OK : RN_CAPI_NULL("path");
  if (rn_ok(outcome)) {
    bool is_root = !*dirname || strcmp(dirname, "file://") == 0;
    outcome = is_root ? rn_status_make(RN_CODE_ALREADY_EXISTS, "%s", "")
                      : env->fs->make_directory(env->fs_self, dirname);
  }
  rn_capi_set(status, outcome);
}

void TF_DeleteDir(const char* dirname, TF_Status* status) {
  const rn_env_t* env = rn_capi_env();
  rn_status_t outcome =
      dirname ? env->fs->remove_directory(env->fs_self, dirname) : RN_CAPI_NULL("path");
  rn_capi_set(status, outcome);
}

void TF_DeleteFile(const char* filename, TF_Status* status) {
  const rn_env_t* env = rn_capi_env();
  rn_status_t outcome = filename ? env->fs->remove(env->fs_self, filename) : RN_CAPI_NULL("path");
  rn_capi_set(status, outcome);
}

void TF_DeleteRecursively(const char* dirname, int64_t* undeleted_file_count,
                          int64_t* undeleted_dir_count, TF_Status* status) {
  const rn_env_t* env = rn_capi_env();
  int64_t files = 0, directories = 0;
  bool exists = false;
  rn_status_t outcome = dirname ? rn_fs_find(env, dirname, &exists) : RN_CAPI_NULL("path");
  if (rn_ok(outcome) && !exists) {
    directories = 1;
    outcome = rn_not_found("%s not found", dirname);
  } else if (rn_ok(outcome)) {
    outcome = rn_fs_remove_tree(env, dirname, &files, &directories);
  }
  if (undeleted_file_count) *undeleted_file_count = files;
  if (undeleted_dir_count) *undeleted_dir_count = directories;
  rn_capi_set(status, outcome);
}

void TF_FileStat(const char* filename, TF_FileStatistics* stats, TF_Status* status) {
  const rn_env_t* env = rn_capi_env();
  rn_file_stat_t found;
  rn_status_t outcome = !stats      ? RN_CAPI_NULL("stats")
                        : !filename ? RN_CAPI_NULL("path")
                                    : env->fs->stat(env->fs_self, filename, &found);
  if (rn_ok(outcome)) {
    *stats = (TF_FileStatistics){
        .length = found.size, .mtime_nsec = found.modified_ns, .is_directory = found.is_directory};
  }
  rn_capi_set(status, outcome);
}

// --- Files for writing. Appending writes to the system at once: there is nothing to flush.

static inline rn_file_t* file_of(TF_WritableFileHandle* handle) { return (rn_file_t*)handle; }

void TF_NewWritableFile(const char* filename, TF_WritableFileHandle** handle, TF_Status* status) {
  rn_file_t* file = NULL;
  rn_status_t outcome = !handle     ? RN_CAPI_NULL("handle")
                        : !filename ? RN_CAPI_NULL("path")
                                    : rn_fs_open(rn_capi_env(), filename, RN_OPEN_WRITE, &file);
  if (handle) *handle = (TF_WritableFileHandle*)file;
  rn_capi_set(status, outcome);
}

void TF_CloseWritableFile(TF_WritableFileHandle* handle, TF_Status* status) {
  rn_file_t* file = file_of(handle);
  rn_capi_set(status, file ? file->vtable->close(file) : RN_CAPI_NULL("handle"));
}

void TF_SyncWritableFile(TF_WritableFileHandle* handle, TF_Status* status) {
  rn_file_t* file = file_of(handle);
  rn_capi_set(status, file ? file->vtable->sync(file) : RN_CAPI_NULL("handle"));
}

void TF_FlushWritableFile(TF_WritableFileHandle* handle, TF_Status* status) {
  rn_capi_set(status, handle ? RN_OK : RN_CAPI_NULL("handle"));
}

void TF_AppendWritableFile(TF_WritableFileHandle* handle, const char* data, size_t length,
                           TF_Status* status) {
  rn_file_t* file = file_of(handle);
  rn_status_t outcome = !file             ? RN_CAPI_NULL("handle")
                        : !data && length ? RN_CAPI_NULL("data")
                                          : file->vtable->append(file, rn_str_n(data, length));
  rn_capi_set(status, outcome);
}

// --- Lists of names

struct TF_StringStream {
  rn_names_t names;
  size_t next;
};

static rn_status_t stream_create(TF_StringStream** out) {
  RN_RETURN_IF_ERROR(RN_NEW(rn_capi_allocator(), out));
  rn_names_init(&(*out)->names, rn_capi_allocator());
  return RN_OK;
}

bool TF_StringStreamNext(TF_StringStream* list, const char** result) {
  bool has_more = list && list->next < list->names.list.count;
  if (result) *result = has_more ? list->names.list.items[list->next].data : NULL;
  if (has_more) list->next++;
  return has_more;
}

void TF_StringStreamDone(TF_StringStream* list) {
  if (!list) return;
  rn_names_clear(&list->names);
  RN_FREE(rn_capi_allocator(), list);
}

TF_StringStream* TF_GetChildren(const char* filename, TF_Status* status) {
  const rn_env_t* env = rn_capi_env();
  TF_StringStream* list = NULL;
  rn_status_t outcome = filename ? stream_create(&list) : RN_CAPI_NULL("path");
  // The listing of an unreadable directory is empty.
  if (rn_ok(outcome)) outcome = env->fs->list(env->fs_self, filename, &list->names);
  rn_capi_set(status, outcome);
  return list;
}

// The directory for temporary files, ending in '/': the first candidate that exists.
static bool temporary_directory(char out[PATH_MAX]) {
  const char* places[] = {getenv("TEST_TMPDIR"), getenv("TMPDIR"), getenv("TMP"), "/tmp"};
  for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
    struct stat found;
    const char* place = places[i];
    size_t size = place ? strlen(place) : 0;
    if (!size || size + 2 > PATH_MAX || stat(place, &found) != 0 || !S_ISDIR(found.st_mode))
      continue;
    snprintf(out, PATH_MAX, "%s%s", place, place[size - 1] == '/' ? "" : "/");
    return true;
  }
  return false;
}

TF_StringStream* TF_GetLocalTempDirectories(void) {
  char directory[PATH_MAX];
  TF_StringStream* list = NULL;
  rn_status_t status = stream_create(&list);
  if (rn_ok(status) && temporary_directory(directory))
    status = rn_names_add(&list->names, rn_str(directory));
  rn_status_free(status);
  return list;
}

char* TF_GetTempFileName(const char* extension) {
  char directory[PATH_MAX], path[PATH_MAX];
  if (!extension) extension = "";
  if (!temporary_directory(directory)) return NULL;
  int dot = *extension != '\0';
  int size = snprintf(path, sizeof path, "%stmp_file_tensorflow_%d_XXXXXX%s%s", directory,
                      (int)getpid(), dot ? "." : "", extension);
  if (size < 0 || (size_t)size >= sizeof path) return NULL;
  int file = mkstemps(path, dot + (int)strlen(extension));
  if (file < 0) return NULL;
  close(file);
  return strdup(path);
}

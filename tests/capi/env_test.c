// env.h: files, directories, lists of names, temporary files.
#include "tensorflow/c/env.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "util.h"

// A directory of the test's own, and its status.
typedef struct env_t {
  char root[64];
  TF_Status* status;
} env_t;

static env_t env_open(void) {
  env_t t = {.root = "/tmp/capi_env_XXXXXX", .status = TF_NewStatus()};
  cr_assert_not_null(mkdtemp(t.root));
  return t;
}

static void env_close(env_t* t) {
  int64_t files = -1, directories = -1;
  TF_DeleteRecursively(t->root, &files, &directories, t->status);
  CT_OK(t->status);
  CT_INT(files, 0);
  CT_INT(directories, 0);
  cr_assert_neq(access(t->root, F_OK), 0);
  TF_DeleteStatus(t->status);
}

// Lent until the next call.
static const char* path_of(const env_t* t, const char* name) {
  static char path[256];
  snprintf(path, sizeof path, "%s/%s", t->root, name);
  return path;
}

static void write_file(env_t* t, const char* name, const char* text) {
  TF_WritableFileHandle* file = NULL;
  TF_NewWritableFile(path_of(t, name), &file, t->status);
  CT_OK(t->status);
  for (size_t i = 0; i < strlen(text); ++i) {
    TF_AppendWritableFile(file, text + i, 1, t->status);
    CT_OK(t->status);
  }
  TF_FlushWritableFile(file, t->status);
  CT_OK(t->status);
  TF_SyncWritableFile(file, t->status);
  CT_OK(t->status);
  TF_CloseWritableFile(file, t->status);
  CT_OK(t->status);
}

#define ENV_ERROR(t, code, name, words)                                 \
  do {                                                                  \
    char message[320];                                                  \
    snprintf(message, sizeof message, "%s%s", path_of(t, name), words); \
    CT_ERROR((t)->status, code, message);                               \
  } while (0)

CT_TEST(Env, files) {
  env_t t = env_open();
  write_file(&t, "a", "longer than the next");
  write_file(&t, "a", "hello");  // emptied first
  TF_FileStatistics found = {0};
  TF_FileStat(path_of(&t, "a"), &found, t.status);
  CT_OK(t.status);
  CT_INT(found.length, 5);
  cr_assert(!found.is_directory && found.mtime_nsec > 0);
  TF_FileStat(t.root, &found, t.status);
  CT_OK(t.status);
  cr_assert(found.is_directory);
  TF_FileStat(path_of(&t, "b"), &found, t.status);
  ENV_ERROR(&t, TF_NOT_FOUND, "b", "; No such file or directory");
  TF_DeleteFile(path_of(&t, "b"), t.status);
  ENV_ERROR(&t, TF_NOT_FOUND, "b", "; No such file or directory");
  TF_DeleteFile(path_of(&t, "a"), t.status);
  CT_OK(t.status);
  TF_WritableFileHandle* file = (TF_WritableFileHandle*)&t;
  TF_NewWritableFile(path_of(&t, "none/x"), &file, t.status);
  ENV_ERROR(&t, TF_NOT_FOUND, "none/x", "; No such file or directory");
  env_close(&t);
}

CT_TEST(Env, directories) {
  env_t t = env_open();
  TF_CreateDir(path_of(&t, "d"), t.status);
  CT_OK(t.status);
  TF_CreateDir(path_of(&t, "d"), t.status);
  ENV_ERROR(&t, TF_ALREADY_EXISTS, "d", "; File exists");
  TF_CreateDir(path_of(&t, "e/f"), t.status);
  ENV_ERROR(&t, TF_NOT_FOUND, "e/f", "; No such file or directory");
  write_file(&t, "d/x", "1");
  write_file(&t, "d/y", "2");
  TF_DeleteDir(path_of(&t, "d"), t.status);
  ENV_ERROR(&t, TF_FAILED_PRECONDITION, "d", "; Directory not empty");
  TF_StringStream* names = TF_GetChildren(path_of(&t, "d"), t.status);
  CT_OK(t.status);
  const char* name = NULL;
  int seen = 0;
  while (TF_StringStreamNext(names, &name)) seen |= name[0] == 'x' ? 1 : name[0] == 'y' ? 2 : 4;
  CT_INT(seen, 3);
  cr_assert_null(name);
  TF_StringStreamDone(names);
  TF_StringStreamDone(TF_GetChildren(path_of(&t, "none"), t.status));
  ENV_ERROR(&t, TF_NOT_FOUND, "none", "; No such file or directory");
  int64_t files = -1, directories = -1;
  TF_DeleteRecursively(path_of(&t, "none"), &files, &directories, t.status);
  ENV_ERROR(&t, TF_NOT_FOUND, "none", " not found");
  CT_INT(files, 0);
  CT_INT(directories, 1);
  TF_DeleteRecursively(path_of(&t, "d"), &files, &directories, t.status);
  CT_OK(t.status);
  env_close(&t);
}

CT_TEST(Env, schemes) {
  env_t t = env_open();
  char path[128];
  snprintf(path, sizeof path, "file://%s/d", t.root);
  TF_CreateDir(path, t.status);
  CT_OK(t.status);
  cr_assert_eq(access(path_of(&t, "d"), F_OK), 0);
  TF_FileStatistics found;
  TF_FileStat("nowhere://a/b", &found, t.status);
  CT_ERROR(t.status, TF_UNIMPLEMENTED,
           "File system scheme 'nowhere' not implemented (file: 'nowhere://a/b')");
  env_close(&t);
}

CT_TEST(Env, temporary_files) {
  env_t t = env_open();
  unsetenv("TEST_TMPDIR");
  setenv("TMPDIR", t.root, 1);
  TF_StringStream* places = TF_GetLocalTempDirectories();
  const char* place = NULL;
  cr_assert(TF_StringStreamNext(places, &place));
  CT_STR(place, path_of(&t, ""));
  cr_assert(!TF_StringStreamNext(places, &place));
  TF_StringStreamDone(places);
  char *a = TF_GetTempFileName("txt"), *b = TF_GetTempFileName("");
  cr_assert(strncmp(a, t.root, strlen(t.root)) == 0 && access(a, F_OK) == 0);
  CT_STR(a + strlen(a) - 4, ".txt");
  cr_assert(access(b, F_OK) == 0 && strcmp(a, b) != 0);
  free(a);
  free(b);
  setenv("TMPDIR", "/no/such/place", 1);
  places = TF_GetLocalTempDirectories();
  cr_assert(TF_StringStreamNext(places, &place));
  CT_STR(place, "/tmp/");
  TF_StringStreamDone(places);
  env_close(&t);
}

// For tests of choices that one process leaves to another in the kernel cache.
#ifndef TESTS_GPU_CHOICES_H_
#define TESTS_GPU_CHOICES_H_

#include <criterion/criterion.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/env.h"

#define CHOICES_FOLDER "/tmp/runnel_choices_XXXXXX"

// What |function| of the emulated |library|, in the first folder of RUNNEL_CUDA_PATH, says.
static inline int choices_ask(const char* library, const char* function, const char* what) {
  char path[4096];
  const char* folders = getenv("RUNNEL_CUDA_PATH");
  snprintf(path, sizeof path, "%.*s/%s", (int)strcspn(folders, ":"), folders, library);
  void* loaded = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  cr_assert_not_null(loaded, "%s", path);
  int (*ask)(const char*) = NULL;
  *(void**)&ask = dlsym(loaded, function);
  return ask(what);
}

// Lines of the log about damaged files.
static int choices_lines;
static inline void choices_log(void* self, rn_log_level_t level, const char* message) {
  (void)self, (void)level;
  choices_lines += strstr(message, "it is made again") != NULL;
}
static inline rn_env_t choices_env(void) {
  rn_env_t env = *rn_env_system();
  env.log = choices_log;
  return env;
}

// Calls |visit| with the path of each file in |folder|; returns for how many it gave 0.
static inline int choices_each(const char* folder, int (*visit)(const char* path)) {
  int files = 0;
  DIR* list = opendir(folder);
  for (struct dirent* entry; (entry = readdir(list));) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (*entry->d_name != '.') files += visit(path) == 0;
  }
  closedir(list);
  return files;
}

static inline int choices_spoil_file(const char* path) {
  FILE* file = fopen(path, "r+");
  fseek(file, -1, SEEK_END);
  fputc('!', file);
  return fclose(file);
}
// Damages all files; returns their number.
static inline int choices_spoil(const char* folder) {
  return choices_each(folder, choices_spoil_file);
}

// Has another process |compute|, which leaves what it has found in |folder|, a CHOICES_FOLDER.
static inline void choices_begin(char* folder, void (*compute)(void)) {
  cr_assert_not_null(mkdtemp(folder));
  setenv("RUNNEL_CACHE_DIR", folder, 1);
  pid_t child = fork();
  cr_assert_geq(child, 0);
  if (child == 0) {
    compute();
    _exit(0);
  }
  int result;
  cr_assert_eq(waitpid(child, &result, 0), child);
  cr_assert_eq(result, 0);
}

static inline void choices_end(const char* folder) {
  choices_each(folder, remove);
  rmdir(folder);
}

#endif  // TESTS_GPU_CHOICES_H_

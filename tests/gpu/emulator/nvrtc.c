// A stand-in for NVRTC (libnvrtc.so.13): compiles kernels with the host's C++ compiler into images
// of the emulated driver (image.h). The "CUBIN" is a shared object.
//
// The compiler is CXX of the environment, or that of the build. It runs in a temporary folder,
// which goes with the compilation; it may take a minute.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // posix_spawn_file_actions_addchdir_np
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "device/cuda/driver_api.h"

#define EXPORT __attribute__((visibility("default")))
#define PROTOTYPE(result, name, parameters) EXPORT result name parameters;
RN_NVRTC_CALLS(PROTOTYPE)
// A call that is not defined stops the link here.
#define CALL_POINTER(result, name, parameters) (void (*)(void)) name,
__attribute__((used)) static void (*const all_calls[])(void) = {RN_NVRTC_CALLS(CALL_POINTER)};

#define MAX_SECONDS 60
#define MAX_LOG ((size_t)64 << 10)
#define MAX_IMAGE ((size_t)64 << 20)
#define MAX_ARGS 64
#define MAX_PATH 4096

#define ERRORS(X)                             \
  X(NVRTC_SUCCESS, 0)                         \
  X(NVRTC_ERROR_OUT_OF_MEMORY, 1)             \
  X(NVRTC_ERROR_PROGRAM_CREATION_FAILURE, 2)  \
  X(NVRTC_ERROR_INVALID_INPUT, 3)             \
  X(NVRTC_ERROR_INVALID_PROGRAM, 4)           \
  X(NVRTC_ERROR_INVALID_OPTION, 5)            \
  X(NVRTC_ERROR_COMPILATION, 6)               \
  X(NVRTC_ERROR_BUILTIN_OPERATION_FAILURE, 7) \
  X(NVRTC_ERROR_INTERNAL_ERROR, 11)
#define ERROR_ENUM(name, number) EMU_##name = number,
enum { ERRORS(ERROR_ENUM) };

struct _nvrtcProgram {
  char *source, *name;
  int header_count;
  char **headers, **header_names;
  char* log;  // a string
  size_t log_size;
  char* image;
  size_t image_size;
};

nvrtcResult nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return NVRTC_SUCCESS;
}

const char* nvrtcGetErrorString(nvrtcResult result) {
#define ERROR_NAME(name, number) \
  if (result == (number)) return #name;
  ERRORS(ERROR_NAME)
  return "NVRTC_ERROR unknown";
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram* out_program, const char* source, const char* name,
                               int header_count, const char* const* headers,
                               const char* const* header_names) {
  if (!out_program || !source || header_count < 0) return EMU_NVRTC_ERROR_INVALID_INPUT;
  nvrtcProgram program = calloc(1, sizeof *program);
  if (!program) return EMU_NVRTC_ERROR_OUT_OF_MEMORY;
  program->source = strdup(source);
  program->name = strdup(name && *name ? name : "default_program");
  program->headers = calloc((size_t)header_count + 1, sizeof *program->headers);
  program->header_names = calloc((size_t)header_count + 1, sizeof *program->header_names);
  bool is_complete = program->source && program->name && program->headers && program->header_names;
  if (is_complete) program->header_count = header_count;
  for (int i = 0; i < program->header_count; ++i) {
    program->headers[i] = strdup(headers[i]);
    program->header_names[i] = strdup(header_names[i]);
    is_complete = is_complete && program->headers[i] && program->header_names[i];
  }
  if (!is_complete) nvrtcDestroyProgram(&program);
  *out_program = program;
  return is_complete ? NVRTC_SUCCESS : EMU_NVRTC_ERROR_OUT_OF_MEMORY;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram* inout_program) {
  nvrtcProgram program = *inout_program;
  if (!program) return EMU_NVRTC_ERROR_INVALID_PROGRAM;
  for (int i = 0; i < program->header_count; ++i) {
    free(program->headers[i]);
    free(program->header_names[i]);
  }
  free(program->headers);
  free(program->header_names);
  free(program->source);
  free(program->name);
  free(program->log);
  free(program->image);
  free(program);
  *inout_program = NULL;
  return NVRTC_SUCCESS;
}

// Files.

static bool join(char* path, const char* folder, const char* name) {
  int size = snprintf(path, MAX_PATH, "%s/%s", folder, name);
  return size > 0 && size < MAX_PATH;
}

// Makes the folders above |path| which lie below |folder|.
static void make_folders(const char* folder, char* path) {
  for (char* slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')) != NULL; ++slash) {
    *slash = '\0';
    mkdir(path, 0700);
    *slash = '/';
  }
}

static bool write_file(const char* folder, const char* name, const char* text) {
  char path[MAX_PATH];
  // Nothing is written outside of the folder.
  if (name[0] == '/' || strstr(name, "..") || !join(path, folder, name)) return false;
  make_folders(folder, path);
  FILE* file = fopen(path, "w");
  if (!file) return false;
  bool is_written = fputs(text, file) >= 0;
  return fclose(file) == 0 && is_written;
}

// Reads at most |most| bytes, and ends them with a NUL that |out_size| does not count.
static char* read_file(const char* folder, const char* name, size_t most, size_t* out_size) {
  char path[MAX_PATH];
  FILE* file = join(path, folder, name) ? fopen(path, "r") : NULL;
  if (!file) return NULL;
  struct stat info;
  size_t size = fstat(fileno(file), &info) == 0 ? (size_t)info.st_size : 0;
  if (size > most) size = most;
  char* bytes = malloc(size + 1);
  *out_size = bytes ? fread(bytes, 1, size, file) : 0;
  if (bytes) bytes[*out_size] = '\0';
  fclose(file);
  return bytes;
}

static void remove_folders(const char* folder, char* path) {
  for (char* slash; (slash = strrchr(path, '/')) != NULL && strlen(path) > strlen(folder);) {
    *slash = '\0';
    if (strlen(path) > strlen(folder)) rmdir(path);
  }
}

static void remove_file(const char* folder, const char* name) {
  char path[MAX_PATH];
  if (name[0] == '/' || strstr(name, "..") || !join(path, folder, name)) return;
  unlink(path);
  remove_folders(folder, path);
}

// The compiler.

// Options of NVRTC that mean nothing to a host compiler.
static bool is_ignored(const char* option) {
  static const char* const ignored[] = {"--gpu-architecture",
                                        "-arch",
                                        "--std",
                                        "-std",
                                        "--use_fast_math",
                                        "-use_fast_math",
                                        "--fmad",
                                        "-fmad",
                                        "--ftz",
                                        "-ftz",
                                        "--prec-div",
                                        "-prec-div",
                                        "--prec-sqrt",
                                        "-G",
                                        "--dopt",
                                        "-default-device",
                                        "--device-as-default-execution-space",
                                        "-lineinfo",
                                        "--generate-line-info",
                                        "--maxrregcount",
                                        "-w",
                                        "--disable-warnings",
                                        "--extra-device-vectorization",
                                        "--restrict",
                                        "-restrict"};
  for (size_t i = 0; i < sizeof ignored / sizeof *ignored; ++i) {
    size_t length = strlen(ignored[i]);
    if (strncmp(option, ignored[i], length) == 0 && (!option[length] || option[length] == '='))
      return true;
  }
  return false;
}

// Waits for the compiler, but not for ever. True if it succeeded.
static bool wait_for(pid_t child, bool* out_is_late) {
  int state = 0;
  const struct timespec pause = {.tv_nsec = 2000000};
  for (int i = 0; i < MAX_SECONDS * 500; ++i) {
    pid_t done = waitpid(child, &state, WNOHANG);
    if (done == child) return WIFEXITED(state) && WEXITSTATUS(state) == 0;
    if (done < 0 && errno != EINTR) return false;
    nanosleep(&pause, NULL);
  }
  *out_is_late = true;
  kill(-child, SIGKILL);
  while (waitpid(child, &state, 0) < 0 && errno == EINTR) continue;
  return false;
}

// A sanitizer that is preloaded here has no business in the compiler.
static char** environment(void) {
  extern char** environ;
  size_t count = 0;
  while (environ[count]) ++count;
  char** copy = calloc(count + 1, sizeof *copy);
  for (size_t i = 0, n = 0; copy && i < count; ++i)
    if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0) copy[n++] = environ[i];
  return copy;
}

static bool run(char** args, const char* folder, bool* out_is_late) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addchdir_np(&actions, folder);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "log", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  char** variables = environment();
  pid_t child;
  bool is_done =
      variables && posix_spawnp(&child, args[0], &actions, &attributes, args, variables) == 0;
  if (is_done) is_done = wait_for(child, out_is_late);
  free(variables);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return is_done;
}

typedef struct command_t {
  char* args[MAX_ARGS];
  int count;
} command_t;

static bool add(command_t* command, const char* arg) {
  if (command->count + 1 >= MAX_ARGS) return false;
  command->args[command->count++] = (char*)arg;
  return true;
}

// Adds the words of |text|, which it cuts in place.
static bool add_words(command_t* command, char* text) {
  char* rest = NULL;
  bool is_added = true;
  for (char* word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
    is_added = add(command, word) && is_added;
  return is_added;
}

static nvrtcResult set_command(command_t* command, char* compiler, char* flags, int option_count,
                               const char* const* options) {
  static const char* const fixed[] = {"-std=c++17",
                                      "-O1",
                                      "-shared",
                                      "-fPIC",
                                      "-fno-math-errno",
                                      "-ffp-contract=off",
                                      "-DRN_EMULATED",
                                      ("-I" RN_EMULATED_FOLDER),
                                      "-I."};
  static const char* const files[] = {"-x", "c++", "program.cu", "-o", "program.so"};
  bool is_added = add_words(command, compiler);
  for (size_t i = 0; i < sizeof fixed / sizeof *fixed; ++i)
    is_added = add(command, fixed[i]) && is_added;
  is_added = add_words(command, flags) && is_added;
  for (int i = 0; i < option_count; ++i) {
    const char* option = options[i];
    bool is_kept = option[0] == '-' && option[1] && strchr("DUI", option[1]);
    if (!is_kept && !is_ignored(option)) return EMU_NVRTC_ERROR_INVALID_OPTION;
    if (is_kept) is_added = add(command, option) && is_added;
  }
  for (size_t i = 0; i < sizeof files / sizeof *files; ++i)
    is_added = add(command, files[i]) && is_added;
  return is_added ? NVRTC_SUCCESS : EMU_NVRTC_ERROR_INVALID_OPTION;
}

// The source, with its name for messages.
static bool write_source(nvrtcProgram program, const char* folder) {
  size_t size = strlen(program->source) + strlen(program->name) + 16;
  char* text = malloc(size);
  if (!text) return false;
  snprintf(text, size, "#line 1 \"%s\"\n%s", program->name, program->source);
  bool is_written = write_file(folder, "program.cu", text);
  free(text);
  return is_written;
}

static nvrtcResult compile(nvrtcProgram program, const char* folder, int option_count,
                           const char* const* options) {
  bool is_written = write_source(program, folder);
  for (int i = 0; i < program->header_count && is_written; ++i)
    is_written = write_file(folder, program->header_names[i], program->headers[i]);
  if (!is_written) return EMU_NVRTC_ERROR_INVALID_INPUT;
  const char* chosen = getenv("CXX");
  char compiler[MAX_PATH], flags[] = RN_EMULATED_FLAGS;
  snprintf(compiler, sizeof compiler, "%s", chosen && *chosen ? chosen : RN_EMULATED_CXX);
  command_t command = {0};
  nvrtcResult result = set_command(&command, compiler, flags, option_count, options);
  if (result) return result;
  bool is_late = false;
  bool is_done = run(command.args, folder, &is_late);
  program->log = read_file(folder, "log", MAX_LOG, &program->log_size);
  if (is_late) {
    free(program->log);
    program->log = strdup("The compiler took too long");
    program->log_size = program->log ? strlen(program->log) : 0;
  }
  if (!is_done) return EMU_NVRTC_ERROR_COMPILATION;
  program->image = read_file(folder, "program.so", MAX_IMAGE, &program->image_size);
  return program->image ? NVRTC_SUCCESS : EMU_NVRTC_ERROR_INTERNAL_ERROR;
}

// RN_EMULATED_NVRTC_FAIL=N: compilations fail from the N-th of the process on.
static bool is_to_fail(void) {
  static int count;
  const char* nth = getenv("RN_EMULATED_NVRTC_FAIL");
  return __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) >= (nth ? atoi(nth) : INT_MAX);
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int option_count,
                                const char* const* options) {
  if (!program) return EMU_NVRTC_ERROR_INVALID_PROGRAM;
  if (is_to_fail()) return EMU_NVRTC_ERROR_INTERNAL_ERROR;
  const char* parent = getenv("TMPDIR");
  char folder[MAX_PATH];
  if (!join(folder, parent && *parent ? parent : "/tmp", "emulated-nvrtc-XXXXXX"))
    return EMU_NVRTC_ERROR_INTERNAL_ERROR;
  if (!mkdtemp(folder)) return EMU_NVRTC_ERROR_INTERNAL_ERROR;
  free(program->log);
  free(program->image);
  program->log = program->image = NULL;
  program->log_size = program->image_size = 0;
  nvrtcResult result = compile(program, folder, option_count, options);
  static const char* const made[] = {"program.cu", "program.so", "log"};
  for (size_t i = 0; i < sizeof made / sizeof *made; ++i) remove_file(folder, made[i]);
  for (int i = 0; i < program->header_count; ++i) remove_file(folder, program->header_names[i]);
  rmdir(folder);
  return result;
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* size) {
  if (!program) return EMU_NVRTC_ERROR_INVALID_PROGRAM;
  *size = program->image_size;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* bytes) {
  if (!program || !program->image) return EMU_NVRTC_ERROR_INVALID_PROGRAM;
  memcpy(bytes, program->image, program->image_size);
  return NVRTC_SUCCESS;
}

// The size counts the NUL at the end.
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t* size) {
  if (!program) return EMU_NVRTC_ERROR_INVALID_PROGRAM;
  *size = program->log_size + 1;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* text) {
  if (!program) return EMU_NVRTC_ERROR_INVALID_PROGRAM;
  memcpy(text, program->log ? program->log : "", program->log_size + 1);
  return NVRTC_SUCCESS;
}

// Shared by the examples: see example.h.
#include "example.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void example_fail(const char* what, const char* message) {
  fprintf(stderr, "%s: %s\n", what, message);
  exit(1);
}

void example_check(const example_t* e, const char* what) {
  if (TF_GetCode(e->status) != TF_OK) example_fail(what, TF_Message(e->status));
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static long long number(const char* option, const char* text, long long least) {
  char* end = NULL;
  long long value = text ? strtoll(text, &end, 10) : 0;
  if (!text || !*text || *end || value < least || value > 1000000000)
    example_fail(option, "needs a number after it");
  return value;
}

const char* example_option(int* argc, char** argv, const char* option, const char* standard) {
  for (int i = 1; i + 1 < *argc; ++i) {
    if (strcmp(argv[i], option) != 0) continue;
    const char* value = argv[i + 1];
    *argc -= 2;
    for (int k = i; k < *argc; ++k) argv[k] = argv[k + 2];
    return value;
  }
  return standard;
}

static _Noreturn void print_usage(const example_t* e, const char* about, int steps, bool is_asked) {
  fprintf(is_asked ? stdout : stderr,
          "usage: %s [--steps N] [--seed N] [--device cpu|gpu]\n%s\n"
          "  --steps N   how long to train (%d)\n  --seed N    other random numbers (1)\n"
          "  --device D  where to compute (a GPU if there is one)\n",
          e->name, about, steps);
  exit(is_asked ? 0 : 2);
}

example_t example_open(int argc, char** argv, const char* about, int steps) {
  const char* slash = strrchr(argv[0], '/');
  example_t e = {.name = slash ? slash + 1 : argv[0], .steps = steps, .seed = 1};
  for (int i = 1; i < argc; ++i) {
    if (!strcmp(argv[i], "--steps")) {
      e.steps = (int)number(argv[i], i + 1 < argc ? argv[i + 1] : NULL, 1);
      ++i;
    } else if (!strcmp(argv[i], "--seed")) {
      e.seed = (uint64_t)number(argv[i], i + 1 < argc ? argv[i + 1] : NULL, 0);
      ++i;
    } else if (!strcmp(argv[i], "--device") && i + 1 < argc) {
      e.device = argv[++i];
      if (strcmp(e.device, "cpu") != 0 && strcmp(e.device, "gpu") != 0)
        example_fail("--device", "is cpu or gpu");
    } else {
      print_usage(&e, about, steps, !strcmp(argv[i], "--help"));
    }
  }
  e.random = e.seed;
  e.status = TF_NewStatus();
  e.scope = rn_scope_with_graph();
  if (!e.status || !e.scope) example_fail(e.name, "no memory");
  return e;
}

static void require_gpu(const example_t* e) {
  TF_DeviceList* devices = TF_SessionListDevices(e->session, e->status);
  bool has_gpu = false;
  for (int i = 0; i < TF_DeviceListCount(devices); ++i)
    has_gpu |= !strcmp(TF_DeviceListType(devices, i, e->status), "GPU");
  TF_DeleteDeviceList(devices);
  if (!has_gpu) example_fail("--device gpu", "there is none; 'runnel devices' says why");
}

void example_start(example_t* e) {
  static const char no_gpu[] = "\x0a\x07\x0a\x03GPU\x10\x00";  // ConfigProto.device_count
  rn_node_t* init = rn_initialize_variables(e->scope, RN_GLOBAL_VARIABLES);
  TF_SessionOptions* options = TF_NewSessionOptions();
  if (e->device && !strcmp(e->device, "cpu"))
    TF_SetConfig(options, no_gpu, sizeof no_gpu - 1, e->status);
  e->session = rn_session_start(e->scope, options, e->status);
  TF_DeleteSessionOptions(options);
  example_check(e, "the graph");
  if (e->device && !strcmp(e->device, "gpu")) require_gpu(e);
  example_run(e, RN_TARGET(init));
  e->start = seconds();
}

void example_progress(example_t* e, int step, const char* format, ...) {
  double now = seconds();
  bool is_last = step >= (e->goal ? e->goal : e->steps), is_terminal = isatty(STDOUT_FILENO);
  if (e->last == 0 && step > 0) e->first = step - 1;
  if (!is_last && now - e->last < (is_terminal ? 0.2 : 1)) return;
  e->last = now;
  va_list args;
  va_start(args, format);
  printf("%sstep %5d   ", is_terminal ? "\r" : "", step);
  vprintf(format, args);
  printf("   %8.0f steps/s ", (step - e->first) / (now - e->start));
  va_end(args);
  e->is_line_open = is_terminal && !is_last;
  if (!e->is_line_open) putchar('\n');
  fflush(stdout);
}

int example_close(example_t* e, bool reached, const char* format, ...) {
  va_list args;
  va_start(args, format);
  printf("%s: ", e->name);
  vprintf(format, args);
  printf(": %s\n", reached ? "learned" : "NOT learned");
  va_end(args);
  TF_DeleteSession(e->session, e->status);
  rn_scope_destroy(e->scope);
  TF_DeleteStatus(e->status);
  return reached ? 0 : 1;
}

// A mixed Weyl sequence, which works with any seed, including 0.
static uint64_t bits(example_t* e) {
  uint64_t x = e->random += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

uint32_t example_draw(example_t* e, uint32_t below) {
  return (uint32_t)(((bits(e) >> 32) * below) >> 32);
}

float example_uniform(example_t* e) { return (float)(bits(e) >> 40) * 0x1p-24f; }

float example_normal(example_t* e) {
  float radius = sqrtf(-2 * logf(1 - example_uniform(e)));
  return radius * cosf(6.2831853f * example_uniform(e));
}

int64_t example_seed(const example_t* e, int i) { return (int64_t)(e->seed * 1000 + 1) + i; }

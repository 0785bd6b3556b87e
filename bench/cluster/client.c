// A client of a cluster on the plain C API: runs one kind of step repeatedly and prints how long it
// took. bench/cluster.py builds it, writes the graphs and runs it.
//
//   client TARGET GRAPH --fetch NODE [--feed NODE COUNT] [--init NODE] [--seconds S] [--expect X]
//   client --raw-socket BYTES [--seconds S]
//
// The first form prints "median_us steps seconds"; the second the same figures for plain sockets on
// this machine with messages of that size.
#include <arpa/inet.h>
#include <math.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tensorflow/c/c_api.h"

enum { kMaxSteps = 1000000 };

typedef struct {
  const char *target, *graph, *fetch, *feed, *init;
  int64_t feed_count, raw_bytes;
  double seconds, expect;
  bool has_expect;
} options_t;

static void fail(const char* doing, const char* why) {
  fprintf(stderr, "%s: %s\n", doing, why);
  exit(1);
}

static void check(const TF_Status* status, const char* doing) {
  if (TF_GetCode(status) != TF_OK) fail(doing, TF_Message(status));
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_size(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// Runs |step| for |seconds|, at least three times.
static void measure(void (*step)(void* arg), void* arg, double seconds) {
  double* times = malloc(kMaxSteps * sizeof *times);
  int count = 0;
  double start = now(), last = start;
  while (count < kMaxSteps && (count < 3 || last - start < seconds)) {
    step(arg);
    double next = now();
    times[count++] = next - last;
    last = next;
  }
  qsort(times, (size_t)count, sizeof *times, by_size);
  printf("%.3f %d %.6f\n", times[count / 2] * 1e6, count, last - start);
  free(times);
}

static TF_Buffer* read_file(const char* path) {
  FILE* file = fopen(path, "rb");
  if (!file) fail(path, "cannot be read");
  fseek(file, 0, SEEK_END);
  size_t size = (size_t)ftell(file);
  rewind(file);
  char* bytes = malloc(size + 1);
  if (fread(bytes, 1, size, file) != size) fail(path, "cannot be read");
  fclose(file);
  TF_Buffer* buffer = TF_NewBufferFromString(bytes, size);
  free(bytes);
  return buffer;
}

typedef struct {
  const options_t* options;
  TF_Graph* graph;
  TF_Session* session;
  TF_Status* status;
  TF_Output fetch, feed;
  TF_Tensor* value;
} step_t;

static void run_step(void* arg) {
  step_t* step = arg;
  TF_Tensor* out = NULL;
  TF_SessionRun(step->session, NULL, &step->feed, &step->value, step->value ? 1 : 0, &step->fetch,
                &out, 1, NULL, 0, NULL, step->status);
  check(step->status, "running the step");
  double got = *(const float*)TF_TensorData(out);
  if (step->options->has_expect && fabs(got - step->options->expect) > 1e-3)
    fail("running the step", "a wrong value came");
  TF_DeleteTensor(out);
}

static TF_Output find(TF_Graph* graph, const char* name) {
  TF_Output output = {TF_GraphOperationByName(graph, name), 0};
  if (!output.oper) fail(name, "no such node");
  return output;
}

static void run_steps(const options_t* options) {
  step_t step = {.options = options, .graph = TF_NewGraph(), .status = TF_NewStatus()};
  TF_Buffer* graph = read_file(options->graph);
  TF_ImportGraphDefOptions* import = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(step.graph, graph, import, step.status);
  check(step.status, "importing the graph");
  TF_SessionOptions* session = TF_NewSessionOptions();
  TF_SetTarget(session, options->target);
  step.session = TF_NewSession(step.graph, session, step.status);
  check(step.status, "opening the session");
  if (options->init) {
    const TF_Operation* init = find(step.graph, options->init).oper;
    TF_SessionRun(step.session, NULL, NULL, NULL, 0, NULL, NULL, 0, &init, 1, NULL, step.status);
    check(step.status, "initialising");
  }
  step.fetch = find(step.graph, options->fetch);
  if (options->feed) {
    step.feed = find(step.graph, options->feed);
    step.value = TF_AllocateTensor(TF_FLOAT, &options->feed_count, 1,
                                   (size_t)options->feed_count * sizeof(float));
    float* values = TF_TensorData(step.value);
    for (int64_t i = 0; i < options->feed_count; ++i) values[i] = 1;
  }
  for (int i = 0; i < 3; ++i) run_step(&step);
  measure(run_step, &step, options->seconds);
  TF_CloseSession(step.session, step.status);
  TF_DeleteSession(step.session, step.status);
  if (step.value) TF_DeleteTensor(step.value);
  TF_DeleteSessionOptions(session);
  TF_DeleteImportGraphDefOptions(import);
  TF_DeleteBuffer(graph);
  TF_DeleteGraph(step.graph);
  TF_DeleteStatus(step.status);
}

// Plain sockets: one end sends a byte, the other responds with a message.
typedef struct {
  int asker, answerer;
  size_t size;
  char *to, *from;
} pipe_t;

static void* answer(void* arg) {
  pipe_t* pipe = arg;
  char byte;
  while (read(pipe->answerer, &byte, 1) == 1) {
    for (size_t sent = 0; sent < pipe->size;) {
      ssize_t n = write(pipe->answerer, pipe->from + sent, pipe->size - sent);
      if (n <= 0) return NULL;
      sent += (size_t)n;
    }
  }
  return NULL;
}

static void ask(void* arg) {
  pipe_t* pipe = arg;
  if (write(pipe->asker, "", 1) != 1) fail("socket", "cannot be written");
  for (size_t got = 0; got < pipe->size;) {
    ssize_t n = read(pipe->asker, pipe->to + got, pipe->size - got);
    if (n <= 0) fail("socket", "cannot be read");
    got += (size_t)n;
  }
}

static void run_socket(const options_t* options) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  pipe_t pipe = {.size = (size_t)options->raw_bytes, .asker = socket(AF_INET, SOCK_STREAM, 0)};
  if (bind(listener, (struct sockaddr*)&address, sizeof address) || listen(listener, 1) ||
      getsockname(listener, (struct sockaddr*)&address, &length) ||
      connect(pipe.asker, (struct sockaddr*)&address, sizeof address))
    fail("socket", "cannot be connected");
  pipe.answerer = accept(listener, NULL, NULL);
  setsockopt(pipe.asker, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  setsockopt(pipe.answerer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  pipe.to = malloc(pipe.size);
  pipe.from = malloc(pipe.size);
  memset(pipe.to, 1, pipe.size);
  memset(pipe.from, 1, pipe.size);
  pthread_t thread;
  pthread_create(&thread, NULL, answer, &pipe);
  ask(&pipe);
  measure(ask, &pipe, options->seconds);
  close(pipe.asker);
  pthread_join(thread, NULL);
  close(pipe.answerer);
  close(listener);
  free(pipe.to);
  free(pipe.from);
}

int main(int count, char** arguments) {
  options_t options = {.seconds = 1};
  for (int i = 1; i < count; ++i) {
    const char* name = arguments[i];
    const char* value = i + 1 < count ? arguments[i + 1] : NULL;
    bool has_value = strncmp(name, "--", 2) == 0;
    if (has_value && !value) fail(name, "needs a value");
    if (has_value) ++i;
    if (strcmp(name, "--fetch") == 0) {
      options.fetch = value;
    } else if (strcmp(name, "--init") == 0) {
      options.init = value;
    } else if (strcmp(name, "--seconds") == 0) {
      options.seconds = atof(value);
    } else if (strcmp(name, "--raw-socket") == 0) {
      options.raw_bytes = atoll(value);
    } else if (strcmp(name, "--expect") == 0) {
      options.expect = atof(value);
      options.has_expect = true;
    } else if (strcmp(name, "--feed") == 0 && i + 1 < count) {
      options.feed = value;
      options.feed_count = atoll(arguments[++i]);
    } else if (has_value) {
      fail(name, "unknown option");
    } else if (!options.target) {
      options.target = name;
    } else {
      options.graph = name;
    }
  }
  if (options.raw_bytes > 0)
    run_socket(&options);
  else if (options.graph && options.fetch)
    run_steps(&options);
  else
    fail("client", "a target, a graph and --fetch are needed");
  return 0;
}

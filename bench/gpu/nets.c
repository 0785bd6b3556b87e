// Training steps of whole networks on one device, for comparison with PyTorch on the same card:
//
//   gpu_nets [--device gpu|cpu] [--seconds S] [--trace FILE] [CASE ...]
//
// Input and labels are variables on the device, as in the PyTorch programs; a step is one call that
// returns when the device has finished. One line per case: milliseconds per step, the median.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runnel/runnel.h"

enum { CLASSES = 1000, MAX_TIMES = 2000 };

typedef struct net_t {
  rn_scope_t* s;
  rn_edge_t x;
  int layer;
} net_t;

static const char* name_layer(net_t* n) {
  static char name[32];
  snprintf(name, sizeof name, "layer%d", n->layer++);
  return name;
}

static void conv(net_t* n, int filters, int size, int stride, const char* padding) {
  n->x = rn_conv2d(n->s, n->x, filters, size, .strides = {stride, stride}, .padding = padding,
                   .activation = rn_relu, .name = name_layer(n));
}

static void pool(net_t* n, int size, int stride, const char* padding) {
  n->x = rn_max_pool2d(n->s, n->x, size, .strides = {stride, stride}, .padding = padding);
}

static void dense(net_t* n, int units, rn_activation_t activation) {
  n->x = rn_dense(n->s, n->x, units, .activation = activation, .name = name_layer(n));
}

static void classify(net_t* n, int first, int second) {
  n->x = rn_flatten(n->s, n->x);
  if (first) dense(n, first, rn_relu);
  if (second) dense(n, second, rn_relu);
  dense(n, CLASSES, NULL);
}

static void alexnet(net_t* n) {
  conv(n, 64, 11, 4, "SAME");
  pool(n, 3, 2, "VALID");
  conv(n, 192, 5, 1, "SAME");
  pool(n, 3, 2, "VALID");
  conv(n, 384, 3, 1, "SAME");
  conv(n, 256, 3, 1, "SAME");
  conv(n, 256, 3, 1, "SAME");
  pool(n, 3, 2, "VALID");
  classify(n, 4096, 4096);
}

static void overfeat(net_t* n) {
  conv(n, 96, 11, 4, "VALID");
  pool(n, 2, 2, "VALID");
  conv(n, 256, 5, 1, "VALID");
  pool(n, 2, 2, "VALID");
  conv(n, 512, 3, 1, "SAME");
  conv(n, 1024, 3, 1, "SAME");
  conv(n, 1024, 3, 1, "SAME");
  pool(n, 2, 2, "VALID");
  classify(n, 3072, 4096);
}

static void oxfordnet(net_t* n) {
  static const int widths[] = {64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0};
  for (size_t i = 0; i < sizeof widths / sizeof *widths; ++i) {
    if (widths[i])
      conv(n, widths[i], 3, 1, "SAME");
    else
      pool(n, 2, 2, "VALID");
  }
  classify(n, 4096, 4096);
}

static void inception(net_t* n, int c1, int c3r, int c3, int c5r, int c5, int pooled) {
  rn_edge_t x = n->x, parts[4];
  conv(n, c1, 1, 1, "SAME");
  parts[0] = n->x;
  n->x = x;
  conv(n, c3r, 1, 1, "SAME");
  conv(n, c3, 3, 1, "SAME");
  parts[1] = n->x;
  n->x = x;
  conv(n, c5r, 1, 1, "SAME");
  conv(n, c5, 5, 1, "SAME");
  parts[2] = n->x;
  n->x = x;
  pool(n, 3, 1, "SAME");
  conv(n, pooled, 1, 1, "SAME");
  parts[3] = n->x;
  n->x = rn_ConcatV2(n->s, parts, 4, rn_const_int32(n->s, 3));
}

static void googlenet(net_t* n) {
  conv(n, 64, 7, 2, "SAME");
  pool(n, 3, 2, "SAME");
  conv(n, 64, 1, 1, "SAME");
  conv(n, 192, 3, 1, "SAME");
  pool(n, 3, 2, "SAME");
  inception(n, 64, 96, 128, 16, 32, 32);
  inception(n, 128, 128, 192, 32, 96, 64);
  pool(n, 3, 2, "SAME");
  inception(n, 192, 96, 208, 16, 48, 64);
  inception(n, 160, 112, 224, 24, 64, 64);
  inception(n, 128, 128, 256, 24, 64, 64);
  inception(n, 112, 144, 288, 32, 64, 64);
  inception(n, 256, 160, 320, 32, 128, 128);
  pool(n, 3, 2, "SAME");
  inception(n, 256, 160, 320, 32, 128, 128);
  inception(n, 384, 192, 384, 48, 128, 128);
  n->x = rn_average_pool2d(n->s, n->x, 7, .strides = {7, 7});
  classify(n, 0, 0);
}

static void conv_norm(net_t* n, int filters, int size, int stride, bool relu) {
  n->x = rn_conv2d(n->s, n->x, filters, size, .strides = {stride, stride}, .padding = "SAME",
                   .no_bias = true, .name = name_layer(n));
  n->x = rn_batch_norm(n->s, n->x, .name = name_layer(n));
  if (relu) n->x = rn_relu(n->s, n->x);
}

static void bottleneck(net_t* n, int width, int stride, bool is_first) {
  rn_edge_t x = n->x, shortcut = x;
  if (is_first) {
    conv_norm(n, 4 * width, 1, stride, false);
    shortcut = n->x;
    n->x = x;
  }
  conv_norm(n, width, 1, 1, true);
  conv_norm(n, width, 3, stride, true);
  conv_norm(n, 4 * width, 1, 1, false);
  n->x = rn_relu(n->s, rn_AddV2(n->s, n->x, shortcut));
}

static void resnet50(net_t* n) {
  static const int blocks[] = {3, 4, 6, 3};
  conv_norm(n, 64, 7, 2, true);
  pool(n, 3, 2, "SAME");
  for (int stage = 0; stage < 4; ++stage)
    for (int b = 0; b < blocks[stage]; ++b)
      bottleneck(n, 64 << stage, b == 0 && stage > 0 ? 2 : 1, b == 0);
  n->x = rn_average_pool2d(n->s, n->x, 7, .strides = {7, 7});
  classify(n, 0, 0);
}

static void mlp(net_t* n) {
  dense(n, 128, rn_relu);
  dense(n, 10, NULL);
}

typedef struct case_t {
  const char* name;
  void (*build)(net_t* n);
  int64_t dims[4];
  int rank;
  bool trains;
} case_t;

static const case_t cases[] = {
    {"alexnet", alexnet, {128, 224, 224, 3}, 4, true},
    {"overfeat", overfeat, {128, 231, 231, 3}, 4, true},
    {"oxfordnet", oxfordnet, {64, 224, 224, 3}, 4, true},
    {"googlenet", googlenet, {128, 224, 224, 3}, 4, true},
    {"resnet50", resnet50, {128, 224, 224, 3}, 4, true},
    {"resnet50_infer", resnet50, {1, 224, 224, 3}, 4, false},
    {"mlp_train", mlp, {128, 784}, 2, true},
    {"mlp_infer", mlp, {1, 784}, 2, false},
};

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int compare(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static rn_edge_t labels_of(rn_scope_t* s, int64_t count) {
  int64_t* labels = malloc((size_t)count * sizeof *labels);
  for (int64_t i = 0; labels && i < count; ++i) labels[i] = i * 7 % 10;
  rn_edge_t edge = rn_const(s, TF_INT64, &count, 1, labels);
  free(labels);
  return edge;
}

static bool check(TF_Status* status, const char* what) {
  if (TF_GetCode(status) == TF_OK) return true;
  fprintf(stderr, "%s: %s\n", what, TF_Message(status));
  return false;
}

// Runs |target| or fetches |result| until the time is over; prints the median.
static bool measure(const case_t* c, TF_Session* session, rn_node_t* target, rn_edge_t loss,
                    double seconds, TF_Status* status) {
  double times[MAX_TIMES], begin = now_ms(), first = 0;
  float value = 0;
  int count = 0;
  for (int turn = 0; count < MAX_TIMES && (turn < 8 || now_ms() - begin < seconds * 1e3); ++turn) {
    double start = now_ms();
    bool ok = target ? rn_run(session, status, RN_TARGET(target))
                     : rn_run(session, status, RN_FETCH(loss, &value));
    if (!ok) return check(status, c->name);
    double took = now_ms() - start;
    if (turn == 0) first = took;
    if (turn >= 5) times[count++] = took;
  }
  qsort(times, (size_t)count, sizeof *times, compare);
  if (!rn_run(session, status, RN_FETCH(loss, &value))) return check(status, c->name);
  printf("%-16s %10.3f ms  (first %.0f ms, best %.3f, loss %.4f, %d steps)\n", c->name,
         times[count / 2], first, times[0], value, count);
  return true;
}

// Writes the RunMetadata of one traced step to |file|.
static bool trace(TF_Session* session, rn_node_t* target, rn_edge_t loss, const char* file,
                  TF_Status* status) {
  static const char full[] = {8, 3};  // RunOptions.trace_level: FULL_TRACE
  TF_Buffer* options = TF_NewBufferFromString(full, sizeof full);
  TF_Buffer* metadata = TF_NewBuffer();
  TF_Output fetch = rn_output_of(loss);
  TF_Tensor* value = NULL;
  const TF_Operation* op = rn_operation_of(target);
  TF_SessionRun(session, options, NULL, NULL, 0, &fetch, &value, 1, &op, target ? 1 : 0, metadata,
                status);
  FILE* out = TF_GetCode(status) == TF_OK ? fopen(file, "wb") : NULL;
  if (out) {
    fwrite(metadata->data, 1, metadata->length, out);
    fclose(out);
  }
  TF_DeleteTensor(value);
  TF_DeleteBuffer(options);
  TF_DeleteBuffer(metadata);
  return out != NULL;
}

static bool run_case(const case_t* c, const char* device, double seconds, const char* file) {
  TF_Status* status = TF_NewStatus();
  rn_scope_t* s = rn_scope_with_graph();
  if (strcmp(device, "cpu") == 0) rn_scope_set_device(s, "/cpu:0");
  net_t n = {.s = s};
  n.x = rn_get_variable(s, "x", c->dims, c->rank, .not_trainable = true,
                        .initializer = rn_init_normal(0, 1, 1))
            ->value;
  c->build(&n);
  rn_edge_t loss = rn_sparse_softmax_cross_entropy(s, labels_of(s, c->dims[0]), n.x);
  rn_node_t* train =
      c->trains ? rn_minimize(s, rn_gradient_descent(.rate = rn_const_float(s, 0.01f)), loss)
                : NULL;
  rn_node_t* init = rn_initialize_variables(s, RN_GLOBAL_VARIABLES);
  TF_Session* session = rn_session_start(s, NULL, status);
  bool ok = session && rn_run(session, status, RN_TARGET(init)) &&
            measure(c, session, train, loss, seconds, status) &&
            (!file || trace(session, train, loss, file, status));
  if (!ok) check(status, c->name);
  if (session) TF_DeleteSession(session, status);
  rn_scope_destroy(s);
  TF_DeleteStatus(status);
  return ok;
}

int main(int argc, char** argv) {
  const char *device = "gpu", *file = NULL;
  double seconds = 2;
  bool all = true, ok = true;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--device") == 0 && i + 1 < argc) {
      device = argv[++i];
    } else if (strcmp(argv[i], "--trace") == 0 && i + 1 < argc) {
      file = argv[++i];
    } else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
      seconds = atof(argv[++i]);
    } else {
      all = false;
    }
  }
  for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
    bool wanted = all;
    for (int i = 1; i < argc; ++i) wanted |= strcmp(argv[i], cases[c].name) == 0;
    if (wanted) ok &= run_case(&cases[c], device, seconds, file);
  }
  return ok ? 0 : 1;
}

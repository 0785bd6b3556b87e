// Builds a case, runs its steps and times them: see gpu_bench.h.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu_bench.h"

// Steps that are not timed: the first compile and choose, the second record.
enum { WARM_UP = 8, MAX_TIMES = 4000 };

network_t bench_network(const bench_t* b) {
  return (network_t){.scope = b->s, .dtype = b->dtype, .seed = 1};
}

network_t bench_pictures(bench_t* b, const network_image_t* image, int64_t channels,
                         int64_t batch) {
  network_t n = bench_network(b);
  int64_t side = bench_size(b, image->side, image->small_side);
  const int64_t dims[] = {batch, side, side, channels};
  n.classes = (int)bench_size(b, 1000, 10);
  n.x = bench_numbers(b, "x", dims, 4);
  if (b->is_tiny) {
    n.width = 0.0625;
    n.most_blocks = 1;
  }
  return n;
}

rn_edge_t bench_numbers(bench_t* b, const char* name, const int64_t* dims, int rank) {
  const rn_var_t* v = rn_get_variable(b->s, name, dims, rank, .not_trainable = true,
                                      .initializer = rn_init_normal(0, 1, 11));
  return v ? v->value : RN_NO_EDGE;
}

rn_edge_t bench_ids(bench_t* b, const char* name, const int64_t* dims, int rank, int64_t below) {
  int64_t count = 1;
  for (int i = 0; i < rank; ++i) count *= dims[i];
  int64_t* ids = malloc((size_t)count * sizeof *ids);
  uint64_t state = 7;
  for (int64_t i = 0; ids && i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    ids[i] = (int64_t)((state >> 33) % (uint64_t)below);
  }
  const rn_var_t* v = NULL;
  if (ids)
    v = rn_get_variable(b->s, name, dims, rank, .dtype = TF_INT64, .not_trainable = true,
                        .initializer = rn_init_values(ids));
  free(ids);
  return v ? v->value : RN_NO_EDGE;
}

static void train_by(bench_t* b, rn_node_t* updates, rn_edge_t loss) {
  rn_node_t* nodes[2] = {updates, rn_group_collection(b->s, RN_UPDATE_OPS)};
  b->loss = loss;
  b->is_trained = true;
  b->step = rn_scope_ok(b->s) ? rn_group(b->s, nodes, 2) : NULL;
}

void bench_train(bench_t* b, rn_optimizer_t optimizer, rn_edge_t loss) {
  train_by(b, rn_minimize(b->s, optimizer, loss), loss);
}

void bench_train_dense(bench_t* b, rn_optimizer_t optimizer, rn_edge_t loss) {
  enum { MOST = 1000 };
  const rn_var_t* variables[MOST];
  rn_gradient_t gradients[MOST];
  const rn_collected_t* items = NULL;
  int count = rn_collection(b->s, RN_TRAINABLE_VARIABLES, &items);
  if (count > MOST) count = MOST;
  for (int i = 0; i < count; ++i) variables[i] = items[i].variable;
  rn_gradient_options_t dense = {.dense = true};
  rn_compute_gradients(b->s, loss, variables, count, &dense, gradients);
  train_by(b, rn_apply_gradients(b->s, optimizer, gradients, variables, count, NULL, NULL), loss);
}

// Later columns count more: the squares of a normalized row always have the same sum.
void bench_infer(bench_t* b, rn_edge_t y) {
  enum { MOST = 65536 };
  static float share[MOST];
  network_t n = bench_network(b);
  int last = 0;
  while (last < 3 && network_dim(&n, y, last + 1) >= 0) ++last;
  int64_t columns = network_dim(&n, y, last);
  if (columns < 1 || columns > MOST) columns = 1;
  for (int64_t i = 0; i < columns; ++i) share[i] = (float)(i + 1) / (float)columns;
  rn_edge_t x = y.node && rn_edge_dtype(y) != TF_FLOAT ? rn_Cast(b->s, y, TF_FLOAT) : y;
  x = rn_Mul(b->s, rn_Square(b->s, x), rn_const(b->s, TF_FLOAT, &columns, 1, share));
  x = rn_Reshape(b->s, x, rn_const_int32_list(b->s, (int32_t[]){-1}, 1));
  b->loss = rn_Mean(b->s, x, rn_const_int32(b->s, 0));
  b->step = y.node;
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int compare(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// ConfigProto: no GPU for the CPU; log_device_placement.
static TF_SessionOptions* session_options(const bench_options_t* options, TF_Status* status) {
  static const char no_gpu[] = "\x0a\x07\x0a\x03GPU\x10\x00", log[] = "\x40\x01";
  char config[32];
  size_t size = 0;
  if (strcmp(options->device, "cpu") == 0) {
    memcpy(config, no_gpu, sizeof no_gpu - 1);
    size = sizeof no_gpu - 1;
  }
  if (options->log_placement) {
    memcpy(config + size, log, sizeof log - 1);
    size += sizeof log - 1;
  }
  TF_SessionOptions* made = TF_NewSessionOptions();
  TF_SetConfig(made, config, size, status);
  if (options->mixed_precision && TF_GetCode(status) == TF_OK)
    rn_session_options_mixed_precision(made, options->mixed_precision, status);
  return made;
}

// A step of the case, ready to be run.
typedef struct step_t {
  TF_Session* session;
  TF_Output fed, fetched;
  TF_Tensor* value;
  const TF_Operation* target;
} step_t;

static step_t step_of(const bench_t* b, TF_Session* session) {
  step_t step = {.session = session,
                 .fed = rn_output_of(b->fed),
                 .fetched = rn_output_of(b->fetched),
                 .target = rn_operation_of(b->step)};
  if (b->fed.node) {
    size_t count = 1;
    for (int i = 0; i < b->fed_rank; ++i) count *= (size_t)b->fed_dims[i];
    step.value = TF_AllocateTensor(TF_FLOAT, b->fed_dims, b->fed_rank, count * sizeof(float));
    for (size_t i = 0; i < count; ++i) ((float*)TF_TensorData(step.value))[i] = (float)(i % 7);
  }
  return step;
}

static bool run_step(const step_t* step, const TF_Buffer* options, TF_Buffer* metadata,
                     TF_Status* status) {
  TF_Tensor* result = NULL;
  TF_SessionRun(step->session, options, &step->fed, &step->value, step->fed.oper ? 1 : 0,
                &step->fetched, &result, step->fetched.oper ? 1 : 0, &step->target,
                step->target ? 1 : 0, metadata, status);
  TF_DeleteTensor(result);
  return TF_GetCode(status) == TF_OK;
}

// The losses of the first steps.
static bool follow(const bench_t* b, const step_t* step, bench_result_t* out, TF_Status* status) {
  for (int i = 0; i < BENCH_CHECKED; ++i)
    if (!rn_run(step->session, status, RN_FETCH(b->loss, &out->losses[i])) ||
        !run_step(step, NULL, NULL, status))
      return false;
  return true;
}

// Runs steps until |is_over|, beside those that are timed.
typedef struct client_t {
  const step_t* step;
  atomic_bool is_over;
  pthread_t thread;
} client_t;

static void* keep_running(void* arg) {
  client_t* client = arg;
  TF_Status* status = TF_NewStatus();
  while (!atomic_load(&client->is_over) && run_step(client->step, NULL, NULL, status)) continue;
  TF_DeleteStatus(status);
  return NULL;
}

static bool time_steps(const bench_t* b, const step_t* step, double seconds, bench_result_t* out,
                       TF_Status* status) {
  static double times[MAX_TIMES];
  double begin = now_ms();
  int count = 0;
  for (int turn = 0; count < MAX_TIMES; ++turn) {
    if (turn > WARM_UP + 2 && now_ms() - begin > seconds * 1e3) break;
    double start = now_ms();
    if (!run_step(step, NULL, NULL, status)) return false;
    double took = now_ms() - start;
    if (turn == 0) out->first_ms = took;
    if (turn == WARM_UP) begin = start;
    if (turn >= WARM_UP) times[count++] = took;
  }
  qsort(times, (size_t)count, sizeof *times, compare);
  double median = times[count / 2];
  out->best_ms = times[0];
  out->steps = count;
  out->figure = b->work > 0 ? b->work * (b->has_two_clients ? 2 : 1) / (median * 1e-3) : median;
  return true;
}

// Writes the RunMetadata of one traced step to |file|.
static bool trace(const step_t* step, const char* file, TF_Status* status) {
  static const char full[] = {8, 3};  // RunOptions.trace_level: FULL_TRACE
  TF_Buffer* options = TF_NewBufferFromString(full, sizeof full);
  TF_Buffer* metadata = TF_NewBuffer();
  bool ok = run_step(step, options, metadata, status);
  FILE* out = ok ? fopen(file, "wb") : NULL;
  if (out) {
    fwrite(metadata->data, 1, metadata->length, out);
    fclose(out);
  }
  TF_DeleteBuffer(options);
  TF_DeleteBuffer(metadata);
  return out != NULL;
}

// The most memory of the GPU that this process has used at a time.
static int64_t peak_memory(void) {
  int64_t now = 0, peak = 0;
  TF_Status* status = TF_NewStatus();
  TFE_ContextOptions* options = TFE_NewContextOptions();
  TFE_Context* context = TFE_NewContext(options, status);
  if (context) rn_context_memory_use(context, "/device:GPU:0", &now, &peak, status);
  if (context) TFE_DeleteContext(context);
  TFE_DeleteContextOptions(options);
  TF_DeleteStatus(status);
  return peak;
}

static bool time_beside(const bench_t* b, const step_t* step, double seconds, bench_result_t* out,
                        TF_Status* status) {
  client_t other = {.step = step};
  bool has_other = b->has_two_clients && !pthread_create(&other.thread, NULL, keep_running, &other);
  bool ok = time_steps(b, step, seconds, out, status);
  atomic_store(&other.is_over, true);
  if (has_other) pthread_join(other.thread, NULL);
  return ok;
}

static bool measure(const bench_t* b, TF_Session* session, const bench_options_t* options,
                    bench_result_t* out, TF_Status* status) {
  step_t step = step_of(b, session);
  bool ok = (!options->is_tiny || !b->loss.node || follow(b, &step, out, status)) &&
            time_beside(b, &step, options->seconds, out, status);
  // Of the steps: fetching the loss is another step, with memory of its own.
  if (ok && strcmp(options->device, "gpu") == 0) out->peak_bytes = peak_memory();
  ok = ok && (!b->loss.node || rn_run(session, status, RN_FETCH(b->loss, &out->last_loss))) &&
       (!options->trace || trace(&step, options->trace, status));
  TF_DeleteTensor(step.value);
  return ok;
}

static bench_t built(const bench_case_t* c, const bench_options_t* options) {
  bench_t b = {.s = rn_scope_with_graph(),
               .dtype = options->dtype,
               .is_tiny = options->is_tiny,
               .batch = options->batch};
  c->build(&b);
  return b;
}

static bool write_file(const char* file, const TF_Buffer* bytes) {
  FILE* out = fopen(file, "wb");
  bool ok = out && fwrite(bytes->data, 1, bytes->length, out) == bytes->length;
  if (out && fclose(out)) ok = false;
  if (!ok) perror(file);
  return ok;
}

bool bench_export(const bench_case_t* c, const bench_options_t* options, const char* file) {
  bench_t b = built(c, options);
  rn_node_t* init = rn_initialize_variables(b.s, RN_GLOBAL_VARIABLES);
  rn_scope_name_next(b.s, "init");
  rn_group(b.s, &init, 1);
  rn_edge_t result = b.fetched.node || b.is_trained ? b.fetched : (rn_edge_t){b.step, 0};
  rn_scope_name_next(b.s, "step");
  if (result.node)
    rn_Identity(b.s, result);
  else
    rn_group(b.s, &b.step, 1);
  rn_scope_name_next(b.s, "loss");
  if (b.loss.node) rn_Identity(b.s, b.loss);
  TF_Status* status = TF_NewStatus();
  TF_Buffer* bytes = TF_NewBuffer();
  bool ok = rn_scope_ok(b.s);
  if (ok) TF_GraphToGraphDef(rn_tf_graph_of(b.s), bytes, status);
  ok = ok && TF_GetCode(status) == TF_OK && write_file(file, bytes);
  if (!ok) fprintf(stderr, "%s: not written: %s\n", c->name, TF_Message(status));
  TF_DeleteBuffer(bytes);
  TF_DeleteStatus(status);
  rn_scope_destroy(b.s);
  return ok;
}

bool bench_run(const bench_case_t* c, const bench_options_t* options, bench_result_t* out) {
  *out = (bench_result_t){0};
  TF_Status* status = TF_NewStatus();
  bench_t b = built(c, options);
  out->is_trained = b.is_trained;
  rn_node_t* init = rn_initialize_variables(b.s, RN_GLOBAL_VARIABLES);
  double start = now_ms();
  TF_SessionOptions* config = session_options(options, status);
  TF_Session* session = TF_GetCode(status) == TF_OK ? rn_session_start(b.s, config, status) : NULL;
  bool ok = session && rn_run(session, status, RN_TARGET(init));
  out->setup_ms = now_ms() - start;
  ok = ok && measure(&b, session, options, out, status);
  if (!ok) fprintf(stderr, "%s: %s\n", c->name, TF_Message(status));
  if (session) TF_DeleteSession(session, status);
  TF_DeleteSessionOptions(config);
  rn_scope_destroy(b.s);
  TF_DeleteStatus(status);
  return ok;
}

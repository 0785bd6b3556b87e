// The overhead per step and per node, with next to no arithmetic.
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

#include "bench.h"
#include "graph_util.h"
#include "tensorflow/c/eager/c_api.h"

enum { kLayers = 100, kWidth = 100, kMaxClients = 16 };

// Runs one feed to one fetch and checks the answer; returns steps/s. Closes session and net.
static double rate_of(const bench_options_t* options, net_t* net, session_config_t config,
                      TF_Output feed, TF_Tensor* value, TF_Output fetch, double expected) {
  TF_Session* session = session_open(net, config);
  step_t step;
  step_open(&step, session);
  step_feed(&step, feed, value);
  step_fetch(&step, fetch);
  double rate = bench_rate(options, step_run, &step);
  bench_expect("result", step.result, expected, 1e-5);
  step_close(&step);
  session_close(session);
  net_close(net);
  return rate;
}

static double null_step(const bench_options_t* options, int a, int b) {
  (void)a, (void)b;
  net_t net;
  net_open(&net);
  TF_Output x = net_placeholder(&net, TF_FLOAT, SCALAR);
  return rate_of(options, &net, (session_config_t){0}, x, tensor_float(3),
                 net_unary(&net, "Identity", x), 3);
}

// |chains| chains of |length| Identity nodes, summed if there are several.
static double identities(const bench_options_t* options, int chains, int length) {
  net_t net;
  net_open(&net);
  TF_Output x = net_placeholder(&net, TF_FLOAT, SCALAR);
  TF_Output ends[kWidth];
  for (int c = 0; c < chains; ++c) {
    ends[c] = x;
    for (int i = 0; i < length; ++i) ends[c] = net_unary(&net, "Identity", ends[c]);
  }
  TF_Output fetch = chains == 1 ? ends[0] : net_add_n(&net, ends, chains);
  session_config_t config = {.no_rewrites = true};
  return (double)chains * length *
         rate_of(options, &net, config, x, tensor_float(3), fetch, 3.0 * chains);
}

// The three scalar ops, also computed on the host, to check the result of a case.
static const char* const kScalarOps[] = {"Sub", "Mul", "Maximum"};

static float scalar_apply(int op, float a, float b) {
  if (op == 0) return a - b;
  if (op == 1) return a * b;
  return a > b ? a : b;
}

// Denormals, infinities and huge values would distort the timing.
static bool is_tame(float value) {
  float magnitude = value < 0 ? -value : value;
  return magnitude > 0.01f && magnitude < 10;
}

static double scalar_chain(const bench_options_t* options, int length, int unused) {
  (void)unused;
  net_t net;
  net_open(&net);
  TF_Output x = net_placeholder(&net, TF_FLOAT, SCALAR);
  const float fed = 0.9f;
  TF_Output node = x;
  float value = fed;
  for (int i = 1; i <= length; ++i) {  // 2,000 % 3 is 2: ends on a Maximum, not on Sub's zero.
    node = net_binary(&net, kScalarOps[i % 3], node, x);
    value = scalar_apply(i % 3, value, fed);
  }
  return length * rate_of(options, &net, (session_config_t){0}, x, tensor_float(fed), node, value);
}

typedef struct {
  TF_Output node;
  float value;
} traced_t;

// A random op on |a| and |b|, among those that keep the value small.
static traced_t random_op(net_t* net, traced_t a, traced_t b, uint32_t* state) {
  int op = (int)(next_random(state) % 3);
  for (int tries = 0; tries < 3 && !is_tame(scalar_apply(op, a.value, b.value)); ++tries) {
    op = (op + 1) % 3;
  }
  return (traced_t){net_binary(net, kScalarOps[op], a.node, b.node),
                    scalar_apply(op, a.value, b.value)};
}

// Layers of random ops, each on two values of the layer before. The first arguments are a
// permutation of that layer, so that every node is needed and none can be pruned.
static double scalar_layers(const bench_options_t* options, int a, int b) {
  (void)a, (void)b;
  net_t net;
  net_open(&net);
  uint32_t state = 12345;
  TF_Output x = net_placeholder(&net, TF_FLOAT, SCALAR);
  const float fed = 1.5f;
  traced_t layer[kWidth], next[kWidth];
  for (int i = 0; i < kWidth; ++i) {
    float constant = 0.011f * (float)(i + 1) - 0.5f;
    layer[i] =
        (traced_t){net_binary(&net, "Sub", x, net_const_float(&net, constant)), fed - constant};
  }
  for (int l = 1; l < kLayers; ++l) {
    for (int i = kWidth - 1; i > 0; --i) {
      int j = (int)(next_random(&state) % (uint32_t)(i + 1));
      traced_t swap = layer[i];
      layer[i] = layer[j];
      layer[j] = swap;
    }
    for (int i = 0; i < kWidth; ++i) {
      next[i] = random_op(&net, layer[i], layer[next_random(&state) % kWidth], &state);
    }
    for (int i = 0; i < kWidth; ++i) layer[i] = next[i];
  }
  TF_Output ends[kWidth];
  double sum = 0;
  for (int i = 0; i < kWidth; ++i) {
    ends[i] = layer[i].node;
    sum += layer[i].value;
  }
  return kLayers * kWidth *
         rate_of(options, &net, (session_config_t){0}, x, tensor_float(fed),
                 net_add_n(&net, ends, kWidth), sum);
}

// |length| dependent Mul and Sub over |size| floats.
static double vector_chain(const bench_options_t* options, int length, int size) {
  net_t net;
  net_open(&net);
  TF_Output x = net_placeholder(&net, TF_FLOAT, SHAPE(size));
  TF_Output scale = net_const(&net, tensor_random(SHAPE(size), 0.99f, 0.999f, 1));
  TF_Output shift = net_const(&net, tensor_random(SHAPE(size), 0.001f, 0.002f, 2));
  TF_Tensor* scales = tensor_random(SHAPE(size), 0.99f, 0.999f, 1);
  TF_Tensor* shifts = tensor_random(SHAPE(size), 0.001f, 0.002f, 2);
  TF_Tensor* fed = tensor_random(SHAPE(size), 1, 2, 3);
  float value = *(float*)TF_TensorData(fed);
  TF_Output node = x;
  for (int i = 0; i < length; ++i) {
    bool multiply = i % 2 == 0;
    node = net_binary(&net, multiply ? "Mul" : "Sub", node, multiply ? scale : shift);
    value =
        multiply ? value * *(float*)TF_TensorData(scales) : value - *(float*)TF_TensorData(shifts);
  }
  TF_DeleteTensor(scales);
  TF_DeleteTensor(shifts);
  return length * rate_of(options, &net, (session_config_t){0}, x, fed, node, value);
}

static TF_Output while_const(TF_Graph* graph, const char* name, TF_Tensor* value,
                             TF_Status* status) {
  TF_OperationDescription* desc = TF_NewOperation(graph, "Const", name);
  TF_SetAttrType(desc, "dtype", TF_TensorType(value));
  TF_SetAttrTensor(desc, "value", value, status);
  TF_DeleteTensor(value);
  return (TF_Output){TF_FinishOperation(desc, status), 0};
}

static TF_Output while_binary(TF_Graph* graph, const char* op, const char* name, TF_Output a,
                              TF_Output b, TF_Status* status) {
  TF_OperationDescription* desc = TF_NewOperation(graph, op, name);
  TF_AddInput(desc, a);
  TF_AddInput(desc, b);
  TF_Operation* operation = TF_FinishOperation(desc, status);
  check_ok(status, name);
  return (TF_Output){operation, 0};
}

// for (i = 0; i < iterations; ++i) sum += 0.5;
static double while_loop(const bench_options_t* options, int iterations, int unused) {
  (void)unused;
  net_t net;
  net_open(&net);
  TF_Output start = net_placeholder(&net, TF_FLOAT, SCALAR);
  TF_Output inputs[2] = {net_const_int(&net, 0), start}, outputs[2];
  TF_WhileParams loop = TF_NewWhile(net.graph, inputs, 2, net.status);
  check_ok(net.status, "starting a while loop");
  TF_Output limit = while_const(loop.cond_graph, "limit", tensor_int(iterations), net.status);
  loop.cond_output =
      while_binary(loop.cond_graph, "Less", "less", loop.cond_inputs[0], limit, net.status);
  TF_Output one = while_const(loop.body_graph, "one", tensor_int(1), net.status);
  TF_Output half = while_const(loop.body_graph, "half", tensor_float(0.5f), net.status);
  loop.body_outputs[0] =
      while_binary(loop.body_graph, "AddV2", "count", loop.body_inputs[0], one, net.status);
  loop.body_outputs[1] =
      while_binary(loop.body_graph, "AddV2", "sum", loop.body_inputs[1], half, net.status);
  loop.name = "loop";
  TF_FinishWhile(&loop, net.status, outputs);
  check_ok(net.status, "finishing a while loop");
  return iterations * rate_of(options, &net, (session_config_t){0}, start, tensor_float(2),
                              outputs[1], 2 + 0.5 * iterations);
}

typedef struct {
  step_t enqueue;
  step_t dequeue;
} queue_steps_t;

static void queue_pair(void* argument) {
  queue_steps_t* steps = argument;
  step_run(&steps->enqueue);
  step_run(&steps->dequeue);
}

static double queue_pairs(const bench_options_t* options, int a, int b) {
  (void)a, (void)b;
  static const TF_DataType kFloat[] = {TF_FLOAT};
  net_t net;
  net_open(&net);
  TF_OperationDescription* desc = net_begin(&net, "FIFOQueueV2");
  TF_SetAttrTypeList(desc, "component_types", kFloat, 1);
  TF_SetAttrInt(desc, "capacity", 16);
  TF_Output queue = net_output(&net, desc);
  TF_Output x = net_placeholder(&net, TF_FLOAT, SCALAR);
  desc = net_begin(&net, "QueueEnqueueV2");
  TF_AddInput(desc, queue);
  TF_AddInputList(desc, &x, 1);
  TF_Operation* enqueue = net_finish(&net, desc);
  desc = net_begin(&net, "QueueDequeueV2");
  TF_AddInput(desc, queue);
  TF_SetAttrTypeList(desc, "component_types", kFloat, 1);
  TF_Output dequeue = net_output(&net, desc);

  TF_Session* session = session_open(&net, (session_config_t){0});
  queue_steps_t steps;
  step_open(&steps.enqueue, session);
  step_feed(&steps.enqueue, x, tensor_float(7));
  steps.enqueue.target = enqueue;
  step_open(&steps.dequeue, session);
  step_fetch(&steps.dequeue, dequeue);
  double rate = bench_rate(options, queue_pair, &steps);
  bench_expect("dequeued", steps.dequeue.result, 7, 0);
  step_close(&steps.enqueue);
  step_close(&steps.dequeue);
  session_close(session);
  net_close(&net);
  return rate;
}

// One client thread: runs steps until it is told to stop.
typedef struct {
  step_t step;
  atomic_bool* stop;
  atomic_long steps;  // Written by its own thread, read by the timing one.
} client_t;

static void* client_main(void* argument) {
  client_t* client = argument;
  while (!atomic_load_explicit(client->stop, memory_order_relaxed)) {
    step_run(&client->step);
    atomic_fetch_add_explicit(&client->steps, 1, memory_order_relaxed);
  }
  return NULL;
}

static long total_steps(client_t* clients, int count) {
  long total = 0;
  for (int i = 0; i < count; ++i) total += atomic_load(&clients[i].steps);
  return total;
}

static void sleep_for(double seconds) {
  struct timespec time = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
  nanosleep(&time, NULL);
}

static double time_clients(const bench_options_t* options, client_t* clients, int count) {
  double best = 0;
  sleep_for(options->seconds / 3);
  for (int i = 0; i < options->batches; ++i) {
    double start = bench_now();
    long before = total_steps(clients, count);
    sleep_for(options->seconds);
    double rate = (double)(total_steps(clients, count) - before) / (bench_now() - start);
    if (rate > best) best = rate;
  }
  return best;
}

// Empty steps of |count| client threads on one session, in total.
static double client_threads(const bench_options_t* options, int count, int unused) {
  (void)unused;
  net_t net;
  net_open(&net);
  TF_Output x = net_placeholder(&net, TF_FLOAT, SCALAR);
  TF_Output y = net_unary(&net, "Identity", x);
  TF_Session* session = session_open(&net, (session_config_t){0});
  client_t clients[kMaxClients];
  pthread_t threads[kMaxClients];
  atomic_bool stop = false;
  for (int i = 0; i < count; ++i) {
    clients[i].stop = &stop;
    atomic_init(&clients[i].steps, 0);
    step_open(&clients[i].step, session);
    step_feed(&clients[i].step, x, tensor_float((float)i + 1));
    step_fetch(&clients[i].step, y);
    if (pthread_create(&threads[i], NULL, client_main, &clients[i]) != 0) bench_fail("no thread");
  }
  double rate = time_clients(options, clients, count);
  atomic_store(&stop, true);
  for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < count; ++i) {
    bench_expect("result", clients[i].step.result, i + 1, 0);
    step_close(&clients[i].step);
  }
  session_close(session);
  net_close(&net);
  return rate;
}

// One eager op as a client runs it: create the description, execute, delete.
typedef struct {
  TFE_Context* context;
  TFE_TensorHandle* one;
  TFE_TensorHandle* sum;
  TF_Status* status;
} eager_t;

static void eager_add_step(void* argument) {
  eager_t* eager = argument;
  TFE_Op* op = TFE_NewOp(eager->context, "AddV2", eager->status);
  TFE_OpAddInput(op, eager->one, eager->status);
  TFE_OpAddInput(op, eager->one, eager->status);
  if (eager->sum) TFE_DeleteTensorHandle(eager->sum);
  int count = 1;
  TFE_Execute(op, &eager->sum, &count, eager->status);
  if (TF_GetCode(eager->status) != TF_OK) bench_fail("%s", TF_Message(eager->status));
  TFE_DeleteOp(op);
}

static double eager_add(const bench_options_t* options, int a, int b) {
  (void)a, (void)b;
  TF_Status* status = TF_NewStatus();
  TFE_ContextOptions* context_options = TFE_NewContextOptions();
  eager_t eager = {.context = TFE_NewContext(context_options, status), .status = status};
  TFE_DeleteContextOptions(context_options);
  if (!eager.context) bench_fail("%s", TF_Message(status));
  TF_Tensor* tensor = tensor_float(1.5f);
  eager.one = TFE_NewTensorHandle(tensor, status);
  TF_DeleteTensor(tensor);
  double rate = bench_rate(options, eager_add_step, &eager);
  TF_Tensor* result = TFE_TensorHandleResolve(eager.sum, status);
  bench_expect("sum", *(float*)TF_TensorData(result), 3, 0);
  TF_DeleteTensor(result);
  TFE_DeleteTensorHandle(eager.sum);
  TFE_DeleteTensorHandle(eager.one);
  TFE_DeleteContext(eager.context);
  TF_DeleteStatus(status);
  return rate;
}

const bench_case_t bench_dispatch_cases[] = {
    {"null_step", "steps/s", null_step, 0, 0},
    {"identity_chain", "ops/s", identities, 1, 10000},
    {"identity_grid", "ops/s", identities, kWidth, 100},
    {"scalar_chain", "ops/s", scalar_chain, 2000, 0},
    {"scalar_layers", "ops/s", scalar_layers, 0, 0},
    {"vec256", "ops/s", vector_chain, 1000, 256},
    {"while_2scalars", "iterations/s", while_loop, 10000, 0},
    {"queue_pairs", "pairs/s", queue_pairs, 0, 0},
    {"eager_add", "ops/s", eager_add, 0, 0},
    {"threads_1", "steps/s", client_threads, 1, 0},
    {"threads_2", "steps/s", client_threads, 2, 0},
    {"threads_4", "steps/s", client_threads, 4, 0},
    {"threads_8", "steps/s", client_threads, 8, 0},
    {0},
};

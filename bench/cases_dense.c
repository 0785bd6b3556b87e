// Arithmetic that keeps the cores or the memory busy, and how it scales to a second thread.
#include <math.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "graph_util.h"

enum { kElements = 4 << 20, kTableRows = 1 << 20, kTableWidth = 64, kGathered = 4096 };

// |rounds| rounds of Mul, AddV2, Relu, Tanh.
static TF_Output elementwise_ops(net_t* net, TF_Output x, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    x = net_binary(net, "Mul", x, net_const_float(net, 1.25f));
    x = net_binary(net, "AddV2", x, net_const_float(net, 0.125f));
    x = net_unary(net, "Tanh", net_unary(net, "Relu", x));
  }
  return x;
}

static double elementwise_host(double x, int rounds) {
  for (int i = 0; i < rounds; ++i) x = tanh(fmax(x * 1.25 + 0.125, 0));
  return x;
}

static double elementwise(const bench_options_t* options, int rounds, int elements) {
  net_t net;
  net_open(&net);
  TF_Output x = net_placeholder(&net, TF_FLOAT, SHAPE(elements));
  TF_Output y = elementwise_ops(&net, x, rounds);
  TF_Session* session = session_open(&net, (session_config_t){0});
  TF_Tensor* fed = tensor_random(SHAPE(elements), -1, 1, 1);
  const float* in = TF_TensorData(fed);
  step_t step;
  step_open(&step, session);
  step_feed(&step, x, fed);
  step_fetch(&step, y);
  double rate = bench_rate(options, step_run, &step);
  TF_Tensor* result = step_run_for_tensor(&step);
  const float* out = TF_TensorData(result);
  for (int i = 0; i < elements; i += elements / 257) {
    bench_expect("element", out[i], elementwise_host(in[i], rounds), 1e-4);
  }
  TF_DeleteTensor(result);
  step_close(&step);
  session_close(session);
  net_close(&net);
  return rate * 4 * rounds * elements * 1e-9;
}

static double dot(const float* row, const float* column, int size) {
  double sum = 0;
  for (int i = 0; i < size; ++i) sum += (double)row[i] * column[(ptrdiff_t)i * size];
  return sum;
}

// One square matmul per step, fed and fetched.
static double matmul(const bench_options_t* options, int size, int unused) {
  (void)unused;
  net_t net;
  net_open(&net);
  shape_t shape = SHAPE(size, size);
  TF_Output a = net_placeholder(&net, TF_FLOAT, shape), b = net_placeholder(&net, TF_FLOAT, shape);
  TF_Output product = net_binary(&net, "MatMul", a, b);
  TF_Session* session = session_open(&net, (session_config_t){0});
  TF_Tensor* left = tensor_random(shape, 0, 1, 1);
  TF_Tensor* right = tensor_random(shape, 0, 1, 2);
  step_t step;
  step_open(&step, session);
  step_feed(&step, a, left);
  step_feed(&step, b, right);
  step_fetch(&step, product);
  double rate = bench_rate(options, step_run, &step);
  TF_Tensor* result = step_run_for_tensor(&step);
  for (ptrdiff_t i = 0; i < size; i += size / 16) {
    ptrdiff_t column = size - 1 - i;
    bench_expect(
        "element", ((float*)TF_TensorData(result))[i * size + column],
        dot((float*)TF_TensorData(left) + i * size, (float*)TF_TensorData(right) + column, size),
        1e-4);
  }
  TF_DeleteTensor(result);
  step_close(&step);
  session_close(session);
  net_close(&net);
  return rate * 2.0 * size * size * size * 1e-9;
}

// The table: row r holds r in every column (exact in a float below 2^24).
static TF_Tensor* row_numbers(int rows, int width) {
  TF_Tensor* tensor = tensor_floats(SHAPE(rows, width));
  float* data = TF_TensorData(tensor);
  for (ptrdiff_t i = 0; i < (ptrdiff_t)rows * width; ++i) data[i] = (float)(i / width);
  return tensor;
}

static TF_Tensor* random_rows(int count, int rows) {
  int64_t dim = count;
  TF_Tensor* tensor = TF_AllocateTensor(TF_INT32, &dim, 1, (size_t)count * sizeof(int32_t));
  int32_t* data = TF_TensorData(tensor);
  uint32_t state = 99;
  for (int i = 0; i < count; ++i) data[i] = (int32_t)(next_random(&state) % (uint32_t)rows);
  return tensor;
}

// A variable of |shape| holding |value|, which it takes. Returns its read.
static TF_Output assigned_variable(net_t* net, TF_Session* session, shape_t shape,
                                   TF_Tensor* value) {
  TF_Output handle = net_variable_handle(net, shape);
  TF_Output fed = net_placeholder(net, TF_FLOAT, shape);
  TF_OperationDescription* desc = net_begin(net, "AssignVariableOp");
  TF_AddInput(desc, handle);
  TF_AddInput(desc, fed);
  step_t assign;
  step_open(&assign, session);
  assign.target = net_finish(net, desc);
  step_feed(&assign, fed, value);
  step_run(&assign);
  step_close(&assign);
  desc = net_begin(net, "ReadVariableOp");
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  TF_AddInput(desc, handle);
  return net_output(net, desc);
}

// Gathers random rows of a big table, like an embedding lookup.
static double gather(const bench_options_t* options, int rows, int count) {
  net_t net;
  net_open(&net);
  TF_Session* session = session_open(&net, (session_config_t){0});
  TF_Output table =
      assigned_variable(&net, session, SHAPE(rows, kTableWidth), row_numbers(rows, kTableWidth));
  TF_Output indices = net_placeholder(&net, TF_INT32, SHAPE(count));
  TF_OperationDescription* desc = net_begin(&net, "GatherV2");
  TF_AddInput(desc, table);
  TF_AddInput(desc, indices);
  TF_AddInput(desc, net_const_int(&net, 0));
  step_t step;
  step_open(&step, session);
  step_fetch(&step, net_output(&net, desc));
  TF_Tensor* picked = random_rows(count, rows);
  step_feed(&step, indices, picked);
  double rate = bench_rate(options, step_run, &step);
  TF_Tensor* result = step_run_for_tensor(&step);
  for (ptrdiff_t i = 0; i < count; ++i) {
    bench_expect("row", ((float*)TF_TensorData(result))[i * kTableWidth + i % kTableWidth],
                 ((int32_t*)TF_TensorData(picked))[i], 0);
  }
  TF_DeleteTensor(result);
  step_close(&step);
  session_close(session);
  net_close(&net);
  return rate * count;
}

// Steps/s of |branches| independent branches over |size|: chains of four matmuls, or of twelve
// elementwise ops, on |threads| threads. |out_result| gets the sum of the branches' corners.
static double branch_rate(const bench_options_t* options, bool is_matmul, int threads,
                          double* out_result) {
  enum { kBranches = 8, kSide = 192, kLength = 1 << 18 };
  net_t net;
  net_open(&net);
  shape_t shape = is_matmul ? SHAPE(kSide, kSide) : SHAPE(kLength);
  TF_Output x = net_placeholder(&net, TF_FLOAT, shape);
  TF_Output ends[kBranches];
  for (int i = 0; i < kBranches; ++i) {
    TF_Output branch = net_binary(&net, "Mul", x, net_const_float(&net, 0.1f * (float)(i + 1)));
    if (is_matmul) {
      for (int j = 0; j < 4; ++j) branch = net_binary(&net, "MatMul", branch, x);
    } else {
      branch = elementwise_ops(&net, branch, 3);
    }
    ends[i] = branch;
  }
  session_config_t config = {.intra_threads = threads, .inter_threads = threads};
  TF_Session* session = session_open(&net, config);
  step_t step;
  step_open(&step, session);
  step_feed(&step, x, tensor_random(shape, 0, 1.0f / kSide, 5));
  step_fetch(&step, net_add_n(&net, ends, kBranches));
  double rate = bench_rate(options, step_run, &step);
  *out_result = step.result;
  step_close(&step);
  session_close(session);
  net_close(&net);
  return rate;
}

typedef struct {
  double rate;
  double result;
} branches_t;

// The same in a child process: stock TensorFlow keeps one pool of threads for the whole process, as
// large as its first session asked for. Forks before this process has called the library.
static branches_t branches_apart(const bench_options_t* options, bool is_matmul, int threads) {
  branches_t branches;
  int ends[2], status = 0;
  if (pipe(ends) != 0) bench_fail("no pipe");
  pid_t child = fork();
  if (child < 0) bench_fail("no child process");
  if (child == 0) {
    branches.rate = branch_rate(options, is_matmul, threads, &branches.result);
    _exit(write(ends[1], &branches, sizeof branches) != (ssize_t)sizeof branches);
  }
  close(ends[1]);
  bool got = read(ends[0], &branches, sizeof branches) == (ssize_t)sizeof branches;
  close(ends[0]);
  if (waitpid(child, &status, 0) != child || status != 0 || !got) {
    bench_fail("the child with %d threads failed", threads);
  }
  return branches;
}

// The speed-up of two threads over one on the same independent branches. Measured alternately, so
// that other load on the machine affects both.
static double scale2(const bench_options_t* options, int is_matmul, int unused) {
  (void)unused;
  double best[2] = {0, 0};
  for (int turn = 0; turn < 2; ++turn) {
    branches_t one = branches_apart(options, is_matmul, 1);
    branches_t two = branches_apart(options, is_matmul, 2);
    bench_expect("result on two threads", two.result, one.result, 1e-4);
    best[0] = fmax(best[0], one.rate);
    best[1] = fmax(best[1], two.rate);
  }
  return best[1] / best[0];
}

const bench_case_t bench_dense_cases[] = {
    {"elementwise12", "Gelem*op/s", elementwise, 3, kElements},
    {"matmul64", "GFLOP/s", matmul, 64, 0},
    {"matmul256", "GFLOP/s", matmul, 256, 0},
    {"matmul1024", "GFLOP/s", matmul, 1024, 0},
    {"matmul2048", "GFLOP/s", matmul, 2048, 0},
    {"gather", "rows/s", gather, kTableRows, kGathered},
    {"scale2_matmul", "x", scale2, true, 0},
    {"scale2_elementwise", "x", scale2, false, 0},
    {0},
};

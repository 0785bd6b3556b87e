// Training steps: forward, TF_AddGradients, gradient descent on resource variables.
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "bench.h"
#include "graph_util.h"

// A dense layer on |x| [batch, in].
static TF_Output dense(net_t* net, TF_Output x, int in, int out) {
  TF_Output weights = net_variable(net, SHAPE(in, out), sqrtf(2.0f / (float)in));
  TF_Output bias = net_variable(net, SHAPE(out), 0);
  return net_binary(net, "BiasAdd", net_binary(net, "MatMul", x, weights), bias);
}

// A convolution with bias and Relu on |x| [batch, height, width, in].
static TF_Output conv(net_t* net, TF_Output x, int side, int in, int out, int stride,
                      const char* padding) {
  float stddev = sqrtf(2.0f / (float)(side * side * in));
  TF_Output filter = net_variable(net, SHAPE(side, side, in, out), stddev);
  TF_Output bias = net_variable(net, SHAPE(out), 0);
  const int64_t strides[4] = {1, stride, stride, 1};
  TF_OperationDescription* desc = net_begin(net, "Conv2D");
  TF_AddInput(desc, x);
  TF_AddInput(desc, filter);
  TF_SetAttrIntList(desc, "strides", strides, 4);
  TF_SetAttrString(desc, "padding", padding, strlen(padding));
  return net_unary(net, "Relu", net_binary(net, "BiasAdd", net_output(net, desc), bias));
}

static TF_Output max_pool(net_t* net, TF_Output x, int side, int stride, const char* padding) {
  const int64_t window[4] = {1, side, side, 1}, strides[4] = {1, stride, stride, 1};
  TF_OperationDescription* desc = net_begin(net, "MaxPool");
  TF_AddInput(desc, x);
  TF_SetAttrIntList(desc, "ksize", window, 4);
  TF_SetAttrIntList(desc, "strides", strides, 4);
  TF_SetAttrString(desc, "padding", padding, strlen(padding));
  return net_output(net, desc);
}

static TF_Output flatten(net_t* net, TF_Output x, int batch, int size) {
  const int32_t shape[2] = {batch, size};
  return net_binary(net, "Reshape", x, net_const_ints(net, shape, 2));
}

static TF_Tensor* random_labels(int batch, int classes) {
  TF_Tensor* tensor = tensor_floats(SHAPE(batch, classes));
  float* data = TF_TensorData(tensor);
  uint32_t state = 7;
  memset(data, 0, TF_TensorByteSize(tensor));
  for (int i = 0; i < batch; ++i) {
    data[i * classes + (int)(next_random(&state) % (uint32_t)classes)] = 1;
  }
  return tensor;
}

// Training steps/s of softmax cross entropy on |logits| [batch, classes], with one batch of random
// inputs and labels fed at every step. The loss must be finite and must have fallen.
static double train(const bench_options_t* options, net_t* net, TF_Output x, shape_t x_shape,
                    TF_Output logits, int batch, int classes, float learning_rate) {
  TF_Output labels = net_placeholder(net, TF_FLOAT, SHAPE(batch, classes));
  TF_Output losses = net_binary(net, "SoftmaxCrossEntropyWithLogits", logits, labels);
  TF_Output loss = net_binary(net, "Mean", losses, net_const_int(net, 0));
  TF_Operation* update = net_descend(net, loss, learning_rate);
  TF_Session* session = session_open(net, (session_config_t){0});
  session_init_variables(session, net);
  step_t step;
  step_open(&step, session);
  step_feed(&step, x, tensor_random(x_shape, 0, 1, 11));
  step_feed(&step, labels, random_labels(batch, classes));
  step_fetch(&step, loss);
  step.target = update;
  step_run(&step);
  double first = step.result;
  double rate = bench_rate(options, step_run, &step);
  if (!isfinite(first) || !(step.result < first)) {
    bench_fail("the loss went from %g to %g", first, step.result);
  }
  step_close(&step);
  session_close(session);
  net_close(net);
  return rate;
}

// 784-h-h-10.
static double mlp(const bench_options_t* options, int batch, int hidden) {
  net_t net;
  net_open(&net);
  TF_Output x = net_placeholder(&net, TF_FLOAT, SHAPE(batch, 784));
  TF_Output y = net_unary(&net, "Relu", dense(&net, x, 784, hidden));
  y = net_unary(&net, "Relu", dense(&net, y, hidden, hidden));
  y = dense(&net, y, hidden, 10);
  return train(options, &net, x, SHAPE(batch, 784), y, batch, 10, 0.01f);
}

// Two 5 x 5 convolutions of 32 and 64 filters, each pooled by 2, and dense layers of 512 and 10, on
// 28 x 28. Images/s.
static double lenet(const bench_options_t* options, int batch, int unused) {
  (void)unused;
  enum { kPooled = 7 * 7 * 64, kDense = 512 };
  net_t net;
  net_open(&net);
  TF_Output x = net_placeholder(&net, TF_FLOAT, SHAPE(batch, 28, 28, 1));
  TF_Output y = max_pool(&net, conv(&net, x, 5, 1, 32, 1, "SAME"), 2, 2, "SAME");
  y = max_pool(&net, conv(&net, y, 5, 32, 64, 1, "SAME"), 2, 2, "SAME");
  y = flatten(&net, y, batch, kPooled);
  y = net_unary(&net, "Relu", dense(&net, y, kPooled, kDense));
  y = dense(&net, y, kDense, 10);
  return batch * train(options, &net, x, SHAPE(batch, 28, 28, 1), y, batch, 10, 0.01f);
}

// AlexNet in one tower (64-192-384-256-256 filters, dense 4096-4096-1000), without normalisation
// and dropout. Images/s.
static double alexnet(const bench_options_t* options, int batch, int unused) {
  (void)unused;
  net_t net;
  net_open(&net);
  TF_Output x = net_placeholder(&net, TF_FLOAT, SHAPE(batch, 224, 224, 3));
  TF_Output y = conv(&net, x, 11, 3, 64, 4, "SAME");
  y = max_pool(&net, y, 3, 2, "VALID");
  y = max_pool(&net, conv(&net, y, 5, 64, 192, 1, "SAME"), 3, 2, "VALID");
  y = conv(&net, y, 3, 192, 384, 1, "SAME");
  y = conv(&net, y, 3, 384, 256, 1, "SAME");
  y = max_pool(&net, conv(&net, y, 3, 256, 256, 1, "SAME"), 3, 2, "VALID");
  y = flatten(&net, y, batch, 6 * 6 * 256);
  y = net_unary(&net, "Relu", dense(&net, y, 6 * 6 * 256, 4096));
  y = net_unary(&net, "Relu", dense(&net, y, 4096, 4096));
  y = dense(&net, y, 4096, 1000);
  return batch * train(options, &net, x, SHAPE(batch, 224, 224, 3), y, batch, 1000, 0.003f);
}

typedef struct {
  TF_Output h;
  TF_Output c;
} lstm_state_t;

// One cell: gates = [x, h] W + b, split into input, candidate, forget and output.
static lstm_state_t lstm_cell(net_t* net, TF_Output x, lstm_state_t state, TF_Output weights,
                              TF_Output bias) {
  TF_OperationDescription* desc = net_begin(net, "ConcatV2");
  const TF_Output parts[2] = {x, state.h};
  TF_AddInputList(desc, parts, 2);
  TF_AddInput(desc, net_const_int(net, 1));
  TF_Output gates = net_binary(net, "MatMul", net_output(net, desc), weights);
  gates = net_binary(net, "BiasAdd", gates, bias);
  desc = net_begin(net, "Split");
  TF_AddInput(desc, net_const_int(net, 1));
  TF_AddInput(desc, gates);
  TF_SetAttrInt(desc, "num_split", 4);
  TF_Operation* split = net_finish(net, desc);
  TF_Output in = net_unary(net, "Sigmoid", (TF_Output){split, 0});
  TF_Output candidate = net_unary(net, "Tanh", (TF_Output){split, 1});
  TF_Output forget = net_unary(net, "Sigmoid", (TF_Output){split, 2});
  TF_Output out = net_unary(net, "Sigmoid", (TF_Output){split, 3});
  TF_Output c = net_binary(net, "AddV2", net_binary(net, "Mul", forget, state.c),
                           net_binary(net, "Mul", in, candidate));
  return (lstm_state_t){net_binary(net, "Mul", out, net_unary(net, "Tanh", c)), c};
}

// An LSTM over 20 time steps of |hidden| inputs, classified from its last output. Steps/s.
static double lstm(const bench_options_t* options, int batch, int hidden) {
  enum { kTime = 20 };
  net_t net;
  net_open(&net);
  TF_Output x = net_placeholder(&net, TF_FLOAT, SHAPE(kTime, batch, hidden));
  TF_OperationDescription* desc = net_begin(&net, "Unpack");
  TF_AddInput(desc, x);
  TF_SetAttrInt(desc, "num", kTime);
  TF_Operation* inputs = net_finish(&net, desc);
  TF_Output weights =
      net_variable(&net, SHAPE(2 * hidden, 4 * hidden), sqrtf(0.5f / (float)hidden));
  TF_Output bias = net_variable(&net, SHAPE(4 * hidden), 0);
  TF_Output zero = net_const(&net, tensor_random(SHAPE(batch, hidden), 0, 0, 1));
  lstm_state_t state = {zero, zero};
  for (int t = 0; t < kTime; ++t) {
    state = lstm_cell(&net, (TF_Output){inputs, t}, state, weights, bias);
  }
  TF_Output logits = dense(&net, state.h, hidden, 10);
  return train(options, &net, x, SHAPE(kTime, batch, hidden), logits, batch, 10, 0.01f);
}

const bench_case_t bench_train_cases[] = {
    {"mlp_b1_h128", "steps/s", mlp, 1, 128},     {"mlp_b128_h500", "steps/s", mlp, 128, 500},
    {"lenet_b1", "images/s", lenet, 1, 0},       {"lenet_b64", "images/s", lenet, 64, 0},
    {"alexnet_b16", "images/s", alexnet, 16, 0}, {"lstm_b1_h64", "steps/s", lstm, 1, 64},
    {"lstm_b32_h256", "steps/s", lstm, 32, 256}, {0},
};

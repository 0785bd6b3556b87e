// What is the slope of x² at 3? The first program of the README, in C++.
#include <iostream>
#include <vector>

#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/framework/gradients.h"
#include "tensorflow/cc/ops/standard_ops.h"

int main() {
  using namespace tensorflow;       // NOLINT
  using namespace tensorflow::ops;  // NOLINT
  Scope root = Scope::NewRootScope();
  auto x = Placeholder(root, DT_FLOAT);
  auto y = Mul(root, x, x);
  std::vector<Output> slope;
  TF_CHECK_OK(AddSymbolicGradients(root, {y}, {x}, &slope));

  ClientSession session(root);
  std::vector<Tensor> outputs;
  TF_CHECK_OK(session.Run({{x, 3.f}}, {slope[0]}, &outputs));
  std::cout << "the slope of x*x at 3 is " << outputs[0].scalar<float>()() << "\n";
}

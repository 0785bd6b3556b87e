// Scopes, classes of ops, values, client sessions, gradients and loops. The expected names, texts
// and numbers are those of TensorFlow 2.21.
#include <vector>

#include "check.h"
#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/framework/gradients.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/cc/ops/while_loop.h"
#include "tensorflow/core/framework/tensor.h"

using namespace tensorflow;       // NOLINT
using namespace tensorflow::ops;  // NOLINT

static void TestNames() {
  Scope root = Scope::NewRootScope();
  Output a = Const(root, 1.f), b = Const(root, 2.f);
  EXPECT_EQ(a.name(), "Const:0");
  EXPECT_EQ(b.node()->name(), "Const_1");
  EXPECT_EQ(Add(root.WithOpName("sum"), a, b).node()->name(), "sum");
  EXPECT_EQ(Add(root.WithOpName("sum"), a, b).node()->name(), "sum_1");
  EXPECT_EQ(Add(root.WithOpName("x", 1, "y"), a, b).node()->name(), "x1y");
  Scope child = root.NewSubScope("child"), other = root.NewSubScope("child");
  EXPECT_EQ(Add(child, a, b).node()->name(), "child/Add");
  EXPECT_EQ(Add(other, a, b).node()->name(), "child_1/Add");
  EXPECT_EQ(Multiply(child.NewSubScope("deep").WithOpName("m"), a, b).node()->name(),
            "child/deep/m");
  // A value becomes a constant of its own.
  EXPECT_EQ(Add(root, a, 3.f).node()->name(), "Add");
  bool is_found = false;
  for (Node* node : root.graph()->op_nodes())
    is_found = is_found || node->name() == "Const_2/Const";
  EXPECT_EQ(is_found, true);
  EXPECT_EQ(Stack(root, {a, b}).node()->type_string(), "Pack");
  EXPECT_EQ(Sub(root, a, b).node()->name(), "Subtract");
  EXPECT_OK(root.status());
}

static void TestScopes() {
  Scope root = Scope::NewRootScope();
  Output a = Const(root, 1.f);
  Output on = Identity(root.WithDevice("/cpu:0"), a);
  EXPECT_EQ(on.node()->requested_device(), "/cpu:0");
  Output with = Identity(root.ColocateWith(a), a);
  NodeDef def = with.node()->def();
  EXPECT_EQ(def.attr().at("_class").list().s(0), "loc:@Const");
  Output after = Identity(root.WithControlDependencies({on.op()}), a);
  EXPECT_EQ(after.node()->def().input(1), "^Identity");
  Output none = Identity(root.WithControlDependencies(on).WithNoControlDependencies(), a);
  EXPECT_EQ(none.node()->def().input_size(), 1);
  GraphDef graph;
  EXPECT_OK(root.ToGraphDef(&graph));
  EXPECT_EQ(graph.node_size(), 5);
  EXPECT_EQ(graph.node(0).name(), "Const");
}

static void TestValues() {
  Scope root = Scope::NewRootScope();
  ClientSession session(root);
  std::vector<Tensor> out;
  EXPECT_OK(session.Run(
      {Const(root, {{1, 2}, {3, 4}, {5, 6}}), Const(root, "text"), Const(root, {"a", "b"}),
       Const<double>(root, {1, 2}), Const(root, 7.f, {2, 2}), Const(root, {{{1.5f}}})},
      &out));
  EXPECT_EQ(out.size(), 6u);
  EXPECT_EQ(out[0].DebugString(10), "Tensor<type: int32 shape: [3,2] values: [1 2][3 4][5 6]>");
  EXPECT_EQ(out[0].DebugString(), "Tensor<type: int32 shape: [3,2] values: [1 2][3...]...>");
  EXPECT_EQ(out[1].scalar<tstring>()(), "text");
  EXPECT_EQ(out[2].vec<tstring>()(1), "b");
  EXPECT_EQ(out[3].DebugString(), "Tensor<type: double shape: [2] values: 1 2>");
  EXPECT_EQ(out[4].matrix<float>()(1, 1), 7.f);
  EXPECT_EQ(out[5].shape().DebugString(), "[1,1,1]");

  Tensor t(DT_FLOAT, TensorShape({2, 3}));
  t.flat<float>().setConstant(1.f);
  t.matrix<float>()(1, 2) = 4.f;
  Eigen::Tensor<float, 0, Eigen::RowMajor> sum = t.flat<float>().sum();
  EXPECT_EQ(sum(), 9.f);
  EXPECT_EQ(t.Slice(1, 2).unaligned_flat<float>()(2), 4.f);
  EXPECT_EQ(t.SubSlice(1).shape(), TensorShape({3}));
  Tensor flat;
  EXPECT_EQ(flat.CopyFrom(t, TensorShape({6})), true);
  EXPECT_EQ(flat.SharesBufferWith(t), true);
  EXPECT_EQ(flat.CopyFrom(t, TensorShape({5})), false);
  TensorProto proto;
  t.AsProtoField(&proto);
  Tensor back;
  EXPECT_EQ(back.FromProto(proto), true);
  EXPECT_EQ(back.DebugString(), t.DebugString());
  EXPECT_EQ((t.shaped<float, 3>({1, 2, 3})(0, 1, 2)), 4.f);
  EXPECT_EQ((t.flat_inner_dims<float>().dimension(1)), 3);
}

static void TestRun() {
  Scope root = Scope::NewRootScope();
  auto x = Placeholder(root, DT_FLOAT, Placeholder::Shape({-1, 2}));
  auto v = Variable(root, {2, 1}, DT_FLOAT);
  auto assign = Assign(root, v, {{1.f}, {2.f}});
  auto y = MatMul(root.WithOpName("y"), x, v);
  auto z = MatMul(root, x, x, MatMul::TransposeA(true));
  auto parts = Split(root, 1, x, 2);
  auto top = TopK(root, x, 1);
  ClientSession session(root);
  std::vector<Tensor> out;
  EXPECT_OK(session.Run({}, {}, {assign.operation}, nullptr));
  EXPECT_OK(session.Run({{x, {{3.f, 4.f}}}}, {y, z, parts[1], top.values, top.indices}, &out));
  EXPECT_EQ(out[0].scalar<float>()(), 11.f);
  EXPECT_EQ(out[1].DebugString(9), "Tensor<type: float shape: [2,2] values: [9 12][12 16]>");
  EXPECT_EQ(out[2].flat<float>()(0), 4.f);
  EXPECT_EQ(out[4].flat<int>()(0), 1);
  // The graph may grow.
  auto more = Square(root, y);
  EXPECT_OK(session.Run({{x, {{3.f, 4.f}}}}, {more}, &out));
  EXPECT_EQ(out[0].flat<float>()(0), 121.f);
  // A slice is fed without its neighbours.
  Tensor rows(DT_FLOAT, TensorShape({2, 2}));
  rows.flat<float>().setValues({1, 2, 3, 4});
  EXPECT_OK(session.Run({{x, rows.Slice(1, 2)}}, {y}, &out));
  EXPECT_EQ(out[0].flat<float>()(0), 11.f);
  RunOptions options;
  options.set_trace_level(RunOptions::FULL_TRACE);
  RunMetadata metadata;
  EXPECT_OK(session.Run(options, {{x, rows}}, {y}, {}, &out, &metadata));
  EXPECT_EQ(metadata.step_stats().dev_stats_size() > 0, true);
}

static void TestGradients() {
  Scope root = Scope::NewRootScope();
  auto x = Placeholder(root, DT_FLOAT), w = Placeholder(root, DT_FLOAT);
  auto y = Mul(root, Square(root, x), w);
  std::vector<Output> grads, seeded;
  EXPECT_OK(AddSymbolicGradients(root, {y}, {x, w}, &grads));
  EXPECT_OK(AddSymbolicGradients(root, {y}, {x}, {Const(root, 10.f)}, &seeded));
  ClientSession session(root);
  std::vector<Tensor> out;
  EXPECT_OK(session.Run({{x, 3.f}, {w, 2.f}}, {grads[0], grads[1], seeded[0]}, &out));
  EXPECT_EQ(out[0].scalar<float>()(), 12.f);
  EXPECT_EQ(out[1].scalar<float>()(), 9.f);
  EXPECT_EQ(out[2].scalar<float>()(), 120.f);
  auto apart = Placeholder(root.WithOpName("apart"), DT_FLOAT);
  EXPECT_FAILS(AddSymbolicGradients(root, {y}, {apart}, &grads), kInvalidArgument,
               "Cannot compute the partial derivative for node 'apart'");
  EXPECT_OK(AddSymbolicGradients(root, {StopGradient(root, y)}, {x}, &grads));
  EXPECT_EQ(grads.size() == 1 && grads[0].node() == nullptr, true);
}

static void TestLoop() {
  Scope root = Scope::NewRootScope();
  auto start = Placeholder(root, DT_INT32);
  OutputList results;
  EXPECT_OK(BuildWhileLoop(
      root, {start, Const(root, 1)},
      [](const Scope& s, const std::vector<Output>& in, Output* out) {
        *out = Less(s, in[0], 10);
        return s.status();
      },
      [](const Scope& s, const std::vector<Output>& in, std::vector<Output>* out) {
        out->push_back(Add(s, in[0], 1));
        out->push_back(Mul(s, in[1], 2));
        return s.status();
      },
      "loop", &results));
  ClientSession session(root);
  std::vector<Tensor> out;
  EXPECT_OK(session.Run({{start, 6}}, {results[0], results[1]}, &out));
  EXPECT_EQ(out[0].scalar<int>()(), 10);
  EXPECT_EQ(out[1].scalar<int>()(), 16);
}

static void TestSharing() {
  Scope root = Scope::NewRootScope();
  auto x = Placeholder(root, DT_FLOAT);
  Output same = Identity(root, x), other = Neg(root, x);
  ClientSession session(root);
  Tensor fed(DT_FLOAT, TensorShape({2, 2}));
  fed.flat<float>().setConstant(1.f);
  std::vector<Tensor> out;
  EXPECT_OK(session.Run({{x, fed}}, {same, other}, &out));
  EXPECT_EQ(fed.SharesBufferWith(fed.Slice(1, 2)), true);
  EXPECT_EQ(out[0].SharesBufferWith(fed), out[0].data() == fed.data());
  EXPECT_EQ(out[1].SharesBufferWith(fed), false);
  EXPECT_EQ(Tensor(DT_FLOAT, TensorShape({0})).SharesBufferWith(fed), false);
}

static void TestErrors() {
  Scope root = Scope::NewRootScope();
  auto bad = MatMul(root.WithOpName("bad"), {{1.f, 2.f}}, {{1.f, 2.f}});
  EXPECT_FAILS(root.status(), kInvalidArgument, "bad");
  EXPECT_EQ(bad.node() == nullptr, true);
  auto next = Square(root, bad);  // does nothing
  EXPECT_EQ(next.node() == nullptr, true);
  std::vector<Tensor> out;
  EXPECT_FAILS(ClientSession(root).Run({next}, &out), kInvalidArgument, "bad");

  Scope ragged = Scope::NewRootScope();
  Const(ragged, {{1, 2}, {3}});
  EXPECT_FAILS(ragged.status(), kInvalidArgument, "should all have the same");
  Scope mixed = Scope::NewRootScope();
  Const(mixed, {Input::Initializer(1), Input::Initializer(1.f)});
  EXPECT_FAILS(mixed.status(), kInvalidArgument, "should all have the same type");

  Scope good = Scope::NewRootScope();
  auto x = Placeholder(good.WithOpName("needed"), DT_FLOAT);
  auto y = Reciprocal(good, x);
  ClientSession session(good);
  EXPECT_FAILS(session.Run({y}, &out), kInvalidArgument, "needed");
  EXPECT_FAILS(session.Run({{x, 1}}, {y}, &out), kInvalidArgument, "int32");
}

int main() {
  TestNames();
  TestScopes();
  TestValues();
  TestRun();
  TestGradients();
  TestLoop();
  TestSharing();
  TestErrors();
  return test::Failures() ? 1 : 0;
}

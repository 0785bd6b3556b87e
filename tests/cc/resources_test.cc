// Resources that kernels in C++ share: the ops of toy_resources.cc.
// usage: resources_test OPS_LIBRARY
#include <memory>
#include <vector>

#include "check.h"
#include "nodes.h"
#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/ops/resource_variable_ops.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/framework/op.h"

using namespace tensorflow;       // NOLINT
using namespace tensorflow::ops;  // NOLINT

static NodeBuilder Of(const char* op, const Output& handle) {
  static int number = 0;
  return NodeBuilder(std::string(op) + std::to_string(number++), op).Input(handle.node());
}

static int Number(const ClientSession& session, const Output& output) {
  std::vector<Tensor> out;
  EXPECT_OK(session.Run({output}, &out));
  return out.size() == 1 ? out[0].scalar<int32>()() : -1;
}
static bool Truth(const ClientSession& session, const Output& output) {
  std::vector<Tensor> out;
  EXPECT_OK(session.Run({output}, &out));
  return out.size() == 1 && out[0].scalar<bool>()();
}

static void TestByName(const Scope& root) {
  Output handle = AddNode(root, NodeBuilder("a", "CounterHandleOp").Attr("shared_name", "a"));
  Output first = Placeholder(root, DT_INT32);
  Output create = AddNode(root, Of("ToyCounterCreate", handle).Input(first.node()));
  Output share =
      AddNode(root, Of("ToyCounterCreate", handle).Input(first.node()).Attr("shares", true));
  Output next = AddNode(root, Of("ToyCounterNext", handle));
  Output exists = AddNode(root, Of("ToyCounterExists", handle));
  Output remove = AddNode(root, Of("ToyCounterDelete", handle));
  Output wrong = AddNode(root, Of("ToyCounterDelete", handle).Attr("wrong", true));
  EXPECT_OK(root.status());

  ClientSession session(root);
  std::vector<Tensor> out;
  EXPECT_EQ(Truth(session, exists), false);
  EXPECT_FAILS(session.Run({next}, &out), kNotFound, "Resource localhost/a/");
  EXPECT_FAILS(session.Run({{first, -1}}, {}, {share.op()}, &out), kOutOfRange, "first is -1");
  EXPECT_OK(session.Run({{first, 5}}, {}, {create.op()}, &out));
  EXPECT_FAILS(session.Run({{first, 5}}, {}, {create.op()}, &out), kAlreadyExists, "localhost/a/");
  EXPECT_OK(session.Run({{first, 9}}, {}, {share.op()}, &out));
  EXPECT_EQ(Truth(session, exists), true);
  EXPECT_EQ(Number(session, next), 5);
  EXPECT_EQ(Number(session, next), 6);
  EXPECT_FAILS(session.Run({}, {}, {wrong.op()}, &out), kInvalidArgument, "wrong type");
  EXPECT_OK(session.Run({}, {}, {remove.op()}, &out));
  EXPECT_EQ(Truth(session, exists), false);
  EXPECT_FAILS(session.Run({}, {}, {remove.op()}, &out), kNotFound, "Resource localhost/a/");
}

// A variable is a resource of Runnel's own: its handle is refused.
static void TestOtherKinds(const Scope& root) {
  Output variable = VarHandleOp(root, DT_INT32, PartialTensorShape({}));
  Output next = AddNode(root, Of("ToyCounterNext", variable));
  Output counter = AddNode(root, NodeBuilder("mine", "ToyCounterOfItsOwn"));
  Output value = ReadVariableOp(root, counter, DT_INT32);
  ClientSession session(root);
  std::vector<Tensor> out;
  EXPECT_FAILS(session.Run({next}, &out), kInvalidArgument, "wrong type");
  EXPECT_FAILS(session.Run({value}, &out), kInvalidArgument, "");
}

// Ops with a resource among their arguments are stateful: two equal nodes are not made one.
static void TestStateful(const Scope& root) {
  const OpDef* def;
  EXPECT_OK(OpRegistry::Global()->LookUpOpDef("ToyCounterNext", &def));
  EXPECT_EQ(def->is_stateful(), true);
  Output handle = AddNode(root, NodeBuilder("two", "ToyCounterOfItsOwn"));
  Output first = AddNode(root, Of("ToyCounterNext", handle));
  Output second = AddNode(root, Of("ToyCounterNext", handle));
  ClientSession session(root);
  std::vector<Tensor> out;
  EXPECT_OK(session.Run({first, second}, &out));
  if (out.size() == 2) EXPECT_EQ(out[0].scalar<int32>()() + out[1].scalar<int32>()(), 7 + 8);
}

static void TestKept(const Scope& root, const Output& alive) {
  Output handle = AddNode(root, NodeBuilder("own", "ToyCounterOfItsOwn"));
  Output next = AddNode(root, Of("ToyCounterNext", handle));
  ClientSession session(root);
  std::vector<Tensor> out;
  EXPECT_EQ(Number(session, next), 7);
  EXPECT_EQ(Number(session, next), 7);  // another step, another counter
  EXPECT_EQ(Number(session, alive), 0);
}

static void TestMadeByKernels(const Scope& root, const Output& alive) {
  Output mine = AddNode(root, NodeBuilder("m", "ToyCounter").Attr("first", 3));
  Output one = AddNode(root, NodeBuilder("one", "ToyCounter").Attr("shared_name", "s"));
  Output other = AddNode(root, NodeBuilder("other", "ToyCounter").Attr("shared_name", "s"));
  Output bad = AddNode(root, NodeBuilder("bad", "ToyCounter").Attr("shared_name", "_s"));
  Output of_mine = AddNode(root, Of("ToyCounterNext", mine));
  Output of_one = AddNode(root, Of("ToyCounterNext", one));
  Output of_other = AddNode(root, Of("ToyCounterNext", other));
  Output of_bad = AddNode(root, Of("ToyCounterNext", bad));
  {
    ClientSession session(root);
    std::vector<Tensor> out;
    EXPECT_EQ(Number(session, of_mine), 3);
    EXPECT_EQ(Number(session, of_mine), 4);
    EXPECT_EQ(Number(session, of_one), 0);
    EXPECT_EQ(Number(session, of_other), 1);
    EXPECT_EQ(Number(session, alive), 2);
    EXPECT_FAILS(session.Run({of_bad}, &out), kInvalidArgument, "cannot start with '_'");
  }
  ClientSession session(root);
  EXPECT_EQ(Number(session, alive), 0);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  CStatus status;
  TF_Library* library = TF_LoadLibrary(argv[1], status);
  EXPECT_OK(status.Get());
  if (!library) return 1;
  Scope root = Scope::NewRootScope();
  Output alive = AddNode(root, NodeBuilder("alive", "ToyAlive"));
  TestByName(root);
  TestOtherKinds(root);
  TestStateful(root);
  TestKept(root, alive);
  TestMadeByKernels(root, alive);
  EXPECT_OK(root.status());
  TF_DeleteLibraryHandle(library);
  return test::Failures() != 0;
}

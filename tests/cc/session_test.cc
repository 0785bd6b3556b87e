// Sessions over GraphDefs, SavedModels, files, flags, and ops in C++ that a library brings.
// usage: session_test OPS_LIBRARY SAVED_MODEL
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "check.h"
#include "nodes.h"
#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/cc/saved_model/loader.h"
#include "tensorflow/cc/saved_model/tag_constants.h"
#include "tensorflow/core/example/example.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/graph/default_device.h"
#include "tensorflow/core/lib/core/errors.h"
#include "tensorflow/core/lib/io/path.h"
#include "tensorflow/core/lib/strings/str_util.h"
#include "tensorflow/core/lib/strings/stringprintf.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/init_main.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow/core/util/command_line_flags.h"

using namespace tensorflow;       // NOLINT
using namespace tensorflow::ops;  // NOLINT

static GraphDef SquareGraph() {
  Scope root = Scope::NewRootScope();
  auto x = Placeholder(root.WithOpName("x"), DT_FLOAT);
  auto y = Square(root.WithOpName("y"), x);
  Add(root.WithOpName("z"), y, Placeholder(root.WithOpName("w"), DT_FLOAT));
  NoOp(root.WithOpName("nothing"));
  GraphDef graph;
  TF_CHECK_OK(root.ToGraphDef(&graph));
  return graph;
}

static void TestSession() {
  std::unique_ptr<Session> session(NewSession(SessionOptions()));
  std::vector<Tensor> out;
  GraphDef graph = SquareGraph();
  graph::SetDefaultDevice("/cpu:0", &graph);
  EXPECT_EQ(graph.node(0).device(), "/cpu:0");
  EXPECT_OK(session->Create(graph));
  EXPECT_FAILS(session->Create(graph), kAlreadyExists, "already been created");
  Tensor three(3.f), one(1.f);
  EXPECT_OK(session->Run({{"x", three}}, {"y:0"}, {"nothing"}, &out));
  EXPECT_EQ(out[0].scalar<float>()(), 9.f);
  EXPECT_FAILS(session->Run({{"x", three}}, {"gone:0"}, {}, &out), kInvalidArgument, "gone:0");
  EXPECT_FAILS(session->Run({{"x", three}}, {"y:7"}, {}, &out), kInvalidArgument, "y:7");
  EXPECT_FAILS(session->Run({}, {}, {"gone"}, &out), kNotFound, "gone");

  std::string handle;
  EXPECT_OK(session->PRunSetup({"x:0", "w:0"}, {"y:0", "z:0"}, {}, &handle));
  EXPECT_OK(session->PRun(handle, {{"x:0", three}}, {"y:0"}, &out));
  EXPECT_EQ(out[0].scalar<float>()(), 9.f);
  EXPECT_OK(session->PRun(handle, {{"w:0", one}}, {"z:0"}, &out));
  EXPECT_EQ(out[0].scalar<float>()(), 10.f);

  CallableOptions options;
  options.add_feed("x:0");
  options.add_fetch("y:0");
  Session::CallableHandle callable;
  EXPECT_OK(session->MakeCallable(options, &callable));
  EXPECT_OK(session->RunCallable(callable, {three}, &out, nullptr));
  EXPECT_EQ(out[0].scalar<float>()(), 9.f);
  EXPECT_FAILS(session->RunCallable(callable, {}, &out, nullptr), kInvalidArgument, "Expected 1");
  EXPECT_OK(session->ReleaseCallable(callable));
  std::vector<DeviceAttributes> devices;
  EXPECT_OK(session->ListDevices(&devices));
  EXPECT_EQ(devices.empty(), false);
  EXPECT_OK(session->Close());
  EXPECT_FAILS(session->Run({{"x", three}}, {"y:0"}, {}, &out), kCancelled, "closed");

  GraphDef wrong;
  wrong.add_node()->set_name("a");
  wrong.mutable_node(0)->set_op("NoSuchOp");
  std::unique_ptr<Session> other(NewSession(SessionOptions()));
  EXPECT_FAILS(other->Create(wrong), kNotFound, "NoSuchOp");
  Session* none;
  SessionOptions elsewhere;
  elsewhere.target = "nonsense://";
  EXPECT_EQ(NewSession(elsewhere, &none).ok(), false);
}

static void TestFiles() {
  std::string name = io::JoinPath("/tmp", strings::Printf("runnel_cc_%d", getpid()));
  GraphDef graph = SquareGraph(), read;
  EXPECT_OK(WriteBinaryProto(Env::Default(), name, graph));
  EXPECT_OK(ReadBinaryProto(Env::Default(), name, &read));
  EXPECT_EQ(read.node_size(), graph.node_size());
  EXPECT_OK(WriteTextProto(Env::Default(), name, graph));
  EXPECT_OK(ReadTextProto(Env::Default(), name, &read));
  EXPECT_FAILS(ReadBinaryProto(Env::Default(), name, &read), kDataLoss, "Can't parse");
  EXPECT_OK(Env::Default()->DeleteFile(name));
  std::string text;
  EXPECT_FAILS(ReadFileToString(Env::Default(), name, &text), kNotFound, name);
  EXPECT_EQ(io::Basename("a/b.pb"), "b.pb");
  EXPECT_EQ(str_util::Split("a,b", ',').size(), 2u);

  Example example;
  (*example.mutable_features()->mutable_feature())["f"].mutable_float_list()->add_value(1.5f);
  Scope root = Scope::NewRootScope();
  auto parsed = ParseSingleExample(root, example.SerializeAsString(), {Const(root, {0.f})}, 0, {},
                                   {"f"}, {}, {PartialTensorShape({1})});
  EXPECT_OK(root.status());
  EXPECT_EQ(parsed.dense_values.size(), 1u);
}

static void TestFlags() {
  std::string image = "a.jpg";
  int32 width = 10;
  bool is_root = false;
  std::vector<Flag> flags = {Flag("image", &image, "image to be processed"),
                             Flag("width", &width, "its width"), Flag("root", &is_root, "")};
  std::string words[] = {"program", "--image=b.png", "--root", "rest", "--width=12"};
  char* argv[] = {&words[0][0], &words[1][0], &words[2][0], &words[3][0], &words[4][0]};
  int argc = 5;
  EXPECT_EQ(Flags::Parse(&argc, argv, flags), true);
  EXPECT_EQ(image, "b.png");
  EXPECT_EQ(width, 12);
  EXPECT_EQ(is_root, true);
  EXPECT_EQ(argc, 2);
  std::string bad = "--width=wide";
  char* wrong[] = {&words[0][0], &bad[0]};
  argc = 2;
  EXPECT_EQ(Flags::Parse(&argc, wrong, flags), false);
}

static void TestSavedModel(const std::string& folder) {
  SavedModelBundle bundle;
  EXPECT_EQ(MaybeSavedModelDirectory(folder), true);
  EXPECT_OK(LoadSavedModel(SessionOptions(), RunOptions(), folder, {kSavedModelTagServe}, &bundle));
  if (!bundle.session) return;
  const SignatureDef& signature = bundle.GetSignatures().at("serving_default");
  EXPECT_EQ(signature.inputs_size() > 0 && signature.outputs_size() > 0, true);
  std::vector<std::pair<std::string, Tensor>> inputs;
  for (const auto& input : signature.inputs()) {
    TensorShape shape;
    for (const auto& dim : input.second.tensor_shape().dim())
      shape.AddDim(dim.size() < 0 ? 1 : dim.size());
    Tensor value(input.second.dtype(), shape);
    if (value.dtype() == DT_FLOAT) value.flat<float>().setZero();
    inputs.emplace_back(input.second.name(), value);
  }
  std::vector<Tensor> out;
  EXPECT_OK(bundle.session->Run(inputs, {signature.outputs().begin()->second.name()}, {}, &out));
  EXPECT_EQ(out.size(), 1u);
  SavedModelBundleLite lite;
  EXPECT_FAILS(LoadSavedModel(SessionOptions(), RunOptions(), folder, {"nobody"}, &lite), kNotFound,
               "nobody");
}

static void TestCustomOps(const char* library) {
  CStatus loaded;
  TF_Library* handle = TF_LoadLibrary(library, loaded);
  EXPECT_OK(loaded.Get());
  if (!handle) return;
  Scope root = Scope::NewRootScope();
  Output x = Const(root, {1.f, 2.f, 3.f});
  Output kept = AddNode(root, NodeBuilder("kept", "ToyKeepOne").Input(x.node()).Attr("index", 1));
  std::vector<NodeBuilder::NodeOut> parts = {Const(root, "ab").node(), Const(root, "c").node()};
  Output joined = AddNode(root, NodeBuilder("joined", "ToyJoin")
                                    .Input(absl::Span<const NodeBuilder::NodeOut>(parts))
                                    .Input(Const(root, 2).node()));
  Output often = Placeholder(root, DT_INT32);
  Output thrown = AddNode(root, NodeBuilder("thrown", "ToyJoin")
                                    .Input(absl::Span<const NodeBuilder::NodeOut>(parts))
                                    .Input(often.node()));
  Output twice = AddNode(root, NodeBuilder("twice", "ToyTwice").Input(x.node()));
  Output beyond =
      AddNode(root, NodeBuilder("beyond", "ToyKeepOne").Input(x.node()).Attr("index", 9));
  Output negative =
      AddNode(root, NodeBuilder("negative", "ToyKeepOne").Input(x.node()).Attr("index", -9));
  EXPECT_OK(root.status());
  int64_t dims[2] = {0, 0};
  CStatus status;
  TF_GraphGetTensorShape(root.graph()->c_graph(), joined.c_output(), dims, 1, status);
  EXPECT_EQ(dims[0], 2);
  TF_GraphGetTensorShape(root.graph()->c_graph(), Output(joined.node(), 1).c_output(), dims, 2,
                         status);
  EXPECT_EQ(dims[0], -1);
  EXPECT_EQ(dims[1], 2);

  ClientSession session(root);
  std::vector<Tensor> out;
  EXPECT_OK(session.Run({kept, joined, Output(joined.node(), 1), twice}, &out));
  if (out.size() == 4) {
    EXPECT_EQ(out[0].SummarizeValue(9), "0 2 0");
    EXPECT_EQ(out[1].vec<tstring>()(1), "ab-c");
    EXPECT_EQ(out[2].SummarizeValue(9), "[4 8]");
    EXPECT_EQ(out[3].SummarizeValue(9), "2 4 6");
  }
  EXPECT_FAILS(session.Run({beyond}, &out), kInvalidArgument, "index 9 of 3 elements");
  EXPECT_FAILS(session.Run({negative}, &out), kInvalidArgument, "Need index >= 0, got -9");
  EXPECT_FAILS(session.Run({{often, 100}}, {thrown}, &out), kInternal, "too often");
  AddNode(root, NodeBuilder("flat", "ToyTwice").Input(Const(root, 1.f).node()));
  EXPECT_FAILS(root.status(), kInvalidArgument, "Shape must be at least rank 1 but is rank 0");
  TF_DeleteLibraryHandle(handle);
}

// A graph that only runs may have ops without a shape function; one that is built may not.
static void TestShapelessOps() {
  const OpDef* def;
  EXPECT_OK(OpRegistry::Global()->LookUpOpDef("ToyShapeless", &def));
  EXPECT_EQ(def->input_arg(0).name(), "x");
  EXPECT_FAILS(OpRegistry::Global()->LookUpOpDef("NoSuchOp", &def), kNotFound, "NoSuchOp");
  EXPECT_EQ(OpRegistry::Global()->DebugString(false).find("ToyShapeless") != std::string::npos,
            true);
  GraphDef graph;
  NodeDef* x = graph.add_node();
  x->set_name("x");
  x->set_op("Placeholder");
  (*x->mutable_attr())["dtype"].set_type(DT_FLOAT);
  NodeDef* y = graph.add_node();
  y->set_name("y");
  y->set_op("ToyShapeless");
  y->add_input("x");
  std::unique_ptr<Session> session(NewSession(SessionOptions()));
  EXPECT_OK(session->Create(graph));
  std::vector<Tensor> out;
  EXPECT_OK(session->Run({{"x", Tensor(1.f)}}, {"y"}, {}, &out));
  EXPECT_EQ(out.size() == 1 && out[0].scalar<float>()() == 2.f, true);

  std::string bytes = graph.SerializeAsString();
  CStatus status;
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_DeprecatedSession* old = TF_NewDeprecatedSession(options, status);
  TF_ExtendGraph(old, bytes.data(), bytes.size(), status);
  EXPECT_OK(status.Get());
  TF_DeleteDeprecatedSession(old, status);
  TF_DeleteSessionOptions(options);
  Graph built;
  EXPECT_FAILS(built.Import(graph), kInvalidArgument, "No shape inference function");
}

int main(int argc, char** argv) {
  port::InitMain(argv[0], &argc, &argv);
  if (argc != 3) return 2;
  TestSession();
  TestFiles();
  TestFlags();
  TestSavedModel(argv[2]);
  TestCustomOps(argv[1]);
  TestShapelessOps();
  return test::Failures() ? 1 : 0;
}

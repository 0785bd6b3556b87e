// Coordinators, queue runners, gradients written in C++, the parts of loops, and helpers of threads
// and tensors.
// usage: training_test OPS_LIBRARY
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "check.h"
#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/framework/grad_op_registry.h"
#include "tensorflow/cc/framework/gradients.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/cc/ops/while_loop.h"
#include "tensorflow/cc/training/coordinator.h"
#include "tensorflow/cc/training/queue_runner.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor_util.h"
#include "tensorflow/core/framework/type_traits.h"
#include "tensorflow/core/graph/graph_def_builder.h"
#include "tensorflow/core/lib/core/notification.h"
#include "tensorflow/core/lib/random/random.h"
#include "tensorflow/core/lib/strings/strcat.h"
#include "tensorflow/core/util/events_writer.h"

using namespace tensorflow;       // NOLINT
using namespace tensorflow::ops;  // NOLINT

static QueueRunnerDef RunnerDef() {
  QueueRunnerDef def;
  def.set_queue_name("queue");
  def.add_enqueue_op_name("enqueue");
  def.set_close_op_name("close");
  def.set_cancel_op_name("cancel");
  return def;
}

// A queue of two floats that is filled with 7s; with |is_endless| false, three times.
static std::unique_ptr<Session> QueueSession(bool is_endless) {
  Scope root = Scope::NewRootScope();
  auto queue = FIFOQueue(root.WithOpName("queue"), {DT_INT32}, FIFOQueue::Capacity(2));
  auto count = Variable(root.WithOpName("count"), TensorShape({}), DT_INT32);
  Assign(root.WithOpName("assign"), count, 0);
  Output value = is_endless ? Output(Const(root, 7)) : Output(CountUpTo(root, count, 3));
  QueueEnqueue(root.WithOpName("enqueue"), queue, {value});
  QueueDequeue(root.WithOpName("dequeue"), queue, {DT_INT32});
  QueueClose(root.WithOpName("close"), queue);
  QueueClose(root.WithOpName("cancel"), queue, QueueClose::CancelPendingEnqueues(true));
  GraphDef graph;
  EXPECT_OK(root.ToGraphDef(&graph));
  std::unique_ptr<Session> session(NewSession(SessionOptions()));
  EXPECT_OK(session->Create(graph));
  EXPECT_OK(session->Run({}, {}, {"assign"}, nullptr));
  return session;
}

static void TestQueueRunner() {
  std::unique_ptr<Session> session = QueueSession(false);
  std::unique_ptr<QueueRunner> runner;
  EXPECT_FAILS(QueueRunner::New(QueueRunnerDef(), &runner), kInvalidArgument, "Empty enqueue ops");
  EXPECT_OK(QueueRunner::New(RunnerDef(), &runner));
  EXPECT_OK(runner->Start(session.get(), 60000));
  std::vector<Tensor> out;
  for (int i = 0; i < 3; ++i) {
    EXPECT_OK(session->Run({}, {"dequeue"}, {}, &out));
    EXPECT_EQ(out[0].scalar<int>()(), i);
  }
  // The end of the input closes the queue and is no error.
  EXPECT_FAILS(session->Run({}, {"dequeue"}, {}, &out), kOutOfRange, "closed");
  EXPECT_OK(runner->Join());
  CostGraphDef costs;
  EXPECT_FAILS(runner->ExportCostGraph(&costs), kFailedPrecondition, "cost graph");

  QueueRunnerDef wrong = RunnerDef();
  wrong.set_enqueue_op_name(0, "gone");
  EXPECT_OK(QueueRunner::New(wrong, &runner));
  std::atomic<int> errors(0);
  runner->AddErrorCallback([&errors](const Status&) { ++errors; });
  EXPECT_FAILS(runner->Start(session.get(), 60000), kNotFound, "gone");
  EXPECT_FAILS(runner->Join(), kNotFound, "gone");
  EXPECT_EQ(errors, 1);
}

static void TestCoordinator() {
  std::unique_ptr<Session> session = QueueSession(true);
  Coordinator coordinator({error::OUT_OF_RANGE, error::CANCELLED});
  QueueRunnerDef def = RunnerDef();
  def.add_queue_closed_exception_types(error::OUT_OF_RANGE);
  def.add_queue_closed_exception_types(error::CANCELLED);
  std::unique_ptr<QueueRunner> runner;
  EXPECT_OK(QueueRunner::New(def, &coordinator, &runner));
  EXPECT_OK(runner->Start(session.get()));
  EXPECT_OK(coordinator.RegisterRunner(std::move(runner)));
  std::vector<Tensor> out;
  EXPECT_OK(session->Run({}, {"dequeue"}, {}, &out));
  EXPECT_EQ(out[0].scalar<int>()(), 7);
  EXPECT_EQ(coordinator.AllRunnersStopped(), false);
  EXPECT_FAILS(coordinator.Join(), kFailedPrecondition, "without requesting to stop");
  EXPECT_OK(coordinator.RequestStop());
  EXPECT_FAILS(coordinator.RequestStop(), kFailedPrecondition, "not running");
  EXPECT_EQ(coordinator.ShouldStop(), true);
  EXPECT_OK(coordinator.Join());
  EXPECT_EQ(coordinator.AllRunnersStopped(), true);
  coordinator.ReportStatus(errors::Cancelled("a regular end"));
  coordinator.ReportStatus(errors::Aborted("first"));
  coordinator.ReportStatus(errors::Internal("second"));
  EXPECT_FAILS(coordinator.GetStatus(), kAborted, "first");
}

static Status TwiceGrad(const Scope& scope, const Operation& op, const std::vector<Output>& dys,
                        std::vector<Output>* dxs) {
  EXPECT_EQ(op.node()->type_string(), "ToyTwice");
  dxs->push_back(Add(scope, dys[0], dys[0]));
  return scope.status();
}
REGISTER_GRADIENT_OP("ToyTwice", TwiceGrad);
REGISTER_NO_GRADIENT_OP("ToyJoin");

static void TestGradients(const char* library) {
  CStatus loaded;
  TF_Library* handle = TF_LoadLibrary(library, loaded);
  EXPECT_OK(loaded.Get());
  Scope root = Scope::NewRootScope();
  auto x = Placeholder(root, DT_FLOAT, Placeholder::Shape({2}));
  Output once, y;
  EXPECT_OK(CreateOutputWithScope("ToyTwice", {x}, root.WithOpName("once"), &once));
  EXPECT_OK(CreateOutputWithScope("ToyTwice", {Square(root, once)}, root.WithOpName("y"), &y));
  std::vector<Output> slope;
  EXPECT_OK(AddSymbolicGradients(root, {y}, {x}, &slope));
  ClientSession session(root);
  std::vector<Tensor> out;
  EXPECT_OK(session.Run({{x, {1.f, 3.f}}}, {slope[0]}, &out));
  EXPECT_EQ(out[0].SummarizeValue(2), "16 48");  // y = 2 (2x)²

  // The library's gradients of one node; what flows on inside the inputs is not part of it.
  GradFunc function = nullptr;
  EXPECT_OK(GradOpRegistry::Global()->Lookup("Mul", &function));
  Output product = Mul(root, x, Square(root, x));
  std::vector<Output> parts;
  EXPECT_OK(function(root, product.op(), {OnesLike(root, x)}, &parts));
  EXPECT_EQ(parts.size(), 2u);
  EXPECT_OK(session.Run({{x, {1.f, 3.f}}}, {parts[0], parts[1]}, &out));
  EXPECT_EQ(out[0].SummarizeValue(2), "1 9");
  EXPECT_EQ(out[1].SummarizeValue(2), "1 3");
  EXPECT_OK(GradOpRegistry::Global()->Lookup("ToyJoin", &function));
  EXPECT_EQ(function == nullptr, true);
  EXPECT_FAILS(GradOpRegistry::Global()->Lookup("NoSuchOp", &function), kNotFound, "NoSuchOp");
  TF_DeleteLibraryHandle(handle);
}

static void TestLoopParts() {
  Scope root = Scope::NewRootScope();
  auto start = Placeholder(root, DT_INT32);
  OutputList results;
  Output condition;
  auto below_ten = [](const Scope& s, const std::vector<Output>& in, Output* out) {
    *out = Less(s, in[0], 10);
    return s.status();
  };
  auto add_one = [](const Scope& s, const std::vector<Output>& in, std::vector<Output>* out) {
    out->push_back(Add(s, in[0], 1));
    return s.status();
  };
  EXPECT_OK(BuildWhileLoop(root, {start}, below_ten, add_one, "frame", &results, true, &condition));
  EXPECT_EQ(condition.node()->type_string(), "LoopCond");
  EXPECT_EQ(results[0].node()->IsExit(), true);
  WhileContext* context = results[0].node()->while_ctx();
  EXPECT_EQ(context != nullptr && context->frame_name() == "frame", true);
  EXPECT_EQ(context->cond_output().node, condition.node());
  EXPECT_EQ(start.node()->while_ctx() == nullptr, true);
  std::string frame;
  EXPECT_OK(GetNodeAttr(context->enter_nodes()[0]->attrs(), "frame_name", &frame));
  EXPECT_EQ(frame, "frame");
  EXPECT_FAILS(root.graph()->IsValidOutputTensor(condition.node(), 3), kOutOfRange,
               "does not have output 3");
  OutputList none;
  auto no_condition = [](const Scope&, const std::vector<Output>&, Output*) { return OkStatus(); };
  EXPECT_FAILS(BuildWhileLoop(root, {start}, no_condition, add_one, "frame", &none),
               kInvalidArgument, "Node is null");
}

static void TestGraphDefBuilder() {
  GraphDefBuilder builder;
  const GraphDefBuilder::Options& opts = builder.opts();
  Node* x = SourceOp("Placeholder", opts.WithName("x").WithAttr("dtype", DT_FLOAT));
  Node* wait = SourceOp("NoOp", opts);
  Node* again = SourceOp("NoOp", opts);
  EXPECT_EQ(wait->name() + " " + again->name(), "NoOp NoOp_1");
  Node* y = BinaryOp("Mul", x, UnaryOp("Neg", x, opts.WithControlInput(wait)),
                     opts.WithName("y").WithDevice("/cpu:0"));
  EXPECT_EQ(y->requested_device(), "/cpu:0");
  GraphDef graph;
  EXPECT_OK(builder.ToGraphDef(&graph));
  std::unique_ptr<Session> session(NewSession(SessionOptions()));
  EXPECT_OK(session->Create(graph));
  std::vector<Tensor> out;
  EXPECT_OK(session->Run({{"x", Tensor(3.f)}}, {"y"}, {}, &out));
  EXPECT_EQ(out[0].scalar<float>()(), -9.f);
  EXPECT_EQ(UnaryOp("NoSuchOp", x, opts) == nullptr, true);
  EXPECT_EQ(UnaryOp("Neg", x, opts) == nullptr, true);
  EXPECT_FAILS(builder.ToGraphDef(&graph), kInvalidArgument, "NoSuchOp");
}

// The library's reader of records checks what the writer wrote.
static void TestEventsWriter() {
  std::string name;
  {
    EventsWriter writer(strings::StrCat("/tmp/runnel_cc_", getpid()));
    EXPECT_OK(writer.InitWithSuffix(".test"));
    name = writer.FileName();
    Event event;
    event.set_step(7);
    writer.WriteEvent(event);
    EXPECT_OK(writer.Flush());
    EXPECT_OK(writer.Close());
    EXPECT_EQ(name.find(".out.tfevents.") != std::string::npos, true);
  }
  Scope root = Scope::NewRootScope();
  auto queue = FIFOQueue(root, {DT_STRING});
  auto fill = QueueEnqueue(root, queue, {Const(root, name)});
  auto reader = TFRecordReader(root);
  auto read = ReaderRead(root, reader.reader_handle, queue);
  ClientSession session(root);
  std::vector<Tensor> out;
  EXPECT_OK(session.Run({}, {}, {fill.operation}, nullptr));
  Event first, second;
  EXPECT_OK(session.Run({read.value}, &out));
  EXPECT_EQ(first.ParseFromString(std::string(out[0].scalar<tstring>()())), true);
  EXPECT_EQ(first.file_version(), "brain.Event:2");
  EXPECT_OK(session.Run({read.value}, &out));
  EXPECT_EQ(second.ParseFromString(std::string(out[0].scalar<tstring>()())), true);
  EXPECT_EQ(second.step(), 7);
  EXPECT_OK(Env::Default()->DeleteFile(name));
  EventsWriter nowhere("/no/such/folder/events");
  EXPECT_EQ(nowhere.Init().ok(), false);
  EXPECT_EQ(crc32c::Value("123456789", 9), 0xe3069283u);
  EXPECT_EQ(crc32c::Unmask(crc32c::Mask(12345u)), 12345u);
}

static void TestHelpers() {
  mutex guard;
  condition_variable changed;
  int count = 0;
  Notification done;
  Env::Default()->SchedClosure([&] {
    mutex_lock lock(guard);
    count = 3;
    changed.notify_all();
    done.Notify();
  });
  {
    mutex_lock lock(guard);
    changed.wait(lock, [&] { return count == 3; });
  }
  done.WaitForNotification();
  EXPECT_EQ(done.HasBeenNotified(), true);
  BlockingCounter left(2);
  std::unique_ptr<Thread> thread(Env::Default()->StartThread(ThreadOptions(), "counts", [&] {
    left.DecrementCount();
    left.DecrementCount();
  }));
  left.Wait();
  EXPECT_EQ(random::New64() == random::New64(), false);
  EXPECT_EQ(strings::StrCat("a", 1), "a1");
  EXPECT_EQ(is_quantized<qint8>::value && !is_complex<float>::value, true);

  Tensor words(DT_STRING, TensorShape({3, 1}));
  words.flat<tstring>()(2) = "last";
  std::vector<Tensor> parts;
  EXPECT_OK(tensor::Split(words, {1, 2}, &parts));
  Tensor joined;
  EXPECT_OK(tensor::Concat({parts[1], parts[0]}, &joined));
  EXPECT_EQ(joined.flat<tstring>()(1), "last");
  EXPECT_FAILS(tensor::Split(words, {4}, &parts), kInvalidArgument, "do not add up");
  EXPECT_FAILS(tensor::Concat({words, Tensor(1.f)}, &joined), kInvalidArgument, "zero-dimensional");
  Tensor copy = tensor::DeepCopy(words);
  EXPECT_EQ(copy.SharesBufferWith(words), false);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  TestQueueRunner();
  TestCoordinator();
  TestGradients(argv[1]);
  TestLoopParts();
  TestGraphDefBuilder();
  TestEventsWriter();
  TestHelpers();
  return test::Failures() ? 1 : 0;
}

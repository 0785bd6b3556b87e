// The toy's graph optimizer, which turns each Neg into an Abs.
#include <unistd.h>

#include "plugins.h"

// x -> negated -> plus one, on |device|.
static TF_Output build(ct_t* t, const char* device, TF_Output* out_x) {
  int64_t dims[] = {2};
  *out_x = ct_out(ct_placeholder_shaped(t, t->graph, "x", TF_FLOAT, dims, 1), 0);
  TF_Output sum = pt_node(t, "AddV2", "sum", device, *out_x, *out_x);
  TF_Output negated = pt_node(t, "Neg", "negated", device, sum, PT_NONE);
  TF_Output one = pt_const(t, "one", device, ct_float(1));
  return pt_node(t, "AddV2", "plus", device, negated, one);
}

static const float values[] = {1, -3};

CT_TEST(plugins_optimizer, rewrites) {
  ct_t t = pt_open();
  TF_Output x, y = build(&t, PT_TOY, &x);
  for (int i = 0; i < 3; ++i) PT_EXPECT(ct_run1(&t, x.oper, pt_floats(2, values), y.oper), 3, 7);
  // A fetch of its own is a graph of its own.
  TF_Operation* negated = TF_GraphOperationByName(t.graph, "negated");
  PT_EXPECT(ct_run1(&t, x.oper, pt_floats(2, values), negated), 2, 6);
  ct_close(&t);
}

// Nodes on the CPU are rewritten if the graph has others on the toy.
CT_TEST(plugins_optimizer, rewrites_the_whole_graph) {
  ct_t t = pt_open();
  TF_Output x, y = build(&t, PT_CPU, &x);
  PT_EXPECT(ct_run1(&t, x.oper, pt_floats(2, values), y.oper), -1, 7);
  TF_Output negated = ct_out(TF_GraphOperationByName(t.graph, "negated"), 0);
  TF_Output z = pt_node(&t, "Mul", "z", PT_TOY, negated, x);
  PT_EXPECT(ct_run1(&t, x.oper, pt_floats(2, values), z.oper), 2, -18);
  ct_close(&t);
}

// |field| of RewriterConfig is |value|.
static void run_with(int field, uint64_t value, float a, float b) {
  ct_t t = pt_open();
  pb_t config = {0}, options = {0}, rewriter = {0};
  pb_varint(&rewriter, field, value);
  pb_message(&options, 10, &rewriter);  // GraphOptions.rewrite_options
  pb_message(&config, 10, &options);    // ConfigProto.graph_options
  ct_session(&t, &config);
  TF_Output x, y = build(&t, PT_TOY, &x);
  PT_EXPECT(ct_run1(&t, x.oper, pt_floats(2, values), y.oper), a, b);
  pb_free(&config);
  ct_close(&t);
}

CT_TEST(plugins_optimizer, turned_off) { run_with(28, 2, -1, 7); }
CT_TEST(plugins_optimizer, turned_on) { run_with(28, 1, 3, 7); }
CT_TEST(plugins_optimizer, no_meta_optimizer) { run_with(19, 1, -1, 7); }

// A bad optimizer does no harm.
CT_TEST(plugins_optimizer, fails) {
  setenv("TOY_FAULT", "optimize", 1);
  ct_t t = pt_open();
  TF_Output x, y = build(&t, PT_TOY, &x);
  PT_EXPECT(ct_run1(&t, x.oper, pt_floats(2, values), y.oper), -1, 7);
  ct_close(&t);
}

CT_TEST(plugins_optimizer, makes_a_bad_graph) {
  setenv("TOY_FAULT", "bad_graph", 1);
  ct_t t = pt_open();
  TF_Output x, y = build(&t, PT_TOY, &x);
  PT_EXPECT(ct_run1(&t, x.oper, pt_floats(2, values), y.oper), -1, 7);
  ct_close(&t);
}

// State lives on when another graph is made of the same nodes.
CT_TEST(plugins_optimizer, variables_live_on) {
  ct_t t = pt_open();
  TF_Output x, y = build(&t, PT_TOY, &x);
  TF_OperationDescription* desc = pt_begin(&t, "VarHandleOp", "v", PT_TOY, PT_NONE, PT_NONE);
  int64_t dims[] = {2};
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  TF_SetAttrShape(desc, "shape", dims, 1);
  TF_Output handle = pt_end(&t, desc);
  desc = pt_begin(&t, "AssignVariableOp", "assign", PT_TOY, handle, y);
  TF_Operation* assign = TF_FinishOperation(desc, t.status);
  CT_OK(t.status);
  desc = pt_begin(&t, "ReadVariableOp", "read", PT_TOY, handle, PT_NONE);
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  TF_Output read = pt_end(&t, desc);
  TF_Tensor *feed = pt_floats(2, values), *fetched = NULL;
  const TF_Operation* targets[] = {assign};
  TF_SessionRun(ct_session(&t, NULL), NULL, &x, &feed, 1, &y, &fetched, 1, targets, 1, NULL,
                t.status);
  CT_OK(t.status);
  TF_DeleteTensor(feed);
  PT_EXPECT(fetched, 3, 7);
  PT_EXPECT(ct_run0(&t, read.oper), 3, 7);
  TF_Output sum = pt_node(&t, "AddV2", "sum_again", PT_TOY, read, read);
  TF_Output less = pt_node(&t, "Sub", "less", PT_TOY, read, sum);
  TF_Output negated = pt_node(&t, "Neg", "again", PT_TOY, less, PT_NONE);
  PT_EXPECT(ct_run0(&t, negated.oper), 3, 7);
  ct_close(&t);
}

// What the optimizer prints when it asks about its graph.
static const char* const answers =
    "optimizer: fetched: plus:0\n"
    "optimizer: kept: plus x\n"
    "optimizer: negated has 1 inputs and 1 outputs: 0801120412020802\n"
    "optimizer: the OpDef of Neg begins with 0a034e6567\n"
    "optimizer: NoSuchOp: 5\n"
    "optimizer: nodes are placed, changed 1\n";

CT_TEST(plugins_optimizer, asks) {
  char path[] = "/tmp/runnel_optimizer_XXXXXX";
  int file = mkstemp(path), old = dup(1);
  cr_assert(file >= 0 && old >= 0);
  setenv("TOY_VERBOSE", "1", 1);
  ct_t t = pt_open();
  TF_Output x, y = build(&t, PT_TOY, &x);
  ct_session(&t, NULL);
  fflush(stdout);
  dup2(file, 1);
  PT_EXPECT(ct_run1(&t, x.oper, pt_floats(2, values), y.oper), 3, 7);
  fflush(stdout);
  dup2(old, 1);
  char text[1024] = "";
  ssize_t size = pread(file, text, sizeof text - 1, 0);
  cr_assert(size > 0);
  CT_STR(text, answers);
  close(file);
  unlink(path);
  ct_close(&t);
}

// Gradients through the C API: values, the nodes they add, how prefixes name them, and ops that
// have none.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ops_c.h"
#include "util.h"

static void unknown_shape(TF_ShapeInferenceContext* context, TF_Status* status) {
  TF_ShapeInferenceContextSetUnknownShape(context, status);
}

static void register_op(void) {
  TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder("TestOpWithNoGradient");
  TF_OpDefinitionBuilderAddAttr(builder, "T: {float, double}");
  TF_OpDefinitionBuilderAddInput(builder, "x: T");
  TF_OpDefinitionBuilderAddOutput(builder, "y: T");
  TF_OpDefinitionBuilderSetShapeInferenceFunction(builder, unknown_shape);
  TF_Status* status = TF_NewStatus();
  TF_RegisterOpDefinition(builder, status);
  CT_OK(status);
  TF_DeleteStatus(status);
}

#define GRAD_TEST(name) CT_TEST(CApiGradientsTest, name, .init = register_op)

// y = a b, of 2 x 2 matrices.
typedef struct product_t {
  ct_t t;
  TF_Output x[2];
  TF_Output y;
} product_t;

static product_t product(void) {
  product_t p = {.t = ct_open()};
  float a[] = {1, 2, 3, 4}, b[] = {1, 0, 0, 1};
  p.x[0] = ct_out(ct_const(&p.t, p.t.graph, "Const_0", ct_float_matrix(2, 2, a)), 0);
  p.x[1] = ct_out(ct_const(&p.t, p.t.graph, "Const_1", ct_float_matrix(2, 2, b)), 0);
  p.y = ct_out(ct_binary(&p.t, p.t.graph, "MatMul", "MatMul", p.x[0], p.x[1]), 0);
  return p;
}

static void check_matrix(ct_t* t, TF_Output fetch, const float* expected) {
  TF_Tensor* result = ct_run(t, 0, NULL, NULL, fetch);
  CT_INT(TF_TensorByteSize(result), 16);
  const float* values = TF_TensorData(result);
  for (int i = 0; i < 4; ++i) {
    cr_assert_eq(values[i], expected[i], "element %d is %g, not %g", i, values[i], expected[i]);
  }
  TF_DeleteTensor(result);
}

// The graph's text after |from|, the part that the gradients added.
static void check_added(TF_Graph* graph, const char* last, const char* expected) {
  char* text = ct_graph_text(graph);
  char* at = strstr(text, last);
  cr_assert_not_null(at);
  at = strchr(at, '\n') + 1;
  CT_STR(at, expected);
  free(text);
}

GRAD_TEST(Gradients_GradInputs) {
  product_t p = product();
  float d[] = {0.5f, 0.5f, -1, 2};
  TF_Output dx = ct_out(ct_const(&p.t, p.t.graph, "GradInputs", ct_float_matrix(2, 2, d)), 0);
  TF_Output dy[2];
  TF_AddGradients(p.t.graph, &p.y, 1, p.x, 2, &dx, p.t.status, dy);
  CT_OK(p.t.status);
  // dA = D B', dB = A' D.
  float da[] = {0.5f, 0.5f, -1, 2}, db[] = {-2.5f, 6.5f, -3, 9};
  check_matrix(&p.t, dy[0], da);
  check_matrix(&p.t, dy[1], db);
  check_added(p.t.graph, "GradInputs = Const()",
              "gradients/MatMul = MatMul(GradInputs, Const_1)\n"
              "gradients/MatMul_1 = MatMul(Const_0, GradInputs)\n");
  ct_close(&p.t);
}

GRAD_TEST(Gradients_NoGradInputs) {
  product_t p = product();
  TF_Output dy[2];
  TF_AddGradients(p.t.graph, &p.y, 1, p.x, 2, NULL, p.t.status, dy);
  CT_OK(p.t.status);
  float da[] = {1, 1, 1, 1}, db[] = {4, 4, 6, 6};
  check_matrix(&p.t, dy[0], da);
  check_matrix(&p.t, dy[1], db);
  check_added(p.t.graph, "MatMul = MatMul(Const_0, Const_1)",
              "gradients/OnesLike = OnesLike(MatMul)\n"
              "gradients/MatMul = MatMul(gradients/OnesLike, Const_1)\n"
              "gradients/MatMul_1 = MatMul(Const_0, gradients/OnesLike)\n");
  ct_close(&p.t);
}

static void no_gradient(bool with_inputs) {
  ct_t t = ct_open();
  TF_Output x = ct_out(ct_scalar_float(&t, t.graph, "x", 3), 0);
  TF_Output y = ct_out(ct_unary(&t, t.graph, "TestOpWithNoGradient", "y", x), 0);
  TF_Output dx = ct_out(ct_scalar_float(&t, t.graph, "dx", 1), 0);
  TF_Output dy = ct_out(NULL, -1);
  TF_AddGradients(t.graph, &y, 1, &x, 1, with_inputs ? &dx : NULL, t.status, &dy);
  CT_ERROR(t.status, TF_NOT_FOUND,
           "No gradient defined for op: TestOpWithNoGradient. Please see "
           "https://www.tensorflow.org/code/tensorflow/cc/gradients/README.md for instructions on "
           "how to add C++ gradients.");
  ct_close(&t);
}

GRAD_TEST(OpWithNoGradientRegistered_GradInputs) { no_gradient(true); }
GRAD_TEST(OpWithNoGradientRegistered_NoGradInputs) { no_gradient(false); }

// An op that passes nothing back is an error as a y, unless it is known for that.
GRAD_TEST(YThatPassesNothingBack) {
  ct_t t = ct_open();
  TF_Output x = ct_out(ct_placeholder(&t, t.graph, "x", TF_FLOAT), 0);
  TF_Output zero = ct_out(ct_const(&t, t.graph, "zero", ct_int32(0)), 0);
  TF_Output largest = ct_out(ct_binary(&t, t.graph, "ArgMax", "largest", x, zero), 0);
  TF_Output stopped = ct_out(ct_unary(&t, t.graph, "StopGradient", "stopped", largest), 0);
  TF_Output shape = ct_out(ct_unary(&t, t.graph, "Shape", "shape", x), 0);
  TF_Output dy = x;
  TF_AddGradients(t.graph, &largest, 1, &x, 1, NULL, t.status, &dy);
  CT_ERROR_HAS(t.status, TF_NOT_FOUND, "No gradient defined for op: ArgMax. Please see ");
  TF_AddGradients(t.graph, &stopped, 1, &x, 1, NULL, t.status, &dy);
  CT_OK(t.status);
  cr_assert_null(dy.oper);
  dy = x;
  TF_AddGradients(t.graph, &shape, 1, &x, 1, NULL, t.status, &dy);
  CT_OK(t.status);
  cr_assert_null(dy.oper);
  ct_close(&t);
}

// x -> y = -x; one or two calls with prefixes.
typedef struct prefix_t {
  ct_t t;
  TF_Output x;
  TF_Output y;
  TF_Output z;
  TF_Output dy;
} prefix_t;

static prefix_t prefixes(void) {
  prefix_t p = {.t = ct_open()};
  p.x = ct_out(ct_placeholder(&p.t, p.t.graph, "x", TF_FLOAT), 0);
  p.y = ct_out(ct_unary(&p.t, p.t.graph, "Neg", "y", p.x), 0);
  p.z = ct_out(ct_unary(&p.t, p.t.graph, "Neg", "z", p.x), 0);
  return p;
}

static void add_gradient(prefix_t* p, const char* prefix, TF_Output y) {
  TF_AddGradientsWithPrefix(p->t.graph, prefix, &y, 1, &p->x, 1, NULL, p->t.status, &p->dy);
}

// Every node added must lie in one of |scopes|, in that order, two in each; what they are called
// there is the library's affair.
static void check_prefixes(prefix_t* p, int count, const char* const* scopes) {
  size_t pos = 0;
  for (int i = 0; i < 3; ++i) (void)TF_GraphNextOperation(p->t.graph, &pos);
  for (int i = 0; i < 2 * count; ++i) {
    TF_Operation* oper = TF_GraphNextOperation(p->t.graph, &pos);
    cr_assert_not_null(oper);
    const char* name = TF_OperationName(oper);
    const char* slash = strrchr(name, '/');
    const char* scope = scopes[i / 2];
    cr_assert(slash != NULL && (size_t)(slash - name) == strlen(scope) &&
                  strncmp(name, scope, strlen(scope)) == 0,
              "'%s' is not in '%s'", name, scope);
    CT_STR(TF_OperationOpType(oper), i % 2 == 0 ? "OnesLike" : "Neg");
  }
  cr_assert_null(TF_GraphNextOperation(p->t.graph, &pos));
  TF_Tensor* values[] = {ct_float(3)};
  cr_assert_eq(ct_take_float(ct_run(&p->t, 1, &p->x, values, p->dy)), -1);
  ct_close(&p->t);
}

#define CHECK_PREFIXES(p, count, ...) check_prefixes(p, count, (const char* const[]){__VA_ARGS__})

GRAD_TEST(GradientsPrefix_PrefixIsOk) {
  prefix_t p = prefixes();
  add_gradient(&p, "gradients_1", p.y);
  CT_OK(p.t.status);
  CHECK_PREFIXES(&p, 1, "gradients_1");
}

GRAD_TEST(GradientsPrefix_NoPrefix) {
  // Without a prefix each call finds a fresh one.
  prefix_t p = prefixes();
  add_gradient(&p, NULL, p.y);
  CT_OK(p.t.status);
  add_gradient(&p, NULL, p.z);
  CT_OK(p.t.status);
  CHECK_PREFIXES(&p, 2, "gradients", "gradients_1");
}

GRAD_TEST(GradientsPrefix_TwoGradientsWithDistinctPrefixes) {
  prefix_t p = prefixes();
  add_gradient(&p, "gradients", p.y);
  CT_OK(p.t.status);
  add_gradient(&p, "gradients_1", p.z);
  CT_OK(p.t.status);
  CHECK_PREFIXES(&p, 2, "gradients", "gradients_1");
}

GRAD_TEST(GradientsPrefix_TwoGradientsInSameScope) {
  prefix_t p = prefixes();
  add_gradient(&p, "scope/gradients", p.y);
  CT_OK(p.t.status);
  add_gradient(&p, "scope/gradients_1", p.z);
  CT_OK(p.t.status);
  CHECK_PREFIXES(&p, 2, "scope/gradients", "scope/gradients_1");
}

GRAD_TEST(GradientsPrefix_TwoGradientsInDifferentScopes) {
  prefix_t p = prefixes();
  add_gradient(&p, "scope/gradients", p.y);
  CT_OK(p.t.status);
  add_gradient(&p, "scope_1/gradients", p.z);
  CT_OK(p.t.status);
  CHECK_PREFIXES(&p, 2, "scope/gradients", "scope_1/gradients");
}

GRAD_TEST(GradientsPrefix_2ndGradientsAsSubScopeOf1st) {
  prefix_t p = prefixes();
  add_gradient(&p, "gradients", p.y);
  CT_OK(p.t.status);
  add_gradient(&p, "gradients/sub", p.z);
  CT_OK(p.t.status);
  CHECK_PREFIXES(&p, 2, "gradients", "gradients/sub");
}

// The call with |prefix| must be refused.
static void refused(prefix_t* p, const char* prefix, TF_Output y) {
  add_gradient(p, prefix, y);
  char expected[128];
  snprintf(expected, sizeof expected,
           "prefix [%s] conflicts with existing node in the graph named [", prefix);
  CT_ERROR_HAS(p->t.status, TF_INVALID_ARGUMENT, expected);
  ct_close(&p->t);
}

GRAD_TEST(GradientsPrefix_PrefixMatchesExistingNodeName) {
  prefix_t p = prefixes();
  refused(&p, "x", p.y);
}

GRAD_TEST(GradientsPrefix_TwoGradientsWithIdenticalPrefixes) {
  prefix_t p = prefixes();
  add_gradient(&p, "gradients", p.y);
  CT_OK(p.t.status);
  refused(&p, "gradients", p.z);
}

GRAD_TEST(GradientsPrefix_2ndGradientsMatchingNodeOf1st) {
  prefix_t p = prefixes();
  add_gradient(&p, "gradients", p.y);
  CT_OK(p.t.status);
  refused(&p, "gradients/OnesLike", p.z);
}

GRAD_TEST(GradientsPrefix_1stGradientsMatchingNodeOf2nd) {
  // The first takes the name "gradients/OnesLike/..." that the second, "gradients", would like for
  // a node.
  prefix_t p = prefixes();
  add_gradient(&p, "gradients/OnesLike", p.y);
  CT_OK(p.t.status);
  refused(&p, "gradients", p.z);
}

GRAD_TEST(GradientsPrefix_2ndGradientsAsParentScopeOf1st) {
  prefix_t p = prefixes();
  add_gradient(&p, "gradients/sub", p.y);
  CT_OK(p.t.status);
  refused(&p, "gradients", p.z);
}

GRAD_TEST(MultipleCallsToAddGradients) {
  ct_t t = ct_open();
  enum { kCalls = 3 };
  TF_Output x = ct_out(ct_placeholder(&t, t.graph, "x", TF_INT32), 0);
  TF_Output z = ct_out(ct_scalar(&t, t.graph, "z", 2), 0);
  TF_Output previous = ct_out(ct_neg(&t, t.graph, "neg", x.oper), 0);
  TF_Output w = ct_out(ct_add(&t, t.graph, "w", previous, z), 0);
  for (int i = 0; i < kCalls; ++i) {
    TF_Output dy = ct_out(NULL, -1);
    TF_AddGradients(t.graph, &w, 1, &x, 1, NULL, t.status, &dy);
    CT_OK(t.status);
    TF_Tensor* values[] = {ct_int32(5)};
    CT_INT(ct_take_int32(ct_run(&t, 1, &x, values, dy)), -1);
  }
  cr_assert_not_null(TF_GraphOperationByName(t.graph, "gradients/OnesLike"));
  cr_assert_not_null(TF_GraphOperationByName(t.graph, "gradients_1/OnesLike"));
  cr_assert_not_null(TF_GraphOperationByName(t.graph, "gradients_2/OnesLike"));
  ct_close(&t);
}

GRAD_TEST(SumOfSeveralYs) {
  // Gradients of several outputs add up; an x used twice gathers both.
  ct_t t = ct_open();
  TF_Output x = ct_out(ct_placeholder(&t, t.graph, "x", TF_FLOAT), 0);
  TF_Output y[2];
  y[0] = ct_out(ct_binary(&t, t.graph, "Mul", "square", x, x), 0);
  y[1] = ct_out(ct_unary(&t, t.graph, "Neg", "neg", x), 0);
  TF_Output dy = ct_out(NULL, -1);
  TF_AddGradients(t.graph, y, 2, &x, 1, NULL, t.status, &dy);
  CT_OK(t.status);
  TF_Tensor* values[] = {ct_float(3)};
  cr_assert_eq(ct_take_float(ct_run(&t, 1, &x, values, dy)), 5);
  ct_close(&t);
}

GRAD_TEST(UnrelatedX) {
  ct_t t = ct_open();
  TF_Output x[2];
  x[0] = ct_out(ct_placeholder(&t, t.graph, "x", TF_FLOAT), 0);
  x[1] = ct_out(ct_placeholder(&t, t.graph, "other", TF_FLOAT), 0);
  TF_Output y = ct_out(ct_unary(&t, t.graph, "Neg", "y", x[0]), 0);
  TF_Output dy[2];
  TF_AddGradients(t.graph, &y, 1, x, 2, NULL, t.status, dy);
  CT_ERROR(t.status, TF_INVALID_ARGUMENT,
           "Cannot compute the partial derivative for node 'other' as it's unreachable from the "
           "output node(s).");
  ct_close(&t);
}

GRAD_TEST(CentralDifferences) {
  // tanh(x)^2 + exp(-x) at a few points.
  ct_t t = ct_open();
  TF_Output x = ct_out(ct_placeholder(&t, t.graph, "x", TF_FLOAT), 0);
  TF_Output tanh_x = ct_out(ct_unary(&t, t.graph, "Tanh", "tanh", x), 0);
  TF_Output square = ct_out(ct_binary(&t, t.graph, "Mul", "square", tanh_x, tanh_x), 0);
  TF_Output neg = ct_out(ct_unary(&t, t.graph, "Neg", "neg", x), 0);
  TF_Output exp_x = ct_out(ct_unary(&t, t.graph, "Exp", "exp", neg), 0);
  TF_Output y = ct_out(ct_binary(&t, t.graph, "AddV2", "y", square, exp_x), 0);
  TF_Output dy = ct_out(NULL, -1);
  TF_AddGradients(t.graph, &y, 1, &x, 1, NULL, t.status, &dy);
  CT_OK(t.status);
  for (float at = -2; at <= 2; at += 0.5f) {
    double expected = 2 * tanh(at) * (1 - tanh(at) * tanh(at)) - exp(-at);
    TF_Tensor* values[] = {ct_float(at)};
    double found = ct_take_float(ct_run(&t, 1, &x, values, dy));
    cr_assert(fabs(found - expected) < 1e-5, "at %g: %g, not %g", at, found, expected);
  }
  ct_close(&t);
}

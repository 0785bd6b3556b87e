// rn_check_gradient accepts right gradients and names wrong ones.
#include "runnel/runnel.h"
#include "util.h"

// A rule that is wrong on purpose.
static bool wrong(rn_grad_t* g, void* arg) {
  (void)arg;
  rn_grad_send(g, 0, rn_grad_arrived(g, 0));
  return true;
}

typedef struct {
  TF_Graph* graph;
  rn_scope_t* s;
  rn_edge_t x;
  TF_Tensor* value;
} check_t;

static check_t begin(TF_DataType type) {
  check_t c = {.graph = TF_NewGraph()};
  int64_t dims[] = {2, 3};
  c.s = rn_scope_create(rn_graph_of(c.graph));
  c.x = rn_Placeholder(c.s, type, .shape = RN_SET_SHAPE(dims, 2));
  c.value = TF_AllocateTensor(type, dims, 2, 6 * TF_DataTypeSize(type));
  for (int i = 0; i < 6; ++i) {
    if (type == TF_FLOAT) ((float*)TF_TensorData(c.value))[i] = 0.3f * (float)i - 0.7f;
    if (type == TF_DOUBLE) ((double*)TF_TensorData(c.value))[i] = 0.3 * i - 0.7;
  }
  return c;
}

static void end(check_t* c) {
  TF_DeleteTensor(c->value);
  rn_scope_destroy(c->s);
  TF_DeleteGraph(c->graph);
}

CT_TEST(OursOnlyGradient, Agrees) {
  TF_DataType types[] = {TF_FLOAT, TF_DOUBLE};
  for (int i = 0; i < 2; ++i) {
    check_t c = begin(types[i]);
    rn_edge_t ys[2] = {rn_Tanh(c.s, c.x), rn_Mul(c.s, c.x, rn_Exp(c.s, c.x))};
    double error = -1;
    rn_check_options_t options = {.tolerance = i ? 1e-8 : 1e-3};
    cr_assert(rn_check_gradient(c.s, ys, 2, &c.x, &c.value, 1, &options, &error), "%s",
              rn_scope_message(c.s));
    cr_expect(error >= 0 && error < options.tolerance);
    end(&c);
  }
}

CT_TEST(OursOnlyGradient, Names) {
  cr_assert(rn_register_gradient("WrongOnPurpose", wrong, NULL));
  check_t c = begin(TF_DOUBLE);
  rn_op_begin(c.s, "Square");
  rn_op_input(c.s, c.x);
  rn_op_attr_string(c.s, "_gradient_op_type", "WrongOnPurpose");
  rn_edge_t y = {rn_op_finish(c.s), 0};
  double error = 0;
  rn_check_options_t options = {.tolerance = 1e-6};
  cr_assert(!rn_check_gradient(c.s, &y, 1, &c.x, &c.value, 1, &options, &error));
  cr_expect(strstr(rn_scope_message(c.s), "The gradient of 'Placeholder:0' at element 0 is 1;"),
            "%s", rn_scope_message(c.s));
  cr_expect(error > 0.1);
  end(&c);
}

CT_TEST(OursOnlyGradient, Refuses) {
  check_t c = begin(TF_INT32);
  rn_edge_t y = rn_Square(c.s, c.x);
  cr_assert(!rn_check_gradient(c.s, &y, 1, &c.x, &c.value, 1, NULL, NULL));
  cr_expect_eq(rn_scope_code(c.s), TF_INVALID_ARGUMENT);
  end(&c);
}

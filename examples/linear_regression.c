// Linear regression: variables, a loss and gradient descent, nothing else.
//
// The points lie on y = 0.1 x + 0.3; training starts from other values and has to find these two
// numbers.
#include <math.h>

#include "example.h"

enum { POINTS = 100 };

int main(int argc, char** argv) {
  example_t e = example_open(argc, argv, "Finds the line y = 0.1 x + 0.3 from points on it.", 200);
  rn_scope_t* s = e.scope;

  rn_edge_t x = rn_Placeholder(s, TF_FLOAT, .shape = RN_SHAPE(POINTS));
  rn_edge_t y = rn_Placeholder(s, TF_FLOAT, .shape = RN_SHAPE(POINTS));
  // Variables keep their values from one step to the next; w and b are scalars.
  const rn_var_t* w =
      rn_get_variable(s, "w", NULL, 0, .initializer = rn_init_uniform(-1, 1, example_seed(&e, 0)));
  const rn_var_t* b = rn_get_variable(s, "b", NULL, 0, .initializer = rn_init_zeros());
  if (!rn_scope_ok(s)) example_fail("the variables", rn_scope_message(s));
  rn_edge_t guess = rn_AddV2(s, rn_Mul(s, w->value, x), b->value);

  // Adds to the graph the gradients of the loss and a node that moves w and b against them.
  rn_edge_t loss = rn_mean_squared_error(s, y, guess);
  rn_node_t* train = rn_minimize(s, rn_gradient_descent(.learning_rate = 0.5f), loss);

  example_start(&e);
  float xs[POINTS], ys[POINTS];
  for (int i = 0; i < POINTS; ++i) {
    xs[i] = example_uniform(&e);
    ys[i] = 0.1f * xs[i] + 0.3f;
  }
  for (int step = 1; step <= e.steps; ++step) {
    float loss_now;
    example_run(&e, RN_TARGET(train), RN_FEED(x, xs, POINTS), RN_FEED(y, ys, POINTS),
                RN_FETCH(loss, &loss_now));
    example_progress(&e, step, "loss %.2e", loss_now);
  }

  float slope, offset;
  example_run(&e, RN_FETCH(w->value, &slope), RN_FETCH(b->value, &offset));
  bool is_found = fabsf(slope - 0.1f) < 1e-3f && fabsf(offset - 0.3f) < 1e-3f;
  return example_close(&e, is_found, "y = %.4f x + %.4f", slope, offset);
}

// Loops whose next values do not depend on their values: bodies that return what was computed
// outside, and that change variables by it. They end, and the last, false condition runs nothing.
#include <criterion/criterion.h>

#include "util.h"

typedef struct constants_t {
  rn_edge_t turns, x, c;  // built outside
  bool functional;
  const rn_var_t* variable;
} constants_t;

static rn_edge_t goes_on(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  const constants_t* k = arg;
  return rn_Less(s, values[0], k->turns);
}

static void count(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next) {
  next[0] = rn_AddV2(s, values[0], rn_const_int32(s, 1));
}

static void bare(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  const constants_t* k = arg;
  count(s, values, next);
  next[1] = k->x;
}

static void constant(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  const constants_t* k = arg;
  count(s, values, next);
  next[1] = k->c;
}

static void identity(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  const constants_t* k = arg;
  count(s, values, next);
  next[1] = rn_Identity(s, k->x);
}

static void computed(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  const constants_t* k = arg;
  count(s, values, next);
  next[1] = rn_AddV2(s, rn_Square(s, k->x), k->c);
}

static void folded(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  const constants_t* k = arg;
  count(s, values, next);
  next[1] = rn_AddV2(s, rn_Square(s, k->c), k->c);
}

static int take_x(rn_scope_t* s, rn_edge_t* out, void* arg) {
  const constants_t* k = arg;
  (void)s;
  out[0] = k->x;
  return 1;
}

static int take_c(rn_scope_t* s, rn_edge_t* out, void* arg) {
  const constants_t* k = arg;
  (void)s;
  out[0] = k->c;
  return 1;
}

static void chosen(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  constants_t* k = arg;
  count(s, values, next);
  rn_cond(s, rn_Greater(s, k->x, k->c), rn_branch(take_x, k), rn_branch(take_c, k), &next[1], 1,
          .functional = k->functional);
}

static void nested(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  constants_t* k = arg;
  rn_edge_t starts[2] = {rn_Sub(s, k->turns, k->turns), k->c}, ends[2];
  count(s, values, next);
  if (rn_while(s, goes_on, computed, k, starts, ends, 2, .functional = k->functional))
    next[1] = ends[1];
}

// The results and the gradients with respect to x are those of stock TensorFlow's while_loop, for
// x = 7 and c = 2; without a turn the result is the start, 1, and the gradient 0.
static const struct {
  const char* what;
  rn_body_t body;
  double value, gradient;
} kCases[] = {
    {"bare", bare, 7, 1},           {"constant", constant, 2, 0}, {"identity", identity, 7, 1},
    {"computed", computed, 51, 14}, {"folded", folded, 6, 0},     {"chosen", chosen, 7, 1},
    {"nested", nested, 51, 14},
};

static void check(size_t n, int turns, bool functional) {
  trial_t t = trial_open();
  rn_edge_t x = rn_Placeholder(t.s, TF_FLOAT, .shape = RN_SET_SHAPE(NULL, 0));
  constants_t k = {rn_const_int32(t.s, turns), x, rn_const_float(t.s, 2), functional, NULL};
  rn_edge_t starts[2] = {rn_const_int32(t.s, 0), rn_const_float(t.s, 1)}, ends[2];
  cr_assert(rn_while(t.s, goes_on, kCases[n].body, &k, starts, ends, 2, .functional = functional),
            "%s: %s", kCases[n].what, rn_scope_message(t.s));
  float seven = 7;
  TF_Tensor* fed = tensor_of(TF_FLOAT, NULL, 0, &seven);
  double got;
  trial_fetch(&t, ends[1], &x, &fed, 1, &got, 1);
  cr_expect(got == (turns ? kCases[n].value : 1), "%s, %d turns, functional %d: %g", kCases[n].what,
            turns, functional, got);
  rn_gradient_t d;
  bool found = rn_gradients_of(t.s, &ends[1], 1, &x, 1, NULL, &d);
  cr_assert(found || kCases[n].gradient == 0, "%s: %s", kCases[n].what, rn_scope_message(t.s));
  if (found && !rn_gradient_is_none(d)) {
    trial_fetch(&t, d.dense, &x, &fed, 1, &got, 1);
    cr_expect(got == (turns ? kCases[n].gradient : 0), "%s, %d turns, functional %d: gradient %g",
              kCases[n].what, turns, functional, got);
  }
  TF_DeleteTensor(fed);
  trial_close(&t);
}

Test(flow_constants, loops_end, .timeout = 300) {
  for (size_t n = 0; n < sizeof kCases / sizeof *kCases; ++n)
    for (int form = 0; form < 4; ++form) check(n, form & 1 ? 4 : 0, form >> 1);
}

static void count_after(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, rn_node_t* node) {
  rn_edge_t one = rn_const_int32(s, 1);
  rn_op_begin(s, "AddV2");
  rn_op_input(s, values[0]);
  rn_op_input(s, one);
  rn_op_control(s, node);
  next[0] = (rn_edge_t){rn_op_finish(s), 0};
}

// A change that reads nothing of the loop happens once in each turn.
static void change(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  const constants_t* k = arg;
  count_after(s, values, next, rn_var_add(s, k->variable, k->c));
}

// As above, in the turns of a loop around it: the inner loop reads nothing of the outer one.
static void change_nested(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  constants_t* k = arg;
  rn_edge_t start = rn_Sub(s, k->turns, k->turns), end;
  if (!rn_while(s, goes_on, change, k, &start, &end, 1, .functional = k->functional,
                .parallel_iterations = 1))
    return;
  count_after(s, values, next, end.node);
}

Test(flow_constants, changes_happen_once_in_each_turn, .timeout = 300) {
  for (int form = 0; form < 8; ++form) {
    int turns = form & 1 ? 3 : 0;
    bool functional = form >> 1 & 1, is_nested = form >> 2;
    trial_t t = trial_open();
    constants_t k = {rn_const_int32(t.s, turns), RN_NO_EDGE, rn_const_float(t.s, 2), functional,
                     rn_get_variable(t.s, "v", NULL, 0, .initializer = rn_init_constant(3))};
    rn_edge_t start = rn_const_int32(t.s, 0), end;
    cr_assert(rn_while(t.s, goes_on, is_nested ? change_nested : change, &k, &start, &end, 1,
                       .functional = functional, .parallel_iterations = 1),
              "%s", rn_scope_message(t.s));
    trial_init(&t);
    cr_expect(trial_scalar(&t, end) == turns, "form %d", form);
    double value = trial_scalar(&t, rn_var_read(t.s, k.variable));
    cr_expect(value == 3 + 2 * (is_nested ? turns * turns : turns), "form %d: %g", form, value);
    trial_close(&t);
  }
}

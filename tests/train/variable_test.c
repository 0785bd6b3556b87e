// Variables by name: scopes, reuse and its messages, collections, regularizers.
#include <criterion/criterion.h>
#include <string.h>

#include "util.h"

static const int64_t dims[2] = {2, 3};

static void expect_message(trial_t* t, const char* message) {
  cr_expect(!rn_scope_ok(t->s));
  cr_expect(strcmp(rn_scope_message(t->s), message) == 0, "%s", rn_scope_message(t->s));
  cr_expect(rn_scope_code(t->s) == TF_INVALID_ARGUMENT);
}

Test(variable, names) {
  trial_t t = trial_open();
  rn_scope_t* a = rn_variable_scope(t.s, "a");
  rn_scope_t* b = rn_variable_scope(a, "b");
  const rn_var_t* w = rn_get_variable(b, "w", dims, 2);
  trial_built(&t);
  cr_expect(strcmp(w->name, "a/b/w") == 0);
  cr_expect(w->is_resource && w->is_trainable && w->rank == 2 && w->dims[1] == 3);
  cr_expect(TF_GraphOperationByName(t.graph, "a/b/w"));
  cr_expect(TF_GraphOperationByName(t.graph, "a/b/w/Assign"));
  cr_expect(TF_GraphOperationByName(t.graph, "a/b/w/Read/ReadVariableOp"));
  rn_scope_destroy(b);
  rn_scope_destroy(a);
  // The scope is opened again: nodes get another prefix, variables the same.
  a = rn_variable_scope(t.s, "a", .reuse = RN_REUSE_ALWAYS);
  b = rn_variable_scope(a, "b");
  cr_expect(rn_get_variable(b, "w", dims, 2) == w);
  rn_edge_t x = rn_const_float(b, 1);
  cr_expect(strcmp(TF_OperationName(rn_operation_of(x.node)), "a_1/b/Const") == 0, "%s",
            TF_OperationName(rn_operation_of(x.node)));
  rn_scope_destroy(b);
  rn_scope_destroy(a);
  cr_expect(rn_find_variable(t.s, "a/b/w") == w);
  const rn_var_t* ref = rn_get_variable(t.s, "r", dims, 2, .kind = RN_VARIABLE_REFERENCE);
  trial_built(&t);
  cr_expect(!ref->is_resource && TF_GraphOperationByName(t.graph, "r/read"));
  trial_close(&t);
}

Test(variable, outlives_scopes) {
  trial_t t = trial_open();
  const rn_var_t* w = rn_get_variable(t.s, "w", dims, 2);
  rn_scope_destroy(t.s);
  t.s = rn_scope_create(rn_graph_of(t.graph));
  rn_scope_t* again = rn_variable_scope(t.s, "again", .reuse = RN_REUSE_AUTO, .absolute = true);
  cr_expect(rn_find_variable(t.s, "w") == w);
  const rn_var_t* v = rn_get_variable(again, "v", dims, 2);
  cr_expect(v && rn_get_variable(again, "v", dims, 2) == v);
  rn_scope_destroy(again);
  trial_close(&t);
}

Test(variable, exists_already) {
  trial_t t = trial_open();
  rn_get_variable(t.s, "w", dims, 2);
  cr_expect(!rn_get_variable(t.s, "w", dims, 2));
  expect_message(&t,
                 "Variable w already exists, disallowed. Did you mean to set reuse=True or "
                 "reuse=tf.AUTO_REUSE in VarScope?");
  // The first error stays, and later calls do nothing.
  cr_expect(!rn_get_variable(t.s, "v", dims, 2));
  cr_expect(!rn_var_assign(t.s, NULL, RN_NO_EDGE));
  expect_message(&t,
                 "Variable w already exists, disallowed. Did you mean to set reuse=True or "
                 "reuse=tf.AUTO_REUSE in VarScope?");
  trial_close(&t);
}

Test(variable, does_not_exist) {
  trial_t t = trial_open();
  rn_scope_t* a = rn_variable_scope(t.s, "a", .reuse = RN_REUSE_ALWAYS);
  // Reuse cannot be taken back inside.
  rn_scope_t* b = rn_variable_scope(a, "b", .reuse = RN_REUSE_NEVER);
  cr_expect(!rn_get_variable(b, "w", dims, 2));
  expect_message(&t,
                 "Variable a/b/w does not exist, or was not created with tf.get_variable(). Did "
                 "you mean to set reuse=tf.AUTO_REUSE in VarScope?");
  rn_scope_destroy(b);
  rn_scope_destroy(a);
  trial_close(&t);
}

Test(variable, of_another_shape_or_type) {
  static const int64_t other[2] = {2, 4};
  trial_t t = trial_open();
  rn_scope_t* a = rn_variable_scope(t.s, "a", .reuse = RN_REUSE_AUTO);
  rn_get_variable(a, "w", dims, 2);
  rn_get_variable(a, "w", other, 2);
  expect_message(
      &t, "Trying to share variable a/w, but specified shape (2, 4) and found shape (2, 3).");
  rn_scope_destroy(a);
  trial_close(&t);

  t = trial_open();
  a = rn_variable_scope(t.s, "a", .reuse = RN_REUSE_AUTO);
  rn_get_variable(a, "w", dims, 2);
  rn_get_variable(a, "w", dims, 2, .dtype = TF_DOUBLE);
  expect_message(
      &t, "Trying to share variable a/w, but specified dtype float64 and found dtype float32.");
  rn_scope_destroy(a);
  trial_close(&t);

  t = trial_open();
  rn_get_variable(t.s, "w", ((const int64_t[]){2, -1}), 2);
  expect_message(&t,
                 "Shape of a new variable (w) must be fully defined, but instead was (2, None).");
  trial_close(&t);
}

Test(variable, defaults_of_scopes) {
  trial_t t = trial_open();
  rn_scope_t* a = rn_variable_scope(t.s, "a", .initializer = rn_init_constant(2),
                                    .regularizer = rn_regularize(0.5, 0.25), .dtype = TF_DOUBLE,
                                    .kind = RN_VARIABLE_REFERENCE);
  const rn_var_t* w = rn_get_variable(a, "w", dims, 2);
  const rn_var_t* v = rn_get_variable(a, "v", dims, 2, .initializer = rn_init_ones(),
                                      .no_regularizer = true, .not_trainable = true);
  trial_built(&t);
  cr_expect(w->dtype == TF_DOUBLE && !w->is_resource);
  const rn_collected_t* items;
  cr_expect(rn_collection(t.s, RN_GLOBAL_VARIABLES, &items) == 2 && items[1].variable == v);
  cr_expect(rn_collection(t.s, RN_TRAINABLE_VARIABLES, &items) == 1 && items[0].variable == w);
  cr_assert(rn_collection(t.s, RN_REGULARIZATION_LOSSES, &items) == 1);
  rn_edge_t penalty = items[0].edge;
  trial_init(&t);
  expect_close("penalty", 0, trial_scalar(&t, penalty), 0.5 * 12 + 0.25 * 24, 0);
  double values[6];
  cr_assert(trial_fetch(&t, w->value, NULL, NULL, 0, values, 6) == 6);
  expect_close("w", 5, values[5], 2, 0);
  rn_scope_destroy(a);
  trial_close(&t);
}

// Layers without names are numbered, from the start whenever a scope is opened.
Test(variable, numbers_of_layers) {
  trial_t t = trial_open();
  rn_edge_t x = wave(t.s, 4, 3, 1);
  rn_edge_t last[2];
  for (int i = 0; i < 2; ++i) {
    rn_scope_t* model =
        rn_variable_scope(t.s, "model", .reuse = i ? RN_REUSE_ALWAYS : RN_REUSE_NEVER);
    last[i] = rn_dense(model, rn_dense(model, x, 5, .activation = rn_tanh), 2);
    rn_scope_destroy(model);
  }
  trial_built(&t);
  const rn_collected_t* items;
  cr_expect(rn_collection(t.s, RN_TRAINABLE_VARIABLES, &items) == 4);
  cr_expect(rn_find_variable(t.s, "model/dense/kernel"));
  cr_expect(rn_find_variable(t.s, "model/dense_1/bias"));
  trial_init(&t);
  double a[8], b[8];
  trial_fetch(&t, last[0], NULL, NULL, 0, a, 8);
  trial_fetch(&t, last[1], NULL, NULL, 0, b, 8);
  cr_expect(memcmp(a, b, sizeof a) == 0);
  trial_close(&t);
}

Test(variable, nothing_crashes_on_null) {
  cr_expect(!rn_get_variable(NULL, "w", dims, 2));
  cr_expect(!rn_variable_scope(NULL, "w"));
  cr_expect(!rn_find_variable(NULL, "w"));
  cr_expect(!rn_global_step(NULL));
  cr_expect(!rn_group(NULL, NULL, 0));
  cr_expect(!rn_initialize_variables(NULL, RN_GLOBAL_VARIABLES));
  cr_expect(!rn_dense(NULL, RN_NO_EDGE, 3).node);
  trial_t t = trial_open();
  cr_expect(!rn_get_variable(t.s, NULL, dims, 2));
  trial_close(&t);
  t = trial_open();
  cr_expect(!rn_get_variable(t.s, "w", NULL, 2));
  trial_close(&t);
  t = trial_open();
  cr_expect(!rn_variable_scope(t.s, NULL));
  trial_close(&t);
  t = trial_open();
  cr_expect(!rn_dense(t.s, RN_NO_EDGE, 3, .name = "hidden").node);
  cr_expect(strcmp(rn_scope_message(t.s), "hidden: the input is missing") == 0, "%s",
            rn_scope_message(t.s));
  trial_close(&t);
}

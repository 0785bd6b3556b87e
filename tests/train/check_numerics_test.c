// The check that names the first node whose output contains NaN or infinity.
#include <criterion/criterion.h>
#include <string.h>

#include "util.h"

static const char* failure(trial_t* t, rn_node_t* check, rn_edge_t x, float value) {
  TF_Tensor* fed = tensor_floats(&value, 1, 0);
  TF_Output input = rn_output_of(x);
  TF_Operation* target = rn_operation_of(check);
  if (!t->session) {
    TF_SessionOptions* options = TF_NewSessionOptions();
    t->session = TF_NewSession(t->graph, options, t->status);
    TF_DeleteSessionOptions(options);
  }
  TF_SessionRun(t->session, NULL, &input, &fed, 1, NULL, NULL, 0,
                (const TF_Operation* const*)&target, 1, NULL, t->status);
  TF_DeleteTensor(fed);
  return TF_Message(t->status);
}

Test(check_numerics, names_the_first_node) {
  trial_t t = trial_open();
  int64_t dims[1] = {1};
  rn_edge_t x = rn_Placeholder(t.s, TF_FLOAT, .shape = RN_SET_SHAPE(dims, 1), .name = "x");
  rn_edge_t log = rn_Log(t.s, x, .name = "log");
  rn_edge_t root = rn_Sqrt(t.s, log, .name = "root");
  rn_edge_t y = rn_Mul(t.s, root, root, .name = "y");
  rn_Log(t.s, rn_Neg(t.s, x), .name = "unused");
  rn_node_t* check = rn_add_check_numerics(t.s, &y, 1);
  trial_built(&t);
  cr_assert(check);
  const char* said = failure(&t, check, x, 2);
  cr_expect(TF_GetCode(t.status) == TF_OK, "%s", said);
  said = failure(&t, check, x, 0.5f);  // the root of a negative number
  cr_expect(TF_GetCode(t.status) == TF_INVALID_ARGUMENT);
  cr_expect(strstr(said, "root:0 : Tensor had NaN values"), "%s", said);
  said = failure(&t, check, x, 0);
  cr_expect(strstr(said, "log:0 : Tensor had Inf values"), "%s", said);
  said = failure(&t, check, x, 1.0f / 0.0f);
  cr_expect(strstr(said, "x:0 : Tensor had Inf values"), "%s", said);
  trial_close(&t);
}

Test(check_numerics, leaves_out_what_may_not_run) {
  trial_t t = trial_open();
  int64_t dims[1] = {1};
  rn_edge_t x = rn_Placeholder(t.s, TF_FLOAT, .shape = RN_SET_SHAPE(dims, 1), .name = "x");
  rn_edge_t sum = rn_Sum(t.s, x, rn_const_int32(t.s, 0));
  rn_edge_t is_large = rn_Greater(t.s, sum, rn_const_float(t.s, 0));
  rn_Switch_out_t ways = rn_Switch(t.s, x, is_large);
  rn_edge_t merged[2] = {rn_Neg(t.s, ways.output_false), rn_Log(t.s, ways.output_true)};
  rn_edge_t y = rn_Merge(t.s, merged, 2).output;
  rn_node_t* check = rn_add_check_numerics(t.s, &y, 1);
  trial_built(&t);
  // Whichever way is taken, the check runs: it waits for nothing that is dead.
  const char* said = failure(&t, check, x, -1);
  cr_expect(TF_GetCode(t.status) == TF_OK, "%s", said);
  said = failure(&t, check, x, 1);
  cr_expect(TF_GetCode(t.status) == TF_OK, "%s", said);
  trial_close(&t);
}

Test(check_numerics, takes_what_there_is) {
  trial_t t = trial_open();
  rn_edge_t number = rn_const_int32(t.s, 1);
  cr_expect(!rn_add_check_numerics(t.s, &number, 1), "nothing to check");
  cr_expect(rn_scope_ok(t.s));
  rn_edge_t none = RN_NO_EDGE;
  cr_expect(!rn_add_check_numerics(t.s, &none, 1));
  cr_expect(!rn_scope_ok(t.s), "an edge that is none");
  trial_close(&t);
}
